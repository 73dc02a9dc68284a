//! Compares single-precision mathematics with double precision.
//!
//! By default it takes a sample of the arguments; all of them, as for the table
//! in `docs/mathematics.md`, by
//! `cargo test --release -p halo-cuda-std --test mathematics -- --ignored --nocapture`.

use std::f32::consts;
use std::thread;

use cuda_std::{FloatExt, GpuFloat, intrinsics};

/// A function of one argument, its reference, and the allowed error in units in
/// the last place.
struct Function {
    name: &'static str,
    single: fn(f32) -> f32,
    double: fn(f64) -> f64,
    allowed: f64,
}

macro_rules! functions {
    ($($name:ident: $single:expr, $double:expr, $allowed:literal;)*) => {
        &[$(Function {
            name: stringify!($name),
            single: $single,
            double: $double,
            allowed: $allowed,
        }),*]
    };
}

const FUNCTIONS: &[Function] = functions! {
    exp: GpuFloat::exp, f64::exp, 0.9;
    exp2: GpuFloat::exp2, f64::exp2, 0.9;
    // SAFETY: the function has no conditions.
    exp10: |x| unsafe { intrinsics::exp10f(x) }, libm::exp10, 1.05;
    exp_m1: GpuFloat::exp_m1, f64::exp_m1, 1.5;
    ln: GpuFloat::ln, f64::ln, 0.95;
    log2: GpuFloat::log2, f64::log2, 1.65;
    log10: GpuFloat::log10, f64::log10, 1.55;
    ln_1p: GpuFloat::ln_1p, f64::ln_1p, 1.7;
    sin: GpuFloat::sin, f64::sin, 1.6;
    cos: GpuFloat::cos, f64::cos, 1.6;
    tan: GpuFloat::tan, f64::tan, 1.4;
    tanh: GpuFloat::tanh, f64::tanh, 1.6;
    sinh: GpuFloat::sinh, f64::sinh, 2.0;
    cosh: GpuFloat::cosh, f64::cosh, 2.0;
    asin: GpuFloat::asin, f64::asin, 2.0;
    acos: GpuFloat::acos, f64::acos, 2.0;
    atan: GpuFloat::atan, f64::atan, 2.0;
    asinh: GpuFloat::asinh, libm::asinh, 2.0;
    // `libm`'s is not NaN far below 1.
    acosh: GpuFloat::acosh, |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 2.0;
    atanh: GpuFloat::atanh, libm::atanh, 2.0;
    cbrt: GpuFloat::cbrt, f64::cbrt, 1.0;
    rcbrt: FloatExt::rcbrt, |x| 1.0 / x.cbrt(), 1.0;
    sinpi: FloatExt::sinpi, FloatExt::sinpi, 1.2;
    cospi: FloatExt::cospi, FloatExt::cospi, 1.2;
    erf: FloatExt::error_function, libm::erf, 1.3;
    erfc: FloatExt::complementary_error_function, libm::erfc, 2.0;
    erfcx: FloatExt::scaled_complementary_error_function,
        FloatExt::scaled_complementary_error_function, 2.0;
    // SAFETY: the function has no conditions.
    erfinv: |x| unsafe { intrinsics::erfinvf(x) }, |x| unsafe { intrinsics::erfinv(x) }, 1.8;
    erfcinv: FloatExt::inv_complementary_error_function,
        FloatExt::inv_complementary_error_function, 1.9;
    normcdf: FloatExt::norm_cdf, FloatExt::norm_cdf, 2.0;
    // The median is +0.
    normcdfinv: FloatExt::inv_norm_cdf, |p| p.inv_norm_cdf() + 0.0, 2.0;
    j0: FloatExt::j0, pxfm::f_j0, 2.0;
    j1: FloatExt::j1, |x| if x.is_infinite() { 0_f64.copysign(x) } else { pxfm::f_j1(x) }, 2.0;
    y0: FloatExt::y0, pxfm::f_y0, 2.0;
    y1: FloatExt::y1, pxfm::f_y1, 2.0;
    lgamma: FloatExt::log_gamma, libm::lgamma, 2.0;
    tgamma: FloatExt::gamma, libm::tgamma, 2.0;
    // SAFETY: the function has no conditions.
    frsqrt_rn: |x| unsafe { intrinsics::frsqrt_rn(x) }, |x| 1.0 / x.sqrt(), 0.501;
};

/// The distance of `value` from `exact`, in units in the last place of an `f32`
/// there. The largest number and infinity are one unit apart, as if the numbers
/// continued.
fn error(value: f32, exact: f64) -> f64 {
    const BEYOND: f64 = 340_282_366_920_938_463_463_374_607_431_768_211_456.0;
    if value.is_nan() || exact.is_nan() {
        return if value.is_nan() && exact.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    // The sign of a zero counts, and infinity must be exact.
    let wrong_sign = value.is_sign_negative() != exact.is_sign_negative();
    let wrong_zero = exact == 0.0 && value != 0.0;
    if wrong_sign || wrong_zero || (exact.is_infinite() && value.is_finite()) {
        return f64::INFINITY;
    }
    let value = f64::from(value).clamp(-BEYOND, BEYOND);
    let exact = exact.clamp(-BEYOND, BEYOND);
    let exponent = (exact.abs().to_bits() >> 52).clamp(1023 - 126, 1023 + 127);
    (value - exact).abs() / f64::from_bits((exponent - 23) << 52)
}

/// The largest error over every `stride`th bit pattern from `first`, and its
/// argument.
fn largest(function: &Function, first: u32, last: u32, stride: usize) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    for bits in (first..=last).step_by(stride) {
        let x = f32::from_bits(bits);
        let error = error((function.single)(x), (function.double)(x.into()));
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

fn check(function: &Function, (error, x): (f64, f32)) {
    assert!(
        error <= function.allowed,
        "{}({x:e}) = {:e}, not {:e}: off by {error} units in the last place",
        function.name,
        (function.single)(x),
        (function.double)(x.into()),
    );
}

#[test]
fn a_sample_of_the_arguments() {
    for function in FUNCTIONS {
        // A prime, so that the low bits vary.
        check(function, largest(function, 0, u32::MAX, 20_011));
    }
}

#[test]
fn arguments_about_special_ones() {
    let centres = [
        0.0,
        f32::MIN_POSITIVE,
        6e-8,
        0.5,
        0.55,
        0.7,
        0.6,
        0.92,
        consts::LN_2,
        1.0,
        1.25,
        1.36,
        1.6,
        consts::FRAC_PI_2,
        consts::PI,
        2.0,
        // Zeros of the gamma function's logarithm, and where its formulas meet.
        2.35,
        2.457_024_8,
        2.5,
        2.66,
        2.747_682_6,
        2.84,
        3.0,
        3.143_581,
        3.955_294_3,
        4.0,
        4.991_544_6,
        9.999_999,
        10.5,
        // Zeros of Bessel functions, and where their formulas meet.
        0.893_577,
        2.404_825_5,
        3.831_706,
        5.520_078,
        25.9,
        25.903_671,
        4567.893,
        9.0,
        10.0,
        17.0,
        35.040_096,
        38.5,
        45.0,
        88.72,
        89.0,
        104.0,
        128.0,
        150.0,
        131_072.0,
        f32::MAX,
    ];
    for function in FUNCTIONS {
        for centre in centres {
            let bits = f32::to_bits(centre);
            for sign in [0, 1 << 31] {
                let first = bits.saturating_sub(500) | sign;
                check(function, largest(function, first, first + 1000, 1));
            }
        }
        for x in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN] {
            check(function, largest(function, x.to_bits(), x.to_bits(), 1));
        }
    }
}

#[test]
#[ignore = "every function of every argument: hours without optimisation"]
fn all_arguments() {
    let threads = thread::available_parallelism().map_or(2, usize::from) as u32;
    let share = u32::MAX / threads;
    for function in FUNCTIONS {
        let worst = thread::scope(|scope| {
            let shares: Vec<_> = (0..=threads)
                .map(|nth| {
                    let first = nth * share;
                    let last = first.saturating_add(share - 1);
                    scope.spawn(move || largest(function, first, last, 1))
                })
                .collect();
            shares
                .into_iter()
                .map(|share| share.join().expect("a share"))
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .expect("a share at least")
        });
        println!("{:8} {:.4} at {:e}", function.name, worst.0, worst.1);
        check(function, worst);
    }
}

/// Compares higher orders with double precision.
#[test]
fn bessel_functions_of_higher_order() {
    for order in [-7, -2, -1, 0, 1, 2, 3, 10, 40] {
        for i in 1..4000 {
            let x = 0.017 * i as f32;
            for (value, exact) in [
                (x.jn(order), f64::from(x).jn(order)),
                ((-x).jn(order), f64::from(-x).jn(order)),
                (x.yn(order), f64::from(x).yn(order)),
            ] {
                // The recurrence loses accuracy where the result is small
                // beside its neighbours.
                let scale = exact.abs().max(0.8 / f64::from(x).sqrt());
                let scale =
                    if exact.abs() < 1e-3 && x < 40.0 && f64::from(x) < f64::from(order.abs()) {
                        exact.abs()
                    } else {
                        scale
                    };
                let close = (f64::from(value) - exact).abs() <= 1e-5 * scale + 1e-44;
                assert!(
                    close || exact.abs() > f64::from(f32::MAX) && value.is_infinite(),
                    "order {order} of {x}: {value:e}, not {exact:e}"
                );
            }
        }
        for x in [0.0, f32::INFINITY, f32::NAN, -1.0] {
            check_special(order, x);
        }
    }
}

fn check_special(order: i32, x: f32) {
    let even = order % 2 == 0;
    let (first, second) = (x.jn(order), x.yn(order));
    if x.is_nan() {
        assert!(first.is_nan() && second.is_nan(), "{order}");
    } else if x < 0.0 {
        assert!(first.is_finite() && second.is_nan(), "{order}");
    } else if x == 0.0 {
        assert_eq!(first, if order == 0 { 1.0 } else { 0.0 }, "{order}");
        let sign = if order < 0 && !even { 1.0 } else { -1.0 };
        assert_eq!(second, sign * f32::INFINITY, "{order}");
    } else {
        assert_eq!((first, second), (0.0, 0.0), "{order}");
    }
}

#[test]
fn sine_and_cosine_together_are_sine_and_cosine() {
    for bits in (0..=u32::MAX).step_by(100_003) {
        let x = f32::from_bits(bits);
        let (sin, cos) = GpuFloat::sin_cos(x);
        let bits = |x: f32| if x.is_nan() { 0 } else { x.to_bits() };
        assert_eq!(bits(sin), bits(GpuFloat::sin(x)), "sin({x:e})");
        assert_eq!(bits(cos), bits(GpuFloat::cos(x)), "cos({x:e})");
    }
}

/// An endless sequence of numbers, the same each time (G. Marsaglia's
/// xorshift).
fn random() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[test]
fn powers() {
    let mut next = random();
    for i in 0..1_000_000 {
        let bits = next();
        // A number from 0 to 1.
        let fraction = (bits >> 40) as f32 / 16_777_216.0;
        let (x, y) = match i % 3 {
            // Any two numbers.
            0 => (
                f32::from_bits(bits as u32),
                f32::from_bits((bits >> 32) as u32),
            ),
            // A result that is mostly neither 0 nor infinite.
            1 => {
                let x = f32::from_bits(bits as u32 & 0x7fff_ffff);
                (x, (fraction - 0.5) * 310.0 / x.log2())
            }
            // The same for numbers about 1.
            _ => {
                let x = 1.0 + (bits as u32 as f32 / 4_294_967_296.0 - 0.5) * 0.1;
                (x, (fraction - 0.5) * 310.0 / x.log2())
            }
        };
        check_pair("powf", (x, y), GpuFloat::powf, f64::powf, 1.0);
    }
}

#[test]
fn angles_and_lengths() {
    let mut next = random();
    for i in 0..1_000_000 {
        let bits = next();
        let x = f32::from_bits(bits as u32);
        let y = if i % 2 == 0 {
            f32::from_bits((bits >> 32) as u32)
        } else {
            // A number of about the size of x.
            x * ((bits >> 40) as f32 / 4_194_304.0 - 2.0)
        };
        check_pair("atan2", (x, y), GpuFloat::atan2, f64::atan2, 2.0);
        check_pair("hypot", (x, y), GpuFloat::hypot, f64::hypot, 1.5);
    }
    for x in SPECIAL.into_iter().flat_map(|x| [x, -x]) {
        for y in SPECIAL.into_iter().flat_map(|y| [y, -y]) {
            check_pair("atan2", (x, y), GpuFloat::atan2, f64::atan2, 2.0);
            check_pair("hypot", (x, y), GpuFloat::hypot, f64::hypot, 1.5);
        }
    }
}

fn check_pair(
    name: &str,
    (x, y): (f32, f32),
    single: fn(f32, f32) -> f32,
    double: fn(f64, f64) -> f64,
    allowed: f64,
) {
    let (value, exact) = (single(x, y), double(x.into(), y.into()));
    let error = error(value, exact);
    assert!(
        error <= allowed,
        "{name}({x:e}, {y:e}) = {value:e}, not {exact:e}: off by {error}"
    );
}

const SPECIAL: [f32; 13] = [
    0.0,
    1e-40,
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    8_388_607.5,
    16_777_215.0,
    16_777_216.0,
    f32::MAX,
    f32::INFINITY,
    f32::NAN,
];

#[test]
fn special_powers() {
    for x in SPECIAL.into_iter().flat_map(|x| [x, -x]) {
        for y in SPECIAL.into_iter().flat_map(|y| [y, -y]) {
            check_pair("powf", (x, y), GpuFloat::powf, f64::powf, 1.0);
        }
    }
}
