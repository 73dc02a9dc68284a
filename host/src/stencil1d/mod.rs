//! Applies stencils along a line, with any coefficients and radius 1 to 8.
//!
//! ```text
//! out[i] = c₀ in[i] + Σ (cₘ in[i+m] + c₋ₘ in[i-m])      1 <= m <= R      R <= i < n - R
//! ```
//!
//! The first and the last R elements of `out` are not written and keep their values. The textbook's
//! stencil has nine points, is antisymmetric, c₋ₘ = -cₘ, and has the coefficients
//! [`TEXTBOOK_COEFFICIENTS`]; with other coefficients it is a first derivative of 8th order
//! ([`Stencil1d::derivative`]).
//!
//! [`Stencil1d`] describes the computation: the length, the coefficients, and for the textbook
//! kernels the threads of a block. [`Stencil1d::plan`] makes a [`Plan`] for a device, which
//! computes on buffers; [`Stencil1d::apply_of`] computes on a slice. On a CUDA device and on the
//! emulator the library chooses a kernel; [`Stencil1d::plan_with`] takes a [`Variant`] that you
//! name. On the CPU the plan runs a port. All of them give the same bits.
//!
//! ```
//! use halo_gpu::Device;
//! use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let line: Vec<f32> = (0..100).map(|i| i as f32).collect();
//! let stencil = Stencil1d::antisymmetric(line.len(), &TEXTBOOK_COEFFICIENTS)?;
//! // On a line of slope 1 each of the n - 8 inner elements is Σ 2m · c_m.
//! let inner = stencil.apply_of(&Device::emulator(), &line)?;
//! assert_eq!(inner, [10.0_f32; 92]);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "cases")]
pub(crate) mod cases;
mod check;
pub(crate) mod cpu;
mod form;
pub(crate) mod gpu;
mod plan;
pub mod problem;
mod stencil;

pub use gpu::Variant;
pub use gpu_kernels::stencil1d::custom::MAX_RADIUS;
pub use plan::Plan;
pub use stencil::Stencil1d;

/// The textbook's coefficients.
pub const TEXTBOOK_COEFFICIENTS: [f32; 4] = [-1.0, -2.0, 2.0, 1.0];
