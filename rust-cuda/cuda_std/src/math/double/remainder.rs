//! Exact remainders, fifty bits of the quotient at a time: the quotient is rounded to nearest, so
//! that the rest is the difference of two floats without rounding.

use super::{SHIFTER, divide, fma, power_of_two, scale};

/// Divides `x` by `y = m 2^e`, with `m` from 2^52 on, into `q y + r 2^e`: `r`, whether `q` is odd,
/// `m`, and `e + 1075`; `|r| ≤ 0.6 m`. Both arguments are bits of finite numbers without signs; `y`
/// is neither 0 nor more than `x`.
#[inline(always)]
fn divided(x: u64, y: u64) -> (f64, bool, f64, i32) {
    let parts = |bits: u64| match bits >> 52 {
        0 => (bits, 1),
        exponent => (
            bits & 0xf_ffff_ffff_ffff | 0x10_0000_0000_0000,
            exponent as i32,
        ),
    };
    let ((r, from), (m, exponent)) = (parts(x), parts(y));
    // Normalises subnormal numbers as well.
    let zeros = m.leading_zeros() as i32 - 11;
    let (mut r, m, exponent) = (r as f64, (m << zeros) as f64, exponent - zeros);
    let inverse = divide(1.0, m);
    let mut shift = from - exponent;
    loop {
        // The quotient is 2^50 at most.
        let shifted = fma(r, inverse, SHIFTER);
        r = fma(SHIFTER - shifted, m, r);
        if shift == 0 {
            return (r, shifted.to_bits() & 1 == 1, m, exponent);
        }
        let step = if shift < 50 { shift } else { 50 };
        r *= power_of_two(step);
        shift -= step;
    }
}

/// Whether the remainder of the two is NaN.
#[inline(always)]
fn undefined(x: u64, y: u64) -> bool {
    const INFINITE: u64 = 0x7ff0_0000_0000_0000;
    x >= INFINITE || y > INFINITE || y == 0
}

const MAGNITUDE: u64 = 0x7fff_ffff_ffff_ffff;

/// The remainder of `x / y` rounded towards zero; it has the sign of `x`.
#[inline]
pub fn fmod(x: f64, y: f64) -> f64 {
    let (a, b) = (x.to_bits() & MAGNITUDE, y.to_bits() & MAGNITUDE);
    if undefined(a, b) {
        return f64::NAN;
    }
    if a < b {
        return x;
    }
    let (r, _, m, exponent) = divided(a, b);
    let r = if r < 0.0 { r + m } else { r };
    scale(r, exponent - 1075).copysign(x)
}

/// The remainder of `x / y` rounded to the nearest integer, ties to even; 0 has the sign of `x`.
#[inline]
pub fn remainder(x: f64, y: f64) -> f64 {
    let (a, b) = (x.to_bits() & MAGNITUDE, y.to_bits() & MAGNITUDE);
    if undefined(a, b) {
        return f64::NAN;
    }
    if a < b {
        let (a, b) = (f64::from_bits(a), f64::from_bits(b));
        // The difference is exact, as the two are close.
        return if a + a > b { (b - a).copysign(-x) } else { x };
    }
    let (r, odd, m, exponent) = divided(a, b);
    let twice = 2.0 * r.abs();
    let beyond = twice > m || (twice == m && odd);
    let r = if beyond { r - m.copysign(r) } else { r };
    let value = scale(r, exponent - 1075);
    let value = if x.is_sign_negative() { -value } else { value };
    if r == 0.0 { 0.0_f64.copysign(x) } else { value }
}
