//! What a reduction combines, and how: the terms and the operators of
//! [`single_pass`](super::single_pass) and of the kernels that share its tree.

pub use crate::words::{MAX_WORDS, Words};
use core::marker::PhantomData;
use cuda_std::GpuFloat;

/// What makes one value of many.
///
/// The order in which values are combined is the kernel's, and is documented. So an
/// operator need not be associative; but `combine(a, b)` and `combine(b, a)` have
/// the same bits (for floats: or both are NaN), and combining with
/// [`IDENTITY`](Self::IDENTITY) changes none.
pub trait Operator {
    /// What is combined.
    type Value: Words;

    /// What it becomes in the end.
    type Output;

    /// What stands for an element that is not there.
    const IDENTITY: Self::Value;

    /// One of two.
    #[must_use]
    fn combine(a: Self::Value, b: Self::Value) -> Self::Value;

    /// The result, of what all elements were combined to.
    ///
    /// Of the many NaN it makes one, since processors disagree about which NaN
    /// an operation gives.
    #[must_use]
    fn finish(total: Self::Value) -> Self::Output;
}

/// The sum. Integers wrap around; floats round to nearest, ties to even.
///
/// Nothing is -0 for floats and not 0, which -0 would be lost in.
#[derive(Debug)]
pub struct Sum<T>(PhantomData<T>);

/// The least value. Of zeros of both signs that is -0; NaN if there is one.
#[derive(Debug)]
pub struct Minimum<T>(PhantomData<T>);

/// The greatest value. Of zeros of both signs that is +0; NaN if there is one.
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

/// What the elements of `ARRAYS` arrays become on their way into the tree.
///
/// A lane of the tree begins [`EMPTY`](Self::EMPTY) and [takes](Self::take) the
/// elements of its chunk one after the other; what came of it is the
/// [`value`](Self::value) that the operator combines with other lanes'.
pub trait Terms<const ARRAYS: usize>: Copy {
    /// Of the arrays.
    type Element: Words;

    /// Combines lanes.
    type Operator: Operator;

    /// What a lane holds.
    type Lane: Copy;

    /// A lane that has taken no element.
    const EMPTY: Self::Lane;

    /// The lane, and the elements of tile number `tile` of its chunk.
    #[must_use]
    fn take(self, lane: Self::Lane, elements: [Self::Element; ARRAYS], tile: u32) -> Self::Lane;

    /// What the lane gives to the tree. `index` is that of the lane's element of a
    /// given tile, in the whole array.
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
    /// There is but one.
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
