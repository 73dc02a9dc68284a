//! The terms and operators of [`single_pass`](super::single_pass) and of the kernels that share its
//! tree.

pub use crate::words::{MAX_WORDS, Words};
use core::marker::PhantomData;
use cuda_std::GpuFloat;

/// Combines many values into one.
///
/// The kernel determines and documents the order in which values are combined, so an operator need
/// not be associative. But `combine(a, b)` and `combine(b, a)` must have the same bits (for floats:
/// or both be NaN), and combining a value with [`IDENTITY`](Self::IDENTITY) must not change it.
pub trait Operator {
    /// The type of the values that are combined.
    type Value: Words;

    /// The type of the result.
    type Output;

    /// The neutral value, which stands for a missing element.
    const IDENTITY: Self::Value;

    /// Combines two values.
    #[must_use]
    fn combine(a: Self::Value, b: Self::Value) -> Self::Value;

    /// The result, from the combination of all elements.
    ///
    /// Every NaN becomes the same NaN, since processors disagree about which NaN an operation
    /// gives.
    #[must_use]
    fn finish(total: Self::Value) -> Self::Output;
}

/// The sum. Integers wrap around; floats round to nearest, ties to even.
///
/// The identity of floats is -0: adding 0 would turn -0 into 0.
#[derive(Debug)]
pub struct Sum<T>(PhantomData<T>);

/// The least value; -0 is less than +0. NaN if any value is NaN.
#[derive(Debug)]
pub struct Minimum<T>(PhantomData<T>);

/// The greatest value; +0 is greater than -0. NaN if any value is NaN.
#[derive(Debug)]
pub struct Maximum<T>(PhantomData<T>);

macro_rules! integer {
    ($($type:ident),*) => {$(
        impl Operator for Sum<$type> {
            type Value = $type;
            type Output = $type;
            const IDENTITY: $type = 0;

            #[inline(always)]
            fn combine(a: $type, b: $type) -> $type {
                a.wrapping_add(b)
            }

            #[inline(always)]
            fn finish(total: $type) -> $type {
                total
            }
        }

        impl Operator for Minimum<$type> {
            type Value = $type;
            type Output = $type;
            const IDENTITY: $type = $type::MAX;

            #[inline(always)]
            fn combine(a: $type, b: $type) -> $type {
                a.min(b)
            }

            #[inline(always)]
            fn finish(total: $type) -> $type {
                total
            }
        }

        impl Operator for Maximum<$type> {
            type Value = $type;
            type Output = $type;
            const IDENTITY: $type = $type::MIN;

            #[inline(always)]
            fn combine(a: $type, b: $type) -> $type {
                a.max(b)
            }

            #[inline(always)]
            fn finish(total: $type) -> $type {
                total
            }
        }
    )*};
}

integer!(i32, u32, i64, u64);

macro_rules! float {
    ($($type:ident, $one_nan:ident);*) => {$(
        #[inline(always)]
        fn $one_nan(total: $type) -> $type {
            if total.is_nan() { $type::NAN } else { total }
        }

        impl Operator for Sum<$type> {
            type Value = $type;
            type Output = $type;
            const IDENTITY: $type = -0.0;

            #[inline(always)]
            fn combine(a: $type, b: $type) -> $type {
                a + b
            }

            #[inline(always)]
            fn finish(total: $type) -> $type {
                $one_nan(total)
            }
        }

        impl Operator for Minimum<$type> {
            type Value = $type;
            type Output = $type;
            const IDENTITY: $type = $type::INFINITY;

            #[inline(always)]
            fn combine(a: $type, b: $type) -> $type {
                GpuFloat::minimum(a, b)
            }

            #[inline(always)]
            fn finish(total: $type) -> $type {
                $one_nan(total)
            }
        }

        impl Operator for Maximum<$type> {
            type Value = $type;
            type Output = $type;
            const IDENTITY: $type = $type::NEG_INFINITY;

            #[inline(always)]
            fn combine(a: $type, b: $type) -> $type {
                GpuFloat::maximum(a, b)
            }

            #[inline(always)]
            fn finish(total: $type) -> $type {
                $one_nan(total)
            }
        }
    )*};
}

float!(f32, one_nan_f32; f64, one_nan_f64);

/// Maps the elements of `ARRAYS` arrays to the values that the tree combines.
///
/// A lane of the tree begins [`EMPTY`](Self::EMPTY) and [takes](Self::take) the elements of its
/// chunk one after another. The operator then combines its [`value`](Self::value) with those of
/// other lanes.
pub trait Terms<const ARRAYS: usize>: Copy {
    /// The element type of the arrays.
    type Element: Words;

    /// The operator that combines lanes.
    type Operator: Operator;

    /// The state of a lane.
    type Lane: Copy;

    /// The lane before it has taken an element.
    const EMPTY: Self::Lane;

    /// The lane after it has taken the elements of tile number `tile` of its chunk.
    #[must_use]
    fn take(self, lane: Self::Lane, elements: [Self::Element; ARRAYS], tile: u32) -> Self::Lane;

    /// The value that the lane contributes to the tree. `index` maps a tile to the index of the
    /// lane's element in the whole array.
    #[must_use]
    fn value(
        lane: Self::Lane,
        index: impl FnOnce(u32) -> u64,
    ) -> <Self::Operator as Operator>::Value;
}

/// The elements themselves.
#[derive(Debug)]
pub struct Themselves<O>(PhantomData<O>);

impl<O> Themselves<O> {
    /// The only value of this type.
    pub const NEW: Self = Self(PhantomData);
}

impl<O> Clone for Themselves<O> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Themselves<O> {}

impl<O: Operator> Terms<1> for Themselves<O> {
    type Element = O::Value;
    type Operator = O;
    type Lane = O::Value;
    const EMPTY: O::Value = O::IDENTITY;

    #[inline(always)]
    fn take(self, lane: O::Value, [element]: [O::Value; 1], _: u32) -> O::Value {
        O::combine(lane, element)
    }

    #[inline(always)]
    fn value(lane: O::Value, _: impl FnOnce(u32) -> u64) -> O::Value {
        lane
    }
}
