//! Floating-point functions for kernels without `std`: [`GpuFloat`].
//!
//! The functions have the names and meanings of `std`'s, for `f32` and `f64`.
//! There are two kinds:
//!
//! - a function for which the GPU has a correctly rounded instruction (`floor`,
//!   `sqrt`, `mul_add`, …) is that instruction;
//! - every other function (`sin`, `exp`, `powf`, …) is software of this crate,
//!   the same on the device and on the host; for `f32` it computes in single
//!   precision alone (`docs/mathematics.md` lists the errors and the costs).
//!
//! So a kernel gives the same bits in the emulator and on the GPU, except for
//! [`GpuFloat::rsqrt`], [`GpuFloat::rsqrt_ftz`] and [`GpuFloat::rsqrt_coarse`],
//! which are the hardware's approximations, and for the bits of a NaN.
//!
//! In a crate with `std`, `x.sin()` is `std`'s method, with the platform's
//! bits, even with this trait in scope: inherent methods come first. In a
//! kernel crate that is `no_std` on the host as well it is always this trait's.
//!
//! The operator `%` on floats is not one of these functions: LLVM's backend for
//! NVIDIA GPUs expands it to a division and a subtraction, which rounds,
//! whereas `fmod` is exact. [`GpuFloat::rem_euclid`] and
//! [`GpuFloat::div_euclid`] do not use it.

/// Floating-point functions for kernels; implemented for `f32` and `f64`.
///
/// ```
/// // `as_std` would have these from `std`; a kernel crate has them from here.
/// use cuda_std::GpuFloat;
///
/// fn length<F: GpuFloat>(x: F, y: F) -> F {
///     x.hypot(y)
/// }
///
/// assert_eq!(length(3.0_f32, 4.0), 5.0);
/// assert_eq!(GpuFloat::mul_add(2.0_f64, 3.0, 1.0), 7.0);
/// ```
pub trait GpuFloat: Copy + PartialOrd + private::Sealed {
    /// The largest integer that is not greater than `self`.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn floor(self) -> Self;
    /// The smallest integer that is not less than `self`.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn ceil(self) -> Self;
    /// The nearest integer; half-way cases go away from zero.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn round(self) -> Self;
    /// The integer part: rounded towards zero.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn trunc(self) -> Self;
    /// The fractional part, `self - self.trunc()`.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn fract(self) -> Self;
    /// The absolute value.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn abs(self) -> Self;
    /// 1 with the sign of `self` (zeros have signs), NaN for NaN.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn signum(self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn copysign(self, sign: Self) -> Self;
    /// `self * a + b`, rounded once: the instruction `fma.rn`.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The integer `n` with `self = n * rhs + self.rem_euclid(rhs)`.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn div_euclid(self, rhs: Self) -> Self;
    /// The least non-negative remainder of `self` modulo `rhs`.
    ///
    /// It is below `rhs.abs()`, except that for a tiny negative `self` it can
    /// round to that.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn rem_euclid(self, rhs: Self) -> Self;
    /// `self` to an integer power, by repeated squaring.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn powi(self, n: i32) -> Self;
    /// `self` to a floating-point power.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn powf(self, n: Self) -> Self;
    /// The square root, correctly rounded; NaN for negative numbers.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn sqrt(self) -> Self;
    /// `e` to the power of `self`.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn exp(self) -> Self;
    /// 2 to the power of `self`.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn exp2(self) -> Self;
    /// The natural logarithm.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn ln(self) -> Self;
    /// The logarithm to any base, `self.ln() / base.ln()`.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn log(self, base: Self) -> Self;
    /// The logarithm to base 2.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn log2(self) -> Self;
    /// The logarithm to base 10.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn log10(self) -> Self;
    /// The cube root.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn cbrt(self) -> Self;
    /// `sqrt(self² + other²)` without undue overflow.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn hypot(self, other: Self) -> Self;
    /// The sine of an angle in radians.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn sin(self) -> Self;
    /// The cosine of an angle in radians.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn cos(self) -> Self;
    /// The tangent of an angle in radians.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn tan(self) -> Self;
    /// The arcsine in radians, from -π/2 to π/2; NaN outside -1 to 1.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn asin(self) -> Self;
    /// The arccosine in radians, from 0 to π; NaN outside -1 to 1.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn acos(self) -> Self;
    /// The arctangent in radians, from -π/2 to π/2.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn atan(self) -> Self;
    /// The angle of the point (x = `other`, y = `self`), from -π to π.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn atan2(self, other: Self) -> Self;
    /// `(self.sin(), self.cos())`, computed together.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn sin_cos(self) -> (Self, Self);
    /// `self.exp() - 1`, accurate near zero.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn exp_m1(self) -> Self;
    /// `(1 + self).ln()`, accurate near zero.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn ln_1p(self) -> Self;
    /// The hyperbolic sine.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn sinh(self) -> Self;
    /// The hyperbolic cosine.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn cosh(self) -> Self;
    /// The hyperbolic tangent.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn tanh(self) -> Self;
    /// The inverse of the hyperbolic sine.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn asinh(self) -> Self;
    /// The inverse of the hyperbolic cosine; NaN below 1.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn acosh(self) -> Self;
    /// The inverse of the hyperbolic tangent; NaN outside -1 to 1.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn atanh(self) -> Self;

    /// The reciprocal square root by the hardware's approximation
    /// (`rsqrt.approx`): for `f32` with a relative error of at most 2^-22.9.
    ///
    /// Not in upstream's trait. On the host it is `1 / sqrt(self)`, which
    /// differs in the last bits; a test that compares the two needs a
    /// tolerance.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn rsqrt(self) -> Self;

    /// [`rsqrt`](Self::rsqrt) that treats subnormal numbers as zero
    /// (`rsqrt.approx.ftz`): for `f32` one instruction instead of four.
    ///
    /// For `f64` it is `rsqrt`. Not in upstream's trait.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn rsqrt_ftz(self) -> Self;

    /// A coarse reciprocal square root in one instruction (`rsqrt.approx.ftz`),
    /// to be refined by the caller. For `f32` it is
    /// [`rsqrt_ftz`](Self::rsqrt_ftz). For `f64` it has about 20 bits: it uses
    /// the upper half of the argument, and the lower half of the result is
    /// zero.
    ///
    /// Not in upstream's trait. The host cuts off the same halves.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn rsqrt_coarse(self) -> Self;

    /// The lesser of two numbers by IEEE 754-2019's `minimum`: NaN if one of
    /// them is NaN, and -0 is less than +0.
    ///
    /// Not in upstream's trait. The bits of a NaN depend on the device.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn minimum(self, other: Self) -> Self;

    /// The greater of two numbers by IEEE 754-2019's `maximum`: NaN if one of
    /// them is NaN, and +0 is greater than -0.
    ///
    /// Not in upstream's trait. The bits of a NaN depend on the device.
    #[must_use = "method returns a new number and does not mutate the original value"]
    fn maximum(self, other: Self) -> Self;
}

mod private {
    /// Sealed, so that functions can be added without breaking anyone.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

use crate::math::{double, single};
use crate::{exact, extremum};

macro_rules! gpu_float {
    ($float:ident by $library:ident, {
        pow: $pow:ident, exp: $exp:ident, exp2: $exp2:ident, log: $log:ident,
        log2: $log2:ident, log10: $log10:ident, cbrt: $cbrt:ident, hypot: $hypot:ident,
        sin: $sin:ident, cos: $cos:ident, tan: $tan:ident, asin: $asin:ident,
        acos: $acos:ident, atan: $atan:ident, atan2: $atan2:ident, sincos: $sincos:ident,
        expm1: $expm1:ident, log1p: $log1p:ident, sinh: $sinh:ident, cosh: $cosh:ident,
        tanh: $tanh:ident, asinh: $asinh:ident, acosh: $acosh:ident, atanh: $atanh:ident,
        fmod: $fmod:ident, rsqrt: $rsqrt:ident, rsqrt_ftz: $rsqrt_ftz:ident,
        rsqrt_coarse: $rsqrt_coarse:ident,
    }) => {
        impl GpuFloat for $float {
            #[inline]
            fn floor(self) -> Self {
                exact::$float::floor(self)
            }
            #[inline]
            fn ceil(self) -> Self {
                exact::$float::ceil(self)
            }
            #[inline]
            fn round(self) -> Self {
                exact::$float::round(self)
            }
            #[inline]
            fn trunc(self) -> Self {
                exact::$float::trunc(self)
            }
            #[inline]
            fn fract(self) -> Self {
                self - exact::$float::trunc(self)
            }
            #[inline]
            fn abs(self) -> Self {
                $float::abs(self)
            }
            #[inline]
            fn signum(self) -> Self {
                $float::signum(self)
            }
            #[inline]
            fn copysign(self, sign: Self) -> Self {
                $float::copysign(self, sign)
            }
            #[inline]
            fn mul_add(self, a: Self, b: Self) -> Self {
                exact::$float::mul_add(self, a, b)
            }
            #[inline]
            fn div_euclid(self, rhs: Self) -> Self {
                let quotient = exact::$float::trunc(self / rhs);
                if $library::$fmod(self, rhs) < 0.0 {
                    if rhs > 0.0 {
                        quotient - 1.0
                    } else {
                        quotient + 1.0
                    }
                } else {
                    quotient
                }
            }
            #[inline]
            fn rem_euclid(self, rhs: Self) -> Self {
                let remainder = $library::$fmod(self, rhs);
                if remainder < 0.0 {
                    remainder + $float::abs(rhs)
                } else {
                    remainder
                }
            }
            #[inline]
            fn powi(self, n: i32) -> Self {
                let mut power = 1.0;
                let mut square = self;
                let mut exponent = n.unsigned_abs();
                while exponent != 0 {
                    if exponent & 1 == 1 {
                        power *= square;
                    }
                    exponent >>= 1;
                    if exponent != 0 {
                        square *= square;
                    }
                }
                if n < 0 { 1.0 / power } else { power }
            }
            #[inline]
            fn powf(self, n: Self) -> Self {
                $library::$pow(self, n)
            }
            #[inline]
            fn sqrt(self) -> Self {
                exact::$float::sqrt(self)
            }
            #[inline]
            fn exp(self) -> Self {
                $library::$exp(self)
            }
            #[inline]
            fn exp2(self) -> Self {
                $library::$exp2(self)
            }
            #[inline]
            fn ln(self) -> Self {
                $library::$log(self)
            }
            #[inline]
            fn log(self, base: Self) -> Self {
                $library::$log(self) / $library::$log(base)
            }
            #[inline]
            fn log2(self) -> Self {
                $library::$log2(self)
            }
            #[inline]
            fn log10(self) -> Self {
                $library::$log10(self)
            }
            #[inline]
            fn cbrt(self) -> Self {
                $library::$cbrt(self)
            }
            #[inline]
            fn hypot(self, other: Self) -> Self {
                $library::$hypot(self, other)
            }
            #[inline]
            fn sin(self) -> Self {
                $library::$sin(self)
            }
            #[inline]
            fn cos(self) -> Self {
                $library::$cos(self)
            }
            #[inline]
            fn tan(self) -> Self {
                $library::$tan(self)
            }
            #[inline]
            fn asin(self) -> Self {
                $library::$asin(self)
            }
            #[inline]
            fn acos(self) -> Self {
                $library::$acos(self)
            }
            #[inline]
            fn atan(self) -> Self {
                $library::$atan(self)
            }
            #[inline]
            fn atan2(self, other: Self) -> Self {
                $library::$atan2(self, other)
            }
            #[inline]
            fn sin_cos(self) -> (Self, Self) {
                $library::$sincos(self)
            }
            #[inline]
            fn exp_m1(self) -> Self {
                $library::$expm1(self)
            }
            #[inline]
            fn ln_1p(self) -> Self {
                $library::$log1p(self)
            }
            #[inline]
            fn sinh(self) -> Self {
                $library::$sinh(self)
            }
            #[inline]
            fn cosh(self) -> Self {
                $library::$cosh(self)
            }
            #[inline]
            fn tanh(self) -> Self {
                $library::$tanh(self)
            }
            #[inline]
            fn asinh(self) -> Self {
                $library::$asinh(self)
            }
            #[inline]
            fn acosh(self) -> Self {
                $library::$acosh(self)
            }
            #[inline]
            fn atanh(self) -> Self {
                $library::$atanh(self)
            }
            #[inline]
            fn rsqrt(self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                // SAFETY: arithmetic on a value.
                let value = unsafe { crate::sys::$rsqrt(self) };
                #[cfg(not(target_arch = "nvptx64"))]
                let value = 1.0 / exact::$float::sqrt(self);
                value
            }
            #[inline]
            fn rsqrt_ftz(self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                // SAFETY: arithmetic on a value.
                let value = unsafe { crate::sys::$rsqrt_ftz(self) };
                #[cfg(not(target_arch = "nvptx64"))]
                let value = host::$rsqrt_ftz(self);
                value
            }
            #[inline]
            fn rsqrt_coarse(self) -> Self {
                #[cfg(target_arch = "nvptx64")]
                // SAFETY: arithmetic on a value.
                let value = unsafe { crate::sys::$rsqrt_coarse(self) };
                #[cfg(not(target_arch = "nvptx64"))]
                let value = host::$rsqrt_coarse(self);
                value
            }
            #[inline]
            fn minimum(self, other: Self) -> Self {
                extremum::$float::minimum(self, other)
            }
            #[inline]
            fn maximum(self, other: Self) -> Self {
                extremum::$float::maximum(self, other)
            }
        }
    };
}

/// The host's versions of the approximations that flush subnormal numbers to
/// zero.
#[cfg(not(target_arch = "nvptx64"))]
mod host {
    pub fn rsqrt_ftz_f(x: f32) -> f32 {
        let x = if x.is_subnormal() {
            0.0_f32.copysign(x)
        } else {
            x
        };
        1.0 / x.sqrt()
    }

    pub fn rsqrt_d(x: f64) -> f64 {
        1.0 / x.sqrt()
    }

    pub fn rsqrt_ftz_d(x: f64) -> f64 {
        const LOWER: u64 = 0xffff_ffff;
        let x = if x.is_subnormal() {
            0.0_f64.copysign(x)
        } else {
            f64::from_bits(x.to_bits() & !LOWER)
        };
        let inverse = 1.0 / x.sqrt();
        if inverse.is_finite() {
            // Rounds to the nearest; the carry may go into the exponent.
            f64::from_bits((inverse.to_bits() + (LOWER / 2 + 1)) & !LOWER)
        } else {
            inverse
        }
    }
}

gpu_float!(f32 by single, {
    pow: powf, exp: expf, exp2: exp2f, log: logf, log2: log2f, log10: log10f,
    cbrt: cbrtf, hypot: hypotf, sin: sinf, cos: cosf, tan: tanf, asin: asinf,
    acos: acosf, atan: atanf, atan2: atan2f, sincos: sincosf, expm1: expm1f,
    log1p: log1pf, sinh: sinhf, cosh: coshf, tanh: tanhf, asinh: asinhf,
    acosh: acoshf, atanh: atanhf, fmod: fmodf, rsqrt: rsqrt_f, rsqrt_ftz: rsqrt_ftz_f,
    rsqrt_coarse: rsqrt_ftz_f,
});

gpu_float!(f64 by double, {
    pow: pow, exp: exp, exp2: exp2, log: log, log2: log2, log10: log10,
    cbrt: cbrt, hypot: hypot, sin: sin, cos: cos, tan: tan, asin: asin,
    acos: acos, atan: atan, atan2: atan2, sincos: sincos, expm1: expm1,
    log1p: log1p, sinh: sinh, cosh: cosh, tanh: tanh, asinh: asinh,
    acosh: acosh, atanh: atanh, fmod: fmod, rsqrt: rsqrt_d, rsqrt_ftz: rsqrt_d,
    rsqrt_coarse: rsqrt_ftz_d,
});

#[cfg(test)]
mod tests {
    use super::GpuFloat;

    #[test]
    fn extrema_order_zeros_and_prefer_nan() {
        macro_rules! check {
            ($float:ident) => {
                let order = [
                    $float::NEG_INFINITY,
                    -1.5,
                    -$float::MIN_POSITIVE,
                    -0.0,
                    0.0,
                    1e-30,
                    $float::INFINITY,
                ];
                for (i, &a) in order.iter().enumerate() {
                    for (j, &b) in order.iter().enumerate() {
                        let (least, greatest) = (order[i.min(j)], order[i.max(j)]);
                        assert_eq!(GpuFloat::minimum(a, b).to_bits(), least.to_bits());
                        assert_eq!(GpuFloat::maximum(a, b).to_bits(), greatest.to_bits());
                    }
                    for (a, b) in [(a, $float::NAN), ($float::NAN, a)] {
                        assert!(GpuFloat::minimum(a, b).is_nan());
                        assert!(GpuFloat::maximum(a, b).is_nan());
                    }
                }
            };
        }
        check!(f32);
        check!(f64);
    }
}
