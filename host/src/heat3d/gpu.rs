//! The kernels of each type.

use crate::stencil::{Compiled, Number, Stencil};
use crate::{Error, Grid3};
use gpu_kernels::heat3d::step::{Heated, Step};

/// `f32` and `f64`: types that there are kernels for.
pub trait Kernels: Number {
    /// The update of a point.
    type Step: Compiled<Self, 1, 1>;

    /// The same with a source.
    type Heated: Compiled<Self, 2, 1>;

    /// The stencil on a grid, with these `α Δt / h²` along x, y and z. Compiled in this crate,
    /// with what runs it on the CPU.
    #[doc(hidden)]
    fn steps(ratios: [Self; 3], grid: Grid3) -> Result<Steps<Self>, Error>;

    /// The same with a source.
    #[doc(hidden)]
    fn heated(ratios: [Self; 3], grid: Grid3) -> Result<OfHeated<Self>, Error>;
}

/// The stencils of a type.
type Steps<T> = Stencil<<T as Kernels>::Step, T, 3, 1, 1>;
type OfHeated<T> = Stencil<<T as Kernels>::Heated, T, 3, 2, 1>;

macro_rules! kernels {
    ($($number:ty),+) => {$(
        impl Kernels for $number {
            type Step = Step<Self>;
            type Heated = Heated<Self>;

            fn steps(ratios: [Self; 3], grid: Grid3) -> Result<Steps<Self>, Error> {
                Stencil::new(Step { ratios }, grid)
            }

            fn heated(ratios: [Self; 3], grid: Grid3) -> Result<OfHeated<Self>, Error> {
                let step = Step { ratios };
                Stencil::new(Heated { step }, grid)
            }
        }
    )+};
}

kernels!(f32, f64);
