//! Heat in a plate: its steady temperature by Jacobi iteration, or its course by steps in time.
//!
//! ```text
//! new(i, j) = ((E + W) + (N + S)) * 0.25
//! E = old(i+1, j)   W = old(i-1, j)   N = old(i, j+1)   S = old(i, j-1)
//! ```
//!
//! at every interior point; the outermost points keep their temperature if nothing else is said
//! (Dirichlet). Each iteration moves the plate towards the solution of Laplace's equation on
//! square cells (LeVeque, "Finite Difference Methods for Ordinary and Partial Differential
//! Equations", SIAM 2007, sections 3.2 and 4.1). [Neumann boundaries and
//! sources](#neumann-boundaries-and-sources) and [steps in time](#steps-in-time) are below.
//!
//! [`Heat2d`] describes the computation: the grid, of at least 3 × 3 points, and the boundaries. A
//! [`Plan`] of it, for a device and for `f32` or `f64`, iterates on buffers; a [`Plate`] stays on
//! its device and counts its iterations. On a CUDA device and on the emulator they choose the
//! fastest kernels for the size; each kernel, the five of the textbook among them, can also be
//! named ([`Variant`]). On the CPU it is a port. All of them give the same bits. Temperatures may
//! be any number; a NaN or an infinity spreads by one point per iteration, according to the
//! formula.
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, problem};
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // The left wall at 1, all other walls and the plate at 0.
//! let shape = Shape2::new(17, 33);
//! let initial = problem::hot_left_wall::<f32>(shape)?;
//! let plate = Heat2d::dirichlet(shape)?.iterate_of(&Device::cpu(), &initial, 100)?;
//!
//! // It is warmer near the hot wall, and above and below alike.
//! assert!(plate[(1, 16)] > plate[(2, 16)] && plate[(2, 16)] > 0.0);
//! assert_eq!(plate[(5, 9)], plate[(5, 23)]);
//! # Ok(())
//! # }
//! ```
//!
//! A plate that stays on its device between iterations, by a kernel of your choice:
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, Variant, problem};
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let shape = Shape2::new(17, 33);
//! let initial = problem::hot_left_wall::<f32>(shape)?;
//! let plan = Heat2d::dirichlet(shape)?.plan_with(&Device::emulator(), Variant::Texture)?;
//! let mut plate = plan.start(&initial)?;
//! plate.iterate(3)?;
//! assert_eq!(plate.field()?[(3, 16)], 1.0 / 64.0);
//! assert_eq!(plate.field()?[(4, 16)], 0.0);
//! # Ok(())
//! # }
//! ```
//!
//! # Neumann boundaries and sources
//!
//! Each end of an axis has a boundary of its own ([`Heat2d::with_ends`]), and each point may
//! have a source of heat ([`Plate::with_source`]). The plate then moves towards the solution of
//! Poisson's equation, -∇²u = f, without heat flux through the ends that are
//! [`Boundary::Neumann`](crate::Boundary::Neumann):
//!
//! ```text
//! new(i, j) = (((E + W) + (N + S)) + h² f(i, j)) * 0.25
//! at a Neumann boundary:  W = E at the left, i = 0      E = W at the right, i = nx-1
//!                         S = N at the bottom, j = 0    N = S at the top, j = ny-1
//! ```
//!
//! with h the distance of two points. Points beyond such an end mirror those before it, which makes
//! the central difference across it zero: an approximation of second order, as the equation's own
//! is (LeVeque 2007, section 2.12, second approach, and section 3.2). Where two such ends meet,
//! both are mirrored; where one meets a Dirichlet boundary, the corner keeps its temperature. These
//! plates have one kernel, [`Variant::March`]; again all devices give the same bits.
//!
//! ```
//! use halo_gpu::heat2d::Heat2d;
//! use halo_gpu::{Axis, Boundary, Device, Field2, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // A rod of 21 points, insulated at the sides, 0.05 m from point to point; its ends
//! // are kept at 0 °C. A current heats it: 80 K/m², power per volume over conductivity.
//! let shape = Shape2::new(21, 3);
//! let cold = Field2::filled(shape, 0.0_f64)?;
//! let heating = Field2::filled(shape, 0.05 * 0.05 * 80.0)?;
//!
//! let heat = Heat2d::dirichlet(shape)?.with_ends(Axis::Y, [Boundary::Neumann; 2])?;
//! let mut rod = heat.start(&Device::cpu(), &cold)?.with_source(&heating)?;
//! assert!(rod.iterate_until(1e-12, 100, 100_000)?.converged);
//!
//! // f x (L - x) / 2; the middle has 10 K.
//! let rod = rod.field()?;
//! assert!((rod[(10, 1)] - 10.0).abs() < 1e-8 && (rod[(4, 2)] - 6.4).abs() < 1e-8);
//! # Ok(())
//! # }
//! ```
//!
//! # Steps in time
//!
//! With [`Heat2d::with_time_step`] an iteration is an explicit step of the heat equation in
//! time, u_t = α ∇²u + q, with the same boundaries and sources, on all devices with the same
//! bits:
//!
//! ```text
//! new(i, j) = u + r ((((E + W) + (N + S)) + h² q(i, j) / α) - 4 u)      u = old(i, j)
//! r = α Δt / h² ≤ 1/4
//! ```
//!
//! ```
//! use halo_gpu::heat2d::Heat2d;
//! use halo_gpu::{Boundary, Device, Field2, Grid2, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // A hot spot in an insulated plate spreads, and no heat is lost. Points are 0.1 apart.
//! let shape = Shape2::new(41, 41);
//! let grid = Grid2::new(shape, [0.1; 2])?.with_boundaries(Boundary::Neumann)?;
//! let spot = Field2::from_fn(shape, |i, j| if (i, j) == (20, 20) { 100.0 } else { 0.0_f64 })?;
//! let heat = Heat2d::new(&grid)?.with_time_step(1.0, 0.002)?; // α = 1, Δt = 0.002
//! let mut plate = heat.start(&Device::cpu(), &spot)?;
//! plate.iterate(50)?;
//! assert!((plate.time() - 0.1).abs() < 1e-12);
//! let plate = plate.field()?;
//! assert!(plate[(20, 20)] < 1.0 && plate[(20, 20)] > plate[(25, 20)]);
//! assert!((plate.as_slice().iter().sum::<f64>() - 100.0).abs() < 0.5); // ends count half
//! # Ok(())
//! # }
//! ```

mod blocked;
#[cfg(feature = "cases")]
pub(crate) mod cases;
mod check;
pub(crate) mod cpu;
mod ends;
pub(crate) mod gpu;
mod heat;
mod plan;
mod plate;
pub mod problem;
mod subnormals;
mod sums;
mod until;

pub use gpu::Variant;
pub use heat::Heat2d;
pub use plan::Plan;
pub use plate::Plate;
#[doc(hidden)]
pub use sums::Sums;
#[doc(hidden)]
pub use until::Iterated;
pub use until::{Outcome, Tolerance};
