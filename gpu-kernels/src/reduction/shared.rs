//! The sum in static shared memory.
//!
//! - A block of `block` threads sums `block` elements; grid `ceil(n / block)`.
//! - Tile: a static array for the largest block, 4 KiB; a smaller block uses its first elements.
//! - Global memory is read once, coalesced: 4 bytes per element. The steps use shared memory only.

use super::tree::{Addable, MAX_BLOCK, add_up};
use cuda_std::prelude::*;
use cuda_std::shared_array;

/// Sums `n` elements of `values`, one per thread.
///
/// `partials`: one element per block.
///
/// # Safety
///
/// - `values` is readable for `n` elements, `partials` writable for one element
///   per block; they do not overlap, and nothing else accesses `partials` during
///   the launch.
/// - Blocks of one dimension, of 32, 64, … or 1024 threads; `ceil(n / block)` of
///   them, along x; `n >= 1`.
#[kernel]
pub unsafe fn reduction_shared_i32(values: *const i32, n: usize, partials: *mut i32) {
    let tile = shared_array![i32; MAX_BLOCK as usize];
    // SAFETY: forwarded; the tile is this block's and holds the largest block.
    unsafe { sum(tile, values, n, partials) }
}

/// Sums `n` elements of `values`, one per thread.
///
/// `partials`: one element per block.
///
/// # Safety
///
/// As [`reduction_shared_i32`](fn@reduction_shared_i32).
#[kernel]
pub unsafe fn reduction_shared_f32(values: *const f32, n: usize, partials: *mut f32) {
    let tile = shared_array![f32; MAX_BLOCK as usize];
    // SAFETY: forwarded; the tile is this block's and holds the largest block.
    unsafe { sum(tile, values, n, partials) }
}

macro_rules! registered {
    ($($name:ident: $type:ident;)+) => {$(
        crate::register! {
            $name: $type, Textbook,
            "a block adds in static shared memory",
            geometry: super::geometry::partial_sums::<1>,
            cost: super::geometry::elements::<$type>,
            example: super::geometry::EXAMPLE,
            tile: "block",
            restrictions: "blocks of 32, 64, … or 1024 threads",
            twin: same,
        }
    )+};
}

registered! {
    reduction_shared_i32: i32;
    reduction_shared_f32: f32;
}

/// # Safety
///
/// As the entry points; `tile` is shared memory for one element per thread.
#[inline(always)]
unsafe fn sum<T: Addable>(tile: *mut T, values: *const T, n: usize, partials: *mut T) {
    let thread = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * thread::block_dim_x() as usize + thread;
    // SAFETY: reads below n only; each thread writes its own element of the tile, and all are
    // written after the barrier.
    unsafe {
        *tile.add(thread) = if i < n { *values.add(i) } else { T::ZERO };
        thread::sync_threads();
        add_up(tile, |_| true, partials);
    }
}
