//! Sine, cosine and tangent: a reduction `x = q π/2 + r`, and a polynomial in
//! `r`.
//!
//! Up to 2^17 the reduction is Cody and Waite's, with `π/2` in three parts.
//! Above, it is M. Payne's and R. Hanek's ("Radian reduction for trigonometric
//! functions", 1983): it multiplies, as integers, only those bits of `2/π` that
//! decide the quadrant and the digits of `r`.

use super::alike::quarter_turns;
use super::{FRAC_PI_2_LOW, divide, fma, nearest, polynomial};
use crate::exact;

/// `2/π`: 32 zeros, then the bits after the binary point.
static FRAC_2_PI: [u32; 8] = [
    0,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
];

quarter_turns!(f32: limit 131_072.0, parts 0x3fc9_0fda 0x33a2_2168 0x27c2_34c4);

/// [`reduce`], or [`reduce_odd`] if `ODD`, of any number that is not small: NaN
/// if it is not finite.
#[inline(always)]
fn reduce_large<const ODD: bool>(x: f32) -> (f32, f32, i32) {
    let bits = x.to_bits();
    let mantissa = u64::from(bits & 0x7f_ffff | 0x80_0000);
    // |x| = mantissa 2^(e-23). Of 2/π the bits from the one of weight 2^(25-e) on
    // matter: the bits above them add whole turns.
    let exponent = (bits >> 23 & 0xff).wrapping_sub(127);
    let offset = exponent.wrapping_add(7);
    let word = |i: u32| FRAC_2_PI[((offset >> 5).wrapping_add(i) & 7) as usize];
    let window = |i: u32| {
        let pair = u64::from(word(i)) << 32 | u64::from(word(i + 1));
        (pair << (offset & 31)) >> 32
    };
    let low = mantissa.wrapping_mul(window(2));
    let middle = mantissa.wrapping_mul(window(1)).wrapping_add(low >> 32);
    let high = mantissa.wrapping_mul(window(0)).wrapping_add(middle >> 32) as u32;
    // Two bits of quadrant, then the fraction of a quarter turn.
    let nearest = if ODD {
        high
    } else {
        high.wrapping_add(1 << 29)
    };
    let q = (nearest >> 30) as i32;
    let upper = high << 2 | middle as u32 >> 30;
    // Half a quarter turn less.
    let upper = if ODD { upper ^ 1 << 31 } else { upper };
    let lower = (middle as u32) << 2 | low as u32 >> 30;
    let fraction = (u64::from(upper) << 32 | u64::from(lower)) as i64;
    // Times π/2, in integers again, so that r is rounded once.
    /// `π/4 · 2^64`
    const FRAC_PI_4: u64 = 0xc90f_daa2_2168_c234;
    let product = u128::from(fraction.unsigned_abs()) * u128::from(FRAC_PI_4);
    let product = (product >> 64) as u64;
    let r = product as f32;
    let low = product.wrapping_sub(r as u64) as i64 as f32;
    // 2 · 2^-64, and the sign.
    let unit = if x.is_finite() {
        1.084_202_2e-19
    } else {
        f32::NAN
    };
    let unit = if (fraction < 0) != (x < 0.0) {
        -unit
    } else {
        unit
    };
    (r * unit, low * unit, if x < 0.0 { -q } else { q })
}

/// `(sin r / r - 1) / u` for `|r|` up to `π/4`, with `u = r²`.
#[inline(always)]
fn sin_series(u: f32) -> f32 {
    polynomial!(u; -0.166_666_54, 8.332_111e-3, -1.950_882_3e-4)
}

/// `(cos r - 1) / u`.
#[inline(always)]
fn cos_series(u: f32) -> f32 {
    polynomial!(u; -0.5, 4.166_664_6e-2, -1.388_730_1e-3, 2.443_074_1e-5)
}

/// [`sin_series`], or [`cos_series`] if `odd`.
#[inline(always)]
pub(super) fn series(u: f32, odd: bool) -> f32 {
    if odd { cos_series(u) } else { sin_series(u) }
}

/// The sine for `|r|` up to `π/4`.
#[inline(always)]
fn sin_reduced(r: f32, u: f32) -> f32 {
    // Zeros keep their sign: u · p is -0, and this sum is +0.
    fma(fma(sin_series(u), u, 0.0), r, r)
}

/// The cosine for `|r|` up to `π/4`, with `u = r²`.
#[inline(always)]
fn cos_reduced(u: f32) -> f32 {
    fma(cos_series(u), u, 1.0)
}

/// The sine of `r` plus `q` quarter turns.
#[inline(always)]
fn turned(r: f32, q: i32) -> f32 {
    let u = r * r;
    let value = if q & 1 == 0 {
        sin_reduced(r, u)
    } else {
        cos_reduced(u)
    };
    if q & 2 == 0 { value } else { -value }
}

/// Sine and cosine of an angle plus `q` quarter turns, from those of the angle.
#[inline(always)]
fn both_turned(sin: f32, cos: f32, q: i32) -> (f32, f32) {
    let (sin, cos) = if q & 1 == 0 { (sin, cos) } else { (cos, sin) };
    (
        if q & 2 == 0 { sin } else { -sin },
        if q.wrapping_add(1) & 2 == 0 {
            cos
        } else {
            -cos
        },
    )
}

/// The sine.
#[inline]
pub fn sinf(x: f32) -> f32 {
    let (r, _, q) = reduce::<false>(x);
    turned(r, q)
}

/// The cosine.
#[inline]
pub fn cosf(x: f32) -> f32 {
    let (r, _, q) = reduce::<false>(x);
    turned(r, q.wrapping_add(1))
}

/// Sine and cosine.
#[inline]
pub fn sincosf(x: f32) -> (f32, f32) {
    let (r, _, q) = reduce::<false>(x);
    let u = r * r;
    both_turned(sin_reduced(r, u), cos_reduced(u), q)
}

/// The tangent.
#[inline]
pub fn tanf(x: f32) -> f32 {
    let (r, low, q) = reduce::<true>(x);
    let u = r * r;
    let p = polynomial!(u; 0.333_333_52, 0.133_325_79, 5.406_964e-2, 2.123_12e-2, 1.097_024_6e-2, -8.385_584e-5, 4.463_267e-3);
    // tan(r + low) = r + rest
    let rest = fma(p * u, r, fma(u, low, low));
    let value = r + rest;
    if q & 1 == 0 {
        return if x == 0.0 { x } else { value };
    }
    // -1 / (r + rest): the quotient by `value`, corrected for r + rest - value.
    let lacking = (r - value) + rest;
    let inverse = divide(-1.0, value);
    fma(
        inverse,
        fma(inverse, value, 1.0) + inverse * lacking,
        inverse,
    )
}

/// Sine and cosine of `πx`: the reduction to a quarter of a period is exact.
#[inline]
pub fn sincospif(x: f32) -> (f32, f32) {
    const PI: f32 = core::f32::consts::PI;
    const PI_LOW: f32 = 2.0 * FRAC_PI_2_LOW;
    // x modulo 2, also where all floats are integers.
    let period = fma(-2.0, exact::f32::trunc(0.5 * x), x);
    let (n, q) = nearest(period, 2.0);
    let r = fma(-0.5, n, period);
    let u = r * r;
    let p = polynomial!(u; -5.167_709, 2.549_797, -0.589_327_4);
    let sin = fma(r, PI, fma(p, u, PI_LOW) * r);
    let cos = fma(
        polynomial!(u; -4.934_802, 4.058_696_7, -1.334_756_7, 0.228_955_31),
        u,
        1.0,
    );
    let (sin, cos) = both_turned(sin, cos, q);
    // A zero sine has the sign of x; a zero cosine is +0.
    (
        if sin == 0.0 { 0.0_f32.copysign(x) } else { sin },
        cos + 0.0,
    )
}
