//! Solves the acoustic wave equation in space, of second order in time and 2nd to 8th order in
//! space.
//!
//! ```text
//! ∂²u/∂t² = c² ∇²u
//! new = (2 u - past) + (c Δt)² L u      L: central differences of order p
//! ```
//!
//! with a velocity c at each point: leapfrog in time (Virieux, Calandra and Plessix, "A review of
//! the spectral, pseudo-spectral, finite-difference and finite-element modelling techniques for
//! geophysical imaging", Geophysical Prospecting 59 (2011), section 3). The error is of order Δt² +
//! hᵖ. Steps are stable up to [`Wave3d::longest_step`].
//!
//! A step writes the new field over the past one, which it reads only at the point itself.
//!
//! [`Wave3d`] describes the computation: a [`Grid3`](crate::Grid3), with the boundaries of the
//! field, and the order. [`Wave3d::start`] puts a field on a device, with its velocities
//! ([`Waves`]); [`Wave3d::start_absorbing`] adds damping layers ([`Layer`]) before the open ends
//! ([`Boundary::OneSided`](crate::Boundary::OneSided)). The steps are those of a stencil
//! ([`stencil`](mod@crate::stencil)): a kernel on the emulator and on CUDA devices, vector code on
//! the CPU, with the same bits in `f32` and in `f64`.
//!
//! ```
//! use halo_gpu::wave3d::Wave3d;
//! use halo_gpu::{Boundary, Device, Field3, Grid3, Shape3};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // A pulse in the middle of a room of 24 m × 20 m × 18 m; sound has 340 m/s.
//! let shape = Shape3::new(24, 20, 18);
//! let grid = Grid3::new(shape, [1.0; 3])?.with_boundaries(Boundary::NeumannHalfway)?;
//! let room = Wave3d::new(grid, 8)?;
//! let pulse = Field3::from_fn(shape, |i, j, k| {
//!     let square = |a: usize, middle: f32| (a as f32 - middle).powi(2);
//!     (-0.2 * (square(i, 11.5) + square(j, 9.5) + square(k, 8.5))).exp()
//! })?;
//! let velocity = Field3::filled(shape, 340.0)?;
//! let time_step = 0.5 * room.longest_step(340.0);
//!
//! let mut sound = room.start(&Device::cpu(), time_step, &velocity, [&pulse, &pulse])?;
//! sound.steps(10)?;
//! let after = Field3::from_vec(shape, sound.to_vec(0)?)?;
//! // It has left the middle, with a trough behind the crest.
//! assert!(after[(11, 9, 8)] < -0.2 && after[(15, 9, 8)] > 0.1);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "cases")]
pub(crate) mod cases;
#[cfg(feature = "cases")]
pub(crate) mod cpu;
mod gpu;
mod layer;
pub mod problem;
mod wave;

pub use gpu::Kernels;
pub use layer::Layer;
pub use wave::{AbsorbedWaves, AbsorbingPlan, Plan, Wave3d, Waves};
