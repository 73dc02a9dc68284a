//! ∂f/∂x of the 8th order with 16 bytes per load, in f32 and f64, for any boundary rule.
//!
//! - The field is a sequence of vectors of 16 bytes: thread t of block b has the vectors
//!   `b * X_BLOCK * X_VECTORS + t` and every [`X_BLOCK`]-th after it, [`X_VECTORS`] in all.
//! - The stencil reaches 4 points to either side, which is one vector of f32 and two of f64. A
//!   thread loads its own vector and these. Neighbouring lanes load the same vectors at the same
//!   time, so each comes from memory once and otherwise from the first-level cache.
//! - A vector beyond an end of its row is gathered point by point from the images that the boundary
//!   rule gives, or holds the fixed value.
//! - Near one-sided ends a thread computes its points one after another, from the points at that
//!   end.
//!
//! # What limits it
//!
//! - Bytes: each point is read once from memory and written once.
//! - The first-level cache moves 128 bytes a clock. The loads of a warp are 12 times that in f32
//!   and 20 times in f64, for 4 and 8 times that from memory. Predicted: 225 of the 505 µs that a
//!   field of 512³ points in f64 takes at 4.25 TB/s, so the speed of a copy.

use super::general::{AxisLine, Images, MAX_END_POINTS, Table, rule};
use super::general_real::Real;
use super::stencil::{RADIUS, X_BLOCK, X_VECTORS, weighted_sum, x_places};
use crate::loops::{keep_rolled, unrolled};
use crate::vector::{Points, Vector2F64, Vector4};
use cuda_std::cache::{load_readonly, store_streaming};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

/// The most points of a vector.
const MAX_COUNT: usize = 4;

/// The most vectors that the derivatives of a vector's points depend on.
const MAX_NEAR: usize = 5;

// gate derivative3d_x_rows_*: registers <= 64, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_x_rows_f32: LDG.E.128 = 6, STG.E.EF.128 = 2
// gate derivative3d_x_rows_f64: LDG.E.128 = 10, STG.E.EF.128 = 2

/// Declares entry points: name, real type, vector type, restriction on rows.
macro_rules! kernels {
    ($($name:ident: $real:ident, $vector:ty, $restriction:literal;)+) => {$(
        #[doc = concat!("∂f/∂x in `", stringify!($real), "`, for rows of whole vectors.")]
        ///
        /// `f` and `df`: `points` elements, rows of `nx`. `rule`: one of
        /// [`rule`](super::general::rule). `table`: the axis' table for first derivatives of the
        /// 8th order.
        ///
        /// # Safety
        ///
        /// - `f` is readable and `df` writable for `points` elements, both aligned to 16
        ///   bytes; they do not overlap, nobody writes `f` and nothing else accesses `df`
        ///   during the launch.
        /// - `nx` is a whole number of vectors of 16 bytes, `points` a whole number of rows.
        /// - A one-dimensional grid with a block of `X_BLOCK` threads for every
        ///   `X_BLOCK * X_VECTORS` vectors; the last block may have fewer.
        /// - `nx` is at least [`min_len`](super::general::min_len) and below 2³¹ - 4096.
        #[kernel]
        #[launch_bounds(X_BLOCK)]
        pub unsafe fn $name(
            f: *const $real,
            df: *mut $real,
            points: usize,
            nx: u32,
            rule: u32,
            #[grid_constant] table: &Table<$real>,
        ) {
            // SAFETY: forwarded word for word.
            unsafe { rows::<$vector>(f, df, points, nx, rule, table) }
        }

        crate::register! {
            $name: $real, Tuned,
            "∂f/∂x, any boundary, 16-byte accesses",
            geometry: super::geometry::vectors::<$real>,
            cost: super::geometry::first_derivative::<$real>,
            example: super::general::EXAMPLE,
            restrictions: $restriction,
        }
    )+};
}

kernels! {
    derivative3d_x_rows_f32: f32, Vector4, "nx is a multiple of 4";
    derivative3d_x_rows_f64: f64, Vector2F64, "nx is even";
}

/// Computes the vectors of this thread.
///
/// # Safety
///
/// As the entry points.
#[inline(always)]
unsafe fn rows<V: Points>(
    f: *const V::Point,
    df: *mut V::Point,
    points: usize,
    nx: u32,
    rule: u32,
    table: &Table<V::Point>,
) where
    V::Point: Real,
{
    const { assert!(V::COUNT <= MAX_COUNT && RADIUS.is_multiple_of(V::COUNT)) };
    let (count, radius) = (V::COUNT as u32, RADIUS as u32);
    // equivalent mutant (width: `RADIUS` made `RADIUS + 1`): the same quotient, since a vector has
    // more than one point and the radius is a multiple of it
    let reach = RADIUS / V::COUNT;
    let (first, places) = x_places::<V>(points, nx);
    let vectors = points / V::COUNT;
    let vector = |r: usize| first + r * X_BLOCK as usize;
    let images = Images::of(rule, nx);
    let source = f.cast::<V>();
    // The row of vector `r`, as a line of points.
    let line = |r: usize| AxisLine {
        axis: 0,
        first: f.wrapping_add(vector(r) * V::COUNT - places[r] as usize),
        stride: 1,
        len: nx,
        rule,
        table,
    };

    // SAFETY: loads are of vectors below `vectors`. A vector that begins in the row is within it,
    // since rows are whole vectors; images are in the row as well, which has at least `min_len`
    // points. Threads own different vectors of df.
    unsafe {
        let mut near = [[V::ZERO; MAX_NEAR]; X_VECTORS];
        unrolled::<X_VECTORS>(
            #[inline(always)]
            |r| {
                if vector(r) < vectors {
                    unrolled::<MAX_NEAR>(
                        #[inline(always)]
                        |w| {
                            if w <= 2 * reach {
                                // A place before the row wraps around and so compares as beyond its
                                // end.
                                let place = places[r]
                                    .wrapping_add(w as u32 * count)
                                    .wrapping_sub(radius);
                                // equivalent mutant (guard: made `false`): the same values, point
                                // by point; the static gates count the accesses
                                near[r][w] = if place < nx {
                                    load_readonly(source.add(vector(r) + w - reach))
                                } else {
                                    let line = line(r);
                                    V::of(
                                        #[inline(always)]
                                        |e| {
                                            let stored =
                                                images.stored(place.wrapping_add(e as u32));
                                            // equivalent mutant (literal): the value is not used
                                            let point = stored.unwrap_or(0) as usize;
                                            let value = load_readonly(line.first.add(point));
                                            if stored.is_some() {
                                                value
                                            } else {
                                                table.fixed_value()
                                            }
                                        },
                                    )
                                };
                            }
                        },
                    );
                }
            },
        );
        unrolled::<X_VECTORS>(
            #[inline(always)]
            |r| {
                if vector(r) < vectors {
                    let place = places[r];
                    let near_end = place < radius || place + count + radius > nx;
                    if rule == rule::ONE_SIDED && near_end {
                        let line = line(r);
                        let mut e = 0;
                        while e < count {
                            keep_rolled();
                            *df.add(vector(r) * V::COUNT + e as usize) =
                                line.end::<1, MAX_END_POINTS>(radius, place + e);
                            e += 1;
                        }
                    } else {
                        let point = |at: usize| near[r][at / V::COUNT].point(at % V::COUNT);
                        let value = V::of(
                            #[inline(always)]
                            |e| {
                                weighted_sum(
                                    #[inline(always)]
                                    |m| table.weight(m),
                                    #[inline(always)]
                                    |m| point(RADIUS + e + m) - point(RADIUS + e - m),
                                )
                            },
                        );
                        store_streaming(df.cast::<V>().add(vector(r)), value);
                    }
                }
            },
        );
    }
}
