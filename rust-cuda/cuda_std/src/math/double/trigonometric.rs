//! Sine, cosine and tangent: a reduction `x = q π/2 + r`, and a polynomial in `r`.
//!
//! Up to 2^20 the reduction is Cody and Waite's, with `π/2` in three parts. Above, it is M. Payne's
//! and R. Hanek's, as in single precision.

use super::super::alike::quarter_turns;
use super::super::polynomial;
use super::{FRAC_PI_2_LOW, divide, fma, nearest, power_of_two};
use crate::exact;
use core::f64::consts::PI;

/// `2/π`: 64 zeros, then the bits after the binary point.
static FRAC_2_PI: [u64; 20] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

quarter_turns!(f64: limit 1_048_576.0, parts 0x3ff9_21fb_5440_0000 0x3dd0_b461_1a62_6331 0x3a71_701b_839a_2520);

/// [`reduce`], or [`reduce_odd`] if `ODD`, of any number that is not small: NaN if it is not
/// finite.
#[inline(always)]
fn reduce_large<const ODD: bool>(x: f64) -> (f64, f64, i32) {
    /// `π/4 · 2^64`
    const FRAC_PI_4: u64 = 0xc90f_daa2_2168_c234;
    let bits = x.to_bits();
    let mantissa = u128::from(bits & 0xf_ffff_ffff_ffff | 0x10_0000_0000_0000);
    // |x| = mantissa 2^(e-52). Of 2/π the bits from the one of weight 2^(53-e) on
    // matter: the bits above them add whole turns.
    let exponent = (bits >> 52 & 0x7ff) as u32;
    let offset = exponent.wrapping_sub(1023 - 10);
    let (word, bit) = (offset >> 6, offset & 63);
    // SAFETY: the exponent is from 1043 to 2047, so the word is 16 at most, and `i` is 3 at most.
    let word = |i: u32| unsafe { *FRAC_2_PI.get_unchecked(word.wrapping_add(i) as usize) };
    let window = |i: u32| {
        let pair = u128::from(word(i)) << 64 | u128::from(word(i + 1));
        (pair << bit) >> 64
    };
    let low = mantissa.wrapping_mul(window(2));
    let middle = mantissa.wrapping_mul(window(1)).wrapping_add(low >> 64);
    let high = (mantissa as u64)
        .wrapping_mul(window(0) as u64)
        .wrapping_add((middle >> 64) as u64);
    // Two bits of quadrant, then the fraction of a quarter turn.
    let nearest = if ODD {
        high
    } else {
        high.wrapping_add(1 << 61)
    };
    let q = (nearest >> 62) as i32;
    let upper = high << 2 | middle as u64 >> 62;
    // Half a quarter turn less.
    let upper = if ODD { upper ^ 1 << 63 } else { upper };
    let lower = (middle as u64) << 2 | low as u64 >> 62;
    let fraction = u128::from(upper) << 64 | u128::from(lower);
    let negative = upper >> 63 == 1;
    let fraction = if negative {
        fraction.wrapping_neg()
    } else {
        fraction
    };
    // Times π/2, in integers again, so that r is rounded once. There are 61 zeros at most.
    let zeros = (fraction >> 64 | 1) as u64;
    let zeros = zeros.leading_zeros();
    let product = (fraction << zeros >> 64) * u128::from(FRAC_PI_4);
    let product = (product >> 64) as u64;
    let r = product as f64;
    let low = product.wrapping_sub(r as u64) as i64 as f64;
    // 2 · 2^-64 · 2^-zeros, and the sign.
    let unit = if x.is_finite() {
        power_of_two(-63 - zeros as i32)
    } else {
        f64::NAN
    };
    let unit = if negative != (x < 0.0) { -unit } else { unit };
    (r * unit, low * unit, if x < 0.0 { -q } else { q })
}

/// `(sin r - r) / (r u)`, or `(cos r - 1) / u` if `odd`, in terms of `u = r²`, for `|r|` up to
/// `π/4`.
#[inline(always)]
pub(super) fn series(u: f64, odd: bool) -> f64 {
    let pick = |sin, cos| if odd { cos } else { sin };
    polynomial!(
        u;
        pick(-0.166_666_666_666_666_3, -0.5),
        pick(8.333_333_333_321_92e-3, 4.166_666_666_666_659_5e-2),
        pick(-1.984_126_982_946_115_3e-4, -1.388_888_888_887_346_1e-3),
        pick(2.755_731_358_355_199_2e-6, 2.480_158_728_911_975_2e-5),
        pick(-2.505_074_257_197_131_4e-8, -2.755_731_425_863_833e-7),
        pick(1.589_596_071_360_723_5e-10, 2.087_571_169_734_776_6e-9),
        pick(0.0, -1.135_909_659_292_388_2e-11)
    )
}

/// The sine of `r` plus `q` quarter turns.
#[inline(always)]
fn turned(r: f64, q: i32) -> f64 {
    let odd = q & 1 != 0;
    let u = r * r;
    let factor = if odd { 1.0 } else { r };
    // Zeros keep their sign: u · p is -0, and this sum is +0.
    let value = fma(fma(series(u, odd), u, 0.0), factor, factor);
    if q & 2 == 0 { value } else { -value }
}

/// Sine and cosine of `r` plus `q` quarter turns.
#[inline(always)]
fn both_turned(r: f64, q: i32) -> (f64, f64) {
    let u = r * r;
    let sin = fma(fma(series(u, false), u, 0.0), r, r);
    // Rounded as in `turned`.
    let cos = 1.0 + series(u, true) * u;
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
pub fn sin(x: f64) -> f64 {
    let (r, _, q) = reduce::<false>(x);
    turned(r, q)
}

/// The cosine.
#[inline]
pub fn cos(x: f64) -> f64 {
    let (r, _, q) = reduce::<false>(x);
    turned(r, q.wrapping_add(1))
}

/// Sine and cosine.
#[inline]
pub fn sincos(x: f64) -> (f64, f64) {
    let (r, _, q) = reduce::<false>(x);
    both_turned(r, q)
}

/// The tangent.
#[inline]
pub fn tan(x: f64) -> f64 {
    let (r, low, q) = reduce::<true>(x);
    let u = r * r;
    let p = polynomial!(u; 0.333_333_333_333_333_76, 0.133_333_333_333_261_08, 5.396_825_397_251_562e-2, 2.186_948_840_944_346e-2, 8.863_237_763_667_398e-3, 3.592_102_501_504_194_3e-3, 1.456_034_225_972_185_8e-3, 5.889_203_201_019_742e-4, 2.435_546_897_171_959_5e-4, 8.405_640_199_544_126e-5, 6.632_324_515_454_042e-5, -2.450_453_273_167_713e-5, 4.769_824_885_251_94e-5, -2.381_151_505_781_369e-5, 9.696_514_795_358_062e-6);
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

/// `(r, q)` with `πx = q π/2 + r`, without whole turns; exact except for the rounding of `r`.
#[inline(always)]
fn reduce_pi(x: f64) -> (f64, i32) {
    // x modulo 2, also where all floats are integers.
    let period = fma(-2.0, exact::f64::trunc(0.5 * x), x);
    let (n, q) = nearest(period, 2.0);
    let part = fma(-0.5, n, period);
    let r = part * PI;
    (r + fma(part, 2.0 * FRAC_PI_2_LOW, fma(part, PI, -r)), q)
}

/// Sine and cosine of `πx`: the reduction to a quarter of a period is exact.
#[inline]
pub fn sincospi(x: f64) -> (f64, f64) {
    let (r, q) = reduce_pi(x);
    let (sin, cos) = both_turned(r, q);
    // A zero sine has the sign of x; a zero cosine is +0.
    (
        if sin == 0.0 { 0.0_f64.copysign(x) } else { sin },
        cos + 0.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sincospi_is_exact_at_halves_and_good_between() {
        for n in -9_i32..=9 {
            let (sin, cos) = sincospi(f64::from(n) / 2.0);
            let expected = match n.rem_euclid(4) {
                0 => (0.0, 1.0),
                1 => (1.0, 0.0),
                2 => (0.0, -1.0),
                _ => (-1.0, 0.0),
            };
            assert_eq!((sin, cos), expected, "{n}/2");
        }
        for i in 1..1000 {
            let x = f64::from(i) * 0.000_37;
            let (sin, cos) = sincospi(x);
            assert!((sin - (PI * x).sin()).abs() < 4e-16, "{x}");
            assert!((cos - (PI * x).cos()).abs() < 4e-16, "{x}");
            assert_eq!(
                sincospi(x + 1e6).0.signum(),
                sincospi((x + 1e6) % 2.0).0.signum()
            );
        }
        assert!(sincospi(f64::INFINITY).0.is_nan());
        assert_eq!(sincospi(-0.0).0.to_bits(), (-0.0_f64).to_bits());
        // Large arguments: 2^52 + 1 is odd.
        assert_eq!(sincospi(4_503_599_627_370_497.0), (0.0, -1.0));
    }
}
