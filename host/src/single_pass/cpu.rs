//! The CPU port: the tree of the single-pass reductions.
//!
//! Written from the definitions and not from the kernels, which are checked
//! against them. A chunk of the tree is a task of its own; its boundaries do not
//! depend on the number of threads, so neither does the result.
#![forbid(unsafe_code)]

use super::kinds::{Extremum, Moment, Operation};
use crate::simd::vectorised;
use gpu_kernels::reduction::partition::Partition;
use rayon::prelude::*;

/// Types that the port reduces.
pub trait Port: Sized {
    /// The relative error of one addition is at most this.
    const ROUNDOFF: f64;

    /// What [`dot`](Port::dot) gives.
    type Product: bytemuck::Pod + Send + Sync + std::fmt::Debug;

    /// All of `values`, in the order of the tree. Nothing gives the identity.
    fn reduce(operation: Operation, values: &[Self]) -> Self;

    /// The sum of the scaled values or of their squares, in the order of the tree.
    fn moment(moment: Moment, scale: f64, values: &[Self]) -> f64;

    /// The sum of the products, in the order of the tree. Of two arrays of one length.
    fn dot(x: &[Self], y: &[Self]) -> Self::Product;

    /// The index of the first extreme element: NaN where there is one.
    fn position(extremum: Extremum, values: &[Self]) -> Option<usize>;
}

macro_rules! port {
    ($($type:ident: roundoff $roundoff:expr, nothing $zero:literal, $add:expr, $least:expr, $lesser:expr,
        $greatest:expr, $greater:expr, $finish:expr,
        product $product:ident, nothing $no_product:literal, $multiply_add:expr, $sum:expr, $finish_product:expr,
        same $same:expr;)*) => {$(
        impl Port for $type {
            const ROUNDOFF: f64 = $roundoff;
            type Product = $product;

            fn reduce(operation: Operation, values: &[Self]) -> Self {
                let finish: fn(Self) -> Self = $finish;
                finish(match operation {
                    Operation::Sum => elements(values, $zero, $add),
                    Operation::Min => elements(values, $greatest, $lesser),
                    Operation::Max => elements(values, $least, $greater),
                })
            }

            fn moment(moment: Moment, scale: f64, values: &[Self]) -> f64 {
                let add = |a: f64, b: f64| a + b;
                one_nan_f64(match moment {
                    Moment::First => terms(values, -0.0, |sum, x: $type| sum + x as f64 * scale, add),
                    Moment::Second => terms(
                        values,
                        -0.0,
                        |sum, x: $type| {
                            let x = x as f64 * scale;
                            x.mul_add(x, sum)
                        },
                        add,
                    ),
                })
            }

            fn dot(x: &[Self], y: &[Self]) -> $product {
                let finish: fn($product) -> $product = $finish_product;
                finish(products(x, y, $no_product, $multiply_add, $sum))
            }

            fn position(extremum: Extremum, values: &[Self]) -> Option<usize> {
                match extremum {
                    Extremum::Min => place(values, $greatest, $lesser, $same),
                    Extremum::Max => place(values, $least, $greater, $same),
                }
            }
        }
    )*};
}

/// Of the many NaN one, since processors disagree about which NaN an operation gives.
fn one_nan_f32(total: f32) -> f32 {
    if total.is_nan() { f32::NAN } else { total }
}

fn one_nan_f64(total: f64) -> f64 {
    if total.is_nan() { f64::NAN } else { total }
}

port! {
    i32: roundoff 0.0, nothing 0, i32::wrapping_add, i32::MIN, i32::min, i32::MAX, i32::max, |total| total,
        product i64, nothing 0, |sum: i64, x: i32, y: i32| sum.wrapping_add(i64::from(x) * i64::from(y)),
        i64::wrapping_add, |total| total, same |a, b| a == b;
    u32: roundoff 0.0, nothing 0, u32::wrapping_add, u32::MIN, u32::min, u32::MAX, u32::max, |total| total,
        product u64, nothing 0, |sum: u64, x: u32, y: u32| sum.wrapping_add(u64::from(x) * u64::from(y)),
        u64::wrapping_add, |total| total, same |a, b| a == b;
    i64: roundoff 0.0, nothing 0, i64::wrapping_add, i64::MIN, i64::min, i64::MAX, i64::max, |total| total,
        product i64, nothing 0, |sum: i64, x: i64, y: i64| sum.wrapping_add(x.wrapping_mul(y)),
        i64::wrapping_add, |total| total, same |a, b| a == b;
    u64: roundoff 0.0, nothing 0, u64::wrapping_add, u64::MIN, u64::min, u64::MAX, u64::max, |total| total,
        product u64, nothing 0, |sum: u64, x: u64, y: u64| sum.wrapping_add(x.wrapping_mul(y)),
        u64::wrapping_add, |total| total, same |a, b| a == b;
    f32: roundoff f32::EPSILON as f64 / 2.0, nothing -0.0, |a, b| a + b,
        f32::NEG_INFINITY, lesser_f32, f32::INFINITY, greater_f32, one_nan_f32,
        product f64, nothing -0.0, |sum: f64, x: f32, y: f32| f64::from(x).mul_add(f64::from(y), sum),
        |a, b| a + b, one_nan_f64, same |a, b| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    f64: roundoff f64::EPSILON / 2.0, nothing -0.0, |a, b| a + b,
        f64::NEG_INFINITY, lesser_f64, f64::INFINITY, greater_f64, one_nan_f64,
        product f64, nothing -0.0, |sum: f64, x: f64, y: f64| x.mul_add(y, sum),
        |a, b| a + b, one_nan_f64, same |a, b| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
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

/// The elements themselves, combined in the order of the tree.
fn elements<T: Copy + Send + Sync>(
    values: &[T],
    nothing: T,
    combine: impl Fn(T, T) -> T + Copy + Sync,
) -> T {
    terms(values, nothing, combine, combine)
}

/// What `take` makes of the elements, combined in the order of the tree.
fn terms<T: Copy + Sync, V: Copy + Send + Sync>(
    values: &[T],
    nothing: V,
    take: impl Fn(V, T) -> V + Copy + Sync,
    combine: impl Fn(V, V) -> V + Copy + Sync,
) -> V {
    collected(
        &chunk_totals(values, nothing, take, combine),
        nothing,
        combine,
    )
}

/// The same of each chunk.
fn chunk_totals<T: Copy + Sync, V: Copy + Send + Sync>(
    values: &[T],
    nothing: V,
    take: impl Fn(V, T) -> V + Copy + Sync,
    combine: impl Fn(V, V) -> V + Copy + Sync,
) -> Vec<V> {
    let partition = Partition::of(values.len(), size_of::<T>());
    let lanes = partition.lanes();
    let total = |values: &[T]| chunk(values, lanes, nothing, take, combine);
    if values.len() <= partition.span() {
        return vec![total(values)];
    }
    crate::threads::ready();
    values.par_chunks(partition.span()).map(total).collect()
}

/// The same of pairs.
fn products<T: Copy + Sync, V: Copy + Send + Sync>(
    x: &[T],
    y: &[T],
    nothing: V,
    take: impl Fn(V, T, T) -> V + Copy + Sync,
    combine: impl Fn(V, V) -> V + Copy + Sync,
) -> V {
    let partition = Partition::of(x.len(), size_of::<T>());
    let (lanes, span) = (partition.lanes(), partition.span());
    crate::threads::ready();
    let totals: Vec<V> = x
        .par_chunks(span)
        .zip(y.par_chunks(span))
        .map(|(x, y)| {
            let mut totals = lanes_for(x.len(), lanes, nothing);
            vectorised(
                #[inline(always)]
                || {
                    for (x, y) in x.chunks(lanes).zip(y.chunks(lanes)) {
                        take_pairs(&mut totals, x, y, take);
                    }
                    neighbours(&mut totals, combine)
                },
            )
        })
        .collect();
    collected(&totals, nothing, combine)
}

/// The chunks' results, like one more chunk. One is the result.
fn collected<V: Copy>(totals: &[V], nothing: V, combine: impl Fn(V, V) -> V + Copy) -> V {
    match *totals {
        [] => nothing,
        [total] => total,
        _ => {
            let lanes = Partition::of(totals.len(), size_of::<V>()).lanes();
            chunk(totals, lanes, nothing, combine, combine)
        }
    }
}

/// Element e belongs to lane e modulo the number of lanes. Each lane takes its
/// elements in their order, then neighbouring lanes are combined until one is left.
fn chunk<T: Copy, V: Copy>(
    values: &[T],
    lanes: usize,
    nothing: V,
    take: impl Fn(V, T) -> V + Copy,
    combine: impl Fn(V, V) -> V + Copy,
) -> V {
    let mut totals = lanes_for(values.len(), lanes, nothing);
    vectorised(
        #[inline(always)]
        || {
            for row in values.chunks(lanes) {
                take_row(&mut totals, row, take);
            }
            neighbours(&mut totals, combine)
        },
    )
}

/// The lanes of a chunk of `len` elements. Those behind the last that has an element
/// would change nothing.
fn lanes_for<V: Copy>(len: usize, lanes: usize, nothing: V) -> Vec<V> {
    vec![nothing; lanes.min(len.next_power_of_two())]
}

#[inline(always)]
fn neighbours<V: Copy>(totals: &mut [V], combine: impl Fn(V, V) -> V) -> V {
    let mut len = totals.len();
    while len > 1 {
        len /= 2;
        for i in 0..len {
            totals[i] = combine(totals[2 * i], totals[2 * i + 1]);
        }
    }
    totals[0]
}

// Functions, not loops in the closures: that their arguments are different memory
// is known from their types, and without that nothing is vectorised.
#[inline(always)]
fn take_row<T: Copy, V: Copy>(totals: &mut [V], row: &[T], take: impl Fn(V, T) -> V) {
    for (total, &value) in totals.iter_mut().zip(row) {
        *total = take(*total, value);
    }
}

#[inline(always)]
fn take_pairs<T: Copy, V: Copy>(totals: &mut [V], x: &[T], y: &[T], take: impl Fn(V, T, T) -> V) {
    for ((total, &x), &y) in totals.iter_mut().zip(x).zip(y) {
        *total = take(*total, x, y);
    }
}

/// The index of the first element that is the `extreme` of all: it lies in the first chunk
/// of which it is the extreme, and no other is looked at again.
fn place<T: Copy + Send + Sync>(
    values: &[T],
    nothing: T,
    extreme: impl Fn(T, T) -> T + Copy + Sync,
    same: impl Fn(T, T) -> bool + Copy + Sync,
) -> Option<usize> {
    let span = Partition::of(values.len(), size_of::<T>()).span();
    let totals = chunk_totals(values, nothing, extreme, extreme);
    let wanted = collected(&totals, nothing, extreme);
    let number = totals.iter().position(|&total| same(total, wanted))?;
    let chunk = values.chunks(span).nth(number)?;
    let within = first(
        chunk,
        #[inline(always)]
        |value| same(value, wanted),
    )?;
    Some(number * span + within)
}

/// The index of the first that `wanted` says yes to. Parts are looked at in parallel,
/// and within them groups that compile to vectors.
fn first<T: Copy + Sync>(values: &[T], wanted: impl Fn(T) -> bool + Copy + Sync) -> Option<usize> {
    const PART: usize = 1 << 14;
    const GROUP: usize = 64;
    let among = |values: &[T]| {
        vectorised(
            #[inline(always)]
            || {
                let group = values.chunks(GROUP).position(|group| {
                    group.iter().fold(false, |any, &value| any | wanted(value))
                })?;
                let at = group * GROUP;
                let within = values[at..].iter().position(|&value| wanted(value))?;
                Some(at + within)
            },
        )
    };
    crate::threads::ready();
    values
        .par_chunks(PART)
        .enumerate()
        .find_map_first(|(number, values)| Some(number * PART + among(values)?))
}
