//! Less common floating-point functions for kernels: [`FloatExt`].

use crate::math::{double, single};

mod private {
    /// Sealed, so that functions can be added without breaking anyone.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Less common functions of `f32` and `f64` that `std` lacks.
///
/// They are software of this crate, with the same bits on the device and on the
/// host; `docs/mathematics.md` lists the errors. (Upstream's are NVIDIA's
/// libdevice's, on the device only.)
///
/// ```
/// use cuda_std::FloatExt;
///
/// assert_eq!(1.5_f64.sinpi(), -1.0);
/// assert_eq!(8.0_f32.frexp(), (0.5, 4));
/// assert_eq!(1.7_f32.saturate(), 1.0);
/// ```
pub trait FloatExt: Sized + private::Sealed {
    /// The cosine of `self * π`.
    #[must_use]
    fn cospi(self) -> Self;
    /// The error function, `2/√π ∫₀ˣ exp(-t²) dt`.
    #[must_use]
    fn error_function(self) -> Self;
    /// One minus the error function, accurate where the error function is close
    /// to 1.
    #[must_use]
    fn complementary_error_function(self) -> Self;
    /// The `x` whose complementary error function is `self`; NaN outside 0 to 2.
    #[must_use]
    fn inv_complementary_error_function(self) -> Self;
    /// The complementary error function times `exp(self²)`.
    #[must_use]
    fn scaled_complementary_error_function(self) -> Self;
    /// A fraction from 0.5 to 1 (with the sign of `self`) and an exponent with
    /// `self = fraction * 2^exponent`; zero, infinities and NaN are their own
    /// fraction.
    #[must_use]
    fn frexp(self) -> (Self, i32);
    /// The exponent `e` with `2^e ≤ |self| < 2^(e+1)`.
    #[must_use]
    fn unbiased_exp(self) -> i32;
    /// The Bessel function of the first kind of order 0.
    #[must_use]
    fn j0(self) -> Self;
    /// The Bessel function of the first kind of order 1.
    #[must_use]
    fn j1(self) -> Self;
    /// The Bessel function of the first kind of order `order`.
    #[must_use]
    fn jn(self, order: i32) -> Self;
    /// `self * 2^exp`.
    #[must_use]
    fn ldexp(self, exp: i32) -> Self;
    /// The natural logarithm of the absolute value of the gamma function.
    #[must_use]
    fn log_gamma(self) -> Self;
    /// The natural logarithm of `1 + self`, accurate near zero.
    #[must_use]
    fn log1p(self) -> Self;
    /// The cumulative distribution function of the standard normal
    /// distribution.
    #[must_use]
    fn norm_cdf(self) -> Self;
    /// The inverse of [`norm_cdf`](Self::norm_cdf), for `self` from 0 to 1.
    #[must_use]
    fn inv_norm_cdf(self) -> Self;
    /// The reciprocal of the cube root.
    #[must_use]
    fn rcbrt(self) -> Self;
    /// `self` limited to the range from 0 to 1; 0 for NaN.
    #[must_use]
    fn saturate(self) -> Self;
    /// `self * 2^exp`, as [`ldexp`](Self::ldexp).
    #[must_use]
    fn scale_by_n(self, exp: i32) -> Self;
    /// The sine and the cosine of `self * π`.
    #[must_use]
    fn sincospi(self) -> (Self, Self);
    /// The sine of `self * π`.
    #[must_use]
    fn sinpi(self) -> Self;
    /// The gamma function.
    #[must_use]
    fn gamma(self) -> Self;
    /// The Bessel function of the second kind of order 0.
    #[must_use]
    fn y0(self) -> Self;
    /// The Bessel function of the second kind of order 1.
    #[must_use]
    fn y1(self) -> Self;
    /// The Bessel function of the second kind of order `order`.
    #[must_use]
    fn yn(self, order: i32) -> Self;
}

macro_rules! float_ext {
    ($float:ident by $library:ident, {
        erf: $erf:ident, erfc: $erfc:ident, erfcx: $erfcx:ident, erfcinv: $erfcinv:path, normcdf: $normcdf:path,
        normcdfinv: $normcdfinv:path, frexp: $frexp:ident, ilogb: $ilogb:ident,
        j0: $j0:ident, j1: $j1:ident, jn: $jn:ident, ldexp: $ldexp:ident,
        lgamma: $lgamma:ident, log1p: $log1p:ident, rcbrt: $rcbrt:path,
        sincospi: $sincospi:path, scalbn: $scalbn:ident,
        tgamma: $tgamma:ident, y0: $y0:ident, y1: $y1:ident, yn: $yn:ident,
    }) => {
        impl FloatExt for $float {
            fn cospi(self) -> Self {
                self.sincospi().1
            }
            fn error_function(self) -> Self {
                $library::$erf(self)
            }
            fn complementary_error_function(self) -> Self {
                $library::$erfc(self)
            }
            fn inv_complementary_error_function(self) -> Self {
                $erfcinv(self)
            }
            fn scaled_complementary_error_function(self) -> Self {
                $library::$erfcx(self)
            }
            fn frexp(self) -> (Self, i32) {
                $library::$frexp(self)
            }
            fn unbiased_exp(self) -> i32 {
                $library::$ilogb(self)
            }
            fn j0(self) -> Self {
                $library::$j0(self)
            }
            fn j1(self) -> Self {
                $library::$j1(self)
            }
            fn jn(self, order: i32) -> Self {
                $library::$jn(order, self)
            }
            fn ldexp(self, exp: i32) -> Self {
                $library::$ldexp(self, exp)
            }
            fn log_gamma(self) -> Self {
                $library::$lgamma(self)
            }
            fn log1p(self) -> Self {
                $library::$log1p(self)
            }
            fn norm_cdf(self) -> Self {
                $normcdf(self)
            }
            fn inv_norm_cdf(self) -> Self {
                $normcdfinv(self)
            }
            fn rcbrt(self) -> Self {
                $rcbrt(self)
            }
            fn saturate(self) -> Self {
                // Not `clamp`, which keeps NaN.
                self.max(0.0).min(1.0)
            }
            fn scale_by_n(self, exp: i32) -> Self {
                $library::$scalbn(self, exp)
            }
            fn sincospi(self) -> (Self, Self) {
                $sincospi(self)
            }
            fn sinpi(self) -> Self {
                self.sincospi().0
            }
            fn gamma(self) -> Self {
                $library::$tgamma(self)
            }
            fn y0(self) -> Self {
                $library::$y0(self)
            }
            fn y1(self) -> Self {
                $library::$y1(self)
            }
            fn yn(self, order: i32) -> Self {
                $library::$yn(order, self)
            }
        }
    };
}

float_ext!(f32 by single, {
    erf: erff, erfc: erfcf, erfcx: erfcxf, erfcinv: single::erfcinvf, normcdf: single::normcdff,
    normcdfinv: single::normcdfinvf, frexp: frexpf, ilogb: ilogbf, j0: j0f, j1: j1f, jn: jnf,
    ldexp: ldexpf, lgamma: lgammaf, log1p: log1pf, rcbrt: single::rcbrtf,
    sincospi: single::sincospif, scalbn: scalbnf, tgamma: tgammaf,
    y0: y0f, y1: y1f, yn: ynf,
});

float_ext!(f64 by double, {
    erf: erf, erfc: erfc, erfcx: erfcx, erfcinv: double::erfcinv, normcdf: double::normcdf,
    normcdfinv: double::normcdfinv, frexp: frexp, ilogb: ilogb, j0: j0, j1: j1, jn: jn,
    ldexp: ldexp, lgamma: lgamma, log1p: log1p, rcbrt: double::rcbrt,
    sincospi: double::sincospi, scalbn: scalbn, tgamma: tgamma,
    y0: y0, y1: y1, yn: yn,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f32_agrees_with_f64_to_single_precision() {
        type Pair = (fn(f32) -> f32, fn(f64) -> f64);
        let functions: [(&str, Pair, (f32, f32)); 14] = [
            ("cospi", (FloatExt::cospi, FloatExt::cospi), (-3.0, 3.0)),
            ("sinpi", (FloatExt::sinpi, FloatExt::sinpi), (-3.0, 3.0)),
            (
                "erf",
                (FloatExt::error_function, FloatExt::error_function),
                (-3.0, 3.0),
            ),
            (
                "erfc",
                (
                    FloatExt::complementary_error_function,
                    FloatExt::complementary_error_function,
                ),
                (-3.0, 5.0),
            ),
            (
                "erfcinv",
                (
                    FloatExt::inv_complementary_error_function,
                    FloatExt::inv_complementary_error_function,
                ),
                (0.01, 1.99),
            ),
            (
                "erfcx",
                (
                    FloatExt::scaled_complementary_error_function,
                    FloatExt::scaled_complementary_error_function,
                ),
                (-2.0, 30.0),
            ),
            (
                "log_gamma",
                (FloatExt::log_gamma, FloatExt::log_gamma),
                (2.5, 30.0),
            ),
            ("gamma", (FloatExt::gamma, FloatExt::gamma), (0.5, 30.0)),
            ("log1p", (FloatExt::log1p, FloatExt::log1p), (-0.9, 9.0)),
            (
                "norm_cdf",
                (FloatExt::norm_cdf, FloatExt::norm_cdf),
                (-5.0, 5.0),
            ),
            (
                "inv_norm_cdf",
                (FloatExt::inv_norm_cdf, FloatExt::inv_norm_cdf),
                (0.01, 0.49),
            ),
            ("rcbrt", (FloatExt::rcbrt, FloatExt::rcbrt), (0.01, 900.0)),
            ("j0", (FloatExt::j0, FloatExt::j0), (0.0, 2.0)),
            ("y1", (FloatExt::y1, FloatExt::y1), (0.1, 2.0)),
        ];
        for (name, (single, double), (low, high)) in functions {
            for i in 0..=200 {
                let x = low + (high - low) * i as f32 / 200.0;
                let (value, expected) = (f64::from(single(x)), double(x.into()));
                let allowed = 8.0 * f64::from(f32::EPSILON) * expected.abs().max(1e-2);
                assert!(
                    (value - expected).abs() <= allowed,
                    "{name}({x}) = {value}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn parts_of_a_float() {
        assert_eq!((-12.0_f64).frexp(), (-0.75, 4));
        assert_eq!(0.75_f32.ldexp(4), 12.0);
        assert_eq!(0.75_f64.scale_by_n(-2), 0.1875);
        assert_eq!(12.0_f32.unbiased_exp(), 3);
        assert_eq!(0.3_f64.unbiased_exp(), -2);
    }

    #[test]
    fn saturate_maps_everything_into_the_range() {
        for (x, expected) in [(-1.0, 0.0), (0.25, 0.25), (7.0, 1.0), (f32::NAN, 0.0)] {
            assert_eq!(x.saturate(), expected);
            assert_eq!(f64::from(x).saturate(), f64::from(expected));
        }
    }

    #[test]
    fn bessel_orders_agree_with_the_named_functions() {
        for x in [0.5_f64, 1.0, 3.0, 10.0] {
            assert_eq!(x.jn(0), x.j0());
            assert_eq!(x.jn(1), x.j1());
            assert_eq!(x.yn(0), x.y0());
            assert_eq!(x.yn(1), x.y1());
            // The recurrence J₀ + J₂ = 2/x J₁.
            assert!((x.jn(0) + x.jn(2) - 2.0 / x * x.jn(1)).abs() < 1e-14);
        }
        assert!((2.0_f32.jn(2) - 0.352_834).abs() < 1e-6);
    }
}
