//! The textbook problem, which all rows of the family share.

use halo_gpu::derivative3d::{FiniteDifferences3d, Operator};
use halo_gpu::{Boundary, Grid3, Scalar, Shape3};

use crate::row::{self, Work};

/// The boundary of the textbook problem.
pub(super) const BOUNDARY: Boundary = Boundary::PeriodicWithEndpoint;

/// The grid of the textbook problem.
pub(super) fn grid(shape: Shape3) -> Result<Grid3, halo_gpu::Error> {
    Grid3::new(shape, [1.0; 3])?
        .with_boundaries(BOUNDARY)?
        .of_unit_length()
}

/// The work of an operator, by a kernel or by the port.
pub(super) fn work<T: Scalar>(differences: &FiniteDifferences3d<T>, operator: Operator) -> Work {
    let (cost, shape) = (differences.cost(operator), differences.shape());
    row::points(cost, shape.nx * shape.ny * shape.nz)
}
