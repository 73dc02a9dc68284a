//! Exponential functions: Cody and Waite's reduction to `x = n ln 2 + r` and a
//! polynomial in `r`, as in single precision.

use super::super::polynomial;
use super::{LN_2, LOG10_2, divide, fma, nearest, power_of_two, scale};
use core::f64::consts::{LN_10, LOG2_10, LOG2_E};

/// `(r, n)` with `x = n ln 2 + r` and `|r|` at most `ln 2 / 2`.
#[inline(always)]
pub(super) fn reduce(x: f64) -> (f64, i32) {
    let (n, integer) = nearest(x, LOG2_E);
    // Exact: the first product cancels all of x's leading digits.
    let r = fma(n, -LN_2[0], x);
    (fma(n, -LN_2[1], r), integer)
}

/// The polynomial of [`exp_reduced`] and [`exp_small`].
#[inline(always)]
fn exp_polynomial(r: f64) -> f64 {
    polynomial!(r; 0.500_000_000_000_001_1, 0.166_666_666_666_664_33, 4.166_666_666_652_699e-2, 8.333_333_333_482_07e-3, 1.388_888_894_433_394_8e-3, 1.984_126_953_269_433e-4, 2.480_149_245_912_925_3e-5, 2.755_756_353_986_215e-6, 2.763_045_338_369_425_5e-7, 2.500_716_380_190_429_8e-8)
}

/// `exp(r)` for `|r|` at most `ln 2 / 2`.
#[inline(always)]
fn exp_reduced(r: f64) -> f64 {
    fma(fma(exp_polynomial(r), r, 1.0), r, 1.0)
}

/// `exp(r) - 1` for the same `r`; the error is relative to `exp(r)`.
#[inline(always)]
pub(super) fn exp_small(r: f64) -> f64 {
    fma(exp_polynomial(r) * r, r, r)
}

/// `((2^r - 1) / r - ln 2) / r` for `|r|` at most a half.
#[inline(always)]
pub(super) fn exp2_rest(r: f64) -> f64 {
    polynomial!(r; 0.240_226_506_959_101_33, 5.550_410_866_482_232e-2, 9.618_129_107_593_482e-3, 1.333_355_814_636_409e-3, 1.540_353_045_779_394_3e-4, 1.525_273_382_236_997_6e-5, 1.321_543_498_433_445_6e-6, 1.017_807_966_141_305_1e-7, 7.073_829_141_446_311e-9, 4.451_021_956_096_668_5e-10)
}

/// `2^r` for `|r|` at most a half.
#[inline(always)]
pub(super) fn exp2_reduced(r: f64) -> f64 {
    fma(fma(exp2_rest(r), r, LN_2[0]), r, 1.0)
}

/// `x`, limited to a range beyond which the function overflows or vanishes. NaN
/// stays.
#[inline(always)]
pub(super) fn limited(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `e^x`.
#[inline]
pub fn exp(x: f64) -> f64 {
    let (r, n) = reduce(limited(x, -746.0, 710.0));
    scale(exp_reduced(r), n)
}

/// `2^x`.
#[inline]
pub fn exp2(x: f64) -> f64 {
    let x = limited(x, -1076.0, 1025.0);
    let (n, integer) = nearest(x, 1.0);
    scale(exp2_reduced(x - n), integer)
}

/// `10^x`.
#[inline]
pub fn exp10(x: f64) -> f64 {
    let x = limited(x, -324.0, 309.0);
    let (n, integer) = nearest(x, LOG2_10);
    let r = fma(n, -LOG10_2[1], fma(n, -LOG10_2[0], x));
    let p = polynomial!(r; LN_10, 2.650_949_055_239_205_4, 2.034_678_592_293_32, 1.171_255_148_908_152_6, 0.539_382_929_230_068_3, 0.206_995_849_545_130_06, 6.808_936_187_474_832e-2, 1.959_761_863_576_822e-2, 5.014_057_561_368_068e-3, 1.157_581_383_505_640_6e-3, 2.399_931_552_122_140_4e-4);
    scale(fma(p, r, 1.0), integer)
}

/// `e^x - 1`.
#[inline]
pub fn expm1(x: f64) -> f64 {
    let (r, n) = reduce(limited(x, -40.0, 710.0));
    let p = polynomial!(r; 0.5, 0.166_666_666_666_666_77, 4.166_666_666_666_661e-2, 8.333_333_333_321_466e-3, 1.388_888_888_892_385_5e-3, 1.984_126_988_646_910_2e-4, 2.480_158_723_729_148e-5, 2.755_724_391_564_747e-6, 2.755_735_323_768_805e-7, 2.510_912_607_687_304e-8, 2.088_934_583_193_196_2e-9);
    let small = fma(r * r, p, r);
    // 2^n (1 + small) - 1, computed as twice its half, since n may be 1024.
    let half = power_of_two(n.wrapping_sub(1));
    let value = fma(half, small, half - 0.5) * 2.0;
    // Zeros keep their sign, and half a subnormal number would be rounded.
    if x.abs() < 1e-16 { x } else { value }
}

/// The hyperbolic tangent.
#[inline]
pub fn tanh(x: f64) -> f64 {
    let a = x.abs();
    if a > 0.55 {
        // 1 - 2 / (e^2a + 1): from 20 on the result is 1.
        let (r, n) = reduce(2.0 * if a < 20.0 { a } else { 20.0 });
        let far = 1.0 - divide(2.0, fma(exp_reduced(r), power_of_two(n), 1.0));
        return far.copysign(x);
    }
    // Near zero an odd polynomial; NaN takes this branch, too.
    let u = x * x;
    let p = polynomial!(u; -0.333_333_333_333_333, 0.133_333_333_333_265_9, -5.396_825_396_374_678e-2, 2.186_948_838_551_803_7e-2, -8.863_232_596_553_9e-3, 3.592_091_985_814_257_4e-3, -1.455_542_581_701_192_8e-3, 5.884_434_753_977_201e-4, -2.333_791_494_736_436e-4, 8.331_317_056_430_932e-5, -1.949_276_150_949_523_5e-5);
    // Zeros keep their sign: 0 · p is -0, and this sum is +0.
    fma(fma(p, u, 0.0), x, x)
}
