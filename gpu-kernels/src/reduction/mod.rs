//! Parallel sum: the textbook ladder of four steps, for `i32` and `f32`.
//!
//! A block adds its elements in pairs, halving their number at each step, and
//! writes one partial sum; the partial sums are added on the host. With a block
//! of 8 threads, elements written as their indices:
//!
//! ```text
//! 0      1      2      3      4   5   6   7
//! 04     15     26     37                       half = 4
//! 0426   1537                                   half = 2
//! 04261537                                      half = 1
//! ```
//!
//! Threads that add are always neighbours, so whole warps drop out, and what
//! they read and write is contiguous (Harris, "Optimizing parallel reduction in
//! CUDA", 2007: sequential addressing).
//!
//! # The teaching kernels
//!
//! | kernel | where the steps happen | elements per block |
//! |---|---|---|
//! | [`global`] | in the input itself, in global memory | `block` |
//! | [`shared`] | in static shared memory | `block` |
//! | [`shared_unroll4`] | the same, after each thread has added 4 elements | `4 * block` |
//! | [`shared_unroll4_dynamic`] | the same in dynamic shared memory | `4 * block` |
//!
//! Each exists for both types, with the type as a suffix of its name. All take
//! blocks of 32, 64, … 1024 threads and any number of elements from 1.
//!
//! # What is added, and in which order
//!
//! `i32` wraps around on overflow, so that every order gives the same sum. For
//! `f32` the order is the one drawn above, preceded by `((a + b) + c) + d` over
//! the four elements of a thread; it depends on the number of elements and on
//! the block, on nothing else. Each element passes through at most
//! [`additions`] additions. NaN and infinities go through as IEEE 754 says. A
//! partial sum of zeros alone may have either sign.

use cuda_std::prelude::*;
use cuda_std::warp;

pub mod arg_extremum;
pub mod dot;
#[cfg(not(target_arch = "nvptx64"))]
pub mod geometry;
pub mod global;
pub mod moment;
pub mod operator;
pub mod partition;
pub mod shared;
pub mod shared_unroll4;
pub mod shared_unroll4_dynamic;
pub mod single_pass;

/// The family's kernels.
///
/// Where integers with and without a sign have the same bits, one entry point serves both
/// types and has the type of its arguments.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "reduction",
    computes: "sums, extrema and where they are, moments and dot products",
    kernels: crate::entries![
        global::reduction_global_i32,
        global::reduction_global_f32,
        shared::reduction_shared_i32,
        shared::reduction_shared_f32,
        shared_unroll4::reduction_shared_unroll4_i32,
        shared_unroll4::reduction_shared_unroll4_f32,
        shared_unroll4_dynamic::reduction_shared_unroll4_dynamic_i32,
        shared_unroll4_dynamic::reduction_shared_unroll4_dynamic_f32,
        single_pass::reduction_single_pass_sum_i32,
        single_pass::reduction_single_pass_sum_i64,
        single_pass::reduction_single_pass_sum_f32,
        single_pass::reduction_single_pass_sum_f64,
        single_pass::reduction_single_pass_min_i32,
        single_pass::reduction_single_pass_min_u32,
        single_pass::reduction_single_pass_min_i64,
        single_pass::reduction_single_pass_min_u64,
        single_pass::reduction_single_pass_min_f32,
        single_pass::reduction_single_pass_min_f64,
        single_pass::reduction_single_pass_max_i32,
        single_pass::reduction_single_pass_max_u32,
        single_pass::reduction_single_pass_max_i64,
        single_pass::reduction_single_pass_max_u64,
        single_pass::reduction_single_pass_max_f32,
        single_pass::reduction_single_pass_max_f64,
        moment::reduction_moment_i32,
        moment::reduction_moment_u32,
        moment::reduction_moment_i64,
        moment::reduction_moment_u64,
        moment::reduction_moment_f32,
        moment::reduction_moment_f64,
        dot::reduction_dot_i32,
        dot::reduction_dot_u32,
        dot::reduction_dot_i64,
        dot::reduction_dot_f32,
        dot::reduction_dot_f64,
        arg_extremum::reduction_arg_extremum_u32,
        arg_extremum::reduction_arg_extremum_u64,
        arg_extremum::reduction_arg_extremum_f32,
        arg_extremum::reduction_arg_extremum_f64,
    ],
};

/// The fewest threads of a block: one warp.
pub const MIN_BLOCK: u32 = WARP;

/// The most threads of a block: what CUDA allows, and the elements that the
/// static shared arrays hold.
pub const MAX_BLOCK: u32 = 1024;

/// Elements that each thread of the `*_unroll4` kernels adds before the block does.
pub const UNROLL: u32 = 4;

/// Threads per warp.
const WARP: u32 = 32;

/// All lanes of a warp.
const ALL_LANES: u32 = u32::MAX;

/// The most additions that an element passes through on its way to the partial
/// sum of a block of `block` threads, each of which has first added
/// `per_thread` elements.
#[must_use]
pub const fn additions(block: u32, per_thread: u32) -> u32 {
    per_thread - 1 + block.ilog2()
}

/// What the kernels can sum.
pub trait Addable: Copy {
    /// What stands for an element that is not there.
    const ZERO: Self;

    /// The sum of two.
    #[must_use]
    fn add(self, other: Self) -> Self;
}

/// Wraps around on overflow.
impl Addable for i32 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

/// Rounds to nearest, ties to even.
impl Addable for f32 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self + other
    }
}

// Global memory is read once and only partial sums are written, except where the
// steps happen in global memory; no step costs a generic access:
// gate reduction_global_*: LDS = 0, STS = 0, LD = 0, ST = 0
// gate reduction_shared_i32: LDG = 1, STG = 1, LD = 0, ST = 0
// gate reduction_shared_f32: LDG = 1, STG = 1, LD = 0, ST = 0
// gate reduction_shared_unroll4_*: LDG = 5, STG = 1, LD = 0, ST = 0

/// Adds up one element of `values` per thread, in place, and writes the sum to
/// `partials[blockIdx.x]`.
///
/// `exists(i)` says whether there is an element `i`; what is not there is not
/// read and adds nothing. `values` may be global or shared memory.
///
/// While more than a warp has something to add, the block waits between steps.
/// From 64 elements on that is one warp, whose lanes wait for each other alone.
/// They must wait: since Volta lanes of a warp do not run in lockstep. One wait
/// between two steps is enough, because within a step nobody writes what another
/// reads: threads below `half` read and write below `half` and read, each its
/// own, from there up.
///
/// # Safety
///
/// - The block has one dimension and 32, 64, … or 1024 threads, all of which call
///   this.
/// - `values` is readable and writable for one element per thread of the block,
///   except those for which `exists` is false, which it is not for element 0.
///   Thread i has written element i itself, or a barrier stands between the
///   writes and this call. Nobody else accesses the elements until it returns.
/// - `partials` is writable for one element per block, by nobody else.
#[inline(always)]
unsafe fn add_up<T: Addable>(values: *mut T, exists: impl Fn(u32) -> bool, partials: *mut T) {
    let thread = thread::thread_idx_x();
    let block = thread::block_dim_x();
    let own = values.wrapping_add(thread as usize);
    // Adds the upper half of the first 2 * half elements to the lower.
    let fold = |half: u32| {
        if thread < half && exists(thread + half) {
            // SAFETY: thread + half is below 2 * half, which is at most the
            // block's size, and exists; so does `thread`, which is less. The
            // last barrier stands between these accesses and the writes of the
            // step before; this step writes only below half, each thread its own.
            unsafe { *own = (*own).add(*own.add(half as usize)) };
        }
    };

    for half in [512, 256, 128, 64] {
        if half < block {
            fold(half);
            thread::sync_threads();
        }
    }
    // equivalent mutant (guard): the lanes of other warps are not below any half
    if thread < WARP {
        if WARP < block {
            fold(WARP);
        }
        for half in [16, 8, 4, 2, 1] {
            // SAFETY: the branch is taken by whole warps, so every lane is here.
            unsafe { warp::sync_warp(ALL_LANES) };
            fold(half);
        }
    }
    if thread == 0 {
        // SAFETY: the sum is this thread's own element, which it wrote last;
        // there is one partial per block.
        unsafe { *partials.add(thread::block_idx_x() as usize) = *own };
    }
}
