//! Arcsine, arccosine and arctangent: odd polynomials, after the argument was brought
//! to where they converge (W. J. Cody and W. Waite, 1980).

use super::{FRAC_PI_2_LOW, divide, fma, polynomial, root};
use core::f32::consts::{FRAC_PI_2, PI};

/// `asin(x) - x` for `x` from 0 to a half, `u` being `x²`.
#[inline(always)]
fn asin_rest(x: f32, u: f32) -> f32 {
    let p = polynomial!(u; 0.166_666_6, 7.500_517e-2, 4.451_485_4e-2, 3.182_281_6e-2, 1.438_813_7e-2, 3.758_042_7e-2);
    x * u * p
}

/// `(t, rest)` with `asin(t) = t + rest`: `t` is `a` up to a half. Above, it is
/// `sqrt((1 - a) / 2)`, and `asin a = π/2 - 2 asin t`.
#[inline(always)]
fn asin_parts(a: f32) -> (f32, f32) {
    let square = 0.5 - 0.5 * a;
    let (t, u) = if a > 0.5 {
        (root(square), square)
    } else {
        (a, a * a)
    };
    (t, asin_rest(t, u))
}

/// The arcsine.
#[inline]
pub fn asinf(x: f32) -> f32 {
    let a = x.abs();
    let (t, rest) = asin_parts(a);
    let far = fma(-2.0, t + (rest - 0.5 * FRAC_PI_2_LOW), FRAC_PI_2);
    if a > 0.5 { far } else { t + rest }.copysign(x)
}

/// The arccosine.
#[inline]
pub fn acosf(x: f32) -> f32 {
    let a = x.abs();
    let (t, rest) = asin_parts(a);
    // π/2 - asin x, or 2 asin t, or π - 2 asin t.
    let near = FRAC_PI_2 - ((rest.copysign(x) - FRAC_PI_2_LOW) + t.copysign(x));
    let right = 2.0 * (t + rest);
    let left = fma(-2.0, t + (rest - FRAC_PI_2_LOW), PI);
    let far = if x > 0.0 { right } else { left };
    if a > 0.5 { far } else { near }
}

/// `atan(t) - t` for `t` from 0 to 1.
#[inline(always)]
fn atan_rest(t: f32) -> f32 {
    let u = t * t;
    let p = polynomial!(u; -0.333_333, 0.199_985_34, -0.142_641_02, 0.109_515_04, -8.401_565e-2, 5.792_675e-2, -3.114_825_3e-2, 1.089_921_5e-2, -1.790_272_7e-3);
    t * u * p
}

/// The arctangent.
#[inline]
pub fn atanf(x: f32) -> f32 {
    let a = x.abs();
    // 2^60: from far below on the result is π/2.
    let large = if a > 1.152_921_5e18 {
        1.152_921_5e18
    } else {
        a
    };
    let t = if a > 1.0 { divide(1.0, large) } else { a };
    let rest = atan_rest(t);
    let far = FRAC_PI_2 - (t + (rest - FRAC_PI_2_LOW));
    if a > 1.0 { far } else { t + rest }.copysign(x)
}

/// The angle of the point (`x`, `y`).
#[inline]
pub fn atan2f(y: f32, x: f32) -> f32 {
    let (a, b) = (x.abs(), y.abs());
    let steep = b > a;
    let (less, more) = if steep { (a, b) } else { (b, a) };
    let t = less / more;
    // 0/0 stands for 0, and ∞/∞ for 1.
    let t = if more == 0.0 { 0.0 } else { t };
    let t = if less == f32::INFINITY { 1.0 } else { t };
    // The angle is base + sign · atan t.
    let left = x.is_sign_negative();
    let sign = if steep != left { -1.0 } else { 1.0 };
    let (base, base_low) = match (steep, left) {
        (true, _) => (FRAC_PI_2, FRAC_PI_2_LOW),
        (false, true) => (PI, 2.0 * FRAC_PI_2_LOW),
        (false, false) => (0.0, 0.0),
    };
    let angle = base + (fma(sign, atan_rest(t), base_low) + sign * t);
    if x.is_nan() || y.is_nan() {
        x + y
    } else {
        angle.copysign(y)
    }
}
