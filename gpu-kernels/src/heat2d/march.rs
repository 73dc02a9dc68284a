//! One iteration at the speed of memory: every point is read once and kept in registers as long as
//! needed.
//!
//! - A lane has 16 bytes along x, 4 points in f32 or 2 in f64, a warp 512 bytes, and a block
//!   [`MARCH_BLOCK`] lanes. If the rows of the plate are not multiples of 16 bytes, they are not
//!   all aligned, and a lane has one point.
//! - The block marches up `rows` rows. A lane holds three rows: the one it computes and those below
//!   and above. The step to the next row costs one load of 16 bytes and one store.
//! - East and west are the lane's own points, or come from the neighbouring lanes by two shuffles.
//!   The outermost lanes of a warp load one more point each.
//! - [`MARCH_AHEAD`] rows are in flight while one is computed, which hides the latency of memory
//!   with few warps. The stores are streaming, since written points are not read in this iteration.
//! - Grid: `(ceil(nx / (MARCH_BLOCK · points)), ceil((ny - 2) / rows))`, where points
//!   is [`march_points`].
//!
//! Bytes: `rows + 2` rows are read for `rows` written. The two extra ones are mostly in the
//! second-level cache; if they were not, 6 rows would move 17 % more than the least. Instructions
//! per vector of 4 points: 16 of arithmetic, 2 shuffles, 2 loads, a store and about 12 of addresses
//! and predicates, 33. At copy bandwidth a multiprocessor of an H200 reads and writes 16 bytes per
//! clock, half a warp's vector per 16 clocks: 1.0 of 4 possible instructions per clock. Predicted:
//! copy bandwidth, less the extra rows. Measurements and other variants: `docs/tuning/heat2d.md`.

use super::lanes::{load, store, vector_points};
use super::plate::{
    BOTTOM, FIXED, Jacobi, LEFT, MARCH_AHEAD, MARCH_BLOCK, RIGHT, Real, TOP, Update, WARP, element,
};
use crate::loops::unrolled;
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

// gate heat2d_march_f32: registers <= 64, spills = 0, LDG.E.128 >= 3, STG.E.EF.128 >= 1, FFMA = 0
// gate heat2d_march_f64: registers <= 64, spills = 0, LDG.E.128 >= 3, STG.E.EF.128 >= 1, DFMA = 0

/// Points of a lane along x, in rows of `nx` points.
#[must_use]
pub const fn march_points<T: Real>(nx: usize) -> usize {
    if nx.is_multiple_of(vector_points::<T>()) {
        vector_points::<T>()
    } else {
        1
    }
}

/// Declares entry points: name, real type, points of a vector.
macro_rules! kernels {
    ($($name:ident: $real:ty, $points:literal;)+) => {$(
        #[doc = concat!("One iteration in `", stringify!($real), "`, three rows in registers.")]
        ///
        /// `old` and `new`: `nx * ny` elements, x fastest. Writes the interior points
        /// of `new`. `rows`: the rows that a block computes.
        ///
        /// # Safety
        ///
        /// - `old` is readable and `new` writable for `nx * ny` elements; both are
        ///   aligned to 16 bytes, and they do not overlap. During the launch nobody
        ///   writes `old`, and nothing else accesses `new`.
        /// - `nx` and `ny` are at least 3 and at most `i32::MAX`, `rows` is at least 1,
        ///   and `rows` times the grid's extent along y is less than 2³¹ more than `ny`.
        /// - Blocks of [`MARCH_BLOCK`] threads; grid at most
        ///   `(ceil(nx / (MARCH_BLOCK · points)), ceil((ny - 2) / rows))`, and no less
        ///   if every point is to be written.
        #[kernel]
        #[launch_bounds(MARCH_BLOCK)]
        pub unsafe fn $name(old: *const $real, new: *mut $real, nx: u32, ny: u32, rows: u32) {
            // SAFETY: forwarded word for word.
            unsafe {
                if march_points::<$real>(nx as usize) == $points {
                    march::<$real, _, $points, false, false>(
                        old, old, new, nx, ny, rows, FIXED, Jacobi,
                    );
                } else {
                    march::<$real, _, 1, false, false>(
                        old, old, new, nx, ny, rows, FIXED, Jacobi,
                    );
                }
            }
        }
    )+};
}

kernels! {
    heat2d_march_f32: f32, 4;
    heat2d_march_f64: f64, 2;
}

/// The points that a lane reads of each row.
struct Column<T> {
    /// The lane's first point in the first row of the plate.
    own: *const T,
    /// Whether that point is in the plate.
    inside: bool,
    /// The point beside the warp, in the first row of the plate, for the warp's outermost lanes.
    edge: *const T,
    /// Whether this is an outermost lane and that point is in the plate.
    has_edge: bool,
    /// Elements from one row to the next.
    pitch: usize,
}

/// A lane's points of a row, and the point beside the warp.
#[derive(Clone, Copy)]
struct Row<T, const P: usize> {
    own: [T; P],
    edge: T,
}

impl<T: Real> Column<T> {
    /// # Safety
    ///
    /// The plate has a row `j`, and the launch keeps to the kernel's contract.
    #[inline(always)]
    unsafe fn row<const P: usize>(&self, j: u32) -> Row<T, P> {
        let at = j as usize * self.pitch;
        let mut row = Row {
            own: [T::ZERO; P],
            edge: T::ZERO,
        };
        // SAFETY: a column inside the first row is inside every row of the plate. All P points are
        // inside or none, since nx and the column of the first are multiples of P.
        unsafe {
            if self.inside {
                row.own = load(self.own.add(at));
            }
            if self.has_edge {
                row.edge = *self.edge.add(at);
            }
        }
        row
    }
}

/// One iteration of a plate. With `ANY_WALLS` the bits of `plate` give its insulated walls;
/// otherwise all are fixed. With `WITH_SOURCE` every point has a source; otherwise `source` is not
/// read. `update` computes the new value of a point.
///
/// # Safety
///
/// As the entry points here or, with `ANY_WALLS`, of [`general`](super::general); `nx` is a
/// multiple of `P`.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "those of the kernels")]
pub(super) unsafe fn march<
    T: Real,
    U: Update<T>,
    const P: usize,
    const ANY_WALLS: bool,
    const WITH_SOURCE: bool,
>(
    old: *const T,
    source: *const T,
    new: *mut T,
    nx: u32,
    ny: u32,
    rows: u32,
    plate: u32,
    update: U,
) {
    let is_insulated = |wall: u32| ANY_WALLS && plate & wall != 0;
    let thread = thread::thread_idx_x();
    let lane = thread % WARP;
    let i = (thread::block_idx_x() * MARCH_BLOCK + thread) * P as u32;
    // equivalent mutant (comparison): the next warp would load, but store nothing
    if i - lane * P as u32 >= nx {
        // The whole warp is beyond the plate.
        return;
    }
    let (first, last) = (lane == 0, lane == WARP - 1);
    // Wraps around for the first lane of the plate, which has no point to the west.
    let edge = if first {
        i.wrapping_sub(1)
    } else {
        i + P as u32
    };
    let column = Column {
        own: old.wrapping_add(i as usize),
        inside: i < nx,
        edge: old.wrapping_add(edge as usize),
        has_edge: (first || last) && edge < nx,
        pitch: nx as usize,
    };
    let sources = Column {
        own: source.wrapping_add(i as usize),
        edge: source,
        has_edge: false,
        ..column
    };
    let begin = u32::from(!is_insulated(BOTTOM)) + thread::block_idx_y() * rows;
    let end = (begin + rows).min(if is_insulated(TOP) { ny } else { ny - 1 });
    let walled = i == 0 || i + P as u32 >= nx;
    // A point beyond an insulated wall mirrors the point before it. Points on fixed walls are
    // computed in the same way, but not written.
    let (mirrors_west, mirrors_east) = (ANY_WALLS && i == 0, ANY_WALLS && i + P as u32 == nx);
    let below = if ANY_WALLS && begin == 0 {
        1
    } else {
        begin - 1
    };
    // Of the rows beyond the plate only the first is used, and it mirrors row `ny - 2`.
    let above = |j: u32| if j < ny { j } else { ny - 2 };

    // SAFETY: begin is at most ny - 1, and ny at least 3.
    let (mut south, mut middle) = unsafe { (column.row::<P>(below).own, column.row::<P>(begin)) };
    let mut ahead = [middle; MARCH_AHEAD];
    let mut heat = [[T::ZERO; P]; MARCH_AHEAD];
    unrolled::<MARCH_AHEAD>(
        #[inline(always)]
        |k| {
            // SAFETY: rows of the plate.
            unsafe {
                ahead[k] = column.row(above(begin + 1 + k as u32));
                // equivalent mutant (guard): the loaded values are not used
                if WITH_SOURCE {
                    heat[k] = sources.row((begin + k as u32).min(ny - 1)).own;
                }
            }
        },
    );
    let mut out = new.wrapping_add(element(i, begin, nx));
    let mut j = begin;
    // equivalent mutant (comparison): one more round, with no row left
    while j < end {
        unrolled::<MARCH_AHEAD>(
            #[inline(always)]
            |k| {
                let j = j + k as u32;
                if j < end {
                    let (north, heat_here) = (ahead[k], heat[k]);
                    // SAFETY: rows of the plate.
                    unsafe {
                        ahead[k] = column.row(above(j + 1 + MARCH_AHEAD as u32));
                        // equivalent mutant (guard): the loaded values are not used
                        if WITH_SOURCE {
                            heat[k] = sources.row((j + MARCH_AHEAD as u32).min(ny - 1)).own;
                        }
                    }
                    // SAFETY: all lanes of the warp are here, since j and end are the same for all.
                    let (mut west, mut east) =
                        unsafe { (middle.own[P - 1].lane_below(), middle.own[0].lane_above()) };
                    if first {
                        west = middle.edge;
                    }
                    if last {
                        east = middle.edge;
                    }
                    // The mirrored point is the lane's own or, if the lane has one point, its other
                    // neighbour.
                    if mirrors_west {
                        west = if P > 1 { middle.own[1 % P] } else { east };
                    }
                    if mirrors_east {
                        east = if P > 1 {
                            middle.own[(P - 1) - 1 % P]
                        } else {
                            west
                        };
                    }
                    let mut row = [T::ZERO; P];
                    unrolled::<P>(
                        #[inline(always)]
                        |p| {
                            let west = if p == 0 { west } else { middle.own[p - 1] };
                            let east = if p + 1 == P { east } else { middle.own[p + 1] };
                            let sum = (east + west) + (north.own[p] + south[p]);
                            let sum = if WITH_SOURCE { sum + heat_here[p] } else { sum };
                            row[p] = update.of(middle.own[p], sum);
                        },
                    );
                    // SAFETY: written points are in the plate and off its fixed walls, and no other
                    // thread has them. Without a point on a wall all P of them are.
                    unsafe {
                        // equivalent mutant (guard: made `false`): the same values, in
                        // more accesses; the static gates count those.
                        if !walled {
                            store(out, &row);
                        } else if column.inside {
                            unrolled::<P>(
                                #[inline(always)]
                                |p| {
                                    let i = i + p as u32;
                                    if (is_insulated(LEFT) || i > 0)
                                        && (is_insulated(RIGHT) || i < nx - 1)
                                    {
                                        *out.add(p) = row[p];
                                    }
                                },
                            );
                        }
                    }
                    south = middle.own;
                    middle = north;
                    out = out.wrapping_add(column.pitch);
                }
            },
        );
        j += MARCH_AHEAD as u32;
    }
}

/// How the rows of a plate are distributed over blocks that march.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marches {
    /// Rows that a block computes.
    pub rows: u32,
    /// The geometry of the launch.
    pub geometry: crate::registry::Geometry,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Marches {
    /// The distribution of `swept` rows, at least one and at most `i32::MAX`, of `nx` points each.
    ///
    /// # Errors
    ///
    /// [`Refusal`](crate::registry::Refusal) for more blocks than a grid can have.
    pub fn of<T: Real>(
        kernel: &'static str,
        nx: usize,
        swept: usize,
    ) -> Result<Self, crate::registry::Refusal> {
        use super::plate::MARCH_ROWS;
        use crate::registry::{Geometry, blocks_for};

        // A grid has at most 65535 blocks along y.
        let rows = MARCH_ROWS.max(swept.div_ceil(65_535) as u32);
        let strips = blocks_for(kernel, nx, MARCH_BLOCK as usize * march_points::<T>(nx))?;
        let marches = blocks_for(kernel, swept, rows as usize)?;
        Ok(Self {
            rows,
            geometry: Geometry::new([strips, marches, 1], [MARCH_BLOCK, 1, 1]),
        })
    }
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "rows in registers, marching along y",
            geometry: |kernel, plate| {
                let [nx, ny, _] = plate.extents;
                Ok(Marches::of::<$real>(kernel, nx, ny.saturating_sub(2))?.geometry)
            },
            cost: super::geometry::iteration::<$real>,
            example: super::geometry::EXAMPLE,
            tile: "256 vectors × 6 rows",
        }
    )+};
}

registered! {
    heat2d_march_f32: f32;
    heat2d_march_f64: f64;
}
