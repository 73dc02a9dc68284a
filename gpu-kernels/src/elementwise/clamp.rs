//! Clamps an array to bounds.
//!
//! ```text
//! y[i] ← min(max(y[i], low), high)
//! ```
//!
//! Values within the bounds and NaN keep their bits.

use super::geometry::BLOCK;
use crate::loops::unrolled;
use crate::vector::{Points, Vector2F64, Vector4};
use cuda_std::prelude::*;
use cuda_std::{GpuFloat, launch_bounds};

// gate elementwise_clamp_f32: registers <= 32, spills = 0, LDG.E.128 = 1, STG.E.128 = 1
// gate elementwise_clamp_f64: registers <= 32, spills = 0, LDG.E.128 = 1, STG.E.128 = 1

/// Declares entry points: name, element type, vector type.
macro_rules! kernels {
    ($($name:ident: $real:ty, $vector:ty;)+) => {$(
        #[doc = concat!("An array within bounds, in `", stringify!($real), "`.")]
        ///
        /// `y`: `n` elements; `low` is at most `high`.
        ///
        /// # Safety
        ///
        /// - `y` is readable and writable for `n` elements and aligned to 16 bytes; during the
        ///   launch nothing else accesses it.
        /// - Blocks of [`BLOCK`] threads; the grid has one dimension and a thread for each vector
        ///   of 16 bytes, the last of which may be partial.
        #[kernel]
        #[launch_bounds(BLOCK)]
        pub unsafe fn $name(y: *mut $real, n: usize, low: $real, high: $real) {
            const COUNT: usize = <$vector>::COUNT;
            let thread = thread::block_idx_x() as usize * BLOCK as usize;
            let first = (thread + thread::thread_idx_x() as usize) * COUNT;
            // SAFETY: the vector's elements, from `first` on, are in the array if their indices are
            // below n. Vectors are aligned, since the array is and `first` is a multiple of a
            // vector's length. No other thread accesses these elements.
            unsafe {
                if first + COUNT <= n {
                    let at = y.add(first).cast::<$vector>();
                    let own = *at;
                    *at = <$vector>::of(
                        #[inline(always)]
                        |e| within(own.point(e), low, high),
                    );
                } else {
                    unrolled::<COUNT>(
                        #[inline(always)]
                        |e| {
                            let i = first + e;
                            if i < n {
                                *y.add(i) = within(*y.add(i), low, high);
                            }
                        },
                    );
                }
            }
        }
    )+};
}

kernels! {
    elementwise_clamp_f32: f32, Vector4;
    elementwise_clamp_f64: f64, Vector2F64;
}

/// `value` clamped to `low` and `high`; NaN is unchanged.
#[inline(always)]
fn within<T: GpuFloat>(value: T, low: T, high: T) -> T {
    let value = if value < low { low } else { value };
    if value > high { high } else { value }
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "y ← min(max(y, low), high)",
            geometry: super::geometry::vectors::<$real>,
            cost: |line| super::geometry::cost::<$real>(line, 2, 2),
            example: super::geometry::EXAMPLE,
        }
    )+};
}

registered! {
    elementwise_clamp_f32: f32;
    elementwise_clamp_f64: f64;
}
