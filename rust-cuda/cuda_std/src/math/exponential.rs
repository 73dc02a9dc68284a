//! Exponential functions: Cody and Waite's reduction to `x = n ln 2 + r` and a
//! polynomial in `r` (W. J. Cody and W. Waite, "Software Manual for the Elementary
//! Functions", 1980).

use super::{LOG10_2, divide, fma, nearest, polynomial, power_of_two, scale};
use crate::extremum;
use core::f32::consts::{LN_10, LOG2_10, LOG2_E};

/// `ln 2` as the sum of two floats.
pub(super) const LN_2: [f32; 2] = [f32::from_bits(0x3f31_7218), f32::from_bits(0xb102_e308)];

/// `(r, n)` with `x = n ln 2 + r` and `|r|` at most `ln 2 / 2`.
#[inline(always)]
pub(super) fn reduce(x: f32) -> (f32, i32) {
    let (r, _, n) = reduce_terms(x);
    (r, n)
}

/// The same with `r` as the sum of two floats: `(r, r_low, n)`.
#[inline(always)]
pub(super) fn reduce_terms(x: f32) -> (f32, f32, i32) {
    let (n, integer) = nearest(x, LOG2_E);
    // Exact: the product cancels all of x's leading digits.
    let first = fma(n, -LN_2[0], x);
    let r = fma(n, -LN_2[1], first);
    (r, fma(n, -LN_2[1], first - r), integer)
}

/// The polynomial of [`exp_reduced`] and [`exp_small`].
#[inline(always)]
fn exp_polynomial(r: f32) -> f32 {
    polynomial!(r; 0.499_999_94, 0.166_665_2, 4.166_823_6e-2, 8.368_827e-3, 1.382_354_1e-3)
}

/// `exp(r)` for `|r|` at most `ln 2 / 2`.
#[inline(always)]
fn exp_reduced(r: f32) -> f32 {
    fma(fma(exp_polynomial(r), r, 1.0), r, 1.0)
}

/// `exp(r) - 1` for the same `r`; the error is relative to `exp(r)`.
#[inline(always)]
pub(super) fn exp_small(r: f32) -> f32 {
    fma(exp_polynomial(r) * r, r, r)
}

/// `((2^r - 1) / r - ln 2) / r` for `|r|` at most a half.
#[inline(always)]
pub(super) fn exp2_rest(r: f32) -> f32 {
    polynomial!(r; 0.240_226_48, 5.550_359_6e-2, 9.618_5e-3, 1.339_097e-3, 1.532_887_3e-4)
}

/// `2^r` for `|r|` at most a half.
#[inline(always)]
pub(super) fn exp2_reduced(r: f32) -> f32 {
    fma(fma(exp2_rest(r), r, LN_2[0]), r, 1.0)
}

/// `x`, limited to a range beyond which the function overflows or vanishes. NaN
/// stays.
#[inline(always)]
pub(super) fn limited(x: f32, low: f32, high: f32) -> f32 {
    extremum::f32::minimum(extremum::f32::maximum(x, low), high)
}

/// `e^x`.
#[inline]
pub fn expf(x: f32) -> f32 {
    let (r, n) = reduce(limited(x, -104.0, 89.0));
    scale(exp_reduced(r), n)
}

/// `2^x`.
#[inline]
pub fn exp2f(x: f32) -> f32 {
    let x = limited(x, -151.0, 129.0);
    let (n, integer) = nearest(x, 1.0);
    scale(exp2_reduced(x - n), integer)
}

/// `10^x`.
#[inline]
pub fn exp10f(x: f32) -> f32 {
    let x = limited(x, -45.5, 38.6);
    let (n, integer) = nearest(x, LOG2_10);
    let r = fma(n, -LOG10_2[1], fma(n, -LOG10_2[0], x));
    let p = polynomial!(r; LN_10, 2.650_948_8, 2.034_655_8, 1.171_293_4, 0.541_837_6, 0.206_251_44);
    scale(fma(p, r, 1.0), integer)
}

/// `e^x - 1`.
#[inline]
pub fn expm1f(x: f32) -> f32 {
    let (r, n) = reduce(limited(x, -18.0, 89.0));
    let p = polynomial!(r; 0.5, 0.166_666_66, 4.166_649_3e-2, 8.333_544e-3, 1.393_234_1e-3, 1.976_336_4e-4);
    let small = fma(r * r, p, r);
    // 2^n (1 + small) - 1, computed as twice its half, since n may be 128.
    let half = power_of_two(n.wrapping_sub(1));
    let value = fma(half, small, half - 0.5) * 2.0;
    // Zeros keep their sign, and half a subnormal number would be rounded.
    if x.abs() < 6e-8 { x } else { value }
}

/// The hyperbolic tangent.
#[inline]
pub fn tanhf(x: f32) -> f32 {
    let a = x.abs();
    // Near zero an odd polynomial; NaN takes this branch, too.
    let u = x * x;
    let p =
        polynomial!(u; -0.333_333, 0.133_319_36, -5.378_471_7e-2, 2.079_862_4e-2, -5.897_961e-3);
    // Zeros keep their sign: 0 · p is -0, and this sum is +0.
    let near = fma(fma(p, u, 0.0), x, x);
    // 1 - 2 / (e^2a + 1): from 10 on the result is 1.
    let (r, n) = reduce(2.0 * if a < 10.0 { a } else { 10.0 });
    let far = 1.0 - divide(2.0, fma(exp_reduced(r), power_of_two(n), 1.0));
    if a > 0.55 { far.copysign(x) } else { near }
}
