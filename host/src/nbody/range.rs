//! The range of softening lengths and coordinates for each type.

use gpu_kernels::nbody::geometry::flops_per_interaction;

/// The relative error of one term r s, in unit roundoffs.
///
/// To first order, with u for one rounding and 2.2 u for the reciprocal square root (2^-22.9 in f32
/// on a GPU is 2.14 u; a root and a quotient are 1.5 u):
///
/// | | fused | separate products and sums |
/// |---|---|---|
/// | r | 1 | 1 |
/// | \|r\|² + ε² | 2 + 3 | 2 + 1 + 3 |
/// | its reciprocal root | 2.5 + 2.2 | 3 + 2.2 |
/// | squared | 9.4 + 1 | 10.4 + 1 |
/// | times the mass | 4.7 + 1 | 5.2 + 1 |
/// | s | 10.4 + 5.7 + 1 | 11.4 + 6.2 + 1 |
/// | r s | 17.1 + 1 | 18.6 + 1 + 1 |
///
/// which is at most 20.6 u.
pub const INTERACTION_ROUNDOFFS: f64 = 21.0;

/// The constants of a scalar type that n-body needs.
pub trait Range: Sized {
    /// The number of operations that an interaction counts as: 20 or 30.
    const FLOPS_PER_INTERACTION: u64;

    /// The smallest softening length: the square root of the smallest normal number, 2⁻⁶³ or 2⁻⁵¹¹.
    /// Its square is normal.
    const SHORTEST: f64;

    /// The largest softening length and the largest absolute coordinate: 2⁶¹ or 2⁵⁰⁹. |r|² + ε² is
    /// at most 13 times its square, and the reciprocal of that is normal.
    const LONGEST: f64;
}

impl Range for f32 {
    const FLOPS_PER_INTERACTION: u64 = flops_per_interaction::<Self>();
    // In an f64 the bits of 1.0 × 2^e are e + 1023, followed by 52 zeros.
    const SHORTEST: f64 = f64::from_bits((1023 - 63) << 52);
    const LONGEST: f64 = f64::from_bits((1023 + 61) << 52);
}

impl Range for f64 {
    const FLOPS_PER_INTERACTION: u64 = flops_per_interaction::<Self>();
    const SHORTEST: f64 = f64::from_bits((1023 - 511) << 52);
    const LONGEST: f64 = f64::from_bits((1023 + 509) << 52);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_length_are_where_they_are_said_to_be() {
        fn check<T: Range>(min_normal: f64) {
            assert_eq!(T::SHORTEST * T::SHORTEST, min_normal);
            assert_eq!(T::LONGEST.log2().fract(), 0.0);
            let largest = 13.0 * T::LONGEST * T::LONGEST;
            assert!(1.0 / largest >= min_normal);
            // Not by far: at twice the length the reciprocal is subnormal.
            assert!(1.0 / (4.0 * largest) < min_normal);
        }
        check::<f32>(f32::MIN_POSITIVE.into());
        check::<f64>(f64::MIN_POSITIVE);
    }
}
