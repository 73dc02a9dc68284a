//! Arcsine, arccosine and arctangent: odd polynomials, after a reduction of the
//! argument to where they converge, as in single precision.

use super::super::alike::inverse_trigonometric;
use super::super::polynomial;
use super::{FRAC_PI_2_LOW, divide, fma, root};
use core::f64::consts::{FRAC_PI_2, PI};

/// `(t, rest)` with `asin(t) = t + rest`: `t` is `a` up to a half. Above, it is
/// `sqrt((1 - a) / 2)`, and `asin a = π/2 - 2 asin t`.
#[inline(always)]
fn asin_parts(a: f64) -> (f64, f64) {
    let square = 0.5 - 0.5 * a;
    let (t, u) = if a > 0.5 {
        (root(square), square)
    } else {
        (a, a * a)
    };
    let p = polynomial!(u; 0.166_666_666_666_667_6, 7.499_999_999_970_9e-2, 4.464_285_717_451_117e-2, 3.038_194_271_279_936_7e-2, 2.237_221_484_306_005_7e-2, 1.735_161_464_467_33e-2, 1.398_078_881_288_696_7e-2, 1.139_917_224_063_697e-2, 1.077_879_818_962_212_3e-2, 3.711_880_302_058_073_3e-3, 2.169_420_956_786_668_3e-2, -2.098_045_425_595_665e-2, 3.261_707_221_817_407e-2);
    (t, t * u * p)
}

/// `atan(t) - t` for `t` from 0 to 1.
#[inline(always)]
fn atan_rest(t: f64) -> f64 {
    let u = t * t;
    let p = polynomial!(u; -0.333_333_333_333_330_65, 0.199_999_999_999_510_32, -0.142_857_142_825_525_8, 0.111_111_110_064_039_1, -9.090_906_992_482_56e-2, 7.692_279_720_934_367e-2, -6.666_403_117_768_452e-2, 5.880_522_351_403_345e-2, -5.253_494_686_874_632e-2, 4.722_242_449_513_2e-2, -4.218_972_604_149_226e-2, 3.663_775_376_527_205e-2, -2.989_732_978_989_435e-2, 2.197_689_592_925_277_5e-2, -1.389_311_510_163_988_2e-2, 7.191_261_421_980_934e-3, -2.882_232_952_584_372e-3, 8.303_772_737_156_95e-4, -1.519_569_773_484_499_4e-4, 1.320_471_824_052_301_7e-5);
    t * u * p
}

inverse_trigonometric!(f64: asin, acos, atan, atan2);
