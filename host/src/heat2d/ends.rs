//! The ends of a plate's axes, and the points that are computed.

use crate::axis::Axis;
use crate::grid::{Boundary, Grid2};
use std::ops::Range;

/// Whether no end keeps its temperature.
pub(super) fn all_neumann(grid: &Grid2) -> bool {
    ends_of(grid).iter().all(|end| *end == Boundary::Neumann)
}

/// Whether all ends do.
pub(super) fn all_dirichlet(grid: &Grid2) -> bool {
    let kept = |end: &Boundary| *end == Boundary::DirichletOnPoint;
    ends_of(grid).iter().all(kept)
}

/// The boundaries at the left, the right, the bottom and the top.
pub(super) fn ends_of(grid: &Grid2) -> [Boundary; 4] {
    let [[left, right], [bottom, top]] = [Axis::X, Axis::Y].map(|axis| grid.ends(axis));
    [left, right, bottom, top]
}

/// The points along an axis that do not lie on an end that keeps its temperature.
pub(super) fn unknowns_along(grid: &Grid2, axis: Axis) -> Range<usize> {
    let kept = |end: Boundary| usize::from(end == Boundary::DirichletOnPoint);
    let [low, high] = grid.ends(axis);
    kept(low)..grid.extent(axis) - kept(high)
}
