//! The CPU port of the single-pass reductions, in the order of the tree.
//!
//! It is written from the definitions, not from the kernels, because the kernels are checked
//! against it. It allocates nothing.
#![forbid(unsafe_code)]

mod extreme;
mod integers;
mod share;
mod tree;
mod widen;

use super::kinds::{Extremum, Moment, Operation};
use crate::simd::Value;
use integers::sum_of_pieces;
use tree::Take;

/// A type that the port reduces.
pub trait Port: Sized {
    /// A bound on the relative error of one addition.
    const ROUNDOFF: f64;

    /// The result type of [`dot`](Port::dot).
    type Product: bytemuck::Pod + Send + Sync + std::fmt::Debug;

    /// Reduces all of `values`, in the order of the tree. No values give the identity.
    fn reduce(operation: Operation, values: &[Self]) -> Self;

    /// The sum of the scaled values, or of their squares, in the order of the tree.
    fn moment(moment: Moment, scale: f64, values: &[Self]) -> f64;

    /// The sum of the products of two arrays of the same length, in the order of the tree.
    fn dot(x: &[Self], y: &[Self]) -> Self::Product;

    /// The index of the first extreme element; if there is a NaN, that of the first NaN.
    fn position(extremum: Extremum, values: &[Self]) -> Option<usize>;
}

/// The terms are the elements.
#[derive(Clone, Copy)]
struct Plain;

impl<V> Take<V, 1> for Plain {
    #[inline(always)]
    fn take<X: Value>(self, total: X, [x]: [X; 1], _: impl Fn(V) -> X) -> X {
        total + x
    }
}

/// The terms are the elements times this number.
#[derive(Clone, Copy)]
struct Scaled(f64);

impl Take<f64, 1> for Scaled {
    #[inline(always)]
    fn take<X: Value>(self, total: X, [x]: [X; 1], splat: impl Fn(f64) -> X) -> X {
        total + x * splat(self.0)
    }
}

/// The terms are the squares of the elements.
#[derive(Clone, Copy)]
struct Squares;

impl Take<f64, 1> for Squares {
    #[inline(always)]
    fn take<X: Value>(self, total: X, [x]: [X; 1], _: impl Fn(f64) -> X) -> X {
        x.fused(x, total)
    }
}

/// The terms are the squares of the elements times this number.
#[derive(Clone, Copy)]
struct ScaledSquares(f64);

impl Take<f64, 1> for ScaledSquares {
    #[inline(always)]
    fn take<X: Value>(self, total: X, [x]: [X; 1], splat: impl Fn(f64) -> X) -> X {
        let x = x * splat(self.0);
        x.fused(x, total)
    }
}

/// The terms are the products of the elements of two arrays.
#[derive(Clone, Copy)]
struct Products;

impl Take<f64, 2> for Products {
    #[inline(always)]
    fn take<X: Value>(self, total: X, [x, y]: [X; 2], _: impl Fn(f64) -> X) -> X {
        x.fused(y, total)
    }
}

/// Defines the functions that all types share.
macro_rules! common {
    ($type:ident) => {
        fn moment(moment: Moment, scale: f64, values: &[Self]) -> f64 {
            one_nan_f64(match moment {
                Moment::First => tree::sum([values], Scaled(scale)),
                Moment::Second if scale == 1.0 => tree::sum([values], Squares),
                Moment::Second => tree::sum([values], ScaledSquares(scale)),
            })
        }

        fn position(extremum: Extremum, values: &[Self]) -> Option<usize> {
            match extremum {
                Extremum::Min => extreme::position::<Self, false>(values),
                Extremum::Max => extreme::position::<Self, true>(values),
            }
        }
    };
}

macro_rules! integers {
    ($($type:ident: $product:ident;)*) => {$(
        impl Port for $type {
            const ROUNDOFF: f64 = 0.0;
            type Product = $product;

            fn reduce(operation: Operation, values: &[Self]) -> Self {
                match operation {
                    Operation::Sum => sum_of_pieces(
                        values.len(),
                        size_of::<Self>(),
                        #[inline(always)]
                        |part| {
                            let part = values[part].iter();
                            part.fold(0, |sum: Self, &value| sum.wrapping_add(value)) as u64
                        },
                    ) as Self,
                    Operation::Min => extreme::value::<Self, false>(values),
                    Operation::Max => extreme::value::<Self, true>(values),
                }
            }

            fn dot(x: &[Self], y: &[Self]) -> $product {
                sum_of_pieces(
                    x.len(),
                    size_of::<Self>(),
                    #[inline(always)]
                    |part| {
                        let pairs = x[part.clone()].iter().zip(&y[part]);
                        pairs.fold(0 as $product, |sum, (&x, &y)| {
                            sum.wrapping_add((x as $product).wrapping_mul(y as $product))
                        }) as u64
                    },
                ) as $product
            }

            common!($type);
        }
    )*};
}

integers! {
    i32: i64;
    u32: u64;
    i64: i64;
    u64: u64;
}

macro_rules! floats {
    ($($type:ident: $one_nan:ident;)*) => {$(
        impl Port for $type {
            const ROUNDOFF: f64 = $type::EPSILON as f64 / 2.0;
            type Product = f64;

            fn reduce(operation: Operation, values: &[Self]) -> Self {
                match operation {
                    Operation::Sum => $one_nan(tree::sum([values], Plain)),
                    Operation::Min => extreme::value::<Self, false>(values),
                    Operation::Max => extreme::value::<Self, true>(values),
                }
            }

            fn dot(x: &[Self], y: &[Self]) -> f64 {
                one_nan_f64(tree::sum([x, y], Products))
            }

            common!($type);
        }
    )*};
}

floats! {
    f32: one_nan_f32;
    f64: one_nan_f64;
}

/// Replaces any NaN by the same one, because processors differ in which NaN an operation returns.
fn one_nan_f32(total: f32) -> f32 {
    if total.is_nan() { f32::NAN } else { total }
}

fn one_nan_f64(total: f64) -> f64 {
    if total.is_nan() { f64::NAN } else { total }
}
