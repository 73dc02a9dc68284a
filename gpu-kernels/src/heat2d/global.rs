//! One iteration with four global loads per point.
//!
//! - Threads: one per point, walls included; those on a wall do nothing.
//! - Grid: `(ceil(nx / 16), ceil(ny / 16))`; blocks of `(16, 16)` threads.
//! - Reads 16 bytes per interior point, of which the first-level cache should supply all but 4, and
//!   writes 4 bytes; 4 flops.

use super::plate::{BLOCK, element, is_inner, stencil};
use cuda_std::prelude::*;

// gate heat2d_global: LDG = 4, STG = 1, FADD = 3, FMUL = 1, LD = 0, ST = 0

/// One iteration, four global loads per point.
///
/// `old` and `new`: `nx * ny` elements, x fastest. Writes the interior points
/// of `new`.
///
/// # Safety
///
/// - `old` is readable and `new` writable for `nx * ny` elements; they do not
///   overlap. During the launch nobody writes `old`, and nothing else accesses
///   `new`.
/// - `nx` and `ny` are at least 3 and at most `i32::MAX`.
/// - Blocks of `(16, 16)` threads; grid at most `(ceil(nx / 16), ceil(ny / 16))`,
///   and no less if every point is to be written.
#[kernel]
pub unsafe fn heat2d_global(old: *const f32, new: *mut f32, nx: u32, ny: u32) {
    let i = thread::block_idx_x() * BLOCK + thread::thread_idx_x();
    let j = thread::block_idx_y() * BLOCK + thread::thread_idx_y();

    if is_inner(i, nx) && is_inner(j, ny) {
        let at = element(i, j, nx);
        // SAFETY: an inner point has four neighbours inside the field; threads
        // own disjoint points.
        unsafe { *new.add(at) = stencil(old.add(at), nx) };
    }
}

crate::register! {
    heat2d_global: f32, Textbook,
    "four loads from global memory",
    geometry: super::geometry::all_points,
    cost: super::geometry::iteration::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "16 × 16",
    twin: same,
}
