//! The processor's widest vectors, chosen when the program runs.
//!
//! A program built for any x86-64 may use neither AVX nor fused multiply-adds, and
//! a `mul_add` is then a call of a function. The CPU ports run their loops inside
//! [`vectorised`] instead, which compiles them once per instruction set.
//!
//! A [`Formula`] says what a point becomes. It is computed for the points one by one, in
//! loops that the compiler turns into vectors, or for vectors of points where a loop has to
//! say what is stored ([`streaming`](crate::streaming)); the operations are the same.

use bytemuck::Pod;
use pulp::Simd;
use std::ops::{Add, Mul, Neg, Sub};

/// Calls `work`, compiled for the best instruction set that this processor has.
///
/// Only what is inlined into `work` profits: it and what it calls in its loops
/// must be `#[inline(always)]`. No operation changes its result: a `mul_add` is
/// rounded once on every processor, and nothing else is ever fused.
#[inline]
pub(crate) fn vectorised<R>(work: impl FnMut() -> R) -> R {
    pulp::Arch::new().dispatch(Work(work))
}

/// Work that is inlined whatever its size. Where a closure that may be called again is
/// called as one that may not, the compiler puts a function in between, which is not
/// `#[inline(always)]`: a long closure stays outside of the code for the instruction set.
struct Work<F>(F);

impl<R, F: FnMut() -> R> pulp::NullaryFnOnce for Work<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}

/// What formulas compute with: a number, or a vector of numbers.
pub trait Value:
    Copy
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    /// `self * factor + sum`, rounded once.
    #[must_use]
    fn fused(self, factor: Self, sum: Self) -> Self;
}

/// `f32` or `f64`, of which an instruction set has vectors.
pub trait InVectors: Value + Pod {
    /// A vector as it lies in memory.
    type Lanes<S: Simd>: Pod;

    /// A vector to compute with.
    type Vector<S: Simd>: Value;

    /// This number in all lanes.
    fn splat<S: Simd>(self, simd: S) -> Self::Vector<S>;

    /// The vector that lies in memory as this.
    fn load<S: Simd>(simd: S, lanes: Self::Lanes<S>) -> Self::Vector<S>;

    /// What a vector is in memory.
    fn lanes<S: Simd>(vector: Self::Vector<S>) -> Self::Lanes<S>;

    /// The vectors in a row, of which each follows the last.
    fn vectors<S: Simd>(row: &[Self]) -> &[Self::Lanes<S>];

    /// The vectors in a row, of which each follows the last.
    fn vectors_mut<S: Simd>(row: &mut [Self]) -> &mut [Self::Lanes<S>];
}

/// What a point becomes, from what it was and the elements of some rows that lie where the
/// point does.
pub(crate) trait Formula<T> {
    /// `splat` makes a value of a number; `row(r)` is what row `r` has.
    fn at<V: Value>(&self, splat: impl Fn(T) -> V, so_far: V, row: impl Fn(usize) -> V) -> V;
}

/// Makes all points of `out` what `formula` gives for them and `rows`.
///
/// To be called inside [`vectorised`].
///
/// # Panics
///
/// If a row is shorter than `out`.
#[inline(always)]
pub(crate) fn fill<T: Value, const N: usize>(
    out: &mut [T],
    mut rows: [&[T]; N],
    formula: &impl Formula<T>,
) {
    // Of one length for all to see: no bound is checked in the loop. And no `map`, which
    // is not always inlined.
    let n = out.len();
    for row in &mut rows {
        *row = &row[..n];
    }
    for i in 0..n {
        out[i] = formula.at(
            #[inline(always)]
            |number| number,
            out[i],
            #[inline(always)]
            |row| rows[row][i],
        );
    }
}

/// The implementations for a type, whose vectors and their operations these are.
macro_rules! number {
    ($number:ty, $vector:ident, $lanes:ident, $vectors:ident, $vectors_mut:ident,
     $splat:ident, $add:ident, $sub:ident, $mul:ident, $neg:ident, $mul_add:ident) => {
        impl Value for $number {
            #[inline(always)]
            fn fused(self, factor: Self, sum: Self) -> Self {
                self.mul_add(factor, sum)
            }
        }

        impl InVectors for $number {
            type Lanes<S: Simd> = S::$lanes;
            type Vector<S: Simd> = $vector<S>;

            #[inline(always)]
            fn splat<S: Simd>(self, simd: S) -> $vector<S> {
                $vector(simd, simd.$splat(self))
            }

            #[inline(always)]
            fn load<S: Simd>(simd: S, lanes: S::$lanes) -> $vector<S> {
                $vector(simd, lanes)
            }

            #[inline(always)]
            fn lanes<S: Simd>(vector: $vector<S>) -> S::$lanes {
                vector.1
            }

            #[inline(always)]
            fn vectors<S: Simd>(row: &[Self]) -> &[S::$lanes] {
                S::$vectors(row).0
            }

            #[inline(always)]
            fn vectors_mut<S: Simd>(row: &mut [Self]) -> &mut [S::$lanes] {
                S::$vectors_mut(row).0
            }
        }

        /// A vector of the instruction set.
        #[derive(Clone, Copy)]
        pub struct $vector<S: Simd>(S, S::$lanes);

        impl<S: Simd> Value for $vector<S> {
            #[inline(always)]
            fn fused(self, factor: Self, sum: Self) -> Self {
                Self(self.0, self.0.$mul_add(self.1, factor.1, sum.1))
            }
        }

        impl<S: Simd> Add for $vector<S> {
            type Output = Self;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(self.0, self.0.$add(self.1, other.1))
            }
        }

        impl<S: Simd> Sub for $vector<S> {
            type Output = Self;

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self(self.0, self.0.$sub(self.1, other.1))
            }
        }

        impl<S: Simd> Mul for $vector<S> {
            type Output = Self;

            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self(self.0, self.0.$mul(self.1, other.1))
            }
        }

        impl<S: Simd> Neg for $vector<S> {
            type Output = Self;

            #[inline(always)]
            fn neg(self) -> Self {
                Self(self.0, self.0.$neg(self.1))
            }
        }
    };
}

number!(
    f32,
    VectorF32,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    add_f32s,
    sub_f32s,
    mul_f32s,
    neg_f32s,
    mul_add_f32s
);
number!(
    f64,
    VectorF64,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    add_f64s,
    sub_f64s,
    mul_f64s,
    neg_f64s,
    mul_add_f64s
);
