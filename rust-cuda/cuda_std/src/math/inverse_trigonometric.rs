//! Arcsine, arccosine and arctangent: odd polynomials, after a reduction of the
//! argument to where they converge (W. J. Cody and W. Waite, 1980).

use super::alike::inverse_trigonometric;
use super::{FRAC_PI_2_LOW, divide, fma, polynomial, root};
use core::f32::consts::{FRAC_PI_2, PI};

/// `asin(x) - x` for `x` from 0 to a half, with `u = x²`.
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

/// `atan(t) - t` for `t` from 0 to 1.
#[inline(always)]
fn atan_rest(t: f32) -> f32 {
    let u = t * t;
    let p = polynomial!(u; -0.333_333, 0.199_985_34, -0.142_641_02, 0.109_515_04, -8.401_565e-2, 5.792_675e-2, -3.114_825_3e-2, 1.089_921_5e-2, -1.790_272_7e-3);
    t * u * p
}

inverse_trigonometric!(f32: asinf, acosf, atanf, atan2f);
