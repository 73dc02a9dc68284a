//! What arrays hold.

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
    /// Its bits: an integer of its size.
    type Bits: Copy + Ord + Default;

    /// The bits of the magnitude.
    #[must_use]
    fn magnitude_bits(self) -> Self::Bits;

    /// The number of these bits.
    #[must_use]
    fn of_bits(bits: Self::Bits) -> Self;

    /// What a lane has whose number differs in the bits of `mask`.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call this.
    #[must_use]
    unsafe fn from_lane(bits: Self::Bits, mask: u32) -> Self::Bits;

    /// Makes the number at `largest`, whose sign is not set, that of these bits where they are
    /// more than its own.
    ///
    /// # Safety
    ///
    /// It is readable, writable and aligned, and whoever else accesses it does so atomically.
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
