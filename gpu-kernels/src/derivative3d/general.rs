//! First and second derivatives along one axis: any size, f32 and f64, orders of accuracy 2, 4, 6
//! and 8, with a choice of boundary rules.
//!
//! ```text
//! first:   df[p] = Σ w[m] (f[p+m] - f[p-m])                    m = 1 … r
//! second:  df[p] = Σ w[m] ((f[p+m] + f[p-m]) - 2 f[p])
//! near a one-sided end:
//!          df[p] = Σ w[p][q] (f[q] - f[p])                     q = 0 … 2r+order-1, q ≠ p
//! ```
//!
//! with the radius r half the order of accuracy. The nearest point comes first (near a one-sided
//! end, the first point of the axis), by a product; the others follow by fused multiply-adds. The
//! weights of a derivative sum to 0, so the terms can be differences to the point itself, and a
//! constant has the derivative 0 exactly.
//!
//! # The table
//!
//! The host generates the weights and passes them, divided by the spacing, to each launch by value:
//! a [`Table`] for each axis, with the r weights of the central stencil, the rows for the r points
//! at the beginning of a one-sided axis, and the value beyond a fixed end. Parameters are in
//! constant memory, so launches with different tables follow each other without a copy. The end of
//! the axis mirrors its beginning, which changes the sign of a first derivative.
//!
//! # Threads
//!
//! - A block has [`BLOCK_X`] threads along x and [`BLOCK_Y`] *units*. Along x a unit is one point
//!   in each of [`ROWS`] rows. Along y and z it is [`POINTS`] consecutive points along the axis,
//!   whose window of `POINTS + 2r` values the thread loads at once and keeps in registers.
//! - For every axis lanes are side by side in x, so loads are coalesced.
//! - A unit whose window extends beyond the axis, and along x a point near an end, takes a compact
//!   path that processes one neighbour after another.
//! - Grid: one-dimensional, so the limits of a grid along y and z do not restrict the field.
//!
//! # What limits it
//!
//! - Bytes: each point is read once from memory and written once. A thread loads `(8 + 2r) / 8`
//!   values per point along y and z, at most 2, and at most 9 along x. Other lanes of the warp load
//!   all but one of these too, so the caches serve them.
//! - Instructions of the 8th order per point: 2 or 9 loads, 4 (first derivative) or 8 (second) to
//!   form the terms, 4 multiply-adds, a store: far fewer than fit into the time of the memory
//!   accesses in f32, and half as many as fit in f64.

use super::general_real::{MAX_WINDOW, Real, window_of};
pub use super::table::{
    MAX_END_POINTS, MAX_RADIUS, TABLE_ENDS, TABLE_FIXED, TABLE_LEN, Table, Tables,
};
use crate::loops::{keep_rolled, unrolled};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

/// The most points of an axis: places more than a radius beyond it still fit u32.
pub const MAX_LEN: u32 = u32::MAX - 4096;

/// The boundary rules: how the values beyond the ends of an axis are defined.
pub mod rule {
    /// The period is n spacings.
    pub const PERIODIC: u32 = 0;
    /// The period is n - 1 spacings: both ends are stored.
    pub const PERIODIC_WITH_ENDPOINT: u32 = 1;
    /// A mirror image, with the mirror at the last point.
    pub const MIRROR_ON_POINT: u32 = 2;
    /// A mirror image, with the mirror half a spacing beyond the last point.
    pub const MIRROR_HALFWAY: u32 = 3;
    /// One fixed value everywhere.
    pub const FIXED: u32 = 4;
    /// No values: the stencils near the ends are one-sided.
    pub const ONE_SIDED: u32 = 5;
}

/// The rule of an axis from `rules`, which has that of x in the lowest byte.
#[inline(always)]
pub(super) const fn rule_of(rules: u32, axis: usize) -> u32 {
    rules >> (8 * axis) & 0xff
}

/// Threads of a block along x.
pub const BLOCK_X: u32 = 32;

/// Units of a block.
pub const BLOCK_Y: u32 = 8;

/// Blocks that a multiprocessor must be able to hold, which bounds the registers; below `sm_90` it
/// may hold no more than four.
const BLOCKS_PER_MULTIPROCESSOR: u32 = if cfg!(target_feature = "sm_90") { 5 } else { 4 };

/// Points of a unit along y and z.
pub const POINTS: usize = 8;

/// Rows of a unit along x, with one point in each.
pub const ROWS: usize = 4;

// gate derivative3d_general_x_f*: registers <= 64, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_general_y_f*: registers <= 64, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_general_z_f*: registers <= 64, spills = 0, stack = 0, LD = 0, ST = 0

/// Declares entry points: name, real type, axis, points of a unit; along z also the names of the
/// parameters for the first plane to compute and the one after the last.
macro_rules! axis_kernels {
    ($(
        $name:ident: $real:ident, $axis:literal $along:literal, $points:expr
            $(, planes $begin:ident to $end:ident)?;
    )+) => {$(
        #[doc = concat!(
            "The derivative of order `order` along axis ", stringify!($axis), " in `",
            stringify!($real), "`, with stencils of radius `radius`.",
        )]
        ///
        /// `f` and `df`: `nx * ny * nz` elements, x fastest. `rule`: one of [`rule`]. `table`: the
        /// axis' table for this order.
        $(#[doc = concat!(
            "`", stringify!($begin), "` and `", stringify!($end),
            "`: the first of the planes to compute and the one after the last.",
        )])?
        ///
        /// # Safety
        ///
        /// - `f` is readable and `df` writable for `nx * ny * nz` elements; they do not
        ///   overlap, and nothing else accesses `df` during the launch.
        /// - `order` is 1 or 2 and `radius` 1 to 4; the axis has at least [`min_len`] points, and
        ///   no axis has more than [`MAX_LEN`].
        /// - Blocks of ([`BLOCK_X`], [`BLOCK_Y`]) threads, as many along x as
        ///   [`blocks`] says for the planes to compute.
        $(#[doc = concat!("- `", stringify!($begin), " < ", stringify!($end), " <= nz`.")])?
        #[kernel]
        #[launch_bounds(BLOCK_X * BLOCK_Y, BLOCKS_PER_MULTIPROCESSOR)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            f: *const $real,
            df: *mut $real,
            nx: u32,
            ny: u32,
            nz: u32,
            $($begin: u32, $end: u32,)?
            radius: u32,
            order: u32,
            rule: u32,
            #[grid_constant] table: &Table<$real>,
        ) {
            let extents = [nx, ny, nz];
            let planes = planes_of(nz, [$([$begin, $end])?]);
            // SAFETY: forwarded word for word.
            unsafe {
                along::<$real, $axis, { $points }>(
                    f, df, extents, planes, radius, order, rule, table,
                );
            }
        }

        crate::register! {
            $name: $real, Tuned,
            concat!("first or second derivative along ", $along, ", orders 2 to 8, any boundary"),
            geometry: |kernel, field| geometry(kernel, $axis, field),
            cost: |field| super::geometry::derivatives::<$real>(field, 1, 1, 1, 1),
            example: EXAMPLE,
        }
    )+};
}

axis_kernels! {
    derivative3d_general_x_f32: f32, 0 "x", ROWS;
    derivative3d_general_x_f64: f64, 0 "x", ROWS;
    derivative3d_general_y_f32: f32, 1 "y", POINTS;
    derivative3d_general_y_f64: f64, 1 "y", POINTS;
    derivative3d_general_z_f32: f32, 2 "z", POINTS, planes begin to end;
    derivative3d_general_z_f64: f64, 2 "z", POINTS, planes begin to end;
}

/// The fewest points of an axis for this radius, order and rule.
#[must_use]
pub const fn min_len(radius: usize, order: usize, rule: u32) -> usize {
    match rule {
        rule::PERIODIC | rule::MIRROR_HALFWAY => radius,
        rule::PERIODIC_WITH_ENDPOINT | rule::MIRROR_ON_POINT => radius + 1,
        rule::FIXED => 1,
        _ => 2 * radius + order,
    }
}

/// The number of units of a field of these extents along `axis`, or `None` if it does not fit
/// `u32`.
#[must_use]
pub const fn units(extents: [usize; 3], axis: usize) -> Option<usize> {
    let [_, ny, nz] = extents;
    let units = match axis {
        0 => match ny.checked_mul(nz) {
            Some(rows) => Some(rows.div_ceil(ROWS)),
            None => None,
        },
        1 => ny.div_ceil(POINTS).checked_mul(nz),
        _ => nz.div_ceil(POINTS).checked_mul(ny),
    };
    match units {
        Some(units) if units <= u32::MAX as usize => Some(units),
        _ => None,
    }
}

/// The number of blocks along x for `nx` points along x and this many units, or `None` if it does
/// not fit `u32`.
#[must_use]
pub const fn blocks(nx: usize, units: usize) -> Option<u32> {
    match nx
        .div_ceil(BLOCK_X as usize)
        .checked_mul(units.div_ceil(BLOCK_Y as usize))
    {
        Some(blocks) if blocks <= u32::MAX as usize => Some(blocks as u32),
        _ => None,
    }
}

/// The example of kernels of any order: the textbook's field, 8th order, periodic, both ends
/// stored.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) const EXAMPLE: crate::registry::Problem = {
    let rule = rule::PERIODIC_WITH_ENDPOINT;
    super::geometry::EXAMPLE.with_stencil(MAX_RADIUS as u32, rule | rule << 8 | rule << 16)
};

/// Refuses extents that the general kernels cannot count.
///
/// # Errors
///
/// [`Refusal`](crate::registry::Refusal) for such extents.
#[cfg(not(target_arch = "nvptx64"))]
pub fn check_extents(
    kernel: &'static str,
    field: &crate::registry::Problem,
) -> Result<(), crate::registry::Refusal> {
    let mut extents = field.extents.into_iter();
    extents.try_for_each(|extent| {
        super::geometry::at_most(kernel, "an extent", extent as u128, MAX_LEN.into())
    })
}

/// The launch with a thread for each unit along this axis.
#[cfg(not(target_arch = "nvptx64"))]
fn geometry(
    kernel: &'static str,
    axis: usize,
    field: &crate::registry::Problem,
) -> Result<crate::registry::Geometry, crate::registry::Refusal> {
    let found = super::geometry::counted(kernel, field.extents, |extents| {
        blocks(extents[0], units(extents, axis)?)
    })?;
    check_extents(kernel, field)?;
    let block = [BLOCK_X, BLOCK_Y, 1];
    Ok(crate::registry::Geometry::new([found, 1, 1], block))
}

/// The thread's x and its unit; both may be beyond the field.
#[inline(always)]
fn place(nx: u32) -> (u32, u32) {
    let blocks_x = nx.div_ceil(BLOCK_X);
    let (block, unit) = (
        thread::block_idx_x() % blocks_x,
        thread::block_idx_x() / blocks_x,
    );
    (
        block * BLOCK_X + thread::thread_idx_x(),
        unit * BLOCK_Y + thread::thread_idx_y(),
    )
}

/// The planes to compute, as the first and the one after the last: those `given`, or all.
#[inline(always)]
fn planes_of<const N: usize>(nz: u32, given: [[u32; 2]; N]) -> [u32; 2] {
    given.first().copied().unwrap_or([0, nz])
}

/// Computes the thread's unit.
///
/// # Safety
///
/// As the entry points; along x and y, `planes` is `[0, nz]`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn along<T: Real, const AXIS: usize, const UNIT: usize>(
    f: *const T,
    df: *mut T,
    extents: [u32; 3],
    planes: [u32; 2],
    radius: u32,
    order: u32,
    rule: u32,
    table: &Table<T>,
) {
    let [nx, ny, nz] = extents;
    let (i, unit) = place(nx);
    if i >= nx {
        return;
    }
    let stride = stride(nx, ny, AXIS);
    // Of the unit: the first element of its (first) line, its first point on that line, the number
    // of points from there on, and the distance between its points.
    let (begin, point, left, step) = if AXIS == 0 {
        let (row, rows) = (u64::from(unit) * UNIT as u64, u64::from(ny) * u64::from(nz));
        (
            row as usize * nx as usize,
            i,
            rows.saturating_sub(row),
            nx as usize,
        )
    } else {
        let [first, end] = if AXIS == 2 {
            planes
        } else {
            [0, extents[AXIS]]
        };
        let per_line = (end - first).div_ceil(UNIT as u32);
        let (line, point) = (unit / per_line, first + unit % per_line * UNIT as u32);
        let (lines, line_step) = match AXIS {
            1 => (nz, ny as usize * nx as usize),
            _ => (ny, nx as usize),
        };
        let left = if line < lines { end - point } else { 0 };
        (
            line as usize * line_step + i as usize,
            point,
            u64::from(left),
            stride,
        )
    };
    if left == 0 {
        return;
    }
    // SAFETY: the unit has a point, so its line is in the field, and so are the `left` points; no
    // other thread has them.
    unsafe {
        let line = AxisLine {
            axis: AXIS,
            first: f.add(begin),
            stride,
            len: extents[AXIS],
            rule,
            table,
        };
        let df = df.add(begin + point as usize * stride);
        // equivalent mutant (guard: made `false`): the other way gives the same points
        let reach = if AXIS == 0 { 1 } else { UNIT as u32 };
        // equivalent mutant (comparison): the other path gives the same points
        if left >= UNIT as u64 && point >= radius && line.len - point >= reach + radius {
            match (radius, order) {
                (1, 1) => line.unit::<UNIT, 1, 1>(point, step, df),
                (2, 1) => line.unit::<UNIT, 2, 1>(point, step, df),
                (3, 1) => line.unit::<UNIT, 3, 1>(point, step, df),
                (4, 1) => line.unit::<UNIT, 4, 1>(point, step, df),
                (1, _) => line.unit::<UNIT, 1, 2>(point, step, df),
                (2, _) => line.unit::<UNIT, 2, 2>(point, step, df),
                (3, _) => line.unit::<UNIT, 3, 2>(point, step, df),
                _ => line.unit::<UNIT, 4, 2>(point, step, df),
            }
            return;
        }
        let mut k = 0;
        // equivalent mutant (comparison: in `k < UNIT as u32`): the next thread's point, to the same bits
        while k < UNIT as u32 && u64::from(k) < left {
            keep_rolled();
            *df.add(k as usize * step) = if AXIS == 0 {
                // The same point of the next row.
                let line = line.moved(k as usize * step);
                match order {
                    1 => line.derivative::<1>(radius, point),
                    _ => line.derivative::<2>(radius, point),
                }
            } else {
                match order {
                    1 => line.anywhere::<1, 1>(radius, point + k),
                    _ => line.anywhere::<2, 1>(radius, point + k),
                }
            };
            k += 1;
        }
    }
}

/// Elements between neighbours along an axis.
#[inline(always)]
pub(super) const fn stride(nx: u32, ny: u32, axis: usize) -> usize {
    match axis {
        0 => 1,
        1 => nx as usize,
        _ => nx as usize * ny as usize,
    }
}

/// The points of the field along an axis, through one of its points.
#[derive(Clone, Copy)]
pub(super) struct AxisLine<'a, T> {
    /// The axis.
    pub(super) axis: usize,
    /// Point 0.
    pub(super) first: *const T,
    /// Elements from one point to the next.
    pub(super) stride: usize,
    /// The number of points.
    pub(super) len: u32,
    /// The boundary rule, one of [`rule`].
    pub(super) rule: u32,
    /// The axis' table for the required derivative.
    pub(super) table: &'a Table<T>,
}

/// # Safety
///
/// For all methods: the points are readable, their number is from [`min_len`] to [`MAX_LEN`], `p`
/// is one of them, and the radius is 1 to 4.
impl<T: Real> AxisLine<'_, T> {
    /// Whether all points up to the radius away from `p` are on the axis.
    #[inline(always)]
    fn inside(self, radius: u32, p: u32) -> bool {
        p >= radius && self.len - p > radius
    }

    /// The derivative at point `p`, with separate code for each radius if no end is near.
    ///
    /// # Safety
    ///
    /// As for all methods.
    #[inline(always)]
    unsafe fn derivative<const ORDER: usize>(self, radius: u32, p: u32) -> T {
        // SAFETY: as for all methods; `inside` has checked that the points exist.
        unsafe {
            // equivalent mutant (guard: made `true`): the other way gives the same derivative
            if !self.inside(radius, p) {
                return self.anywhere::<ORDER, 1>(radius, p);
            }
            let centre = self.first.add(p as usize * self.stride);
            macro_rules! central {
                ($radius:literal) => {
                    central::<T, $radius, ORDER>(
                        self.table,
                        #[inline(always)]
                        |m| *centre.offset(m * self.stride as isize),
                    )
                };
            }
            match radius {
                1 => central!(1),
                2 => central!(2),
                3 => central!(3),
                _ => central!(4),
            }
        }
    }

    /// The parallel line `elements` elements further on.
    ///
    /// # Safety
    ///
    /// That line is in the field.
    #[inline(always)]
    pub(super) unsafe fn moved(self, elements: usize) -> Self {
        Self {
            // SAFETY: the caller's promise.
            first: unsafe { self.first.add(elements) },
            ..self
        }
    }

    /// Writes the derivatives at `UNIT` points to `df` and every `step`-th element after it: along
    /// x at point `p` of `UNIT` lines, otherwise at the points from `p` on, from values that are
    /// loaded once.
    ///
    /// # Safety
    ///
    /// As for all methods, for each of the lines; all points up to `RADIUS` away are on the axis,
    /// and the elements of `df` are writable, by no other thread.
    #[inline(always)]
    unsafe fn unit<const UNIT: usize, const RADIUS: usize, const ORDER: usize>(
        self,
        p: u32,
        step: usize,
        df: *mut T,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let begin = self.first.add((p as usize - RADIUS) * self.stride);
            let mut values = [T::ZERO; MAX_WINDOW];
            if self.axis == 0 {
                // All loads before the first store.
                unrolled::<UNIT>(
                    #[inline(always)]
                    |k| {
                        let centre = begin.add(RADIUS + k * step);
                        values[k] = central::<T, RADIUS, ORDER>(
                            self.table,
                            #[inline(always)]
                            |m| *centre.offset(m),
                        );
                    },
                );
            } else {
                let window = window_of(
                    UNIT + 2 * RADIUS,
                    #[inline(always)]
                    |k| *begin.add(k * self.stride),
                );
                unrolled::<UNIT>(
                    #[inline(always)]
                    |k| {
                        values[k] = central::<T, RADIUS, ORDER>(
                            self.table,
                            #[inline(always)]
                            |m| window[(k + RADIUS).wrapping_add_signed(m)],
                        );
                    },
                );
            }
            unrolled::<UNIT>(
                #[inline(always)]
                |k| *df.add(k * step) = values[k],
            );
        }
    }

    /// The derivative at any point `p`, by compact code that loads `CHUNK` terms at a time.
    ///
    /// # Safety
    ///
    /// As for all methods.
    #[inline(always)]
    pub(super) unsafe fn anywhere<const ORDER: usize, const CHUNK: usize>(
        self,
        radius: u32,
        p: u32,
    ) -> T {
        // SAFETY: as for all methods.
        unsafe {
            if self.rule == rule::ONE_SIDED && !self.inside(radius, p) {
                return self.end::<ORDER, CHUNK>(radius, p);
            }
            let here = *self.first.add(p as usize * self.stride);
            let images = Images::of(self.rule, self.len);
            let mut sum = T::ZERO;
            let mut begin = 0;
            // equivalent mutant (comparison): once more, with no point left
            while begin < radius {
                keep_rolled();
                let mut pairs = [(T::ZERO, T::ZERO); MAX_RADIUS];
                unrolled::<MAX_RADIUS>(
                    #[inline(always)]
                    |c| {
                        let m = begin + c as u32 + 1;
                        // equivalent mutant (comparison: in `c < CHUNK`): it loads one more pair, which is not used
                        if c < CHUNK && m <= radius {
                            pairs[c] = (
                                self.value(images, p, p.wrapping_add(m)),
                                self.value(images, p, p.wrapping_sub(m)),
                            );
                        }
                    },
                );
                unrolled::<MAX_RADIUS>(
                    #[inline(always)]
                    |c| {
                        let m = begin + c as u32 + 1;
                        if c < CHUNK && m <= radius {
                            let (ahead, behind) = pairs[c];
                            let term = term::<T, ORDER>(ahead, behind, here);
                            let weight = self.table.element(m as usize - 1);
                            // The first term is a product: adding it to 0 would turn -0 into 0.
                            sum = if m == 1 {
                                weight * term
                            } else {
                                term.mul_add(weight, sum)
                            };
                        }
                    },
                );
                begin += CHUNK as u32;
            }
            sum
        }
    }

    /// The value at place `q`, which may be up to the radius beyond either end; `p` is a point.
    ///
    /// # Safety
    ///
    /// As for all methods.
    #[inline(always)]
    unsafe fn value(self, images: Images, p: u32, q: u32) -> T {
        let stored = images.stored(q);
        // SAFETY: the stored point is on the axis, which has at least `min_len` points.
        unsafe {
            // Loaded unconditionally, so that the load does not wait for a branch.
            let value = *self.first.add(stored.unwrap_or(p) as usize * self.stride);
            if stored.is_some() {
                value
            } else {
                self.table.fixed_value()
            }
        }
    }

    /// The derivative at a point nearer than the radius to an end, from the points at that end.
    ///
    /// # Safety
    ///
    /// As for all methods.
    #[inline(always)]
    pub(super) unsafe fn end<const ORDER: usize, const CHUNK: usize>(
        self,
        radius: u32,
        p: u32,
    ) -> T {
        // equivalent mutant (comparison): a point at this distance from the first end is not near either end
        let at_first = p < radius;
        let last = self.len - 1;
        let from_end = if at_first { p } else { last - p };
        let row = TABLE_ENDS + MAX_END_POINTS * from_end as usize;
        let count = 2 * radius + ORDER as u32;
        // SAFETY: with at least `min_len` points all points of the row exist, and `from_end` is
        // below the radius.
        unsafe {
            let here = *self.first.add(p as usize * self.stride);
            let mut sum = T::ZERO;
            // Point 0 is skipped if it is the point itself.
            let first = if from_end == 0 { 1 } else { 0 };
            let mut begin = first;
            // equivalent mutant (comparison): one more pass, which has no points left
            while begin < count {
                keep_rolled();
                let mut points = [T::ZERO; MAX_END_POINTS];
                unrolled::<MAX_END_POINTS>(
                    #[inline(always)]
                    |c| {
                        let q = begin + c as u32;
                        // equivalent mutant (comparison: made `<=` in `c < CHUNK`): reads a point
                        // that no term takes
                        if c < CHUNK && q < count {
                            let point = if at_first { q } else { last - q };
                            points[c] = *self.first.add(point as usize * self.stride);
                        }
                    },
                );
                unrolled::<MAX_END_POINTS>(
                    #[inline(always)]
                    |c| {
                        let q = begin + c as u32;
                        if c < CHUNK && q < count {
                            let term = points[c] - here;
                            let weight = self.table.element(row + q as usize);
                            if q == first {
                                sum = weight * term;
                            } else if q != from_end {
                                sum = term.mul_add(weight, sum);
                            }
                        }
                    },
                );
                begin += CHUNK as u32;
            }
            if ORDER == 1 && !at_first { -sum } else { sum }
        }
    }
}

/// The images of an axis: the points whose values stand for places beyond its ends.
///
/// Places are modulo 2³²: those before the first point are the largest u32 values.
#[derive(Clone, Copy)]
pub(super) struct Images {
    len: u32,
    /// Whether places beyond the ends have images.
    exist: bool,
    /// Whether images are mirrored.
    mirrored: bool,
    /// The numbers to add to a place before the first point and to one after the last; if mirrored,
    /// to their negatives.
    before: u32,
    behind: u32,
}

impl Images {
    /// The images of an axis of `len` points, at most [`MAX_LEN`].
    #[inline(always)]
    pub(super) fn of(rule: u32, len: u32) -> Self {
        let period = len.wrapping_sub(1);
        let (mirrored, before, behind) = match rule {
            rule::PERIODIC => (false, len, len.wrapping_neg()),
            rule::PERIODIC_WITH_ENDPOINT => (false, period, period.wrapping_neg()),
            rule::MIRROR_ON_POINT => (true, 0, period.wrapping_mul(2)),
            _ => (true, u32::MAX, len.wrapping_add(period)),
        };
        Self {
            len,
            exist: rule != rule::FIXED && rule != rule::ONE_SIDED,
            mirrored,
            before,
            behind,
        }
    }

    /// The point with the value of place `p`, if any; `p` may be up to the radius beyond either
    /// end.
    #[inline(always)]
    pub(super) fn stored(self, p: u32) -> Option<u32> {
        if p < self.len {
            return Some(p);
        }
        let shift = if p > MAX_LEN {
            self.before
        } else {
            self.behind
        };
        let p = if self.mirrored { p.wrapping_neg() } else { p };
        self.exist.then_some(p.wrapping_add(shift))
    }
}

/// The m-th term of a central stencil without its weight, from the points m ahead, m behind and the
/// point itself.
#[inline(always)]
pub(super) fn term<T: Real, const ORDER: usize>(ahead: T, behind: T, here: T) -> T {
    if ORDER == 1 {
        ahead - behind
    } else {
        here.mul_add(T::MINUS_TWO, ahead + behind)
    }
}

/// The central stencil on the values that `at` returns.
#[inline(always)]
fn central<T: Real, const RADIUS: usize, const ORDER: usize>(
    table: &Table<T>,
    at: impl Fn(isize) -> T,
) -> T {
    let mut sum = T::ZERO;
    unrolled::<RADIUS>(
        #[inline(always)]
        |k| {
            let m = k as isize + 1;
            let term = term::<T, ORDER>(at(m), at(-m), at(0));
            let weight = table.weight(k + 1);
            sum = if k == 0 {
                weight * term
            } else {
                term.mul_add(weight, sum)
            };
        },
    );
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_behind_the_longest_axis_has_its_image() {
        for (rule, image) in [
            (rule::PERIODIC, 0),
            (rule::PERIODIC_WITH_ENDPOINT, 1),
            (rule::MIRROR_ON_POINT, MAX_LEN - 2),
            (rule::MIRROR_HALFWAY, MAX_LEN - 1),
        ] {
            assert_eq!(Images::of(rule, MAX_LEN).stored(MAX_LEN), Some(image));
        }
    }
}
