//! One iteration of a plate with insulated walls or a source, at the speed of memory.
//!
//! ```text
//! new(i, j) = (((E + W) + (N + S)) + source(i, j)) * 0.25      without a source: no + source
//! at an insulated wall:  W = E at i = 0      E = W at i = nx-1
//!                        S = N at j = 0      N = S at j = ny-1
//! ```
//!
//! This is the second-order discretisation of Poisson's equation -∇²u = f with u given on the fixed
//! walls and no heat flux through the insulated ones: the central difference across the wall
//! eliminates the point beyond it (LeVeque, "Finite Difference Methods for Ordinary and Partial
//! Differential Equations", SIAM 2007, section 2.12, second approach, and section 3.2). `source` is
//! h² f, with h the spacing of points.
//!
//! - Threads, loads, shuffles, grid and loop are those of [`march`](super::march); the blocks start
//!   at the first row that is on no fixed wall.
//! - A bit mask, the same for all threads, says which walls are insulated. An insulated wall to the
//!   west or east costs the lane beside it a selection among its own points; for one at the bottom
//!   or top the row beyond is read from within the plate.
//! - The points of the source are loaded like those of the plate,
//!   [`MARCH_AHEAD`](super::MARCH_AHEAD) rows ahead.
//! - A point on a fixed wall is not written, not even in the corner with an insulated wall.
//!
//! Bytes: as for [`march`](super::march), and with a source one more read of every point: 3
//! accesses instead of 2. 5 flops per point. Predicted: copy bandwidth, less the extra rows.

use super::march::{march, march_points};
use super::plate::{Jacobi, MARCH_BLOCK, SOURCE};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

// gate heat2d_general_f32: registers <= 64, spills = 0, LDG.E.128 >= 16, STG.E.EF.128 >= 4, FFMA = 0
// gate heat2d_general_f64: registers <= 64, spills = 0, LDG.E.128 >= 16, STG.E.EF.128 >= 4, DFMA = 0

/// Declares entry points: name, real type, points of a vector.
macro_rules! kernels {
    ($($name:ident: $real:ty, $points:literal;)+) => {$(
        #[doc = concat!("One iteration in `", stringify!($real), "` of a plate with any walls, \
            with a source or without.")]
        ///
        /// `old`, `source` and `new`: `nx * ny` elements, x fastest. Writes all points of
        /// `new` but those on fixed walls. `rows`: the rows that a block computes.
        /// `plate`: which walls are insulated and whether there is a source, as bits:
        /// [`LEFT`](super::LEFT), [`RIGHT`](super::RIGHT), [`BOTTOM`](super::BOTTOM),
        /// [`TOP`](super::TOP), [`SOURCE`]; without [`SOURCE`] `source` is not read.
        ///
        /// # Safety
        ///
        /// - `old` and, with [`SOURCE`], `source` are readable and `new` is writable for
        ///   `nx * ny` elements; all are aligned to 16 bytes, and `new` overlaps neither of
        ///   the others. During the launch nobody writes `old` and `source`, and nothing
        ///   else accesses `new`.
        /// - `nx` and `ny` are at least 3 and at most `i32::MAX`, `rows` is at least 1,
        ///   and `rows` times the grid's extent along y is less than 2³¹ more than `ny`.
        /// - Blocks of [`MARCH_BLOCK`] threads; grid at most
        ///   `(ceil(nx / (MARCH_BLOCK · points)), ceil(r / rows))`, and no less if every point is
        ///   to be written; r is `ny` less the number of fixed walls at bottom and top, and points
        ///   is [`march_points`].
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
                        march::<$real, _, $points, true, true>(old, source, new, nx, ny, rows, plate, Jacobi);
                    }
                    (true, false) => {
                        march::<$real, _, $points, true, false>(old, old, new, nx, ny, rows, plate, Jacobi);
                    }
                    (false, true) => {
                        march::<$real, _, 1, true, true>(old, source, new, nx, ny, rows, plate, Jacobi);
                    }
                    (false, false) => {
                        march::<$real, _, 1, true, false>(old, old, new, nx, ny, rows, plate, Jacobi);
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

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "any walls and a source; rows in registers, marching along y",
            // The extent along y is the number of computed rows.
            geometry: |kernel, plate| {
                let [nx, swept, _] = plate.extents;
                Ok(super::march::Marches::of::<$real>(kernel, nx, swept)?.geometry)
            },
            cost: super::geometry::iteration_of_all::<$real>,
            example: super::geometry::EXAMPLE,
            tile: "256 vectors × 6 rows",
        }
    )+};
}

registered! {
    heat2d_general_f32: f32;
    heat2d_general_f64: f64;
}
