//! What fields are made of.

use super::general::gpu::GeneralKernels;
use crate::Element;
use crate::simd::InVectors;
use std::fmt;

/// f32 or f64: what fields are made of. No other type can implement it.
pub trait Real:
    gpu_kernels::derivative3d::general_real::Real
    + Element
    + InVectors
    + Into<f64>
    + GeneralKernels
    + fmt::Debug
{
    /// `f32` or `f64`.
    const NAME: &'static str;

    /// Half the distance from 1 to the next number: 2⁻²⁴ or 2⁻⁵³.
    const UNIT_ROUNDOFF: f64;

    /// The number of this type that is nearest to `value`.
    #[must_use]
    fn nearest(value: f64) -> Self;

    /// `self * a + b`, rounded once.
    #[must_use]
    fn multiply_add(self, a: Self, b: Self) -> Self {
        self.fused(a, b)
    }

    /// Whether this is neither 0, subnormal, infinite nor NaN.
    #[must_use]
    fn is_normal_number(self) -> bool;
}

impl Real for f32 {
    const NAME: &'static str = "f32";
    const UNIT_ROUNDOFF: f64 = Self::EPSILON as f64 / 2.0;

    #[inline(always)]
    fn nearest(value: f64) -> Self {
        value as Self
    }

    fn is_normal_number(self) -> bool {
        self.is_normal()
    }
}

impl Real for f64 {
    const NAME: &'static str = "f64";
    const UNIT_ROUNDOFF: f64 = Self::EPSILON / 2.0;

    #[inline(always)]
    fn nearest(value: f64) -> Self {
        value
    }

    fn is_normal_number(self) -> bool {
        self.is_normal()
    }
}
