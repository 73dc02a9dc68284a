//! The CPU ports of elementwise operations: pieces of the arrays on all cores.
#![forbid(unsafe_code)]

use crate::simd::{InVectors, vectorised};
use crate::threads;
use rayon::prelude::*;

/// The fewest elements for which the thread pool is used.
const ELEMENTS_PER_CALL: usize = 1 << 18;

/// Elements of a task.
const ELEMENTS_PER_TASK: usize = 1 << 15;

/// The ports for one type, compiled in this crate and not in the caller's.
pub trait Port: Sized {
    /// `y ← a x + b y`.
    fn axpby(a: Self, x: &[Self], b: Self, y: &mut [Self]);

    /// `y ← min(max(y, low), high)`.
    fn clamp(y: &mut [Self], low: Self, high: Self);

    /// `y[at] ← values`; `at` is ascending, and all its elements are in `y`.
    fn put(values: &[Self], at: &[u64], y: &mut [Self]);

    /// The largest absolute difference; NaN if any difference is NaN.
    fn largest_difference(x: &[Self], y: &[Self]) -> Self;
}

/// `y[at] ← values` for those elements that are in `y`, where `y` begins with element `first`. `at`
/// is ascending.
pub(crate) fn put_among<T: Copy>(values: &[T], at: &[u64], first: usize, y: &mut [T]) {
    let below = |element: usize| at.partition_point(|&at| at < element as u64);
    let there = below(first)..below(first + y.len());
    for (&at, &value) in at[there.clone()].iter().zip(&values[there]) {
        y[at as usize - first] = value;
    }
}

macro_rules! port {
    ($number:ty) => {
        impl Port for $number {
            fn axpby(a: Self, x: &[Self], b: Self, y: &mut [Self]) {
                in_pieces(y, |first, y| {
                    let x = &x[first..][..y.len()];
                    for (y, &x) in y.iter_mut().zip(x) {
                        *y = a.mul_add(x, b * *y);
                    }
                });
            }

            fn clamp(y: &mut [Self], low: Self, high: Self) {
                in_pieces(y, |_, y| {
                    for y in y {
                        *y = if *y < low { low } else { *y };
                        *y = if *y > high { high } else { *y };
                    }
                });
            }

            fn put(values: &[Self], at: &[u64], y: &mut [Self]) {
                in_pieces(y, |first, y| put_among(values, at, first, y));
            }

            fn largest_difference(x: &[Self], y: &[Self]) -> Self {
                largest_difference(x, y, 0.0)
            }
        }
    };
}

port!(f32);
port!(f64);

/// Calls `work` for pieces of an array and the index of the first element of each piece, compiled
/// for the processor's vectors.
fn in_pieces<T: Send>(values: &mut [T], work: impl Fn(usize, &mut [T]) + Sync) {
    let threads = threads::worth(values.len(), ELEMENTS_PER_TASK);
    threads::share_parts(threads, values, 1, |first, values| {
        vectorised(
            #[inline(always)]
            || work(first, values),
        );
    });
}

fn largest_difference<T: InVectors + PartialOrd>(x: &[T], y: &[T], zero: T) -> T {
    // If either is NaN, the result is NaN.
    let larger = |a: T, b: T| {
        if a >= b || a.partial_cmp(&a).is_none() {
            a
        } else {
            b
        }
    };
    let difference = |(&x, &y): (&T, &T)| if y >= x { y - x } else { x - y };
    if x.len() < ELEMENTS_PER_CALL {
        return x.iter().zip(y).map(difference).fold(zero, larger);
    }
    threads::ready();
    x.par_iter()
        .zip(y)
        .with_min_len(ELEMENTS_PER_TASK)
        .map(difference)
        .reduce(|| zero, larger)
}
