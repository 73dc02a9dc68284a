//! ∂f/∂y with tiles of pencils along y, side by side in x.
//!
//! - Tile: `ny + 8` rows of `PENCILS` elements in dynamic shared memory.
//! - Grid: `(nx / PENCILS, nz)`; blocks of `(PENCILS, 4 * ny / PENCILS)`
//!   threads; a thread computes 1 point (4 pencils) or 8 (32 pencils).
//! - Neighbours along a pencil are `nx` elements apart. With 4 pencils a warp accesses 8 pieces of
//!   16 bytes, half of each 32-byte sector that it moves; with 32 it accesses one run of 128 bytes.
//! - Reads 4 bytes and writes 4 bytes per point; 11 flops per point.

use super::stencil::{PENCILS_LARGE, PENCILS_SMALL, column_pencils};
use cuda_std::prelude::*;

/// ∂f/∂y, a tile of 4 pencils, 1 point per thread.
///
/// `f` and `df`: `nx * ny * nz` elements, x fastest. `overlap` is 1 if both end points of the
/// period are stored, else 0.
///
/// # Safety
///
/// - `f` is readable and `df` writable for `nx * ny * nz` elements; they do not
///   overlap, and nothing else accesses `df` during the launch.
/// - Grid `(nx / 4, nz)`, block `(4, ny)`, dynamic shared memory
///   `4 * (ny + 8)` elements; `nx` is a multiple of 4.
/// - `overlap <= 1` and `ny >= 4 + overlap`.
/// - The y weights of [`DERIVATIVE3D_WEIGHTS`](value@super::DERIVATIVE3D_WEIGHTS) are set.
#[kernel]
pub unsafe fn derivative3d_y_pencil4(f: *const f32, df: *mut f32, nx: u32, ny: u32, overlap: u32) {
    // SAFETY: forwarded word for word.
    unsafe { y_pencils::<PENCILS_SMALL>(f, df, nx, ny, overlap) }
}

/// ∂f/∂y, a tile of 32 pencils, 8 points per thread.
///
/// `f` and `df`: `nx * ny * nz` elements, x fastest. `overlap` is 1 if both end points of the
/// period are stored, else 0.
///
/// # Safety
///
/// As [`derivative3d_y_pencil4()`], with grid `(nx / 32, nz)`, block
/// `(32, ny / 8)`, dynamic shared memory of `32 * (ny + 8)` elements, `nx` a
/// multiple of 32 and `ny` of 8.
#[kernel]
pub unsafe fn derivative3d_y_pencil32(f: *const f32, df: *mut f32, nx: u32, ny: u32, overlap: u32) {
    // SAFETY: forwarded word for word.
    unsafe { y_pencils::<PENCILS_LARGE>(f, df, nx, ny, overlap) }
}

/// Computes one tile of `PENCILS` columns.
///
/// # Safety
///
/// As the entry points, with `PENCILS` for the 4 or 32.
#[inline(always)]
unsafe fn y_pencils<const PENCILS: usize>(
    f: *const f32,
    df: *mut f32,
    nx: u32,
    ny: u32,
    overlap: u32,
) {
    let plane = nx as usize * ny as usize;
    let i0 = thread::block_idx_x() as usize * PENCILS;
    let k = thread::block_idx_y() as usize;
    // SAFETY: i0 + threadIdx.x < nx and k < nz by the launch geometry, so point
    // p < ny of the pencil is element (k * ny + p) * nx + i of the field; blocks
    // own disjoint (i, k).
    unsafe { column_pencils::<1, PENCILS>(f, df, k * plane + i0, nx as usize, ny, overlap) }
}

crate::register! {
    derivative3d_y_pencil4: f32, Textbook,
    "∂f/∂y, a tile of 4 whole pencils",
    geometry: super::geometry::pencils::<1, PENCILS_SMALL>,
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "(ny + 8) × 4",
    restrictions: "ny is at most 256, nx a multiple of 4",
    twin: same,
}

crate::register! {
    derivative3d_y_pencil32: f32, Textbook,
    "∂f/∂y, a tile of 32 whole pencils",
    geometry: super::geometry::pencils::<1, PENCILS_LARGE>,
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "(ny + 8) × 32",
    restrictions: "ny is at most 256 and a multiple of 8, nx a multiple of 32",
    twin: same,
}
