//! Hyperbolic functions and their inverses.

use super::exponential::{limited, reduce};
use super::logarithm::ln_1p_sum;
use super::{divide, fma, polynomial, power_of_two, root};

/// `(s, rising, t, falling)` with `s (1 + rising) = e^a / 4` and `t (1 + falling) =
/// e^-a / 4`, for `a` from 0 to 89.5. Both are within a half of their powers of two.
/// Where `e^-a` does not matter, it is something small.
#[inline(always)]
fn quarters(a: f32) -> (f32, f32, f32, f32) {
    let (r, n) = reduce(limited(a, 0.0, 89.5));
    let u = r * r;
    let even = polynomial!(u; 0.5, 4.166_646e-2, 1.393_543_9e-3) * u;
    let odd = fma(
        polynomial!(u; 0.166_666_67, 8.333_175e-3, 1.997_406_2e-4) * u,
        r,
        r,
    );
    let (s, t) = (power_of_two(n - 2), power_of_two((-2 - n).max(-126)));
    (s, even + odd, t, even - odd)
}

/// The hyperbolic sine.
#[inline]
pub fn sinhf(x: f32) -> f32 {
    let a = x.abs();
    let u = x * x;
    let p = polynomial!(u; 0.166_666_67, 8.333_310_5e-3, 1.984_289_4e-4, 2.782_229_3e-6);
    let near = fma(p * u, x, x);
    let (s, rising, t, falling) = quarters(a);
    let far = s + fma(s, rising, fma(-t, falling, -t));
    let far = (2.0 * far).copysign(x);
    if a > 1.0 { far } else { near }
}

/// The hyperbolic cosine.
#[inline]
pub fn coshf(x: f32) -> f32 {
    let (s, rising, t, falling) = quarters(x.abs());
    2.0 * (s + fma(s, rising, fma(t, falling, t)))
}

/// `sqrt(a² + b)` and what rounding took from it, for `a` up to 2^23 and `b` up to 2^24.
#[inline(always)]
fn root_of_sum(a: f32, b: f32) -> (f32, f32) {
    let square = a * a;
    let square_low = fma(a, a, -square);
    let (more, less) = if square > b { (square, b) } else { (b, square) };
    let sum = more + less;
    let low = (more - sum) + less + square_low;
    let s = root(sum);
    (s, (fma(-s, s, sum) + low) * divide(0.5, s))
}

/// From here on, `x` and `sqrt(x² ± 1)` are the same for a logarithm.
const LARGE: f32 = 8_388_608.0;

/// The inverse hyperbolic sine: `ln(1 + (a + (sqrt(1 + a²) - 1)))`, all of it in sums
/// of two floats.
#[inline]
pub fn asinhf(x: f32) -> f32 {
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
    let value = if a < 6e-8 { a } else { value };
    if a == f32::INFINITY { a } else { value }.copysign(x)
}

/// The inverse hyperbolic cosine: `ln(1 + (t + sqrt(t² + 2t)))` with `t = x - 1`.
#[inline]
pub fn acoshf(x: f32) -> f32 {
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
    let value = if x > 1.0 { value } else { f32::NAN };
    let value = if x == 1.0 { 0.0 } else { value };
    if x == f32::INFINITY { x } else { value }
}

/// The inverse hyperbolic tangent: half of `ln(1 + 2a / (1 - a))`.
#[inline]
pub fn atanhf(x: f32) -> f32 {
    let a = x.abs();
    let below = 1.0 - a;
    let below_low = (1.0 - below) - a;
    let inverse = divide(1.0, below);
    let quotient = 2.0 * a * inverse;
    let low = fma(-quotient, below_low, fma(-quotient, below, 2.0 * a)) * inverse;
    let value = 0.5 * ln_1p_sum(quotient, low, 0.0);
    let value = if a < 6e-8 { a } else { value };
    let value = if a == 1.0 { f32::INFINITY } else { value };
    if a > 1.0 { f32::NAN } else { value.copysign(x) }
}
