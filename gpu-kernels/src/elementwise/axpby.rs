//! A linear combination of two arrays.
//!
//! ```text
//! y[i] ← a x[i] + b y[i]
//! ```
//!
//! The product b y is rounded; a fused multiply-add then adds a x, rounded once.

use super::geometry::BLOCK;
use crate::loops::unrolled;
use crate::vector::{Points, Vector2F64, Vector4};
use cuda_std::prelude::*;
use cuda_std::{GpuFloat, launch_bounds};

// gate elementwise_axpby_f32: registers <= 32, spills = 0, LDG.E.128 = 2, STG.E.128 = 1
// gate elementwise_axpby_f64: registers <= 32, spills = 0, LDG.E.128 = 2, STG.E.128 = 1

/// Declares entry points: name, element type, vector type.
macro_rules! kernels {
    ($($name:ident: $real:ty, $vector:ty;)+) => {$(
        #[doc = concat!("A sum of two arrays with factors, in `", stringify!($real), "`.")]
        ///
        /// `x` and `y`: `n` elements.
        ///
        /// # Safety
        ///
        /// - `x` is readable and `y` readable and writable for `n` elements; both are aligned to
        ///   16 bytes, and they do not overlap. During the launch nobody writes `x`, and nothing
        ///   else accesses `y`.
        /// - Blocks of [`BLOCK`] threads; the grid has one dimension and a thread for each vector
        ///   of 16 bytes, the last of which may be partial.
        #[kernel]
        #[launch_bounds(BLOCK)]
        pub unsafe fn $name(x: *const $real, y: *mut $real, n: usize, a: $real, b: $real) {
            const COUNT: usize = <$vector>::COUNT;
            let thread = thread::block_idx_x() as usize * BLOCK as usize;
            let first = (thread + thread::thread_idx_x() as usize) * COUNT;
            // SAFETY: the vector's elements, from `first` on, are in the arrays if their indices
            // are below n. Vectors are aligned, since the arrays are and `first` is a multiple of a
            // vector's length. No other thread accesses these elements.
            unsafe {
                if first + COUNT <= n {
                    let at = y.add(first).cast::<$vector>();
                    let own = *at;
                    let other = *x.add(first).cast::<$vector>();
                    *at = <$vector>::of(
                        #[inline(always)]
                        |e| sum(a, other.point(e), b, own.point(e)),
                    );
                } else {
                    unrolled::<COUNT>(
                        #[inline(always)]
                        |e| {
                            let i = first + e;
                            if i < n {
                                *y.add(i) = sum(a, *x.add(i), b, *y.add(i));
                            }
                        },
                    );
                }
            }
        }
    )+};
}

kernels! {
    elementwise_axpby_f32: f32, Vector4;
    elementwise_axpby_f64: f64, Vector2F64;
}

/// `a x + b y`: `b y` is rounded, `a x` is not rounded before the sum.
#[inline(always)]
fn sum<T: GpuFloat + core::ops::Mul<Output = T>>(a: T, x: T, b: T, y: T) -> T {
    a.mul_add(x, b * y)
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "y ← a x + b y",
            geometry: super::geometry::vectors::<$real>,
            cost: |line| super::geometry::cost::<$real>(line, 3, 3),
            example: super::geometry::EXAMPLE,
        }
    )+};
}

registered! {
    elementwise_axpby_f32: f32;
    elementwise_axpby_f64: f64;
}
