//! Runs a launch: checks its geometry, distributes blocks over OS threads, collects the diagnoses.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use crate::block::{Block, Counts, Launch};
use crate::config::{
    Blocks, LaunchConfig, MAX_THREADS_PER_BLOCK, Options, RESIDENT_THREADS_MAX, Report,
    SHARED_LIMIT_OPT_IN, ThreadOrder,
};
use crate::diagnosis::{Diagnosis, Origin};
use crate::here::HERE;
use crate::memory::{DeviceMemory, Turn};
use crate::race::{Trace, watching};
use crate::random::Permutation;
use crate::region::Offset;
use crate::runner::{Progress, Runner};
use crate::workspace::Workspace;
use crate::{panics, sys, watchdog};

/// The smallest stack of a thread in bytes: a panic needs it to unwind.
const STACK_MIN: usize = 16 * 1024;

/// The number of a grid's threads for which one OS thread is woken.
const THREADS_PER_WORKER: u64 = 512;

/// Runs a kernel: calls `thread` once for every thread of the grid, each time as that thread.
///
/// `thread` calls the [`intrinsics`](crate::intrinsics) to learn which thread it is and to meet the
/// others. `memory` holds its textures and its buffers, in which a diagnosis looks up addresses.
///
/// Returns the launch's report, or a diagnosis of the kernel. After a diagnosis the buffers have
/// the contents of an interrupted launch.
///
/// Launches on one memory take turns.
///
/// # Errors
///
/// See [`Diagnosis`].
///
/// # Safety
///
/// A thread that overflows its stack, that faults, or that the time limit stops in the middle of a
/// computation ends where it is. Its frames are given up and used again; their destructors do not
/// run, nor any later code of the thread. So no memory may depend on that code for being valid, in
/// particular:
///
/// - they start no scoped thread, which may borrow from their frames;
/// - they pin nothing in their frames;
/// - nothing that they borrow or share is unsound to use after they were cut short.
///
/// Functions that own plain values only, as device code does, fulfil that.
///
/// ```compile_fail,E0133
/// use cuda_emulator::{DeviceMemory, LaunchConfig, Options, launch};
///
/// fn overflow(n: u64) -> u64 {
///     std::hint::black_box(overflow(n + 1)) + 1
/// }
/// let config = LaunchConfig {
///     kernel: "scope",
///     grid: [1, 1, 1],
///     block: [1, 1, 1],
///     dynamic_shared_bytes: 0,
/// };
/// // Not without `unsafe`: the scoped thread would read the frame it borrows from
/// // when that is gone.
/// let _ = launch(&config, &Options::default(), &DeviceMemory::new(), &|| {
///     let value = 1;
///     std::thread::scope(|scope| {
///         scope.spawn(|| while value == 1 {});
///         overflow(0);
///     });
/// });
/// ```
///
/// # Example
///
/// ```
/// use cuda_emulator::{DeviceMemory, LaunchConfig, Options, intrinsics, launch};
///
/// let memory = DeviceMemory::new();
/// let out = memory.alloc(256 * 4, 4, "out")?;
/// let address = out.addr();
/// let config = LaunchConfig {
///     kernel: "indices",
///     grid: [4, 1, 1],
///     block: [64, 1, 1],
///     dynamic_shared_bytes: 0,
/// };
/// let indices = || {
///     let i = intrinsics::block_idx()[0] * 64 + intrinsics::thread_idx()[0];
///     let out = std::ptr::with_exposed_provenance_mut::<u32>(address as usize);
///     // SAFETY: every thread writes its own element of 256.
///     unsafe { out.add(i as usize).write(i) };
/// };
/// // SAFETY: threads own plain values only.
/// let report = unsafe { launch(&config, &Options::default(), &memory, &indices) }?;
/// assert_eq!(report.threads, 256);
///
/// let mut last = [0; 4];
/// out.copy_to_bytes(255 * 4, &mut last);
/// assert_eq!(u32::from_ne_bytes(last), 255);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub unsafe fn launch(
    config: &LaunchConfig,
    options: &Options,
    memory: &DeviceMemory,
    thread: &(dyn Fn() + Sync),
) -> Result<Report, Diagnosis> {
    check(config, options)?;
    launch_in_turn(config, options, memory, &memory.turn(), thread)
}

/// [`launch`], for a caller that holds the memory's turn.
pub(crate) fn launch_in_turn(
    config: &LaunchConfig,
    options: &Options,
    memory: &DeviceMemory,
    _turn: &Turn<'_>,
    thread: &(dyn Fn() + Sync),
) -> Result<Report, Diagnosis> {
    let begun = Instant::now();
    let blocks = check(config, options)?;
    panics::install_hook();
    // At most 1024.
    let threads: u32 = config.block.iter().product();
    let watched = match options.most_time(blocks.saturating_mul(u64::from(threads))) {
        None => None,
        Some(limit) => watchdog::watch(limit).map_err(|error| Diagnosis::OutOfMemory {
            kernel: config.kernel,
            what: "the thread that keeps the time limit".to_owned(),
            reason: error.to_string(),
        })?,
    };
    let launch = Launch {
        config,
        options,
        memory,
        textures: memory.textures(),
        kernel: thread,
        ticket: watched.as_ref().map(|watched| watched.0.clone()),
        threads,
    };
    let blocks = match (
        options.blocks,
        HERE.with(|here| watching(here).map(Trace::blocks)),
    ) {
        // A watched launch ends when all blocks to be watched have ended.
        (Blocks::OneAtATime, Some(watched)) => blocks.min(watched),
        _ => blocks,
    };
    let queue = Queue::new(blocks, options.order);
    match options.blocks {
        Blocks::Parallel => run_parallel(&launch, &queue),
        Blocks::OneAtATime => work(&launch, &queue),
        Blocks::Resident => run_resident(&launch, &queue),
    }
    drop(watched);
    let (counts, failure) = queue.finish();
    if let Some(diagnosis) = failure.or_else(|| check_buffers(&launch)) {
        return Err(diagnosis);
    }
    Ok(Report {
        blocks,
        threads: blocks * u64::from(launch.threads),
        barriers: counts.barriers,
        warp_operations: counts.warp_operations,
        atomics: counts.atomics,
        shared_bytes: counts.shared_bytes,
        elapsed: begun.elapsed(),
    })
}

/// Checks the launch before anything runs; returns the number of blocks.
pub(crate) fn check(config: &LaunchConfig, options: &Options) -> Result<u64, Diagnosis> {
    let invalid = |reason| Diagnosis::InvalidLaunch {
        kernel: config.kernel,
        reason,
    };
    if HERE.with(|here| here.running().is_some()) {
        return Err(invalid(
            "a kernel cannot be launched from within a kernel".to_owned(),
        ));
    }
    if !same_process() {
        return Err(invalid(
            "this process was forked from one that has launched kernels, and does not have the \
             threads that run them; launch kernels only after the fork"
                .to_owned(),
        ));
    }
    let grid_max = [i32::MAX as u32, 65_535, 65_535];
    let block_max = [1024, 1024, 64];
    for (what, given, max) in [
        ("grid", config.grid, grid_max),
        ("block", config.block, block_max),
    ] {
        for ((axis, given), max) in ["x", "y", "z"].iter().zip(given).zip(max) {
            if given == 0 || given > max {
                return Err(invalid(format!(
                    "the {what}'s extent in {axis} is {given}, but must be from 1 to {max}"
                )));
            }
        }
    }
    let threads = config.block.iter().product::<u32>();
    if threads > MAX_THREADS_PER_BLOCK {
        let [x, y, z] = config.block;
        return Err(invalid(format!(
            "{x} × {y} × {z} are {threads} threads per block, but at most \
             {MAX_THREADS_PER_BLOCK} are possible"
        )));
    }
    if options.shared_limit > SHARED_LIMIT_OPT_IN {
        return Err(invalid(format!(
            "a limit of {} bytes of shared memory; no device has more than {SHARED_LIMIT_OPT_IN}",
            options.shared_limit
        )));
    }
    if config.dynamic_shared_bytes > options.shared_limit {
        return Err(invalid(format!(
            "{} bytes of dynamic shared memory; the limit is {}",
            config.dynamic_shared_bytes, options.shared_limit
        )));
    }
    if options.stack_bytes < STACK_MIN || options.stack_bytes > isize::MAX as usize / 4096 {
        return Err(invalid(format!(
            "stacks of {} bytes; at least {STACK_MIN} are needed",
            options.stack_bytes
        )));
    }
    let [x, y, z] = config.grid.map(u64::from);
    // At most 2⁶³.
    let blocks = x * y * z;
    let all_threads = u128::from(blocks) * u128::from(threads);
    if options.blocks == Blocks::Resident && all_threads > u128::from(RESIDENT_THREADS_MAX) {
        return Err(invalid(format!(
            "{all_threads} threads resident at once, but at most {RESIDENT_THREADS_MAX} are \
             possible"
        )));
    }
    if u64::try_from(all_threads).is_err() {
        return Err(invalid(format!(
            "{all_threads} threads, more than can be counted"
        )));
    }
    Ok(blocks)
}

/// Whether this is the process that launched first: a process forked from it lacks its threads,
/// which may hold locks.
fn same_process() -> bool {
    static FIRST: OnceLock<u32> = OnceLock::new();
    *FIRST.get_or_init(std::process::id) == std::process::id()
}

/// The remaining blocks, and the findings of those that have run.
struct Queue {
    blocks: u64,
    order: Order,
    next: AtomicU64,
    /// Position in the order of the first block that failed. Later ones need not run; earlier ones
    /// must, so that the reported failure does not depend on the speed of OS threads.
    failed_at: AtomicU64,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    counts: Counts,
    failure: Option<(u64, Diagnosis)>,
}

enum Order {
    Forward,
    Reverse,
    Random(Permutation),
}

impl Queue {
    fn new(blocks: u64, order: ThreadOrder) -> Self {
        Self {
            blocks,
            order: match order {
                ThreadOrder::Forward => Order::Forward,
                ThreadOrder::Reverse => Order::Reverse,
                ThreadOrder::Random(seed) => Order::Random(Permutation::new(blocks, seed)),
            },
            next: AtomicU64::new(0),
            failed_at: AtomicU64::new(u64::MAX),
            found: Mutex::default(),
        }
    }

    /// The next position in the order that should still be run, and its block.
    fn next(&self) -> Option<(u64, u64)> {
        let position = self.next.fetch_add(1, Ordering::Relaxed);
        (position < self.blocks && position <= self.failed_at.load(Ordering::Relaxed))
            .then(|| (position, self.block_at(position)))
    }

    fn block_at(&self, position: u64) -> u64 {
        match self.order {
            Order::Forward => position,
            Order::Reverse => self.blocks - 1 - position,
            Order::Random(permutation) => permutation.at(position),
        }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        // No holder of the lock leaves the value half changed.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, position: u64, diagnosis: Diagnosis) {
        self.failed_at.fetch_min(position, Ordering::Relaxed);
        let mut found = self.found();
        if found.failure.as_ref().is_none_or(|(at, _)| position < *at) {
            found.failure = Some((position, diagnosis));
        }
    }

    fn add(&self, counts: Counts) {
        let mut found = self.found();
        let sum = &mut found.counts;
        sum.barriers += counts.barriers;
        sum.warp_operations += counts.warp_operations;
        sum.atomics += counts.atomics;
        sum.shared_bytes = sum.shared_bytes.max(counts.shared_bytes);
    }

    fn finish(self) -> (Counts, Option<Diagnosis>) {
        let found = self
            .found
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        (found.counts, found.failure.map(|(_, diagnosis)| diagnosis))
    }
}

/// Runs blocks of the queue, one after the other, until there are none left.
fn work(launch: &Launch<'_>, queue: &Queue) {
    sys::prepare_thread();
    let workspace = Workspace::take(launch.options.stack_bytes);
    {
        let block = Block::new(launch, &workspace);
        let mut runner = Runner::new(&block);
        let _worker = launch.ticket.as_ref().map(|ticket| ticket.enter());
        while let Some((position, linear)) = queue.next() {
            if let Err(diagnosis) = runner.run(linear) {
                queue.fail(position, diagnosis);
            }
        }
        queue.add(block.counts());
    }
    workspace.put_back();
}

/// In random orders: the rounds through the blocks that have started, before the next one starts.
const ROUNDS_BETWEEN_STARTS: u64 = 4;

/// Runs all blocks in turn on this OS thread.
fn run_resident(launch: &Launch<'_>, queue: &Queue) {
    sys::prepare_thread();
    let workspace = Workspace::take(launch.options.stack_bytes);
    {
        let positions = 0..queue.blocks;
        let blocks: Vec<Block<'_>> = positions
            .clone()
            .map(|_| Block::new(launch, &workspace))
            .collect();
        let mut runners: Vec<Runner<'_>> = blocks.iter().map(Runner::new).collect();
        for (position, runner) in positions.zip(&mut runners) {
            runner.begin(queue.block_at(position));
        }
        let _worker = launch.ticket.as_ref().map(|ticket| ticket.enter());
        let mut finished = vec![false; runners.len()];
        // When a late block starts, any block that does not wait for it may have ended.
        let late = matches!(launch.options.order, ThreadOrder::Random(_));
        let mut started = if late { 1 } else { runners.len() };
        let mut round = 0_u64;
        'all: while finished.contains(&false) {
            round += 1;
            let ended = !finished[..started].contains(&false);
            if ended || round.is_multiple_of(ROUNDS_BETWEEN_STARTS) {
                started = runners.len().min(started + 1);
            }
            for (i, runner) in runners[..started].iter_mut().enumerate() {
                if finished[i] {
                    continue;
                }
                match runner.advance() {
                    Ok(progress) => finished[i] = progress == Progress::Finished,
                    Err(diagnosis) => {
                        queue.fail(i as u64, diagnosis);
                        break 'all;
                    }
                }
            }
        }
        drop(runners);
        for block in &blocks {
            queue.add(block.counts());
        }
    }
    workspace.put_back();
}

/// Runs blocks on as many OS threads as the grid is large enough for, including this one.
fn run_parallel(launch: &Launch<'_>, queue: &Queue) {
    let threads = u64::from(launch.threads);
    let useful = (queue.blocks * threads).div_ceil(THREADS_PER_WORKER);
    let affordable = (sys::max_stacks() / launch.threads as usize).max(1);
    let pool = (useful.min(queue.blocks) > 1).then(pool).flatten();
    let workers = pool.map_or(1, |pool| {
        pool.current_num_threads()
            .min(affordable)
            // Saturates, above what any machine has.
            .min(usize::try_from(useful.min(queue.blocks)).unwrap_or(usize::MAX))
    });
    let Some(pool) = pool.filter(|_| workers > 1) else {
        work(launch, queue);
        return;
    };
    let run = || {
        pool.in_place_scope(|scope| {
            for _ in 1..workers {
                scope.spawn(|_| work(launch, queue));
            }
            work(launch, queue);
        });
    };
    if rayon::current_thread_index().is_none() {
        run();
    } else {
        // A rayon worker that waits runs other jobs of its own pool meanwhile. Such a job may take
        // the lock that our caller holds (`LaunchLock`), on this same OS thread. A separate thread
        // only waits.
        thread::scope(|scope| {
            let spawned = thread::Builder::new().spawn_scoped(scope, run);
            if spawned.is_err() {
                // Slower, but correct.
                work(launch, queue);
            }
        });
    }
}

/// The emulator's OS threads, created at the first launch that uses them. `None` if the system
/// provides none.
fn pool() -> Option<&'static rayon::ThreadPool> {
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    POOL.get_or_init(|| {
        // The number is RAYON_NUM_THREADS, or else that of the cores.
        rayon::ThreadPoolBuilder::new()
            .thread_name(|i| format!("cuda-emulator-{i}"))
            .build()
            .ok()
    })
    .as_ref()
}

/// A diagnosis of writes around the buffers, if there are any.
fn check_buffers(launch: &Launch<'_>) -> Option<Diagnosis> {
    let mut first = None;
    // All of them, so that the damage is mended everywhere.
    for record in launch.memory.live() {
        let hit = record
            .while_live(|region| region.check_canaries())
            .flatten();
        let Some(Offset(offset)) = hit else { continue };
        first.get_or_insert_with(|| {
            let memory = record.name();
            Diagnosis::CanaryOverwritten {
                at: Box::new(Origin {
                    kernel: launch.config.kernel,
                    block: None,
                    thread: None,
                    line: None,
                    order: launch.options.order,
                    poison: launch.options.poison,
                }),
                element: offset.div_euclid(memory.element_bytes as i64),
                memory,
                offset,
            }
        });
    }
    first
}

/// The process-wide right to change what kernels read outside of device memory.
///
/// On the host, constant memory is an ordinary `static` that the launcher writes
/// before a launch. It writes and launches while holding this lock, so that two
/// launches never see each other's constants. Launches that use no constants need
/// no lock.
///
/// ```
/// let lock = cuda_emulator::LaunchLock::acquire();
/// // … write the constants, launch …
/// drop(lock);
/// ```
#[derive(Debug)]
#[must_use = "the lock is held until this value is dropped"]
pub struct LaunchLock(#[allow(dead_code, reason = "held, not looked at")] MutexGuard<'static, ()>);

impl LaunchLock {
    /// Waits for the lock. The OS thread that holds it must not acquire it again.
    ///
    /// # Panics
    ///
    /// In a kernel: its own launch may hold the lock.
    pub fn acquire() -> Self {
        static LOCK: Mutex<()> = Mutex::new(());
        assert!(
            HERE.with(|here| here.running().is_none()),
            "LaunchLock::acquire called within a kernel"
        );
        // A launch that panicked leaves constants that the next one overwrites.
        Self(LOCK.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How many OS threads the emulator uses for a large launch.
#[must_use]
pub fn parallelism() -> usize {
    pool().map_or_else(
        || thread::available_parallelism().map_or(1, NonZero::get),
        rayon::ThreadPool::current_num_threads,
    )
}
