//! The geometry and cost that launches of several kernels share.
//!
//! A problem has its elements along x and, for single-pass kernels, its chunks along y; there 1
//! stands for the chunks of [`Partition::of`].

use super::partition::{Partition, THREADS};
use super::tree::UNROLL;
use crate::registry::{Cost, Geometry, Problem, Refusal, blocks_for};

/// Threads per block of the textbook's examples.
pub const DEFAULT_BLOCK: u32 = 128;

/// The textbook's size.
pub const DEFAULT_N: usize = 1 << 24;

/// The textbook's array.
pub(super) const EXAMPLE: Problem = Problem::line(DEFAULT_N);

/// The textbook's array on a device that holds every block at once.
pub(super) const EXAMPLE_IN_CHUNKS: Problem = EXAMPLE.with_resident_blocks(u32::MAX as usize);

/// The tile of the single-pass kernels, as text.
pub(super) const TILE: &str = "512 × 16 bytes";

/// The launch whose threads have `PER_THREAD` elements each.
pub(super) fn partial_sums<const PER_THREAD: u32>(
    kernel: &'static str,
    elements: &Problem,
) -> Result<Geometry, Refusal> {
    let block = elements.block.unwrap_or(DEFAULT_BLOCK);
    let per_block = block as usize * PER_THREAD as usize;
    let grid = blocks_for(kernel, elements.extents[0], per_block)?;
    Ok(Geometry::linear(grid, block))
}

/// The launch whose threads have 4 elements each, and one element each of dynamic shared memory.
pub(super) fn partial_sums_tiled<T>(
    kernel: &'static str,
    elements: &Problem,
) -> Result<Geometry, Refusal> {
    let geometry = partial_sums::<UNROLL>(kernel, elements)?;
    let tile = geometry.block[0].saturating_mul(size_of::<T>() as u32);
    Ok(geometry.with_dynamic_shared_bytes(tile))
}

/// The launch of a single-pass kernel with at most `blocks` blocks on `n` elements, cut as
/// `partition` says.
#[must_use]
pub const fn in_chunks(n: usize, partition: Partition, blocks: u32) -> Problem {
    let chunks = partition.chunks();
    let blocks = if blocks < chunks { blocks } else { chunks };
    Problem::plane(n, chunks as usize).with_resident_blocks(blocks as usize)
}

/// The launch with one block for each chunk of elements of `T`, but no more than the device holds.
pub(super) fn chunks<T>(kernel: &'static str, elements: &Problem) -> Result<Geometry, Refusal> {
    let [n, chunks, _] = elements.extents;
    let chunks = match chunks {
        1 => Partition::of(n, size_of::<T>()).chunks() as usize,
        given => given,
    };
    let grid = blocks_for(kernel, chunks.min(elements.resident_blocks), 1)?;
    Ok(Geometry::linear(grid, THREADS))
}

/// The cost of reading each element once and combining all of them.
#[must_use]
pub const fn elements<T>(elements: &Problem) -> Cost {
    let n = elements.extents[0] as u64;
    Cost {
        bytes: n.saturating_mul(size_of::<T>() as u64),
        flops: n.saturating_sub(1),
    }
}

/// The cost of reading each element of `ARRAYS` arrays once, with a product and a sum for each
/// index.
#[must_use]
pub const fn terms<T, const ARRAYS: u64>(elements: &Problem) -> Cost {
    let n = elements.extents[0] as u64;
    Cost {
        bytes: n.saturating_mul(ARRAYS * size_of::<T>() as u64),
        flops: n.saturating_mul(2),
    }
}
