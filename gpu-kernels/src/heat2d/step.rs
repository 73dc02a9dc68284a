//! One explicit step in time of the heat equation, at the speed of memory.
//!
//! ```text
//! u_t = α ∇²u + q
//! new(i, j) = u + r ((((E + W) + (N + S)) + source(i, j)) - 4 u)      r = α Δt / h²
//! ```
//!
//! with u = old(i, j), α the diffusivity, Δt the length of the step, h the spacing of points, and
//! `source` = h² q / α; the term is absent without a source. The difference and the product with r
//! are fused multiply-adds, each rounded once. Forward in time, centred in space (LeVeque, "Finite
//! Difference Methods for Ordinary and Partial Differential Equations", SIAM 2007, sections 9.1 and
//! 9.7): of first order in Δt and second in h, and stable for r ≤ 1/4. With r = 1/4 it is an
//! iteration of [`general`](super::general) with different rounding.
//!
//! Walls, threads, loads, grid and loop are those of [`general`](super::general).
//!
//! Bytes: as for [`general`](super::general). 7 flops per point, one more with a source. Predicted:
//! copy bandwidth, less the extra rows.

use super::march::{march, march_points};
use super::plate::{MARCH_BLOCK, SOURCE, Step};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

// gate heat2d_step_f32: registers <= 64, spills = 0, LDG.E.128 >= 16, STG.E.EF.128 >= 4
// gate heat2d_step_f64: registers <= 64, spills = 0, LDG.E.128 >= 16, STG.E.EF.128 >= 4

/// Declares entry points: name, real type, points of a vector.
macro_rules! kernels {
    ($($name:ident: $real:ty, $points:literal;)+) => {$(
        #[doc = concat!("One step in time in `", stringify!($real), "` of a plate with any \
            walls, with a source or without.")]
        ///
        /// `old`, `source` and `new`: `nx * ny` elements, x fastest. Writes all points of
        /// `new` but those on fixed walls. `rows`: the rows that a block computes.
        /// `plate`: which walls are insulated and whether there is a source, as bits:
        /// [`LEFT`](super::LEFT), [`RIGHT`](super::RIGHT), [`BOTTOM`](super::BOTTOM),
        /// [`TOP`](super::TOP), [`SOURCE`]; without [`SOURCE`] `source` is not read.
        /// `ratio`: r.
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
            ratio: $real,
        ) {
            let vectors = march_points::<$real>(nx as usize) == $points;
            let step = Step { ratio };
            // SAFETY: forwarded word for word.
            unsafe {
                match (vectors, plate & SOURCE != 0) {
                    (true, true) => {
                        march::<$real, _, $points, true, true>(old, source, new, nx, ny, rows, plate, step);
                    }
                    (true, false) => {
                        march::<$real, _, $points, true, false>(old, old, new, nx, ny, rows, plate, step);
                    }
                    (false, true) => {
                        march::<$real, _, 1, true, true>(old, source, new, nx, ny, rows, plate, step);
                    }
                    (false, false) => {
                        march::<$real, _, 1, true, false>(old, old, new, nx, ny, rows, plate, step);
                    }
                }
            }
        }
    )+};
}

kernels! {
    heat2d_step_f32: f32, 4;
    heat2d_step_f64: f64, 2;
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "a step in time, with any walls and a source; rows in registers, marching along y",
            // The extent along y is the number of computed rows.
            geometry: |kernel, plate| {
                let [nx, swept, _] = plate.extents;
                Ok(super::march::Marches::of::<$real>(kernel, nx, swept)?.geometry)
            },
            cost: super::geometry::step_of_all::<$real>,
            example: super::geometry::EXAMPLE,
            tile: "256 vectors × 6 rows",
        }
    )+};
}

registered! {
    heat2d_step_f32: f32;
    heat2d_step_f64: f64;
}
