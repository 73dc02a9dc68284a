//! The geometry and cost that launches of several kernels share.

use super::{BLOCK_DEFAULT, FLOPS_PER_ELEMENT, N_DEFAULT, RADIUS};
use crate::registry::{Cost, Geometry, Problem, Refusal, blocks_for};

/// The textbook's line.
pub(super) const EXAMPLE: Problem = Problem::line(N_DEFAULT);

/// The cost of the nine-point stencil: each element is read once, and all but the first and the
/// last four are written once.
#[must_use]
pub const fn cost(line: &Problem) -> Cost {
    inner_cost(line, RADIUS, size_of::<f32>(), FLOPS_PER_ELEMENT)
}

/// The cost of a stencil of this radius on elements of `bytes` bytes, with `flops` operations for
/// each element that it computes.
#[must_use]
pub const fn inner_cost(line: &Problem, radius: usize, bytes: usize, flops: u64) -> Cost {
    let n = line.points();
    let inner = n.saturating_sub(2 * radius) as u64;
    Cost {
        bytes: (n as u64)
            .saturating_add(inner)
            .saturating_mul(bytes as u64),
        flops: inner.saturating_mul(flops),
    }
}

/// The launch with a thread for each element and a tile of a block's elements with both halos.
pub(super) fn tiled(kernel: &'static str, line: &Problem) -> Result<Geometry, Refusal> {
    let block = line.block.unwrap_or(BLOCK_DEFAULT);
    let tile = block.saturating_add(2 * RADIUS as u32);
    let grid = blocks_for(kernel, line.points(), block as usize)?;
    Ok(Geometry::linear(grid, block)
        .with_dynamic_shared_bytes(tile.saturating_mul(size_of::<f32>() as u32)))
}
