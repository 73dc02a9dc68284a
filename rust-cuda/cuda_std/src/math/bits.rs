//! Functions of the bits of a float: `frexp` and `nextafter`.

macro_rules! bits {
    ($real:ident as $bits:ident: $frexp:ident, $nextafter:ident; fraction $fraction:literal, exponents $exponents:literal, up $up:literal) => {
        /// A fraction from a half to 1 and an exponent, with
        /// `x = fraction · 2^exponent`; zeros, infinities and NaN are their own
        /// fraction.
        #[inline]
        pub fn $frexp(x: $real) -> ($real, i32) {
            const HALF: $bits = ($exponents >> 1) - 1;
            let subnormal = x.abs() < $real::MIN_POSITIVE;
            let bits = if subnormal { x * $up } else { x }.to_bits();
            let exponent = (bits >> $fraction & $exponents) as i32 - HALF as i32;
            let exponent = if subnormal {
                exponent - $fraction
            } else {
                exponent
            };
            let fraction = $real::from_bits(bits & !($exponents << $fraction) | HALF << $fraction);
            if x == 0.0 || !x.is_finite() {
                (x, 0)
            } else {
                (fraction, exponent)
            }
        }

        /// The next number from `x` towards `y`.
        #[inline]
        pub fn $nextafter(x: $real, y: $real) -> $real {
            let bits = x.to_bits();
            let outwards = (y > x) == (x > 0.0);
            let next = if outwards {
                bits.wrapping_add(1)
            } else {
                bits.wrapping_sub(1)
            };
            let next = if x == 0.0 {
                $real::from_bits(1).copysign(y)
            } else {
                $real::from_bits(next)
            };
            let next = if x == y { y } else { next };
            if x.is_nan() || y.is_nan() {
                x + y
            } else {
                next
            }
        }
    };
}

bits!(f32 as u32: frexpf, nextafterf; fraction 23, exponents 0xff, up 8_388_608.0);
bits!(f64 as u64: frexp, nextafter; fraction 52, exponents 0x7ff, up 4_503_599_627_370_496.0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_libm() {
        let special = [
            0.0,
            -0.0,
            1e-45,
            -3e-42,
            f32::MIN_POSITIVE,
            1.0,
            -1.0,
            2.0,
            f32::MAX,
            f32::INFINITY,
            -f32::INFINITY,
            f32::NAN,
        ];
        let sample = (0..=u32::MAX).step_by(400_009).map(f32::from_bits);
        for x in sample.chain(special) {
            let (wide, equal) = (f64::from(x), |a: f64, b: f64| {
                a == b && a.is_sign_negative() == b.is_sign_negative() || a.is_nan() && b.is_nan()
            });
            let ((fraction, exponent), (expected, power)) = (frexpf(x), libm::frexpf(x));
            assert!(
                equal(fraction.into(), expected.into()) && exponent == power,
                "{x:e}"
            );
            let ((fraction, exponent), (expected, power)) = (frexp(wide), libm::frexp(wide));
            assert!(equal(fraction, expected) && exponent == power, "{wide:e}");
            for y in special {
                let (value, expected) = (nextafterf(x, y), libm::nextafterf(x, y));
                assert!(
                    equal(value.into(), expected.into()),
                    "{x:e} {y:e}: {value:e}"
                );
                let (value, expected) =
                    (nextafter(wide, y.into()), libm::nextafter(wide, y.into()));
                assert!(equal(value, expected), "{x:e} {y:e}: {value:e}");
            }
        }
        assert_eq!(frexp(5e-324), (0.5, -1073));
    }
}
