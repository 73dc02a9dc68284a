//! Adds the partial sums of [`register_tile`](super::register_tile) and
//! [`symmetric`](super::symmetric).
//!
//! - One thread per component of an acceleration: `3 n` threads, in any blocks along
//!   x. Neighbouring threads read and write neighbouring reals.
//! - `out = (out +) Σ partials - Σ reactions`, each sum in the order of its rows, with eight loads
//!   in flight.
//! - Reads a real per row and component and writes one per component: limited by memory.

use super::body::Real;
use super::tiles::SYMMETRIC_GROUP;
use crate::loops::{keep_rolled, unrolled};
use cuda_std::prelude::*;

/// Rows loaded before the first of them is added.
const AHEAD: usize = 8;

// gate nbody_sum_f32: registers <= 40, LD = 0, ST = 0
// gate nbody_sum_f64: registers <= 64, LD = 0, ST = 0

/// Declares entry points: name, real type.
macro_rules! sum_kernels {
    ($($name:ident: $real:ty;)+) => {$(
        #[doc = concat!("The accelerations of `n` bodies in `", stringify!($real), "`, from parts.")]
        ///
        /// `partials`: `parts` rows of `n` elements. `reactions`: `rows` rows of `n` elements, the
        /// last of which is unused for the first half of the groups of bodies if `half_of_last` is
        /// not 0. `accelerations`: `n` elements, to which the result is added if `add` is not 0.
        ///
        /// # Safety
        ///
        /// - `partials` and `reactions` are readable for those numbers of elements, and
        ///   `accelerations` is writable for `n`, and readable if `add` is not 0; it overlaps
        ///   neither of the others, and nothing else accesses it during the launch.
        /// - The launch extends along x alone and has `3 n` threads or more; their number plus the
        ///   block size is below 2³².
        #[kernel]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            partials: *const [$real; 3],
            parts: u32,
            reactions: *const [$real; 3],
            rows: u32,
            half_of_last: u32,
            n: u32,
            add: u32,
            accelerations: *mut [$real; 3],
        ) {
            // SAFETY: forwarded word for word.
            unsafe {
                sum::<$real>(
                    partials, parts, reactions, rows, half_of_last, n, add, accelerations,
                );
            }
        }
    )+};
}

sum_kernels! {
    nbody_sum_f32: f32;
    nbody_sum_f64: f64;
}

/// Threads of a block.
pub const SUM_BLOCK: u32 = 256;

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Step,
            "adds up what was left in parts",
            geometry: |kernel, bodies| {
                let components = bodies.extents[0].saturating_mul(3);
                let grid = blocks_for(kernel, components, SUM_BLOCK as usize)?;
                Ok(Geometry::linear(grid, SUM_BLOCK))
            },
            cost: |bodies| {
                let [n, rows, _] = bodies.extents;
                let reals = 3 * n as u64;
                Cost {
                    bytes: reals.saturating_mul((rows as u64 + 1) * size_of::<$real>() as u64),
                    flops: reals.saturating_mul(rows as u64),
                }
            },
            example: super::geometry::EXAMPLE_IN_PARTS,
            unmeasured: "the rows of the kernels that leave parts time it with them",
        }
    )+};
}

registered! {
    nbody_sum_f32: f32;
    nbody_sum_f64: f64;
}

/// Computes the thread's component.
///
/// # Safety
///
/// As the entry points.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn sum<T: Real>(
    partials: *const [T; 3],
    parts: u32,
    reactions: *const [T; 3],
    rows: u32,
    half_of_last: u32,
    n: u32,
    add: u32,
    accelerations: *mut [T; 3],
) {
    let c = u64::from(thread::block_idx_x()) * u64::from(thread::block_dim_x())
        + u64::from(thread::thread_idx_x());
    if c >= 3 * u64::from(n) {
        return;
    }
    let c = c as usize;
    let length = 3 * n as usize;
    // SAFETY: the component exists.
    let out = unsafe { accelerations.cast::<T>().add(c) };

    let groups = n.div_ceil(SYMMETRIC_GROUP);
    let group = (c / (3 * SYMMETRIC_GROUP as usize)) as u32;
    let rows = if half_of_last != 0 && group < groups / 2 {
        rows - 1
    } else {
        rows
    };
    // SAFETY: the rows have `length` components, and the thread's is one of them.
    unsafe {
        let mut total = in_order(partials.cast::<T>().add(c), parts, length)
            - in_order(reactions.cast::<T>().add(c), rows, length);
        if add != 0 {
            total = *out + total;
        }
        *out = total;
    }
}

/// The sum, in order, of `rows` reals that are `length` apart.
///
/// # Safety
///
/// All of them are readable.
#[inline(always)]
unsafe fn in_order<T: Real>(first: *const T, rows: u32, length: usize) -> T {
    let rows = rows as usize;
    let mut total = T::ZERO;
    let mut row = 0;
    // SAFETY: all rows read are below `rows`.
    unsafe {
        // equivalent mutant (comparison): the last eight are added one by one
        while row + AHEAD <= rows {
            keep_rolled();
            let mut values = [T::ZERO; AHEAD];
            unrolled::<AHEAD>(|k| values[k] = *first.add((row + k) * length));
            unrolled::<AHEAD>(|k| total = total + values[k]);
            row += AHEAD;
        }
        while row < rows {
            keep_rolled();
            total = total + *first.add(row * length);
            row += 1;
        }
    }
    total
}
