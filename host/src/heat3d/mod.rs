//! Heat in space: its course by explicit steps in time, or its rest by Jacobi iteration.
//!
//! ```text
//! u_t = α ∇²u:     new = u + Σ r_a ((before + behind) - 2 u)      r_a = α Δt / h_a²
//! -∇²u = f:        new = Σ w_a (before + behind) + w f            w_a = w / h_a²
//!                                                      1 / w = 2 / h_x² + 2 / h_y² + 2 / h_z²
//! ```
//!
//! with the neighbours of a point along each axis a: the 7-point stencils, of first order in time
//! and second in space (LeVeque, "Finite Difference Methods for Ordinary and Partial
//! Differential Equations", SIAM 2007, sections 3.2, 4.1 and 9.3, in three dimensions). The grid
//! has the spacings and what lies beyond the ends ([`Grid3`](crate::Grid3)); every point is
//! computed. All devices give the same bits. Both are updates of
//! [`stencil`](crate::stencil), as your own equations are.
//!
//! ```
//! use halo_gpu::heat3d::Heat3d;
//! use halo_gpu::{Boundary, Device, Field3, Grid3, Shape3};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // A hot spot in an insulated block spreads, and no heat is lost.
//! let shape = Shape3::cube(16);
//! let grid = Grid3::new(shape, [0.1; 3])?.with_boundaries(Boundary::NeumannHalfway)?;
//! let spot = Field3::from_fn(shape, |i, j, k| if [i, j, k] == [8; 3] { 1.0 } else { 0.0_f64 })?;
//! let heat = Heat3d::new(grid)?.with_time_step(1.0, 0.0015)?; // α = 1, Δt = 0.0015
//! let mut block = heat.start(&Device::cpu(), &spot)?;
//! block.steps(40)?;
//! assert!((block.time() - 0.06).abs() < 1e-12);
//! let block = block.field()?;
//! assert!(block[(8, 8, 8)] < 0.1);
//! assert!((block.as_slice().iter().sum::<f64>() - 1.0).abs() < 1e-12);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "cases")]
pub(crate) mod cases;
#[cfg(feature = "cases")]
pub(crate) mod cpu;
pub(crate) mod gpu;
mod heat;
pub mod problem;

pub use gpu::Kernels;
pub use heat::{Heat, Heat3d};
