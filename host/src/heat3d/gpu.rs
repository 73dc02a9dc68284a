//! The kernels for heat in space, for each type.

use crate::stencil::{Compiled, Number, Stencil};
use crate::{Error, Grid3};
use gpu_kernels::heat3d::step::{Heated, Step};

/// A type with kernels: `f32` or `f64`.
pub trait Kernels: Number {
    /// The update of a point.
    type Step: Compiled<Self, 1, 1>;

    /// The update of a point with a source.
    type Heated: Compiled<Self, 2, 1>;

    /// The stencil on a grid, with `α Δt / h²` along x, y and z. It is compiled in this crate,
    /// together with the code that runs it on the CPU.
    #[doc(hidden)]
    fn steps(ratios: [Self; 3], grid: Grid3) -> Result<Steps<Self>, Error>;

    /// Like [`steps`](Self::steps), with a source.
    #[doc(hidden)]
    fn heated(ratios: [Self; 3], grid: Grid3) -> Result<OfHeated<Self>, Error>;
}

/// The stencils for one type.
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
