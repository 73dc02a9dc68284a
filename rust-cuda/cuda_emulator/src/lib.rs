//! Runs CUDA kernels written in Rust on the CPU, thread for thread, and reports mistakes that a GPU
//! passes over silently.
//!
//! A kernel is an ordinary function on the host. [`launch`] calls it once for every thread of a
//! grid. Meanwhile the [`intrinsics`] tell it which thread it is, and connect it with the other
//! threads of its block: barriers, warp shuffles and votes, shared memory, textures, asynchronous
//! copies. A mistake becomes a [`Diagnosis`] with kernel, block, thread and, where it is known,
//! source line. [`verify`] launches a kernel several times under different conditions and finds
//! mistakes that a single run cannot show.
//!
//! ```
//! use cuda_emulator::intrinsics::{self as cuda, SharedSlot};
//! use cuda_emulator::{DeviceMemory, Diagnosis, LaunchConfig, Verify, verify};
//!
//! /// Reverses the 64 elements of every block, in shared memory.
//! fn reverse(data: *mut u32, with_barrier: bool) {
//!     static TILE: SharedSlot = SharedSlot::new("TILE", file!(), line!());
//!     let tile = cuda::shared_static(&TILE, 64 * 4, 4).cast::<u32>();
//!     let t = cuda::thread_idx()[0] as usize;
//!     let i = cuda::block_idx()[0] as usize * 64 + t;
//!     // SAFETY: `data` has 64 elements per block, and `tile` 64.
//!     unsafe {
//!         tile.add(t).write(data.add(i).read());
//!         if with_barrier {
//!             cuda::barrier();
//!         }
//!         data.add(i).write(tile.add(63 - t).read());
//!     }
//! }
//!
//! let memory = DeviceMemory::new();
//! let data = memory.alloc(256 * 4, 4, "data")?;
//! let address = data.addr() as usize;
//! let config = LaunchConfig {
//!     kernel: "reverse",
//!     grid: [4, 1, 1],
//!     block: [64, 1, 1],
//!     dynamic_shared_bytes: 0,
//! };
//! let run = |with_barrier| {
//!     let thread = || reverse(std::ptr::with_exposed_provenance_mut(address), with_barrier);
//!     // SAFETY: threads own plain values only, and nobody else uses the memory.
//!     unsafe { verify(&config, &Verify::default(), &memory, &thread) }
//! };
//! // Without the barrier half the threads read what nobody has written yet: a data race
//! // where single accesses are watched, and unwritten memory everywhere.
//! assert!(matches!(
//!     run(false),
//!     Err(Diagnosis::DataRace { .. } | Diagnosis::UninitialisedRead { .. })
//! ));
//! assert!(run(true).is_ok());
//! # Ok::<(), cuda_emulator::MemoryError>(())
//! ```
//!
//! # How it works
//!
//! Every thread of a block is a coroutine on a stack of its own. A thread runs
//! until it waits (at a barrier, in a warp operation), takes many steps
//! ([`intrinsics::step`]), or ends; then the next one in the [`ThreadOrder`] runs.
//! So a block lives on one OS thread, needs no locks, and does exactly the same
//! every time. Blocks run on all cores, each from start to end on one of them
//! ([`Blocks`]).
//!
//! Stacks, and the memory of shared arrays, are kept from block to block and from
//! launch to launch. Switching threads takes some tens of nanoseconds: a launch of
//! 64³ threads with three barriers each takes some tens of milliseconds on two
//! cores.
//!
//! Reproducibility: with [`Blocks::OneAtATime`] everything is determined by the order (and its
//! seed). With [`Blocks::Parallel`] everything within a block is, and which failure is reported
//! (that of the first failing block in the order), but not how blocks that touch the same memory
//! interleave.
//!
//! # What is found, and how surely
//!
//! *Exact* findings are made at the moment of the mistake, with block and thread,
//! and never miss. Findings *by value* see the mistake's effect on some bytes, and
//! miss it when the bytes happen to come out the same.
//!
//! | Mistake | Finding | How |
//! |---|---|---|
//! | threads at different barriers, or at a barrier others never reach | [`BarrierDivergence`](Diagnosis::BarrierDivergence) | exact; barriers are told apart by source line and form |
//! | lanes of a mask that have exited or are elsewhere | [`WarpDivergence`](Diagnosis::WarpDivergence) | exact |
//! | a caller outside its own mask | [`NotInMask`](Diagnosis::NotInMask) | exact |
//! | a shuffle from a lane outside the mask or not there | [`ShuffleSource`](Diagnosis::ShuffleSource) | exact |
//! | an access past the end of a buffer or shared array | [`OutOfBounds`](Diagnosis::OutOfBounds) | exact from the next multiple of the alignment on, up to the guard's length |
//! | … within the last, incomplete multiple of the alignment | [`CanaryOverwritten`](Diagnosis::CanaryOverwritten) | by value, after the launch or block; reads only by [`verify`] |
//! | an access before the start of a buffer or shared array | as above | by value within the first page (up to 8 KiB), exact beyond; exact at once with [`Placement::Start`] (buffers) |
//! | an access to a buffer that was freed | [`UseAfterFree`](Diagnosis::UseAfterFree) | exact for the last 256 buffers freed |
//! | an access through a null or wild pointer | [`WildAccess`](Diagnosis::WildAccess) | exact where nothing is mapped |
//! | a stack overflow | [`StackOverflow`](Diagnosis::StackOverflow) | exact |
//! | a read of shared memory that was never written, or of a `cp.async` destination not waited for | [`UninitialisedRead`](Diagnosis::UninitialisedRead) | by value, from [`verify`] |
//! | two threads that access the same memory, one of them by a write, with nothing that orders them | [`DataRace`](Diagnosis::DataRace) | exact for the accesses watched, from [`verify`]; see below |
//! | the same, without debug information | [`PossibleDataRace`](Diagnosis::PossibleDataRace) | volatile accesses are taken for plain ones |
//! | a result that depends on the order: a missing barrier, a race between blocks | [`OrderDependent`](Diagnosis::OrderDependent) | by value, from [`verify`] |
//! | an endless loop with barriers, warp operations, atomics or steps in it | [`NeverEnds`](Diagnosis::NeverEnds) | exact, by the step limit |
//! | an endless loop without any | [`NeverEnds`](Diagnosis::NeverEnds) | exact, by the time limit |
//! | too much shared memory, impossible geometry, bad arguments, panics, traps | the other diagnoses | exact |
//!
//! Guards are as long as the buffer itself, at least 1 MiB and at most 1 GiB, on
//! either side; an access farther off may hit another allocation and go unnoticed.
//! An access by a wrong but valid pointer (another buffer's, another block's
//! shared memory) is not a fault anywhere and is not found.
//!
//! Comparing results does not find a mistake that reaches no buffer: a race whose outcome is the
//! same in all orders tried, an unwritten value that is multiplied away. The orders are forward,
//! reverse and seeded random. In all of them a thread runs as far as it can, so that an update
//! which threads lose on a device is not lost here.
//!
//! # Data races
//!
//! One run of [`verify`] watches single accesses, with their addresses, lines and bytes: those of
//! all threads of a block of up to 64, or of 48 threads of a larger one, in four of the first
//! blocks, up to [`Verify::watched_accesses`]. Two of them race if they are by different threads,
//! touch the same byte, at least one writes, and nothing orders them. It does not matter which came
//! first in this run, so a race need not change the result. The diagnosis names both threads, both
//! lines, and the element of the buffer or shared array, and whether it is an input or an output of
//! the kernel.
//!
//! Two accesses are ordered by a barrier of the block, by a warp barrier for the lanes
//! in its mask, by a volatile read of all that was written before it, and by atomics,
//! which all count as one: their addresses, orderings and fences are not distinguished.
//! Shuffles and votes order nothing, as in CUDA. Not reported are
//!
//! - two atomic accesses, and any access to a word that some thread accesses volatile: a thread
//!   waits for a flag that way. A plain access beside an atomic one is reported;
//! - two writes of the same value, and a write of the value that was there to what another thread
//!   reads: the order makes no difference. An update by reading and writing is reported although
//!   all threads may write the same.
//!
//! So a reported race is real, and others may remain: of threads that were not watched, in later
//! blocks, after more accesses, or hidden by a missing fence. Statics that serve as shared memory
//! in place, and textures, are not watched. Volatile accesses are recognised by the program's debug
//! information (line tables are enough). Without it a race is reported as a
//! [`PossibleDataRace`](Diagnosis::PossibleDataRace), and so are volatile accesses, and atomic
//! loads and stores, if no order between them is found.
//!
//! `tests/races.rs` plants the races below. The column "Orders" is the comparison of results alone,
//! one block at a time. The last column is what Compute Sanitizer's racecheck found in the same
//! kernels on an H100; it examines only shared memory.
//!
//! | Planted race | Watched accesses | Orders | racecheck |
//! |---|---|---|---|
//! | lost update in global memory: one warp, several warps, several blocks | yes | no | no |
//! | maximum in global memory by reading, comparing, writing | yes | no | no |
//! | lost update, histogram without atomics, in shared memory | yes | no | yes |
//! | different values written to one element: threads, blocks | yes | yes | no |
//! | a neighbour's element of shared memory read after it was written | yes | yes | yes |
//! | no barrier between a tile's load and its use, or at the end of a loop | yes | yes | yes |
//! | a warp's reduction in shared memory without warp barriers | yes | yes | yes |
//! | a flag between blocks without atomics; an update in place | yes | yes | no |
//! | a plain read beside atomic additions in global memory | yes | yes | no |
//! | an update through a `*const` input | yes | no | no |
//!
//! Source lines of faults and of stopped loops come from the program's debug information (line
//! tables are enough) and are missing without it; all others are exactly those of the intrinsic's
//! caller.
//!
//! # Where the emulator differs from a device
//!
//! - It is stricter: barriers of one kind at different lines do not match, exited
//!   threads do not count as arrived, lanes that have exited may not be in a mask.
//!   (Lanes that the block's last, partial warp never had may be, as `u32::MAX` is
//!   what most code passes; only reading from them is an error.)
//! - [`intrinsics::active_mask`] gives the largest set of lanes that could be
//!   converged; a device gives some set.
//! - Threads of a warp do not run in lockstep, and those of different warps not at
//!   the same time.
//! - Memory is sequentially consistent within a block; missing fences are not found.
//! - Constant memory is an ordinary host static; see [`LaunchLock`].
//!
//! # Platforms
//!
//! Guard pages, diagnoses of faults, and stopping loops without calls work on Linux on x86-64 and
//! AArch64 ([`GUARD_PAGES`]). Elsewhere, and with the feature `portable`, buffers and shared arrays
//! have a page of canary on either side instead: mistakes that faults find exactly in the table
//! above are then found by value, for writes only, and within a page; a wild access ends the
//! process. Single accesses are watched on Linux on x86-64 only, without the feature `portable`.
//!
//! On Linux the first launch installs handlers for `SIGSEGV` and `SIGBUS`, for the signals by which
//! a process ends itself, and for one real-time signal without a handler. Signals that do not
//! concern an emulated thread go to the previous handlers, so Rust's own report of stack overflows
//! works as usual. It also puts a panic hook in front of the process's, which keeps panics of
//! emulated threads from being printed.
//!
//! A panic that does not unwind (under `panic = "abort"`, in a function that cannot
//! unwind, by the checks of undefined behaviour in builds with debug assertions)
//! ends the process, as does an abort. Kernel, block, thread, line and message are
//! printed before.
//!
//! A process that was forked from one that has launched kernels cannot launch any: a
//! launch there is an [`InvalidLaunch`](Diagnosis::InvalidLaunch).
//!
//! # What a kernel may do
//!
//! All that a device function may: compute, and use memory and the intrinsics. It should not hold a
//! lock or a borrow of a thread-local value across an intrinsic, because other threads of its block
//! run on the same OS thread meanwhile. It may print and allocate: where a thread's time or its
//! stack runs out within a call that may hold a lock, on x86-64 the call returns first, if
//! necessary on 64 KiB behind the stack. A call that uses those up too ends the process, after
//! printing its kernel, block and thread; one that faults in another way keeps the lock. A thread
//! that faults, overflows its stack, or is stopped in the middle of a computation does not run its
//! destructors; all others do. That is why [`launch`] and [`verify`] are `unsafe`. Operations of
//! the host (allocations, copies, launches) are refused.
//!
//! [`launch`]: fn@launch
//! [`verify`]: fn@verify

pub mod intrinsics;

mod block;
mod config;
mod diagnosis;
mod here;
mod launch;
mod memory;
mod panics;
mod race;
mod random;
mod record;
mod region;
mod runner;
mod shared;
#[cfg(guarded)]
mod stoppable;
mod symbol;
mod sys;
mod texture;
mod verify;
mod watchdog;
mod workspace;

pub use config::{
    Blocks, LaunchConfig, MAX_THREADS_PER_BLOCK, Options, Poison, RESIDENT_THREADS_MAX, Report,
    SHARED_LIMIT_DEFAULT, SHARED_LIMIT_OPT_IN, ThreadOrder, WARP_SIZE,
};
pub use diagnosis::{
    Access, Diagnosis, Difference, Doing, Limit, MemoryKind, MemoryName, Origin, RacingAccess,
    SourceLine, SourceMissing,
};
pub use launch::{LaunchLock, launch, parallelism};
pub use memory::{Allocation, DeviceMemory, MemoryError};
pub use region::Placement;
pub use texture::{Addressing, TextureDescriptor, TextureShape};
pub use verify::{Compare, Verify, verify};

/// Whether memory has guard pages here, so that accesses out of bounds are found
/// exactly. See the section on platforms.
pub const GUARD_PAGES: bool = sys::GUARDED;
