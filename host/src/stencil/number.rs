//! The number types of stencils: `f32` and `f64`.

use crate::scalar::Scalar;
use halo_stencil::Real;

/// `f32` or `f64`: usable in fields, in kernels and in the processor's vectors.
pub trait Number: Scalar + Real {}

impl Number for f32 {}
impl Number for f64 {}

/// The family's name in errors.
pub(super) const OPERATION: &str = "stencil";

/// The most fields that an update reads.
pub(super) const MAX_INPUTS: usize = 8;
