//! The march of the general operators: plane by plane along z, with each plane's tile in shared
//! memory.
//!
//! - A block has a tile of 32 accesses along x by [`LINES`]` * ROWS` rows and goes through
//!   `segment` planes; a thread has one access in each of `ROWS` adjacent rows. An access is 16
//!   bytes if rows are whole numbers of that, else one point.
//! - Each field keeps only what its derivatives need. Neighbours along z are in the
//!   thread's registers: a window of 9 planes, loaded 5 planes ahead. Neighbours along x
//!   and y are in shared memory: the tile, with a halo of [`MAX_RADIUS`] columns if
//!   there is a derivative along x, and of as many rows if there is one along y.
//! - The halo, and tiles of fields without a derivative along z, are loaded one plane ahead by
//!   asynchronous copies, which take no registers: each row of the halo by a row of threads,
//!   columns point by point by the last threads.
//! - The boundary rules are applied where the halo is loaded: a place beyond an end has the value
//!   of its image ([`Images`]) or the fixed value. So the arithmetic is the same everywhere. Places
//!   further away than the radius are neither loaded nor used.
//! - Near a one-sided end the march writes wrong values, since it applies the central stencil.
//!   After its march a block computes those points again, distributed over all its threads:
//!   [`ends`]. A block with a plane near a one-sided end of z has only that plane.
//! - The radius is not a constant: a uniform branch follows each term. Separate code for each
//!   radius would be four times as long and save 3 instructions in 100.
//! - There are two tiles, for even and for odd planes, so one barrier per plane is enough: a thread
//!   that writes a tile again has passed the barrier that all others reach only after they have
//!   read it.
//! - In a tile that the field does not fill, the halo follows right after the part in the field.
//!   Threads beyond that load the same points as others and store nothing.
//!
//! # What limits it
//!
//! - Bytes: each input is read once and each output written once. The second-level cache delivers a
//!   further `8 / (LINES * ROWS)` of a field for the halo along y, `8 / segment` for the window
//!   along z, and a sector on either side of a row of the tile.
//! - Instructions per point, 8th order: 8 for each first derivative, 12 for each second, an access
//!   of shared memory for every 4 to 8 of them, and about 200 per iteration and thread for loads,
//!   stores, indices, the window and the loop. They limit the Laplacian in f32; memory limits the
//!   others.
//!
//! Measurements and other variants: `docs/tuning/derivative3d.md`.

use super::general::{
    AxisLine, Images, MAX_END_POINTS, MAX_RADIUS, Table, Tables, rule, rule_of, stride, term,
};
use super::general_real::Real;
use crate::loops::{keep_rolled, unrolled};
use crate::vector::{Points, Vector4, WARP};
use cuda_std::async_copy::{cp_async_ca, cp_async_wait_all};
use cuda_std::cache::{load_readonly, store_streaming};
use cuda_std::prelude::*;
use halo_stencil::forgotten;

/// Rows of threads of a block.
pub const LINES: usize = 8;

/// Threads of a block.
pub(super) const BLOCK: u32 = WARP * LINES as u32;

/// Columns, and rows, of a tile's halo.
const HALO: usize = 2 * MAX_RADIUS;

/// Planes of the window in registers.
const WINDOW: usize = HALO + 1;

/// The most rows of a thread and the most points of an access.
const MAX_ROWS: usize = 4;
const MAX_COUNT: usize = 4;

/// The most outputs and the most derivatives of all outputs together.
const MAX_OUTPUTS: usize = 3;
const MAX_TERMS: usize = 6;

const _: () = assert!(LINES >= HALO, "each row of the halo has its row of threads");
const _: () = assert!(
    MAX_ROWS * HALO <= WARP as usize,
    "each point has its thread"
);

/// The parameters of the fields.
#[derive(Clone, Copy)]
pub(super) struct Grid<'a, T> {
    pub(super) extents: [u32; 3],
    /// The planes to compute: the first and the one after the last.
    pub(super) planes: [u32; 2],
    pub(super) radius: u32,
    pub(super) rules: u32,
    /// Planes that a block goes through.
    pub(super) segment: u32,
    /// The tables for the order of the derivatives.
    pub(super) tables: &'a Tables<T>,
}

impl<T: Copy> Grid<'_, T> {
    /// The images beyond the ends of an axis.
    #[inline(always)]
    fn images(self, axis: usize) -> Images {
        Images::of(rule_of(self.rules, axis), self.extents[axis])
    }
}

/// An operator: each output is a sum or a difference of derivatives.
pub(super) trait Operator<const FIELDS: usize, const OUTPUTS: usize, const TERMS: usize> {
    /// The order of the derivatives.
    const ORDER: usize;

    /// The derivatives of each output: number of the field and axis.
    const SUMS: [[(usize, usize); TERMS]; OUTPUTS];

    /// Whether the derivatives after the first of an output are subtracted.
    const DIFFERENCE: bool;

    /// For each field, whether there is a derivative along x, y, z.
    const ALONG: [[bool; 3]; FIELDS] = {
        let mut along = [[false; 3]; FIELDS];
        let mut nth = 0;
        while nth < OUTPUTS * TERMS {
            let (field, axis) = Self::SUMS[nth / TERMS][nth % TERMS];
            along[field][axis] = true;
            nth += 1;
        }
        along
    };
}

/// Adds a derivative to a sum or subtracts it.
#[inline(always)]
fn with_term<T: Real>(sum: T, term: T, difference: bool) -> T {
    if difference { sum - term } else { sum + term }
}

/// Points per row of a tile, for accesses of `count` points.
const fn pitch(count: usize) -> usize {
    WARP as usize * count + HALO
}

/// Rows of the tiles before the tile of field `nth`, for tiles of `rows` rows without halo.
const fn rows_before(along: &[[bool; 3]], nth: usize, rows: usize) -> usize {
    let (mut before, mut n) = (0, 0);
    while n < nth {
        before += match along[n] {
            [_, true, _] => rows + HALO,
            [true, ..] => rows,
            _ => 0,
        };
        n += 1;
    }
    before
}

/// Points of the tiles of a plane, for threads of `rows` accesses of `count` points.
const fn tile_points(along: &[[bool; 3]], rows: usize, count: usize) -> usize {
    rows_before(along, along.len(), rows * LINES) * pitch(count)
}

/// Vectors that hold the tiles of two planes, for points of `size` bytes.
pub(super) const fn vectors(along: &[[bool; 3]], rows: usize, count: usize, size: usize) -> usize {
    2 * tile_points(along, rows, count) * size / size_of::<Vector4>()
}

/// The most points of a block along x and y.
const fn reach(rows: usize, count: usize) -> [u32; 2] {
    [WARP * count as u32, (LINES * rows) as u32]
}

/// The number of planes near a one-sided end of z. Each has its own block, since it takes more
/// work.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) const fn planes_near_end(radius: u32, rule: u32) -> u32 {
    if rule == rule::ONE_SIDED { radius } else { 0 }
}

/// The part of the planes `begin .. end` that is neither among the first `near` of `nz` planes nor
/// among the last `near`: its first plane and the one after its last. `near` is at most `nz / 2`.
#[inline(always)]
pub(super) fn planes_between([begin, end]: [u32; 2], nz: u32, near: u32) -> [u32; 2] {
    // equivalent mutant (arithmetic): planes near the last end are then part of a march, and its
    // block computes them again
    [near.clamp(begin, end), (nz - near).clamp(begin, end)]
}

/// The number of blocks. There are `planes` planes of `nx` × `ny` points; `near` of them have blocks
/// of their own. A thread has `rows` accesses of `count` points. `None` if the number does not fit
/// `u32`.
pub(super) const fn blocks(
    [nx, ny, planes]: [usize; 3],
    near: usize,
    rows: usize,
    count: usize,
    segment: u32,
) -> Option<u32> {
    let [width, height] = reach(rows, count);
    let (columns, rows) = (nx.div_ceil(width as usize), ny.div_ceil(height as usize));
    let Some(plane) = columns.checked_mul(rows) else {
        return None;
    };
    let segments = near + planes.saturating_sub(near).div_ceil(segment as usize);
    match plane.checked_mul(segments) {
        Some(blocks) if blocks <= u32::MAX as usize => Some(blocks as u32),
        _ => None,
    }
}

/// A block's part of the field.
#[derive(Clone, Copy)]
struct BlockPart {
    /// The first point.
    begin: [u32; 3],
    /// The extents.
    size: [u32; 3],
}

impl BlockPart {
    /// The part of block number `block`, of at most `reach` points along x and y.
    #[inline(always)]
    fn of<T: Copy>(grid: Grid<'_, T>, reach: [u32; 2], block: u32) -> Self {
        let ([nx, ny, nz], [begin, end]) = (grid.extents, grid.planes);
        let (columns, rows) = (nx.div_ceil(reach[0]), ny.div_ceil(reach[1]));
        let strip = block / columns;
        let (i, j) = (block % columns * reach[0], strip % rows * reach[1]);
        // First come the planes near the first end, then those near the last, then the segments
        // between.
        let nth = strip / rows;
        let (k, depth) = if rule_of(grid.rules, 2) == rule::ONE_SIDED {
            let [low, high] = planes_between(grid.planes, nz, grid.radius);
            let (before, behind) = (low - begin, end - high);
            if nth < before {
                (begin + nth, 1)
            } else if nth < before + behind {
                (high + (nth - before), 1)
            } else {
                let k = low + (nth - before - behind) * grid.segment;
                (k, grid.segment.min(high - k))
            }
        } else {
            let k = begin + nth * grid.segment;
            (k, grid.segment.min(end - k))
        };
        Self {
            begin: [i, j, k],
            size: [reach[0].min(nx - i), reach[1].min(ny - j), depth],
        }
    }
}

/// A thread's place in the halo along an axis.
#[derive(Clone, Copy)]
struct Halo {
    /// The row or column of the tile.
    cell: u32,
    /// The distance from the part of the tile that is in the field.
    distance: u32,
    /// The place on the axis, which may be beyond its ends.
    place: u32,
}

impl Halo {
    /// Row or column `nth` of the halo around the `size` points from `begin` on.
    #[inline(always)]
    fn of(nth: u32, begin: u32, size: u32) -> Self {
        let radius = MAX_RADIUS as u32;
        if nth < radius {
            let distance = radius - nth;
            Self {
                cell: nth,
                distance,
                place: begin.wrapping_sub(distance),
            }
        } else {
            let distance = nth - (radius - 1);
            Self {
                cell: nth + size,
                distance,
                place: begin + (size - 1) + distance,
            }
        }
    }
}

/// A thread's view of a plane.
struct Plane<'a, T, P, const FIELDS: usize, const ROWS: usize> {
    along: [[bool; 3]; FIELDS],
    radius: u32,
    tables: &'a Tables<T>,
    /// For each field, the cell of its tile [`MAX_RADIUS`] columns before the thread's first
    /// access, and [`MAX_RADIUS`] rows before it if the tile has rows of halo.
    corners: [*const T; FIELDS],
    /// The number of the thread's accesses in the field after the first.
    more_rows: u32,
    /// The thread's accesses.
    center: [[P; ROWS]; FIELDS],
    /// Their derivatives along z.
    along_z: [[P; ROWS]; FIELDS],
}

impl<T: Real, P: Points<Point = T>, const FIELDS: usize, const ROWS: usize>
    Plane<'_, T, P, FIELDS, ROWS>
{
    /// The derivative of field number `field` along an axis.
    ///
    /// # Safety
    ///
    /// The field's tile is complete, with its halo along this axis; there is such a
    /// derivative.
    #[inline(always)]
    unsafe fn derivative<const ORDER: usize>(&self, field: usize, axis: usize) -> [P; ROWS] {
        // SAFETY: forwarded word for word.
        unsafe {
            match axis {
                0 => self.x::<ORDER>(field),
                1 => self.y::<ORDER>(field),
                _ => self.along_z[field],
            }
        }
    }

    /// The derivative of field number `field` along y, summed from the nearest neighbours outwards,
    /// so that the rows of a thread share their reads.
    ///
    /// # Safety
    ///
    /// As [`derivative`](Self::derivative).
    #[inline(always)]
    unsafe fn y<const ORDER: usize>(&self, field: usize) -> [P; ROWS] {
        let corner = self.corners[field];
        let center = self.center[field];
        // SAFETY: the row is in the tile or its halo.
        let read = |row: usize| unsafe { cell(corner, row * pitch(P::COUNT) + MAX_RADIUS) };
        let mut along_y = [P::ZERO; HALO + MAX_ROWS];
        unrolled::<ROWS>(
            #[inline(always)]
            |r| {
                // The window along z still holds this access.
                along_y[MAX_RADIUS + r] =
                    // equivalent mutant (guard: made `false`): the tile holds the same access
                    // equivalent mutant (logic: `||` made `&&`): the tile holds the same access
                    // equivalent mutant (comparison: `<=` made `<`): the tile holds the same access
                    if self.along[field][2] && (r == 0 || r as u32 <= self.more_rows) {
                        center[r]
                    } else {
                        read(MAX_RADIUS + r)
                    };
            },
        );
        let mut sums = [P::ZERO; ROWS];
        up_to(
            self.radius,
            #[inline(always)]
            |m| {
                let (lowest, highest) = (MAX_RADIUS - m, MAX_RADIUS + ROWS - 1 + m);
                along_y[lowest] = read(lowest);
                along_y[highest] = read(highest);
                unrolled::<ROWS>(
                    #[inline(always)]
                    |r| {
                        let c = MAX_RADIUS + r;
                        let points = [along_y[c + m], along_y[c - m], along_y[c]];
                        let sum = add_term::<T, P, ORDER>(&self.tables[1], sums[r], m, points);
                        sums[r] = all_settled(sum);
                    },
                );
            },
        );
        sums
    }

    /// The derivative of field number `field` along x.
    ///
    /// # Safety
    ///
    /// As [`derivative`](Self::derivative).
    #[inline(always)]
    unsafe fn x<const ORDER: usize>(&self, field: usize) -> [P; ROWS] {
        let corner = self.corners[field];
        let [_, along_y, along_z] = self.along[field];
        let first_row = halo_rows(along_y);
        let center = self.center[field];
        let mut sums = [P::ZERO; ROWS];
        unrolled::<ROWS>(
            #[inline(always)]
            |r| {
                let mut along_x = [T::ZERO; HALO + MAX_COUNT];
                unrolled::<{ HALO + MAX_COUNT }>(
                    #[inline(always)]
                    |c| {
                        // equivalent mutant (comparison): reads the cell after the last, which nothing takes
                        // equivalent mutant (width: made `HALO + 1`): reads the cell after the last, which nothing takes
                        if c < HALO + P::COUNT && c.is_multiple_of(P::COUNT) {
                            // equivalent mutant (guard: made `false`): the tile holds the same access
                            let points: P = if along_z && c == MAX_RADIUS {
                                center[r]
                            } else {
                                // SAFETY: the columns are in the tile or its halo.
                                unsafe { cell(corner, (first_row + r) * pitch(P::COUNT) + c) }
                            };
                            unrolled::<MAX_COUNT>(
                                #[inline(always)]
                                |e| {
                                    if e < P::COUNT {
                                        along_x[c + e] = points.point(e);
                                    }
                                },
                            );
                        }
                    },
                );
                let mut sum = P::ZERO;
                up_to(
                    self.radius,
                    #[inline(always)]
                    |m| {
                        let points = [MAX_RADIUS + m, MAX_RADIUS - m, MAX_RADIUS].map(
                            #[inline(always)]
                            |c| {
                                P::of(
                                    #[inline(always)]
                                    |e| along_x[c + e],
                                )
                            },
                        );
                        sum = add_term::<T, P, ORDER>(&self.tables[0], sum, m, points);
                    },
                );
                sums[r] = all_settled(sum);
            },
        );
        sums
    }
}

/// Whether one of the derivatives is along z.
const fn uses_z(derivatives: &[(usize, usize)]) -> bool {
    let mut nth = 0;
    while nth < derivatives.len() {
        if derivatives[nth].1 == 2 {
            return true;
        }
        nth += 1;
    }
    false
}

/// Rows of halo before a tile.
#[inline(always)]
const fn halo_rows(along_y: bool) -> usize {
    if along_y { MAX_RADIUS } else { 0 }
}

/// Calls `body(1)`, …, `body(radius)`, for a radius of 1 to 4.
#[inline(always)]
fn up_to(radius: u32, mut body: impl FnMut(usize)) {
    body(1);
    if radius > 1 {
        body(2);
        if radius > 2 {
            body(3);
            if radius > 3 {
                body(4);
            }
        }
    }
}

/// `sum` plus the term of the points m ahead, m behind, and the points themselves. The first term
/// ignores `sum`.
#[inline(always)]
fn add_term<T: Real, P: Points<Point = T>, const ORDER: usize>(
    table: &Table<T>,
    sum: P,
    m: usize,
    [ahead, behind, here]: [P; 3],
) -> P {
    let weight = table.weight(m);
    P::of(
        #[inline(always)]
        |e| {
            let term = term::<T, ORDER>(ahead.point(e), behind.point(e), here.point(e));
            if m == 1 {
                weight * term
            } else {
                term.mul_add(weight, sum.point(e))
            }
        },
    )
}

/// The access of a tile that begins `cells` cells after `corner`.
///
/// # Safety
///
/// The access is readable and aligned, and nobody writes it at the same time.
#[inline(always)]
pub(super) unsafe fn cell<T, P: Copy>(corner: *const T, cells: usize) -> P {
    // SAFETY: as the caller promises.
    unsafe { *corner.add(cells).cast() }
}

/// All points [`settled`](crate::loops::Register::settled).
#[inline(always)]
pub(super) fn all_settled<T: Real, P: Points<Point = T>>(points: P) -> P {
    P::of(
        #[inline(always)]
        |e| points.point(e).settled(),
    )
}

/// Computes the part of the block: in `ROWS` accesses of `V` per thread if rows are whole accesses,
/// else in `SINGLE_ROWS` accesses of one point.
///
/// # Safety
///
/// - The inputs are readable and the outputs writable for each point of the grid, all aligned to 16
///   bytes; no output overlaps another field, and nothing else accesses one during the launch.
/// - `tiles` is the block's own shared memory of [`vectors`] vectors, for either kind of access.
/// - The radius is 1 to 4; each axis has at least [`min_len`](super::general::min_len) and at most
///   [`MAX_LEN`](super::general::MAX_LEN) points; a plane has fewer than 2³².
/// - Blocks of `(32, LINES)` threads, as many along x as [`blocks`] says.
#[inline(always)]
pub(super) unsafe fn operator<
    T: Real + Points<Point = T>,
    V: Points<Point = T>,
    O: Operator<FIELDS, OUTPUTS, TERMS>,
    const FIELDS: usize,
    const OUTPUTS: usize,
    const TERMS: usize,
    const ROWS: usize,
    const SINGLE_ROWS: usize,
>(
    tiles: *mut T,
    inputs: [*const T; FIELDS],
    outputs: [*mut T; OUTPUTS],
    grid: Grid<'_, T>,
) {
    // equivalent mutant (comparison): an access has two points or four
    let has_whole_rows = |nx: u32| V::COUNT > 1 && nx.is_multiple_of(V::COUNT as u32);
    // SAFETY: forwarded word for word; rows are whole accesses.
    unsafe {
        if has_whole_rows(grid.extents[0]) {
            march_planes::<T, V, O, FIELDS, OUTPUTS, TERMS, ROWS>(tiles, inputs, outputs, grid);
        } else {
            march_planes::<T, T, O, FIELDS, OUTPUTS, TERMS, SINGLE_ROWS>(
                tiles, inputs, outputs, grid,
            );
        }
    }
    // Computed again, so that it takes no registers during the march.
    let extents = grid.extents.map(forgotten);
    let reach = if has_whole_rows(extents[0]) {
        reach(ROWS, V::COUNT)
    } else {
        reach(SINGLE_ROWS, T::COUNT)
    };
    let grid = Grid {
        extents,
        planes: grid.planes.map(forgotten),
        radius: forgotten(grid.radius),
        rules: forgotten(grid.rules),
        segment: forgotten(grid.segment),
        tables: grid.tables,
    };
    let part = BlockPart::of(grid, reach, forgotten(thread::block_idx_x()));
    // SAFETY: forwarded word for word.
    unsafe { ends::<T, O, FIELDS, OUTPUTS, TERMS>(inputs, outputs, grid, part) };
}

/// Computes the part of the block in accesses of `P`, except for the points near one-sided ends.
///
/// # Safety
///
/// As [`operator`]; rows are whole accesses.
#[inline(always)]
unsafe fn march_planes<
    T: Real,
    P: Points<Point = T>,
    O: Operator<FIELDS, OUTPUTS, TERMS>,
    const FIELDS: usize,
    const OUTPUTS: usize,
    const TERMS: usize,
    const ROWS: usize,
>(
    tiles: *mut T,
    inputs: [*const T; FIELDS],
    outputs: [*mut T; OUTPUTS],
    grid: Grid<'_, T>,
) {
    const {
        assert!(ROWS <= MAX_ROWS && P::COUNT <= MAX_COUNT);
        assert!(OUTPUTS <= MAX_OUTPUTS && OUTPUTS * TERMS <= MAX_TERMS);
    };
    let Grid {
        extents: [nx, ny, nz],
        radius,
        rules,
        tables,
        ..
    } = grid;
    let pitch = pitch(P::COUNT);
    let part = BlockPart::of(grid, reach(ROWS, P::COUNT), thread::block_idx_x());
    let [first_x, first_y, first] = part.begin;
    // The part of the tile that is in the field; the halo follows right after it.
    let [valid_x, valid_y, planes] = part.size;
    let lane = thread::thread_idx_x();
    let line = thread::thread_idx_y();
    let (x, own_line) = (lane * P::COUNT as u32, line * ROWS as u32);
    // Whether this thread has points of the field, and the number of its rows after the first.
    let inside = x < valid_x && own_line < valid_y;
    let more_rows = (valid_y - 1).saturating_sub(own_line);
    let has = |r: usize| r == 0 || r as u32 <= more_rows;

    // The offset of this thread's first access in a plane, in points. Threads beyond the field
    // repeat the last access.
    let access = first_x + x.min(valid_x - P::COUNT as u32);
    let own_place = (first_y + own_line.min(valid_y - 1)) * nx + access;
    // The offset of the access in the thread's row `r`, or in its last row.
    let place_of = |r: usize| own_place + more_rows.min(r as u32) * nx;
    // The thread's access of the halo along y.
    // equivalent mutant (comparison: in `line < HALO as u32`): there are as many lines as rows of the halo
    // equivalent mutant (width: made `HALO + 1`): there are as many lines as rows of the halo
    // equivalent mutant (comparison: in `x < valid_x`): fills cells of corners, which no stencil reads
    // equivalent mutant (logic): fills cells of corners, which no stencil reads
    let has_row = line < HALO as u32 && x < valid_x;
    let row = Halo::of(line, first_y, valid_y);
    let (copies_row, row_place) = match grid.images(1).stored(row.place) {
        Some(y) if has_row && row.distance <= radius => (true, y * nx + access),
        _ => (false, 0),
    };
    // The thread's point of the halo along x; the last threads of the block have one each.
    let spare = BLOCK - (LINES * ROWS * HALO) as u32;
    let nth = (line * WARP + lane).wrapping_sub(spare);
    let point_line = nth / HALO as u32;
    let has_point = line * WARP + lane >= spare && point_line < valid_y;
    let column = Halo::of(nth % HALO as u32, first_x, valid_x);
    let (copies_point, point_place) = match grid.images(0).stored(column.place) {
        Some(x) if has_point && column.distance <= radius => {
            (true, (first_y + point_line) * nx + x)
        }
        _ => (false, 0),
    };

    // The cells of the tile of field `n` for the thread's first access and for its part of the
    // halos.
    let cell_of = |n: usize, row: u32, column: u32| {
        let row = rows_before(&O::ALONG, n, LINES * ROWS) + row as usize;
        row * pitch + column as usize
    };
    let own_cell = |n: usize| {
        let inner = halo_rows(O::ALONG[n][1]) as u32;
        cell_of(n, inner + own_line, MAX_RADIUS as u32 + x)
    };
    let row_cell = |n: usize| cell_of(n, row.cell, MAX_RADIUS as u32 + x);
    let point_cell = |n: usize| {
        let inner = halo_rows(O::ALONG[n][1]) as u32;
        cell_of(n, inner + point_line, column.cell)
    };
    let tiles_of_plane = tile_points(&O::ALONG, ROWS, P::COUNT);
    // Cells that are not copied keep the fixed value or are not used.
    unrolled::<FIELDS>(
        #[inline(always)]
        |n| {
            let [along_x, along_y, _] = O::ALONG[n];
            // SAFETY: cells of either tile, which no other thread writes.
            unsafe {
                if along_y && has_row && !copies_row {
                    let points = P::of(|_| tables[1].fixed_value());
                    *tiles.add(row_cell(n)).cast() = points;
                    *tiles.add(tiles_of_plane + row_cell(n)).cast() = points;
                }
                if along_x && has_point && !copies_point {
                    let point = tables[0].fixed_value();
                    *tiles.add(point_cell(n)) = point;
                    *tiles.add(tiles_of_plane + point_cell(n)) = point;
                }
            }
        },
    );

    // The first element of a plane. The product of two 32-bit factors needs no register between
    // uses.
    let plane_of = |z: u32| (u64::from(z) * u64::from(nx * ny)) as usize;
    // The thread's accesses of field `n`, in the plane that begins at this element.
    let load_own = |n: usize, plane: Option<usize>| -> [P; ROWS] {
        let Some(plane) = plane else {
            return [P::of(|_| tables[2].fixed_value()); ROWS];
        };
        let mut points = [P::ZERO; ROWS];
        unrolled::<ROWS>(
            #[inline(always)]
            |r| {
                let at = place_of(r);
                // SAFETY: an access of the field.
                points[r] = unsafe { load_readonly(inputs[n].add(plane).add(at as usize).cast()) };
            },
        );
        points
    };
    // Starts copying the thread's part of a plane's tiles into `tile`, except for accesses that
    // come from registers.
    let copy = |tile: *mut T, plane: usize| {
        unrolled::<FIELDS>(
            #[inline(always)]
            |n| {
                let [along_x, along_y, along_z] = O::ALONG[n];
                // SAFETY: accesses and a point of the field, and the thread's own cells.
                unsafe {
                    let plane = inputs[n].add(plane);
                    // equivalent mutant (logic: in `(along_x || along_y) && !along_z`): copies what the thread stores, too
                    if (along_x || along_y) && !along_z && inside {
                        unrolled::<ROWS>(
                            #[inline(always)]
                            |r| {
                                if has(r) {
                                    let from = plane.add(place_of(r) as usize);
                                    let to = tile.add(own_cell(n) + r * pitch);
                                    cp_async_ca(to.cast::<P>(), from.cast());
                                }
                            },
                        );
                    }
                    if along_y && copies_row {
                        let from = plane.add(row_place as usize);
                        cp_async_ca(tile.add(row_cell(n)).cast::<P>(), from.cast());
                    }
                    if along_x && copies_point {
                        cp_async_ca(
                            tile.add(point_cell(n)),
                            plane.add(forgotten(point_place) as usize),
                        );
                    }
                }
            },
        );
    };
    let mut window = [[[P::ZERO; ROWS]; FIELDS]; WINDOW + 1];
    let images = grid.images(2);
    unrolled::<WINDOW>(
        #[inline(always)]
        |w| {
            let needed = w as u32 + radius >= MAX_RADIUS as u32
                && (w as u32) < planes + radius + MAX_RADIUS as u32;
            let plane = images
                .stored(first.wrapping_add(w as u32).wrapping_sub(MAX_RADIUS as u32))
                .map(plane_of);
            unrolled::<FIELDS>(
                #[inline(always)]
                |n| {
                    if O::ALONG[n][2] && needed {
                        window[w][n] = load_own(n, plane);
                    }
                },
            );
        },
    );
    // The offset of the tiles while `left` planes are left. With several fields no register is free
    // to keep it; with one field, computing it would take one.
    let half_of = |left: u32| match FIELDS {
        1 => 0,
        _ => (left % 2) as usize * tiles_of_plane,
    };
    // SAFETY: one of the two sets of tiles.
    copy(unsafe { tiles.add(half_of(planes)) }, plane_of(first));
    // The number of planes left, this one included.
    let mut left = planes;
    let mut z = first;
    let mut other_half = tiles_of_plane;
    while left > 0 {
        keep_rolled();
        let half = match FIELDS {
            1 => tiles_of_plane - other_half,
            _ => half_of(left),
        };
        let center = window[MAX_RADIUS];
        unrolled::<FIELDS>(
            #[inline(always)]
            |n| {
                let [along_x, along_y, along_z] = O::ALONG[n];
                if (along_x || along_y) && along_z && inside {
                    unrolled::<ROWS>(
                        #[inline(always)]
                        |r| {
                            if has(r) {
                                // SAFETY: the thread's own cell.
                                unsafe {
                                    let to = tiles.add(half + own_cell(n) + r * pitch);
                                    *to.cast::<P>() = center[n][r];
                                }
                            }
                        },
                    );
                }
            },
        );
        let mut along_z = [[P::ZERO; ROWS]; FIELDS];
        unrolled::<FIELDS>(
            #[inline(always)]
            |n| {
                if !O::ALONG[n][2] {
                    return;
                }
                up_to(
                    radius,
                    #[inline(always)]
                    |m| {
                        unrolled::<ROWS>(
                            #[inline(always)]
                            |r| {
                                let points = [MAX_RADIUS + m, MAX_RADIUS - m, MAX_RADIUS].map(
                                    #[inline(always)]
                                    |w| window[w][n][r],
                                );
                                let (table, sum) = (&tables[2], along_z[n][r]);
                                along_z[n][r] = match O::ORDER {
                                    1 => add_term::<T, P, 1>(table, sum, m, points),
                                    _ => add_term::<T, P, 2>(table, sum, m, points),
                                };
                            },
                        );
                    },
                );
                unrolled::<ROWS>(
                    #[inline(always)]
                    |r| along_z[n][r] = all_settled(along_z[n][r]),
                );
            },
        );
        cp_async_wait_all();
        thread::sync_threads();
        // The loads for the next iterations start as early as possible; planes that the stencil
        // does not need are not loaded.
        unrolled::<WINDOW>(
            #[inline(always)]
            |w| window[w] = window[w + 1],
        );
        unrolled::<FIELDS>(
            #[inline(always)]
            |n| {
                if O::ALONG[n][2] && left + radius > MAX_RADIUS as u32 + 1 {
                    let z = z + (MAX_RADIUS as u32 + 1);
                    // equivalent mutant (guard: made `false`): a plane of the field is its own image
                    let stored = if z < nz {
                        Some(z)
                    } else {
                        Images::of(rule_of(forgotten(rules), 2), forgotten(nz)).stored(z)
                    };
                    window[WINDOW - 1][n] = load_own(n, stored.map(plane_of));
                }
            },
        );
        if left > 1 {
            let next_half = match FIELDS {
                1 => other_half,
                // equivalent mutant (arithmetic): odd and even numbers change places
                _ => half_of(left - 1),
            };
            // SAFETY: the other set of tiles, which all threads have read.
            copy(unsafe { tiles.add(next_half) }, plane_of(z + 1));
        }
        if inside {
            let plane = Plane {
                along: O::ALONG,
                radius,
                tables,
                // SAFETY: cells of the tiles, as above.
                corners: core::array::from_fn(
                    #[inline(always)]
                    |n| unsafe { tiles.add(half + cell_of(n, own_line, x)).cast_const() },
                ),
                more_rows,
                center,
                along_z,
            };
            // Outputs with a derivative along z come first, which frees its registers.
            unrolled::<{ 2 * MAX_OUTPUTS }>(
                #[inline(always)]
                |nth| {
                    let (output, has_z) = (nth % MAX_OUTPUTS, nth < MAX_OUTPUTS);
                    // equivalent mutant (comparison: made `!=`): the outputs in another order
                    if output < OUTPUTS && has_z == uses_z(&O::SUMS[output]) {
                        let mut sum = [P::ZERO; ROWS];
                        unrolled::<TERMS>(
                            #[inline(always)]
                            |t| {
                                let (field, axis) = O::SUMS[output][t];
                                // SAFETY: cells that are read were written before the barrier,
                                // which all threads reach.
                                let term = unsafe {
                                    match O::ORDER {
                                        1 => plane.derivative::<1>(field, axis),
                                        _ => plane.derivative::<2>(field, axis),
                                    }
                                };
                                unrolled::<ROWS>(
                                    #[inline(always)]
                                    |r| {
                                        let before = sum[r];
                                        sum[r] = P::of(
                                            #[inline(always)]
                                            |e| {
                                                let term = term[r].point(e);
                                                if t == 0 {
                                                    term
                                                } else {
                                                    with_term(before.point(e), term, O::DIFFERENCE)
                                                }
                                            },
                                        );
                                    },
                                );
                            },
                        );
                        unrolled::<ROWS>(
                            #[inline(always)]
                            |r| {
                                if has(r) {
                                    let at = place_of(r);
                                    // SAFETY: these points are in the field, and no other thread
                                    // has them.
                                    unsafe {
                                        let to = outputs[output].add(plane_of(z)).add(at as usize);
                                        store_streaming(to.cast(), sum[r]);
                                    }
                                }
                            },
                        );
                    }
                },
            );
        }
        other_half = half;
        z += 1;
        left -= 1;
    }
}

/// Computes the points of `part` nearer than the radius to a one-sided end, distributed over the
/// threads of the block, from the fields in global memory.
///
/// # Safety
///
/// As [`operator`].
#[inline(always)]
unsafe fn ends<
    T: Real,
    O: Operator<FIELDS, OUTPUTS, TERMS>,
    const FIELDS: usize,
    const OUTPUTS: usize,
    const TERMS: usize,
>(
    inputs: [*const T; FIELDS],
    outputs: [*mut T; OUTPUTS],
    grid: Grid<'_, T>,
    part: BlockPart,
) {
    let [nx, ny, _] = grid.extents;
    let radius = grid.radius;
    let mut axis = forgotten(0);
    // equivalent mutant (comparison): the rule of a fourth axis is 0, which is not one-sided
    // equivalent mutant (literal): as above
    while axis < 3 {
        keep_rolled();
        let (begin, len) = (pick(part.begin, axis), pick(grid.extents, axis));
        let end = begin + pick(part.size, axis);
        // The number of points near the first end, the first point near the last end, and the
        // number of both.
        // equivalent mutant (extremum): computes points that the march computed, with the same bits
        let low = radius.min(end).saturating_sub(begin);
        // equivalent mutant (extremum): as above
        let high = len.saturating_sub(radius).max(begin);
        let near = low + end.saturating_sub(high);
        // equivalent mutant (guard: made `true`): as above
        // equivalent mutant (logic): as above
        // equivalent mutant (comparison: `>`): no point is left
        if rule_of(grid.rules, axis as usize) == rule::ONE_SIDED && near > 0 {
            // The march has written all these points, and two axes may share a point.
            thread::sync_threads();
            let mut size = part.size;
            unrolled::<3>(
                #[inline(always)]
                |a| {
                    if a as u32 == axis {
                        size[a] = near;
                    }
                },
            );
            let [width, height, depth] = size;
            let mut nth = thread::thread_idx_y() * WARP + thread::thread_idx_x();
            while nth < width * height * depth {
                keep_rolled();
                let mut place = [nth % width, nth / width % height, nth / width / height];
                unrolled::<3>(
                    #[inline(always)]
                    |a| {
                        place[a] = if a as u32 == axis && place[a] >= low {
                            high + (place[a] - low)
                        } else {
                            part.begin[a] + place[a]
                        };
                    },
                );
                let [i, j, k] = place;
                let element = (k as usize * ny as usize + j as usize) * nx as usize + i as usize;
                let mut sum = T::ZERO;
                let mut term = 0;
                // equivalent mutant (comparison): one more derivative, of the first field along x;
                // it is stored if outputs have one derivative each, where the first is just that
                while term < (OUTPUTS * TERMS) as u32 {
                    keep_rolled();
                    let code = const { codes(&O::SUMS) } >> (CODE * term);
                    let (field, along) = (code & 3, code >> 2 & 3);
                    let from = pick(inputs, field);
                    let to = pick(outputs, term / TERMS as u32);
                    let p = pick(place, along);
                    let stride = stride(nx, ny, along as usize);
                    // SAFETY: the line through the point is inside the field; the point is in the
                    // block's part, and no other thread has it until the next barrier. There are
                    // three axes.
                    unsafe {
                        let line = AxisLine {
                            axis: along as usize,
                            first: from.add(element - p as usize * stride),
                            stride,
                            len: pick(grid.extents, along),
                            rule: rule_of(grid.rules, along as usize),
                            table: &*grid.tables.as_ptr().add(along as usize),
                        };
                        let value = match O::ORDER {
                            1 => line.anywhere::<1, MAX_END_POINTS>(radius, p),
                            _ => line.anywhere::<2, MAX_END_POINTS>(radius, p),
                        };
                        sum = if term % TERMS as u32 == 0 {
                            value
                        } else {
                            with_term(sum, value, O::DIFFERENCE)
                        };
                        // equivalent mutant (guard: made `true`): stores each partial sum as well
                        if term % TERMS as u32 == TERMS as u32 - 1 {
                            *to.add(element) = sum;
                        }
                    }
                    term += 1;
                }
                // equivalent mutant (width: `BLOCK - 1`): some points are computed twice, with the
                // same bits
                nth += BLOCK;
            }
        }
        axis += 1;
    }
}

/// Bits of a derivative in [`codes`].
const CODE: u32 = 4;

/// The field and the axis of every derivative, two bits each; those of the first are lowest.
const fn codes<const OUTPUTS: usize, const TERMS: usize>(
    sums: &[[(usize, usize); TERMS]; OUTPUTS],
) -> u32 {
    let (mut codes, mut nth) = (0, OUTPUTS * TERMS);
    while nth > 0 {
        nth -= 1;
        let (field, axis) = sums[nth / TERMS][nth % TERMS];
        codes = codes << CODE | (field | axis << 2) as u32;
    }
    codes
}

/// Value number `nth`, selected in registers.
#[inline(always)]
fn pick<V: Copy, const LEN: usize>(values: [V; LEN], nth: u32) -> V {
    let mut value = values[0];
    unrolled::<LEN>(
        #[inline(always)]
        |n| {
            if n as u32 == nth {
                value = values[n];
            }
        },
    );
    value
}
