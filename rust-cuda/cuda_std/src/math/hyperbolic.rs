//! Hyperbolic functions and their inverses.

use super::alike::hyperbolic;
use super::exponential::{limited, reduce};
use super::logarithm::ln_1p_sum;
use super::{divide, fma, polynomial, power_of_two, root};

/// `(s, rising, t, falling)` with `s (1 + rising) = e^a / 4` and
/// `t (1 + falling) = e^-a / 4`, for `a` from 0 to 89.5; `s` and `t` are powers of
/// two, and `|rising|` and `|falling|` are below a half. Where `e^-a` is
/// negligible, `t` is merely small.
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

hyperbolic!(f32: coshf, asinhf, acoshf, atanhf; large 8_388_608.0, small 6e-8);
