//! Constants and code that the nine-point kernels share.

use cuda_std::prelude::*;
use cuda_std::{GpuFloat, shared};

/// How far the stencil reaches to either side, in elements: the width of the halo.
pub const RADIUS: usize = 4;

/// Threads of a block of the teaching kernels, unless the caller says otherwise.
pub const BLOCK_DEFAULT: u32 = 32;

/// Threads of a block of the tuned kernel.
pub const VECTOR_BLOCK: u32 = 128;

/// Vectors of 4 elements that each thread of the tuned kernel computes.
pub const VECTORS: usize = 2;

/// The elements of the textbook's line.
pub const N_DEFAULT: usize = 1 << 16;

/// Floating-point operations per element: 4 subtractions, 1 multiplication and
/// 3 fused multiply-adds of two operations each.
pub const FLOPS_PER_ELEMENT: u64 = 11;

/// The sum over m of `coefficient(m) * difference(m)`, in the order of every kernel.
#[inline(always)]
pub(super) fn weighted_sum(
    coefficient: impl Fn(usize) -> f32,
    difference: impl Fn(usize) -> f32,
) -> f32 {
    let mut sum = coefficient(1) * difference(1);
    sum = GpuFloat::mul_add(difference(2), coefficient(2), sum);
    sum = GpuFloat::mul_add(difference(3), coefficient(3), sum);
    GpuFloat::mul_add(difference(4), coefficient(4), sum)
}

/// The body of the teaching kernels, with `coefficient(m)` for the neighbours `m` elements
/// away.
///
/// - Tile: `blockDim.x + 8` elements of dynamic shared memory; cell c holds the
///   element `c - 4` of the block's own.
/// - Threads: one per element. Thread t < 4 also loads cell t of the left halo
///   and cell t of the right one.
///
/// # Safety
///
/// - `input` is readable and `output` writable for `n` elements; they do not
///   overlap. During the launch nobody writes `input`, and nothing else accesses
///   `output`.
/// - Blocks are one-dimensional and have at least 4 threads; the grid is
///   one-dimensional, `ceil(n / blockDim.x)` blocks.
/// - The launch gives `blockDim.x + 8` elements of dynamic shared memory.
#[inline(always)]
pub(super) unsafe fn stencil1d(
    input: *const f32,
    output: *mut f32,
    n: usize,
    coefficient: impl Fn(usize) -> f32,
) {
    let tile = shared::dynamic_shared_mem::<f32>();
    let block = thread::block_dim_x();
    let t = thread::thread_idx_x();
    let first_block = thread::block_idx_x() == 0;
    let loads_halo = t < RADIUS as u32;
    // 64 bits: a line may have more than 2³² elements, a tile has few.
    let i = thread::block_idx_x() as usize * block as usize + t as usize;
    let radius = RADIUS as u32;

    // SAFETY: two of the elements are below n by their conditions. The left halo
    // lies before the first element of the block, which is below n, and not
    // below 0, since i >= block > RADIUS in any block but the first. Cells are
    // below block + 2 * RADIUS, and no two threads have the same.
    unsafe {
        // All loads come before the first store, so they are in flight together. The zeros beyond
        // either end are never used.
        let (mut here, mut left, mut right) = (0.0, 0.0, 0.0);
        if i < n {
            here = *input.add(i);
        }
        // equivalent mutant (guard): the other threads would load, but store nothing
        if loads_halo {
            let ahead = i + block as usize;
            if !first_block {
                left = *input.add(i - RADIUS);
            }
            if ahead < n {
                right = *input.add(ahead);
            }
        }
        *tile.add((radius + t) as usize) = here;
        if loads_halo {
            *tile.add(t as usize) = left;
            *tile.add((radius + block + t) as usize) = right;
        }
    }
    // Every thread reaches this barrier, also those beyond the end.
    thread::sync_threads();

    if i >= RADIUS && i + RADIUS < n {
        // SAFETY: the eight neighbours are elements of the line, so the
        // conditions above let them be loaded, before the barrier; they lie
        // RADIUS cells around this thread's. Threads own disjoint elements of
        // `output`.
        unsafe {
            let center = tile.add((radius + t) as usize);
            *output.add(i) = weighted_sum(coefficient, |m| *center.add(m) - *center.sub(m));
        }
    }
}
