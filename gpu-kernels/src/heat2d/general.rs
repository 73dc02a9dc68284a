//! One sweep of a plate with insulated walls or a source, at the speed of memory.
//!
//! ```text
//! new(i, j) = (((E + W) + (N + S)) + source(i, j)) * 0.25      without a source: no + source
//! at an insulated wall:  W = E at i = 0      E = W at i = nx-1
//!                        S = N at j = 0      N = S at j = ny-1
//! ```
//!
//! The second-order discretisation of Poisson's equation -∇²u = f with u given on the
//! fixed walls and no heat flux through the insulated ones: a point beyond the wall is
//! eliminated by the central difference across it (LeVeque, "Finite Difference Methods
//! for Ordinary and Partial Differential Equations", SIAM 2007, section 2.12, second
//! approach, and section 3.2). `source` is h² f, with h the distance of two points.
//!
//! - Threads, loads, shuffles and grid are those of [`march`](super::march); the rows of
//!   blocks begin with the first row that is on no fixed wall. The two loops are not one,
//!   generic in its walls: what the compiler makes of that differs from
//!   [`march`](super::march) even where all are known to be fixed.
//! - Which walls are insulated is a bit mask, the same for all threads. An insulated wall
//!   to the west or east costs the lane beside it a selection among its own points; the
//!   row beyond one at the bottom or top is read from within the plate.
//! - The source's points are loaded like the plate's, [`MARCH_AHEAD`] rows ahead.
//! - A point on a fixed wall is not written, not even where that meets an insulated one.
//!
//! Bytes: those of [`march`](super::march), and one more read of every point with a
//! source: 3 accesses where that has 2. 5 flops per point. Predicted: copy bandwidth,
//! less the extra rows.

use super::lanes::store;
use super::march::{Column, march_points};
use super::{
    BOTTOM, LEFT, MARCH_AHEAD, MARCH_BLOCK, RIGHT, Real, SOURCE, TOP, WARP, average,
    average_with_source, element,
};
use crate::loops::unrolled;
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

// gate heat2d_general_f32: registers <= 64, spills = 0, LDG.E.128 >= 16, STG.E.EF.128 >= 4, FFMA = 0
// gate heat2d_general_f64: registers <= 64, spills = 0, LDG.E.128 >= 16, STG.E.EF.128 >= 4, DFMA = 0

/// Declares entry points: a name, its type, the points of a vector.
macro_rules! kernels {
    ($($name:ident: $real:ty, $points:literal;)+) => {$(
        #[doc = concat!("One sweep in `", stringify!($real), "` of a plate with any walls, \
            with a source or without.")]
        ///
        /// `old`, `source` and `new`: `nx * ny` elements, x fastest. Writes all points of
        /// `new` but those on fixed walls. `rows`: how many rows a block computes.
        /// `plate`: which walls are insulated and whether there is a source, as bits:
        /// [`LEFT`], [`RIGHT`], [`BOTTOM`], [`TOP`], [`SOURCE`]; without the last
        /// `source` is not read.
        ///
        /// # Safety
        ///
        /// - `old` and, if there is one, `source` are readable and `new` is writable for
        ///   `nx * ny` elements; all are aligned to 16 bytes, and `new` overlaps neither of
        ///   the others. During the launch nobody writes `old` and `source`, and nothing
        ///   else accesses `new`.
        /// - `nx` and `ny` are at least 3 and at most `i32::MAX`, `rows` is at least 1,
        ///   and `rows` times the grid's extent along y is less than 2³¹ more than `ny`.
        /// - Blocks of [`MARCH_BLOCK`] threads; grid at most
        ///   `(ceil(nx / (MARCH_BLOCK · points)), ceil(r / rows))`, and no less if every
        ///   point is to be written; r is `ny` less the fixed walls at bottom and top, and
        ///   points is [`march_points`].
        #[kernel]
        #[launch_bounds(MARCH_BLOCK, 4)]
        pub unsafe fn $name(
            old: *const $real,
            source: *const $real,
            new: *mut $real,
            nx: u32,
            ny: u32,
            rows: u32,
            plate: u32,
        ) {
            let vectors = march_points::<$real>(nx as usize) == $points;
            // SAFETY: forwarded word for word.
            unsafe {
                match (vectors, plate & SOURCE != 0) {
                    (true, true) => {
                        sweep::<$real, $points, true>(old, source, new, nx, ny, rows, plate);
                    }
                    (true, false) => {
                        sweep::<$real, $points, false>(old, old, new, nx, ny, rows, plate);
                    }
                    (false, true) => {
                        sweep::<$real, 1, true>(old, source, new, nx, ny, rows, plate);
                    }
                    (false, false) => {
                        sweep::<$real, 1, false>(old, old, new, nx, ny, rows, plate);
                    }
                }
            }
        }
    )+};
}

kernels! {
    heat2d_general_f32: f32, 4;
    heat2d_general_f64: f64, 2;
}

/// One sweep of a plate whose insulated walls are the bits of `plate`. Where
/// `WITH_SOURCE`, every point has one; else `source` is not read.
///
/// # Safety
///
/// As the entry points; `nx` is a multiple of `P`.
#[inline(always)]
unsafe fn sweep<T: Real, const P: usize, const WITH_SOURCE: bool>(
    old: *const T,
    source: *const T,
    new: *mut T,
    nx: u32,
    ny: u32,
    rows: u32,
    plate: u32,
) {
    let is_insulated = |wall: u32| plate & wall != 0;
    let thread = thread::thread_idx_x();
    let lane = thread % WARP;
    let i = (thread::block_idx_x() * MARCH_BLOCK + thread) * P as u32;
    // equivalent mutant (comparison): the next warp would load, but store nothing
    if i - lane * P as u32 >= nx {
        // The whole warp is beyond the plate.
        return;
    }
    let (first, last) = (lane == 0, lane == WARP - 1);
    // Wraps around for the first lane of the plate, which has nothing to the west.
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
    // What is beyond a wall mirrors what is before it. Points on fixed walls are computed
    // like those on insulated ones, but not written.
    let (mirrors_west, mirrors_east) = (i == 0, i + P as u32 == nx);
    let below = if begin == 0 { 1 } else { begin - 1 };
    // Rows further above than the first beyond the plate are not used and may be any.
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
                // equivalent mutant (guard): what is loaded is not used
                if WITH_SOURCE {
                    heat[k] = sources.row((begin + k as u32).min(ny - 1)).own;
                }
            }
        },
    );
    let mut out = new.wrapping_add(element(i, begin, nx));
    let mut j = begin;
    // equivalent mutant (comparison): once more, with no row left
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
                        // equivalent mutant (guard): what is loaded is not used
                        if WITH_SOURCE {
                            heat[k] = sources.row((j + MARCH_AHEAD as u32).min(ny - 1)).own;
                        }
                    }
                    // SAFETY: all lanes of the warp are here, as j and end are the
                    // same for all.
                    let (mut west, mut east) =
                        unsafe { (middle.own[P - 1].lane_below(), middle.own[0].lane_above()) };
                    if first {
                        west = middle.edge;
                    }
                    if last {
                        east = middle.edge;
                    }
                    // The lane's own, or where it has but one point, its other neighbour.
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
                            row[p] = if WITH_SOURCE {
                                let source = heat_here[p];
                                average_with_source(east, west, north.own[p], south[p], source)
                            } else {
                                average(east, west, north.own[p], south[p])
                            };
                        },
                    );
                    // SAFETY: points in the plate and off its fixed walls, which no other
                    // thread has; P of them, unless the lane has a point on a wall.
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
