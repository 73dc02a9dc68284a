//! What a reduction combines, and how: the operators of [`single_pass`](super::single_pass).

use core::marker::PhantomData;
use cuda_std::GpuFloat;

/// The most 32-bit words that a value has which a reduction works with.
pub const MAX_WORDS: usize = 2;

/// A value as 32-bit words: what registers, shuffles and memory transport.
pub trait Words: Copy {
    /// How many words it has: 1 or 2.
    const COUNT: usize;

    /// The words, the least significant first; behind them zeros.
    #[must_use]
    fn to_words(self) -> [u32; MAX_WORDS];

    /// The value with these words; what is behind them is not looked at.
    #[must_use]
    fn from_words(words: [u32; MAX_WORDS]) -> Self;
}

impl Words for i32 {
    const COUNT: usize = 1;

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        [self as u32, 0]
    }

    #[inline(always)]
    fn from_words([word, _]: [u32; MAX_WORDS]) -> Self {
        word as Self
    }
}

impl Words for f32 {
    const COUNT: usize = 1;

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        [self.to_bits(), 0]
    }

    #[inline(always)]
    fn from_words([word, _]: [u32; MAX_WORDS]) -> Self {
        Self::from_bits(word)
    }
}

impl Words for f64 {
    const COUNT: usize = 2;

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        let bits = self.to_bits();
        [bits as u32, (bits >> 32) as u32]
    }

    #[inline(always)]
    fn from_words([low, high]: [u32; MAX_WORDS]) -> Self {
        Self::from_bits(u64::from(high) << 32 | u64::from(low))
    }
}

/// What makes one value of many.
///
/// The order in which values are combined is the kernel's, and is documented. So an
/// operator need not be associative; but `combine(a, b)` and `combine(b, a)` have
/// the same bits (for floats: or both are NaN), and combining with
/// [`IDENTITY`](Self::IDENTITY) changes none.
pub trait Operator {
    /// What is reduced.
    type Element: Words;

    /// What stands for an element that is not there.
    const IDENTITY: Self::Element;

    /// One of two.
    #[must_use]
    fn combine(a: Self::Element, b: Self::Element) -> Self::Element;

    /// The result, of what all elements were combined to.
    ///
    /// Of the many NaN it makes one, since processors disagree about which NaN
    /// an operation gives.
    #[must_use]
    fn finish(total: Self::Element) -> Self::Element;
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
            type Element = $type;
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
            type Element = $type;
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
            type Element = $type;
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

integer!(i32);

macro_rules! float {
    ($($type:ident, $one_nan:ident);*) => {$(
        #[inline(always)]
        fn $one_nan(total: $type) -> $type {
            if total.is_nan() { $type::NAN } else { total }
        }

        impl Operator for Sum<$type> {
            type Element = $type;
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
            type Element = $type;
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
            type Element = $type;
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
