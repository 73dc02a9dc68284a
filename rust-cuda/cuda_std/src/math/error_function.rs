//! The error function, functions related to it, and their inverses.
//!
//! `erfc` is `exp(-x²) g(x) / (x + 2)` with a polynomial `g` in `1 / (x + 2)`; each factor carries
//! its rounding error. The inverses are polynomials in `w = -ln(1 - x²)`, and in `1/√w` far out, as
//! in M. Giles, "Approximating the erfinv function", 2010.

use super::alike::inverse_of_tail;
use super::exponential::{exp_small, reduce, reduce_terms};
use super::logarithm::{TWO_THIRDS, log1p_rest, split, split_normal};
use super::{divide, fma, fma_of_sum, polynomial, power_of_two, root, scale};
use core::f32::consts::{FRAC_2_SQRT_PI, LN_2};

/// `erf(x) / x - 1` for `|x|` up to 0.92, in terms of `u = x²`.
#[inline(always)]
fn near_zero(u: f32) -> f32 {
    polynomial!(u; 0.128_379_17, -0.376_126_3, 0.112_836_26, -2.685_573_1e-2, 5.192_402_3e-3, -8.049_679_5e-4, 7.995_944e-5)
}

/// The error function.
#[inline]
pub fn erff(x: f32) -> f32 {
    let near = fma(near_zero(x * x), x, x);
    // 1 - exp(-q) with a polynomial q; from 4 on the result is 1.
    let a = x.abs();
    let limited = if a < 4.0 { a } else { 4.0 };
    let q = polynomial!(limited; 1.772_908_7e-4, 1.127_750_5, 0.637_058, 0.104_039_09, -2.227_798_3e-2, 3.055_842_6e-3, -1.972_058_5e-4);
    let (r, n) = reduce(-q);
    let power = power_of_two(n);
    let far = 1.0 - fma(exp_small(r), power, power);
    // NaN takes the near branch, where zeros keep their sign.
    if a > 0.92 { far.copysign(x) } else { near }
}

/// `erfcx(a + low)`, from 0.45 on, as the sum of two floats.
#[inline(always)]
fn scaled(a: f32, low: f32) -> (f32, f32) {
    let d = a + 2.0;
    let s = divide(1.0, d);
    // The relative difference of 1 / (a + low + 2) from s.
    let rest = fma(-s, (a - (d - 2.0)) + low, fma(-s, d, 1.0));
    let t = s - 0.25;
    let q = polynomial!(t; 2.748_642_7, 4.471_549_5, 2.332_360_7, -5.505_320_5, -6.645_423, 12.488_704, 14.419_595, -35.090_176, -26.482_653);
    const FIRST: [f32; 2] = [1.021_582_7, -1.507_888_6e-8];
    let p = fma(q, t, FIRST[0]);
    let p_low = fma(q, s * rest, fma(q, t, FIRST[0] - p) + FIRST[1]);
    let y = p * s;
    (y, fma(y, rest, fma(p_low, s, fma(p, s, -y))))
}

/// `2^shift erfc(a + low)`, for `a` from 0.45 on; `low` is small.
#[inline(always)]
fn tail(a: f32, low: f32, shift: i32) -> f32 {
    // Beyond 10.1 the result is 0.
    let a = if a < 10.1 { a } else { 10.1 };
    let (y, y_low) = scaled(a, low);
    let h = a * a;
    let h_low = fma(2.0 * a, low, fma(a, a, -h));
    let (r, r_low, n) = reduce_terms(-h);
    let more = fma(y, r_low - h_low, y_low);
    let w = exp_small(r);
    scale(y + fma(y, w, fma(more, w, more)), n.wrapping_add(shift))
}

/// `1 - erf(x + low)` for `|x|` up to a half, as the sum of two floats.
#[inline(always)]
fn one_less(x: f32, low: f32) -> (f32, f32) {
    let u = x * x;
    let difference = 1.0 - x;
    // The slope, -2/√π exp(-u), without its last digits.
    let slope = u - FRAC_2_SQRT_PI;
    let low = fma(low, slope, (1.0 - difference) - x);
    (difference, fma(-near_zero(u), x, low))
}

/// One minus the error function.
#[inline]
pub fn erfcf(x: f32) -> f32 {
    let a = x.abs();
    let value = tail(a, 0.0, 0);
    let far = if x < 0.0 { 2.0 - value } else { value };
    let (near, low) = one_less(x, 0.0);
    if a > 0.5 { far } else { near + low }
}

/// `exp(x²) erfc(x)`.
#[inline]
pub fn erfcxf(x: f32) -> f32 {
    let a = x.abs();
    let h = x * x;
    let h_low = fma(x, x, -h);
    if a > 10.0 && x > 0.0 {
        /// 2^-60: without it the quotient would be subnormal for large `a`.
        const DOWN: f32 = f32::from_bits((127 - 60) << 23);
        let factor = if a > 1e30 { DOWN } else { 1.0 };
        // The asymptotic series in 1/x²; the terms left out are below 1e-8.
        let s = divide(1.0, a * factor);
        let u = (factor * s) * (factor * s);
        let p = polynomial!(u; -0.282_094_8, 0.423_142_2, -1.057_855_5, 3.702_494_2);
        const FRAC_1_SQRT_PI: [f32; 2] = [0.564_189_6, -2.931_769e-8];
        let y = s * FRAC_1_SQRT_PI[0];
        let rest = fma(-s, a * factor, 1.0);
        let y_low = fma(
            s,
            FRAC_1_SQRT_PI[1],
            fma(y, rest, fma(s, FRAC_1_SQRT_PI[0], -y)),
        );
        let value = (y + fma(p * u, s, y_low)) * factor;
        return if x == f32::INFINITY { 0.0 } else { value };
    }
    if a > 0.5 {
        let (y, y_low) = scaled(a, 0.0);
        if x > 0.0 {
            return y + y_low;
        }
        // 2 exp(h) - y, computed as twice its half.
        if h > 88.3 {
            return f32::INFINITY;
        }
        let (r, n) = reduce(h);
        let w = exp_small(r);
        let half = power_of_two(n);
        let low = fma(half, fma(w, h_low, h_low), -0.5 * y_low);
        return 2.0 * (half + (fma(half, w, -0.5 * y) + low));
    }
    let (y, y_low) = one_less(x, 0.0);
    let w = exp_small(h);
    let more = fma(y, h_low, y_low);
    y + fma(y, w, fma(more, w, more))
}

/// `1/√2` as the sum of two floats.
const FRAC_1_SQRT_2: [f32; 2] = [core::f32::consts::FRAC_1_SQRT_2, 1.210_161_7e-8];

/// The cumulative distribution function of the standard normal distribution, `erfc(-x/√2) / 2`.
#[inline]
pub fn normcdff(x: f32) -> f32 {
    let m = x.abs();
    // For an infinite argument `low` would be NaN.
    let m = if m > 15.0 { 15.0 } else { m };
    let a = m * FRAC_1_SQRT_2[0];
    let low = fma(m, FRAC_1_SQRT_2[1], fma(m, FRAC_1_SQRT_2[0], -a));
    let value = tail(a, low, -1);
    let far = if x > 0.0 { 1.0 - value } else { value };
    // For positive x: erfc(-a).
    let (a, low) = if x > 0.0 { (-a, -low) } else { (a, low) };
    let (near, rest) = one_less(a, low);
    if x.abs() > 0.7 {
        far
    } else {
        0.5 * (near + rest)
    }
}

/// `erfinv(x) / x` at `w = 2.5`, as the sum of two floats.
const INVERSE_NEAR: [f32; 2] = [1.501_409_4, -5.101_229e-8];

/// `(erfinv(x) / x - INVERSE_NEAR) / t` with `t = w - 2.5`, for `w = -ln(1 - x²)` up to 5.
#[inline(always)]
fn inverse_near(t: f32) -> f32 {
    polynomial!(t; 0.246_640_3, -4.177_388_3e-3, -1.252_755_3e-3, 2.183_469_2e-4, -4.955_875e-6, -3.463_695_3e-6, 4.644_813_3e-7, 2.333_829_1e-8, -8.660_396e-9)
}

/// The inverse of the error function.
#[inline]
pub fn erfinvf(x: f32) -> f32 {
    let (f, k) = split_normal(fma(-x, x, 1.0));
    let w = fma(-k, LN_2, -f - log1p_rest(f));
    let value = if w > 5.0 {
        // `erfinv(x) / x` in terms of √w; beyond 4.1 x is 1.
        let t = root(w) - 3.0;
        let q = polynomial!(t; 1.001_675, 9.445_328e-3, -7.637_639e-3, 5.686_655e-3, -3.596_497_2e-3, 1.485_882_7e-3, -5.786_565_5e-5, -3.102_464_8e-4, 1.163_517e-4);
        const FIRST: f32 = 2.832_976_8;
        fma(q, t, FIRST) * x
    } else {
        let t = w - 2.5;
        let q = inverse_near(t);
        let (p, p_low) = fma_of_sum(q, t, INVERSE_NEAR);
        fma(p, x, p_low * x)
    };
    let a = x.abs();
    let value = if a < 1.0 { value } else { f32::NAN };
    // Zeros keep their sign.
    if a == 1.0 { f32::INFINITY } else { value }.copysign(x)
}

/// The natural logarithm of a positive number, else NaN.
#[inline(always)]
fn log_of_positive(x: f32) -> f32 {
    let (f, k) = split(x, TWO_THIRDS);
    let value = fma(k, LN_2, f + log1p_rest(f));
    if x > 0.0 { value } else { f32::NAN }
}

/// `erfinv(x + x_low)`, with `w = -ln(1 - x²)`, as the sum of two floats.
#[inline(always)]
fn inverse(w: f32, x: f32, x_low: f32) -> (f32, f32) {
    if w > 5.0 {
        const FIRST: [f32; 2] = [0.959_945_9, -1.801_44e-8];
        let s = root(w);
        let inverse = divide(1.0, s);
        let t = inverse - 0.25;
        let q = polynomial!(t; -0.198_196_17, 8.022_157e-2, 0.553_669_6, -0.871_245_44, 0.883_072_5, -3.670_745_8, -2.538_456_4, 8.801_065, 143.719_09, -328.071_72);
        let (p, p_low) = fma_of_sum(q, t, FIRST);
        // The rounding error of the square root.
        let s_low = fma(-s, s, w) * (0.5 * inverse);
        let more = fma(p_low, s, p * s_low);
        let value = fma(p, s, more);
        let low = fma(p, s, -value) + more;
        (value.copysign(x), if x < 0.0 { -low } else { low })
    } else {
        let t = w - 2.5;
        let q = inverse_near(t);
        let (p, p_low) = fma_of_sum(q, t, INVERSE_NEAR);
        let more = fma(p_low, x, p * x_low);
        let value = fma(p, x, more);
        (value, fma(p, x, -value) + more)
    }
}

inverse_of_tail!(f32: erfcinvf; log_of_positive);

/// The inverse of [`normcdff`], `-√2 erfcinv(2 p)`.
#[inline]
pub fn normcdfinvf(p: f32) -> f32 {
    const SQRT_2: [f32; 2] = [core::f32::consts::SQRT_2, 2.420_323_4e-8];
    let (z, low) = inverse_of_tail(2.0 * p);
    // The quantile of a half is +0.
    0.0 - fma(z, SQRT_2[0], fma(low, SQRT_2[0], z * SQRT_2[1]))
}
