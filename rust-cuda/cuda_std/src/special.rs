//! Functions that neither the hardware nor `libm` has, in double precision.
//!
//! The `f32` versions are these, rounded, where `math` has none.

use core::f64::consts::{FRAC_2_SQRT_PI, SQRT_2};

use crate::float::GpuFloat;
use crate::math::double;

/// `1 / sqrt(π)`.
const FRAC_1_SQRT_PI: f64 = FRAC_2_SQRT_PI / 2.0;

/// The `x` with `erf(x) = y`.
pub fn erfinv(y: f64) -> f64 {
    if y.is_nan() || y.abs() > 1.0 {
        return f64::NAN;
    }
    if y.abs() == 1.0 {
        return f64::INFINITY.copysign(y);
    }
    if y.abs() > 0.5 {
        // 1 - |y| is exact there, and erfc keeps the digits that erf loses.
        return erfcinv_tail(1.0 - y.abs()).copysign(y);
    }
    if y == 0.0 {
        return y;
    }
    // Newton's method with Halley's correction, from the series' first terms:
    // three steps from a guess good to 2 % give more than double precision.
    let z = y / FRAC_2_SQRT_PI;
    let mut x = z * GpuFloat::mul_add(z, z / 3.0, 1.0);
    for _ in 0..4 {
        let error = (double::erf(x) - y) / (FRAC_2_SQRT_PI * double::exp(-x * x));
        x -= error / (1.0 + x * error);
    }
    x
}

/// The `x` with `erfc(x) = y`.
pub fn erfcinv(y: f64) -> f64 {
    if y.is_nan() || !(0.0..=2.0).contains(&y) {
        return f64::NAN;
    }
    if y == 0.0 {
        return f64::INFINITY;
    }
    if y == 2.0 {
        return f64::NEG_INFINITY;
    }
    if y < 0.5 {
        erfcinv_tail(y)
    } else if y > 1.5 {
        -erfcinv_tail(2.0 - y)
    } else {
        erfinv(1.0 - y)
    }
}

/// [`erfcinv`] for `0 < y ≤ 0.5`.
fn erfcinv_tail(y: f64) -> f64 {
    // From erfc(x) ≈ exp(-x²) / (x sqrt(π)), solved for x twice over.
    let l = -double::log(y);
    let mut x = GpuFloat::sqrt(l);
    for _ in 0..2 {
        let inner = l - double::log(x / FRAC_1_SQRT_PI + 0.5);
        x = GpuFloat::sqrt(if inner > 0.1 { inner } else { 0.1 });
    }
    // Newton's method for log(erfc(x)) = log(y), whose slope is nearly linear:
    // it converges from anywhere here. d/dx log erfc = -2 / (sqrt(π) erfcx).
    for _ in 0..6 {
        // erfc(x) = double::erfcx(x) exp(-x²), with the rounding error of x² put back.
        let high = x * x;
        let low = GpuFloat::mul_add(x, x, -high);
        let scaled = double::erfcx(x);
        // log(erfc(x) / y), without the underflow of either.
        let error = (double::log(scaled) - high + l) - low;
        x += error * scaled / FRAC_2_SQRT_PI;
    }
    x
}

/// The `x` with `normcdf(x) = p`.
pub fn normcdfinv(p: f64) -> f64 {
    -SQRT_2 * erfcinv(2.0 * p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::double::{erfcx, normcdf};

    fn close(value: f64, expected: f64, ulps: f64) {
        let error = (value - expected).abs();
        let allowed = ulps * f64::EPSILON * expected.abs();
        assert!(
            error <= allowed,
            "{value:e} is not {expected:e}: off by {error:e}"
        );
    }

    // Reference values: Abramowitz and Stegun's functions evaluated to 20 digits.
    #[test]
    fn erfcx_has_reference_values_on_both_sides_of_the_switch() {
        close(erfcx(0.0), 1.0, 1.0);
        close(erfcx(1.0), 0.427_583_576_155_807, 8.0);
        close(erfcx(10.0), 0.056_140_992_743_822_59, 16.0);
        close(erfcx(24.9), erfcx_by_fraction(24.9), 16.0);
        close(erfcx(25.1), erfcx_by_fraction(25.1), 8.0);
        close(erfcx(100.0), 0.005_641_613_782_989_433, 8.0);
        close(erfcx(-1.0), 5.008_980_080_762_283, 8.0);
        assert_eq!(erfcx(-30.0), f64::INFINITY);
        assert_eq!(erfcx(f64::INFINITY), 0.0);
        assert!(erfcx(f64::NAN).is_nan());
    }

    /// Laplace's continued fraction.
    fn erfcx_by_fraction(x: f64) -> f64 {
        let mut tail = x;
        for k in (1..200).rev() {
            tail = x + f64::from(k) / 2.0 / tail;
        }
        FRAC_1_SQRT_PI / tail
    }

    #[test]
    fn inverses_invert() {
        for i in -999..=999 {
            let y = f64::from(i) / 1000.0;
            close(double::erf(erfinv(y)), y, 4.0);
        }
        let mut y = 1.9;
        while y > 1e-300 {
            // erfc is steep: its own argument is known to half a place only.
            let x = erfcinv(y);
            close(libm::erfc(x), y, 4.0 + 4.0 * x * x);
            y *= 0.7;
        }
        assert_eq!(erfinv(1.0), f64::INFINITY);
        assert_eq!(erfinv(-1.0), f64::NEG_INFINITY);
        assert_eq!(erfinv(-0.0).to_bits(), (-0.0_f64).to_bits());
        assert!(erfinv(1.5).is_nan());
        assert_eq!(erfcinv(0.0), f64::INFINITY);
        assert_eq!(erfcinv(2.0), f64::NEG_INFINITY);
        assert_eq!(erfcinv(1.0), 0.0);
        assert!(erfcinv(-0.1).is_nan() && erfcinv(2.1).is_nan());
    }

    #[test]
    fn the_normal_distribution_has_its_reference_values() {
        close(normcdf(0.0), 0.5, 1.0);
        close(normcdf(1.0), 0.841_344_746_068_542_9, 4.0);
        close(normcdf(-1.0), 0.158_655_253_931_457_05, 4.0);
        close(normcdf(-10.0), 7.619_853_024_160_527e-24, 16.0);
        close(normcdf(-37.0), 5.725_571_222_524_577e-300, 64.0);
        assert_eq!(normcdf(f64::INFINITY), 1.0);
        assert_eq!(normcdf(f64::NEG_INFINITY), 0.0);
        close(normcdfinv(0.975), 1.959_963_984_540_054, 4.0);
        close(normcdfinv(1e-10), -6.361_340_902_404_056, 8.0);
        assert_eq!(normcdfinv(0.5), 0.0);
    }
}
