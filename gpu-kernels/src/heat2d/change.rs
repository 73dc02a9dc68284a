//! The largest change of a sweep: how far a plate is from its steady state.
//!
//! - Threads stride over the points by the size of the grid; each keeps the largest
//!   magnitude of a difference, a warp the largest of its lanes, by five shuffles, and
//!   its first lane combines that with everybody's by an atomic maximum.
//! - What is compared is bits: those of floats that are not negative grow with their
//!   values, and those of NaN are above all. So a NaN anywhere is the result.
//! - Grid: any, of one dimension; blocks of [`CHANGE_BLOCK`] threads.
//! - Reads two elements per point and writes nothing but the maximum: the speed of
//!   reading is the limit.

use super::plate::{CHANGE_BLOCK, Real, WARP};
use crate::loops::unrolled;
use cuda_std::atomic::intrinsics::atomic_fetch_max_relaxed_u64_device as raise;
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, warp};

// gate heat2d_change_f32: registers <= 32, spills = 0, SHFL >= 5
// gate heat2d_change_f64: registers <= 32, spills = 0, SHFL >= 5

/// Declares entry points: a name, its type.
macro_rules! kernels {
    ($($name:ident: $real:ty;)+) => {$(
        #[doc = concat!("The bits of the largest magnitude of a difference of two plates in `",
            stringify!($real), "`.")]
        ///
        /// `old` and `new`: `n` elements; `largest`: one, of which the result is the
        /// greater of what it holds and the bits of the largest difference.
        ///
        /// # Safety
        ///
        /// - `old` and `new` are readable for `n` elements, which nobody writes during
        ///   the launch; `largest` is readable and writable, and whoever else accesses
        ///   it does so atomically.
        /// - Blocks of [`CHANGE_BLOCK`] threads, a grid of one dimension.
        #[kernel]
        #[launch_bounds(CHANGE_BLOCK)]
        pub unsafe fn $name(old: *const $real, new: *const $real, n: usize, largest: *mut u64) {
            // SAFETY: forwarded word for word.
            unsafe { change(old, new, n, largest) }
        }
    )+};
}

kernels! {
    heat2d_change_f32: f32;
    heat2d_change_f64: f64;
}

/// # Safety
///
/// As the entry points.
#[inline(always)]
unsafe fn change<T: Real>(old: *const T, new: *const T, n: usize, largest: *mut u64) {
    let thread = thread::thread_idx_x();
    let stride = thread::grid_dim_x() as usize * CHANGE_BLOCK as usize;
    let mut point = thread::block_idx_x() as usize * CHANGE_BLOCK as usize + thread as usize;
    let mut own = 0;
    while point < n {
        // SAFETY: a point of both plates.
        let bits = unsafe { (*new.add(point) - *old.add(point)).magnitude_bits() };
        own = own.max(bits);
        point += stride;
    }
    unrolled::<5>(
        #[inline(always)]
        |step| {
            // SAFETY: all lanes of the warp are here.
            let (other, _) = unsafe { warp::warp_shuffle_xor(u32::MAX, own, 1 << step, WARP) };
            own = own.max(other);
        },
    );
    if thread.is_multiple_of(WARP) {
        // SAFETY: as the caller promises.
        unsafe { raise(largest, own) };
    }
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Step,
            "the largest change of a sweep",
            geometry: |_, plate| {
                let blocks = plate.points().div_ceil(CHANGE_BLOCK as usize);
                let blocks = blocks.clamp(1, plate.resident_blocks.clamp(1, u32::MAX as usize));
                Ok(Geometry::linear(blocks as u32, CHANGE_BLOCK))
            },
            cost: |plate| {
                let points = plate.points() as u64;
                Cost {
                    bytes: points.saturating_mul(2 * size_of::<$real>() as u64),
                    flops: points,
                }
            },
            example: super::geometry::EXAMPLE.with_resident_blocks(8 * 132),
            unmeasured: "it looks for the end, every so many sweeps",
        }
    )+};
}

registered! {
    heat2d_change_f32: f32;
    heat2d_change_f64: f64;
}
