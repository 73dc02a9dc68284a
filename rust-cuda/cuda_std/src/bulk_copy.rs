//! Bulk copies by a multiprocessor's copy engine (TMA), and the barriers in shared memory that
//! signal their completion (`mbarrier`).
//!
//! One thread starts a copy between global and shared memory ([`copy_to_shared`],
//! [`copy_to_global`]). A copy into shared memory is waited for at a [`Barrier`]. Each *phase* of
//! the barrier expects a number of arrivals and of bytes; when all have come, the phase is over and
//! the threads that wait for it continue. Needs compute capability 9.0 or later. Tensor copies,
//! which need descriptors from the host, are not provided.
//!
//! ```
//! use cuda_std::bulk_copy::{self, Barrier};
//! use cuda_std::prelude::*;
//! use cuda_std::shared_array;
//!
//! /// Each block turns its 256 elements around.
//! ///
//! /// # Safety
//! ///
//! /// Blocks of 256 threads; both buffers have an element per thread and are aligned to 16 bytes.
//! #[kernel]
//! pub unsafe fn turn(input: *const f32, output: *mut f32) {
//!     let tile = shared_array![f32; 256];
//!     let barrier = shared_array![Barrier; 1];
//!     let (i, start) = (thread::thread_idx_x() as usize, 256 * thread::block_idx_x() as usize);
//!     // SAFETY: 1024 bytes, from and to multiples of 16; one thread initialises and starts.
//!     unsafe {
//!         if i == 0 {
//!             bulk_copy::init(barrier, 1);
//!             bulk_copy::fence_init();
//!             bulk_copy::arrive_expecting(barrier, 1024);
//!             bulk_copy::copy_to_shared(tile.cast(), input.add(start).cast(), 1024, barrier);
//!         }
//!         thread::sync_threads();
//!         bulk_copy::wait(barrier, 0);
//!         *output.add(start + i) = *tile.add(255 - i);
//!     }
//! }
//! ```
//!
//! The emulator copies at once, so it does not notice a missing wait.

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;
#[cfg(not(target_arch = "nvptx64"))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(target_arch = "nvptx64"))]
use cuda_emulator::intrinsics as emulator;

/// A barrier in shared memory (`mbarrier`), initialised by [`init`].
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Barrier(core::cell::UnsafeCell<u64>);

/// The emulator's barrier: the parity of the phase (bit 0), missing arrivals (20 bits), arrivals
/// per phase (20 bits), missing bytes (23 bits, two's complement).
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
struct State {
    parity: u64,
    missing: u64,
    arrivals: u64,
    bytes: i64,
}

#[cfg(not(target_arch = "nvptx64"))]
impl State {
    const COUNT: u64 = (1 << 20) - 1;

    fn of(bits: u64) -> Self {
        Self {
            parity: bits & 1,
            missing: bits >> 1 & Self::COUNT,
            arrivals: bits >> 21 & Self::COUNT,
            bytes: bits as i64 >> 41,
        }
    }

    /// The bits; moves to the next phase first if this one is over.
    fn bits(mut self) -> u64 {
        if self.missing == 0 && self.bytes == 0 {
            self.parity ^= 1;
            self.missing = self.arrivals;
        }
        self.parity | self.missing << 1 | self.arrivals << 21 | (self.bytes as u64) << 41
    }
}

/// Changes the state of the emulator's barrier atomically.
#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
unsafe fn change(barrier: *const Barrier, change: impl Fn(&mut State)) {
    if emulator::in_kernel() {
        emulator::atomic();
    }
    // SAFETY: valid and aligned, as the caller promises; accessed only by atomics.
    let bits = unsafe { AtomicU64::from_ptr((*barrier).0.get()) };
    let changed = |bits| {
        let mut state = State::of(bits);
        change(&mut state);
        Some(state.bits())
    };
    // `changed` returns `Some`, so the update cannot fail.
    let _ = bits.fetch_update(Ordering::AcqRel, Ordering::Acquire, changed);
}

/// Initialises a barrier for `arrivals` arrivals per phase, from 1 to 2²⁰ - 1 (`mbarrier.init`).
///
/// Other threads may use it after this thread calls [`fence_init`] and the block passes a barrier.
///
/// # Safety
///
/// `barrier` is in shared memory, and no other thread uses it.
#[inline(always)]
#[track_caller]
pub unsafe fn init(barrier: *mut Barrier, arrivals: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: as the caller promises.
    unsafe {
        asm!("mbarrier.init.b64 [{}], {};", in(reg64) barrier, in(reg32) arrivals, options(nostack));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let count = u64::from(arrivals);
        assert!(
            (1..=State::COUNT).contains(&count),
            "{arrivals} arrivals at a barrier"
        );
        // SAFETY: as the caller promises.
        unsafe { (*barrier).0.get().write(count << 1 | count << 21) };
    }
}

/// Makes barriers that this thread initialised visible to the copy engine and to the cluster
/// (`fence.mbarrier_init`).
#[inline(always)]
pub fn fence_init() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: has no precondition.
    unsafe {
        asm!(
            "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;",
            options(nostack)
        );
    }
}

/// Makes this thread's writes to shared memory visible to the copy engine (`fence.proxy.async`):
/// call it before [`copy_to_global`], and before the barrier of the block that precedes that.
#[inline(always)]
pub fn fence_shared() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: has no precondition.
    unsafe {
        asm!("fence.proxy.async.shared::cta;", options(nostack));
    }
}

/// Arrives at a barrier (`mbarrier.arrive`).
///
/// # Safety
///
/// `barrier` is initialised, and an arrival is missing in its phase.
#[inline(always)]
#[track_caller]
pub unsafe fn arrive(barrier: *const Barrier) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: as the caller promises.
    unsafe {
        asm!(
            "{{ .reg .b64 state; mbarrier.arrive.b64 state, [{}]; }}",
            in(reg64) barrier,
            options(nostack)
        );
    }
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: as the caller promises.
    unsafe {
        change(barrier, |state| state.missing -= 1);
    }
}

/// Arrives at a barrier and adds `bytes` to the bytes that copies bring in this phase
/// (`mbarrier.arrive.expect_tx`).
///
/// # Safety
///
/// As for [`arrive`]; at most 2²⁰ - 1 bytes are missing in one phase.
#[inline(always)]
#[track_caller]
pub unsafe fn arrive_expecting(barrier: *const Barrier, bytes: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: as the caller promises.
    unsafe {
        asm!(
            "{{ .reg .b64 state; .reg .u64 at; cvta.to.shared.u64 at, {}; \
             mbarrier.arrive.expect_tx.shared::cta.b64 state, [at], {}; }}",
            in(reg64) barrier,
            in(reg32) bytes,
            options(nostack)
        );
    }
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: as the caller promises.
    unsafe {
        change(barrier, |state| {
            state.missing -= 1;
            state.bytes += i64::from(bytes);
        });
    }
}

/// Whether the phase of this parity is over (`mbarrier.try_wait.parity`): 0 for a barrier's first
/// phase, 1 for the second, 0 for the third. It may wait a while before it returns `false`.
///
/// # Safety
///
/// `barrier` is initialised, and is in the phase of this parity or in the next one.
#[inline(always)]
#[must_use]
#[track_caller]
pub unsafe fn is_over(barrier: *const Barrier, parity: u32) -> bool {
    #[cfg(target_arch = "nvptx64")]
    {
        let over: u32;
        // SAFETY: as the caller promises.
        unsafe {
            asm!(
                "{{ .reg .pred over; mbarrier.try_wait.parity.b64 over, [{}], {}; \
                 selp.u32 {}, 1, 0, over; }}",
                in(reg64) barrier,
                in(reg32) parity,
                out(reg32) over,
                options(nostack)
            );
        }
        over != 0
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        if emulator::in_kernel() {
            emulator::step();
        }
        // SAFETY: as the caller promises.
        let bits = unsafe { AtomicU64::from_ptr((*barrier).0.get()) };
        State::of(bits.load(Ordering::Acquire)).parity != u64::from(parity & 1)
    }
}

/// Waits until the phase of this parity is over.
///
/// # Safety
///
/// As for [`is_over`].
#[inline(always)]
#[track_caller]
pub unsafe fn wait(barrier: *const Barrier, parity: u32) {
    // SAFETY: as the caller promises.
    while !unsafe { is_over(barrier, parity) } {}
}

/// Starts copying `bytes` bytes from global to shared memory (`cp.async.bulk`); the bytes that
/// arrive are subtracted from those missing at `barrier`.
///
/// # Safety
///
/// `dst` is in shared memory of the block and valid for writes, `src` in global memory and valid
/// for reads, of `bytes` bytes; all three are multiples of 16. Until the barrier's phase is over
/// nobody reads `dst`, and nobody writes `dst` or `src`. `barrier` is initialised.
#[inline(always)]
#[track_caller]
pub unsafe fn copy_to_shared(dst: *mut u8, src: *const u8, bytes: u32, barrier: *const Barrier) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: as the caller promises.
    unsafe {
        asm!(
            "{{ .reg .u64 to, from, at; cvta.to.shared.u64 to, {}; cvta.to.global.u64 from, {}; \
             cvta.to.shared.u64 at, {}; \
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [from], {}, [at]; }}",
            in(reg64) dst,
            in(reg64) src,
            in(reg64) barrier,
            in(reg32) bytes,
            options(nostack)
        );
    }
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: as the caller promises.
    unsafe {
        whole(dst, src, bytes);
        core::ptr::copy_nonoverlapping(src, dst, bytes as usize);
        change(barrier, |state| state.bytes -= i64::from(bytes));
    }
}

/// Starts copying `bytes` bytes from shared to global memory (`cp.async.bulk`); [`commit`] adds the
/// copy to a group. The threads' writes to `src` must be visible to the copy engine: call
/// [`fence_shared`], then a barrier of the block.
///
/// # Safety
///
/// `src` is in shared memory of the block and valid for reads, `dst` in global memory and valid for
/// writes, of `bytes` bytes; all three are multiples of 16. Until the copy has been waited for nobody
/// writes `src` or uses `dst`.
#[inline(always)]
#[track_caller]
pub unsafe fn copy_to_global(dst: *mut u8, src: *const u8, bytes: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: as the caller promises.
    unsafe {
        asm!(
            "{{ .reg .u64 to, from; cvta.to.global.u64 to, {}; cvta.to.shared.u64 from, {}; \
             cp.async.bulk.global.shared::cta.bulk_group [to], [from], {}; }}",
            in(reg64) dst,
            in(reg64) src,
            in(reg32) bytes,
            options(nostack)
        );
    }
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: as the caller promises.
    unsafe {
        whole(dst, src, bytes);
        core::ptr::copy_nonoverlapping(src, dst, bytes as usize);
    }
}

/// Panics unless addresses and length are multiples of 16, which the hardware requires.
#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
fn whole(dst: *const u8, src: *const u8, bytes: u32) {
    for (what, number) in [
        ("destination", dst as usize),
        ("source", src as usize),
        ("length", bytes as usize),
    ] {
        assert!(
            number.is_multiple_of(16),
            "the {what} of a bulk copy, {number:#x}, is no multiple of 16"
        );
    }
}

/// Commits the copies into global memory that this thread started since its last commit as a group
/// (`cp.async.bulk.commit_group`).
#[inline(always)]
pub fn commit() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: has no precondition.
    unsafe {
        asm!("cp.async.bulk.commit_group;", options(nostack));
    }
}

/// Waits until at most `N` of this thread's groups are pending (`cp.async.bulk.wait_group`).
#[inline(always)]
pub fn wait_group<const N: u32>() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: has no precondition.
    unsafe {
        asm!("cp.async.bulk.wait_group {};", const N, options(nostack));
    }
}
