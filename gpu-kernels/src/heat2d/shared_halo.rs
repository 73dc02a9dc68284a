//! One iteration with a tile that holds the block's points and their halo.
//!
//! - Tile: 18 × 18 in shared memory, 1.3 KiB, x fastest. Block (bx, by) writes
//!   the points from (1 + 16 bx, 1 + 16 by) on, so its tile begins with point
//!   (16 bx, 16 by): no index is ever negative.
//! - Threads: 256 load 324 cells in two rounds, in the order of the tile's rows; then each computes
//!   one point.
//! - Grid: `(ceil((nx - 2) / 16), ceil((ny - 2) / 16))`; blocks of `(16, 16)`.
//! - Reads 4 · (18/16)² = 5.1 bytes per point and writes 4; 4 flops.

use super::plate::{BLOCK, HALO, HALO_TILE, element, stencil};
use cuda_std::cache::load_readonly;
use cuda_std::prelude::*;
use cuda_std::shared_array;

/// Cells of the tile.
const CELLS: u32 = HALO_TILE * HALO_TILE;

/// Threads of a block.
const THREADS: u32 = BLOCK * BLOCK;

/// Rounds of loads; in the last one only some threads load.
const ROUNDS: u32 = CELLS.div_ceil(THREADS);

// gate heat2d_shared_halo: LDG = 2, LDS = 4, STS = 2, STG = 1, LD = 0, ST = 0

/// One iteration, an 18 × 18 tile with halo.
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
///   `(ceil((nx - 2) / 16), ceil((ny - 2) / 16))`, and no less if every point is
///   to be written.
#[kernel]
pub unsafe fn heat2d_shared_halo(old: *const f32, new: *mut f32, nx: u32, ny: u32) {
    let tile = shared_array![f32; CELLS as usize];
    let (tx, ty) = (thread::thread_idx_x(), thread::thread_idx_y());
    let x0 = thread::block_idx_x() * BLOCK;
    let y0 = thread::block_idx_y() * BLOCK;

    let mut cell = ty * BLOCK + tx;
    let (mut column, mut row) = (cell % HALO_TILE, cell / HALO_TILE);
    // equivalent mutant (range-end): in one more round no cell is left
    for _ in 0..ROUNDS {
        let (i, j) = (x0 + column, y0 + row);
        if cell < CELLS && i < nx && j < ny {
            // SAFETY: the cell is inside the tile, the point inside the field, which
            // nobody writes; no two threads, or rounds, have the same cell.
            unsafe { *tile.add(cell as usize) = load_readonly(old.add(element(i, j, nx))) };
        }
        // This avoids another division: the next cell is a fixed number of rows and columns
        // further.
        cell += THREADS;
        row += THREADS / HALO_TILE;
        column += THREADS % HALO_TILE;
        if column >= HALO_TILE {
            column -= HALO_TILE;
            row += 1;
        }
    }
    // Every thread reaches this barrier, also those beyond the field.
    thread::sync_threads();

    let (i, j) = (x0 + HALO + tx, y0 + HALO + ty);
    if i < nx - 1 && j < ny - 1 {
        // SAFETY: the point is off the walls (i and j are at least 1), so its
        // neighbours are in the field; they are in the tile and were loaded
        // before the barrier. Threads own disjoint points of `new`.
        unsafe {
            let center = tile.add(element(tx + HALO, ty + HALO, HALO_TILE));
            *new.add(element(i, j, nx)) = stencil(center, HALO_TILE);
        }
    }
}

crate::register! {
    heat2d_shared_halo: f32, Textbook,
    "a tile with halo in shared memory",
    geometry: super::geometry::interior,
    cost: super::geometry::iteration::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "18 × 18",
    twin: same,
}
