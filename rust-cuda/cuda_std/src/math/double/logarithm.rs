//! Logarithms and powers: the argument is split into `2^k (1 + f)`, and the
//! logarithm of `1 + f` comes from `atanh`'s series in `s = f / (2 + f)`.

use super::super::alike::power;
use super::super::polynomial;
use super::exponential::exp2_reduced;
use super::{LN_2, LOG10_2, divide, fma, nearest, scale};

/// `(f, k)` with `x = 2^k (1 + f)`, for positive finite `x`; `1 + f` is from
/// the number with the upper bits `least` up to twice that.
#[inline(always)]
pub(super) fn split(x: f64, least: u32) -> (f64, f64) {
    let subnormal = x < f64::MIN_POSITIVE;
    let bits = if subnormal {
        x * 18_014_398_509_481_984.0
    } else {
        x
    }
    .to_bits();
    let power = ((bits >> 32) as u32).wrapping_sub(least) & 0xfff0_0000;
    let offset = if subnormal { -54 } else { 0 };
    let k = f64::from(((power as i32) >> 20).wrapping_add(offset));
    let m = f64::from_bits(bits.wrapping_sub(u64::from(power) << 32));
    (m - 1.0, k)
}

/// The upper bits of 2/3.
pub(super) const TWO_THIRDS: u32 = 0x3fe5_5555;

/// `ln(1 + f) - f` for `|f|` up to 1/3.
#[inline(always)]
pub(super) fn log1p_rest(f: f64) -> f64 {
    let s = divide(f, 2.0 + f);
    let u = s * s;
    let p = polynomial!(u; 0.666_666_666_666_666, 0.400_000_000_000_564_57, 0.285_714_285_559_088_07, 0.222_222_242_854_960_14, 0.181_816_666_063_800_8, 0.153_910_864_180_471_6, 0.131_740_488_718_281_42, 0.138_398_918_497_036_2);
    // 2s = f - s f, and f - s f = f - f²/2 + s f²/2.
    let half = 0.5 * f * f;
    fma(s, fma(u, p, half), -half)
}

/// `value`, or the logarithm of zero, negative numbers, infinity and NaN.
#[inline(always)]
fn special(x: f64, value: f64) -> f64 {
    let value = if (x.to_bits() >> 32) as u32 >= 0x7ff0_0000 {
        // Infinity for infinity, NaN for NaN and negative numbers.
        fma(x, f64::INFINITY, f64::INFINITY)
    } else {
        value
    };
    if x == 0.0 { f64::NEG_INFINITY } else { value }
}

/// The natural logarithm.
#[inline]
pub fn log(x: f64) -> f64 {
    let (f, k) = split(x, TWO_THIRDS);
    let rest = fma(k, LN_2[1], log1p_rest(f));
    special(x, fma(k, LN_2[0], f + rest))
}

/// The logarithm to base 2.
#[inline]
pub fn log2(x: f64) -> f64 {
    /// `1 / ln 2`
    const SCALE: [f64; 2] = [core::f64::consts::LOG2_E, 2.035_527_374_093_103_3e-17];
    let (f, k) = split(x, TWO_THIRDS);
    let rest = fma(log1p_rest(f), SCALE[0], f * SCALE[1]);
    special(x, k + fma(f, SCALE[0], rest))
}

/// The logarithm to base 10.
#[inline]
pub fn log10(x: f64) -> f64 {
    /// `1 / ln 10`
    const SCALE: [f64; 2] = [core::f64::consts::LOG10_E, 1.098_319_650_216_765e-17];
    let (f, k) = split(x, TWO_THIRDS);
    let rest = fma(log1p_rest(f), SCALE[0], fma(f, SCALE[1], k * LOG10_2[1]));
    special(x, fma(k, LOG10_2[0], fma(f, SCALE[0], rest)))
}

/// `(f, k, inverse)` with `1 + x = 2^k (1 + f)` and `inverse = 4 · 2^-k`, for `x` above
/// -1.
#[inline(always)]
fn split_1p(x: f64) -> (f64, f64, f64) {
    // Only the exponent of 1 + x is used: 1 + f = 2^-k (1 + x) comes from x.
    let upper = ((1.0 + x).to_bits() >> 32) as u32;
    let power = upper.wrapping_sub(TWO_THIRDS) & 0xfff0_0000;
    // It is a normal number for every k.
    let inverse = f64::from_bits(u64::from(0x4010_0000_u32.wrapping_sub(power)) << 32);
    let f = fma(0.25 * x, inverse, fma(0.25, inverse, -1.0));
    (f, f64::from((power as i32) >> 20), inverse)
}

/// `ln(1 + x + low) + twos · ln 2`.
#[inline(always)]
pub(super) fn ln_1p_sum(x: f64, low: f64, twos: f64) -> f64 {
    let (f, k, inverse) = split_1p(x);
    let k = k + twos;
    // The derivative of the logarithm is 1 / (1 + f); its first two terms, 1 - f, suffice here.
    let low = 0.25 * low * inverse;
    let rest = log1p_rest(f) + fma(-low, f, fma(k, LN_2[1], low));
    fma(k, LN_2[0], f + rest)
}

/// The natural logarithm of `1 + x`.
#[inline]
pub fn log1p(x: f64) -> f64 {
    let value = ln_1p_sum(x, 0.0, 0.0);
    let value = if x > -1.0 && x < f64::INFINITY {
        value
    } else {
        // Minus infinity for -1, NaN below; infinity and NaN for themselves.
        special(1.0 + x, 0.0)
    };
    if x.abs() < 1e-16 { x } else { value }
}

power!(f64: pow;
    scale [2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17], third [0.333_333_333_333_333_3, 1.850_371_707_708_594e-17], sqrt_half 0x3fe6_a09e,
    series 0.200_000_000_000_011_34 0.142_857_142_850_474_4 0.111_111_112_603_436_7 9.090_892_152_467_342e-2 7.693_380_015_229_584e-2 6.628_378_964_762_335e-2 6.598_430_569_874_157e-2, over 1100.0, under 1100.0);
