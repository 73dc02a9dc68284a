//! The hardware operations that an emulated thread can request.
//!
//! `cuda_std` calls these functions where, on a device, it would use an
//! instruction or a special register; tests of this crate call them directly.
//! They are meaningful only inside the closure given to [`launch`](fn@crate::launch):
//! each panics with "… called outside a kernel launch" when the calling OS
//! thread is not running an emulated thread at the moment.
//!
//! # Call sites
//!
//! Everything that can wait or fail is `#[track_caller]`: the source line of the
//! call names the place in a [`Diagnosis`](crate::Diagnosis), and for block
//! barriers it also decides which barrier this is. A wrapper such as
//! `cuda_std::thread::sync_threads` must therefore be `#[track_caller]` too,
//! or every barrier of a kernel would look like one and the same.
//!
//! # Threads, warps, lanes
//!
//! Threads of a block are numbered x fastest. A warp is 32 consecutive numbers;
//! the last warp of a block may be partial, and the lanes it lacks do *not
//! exist*: a mask may name them (`u32::MAX` is what most code passes), but
//! reading a value from them is diagnosed.
//!
//! # Masks
//!
//! For every operation that takes a mask, all lanes named in it must arrive at
//! the same operation with the same mask, as CUDA demands since Volta. These
//! are diagnosed:
//!
//! - the caller is not in its own mask;
//! - a lane in the mask has exited, waits somewhere else, or arrived at another
//!   operation or with another mask;
//! - a shuffle reads from a lane that is outside the mask or does not exist.
//!
//! # In destructors
//!
//! A thread that panics or calls [`exit_thread`] is unwound, and after a diagnosis
//! so are the other threads of its block. Destructors that run then and call
//! these functions get neutral values (no waiting, zero, `false`).

use std::panic::Location;

use crate::block::{Block, Form, WarpOperation, WarpRequest, running};
pub use crate::block::{SharedSlot, ShuffleKind};
use crate::config::WARP_SIZE;
use crate::here::{HERE, Here, Site};

/// Index of the calling thread in its block, x y z.
#[must_use]
#[track_caller]
pub fn thread_idx() -> [u32; 3] {
    look("thread_idx", |block| block.thread_idx())
}

/// Index of the calling thread's block in the grid, x y z.
#[must_use]
#[track_caller]
pub fn block_idx() -> [u32; 3] {
    look("block_idx", |block| block.block_idx())
}

/// Threads per block, x y z.
#[must_use]
#[track_caller]
pub fn block_dim() -> [u32; 3] {
    look("block_dim", |block| block.launch.config.block)
}

/// Blocks in the grid, x y z.
#[must_use]
#[track_caller]
pub fn grid_dim() -> [u32; 3] {
    look("grid_dim", |block| block.launch.config.grid)
}

/// Linear index of the calling thread in its block, x fastest.
#[must_use]
#[track_caller]
pub fn linear_thread_idx() -> u32 {
    look("linear_thread_idx", |block| block.linear_thread_idx())
}

/// Lane of the calling thread in its warp, 0 to 31.
#[must_use]
#[track_caller]
pub fn lane_id() -> u32 {
    look("lane_id", |block| block.linear_thread_idx() % WARP_SIZE)
}

/// Index of the calling thread's warp in its block.
#[must_use]
#[track_caller]
pub fn warp_id() -> u32 {
    look("warp_id", |block| block.linear_thread_idx() / WARP_SIZE)
}

/// `__syncthreads()`: waits until every thread of the block is at this barrier.
///
/// Stricter than the hardware, which counts arrivals: threads waiting at
/// barriers of different source lines, and threads that wait while others of
/// the block have exited, are reported as
/// [`BarrierDivergence`](crate::Diagnosis::BarrierDivergence).
#[track_caller]
pub fn barrier() {
    call("barrier", (), |block, site| {
        block.barrier(Form::Plain, false, site);
    });
}

/// `__syncthreads_count()`: a [`barrier`] that returns the number of threads of
/// the block for which `pred` was true.
#[track_caller]
pub fn barrier_count(pred: bool) -> u32 {
    call("barrier_count", 0, |block, site| {
        block.barrier(Form::Count, pred, site)
    })
}

/// `__syncthreads_and()`: a [`barrier`] that returns whether `pred` was true
/// for every thread of the block.
#[track_caller]
pub fn barrier_and(pred: bool) -> bool {
    call("barrier_and", false, |block, site| {
        block.barrier(Form::And, pred, site) == block.threads()
    })
}

/// `__syncthreads_or()`: a [`barrier`] that returns whether `pred` was true for
/// any thread of the block.
#[track_caller]
pub fn barrier_or(pred: bool) -> bool {
    call("barrier_or", false, |block, site| {
        block.barrier(Form::Or, pred, site) > 0
    })
}

/// `__syncwarp(mask)`: waits until every lane in `mask` is at a warp barrier
/// with the same mask.
#[track_caller]
pub fn warp_barrier(mask: u32) {
    call("warp_barrier", (), |block, site| {
        block.warp_operation(request(WarpOperation::Barrier, mask, 0), site);
    });
}

/// `__shfl_sync` and its variants: exchange 64 bits between the lanes of a
/// warp.
///
/// `width` (a power of two from 1 to 32) divides the warp into segments, as in
/// CUDA. Returns the source lane's `bits` and whether that source was inside
/// the caller's segment; where it was not, the value is the caller's own `bits`
/// and the flag is `false` (PTX's predicate of `shfl.sync`). For
/// [`ShuffleKind::Index`] `lane_arg` is taken modulo `width`, so the source is
/// always inside. For [`ShuffleKind::Xor`] a source in an earlier segment is
/// read (and flagged `true`), one in a later segment is out of range.
///
/// Narrower values travel in the low bits. One call moves 64 bits; on a device
/// that is two 32-bit shuffles, which makes no difference to the result.
#[track_caller]
pub fn shuffle(mask: u32, bits: u64, kind: ShuffleKind, lane_arg: u32, width: u32) -> (u64, bool) {
    call("shuffle", (bits, false), |block, site| {
        let request = WarpRequest {
            operation: WarpOperation::Shuffle(kind),
            mask,
            bits,
            lane_arg,
            width,
        };
        block.warp_operation(request, site)
    })
}

/// `__ballot_sync`: bit `i` of the result is lane `i`'s `pred`, for the lanes in
/// `mask`. `__all_sync` and `__any_sync` are comparisons of this with the mask
/// and with zero; see [`vote_all`] and [`vote_any`].
#[track_caller]
pub fn vote_ballot(mask: u32, pred: bool) -> u32 {
    call("vote_ballot", 0, |block, site| {
        let request = request(WarpOperation::Ballot, mask, u64::from(pred));
        // A mask of 32 lanes.
        block.warp_operation(request, site).0 as u32
    })
}

/// `__all_sync`: whether `pred` is true for every existing lane in `mask`.
#[track_caller]
pub fn vote_all(mask: u32, pred: bool) -> bool {
    call("vote_all", false, |block, site| {
        let request = request(WarpOperation::All, mask, u64::from(pred));
        block.warp_operation(request, site).1
    })
}

/// `__any_sync`: whether `pred` is true for any lane in `mask`.
#[track_caller]
pub fn vote_any(mask: u32, pred: bool) -> bool {
    call("vote_any", false, |block, site| {
        let request = request(WarpOperation::Any, mask, u64::from(pred));
        block.warp_operation(request, site).1
    })
}

/// `__match_any_sync`: the lanes of `mask` whose `bits` equal the caller's.
#[track_caller]
pub fn match_any(mask: u32, bits: u64) -> u32 {
    call("match_any", 0, |block, site| {
        // A mask of 32 lanes.
        block
            .warp_operation(request(WarpOperation::MatchAny, mask, bits), site)
            .0 as u32
    })
}

/// `__match_all_sync`: the existing lanes in `mask`, and `true`, when `bits` is
/// the same for all of them, else `(0, false)`.
#[track_caller]
pub fn match_all(mask: u32, bits: u64) -> (u32, bool) {
    call("match_all", (0, false), |block, site| {
        let (lanes, all) = block.warp_operation(request(WarpOperation::MatchAll, mask, bits), site);
        // A mask of 32 lanes.
        (lanes as u32, all)
    })
}

/// `__activemask()`: the lanes of the warp that execute this call together with
/// the caller.
///
/// CUDA promises little about it: some set of lanes that execute the
/// instruction together. The emulator gives the largest such set: the caller
/// waits until no other lane of its warp can run, and the mask names the lanes
/// that then wait in `active_mask` at the same source line. Lanes that went
/// elsewhere or exited are not in it. It never waits for a lane that is blocked.
#[track_caller]
#[must_use]
pub fn active_mask() -> u32 {
    call("active_mask", 0, |block, site| block.active_mask(site))
}

/// The shared array of `slot` in the calling thread's block: `size` bytes,
/// aligned to `align` (a power of two).
///
/// Made at the block's first call, filled with the launch's poison, guarded on
/// both sides; every later call with the same slot returns the same address.
/// A call with another `size` or `align`, or one that takes the block over the
/// limit of shared memory, is diagnosed.
#[track_caller]
#[must_use]
pub fn shared_static(key: &'static SharedSlot, size: usize, align: usize) -> *mut u8 {
    call("shared_static", std::ptr::null_mut(), |block, site| {
        block.shared_static(key, size, align, site)
    })
}

/// Registers that the calling thread is about to use a host `static` as shared
/// memory, in place (`#[address_space(shared)] static mut X: …`).
///
/// Such memory exists once per process. The first call of a block takes a
/// process-wide lock for it, which the block holds to its end, so blocks that
/// use in-place statics run one at a time, over all launches; blocks that use
/// none still run in parallel. At that first call the `size` bytes at `start`
/// are filled with the launch's poison. They count towards the block's shared
/// memory. No guard page surrounds them: an overrun is not found.
///
/// Call it before any access, in every thread (later calls of a block cost a
/// look-up).
///
/// # Safety
///
/// `start` must be valid for writes of `size` bytes for the rest of the process,
/// any bit pattern must be allowed there, and no thread may touch it except
/// emulated threads that have called this function for it.
#[track_caller]
pub unsafe fn register_shared_static(key: &'static SharedSlot, start: *mut u8, size: usize) {
    call("register_shared_static", (), |block, site| {
        // SAFETY: the caller's promises are the same.
        unsafe { block.register_shared_static(key, start, size, site) };
    });
}

/// The block's dynamic shared memory: [`dynamic_shared_len`] bytes, aligned to 16.
///
/// Poisoned and guarded like a static array; exactly the bytes the launch gave.
/// With zero bytes the pointer is to the guard: any access is diagnosed.
#[track_caller]
#[must_use]
pub fn dynamic_shared() -> *mut u8 {
    call("dynamic_shared", std::ptr::null_mut(), |block, _| {
        block.dynamic_shared()
    })
}

/// Bytes of dynamic shared memory the launch gave.
#[must_use]
pub fn dynamic_shared_len() -> usize {
    look("dynamic_shared_len", |block| {
        block.launch.config.dynamic_shared_bytes
    })
}

/// Bytes of shared memory that the block has used so far, static and dynamic.
#[must_use]
pub fn shared_bytes() -> usize {
    look("shared_bytes", |block| block.shared_bytes())
}

/// Kinds of memory that an address can belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Shared memory of the calling thread's block.
    Shared,
    /// The calling thread's stack.
    Local,
    /// A live allocation of the launch's device memory.
    Global,
    /// Anything else: host statics (constant memory among them), other threads'
    /// memory, nothing.
    Other,
}

/// The kind of memory that an address belongs to (the device's `isspacep`).
#[must_use]
pub fn space_of(address: usize) -> Space {
    let local = HERE.with(|here| here.stack().contains(&address));
    look("space_of", |block| {
        if block.is_shared(address) {
            Space::Shared
        } else if local {
            Space::Local
        } else if block.is_global(address) {
            Space::Global
        } else {
            Space::Other
        }
    })
}

/// `tex1Dfetch<float>`: element `index` of a texture bound to linear memory.
///
/// Outside the texture the result is zero, as on a device (memory that is bound
/// linearly has no addressing mode). A handle that is unknown, or of a 2-D
/// texture, is diagnosed.
#[track_caller]
#[must_use]
pub fn tex1d_fetch(handle: u64, index: i32) -> f32 {
    call("tex1d_fetch", 0.0, |block, site| {
        block.texture_linear(handle, index, site)
    })
}

/// `tex2D<float>` with point filtering: the element in row `floor(y)`, column
/// `floor(x)` (after scaling, if the texture's coordinates are normalised).
///
/// Outside, the texture's [`Addressing`](crate::Addressing) decides. A handle that
/// is unknown, or of a linear texture, is diagnosed.
#[track_caller]
#[must_use]
pub fn tex2d(handle: u64, x: f32, y: f32) -> f32 {
    call("tex2d", 0.0, |block, site| {
        block.texture_planar(handle, x, y, site)
    })
}

/// `cp.async`: starts a copy of `bytes` (4, 8 or 16) from global memory at `src`
/// to shared memory at `dst`, both aligned to `bytes`.
///
/// The copy is made when the calling thread waits for its group ([`cp_async_wait`]); until then the
/// destination holds poison. A copy that no thread waits for is never made.
///
/// # Safety
///
/// `dst` must be valid for writes and `src` for reads of `bytes` bytes, until the
/// copy has been waited for or the thread has exited. (In memory that the
/// emulator guards, a violation is diagnosed.)
#[track_caller]
pub unsafe fn cp_async(dst: *mut u8, src: *const u8, bytes: usize) {
    call("cp_async", (), |block, site| {
        // SAFETY: the caller's promises are the same.
        unsafe { block.cp_async(dst, src, bytes, bytes, site) };
    });
}

/// `cp.async` with fewer source bytes: copies `src_bytes` (at most `bytes`) and
/// fills the rest of the destination with zero. With `src_bytes` zero `src` is
/// not read.
///
/// # Safety
///
/// As for [`cp_async`], with `src` valid for `src_bytes` bytes.
#[track_caller]
pub unsafe fn cp_async_zfill(dst: *mut u8, src: *const u8, bytes: usize, src_bytes: usize) {
    call("cp_async_zfill", (), |block, site| {
        // SAFETY: the caller's promises are the same.
        unsafe { block.cp_async(dst, src, bytes, src_bytes, site) };
    });
}

/// `cp.async.commit_group`: puts the copies started since the last commit into
/// one group.
#[track_caller]
pub fn cp_async_commit() {
    call("cp_async_commit", (), |block, _| block.cp_async_commit());
}

/// `cp.async.wait_group n`: waits for all groups of the calling thread except
/// the `n` most recent.
#[track_caller]
pub fn cp_async_wait(n: u32) {
    call("cp_async_wait", (), |block, site| {
        block.cp_async_wait(n, site)
    });
}

/// `cp.async.wait_all`: commits, then waits for every group.
#[track_caller]
pub fn cp_async_wait_all() {
    call("cp_async_wait_all", (), |block, site| {
        block.cp_async_commit();
        block.cp_async_wait(0, site);
    });
}

/// Counts one step of the calling thread towards the launch's step limit, and
/// from time to time lets other threads of the block run.
///
/// Every barrier, warp operation and atomic counts by itself. Call this in loops
/// that wait for another thread by plain loads (`nanosleep`, volatile reads).
#[track_caller]
pub fn step() {
    call("step", (), |block, site| block.step(site));
}

/// Like [`step`], and counts one atomic operation in the
/// [`Report`](crate::Report). Call it before the atomic itself, which the caller
/// does with `core::sync::atomic`.
#[track_caller]
pub fn atomic() {
    call("atomic", (), |block, site| block.atomic(site));
}

/// Ends the calling thread at once, as PTX's `exit` does. Destructors run.
pub fn exit_thread() -> ! {
    call("exit_thread", (), |block, _| block.exit_thread());
    // Only a thread that is being unwound gets here, from a destructor.
    panic!("exit_thread called while a launch is being abandoned")
}

/// Stops the launch, as PTX's `trap` does; reported as
/// [`Trap`](crate::Diagnosis::Trap).
#[track_caller]
pub fn trap() -> ! {
    call("trap", (), |block, site| block.trap(site));
    // Only a thread that is being unwound gets here, from a destructor.
    panic!("trap called while a launch is being abandoned")
}

/// Whether the calling OS thread is running an emulated thread.
#[must_use]
pub fn in_kernel() -> bool {
    HERE.with(|here| here.running().is_some())
}

/// A warp operation other than a shuffle.
fn request(operation: WarpOperation, mask: u32, bits: u64) -> WarpRequest {
    WarpRequest {
        operation,
        mask,
        bits,
        lane_arg: 0,
        width: WARP_SIZE,
    }
}

/// Reads a value from the running block.
#[inline]
#[track_caller]
fn look<R>(what: &str, f: impl FnOnce(&Block<'_>) -> R) -> R {
    let result = HERE.with(|here| {
        let block = running(here)?;
        if here.stop_wanted() {
            end_late(here, block, Location::caller());
        }
        Some(f(block))
    });
    match result {
        Some(result) => result,
        None => outside(what),
    }
}

/// Ends a thread whose time or stack has run out, and which a signal found
/// where it may hold a lock (as one that prints without end): here its frames
/// can be unwound.
#[cold]
#[inline(never)]
fn end_late(here: &Here, block: &Block<'_>, site: Site) {
    if here.in_kernel() && !block.abandoned() && !here.unwinding() {
        here.leave_kernel();
        here.leave_detour();
        if here.overflow().is_some() {
            block.give_up();
        }
        block.check_time(site);
        here.enter_kernel();
    }
}

/// Runs an operation of the running block that may wait, fail, or take a while;
/// meanwhile the emulator's code runs, not the kernel's. `neutral` is the
/// result for threads that are being unwound.
#[inline]
#[track_caller]
fn call<R>(what: &str, neutral: R, f: impl FnOnce(&Block<'_>, Site) -> R) -> R {
    let site = Location::caller();
    let result = HERE.with(|here| {
        let block = running(here)?;
        if block.abandoned() || here.unwinding() {
            return Some(neutral);
        }
        if here.overflow().is_some() {
            end_late(here, block, site);
        }
        here.leave_kernel();
        here.leave_detour();
        // Unwinds if the block is abandoned meanwhile; then the emulator stays
        // in charge.
        let result = f(block, site);
        here.enter_kernel();
        Some(result)
    });
    match result {
        Some(result) => result,
        None => outside(what),
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn outside(what: &str) -> ! {
    panic!("{what} called outside a kernel launch")
}
