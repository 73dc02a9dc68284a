//! Reads fields point by point with the rules of [`Boundary`]; CPU ports use it as a plain
//! reference.
#![forbid(unsafe_code)]

use super::number::Number;
use crate::{Axis, Boundary, Grid3};
use rayon::prelude::*;

/// A field on a grid, which extends beyond its ends.
#[derive(Clone, Copy)]
pub(crate) struct Plain<'f, T> {
    grid: &'f Grid3,
    values: &'f [T],
}

impl<'f, T: Number> Plain<'f, T> {
    pub(crate) const fn new(grid: &'f Grid3, values: &'f [T]) -> Self {
        Self { grid, values }
    }

    /// The value at a point.
    pub(crate) fn at(&self, [i, j, k]: [usize; 3]) -> T {
        let [nx, ny] = [Axis::X, Axis::Y].map(|axis| self.grid.extent(axis));
        self.values[(k * ny + j) * nx + i]
    }

    /// The value at distance `distance` from a point along an axis.
    pub(crate) fn along(&self, point: [usize; 3], axis: Axis, distance: i64) -> T {
        let (n, ends) = (self.grid.extent(axis) as i64, self.grid.ends(axis));
        match image(ends, n, point[axis.index()] as i64 + distance) {
            Ok(place) => {
                let mut there = point;
                there[axis.index()] = place as usize;
                self.at(there)
            }
            Err(value) => T::nearest(value),
        }
    }
}

/// `f` at all points of a grid, x fastest.
pub(crate) fn of_points<T: Send>(grid: &Grid3, f: impl Fn([usize; 3]) -> T + Sync) -> Vec<T> {
    let [nx, ny, nz] = Axis::ALL.map(|axis| grid.extent(axis));
    let point = |at: usize| [at % nx, at / nx % ny, at / (nx * ny)];
    let points = (0..nx * ny * nz).into_par_iter().with_min_len(1 << 14);
    points.map(|at| f(point(at))).collect()
}

/// The point of an axis of `n` points that stands for `place`, or the value there.
fn image(ends: [Boundary; 2], n: i64, place: i64) -> Result<i64, f64> {
    let (end, m) = if place < 0 {
        (ends[0], -place)
    } else if place >= n {
        (ends[1], place - (n - 1))
    } else {
        return Ok(place);
    };
    // Counted from the end beyond which the place is.
    let from_end = match end {
        Boundary::Dirichlet(value) => return Err(value),
        _ if n == 1 => 0,
        Boundary::Periodic => n - m,
        Boundary::PeriodicWithEndpoint => n - 1 - m,
        Boundary::Neumann => m,
        Boundary::NeumannHalfway => m - 1,
        Boundary::OneSided => 0,
        Boundary::DirichletOnPoint => unreachable!(), // a stencil refuses it
    };
    let there = if place < 0 {
        from_end
    } else {
        n - 1 - from_end
    };
    image(ends, n, there)
}
