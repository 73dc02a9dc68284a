//! Hyperbolic functions and their inverses.

use super::super::polynomial;
use super::exponential::{limited, reduce};
use super::logarithm::ln_1p_sum;
use super::{divide, fma, power_of_two, root};

/// `(s, rising, t, falling)` with `s (1 + rising) = e^a / 4` and `t (1 + falling) =
/// e^-a / 4`, for `a` from 0 to 710.5. Both are within a half of their powers of two.
/// Where `e^-a` does not matter, it is something small.
#[inline(always)]
fn quarters(a: f64) -> (f64, f64, f64, f64) {
    let (r, n) = reduce(limited(a, 0.0, 710.5));
    let u = r * r;
    let even = polynomial!(u; 0.5, 4.166_666_666_666_668_5e-2, 1.388_888_888_887_331_8e-3, 2.480_158_734_906_903_8e-5, 2.755_725_198_188_735e-7, 2.092_170_648_345_785_2e-9)
        * u;
    let odd = polynomial!(u; 0.166_666_666_666_666_77, 8.333_333_333_321_452e-3, 1.984_126_988_652_321_7e-4, 2.755_724_384_995_077e-6, 2.510_915_136_667_881e-8);
    let odd = fma(odd * u, r, r);
    let (s, t) = (power_of_two(n - 2), power_of_two((-2 - n).max(-1022)));
    (s, even + odd, t, even - odd)
}

/// The hyperbolic sine.
#[inline]
pub fn sinh(x: f64) -> f64 {
    let a = x.abs();
    if a > 1.0 {
        let (s, rising, t, falling) = quarters(a);
        let far = s + fma(s, rising, fma(-t, falling, -t));
        return (2.0 * far).copysign(x);
    }
    let u = x * x;
    let p = polynomial!(u; 0.166_666_666_666_666_69, 8.333_333_333_332_969e-3, 1.984_126_984_153_287e-4, 2.755_731_912_978_804e-6, 2.505_212_695_460_361_2e-8, 1.605_699_271_302_711e-10, 7.766_135_253_297_47e-13);
    fma(p * u, x, x)
}

/// The hyperbolic cosine.
#[inline]
pub fn cosh(x: f64) -> f64 {
    let (s, rising, t, falling) = quarters(x.abs());
    2.0 * (s + fma(s, rising, fma(t, falling, t)))
}

/// `sqrt(a² + b)` and what rounding took from it, for `a` up to 2^52 and `b` up to 2^53.
#[inline(always)]
fn root_of_sum(a: f64, b: f64) -> (f64, f64) {
    let square = a * a;
    let square_low = fma(a, a, -square);
    let (more, less) = if square > b { (square, b) } else { (b, square) };
    let sum = more + less;
    let low = (more - sum) + less + square_low;
    let s = root(sum);
    (s, (fma(-s, s, sum) + low) * divide(0.5, s))
}

/// From here on, `x` and `sqrt(x² ± 1)` are the same for a logarithm.
const LARGE: f64 = 4_503_599_627_370_496.0;

/// The inverse hyperbolic sine: `ln(1 + (a + (sqrt(1 + a²) - 1)))`, all of it in sums
/// of two floats.
#[inline]
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let (s, s_low) = root_of_sum(if a > LARGE { LARGE } else { a }, 1.0);
    let sum = a + (s - 1.0);
    let low = (a - sum) + (s - 1.0) + s_low;
    // ln 2a = ln 2 + ln(1 + (a - 1))
    let (sum, low, twos) = if a > LARGE {
        (a, -1.0, 1.0)
    } else {
        (sum, low, 0.0)
    };
    let value = ln_1p_sum(sum, low, twos);
    let value = if a < 1e-16 { a } else { value };
    if a == f64::INFINITY { a } else { value }.copysign(x)
}

/// The inverse hyperbolic cosine: `ln(1 + (t + sqrt(t² + 2t)))` with `t = x - 1`.
#[inline]
pub fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    let small = if t > LARGE { LARGE } else { t };
    let (s, s_low) = root_of_sum(small, 2.0 * small);
    let sum = s + t;
    let low = (s - sum) + t + s_low;
    let (sum, low, twos) = if t > LARGE {
        (x, -1.0, 1.0)
    } else {
        (sum, low, 0.0)
    };
    let value = ln_1p_sum(sum, low, twos);
    let value = if x > 1.0 { value } else { f64::NAN };
    let value = if x == 1.0 { 0.0 } else { value };
    if x == f64::INFINITY { x } else { value }
}

/// The inverse hyperbolic tangent: half of `ln(1 + 2a / (1 - a))`.
#[inline]
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    let below = 1.0 - a;
    let below_low = (1.0 - below) - a;
    let inverse = divide(1.0, below);
    let quotient = 2.0 * a * inverse;
    let low = fma(-quotient, below_low, fma(-quotient, below, 2.0 * a)) * inverse;
    let value = 0.5 * ln_1p_sum(quotient, low, 0.0);
    let value = if a < 1e-16 { a } else { value };
    let value = if a == 1.0 { f64::INFINITY } else { value };
    if a > 1.0 { f64::NAN } else { value.copysign(x) }
}
