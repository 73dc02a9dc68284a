//! Clusters of blocks, their distributed shared memory, programmatic dependent launch, and the
//! barrier of a whole grid.
//!
//! A cluster is a group of blocks that run at the same time on neighbouring multiprocessors and can
//! access each other's shared memory. The launch gives its size; by default each block is a cluster
//! of its own. Needs compute capability 9.0 or later.
//!
//! In the emulator every cluster has one block, whatever the launch says.

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

#[cfg(target_arch = "nvptx64")]
macro_rules! register {
    ($name:literal) => {{
        let value: u32;
        // SAFETY: reads a special register.
        unsafe {
            asm!(concat!("mov.u32 {}, %", $name, ";"), out(reg32) value, options(pure, nomem, nostack));
        }
        value
    }};
}

/// The rank of the calling thread's block in its cluster, from 0 (`%cluster_ctarank`).
#[inline(always)]
#[must_use]
pub fn block_rank() -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return register!("cluster_ctarank");
    #[cfg(not(target_arch = "nvptx64"))]
    0
}

/// The number of blocks in the cluster (`%cluster_nctarank`).
#[inline(always)]
#[must_use]
pub fn blocks() -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return register!("cluster_nctarank");
    #[cfg(not(target_arch = "nvptx64"))]
    1
}

/// Waits for all threads of the cluster (`barrier.cluster`). Their writes to shared and global
/// memory before the barrier are visible after it.
///
/// All threads of the cluster must arrive. A block must not end while others use its shared memory:
/// this barrier at the end ensures that.
#[inline(always)]
#[track_caller]
pub fn sync_cluster() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: has no precondition.
    unsafe {
        asm!(
            "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;",
            options(nostack)
        );
    }
    #[cfg(not(target_arch = "nvptx64"))]
    crate::thread::sync_threads();
}

/// Maps `pointer`, into shared memory of the calling thread's block, to the same place in block
/// `rank` of the cluster (`mapa`): distributed shared memory.
///
/// # Safety
///
/// `pointer` points into the block's shared memory, and `rank` is below [`blocks`]. The result may
/// be used while that block runs.
#[inline(always)]
#[must_use]
pub unsafe fn in_block<T>(pointer: *mut T, rank: u32) -> *mut T {
    #[cfg(target_arch = "nvptx64")]
    {
        let mapped: *mut T;
        // SAFETY: as the caller promises.
        unsafe {
            asm!("mapa.u64 {}, {}, {};", out(reg64) mapped, in(reg64) pointer, in(reg32) rank, options(pure, nomem, nostack));
        }
        mapped
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        assert!(rank == 0, "block {rank} of a cluster of 1");
        pointer
    }
}

/// Lets the next launch in the stream begin early if it was launched with programmatic dependent
/// launch (`griddepcontrol.launch_dependents`): it may begin as soon as all blocks have called this
/// or ended. It has no other effect.
#[inline(always)]
pub fn launch_dependents() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: has no precondition.
    unsafe {
        asm!("griddepcontrol.launch_dependents;", options(nostack));
    }
}

/// Waits until the earlier launches that this one did not wait for have ended and their writes are
/// visible (`griddepcontrol.wait`). It does nothing in a launch that did not begin early, nor in
/// the emulator, where none does.
#[inline(always)]
pub fn wait_for_launches_before() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: has no precondition.
    unsafe {
        asm!("griddepcontrol.wait;", options(nostack));
    }
}

/// Waits for all threads of the grid.
///
/// `arrived` points to a number in global memory, 0 before its first use. All barriers of a launch
/// may share it, and later launches may continue with the number it then holds.
///
/// # Safety
///
/// All threads of the grid call this, and all blocks are on the GPU at once: the launch is a
/// cooperative one. `arrived` is valid and used for nothing else meanwhile.
///
/// # Panics
///
/// In the emulator, which runs blocks one after another, when the grid has more than one block.
#[inline(always)]
#[track_caller]
pub unsafe fn sync_grid(arrived: *mut u32) {
    use crate::thread;
    thread::sync_threads();
    #[cfg(target_arch = "nvptx64")]
    {
        use core::sync::atomic::Ordering::{AcqRel, Acquire};
        if thread::thread_idx_x() == 0 && thread::thread_idx_y() == 0 && thread::thread_idx_z() == 0
        {
            let [x, y, z] = [
                thread::block_idx_x(),
                thread::block_idx_y(),
                thread::block_idx_z(),
            ];
            let blocks = thread::grid_dim_x() * thread::grid_dim_y() * thread::grid_dim_z();
            // All blocks together add `TURN`: the last to arrive flips the highest bit, and the
            // bits below are as before.
            const TURN: u32 = 1 << 31;
            let own = match x | y | z {
                0 => TURN - (blocks - 1),
                _ => 1,
            };
            // SAFETY: valid, as the caller promises.
            let arrived = unsafe { crate::atomic::AtomicU32::from_ptr(arrived) };
            thread::device_fence();
            let before = arrived.fetch_add(own, AcqRel);
            while (arrived.load(Acquire) ^ before) & TURN == 0 {}
            thread::device_fence();
        }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = arrived;
        let grid = thread::grid_dim();
        assert!(
            grid.x * grid.y * grid.z == 1,
            "a barrier of the grid needs all its blocks at once; the emulator runs them one after another"
        );
    }
    thread::sync_threads();
}
