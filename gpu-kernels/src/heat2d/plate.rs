//! The constants of plates, the type of temperatures, and the formula of the stencil.

use crate::loops::Register;
use crate::words::Words;
use core::ops::{Add, Mul};
use cuda_std::{GpuFloat, warp};

/// Threads of a block along x and along y.
pub const BLOCK: u32 = 16;

/// The reach of the stencil to either side, in points.
pub const HALO: u32 = 1;

/// Points per axis that a block of the overlapping kernel writes: the distance between neighbouring
/// tiles.
pub const OVERLAP_STEP: u32 = BLOCK - 2 * HALO;

/// Points per axis of the tile with halo.
pub const HALO_TILE: u32 = BLOCK + 2 * HALO;

/// Lanes of a warp.
pub(super) const WARP: u32 = 32;

/// The type of a temperature: f32 or f64.
///
/// No other type can implement it, since none implements [`GpuFloat`].
pub trait Real: GpuFloat + Register + Words + Add<Output = Self> + Mul<Output = Self> {
    /// 0.
    const ZERO: Self;

    /// 1/4.
    const QUARTER: Self;

    /// The value of the next lower lane; the lowest lane gets its own.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call this together.
    #[must_use]
    unsafe fn lane_below(self) -> Self;

    /// The value of the next higher lane; the highest lane gets its own.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call this together.
    #[must_use]
    unsafe fn lane_above(self) -> Self;
}

macro_rules! real {
    ($($real:ty),+) => {$(
        impl Real for $real {
            const ZERO: Self = 0.0;
            const QUARTER: Self = 0.25;

            #[inline(always)]
            unsafe fn lane_below(self) -> Self {
                // SAFETY: as the caller promises; 32 is the width of a warp.
                unsafe { warp::warp_shuffle_up(u32::MAX, self, 1, WARP).0 }
            }

            #[inline(always)]
            unsafe fn lane_above(self) -> Self {
                // SAFETY: as the caller promises; 32 is the width of a warp.
                unsafe { warp::warp_shuffle_down(u32::MAX, self, 1, WARP).0 }
            }
        }
    )+};
}

real!(f32, f64);

/// The new value of a point from the old values of its neighbours.
///
/// 3 additions and 1 multiplication: 4 flops. The order is part of the
/// definition.
#[inline(always)]
pub(super) fn average<T: Real>(east: T, west: T, north: T, south: T) -> T {
    ((east + west) + (north + south)) * T::QUARTER
}

/// [`average`] of the neighbours of `center` in an array whose rows lie `pitch`
/// elements apart.
///
/// # Safety
///
/// The four neighbours are readable, and nobody writes them at the same time.
#[inline(always)]
pub(super) unsafe fn stencil(center: *const f32, pitch: u32) -> f32 {
    let pitch = pitch as usize;
    // SAFETY: these are the four neighbours.
    unsafe {
        average(
            *center.add(1),
            *center.sub(1),
            *center.add(pitch),
            *center.sub(pitch),
        )
    }
}

/// The element of point (i, j). 64-bit: a field may have more than 2³² points.
#[inline(always)]
pub(super) const fn element(i: u32, j: u32, nx: u32) -> usize {
    j as usize * nx as usize + i as usize
}

/// Whether point `p` of `n` along an axis is neither the first, nor the last, nor beyond the end.
#[inline(always)]
pub(super) const fn is_inner(p: u32, n: u32) -> bool {
    p >= 1 && p < n - 1
}
