//! `Scalar`: the element types of fields, plates, lines and bodies.

use crate::Element;
use crate::derivative3d::cpu::Port as Derivatives;
use crate::derivative3d::gpu::Kernels as DerivativeKernels;
use crate::elementwise::cpu::Port as Arrays;
use crate::elementwise::gpu::Kernels as ArrayKernels;
use crate::heat2d::cpu::Port as Plates;
use crate::heat2d::gpu::Kernels;
use crate::nbody::cpu::OnCpu;
use crate::nbody::gpu::Launches;
use crate::nbody::range::Range;
use crate::simd::InVectors;
use crate::stencil1d::cpu::Port as Lines;
use crate::stencil1d::gpu::Kernels as LineKernels;
use std::fmt;

/// The element type of fields, plates, lines and bodies: `f32` or `f64`.
///
/// No other type can implement it. (Reductions take integers as well: see
/// [`reduction::Number`](crate::reduction::Number).)
///
/// ```
/// use halo_gpu::Scalar;
///
/// fn nearest<T: Scalar>(value: f64) -> (T, f64) {
///     (T::nearest(value), T::UNIT_ROUNDOFF * value)
/// }
///
/// let (third, most) = nearest::<f32>(1.0 / 3.0);
/// assert!((f64::from(third) - 1.0 / 3.0).abs() <= most);
/// ```
///
/// Kernels of each type can be launched only on buffers that have been checked:
///
/// ```compile_fail,E0061
/// use halo_gpu::heat2d::Variant;
/// use halo_gpu::{Buffer, Scalar, Shape2};
///
/// fn f<T: Scalar>(shape: Shape2, old: &Buffer<T>, new: &mut Buffer<T>) {
///     T::launch_iterations(shape, Variant::March, old, new, 1, &mut None).ok();
/// }
/// ```
///
/// ```compile_fail,E0061
/// use halo_gpu::heat2d::Heat2d;
/// use halo_gpu::{Buffer, Scalar};
///
/// fn f<T: Scalar>(heat: &Heat2d, old: &Buffer<T>, new: &mut Buffer<T>) {
///     T::launch_general(heat, None, old, new).ok();
/// }
/// ```
///
/// ```compile_fail,E0308
/// use halo_gpu::derivative3d::Variant;
/// use halo_gpu::{Buffer, Scalar};
///
/// fn f<T: Scalar>(f: &Buffer<T>) {
///     T::launch_derivatives(Variant::General, f).ok();
/// }
/// ```
///
/// ```compile_fail,E0308
/// use halo_gpu::nbody::Body;
/// use halo_gpu::{Buffer, Scalar};
///
/// fn f<T: Scalar>(bodies: &Buffer<Body<T>>) {
///     T::launch_sums(bodies).ok();
/// }
/// ```
///
/// ```compile_fail,E0061
/// use halo_gpu::stencil1d::Variant;
/// use halo_gpu::{Buffer, Scalar};
///
/// fn f<T: Scalar>(input: &Buffer<T>, output: &mut Buffer<T>) {
///     T::launch_line(Variant::Custom, input, output).ok();
/// }
/// ```
pub trait Scalar:
    Element
    + InVectors
    + PartialOrd
    + From<f32>
    + Into<f64>
    + std::ops::Div<Output = Self>
    + fmt::Debug
    + fmt::Display
    + Arrays
    + ArrayKernels
    + Derivatives
    + DerivativeKernels
    + Kernels
    + Plates
    + Launches
    + OnCpu
    + Range
    + LineKernels
    + Lines
{
    /// `f32` or `f64`.
    const NAME: &'static str;

    /// Half the distance from 1 to the next number: 2⁻²⁴ or 2⁻⁵³.
    const UNIT_ROUNDOFF: f64;

    /// The largest finite number.
    const MAX: f64;

    /// The number of this type nearest to `value`.
    #[must_use]
    fn nearest(value: f64) -> Self;

    /// Whether this is a normal number: not 0, subnormal, infinite or NaN.
    #[must_use]
    fn is_normal_number(self) -> bool;
}

macro_rules! scalars {
    ($($scalar:ident),+) => {$(
        impl Scalar for $scalar {
            const NAME: &'static str = stringify!($scalar);
            const UNIT_ROUNDOFF: f64 = Self::EPSILON as f64 / 2.0;
            const MAX: f64 = Self::MAX as f64;

            #[inline(always)]
            fn nearest(value: f64) -> Self {
                value as Self
            }

            fn is_normal_number(self) -> bool {
                self.is_normal()
            }
        }
    )+};
}

scalars!(f32, f64);
