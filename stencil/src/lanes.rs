//! Arithmetic on the points of one access of a thread.

use crate::value::{Real, Value};
use core::ops::{Add, Div, Mul, Neg, Sub};

/// Writes out a block for each number `K` below a constant of at most 8, without a loop. `K` is a
/// constant in the block, and blocks for larger numbers are not compiled.
macro_rules! each {
    ($k:ident < $count:expr, $body:block) => {
        crate::lanes::each!(@ $k, $count, $body; 0 1 2 3 4 5 6 7)
    };
    (@ $k:ident, $count:expr, $body:block; $($n:literal)+) => {$(
        {
            const $k: usize = $n;
            if const { $k < $count } $body
        }
    )+};
}
pub(crate) use each;

/// `P` consecutive points of a row: 1, 2 or 4.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<T, const P: usize>(pub(crate) [T; P]);

impl<T: Real, const P: usize> Lanes<T, P> {
    #[inline(always)]
    pub(crate) fn splat(number: T) -> Self {
        Self([number; P])
    }

    /// The points `f(0)`, `f(1)`, …
    #[inline(always)]
    pub(crate) fn of(f: impl Fn(usize) -> T) -> Self {
        let mut all = [T::ZERO; P];
        all[0] = f(0);
        if const { P > 1 } {
            all[1 % P] = f(1);
        }
        if const { P > 2 } {
            all[2 % P] = f(2);
        }
        if const { P > 3 } {
            all[3 % P] = f(3);
        }
        Self(all)
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident;)+) => {$(
        impl<T: Real, const P: usize> $trait for Lanes<T, P> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self::of(#[inline(always)] |e| $trait::<T>::$method(self.0[e], other.0[e]))
            }
        }

        impl<T: Real, const P: usize> $trait<T> for Lanes<T, P> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: T) -> Self {
                Self::of(#[inline(always)] |e| $trait::<T>::$method(self.0[e], other))
            }
        }
    )+};
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl<T: Real, const P: usize> Neg for Lanes<T, P> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::of(
            #[inline(always)]
            |e| -self.0[e],
        )
    }
}

impl<T: Real, const P: usize> Value<T> for Lanes<T, P> {
    #[inline(always)]
    fn fused(self, factor: Self, sum: Self) -> Self {
        Self::of(
            #[inline(always)]
            |e| self.0[e].fused(factor.0[e], sum.0[e]),
        )
    }

    #[inline(always)]
    fn root(self) -> Self {
        Self::of(
            #[inline(always)]
            |e| self.0[e].root(),
        )
    }

    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        Self::of(
            #[inline(always)]
            |e| self.0[e].smaller(other.0[e]),
        )
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        Self::of(
            #[inline(always)]
            |e| self.0[e].larger(other.0[e]),
        )
    }
}
