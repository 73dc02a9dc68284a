//! ∂f/∂x with tiles of pencils along x, the contiguous axis.
//!
//! - Tile: `PENCILS` rows of `nx + 8` elements in dynamic shared memory.
//! - Grid: `(ny / PENCILS, nz)`; blocks of `(nx, 4)` threads; a thread computes
//!   1 point (4 pencils) or 8 (32 pencils).
//! - A row of the tile is contiguous in device memory, so loads and stores are coalesced with both
//!   tiles. Eight points per thread save seven eighths of the index arithmetic and give each thread
//!   eight loads in flight.
//! - Reads 4 bytes and writes 4 bytes per point; 11 flops per point.

use super::stencil::{PENCILS_IN_FLIGHT, PENCILS_LARGE, PENCILS_SMALL, RADIUS, stencil};
use cuda_std::prelude::*;
use cuda_std::shared;

/// ∂f/∂x, a tile of 4 pencils, 1 point per thread.
///
/// `f` and `df`: `nx * ny * nz` elements, x fastest. `overlap` is 1 if both end points of the
/// period are stored, else 0.
///
/// # Safety
///
/// - `f` is readable and `df` writable for `nx * ny * nz` elements; they do not
///   overlap, and nothing else accesses `df` during the launch.
/// - Grid `(ny / 4, nz)`, block `(nx, 4)`, dynamic shared memory
///   `4 * (nx + 8)` elements; `ny` is a multiple of 4.
/// - `overlap <= 1`, `nx >= 4 + overlap`, and `ny * nz` fits `u32`.
/// - The x weights of [`DERIVATIVE3D_WEIGHTS`](value@super::DERIVATIVE3D_WEIGHTS) are set.
#[kernel]
pub unsafe fn derivative3d_x_pencil4(f: *const f32, df: *mut f32, nx: u32, ny: u32, overlap: u32) {
    // SAFETY: forwarded word for word.
    unsafe { x_pencils::<PENCILS_SMALL>(f, df, nx, ny, overlap) }
}

/// ∂f/∂x, a tile of 32 pencils, 8 points per thread.
///
/// `f` and `df`: `nx * ny * nz` elements, x fastest. `overlap` is 1 if both end points of the
/// period are stored, else 0.
///
/// # Safety
///
/// As [`derivative3d_x_pencil4()`], with grid `(ny / 32, nz)`, dynamic shared
/// memory of `32 * (nx + 8)` elements, and `ny` a multiple of 32.
#[kernel]
pub unsafe fn derivative3d_x_pencil32(f: *const f32, df: *mut f32, nx: u32, ny: u32, overlap: u32) {
    // SAFETY: forwarded word for word.
    unsafe { x_pencils::<PENCILS_LARGE>(f, df, nx, ny, overlap) }
}

// 256 points along x make blocks of 1024 threads; two of them leave each thread this many:
// gate derivative3d_x_pencil32: registers <= 32

/// Computes one tile of `PENCILS` rows.
///
/// # Safety
///
/// As the entry points, with `PENCILS` for the 4 or 32.
#[inline(always)]
unsafe fn x_pencils<const PENCILS: usize>(
    f: *const f32,
    df: *mut f32,
    nx: u32,
    ny: u32,
    overlap: u32,
) {
    // equivalent mutant (width: `PENCILS + 1`): 5 or 33 over 4 rounds down to the same
    let points = PENCILS / PENCILS_IN_FLIGHT;
    let tile = shared::dynamic_shared_mem::<f32>();
    let radius = RADIUS as u32;
    let row_len = nx + 2 * radius;
    let i = thread::thread_idx_x();
    let first = thread::thread_idx_y();
    let first_row = thread::block_idx_y() * ny + thread::block_idx_x() * PENCILS as u32 + first;
    let step = PENCILS_IN_FLIGHT as u32;
    // 64 bits: a field may have more than 2³² points, a tile may not.
    let global = first_row as usize * nx as usize + i as usize;
    let global_step = step as usize * nx as usize;
    // An element of this thread's first row of the tile; its other rows follow at a constant
    // distance. Element r of a row holds point r - RADIUS.
    let row = |element: u32| (first * row_len + element) as usize;
    let row_step = (step * row_len) as usize;

    // SAFETY: a thread stores elements of its own rows and columns only, all
    // below PENCILS * row_len; what it reads was written before the last
    // barrier. By the launch geometry i < nx, and the row of the field is below
    // ny * nz; so global + n * global_step is in bounds for n < points.
    unsafe {
        let own = tile.add(row(i + radius));
        for n in 0..points {
            let value = *f.add(global + n * global_step);
            *own.add(n * row_step) = value;
        }
        thread::sync_threads();

        // The tile holds whole pencils, so it also holds their periodic images, one period away.
        if i < radius {
            // Each row is read and written before the next. Reading the images of several rows
            // before writing any is 4 % faster at 64 points along x and 8 % slower at 256 (measured
            // on an H200; presumably the two blocks of a multiprocessor then load at the same time
            // and compute at the same time).
            let (left, last) = (tile.add(row(i)), tile.add(row(nx - overlap + i)));
            let (right, next) = (tile.add(row(nx + radius + i)), own.add(overlap as usize));
            for n in 0..points {
                *left.add(n * row_step) = *last.add(n * row_step);
                *right.add(n * row_step) = *next.add(n * row_step);
            }
        }
        thread::sync_threads();

        for n in 0..points {
            *df.add(global + n * global_step) = stencil::<0>(own.add(n * row_step), 1);
        }
    }
}

crate::register! {
    derivative3d_x_pencil4: f32, Textbook,
    "∂f/∂x, a tile of 4 whole pencils",
    geometry: super::geometry::pencils::<0, PENCILS_SMALL>,
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "4 × (nx + 8)",
    restrictions: "nx is at most 256, ny a multiple of 4",
    twin: same,
}

crate::register! {
    derivative3d_x_pencil32: f32, Textbook,
    "∂f/∂x, a tile of 32 whole pencils",
    geometry: super::geometry::pencils::<0, PENCILS_LARGE>,
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "32 × (nx + 8)",
    restrictions: "nx is at most 256, ny a multiple of 32",
    twin: same,
}
