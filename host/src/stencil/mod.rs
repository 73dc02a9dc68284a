//! Runs your own stencils: you write the update of a point once, and it runs on all devices.
//!
//! An update is a type that holds the parameters of an equation and implements [`PointUpdate`]: the
//! new value of a point from fields at constant offsets. The macro [`stencil!`](macro@stencil)
//! makes its kernel. [`Stencil`] applies it to a grid, with a boundary for each end of each field;
//! [`Stencil::plan`] and [`Stencil::start`] run it on a device: with the kernel on GPUs and on the
//! emulator, with vector code on all cores of a CPU. All devices give the same bits: the update
//! defines the order of operations, and only its own fused operations are fused.
//!
//! ```
//! use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil, stencil};
//! use halo_gpu::{Boundary, Device, Grid2, Shape2};
//!
//! /// Diffusion in the plane: u + r (((W + E) + (S + N)) - 4 u).
//! #[derive(Debug, Clone, Copy)]
//! pub struct Diffusion {
//!     /// Diffusivity times the step over the square of the spacing.
//!     pub ratio: f32,
//! }
//!
//! impl PointUpdate<f32, 1, 1> for Diffusion {
//!     const DIMENSIONS: usize = 2;
//!     const REACH: [Reach; 1] = [Reach::star(1)];
//!
//!     #[inline(always)]
//!     fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
//!         let u = n.at::<0, 0, 0, 0>();
//!         let along_x = n.at::<0, -1, 0, 0>() + n.at::<0, 1, 0, 0>();
//!         let along_y = n.at::<0, 0, -1, 0>() + n.at::<0, 0, 1, 0>();
//!         [u + ((along_x + along_y) - u * 4.0) * self.ratio]
//!     }
//! }
//!
//! stencil! {
//!     /// A step of diffusion.
//!     pub diffusion: Diffusion, f32, (u) -> (new_u)
//! }
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let grid = Grid2::new(Shape2::new(33, 20), [1.0; 2])?.with_boundaries(Boundary::NeumannHalfway)?;
//! let stencil = Stencil::new(Diffusion { ratio: 0.2 }, grid)?;
//! let mut hot = vec![0.0_f32; 33 * 20];
//! hot[10 * 33 + 16] = 100.0;
//!
//! let mut plate = stencil.start(&Device::emulator(), [&hot])?;
//! plate.steps(10)?;
//! let spread = plate.to_vec(0)?;
//! assert!((spread.iter().sum::<f32>() - 100.0).abs() < 1e-3); // nothing leaves
//!
//! // The same bits on the CPU.
//! let mut on_cpu = stencil.start(&Device::cpu(), [&hot])?;
//! on_cpu.steps(10)?;
//! assert_eq!(on_cpu.to_vec(0)?, spread);
//! # Ok(())
//! # }
//! ```

mod cpu;
mod gpu;
mod held;
mod number;
mod operation;
#[cfg(feature = "cases")]
mod plain;
mod plan;
mod run;
mod trace;
mod vectors;

pub use halo_stencil::stencil;
pub use halo_stencil::{
    Compiled, MAX_BOX, MAX_RADIUS, Neighbourhood, PointUpdate, Reach, Real, Value,
};
pub use number::Number;
pub use operation::Stencil;
#[cfg(feature = "cases")]
pub(crate) use plain::{Plain, of_points};
pub use plan::Plan;
pub(crate) use run::require_looks;
pub use run::{Run, Settled};
