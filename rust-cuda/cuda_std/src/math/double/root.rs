//! Cube roots and the hypotenuse.

use super::super::alike::cube_roots;
use super::{fma, root};

/// `(a, y, subnormal)`: `a` is `|x|`, or `2^54 |x|` where `x` is subnormal, and
/// `y` is `a^(-1/3)` except for its last digits.
///
/// A third of the exponent gives a guess within 4 %; three steps of the third
/// order (a series in the error `1 - a y³`) refine it.
#[inline(always)]
fn inverse_cube_root(x: f64) -> (f64, f64, bool) {
    let a = x.abs();
    let subnormal = a < f64::MIN_POSITIVE;
    let a = if subnormal {
        a * 18_014_398_509_481_984.0
    } else {
        a
    };
    let upper = (a.to_bits() >> 32) as u32;
    let mut y = f64::from_bits(u64::from(0x553e_f0ff - upper / 3) << 32);
    for _ in 0..3 {
        let error = fma(-(a * y * y), y, 1.0);
        y = fma(y * error, fma(error, 2.0 / 9.0, 1.0 / 3.0), y);
    }
    (a, y, subnormal)
}

cube_roots!(f64: cbrt, rcbrt; factor 262_144.0);

/// `sqrt(x² + y²)`.
#[inline]
pub fn hypot(x: f64, y: f64) -> f64 {
    /// Scaled by 2^±600, the squares neither overflow nor vanish.
    const DOWN: f64 = f64::from_bits((1023 - 600) << 52);
    const UP: f64 = f64::from_bits((1023 + 600) << 52);
    let (a, b) = (x.abs(), y.abs());
    let (less, more) = if a < b { (a, b) } else { (b, a) };
    let (there, back) = if more > 3e150 {
        (DOWN, UP)
    } else if more < 3e-120 {
        (UP, DOWN)
    } else {
        (1.0, 1.0)
    };
    let (less, more) = (less * there, more * there);
    let value = root(fma(less, less, more * more)) * back;
    if a == f64::INFINITY || b == f64::INFINITY {
        f64::INFINITY
    } else {
        value
    }
}
