//! Generates finite-difference weights as exact fractions.
//!
//! ```text
//! f⁽ᵈ⁾(x) = h⁻ᵈ Σ w[s] f(x + s h)  -  C hᵖ f⁽ᵈ⁺ᵖ⁾(x)  -  …
//! ```
//!
//! for consecutive integer offsets s. The weight of an offset is the d-th derivative at 0 of the
//! polynomial that is 1 at that offset and 0 at the others (Lagrange's interpolation; B. Fornberg,
//! "Generation of finite difference formulas on arbitrarily spaced grids", Math. Comp. 51 (1988),
//! has the tables). The weights are computed as fractions, without tables and without rounding; a
//! weight is rounded once, when it becomes an `f64`.
//!
//! ```
//! use halo_gpu::finite_difference::Weights;
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let weights = Weights::central(1, 4)?;
//! assert_eq!(weights.offsets(), -2..=2);
//! assert_eq!(weights.values(), [1.0 / 12.0, -2.0 / 3.0, 0.0, 2.0 / 3.0, -1.0 / 12.0]);
//! assert_eq!(weights.accuracy(), 4);
//!
//! // At the end of a line there are no points on one side.
//! let weights = Weights::shifted(1, 2, 0..=2)?;
//! assert_eq!(weights.values(), [-1.5, 2.0, -0.5]);
//! # Ok(())
//! # }
//! ```

use crate::Error;
use num_rational::Ratio;
use std::fmt;
use std::ops::RangeInclusive;

/// The farthest offset that a stencil may have.
pub const MAX_OFFSET: i32 = 10;

/// The most points that a stencil may have.
pub const MAX_POINTS: usize = 13;

/// The weights of the first derivative of eighth order, for unit spacing: number `m - 1` is the
/// weight of the point `m` ahead, and its negative that of the point `m` behind.
pub(crate) const CENTRAL_8: [f64; 4] = [4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0];

const OPERATION: &str = "finite-difference weights";

/// A fraction in lowest terms; the denominator is positive.
///
/// ```
/// use halo_gpu::finite_difference::Weights;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let weights = Weights::central(1, 8)?;
/// let c = weights.error_constant(); // the error begins with c h⁸ f⁽⁹⁾
/// assert_eq!((c.numerator(), c.denominator()), (-1, 630));
/// assert_eq!(c.to_f64(), -1.0 / 630.0);
/// assert_eq!(weights.fractions()[5].to_string(), "4/5"); // of the point ahead
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fraction(Ratio<i128>);

impl Fraction {
    /// The numerator.
    #[must_use]
    pub const fn numerator(self) -> i128 {
        *self.0.numer()
    }

    /// The denominator, at least 1.
    #[must_use]
    pub const fn denominator(self) -> i128 {
        *self.0.denom()
    }

    /// The nearest `f64`: numerator and denominator of every weight are exact in `f64`, so only the
    /// division rounds.
    #[must_use]
    pub const fn to_f64(self) -> f64 {
        self.numerator() as f64 / self.denominator() as f64
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The weights of one stencil, for unit spacing.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    derivative: u32,
    accuracy: u32,
    first: i32,
    exact: Vec<Fraction>,
    values: Vec<f64>,
    error: Fraction,
}

impl Weights {
    /// The most accurate weights of the `derivative`-th derivative at offset 0 from the points at
    /// `offsets`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if `derivative` is 0, if an offset is beyond ±[`MAX_OFFSET`], or
    /// if there are more than [`MAX_POINTS`] offsets or too few: the d-th derivative needs d + 1.
    pub fn new(derivative: u32, offsets: RangeInclusive<i32>) -> Result<Self, Error> {
        let invalid = |parameter, given, required| Error::InvalidParameter {
            operation: OPERATION,
            parameter,
            given,
            required,
        };
        if derivative == 0 {
            return Err(invalid(
                "the order of the derivative",
                derivative.to_string(),
                "at least 1".to_owned(),
            ));
        }
        let allowed = -MAX_OFFSET..=MAX_OFFSET;
        let (first, last) = (*offsets.start(), *offsets.end());
        // In i64, where the difference of any two offsets fits.
        let points = i64::from(last) - i64::from(first) + 1;
        let fewest = i64::from(derivative) + 1;
        if !allowed.contains(&first)
            || !allowed.contains(&last)
            || !(fewest..=MAX_POINTS as i64).contains(&points)
        {
            return Err(invalid(
                "the range of offsets",
                format!("{first}..={last}"),
                format!(
                    "within -{MAX_OFFSET}..={MAX_OFFSET} and of {fewest} to {MAX_POINTS} points for \
                     derivative {derivative}"
                ),
            ));
        }

        let exact: Vec<Ratio<i128>> = (first..=last)
            .map(|offset| weight(derivative, offset, first..=last))
            .collect();
        // Σ w[s] s^q is q! for q = derivative and 0 for all other q below the number of points. The
        // first larger q for which it is not 0 gives the leading error.
        let moment = |q: u32| {
            (first..=last)
                .zip(&exact)
                .map(|(offset, weight)| weight * i128::from(offset).pow(q))
                .sum::<Ratio<i128>>()
        };
        let (order, moment) = (points as u32..)
            .map(|q| (q, moment(q)))
            .find(|(_, moment)| *moment != Ratio::ZERO)
            .unwrap_or((u32::MAX, Ratio::ZERO));
        Ok(Self {
            derivative,
            accuracy: order - derivative,
            first,
            values: exact
                .iter()
                .map(|&weight| Fraction(weight).to_f64())
                .collect(),
            exact: exact.into_iter().map(Fraction).collect(),
            error: Fraction(moment / factorial(order)),
        })
    }

    /// The narrowest central stencil of this order of accuracy.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if `accuracy` is odd or 0, and as for [`Weights::new`].
    pub fn central(derivative: u32, accuracy: u32) -> Result<Self, Error> {
        if accuracy == 0 || accuracy % 2 == 1 {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the order of accuracy of a central stencil",
                given: accuracy.to_string(),
                required: "even and at least 2".to_owned(),
            });
        }
        // A first or second derivative of order p needs p / 2 points on each side; every two
        // further derivatives need one more point on each side.
        let radius = u64::from(accuracy) / 2 + u64::from(derivative.saturating_sub(1)) / 2;
        // A radius that fits no i32 is beyond the farthest offset as well.
        let radius = i32::try_from(radius).unwrap_or(i32::MAX);
        Self::new(derivative, -radius..=radius)
    }

    /// The stencil on `offsets`, with at least the required accuracy. It gives one-sided stencils
    /// that keep the order of the whole scheme.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the offsets give a lower accuracy, and as for
    /// [`Weights::new`].
    pub fn shifted(
        derivative: u32,
        accuracy: u32,
        offsets: RangeInclusive<i32>,
    ) -> Result<Self, Error> {
        let weights = Self::new(derivative, offsets)?;
        if weights.accuracy < accuracy {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the range of offsets",
                given: format!(
                    "{:?}, which is of order {}",
                    weights.offsets(),
                    weights.accuracy
                ),
                required: format!("wide enough for order {accuracy}"),
            });
        }
        Ok(weights)
    }

    /// d: the order of the derivative.
    #[must_use]
    pub const fn derivative(&self) -> u32 {
        self.derivative
    }

    /// p: the error is proportional to the p-th power of the spacing.
    #[must_use]
    pub const fn accuracy(&self) -> u32 {
        self.accuracy
    }

    /// C of the leading error `C hᵖ f⁽ᵈ⁺ᵖ⁾`, where the error is the formula's value minus the exact
    /// one. C is -1/630 for the central first derivative of order 8.
    #[must_use]
    pub const fn error_constant(&self) -> Fraction {
        self.error
    }

    /// The offsets of the points, in units of the spacing.
    #[must_use]
    pub fn offsets(&self) -> RangeInclusive<i32> {
        self.first..=self.first + (self.values.len() as i32 - 1)
    }

    /// The weights in the order of the offsets, for unit spacing: divide by the
    /// spacing to the power of [`derivative`](Self::derivative).
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The weights as fractions.
    #[must_use]
    pub fn fractions(&self) -> &[Fraction] {
        &self.exact
    }
}

/// The weight of `offset`: d! times the coefficient of xᵈ in `Π (x - t) / (offset - t)` over all
/// other offsets t.
fn weight(derivative: u32, offset: i32, offsets: RangeInclusive<i32>) -> Ratio<i128> {
    // Coefficients of Π (x - t), the constant term first.
    let mut polynomial = vec![1_i128];
    let mut denominator = 1_i128;
    for other in offsets.filter(|other| *other != offset) {
        let root = i128::from(other);
        polynomial.push(0);
        for power in (0..polynomial.len()).rev() {
            let lower = if power == 0 { 0 } else { polynomial[power - 1] };
            polynomial[power] = lower - root * polynomial[power];
        }
        denominator *= i128::from(offset) - root;
    }
    Ratio::new(
        polynomial[derivative as usize] * factorial(derivative),
        denominator,
    )
}

fn factorial(n: u32) -> i128 {
    (1..=i128::from(n)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fractions(weights: &Weights) -> Vec<String> {
        weights.exact.iter().map(Fraction::to_string).collect()
    }

    #[test]
    fn the_textbooks_stencils_come_out() {
        let eighth = Weights::central(1, 8).unwrap();
        assert_eq!(
            fractions(&eighth),
            [
                "1/280", "-4/105", "1/5", "-4/5", "0", "4/5", "-1/5", "4/105", "-1/280"
            ]
        );
        assert_eq!(eighth.error_constant().to_string(), "-1/630");
        assert_eq!(eighth.values()[5..], CENTRAL_8, "derivative3d's own table");

        let second = Weights::central(2, 4).unwrap();
        assert_eq!(fractions(&second), ["-1/12", "4/3", "-5/2", "4/3", "-1/12"]);
        // Fornberg's table 3: the first derivative at the end of a line, order 4.
        let end = Weights::shifted(1, 4, 0..=4).unwrap();
        assert_eq!(fractions(&end), ["-25/12", "4", "-3", "4/3", "-1/4"]);
    }

    #[test]
    fn central_stencils_have_the_order_they_promise() {
        for derivative in 1..=4 {
            for accuracy in [2, 4, 6, 8] {
                let weights = Weights::central(derivative, accuracy).unwrap();
                assert_eq!(weights.accuracy(), accuracy, "derivative {derivative}");
                let mut mirrored = weights.values().to_vec();
                mirrored.reverse();
                let sign = if derivative % 2 == 0 { 1.0 } else { -1.0 };
                assert!(
                    weights
                        .values()
                        .iter()
                        .zip(&mirrored)
                        .all(|(w, m)| *w == sign * m),
                    "{derivative}, {accuracy}"
                );
            }
        }
    }

    /// Every stencil there can be: none overflows, all differentiate every
    /// polynomial exactly that their number of points allows.
    #[test]
    fn all_stencils_are_exact_for_polynomials() {
        let mut stencils = 0;
        for first in -MAX_OFFSET..=MAX_OFFSET {
            for last in first..=MAX_OFFSET {
                for derivative in 1..MAX_POINTS as u32 {
                    let Ok(weights) = Weights::new(derivative, first..=last) else {
                        continue;
                    };
                    stencils += 1;
                    let points = weights.exact.len() as u32;
                    assert!(weights.accuracy + derivative >= points);
                    for power in 0..points {
                        let sum: Ratio<i128> = (first..=last)
                            .zip(&weights.exact)
                            .map(|(offset, weight)| weight.0 * i128::from(offset).pow(power))
                            .sum();
                        let expected = if power == derivative {
                            factorial(derivative)
                        } else {
                            0
                        };
                        assert_eq!(sum, expected.into(), "{weights:?}, x^{power}");
                    }
                    for weight in &weights.exact {
                        let exact = |n: i128| {
                            n.unsigned_abs().leading_zeros() >= 128 - 53
                                || n.trailing_zeros() + n.unsigned_abs().leading_zeros() >= 128 - 53
                        };
                        assert!(
                            exact(weight.numerator()) && exact(weight.denominator()),
                            "{weight}"
                        );
                    }
                }
            }
        }
        // One for every run of points and every derivative that it allows.
        let runs = |points: i32| 2 * MAX_OFFSET + 2 - points;
        let expected: i32 = (2..=MAX_POINTS as i32).map(|n| runs(n) * (n - 1)).sum();
        assert_eq!(stencils, expected);
    }

    /// Halving the spacing divides the error by two to the power of the order.
    #[test]
    fn measured_orders_are_those_promised() {
        for derivative in [1, 2] {
            for offsets in [-1..=1, -2..=2, -4..=4, 0..=4, -1..=6] {
                let weights = Weights::new(derivative, offsets.clone()).unwrap();
                let error = |h: f64| {
                    let sum: f64 = offsets
                        .clone()
                        .zip(weights.values())
                        .map(|(offset, w)| w * (0.3 + f64::from(offset) * h).sin())
                        .sum();
                    let exact = [0.3_f64.cos(), -0.3_f64.sin()][derivative as usize - 1];
                    sum / h.powi(derivative as i32) - exact
                };
                // The farthest point is 0.8 away, then 0.4: small enough for the
                // leading error, large enough for rounding not to show.
                let h = 0.4 / f64::from(offsets.end().max(&-offsets.start()).to_owned());
                let measured = (error(2.0 * h) / error(h)).log2();
                let promised = f64::from(weights.accuracy());
                assert!(
                    (measured - promised).abs() < 0.5,
                    "derivative {derivative} on {offsets:?}: {measured}, not {promised}"
                );
                // sin's derivatives go round in four.
                let order = derivative + weights.accuracy();
                let next = (0.3 + f64::from(order % 4) * std::f64::consts::FRAC_PI_2).sin();
                let leading = weights.error_constant().to_f64() * next * h.powf(promised);
                assert!((error(h) / leading - 1.0).abs() < 0.5, "{offsets:?}");
            }
        }
    }

    #[test]
    fn what_is_no_stencil_is_refused() {
        let message =
            |derivative, offsets| Weights::new(derivative, offsets).unwrap_err().to_string();
        assert!(message(0, -1..=1).contains("at least 1"));
        for (derivative, offsets) in [
            (2, 0..=1),
            (1, 0..=11),
            (1, -11..=0),
            (1, -7..=7),
            (u32::MAX, -2..=2),
            (1, i32::MIN..=i32::MAX),
        ] {
            let message = message(derivative, offsets);
            assert!(
                message.contains("of offsets") && message.contains("13 points"),
                "{message}"
            );
        }
        #[allow(clippy::reversed_empty_ranges, reason = "that is the mistake")]
        let reversed = message(1, 2..=-2);
        assert!(reversed.contains("2..=-2"), "{reversed}");
        for accuracy in [0, 3, 20, u32::MAX] {
            assert!(Weights::central(1, accuracy).is_err(), "{accuracy}");
        }
        let message = Weights::shifted(1, 4, 0..=3).unwrap_err().to_string();
        assert!(message.contains("0..=3, which is of order 3"), "{message}");
    }
}
