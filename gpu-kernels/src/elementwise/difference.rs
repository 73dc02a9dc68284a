//! The largest difference of two arrays, by which an iteration tests convergence.
//!
//! - Threads stride over the elements by the size of the grid, and each keeps the largest magnitude
//!   of a difference. A warp finds the largest of its lanes by five shuffles, and its first lane
//!   raises the result to that by an atomic maximum.
//! - Bits are compared: those of floats that are not negative grow with their values, and those of
//!   NaN are above all others. So any NaN becomes the result.
//! - Grid: any one-dimensional one; blocks of [`BLOCK`] threads.
//! - Reads two elements per thread and iteration and writes only the maximum: the speed of reading
//!   is the limit.

use super::geometry::BLOCK;
use super::number::Number;
use crate::loops::unrolled;
use crate::vector::WARP;
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

// gate elementwise_difference_f32: registers <= 32, spills = 0, SHFL >= 5
// gate elementwise_difference_f64: registers <= 32, spills = 0, SHFL >= 5

/// Declares entry points: name, element type.
macro_rules! kernels {
    ($($name:ident: $real:ty;)+) => {$(
        #[doc = concat!("The largest magnitude of a difference of two arrays in `",
            stringify!($real), "`.")]
        ///
        /// `x` and `y`: `n` elements; `largest`: one element with its sign bit clear, which becomes
        /// the larger of itself and the largest difference. NaN counts as larger than all numbers.
        ///
        /// # Safety
        ///
        /// - `x` and `y` are readable for `n` elements, which nobody writes during
        ///   the launch; `largest` is readable and writable, and whoever else accesses
        ///   it does so atomically.
        /// - Blocks of [`BLOCK`] threads, a grid of one dimension.
        #[kernel]
        #[launch_bounds(BLOCK)]
        pub unsafe fn $name(x: *const $real, y: *const $real, n: usize, largest: *mut $real) {
            // SAFETY: forwarded word for word.
            unsafe { difference(x, y, n, largest) }
        }
    )+};
}

kernels! {
    elementwise_difference_f32: f32;
    elementwise_difference_f64: f64;
}

/// # Safety
///
/// As the entry points.
#[inline(always)]
unsafe fn difference<T: Number>(x: *const T, y: *const T, n: usize, largest: *mut T) {
    let thread = thread::thread_idx_x();
    // equivalent mutant (axis): a shorter stride, so that elements are read twice
    // equivalent mutant (arithmetic): a shorter stride, so that elements are read twice
    // equivalent mutant (width: made `BLOCK - 1`): a shorter stride, as above
    let stride = thread::grid_dim_x() as usize * BLOCK as usize;
    let mut at = thread::block_idx_x() as usize * BLOCK as usize + thread as usize;
    let mut own = T::Bits::default();
    while at < n {
        // SAFETY: `at` is below n.
        let bits = unsafe { (*y.add(at) - *x.add(at)).magnitude_bits() };
        own = own.max(bits);
        at += stride;
    }
    unrolled::<5>(
        #[inline(always)]
        |step| {
            // SAFETY: all lanes of the warp are here.
            own = own.max(unsafe { T::from_lane(own, 1 << step) });
        },
    );
    // equivalent mutant (guard): every lane has the warp's largest, so the others raise to it again
    if thread.is_multiple_of(WARP) {
        // SAFETY: as the caller promises.
        unsafe { T::raise(largest, own) };
    }
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Step,
            "the largest difference of two arrays",
            geometry: |_, line| {
                let blocks = line.points().div_ceil(BLOCK as usize);
                let blocks = blocks.clamp(1, line.resident_blocks.clamp(1, u32::MAX as usize));
                Ok(Geometry::linear(blocks as u32, BLOCK))
            },
            cost: |line| {
                let elements = line.points() as u64;
                Cost {
                    bytes: elements.saturating_mul(2 * size_of::<$real>() as u64),
                    flops: elements,
                }
            },
            example: super::geometry::EXAMPLE.with_resident_blocks(8 * 132),
        }
    )+};
}

registered! {
    elementwise_difference_f32: f32;
    elementwise_difference_f64: f64;
}
