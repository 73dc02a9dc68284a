//! The sum in global memory: each step reads and writes the input array.
//!
//! - A block of `block` threads sums `block` elements; grid `ceil(n / block)`.
//! - The input is destroyed: the first element of each block's part becomes the part's sum, the
//!   others hold intermediate sums.
//! - Every step goes through the caches: 4 bytes per element are read from memory and 4 are written
//!   back.

use super::tree::{Addable, add_up};
use cuda_std::prelude::*;

/// Sums `n` elements of `values`, one per thread, in place. **Destroys `values`.**
///
/// `partials`: one element per block.
///
/// # Safety
///
/// - `values` is readable and writable for `n` elements, `partials` writable for
///   one element per block; they do not overlap, and nothing else accesses them
///   during the launch.
/// - Blocks of one dimension, of 32, 64, … or 1024 threads; `ceil(n / block)` of
///   them, along x; `n >= 1`.
#[kernel]
pub unsafe fn reduction_global_i32(values: *mut i32, n: usize, partials: *mut i32) {
    // SAFETY: forwarded word for word.
    unsafe { sum(values, n, partials) }
}

/// Sums `n` elements of `values`, one per thread, in place. **Destroys `values`.**
///
/// `partials`: one element per block.
///
/// # Safety
///
/// As [`reduction_global_i32`](fn@reduction_global_i32).
#[kernel]
pub unsafe fn reduction_global_f32(values: *mut f32, n: usize, partials: *mut f32) {
    // SAFETY: forwarded word for word.
    unsafe { sum(values, n, partials) }
}

macro_rules! registered {
    ($($name:ident: $type:ident;)+) => {$(
        crate::register! {
            $name: $type, Textbook,
            "a block adds in the input itself, which it destroys",
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
    reduction_global_i32: i32;
    reduction_global_f32: f32;
}

/// # Safety
///
/// As the entry points.
#[inline(always)]
unsafe fn sum<T: Addable>(values: *mut T, n: usize, partials: *mut T) {
    let block = thread::block_dim_x() as usize;
    // 64 bits: the array may have more than 2³² elements, a block's part may not.
    let base = thread::block_idx_x() as usize * block;
    let len = (n - base).min(block) as u32;
    // SAFETY: base < n, since there are ceil(n / block) blocks; no other block accesses the part
    // from there on, of `len` elements. No thread has written to it before.
    unsafe { add_up(values.add(base), |i| i < len, partials) }
}
