//! Runs Halo's computations on several ranks, each with its own device: fields are cut into blocks,
//! one for each rank.
//!
//! A [`Communicator`] connects a rank to the others. [`run`] starts ranks that are threads of this
//! process, `Communicator::mpi` (with the feature `mpi`) makes a rank of each process of an MPI
//! launcher, and [`Communicator::alone`] is a single rank. A [`Decomposition`] divides the points
//! of a grid among the ranks: slabs, pencils or blocks. A [`Ghosted`] field is a rank's block with
//! ghost points: copies of its neighbours' nearest points. On these rest heat on a plate
//! ([`heat2d::Plate`]), derivatives ([`derivative3d::Plan`]), your own stencils
//! ([`stencil::Run`]), and heat and waves in space ([`heat3d::start`], [`wave3d::start`]).
//! [`sum()`], [`min`], [`argmin`] and others reduce arrays, [`nbody::Plan`] computes gravity, and
//! [`nbody::Leapfrog`] moves bodies.
//!
//! **Results have the bits of one device**, for any number of ranks and any decomposition: every
//! rank computes a point from the same numbers in the same order, and adds the same partial sums.
//!
//! **Every rank makes the same calls in the same order**, as in MPI. If a rank fails, ends or
//! panics, the ranks that wait for it get an [`Error`]; if it hangs, they get [`Error::Deadline`]
//! after the time set by [`Communicator::with_deadline`]. No call waits for ever.
//!
//! ```
//! use halo_distributed::{Decomposition, Error, heat2d};
//! use halo_gpu::heat2d::{Heat2d, problem};
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), Error> {
//! let shape = Shape2::new(40, 30);
//! let heat = Heat2d::dirichlet(shape)?;
//! let initial = problem::hot_left_wall::<f32>(shape)?;
//! let one = heat.iterate_of(&Device::cpu(), &initial, 100)?;
//!
//! let plates = halo_distributed::run(3, |communicator| {
//!     let slabs = Decomposition::slabs([40, 30], communicator.size())?;
//!     let device = Device::cpu();
//!     let value = |[i, j]: [usize; 2]| initial[(i, j)];
//!     // Four rows of ghost points: an exchange every four iterations.
//!     let mut plate = heat2d::Plate::new(&communicator, &device, heat, slabs, 4, value)?;
//!     plate.iterate(100)?;
//!     plate.field()
//! })?;
//! assert!(plates.iter().all(|plate| plate.as_slice() == one.as_slice()));
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]

pub mod checkpoint;
mod communicator;
mod decomposition;
pub mod derivative3d;
mod error;
mod extremes;
mod files;
mod ghosts;
pub mod heat2d;
pub mod heat3d;
#[allow(
    unsafe_code,
    reason = "messages are received into a field while others are sent from it"
)]
mod in_place;
#[cfg(feature = "mpi")]
#[allow(unsafe_code, reason = "calls MPI")]
mod mpi_transport;
pub mod nbody;
#[cfg(all(feature = "nccl", unix))]
#[allow(unsafe_code, reason = "calls NCCL")]
mod nccl;
pub mod npy;
mod record;
mod region;
mod rims;
mod run;
mod spare;
pub mod stencil;
mod sum;
mod threads;
mod transport;
pub mod wave3d;
#[cfg(feature = "zarr")]
pub mod zarr;

pub use communicator::{Ahead, Communicator};
pub use decomposition::{Block, Decomposition, Side};
pub use error::Error;
pub use extremes::{argmax, argmin, max, min};
pub use files::{Share, Stored};
pub use ghosts::Ghosted;
pub use record::Replay;
pub use run::run;
pub use sum::{dot, mean, norm, sum};
pub use transport::{
    Arrival, Arrived, Expected, Incoming, Message, Outgoing, Parcel, Room, Transport,
};
