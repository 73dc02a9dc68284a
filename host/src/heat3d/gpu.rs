//! Which kernels of the family run for a type.

use crate::stencil::{Number, Running, Stencil};
use crate::{Device, Error, Grid3};
use gpu_kernels::heat3d::{Jacobi, Step};

/// What a type has of the family: `f32` or `f64`.
pub trait Kernels: Number {
    /// Steps in time from `initial`, with α Δt / h² along each axis.
    fn start_steps(
        grid: Grid3,
        ratios: [f64; 3],
        device: &Device,
        initial: &[Self],
    ) -> Result<Box<dyn Running<Self>>, Error>;

    /// Iterations, with the weights of neighbours and of the source, from a field and a source.
    fn start_iterations(
        grid: Grid3,
        weights: [f64; 3],
        source: f64,
        device: &Device,
        fields: [&[Self]; 2],
    ) -> Result<Box<dyn Running<Self>>, Error>;
}

macro_rules! kernels {
    ($($real:ident),+) => {$(
        impl Kernels for $real {
            fn start_steps(
                grid: Grid3,
                ratios: [f64; 3],
                device: &Device,
                initial: &[Self],
            ) -> Result<Box<dyn Running<Self>>, Error> {
                let ratios = ratios.map(|ratio| ratio as Self);
                Ok(Box::new(Stencil::new(Step { ratios }, grid)?.start(device, [initial])?))
            }

            fn start_iterations(
                grid: Grid3,
                weights: [f64; 3],
                source: f64,
                device: &Device,
                fields: [&[Self]; 2],
            ) -> Result<Box<dyn Running<Self>>, Error> {
                let weights = weights.map(|weight| weight as Self);
                let update = Jacobi { weights, source: source as Self };
                Ok(Box::new(Stencil::new(update, grid)?.start(device, fields)?))
            }
        }
    )+};
}

kernels!(f32, f64);
