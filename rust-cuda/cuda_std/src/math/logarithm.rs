//! Logarithms and powers: the argument is split into `2^k m` with `m` about 1,
//! and the logarithm of `m` is a polynomial.

use super::alike::power;
use super::exponential::exp2_reduced;
use super::{LOG10_2, divide, fma, nearest, polynomial, scale};

/// `ln 2`.
const LN_2: f32 = core::f32::consts::LN_2;

/// `(f, k)` with `x = 2^k (1 + f)`, for positive finite `x`; `1 + f` is from
/// the number with the bits `least` up to twice that.
#[inline(always)]
pub(super) fn split(x: f32, least: u32) -> (f32, f32) {
    let subnormal = x < f32::MIN_POSITIVE;
    let bits = if subnormal { x * 8_388_608.0 } else { x }.to_bits();
    let power = bits.wrapping_sub(least) & 0xff80_0000;
    let offset = if subnormal { -23.0 } else { 0.0 };
    let k = fma((power as i32) as f32, 1.0 / 8_388_608.0, offset);
    (f32::from_bits(bits.wrapping_sub(power)) - 1.0, k)
}

/// [`split`] of a normal number, with `1 + f` from 2/3 on.
#[inline(always)]
pub(super) fn split_normal(x: f32) -> (f32, f32) {
    let power = x.to_bits().wrapping_sub(TWO_THIRDS) & 0xff80_0000;
    let f = f32::from_bits(x.to_bits().wrapping_sub(power)) - 1.0;
    (f, (power as i32) as f32 * (1.0 / 8_388_608.0))
}

/// The bits of 2/3.
pub(super) const TWO_THIRDS: u32 = 0x3f2a_aaab;

/// `ln(1 + f) - f` for `|f|` up to 1/3.
#[inline(always)]
pub(super) fn log1p_rest(f: f32) -> f32 {
    let p = polynomial!(f; -0.5, 0.333_332_12, -0.249_998_32, 0.200_105_76, -0.166_790_35, 0.140_035_67, -0.122_035_42, 0.139_942_53, -0.128_107_01);
    f * f * p
}

/// `value`, or the logarithm of zero, negative numbers, infinity and NaN.
#[inline(always)]
fn special(x: f32, value: f32) -> f32 {
    let value = if x.to_bits() >= f32::INFINITY.to_bits() {
        // Infinity for infinity, NaN for NaN and negative numbers.
        fma(x, f32::INFINITY, f32::INFINITY)
    } else {
        value
    };
    if x == 0.0 { f32::NEG_INFINITY } else { value }
}

/// The natural logarithm.
#[inline]
pub fn logf(x: f32) -> f32 {
    let (f, k) = split(x, TWO_THIRDS);
    special(x, fma(k, LN_2, f + log1p_rest(f)))
}

/// The logarithm to base 2.
#[inline]
pub fn log2f(x: f32) -> f32 {
    /// `1 / ln 2`
    const SCALE: [f32; 2] = [f32::from_bits(0x3fb8_aa3b), f32::from_bits(0x32a5_7060)];
    let (f, k) = split(x, TWO_THIRDS);
    let rest = fma(log1p_rest(f), SCALE[0], f * SCALE[1]);
    special(x, k + fma(f, SCALE[0], rest))
}

/// The logarithm to base 10.
#[inline]
pub fn log10f(x: f32) -> f32 {
    /// `1 / ln 10`
    const SCALE: [f32; 2] = [f32::from_bits(0x3ede_5bd9), f32::from_bits(0xb22d_91af)];
    let (f, k) = split(x, TWO_THIRDS);
    let rest = fma(log1p_rest(f), SCALE[0], fma(f, SCALE[1], k * LOG10_2[1]));
    special(x, fma(k, LOG10_2[0], fma(f, SCALE[0], rest)))
}

/// `(f, k, inverse)` with `1 + x = 2^k (1 + f)` and `inverse = 4 · 2^-k`, for `x` above
/// -1.
#[inline(always)]
fn split_1p(x: f32) -> (f32, f32, f32) {
    // Only the exponent of 1 + x is used: 1 + f = 2^-k (1 + x) comes from x.
    let power = (1.0 + x).to_bits().wrapping_sub(TWO_THIRDS) & 0xff80_0000;
    // It is a normal number for every k.
    let inverse = f32::from_bits(0x4080_0000_u32.wrapping_sub(power));
    let f = fma(0.25 * x, inverse, fma(0.25, inverse, -1.0));
    (f, (power as i32) as f32 * (1.0 / 8_388_608.0), inverse)
}

/// `ln(1 + x + low) + twos · ln 2`.
#[inline(always)]
pub(super) fn ln_1p_sum(x: f32, low: f32, twos: f32) -> f32 {
    let (f, k, inverse) = split_1p(x);
    // The derivative of the logarithm is 1 / (1 + f); its first two terms, 1 - f, suffice here.
    let low = 0.25 * low * inverse;
    let rest = log1p_rest(f) + fma(-low, f, low);
    fma(k + twos, LN_2, f + rest)
}

/// The natural logarithm of `1 + x`.
#[inline]
pub fn log1pf(x: f32) -> f32 {
    let (f, k, _) = split_1p(x);
    let value = fma(k, LN_2, f + log1p_rest(f));
    let value = if x > -1.0 && x < f32::INFINITY {
        value
    } else {
        // Minus infinity for -1, NaN below; infinity and NaN for themselves.
        special(1.0 + x, 0.0)
    };
    if x.abs() < 6e-8 { x } else { value }
}

power!(f32: powf;
    scale [f32::from_bits(0x4038_aa3b), f32::from_bits(0x3325_7060)], third [f32::from_bits(0x3eaa_aaab), f32::from_bits(0xb22a_aaab)], sqrt_half 0x3f35_04f3,
    series 0.200_000_78 0.142_733_95 0.117_134_21, over 150.0, under 160.0);
