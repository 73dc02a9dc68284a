//! What stencils compute with.

use crate::scalar::Scalar;
use halo_stencil::Real;

/// `f32` or `f64`, in fields, in kernels and in the processor's vectors.
pub trait Number: Scalar + Real {
    /// Points of an access of 16 bytes.
    #[doc(hidden)]
    const POINTS: usize = 16 / size_of::<Self>();
}

impl Number for f32 {}
impl Number for f64 {}

/// What errors call it.
pub(super) const OPERATION: &str = "stencil";

/// The most fields that an update reads.
pub(super) const MAX_INPUTS: usize = 8;
