//! The kernels for waves, for each type.

use crate::stencil::{Compiled, Number, Stencil};
use crate::{Error, Grid3};
use gpu_kernels::wave3d::step::{Absorbing, Closed, Laplacian};

/// A type with kernels: `f32` or `f64`.
pub trait Kernels: Number {
    /// The update of a point without damping.
    type Closed: Compiled<Self, 3, 1>;

    /// The update of a point with damping.
    type Absorbing: Compiled<Self, 4, 1>;

    /// The stencil on a grid, with this Laplacian. It is compiled in this crate, together with the
    /// code that runs it on the CPU.
    #[doc(hidden)]
    fn closed(laplacian: Laplacian<Self>, grid: Grid3) -> Result<OfClosed<Self>, Error>;

    /// Like [`closed`](Self::closed), with damping.
    #[doc(hidden)]
    fn absorbing(laplacian: Laplacian<Self>, grid: Grid3) -> Result<OfAbsorbing<Self>, Error>;
}

/// The stencils for one type.
type OfClosed<T> = Stencil<<T as Kernels>::Closed, T, 3, 3, 1>;
type OfAbsorbing<T> = Stencil<<T as Kernels>::Absorbing, T, 3, 4, 1>;

macro_rules! kernels {
    ($($real:ident),+) => {$(
        impl Kernels for $real {
            type Closed = Closed<Self>;
            type Absorbing = Absorbing<Self>;

            fn closed(laplacian: Laplacian<Self>, grid: Grid3) -> Result<OfClosed<Self>, Error> {
                Stencil::new(Closed { laplacian }, grid)
            }

            fn absorbing(
                laplacian: Laplacian<Self>,
                grid: Grid3,
            ) -> Result<OfAbsorbing<Self>, Error> {
                Stencil::new(Absorbing { laplacian }, grid)
            }
        }
    )+};
}

kernels!(f32, f64);
