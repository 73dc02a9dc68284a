//! First and second moment of an array of any type in one launch, summed in f64.
//!
//! ```text
//! Σ s x[i]        Σ (s x[i])²
//! ```
//!
//! for the mean and the L2 norm. The scale s is a power of two. It is 1, unless the sum left the
//! range of f64: then the host launches again with another scale.
//!
//! - Shapes: `values` has n elements; the result is one f64.
//! - Tree, launch and workspace are those of [`single_pass`](super::single_pass); a
//!   tile is 16 bytes of *elements* per thread, and the chunks' results, which are
//!   f64, are reduced like a chunk of f64.
//! - Arithmetic: the element is rounded to f64, which is exact for all but integers of 64 bits, and
//!   multiplied by s, exactly. The lane adds it, or its square, by one fused multiply-add. So each
//!   term is rounded once, with the sum; squares of f32 and of integers of 32 bits neither overflow
//!   nor underflow.
//!
//! # What limits it
//!
//! - Bytes: every element is read once, as in `single_pass`.
//! - Instructions per element: a conversion, a product, a fused multiply-add and the selection of
//!   its factor. A multiprocessor of an H200 gets 5 elements of 4 bytes a clock from memory and
//!   converts 16: predicted, the speed of reading. On GPUs with few f64 units (2 a clock: compute
//!   capability 7.5) those are the limit.

// gate reduction_moment_*: registers <= 40, spills = 0, LDG.E.128 >= 8, DFMA >= 8

use super::operator::{Sum, Terms, Words};
use super::single_pass::{Shared, THREADS, WARPS, reduce};
use cuda_std::GpuFloat;
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array};

/// Blocks that a multiprocessor must be able to hold: as many as leave a thread 40 registers.
const BLOCKS_PER_MULTIPROCESSOR: u32 = if cfg!(target_feature = "sm_90") { 3 } else { 2 };

/// Element types that convert to f64.
pub trait ToF64: Words {
    /// The nearest f64; ties go to even.
    #[must_use]
    fn to_f64(self) -> f64;
}

macro_rules! to_f64 {
    ($($type:ident),*) => {$(
        impl ToF64 for $type {
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

to_f64!(i32, u32, i64, u64, f32, f64);

/// The terms: scaled elements, or their squares.
#[derive(Debug, Clone, Copy)]
struct Moment<T> {
    scale: f64,
    squared: bool,
    element: core::marker::PhantomData<T>,
}

impl<T: ToF64> Terms<1> for Moment<T> {
    type Element = T;
    type Operator = Sum<f64>;
    type Lane = f64;
    const EMPTY: f64 = -0.0;

    #[inline(always)]
    fn take(self, lane: f64, [element]: [T; 1], _: u32) -> f64 {
        let value = element.to_f64() * self.scale;
        GpuFloat::mul_add(value, if self.squared { value } else { 1.0 }, lane)
    }

    #[inline(always)]
    fn value(lane: f64, _: impl FnOnce(u32) -> u64) -> f64 {
        lane
    }
}

/// Declares entry points.
macro_rules! kernels {
    ($($name:ident of $type:ident;)*) => {$(
        /// The sum of `scale * values[i]`, or of their squares if `squared` is not 0.
        ///
        /// `n`, `tiles`, `chunks` and `workspace`: as for the kernels of
        /// [`single_pass`](super::single_pass), with results of 8 bytes. `result`: one
        /// element. `scale`: a power of two by which no product becomes subnormal.
        ///
        /// # Safety
        ///
        /// As for the kernels of [`single_pass`](super::single_pass).
        #[kernel]
        #[launch_bounds(THREADS, BLOCKS_PER_MULTIPROCESSOR)]
        pub unsafe fn $name(
            values: *const $type,
            n: usize,
            tiles: u32,
            chunks: u32,
            scale: f64,
            squared: u32,
            workspace: *mut u64,
            result: *mut f64,
        ) {
            let shared = Shared {
                partials: shared_array![f64; 2 * WARPS],
                ticket: shared_array![u32; 1],
            };
            let terms = Moment::<$type> {
                scale,
                squared: squared != 0,
                element: core::marker::PhantomData,
            };
            // SAFETY: forwarded word for word; the arrays are this block's.
            unsafe { reduce(terms, [values], n, tiles, chunks, workspace, result, shared) }
        }

        crate::register! {
            $name: $type, Tuned,
            "the sum of an array or of its squares in f64, in one launch",
            geometry: super::geometry::chunks::<$type>,
            cost: super::geometry::terms::<$type, 1>,
            example: super::geometry::EXAMPLE_IN_CHUNKS,
            tile: super::geometry::TILE,
        }
    )*};
}

kernels! {
    reduction_moment_i32 of i32;
    reduction_moment_u32 of u32;
    reduction_moment_i64 of i64;
    reduction_moment_u64 of u64;
    reduction_moment_f32 of f32;
    reduction_moment_f64 of f64;
}
