//! The element types of arrays.

use crate::vector::WARP;
use core::ops::{Mul, Sub};
use cuda_std::atomic::intrinsics::{
    atomic_fetch_max_relaxed_u32_device, atomic_fetch_max_relaxed_u64_device,
};
use cuda_std::{GpuFloat, warp};

/// f32 or f64.
///
/// No other type can implement it, since none implements [`GpuFloat`].
pub trait Number: GpuFloat + Sub<Output = Self> + Mul<Output = Self> {
    /// The unsigned integer of the same size.
    type Bits: Copy + Ord + Default;

    /// The bits of the magnitude.
    #[must_use]
    fn magnitude_bits(self) -> Self::Bits;

    /// The float with these bits.
    #[must_use]
    fn of_bits(bits: Self::Bits) -> Self;

    /// The `bits` of the lane whose number differs from the caller's in the bits of `mask`.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call this.
    #[must_use]
    unsafe fn from_lane(bits: Self::Bits, mask: u32) -> Self::Bits;

    /// Raises the float at `largest` to the float with these bits if that is larger. Its sign bit
    /// must be clear.
    ///
    /// # Safety
    ///
    /// `largest` is readable, writable and aligned, and whoever else accesses it does so
    /// atomically.
    unsafe fn raise(largest: *mut Self, bits: Self::Bits);
}

macro_rules! number {
    ($($number:ty: $bits:ty, $raise:ident);+) => {$(
        impl Number for $number {
            type Bits = $bits;

            #[inline(always)]
            fn magnitude_bits(self) -> $bits {
                self.to_bits() & (<$bits>::MAX >> 1)
            }

            #[inline(always)]
            fn of_bits(bits: $bits) -> Self {
                Self::from_bits(bits)
            }

            #[inline(always)]
            unsafe fn from_lane(bits: $bits, mask: u32) -> $bits {
                // SAFETY: as the caller promises.
                unsafe { warp::warp_shuffle_xor(u32::MAX, bits, mask, WARP).0 }
            }

            #[inline(always)]
            unsafe fn raise(largest: *mut Self, bits: $bits) {
                // SAFETY: as the caller promises.
                unsafe { $raise(largest.cast(), bits) };
            }
        }
    )+};
}

number!(
    f32: u32, atomic_fetch_max_relaxed_u32_device;
    f64: u64, atomic_fetch_max_relaxed_u64_device
);
