//! The kernels of each type.

use crate::stencil::{Compiled, Number};
use gpu_kernels::heat3d::step::Step;

/// `f32` and `f64`: types that there are kernels for.
pub trait Kernels: Number {
    /// The update of a point.
    type Step: Compiled<Self, 1, 1>;

    /// That with these `α Δt / h²` along x, y and z.
    #[doc(hidden)]
    fn step(ratios: [Self; 3]) -> Self::Step;
}

impl Kernels for f32 {
    type Step = Step<Self>;

    fn step(ratios: [Self; 3]) -> Step<Self> {
        Step { ratios }
    }
}

impl Kernels for f64 {
    type Step = Step<Self>;

    fn step(ratios: [Self; 3]) -> Step<Self> {
        Step { ratios }
    }
}
