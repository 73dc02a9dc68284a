//! Cube roots and the hypotenuse.

use super::alike::cube_roots;
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

cube_roots!(f32: cbrtf, rcbrtf; factor 256.0);

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
