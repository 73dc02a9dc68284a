//! Computes derivatives of a field on a 3-D grid by finite differences.
//!
//! [`FiniteDifferences3d`] describes the computation: the [`Grid3`](crate::Grid3), with a
//! [`Boundary`] along each axis, and the order of accuracy. [`FiniteDifferences3d::plan`] makes a
//! [`Plan`] for a device, which computes first and second derivatives, gradient, divergence, curl
//! and Laplacian on buffers. [`derivative_of`](FiniteDifferences3d::derivative_of),
//! [`gradient_of`](FiniteDifferences3d::gradient_of) and so on do the same for fields in host
//! memory. On a CUDA device and on the emulator the library chooses the kernels;
//! [`FiniteDifferences3d::plan_with`] takes the [`Variant`] that you name, among them those of the
//! textbook. On the CPU the plan runs a port. Every way takes any size and gives the same bits.
//!
//! The textbook's derivative is the first derivative of 8th order on a periodic axis:
//!
//! ```text
//! df[i] = a (f[i+1] - f[i-1]) + b (f[i+2] - f[i-2])
//!       + c (f[i+3] - f[i-3]) + d (f[i+4] - f[i-4])
//! a = 4/5   b = -1/5   c = 4/105   d = -1/280      each over the grid spacing
//! ```
//!
//! Its truncation error, the formula's value minus the derivative, begins with `-h⁸/630 · f⁽⁹⁾`
//! (Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids", Math. Comp.
//! 51 (1988)).
//!
//! ```
//! use halo_gpu::derivative3d::FiniteDifferences3d;
//! use halo_gpu::{Axis, Device, Field3, Grid3, Shape3};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let device = Device::cpu();
//! let shape = Shape3::new(64, 8, 8);
//! let grid = Grid3::new(shape, [1.0; 3])?.of_unit_length()?;
//! let differences = FiniteDifferences3d::new(&grid)?;
//! let f = Field3::from_fn(shape, |i, _, _| (std::f32::consts::TAU * i as f32 / 64.0).sin())?;
//! let df = differences.derivative_of(&device, Axis::X, &f)?;
//! assert!((df[(0, 0, 0)] - std::f32::consts::TAU).abs() < 1e-4);
//! # Ok(())
//! # }
//! ```

mod boundary;
#[cfg(feature = "cases")]
pub(crate) mod cases;
mod check;
pub(crate) mod cpu;
mod differences;
mod ends;
pub(crate) mod gpu;
mod on_host;
mod operator;
mod plan;
pub mod problem;
mod tiles;
mod variant;

pub use crate::axis::Axis;
pub use crate::grid::Boundary;
pub use differences::FiniteDifferences3d;
pub use gpu_kernels::derivative3d::RADIUS;
pub use operator::Operator;
pub use plan::Plan;
pub use variant::Variant;
