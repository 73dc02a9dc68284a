//! Cube roots, the hypotenuse, and the reciprocal square root.

use super::alike::cube_roots;
use super::{fma, root};

/// `(a, y, subnormal)`: `a` is `|x|`, or `2²⁴ |x|` where `x` is subnormal, and
/// `y` is `a^(-1/3)` except for its last digits.
///
/// A third of the exponent gives a guess within 4 %; two steps of the third
/// order (a series in the error `1 - a y³`) refine it.
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
    // Scaled by 2^±100, the squares neither overflow nor vanish.
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

/// The reciprocal square root, rounded correctly.
#[inline]
pub fn frsqrtf(x: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let subnormal = x < f32::MIN_POSITIVE;
        let normal = if subnormal { x * 16_777_216.0 } else { x };
        // SAFETY: arithmetic on a value.
        let guess = unsafe { crate::sys::rsqrt_ftz_f(normal) };
        let value = inverse_root_by(normal, guess);
        let value = if subnormal { value * 4096.0 } else { value };
        // For zero, infinity, negative numbers and NaN the guess is the result.
        if x > 0.0 && x < f32::INFINITY {
            value
        } else {
            guess
        }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        (1.0 / crate::exact::f64::sqrt(f64::from(x))) as f32
    }
}

/// `1 / sqrt(x)` of a normal number from a guess within four units in the last
/// place: a step of the second order leads to within one unit, and a step of
/// the third order follows.
#[cfg(any(target_arch = "nvptx64", test))]
#[inline(always)]
fn inverse_root_by(x: f32, guess: f32) -> f32 {
    let value = fma(0.5 * guess, fma(-(x * guess), guess, 1.0), guess);
    let product = x * value;
    let product_low = fma(x, value, -product);
    let error = fma(-product_low, value, fma(-product, value, 1.0));
    fma(fma(0.375 * error, error, 0.5 * error), value, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All numbers from 1 to 4, and all guesses that the hardware may give.
    #[test]
    fn the_reciprocal_root_of_the_device_is_rounded_correctly() {
        let first = 1.0_f32.to_bits();
        for bits in first..4.0_f32.to_bits() {
            let x = f32::from_bits(bits);
            let exact = frsqrtf(x);
            for off in 0..9 {
                let guess = f32::from_bits(exact.to_bits() + off - 4);
                let value = inverse_root_by(x, guess);
                assert_eq!(value, exact, "{x:e} by {guess:e}");
            }
        }
    }
}
