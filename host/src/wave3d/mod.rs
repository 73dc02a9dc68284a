//! Sound in space: the acoustic wave equation, with a velocity that depends on the place.
//!
//! ```text
//! u_tt = c² ∇²u      next = (2 u - past) + (c Δt)² L u
//! ```
//!
//! of second order in time and of order 2, 4, 6 or 8 in space: L is the sum of central second
//! derivatives along x, y and z. With an absorbing layer ([`Wave3d::with_absorbing_layer`]) the
//! equation is u_tt + 2 σ u_t = c² ∇²u, with σ growing towards the ends, so that waves leave and
//! hardly any come back:
//!
//! ```text
//! next = ((2 u - past) + (c Δt)² L u + σ Δt past) / (1 + σ Δt)
//! ```
//!
//! The grid has the spacings and what lies beyond the ends ([`Grid3`](crate::Grid3)); every
//! point is computed, and all devices give the same bits. Both are updates of
//! [`stencil`](crate::stencil), as your own equations are.
//!
//! ```
//! use halo_gpu::wave3d::Wave3d;
//! use halo_gpu::{Boundary, Device, Field3, Grid3, Shape3};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // 2 km/s above, 3 km/s below; points 10 m apart; a pulse in the middle.
//! let shape = Shape3::cube(24);
//! let grid = Grid3::new(shape, [10.0; 3])?.with_boundaries(Boundary::Dirichlet(0.0))?;
//! let velocity = Field3::from_fn(shape, |_, _, k| if k < 12 { 2000.0 } else { 3000.0_f32 })?;
//! let pulse = Field3::from_fn(shape, |i, j, k| {
//!     let square = |p: usize| (p as f32 - 11.5).powi(2);
//!     (-(square(i) + square(j) + square(k)) / 4.0).exp()
//! })?;
//!
//! let wave = Wave3d::new(grid, 0.001)?.with_accuracy(8)?.with_absorbing_layer(6, 1e-3)?;
//! let mut sound = wave.start(&Device::cpu(), &velocity, &pulse)?;
//! sound.steps(20)?;
//! assert!((sound.time() - 0.02).abs() < 1e-9);
//! assert!(sound.field()?[(12, 12, 12)].abs() < 0.2); // it has gone outwards
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "cases")]
pub(crate) mod cases;
#[cfg(feature = "cases")]
pub(crate) mod cpu;
pub(crate) mod gpu;
pub mod problem;
mod wave;

pub use gpu::{Kernels, Weights};
pub use wave::{Sound, Wave3d};
