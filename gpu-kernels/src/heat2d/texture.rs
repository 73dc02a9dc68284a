//! One iteration that reads through a texture object.
//!
//! - `old` is a 2-D texture object over linear memory with padded rows (CUDA's "pitch 2D"), point
//!   filtering, unnormalised coordinates: element (i, j) is fetched at (i + 0.5, j + 0.5), the
//!   centre of its unit square. Both are exact in `f32`: devices bind at most 2¹⁷ columns and fewer
//!   rows.
//! - `new` is the linear memory behind another texture; the next launch swaps the two.
//! - Threads: one per point, walls included; those on a wall do nothing.
//! - Grid: `(ceil(nx / 16), ceil(ny / 16))`; blocks of `(16, 16)` threads.
//! - Fetches 16 bytes per interior point, of which the texture cache should supply all but 4, and
//!   writes 4 bytes; 4 flops.

use super::plate::{BLOCK, average, element, is_inner};
use cuda_std::prelude::*;
use cuda_std::texture::tex2d;

// gate heat2d_texture: TEX = 4, LDG = 0, STG = 1, LD = 0, ST = 0

/// One iteration, four texture fetches per point.
///
/// `old`: the handle of a texture of `nx` × `ny` elements. `new`: `ny` rows of
/// `nx` elements, `pitch` elements apart. Writes the interior points of `new`.
///
/// # Safety
///
/// - `old` is the handle of a 2-D texture object of `nx` × `ny` elements of
///   `f32`, with point filtering and unnormalised coordinates, whose memory
///   nobody writes during the launch.
/// - `new` is writable for `ny` rows of `nx` elements, `pitch` elements apart,
///   and nothing else accesses it during the launch.
/// - `nx` and `ny` are at least 3 and at most 2²²; `pitch >= nx`.
/// - Blocks of `(16, 16)` threads; grid at most `(ceil(nx / 16), ceil(ny / 16))`,
///   and no less if every point is to be written.
#[kernel]
pub unsafe fn heat2d_texture(old: u64, new: *mut f32, nx: u32, ny: u32, pitch: u32) {
    let i = thread::block_idx_x() * BLOCK + thread::thread_idx_x();
    let j = thread::block_idx_y() * BLOCK + thread::thread_idx_y();

    if is_inner(i, nx) && is_inner(j, ny) {
        let (x, y) = (i as f32 + 0.5, j as f32 + 0.5);
        // SAFETY: the handle is that of a texture that nobody writes; an inner
        // point is inside `new`, and threads own disjoint points.
        unsafe {
            *new.add(element(i, j, pitch)) = average(
                tex2d(old, x + 1.0, y),
                tex2d(old, x - 1.0, y),
                tex2d(old, x, y + 1.0),
                tex2d(old, x, y - 1.0),
            );
        }
    }
}

crate::register! {
    heat2d_texture: f32, Textbook,
    "four fetches from a texture",
    geometry: super::geometry::all_points,
    cost: super::geometry::iteration::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "16 × 16",
    twin: same,
}
