//! What temperatures are given in.

use super::cpu::Port;
use super::gpu::Kernels;
use crate::simd::Value;
use std::fmt;

/// What temperatures are given in: `f32` or `f64`.
///
/// No other type can implement it.
///
/// Kernels are launched on buffers that have been checked, and in no other way:
///
/// ```compile_fail,E0061
/// use halo_gpu::heat2d::{Real, Variant};
/// use halo_gpu::{Buffer, Shape2};
///
/// fn f<T: Real>(shape: Shape2, old: &Buffer<T>, new: &mut Buffer<T>) {
///     T::launch(shape, Variant::March, old, new, 1, &mut None).ok();
/// }
/// ```
///
/// ```compile_fail,E0061
/// use halo_gpu::Buffer;
/// use halo_gpu::heat2d::{Heat2d, Real};
///
/// fn f<T: Real>(heat: &Heat2d, old: &Buffer<T>, new: &mut Buffer<T>) {
///     T::launch_general(heat, None, old, new).ok();
/// }
/// ```
///
/// ```compile_fail,E0061
/// use halo_gpu::Buffer;
/// use halo_gpu::heat2d::Real;
///
/// fn f<T: Real>(old: &Buffer<T>, new: &Buffer<T>, largest: &mut Buffer<u64>) {
///     T::launch_change(old, new, largest).ok();
/// }
/// ```
pub trait Real: Kernels + Port + Value + From<f32> + Into<f64> + fmt::Debug + fmt::Display {
    /// `f32` or `f64`.
    const NAME: &'static str;

    /// The distance from 1 to the next number.
    const EPSILON: f64;
}

impl Real for f32 {
    const NAME: &'static str = "f32";
    const EPSILON: f64 = Self::EPSILON as f64;
}

impl Real for f64 {
    const NAME: &'static str = "f64";
    const EPSILON: f64 = Self::EPSILON;
}
