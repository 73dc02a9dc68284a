//! Gradient, divergence, curl and Laplacian in one launch each, with the stencils,
//! types, orders of accuracy and boundaries of [`general`](super::general).
//!
//! ```text
//! gradient    (∂f/∂x, ∂f/∂y, ∂f/∂z)
//! divergence  (∂u/∂x + ∂v/∂y) + ∂w/∂z
//! curl        (∂w/∂y - ∂v/∂z, ∂u/∂z - ∂w/∂x, ∂v/∂x - ∂u/∂y)
//! Laplacian   (∂²f/∂x² + ∂²f/∂y²) + ∂²f/∂z²
//! ```
//!
//! # Threads
//!
//! A thread computes [`POINTS`] points in a row along z; the threads of a block are
//! [`BLOCK_X`](super::general::BLOCK_X) side by side in x and
//! [`BLOCK_Y`](super::general::BLOCK_Y) in y and go along z together. What they need of
//! a plane is `(32 + 2r) × (8 + 2r)` values, and of those they need again, a few planes
//! further on, the middle 32 × 8: the first-level cache holds them all meanwhile.
//!
//! # What limits it
//!
//! - Bytes: each field is read from memory once and written once. The second-level cache
//!   delivers rims of blocks as well: with r = 4, 4.5 values per point read in f32.
//! - Loads of the 8th order per point and field: 8 for each axis, most of which the
//!   first-level cache answers, a warp's 32 in one clock in f32 and in two in f64.

use super::general::{Line, place, rule_of, stride};
use super::general_real::Real;
use crate::loops::{keep_rolled, unrolled};
use cuda_std::prelude::*;

/// Points of a thread along z.
pub const POINTS: usize = 8;

// gate derivative3d_general_gradient_*: spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_general_divergence_*: spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_general_curl_*: spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_general_laplacian_*: spills = 0, stack = 0, LD = 0, ST = 0

/// Entry points: a name, the type, the fields read, those written, and what is written
/// at a point.
macro_rules! kernels {
    ($(
        $(#[$what:meta])*
        $name:ident: $real:ty, ($($input:ident),+) -> ($($output:ident),+), $value:ident;
    )+) => {$(
        $(#[$what])*
        ///
        /// All fields: `nx * ny * nz` elements, x fastest. `rules`: for each axis one of
        /// [`rule`](super::general::rule), that of x in the lowest byte.
        ///
        /// # Safety
        ///
        /// - The fields read are readable and those written writable for `nx * ny * nz`
        ///   elements; none that is written overlaps another, and nothing else accesses
        ///   it during the launch.
        /// - `radius` is 1 to 4; each axis has the fewest points that
        ///   [`min_len`](super::general::min_len) says, or more.
        /// - Blocks of ([`BLOCK_X`](super::general::BLOCK_X),
        ///   [`BLOCK_Y`](super::general::BLOCK_Y)) threads, as many along x as
        ///   [`blocks`](super::general::blocks) says for [`units`].
        /// - The table of this type is set, for the order of the derivatives.
        #[kernel]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            $($input: *const $real,)+
            $($output: *mut $real,)+
            nx: u32,
            ny: u32,
            nz: u32,
            radius: u32,
            rules: u32,
        ) {
            let grid = Grid { extents: [nx, ny, nz], radius, rules };
            let (inputs, outputs) = ([$($input),+], [$($output),+]);
            // SAFETY: forwarded word for word.
            unsafe { each_point(grid, outputs, |at| $value(grid, inputs, at)) }
        }
    )+};
}

kernels! {
    /// The gradient of `f` in `f32`.
    derivative3d_general_gradient_f32: f32, (f) -> (gx, gy, gz), gradient;
    /// The gradient of `f` in `f64`.
    derivative3d_general_gradient_f64: f64, (f) -> (gx, gy, gz), gradient;
    /// The divergence of (u, v, w) in `f32`.
    derivative3d_general_divergence_f32: f32, (u, v, w) -> (div), divergence;
    /// The divergence of (u, v, w) in `f64`.
    derivative3d_general_divergence_f64: f64, (u, v, w) -> (div), divergence;
    /// The curl of (u, v, w) in `f32`.
    derivative3d_general_curl_f32: f32, (u, v, w) -> (cx, cy, cz), curl;
    /// The curl of (u, v, w) in `f64`.
    derivative3d_general_curl_f64: f64, (u, v, w) -> (cx, cy, cz), curl;
    /// The Laplacian of `f` in `f32`; the table is that of second derivatives.
    derivative3d_general_laplacian_f32: f32, (f) -> (lf), laplacian;
    /// The Laplacian of `f` in `f64`; the table is that of second derivatives.
    derivative3d_general_laplacian_f64: f64, (f) -> (lf), laplacian;
}

/// Units that a field of these extents has, or `None` if they do not fit `u32`.
#[must_use]
pub const fn units(extents: [usize; 3]) -> Option<usize> {
    let [_, ny, nz] = extents;
    match nz.div_ceil(POINTS).checked_mul(ny) {
        Some(units) if units <= u32::MAX as usize => Some(units),
        _ => None,
    }
}

/// What the kernels know of the fields.
#[derive(Clone, Copy)]
struct Grid {
    extents: [u32; 3],
    radius: u32,
    rules: u32,
}

/// A point of the grid, and its element.
#[derive(Clone, Copy)]
struct Point {
    place: [u32; 3],
    element: usize,
}

impl Grid {
    /// The derivative of `f` at a point.
    ///
    /// # Safety
    ///
    /// As the entry points; the point is one of the grid.
    #[inline(always)]
    unsafe fn derivative<T: Real, const AXIS: usize, const ORDER: usize>(
        self,
        f: *const T,
        at: Point,
    ) -> T {
        let [nx, ny, _] = self.extents;
        let (stride, p) = (stride::<AXIS>(nx, ny), at.place[AXIS]);
        // SAFETY: the line through the point is inside the field.
        unsafe {
            let line = Line::<T, AXIS> {
                first: f.add(at.element - p as usize * stride),
                stride,
                len: self.extents[AXIS],
                rule: rule_of::<AXIS>(self.rules),
            };
            line.derivative::<ORDER>(self.radius, p)
        }
    }
}

/// Writes `value` at the thread's points.
///
/// # Safety
///
/// As the entry points; `value` may be called for any point of the grid.
#[inline(always)]
unsafe fn each_point<T: Real, const OUTPUTS: usize>(
    grid: Grid,
    outputs: [*mut T; OUTPUTS],
    value: impl Fn(Point) -> [T; OUTPUTS],
) {
    let [nx, ny, nz] = grid.extents;
    let (i, unit) = place(nx);
    // Neighbours along y are in one block.
    let (j, begin) = (unit % ny, unit / ny * POINTS as u32);
    if i >= nx || begin >= nz {
        return;
    }
    let mut k = begin;
    while k < nz && k - begin < POINTS as u32 {
        keep_rolled();
        let element = (k as usize * ny as usize + j as usize) * nx as usize + i as usize;
        let values = value(Point {
            place: [i, j, k],
            element,
        });
        unrolled::<OUTPUTS>(|nth| {
            // SAFETY: the point is one of the grid, and no other thread has it.
            unsafe { *outputs[nth].add(element) = values[nth] };
        });
        k += 1;
    }
}

/// # Safety
///
/// As the entry points; the point is one of the grid.
#[inline(always)]
unsafe fn gradient<T: Real>(grid: Grid, [f]: [*const T; 1], at: Point) -> [T; 3] {
    // SAFETY: forwarded word for word.
    unsafe {
        [
            grid.derivative::<T, 0, 1>(f, at),
            grid.derivative::<T, 1, 1>(f, at),
            grid.derivative::<T, 2, 1>(f, at),
        ]
    }
}

/// # Safety
///
/// As the entry points; the point is one of the grid.
#[inline(always)]
unsafe fn divergence<T: Real>(grid: Grid, [u, v, w]: [*const T; 3], at: Point) -> [T; 1] {
    // SAFETY: forwarded word for word.
    unsafe {
        let across = grid.derivative::<T, 0, 1>(u, at) + grid.derivative::<T, 1, 1>(v, at);
        [across + grid.derivative::<T, 2, 1>(w, at)]
    }
}

/// # Safety
///
/// As the entry points; the point is one of the grid.
#[inline(always)]
unsafe fn curl<T: Real>(grid: Grid, [u, v, w]: [*const T; 3], at: Point) -> [T; 3] {
    // SAFETY: forwarded word for word.
    unsafe {
        [
            grid.derivative::<T, 1, 1>(w, at) - grid.derivative::<T, 2, 1>(v, at),
            grid.derivative::<T, 2, 1>(u, at) - grid.derivative::<T, 0, 1>(w, at),
            grid.derivative::<T, 0, 1>(v, at) - grid.derivative::<T, 1, 1>(u, at),
        ]
    }
}

/// # Safety
///
/// As the entry points; the point is one of the grid.
#[inline(always)]
unsafe fn laplacian<T: Real>(grid: Grid, [f]: [*const T; 1], at: Point) -> [T; 1] {
    // SAFETY: forwarded word for word.
    unsafe {
        let across = grid.derivative::<T, 0, 2>(f, at) + grid.derivative::<T, 1, 2>(f, at);
        [across + grid.derivative::<T, 2, 2>(f, at)]
    }
}
