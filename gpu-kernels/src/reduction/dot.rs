//! Dot product of two arrays in one launch.
//!
//! ```text
//! Σ x[i] y[i]
//! ```
//!
//! - Shapes: `x` and `y` have n elements each; the result is one value of 64 bits: f64
//!   for floats, an integer of the same sign for integers.
//! - Tree, launch and workspace are those of [`single_pass`](super::single_pass); a
//!   tile is 16 bytes of elements per thread and array, and the chunks' results are
//!   reduced like a chunk of 8-byte elements.
//! - Arithmetic: floats are widened to f64, and a lane adds a product by one fused multiply-add;
//!   products of f32 are exact in f64 and cannot overflow. Integers are widened to 64 bits and wrap
//!   around there, so products of 32-bit integers are exact; wrapping products of signed and
//!   unsigned integers have the same bits, and one kernel serves `i64` and `u64`.
//!
//! # What limits it
//!
//! - Bytes: both arrays are read once; a thread has four 16-byte loads in flight, two of each
//!   array.
//! - Instructions per pair: two conversions (of f32) and a fused multiply-add, or four
//!   multiply-adds of 32 bits for integers of 64. A multiprocessor of an H200 gets 2.5
//!   pairs of f32 a clock from memory and converts 16 numbers: predicted, the speed of
//!   reading.

// gate reduction_dot_*: registers <= 40, spills = 0, LDG.E.128 >= 6
// gate reduction_dot_f64: DFMA >= 4
// gate reduction_dot_f32: DFMA >= 8

use super::operator::{Operator, Sum, Terms, Words};
use super::single_pass::{Shared, THREADS, WARPS, reduce};
use core::marker::PhantomData;
use cuda_std::GpuFloat;
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array};

/// Blocks that a multiprocessor must be able to hold: as many as leave a thread 40 registers.
const BLOCKS_PER_MULTIPROCESSOR: u32 = if cfg!(target_feature = "sm_90") { 3 } else { 2 };

/// Element types with a product.
pub trait Factor: Words {
    /// The type of products and of their sum.
    type Product: Words;

    /// `sum + self * other`. Floats are rounded once, integers wrap around.
    #[must_use]
    fn multiply_add(self, other: Self, sum: Self::Product) -> Self::Product;
}

macro_rules! factor {
    ($($type:ident to $product:ident: |$x:ident, $y:ident, $sum:ident| $value:expr;)*) => {$(
        impl Factor for $type {
            type Product = $product;

            #[inline(always)]
            fn multiply_add(self, other: Self, $sum: $product) -> $product {
                let ($x, $y) = ($product::from(self), $product::from(other));
                $value
            }
        }
    )*};
}

factor! {
    i32 to i64: |x, y, sum| sum.wrapping_add(x.wrapping_mul(y));
    u32 to u64: |x, y, sum| sum.wrapping_add(x.wrapping_mul(y));
    i64 to i64: |x, y, sum| sum.wrapping_add(x.wrapping_mul(y));
    f32 to f64: |x, y, sum| GpuFloat::mul_add(x, y, sum);
    f64 to f64: |x, y, sum| GpuFloat::mul_add(x, y, sum);
}

/// The terms: products of the elements of two arrays.
#[derive(Debug)]
struct Products<T>(PhantomData<T>);

impl<T> Clone for Products<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Products<T> {}

impl<T: Factor> Terms<2> for Products<T>
where
    Sum<T::Product>: Operator<Value = T::Product>,
{
    type Element = T;
    type Operator = Sum<T::Product>;
    type Lane = T::Product;
    const EMPTY: T::Product = Sum::<T::Product>::IDENTITY;

    #[inline(always)]
    fn take(self, lane: T::Product, [x, y]: [T; 2], _: u32) -> T::Product {
        x.multiply_add(y, lane)
    }

    #[inline(always)]
    fn value(lane: T::Product, _: impl FnOnce(u32) -> u64) -> T::Product {
        lane
    }
}

/// Declares entry points.
macro_rules! kernels {
    ($($name:ident of $type:ident to $product:ident: $also:literal;)*) => {$(
        /// The sum of `x[i] * y[i]`.
        ///
        /// `n`, `tiles`, `chunks` and `workspace`: as for the kernels of
        /// [`single_pass`](super::single_pass), with results of 8 bytes. `result`: one
        /// element.
        ///
        /// # Safety
        ///
        /// As for the kernels of [`single_pass`](super::single_pass), with the conditions on
        /// `values` there holding for `x` and for `y`. They may be the same array.
        #[kernel]
        #[launch_bounds(THREADS, BLOCKS_PER_MULTIPROCESSOR)]
        pub unsafe fn $name(
            x: *const $type,
            y: *const $type,
            n: usize,
            tiles: u32,
            chunks: u32,
            workspace: *mut u64,
            result: *mut $product,
        ) {
            let shared = Shared {
                partials: shared_array![$product; 2 * WARPS],
                ticket: shared_array![u32; 1],
            };
            let terms = Products::<$type>(PhantomData);
            // SAFETY: forwarded word for word; the arrays are this block's.
            unsafe { reduce(terms, [x, y], n, tiles, chunks, workspace, result, shared) }
        }

        crate::register! {
            $name: $type, Tuned,
            concat!("the dot product of two arrays", $also, " in one launch"),
            geometry: super::geometry::chunks::<$type>,
            cost: super::geometry::terms::<$type, 2>,
            example: super::geometry::EXAMPLE_IN_CHUNKS,
            tile: super::geometry::TILE,
        }
    )*};
}

kernels! {
    reduction_dot_i32 of i32 to i64: "";
    reduction_dot_u32 of u32 to u64: "";
    reduction_dot_i64 of i64 to i64: ", also of `u64`,";
    reduction_dot_f32 of f32 to f64: "";
    reduction_dot_f64 of f64 to f64: "";
}
