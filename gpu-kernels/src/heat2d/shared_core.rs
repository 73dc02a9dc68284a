//! One iteration with a tile without halo: points beyond the tile are read from global memory.
//!
//! - Tile: 16 × 16 in shared memory, 1 KiB; its rows fill 16 banks each, so the two rows of a warp
//!   have no bank conflict.
//! - Threads: one per point, walls included; all of them load, those off the walls compute. A
//!   thread on the tile's rim reads the one or two neighbours outside the tile from global memory:
//!   64 loads per block beside the 256 that fill the tile.
//! - Grid: `(ceil(nx / 16), ceil(ny / 16))`; blocks of `(16, 16)` threads.
//! - Reads 5 bytes per point and writes 4; 4 flops.

use super::plate::{BLOCK, average, element, is_inner};
use cuda_std::prelude::*;
use cuda_std::shared_array;

/// The last column and the last row of the tile.
const LAST: u32 = BLOCK - 1;

// A neighbour is read from shared or from global memory, never by a generic load:
// gate heat2d_shared_core: LDG = 5, LDS = 4, STS = 1, STG = 1, LD = 0, ST = 0

/// One iteration, a 16 × 16 tile without halo.
///
/// `old` and `new`: `nx * ny` elements, x fastest. Writes the interior points
/// of `new`.
///
/// # Safety
///
/// As [`heat2d_global`](fn@super::global::heat2d_global).
#[kernel]
pub unsafe fn heat2d_shared_core(old: *const f32, new: *mut f32, nx: u32, ny: u32) {
    let tile = shared_array![f32; (BLOCK * BLOCK) as usize];
    let (tx, ty) = (thread::thread_idx_x(), thread::thread_idx_y());
    let i = thread::block_idx_x() * BLOCK + tx;
    let j = thread::block_idx_y() * BLOCK + ty;
    let at = element(i, j, nx);
    let cell = element(tx, ty, BLOCK);

    if i < nx && j < ny {
        // SAFETY: the point is inside the field, the cell inside the tile; each
        // thread has its own.
        unsafe { *tile.add(cell) = *old.add(at) };
    }
    // Every thread reaches this barrier, also those beyond the field.
    thread::sync_threads();

    if is_inner(i, nx) && is_inner(j, ny) {
        let (row, pitch) = (BLOCK as isize, nx as isize);
        // The neighbour at offset `in_rows` in the tile or, if it is outside the tile, at offset
        // `in_field` in the field.
        let neighbour = |in_tile: bool, in_rows: isize, in_field: isize| {
            // SAFETY: an inner point has four neighbours inside the field, and
            // nobody writes `old`. A neighbour that is in the tile too was loaded,
            // before the barrier, by the thread beside this one.
            unsafe {
                // equivalent mutant (guard: made `false`): the field holds the same value
                if in_tile {
                    *tile.add(cell).offset(in_rows)
                } else {
                    *old.add(at).offset(in_field)
                }
            }
        };
        let east = neighbour(tx != LAST, 1, 1);
        let west = neighbour(tx != 0, -1, -1);
        let north = neighbour(ty != LAST, row, pitch);
        let south = neighbour(ty != 0, -row, -pitch);
        // SAFETY: threads own disjoint points of `new`.
        unsafe { *new.add(at) = average(east, west, north, south) };
    }
}

crate::register! {
    heat2d_shared_core: f32, Textbook,
    "a tile without halo in shared memory",
    geometry: super::geometry::all_points,
    cost: super::geometry::iteration::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "16 × 16",
    twin: same,
}
