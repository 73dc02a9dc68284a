//! What the kernels make of a boundary.

use crate::grid::Boundary;
use gpu_kernels::derivative3d::RADIUS;
use gpu_kernels::derivative3d::general::rule;

/// The rule, as the kernels are told it.
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

/// The fewest points along a periodic axis for which the halo of the 8th order is made of
/// points of the field: the radius of the stencil, and the end point stored twice.
pub(super) const fn min_extent(boundary: Boundary) -> usize {
    RADIUS + boundary.overlap()
}
