//! Hyperbolic functions and their inverses.

use super::super::alike::hyperbolic;
use super::super::polynomial;
use super::exponential::{limited, reduce};
use super::logarithm::ln_1p_sum;
use super::{divide, fma, power_of_two, root};

/// `(s, rising, t, falling)` with `s (1 + rising) = e^a / 4` and
/// `t (1 + falling) = e^-a / 4`, for `a` from 0 to 710.5; `s` and `t` are powers of
/// two, and `|rising|` and `|falling|` are below a half. Where `e^-a` is
/// negligible, `t` is merely small.
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

hyperbolic!(f64: cosh, asinh, acosh, atanh; large 4_503_599_627_370_496.0, small 1e-16);
