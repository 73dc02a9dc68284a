//! Exact remainders by integer division, eight bits of the quotient at a time.

use super::scale;

/// Divides `x` by `y = m 2^e`: the remainder in units of `2^e`, an integer below `m`; whether the
/// quotient is odd; `m`; and `e + 150`. Both arguments are bits of finite numbers without signs;
/// `y` is neither 0 nor more than `x`.
#[inline(always)]
fn divided(x: u32, y: u32) -> (u32, bool, u32, i32) {
    let parts = |bits: u32| match bits >> 23 {
        0 => (bits, 1),
        exponent => (bits & 0x7f_ffff | 0x80_0000, exponent as i32),
    };
    let ((mut rest, from), (m, exponent)) = (parts(x), parts(y));
    let mut shift = from - exponent;
    loop {
        // `rest` is below 2^24, shifted by 8 at most.
        let quotient = rest / m;
        rest -= quotient * m;
        if shift == 0 {
            return (rest, quotient & 1 == 1, m, exponent);
        }
        let step = if shift < 8 { shift } else { 8 };
        rest <<= step;
        shift -= step;
    }
}

/// Whether the remainder of the two is NaN.
#[inline(always)]
fn undefined(x: u32, y: u32) -> bool {
    const INFINITE: u32 = 0x7f80_0000;
    x >= INFINITE || y > INFINITE || y == 0
}

const MAGNITUDE: u32 = 0x7fff_ffff;

/// The remainder of `x / y` rounded towards zero; it has the sign of `x`.
#[inline]
pub fn fmodf(x: f32, y: f32) -> f32 {
    let (a, b) = (x.to_bits() & MAGNITUDE, y.to_bits() & MAGNITUDE);
    if undefined(a, b) {
        return f32::NAN;
    }
    if a < b {
        return x;
    }
    let (rest, _, _, exponent) = divided(a, b);
    scale(rest as f32, exponent - 150).copysign(x)
}

/// The remainder of `x / y` rounded to the nearest integer, ties to even; 0 has the sign of `x`.
#[inline]
pub fn remainderf(x: f32, y: f32) -> f32 {
    let (a, b) = (x.to_bits() & MAGNITUDE, y.to_bits() & MAGNITUDE);
    if undefined(a, b) {
        return f32::NAN;
    }
    if a < b {
        let (a, b) = (f32::from_bits(a), f32::from_bits(b));
        // The difference is exact, as the two are close.
        return if a + a > b { (b - a).copysign(-x) } else { x };
    }
    let (rest, odd, m, exponent) = divided(a, b);
    let beyond = 2 * rest > m || (2 * rest == m && odd);
    let nearest = if beyond { m - rest } else { rest };
    let value = scale(nearest as f32, exponent - 150);
    value.copysign(if beyond { -x } else { x })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_are_those_of_libm() {
        let special = [
            0.0,
            1e-45,
            3e-45,
            1e-39,
            f32::MIN_POSITIVE,
            0.1,
            1.0,
            1.5,
            3.0,
            16_777_215.0,
            1e30,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ];
        let mut state = 1_u64;
        let random = core::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let x = f32::from_bits((state >> 32) as u32);
            // Half of the pairs have about the same size.
            let y = match state >> 30 & 1 {
                0 => f32::from_bits((state >> 16) as u32),
                _ => x * ((state >> 20 & 0xfff) as f32 / 1024.0 - 2.0),
            };
            (x, y)
        });
        let pairs = special
            .iter()
            .flat_map(|&x| special.iter().map(move |&y| (x, y)))
            .flat_map(|(x, y)| [(x, y), (-x, y), (x, -y)])
            .chain(random.take(200_000));
        let bits = |x: f32| if x.is_nan() { 1 } else { x.to_bits() };
        for (x, y) in pairs {
            assert_eq!(bits(fmodf(x, y)), bits(libm::fmodf(x, y)), "{x:e} {y:e}");
            assert_eq!(
                bits(remainderf(x, y)),
                bits(libm::remainderf(x, y)),
                "{x:e} {y:e}"
            );
        }
    }
}
