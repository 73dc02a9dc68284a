//! Fields that are cut into blocks, one for each rank, with one device for each rank.
//!
//! A [`Communicator`] connects a rank to the others. [`run`] starts ranks that are threads of this
//! process, `Communicator::mpi` (with the feature `mpi`) makes a rank of each process of an MPI
//! launcher, and [`Communicator::alone`] is a single rank. A [`Decomposition`] divides the points
//! of a grid among the ranks: slabs, pencils or blocks. A [`Ghosted`] field is a rank's block with
//! copies of its neighbours' nearest points around it. Based on them are a plate
//! ([`heat2d::Plate`]), derivatives ([`derivative3d::on_part`]) and reductions of arrays
//! ([`sum()`], [`min`], [`argmin`] …). [`stencil::Run`] steps your own stencils, [`heat3d::start`]
//! and [`wave3d::start`] heat and waves in space; [`nbody::Plan`] shares bodies, and
//! [`nbody::Leapfrog`] moves them.
//!
//! **Results have the bits of one device**, for any number of ranks and any decomposition: a
//! point is computed from the same numbers in the same order wherever it lies, and a sum is
//! made of the same partial sums.
//!
//! **Every rank makes the same calls in the same order**, as in MPI. A rank that fails, ends or
//! panics is an [`Error`] on the ranks that wait for it, and one that hangs is [`Error::Deadline`]
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
pub use sum::{dot, mean, norm, sum};
pub use threads::run;
pub use transport::{Arrival, Arrived, Expected, Incoming, Outgoing, Parcel, Transport};
