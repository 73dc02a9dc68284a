//! The error function, functions related to it, and their inverses, as in single precision: `erfc`
//! is `exp(-x²) g(x) / (x + 3)` with a polynomial `g` in `1 / (x + 3)`, the inverses are
//! polynomials in `w = -ln(1 - x²)` and in its square root.

use super::super::alike::inverse_of_tail;
use super::super::polynomial;
use super::exponential::{exp_small, reduce};
use super::{divide, fma, logarithm::log, power_of_two, root, scale};

/// `erf(x) / x - 1` for `|x|` up to a half, in terms of `u = x²`.
#[inline(always)]
fn near_zero(u: f64) -> f64 {
    polynomial!(u; 0.128_379_167_095_512_56, -0.376_126_389_031_832, 0.112_837_916_709_065_77, -2.686_617_062_735_799_7e-2, 5.223_977_289_029_365e-3, -8.548_290_662_218_497e-4, 1.205_299_933_358_558_3e-4, -1.483_751_338_018_105_5e-5, 1.464_147_712_330_476_2e-6)
}

/// `erfcx(a + low)`, from 0.48 to 2^1000, as the sum of two floats.
#[inline(always)]
fn scaled(a: f64, low: f64) -> (f64, f64) {
    let d = a + 3.0;
    let s = divide(1.0, d);
    // The relative difference of 1 / (a + low + 3) from s.
    let rest = fma(-s, (a - (d - 3.0)) + low, fma(-s, d, 1.0));
    let t = s - 0.140_625;
    let r = polynomial!(t; 16.602_380_983_659_56, 52.346_390_525_376_11, 127.661_570_338_544_32, 206.402_633_151_160_73, 77.313_637_182_296_53, -604.450_786_864_487, -1_353.459_900_593_724_6, 846.577_826_372_834_4, 7_760.732_480_220_518, 2_522.984_794_275_682_4, -43_096.280_513_035_65, -35_466.925_846_736_48, 269_536.149_019_450_6, 258_110.233_619_383_16, -1_933_747.099_835_029_6, -1_353_373.872_836_174_2, 14_825_589.746_103_192, 2_449_640.235_092_385, -101_843_707.230_842_52, 44_774_415.477_773_21, 427_851_656.223_073_07, -414_061_803.556_203_7);
    const FIRST: [f64; 2] = [0.949_270_791_828_202, -2.328_741_356_571_414_7e-17];
    const SECOND: f64 = 4.319_663_248_221_306;
    let q = fma(r, t, SECOND);
    let q_low = fma(r, t, SECOND - q);
    let p = fma(q, t, FIRST[0]);
    let p_low = fma(q_low, t, FIRST[1]) + fma(q, t, FIRST[0] - p);
    let p_low = fma(q, s * rest, p_low);
    let y = p * s;
    (y, fma(y, rest, fma(p_low, s, fma(p, s, -y))))
}

/// `2^shift erfc(a + low)`, for `a` from 0.48 on; `low` is small.
#[inline(always)]
fn tail(a: f64, low: f64, shift: i32) -> f64 {
    // Beyond 27.5 the result is 0.
    let a = if a < 27.5 { a } else { 27.5 };
    let (y, y_low) = scaled(a, low);
    let h = a * a;
    let h_low = fma(2.0 * a, low, fma(a, a, -h));
    let more = fma(-y, h_low, y_low);
    let (r, n) = reduce(-h);
    let w = exp_small(r);
    scale(y + fma(y, w, fma(more, w, more)), n.wrapping_add(shift))
}

/// `1 - erf(x + low)` for `|x|` up to a half, as the sum of two floats.
#[inline(always)]
fn one_less(x: f64, low: f64) -> (f64, f64) {
    let u = x * x;
    let difference = 1.0 - x;
    // The slope, -2/√π exp(-u), without its last digits.
    let low = fma(
        low,
        u - core::f64::consts::FRAC_2_SQRT_PI,
        (1.0 - difference) - x,
    );
    (difference, fma(-near_zero(u), x, low))
}

/// The error function.
#[inline]
pub fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a > 0.5 {
        return (1.0 - tail(a, 0.0, 0)).copysign(x);
    }
    fma(near_zero(x * x), x, x)
}

/// One minus the error function.
#[inline]
pub fn erfc(x: f64) -> f64 {
    let a = x.abs();
    if a > 0.5 {
        let value = tail(a, 0.0, 0);
        return if x < 0.0 { 2.0 - value } else { value };
    }
    let (value, low) = one_less(x, 0.0);
    value + low
}

/// `exp(x²) erfc(x)`.
#[inline]
pub fn erfcx(x: f64) -> f64 {
    let a = x.abs();
    let h = x * x;
    let h_low = fma(x, x, -h);
    if a > 0.5 {
        /// 2^-300: for large `a` the function is 1 / (√π a), and may be subnormal.
        const DOWN: f64 = f64::from_bits((1023 - 300) << 52);
        let factor = if a > 1e300 { DOWN } else { 1.0 };
        let (y, y_low) = scaled(a * factor, 0.0);
        if x > 0.0 {
            let value = (y + y_low) * factor;
            return if x == f64::INFINITY { 0.0 } else { value };
        }
        // 2 exp(h) - y, computed as twice its half.
        if h > 709.3 {
            return f64::INFINITY;
        }
        let (r, n) = reduce(h);
        let w = exp_small(r);
        let half = power_of_two(n);
        let more = fma(w, h_low, h_low);
        let low = fma(half, more, -0.5 * y_low);
        return 2.0 * (half + (fma(half, w, -0.5 * y) + low));
    }
    let (y, y_low) = one_less(x, 0.0);
    let w = exp_small(h);
    let more = fma(y, h_low, y_low);
    y + fma(y, w, fma(more, w, more))
}

/// `1/√2` as the sum of two floats.
const FRAC_1_SQRT_2: [f64; 2] = [core::f64::consts::FRAC_1_SQRT_2, -4.833_646_656_726_457e-17];

/// The cumulative distribution function of the standard normal distribution, `erfc(-x/√2) / 2`.
#[inline]
pub fn normcdf(x: f64) -> f64 {
    let m = x.abs();
    // For an infinite argument `low` would be NaN.
    let m = if m > 40.0 { 40.0 } else { m };
    let a = m * FRAC_1_SQRT_2[0];
    let low = fma(m, FRAC_1_SQRT_2[1], fma(m, FRAC_1_SQRT_2[0], -a));
    if m > 0.7 {
        let value = tail(a, low, -1);
        return if x > 0.0 { 1.0 - value } else { value };
    }
    // For positive x: erfc(-a).
    let (a, low) = if x > 0.0 { (-a, -low) } else { (a, low) };
    let (value, rest) = one_less(a, low);
    0.5 * (value + rest)
}

/// A polynomial in `t` as the sum of two floats; the first coefficient is such a sum.
macro_rules! exact_polynomial {
    ($t:ident; $first:expr, $($rest:expr),+) => {{
        let rest = polynomial!($t; $($rest),+);
        let [first, low] = $first;
        let value = fma(rest, $t, first);
        (value, fma(rest, $t, first - value) + low)
    }};
}

/// The product of two sums of two floats, as such a sum.
#[inline(always)]
fn product((a, a_low): (f64, f64), (b, b_low): (f64, f64)) -> (f64, f64) {
    let more = fma(a_low, b, a * b_low);
    let value = fma(a, b, more);
    (value, fma(a, b, -value) + more)
}

/// `erfinv(x + low)`, with `w = -ln(1 - x²)`, as the sum of two floats: `x` times a polynomial in
/// `w`, and farther out `√w` times one in `√w` or `1/√w`. Only [`erfcinv`] has a `w` above 37.
#[inline(always)]
fn inverse(w: f64, x: f64, low: f64) -> (f64, f64) {
    if w <= 5.0 {
        let t = w - 2.5;
        let p = exact_polynomial!(t; [1.501_409_351_110_792, -6.545_446_083_747_78e-17], 0.246_640_276_744_167, -4.177_317_724_383_612e-3, -1.252_707_907_811_014e-3, 2.182_502_643_439_841_7e-4, -4.996_079_598_912_477_5e-6, -3.416_619_596_370_965e-6, 4.787_252_186_223_754e-7, 1.341_680_350_462_235_2e-8, -1.086_116_902_407_895_6e-8, 9.073_038_381_578_163e-10, 1.196_070_331_460_531_6e-10, -3.110_287_515_809_560_5e-11, 9.115_512_536_787_834e-13, 5.356_609_289_003_027e-13, -7.612_362_181_479_517e-14, -2.886_252_516_488_238e-15, 1.896_338_616_111_548_6e-15, -1.360_026_787_062_766_2e-16, -2.680_080_908_686_672_2e-17, 4.867_637_491_598_216_5e-18, 1.692_409_188_947_379_7e-19, -6.768_663_954_746_381e-20);
        return product(p, (x, low));
    }
    let s = root(w);
    let inverse = divide(1.0, s);
    let p = if w <= 16.0 {
        let t = s - 3.125;
        exact_polynomial!(t; [0.946_635_282_787_566_5, 4.230_219_648_436_75e-17], 1.842_725_955_656_791_5e-2, -4.087_288_020_005_871e-3, 3.769_342_186_968_69e-4, 1.990_682_691_312_346_9e-4, -1.382_151_434_079_051_4e-4, 4.497_008_310_714_942e-5, -3.577_565_208_728_791_7e-6, -5.127_504_348_275_283e-6, 3.223_128_066_274_41e-6, -7.613_569_898_076_602e-7, -1.756_154_439_770_961_2e-7, 2.167_202_511_518_874_4e-7, -7.442_976_398_279_074e-8, -1.205_437_047_800_581_8e-9, 1.342_925_610_753_699e-8, -6.250_876_216_335_283e-9, 3.670_803_839_031_892_7e-10, 9.034_839_865_859_195e-10, -2.737_316_834_015_355_6e-10, -2.092_000_877_425_881_4e-11)
    } else if w <= 64.0 {
        let t = s - 6.0;
        exact_polynomial!(t; [0.976_652_190_657_707_4, 4.246_305_964_638_258e-17], 5.492_155_240_284_981e-3, -9.941_658_663_720_12e-4, 1.585_401_481_421_541e-4, -2.282_693_183_367_76e-5, 2.911_758_666_122_668_6e-6, -3.010_277_472_134_849_4e-7, 1.535_840_334_794_994_5e-8, 3.670_519_213_230_802_7e-9, -1.684_627_052_200_734_4e-9, 4.600_088_631_115_162_7e-10, -1.058_548_007_700_624_1e-10, 2.226_347_080_331_813_4e-11, -4.412_096_315_287_710_6e-12, 8.470_594_127_511_361e-13, -1.618_680_492_818_613e-13, 2.606_165_923_321_749e-14, -2.065_706_081_661_051_7e-15, 6.161_133_891_585_847e-16, -4.021_761_797_022_392_3e-16, -4.144_903_469_252_096_6e-17, 6.975_645_884_740_563e-17, -1.186_618_961_010_440_5e-17)
    } else {
        let t = inverse - 0.078_125;
        exact_polynomial!(t; [0.992_574_102_555_482_6, 1.464_132_742_230_165_7e-17], -0.151_233_868_906_409_55, -0.471_424_326_699_907_36, 2.106_095_326_273_273, -6.822_395_378_355_598, 34.585_707_046_213_16, -223.984_096_635_600_03, 1_640.637_965_126_447_9, -13_117.058_638_096_792, 111_862.495_940_217_86, -1_002_932.060_641_639_7, 9_371_976.842_687_406, -88_738_557.068_141_16, 832_676_201.340_658_5, -9_332_812_225.747_097, 123_952_404_803.536_5, -832_135_379_363.536, -3_470_835_325_545.486_3, -83_344_573_790_688.52, 3_888_380_431_624_396.5, -2.882_802_178_523_912_4e16)
    };
    // The rounding error of the square root.
    let s_low = fma(-s, s, w) * (0.5 * inverse);
    let (value, low) = product(p, (s, s_low));
    if x < 0.0 {
        (-value, -low)
    } else {
        (value, low)
    }
}

/// The inverse of the error function.
#[inline]
pub fn erfinv(x: f64) -> f64 {
    let (value, _) = inverse(-log(fma(-x, x, 1.0)), x, 0.0);
    if x.abs() == 1.0 {
        f64::INFINITY.copysign(x)
    } else if x == 0.0 {
        // Zeros keep their sign.
        x
    } else {
        value
    }
}

inverse_of_tail!(f64: erfcinv; log);

/// The inverse of [`normcdf`], `-√2 erfcinv(2 p)`.
#[inline]
pub fn normcdfinv(p: f64) -> f64 {
    const SQRT_2: [f64; 2] = [core::f64::consts::SQRT_2, -9.667_293_313_452_913e-17];
    let (z, low) = inverse_of_tail(2.0 * p);
    if z.is_infinite() {
        return -z;
    }
    // The quantile of a half is +0.
    0.0 - fma(z, SQRT_2[0], fma(low, SQRT_2[0], z * SQRT_2[1]))
}
