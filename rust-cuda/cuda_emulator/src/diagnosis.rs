//! `Diagnosis`: the mistakes in a kernel or a launch that the emulator reports.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

use crate::config::{Poison, ThreadOrder};

/// A line of a kernel's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, as the compiler knows it.
    pub file: Cow<'static, str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 where it is unknown.
    pub column: u32,
}

impl From<&'static Location<'static>> for SourceLine {
    fn from(location: &'static Location<'static>) -> Self {
        Self {
            file: Cow::Borrowed(location.file()),
            line: location.line(),
            column: location.column(),
        }
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        Ok(())
    }
}

/// The thread and the line of a finding, and its run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The kernel's name, from the launch configuration.
    pub kernel: &'static str,
    /// Index of the block, where one is known to be concerned.
    pub block: Option<[u32; 3]>,
    /// Index of the thread in its block, where one is known to be concerned.
    pub thread: Option<[u32; 3]>,
    /// The source line of the thread, where it is known.
    pub line: Option<SourceLine>,
    /// The order of the run, with the seed if there is one.
    pub order: ThreadOrder,
    /// The contents of unwritten shared memory in that run.
    pub poison: Poison,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`", self.kernel)?;
        if let Some([x, y, z]) = self.block {
            write!(f, ", block ({x}, {y}, {z})")?;
        }
        if let Some([x, y, z]) = self.thread {
            write!(f, ", thread ({x}, {y}, {z})")?;
        }
        if let Some(line) = &self.line {
            write!(f, ", at {line}")?;
        }
        write!(f, " (thread order {})", self.order)
    }
}

/// The activity of a thread that others wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doing {
    /// It has exited.
    Exited,
    /// It waits at a block barrier.
    AtBarrier {
        /// The form of the barrier.
        form: &'static str,
        /// The source line.
        line: SourceLine,
    },
    /// It waits in an operation of its warp.
    InWarpOperation {
        /// The operation.
        operation: &'static str,
        /// The mask it gave.
        mask: u32,
        /// The source line.
        line: SourceLine,
    },
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited => f.write_str("has exited"),
            Self::AtBarrier { form, line } => write!(f, "waits in {form} at {line}"),
            Self::InWarpOperation {
                operation,
                mask,
                line,
            } => write!(f, "waits in {operation} with mask {mask:#010x} at {line}"),
        }
    }
}

/// Whether memory was read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
    /// The platform does not say.
    Unknown,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Unknown => "access",
        })
    }
}

/// A piece of memory that a diagnosis is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryName {
    /// Whether it is a device buffer or a block's shared memory.
    pub kind: MemoryKind,
    /// The label of the buffer or the name of the shared array.
    pub name: String,
    /// The address of a buffer's first byte; 0 for shared memory.
    pub address: u64,
    /// The names of the kernel's parameters that point into it, once
    /// [`Diagnosis::name_parameters`] has set them.
    pub parameters: Vec<&'static str>,
    /// The number of elements.
    pub elements: usize,
    /// Bytes per element.
    pub element_bytes: usize,
}

/// Kinds of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// An [`Allocation`](crate::Allocation).
    Buffer,
    /// A static shared array.
    SharedArray,
    /// The dynamic shared memory.
    DynamicShared,
}

impl fmt::Display for MemoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            MemoryKind::Buffer if !self.parameters.is_empty() => {
                for (i, name) in self.parameters.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { " and " })?;
                    write!(f, "`{name}`")?;
                }
            }
            MemoryKind::Buffer => write!(f, "buffer `{}`", self.name)?,
            MemoryKind::SharedArray => write!(f, "shared array `{}`", self.name)?,
            MemoryKind::DynamicShared => f.write_str("the dynamic shared memory")?,
        }
        write!(
            f,
            " ({} elements of {} bytes)",
            self.elements, self.element_bytes
        )
    }
}

/// The reason why the source lane of a shuffle is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceMissing {
    /// The mask does not name it.
    OutsideMask,
    /// The block has no such thread: its last warp is partial.
    NotInBlock,
}

/// The limit that stopped an endless kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// One thread took this many steps ([`Options::step_limit`](crate::Options::step_limit)).
    Steps(u64),
    /// The launch took this long ([`Options::time_limit`](crate::Options::time_limit)).
    Time(Duration),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps(steps) => write!(f, "the step limit, {steps}"),
            Self::Time(time) => write!(f, "the time limit, {time:?}"),
        }
    }
}

/// A mistake in a kernel or its launch.
///
/// The crate's documentation says which findings are exact and which are by
/// value. Where several blocks are at fault, the first in the order of blocks is
/// reported.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Diagnosis {
    /// The launch needs what no device, or the emulator, can do. Nothing ran.
    #[error("kernel `{kernel}` cannot be launched: {reason}")]
    InvalidLaunch {
        /// The kernel's name.
        kernel: &'static str,
        /// The mistake, and the requirement.
        reason: String,
    },

    /// Some threads of a block wait at a barrier that others do not reach.
    #[error(
        "{at}: barrier divergence: {waiting} of the block's {threads} threads wait here in \
         {form}, but thread ({}, {}, {}) {doing}; all threads of a block must reach the same \
         barrier", other[0], other[1], other[2]
    )]
    BarrierDivergence {
        /// The first thread that waits, and its barrier.
        at: Box<Origin>,
        /// The form of the barrier.
        form: &'static str,
        /// The number of threads that wait at that barrier.
        waiting: u32,
        /// Threads in the block.
        threads: u32,
        /// A thread that does not wait there.
        other: [u32; 3],
        /// The activity of that thread.
        doing: Doing,
    },

    /// A lane in the mask does not reach the operation.
    #[error(
        "{at}: {operation} with mask {mask:#010x}: lane {lane} is in the mask but {doing}; all \
         lanes in the mask must come to the same operation with the same mask"
    )]
    WarpDivergence {
        /// The first lane that waits.
        at: Box<Origin>,
        /// The operation it waits in.
        operation: &'static str,
        /// The mask it gave.
        mask: u32,
        /// The lane that does not reach the operation.
        lane: u32,
        /// The activity of that lane.
        doing: Doing,
    },

    /// A thread calls a warp operation with a mask that leaves out the thread
    /// itself.
    #[error("{at}: {operation} with mask {mask:#010x}, which leaves out the calling lane, {lane}")]
    NotInMask {
        /// The thread.
        at: Box<Origin>,
        /// The operation.
        operation: &'static str,
        /// The mask.
        mask: u32,
        /// The calling lane.
        lane: u32,
    },

    /// A shuffle reads from a lane that is missing; the value is undefined.
    #[error(
        "{at}: shuffle: lane {lane} reads from lane {source_lane}, which {}; the value would be \
         undefined",
        match reason {
            SourceMissing::OutsideMask => format!("the mask {mask:#010x} does not name"),
            SourceMissing::NotInBlock => "the block's last, partial warp does not have".to_owned(),
        }
    )]
    ShuffleSource {
        /// The reading thread.
        at: Box<Origin>,
        /// Its lane.
        lane: u32,
        /// The lane it reads from.
        source_lane: u32,
        /// The mask.
        mask: u32,
        /// The reason why that lane is missing.
        reason: SourceMissing,
    },

    /// An access outside a buffer or a shared array. Exact: the access was
    /// stopped.
    #[error(
        "{at}: {access} out of bounds: element {element} of {memory}, {}",
        beyond(*offset, memory)
    )]
    OutOfBounds {
        /// The thread and, where the program has debug information, the line.
        at: Box<Origin>,
        /// Read or write.
        access: Access,
        /// The nearest memory.
        memory: MemoryName,
        /// Index of the element accessed.
        element: i64,
        /// The accessed address less the start of the memory, bytes.
        offset: i64,
    },

    /// A write just outside a buffer or a shared array. By value: found after
    /// the block (shared) or after the launch (buffers), when the bytes there
    /// had changed.
    #[error(
        "{at}: written out of bounds: element {element} of {memory}, {}; found when the bytes \
         around the memory were checked",
        beyond(*offset, memory)
    )]
    CanaryOverwritten {
        /// The position; the thread is unknown.
        at: Box<Origin>,
        /// The nearest memory.
        memory: MemoryName,
        /// Index of the element overwritten.
        element: i64,
        /// The overwritten address nearest to the memory, less its start, bytes.
        offset: i64,
    },

    /// An access to a buffer that has been freed.
    #[error("{at}: {access} of {memory}, which has been freed (byte {offset})")]
    UseAfterFree {
        /// The thread.
        at: Box<Origin>,
        /// Read or write.
        access: Access,
        /// The freed buffer.
        memory: MemoryName,
        /// The accessed address less the start of the memory, bytes.
        offset: i64,
    },

    /// An access to an address that belongs to no buffer and no shared array.
    #[error("{at}: {access} at {}", wild(*address))]
    WildAccess {
        /// The thread.
        at: Box<Origin>,
        /// Read or write.
        access: Access,
        /// The address, where the platform says. (x86-64 does not for addresses
        /// that are not canonical and for misaligned vector accesses.)
        address: Option<usize>,
    },

    /// A thread used up its stack.
    #[error("{at}: stack overflow: a thread has {stack_bytes} bytes of stack")]
    StackOverflow {
        /// The thread.
        at: Box<Origin>,
        /// The value of [`Options::stack_bytes`](crate::Options::stack_bytes).
        stack_bytes: usize,
    },

    /// A block uses more shared memory than it may.
    #[error("{at}: shared memory: {what} brings the block to {needed} bytes, the limit is {limit}")]
    SharedMemoryLimit {
        /// The thread that requested the memory.
        at: Box<Origin>,
        /// The array, or the dynamic part.
        what: String,
        /// Bytes needed in all.
        needed: usize,
        /// Bytes allowed.
        limit: usize,
    },

    /// An operation was given arguments that it is not defined for.
    #[error("{at}: {operation}: {reason}")]
    InvalidOperation {
        /// The thread.
        at: Box<Origin>,
        /// The operation.
        operation: &'static str,
        /// The mistake, and the requirement.
        reason: String,
    },

    /// A thread panicked: a failed bounds check, an overflow, an assertion.
    #[error("{at}: panicked: {message}")]
    Panic {
        /// The thread and the line of the panic.
        at: Box<Origin>,
        /// The panic's message.
        message: String,
    },

    /// A thread called [`trap`](crate::intrinsics::trap).
    #[error("{at}: trap")]
    Trap {
        /// The thread.
        at: Box<Origin>,
    },

    /// The kernel does not end.
    #[error("{at}: still running at {limit}; the kernel may never end")]
    NeverEnds {
        /// The thread that reached the limit.
        at: Box<Origin>,
        /// The limit.
        limit: Limit,
    },

    /// The result depends on unwritten memory: shared memory, the destination of a `cp.async` that
    /// was not waited for, or bytes just outside a buffer. Found by value, in
    /// [`verify`](fn@crate::verify).
    #[error(
        "kernel `{kernel}`: reads shared memory (or what lies just outside a buffer) that nobody \
         wrote: the result depends on what was there: {difference} when it holds {} and {} \
         (thread order {order})", poisons[0], poisons[1]
    )]
    UninitialisedRead {
        /// The kernel's name.
        kernel: &'static str,
        /// The first element that differs.
        difference: Box<Difference>,
        /// The two patterns.
        poisons: [Poison; 2],
        /// The order of both runs.
        order: ThreadOrder,
    },

    /// The result depends on the order of threads or blocks. By value, from
    /// [`verify`](fn@crate::verify).
    #[error(
        "kernel `{kernel}`: the result depends on the order of threads: {difference} in the \
         orders {} and {}{}; a barrier may be missing", orders[0], orders[1],
        if *blocks { ", or with blocks in parallel" } else { "" }
    )]
    OrderDependent {
        /// The kernel's name.
        kernel: &'static str,
        /// The first element that differs.
        difference: Box<Difference>,
        /// The two orders.
        orders: [ThreadOrder; 2],
        /// Whether the difference was seen only with blocks in parallel, between
        /// runs that were otherwise alike.
        blocks: bool,
    },

    /// Two threads access the same memory, one of them writes, and nothing orders
    /// them. Exact for the threads watched, from [`verify`](fn@crate::verify).
    #[error(
        "kernel `{kernel}`: data race on element {element} of {memory}: {} and {}; {}",
        accesses[0], accesses[1], race_cure(accesses)
    )]
    DataRace {
        /// The kernel's name.
        kernel: &'static str,
        /// The buffer or shared array.
        memory: MemoryName,
        /// Index of the element.
        element: usize,
        /// The two accesses, in the order of the run that was watched.
        accesses: Box<[RacingAccess; 2]>,
    },

    /// A [`DataRace`](Self::DataRace) if both accesses are plain. They may be volatile or atomic
    /// instead: only debug information can tell, and the program has none there.
    #[error(
        "kernel `{kernel}`: there may be a data race on element {element} of {memory}: {} and {}; \
         whether they are volatile or atomic cannot be told without debug information: set \
         `debug = \"line-tables-only\"` in the profile of this build and verify again",
        accesses[0], accesses[1]
    )]
    PossibleDataRace {
        /// The kernel's name.
        kernel: &'static str,
        /// The buffer or shared array.
        memory: MemoryName,
        /// Index of the element.
        element: usize,
        /// The two accesses, in the order of the run that was watched.
        accesses: Box<[RacingAccess; 2]>,
    },

    /// The system gave no memory for stacks, shared arrays or copies of buffers.
    #[error("kernel `{kernel}`: the system gave no memory for {what}: {reason}")]
    OutOfMemory {
        /// The kernel's name.
        kernel: &'static str,
        /// The purpose of the memory.
        what: String,
        /// The system's error.
        reason: String,
    },
}

/// One of the two accesses of a data race.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RacingAccess {
    /// The thread and, where the program has debug information, the line.
    pub at: Origin,
    /// Read or write; a write may also have read.
    pub access: Access,
    /// Whether it is an atomic access.
    pub atomic: bool,
}

impl fmt::Display for RacingAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([x, y, z], [i, j, k]) = (
            self.at.block.unwrap_or_default(),
            self.at.thread.unwrap_or_default(),
        );
        write!(f, "block ({x}, {y}, {z}), thread ({i}, {j}, {k}) ")?;
        f.write_str(match self.access {
            Access::Read => "reads it",
            Access::Write => "writes it",
            Access::Unknown => "accesses it",
        })?;
        if self.atomic {
            f.write_str(" atomically")?;
        }
        if let Some(line) = &self.at.line {
            write!(f, " at {line}")?;
        }
        Ok(())
    }
}

fn race_cure([first, second]: &[RacingAccess; 2]) -> &'static str {
    if first.at.block == second.at.block {
        "nothing orders the two: a barrier is missing between them, or they must be atomic"
    } else {
        "nothing orders the two: blocks run in any order, so they must be atomic"
    }
}

/// The first place where the results of two runs differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The buffer.
    pub memory: MemoryName,
    /// Index of the element.
    pub element: usize,
    /// Its bytes after each run.
    pub values: [Vec<u8>; 2],
    /// The number of elements of the buffer that differ.
    pub count: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "element {} of {} becomes {} or {} ({} {} in the buffer)",
            self.element,
            self.memory,
            Value(&self.values[0]),
            Value(&self.values[1]),
            self.count,
            if self.count == 1 {
                "difference"
            } else {
                "differences"
            }
        )
    }
}

/// An element of unknown type, shown as bits and as a float.
struct Value<'a>(&'a [u8]);

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(bytes) = <[u8; 4]>::try_from(self.0) {
            let bits = u32::from_ne_bytes(bytes);
            write!(f, "{bits:#010x} (f32 {:e})", f32::from_bits(bits))
        } else if let Ok(bytes) = <[u8; 8]>::try_from(self.0) {
            let bits = u64::from_ne_bytes(bytes);
            write!(f, "{bits:#018x} (f64 {:e})", f64::from_bits(bits))
        } else {
            write!(f, "bytes {:02x?}", self.0)
        }
    }
}

impl Diagnosis {
    /// Where it was found. `None` for findings about a whole launch.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Self::BarrierDivergence { at, .. }
            | Self::WarpDivergence { at, .. }
            | Self::NotInMask { at, .. }
            | Self::ShuffleSource { at, .. }
            | Self::OutOfBounds { at, .. }
            | Self::CanaryOverwritten { at, .. }
            | Self::UseAfterFree { at, .. }
            | Self::WildAccess { at, .. }
            | Self::StackOverflow { at, .. }
            | Self::SharedMemoryLimit { at, .. }
            | Self::InvalidOperation { at, .. }
            | Self::Panic { at, .. }
            | Self::Trap { at }
            | Self::NeverEnds { at, .. } => Some(at),
            Self::InvalidLaunch { .. }
            | Self::UninitialisedRead { .. }
            | Self::OrderDependent { .. }
            | Self::DataRace { .. }
            | Self::PossibleDataRace { .. }
            | Self::OutOfMemory { .. } => None,
        }
    }

    /// The kernel's name.
    #[must_use]
    pub fn kernel(&self) -> &'static str {
        match self {
            Self::InvalidLaunch { kernel, .. }
            | Self::UninitialisedRead { kernel, .. }
            | Self::OrderDependent { kernel, .. }
            | Self::DataRace { kernel, .. }
            | Self::PossibleDataRace { kernel, .. }
            | Self::OutOfMemory { kernel, .. } => kernel,
            other => other.origin().map_or("", |origin| origin.kernel),
        }
    }

    /// Names buffers in messages by the kernel's parameters: `parameters` are
    /// the names and the addresses of pointer parameters.
    ///
    /// A parameter that points into a buffer, after its start, names it as
    /// well.
    #[must_use]
    pub fn name_parameters(mut self, parameters: &[(&'static str, u64)]) -> Self {
        if let Some(memory) = self.memory_mut().filter(|it| it.kind == MemoryKind::Buffer) {
            let bytes = (memory.elements * memory.element_bytes) as u64;
            let start = memory.address;
            let inside =
                |address: u64| address == start || address > start && address - start < bytes;
            let named = parameters.iter().filter(|(_, address)| inside(*address));
            memory.parameters = named.map(|&(name, _)| name).collect();
        }
        self
    }

    /// The memory that the diagnosis is about.
    fn memory_mut(&mut self) -> Option<&mut MemoryName> {
        match self {
            Self::OutOfBounds { memory, .. }
            | Self::CanaryOverwritten { memory, .. }
            | Self::UseAfterFree { memory, .. }
            | Self::DataRace { memory, .. }
            | Self::PossibleDataRace { memory, .. } => Some(memory),
            Self::UninitialisedRead { difference, .. }
            | Self::OrderDependent { difference, .. } => Some(&mut difference.memory),
            _ => None,
        }
    }
}

fn beyond(offset: i64, memory: &MemoryName) -> String {
    let len = (memory.elements * memory.element_bytes) as i64;
    if offset < 0 {
        format!("{} bytes before its start", -offset)
    } else {
        format!("{} bytes past its end", offset - len)
    }
}

fn wild(address: Option<usize>) -> String {
    match address {
        None => "an address that belongs to nothing, or a misaligned one".to_owned(),
        Some(0) => "the null pointer".to_owned(),
        Some(address) if address < 0x1_0000 => {
            format!("{address:#x}, an offset from the null pointer")
        }
        Some(address) => {
            format!("{address:#x}, which belongs to no buffer and no shared array of the block")
        }
    }
}
