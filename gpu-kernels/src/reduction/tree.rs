//! The pairwise additions of a block, and definitions that the kernels of the ladder share.

use cuda_std::prelude::*;
use cuda_std::warp;

/// The fewest threads of a block: one warp.
pub const MIN_BLOCK: u32 = WARP;

/// The most threads of a block: the limit of CUDA, and the length of the static shared arrays.
pub const MAX_BLOCK: u32 = 1024;

/// Elements that each thread of the `*_unroll4` kernels adds before the block does.
pub const UNROLL: u32 = 4;

/// Threads per warp.
pub(super) const WARP: u32 = 32;

/// All lanes of a warp.
pub(super) const ALL_LANES: u32 = u32::MAX;

/// The most additions that an element passes through on its way to the partial
/// sum of a block of `block` threads, each of which has first added
/// `per_thread` elements.
#[must_use]
pub const fn additions(block: u32, per_thread: u32) -> u32 {
    per_thread - 1 + block.ilog2()
}

/// Element types that the kernels can sum.
pub trait Addable: Copy {
    /// The value that stands for a missing element.
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

// Global memory is read once and only partial sums are written, except by the kernel with its steps
// in global memory; no step needs a generic access:
// gate reduction_global_*: LDS = 0, STS = 0, LD = 0, ST = 0
// gate reduction_shared_i32: LDG = 1, STG = 1, LD = 0, ST = 0
// gate reduction_shared_f32: LDG = 1, STG = 1, LD = 0, ST = 0
// gate reduction_shared_unroll4_*: LDG = 5, STG = 1, LD = 0, ST = 0

/// Adds up one element of `values` per thread, in place, and writes the sum to
/// `partials[blockIdx.x]`.
///
/// `exists(i)` says whether element `i` exists; a missing element is not read and adds nothing.
/// `values` may be global or shared memory.
///
/// While more than one warp has something to add, the block synchronises between steps. From 64
/// elements on, one warp adds, and only its lanes synchronise. They must, since lanes of a warp do
/// not run in lockstep since Volta. One synchronisation between two steps is enough, because within
/// a step no thread writes what another reads: a thread below `half` reads and writes its own
/// element below `half` and reads its own one from `half` on.
///
/// # Safety
///
/// - The block has one dimension and 32, 64, … or 1024 threads, all of which call
///   this.
/// - `values` is readable and writable for one element per thread of the block, except those for
///   which `exists` is false; it is true for element 0. Thread i has written element i itself, or a
///   barrier lies between the writes and this call. Nobody else accesses the elements until it
///   returns.
/// - `partials` is writable for one element per block, by nobody else.
#[inline(always)]
pub(super) unsafe fn add_up<T: Addable>(
    values: *mut T,
    exists: impl Fn(u32) -> bool,
    partials: *mut T,
) {
    let thread = thread::thread_idx_x();
    let block = thread::block_dim_x();
    let own = values.wrapping_add(thread as usize);
    // Adds the upper half of the first 2 * half elements to the lower.
    let fold = |half: u32| {
        if thread < half && exists(thread + half) {
            // SAFETY: thread + half is below 2 * half, which is at most the block's size, and
            // exists; so does `thread`, which is less. The last barrier lies between these accesses
            // and the writes of the previous step; in this step each thread writes only its own
            // element, below half.
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
