//! Heat in a plate: its steady temperature by Jacobi iteration, or its course by steps in time.
//!
//! ```text
//! new(i, j) = ((E + W) + (N + S)) * 0.25
//! E = old(i+1, j)   W = old(i-1, j)   N = old(i, j+1)   S = old(i, j-1)
//! ```
//!
//! at every interior point. The outermost points are the walls, which keep their
//! temperature if nothing else is said (Dirichlet's boundary). Each sweep, an iteration, moves the plate towards the solution
//! of Laplace's equation on square cells (LeVeque, "Finite Difference Methods for
//! Ordinary and Partial Differential Equations", SIAM 2007, sections 3.2 and 4.1).
//! [Insulated walls and sources](#insulated-walls-and-sources) and [steps in
//! time](#steps-in-time) are below.
//!
//! [`Heat2d`] says what is computed: the shape, any from 3 × 3 points on. Where
//! it runs is the device of the data, and whether in `f32` or in `f64` is their type.
//! On a CUDA device and on the emulator it is the kernel that is fastest for the size;
//! each kernel, the five of the textbook among them, can also be asked for by name
//! ([`Variant`]). On the CPU it is a port. All of them give the same bits.
//! Temperatures may be any number; a NaN or an infinity spreads by one point per
//! sweep, as the formula says.
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, problem};
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // The left wall at 1, all other walls and the plate at 0.
//! let shape = Shape2::new(17, 33);
//! let initial = problem::hot_left_wall::<f32>(shape)?;
//! let plate = Heat2d::new(shape)?.solve(&Device::cpu(), &initial, 100)?;
//!
//! // It is warmer near the hot wall, and above and below alike.
//! assert!(plate[(1, 16)] > plate[(2, 16)] && plate[(2, 16)] > 0.0);
//! assert_eq!(plate[(5, 9)], plate[(5, 23)]);
//! # Ok(())
//! # }
//! ```
//!
//! A plate that stays on its device between sweeps, by a kernel of your choice:
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, Variant, problem};
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let shape = Shape2::new(17, 33);
//! let initial = problem::hot_left_wall::<f32>(shape)?;
//! let mut plate =
//!     Heat2d::new(shape)?.start_with(Variant::Texture, &Device::emulator(), &initial)?;
//! plate.sweep(3)?;
//! assert_eq!(plate.field()?[(3, 16)], 1.0 / 64.0);
//! assert_eq!(plate.field()?[(4, 16)], 0.0);
//! # Ok(())
//! # }
//! ```
//!
//! # Insulated walls and sources
//!
//! Each wall is fixed or insulated ([`Walls`]), and each point may have a source of heat
//! ([`Plate::with_source`]). The plate then moves towards the solution of Poisson's
//! equation, -∇²u = f, without heat flux through the insulated walls (Neumann's boundary):
//!
//! ```text
//! new(i, j) = (((E + W) + (N + S)) + h² f(i, j)) * 0.25
//! at an insulated wall:  W = E at the left, i = 0      E = W at the right, i = nx-1
//!                        S = N at the bottom, j = 0    N = S at the top, j = ny-1
//! ```
//!
//! with h the distance of two points. What is beyond an insulated wall mirrors what is
//! before it, which makes the central difference across the wall zero: an
//! approximation of second order, as that of the equation is (LeVeque 2007, section 2.12,
//! second approach, and section 3.2). Where two insulated walls meet, both are mirrored;
//! where an insulated wall meets a fixed one, the corner is fixed. These plates have one
//! kernel, [`Variant::General`]; again all devices give the same bits.
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, Wall, Walls};
//! use halo_gpu::{Device, Field2, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // A rod of 21 points, insulated at the sides, 0.05 m from point to point; its ends
//! // are kept at 0 °C. A current heats it: 80 K/m², power per volume over conductivity.
//! let shape = Shape2::new(21, 3);
//! let walls = Walls { bottom: Wall::Insulated, top: Wall::Insulated, ..Walls::FIXED };
//! let cold = Field2::filled(shape, 0.0_f64)?;
//! let heating = Field2::filled(shape, 0.05 * 0.05 * 80.0)?;
//!
//! let heat = Heat2d::new(shape)?.with_walls(walls);
//! let mut rod = heat.start(&Device::cpu(), &cold)?.with_source(&heating)?;
//! assert!(rod.sweep_until(1e-12, 100, 100_000)?.converged);
//!
//! // f x (L - x) / 2, of which the middle has 10 K.
//! let rod = rod.field()?;
//! assert!((rod[(10, 1)] - 10.0).abs() < 1e-8 && (rod[(4, 2)] - 6.4).abs() < 1e-8);
//! # Ok(())
//! # }
//! ```
//!
//! # Steps in time
//!
//! With [`Heat2d::with_time_step`] a sweep is an explicit step of the heat equation in time,
//! u_t = α ∇²u + q, with the same walls and sources, on all devices with the same bits:
//!
//! ```text
//! new(i, j) = u + r ((((E + W) + (N + S)) + h² q(i, j) / α) - 4 u)      u = old(i, j)
//! r = α Δt / h² ≤ 1/4
//! ```
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, Walls};
//! use halo_gpu::{Device, Field2, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // A hot spot in an insulated plate spreads, and no heat is lost.
//! let shape = Shape2::new(41, 41);
//! let spot = Field2::from_fn(shape, |i, j| if (i, j) == (20, 20) { 100.0 } else { 0.0_f64 })?;
//! let heat = Heat2d::new(shape)?
//!     .with_walls(Walls::INSULATED)
//!     .with_time_step(1.0, 0.1, 0.002)?; // α = 1, h = 0.1, Δt = 0.002
//! let mut plate = heat.start(&Device::cpu(), &spot)?;
//! plate.sweep(50)?;
//! assert!((plate.time() - 0.1).abs() < 1e-12);
//! let plate = plate.field()?;
//! assert!(plate[(20, 20)] < 1.0 && plate[(20, 20)] > plate[(25, 20)]);
//! assert!((plate.as_slice().iter().sum::<f64>() - 100.0).abs() < 0.5); // walls count half
//! # Ok(())
//! # }
//! ```

mod blocked;
#[cfg(feature = "cases")]
pub(crate) mod cases;
mod check;
pub(crate) mod cpu;
pub(crate) mod gpu;
mod heat;
mod means;
mod plate;
pub mod problem;
mod state;
mod sweeps;
mod walls;

pub use gpu::Variant;
pub use heat::{FLOPS_PER_POINT, Heat2d, MIN_EXTENT};
pub use plate::{Outcome, Plate, Tolerance};
pub use walls::{Wall, Walls};
