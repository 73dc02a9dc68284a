//! The operations and constants of f32 and f64 that the general kernels need.

use crate::loops::{Register, unrolled};
use core::ops::{Add, Mul, Neg, Sub};
use cuda_std::GpuFloat;

/// The most values in the window of [`window_of`]: 8 points and 4 on either side.
pub(super) const MAX_WINDOW: usize = 16;

/// f32 or f64. No other type can implement it, since none implements [`GpuFloat`].
pub trait Real:
    Register
    + GpuFloat
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    /// 0.
    const ZERO: Self;

    /// -2.
    const MINUS_TWO: Self;
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const MINUS_TWO: Self = -2.0;
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const MINUS_TWO: Self = -2.0;
}

/// The `len` values `value(0)`, `value(1)`, …, at most [`MAX_WINDOW`], as an array that stays in
/// registers; its other elements are 0.
#[inline(always)]
pub(super) fn window_of<T: Real>(len: usize, value: impl Fn(usize) -> T) -> [T; MAX_WINDOW] {
    let mut window = [T::ZERO; MAX_WINDOW];
    unrolled::<MAX_WINDOW>(
        #[inline(always)]
        |k| {
            if k < len {
                window[k] = value(k);
            }
        },
    );
    window
}
