//! ∂f/∂y and ∂f/∂z of the 8th order by marching along the axis, in f32 and f64, whatever lies
//! beyond its ends.
//!
//! As [`y_column`](super::y_column) and [`z_column`](super::z_column), but:
//!
//! - A column is 8 bytes wide where rows, or for z planes, are whole numbers of that: two
//!   points of f32, one of f64. Where they are not, it is a point.
//! - In a segment whose neighbours are all points of the axis they are loaded as they are. In
//!   one near an end the rule of the boundary says which point stands for a place, or that
//!   none does: then its value is the one that is fixed there. All lanes of a warp, or nearly
//!   all, have the same segment.
//! - The points near a one-sided end are computed once more, from the points at that end:
//!   eight of a column, which all lanes of a warp have at the same time along z, and along y
//!   those of a row.
//!
//! Bytes and instructions: as for those; f64 has half as many points for the same bytes and
//! does two of their instructions in the time of four. Predicted: their speed.

use super::general::{Images, Line, MAX_END_POINTS, Table, rule};
use super::general_real::Real;
use super::stencil::{COLUMN_BLOCK, RADIUS, derivative};
use crate::loops::{keep_rolled, unrolled};
use crate::vector::{Points, Vector2};
use cuda_std::cache::{load_readonly, store_streaming};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

/// Bytes of a column in x.
const WIDTH: usize = 8;

/// Points along z that a thread loads at a time.
const STEP_Z: usize = 8;

/// The most of them along either axis.
const MAX_STEP: usize = 16;

/// Points that a thread loads at a time near the ends of the axis, where it takes more
/// registers to know which they are.
const STEP_AT_ENDS: usize = 4;

// gate derivative3d_y_columns_*: registers <= 80, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_z_columns_*: registers <= 64, spills = 0, stack = 0, LD = 0, ST = 0

/// Entry points along y: a name, the type, a column where rows are whole numbers of them, and
/// how many points a thread loads at a time.
macro_rules! along_y {
    ($($name:ident: $real:ident, $column:ty, $step:literal;)+) => {$(
        #[doc = concat!("∂f/∂y in `", stringify!($real), "`.")]
        ///
        /// `f` and `df`: `nx * ny * nz` elements, x fastest. `rule`: one of
        /// [`rule`](super::general::rule). `segment`: the points that a thread goes along;
        /// `chunks`: how many chunks of `blockDim.x` columns a row has. `table`: the axis' for
        /// first derivatives of the 8th order.
        ///
        /// # Safety
        ///
        /// - `f` is readable and `df` writable for `nx * ny * nz` elements, both aligned to
        ///   8 bytes; they do not overlap, nobody writes `f` and nothing else accesses `df`
        ///   during the launch.
        /// - `chunks` is `ceil(columns / blockDim.x)` of the `columns` of a row, which are
        ///   8 bytes wide where rows are whole numbers of that, else points.
        /// - `segment >= 1`. With `segments` for `ceil(ny / segment)`, a one-dimensional grid
        ///   of `chunks * ceil(segments * nz / blockDim.y)` blocks, and
        ///   `segments * nz + blockDim.y` fits `u32`. Blocks have [`COLUMN_BLOCK`] threads.
        /// - `ny` is at least what [`min_len`](super::general::min_len) says, and
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

/// Entry points along z: a name, the type, and a column where planes are whole numbers of them.
macro_rules! along_z {
    ($($name:ident: $real:ident, $column:ty;)+) => {$(
        #[doc = concat!("∂f/∂z in `", stringify!($real), "`.")]
        ///
        /// `f` and `df`: `plane * nz` elements. `rule`: one of [`rule`](super::general::rule).
        /// `segment`: the points that a thread goes along; `chunks`: how many blocks have the
        /// columns of the plane. `table`: the axis' for first derivatives of the 8th order.
        ///
        /// # Safety
        ///
        /// - `f` is readable and `df` writable for `plane * nz` elements, both aligned to 8
        ///   bytes; they do not overlap, nobody writes `f` and nothing else accesses `df`
        ///   during the launch.
        /// - `chunks` is `ceil(columns / COLUMN_BLOCK)` of the `columns` of a plane, which are
        ///   8 bytes wide where planes are whole numbers of that, else points.
        /// - `segment >= 1`; a one-dimensional grid of `chunks * ceil(nz / segment)` blocks of
        ///   [`COLUMN_BLOCK`] threads along x.
        /// - `nz` is at least what [`min_len`](super::general::min_len) says, and
        ///   `nz + segment < 2³¹ - 64`.
        #[kernel]
        #[launch_bounds(COLUMN_BLOCK)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            f: *const $real,
            df: *mut $real,
            plane: usize,
            nz: u32,
            rule: u32,
            segment: u32,
            chunks: u32,
            #[grid_constant] table: &Table<$real>,
        ) {
            // SAFETY: forwarded word for word; there is a column in each plane at every
            // multiple of its points.
            unsafe {
                if plane.is_multiple_of(<$column>::COUNT) {
                    z_columns::<$column>(f, df, plane, nz, rule, segment, chunks, table);
                } else {
                    z_columns::<$real>(f, df, plane, nz, rule, segment, chunks, table);
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

/// Points of `T` of a column, where as many stand side by side.
#[must_use]
pub const fn width<T>(side_by_side: usize) -> usize {
    let points = WIDTH / size_of::<T>();
    if side_by_side.is_multiple_of(points) {
        points
    } else {
        1
    }
}

/// The segment of this thread along y.
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
    // 64 bits: a field may have more than 2³² points.
    let origin = plane as usize * (ny as usize * nx as usize) + column * P::COUNT;
    // SAFETY: the plane and the column are of the field; lines and their segments are
    // disjoint.
    unsafe {
        let line = Line {
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

/// The segment of this thread along z.
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
    let first = part * segment;
    let end = (first + segment).min(nz);
    let origin = column * P::COUNT;
    // SAFETY: the column is of the plane; columns and their segments are disjoint.
    unsafe {
        let line = Line {
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

/// The derivatives at the places `first .. end` of as many lines as `P` has points, of which
/// this is the first.
///
/// # Safety
///
/// As the entry points: the lines are of the field, whose points of `P` are aligned for it,
/// and so are those of df; no other thread has these places of theirs.
#[inline(always)]
unsafe fn within<P: Points, const STEP: usize>(
    line: Line<'_, P::Point>,
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
        // SAFETY: a place of the segment.
        unsafe { store_streaming(df.add(place as usize * line.stride).cast(), value) };
    };
    // equivalent mutant (comparison): the other way gives the same points
    if first >= radius && line.len - end >= radius {
        // SAFETY: places of the lines, since none is farther than the radius.
        let load = |place: i32| unsafe { load_readonly(point(place as u32).cast::<P>()) };
        march::<P, STEP>(weights, load, store, first as i32, end as i32);
        return;
    }
    let images = Images::of(line.rule, line.len);
    let load = |place: i32| {
        let stored = images.stored(place as u32);
        // SAFETY: the point that stands for the place, or the first.
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
    march::<P, STEP_AT_ENDS>(weights, load, store, first as i32, end as i32);
    if line.rule != rule::ONE_SIDED {
        return;
    }
    // What the march has made of the points near these ends is nothing: neighbours are missing.
    let mut place = first;
    while place < end {
        keep_rolled();
        if place < radius || line.len - place <= radius {
            // SAFETY: places of the lines, which have as many points as one-sided ends need.
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

/// The derivative at the places `first .. end` of a line, of which `load` gives those up to
/// [`RADIUS`] beyond either, and `store` takes the results.
///
/// A window of `STEP + 2 * RADIUS` places lives in registers. Each turn loads the next
/// `STEP` of them, all at once, computes as many points, and hands the last `2 * RADIUS` on.
#[inline(always)]
fn march<P: Points, const STEP: usize>(
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
    // equivalent mutant (comparison): once more, with no point left
    while p < end {
        keep_rolled();
        unrolled::<STEP>(
            #[inline(always)]
            |u| {
                // A last turn may have fewer points: it loads its last place again.
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
