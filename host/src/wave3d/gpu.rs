//! Which kernels of the family run for a type.

use crate::stencil::{Number, Running, Stencil};
use crate::{Device, Error, Grid3};
use gpu_kernels::wave3d::{Absorbing, Acoustic, Laplacian};

/// The furthest neighbours of the highest order.
pub(super) const MAX_RADIUS: usize = 4;

/// The weights of L, in f64: of the point, and of its neighbours along each axis.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    pub(super) centre: f64,
    pub(super) axes: [[f64; MAX_RADIUS]; 3],
}

/// What a type has of the family: `f32` or `f64`.
pub trait Kernels: Number {
    /// Steps of an order in space from u, what it was before, and (c Δt)².
    fn start_acoustic(
        grid: Grid3,
        order: u32,
        weights: Weights,
        device: &Device,
        fields: [&[Self]; 3],
    ) -> Result<Box<dyn Running<Self>>, Error>;

    /// The same with an absorbing layer, of which σ Δt comes last.
    fn start_absorbing(
        grid: Grid3,
        order: u32,
        weights: Weights,
        device: &Device,
        fields: [&[Self]; 4],
    ) -> Result<Box<dyn Running<Self>>, Error>;
}

/// The start of `$update` of the radius for an order.
macro_rules! start {
    ($update:ident, $order:expr, $laplacian:expr, $grid:expr, $device:expr, $fields:expr) => {{
        let laplacian = $laplacian;
        macro_rules! of {
            ($radius:literal) => {
                Box::new(
                    Stencil::new($update::<_, $radius> { laplacian }, $grid)?
                        .start($device, $fields)?,
                )
            };
        }
        Ok(match $order {
            2 => of!(1),
            4 => of!(2),
            6 => of!(3),
            _ => of!(4),
        })
    }};
}

macro_rules! kernels {
    ($($real:ident),+) => {$(
        impl Kernels for $real {
            fn start_acoustic(
                grid: Grid3,
                order: u32,
                weights: Weights,
                device: &Device,
                fields: [&[Self]; 3],
            ) -> Result<Box<dyn Running<Self>>, Error> {
                let laplacian = Laplacian {
                    centre: weights.centre as Self,
                    axes: weights.axes.map(|axis| axis.map(|weight| weight as Self)),
                };
                start!(Acoustic, order, laplacian, grid, device, fields)
            }

            fn start_absorbing(
                grid: Grid3,
                order: u32,
                weights: Weights,
                device: &Device,
                fields: [&[Self]; 4],
            ) -> Result<Box<dyn Running<Self>>, Error> {
                let laplacian = Laplacian {
                    centre: weights.centre as Self,
                    axes: weights.axes.map(|axis| axis.map(|weight| weight as Self)),
                };
                start!(Absorbing, order, laplacian, grid, device, fields)
            }
        }
    )+};
}

kernels!(f32, f64);
