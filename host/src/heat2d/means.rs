//! What a plate that is insulated all around keeps.

use crate::Field2;
use crate::scalar::Scalar;

/// Means over the points of even i + j and over those of odd i + j, where points on the
/// walls count half and those in the corners a quarter.
///
/// A sweep of a plate that is insulated all around makes the mean over the even points
/// what that over the odd ones was, plus a quarter of the source's over the even ones; and
/// the other way round: each point gives a quarter to each neighbour, twice that to one on
/// a wall, which counts half. Both kinds of points count as much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    even: f64,
    odd: f64,
    /// The largest magnitude.
    pub(super) largest: f64,
}

impl Means {
    /// Of no source.
    pub(super) const ZERO: Self = Self {
        even: 0.0,
        odd: 0.0,
        largest: 0.0,
    };

    pub(super) fn of<T: Scalar>(field: &Field2<T>) -> Self {
        let shape = field.shape();
        let weight = |p: usize, n: usize| if p == 0 || p == n - 1 { 0.5 } else { 1.0 };
        let mut sums = [0.0; 2];
        let mut largest = 0.0_f64;
        for (j, row) in field.as_slice().chunks_exact(shape.nx).enumerate() {
            let mut of_row = [0.0; 2];
            for (i, &value) in row.iter().enumerate() {
                let value: f64 = value.into();
                of_row[(i + j) % 2] += weight(i, shape.nx) * value;
                largest = largest.max(value.abs());
            }
            for (sum, of_row) in sums.iter_mut().zip(of_row) {
                *sum += weight(j, shape.ny) * of_row;
            }
        }
        // Half of the sum of all weights: the share of the even points, and of the odd ones.
        let half = ((shape.nx - 1) * (shape.ny - 1)) as f64 / 2.0;
        Self {
            even: sums[0] / half,
            odd: sums[1] / half,
            largest,
        }
    }

    /// The mean over all points.
    pub(super) fn mean(self) -> f64 {
        0.5 * (self.even + self.odd)
    }

    /// What one of these means of a plate changes by in every sweep, and so at least one
    /// of its temperatures; NaN if there is one.
    ///
    /// By the rule above the changes of the two are exchanged by every sweep, and the
    /// larger stays as it is.
    pub(super) fn change_that_stays(self, source: Self) -> f64 {
        let even = self.odd + source.even / 4.0 - self.even;
        let odd = self.even + source.odd / 4.0 - self.odd;
        even.abs().max(odd.abs())
    }
}
