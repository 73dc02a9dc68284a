//! Solves the heat equation in space: explicit time steps, or Jacobi iterations towards the steady
//! state.
//!
//! ```text
//! ∂u/∂t = α ∇²u + q
//! new = u + Σ r_a ((low + high) - 2 u) + Δt q      over the axes a, r_a = α Δt / h_a²
//! ```
//!
//! where `low` and `high` are the neighbours along each axis, and q is an optional source: forward
//! in time and centred in space, of first order in Δt and of second order in h (LeVeque, "Finite
//! Difference Methods for Ordinary and Partial Differential Equations", SIAM 2007, chapter 9).
//! Steps are stable up to `Σ r_a = 1/2`; at this limit a step is a Jacobi iteration of Poisson's
//! equation.
//!
//! [`Heat3d`] describes the computation: a [`Grid3`](crate::Grid3), with the boundaries of the
//! body, and the steps. A step computes every point, including those at the ends: a Dirichlet value
//! is that of the next point beyond the end. [`Heat3d::plan`] makes a [`Plan`] for a device,
//! [`Heat3d::start`] puts a body there ([`Body`]), [`Heat3d::steps_of`] takes a field and returns
//! one. [`Heat3d::start_heated`] and [`Heat3d::plan_heated`] do the same with a heat source. All
//! are stencils ([`stencil`](mod@crate::stencil)): a kernel on the emulator and on CUDA devices,
//! vector code on the CPU, with the same bits in `f32` and in `f64`.
//!
//! ```
//! use halo_gpu::heat3d::Heat3d;
//! use halo_gpu::{Boundary, Device, Field3, Grid3, Shape3};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // A hot spot in an insulated block spreads, and no heat is lost.
//! let shape = Shape3::new(20, 17, 15);
//! let grid = Grid3::new(shape, [0.1; 3])?.with_boundaries(Boundary::NeumannHalfway)?;
//! let heat = Heat3d::new(grid).with_time_step(1.0, 0.0015)?; // α = 1, Δt = 0.0015
//! let spot = Field3::from_fn(shape, |i, j, k| if [i, j, k] == [10, 8, 7] { 100.0 } else { 0.0_f64 })?;
//!
//! let mut block = heat.start(&Device::cpu(), &spot)?;
//! block.steps(40)?;
//! let after = Field3::from_vec(shape, block.to_vec(0)?)?;
//! assert!(after[(10, 8, 7)] < 2.0 && after[(10, 8, 7)] > after[(13, 8, 7)]);
//! assert!((after.as_slice().iter().sum::<f64>() - 100.0).abs() < 1e-10);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "cases")]
pub(crate) mod cases;
#[cfg(feature = "cases")]
pub(crate) mod cpu;
mod gpu;
mod heat;
pub mod problem;

pub use gpu::Kernels;
pub use heat::{Body, Heat3d, HeatedBody, HeatedPlan, Plan};
