//! ∂f/∂y by marching along y with the neighbours in registers.
//!
//! - A column is one access wide in x, 2 points or 1. A thread marches along `segment` points of it
//!   and keeps the points that the stencil needs in registers (`periodic_column`): no shared memory, no
//!   barrier. With segments of `STEP` points that is a single iteration: 24 loads, all in flight at
//!   once, and 16 stores.
//! - At the beginning and end of a segment 8 points are loaded a second time. The threads that load
//!   them first run at about the same time, so the points are in the caches: half as many
//!   additional reads from the second level, none from memory. Longer segments have fewer such
//!   loads but are slower: fewer threads, which do not all load at the same time, hide less of the
//!   latency.
//! - A warp's access is one run of 256 bytes (2 points per lane) or 128 (1 point), in one row if
//!   rows are long enough.
//! - Threads: `threadIdx.x` is the column of a chunk of `blockDim.x` of them, `threadIdx.y` the
//!   segment; segments are numbered across all planes, so no thread idles because `ny` is small.
//!   Block numbers run through the chunks first, then through the segments.
//!
//! # What limits it
//!
//! - Bytes: 4 in and 4 out per point.
//! - Instructions per 2 points of a lane: 16 of arithmetic, a load and a half, a store, about 25
//!   for the place, its image and the end of the segment: 45, where 114 fit into the time at 4.3
//!   TB/s. Predicted: the speed of a copy.
//! - In flight: 24 loads of 8 bytes in each of 896 threads of a multiprocessor, 168 KiB; 40 KiB
//!   suffice to hide the latency of an H200's memory.
//!
//! Measurements and other variants: `docs/tuning/derivative3d.md`.

use super::stencil::{COLUMN_BLOCK, RADIUS, periodic_column};
use crate::vector::{Points, Vector2};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

/// Points that a thread loads at a time.
const STEP: usize = 16;

// gate derivative3d_y_column2: registers <= 80, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_y_column2: LDG.E.64 = 24, STG.E.EF.64 = 16, FMUL = 32, FFMA = 96
// gate derivative3d_y_column1: registers <= 64, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_y_column1: LDG = 24, STG = 16, FMUL = 16, FFMA = 48

/// ∂f/∂y with columns of 2 points in x.
///
/// `f` and `df`: `nx * ny * nz` elements, x fastest. `overlap` is 1 if both end points of the
/// period are stored, else 0. `segment`: the points that a thread marches along; `chunks`: the
/// number of chunks of `blockDim.x` columns in a row; `weights`: over the spacing, those of the
/// nearest neighbours first.
///
/// # Safety
///
/// - `f` is readable and `df` writable for `nx * ny * nz` elements, both aligned to
///   16 bytes; they do not overlap, nobody writes `f` and nothing else accesses `df`
///   during the launch.
/// - `nx` is even; `chunks` is `ceil(nx / 2 / blockDim.x)`.
/// - `segment >= 1`. With `segments = ceil(ny / segment)`, a one-dimensional grid of
///   `chunks * ceil(segments * nz / blockDim.y)` blocks, and `segments * nz + blockDim.y` fits
///   `u32`. Blocks have [`COLUMN_BLOCK`] threads.
/// - `overlap <= 1`, `ny >= 4 + overlap`, `ny + segment < 2³¹ - 64`.
#[kernel]
#[launch_bounds(COLUMN_BLOCK)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn derivative3d_y_column2(
    f: *const f32,
    df: *mut f32,
    nx: u32,
    ny: u32,
    nz: u32,
    overlap: u32,
    segment: u32,
    chunks: u32,
    weights: [f32; RADIUS],
) {
    // SAFETY: forwarded word for word; there is a vector in each row at every
    // even point.
    unsafe {
        y_columns::<Vector2>(
            f.cast(),
            df.cast(),
            nx,
            ny,
            nz,
            overlap,
            segment,
            chunks,
            weights,
        )
    }
}

/// ∂f/∂y with columns of 1 point in x, for rows of any number of points.
///
/// Arguments as for [`derivative3d_y_column2()`].
///
/// # Safety
///
/// As [`derivative3d_y_column2()`], for any `nx`, with 1 in place of 2 and without
/// the alignment.
#[kernel]
#[launch_bounds(COLUMN_BLOCK)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn derivative3d_y_column1(
    f: *const f32,
    df: *mut f32,
    nx: u32,
    ny: u32,
    nz: u32,
    overlap: u32,
    segment: u32,
    chunks: u32,
    weights: [f32; RADIUS],
) {
    // SAFETY: forwarded word for word.
    unsafe { y_columns::<f32>(f, df, nx, ny, nz, overlap, segment, chunks, weights) }
}

/// Computes the segment of this thread.
///
/// # Safety
///
/// As the entry points, with `P::COUNT` in place of 2 or 1.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn y_columns<P: Points<Point = f32>>(
    f: *const P,
    df: *mut P,
    nx: u32,
    ny: u32,
    nz: u32,
    overlap: u32,
    segment: u32,
    chunks: u32,
    weights: [f32; RADIUS],
) {
    let block = thread::block_idx_x();
    let (group, chunk) = (block / chunks, block % chunks);
    let segments = ny.div_ceil(segment);
    let line = group * thread::block_dim_y() + thread::thread_idx_y();
    let (k, part) = (line / segments, line % segments);
    let row = nx as usize / P::COUNT;
    let column = chunk as usize * thread::block_dim_x() as usize + thread::thread_idx_x() as usize;
    if column >= row || k >= nz {
        return;
    }
    let first = part * segment;
    let end = (first + segment).min(ny);
    // 64 bits, since a field may have more than 2³² points.
    let origin = k as usize * (ny as usize * row) + column;
    // SAFETY: k < nz and column < row, so place p < ny of the line is a vector of the
    // field; lines and their segments are disjoint.
    unsafe {
        periodic_column::<P, STEP>(
            weights,
            f.add(origin),
            df.add(origin),
            row,
            ny as i32,
            overlap as i32,
            first as i32,
            end as i32,
        );
    }
}

crate::register! {
    derivative3d_y_column2: f32, Tuned,
    "∂f/∂y, 8-byte accesses, neighbours in registers",
    geometry: |kernel, field| Ok(super::geometry::Columns::of(kernel, 1, 2, field)?.geometry),
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
    restrictions: "nx is even",
}

crate::register! {
    derivative3d_y_column1: f32, Tuned,
    "∂f/∂y, 4-byte accesses, neighbours in registers",
    geometry: |kernel, field| Ok(super::geometry::Columns::of(kernel, 1, 1, field)?.geometry),
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
}
