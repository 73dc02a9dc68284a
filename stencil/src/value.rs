//! The values that updates compute with: numbers, or several numbers at once.

use core::ops::{Add, Div, Mul, Neg, Sub};
use cuda_std::GpuFloat;
use cuda_std::cache::{load_readonly, store_streaming};

/// A value of an update: one number, or several numbers at once.
///
/// Each operation is rounded once, and only [`fused`] is a fused operation. So a number has the
/// same bits alone and among others.
///
/// [`fused`]: Self::fused
pub trait Value<T>:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Add<T, Output = Self>
    + Sub<T, Output = Self>
    + Mul<T, Output = Self>
    + Div<T, Output = Self>
{
    /// `self * factor + sum`, rounded once.
    #[must_use]
    fn fused(self, factor: Self, sum: Self) -> Self;

    /// The square root, correctly rounded; NaN for negative numbers.
    #[must_use]
    fn root(self) -> Self;

    /// The smaller of the two; `other` if either is NaN, or if they are equal.
    #[must_use]
    fn smaller(self, other: Self) -> Self;

    /// The larger of the two; `other` if either is NaN, or if they are equal.
    #[must_use]
    fn larger(self, other: Self) -> Self;
}

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` or `f64`. No other type can implement it.
pub trait Real:
    Value<Self> + PartialOrd + From<f32> + Into<f64> + Send + Sync + private::Sealed + 'static
{
    /// 0.
    const ZERO: Self;

    /// Loads `P` consecutive numbers from memory that nobody writes: one vector by one access of 16
    /// bytes, or a single number.
    ///
    /// # Safety
    ///
    /// `from` is readable for `P` numbers, in global memory that nobody writes during the launch,
    /// and aligned to 16 bytes if `P` is more than 1. `P` is 1 or the length of a vector.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    unsafe fn load<const P: usize>(from: *const Self) -> [Self; P] {
        // SAFETY: forwarded word for word.
        unsafe { Self::load_by::<P, true>(from) }
    }

    /// Like [`load`](Self::load), from memory that this thread alone writes.
    ///
    /// # Safety
    ///
    /// As for [`load`](Self::load), but this thread may write the numbers.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    unsafe fn load_own<const P: usize>(from: *const Self) -> [Self; P] {
        // SAFETY: forwarded word for word.
        unsafe { Self::load_by::<P, false>(from) }
    }

    /// [`load`](Self::load) if `READONLY`, else [`load_own`](Self::load_own).
    ///
    /// # Safety
    ///
    /// As for [`load`](Self::load) if `READONLY`, else as for [`load_own`](Self::load_own).
    #[doc(hidden)]
    #[must_use]
    unsafe fn load_by<const P: usize, const READONLY: bool>(from: *const Self) -> [Self; P];

    /// Writes `P` consecutive numbers that are not read again soon, by a streaming store.
    ///
    /// # Safety
    ///
    /// `to` is writable for `P` numbers, in global memory, and aligned as [`load`](Self::load)
    /// says.
    #[doc(hidden)]
    unsafe fn store<const P: usize>(to: *mut Self, values: [Self; P]);
}

/// 16 bytes of f32.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Vector4(f32, f32, f32, f32);

/// 16 bytes of f64.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Vector2(f64, f64);

/// The value at an address in global memory. `READONLY`: nobody writes it during the launch.
///
/// # Safety
///
/// As [`load_readonly`]; unless `READONLY`, this thread may write the value.
#[inline(always)]
unsafe fn read<V: Copy, const READONLY: bool>(from: *const V) -> V {
    // SAFETY: as the caller promises.
    unsafe {
        // equivalent mutant (guard): both loads return the stored value; tests/wave3d.rs checks in the
        // PTX which of them is used
        if READONLY {
            load_readonly(from)
        } else {
            from.read()
        }
    }
}

macro_rules! value {
    ($real:ident) => {
        impl Value<Self> for $real {
            #[inline(always)]
            fn fused(self, factor: Self, sum: Self) -> Self {
                GpuFloat::mul_add(self, factor, sum)
            }

            #[inline(always)]
            fn root(self) -> Self {
                GpuFloat::sqrt(self)
            }

            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                if self < other { self } else { other }
            }

            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                if self > other { self } else { other }
            }
        }
    };
}

value!(f32);
value!(f64);

impl Real for f32 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    unsafe fn load_by<const P: usize, const READONLY: bool>(from: *const Self) -> [Self; P] {
        let mut values = [0.0; P];
        // SAFETY: as the caller promises.
        unsafe {
            if P == 4 {
                let all: Vector4 = read::<_, READONLY>(from.cast());
                values[0] = all.0;
                values[1 % P] = all.1;
                values[2 % P] = all.2;
                values[3 % P] = all.3;
            } else {
                values[0] = read::<_, READONLY>(from);
            }
        }
        values
    }

    #[inline(always)]
    unsafe fn store<const P: usize>(to: *mut Self, values: [Self; P]) {
        // SAFETY: as the caller promises.
        unsafe {
            if P == 4 {
                let all = Vector4(values[0], values[1 % P], values[2 % P], values[3 % P]);
                store_streaming(to.cast(), all);
            } else {
                store_streaming(to, values[0]);
            }
        }
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    unsafe fn load_by<const P: usize, const READONLY: bool>(from: *const Self) -> [Self; P] {
        let mut values = [0.0; P];
        // SAFETY: as the caller promises.
        unsafe {
            if P == 2 {
                let all: Vector2 = read::<_, READONLY>(from.cast());
                values[0] = all.0;
                values[1 % P] = all.1;
            } else {
                values[0] = read::<_, READONLY>(from);
            }
        }
        values
    }

    #[inline(always)]
    unsafe fn store<const P: usize>(to: *mut Self, values: [Self; P]) {
        // SAFETY: as the caller promises.
        unsafe {
            if P == 2 {
                store_streaming(to.cast(), Vector2(values[0], values[1 % P]));
            } else {
                store_streaming(to, values[0]);
            }
        }
    }
}
