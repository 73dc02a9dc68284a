//! The sum in static shared memory, 4 elements per thread.
//!
//! - A block of `block` threads sums `4 * block` elements; grid `ceil(n / (4 * block))`. A thread's
//!   elements lie `block` apart, so each of the four loads of a warp is contiguous.
//! - Tile: a static array for the largest block, 4 KiB; a smaller block uses its first elements.
//! - Four independent loads in flight per thread hide more of the memory's latency than one, and
//!   the steps in shared memory serve four times as many elements. Global memory is read once: 4
//!   bytes per element.

use super::tree::{Addable, MAX_BLOCK, UNROLL, add_up};
use cuda_std::prelude::*;
use cuda_std::shared_array;

/// Sums `n` elements of `values`, four per thread.
///
/// `partials`: one element per block.
///
/// # Safety
///
/// - `values` is readable for `n` elements, `partials` writable for one element
///   per block; they do not overlap, and nothing else accesses `partials` during
///   the launch.
/// - Blocks of one dimension, of 32, 64, … or 1024 threads; `ceil(n / (4 * block))`
///   of them, along x; `n >= 1`.
#[kernel]
pub unsafe fn reduction_shared_unroll4_i32(values: *const i32, n: usize, partials: *mut i32) {
    let tile = shared_array![i32; MAX_BLOCK as usize];
    // SAFETY: forwarded; the tile is this block's and holds the largest block.
    unsafe { sum(tile, values, n, partials) }
}

/// Sums `n` elements of `values`, four per thread.
///
/// `partials`: one element per block.
///
/// # Safety
///
/// As [`reduction_shared_unroll4_i32`](fn@reduction_shared_unroll4_i32).
#[kernel]
pub unsafe fn reduction_shared_unroll4_f32(values: *const f32, n: usize, partials: *mut f32) {
    let tile = shared_array![f32; MAX_BLOCK as usize];
    // SAFETY: forwarded; the tile is this block's and holds the largest block.
    unsafe { sum(tile, values, n, partials) }
}

macro_rules! registered {
    ($($name:ident: $type:ident;)+) => {$(
        crate::register! {
            $name: $type, Textbook,
            "a thread adds 4 elements before its block does",
            geometry: super::geometry::partial_sums::<{ UNROLL }>,
            cost: super::geometry::elements::<$type>,
            example: super::geometry::EXAMPLE,
            tile: "4 * block",
            restrictions: "blocks of 32, 64, … or 1024 threads",
            twin: same,
        }
    )+};
}

registered! {
    reduction_shared_unroll4_i32: i32;
    reduction_shared_unroll4_f32: f32;
}

/// # Safety
///
/// As the entry points; `tile` is shared memory for one element per thread.
#[inline(always)]
pub(super) unsafe fn sum<T: Addable>(tile: *mut T, values: *const T, n: usize, partials: *mut T) {
    let thread = thread::thread_idx_x() as usize;
    let block = thread::block_dim_x() as usize;
    // A 32-bit product, so that a 32-bit multiplication suffices.
    let span = (UNROLL * thread::block_dim_x()) as usize;
    let base = thread::block_idx_x() as usize * span;
    let left = n - base;
    // SAFETY: base < n, since there are ceil(n / span) blocks. If `left >= span`, the whole span
    // lies below n; otherwise only the `left` elements below n are read.
    let sum = unsafe {
        let own = values.add(base + thread);
        // equivalent mutant (comparison): the loop for the last block gives a whole span the same sum
        // equivalent mutant (guard: made `false`): as above
        if left >= span {
            // One branch for all four loads, so they are independent.
            let mut sum = *own;
            for k in 1..UNROLL as usize {
                sum = sum.add(*own.add(k * block));
            }
            sum
        } else {
            let mut sum = T::ZERO;
            let mut i = thread;
            while i < left {
                sum = sum.add(*values.add(base + i));
                i += block;
            }
            sum
        }
    };
    // SAFETY: each thread writes its own element of the tile, and all are written after the
    // barrier.
    unsafe {
        *tile.add(thread) = sum;
        thread::sync_threads();
        add_up(tile, |_| true, partials);
    }
}
