//! The gamma function by Stirling's formula, `Γ(y) = 2^((y - 1/2) log2 y - y log2 e) c(1/y)`, whose exponent
//! is a sum of two floats. The logarithm of the gamma function is a polynomial from 0.5 to 3. Next to zero and
//! to a negative integer `-n` it is `-ln |d|` plus a polynomial, where `d` is the distance from the integer. From
//! -2 to -10.5 both are taken relative to the nearest zero of the logarithm, which keeps the relative error small
//! there.

use super::alike::gamma;
use super::exponential::{LN_2, exp2_rest};
use super::logarithm::{TWO_THIRDS, log1p_rest, log2_terms, split};
use super::{divide, fma, fma_of_sum, nearest, polynomial, scale};
use crate::exact;

/// `√(2π)` as the sum of two floats.
const SQRT_2_PI: [f32; 2] = [2.506_628_3, -2.866_020_5e-10];

/// `log2 e` as the sum of two floats.
const LOG2_E: [f32; 2] = [core::f32::consts::LOG2_E, 1.925_963e-8];

/// `(c - √(2π)) / s`, where `c` is the factor of Stirling's formula and `s = 1/y`.
#[inline(always)]
fn stirling_series(s: f32) -> f32 {
    polynomial!(s; 0.208_885_57, 8.705_224e-3, -6.718_118_7e-3, -6.945_73e-4, 2.618_706_8e-3, -1.440_131e-3, 2.968_831e-4)
}

/// `-π²/6` as the sum of two floats.
const SINE: [f32; 2] = [-1.644_934, -5.208_099e-9];

/// `((sin πr / πr - 1) / u + π²/6) / u`, in terms of `u = r²`, for `|r|` up to a half.
#[inline(always)]
fn sine_rest(u: f32) -> f32 {
    polynomial!(u; 0.811_742_25, -0.190_748_48, 2.612_014_1e-2, -2.241_480_4e-3)
}

gamma!(f32: tgammaf; limit 48.0, tiny 8.673_617_4e-19, back 79_228_162_514_264_337_593_543_950_336.0);

/// The logarithm of the gamma function at `1 + d`, for arguments from 1/2 to 1.36.
#[inline(always)]
fn about_one(d: f32) -> f32 {
    const SLOPE: [f32; 2] = [-0.577_215_7, 5.456_804e-9];
    let p = polynomial!(d; 0.822_467, -0.400_685_16, 0.270_581_04, -0.207_415_2, 0.169_562_74, -0.143_360_48, 0.125_172_02, -0.118_851, 0.105_083_555, -5.017_836e-2, 5.169_12e-2, -0.178_182_66, 0.158_408_61);
    let (q, q_low) = fma_of_sum(p, d, SLOPE);
    fma(q, d, q_low * d)
}

/// The logarithm of the gamma function at `2 + d`, for arguments from 1.36 to 3.
#[inline(always)]
fn about_two(d: f32) -> f32 {
    const SLOPE: [f32; 2] = [0.422_784_33, 6.675_753_3e-9];
    let p = polynomial!(d; 0.322_467_03, -6.735_231e-2, 2.058_079_1e-2, -7.385_441e-3, 2.891_409_4e-3, -1.193_582_4e-3, 5.043_401_6e-4, -2.186_731_3e-4, 1.104_398_25e-4, -5.648_910_5e-5, 1.533_248e-5);
    let (q, q_low) = fma_of_sum(p, d, SLOPE);
    fma(q, d, q_low * d)
}

/// The zeros of the logarithm next to an integer: below -2, above and below -3, and so on to -10.
/// Each row has the distance `z` of the zero from the integer and `1/z`, as sums of two floats, and
/// the coefficients, in terms of the argument's distance `d` from the integer, of the logarithm
/// plus `ln(d/z)`, divided by `d - z`.
static ZEROS: [[f32; 14]; 17] = [
    [
        -0.457_024_75,
        1.487_291_9e-8,
        -2.188_065_3,
        -7.312_862e-8,
        0.196_642_74,
        1.588_854_2,
        -0.308_929_6,
        0.629_001_3,
        -9.638_668e-2,
        0.948_917_3,
        1.916_489_7,
        4.957_191,
        5.841_877,
        3.679_923_8,
    ],
    [
        0.252_317_34,
        1.409_068_8e-8,
        3.963_262_8,
        8.278_518_5e-8,
        1.643_532_6,
        1.535_441_3,
        0.127_855_52,
        0.572_380_9,
        -1.351_095_8e-2,
        0.950_308_3,
        -2.030_473_7,
        4.752_105_7,
        -5.380_620_5,
        3.173_592_8,
    ],
    [
        -0.143_580_88,
        -4.608_601e-9,
        -6.964_715,
        -2.272_304e-7,
        1.038_42,
        1.516_212_1,
        -9.142_801e-2,
        0.553_223_13,
        1.818_466_7e-2,
        0.747_915_3,
        1.434_483_9,
        3.512_854_6,
        4.055_701_7,
        2.508_747_3,
    ],
    [
        4.470_571_5e-2,
        1.109_703_2e-10,
        22.368_505,
        -7.612_925e-7,
        1.574_740_4,
        1.535_001_9,
        1.561_130_4e-2,
        0.548_622_97,
        -5.877_216_5e-2,
        0.763_919_95,
        -1.492_171_8,
        3.498_316_3,
        -3.969_704_9,
        2.391_034_4,
    ],
    [
        -3.936_184e-2,
        -1.489_184_6e-9,
        -25.405_317,
        7.209_183e-7,
        1.445_680_4,
        1.535_441_3,
        -2.901_109e-2,
        0.547_953_4,
        5.576_212_7e-2,
        0.740_206_7,
        1.420_053_8,
        3.361_687_7,
        3.830_694_4,
        2.328_981,
    ],
    [
        8.455_359e-3,
        6.298_532_5e-11,
        118.268_18,
        2.439_626e-6,
        1.719_259_5,
        1.554_272_5,
        -1.220_828_9e-3,
        0.546_857_83,
        -5.929_363_5e-2,
        0.707_741_1,
        -1.335_514_2,
        3.194_339_5,
        -3.659_885_4,
        2.240_321_2,
    ],
    [
        -8.218_168e-3,
        -4.157_479e-11,
        -121.681_62,
        1.986_651_8e-6,
        1.693_343_8,
        1.554_360_4,
        -9.625_599e-3,
        0.546_121_1,
        5.289_333e-2,
        0.675_650_8,
        1.238_286_4,
        3.019_202_2,
        3.487_422_5,
        2.168_659_7,
    ],
    [
        1.392_519_9e-3,
        2.716_606_7e-12,
        718.122_56,
        2.354_411_3e-5,
        1.874_967_9,
        1.568_168_6,
        -3.600_493_8e-3,
        0.548_341_75,
        -7.107_793_5e-2,
        0.748_587_6,
        -1.446_584,
        3.369_877_6,
        -3.815_364_6,
        2.295_588_5,
    ],
    [
        -1.385_294_5e-3,
        2.988_815_4e-11,
        -721.868_16,
        -2.628_680_3e-5,
        1.870_612,
        1.568_177_1,
        -4.309_033_5e-3,
        0.547_366_3,
        6.339_911e-2,
        0.712_786_14,
        1.343_451_7,
        3.191_359_5,
        3.644_966_6,
        2.226_658_6,
    ],
    [
        1.984_921_1e-4,
        -1.577_394_4e-12,
        5_037.983_4,
        2.433_944_8e-4,
        2.015_954_7,
        1.578_373_2,
        -3.196_359_6e-3,
        0.547_517_96,
        -6.505_223e-2,
        0.721_178_35,
        -1.373_611_2,
        3.250_314_5,
        -3.706_501_7,
        2.252_681_5,
    ],
    [
        -1.983_334_1e-4,
        4.274_642_4e-13,
        -5_042.015,
        2.110_002_7e-4,
        2.015_328_6,
        1.578_386_3,
        -2.409_636_3e-3,
        0.551_138_9,
        9.067_12e-2,
        0.832_235_34,
        1.672_575_1,
        3.738_790_3,
        4.150_109_3,
        2.424_492_1,
    ],
    [
        2.480_290_5e-5,
        -4.112_792_2e-13,
        40_317.86,
        -1.126_506_25e-4,
        2.140_680_6,
        1.586_202_3,
        -3.037_292_7e-3,
        0.552_517_95,
        -0.100_307_83,
        0.874_447_5,
        -1.788_330_6,
        3.930_919,
        -4.327_116,
        2.493_861_7,
    ],
    [
        -2.480_027e-5,
        1.199_903_9e-14,
        -40_322.14,
        7.967_830_6e-5,
        2.140_602_4,
        1.586_197_7,
        -1.684_519_7e-3,
        0.550_898_25,
        8.829_746e-2,
        0.820_651_77,
        1.639_175_2,
        3.681_020_5,
        4.095_190_5,
        2.402_310_8,
    ],
    [
        2.755_749e-6,
        8.504_327_3e-14,
        362_877.75,
        -1.763_963_7e-3,
        2.251_757,
        1.592_361_6,
        -2.258_147_6e-3,
        0.548_435_1,
        -7.103_944e-2,
        0.747_292_94,
        -1.444_853_9,
        3.367_755,
        -3.813_94,
        2.294_444_8,
    ],
    [
        -2.755_714_8e-6,
        8.786_871e-15,
        -362_882.25,
        -1.741_214_8e-3,
        2.251_748_3,
        1.592_364_5,
        -1.361_892_6e-3,
        0.549_125_3,
        7.541_765e-2,
        0.764_522_5,
        1.487_178_9,
        3.431_184_3,
        3.866_985_3,
        2.313_424_3,
    ],
    [
        2.755_733_7e-7,
        4.883_037_5e-16,
        3.628_797_8e6,
        -0.101_753_79,
        2.351_752_8,
        1.597_374_9,
        -2.247_690_2e-3,
        0.552_377_94,
        -9.860_538e-2,
        0.866_170_47,
        -1.764_110_2,
        3.888_69,
        -4.286_72,
        2.477_519_3,
    ],
    [
        -2.755_73e-7,
        -1.278_359_5e-14,
        -3.628_802_2e6,
        -0.101_751_39,
        2.351_752_3,
        1.597_365_3,
        -1.008_834_7e-3,
        0.549_385_6,
        7.714_172_5e-2,
        0.772_183_24,
        1.508_299_4,
        3.466_418,
        3.899_575_2,
        2.326_252_7,
    ],
];

/// The logarithm about its zero at -2.46, about -2.58, and about its zero at -2.75: the centre, the
/// value there, and the coefficients of the difference from that value divided by the distance.
static BETWEEN: [[f32; 13]; 3] = [
    [
        -2.457_024_8,
        -1.128_784_25e-7,
        1.515_602_7,
        4.858_320_7,
        1.411_378_6,
        8.721_303,
        5.706_210_6,
        25.787_863,
        52.950_49,
        -378.446_44,
        -360.503_48,
        36_536.766,
        -150_455.12,
    ],
    [
        -2.581_898,
        -0.114_217_28,
        0.303_233_8,
        5.115_591,
        -2.924_863_8,
        10.479_625,
        -12.673_913,
        35.437_695,
        -56.997_643,
        158.285,
        -364.044_16,
        -212.551_03,
        3_545.841,
    ],
    [
        -2.747_682_6,
        -1.441_816_8e-7,
        -1.914_348_7,
        9.575_185,
        -20.095_171,
        62.625_984,
        -194.721_1,
        648.024_6,
        -2_209.205_6,
        7_286.882,
        -24_068.14,
        132_227.06,
        -550_775.56,
    ],
];

/// `ln √(2π)` as the sum of two floats.
const LN_SQRT_2_PI: [f32; 2] = [0.918_938_5, 1.563_417_7e-8];

/// `y` times the logarithm minus Stirling's formula, in terms of `u = 1/y²`, for `y` from 3 on.
#[inline(always)]
fn log_series(u: f32) -> f32 {
    polynomial!(u; 8.333_333_6e-2, -2.777_854_7e-3, 7.898_910_6e-4, -4.820_356_8e-4)
}

/// The logarithm of the absolute value of the gamma function.
#[inline]
pub fn lgammaf(x: f32) -> f32 {
    if (0.5..3.0).contains(&x) {
        return if x < 1.36 {
            about_one(x - 1.0)
        } else {
            about_two(x - 2.0)
        };
    }
    if x > -2.84 && x < -2.35 {
        return between(x);
    }
    let right = x > 0.5;
    let n = exact::f32::round_ties_even(x);
    let d = x - n;
    if !right && n >= -10.0 {
        let value = if n >= -1.0 || d >= 0.0 && n == -2.0 {
            next_to_zero(n, d)
        } else {
            by_zeros(n, d)
        };
        return if d == 0.0 { f32::INFINITY } else { value };
    }
    // Where the product with the logarithm nearly overflows, x is divided by 2^16, so log2 x is 16
    // less.
    let large = x > 1e30;
    let (y, y_low) = one_more(-x);
    let (y, y_low) = if right { (x, 0.0) } else { (y, y_low) };
    let y = if large { y * (1.0 / 65_536.0) } else { y };
    let (e, e_low, s) = stirling(y, y_low);
    // Γ(x) = π / (sin πd Γ(1 - x))
    let (v, _) = sine_terms(d);
    let (f, k) = split(fma(v, d.abs(), d.abs()), TWO_THIRDS);
    let rest = f + log1p_rest(f);
    let (k, rest) = if right { (0.0, 0.0) } else { (k, rest) };
    let more = if large { 16.0 * y } else { k };
    let sum = e + more;
    let value = by_stirling(sum, (e - sum) + more + e_low, s, rest);
    let value = if right { value } else { -value };
    let value = if large { value * 65_536.0 } else { value };
    let pole = !right && d == 0.0;
    if pole || x.is_infinite() {
        f32::INFINITY
    } else {
        value
    }
}

/// The logarithm between -2.84 and -2.35, where two zeros are far from poles.
#[inline(always)]
fn between(x: f32) -> f32 {
    let index = usize::from(x < -2.5).wrapping_add(usize::from(x < -2.66));
    // SAFETY: there are three rows.
    let row = unsafe { BETWEEN.get_unchecked(index) };
    let d = x - row[0];
    let p = polynomial!(d; row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[9], row[10], row[11], row[12]);
    fma(p, d, row[1])
}

/// The logarithm at `n + d`, for `n` of 0, -1 or -2: `Γ(1 + d) = d (d - 1) (d - 2) Γ(d - 2)`.
#[inline(always)]
fn next_to_zero(n: f32, d: f32) -> f32 {
    let a = d.abs();
    let first = if n <= -1.0 { 1.0 - d } else { 1.0 };
    let second = if n <= -2.0 { 2.0 - d } else { 1.0 };
    let part = a * first;
    let part_low = fma(a, first, -part);
    let product = part * second;
    let low = fma(part_low, second, fma(part, second, -product));
    let (f, k) = split(product, TWO_THIRDS);
    let low = low * inverse_power(product, f);
    let rest = log1p_rest(f) + fma(-low, f, low);
    fma(-k, LN_2[0], (about_one(d) - rest) - f)
}

/// The logarithm at `n + d`, relative to its zero on the side of `d`, for `n` from -10 to -2; for
/// -2 `d` has to be negative.
#[inline(always)]
fn by_zeros(n: f32, d: f32) -> f32 {
    let index = nearest(-2.0 * n, 1.0).1 - if d < 0.0 { 4 } else { 5 };
    // SAFETY: the index is from 0 to 16: two rows for each integer from -3 to -10, and one for -2, where d is
    // negative.
    let row = unsafe { ZEROS.get_unchecked(index as usize) };
    let t = (d - row[0]) - row[1];
    let inverse = row[2];
    let p = polynomial!(d; row[4], row[5], row[6], row[7], row[8], row[9], row[10], row[11], row[12], row[13]);
    let quotient = d * inverse;
    let (f, k) = split(quotient, TWO_THIRDS);
    // Next to the zero d/z is 1, and its logarithm t/z. Elsewhere the rounding error of d/z counts.
    let near = k == 0.0;
    let low = fma(d, inverse, -quotient) * inverse_power(quotient, f);
    let rest = log1p_rest(if near { t * inverse } else { f });
    let value = if near {
        let more = p - row[3];
        let slope = more - inverse;
        let slope_low = more - (slope + inverse);
        fma(t, slope, fma(t, slope_low, -rest))
    } else {
        let log = f + (rest + fma(-low, f, low));
        fma(t, p, -fma(row[3], row[0], log))
    };
    fma(-k, LN_2[0], value)
}

/// `2^-k` for `x = 2^k (1 + f)`.
#[inline(always)]
fn inverse_power(x: f32, f: f32) -> f32 {
    let power = x.to_bits().wrapping_sub((1.0 + f).to_bits());
    f32::from_bits(1.0_f32.to_bits().wrapping_sub(power))
}
