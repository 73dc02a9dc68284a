//! Compares double-precision mathematics with `pxfm`, whose results are within 0.52 units in the
//! last place, and with `libm` and C99's Annex F where a result is exact.
//!
//! By default it takes some arguments of every exponent; ten million of each function by
//! `cargo test --release -p halo-cuda-std --test double_precision -- --ignored --nocapture`.

use cuda_std::{FloatExt, GpuFloat, intrinsics};

/// A function of one argument, its reference, the allowed distance from the reference in
/// representable numbers, and an interval where it is neither constant nor trivial.
struct Function {
    name: &'static str,
    ours: fn(f64) -> f64,
    reference: fn(f64) -> f64,
    allowed: u64,
    between: (f64, f64),
}

macro_rules! functions {
    ($($name:ident: $ours:expr, $reference:expr, $allowed:literal, $low:literal to $high:literal;)*) => {
        &[$(Function {
            name: stringify!($name),
            ours: $ours,
            reference: $reference,
            allowed: $allowed,
            between: ($low, $high),
        }),*]
    };
}

// A largest error below one and a half units in the last place allows the neighbour of the nearest
// number; one below two and a half, the number after it.
const FUNCTIONS: &[Function] = functions! {
    exp: GpuFloat::exp, pxfm::f_exp, 1, -746.0 to 710.0;
    exp2: GpuFloat::exp2, pxfm::f_exp2, 1, -1076.0 to 1025.0;
    // SAFETY: the function has no conditions.
    exp10: |x| unsafe { intrinsics::exp10(x) }, exp10, 1, -324.0 to 309.0;
    exp_m1: GpuFloat::exp_m1, pxfm::f_expm1, 2, -40.0 to 3.0;
    ln: GpuFloat::ln, pxfm::f_log, 1, 0.0 to 4.0;
    log2: GpuFloat::log2, pxfm::f_log2, 1, 0.0 to 4.0;
    log10: GpuFloat::log10, pxfm::f_log10, 1, 0.0 to 4.0;
    ln_1p: GpuFloat::ln_1p, pxfm::f_log1p, 1, -1.0 to 3.0;
    sin: GpuFloat::sin, pxfm::f_sin, 2, -2e6 to 2e6;
    cos: GpuFloat::cos, pxfm::f_cos, 2, -2e6 to 2e6;
    tan: GpuFloat::tan, pxfm::f_tan, 1, -2e6 to 2e6;
    tanh: GpuFloat::tanh, pxfm::f_tanh, 2, -22.0 to 22.0;
    sinh: GpuFloat::sinh, |x| pxfm::f_sinh(x).copysign(x), 1, -711.0 to 711.0;
    cosh: GpuFloat::cosh, pxfm::f_cosh, 1, -711.0 to 711.0;
    asin: GpuFloat::asin, pxfm::f_asin, 2, -1.0 to 1.0;
    acos: GpuFloat::acos, pxfm::f_acos, 1, -1.0 to 1.0;
    atan: GpuFloat::atan, pxfm::f_atan, 1, -8.0 to 8.0;
    asinh: GpuFloat::asinh, pxfm::f_asinh, 1, -8.0 to 8.0;
    acosh: GpuFloat::acosh, pxfm::f_acosh, 2, 1.0 to 9.0;
    atanh: GpuFloat::atanh, pxfm::f_atanh, 2, -1.0 to 1.0;
    cbrt: GpuFloat::cbrt, pxfm::f_cbrt, 1, -8.0 to 8.0;
    rcbrt: FloatExt::rcbrt, pxfm::f_rcbrt, 1, -8.0 to 8.0;
    // A zero has the sign of x, whereas IEEE 754 takes the sign of the sum.
    sinpi: FloatExt::sinpi, |x| { let s = pxfm::f_sinpi(x); if s == 0.0 { s.copysign(x) } else { s } },
        1, -3.0 to 3.0;
    cospi: FloatExt::cospi, |x| pxfm::f_cospi(x) + 0.0, 1, -3.0 to 3.0;
    erf: FloatExt::error_function, pxfm::f_erf, 1, -6.0 to 6.0;
    erfc: FloatExt::complementary_error_function, pxfm::f_erfc, 2, -6.0 to 28.0;
    erfcx: FloatExt::scaled_complementary_error_function, erfcx, 2, -27.0 to 50.0;
    normcdf: FloatExt::norm_cdf, normcdf, 3, -39.0 to 9.0;
    // SAFETY: the function has no conditions.
    erfinv: |x| unsafe { intrinsics::erfinv(x) }, |x| if x == 0.0 { x } else { pxfm::f_erfinv(x) },
        2, -1.0 to 1.0;
    j0: FloatExt::j0, pxfm::f_j0, 2, -60.0 to 60.0;
    j1: FloatExt::j1, |x| if x.is_infinite() { 0_f64.copysign(x) } else { pxfm::f_j1(x) }, 2, -60.0 to 60.0;
    y0: FloatExt::y0, pxfm::f_y0, 2, 0.0 to 60.0;
    y1: FloatExt::y1, pxfm::f_y1, 2, 0.0 to 60.0;
    tgamma: FloatExt::gamma, tgamma, 3, -180.0 to 172.0;
};

/// `exp10`, from `libm` where the result is subnormal: `pxfm`'s fails there.
fn exp10(x: f64) -> f64 {
    if x < -307.0 {
        libm::exp10(x)
    } else {
        pxfm::f_exp10(x)
    }
}

/// `erfcx`, with formulas where the result is extreme: `pxfm`'s is NaN there.
fn erfcx(x: f64) -> f64 {
    if x < -26.0 {
        let square = x * x;
        let low = f64::mul_add(x, x, -square);
        let half = pxfm::f_exp(square);
        if half.is_finite() {
            2.0 * f64::mul_add(half, low, half)
        } else {
            f64::INFINITY
        }
    } else if x > 1e100 {
        core::f64::consts::FRAC_2_SQRT_PI / 2.0 / x
    } else {
        pxfm::f_erfcx(x)
    }
}

/// `erfc(-x/√2) / 2`, corrected for the argument's rounding error: within one and a half units in
/// the last place.
fn normcdf(x: f64) -> f64 {
    const FACTOR: f64 = core::f64::consts::FRAC_1_SQRT_2;
    const FACTOR_LOW: f64 = -4.833_646_656_726_457e-17;
    let z = -x * FACTOR;
    let value = pxfm::f_erfc(z);
    if value == 0.0 || !z.is_finite() {
        return 0.5 * value;
    }
    let low = f64::mul_add(-x, FACTOR, -z) - x * FACTOR_LOW;
    let slope = -core::f64::consts::FRAC_2_SQRT_PI * pxfm::f_exp(-z * z);
    0.5 * f64::mul_add(slope, low, value)
}

/// `pxfm`'s function, with the sign of a zero and of a result that underflows, which `pxfm` loses.
fn tgamma(x: f64) -> f64 {
    if x == 0.0 {
        return x.recip();
    }
    let value = pxfm::f_tgamma(x);
    let odd = x.floor() % 2.0 != 0.0;
    if value == 0.0 && x < 0.0 {
        if odd { -0.0 } else { 0.0 }
    } else {
        value
    }
}

/// `pxfm`'s function, with the sign of a result that underflows, which `pxfm` loses.
fn atan2(y: f64, x: f64) -> f64 {
    pxfm::f_atan2(y, x).copysign(y)
}

/// The number of representable numbers from `value` to `exact`; signs of zeros count, and only NaN
/// is near NaN.
fn distance(value: f64, exact: f64) -> u64 {
    match (value.is_nan(), exact.is_nan()) {
        (true, true) => 0,
        (false, false) if value.is_sign_negative() == exact.is_sign_negative() => {
            value.to_bits().abs_diff(exact.to_bits())
        }
        _ => u64::MAX,
    }
}

/// An endless sequence of numbers, the same each time (G. Marsaglia's xorshift).
fn random() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// A number from 0 to 1.
fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / 9_007_199_254_740_992.0
}

impl Function {
    fn check(&self, x: f64) -> u64 {
        let (value, exact) = ((self.ours)(x), (self.reference)(x));
        let distance = distance(value, exact);
        assert!(
            distance <= self.allowed,
            "{}({x:e}) = {value:e}, not {exact:e}: {distance} numbers away",
            self.name
        );
        distance
    }

    /// Checks `each` arguments of each exponent and sign, and a thousand times as many between the
    /// limits; returns how many results are 0, 1, 2, and 3 or more numbers away from the reference.
    fn sample(&self, each: u32) -> [u64; 4] {
        let mut next = random();
        let mut away = [0; 4];
        let mut check = |x| away[self.check(x).min(3) as usize] += 1;
        for upper in 0..4096_u64 {
            for _ in 0..each {
                check(f64::from_bits(upper << 52 | next() >> 12));
            }
        }
        let (low, high) = self.between;
        for _ in 0..1000 * each {
            check(low + (high - low) * fraction(next()));
        }
        away
    }
}

#[test]
fn some_arguments_of_every_exponent() {
    for function in FUNCTIONS {
        function.sample(16);
    }
}

#[test]
#[ignore = "ten million arguments of every function: minutes with optimisation"]
fn many_arguments_of_every_exponent() {
    for function in FUNCTIONS {
        let away = function.sample(2000);
        println!("{:8} {away:?}", function.name);
    }
}

/// Arguments where functions are special, or change their formula.
const CENTRES: &[f64] = &[
    0.0,
    f64::MIN_POSITIVE,
    1e-16,
    1e-8,
    0.25,
    1.0 / 3.0,
    0.5,
    0.55,
    2.0 / 3.0,
    core::f64::consts::LN_2,
    core::f64::consts::FRAC_PI_4,
    1.0,
    core::f64::consts::SQRT_2,
    core::f64::consts::FRAC_PI_2,
    2.0,
    core::f64::consts::PI,
    4.0,
    5.5,
    6.0,
    20.0,
    26.5,
    27.25,
    36.7,
    38.5,
    308.254_715_559_916_75,
    323.6,
    708.396_418_532_264_1,
    709.782_712_893_384,
    710.475_860_073_943_9,
    745.133_219_101_941_2,
    1022.0,
    1024.0,
    1074.5,
    1_048_576.0,
    4_503_599_627_370_496.0,
    9_007_199_254_740_992.0,
    1.152_921_504_606_847e18,
    // Of all doubles the nearest to a multiple of π/2 (J.-M. Muller, "Elementary Functions").
    5.319_372_648_326_541e255,
    f64::MAX,
];

#[test]
fn arguments_about_special_ones() {
    let steps = -300..=300_i64;
    for function in FUNCTIONS {
        for &centre in CENTRES {
            for bits in steps
                .clone()
                .filter_map(|step| centre.to_bits().checked_add_signed(step))
            {
                function.check(f64::from_bits(bits));
                function.check(-f64::from_bits(bits));
            }
        }
        for x in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN] {
            function.check(x);
        }
        // Integers, halves, multiples of π/4, and the numbers next to them.
        for n in -1000..=1000 {
            for unit in [0.5, core::f64::consts::FRAC_PI_4] {
                let x = f64::from(n) * unit;
                for x in [x.next_down(), x, x.next_up()] {
                    function.check(x);
                }
            }
        }
    }
}

/// A function of two arguments, its reference, and the allowed distance from it.
type Pair = (&'static str, fn(f64, f64) -> f64, fn(f64, f64) -> f64, u64);

const PAIRS: &[Pair] = &[
    ("pow", GpuFloat::powf, f64::powf, 1),
    ("atan2", GpuFloat::atan2, atan2, 1),
    ("hypot", GpuFloat::hypot, pxfm::f_hypot, 2),
    ("fmod", fmod, |x, y| x % y, 0),
    ("remainder", remainder, libm::remainder, 0),
];

fn fmod(x: f64, y: f64) -> f64 {
    // SAFETY: the function has no conditions.
    unsafe { intrinsics::fmod(x, y) }
}

fn remainder(x: f64, y: f64) -> f64 {
    // SAFETY: the function has no conditions.
    unsafe { intrinsics::remainder(x, y) }
}

fn check_pair(&(name, ours, reference, allowed): &Pair, x: f64, y: f64) {
    let (value, exact) = (ours(x, y), reference(x, y));
    assert!(
        distance(value, exact) <= allowed,
        "{name}({x:e}, {y:e}) = {value:e}, not {exact:e}"
    );
}

/// Checks pairs of any two numbers, of numbers of similar magnitude, and pairs whose power is
/// neither 0 nor infinite, with any base and with one about 1.
fn sample_pairs(count: u32) {
    let mut next = random();
    for i in 0..count {
        let x = f64::from_bits(next());
        let y = match i % 3 {
            0 => f64::from_bits(next()),
            1 => x * (4.0 * fraction(next()) - 2.0),
            _ => x * f64::exp2((80.0 * fraction(next())).floor() - 40.0),
        };
        for pair in PAIRS {
            check_pair(pair, x, y);
        }
        let base = match i % 3 {
            0 => x.abs(),
            1 => 4.0 * fraction(next()),
            _ => 1.0 + (fraction(next()) - 0.5) * f64::exp2(-f64::from(i % 50)),
        };
        let exponent = 2200.0 * (fraction(next()) - 0.5) / base.log2();
        check_pair(&PAIRS[0], base, exponent);
    }
}

#[test]
fn pairs_of_arguments() {
    sample_pairs(200_000);
}

#[test]
#[ignore = "ten million pairs of arguments: a minute with optimisation"]
fn many_pairs_of_arguments() {
    sample_pairs(10_000_000);
}

const SPECIAL: [f64; 17] = [
    0.0,
    5e-324,
    1e-310,
    f64::MIN_POSITIVE,
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    1e-200,
    1e200,
    4_503_599_627_370_495.5,
    9_007_199_254_740_991.0,
    9_007_199_254_740_992.0,
    f64::MAX,
    f64::INFINITY,
    f64::NAN,
];

#[test]
fn pairs_of_special_arguments() {
    let signed = || SPECIAL.into_iter().flat_map(|x| [x, -x]);
    for (x, y) in signed().flat_map(|x| signed().map(move |y| (x, y))) {
        for pair in PAIRS {
            check_pair(pair, x, y);
        }
    }
}

/// The error is relative to the larger of 1 and the result; for positive arguments, of 1/100 and
/// the result.
#[test]
fn logarithms_of_the_gamma_function() {
    let mut next = random();
    for i in 0..500_000 {
        let x = if i % 2 == 0 {
            f64::from_bits(next())
        } else {
            60.0 * fraction(next()) - 40.0
        };
        let (value, exact) = (x.log_gamma(), libm::lgamma(x));
        if exact.is_nan() || exact.is_infinite() {
            assert_eq!(distance(value, exact), 0, "lgamma({x:e}) = {value:e}");
            continue;
        }
        let scale = if x > 0.0 {
            exact.abs().max(1e-2)
        } else {
            exact.abs().max(1.0)
        };
        let error = (value - exact).abs() / (scale * f64::EPSILON);
        assert!(
            error <= 24.0,
            "lgamma({x:e}) = {value:e}, not {exact:e}: {error}"
        );
    }
}

#[test]
fn bessel_functions_of_higher_order() {
    for order in [-3, 0, 1, 2, 5, 30] {
        for i in 1..2000 {
            let x = 0.037 * f64::from(i);
            for (value, exact) in [
                (x.jn(order), libm::jn(order, x)),
                (x.yn(order), libm::yn(order, x)),
            ] {
                let scale = exact.abs().max(if x > f64::from(order) {
                    x.sqrt().recip()
                } else {
                    0.0
                });
                let error = (value - exact).abs() / scale;
                assert!(
                    error <= 1e-12,
                    "order {order} of {x}: {value:e}, not {exact:e}"
                );
            }
        }
    }
}

/// `pxfm` has no inverse that is right for a small tail. So the tail of our result must be the
/// argument, within the change of the tail where the result changes by one and a half units.
#[test]
fn inverses_of_tails_invert() {
    let mut next = random();
    for upper in 0..1024_u64 {
        for _ in 0..200 {
            // From the least number to 1; from 1 to 2 for the exponent 0.
            let y = f64::from_bits(upper << 52 | next() >> 12);
            let x = y.inv_complementary_error_function();
            let z = (0.5 * y).inv_norm_cdf();
            // The relative change of the tail: -y erfc'(x) x / erfc(x).
            let slope = 2.0 * x * x + 2.0;
            let half_unit = f64::EPSILON.max(f64::from_bits(1) / y);
            for (again, what) in [
                (pxfm::f_erfc(x), "erfcinv"),
                (2.0 * normcdf(z), "normcdfinv"),
            ] {
                let error = (again - y).abs() / y;
                let allowed = (2.0 + slope) * half_unit;
                assert!(
                    error <= allowed,
                    "{what} of {y:e}: {error:e}, allowed {allowed:e}"
                );
            }
        }
    }
    for (y, expected) in [
        (0.0, f64::INFINITY),
        (2.0, f64::NEG_INFINITY),
        (1.0, 0.0),
        (-0.1, f64::NAN),
        (2.1, f64::NAN),
        (f64::NAN, f64::NAN),
    ] {
        let x = y.inv_complementary_error_function();
        assert_eq!(distance(x, expected), 0, "erfcinv({y}) = {x}");
        let z = (0.5 * y).inv_norm_cdf();
        assert_eq!(distance(z, 0.0 - expected), 0, "normcdfinv({y} / 2) = {z}");
    }
}

/// The rules of C99 for `pow`, in F.9.4.4.
#[test]
fn powers_that_annex_f_names() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let rules = [
        // (±0)^y for y < 0: an odd integer, or not.
        (0.0, -3.0, INF),
        (-0.0, -3.0, -INF),
        (0.0, -2.0, INF),
        (-0.0, -2.0, INF),
        (-0.0, -2.5, INF),
        (-0.0, -INF, INF),
        // (±0)^y, y > 0.
        (-0.0, 3.0, -0.0),
        (0.0, 3.0, 0.0),
        (-0.0, 2.0, 0.0),
        (-0.0, 2.5, 0.0),
        // Magnitude 1 to an infinite power.
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        // 1 to any power, and any number to the power ±0: even a NaN.
        (1.0, NAN, 1.0),
        (1.0, -INF, 1.0),
        (NAN, 0.0, 1.0),
        (NAN, -0.0, 1.0),
        (-INF, 0.0, 1.0),
        // A negative base with a non-integer exponent.
        (-2.0, 0.5, NAN),
        (-1.0, 1e-300, NAN),
        // Infinite powers.
        (0.5, -INF, INF),
        (-0.5, -INF, INF),
        (2.0, -INF, 0.0),
        (-2.0, -INF, 0.0),
        (0.5, INF, 0.0),
        (-0.5, INF, 0.0),
        (2.0, INF, INF),
        (-2.0, INF, INF),
        // Powers of infinity.
        (-INF, -3.0, -0.0),
        (-INF, -2.0, 0.0),
        (-INF, -2.5, 0.0),
        (-INF, 3.0, -INF),
        (-INF, 2.0, INF),
        (-INF, 2.5, INF),
        (INF, -0.5, 0.0),
        (INF, 0.5, INF),
        // NaN otherwise.
        (NAN, 1.0, NAN),
        (2.0, NAN, NAN),
    ];
    for (x, y, expected) in rules {
        let value = GpuFloat::powf(x, y);
        assert_eq!(distance(value, expected), 0, "pow({x}, {y}) = {value}");
    }
}

#[test]
fn sine_and_cosine_together_are_sine_and_cosine() {
    let mut next = random();
    for i in 0..300_000 {
        let x = match i % 3 {
            0 => f64::from_bits(next()),
            1 => 8.0 * fraction(next()) - 4.0,
            _ => 1e7 * fraction(next()),
        };
        let (sin, cos) = GpuFloat::sin_cos(x);
        assert_eq!(distance(sin, GpuFloat::sin(x)), 0, "sin({x:e})");
        assert_eq!(distance(cos, GpuFloat::cos(x)), 0, "cos({x:e})");
    }
}
