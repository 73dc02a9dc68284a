//! What a plate with Neumann boundaries all around keeps.

use crate::Shape2;
use crate::scalar::Scalar;
use bytemuck::{Pod, Zeroable};

/// Sums over the points of even i + j and over those of odd i + j of a plate or of a part of it.
/// Points on the ends of the plate count half, and those in its corners a quarter.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Sums {
    even: f64,
    odd: f64,
    /// The largest magnitude; NaN is none.
    pub(super) largest: f64,
}

impl Sums {
    /// No rows yet, and no source.
    pub const ZERO: Self = Self {
        even: 0.0,
        odd: 0.0,
        largest: 0.0,
    };

    /// These sums with a row of a plate of this shape, or a part of the row, added: the values of
    /// consecutive points from `first` = \[i, j\] on.
    #[must_use]
    pub fn with_row<T: Scalar>(mut self, plate: Shape2, first: [usize; 2], values: &[T]) -> Self {
        let weight = |p: usize, n: usize| if p == 0 || p == n - 1 { 0.5 } else { 1.0 };
        let [start, j] = first;
        let mut of_row = [0.0; 2];
        for (i, &value) in (start..).zip(values) {
            let value: f64 = value.into();
            of_row[(i + j) % 2] += weight(i, plate.nx) * value;
            self.largest = self.largest.max(value.abs());
        }
        let [even, odd] = of_row.map(|sum| weight(j, plate.ny) * sum);
        Self {
            even: self.even + even,
            odd: self.odd + odd,
            ..self
        }
    }

    /// Of a whole plate.
    pub(super) fn of<T: Scalar>(plate: Shape2, values: &[T]) -> Self {
        let rows = values.chunks_exact(plate.nx).enumerate();
        rows.fold(Self::ZERO, |sums, (j, row)| {
            sums.with_row(plate, [0, j], row)
        })
    }

    /// Of two parts together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            even: self.even + other.even,
            odd: self.odd + other.odd,
            largest: self.largest.max(other.largest),
        }
    }

    /// The means over the even and over the odd points of a whole plate.
    fn means(self, plate: Shape2) -> [f64; 2] {
        // Half of the sum of all weights: the share of the even points, and of the odd ones.
        let half = ((plate.nx - 1) * (plate.ny - 1)) as f64 / 2.0;
        [self.even / half, self.odd / half]
    }

    /// The mean over all points of a whole plate.
    pub(super) fn mean(self, plate: Shape2) -> f64 {
        let [even, odd] = self.means(plate);
        0.5 * (even + odd)
    }

    /// The change in every iteration of one of the means of a plate, and so of at least one of its
    /// temperatures; NaN if there is a NaN.
    ///
    /// An iteration on a plate with Neumann boundaries all around makes the mean over the even
    /// points what that over the odd ones was, plus a quarter of the source's over the even
    /// ones; and the other way round: each point gives a quarter to each neighbour, twice that
    /// to one on an end, which counts half. Both kinds of points count as much. So the changes
    /// of the two are exchanged by every iteration, and the larger stays as it is.
    pub(super) fn change_that_stays(self, source: Self, plate: Shape2) -> f64 {
        let ([even, odd], source) = (self.means(plate), source.means(plate));
        let of_even = odd + source[0] / 4.0 - even;
        let of_odd = even + source[1] / 4.0 - odd;
        of_even.abs().max(of_odd.abs())
    }
}
