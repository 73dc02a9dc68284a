//! Cube roots and the hypotenuse.

use super::{fma, root};

/// `(a, y, subnormal)`: `a` is `|x|`, or `2²⁴ |x|` where `x` is subnormal, and `y` is
/// `a^(-1/3)` but for its last digits.
///
/// The exponent's third is a guess within 4 %; two steps of the third order (a series
/// in the error `1 - a y³`) do the rest.
#[inline(always)]
fn inverse_cube_root(x: f32) -> (f32, f32, bool) {
    let a = x.abs();
    let subnormal = a < f32::MIN_POSITIVE;
    let a = if subnormal { a * 16_777_216.0 } else { a };
    let mut y = f32::from_bits(0x54a2_1d2a - a.to_bits() / 3);
    for _ in 0..2 {
        let error = fma(-(a * y * y), y, 1.0);
        y = fma(y * error, fma(error, 2.0 / 9.0, 1.0 / 3.0), y);
    }
    (a, y, subnormal)
}

/// The cube root.
#[inline]
pub fn cbrtf(x: f32) -> f32 {
    let (a, y, subnormal) = inverse_cube_root(x);
    let square = y * y;
    let r = a * square;
    // a - r³, but for its last digits.
    let r2 = r * r;
    let error = fma(-r2, r, a) - fma(r, r, -r2) * r;
    let value = fma(error * (1.0 / 3.0), square, r);
    let value = if subnormal {
        value * (1.0 / 256.0)
    } else {
        value
    };
    if x == 0.0 || !x.is_finite() {
        x
    } else {
        value.copysign(x)
    }
}

/// The reciprocal cube root.
#[inline]
pub fn rcbrtf(x: f32) -> f32 {
    let (a, y, subnormal) = inverse_cube_root(x);
    // 1 - a y³, but for its last digits.
    let (p, q) = (a * y, y * y);
    let (p_low, q_low) = (fma(a, y, -p), fma(y, y, -q));
    let error = fma(-p_low, q, fma(-p, q_low, fma(-p, q, 1.0)));
    let value = fma(y * (1.0 / 3.0), error, y);
    let value = if subnormal { value * 256.0 } else { value };
    let value = if x == 0.0 { f32::INFINITY } else { value };
    let value = if x.is_infinite() { 0.0 } else { value };
    if x.is_nan() { x } else { value.copysign(x) }
}

/// `sqrt(x² + y²)`.
#[inline]
pub fn hypotf(x: f32, y: f32) -> f32 {
    let (a, b) = (x.abs(), y.abs());
    let (less, more) = if a < b { (a, b) } else { (b, a) };
    // 2^±100: the squares neither overflow nor vanish.
    let (down, up) = (7.888_609e-31, 1.267_650_6e30);
    let (there, back) = if more > 1.152_921_5e18 {
        (down, up)
    } else if more < 9.094_947e-13 {
        (up, down)
    } else {
        (1.0, 1.0)
    };
    let (less, more) = (less * there, more * there);
    let value = root(fma(less, less, more * more)) * back;
    if a == f32::INFINITY || b == f32::INFINITY {
        f32::INFINITY
    } else {
        value
    }
}
