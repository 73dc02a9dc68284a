//! ∂f/∂x with 16 bytes per load, for rows at any alignment.
//!
//! As [`x_vector`](super::x_vector), but if `nx` is not a multiple of 4, a vector may hold the end
//! of one row and the beginning of the next, and the places of vectors in their rows differ from
//! row to row.
//!
//! - Points with all their neighbours in their own row are computed as there, since these
//!   neighbours are adjacent in memory. A vector of four such points takes one store; with fewer,
//!   each takes its own.
//! - The 4 points at either end of each row that lie in the block's part of the field are then
//!   distributed over its threads, one point each, with neighbours loaded one by one from the
//!   first-level cache. In rows of 500 points a block of 1024 points has about 16 of them: one warp
//!   computes them together.
//! - The last vector may have fewer than 4 points. They are also at the end of a row.
//!
//! Predicted: near the speed of [`x_vector`](super::x_vector) in long rows, less in short ones: in
//! rows of 8 points all points are computed one by one.

use super::stencil::{
    RADIUS, X_BLOCK, X_VECTORS, image, place_of, weighted_sum, x_derivative, x_places,
};
use crate::loops::{keep_rolled, unrolled};
use crate::vector::{Points, Vector4, WARP, from_lanes};
use cuda_std::cache::{load_readonly, store_streaming};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

// gate derivative3d_x_unaligned4: registers <= 64, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_x_unaligned4: STG.E.EF.128 = 2, SHFL = 16

/// ∂f/∂x, 4 points per access, for rows of any number of points.
///
/// `f` and `df`: `points` elements, rows of `nx`. `overlap` is 1 if both end points of the period
/// are stored, else 0. `weights`: over the spacing, those of the nearest neighbours first.
///
/// # Safety
///
/// - `f` is readable and `df` writable for `points` elements, both aligned to 16
///   bytes; they do not overlap, nobody writes `f` and nothing else accesses `df`
///   during the launch.
/// - `points` is a multiple of `nx`.
/// - A one-dimensional grid of `ceil(points / (4 * X_BLOCK * X_VECTORS))` blocks of
///   `X_BLOCK` threads.
/// - `overlap <= 1`, `nx >= 4 + overlap`, `nx < 2³¹ - 64`.
#[kernel]
#[launch_bounds(X_BLOCK)]
pub unsafe fn derivative3d_x_unaligned4(
    f: *const f32,
    df: *mut f32,
    points: usize,
    nx: u32,
    overlap: u32,
    weights: [f32; RADIUS],
) {
    const COUNT: usize = Vector4::COUNT;
    // equivalent mutant (width: `RADIUS + 1`): both ways to compute a point give the same value
    let radius = RADIUS as u32;
    let lane = thread::thread_idx_x() % WARP;
    let (first, places) = x_places::<Vector4>(points, nx);
    let point = |r: usize| COUNT * (first + r * X_BLOCK as usize);
    let source = |point: usize| {
        // equivalent mutant (comparison): loading them one by one gives the same values
        if point + COUNT <= points {
            // SAFETY: four points of the field, a multiple of four from its start.
            return unsafe { load_readonly(f.add(point).cast::<Vector4>()) };
        }
        let at = |point: usize| {
            if point < points {
                // SAFETY: a point of the field.
                unsafe { load_readonly(f.add(point)) }
            } else {
                0.0
            }
        };
        Vector4::of(|e| at(point + e))
    };

    let mut own = [Vector4::ZERO; X_VECTORS];
    let mut before = own;
    let mut behind = own;
    unrolled::<X_VECTORS>(|r| own[r] = source(point(r)));
    unrolled::<X_VECTORS>(|r| {
        // equivalent mutant (literal: in `point(r) > 0`): it is a multiple of 4
        if lane == 0 && point(r) > 0 {
            before[r] = source(point(r) - COUNT);
        }
        // equivalent mutant (guard): other lanes do not read theirs
        if lane == WARP - 1 {
            behind[r] = source(point(r) + COUNT);
        }
    });
    unrolled::<X_VECTORS>(|r| {
        // SAFETY: all lanes of the warp are here.
        let (mut left, mut right) = unsafe { from_lanes(own[r]) };
        if lane == 0 {
            left = before[r];
        }
        if lane == WARP - 1 {
            right = behind[r];
        }
        let value = x_derivative(weights, left, own[r], right);
        let place = places[r];
        // equivalent mutant (comparison): the first 4 points of a row are not stored here
        if point(r) < points {
            // equivalent mutant (guard: made `false`): the other branch stores the same points
            // equivalent mutant (comparison): as above
            if place >= radius && place + COUNT as u32 + radius <= nx {
                // SAFETY: four points of one row, which no other thread writes.
                unsafe { store_streaming(df.add(point(r)).cast::<Vector4>(), value) };
            } else {
                unrolled::<COUNT>(|e| {
                    let i = place + e as u32;
                    // equivalent mutant (arithmetic): the next row's points are near its beginning, and
                    // not stored here
                    // equivalent mutant (guard: made `false`): as above
                    // equivalent mutant (comparison): as above
                    let i = if i >= nx { i - nx } else { i };
                    if i >= radius && i + radius < nx {
                        // SAFETY: the point is inside a row, and so in the field; the loop below
                        // writes other points.
                        unsafe { store_streaming(df.add(point(r) + e), value.point(e)) };
                    }
                });
            }
        }
    });

    // The ends of the rows that are in the block's part of the field.
    let per_block = COUNT * X_BLOCK as usize * X_VECTORS;
    let begin = thread::block_idx_x() as usize * per_block;
    let len = per_block.min(points - begin) as u32;
    let offset = place_of(begin, 1, points, nx);
    // The number of rows with points in this block, and the points near the ends of each row:
    // `radius` at either end, or the whole row if it is shorter.
    let rows = (offset + len).div_ceil(nx);
    // equivalent mutant (literal): points that are also stored above get the same value
    let ends = nx.min(2 * radius);
    let mut nth = thread::thread_idx_x();
    // equivalent mutant (comparison): row number `rows` begins behind the block's part
    while nth < rows * ends {
        keep_rolled();
        let (row, end) = (nth / ends, nth % ends);
        let i = if end < radius { end } else { nx - ends + end };
        // The distance from the first point of the first row.
        let from_row = row * nx + i;
        // equivalent mutant (guard): points of other blocks get the same value from both
        // equivalent mutant (logic): as above
        // equivalent mutant (comparison: in `from_row < offset + len`): as above
        if from_row >= offset && from_row < offset + len {
            let row = begin + (row * nx) as usize - offset as usize;
            let at = |i: i32| {
                // SAFETY: `image` returns a point of the row.
                unsafe { load_readonly(f.add(row + image(i, nx as i32, overlap as i32))) }
            };
            let place = i as i32;
            let difference = |m: usize| at(place + m as i32) - at(place - m as i32);
            let value = weighted_sum(|m| weights[m - 1], difference);
            // SAFETY: a point near an end of the row: no thread writes it above, and no other
            // thread here.
            unsafe { store_streaming(df.add(row + i as usize), value) };
        }
        // equivalent mutant (width: `X_BLOCK - 1`): points that two threads store get the same value
        nth += X_BLOCK;
    }
}

crate::register! {
    derivative3d_x_unaligned4: f32, Tuned,
    "∂f/∂x, 4 points at a time from anywhere, neighbours from other lanes",
    geometry: super::geometry::vectors::<f32>,
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
}
