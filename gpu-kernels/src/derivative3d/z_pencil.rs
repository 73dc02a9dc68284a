//! ∂f/∂z with tiles of pencils along z, side by side in x.
//!
//! - Tile: `nz + 8` rows of `PENCILS` elements in dynamic shared memory.
//! - Grid: `(nx / PENCILS, ny)`; blocks of `(PENCILS, 4 * nz / PENCILS)`
//!   threads; a thread computes 1 point (4 pencils) or 8 (32 pencils).
//! - Neighbours along a pencil are `nx * ny` elements apart. With 4 pencils a warp accesses 8
//!   pieces of 16 bytes, half of each 32-byte sector that it moves; with 32 it accesses one run of
//!   128 bytes.
//! - Reads 4 bytes and writes 4 bytes per point; 11 flops per point.

use super::stencil::{PENCILS_LARGE, PENCILS_SMALL, column_pencils};
use cuda_std::prelude::*;

/// ∂f/∂z, a tile of 4 pencils, 1 point per thread.
///
/// `f` and `df`: `nx * ny * nz` elements, x fastest. `overlap` is 1 if both end points of the
/// period are stored, else 0.
///
/// # Safety
///
/// - `f` is readable and `df` writable for `nx * ny * nz` elements; they do not
///   overlap, and nothing else accesses `df` during the launch.
/// - Grid `(nx / 4, ny)`, block `(4, nz)`, dynamic shared memory
///   `4 * (nz + 8)` elements; `nx` is a multiple of 4.
/// - `overlap <= 1` and `nz >= 4 + overlap`.
/// - The z weights of [`DERIVATIVE3D_WEIGHTS`](value@super::DERIVATIVE3D_WEIGHTS) are set.
#[kernel]
pub unsafe fn derivative3d_z_pencil4(
    f: *const f32,
    df: *mut f32,
    nx: u32,
    ny: u32,
    nz: u32,
    overlap: u32,
) {
    // SAFETY: forwarded word for word.
    unsafe { z_pencils::<PENCILS_SMALL>(f, df, nx, ny, nz, overlap) }
}

/// ∂f/∂z, a tile of 32 pencils, 8 points per thread.
///
/// `f` and `df`: `nx * ny * nz` elements, x fastest. `overlap` is 1 if both end points of the
/// period are stored, else 0.
///
/// # Safety
///
/// As [`derivative3d_z_pencil4()`], with grid `(nx / 32, ny)`, block
/// `(32, nz / 8)`, dynamic shared memory of `32 * (nz + 8)` elements, `nx` a
/// multiple of 32 and `nz` of 8.
#[kernel]
pub unsafe fn derivative3d_z_pencil32(
    f: *const f32,
    df: *mut f32,
    nx: u32,
    ny: u32,
    nz: u32,
    overlap: u32,
) {
    // SAFETY: forwarded word for word.
    unsafe { z_pencils::<PENCILS_LARGE>(f, df, nx, ny, nz, overlap) }
}

/// Computes one tile of `PENCILS` columns.
///
/// # Safety
///
/// As the entry points, with `PENCILS` for the 4 or 32.
#[inline(always)]
unsafe fn z_pencils<const PENCILS: usize>(
    f: *const f32,
    df: *mut f32,
    nx: u32,
    ny: u32,
    nz: u32,
    overlap: u32,
) {
    let plane = nx as usize * ny as usize;
    let i0 = thread::block_idx_x() as usize * PENCILS;
    let j = thread::block_idx_y() as usize;
    // SAFETY: i0 + threadIdx.x < nx and j < ny by the launch geometry, so point
    // p < nz of the pencil is element (p * ny + j) * nx + i of the field; blocks
    // own disjoint (i, j).
    unsafe { column_pencils::<2, PENCILS>(f, df, j * nx as usize + i0, plane, nz, overlap) }
}

crate::register! {
    derivative3d_z_pencil4: f32, Textbook,
    "∂f/∂z, a tile of 4 whole pencils",
    geometry: super::geometry::pencils::<2, PENCILS_SMALL>,
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "(nz + 8) × 4",
    restrictions: "nz is at most 256, nx a multiple of 4",
    twin: same,
}

crate::register! {
    derivative3d_z_pencil32: f32, Textbook,
    "∂f/∂z, a tile of 32 whole pencils",
    geometry: super::geometry::pencils::<2, PENCILS_LARGE>,
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "(nz + 8) × 32",
    restrictions: "nz is at most 256 and a multiple of 8, nx a multiple of 32",
    twin: same,
}
