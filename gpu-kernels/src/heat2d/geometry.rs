//! The geometry and cost that launches of several kernels share.
//!
//! A problem is a plate, walls included, with `nx` points along x and `ny` along y.

use super::plate::{BLOCK, HALO, OVERLAP_STEP};
use crate::registry::{Cost, Geometry, Problem, Refusal, blocks_for};

/// The textbook's plate.
pub(super) const EXAMPLE: Problem = Problem::plane(256, 256);

/// Floating-point operations per computed point: 3 additions, 1 multiplication.
const ITERATION: u64 = 4;

/// Floating-point operations per point of a step in time: 3 additions, 2 fused multiply-adds.
const STEP: u64 = 7;

/// The launch with a thread for every point, walls included.
pub(super) fn all_points(kernel: &'static str, plate: &Problem) -> Result<Geometry, Refusal> {
    squares(kernel, plate.extents, BLOCK)
}

/// The launch with a block for every 16 × 16 interior points.
pub(super) fn interior(kernel: &'static str, plate: &Problem) -> Result<Geometry, Refusal> {
    squares(kernel, inside(plate), BLOCK)
}

/// The launch with a block for every 14 × 14 interior points.
pub(super) fn overlapping(kernel: &'static str, plate: &Problem) -> Result<Geometry, Refusal> {
    squares(kernel, inside(plate), OVERLAP_STEP)
}

/// The extents without walls.
fn inside(plate: &Problem) -> [usize; 3] {
    plate
        .extents
        .map(|extent| extent.saturating_sub(2 * HALO as usize))
}

/// The launch with blocks of 16 × 16 threads, each for `step` points along either axis.
fn squares(kernel: &'static str, extents: [usize; 3], step: u32) -> Result<Geometry, Refusal> {
    let blocks = |extent| blocks_for(kernel, extent, step as usize);
    let grid = [blocks(extents[0])?, blocks(extents[1])?, 1];
    Ok(Geometry::new(grid, [BLOCK, BLOCK, 1]))
}

/// The cost of one iteration: each point is read once, each interior point written once.
pub(super) const fn iteration<T>(plate: &Problem) -> Cost {
    computed::<T>(plate, 0, ITERATION)
}

/// The cost of one iteration with a source: one more number is read and added per point.
pub(super) const fn heated<T>(plate: &Problem) -> Cost {
    computed::<T>(plate, 1, ITERATION + 1)
}

/// The cost of one step in time.
pub(super) const fn step<T>(plate: &Problem) -> Cost {
    computed::<T>(plate, 0, STEP)
}

/// The cost of one step in time with a source.
pub(super) const fn heated_step<T>(plate: &Problem) -> Cost {
    computed::<T>(plate, 1, STEP + 1)
}

/// The cost of `iterations` iterations in one pass over memory.
pub(super) const fn pass<T>(plate: &Problem, iterations: usize) -> Cost {
    let once = iteration::<T>(plate);
    Cost {
        bytes: once.bytes,
        flops: once.flops.saturating_mul(iterations as u64),
    }
}

/// The cost of a pass with `flops` operations per interior point that also reads `sources` numbers
/// per interior point.
const fn computed<T>(plate: &Problem, sources: u64, flops: u64) -> Cost {
    let [nx, ny, _] = plate.extents;
    let inner = Problem::plane(nx.saturating_sub(2), ny.saturating_sub(2)).points() as u64;
    let numbers = (plate.points() as u64).saturating_add(inner.saturating_mul(1 + sources));
    Cost {
        bytes: numbers.saturating_mul(size_of::<T>() as u64),
        flops: inner.saturating_mul(flops),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interior_points_have_as_few_blocks_as_possible() {
        for (plate, expected) in [
            (Problem::plane(34, 19), [2, 2]),
            (Problem::plane(35, 35), [3, 3]),
            (Problem::plane(18, 18), [1, 1]),
        ] {
            let found = interior("kernel", &plate).map(|it| [it.grid[0], it.grid[1]]);
            assert_eq!(found, Ok(expected), "{plate:?}");
        }
        for (plate, expected) in [
            (Problem::plane(30, 17), [2, 2]),
            (Problem::plane(31, 16), [3, 1]),
        ] {
            let found = overlapping("kernel", &plate).map(|it| [it.grid[0], it.grid[1]]);
            assert_eq!(found, Ok(expected), "{plate:?}");
        }
    }
}
