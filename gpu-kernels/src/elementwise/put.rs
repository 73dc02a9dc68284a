//! Values for some elements of an array, wherever they are.
//!
//! ```text
//! y[at[n]] ← values[n]
//! ```
//!
//! A thread for each value. Numbers of elements that follow each other make whole transactions;
//! the elements in a plane along x, one in each row, a sector of 32 bytes each.

use super::geometry::BLOCK;
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

// gate elementwise_put_*: registers <= 16, spills = 0, LDG >= 2, STG = 1

/// Declares entry points: a name, its type.
macro_rules! kernels {
    ($($name:ident: $real:ty;)+) => {$(
        #[doc = concat!("Values for some elements of an array, in `", stringify!($real), "`.")]
        ///
        /// `at` and `values`: `n` elements.
        ///
        /// # Safety
        ///
        /// - `at` and `values` are readable for `n` elements; y is writable at all `at`, which are
        ///   distinct, and overlaps neither. During the launch nobody writes `at` or `values`, and
        ///   nothing else accesses `y`.
        /// - Blocks of [`BLOCK`] threads; the grid is of one dimension and has a thread for each
        ///   value.
        #[kernel]
        #[launch_bounds(BLOCK)]
        pub unsafe fn $name(at: *const u64, values: *const $real, y: *mut $real, n: usize) {
            let block = thread::block_idx_x() as usize * BLOCK as usize;
            let own = block + thread::thread_idx_x() as usize;
            if own < n {
                // SAFETY: one of the n; no other thread has its element.
                unsafe { *y.add(*at.add(own) as usize) = *values.add(own) };
            }
        }
    )+};
}

kernels! {
    elementwise_put_f32: f32;
    elementwise_put_f64: f64;
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "y[at] ← values",
            geometry: |kernel, line| {
                let blocks = crate::registry::blocks_for(kernel, line.points(), BLOCK as usize)?;
                Ok(crate::registry::Geometry::linear(blocks, BLOCK))
            },
            cost: |line| crate::registry::Cost {
                // The number of an element, its value read, and written.
                bytes: (line.points() as u64)
                    .saturating_mul(8 + 2 * size_of::<$real>() as u64),
                flops: 0,
            },
            example: super::geometry::EXAMPLE,
        }
    )+};
}

registered! {
    elementwise_put_f32: f32;
    elementwise_put_f64: f64;
}
