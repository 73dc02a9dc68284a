//! Asynchronous copies from global to shared memory (`cp.async`), which run
//! while the thread continues.
//!
//! Each thread starts copies ([`cp_async_ca`], [`cp_async_cg`]), commits the
//! copies it started since its last commit as a group
//! ([`cp_async_commit_group`]), and later waits until at most `N` groups are
//! pending ([`cp_async_wait_group`]). A thread waits for its own copies only:
//! before it reads what other threads copied, they must wait and then reach a
//! [`sync_threads`](crate::thread::sync_threads) with it.
//!
//! The instructions need compute capability 8.0. On older targets a copy is
//! made at once and waiting does nothing, so the same kernel runs there.
//!
//! ```
//! use cuda_std::async_copy::*;
//! use cuda_std::prelude::*;
//! use cuda_std::shared_array;
//!
//! /// Each block sums its 64 elements of `input` in reverse, to no purpose but
//! /// to show the order of calls.
//! ///
//! /// # Safety
//! ///
//! /// Blocks of 64 threads; `input` and `output` have one element per thread.
//! #[kernel]
//! pub unsafe fn reverse(input: *const f32, output: *mut f32) {
//!     let tile = shared_array![f32; 64];
//!     let (i, global) = (thread::thread_idx_x() as usize, thread::index_1d() as usize);
//!     // SAFETY: in bounds, aligned, shared from global memory.
//!     unsafe { cp_async_ca(tile.add(i), input.add(global)) };
//!     cp_async_commit_group();
//!     // ... work that does not need the tile ...
//!     cp_async_wait_group::<0>();
//!     thread::sync_threads();
//!     // SAFETY: all copies have been waited for.
//!     unsafe { *output.add(global) = *tile.add(63 - i) };
//! }
//! ```

#[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
use crate::sys;
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
use core::arch::asm;
#[cfg(not(target_arch = "nvptx64"))]
use cuda_emulator::intrinsics as emulator;

/// Starts copying one `T` from global to shared memory through the L1 and L2
/// caches (`cp.async.ca`).
///
/// `T` has 4, 8 or 16 bytes; other sizes do not compile:
///
/// ```compile_fail
/// let (from, mut to) = ([0.0_f32; 3], [0.0_f32; 3]);
/// unsafe { cuda_std::async_copy::cp_async_ca(&mut to, &from) };
/// ```
///
/// # Safety
///
/// `dst` is in shared memory and valid for writes, `src` in global memory and
/// valid for reads, until the copy has been waited for; both are aligned to the
/// size of `T`. Until then nobody reads `dst`, and nobody writes `dst` or
/// `src`.
#[inline(always)]
#[track_caller]
pub unsafe fn cp_async_ca<T>(dst: *mut T, src: *const T) {
    const {
        assert!(
            matches!(size_of::<T>(), 4 | 8 | 16),
            "cp_async_ca copies 4, 8 or 16 bytes"
        );
    }
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    // SAFETY: as the caller promises.
    unsafe {
        match size_of::<T>() {
            4 => sys::cp_async_ca_4(dst.cast(), src.cast()),
            8 => sys::cp_async_ca_8(dst.cast(), src.cast()),
            _ => sys::cp_async_ca_16(dst.cast(), src.cast()),
        }
    }
    #[cfg(all(target_arch = "nvptx64", not(target_feature = "sm_80")))]
    // SAFETY: as the caller promises.
    unsafe {
        copy_now(dst, src);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: as the caller promises.
    unsafe {
        emulator::cp_async(dst.cast(), src.cast(), size_of::<T>());
    }
}

/// Starts copying one `T` from global to shared memory through the L2 cache
/// only (`cp.async.cg`): for data that is used once.
///
/// `T` has 16 bytes; other sizes do not compile:
///
/// ```compile_fail
/// let (from, mut to) = (0.0_f64, 0.0_f64);
/// unsafe { cuda_std::async_copy::cp_async_cg(&mut to, &from) };
/// ```
///
/// # Safety
///
/// As for [`cp_async_ca`].
#[inline(always)]
#[track_caller]
pub unsafe fn cp_async_cg<T>(dst: *mut T, src: *const T) {
    const {
        assert!(size_of::<T>() == 16, "cp_async_cg copies 16 bytes");
    }
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    // SAFETY: as the caller promises.
    unsafe {
        sys::cp_async_cg_16(dst.cast(), src.cast());
    }
    #[cfg(all(target_arch = "nvptx64", not(target_feature = "sm_80")))]
    // SAFETY: as the caller promises.
    unsafe {
        copy_now(dst, src);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: as the caller promises.
    unsafe {
        emulator::cp_async(dst.cast(), src.cast(), 16);
    }
}

/// Commits the copies that this thread started since its last commit as a group
/// (`cp.async.commit_group`). Groups complete in the order in which they were
/// committed.
#[inline(always)]
#[track_caller]
pub fn cp_async_commit_group() {
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    // SAFETY: has no precondition.
    unsafe {
        asm!("cp.async.commit_group;", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    emulator::cp_async_commit();
}

/// Waits until at most `N` of this thread's groups are pending
/// (`cp.async.wait_group`): the `N` committed last. With 0 it waits for all
/// groups.
#[inline(always)]
#[track_caller]
pub fn cp_async_wait_group<const N: u32>() {
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    // SAFETY: has no precondition. To the compiler it may write memory, which
    // keeps reads of the copied data after it.
    unsafe {
        asm!("cp.async.wait_group {};", const N, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    emulator::cp_async_wait(N);
}

/// Waits for all copies that this thread started, committed or not
/// (`cp.async.wait_all`).
#[inline(always)]
#[track_caller]
pub fn cp_async_wait_all() {
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    // SAFETY: as above.
    unsafe {
        asm!("cp.async.wait_all;", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    emulator::cp_async_wait_all();
}

/// Copies at once, for compute capabilities without `cp.async`.
///
/// # Safety
///
/// As for [`cp_async_ca`].
#[cfg(all(target_arch = "nvptx64", not(target_feature = "sm_80")))]
#[inline(always)]
unsafe fn copy_now<T>(dst: *mut T, src: *const T) {
    /// 16 bytes, moved in one access.
    #[derive(Clone, Copy)]
    #[repr(C, align(16))]
    struct Words(u32, u32, u32, u32);

    // SAFETY: valid and aligned, as the caller promises; words of T's size.
    unsafe {
        match size_of::<T>() {
            4 => dst.cast::<u32>().write(src.cast::<u32>().read()),
            8 => dst.cast::<u64>().write(src.cast::<u64>().read()),
            _ => {
                let (dst, src) = (dst.cast::<Words>(), src.cast::<Words>());
                // Assigned by field, the words take one 16-byte load and one
                // 16-byte store.
                let words = Words((*src).0, (*src).1, (*src).2, (*src).3);
                (*dst).0 = words.0;
                (*dst).1 = words.1;
                (*dst).2 = words.2;
                (*dst).3 = words.3;
            }
        }
    }
}
