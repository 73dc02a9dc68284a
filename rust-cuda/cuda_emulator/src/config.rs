//! The settings of a launch, and its statistics.

use std::fmt;
use std::time::Duration;

/// Shared memory a block may use without opting in, bytes: the limit of every
/// CUDA device, and the default of [`Options::shared_limit`].
pub const SHARED_LIMIT_DEFAULT: usize = 48 * 1024;

/// Shared memory a block may use after opting in, bytes, on the devices that
/// have most (compute capability 9.0 and later: 227 KiB).
pub const SHARED_LIMIT_OPT_IN: usize = 227 * 1024;

/// The maximum number of threads per block of a CUDA device.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;

/// Threads per warp.
pub const WARP_SIZE: u32 = 32;

/// The geometry of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Name of the kernel, for messages.
    pub kernel: &'static str,
    /// Blocks in the grid, x y z; none may be zero. At most 2³¹-1 × 65535 × 65535.
    pub grid: [u32; 3],
    /// Threads per block, x y z; none may be zero. At most 1024 × 1024 × 64 and
    /// 1024 in all.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory per block.
    pub dynamic_shared_bytes: usize,
}

impl LaunchConfig {
    /// The index of the block with this number, x fastest.
    pub(crate) fn block_idx(&self, number: u64) -> [u32; 3] {
        index_in(self.grid, number)
    }

    /// The index of the thread with this number in its block, x fastest.
    pub(crate) fn thread_idx(&self, number: u32) -> [u32; 3] {
        index_in(self.block, number.into())
    }
}

fn index_in([width, height, _]: [u32; 3], number: u64) -> [u32; 3] {
    let [width, height] = [width, height].map(u64::from);
    // Each is below an extent, which is a u32.
    [
        number % width,
        number / width % height,
        number / width / height,
    ]
    .map(|it| it as u32)
}

/// The order in which runnable threads run. The result of a correct kernel does not depend on it.
///
/// Blocks follow the same order (with several workers: they are started in it). A thread runs until
/// it waits, exits, or has taken a number of [`step`](crate::intrinsics::step)s after which other
/// threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadOrder {
    /// Thread 0 first.
    #[default]
    Forward,
    /// The last thread first.
    Reverse,
    /// A new random order after every barrier, drawn from this seed, and a
    /// random chance that others run first at every atomic and step. With
    /// [`Blocks::Resident`] blocks start one after another: a block that does
    /// not wait for the later ones may end before they start. The same seed
    /// gives the same orders.
    Random(u64),
}

impl fmt::Display for ThreadOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forward => f.write_str("forward"),
            Self::Reverse => f.write_str("reverse"),
            Self::Random(seed) => write!(f, "random, seed {seed}"),
        }
    }
}

/// The initial contents of shared memory.
///
/// Each pattern repeats every four bytes and is a recognisable value for `f32`,
/// `f64` and 32-bit integers alike. One pattern alone can hide a read (`max`
/// swallows a NaN, zero adds nothing), so [`verify`](fn@crate::verify) uses several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Poison {
    /// A quiet NaN (`0x7FFA_5A5A`) as `f32` and as `f64`; a large positive integer.
    #[default]
    Nan,
    /// A large negative float (`0xC7A5_A5A5`, -84811.29 as `f32`); a negative integer.
    Negative,
    /// A large positive float (`0x47A5_A5A5`, 84811.29 as `f32`); a positive integer.
    Positive,
    /// Zero. It hides the mistakes that the others show; for comparison only.
    Zero,
    /// This word.
    Word(u32),
}

impl Poison {
    /// The four bytes that are repeated, as a native-endian word.
    #[must_use]
    pub const fn word(self) -> u32 {
        match self {
            Self::Nan => 0x7FFA_5A5A,
            Self::Negative => 0xC7A5_A5A5,
            Self::Positive => 0x47A5_A5A5,
            Self::Zero => 0,
            Self::Word(word) => word,
        }
    }
}

impl fmt::Display for Poison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.word())
    }
}

/// The options of a launch. `Options::default()` suits tests and CI.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The order of threads and blocks.
    pub order: ThreadOrder,
    /// The contents of unwritten shared memory.
    pub poison: Poison,
    /// Steps (barriers, warp operations, atomics and
    /// [`step`](crate::intrinsics::step) calls) one thread may take before the
    /// kernel counts as never ending. Default 2²⁰.
    pub step_limit: u64,
    /// Steps of one thread that the launch needs by design, for instance in a long loop. The step
    /// limit counts the steps beyond them, and the time limit is a microsecond longer for each of
    /// them and each thread. Default 0.
    pub expected_steps: u64,
    /// Wall-clock time the launch may take; a thread that is still running then
    /// is stopped, also in a loop that calls nothing, as soon as it is in code that
    /// holds no locks: not while it prints or allocates. `None`: unlimited. Default
    /// 5 minutes.
    pub time_limit: Option<Duration>,
    /// How blocks are distributed over OS threads. Default [`Blocks::Parallel`].
    pub blocks: Blocks,
    /// Shared memory a block may use, static and dynamic together, bytes.
    /// Default [`SHARED_LIMIT_DEFAULT`]; up to [`SHARED_LIMIT_OPT_IN`].
    /// Static arrays alone may never exceed [`SHARED_LIMIT_DEFAULT`].
    pub shared_limit: usize,
    /// Stack of one emulated thread, bytes. Default 128 KiB, at least 16 KiB;
    /// rounded up to whole pages. Only pages that are touched cost memory.
    pub stack_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            order: ThreadOrder::Forward,
            poison: Poison::Nan,
            step_limit: 1 << 20,
            expected_steps: 0,
            time_limit: Some(Duration::from_secs(300)),
            blocks: Blocks::Parallel,
            shared_limit: SHARED_LIMIT_DEFAULT,
            stack_bytes: 128 * 1024,
        }
    }
}

impl Options {
    /// The number of steps after which a thread counts as never ending.
    pub(crate) fn most_steps(&self) -> u64 {
        self.step_limit.saturating_add(self.expected_steps)
    }

    /// The time limit of a launch of this many threads.
    pub(crate) fn most_time(&self, threads: u64) -> Option<Duration> {
        let expected = Duration::from_micros(self.expected_steps.saturating_mul(threads));
        Some(self.time_limit?.saturating_add(expected))
    }
}

/// The maximum number of threads with [`Blocks::Resident`]: each holds a stack.
pub const RESIDENT_THREADS_MAX: u64 = 64 * 1024;

/// How the blocks of a launch are distributed over OS threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Blocks {
    /// On all cores. Each block runs from start to end on one core. It may wait for
    /// blocks that have begun, not for others: there may be a single core.
    #[default]
    Parallel,
    /// One after the other on the calling OS thread: everything that happens is
    /// determined by the order.
    OneAtATime,
    /// All blocks are resident at once on the calling OS thread, and a block
    /// whose threads take many steps without progress lets the others run. For
    /// kernels whose blocks wait for each other (grid-wide barriers). Every
    /// thread of the grid holds a stack, so this is for small grids.
    Resident,
}

/// The statistics of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// Blocks run.
    pub blocks: u64,
    /// Threads run.
    pub threads: u64,
    /// Block-wide barriers completed, summed over blocks (not threads).
    pub barriers: u64,
    /// Warp-wide operations completed (barriers, shuffles, votes, matches),
    /// summed over warps (not lanes).
    pub warp_operations: u64,
    /// Atomic operations, summed over threads.
    pub atomics: u64,
    /// Shared memory used by the block that used most, bytes, static and dynamic.
    pub shared_bytes: usize,
    /// Wall-clock time of the launch.
    pub elapsed: Duration,
}
