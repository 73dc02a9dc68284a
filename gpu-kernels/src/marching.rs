//! Geometry and cost of the kernels that are stencils of `halo_stencil`, for the table.
#![cfg(not(target_arch = "nvptx64"))]

use crate::entry::{Cost, Counted, Geometry, Problem, Refusal};
use halo_stencil::{MAX_EXTENT, blocks};

/// The launch of a stencil in space on fields of `T`.
pub(crate) fn geometry<T>(kernel: &'static str, field: &Problem) -> Result<Geometry, Refusal> {
    match blocks(3, field.extents, 16 / size_of::<T>()) {
        Some(found) => Ok(Geometry::new(
            found.grid,
            [found.block[0], found.block[1], 1],
        )),
        None => Err(Refusal::TooMany {
            kernel,
            what: Counted::Extent("an extent, or a plane's points,"),
            given: field.extents.into_iter().max().unwrap_or(0) as u128,
            limit: MAX_EXTENT.into(),
        }),
    }
}

/// Of a stencil that reads `read` fields, writes `written`, and does `flops` a point.
pub(crate) const fn cost<T>(field: &Problem, read: u64, written: u64, flops: u64) -> Cost {
    let points = field.points() as u64;
    Cost {
        bytes: points.saturating_mul((read + written) * size_of::<T>() as u64),
        flops: points.saturating_mul(flops),
    }
}
