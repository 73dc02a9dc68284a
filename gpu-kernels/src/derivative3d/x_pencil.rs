//! ∂f/∂x with tiles of pencils along x, the contiguous axis.
//!
//! - Tile: `PENCILS` rows of `nx + 8` elements in dynamic shared memory.
//! - Grid: `(ny / PENCILS, nz)`; blocks of `(nx, 4)` threads; a thread computes
//!   1 point (4 pencils) or 8 (32 pencils).
//! - A row of the tile is contiguous in device memory: loads and stores are
//!   coalesced for either tile. Eight points per thread save seven eighths of
//!   the index arithmetic and give each thread eight loads in flight.
//! - Moves 4 bytes in and 4 bytes out per point; 11 flops per point.

use super::{PENCILS_IN_FLIGHT, PENCILS_LARGE, PENCILS_SMALL, RADIUS, stencil};
use cuda_std::prelude::*;
use cuda_std::shared;

/// ∂f/∂x, a tile of 4 pencils, 1 point per thread.
///
/// `f` and `df`: `nx * ny * nz` elements, x fastest. `overlap` is 1 where both
/// end points of the period are stored, else 0.
///
/// # Safety
///
/// - `f` is readable and `df` writable for `nx * ny * nz` elements; they do not
///   overlap, and nothing else accesses `df` during the launch.
/// - Grid `(ny / 4, nz)`, block `(nx, 4)`, dynamic shared memory
///   `4 * (nx + 8)` elements; `ny` is a multiple of 4.
/// - `overlap <= 1` and `nx >= 4 + overlap`.
/// - The x weights of [`DERIVATIVE3D_WEIGHTS`](super::DERIVATIVE3D_WEIGHTS) are set.
#[kernel]
pub unsafe fn derivative3d_x_pencil4(f: *const f32, df: *mut f32, nx: u32, ny: u32, overlap: u32) {
    // SAFETY: forwarded word for word.
    unsafe { x_pencils::<PENCILS_SMALL>(f, df, nx as usize, ny as usize, overlap as usize) }
}

/// ∂f/∂x, a tile of 32 pencils, 8 points per thread.
///
/// `f` and `df`: `nx * ny * nz` elements, x fastest. `overlap` is 1 where both
/// end points of the period are stored, else 0.
///
/// # Safety
///
/// As [`derivative3d_x_pencil4`], with grid `(ny / 32, nz)`, dynamic shared
/// memory of `32 * (nx + 8)` elements, and `ny` a multiple of 32.
#[kernel]
pub unsafe fn derivative3d_x_pencil32(f: *const f32, df: *mut f32, nx: u32, ny: u32, overlap: u32) {
    // SAFETY: forwarded word for word.
    unsafe { x_pencils::<PENCILS_LARGE>(f, df, nx as usize, ny as usize, overlap as usize) }
}

/// One tile of `PENCILS` rows.
///
/// # Safety
///
/// As the entry points, with `PENCILS` for the 4 or 32.
#[inline(always)]
unsafe fn x_pencils<const PENCILS: usize>(
    f: *const f32,
    df: *mut f32,
    nx: usize,
    ny: usize,
    overlap: usize,
) {
    let points = PENCILS / PENCILS_IN_FLIGHT;
    let tile = shared::dynamic_shared_mem::<f32>();
    let row_len = nx + 2 * RADIUS;
    let i = thread::thread_idx_x() as usize;
    let first = thread::thread_idx_y() as usize;
    let j0 = thread::block_idx_x() as usize * PENCILS;
    let k = thread::block_idx_y() as usize;
    let global = |row: usize| (k * ny + j0 + row) * nx + i;
    // Element r of a row of the tile holds the point r - RADIUS.
    let cell = |row: usize, element: usize| row * row_len + element;

    // SAFETY: a thread stores elements of its own rows and columns only, all
    // below PENCILS * row_len; what it reads was written before the last
    // barrier. j0 + row < ny, k < nz and i < nx by the launch geometry.
    unsafe {
        for n in 0..points {
            let row = first + n * PENCILS_IN_FLIGHT;
            *tile.add(cell(row, i + RADIUS)) = *f.add(global(row));
        }
        thread::sync_threads();

        // The tile holds whole pencils, so their periodic images are in it too.
        if i < RADIUS {
            for n in 0..points {
                let row = first + n * PENCILS_IN_FLIGHT;
                *tile.add(cell(row, i)) = *tile.add(cell(row, nx - overlap + i));
                *tile.add(cell(row, nx + RADIUS + i)) = *tile.add(cell(row, RADIUS + overlap + i));
            }
        }
        thread::sync_threads();

        for n in 0..points {
            let row = first + n * PENCILS_IN_FLIGHT;
            *df.add(global(row)) = stencil::<0>(tile.add(cell(row, i + RADIUS)), 1);
        }
    }
}
