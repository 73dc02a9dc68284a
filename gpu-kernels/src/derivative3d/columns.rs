//! ∂f/∂y and ∂f/∂z of the 8th order by marching along the axis, in f32 and f64, for any boundary
//! rule.
//!
//! As [`y_column`](super::y_column) and [`z_column`](super::z_column), but:
//!
//! - A column is 8 bytes wide, two points of f32 or one of f64, if rows (for z: planes) are whole
//!   numbers of that; otherwise it is one point.
//! - A segment whose neighbours are all on the axis loads them directly. Near an end the boundary
//!   rule maps a place to its image; a place without an image has the fixed value. All or nearly
//!   all lanes of a warp have the same segment.
//! - The points near a one-sided end are computed a second time, from the points at that end: eight
//!   of a column, at the same time for all lanes of a warp along z, and along y for those of a row.
//!
//! Bytes and instructions: as for those kernels; f64 has half as many points for the same bytes,
//! and two f64 instructions take the time of four. Predicted: the same speed.

use super::general::{AxisLine, Images, MAX_END_POINTS, Table, rule};
use super::general_real::Real;
use super::stencil::{COLUMN_BLOCK, RADIUS, derivative};
use crate::loops::{keep_rolled, unrolled};
use crate::vector::{Points, Vector2};
use cuda_std::cache::{load_readonly, store_streaming};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

/// Width of a column in x, in bytes.
const WIDTH: usize = 8;

/// Points along z that a thread loads at a time.
const STEP_Z: usize = 8;

/// The most points that a thread loads at a time along either axis.
const MAX_STEP: usize = 16;

/// Points that a thread loads at a time near the ends of the axis, where finding their images takes
/// more registers.
const STEP_AT_ENDS: usize = 4;

// gate derivative3d_y_columns_*: registers <= 80, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_z_columns_*: registers <= 64, spills = 0, stack = 0, LD = 0, ST = 0

/// Declares entry points along y: name, real type, type of a wide column, points that a thread
/// loads at a time.
macro_rules! along_y {
    ($($name:ident: $real:ident, $column:ty, $step:literal;)+) => {$(
        #[doc = concat!("∂f/∂y in `", stringify!($real), "`.")]
        ///
        /// `f` and `df`: `nx * ny * nz` elements, x fastest. `rule`: one of
        /// [`rule`](super::general::rule). `segment`: the points that a thread marches along;
        /// `chunks`: the number of chunks of `blockDim.x` columns in a row. `table`: the axis'
        /// table for first derivatives of the 8th order.
        ///
        /// # Safety
        ///
        /// - `f` is readable and `df` writable for `nx * ny * nz` elements, both aligned to
        ///   8 bytes; they do not overlap, nobody writes `f` and nothing else accesses `df`
        ///   during the launch.
        /// - `chunks` is `ceil(columns / blockDim.x)` for the `columns` of a row, which are 8 bytes
        ///   wide if rows are whole numbers of that, else points.
        /// - `segment >= 1`. With `segments = ceil(ny / segment)`, a one-dimensional grid of
        ///   `chunks * ceil(segments * nz / blockDim.y)` blocks, and `segments * nz + blockDim.y`
        ///   fits `u32`. Blocks have [`COLUMN_BLOCK`] threads.
        /// - `ny` is at least [`min_len`](super::general::min_len), and
        ///   `ny + segment < 2³¹ - 64`.
        #[kernel]
        #[launch_bounds(COLUMN_BLOCK)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            f: *const $real,
            df: *mut $real,
            nx: u32,
            ny: u32,
            nz: u32,
            rule: u32,
            segment: u32,
            chunks: u32,
            #[grid_constant] table: &Table<$real>,
        ) {
            let extents = [nx, ny, nz];
            // SAFETY: forwarded word for word; there is a column in each row at every
            // multiple of its points.
            unsafe {
                if (nx as usize).is_multiple_of(<$column>::COUNT) {
                    y_columns::<$column, $step>(f, df, extents, rule, segment, chunks, table);
                } else {
                    y_columns::<$real, $step>(f, df, extents, rule, segment, chunks, table);
                }
            }
        }

        crate::register! {
            $name: $real, Tuned,
            "∂f/∂y, any boundary, 8-byte accesses, neighbours in registers",
            geometry: |kernel, field| {
                let width = width::<$real>(field.extents[0]);
                Ok(super::geometry::Columns::of(kernel, 1, width, field)?.geometry)
            },
            cost: super::geometry::first_derivative::<$real>,
            example: super::general::EXAMPLE,
        }
    )+};
}

/// Declares entry points along z: name, real type, type of a wide column.
macro_rules! along_z {
    ($($name:ident: $real:ident, $column:ty;)+) => {$(
        #[doc = concat!("∂f/∂z in `", stringify!($real), "`.")]
        ///
        /// `f` and `df`: `plane * nz` elements. `begin` and `end`: the first of the planes to
        /// compute and the one after the last. `rule`: one of [`rule`](super::general::rule).
        /// `segment`: the points that a thread marches along; `chunks`: the number of blocks for
        /// the columns of the plane. `table`: the axis' table for first derivatives of the 8th
        /// order.
        ///
        /// # Safety
        ///
        /// - `f` is readable and `df` writable for `plane * nz` elements, both aligned to 8
        ///   bytes; they do not overlap, nobody writes `f` and nothing else accesses `df`
        ///   during the launch.
        /// - `chunks` is `ceil(columns / COLUMN_BLOCK)` for the `columns` of a plane, which are 8
        ///   bytes wide if planes are whole numbers of that, else points.
        /// - `begin < end <= nz` and `segment >= 1`; a one-dimensional grid of
        ///   `chunks * ceil((end - begin) / segment)` blocks of [`COLUMN_BLOCK`] threads along x.
        /// - `nz` is at least [`min_len`](super::general::min_len), and
        ///   `nz + segment < 2³¹ - 64`.
        #[kernel]
        #[launch_bounds(COLUMN_BLOCK)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            f: *const $real,
            df: *mut $real,
            plane: usize,
            nz: u32,
            begin: u32,
            end: u32,
            rule: u32,
            segment: u32,
            chunks: u32,
            #[grid_constant] table: &Table<$real>,
        ) {
            let planes = [begin, end];
            // SAFETY: forwarded word for word; there is a column in each plane at every
            // multiple of its points.
            unsafe {
                if plane.is_multiple_of(<$column>::COUNT) {
                    z_columns::<$column>(f, df, plane, nz, planes, rule, segment, chunks, table);
                } else {
                    z_columns::<$real>(f, df, plane, nz, planes, rule, segment, chunks, table);
                }
            }
        }

        crate::register! {
            $name: $real, Tuned,
            "∂f/∂z, any boundary, 8-byte accesses, neighbours in registers",
            geometry: |kernel, field| {
                let [nx, ny, _] = field.extents;
                let width = width::<$real>(nx.saturating_mul(ny));
                Ok(super::geometry::Columns::of(kernel, 2, width, field)?.geometry)
            },
            cost: super::geometry::first_derivative::<$real>,
            example: super::general::EXAMPLE,
        }
    )+};
}

along_y! {
    derivative3d_y_columns_f32: f32, Vector2, 16;
    derivative3d_y_columns_f64: f64, f64, 8;
}

along_z! {
    derivative3d_z_columns_f32: f32, Vector2;
    derivative3d_z_columns_f64: f64, f64;
}

/// Points of `T` per column, for rows (or planes) of `side_by_side` points.
#[must_use]
pub const fn width<T>(side_by_side: usize) -> usize {
    let points = WIDTH / size_of::<T>();
    if side_by_side.is_multiple_of(points) {
        points
    } else {
        1
    }
}

/// Computes the segment of this thread along y.
///
/// # Safety
///
/// As the entry points, with columns of `P`.
#[inline(always)]
unsafe fn y_columns<P: Points, const STEP: usize>(
    f: *const P::Point,
    df: *mut P::Point,
    [nx, ny, nz]: [u32; 3],
    rule: u32,
    segment: u32,
    chunks: u32,
    table: &Table<P::Point>,
) where
    P::Point: Real,
{
    let block = thread::block_idx_x();
    let (group, chunk) = (block / chunks, block % chunks);
    let segments = ny.div_ceil(segment);
    let line = group * thread::block_dim_y() + thread::thread_idx_y();
    let (plane, part) = (line / segments, line % segments);
    let column = chunk as usize * thread::block_dim_x() as usize + thread::thread_idx_x() as usize;
    if column >= nx as usize / P::COUNT || plane >= nz {
        return;
    }
    let first = part * segment;
    let end = (first + segment).min(ny);
    // 64 bits, since a field may have more than 2³² points.
    let origin = plane as usize * (ny as usize * nx as usize) + column * P::COUNT;
    // SAFETY: the plane and the column are in the field; lines and their segments are disjoint.
    unsafe {
        let line = AxisLine {
            axis: 1,
            first: f.add(origin),
            stride: nx as usize,
            len: ny,
            rule,
            table,
        };
        within::<P, STEP>(line, df.add(origin), first, end);
    }
}

/// Computes the segment of this thread along z.
///
/// # Safety
///
/// As the entry points, with columns of `P`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn z_columns<P: Points>(
    f: *const P::Point,
    df: *mut P::Point,
    plane: usize,
    nz: u32,
    [begin, end]: [u32; 2],
    rule: u32,
    segment: u32,
    chunks: u32,
    table: &Table<P::Point>,
) where
    P::Point: Real,
{
    let block = thread::block_idx_x();
    let (part, chunk) = (block / chunks, block % chunks);
    let column = chunk as usize * COLUMN_BLOCK as usize + thread::thread_idx_x() as usize;
    if column >= plane / P::COUNT {
        return;
    }
    let first = begin + part * segment;
    let end = (first + segment).min(end);
    let origin = column * P::COUNT;
    // SAFETY: the column is in the plane; columns and their segments are disjoint.
    unsafe {
        let line = AxisLine {
            axis: 2,
            first: f.add(origin),
            stride: plane,
            len: nz,
            rule,
            table,
        };
        within::<P, STEP_Z>(line, df.add(origin), first, end);
    }
}

/// Computes the derivatives at the places `first .. end` of the adjacent lines that `P` covers, of
/// which `line` is the first.
///
/// # Safety
///
/// As the entry points: the lines are in the field; accesses of `P` to them and to df are aligned;
/// no other thread has these places of the lines.
#[inline(always)]
unsafe fn within<P: Points, const STEP: usize>(
    line: AxisLine<'_, P::Point>,
    df: *mut P::Point,
    first: u32,
    end: u32,
) where
    P::Point: Real,
{
    let radius = RADIUS as u32;
    let point = |place: u32| line.first.wrapping_add(place as usize * line.stride);
    let weights = core::array::from_fn(
        #[inline(always)]
        |m| line.table.weight(m + 1),
    );
    let store = |place: i32, value: P| {
        // SAFETY: the place is in the segment.
        unsafe { store_streaming(df.add(place as usize * line.stride).cast(), value) };
    };
    // equivalent mutant (comparison): the other way gives the same points
    if first >= radius && line.len - end >= radius {
        // SAFETY: the place is on the lines, since it is at most a radius beyond the segment, which
        // is at least that far from both ends.
        let load = |place: i32| unsafe { load_readonly(point(place as u32).cast::<P>()) };
        column::<P, STEP>(weights, load, store, first as i32, end as i32);
        return;
    }
    let images = Images::of(line.rule, line.len);
    let load = |place: i32| {
        let stored = images.stored(place as u32);
        // SAFETY: the image of the place, or the first point.
        // equivalent mutant (literal): there are two points or more, and the value is not used
        let value = unsafe { load_readonly(point(stored.unwrap_or(0)).cast::<P>()) };
        if stored.is_some() {
            value
        } else {
            P::of(
                #[inline(always)]
                |_| line.table.fixed_value(),
            )
        }
    };
    column::<P, STEP_AT_ENDS>(weights, load, store, first as i32, end as i32);
    if line.rule != rule::ONE_SIDED {
        return;
    }
    // The march has written wrong values at the points near these ends, whose neighbours are
    // missing.
    let mut place = first;
    while place < end {
        keep_rolled();
        if place < radius || line.len - place <= radius {
            // SAFETY: the place is on the lines, which have enough points for one-sided ends.
            unsafe {
                let value = P::of(
                    #[inline(always)]
                    |e| {
                        let line = line.moved(e);
                        line.end::<1, MAX_END_POINTS>(radius, place)
                    },
                );
                *df.add(place as usize * line.stride).cast() = value;
            }
        }
        place += 1;
    }
}

/// Computes the derivative at the places `first .. end` of a line. `load` returns the values, up to
/// [`RADIUS`] places beyond either end of that range, and `store` takes the results.
///
/// A window of `STEP + 2 * RADIUS` places is in registers. Each iteration loads the next `STEP`
/// places at once, computes as many points, and keeps the last `2 * RADIUS` places for the next.
#[inline(always)]
fn column<P: Points, const STEP: usize>(
    weights: [P::Point; RADIUS],
    load: impl Fn(i32) -> P,
    store: impl Fn(i32, P),
    first: i32,
    end: i32,
) where
    P::Point: Real,
{
    const { assert!(STEP <= MAX_STEP) };
    let radius = RADIUS as i32;
    let mut window = [P::ZERO; MAX_STEP + 2 * RADIUS];
    unrolled::<{ 2 * RADIUS }>(
        #[inline(always)]
        |w| window[w] = load(first + w as i32 - radius),
    );
    let mut p = first;
    // equivalent mutant (comparison): one more iteration, with no point left
    while p < end {
        keep_rolled();
        unrolled::<STEP>(
            #[inline(always)]
            |u| {
                // The last iteration may have fewer points: it loads its last place again.
                let ahead = (p + u as i32).min(end - 1) + radius;
                window[2 * RADIUS + u] = load(ahead);
            },
        );
        unrolled::<STEP>(
            #[inline(always)]
            |u| {
                let place = p + u as i32;
                if place < end {
                    let center = RADIUS + u;
                    let value = derivative(weights, |m| window[center + m], |m| window[center - m]);
                    store(place, value);
                }
            },
        );
        unrolled::<{ 2 * RADIUS }>(
            #[inline(always)]
            |w| window[w] = window[w + STEP],
        );
        p += STEP as i32;
    }
}
