//! Mathematical functions in double precision.
//!
//! Like the functions of single precision, these have `libm`'s names, use no
//! stack, and use only operations that IEEE 754 defines to the last bit, so
//! that device and host get the same bits. `libm` has many branches, tables and
//! divisions, which are slow on a GPU, and arrays on the stack for large
//! angles.

mod bessel;
mod error_function;
mod exponential;
mod gamma;
mod hyperbolic;
mod inverse_trigonometric;
mod logarithm;
mod remainder;
mod root;
mod trigonometric;

pub use super::bits::{frexp, nextafter};
pub use bessel::{j0, j1, jn, y0, y1, yn};
pub use error_function::{erf, erfc, erfcinv, erfcx, erfinv, normcdf, normcdfinv};
pub use exponential::{exp, exp2, exp10, expm1, tanh};
pub use gamma::{lgamma, tgamma};
pub use hyperbolic::{acosh, asinh, atanh, cosh, sinh};
pub use inverse_trigonometric::{acos, asin, atan, atan2};
pub use libm::{ilogb, ldexp, scalbn};
pub use logarithm::{log, log1p, log2, log10, pow};
pub use remainder::{fmod, remainder};
pub use root::{cbrt, hypot, rcbrt};
pub use trigonometric::{cos, sin, sincos, sincospi, tan};

/// `log10 2` as the sum of two floats.
const LOG10_2: [f64; 2] = [core::f64::consts::LOG10_2, -2.803_728_127_785_170_4e-18];

/// `π/2` minus the float `FRAC_PI_2`.
const FRAC_PI_2_LOW: f64 = 6.123_233_995_736_766e-17;

/// `ln 2` as the sum of two floats.
const LN_2: [f64; 2] = [core::f64::consts::LN_2, 2.319_046_813_846_299_6e-17];

/// `1.5 × 2^52`: adding it to a number of moderate size rounds that to an
/// integer, which is then in the low bits.
const SHIFTER: f64 = 6_755_399_441_055_744.0;

super::alike::multiply_add!(f64);

/// The nearest integer to `x * scale`, as a float and as an integer, for
/// products below 2^31.
#[inline(always)]
fn nearest(x: f64, scale: f64) -> (f64, i32) {
    let shifted = fma(x, scale, SHIFTER);
    (shifted - SHIFTER, shifted.to_bits() as i32)
}

/// `2^n`, for `n` from -1022 to 1023; meaningless for any other `n`.
#[inline(always)]
fn power_of_two(n: i32) -> f64 {
    f64::from_bits(u64::from((n.wrapping_add(1023) as u32) << 20) << 32)
}

/// `x * 2^n` for `x` about 1 and `n` from -2044 to 2046, rounded once.
#[inline(always)]
fn scale(x: f64, n: i32) -> f64 {
    let half = n >> 1;
    x * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `a / b`, rounded correctly, where `b` and the quotient are far from overflow and
/// underflow: magnitudes from 2^-400 to 2^400, and `a` may also be 0.
///
/// `/` has the same instructions, behind a test that sends other operands to a
/// hundred instructions more.
#[inline(always)]
fn divide(a: f64, b: f64) -> f64 {
    #[cfg(target_arch = "nvptx64")]
    {
        // SAFETY: arithmetic on a value.
        quotient(a, b, unsafe { crate::sys::rcp_ftz_d(b) })
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        a / b
    }
}

/// `a / b` from a guess at `1 / b` of 20 digits, by P. Markstein's method
/// ("IA-64 and Elementary Functions", 2000): the last step rounds correctly if
/// the reciprocal and the quotient before it are within a unit in the last
/// place.
#[cfg(any(target_arch = "nvptx64", test))]
#[inline(always)]
fn quotient(a: f64, b: f64, guess: f64) -> f64 {
    // A step of the third order, and one of the second.
    let error = fma(-b, guess, 1.0);
    let inverse = fma(fma(error, error, error), guess, guess);
    let inverse = fma(fma(-b, inverse, 1.0), inverse, inverse);
    let quotient = a * inverse;
    fma(fma(-b, quotient, a), inverse, quotient)
}

/// The square root, rounded correctly, of 0 or a number from 2^-950 to 2^1010.
///
/// `sqrt` has the same instructions, behind a test that sends other operands to
/// a slow path.
#[inline(always)]
fn root(x: f64) -> f64 {
    #[cfg(target_arch = "nvptx64")]
    {
        // SAFETY: arithmetic on a value.
        root_by(x, unsafe { crate::sys::rsqrt_ftz_d(x) })
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        crate::exact::f64::sqrt(x)
    }
}

/// `sqrt(x)` from a guess at `1 / sqrt(x)` of 20 digits, as in [`quotient`].
#[cfg(any(target_arch = "nvptx64", test))]
#[inline(always)]
fn root_by(x: f64, guess: f64) -> f64 {
    // A step of the third order.
    let error = fma(-(guess * guess), x, 1.0);
    let inverse = fma(fma(error, 0.375, 0.5), guess * error, guess);
    let value = x * inverse;
    let value = fma(fma(-value, value, x), 0.5 * inverse, value);
    if x == 0.0 { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An approximation such as the hardware's: the upper half of a number, off
    /// by up to two units there.
    fn coarse(exact: f64, off: u64) -> f64 {
        let upper = (exact.to_bits() >> 32) + off % 5 - 2;
        f64::from_bits(upper << 32)
    }

    #[test]
    fn quotients_and_roots_of_the_device_are_rounded_correctly() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        // Numbers from 1 to 2; among them numbers next to 1 and to 2, where
        // rounding is hardest.
        let number = |bits: u64| {
            let low = bits & 0xf_ffff_ffff_ffff;
            let low = match bits >> 60 {
                0 => low & 0xff,
                1 => 0xf_ffff_ffff_ffff - (low & 0xff),
                _ => low,
            };
            f64::from_bits(0x3ff0_0000_0000_0000 | low)
        };
        for _ in 0..1_000_000 {
            let (a, b, off) = (number(next()), number(next()), next());
            let value = quotient(a, b, coarse(1.0 / b, off));
            assert_eq!(value, a / b, "{a:e} / {b:e}");
            for x in [a, 2.0 * a] {
                let value = root_by(x, coarse(1.0 / x.sqrt(), off));
                assert_eq!(value, x.sqrt(), "sqrt({x:e})");
            }
        }
        assert_eq!(root_by(0.0, f64::INFINITY), 0.0);
    }
}
