//! The CPU ports: the tree of the single-pass reductions, and the host's part of
//! the textbook sums.
//!
//! Written from the definitions and not from the kernels, which are checked
//! against them. A chunk of the tree is a task of its own; its boundaries do not
//! depend on the number of threads, so neither does the result.
#![forbid(unsafe_code)]

use super::{Operation, Partition};
use crate::simd::vectorised;
use rayon::prelude::*;

/// Types of which there are textbook sums.
pub trait Finish: Sized {
    /// The sum of the partial sums that a kernel left, in their order.
    fn finish(partials: &[Self]) -> Self;
}

impl Finish for i32 {
    fn finish(partials: &[Self]) -> Self {
        partials
            .iter()
            .fold(0, |sum, &value| sum.wrapping_add(value))
    }
}

impl Finish for f32 {
    fn finish(partials: &[Self]) -> Self {
        partials.iter().copied().map(f64::from).sum::<f64>() as Self
    }
}

/// Types that the port reduces.
pub trait Port: Sized {
    /// The relative error of one addition is at most this.
    const ROUNDOFF: f64;

    /// All of `values`, in the order of the tree. Nothing gives the identity.
    fn reduce(operation: Operation, values: &[Self]) -> Self;
}

macro_rules! port {
    ($($type:ident: roundoff $roundoff:expr, nothing $zero:literal, $add:expr, $least:expr, $lesser:expr,
        $greatest:expr, $greater:expr, $finish:expr;)*) => {$(
        impl Port for $type {
            const ROUNDOFF: f64 = $roundoff;

            fn reduce(operation: Operation, values: &[Self]) -> Self {
                let finish: fn(Self) -> Self = $finish;
                finish(match operation {
                    Operation::Sum => tree(values, $zero, $add),
                    Operation::Min => tree(values, $greatest, $lesser),
                    Operation::Max => tree(values, $least, $greater),
                })
            }
        }
    )*};
}

port! {
    i32: roundoff 0.0, nothing 0, i32::wrapping_add, i32::MIN, i32::min, i32::MAX, i32::max, |total| total;
    f32: roundoff f32::EPSILON as f64 / 2.0, nothing -0.0, |a, b| a + b,
        f32::NEG_INFINITY, lesser_f32, f32::INFINITY, greater_f32, |total| if total.is_nan() { f32::NAN } else { total };
    f64: roundoff f64::EPSILON / 2.0, nothing -0.0, |a, b| a + b,
        f64::NEG_INFINITY, lesser_f64, f64::INFINITY, greater_f64, |total| if total.is_nan() { f64::NAN } else { total };
}

/// `minimum` and `maximum` of IEEE 754-2019, in a form that compiles to vectors: of
/// two equal numbers, which may be zeros, the one with the lesser or the greater
/// bit pattern as a signed integer, and NaN where there is one.
macro_rules! extrema {
    ($($type:ident, $lesser:ident, $greater:ident;)*) => {$(
        #[inline(always)]
        fn $lesser(a: $type, b: $type) -> $type {
            let negative_zero = a == b && b.is_sign_negative();
            let number = if b < a || negative_zero { b } else { a };
            if b.is_nan() { b } else { number }
        }

        #[inline(always)]
        fn $greater(a: $type, b: $type) -> $type {
            let positive_zero = a == b && b.is_sign_positive();
            let number = if b > a || positive_zero { b } else { a };
            if b.is_nan() { b } else { number }
        }
    )*};
}

extrema! {
    f32, lesser_f32, greater_f32;
    f64, lesser_f64, greater_f64;
}

/// Each chunk by itself, in parallel; then the chunks' results like one more chunk.
fn tree<T: Copy + Send + Sync>(
    values: &[T],
    nothing: T,
    combine: impl Fn(T, T) -> T + Copy + Sync,
) -> T {
    let partition = Partition::of(values.len(), size_of::<T>());
    let lanes = partition.lanes();
    if values.len() <= partition.span() {
        return chunk(values, lanes, nothing, combine);
    }
    let totals: Vec<T> = values
        .par_chunks(partition.span())
        .map(|values| chunk(values, lanes, nothing, combine))
        .collect();
    chunk(&totals, lanes, nothing, combine)
}

/// Element e belongs to lane e modulo the number of lanes. Each lane combines its
/// elements in their order, then neighbouring lanes are combined until one is left.
fn chunk<T: Copy>(values: &[T], lanes: usize, nothing: T, combine: impl Fn(T, T) -> T + Copy) -> T {
    // Lanes behind the last that has an element would change nothing.
    let mut totals = vec![nothing; lanes.min(values.len().next_power_of_two())];
    vectorised(
        #[inline(always)]
        || {
            for row in values.chunks(lanes) {
                combine_rows(&mut totals, row, combine);
            }
            while totals.len() > 1 {
                let half = totals.len() / 2;
                for i in 0..half {
                    totals[i] = combine(totals[2 * i], totals[2 * i + 1]);
                }
                totals.truncate(half);
            }
        },
    );
    totals[0]
}

// A function, not a loop in the closure: that its arguments are different memory
// is known from their types, and without that nothing is vectorised.
#[inline(always)]
fn combine_rows<T: Copy>(totals: &mut [T], row: &[T], combine: impl Fn(T, T) -> T) {
    for (total, &value) in totals.iter_mut().zip(row) {
        *total = combine(*total, value);
    }
}
