//! One iteration with tiles that overlap by 2, so each contains the halo of the points that its
//! block writes.
//!
//! - Tile: 16 × 16 in shared memory, 1 KiB, one load per thread. The tile of block (bx, by) begins
//!   at point (14 bx, 14 by).
//! - Threads: all load, the inner 14 × 14 compute while 60 of 256 idle.
//! - Grid: `(ceil((nx - 2) / 14), ceil((ny - 2) / 14))`: as many blocks as needed to write `nx - 2`
//!   points in steps of 14. The last block of a row may reach beyond the field; it loads and writes
//!   only points inside.
//! - Reads 4 · (16/14)² = 5.2 bytes per point and writes 4; 4 flops.

use super::plate::{BLOCK, OVERLAP_STEP, element, is_inner, stencil};
use cuda_std::prelude::*;
use cuda_std::shared_array;

// gate heat2d_shared_overlap: LDG = 1, LDS = 4, STS = 1, STG = 1, LD = 0, ST = 0

/// One iteration, 16 × 16 tiles that overlap by 2.
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
/// - Blocks of `(16, 16)` threads; grid at most
///   `(ceil((nx - 2) / 14), ceil((ny - 2) / 14))`, and no less if every point is
///   to be written.
#[kernel]
pub unsafe fn heat2d_shared_overlap(old: *const f32, new: *mut f32, nx: u32, ny: u32) {
    let tile = shared_array![f32; (BLOCK * BLOCK) as usize];
    let (tx, ty) = (thread::thread_idx_x(), thread::thread_idx_y());
    let i = thread::block_idx_x() * OVERLAP_STEP + tx;
    let j = thread::block_idx_y() * OVERLAP_STEP + ty;
    let at = element(i, j, nx);
    let cell = element(tx, ty, BLOCK);

    if i < nx && j < ny {
        // SAFETY: the point is inside the field, the cell inside the tile; each
        // thread has its own.
        unsafe { *tile.add(cell) = *old.add(at) };
    }
    // Every thread reaches this barrier, also those beyond the field.
    thread::sync_threads();

    let inner_cell = is_inner(tx, BLOCK) && is_inner(ty, BLOCK);
    // An inner cell is never on the walls at i = 0 and j = 0, since it has cells before it.
    if inner_cell && i < nx - 1 && j < ny - 1 {
        // SAFETY: the neighbours of an inner cell are in the tile; the point is
        // off the upper walls, so they are in the field as well and were loaded
        // before the barrier. Inner cells of different blocks are different
        // points.
        unsafe { *new.add(at) = stencil(tile.add(cell), BLOCK) };
    }
}

crate::register! {
    heat2d_shared_overlap: f32, Textbook,
    "overlapping tiles in shared memory",
    geometry: super::geometry::overlapping,
    cost: super::geometry::iteration::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "16 × 16",
    twin: same,
}
