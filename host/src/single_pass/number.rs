//! The types that are reduced in a single pass, and the kernels that do it.

use super::gpu::SinglePassKernels;
use super::kinds::{Extremum, Moment, Operation};

/// What [`SinglePass`](crate::reduction::SinglePass) reduces: `i32`, `u32`, `i64`, `u64`,
/// `f32` and `f64`.
///
/// `Product`, which dot products are, is f64 for `f32` and `f64`, i64 for `i32` and `i64`,
/// u64 for `u32` and `u64`.
///
/// Kernels are launched on buffers that have been checked, and in no other way:
///
/// ```compile_fail,E0308
/// use halo_gpu::{Buffer, reduction};
///
/// fn f<T: reduction::Number>(values: &Buffer<T>) {
///     T::launch(values).ok();
/// }
/// ```
pub trait Number: SinglePassKernels {}

impl Number for i32 {}
impl Number for u32 {}
impl Number for i64 {}
impl Number for u64 {}
impl Number for f32 {}
impl Number for f64 {}

impl Operation {
    /// The entry point that computes it of elements of `T`, as in the PTX:
    /// `reduction_single_pass_sum_f32` and so on. Sums of unsigned integers are those
    /// of signed ones.
    #[must_use]
    pub fn kernel<T: Number>(self) -> &'static str {
        T::elements(self).name
    }
}

impl Extremum {
    /// The entry point that finds it among elements of `T`, as in the PTX:
    /// `reduction_arg_extremum_f32` and so on. Signed integers are looked for by the
    /// kernels of unsigned ones.
    #[must_use]
    pub const fn kernel<T: Number>(self) -> &'static str {
        T::ARG_EXTREMUM.name
    }
}

impl Moment {
    /// The entry point that sums elements of `T`, as in the PTX: `reduction_moment_f32`
    /// and so on.
    #[must_use]
    pub const fn kernel<T: Number>(self) -> &'static str {
        T::MOMENT.name
    }
}

/// The entry point of dot products of elements of `T`, as in the PTX:
/// `reduction_dot_f32` and so on. Those of `u64` are those of `i64`.
#[must_use]
pub const fn dot_kernel<T: Number>() -> &'static str {
    T::DOT.name
}
