//! A thread's place in the launch, and waiting for other threads.
//!
//! A launch is a **grid** of **blocks** of **threads**, each laid out in up to
//! three dimensions, x fastest. All threads run the same kernel and tell
//! themselves apart by their indices:
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

/// One function per axis of a special register.
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
    /// Index of the calling thread in its block along x: `0..block_dim_x()`.
    thread_idx_x = tid_x, thread_idx[0];
    /// Index of the calling thread in its block along y: `0..block_dim_y()`.
    thread_idx_y = tid_y, thread_idx[1];
    /// Index of the calling thread in its block along z: `0..block_dim_z()`.
    thread_idx_z = tid_z, thread_idx[2];

    /// Index of the calling thread's block in the grid along x: `0..grid_dim_x()`.
    block_idx_x = ctaid_x, block_idx[0];
    /// Index of the calling thread's block in the grid along y: `0..grid_dim_y()`.
    block_idx_y = ctaid_y, block_idx[1];
    /// Index of the calling thread's block in the grid along z: `0..grid_dim_z()`.
    block_idx_z = ctaid_z, block_idx[2];

    /// Threads per block along x, 1 to 1024.
    block_dim_x = ntid_x, block_dim[0];
    /// Threads per block along y, 1 to 1024.
    block_dim_y = ntid_y, block_dim[1];
    /// Threads per block along z, 1 to 64.
    block_dim_z = ntid_z, block_dim[2];

    /// Blocks in the grid along x, 1 to 2³¹ - 1.
    grid_dim_x = nctaid_x, grid_dim[0];
    /// Blocks in the grid along y, 1 to 65535.
    grid_dim_y = nctaid_y, grid_dim[1];
    /// Blocks in the grid along z, 1 to 65535.
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

/// Threads per block.
#[must_use]
#[inline(always)]
pub fn block_dim() -> UVec3 {
    UVec3::new(block_dim_x(), block_dim_y(), block_dim_z())
}

/// Blocks in the grid.
#[must_use]
#[inline(always)]
pub fn grid_dim() -> UVec3 {
    UVec3::new(grid_dim_x(), grid_dim_y(), grid_dim_z())
}

/// The number of the calling thread in the whole launch: unique, and without
/// gaps, whatever the dimensions of grid and block.
///
/// Blocks are numbered x fastest, and so are the threads within each. The number
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

/// The thread's index in the grid along x.
///
/// Unique in launches that extend along x alone.
#[must_use]
#[inline(always)]
pub fn index_1d() -> u32 {
    block_idx_x() * block_dim_x() + thread_idx_x()
}

/// The thread's index in the grid along x and y.
#[must_use]
#[inline(always)]
pub fn index_2d() -> UVec2 {
    UVec2::new(index_1d(), block_idx_y() * block_dim_y() + thread_idx_y())
}

/// The thread's index in the grid along x, y and z.
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

/// Threads per warp: 32 on every GPU so far.
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

/// Waits until every thread of the block has arrived here, and makes what they
/// wrote to shared and global memory before visible to all of them after.
///
/// All threads of the block must arrive at the *same* barrier: in a branch that
/// only some of them take, or after an early `return` of some, the launch hangs
/// or goes on with half-written data. The emulator reports both.
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

/// [`sync_threads`] that returns, to all threads, for how many of them
/// `predicate` was not zero.
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

/// [`sync_threads`] that returns, to all threads, 1 if `predicate` was not zero
/// for every one of them, else 0.
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

/// [`sync_threads`] that returns, to all threads, 1 if `predicate` was not zero
/// for any one of them, else 0.
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

/// Memory fence for the threads of the grid: whoever sees a write that this
/// thread makes after the fence also sees those it made before.
///
/// Orders memory, waits for nobody. Blocks of one grid run all over the device,
/// so this is [`device_fence`] under another name.
#[inline(always)]
pub fn grid_fence() {
    device_fence();
}

/// Memory fence for all threads on the device.
///
/// Orders memory, waits for nobody.
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

/// Memory fence for all threads on the device, on other devices, and on the host.
///
/// Orders memory, waits for nobody.
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
/// millisecond; a hint for loops that wait for another thread.
///
/// The emulator does not wait but lets other threads have their turn.
#[inline(always)]
#[track_caller]
pub fn nanosleep(nanos: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: suspends the thread and touches nothing.
    unsafe {
        core::arch::asm!("nanosleep.u32 {};", in(reg32) nanos);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = nanos;
        emulator::step();
    }
}
