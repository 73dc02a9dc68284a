//! The kernels of each type.

use crate::stencil::{Compiled, Number, Stencil};
use crate::{Error, Grid3};
use gpu_kernels::heat3d::step::Step;

/// `f32` and `f64`: types that there are kernels for.
pub trait Kernels: Number {
    /// The update of a point.
    type Step: Compiled<Self, 1, 1>;

    /// The stencil on a grid, with these `α Δt / h²` along x, y and z. Compiled in this crate,
    /// with what runs it on the CPU.
    #[doc(hidden)]
    fn steps(ratios: [Self; 3], grid: Grid3) -> Result<Steps<Self>, Error>;
}

/// The stencil of a type.
type Steps<T> = Stencil<<T as Kernels>::Step, T, 3, 1, 1>;

macro_rules! kernels {
    ($($number:ty),+) => {$(
        impl Kernels for $number {
            type Step = Step<Self>;

            fn steps(ratios: [Self; 3], grid: Grid3) -> Result<Steps<Self>, Error> {
                Stencil::new(Step { ratios }, grid)
            }
        }
    )+};
}

kernels!(f32, f64);
