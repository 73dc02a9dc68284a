//! What arrays hold.

use core::ops::{Mul, Sub};
use cuda_std::GpuFloat;

/// f32 or f64.
///
/// No other type can implement it, since none implements [`GpuFloat`].
pub trait Number: GpuFloat + Sub<Output = Self> + Mul<Output = Self> {
    /// The bits of the magnitude, widened.
    #[must_use]
    fn magnitude_bits(self) -> u64;
}

macro_rules! number {
    ($($number:ty: $sign:expr),+) => {$(
        impl Number for $number {
            #[inline(always)]
            fn magnitude_bits(self) -> u64 {
                u64::from(self.to_bits() & !$sign)
            }
        }
    )+};
}

number!(f32: 1_u32 << 31, f64: 1_u64 << 63);
