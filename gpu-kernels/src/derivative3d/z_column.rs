//! ∂f/∂z by marching along z with the neighbours in registers.
//!
//! As [`y_column`](super::y_column), except that a plane counts as one sequence of points,
//! regardless of rows; columns are 2 points wide if the plane has an even number of points, else 1.
//!
//! - Block numbers run through the plane first and then through the segments, so the blocks that
//!   run at the same time have nearly the same z: the planes at the seam of two segments are still
//!   in the second-level cache when they are read again.
//! - A segment of 16 points takes two iterations of `STEP`: loads of 24 planes at a time are slower
//!   in large fields.
//! - Bytes and instructions: as for y. Predicted: the speed of a copy.
//!
//! Measurements and other variants: `docs/tuning/derivative3d.md`.

use super::stencil::{COLUMN_BLOCK, RADIUS, periodic_column};
use crate::vector::{Points, Vector2};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

/// Points that a thread loads at a time.
const STEP: usize = 8;

// gate derivative3d_z_column2: registers <= 80, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_z_column2: LDG.E.64 = 16, STG.E.EF.64 = 8, FMUL = 16, FFMA = 48
// gate derivative3d_z_column1: registers <= 64, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_z_column1: LDG = 16, STG = 8, FMUL = 8, FFMA = 24

/// ∂f/∂z with columns of 2 points in the plane.
///
/// `f` and `df`: `plane * nz` elements. `overlap` is 1 if both end points of the period are stored,
/// else 0. `segment`: the points that a thread marches along; `chunks`: the number of blocks for
/// the columns of the plane; `weights`: over the spacing, those of the nearest neighbours first.
///
/// # Safety
///
/// - `f` is readable and `df` writable for `plane * nz` elements, both aligned to 8
///   bytes; they do not overlap, nobody writes `f` and nothing else accesses `df`
///   during the launch.
/// - `plane` is even; `chunks` is `ceil(plane / 2 / COLUMN_BLOCK)`.
/// - `segment >= 1`; a one-dimensional grid of `chunks * ceil(nz / segment)` blocks of
///   [`COLUMN_BLOCK`] threads along x.
/// - `overlap <= 1`, `nz >= 4 + overlap`, `nz + segment < 2³¹ - 64`.
#[kernel]
#[launch_bounds(COLUMN_BLOCK)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn derivative3d_z_column2(
    f: *const f32,
    df: *mut f32,
    plane: usize,
    nz: u32,
    overlap: u32,
    segment: u32,
    chunks: u32,
    weights: [f32; RADIUS],
) {
    // SAFETY: forwarded word for word; there is a vector in each plane at every
    // even point.
    unsafe {
        z_columns::<Vector2>(
            f.cast(),
            df.cast(),
            plane,
            nz,
            overlap,
            segment,
            chunks,
            weights,
        )
    }
}

/// ∂f/∂z with columns of 1 point, for planes of any number of points.
///
/// Arguments as for [`derivative3d_z_column2()`].
///
/// # Safety
///
/// As [`derivative3d_z_column2()`], for any `plane`, with 1 in place of 2 and without
/// the alignment.
#[kernel]
#[launch_bounds(COLUMN_BLOCK)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn derivative3d_z_column1(
    f: *const f32,
    df: *mut f32,
    plane: usize,
    nz: u32,
    overlap: u32,
    segment: u32,
    chunks: u32,
    weights: [f32; RADIUS],
) {
    // SAFETY: forwarded word for word.
    unsafe { z_columns::<f32>(f, df, plane, nz, overlap, segment, chunks, weights) }
}

/// Computes the segment of this thread.
///
/// # Safety
///
/// As the entry points, with `P::COUNT` in place of 2 or 1.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn z_columns<P: Points<Point = f32>>(
    f: *const P,
    df: *mut P,
    plane: usize,
    nz: u32,
    overlap: u32,
    segment: u32,
    chunks: u32,
    weights: [f32; RADIUS],
) {
    let block = thread::block_idx_x();
    let (part, chunk) = (block / chunks, block % chunks);
    let plane = plane / P::COUNT;
    let column = chunk as usize * COLUMN_BLOCK as usize + thread::thread_idx_x() as usize;
    if column >= plane {
        return;
    }
    let first = part * segment;
    let end = (first + segment).min(nz);
    // SAFETY: column < plane, so place p < nz of the line is a vector of the field;
    // columns and their segments are disjoint.
    unsafe {
        periodic_column::<P, STEP>(
            weights,
            f.add(column),
            df.add(column),
            plane,
            nz as i32,
            overlap as i32,
            first as i32,
            end as i32,
        );
    }
}

crate::register! {
    derivative3d_z_column2: f32, Tuned,
    "∂f/∂z, 8-byte accesses, neighbours in registers",
    geometry: |kernel, field| Ok(super::geometry::Columns::of(kernel, 2, 2, field)?.geometry),
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
    restrictions: "nx or ny is even",
}

crate::register! {
    derivative3d_z_column1: f32, Tuned,
    "∂f/∂z, 4-byte accesses, neighbours in registers",
    geometry: |kernel, field| Ok(super::geometry::Columns::of(kernel, 2, 1, field)?.geometry),
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
}
