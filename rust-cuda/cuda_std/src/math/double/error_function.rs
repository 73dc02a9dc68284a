//! The error function, its kin and their inverses, as in single precision: `erfc` is
//! `exp(-x²) g(x) / (x + 3)` with a polynomial `g` in `1 / (x + 3)`.

use super::super::polynomial;
use super::exponential::{exp_small, reduce};
use super::{divide, fma, power_of_two, scale};

/// `erf(x) / x - 1` for `|x|` up to a half, by `u = x²`.
#[inline(always)]
fn near_zero(u: f64) -> f64 {
    polynomial!(u; 0.128_379_167_095_512_56, -0.376_126_389_031_832, 0.112_837_916_709_065_77, -2.686_617_062_735_799_7e-2, 5.223_977_289_029_365e-3, -8.548_290_662_218_497e-4, 1.205_299_933_358_558_3e-4, -1.483_751_338_018_105_5e-5, 1.464_147_712_330_476_2e-6)
}

/// `erfcx(a + low)`, from 0.48 to 2^1000, as the sum of two floats.
#[inline(always)]
fn scaled(a: f64, low: f64) -> (f64, f64) {
    let d = a + 3.0;
    let s = divide(1.0, d);
    // What 1 / (a + low + 3) is more than s, as a part of s.
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
    // Beyond, it vanishes.
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
    // The slope, 2/√π exp(-u), but for its last digits.
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
        /// 2^-300: far out the function is 1 / (√π x), and may be subnormal.
        const DOWN: f64 = f64::from_bits((1023 - 300) << 52);
        let factor = if a > 1e300 { DOWN } else { 1.0 };
        let (y, y_low) = scaled(a * factor, 0.0);
        if x > 0.0 {
            let value = (y + y_low) * factor;
            return if x == f64::INFINITY { 0.0 } else { value };
        }
        // 2 exp(h) - y, halved on the way.
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

/// The distribution function of the standard normal distribution, `erfc(-x/√2) / 2`.
#[inline]
pub fn normcdf(x: f64) -> f64 {
    let m = x.abs();
    // Beyond, the argument's low part would be none.
    let m = if m > 40.0 { 40.0 } else { m };
    let a = m * FRAC_1_SQRT_2[0];
    let low = fma(m, FRAC_1_SQRT_2[1], fma(m, FRAC_1_SQRT_2[0], -a));
    if m > 0.7 {
        let value = tail(a, low, -1);
        return if x > 0.0 { 1.0 - value } else { value };
    }
    // erfc(-a) of a positive x.
    let (a, low) = if x > 0.0 { (-a, -low) } else { (a, low) };
    let (value, rest) = one_less(a, low);
    0.5 * (value + rest)
}
