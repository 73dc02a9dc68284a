//! First derivative of a 3-D field along one axis, 8th-order central differences.
//!
//! ```text
//! df[i] = a (f[i+1] - f[i-1]) + b (f[i+2] - f[i-2])
//!       + c (f[i+3] - f[i-3]) + d (f[i+4] - f[i-4])
//! a = 4/5   b = -1/5   c = 4/105   d = -1/280      each over the grid spacing
//! ```
//!
//! The truncation error, what the formula gives minus the derivative, begins with
//! `-h⁸/630 · f⁽⁹⁾` (Fornberg, "Generation of finite difference formulas on arbitrarily
//! spaced grids", Math. Comp. 51 (1988)).
//!
//! [`Derivative3d`] says what is computed: the shape, the spacing and the
//! [`Boundary`]. Where it runs is the device of the buffers. On a CUDA device
//! and on the emulator it is a tuned kernel that suits the shape; each of those, and
//! the six textbook kernels, can also be asked for by name ([`Variant`]). On the CPU
//! it is a port. Any size will do, and all of them give the same bits.
//! [`Derivative3d::gradient`] computes all three derivatives and reads the field once.
//!
//! [`FiniteDifferences3d`] is for everything else: f64, second derivatives, the orders
//! of accuracy 2, 4, 6 and 8, and axes that are not periodic.
//!
//! ```
//! use halo_gpu::derivative3d::{Axis, Boundary, Derivative3d};
//! use halo_gpu::{Device, Field3, Shape3};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let device = Device::cpu();
//! let shape = Shape3::new(64, 8, 8);
//! let derivative = Derivative3d::unit_period(shape, Boundary::Periodic)?;
//! let f = Field3::from_fn(shape, |i, _, _| (std::f32::consts::TAU * i as f32 / 64.0).sin())?;
//! let df = derivative.of(&device, Axis::X, &f)?;
//! assert!((df[(0, 0, 0)] - std::f32::consts::TAU).abs() < 1e-4);
//! # Ok(())
//! # }
//! ```

mod boundary;
#[cfg(feature = "cases")]
pub(crate) mod cases;
pub(crate) mod cpu;
mod first;
pub(crate) mod general;
mod gpu;
mod operator;
pub mod problem;
mod tiles;
mod transfer;
mod variant;

pub use crate::axis::Axis;
pub use crate::finite_difference::CENTRAL_8 as WEIGHTS;
pub use crate::grid::Boundary;
pub use first::{Derivative3d, FLOPS_PER_POINT};
pub use general::FiniteDifferences3d;
pub use gpu::GRADIENT_KERNEL;
pub use gpu_kernels::derivative3d::RADIUS;
pub use operator::Operator;
pub use variant::Variant;
