//! What the general kernels need of f32 and f64: arithmetic, and the table of each.

use super::table::TABLE_LEN;
use crate::loops::{Register, unrolled};
use core::ops::{Add, Mul, Neg, Sub};
use cuda_std::{GpuFloat, address_space, externally_visible};

/// The most values that [`window_of`] holds: 8 points and 4 on either side.
pub(super) const MAX_WINDOW: usize = 16;

/// Weights over powers of the spacing, [`TABLE_LEN`] elements for each axis, for f32.
///
/// Set by the host before a launch.
#[externally_visible]
#[address_space(constant)]
pub static mut DERIVATIVE3D_GENERAL_F32: [f32; 3 * TABLE_LEN] = [0.0; 3 * TABLE_LEN];

/// Weights over powers of the spacing, [`TABLE_LEN`] elements for each axis, for f64.
///
/// Set by the host before a launch.
#[externally_visible]
#[address_space(constant)]
pub static mut DERIVATIVE3D_GENERAL_F64: [f64; 3 * TABLE_LEN] = [0.0; 3 * TABLE_LEN];

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

    /// An element of this type's table.
    ///
    /// # Safety
    ///
    /// `index < 3 * TABLE_LEN`; the host writes the table only between launches.
    #[must_use]
    unsafe fn table(index: usize) -> Self;
}

/// The implementation for a type, with its table.
macro_rules! real {
    ($real:ty, $table:ident) => {
        impl Real for $real {
            const ZERO: Self = 0.0;
            const MINUS_TWO: Self = -2.0;

            #[inline(always)]
            unsafe fn table(index: usize) -> Self {
                // SAFETY: the caller's promise. By pointer: the index is in range,
                // and no check of it stands in a kernel.
                unsafe { *(&raw const $table).cast::<$real>().add(index) }
            }
        }
    };
}

real!(f32, DERIVATIVE3D_GENERAL_F32);
real!(f64, DERIVATIVE3D_GENERAL_F64);

/// `value(0)`, `value(1)`, … of `len` values, at most [`MAX_WINDOW`], as an array that
/// stays in registers; the rest of it is 0.
#[inline(always)]
pub(super) fn window_of<T: Real>(len: usize, value: impl Fn(usize) -> T) -> [T; MAX_WINDOW] {
    let mut window = [T::ZERO; MAX_WINDOW];
    unrolled::<MAX_WINDOW>(|k| {
        if k < len {
            window[k] = value(k);
        }
    });
    window
}
