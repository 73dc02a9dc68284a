//! The gamma function by Stirling's formula, `Γ(y) = 2^((y - 1/2) log2 y - y log2 e) c(1/y)`, whose
//! exponent is a sum of two floats. The logarithm of the gamma function is a polynomial from 0.5 to
//! 3, Stirling's formula beyond, and Euler's reflection below.

use super::super::alike::gamma;
use super::super::polynomial;
use super::exponential::exp2_rest;
use super::logarithm::{TWO_THIRDS, log1p_rest, log2_terms, split};
use super::{LN_2, divide, fma, fma_of_sum, nearest, scale};
use crate::exact;

/// `√(2π)` as the sum of two floats.
const SQRT_2_PI: [f64; 2] = [2.506_628_274_631_000_7, -1.832_857_998_045_916_7e-16];

/// `log2 e` as the sum of two floats.
const LOG2_E: [f64; 2] = [core::f64::consts::LOG2_E, 2.035_527_374_093_103_3e-17];

/// `(c - √(2π)) / s`, where `c` is the factor of Stirling's formula and `s = 1/y`.
#[inline(always)]
fn stirling_series(s: f64) -> f64 {
    polynomial!(s; 0.208_885_689_552_575_53, 8.703_570_399_694_088e-3, -6.721_090_602_268_823e-3, -5.751_961_525_154_973e-4, 1.965_172_726_974_506_5e-3, 1.767_278_890_437_175e-4, -1.506_074_291_528_683_2e-3, 4.688_116_549_611_174e-5, 1.040_675_322_636_24e-3, 4.959_386_459_349_811e-3, -2.055_304_114_329_727e-2, 3.549_274_407_099_113_6e-2, -2.955_483_353_909_301e-2, -8.680_057_680_067_526e-3, 6.392_146_381_127_6e-2, -0.101_968_160_436_668_5, 0.100_571_280_937_350_49, -6.875_584_528_320_375e-2, 3.294_729_163_080_903_4e-2, -1.064_797_467_979_57e-2, 2.095_129_812_484_672_3e-3, -1.901_861_421_978_572e-4)
}

/// `-π²/6` as the sum of two floats.
const SINE: [f64; 2] = [-1.644_934_066_848_226_4, -3.024_149_994_055_958e-17];

/// `((sin πr / πr - 1) / u + π²/6) / u`, in terms of `u = r²`, for `|r|` up to a half.
#[inline(always)]
fn sine_rest(u: f64) -> f64 {
    polynomial!(u; 0.811_742_425_283_353_6, -0.190_751_824_122_082_14, 2.614_784_781_759_912e-2, -2.346_081_034_632_958_7e-3, 1.484_287_857_809_983_3e-4, -6.975_834_599_841_69e-6, 2.529_954_781_034_995e-7, -7.079_512_815_906_035e-9)
}

gamma!(f64: tgamma; limit 200.0, tiny 3.872_591_914_849_318_4e-121, back 5.260_135_901_548_374e210);

/// `ln √(2π)` as the sum of two floats.
const LN_SQRT_2_PI: [f64; 2] = [0.918_938_533_204_672_8, -3.878_294_158_067_241_4e-17];

/// `y` times the logarithm minus Stirling's formula, in terms of `u = 1/y²`, for `y` from 3 on.
#[inline(always)]
fn log_series(u: f64) -> f64 {
    polynomial!(u; 8.333_333_333_333_333e-2, -2.777_777_777_768_592e-3, 7.936_507_899_852_52e-4, -5.952_374_679_790_921e-4, 8.416_920_202_089_828e-4, -1.914_110_176_733_752_5e-3, 6.278_036_040_619_415e-3, -2.596_939_201_246_443_3e-2, 0.108_895_472_059_969_2, -0.321_164_461_053_723_7, -0.114_503_322_042_884_38, 6.843_635_229_754_342, -30.906_855_453_653_794, 49.893_874_448_739_6)
}

/// The logarithm of the gamma function at `1 + d`, for arguments from 1/2 to 1.36.
#[inline(always)]
fn about_one(d: f64) -> f64 {
    const SLOPE: [f64; 2] = [-0.577_215_664_901_532_9, 1.042_431_758_188_356_6e-17];
    let p = polynomial!(d; 0.822_467_033_424_112_8, -0.400_685_634_386_541, 0.270_580_808_428_068_25, -0.207_385_551_025_810_55, 0.169_557_176_945_994_12, -0.144_049_897_119_601_03, 0.125_509_673_785_822_7, -0.111_334_242_751_456, 0.100_099_263_452_754_26, -9.095_494_856_120_936e-2, 8.335_915_645_307_66e-2, -7.690_805_153_795_723e-2, 7.134_188_094_380_324e-2, -6.710_040_417_613_913e-2, 6.347_080_585_508_795e-2, -5.367_297_457_569_264_5e-2, 4.964_141_446_130_698e-2, -9.355_588_239_005_089e-2, 6.337_172_047_607_915e-2, 0.159_279_962_228_530_75, 0.106_602_105_560_509_32, -0.643_210_521_284_616, -0.427_178_954_982_988_63, 0.707_875_537_048_065_3, 0.940_310_233_959_369_6);
    let (q, q_low) = fma_of_sum(p, d, SLOPE);
    fma(q, d, q_low * d)
}

/// The logarithm of the gamma function at `2 + d`, for arguments from 1.36 to 3.
#[inline(always)]
fn about_two(d: f64) -> f64 {
    const SLOPE: [f64; 2] = [0.422_784_335_098_467_13, 6.916_074_208_847_707e-18];
    let p = polynomial!(d; 0.322_467_033_424_113_2, -6.735_230_105_319_88e-2, 2.058_080_842_778_826_6e-2, -7.385_551_028_624_712e-3, 2.890_510_330_558_322_7e-3, -1.192_753_913_003_672_6e-3, 5.096_695_287_797_626e-4, -2.231_547_417_456_029_4e-4, 9.945_746_321_732_614e-5, -4.492_635_234_267_031e-5, 2.050_758_225_810_358_8e-5, -9.439_064_752_173_239e-6, 4.373_148_028_884_648e-6, -2.039_794_030_321_039e-6, 9.600_560_715_591_935e-7, -4.504_815_159_840_283_3e-7, 2.040_772_807_237_952_6e-7, -9.443_365_086_807_94e-8, 5.328_007_965_700_893_4e-8, -3.101_761_719_736_408_4e-8, 1.210_891_821_316_622_2e-8, -2.085_133_860_227_488_8e-9);
    let (q, q_low) = fma_of_sum(p, d, SLOPE);
    fma(q, d, q_low * d)
}

/// The logarithm of the absolute value of the gamma function.
#[inline]
pub fn lgamma(x: f64) -> f64 {
    let right = x >= 0.5;
    let (y, y_low) = one_more(-x);
    let (y, y_low) = if right { (x, 0.0) } else { (y, y_low) };
    let value = if y < 1.36 {
        about_one(if right { x - 1.0 } else { -x })
    } else if y < 3.0 {
        about_two(if right { x - 2.0 } else { -1.0 - x })
    } else {
        // Where the product with the logarithm nearly overflows, y is divided by 2^16, so log2 y is
        // 16 less.
        let large = y > 1e300;
        let y = if large { y * (1.0 / 65_536.0) } else { y };
        let (e, e_low, s) = stirling(y, y_low);
        let more = if large { 16.0 * y } else { 0.0 };
        let sum = e + more;
        let value = by_stirling(sum, (e - sum) + more + e_low, s, 0.0);
        if large { value * 65_536.0 } else { value }
    };
    if x.is_infinite() {
        return f64::INFINITY;
    }
    if right {
        return value;
    }
    // Γ(x) = π / (sin πd Γ(1 - x))
    let d = x - exact::f64::round_ties_even(x);
    let (v, _) = sine_terms(d);
    let (f, k) = split(fma(v, d.abs(), d.abs()), TWO_THIRDS);
    let log = fma(k, LN_2[0], f + fma(k, LN_2[1], log1p_rest(f)));
    if d == 0.0 {
        f64::INFINITY
    } else {
        -value - log
    }
}
