//! The sum in dynamic shared memory, 4 elements per thread.
//!
//! - A block of `block` threads sums `4 * block` elements; grid
//!   `ceil(n / (4 * block))`.
//! - Tile: `block` elements of dynamic shared memory, given at launch. A static array must hold the
//!   largest block that may be launched; this one is as large as the actual block, so more small
//!   blocks fit on a multiprocessor.
//! - Everything else, including the order of the additions, is as in
//!   [`shared_unroll4`](super::shared_unroll4).

use super::shared_unroll4::sum;
use cuda_std::prelude::*;
use cuda_std::shared;

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
/// - Dynamic shared memory for `block` elements.
#[kernel]
pub unsafe fn reduction_shared_unroll4_dynamic_i32(
    values: *const i32,
    n: usize,
    partials: *mut i32,
) {
    // SAFETY: forwarded; the launch gives shared memory for one element per thread.
    unsafe { sum(shared::dynamic_shared_mem::<i32>(), values, n, partials) }
}

/// Sums `n` elements of `values`, four per thread.
///
/// `partials`: one element per block.
///
/// # Safety
///
/// As [`reduction_shared_unroll4_dynamic_i32`](fn@reduction_shared_unroll4_dynamic_i32).
#[kernel]
pub unsafe fn reduction_shared_unroll4_dynamic_f32(
    values: *const f32,
    n: usize,
    partials: *mut f32,
) {
    // SAFETY: forwarded; the launch gives shared memory for one element per thread.
    unsafe { sum(shared::dynamic_shared_mem::<f32>(), values, n, partials) }
}

macro_rules! registered {
    ($($name:ident: $type:ident;)+) => {$(
        crate::register! {
            $name: $type, Textbook,
            "the same in dynamic shared memory",
            geometry: super::geometry::partial_sums_tiled::<$type>,
            cost: super::geometry::elements::<$type>,
            example: super::geometry::EXAMPLE,
            tile: "4 * block",
            restrictions: "blocks of 32, 64, … or 1024 threads",
            twin: same,
        }
    )+};
}

registered! {
    reduction_shared_unroll4_dynamic_i32: i32;
    reduction_shared_unroll4_dynamic_f32: f32;
}
