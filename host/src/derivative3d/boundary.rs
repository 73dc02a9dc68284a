//! Converts boundaries to arguments of kernels.

use crate::grid::Boundary;
use gpu_kernels::derivative3d::RADIUS;
use gpu_kernels::derivative3d::general::rule;

/// The number that kernels use for the boundary.
pub(super) const fn rule_of(boundary: Boundary) -> u32 {
    match boundary {
        Boundary::Periodic => rule::PERIODIC,
        Boundary::PeriodicWithEndpoint => rule::PERIODIC_WITH_ENDPOINT,
        Boundary::Neumann => rule::MIRROR_ON_POINT,
        Boundary::NeumannHalfway => rule::MIRROR_HALFWAY,
        Boundary::Dirichlet(_) => rule::FIXED,
        Boundary::OneSided => rule::ONE_SIDED,
        Boundary::DirichletOnPoint => unreachable!(), // refused with the boundaries
    }
}

/// The fewest points of a periodic axis for which the 8th-order halo contains only points of the
/// field: the radius of the stencil, plus the end point if it is stored twice.
pub(super) const fn min_extent(boundary: Boundary) -> usize {
    RADIUS + boundary.overlap()
}
