//! The kernels of each type.

use crate::stencil::{Compiled, Number};
use gpu_kernels::wave3d::step::{Absorbing, Closed, Laplacian};

/// `f32` and `f64`: types that there are kernels for.
pub trait Kernels: Number {
    /// The update of a point.
    type Closed: Compiled<Self, 3, 1>;

    /// The same where waves are damped.
    type Absorbing: Compiled<Self, 4, 1>;

    /// That with this Laplacian.
    #[doc(hidden)]
    fn closed(laplacian: Laplacian<Self>) -> Self::Closed;

    /// That with this Laplacian.
    #[doc(hidden)]
    fn absorbing(laplacian: Laplacian<Self>) -> Self::Absorbing;
}

macro_rules! kernels {
    ($($real:ident),+) => {$(
        impl Kernels for $real {
            type Closed = Closed<Self>;
            type Absorbing = Absorbing<Self>;

            fn closed(laplacian: Laplacian<Self>) -> Closed<Self> {
                Closed { laplacian }
            }

            fn absorbing(laplacian: Laplacian<Self>) -> Absorbing<Self> {
                Absorbing { laplacian }
            }
        }
    )+};
}

kernels!(f32, f64);
