//! Indices of threads and blocks in the launch, barriers of the block, memory
//! fences.
//!
//! A launch is a **grid** of **blocks** of **threads**, each laid out in up to
//! three dimensions, x fastest. All threads run the same kernel and differ in
//! their indices:
//!
//! | | index | extent |
//! |---|---|---|
//! | thread in its block | [`thread_idx`] | [`block_dim`] |
//! | block in the grid | [`block_idx`] | [`grid_dim`] |
//! | thread in the grid, per axis | [`index_1d`], [`index_2d`], [`index_3d`] | `grid_dim * block_dim` |
//! | thread in the grid, as one number | [`index`] | the product of all six extents |
//!
//! Threads of one block can wait for one another ([`sync_threads`]) and share
//! memory ([`shared`](crate::shared)); blocks run in any order and cannot wait
//! for each other.

use glam::{UVec2, UVec3};

#[cfg(target_arch = "nvptx64")]
use crate::sys;
#[cfg(not(target_arch = "nvptx64"))]
use cuda_emulator::intrinsics as emulator;

/// Defines one function per axis of a special register.
macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident = $device:ident, $host:ident[$axis:literal];)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[inline(always)]
        pub fn $name() -> u32 {
            #[cfg(target_arch = "nvptx64")]
            // SAFETY: reads a special register that every thread has.
            let value = unsafe { sys::$device() };
            #[cfg(not(target_arch = "nvptx64"))]
            let value = emulator::$host()[$axis];
            value
        }
    )*};
}

registers! {
    /// Index of the calling thread in its block along x: `0..block_dim_x()`
    /// (`%tid.x`, `threadIdx.x`).
    thread_idx_x = tid_x, thread_idx[0];
    /// Index of the calling thread in its block along y: `0..block_dim_y()`
    /// (`%tid.y`, `threadIdx.y`).
    thread_idx_y = tid_y, thread_idx[1];
    /// Index of the calling thread in its block along z: `0..block_dim_z()`
    /// (`%tid.z`, `threadIdx.z`).
    thread_idx_z = tid_z, thread_idx[2];

    /// Index of the calling thread's block in the grid along x:
    /// `0..grid_dim_x()` (`%ctaid.x`, `blockIdx.x`).
    block_idx_x = ctaid_x, block_idx[0];
    /// Index of the calling thread's block in the grid along y:
    /// `0..grid_dim_y()` (`%ctaid.y`, `blockIdx.y`).
    block_idx_y = ctaid_y, block_idx[1];
    /// Index of the calling thread's block in the grid along z:
    /// `0..grid_dim_z()` (`%ctaid.z`, `blockIdx.z`).
    block_idx_z = ctaid_z, block_idx[2];

    /// Number of threads per block along x, 1 to 1024 (`%ntid.x`,
    /// `blockDim.x`).
    block_dim_x = ntid_x, block_dim[0];
    /// Number of threads per block along y, 1 to 1024 (`%ntid.y`,
    /// `blockDim.y`).
    block_dim_y = ntid_y, block_dim[1];
    /// Number of threads per block along z, 1 to 64 (`%ntid.z`, `blockDim.z`).
    block_dim_z = ntid_z, block_dim[2];

    /// Number of blocks in the grid along x, 1 to 2³¹ - 1 (`%nctaid.x`,
    /// `gridDim.x`).
    grid_dim_x = nctaid_x, grid_dim[0];
    /// Number of blocks in the grid along y, 1 to 65535 (`%nctaid.y`,
    /// `gridDim.y`).
    grid_dim_y = nctaid_y, grid_dim[1];
    /// Number of blocks in the grid along z, 1 to 65535 (`%nctaid.z`,
    /// `gridDim.z`).
    grid_dim_z = nctaid_z, grid_dim[2];
}

/// Index of the calling thread in its block.
#[must_use]
#[inline(always)]
pub fn thread_idx() -> UVec3 {
    UVec3::new(thread_idx_x(), thread_idx_y(), thread_idx_z())
}

/// Index of the calling thread's block in the grid.
#[must_use]
#[inline(always)]
pub fn block_idx() -> UVec3 {
    UVec3::new(block_idx_x(), block_idx_y(), block_idx_z())
}

/// Number of threads per block along each axis.
#[must_use]
#[inline(always)]
pub fn block_dim() -> UVec3 {
    UVec3::new(block_dim_x(), block_dim_y(), block_dim_z())
}

/// Number of blocks in the grid along each axis.
#[must_use]
#[inline(always)]
pub fn grid_dim() -> UVec3 {
    UVec3::new(grid_dim_x(), grid_dim_y(), grid_dim_z())
}

/// Linear index of the calling thread in the whole launch: unique, and without
/// gaps, whatever the dimensions of grid and block.
///
/// Blocks are counted x fastest, and so are the threads within each. The index
/// has 32 bits and wraps in a launch of more than 2³² threads.
#[must_use]
#[inline(always)]
pub fn index() -> u32 {
    let (grid, block) = (grid_dim(), block_dim());
    let (block_idx, thread_idx) = (block_idx(), thread_idx());
    let block_number = block_idx
        .z
        .wrapping_mul(grid.y)
        .wrapping_add(block_idx.y)
        .wrapping_mul(grid.x)
        .wrapping_add(block_idx.x);
    let thread_number = (thread_idx.z * block.y + thread_idx.y) * block.x + thread_idx.x;
    block_number
        .wrapping_mul(block.x * block.y * block.z)
        .wrapping_add(thread_number)
}

/// Index of the calling thread in the grid along x.
///
/// It is unique in launches that extend along x only.
#[must_use]
#[inline(always)]
pub fn index_1d() -> u32 {
    block_idx_x() * block_dim_x() + thread_idx_x()
}

/// Index of the calling thread in the grid along x and y.
#[must_use]
#[inline(always)]
pub fn index_2d() -> UVec2 {
    UVec2::new(index_1d(), block_idx_y() * block_dim_y() + thread_idx_y())
}

/// Index of the calling thread in the grid along x, y and z.
#[must_use]
#[inline(always)]
pub fn index_3d() -> UVec3 {
    index_2d().extend(block_idx_z() * block_dim_z() + thread_idx_z())
}

/// Whether the calling thread has index zero in its block, and its block in the
/// grid: true for exactly one thread of a launch, not necessarily the first to
/// run.
#[must_use]
#[inline(always)]
pub fn first() -> bool {
    block_idx() == UVec3::ZERO && thread_idx() == UVec3::ZERO
}

/// Number of threads per warp: 32 on every GPU so far (`warpSize`).
#[must_use]
#[inline(always)]
pub fn warp_size() -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: reads a special register that every thread has.
    let size = unsafe { sys::warpsize() };
    #[cfg(not(target_arch = "nvptx64"))]
    let size = cuda_emulator::WARP_SIZE;
    size
}

/// Waits until every thread of the block has arrived (CUDA's `__syncthreads`).
/// Their writes to shared and global memory before the barrier are visible to
/// all of them after it.
///
/// All threads of the block must arrive at the *same* barrier: if only some of
/// them reach it, because of a branch or an early `return`, the launch hangs or
/// continues with half-written data. The emulator reports both.
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: barrier 0 exists in every block.
    unsafe {
        sys::barrier_sync(0);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    emulator::barrier();
}

/// [`sync_threads`] that returns, to all threads, the number of threads whose
/// `predicate` is not zero (CUDA's `__syncthreads_count`).
#[inline(always)]
#[track_caller]
pub fn sync_threads_count(predicate: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: barrier 0 exists in every block.
    let count = unsafe { sys::barrier_red_popc(0, predicate != 0) };
    #[cfg(not(target_arch = "nvptx64"))]
    let count = emulator::barrier_count(predicate != 0);
    count
}

/// [`sync_threads`] that returns, to all threads, 1 if `predicate` is not zero
/// in every thread, else 0 (CUDA's `__syncthreads_and`).
#[inline(always)]
#[track_caller]
pub fn sync_threads_and(predicate: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: barrier 0 exists in every block.
    let all = unsafe { sys::barrier_red_and(0, predicate != 0) };
    #[cfg(not(target_arch = "nvptx64"))]
    let all = emulator::barrier_and(predicate != 0);
    u32::from(all)
}

/// [`sync_threads`] that returns, to all threads, 1 if `predicate` is not zero
/// in any thread, else 0 (CUDA's `__syncthreads_or`).
#[inline(always)]
#[track_caller]
pub fn sync_threads_or(predicate: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: barrier 0 exists in every block.
    let any = unsafe { sys::barrier_red_or(0, predicate != 0) };
    #[cfg(not(target_arch = "nvptx64"))]
    let any = emulator::barrier_or(predicate != 0);
    u32::from(any)
}

/// Memory fence for the threads of the grid: a thread that sees a write made by
/// this thread after the fence also sees those made before it.
///
/// It orders memory and does not wait. Blocks of one grid run all over the
/// device, so this is [`device_fence`] under another name.
#[inline(always)]
pub fn grid_fence() {
    device_fence();
}

/// Memory fence for all threads of the device (`membar.gl`, CUDA's
/// `__threadfence`).
///
/// It orders memory and does not wait.
#[inline(always)]
pub fn device_fence() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a fence has no precondition.
    unsafe {
        sys::membar_gl();
    }
    #[cfg(not(target_arch = "nvptx64"))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}

/// Memory fence for all threads of the device, of other devices, and of the
/// host (`membar.sys`, CUDA's `__threadfence_system`).
///
/// It orders memory and does not wait.
#[inline(always)]
pub fn system_fence() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a fence has no precondition.
    unsafe {
        sys::membar_sys();
    }
    #[cfg(not(target_arch = "nvptx64"))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}

/// Suspends the calling thread for about `nanos` nanoseconds, at most a
/// millisecond (`nanosleep`); a hint for loops that wait for another thread.
///
/// The emulator does not wait but lets other threads run.
#[inline(always)]
#[track_caller]
pub fn nanosleep(nanos: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: suspends the thread and accesses no memory.
    unsafe {
        core::arch::asm!("nanosleep.u32 {};", in(reg32) nanos);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = nanos;
        emulator::step();
    }
}
