//! Linux on x86-64 and AArch64: guard pages by `mmap`, faults by `SIGSEGV` and
//! `SIGBUS`, a real-time signal for threads that run past the time limit.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use corosensei::stack::{Stack, StackPointer};
use corosensei::trap::CoroutineTrapHandler;

use crate::here::{Exit, Fault, HERE, Here};
#[cfg(traced)]
use crate::here::{Running, Steps, Watching};
use crate::stoppable::{self, Interrupted, Position};

/// Whether [`Mapping::reserve`] gives memory that faults when touched.
pub(crate) const GUARDED: bool = true;

/// Bytes per page.
pub(crate) fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: sysconf has no preconditions.
            let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let size = usize::try_from(size).unwrap_or(4096);
            SIZE.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}

/// A range of address space of this process, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut u8,
    len: usize,
}

// SAFETY: a mapping is address space, which belongs to no thread in particular;
// this type only hands out its address.
unsafe impl Send for Mapping {}
// SAFETY: as above; all methods that change the mapping are system calls.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` bytes (a multiple of the page size, not zero) of address space that fault
    /// when accessed. [`Self::open`] requests the memory.
    pub fn reserve(len: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous private mapping at an address of the kernel's
        // choice touches no existing memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start: start.cast(),
            len,
        })
    }

    /// First address of the range.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Bytes in the range.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Makes `len` bytes at `offset` (both multiples of the page size, inside
    /// the range) readable and writable; they hold zero.
    pub fn open(&self, offset: usize, len: usize) -> io::Result<()> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len));
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the range lies inside this mapping, which this value owns, and adding access
        // rights invalidates no pointer into it.
        let result = unsafe {
            libc::mprotect(
                self.start.add(offset).cast(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Returns the memory to the system and makes the whole range fault. The address range stays
    /// reserved.
    ///
    /// # Safety
    ///
    /// No reference into the range may be in use afterwards.
    pub unsafe fn seal(&self) -> io::Result<()> {
        // SAFETY: replaces exactly this mapping's own pages; the caller promises
        // that no reference into them is used again.
        let start = unsafe {
            libc::mmap(
                self.start.cast(),
                self.len,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `reserve` and is unmapped only here.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}

/// Makes whole pages accessible, or not. For signal handlers, too.
///
/// # Safety
///
/// The pages are mapped, and nothing relies on their being accessible, or not.
#[cfg(traced)]
pub(crate) unsafe fn set_open(pages: std::ops::Range<usize>, open: bool) {
    let rights = if open {
        libc::PROT_READ | libc::PROT_WRITE
    } else {
        libc::PROT_NONE
    };
    let start = ptr::with_exposed_provenance_mut(pages.start);
    // SAFETY: as the caller promises. Where it fails, the memory stays as it is.
    unsafe { libc::mprotect(start, pages.len(), rights) };
}

/// The number of stacks in one mapping. They share the bookkeeping of guard pages and are unmapped
/// together, when the last of them is dropped.
const STACKS_PER_SLAB: usize = 64;

/// The step in bytes by which the tops of successive stacks are lowered, and the number of steps
/// before it starts again. Tops at equal offsets in their pages would share a few cache sets.
const COLOUR_STEP: usize = 192;
const COLOURS: usize = 20;

/// The bytes that a thread may use beyond its stack so that a call which holds a lock can return.
const RESERVE: usize = 64 * 1024;

/// Bytes below a stack that are inaccessible: a page, and above it the reserve.
pub(crate) fn stack_guard() -> usize {
    page_size() + RESERVE
}

/// A stack for one emulated thread, with inaccessible memory below it.
pub(crate) struct ThreadStack {
    limit: StackPointer,
    base: StackPointer,
    _slab: std::sync::Arc<Mapping>,
}

impl ThreadStack {
    /// Adds a slab of new stacks of at least `bytes` each to `out`.
    pub fn make(bytes: usize, out: &mut Vec<Self>) -> io::Result<()> {
        let page = page_size();
        // Colouring leaves at least `bytes`.
        let usable = bytes.next_multiple_of(page) + (COLOUR_STEP * COLOURS).next_multiple_of(page);
        let stride = usable + stack_guard();
        let slab = std::sync::Arc::new(Mapping::reserve(stride * STACKS_PER_SLAB)?);
        slab.open(0, slab.len())?;
        // Huge pages would give every stack megabytes. Older kernels may lack
        // the advice; then nothing is lost but memory.
        // SAFETY: advice about this fresh mapping, whose contents are zero.
        unsafe { libc::madvise(slab.start().cast(), slab.len(), libc::MADV_NOHUGEPAGE) };
        for i in 0..STACKS_PER_SLAB {
            let low = slab.start().wrapping_add(i * stride);
            // SAFETY: `low` is the first page of stack `i`, inside the slab, and nothing has a
            // pointer to it yet.
            unsafe { guard(low, stack_guard())? };
            let top = low.addr() + stride - (i % COLOURS) * COLOUR_STEP;
            let (Some(limit), Some(base)) = (StackPointer::new(low.addr()), StackPointer::new(top))
            else {
                return Err(io::Error::other(
                    "the system mapped a stack at address zero",
                ));
            };
            out.push(Self {
                limit,
                base,
                _slab: std::sync::Arc::clone(&slab),
            });
        }
        Ok(())
    }

    /// Makes the reserve that [`open_reserve`] has opened inaccessible again.
    pub fn close_reserve(&self) -> io::Result<()> {
        let reserve = ptr::with_exposed_provenance_mut(self.limit.get() + page_size());
        // SAFETY: the stack's own, on which no coroutine runs.
        unsafe { guard(reserve, RESERVE) }
    }
}

/// Opens the reserve of the stack whose guard starts at `low`. For signal handlers, too.
///
/// # Safety
///
/// `low` is the start of the guard of a stack.
unsafe fn open_reserve(low: usize) -> bool {
    let reserve: *mut c_void = ptr::with_exposed_provenance_mut(low + page_size());
    // SAFETY: pages that hold nothing, as the caller promises. Whichever way they were
    // made inaccessible, one of the two ends it, and the other changes nothing.
    unsafe {
        libc::madvise(reserve, RESERVE, GUARD_REMOVE);
        libc::mprotect(reserve, RESERVE, libc::PROT_READ | libc::PROT_WRITE) == 0
    }
}

/// `MADV_GUARD_INSTALL`, Linux 6.13.
const GUARD_INSTALL: c_int = 102;
/// `MADV_GUARD_REMOVE`.
const GUARD_REMOVE: c_int = 103;

/// Makes pages inaccessible.
///
/// Newer kernels can do that without splitting the mapping in two (a process
/// may have 65530 of those by default, and a thousand stacks on each of many
/// cores would use them up); others protect the pages.
///
/// # Safety
///
/// `start` must be the start of a page in a mapping of the caller's, `bytes` whole pages
/// of it, and they hold nothing of value.
unsafe fn guard(start: *mut u8, bytes: usize) -> io::Result<()> {
    // SAFETY: the pages are the caller's and hold nothing of value. Kernels that
    // do not know the advice refuse it and change nothing.
    if unsafe { libc::madvise(start.cast(), bytes, GUARD_INSTALL) } == 0 {
        return Ok(());
    }
    // SAFETY: as above.
    if unsafe { libc::mprotect(start.cast(), bytes, libc::PROT_NONE) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The number of stacks that may exist at once before the system runs out of mappings.
pub(crate) fn max_stacks() -> usize {
    static MAX: OnceLock<usize> = OnceLock::new();
    *MAX.get_or_init(|| {
        let page = page_size();
        let splits = match Mapping::reserve(page) {
            Ok(probe) => {
                let opened = probe.open(0, page);
                // SAFETY: the probe's only page, which holds nothing.
                opened.is_err()
                    || unsafe { libc::madvise(probe.start().cast(), page, GUARD_INSTALL) } != 0
            }
            Err(_) => true,
        };
        if !splits {
            return usize::MAX;
        }
        // Two mappings per stack, and half of all for everything else.
        std::fs::read_to_string("/proc/sys/vm/max_map_count")
            .ok()
            .and_then(|text| text.trim().parse::<usize>().ok())
            .unwrap_or(65_530)
            / 4
    })
}

// SAFETY: `base` and `limit` delimit pages of a mapping that lives as long as this value; all are
// readable and writable but the lowest, guard and reserve; at least the requested bytes are usable,
// which the caller keeps above 16 KiB. Both ends are multiples of 64 (pages, and `COLOUR_STEP`), so
// aligned to 16.
unsafe impl Stack for ThreadStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}

/// Prepares the calling OS thread for running emulated threads, and the process
/// for their faults.
pub(crate) fn prepare_thread() {
    ALT_STACK.with(AltStack::ensure);
    install();
}

/// An OS thread, for [`stop`]. (`pthread_t` is a number in one C library and a
/// pointer in another.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OsThread(usize);

/// The calling OS thread.
pub(crate) fn this_thread() -> OsThread {
    // SAFETY: pthread_self has no preconditions.
    OsThread(unsafe { libc::pthread_self() } as usize)
}

/// Interrupts `thread`: if it is in a kernel's own code and its launch has run
/// out of time, its emulated thread ends there.
///
/// # Safety
///
/// `thread` must not have ended.
pub(crate) unsafe fn stop(thread: OsThread) {
    if let Some(&Some(signal)) = STOP_SIGNAL.get() {
        // SAFETY: the caller promises the thread is alive; the signal has our
        // handler, installed before STOP_SIGNAL was set.
        unsafe { libc::pthread_kill(thread.0 as libc::pthread_t, signal) };
    }
}

/// A stack for signal handlers, for a thread that has none (one that Rust did not start) or one
/// that is too small for a walk over frames. Without it the overflow of an emulated thread's stack
/// could not be handled.
struct AltStack(Cell<*mut c_void>);

const ALT_STACK_BYTES: usize = 64 * 1024;

thread_local! {
    static ALT_STACK: AltStack = const { AltStack(Cell::new(ptr::null_mut())) };
}

impl AltStack {
    fn ensure(&self) {
        let mut current = MaybeUninit::<libc::stack_t>::zeroed();
        // SAFETY: reads the current setting only; `current` is valid for writes.
        let asked = unsafe { libc::sigaltstack(ptr::null(), current.as_mut_ptr()) };
        // SAFETY: stack_t is plain data, valid when zeroed, and was filled in if
        // the call succeeded.
        let current = unsafe { current.assume_init() };
        let there = current.ss_flags & libc::SS_DISABLE == 0;
        if asked != 0 || there && current.ss_size >= ALT_STACK_BYTES {
            return;
        }
        // SAFETY: a new anonymous mapping touches no existing memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                ALT_STACK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return;
        }
        let new = libc::stack_t {
            ss_sp: start,
            ss_flags: 0,
            ss_size: ALT_STACK_BYTES,
        };
        // SAFETY: the memory stays mapped until this thread ends, see `drop`.
        unsafe { libc::sigaltstack(&new, ptr::null_mut()) };
        self.0.set(start);
    }
}

impl Drop for AltStack {
    fn drop(&mut self) {
        let start = self.0.get();
        if start.is_null() {
            return;
        }
        let off = libc::stack_t {
            ss_sp: ptr::null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: ALT_STACK_BYTES,
        };
        // SAFETY: takes the stack out of use before its memory is unmapped; it was mapped by
        // `ensure` and is unmapped only here, at the thread's end, when no signal handler is
        // running on it.
        unsafe {
            libc::sigaltstack(&off, ptr::null_mut());
            libc::munmap(start, ALT_STACK_BYTES);
        }
    }
}

/// The handled signals: faults of memory, after which threads continue, and the ends of a process,
/// before which the responsible thread is printed.
const HANDLED: [(c_int, Handler); 6] = [
    (libc::SIGSEGV, on_fault),
    (libc::SIGBUS, on_fault),
    (libc::SIGABRT, on_end),
    (libc::SIGILL, on_end),
    (libc::SIGFPE, on_end),
    (libc::SIGTRAP, on_end),
];
/// The handlers that were there before ours, in the order of [`HANDLED`].
static EARLIER: [OnceLock<libc::sigaction>; HANDLED.len()] =
    [const { OnceLock::new() }; HANDLED.len()];
/// The signal that [`stop`] sends; `None` inside if no signal number was free.
static STOP_SIGNAL: OnceLock<Option<c_int>> = OnceLock::new();
/// Address ranges of code that may hold locks of the C library: a thread is not
/// stopped inside.
static RUNTIME_CODE: OnceLock<Vec<(usize, usize)>> = OnceLock::new();

fn install() {
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    INSTALLED.call_once(|| {
        RUNTIME_CODE.get_or_init(runtime_code);
        // The first walk over frames loads what it needs, which handlers must not do.
        backtrace::trace(|_| true);
        install_look_up();
        for ((signal, handler), earlier) in HANDLED.into_iter().zip(&EARLIER) {
            // The earlier handler is kept before ours is installed, which may be called at once.
            if let Some(now) = disposition(signal) {
                earlier.get_or_init(|| now);
                set_handler(signal, handler, 0);
            }
        }
        STOP_SIGNAL.get_or_init(|| {
            // A real-time signal without a handler, from the top: the C library and other runtimes
            // take theirs from the bottom.
            let free = (libc::SIGRTMIN()..=libc::SIGRTMAX())
                .rev()
                .find(|&signal| {
                    disposition(signal).is_some_and(|now| now.sa_sigaction == libc::SIG_DFL)
                })?;
            set_handler(free, on_stop, libc::SA_RESTART).then_some(free)
        });
    });
}

fn disposition(signal: c_int) -> Option<libc::sigaction> {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: reads the current action only; `now` is valid for writes.
    let result = unsafe { libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) };
    // SAFETY: sigaction is plain data, valid when zeroed, and was filled in if
    // the call succeeded.
    (result == 0).then(|| unsafe { now.assume_init() })
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

fn set_handler(signal: c_int, handler: Handler, flags: c_int) -> bool {
    // SAFETY: sigaction is plain data for which all-zero is valid.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | flags;
    // SAFETY: the mask is ours to write; the handler has the signature that SA_SIGINFO requires and
    // is async-signal-safe: it reads thread-locals without destructors, writes the interrupted
    // context and the interrupted coroutine's stack, and calls nothing that locks or allocates.
    unsafe {
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(signal, &action, ptr::null_mut()) == 0
    }
}

/// `SIGSEGV` and `SIGBUS`: ends the emulated thread that faulted with a [`Fault`], or passes the
/// signal on to the previous handler.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    #[cfg(traced)]
    if signal == libc::SIGSEGV {
        // SAFETY: the kernel calls this with a valid siginfo and ucontext.
        let (info, context) = unsafe { (&*info, &mut *context.cast::<libc::ucontext_t>()) };
        if watched_access(info, context) {
            return;
        }
    }
    let _errno = KeepErrno::new();
    // SAFETY: the kernel calls this with a valid siginfo and ucontext.
    let ended = unsafe { end_faulting_thread(&*info, &mut *context.cast::<libc::ucontext_t>()) };
    if !ended {
        pass_on(signal, info, context);
    }
}

/// Signals that end the process: prints which emulated thread caused it.
extern "C" fn on_end(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    #[cfg(traced)]
    if signal == libc::SIGTRAP && HERE.with(|here| here.watching().is_some_and(Watching::stepped)) {
        // SAFETY: the kernel calls this with a valid ucontext.
        set_single_step(unsafe { &mut *context.cast() }, false);
        return;
    }
    #[cfg(traced)]
    // SAFETY: the kernel calls this with a valid ucontext.
    if signal == libc::SIGTRAP && overflowed_thread_stepped(unsafe { &mut *context.cast() }) {
        return;
    }
    let mut text = Text::default();
    let said = HERE.with(|here| here.say_last_words(&mut text));
    if said.is_ok() && text.len > 0 {
        text.write();
    }
    pass_on(signal, info, context);
}

/// Text in a buffer of its own, cut off where that is full: signal handlers do not allocate.
struct Text {
    bytes: [u8; 2048],
    len: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            bytes: [0; 2048],
            len: 0,
        }
    }
}

impl Text {
    /// Writes it to the error output. For signal handlers.
    fn write(&self) {
        // SAFETY: write is async-signal-safe, and the bytes are this value's.
        unsafe { libc::write(libc::STDERR_FILENO, self.bytes.as_ptr().cast(), self.len) };
    }
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = &mut self.bytes[self.len..];
        let n = text.len().min(room.len());
        room[..n].copy_from_slice(&text.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

/// Calls the handler that was there before ours.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let position = HANDLED.iter().position(|&(handled, _)| handled == signal);
    let Some(earlier) = position.and_then(|position| EARLIER[position].get()) else {
        return;
    };
    // `abort` ends the process whatever its signal does; a signal that was sent by another process
    // and is ignored stays ignored.
    let ignored = earlier.sa_sigaction == libc::SIG_IGN && signal == libc::SIGABRT;
    match earlier.sa_sigaction {
        _ if ignored => {}
        // Ignoring a fault would only repeat it for ever: both end the process, because the signal
        // is raised again with the default action in place.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: sigaction is plain data for which all-zero is valid; it
            // stands for the default action, with an empty mask. The signal is
            // blocked here, and delivered when this handler returns.
            unsafe {
                let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
                libc::sigaction(signal, &default, ptr::null_mut());
                if signal == libc::SIGABRT || signal == libc::SIGTRAP {
                    libc::raise(signal);
                }
            }
        }
        handler if earlier.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the process installed this address as a handler of three
            // arguments; it gets what the kernel gave us.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the process installed this address as a handler of one
            // argument.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Whether a fault is a watched access; if it is, the access is let through.
#[cfg(traced)]
fn watched_access(info: &libc::siginfo_t, context: &mut libc::ucontext_t) -> bool {
    HERE.with(|here| {
        let Some(trace) = here.watching() else {
            return false;
        };
        // SAFETY: the kernel fills in the address for memory faults.
        let address = unsafe { info.si_addr() }.addr();
        let write = is_write(context).unwrap_or(false);
        let (instruction, _) = registers(context);
        let site = here.running().and_then(Running::accessing);
        let step = trace.fault(address, write, instruction, here.in_kernel(), site);
        let Some(step) = step else {
            return false;
        };
        set_single_step(context, step);
        true
    })
}

/// Points `context` at the end of the emulated thread that it interrupted, if it did; or, after a
/// stack overflow, lets the thread continue until it holds no lock.
///
/// # Safety
///
/// `info` and `context` must be what a handler of a memory fault was called with,
/// on the thread that faulted.
unsafe fn end_faulting_thread(info: &libc::siginfo_t, context: &mut libc::ucontext_t) -> bool {
    HERE.with(|here| {
        let (pc, sp) = registers(context);
        // The fault is another thread's, or of host code.
        let Some(trap) = here.coroutine().filter(|trap| trap.stack_ptr_in_bounds(sp)) else {
            return false;
        };
        let in_kernel = here.in_kernel();
        if let Some(call) = here.detour()
            && in_kernel
            && pc == end_of_detour()
        {
            here.leave_kernel();
            here.end_detour();
            if here.overflow().is_some() {
                set_program_counter(context, call.address);
                end_overflowed_thread(here, trap, context);
                return true;
            }
            // The call that may have held a lock has returned, and its caller may be stopped.
            let instruction = call.address;
            end_thread(trap, context, Exit::Stopped { instruction });
            return true;
        }
        // SAFETY: the kernel fills in the address for memory faults.
        let address = unsafe { info.si_addr() }.addr();
        let fault = Fault {
            // A fault without an address (x86: one that is not canonical, or a
            // misaligned vector access) comes from the kernel's general handler.
            address: (info.si_code != libc::SI_KERNEL).then_some(address),
            write: is_write(context),
            instruction: pc,
            return_address: return_address(context, here.stack()),
        };
        let low = here.stack().start - stack_guard();
        let guard = low..here.stack().start;
        let overflows = fault
            .address
            .is_some_and(|address| guard.contains(&address));
        if !in_kernel {
            // The emulator's code continues on the reserve; the thread ends when that returns.
            // Any other fault there is a mistake of the emulator's, which should crash.
            // SAFETY: the stack of the coroutine that runs.
            let goes_on = overflows && here.overflow().is_none() && unsafe { open_reserve(low) };
            if goes_on {
                here.set_overflow(fault);
            }
            return goes_on;
        }
        here.leave_kernel();
        if overflows {
            if here.overflow().is_some() {
                end_without_reserve(here, trap, context);
                return true;
            }
            // SAFETY: the stack of the coroutine that runs.
            if unsafe { open_reserve(low) } {
                here.set_overflow(fault);
                // Ends a detour of the time limit.
                here.leave_detour();
                end_overflowed_thread(here, trap, context);
                return true;
            }
        }
        end_thread(trap, context, Exit::Fault(fault));
        true
    })
}

/// Points `context` at the end of the emulated thread that it has interrupted.
fn end_thread(trap: CoroutineTrapHandler<Exit>, context: &mut libc::ucontext_t, exit: Exit) {
    // SAFETY: this interrupts code of the coroutine that `trap` belongs to, which is
    // running: its callers have seen that the stack pointer agrees. What its code may
    // have half done to memory outside its stack is bytes in buffers, and a failed launch
    // promises nothing about those; it holds no lock, or nobody can tell. The registers
    // are written to the context right below.
    let regs = unsafe { trap.setup_trap_handler(move || exit) };
    set_registers(context, &regs);
}

/// How long a thread at the end of its stack waits for the look-up of its addresses where it cannot
/// continue.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it waits where it can continue: it may hold the lock that the look-up needs.
const SHORT_PATIENCE: Duration = Duration::from_millis(20);
/// The longest delay, as a multiple of the first one, after many delays. The time that looking up
/// takes is unknown; and each delay may use more of the reserve.
const MOST_SHORT_PATIENCES: u32 = 10;
/// How often a thread may continue before it is stopped where it is.
const DELAYS: u32 = 2048;
/// The largest number of instructions that it executes at a time where it has no call to return
/// from and it is not known whether it holds a lock. The number varies from delay to delay: with
/// the same number always, a loop whose length divides it would be seen at one place only, which
/// may be one where the lock is held. So the thread does not hold the lock at some of these times,
/// and the look-up progresses at each of them.
#[cfg(traced)]
const STEPS: u32 = 17;
/// The largest number of instructions that it executes at a time in code that is known to hold a
/// lock.
#[cfg(traced)]
const STEPS_IN_LOCK: u32 = 4096;

/// Ends a thread that has overflowed its stack, and whose reserve is open; or makes the call that
/// may hold a lock return here. While that call is unknown, or part of a recursion, the innermost
/// call returns here instead, or the thread executes some instructions.
fn end_overflowed_thread(
    here: &Here,
    trap: CoroutineTrapHandler<Exit>,
    context: &mut libc::ucontext_t,
) {
    let delays = here.delay();
    let patience = SHORT_PATIENCE * (1 + delays / 8).min(MOST_SHORT_PATIENCES);
    let position = position_when_known(here, context, patience);
    let call = match position.place {
        Interrupted::Within(call) if !position.recurs => Some(call),
        Interrupted::Within(_) | Interrupted::Unknown => position.innermost,
        Interrupted::Harmless | Interrupted::Hidden => {
            return end_thread(trap, context, Exit::Done);
        }
    };
    match call {
        Some(call) if delays <= DELAYS => {
            // SAFETY: the thread has been interrupted within this call.
            unsafe { here.take_detour(call, end_of_detour()) };
            here.enter_kernel();
        }
        #[cfg(traced)]
        None if delays <= DELAYS => {
            let steps = match position.place {
                Interrupted::Unknown => Steps::Any(1 + delays % STEPS),
                _ => Steps::InLock(STEPS_IN_LOCK),
            };
            here.set_steps(steps);
            set_single_step(context, true);
            here.enter_kernel();
        }
        _ => end_within(position.place, here, trap, context),
    }
}

/// Ends a thread that cannot continue; ends the process, if the thread holds a lock there that
/// would never be released.
fn end_within(
    place: Interrupted,
    here: &Here,
    trap: CoroutineTrapHandler<Exit>,
    context: &mut libc::ucontext_t,
) {
    if matches!(place, Interrupted::Within(_) | Interrupted::Hidden) {
        let mut text = Text::default();
        let said = here.say_overflow(&mut text);
        if said.is_ok() {
            text.write();
        }
        // SAFETY: abort may be called by signal handlers.
        unsafe { libc::abort() }
    }
    // `Here::overflow` has the reason.
    end_thread(trap, context, Exit::Done);
}

/// Whether a trap follows one of the instructions that a thread executes one by one.
#[cfg(traced)]
fn overflowed_thread_stepped(context: &mut libc::ucontext_t) -> bool {
    HERE.with(|here| {
        let Some(left) = here.step_taken() else {
            return false;
        };
        let (pc, _) = registers(context);
        let goes_on = match left {
            Steps::Any(left) => left > 0,
            Steps::InLock(left) => left > 0 && stoppable::is_known_to_hold_locks(pc),
        };
        // In the emulator's code the stepping ends: the thread ends there.
        if goes_on && here.in_kernel() {
            return true;
        }
        here.set_steps(Steps::default());
        set_single_step(context, false);
        if let Some(trap) = here.interruptible()
            && pc != end_of_detour()
        {
            let _errno = KeepErrno::new();
            here.leave_kernel();
            end_overflowed_thread(here, trap, context);
        }
        true
    })
}

/// Ends a thread that has used up its reserve too; ends the process, if the thread holds a lock
/// that would never be released.
fn end_without_reserve(
    here: &Here,
    trap: CoroutineTrapHandler<Exit>,
    context: &mut libc::ucontext_t,
) {
    here.leave_detour();
    let place = position_when_known(here, context, PATIENCE).place;
    end_within(place, here, trap, context);
}

/// The state of a thread whose reserve is open. Waits for unknown addresses: a short time if the
/// thread can continue, else as long as allowed.
fn position_when_known(
    here: &Here,
    context: &libc::ucontext_t,
    if_it_goes_on: Duration,
) -> Position {
    const PAUSE: Duration = Duration::from_millis(1);
    let (pc, _) = registers(context);
    let stack = here.stack();
    let stack = stack.start - RESERVE..stack.end;
    let mut waited = Duration::ZERO;
    loop {
        let position = stoppable::position(pc, &stack, in_runtime);
        let goes_on = cfg!(traced) || position.innermost.is_some();
        let patience = if goes_on { if_it_goes_on } else { PATIENCE };
        let known = position.place != Interrupted::Unknown;
        if known || waited >= patience || !want_look_up() {
            return position;
        }
        pause(PAUSE);
        waited += PAUSE;
    }
}

/// The file descriptor by which handlers request [`stoppable::look_up`]; -1 where there is none.
static LOOK_UP: AtomicI32 = AtomicI32::new(-1);

/// Starts the thread that looks up recorded addresses while handlers wait for it.
fn install_look_up() {
    // SAFETY: a new descriptor.
    let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    if descriptor < 0 {
        return;
    }
    let look_up = move || {
        let mut count = 0_u64;
        loop {
            // SAFETY: `count` has the eight bytes that an event descriptor gives.
            let read = unsafe { libc::read(descriptor, (&raw mut count).cast(), 8) };
            if read == 8 {
                stoppable::look_up();
            } else if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("cuda-emulator-symbols".to_owned());
    if thread.spawn(look_up).is_ok() {
        LOOK_UP.store(descriptor, Ordering::Release);
    } else {
        // SAFETY: opened above, and not shared.
        unsafe { libc::close(descriptor) };
    }
}

/// Requests that recorded addresses be looked up. Returns whether there is a thread that does it.
/// For signal handlers.
fn want_look_up() -> bool {
    let descriptor = LOOK_UP.load(Ordering::Acquire);
    let one = 1_u64;
    // SAFETY: eight bytes, to an event descriptor that is never closed.
    descriptor >= 0 && unsafe { libc::write(descriptor, (&raw const one).cast(), 8) } == 8
}

/// Waits. For signal handlers.
fn pause(time: Duration) {
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: the time is this frame's; nanosleep may be called by signal handlers.
    unsafe { libc::nanosleep(&time, ptr::null_mut()) };
}

/// Keeps the C library's error number for the code that a signal has interrupted.
struct KeepErrno(c_int);

impl KeepErrno {
    fn new() -> Self {
        // SAFETY: the calling thread's own number.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for KeepErrno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// The signal of [`stop`].
extern "C" fn on_stop(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel calls this with a valid ucontext.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    HERE.with(|here| {
        let Some(trap) = here.interruptible() else {
            return;
        };
        let (pc, sp) = registers(context);
        // A thread at the end of its detour ends there by itself; its call has returned. A thread
        // that has overflowed its stack is already ending.
        if !trap.stack_ptr_in_bounds(sp)
            || pc == end_of_detour()
            || here.overflow().is_some()
            || !here.out_of_time()
        {
            return;
        }
        here.want_stop();
        here.leave_kernel();
        // The detour of an earlier signal may be that of a call that never returns, and frames are
        // found by their return addresses.
        here.leave_detour();
        match stoppable::position(pc, &here.stack(), in_runtime).place {
            // Unlike a fault this can come between any two instructions; code that could
            // hold a lock is excluded: the emulator's by `interruptible`, and others' by
            // `position`.
            Interrupted::Harmless => end_thread(trap, context, Exit::Stopped { instruction: pc }),
            Interrupted::Within(call) => {
                // SAFETY: the thread has been interrupted within this call.
                unsafe { here.take_detour(call, end_of_detour()) };
                here.enter_kernel();
            }
            Interrupted::Hidden | Interrupted::Unknown => here.enter_kernel(),
        }
    });
}

/// Whether the code at an address may hold a lock of the C library's.
fn in_runtime(address: usize) -> bool {
    RUNTIME_CODE.get().is_some_and(|ranges| {
        ranges
            .iter()
            .any(|&(low, high)| (low..high).contains(&address))
    })
}

/// The address to which a call on a [detour](crate::here::Here::take_detour) returns: an
/// instruction that faults.
#[cfg(target_arch = "x86_64")]
fn end_of_detour() -> usize {
    #[unsafe(naked)]
    extern "C" fn end() -> ! {
        // `hlt` faults: no program may halt the processor.
        std::arch::naked_asm!("hlt")
    }
    end as *const () as usize
}

/// No address: calls of this processor keep their return addresses in other places.
#[cfg(not(target_arch = "x86_64"))]
fn end_of_detour() -> usize {
    0
}

/// The address ranges of the code of the C library and the dynamic linker.
fn runtime_code() -> Vec<(usize, usize)> {
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        out: *mut c_void,
    ) -> c_int {
        // SAFETY: dl_iterate_phdr passes a valid description and our own pointer to a Vec, which
        // nothing else uses meanwhile.
        let (info, out) = unsafe { (&*info, &mut *out.cast::<Vec<(usize, usize)>>()) };
        if info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: the name is a C string that lives as long as the object.
        let name = unsafe { std::ffi::CStr::from_ptr(info.dlpi_name) }.to_string_lossy();
        let file = name.rsplit('/').next().unwrap_or("");
        if !["libc.", "libc-", "ld-", "libpthread", "libgcc_s", "libm."]
            .iter()
            .any(|prefix| file.starts_with(prefix))
        {
            return 0;
        }
        for i in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: the object has dlpi_phnum headers at dlpi_phdr.
            let header = unsafe { &*info.dlpi_phdr.add(i) };
            if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0 {
                let low = info.dlpi_addr as usize + header.p_vaddr as usize;
                out.push((low, low + header.p_memsz as usize));
            }
        }
        0
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    // SAFETY: `visit` has the required signature and treats the pointer as the Vec that it is.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut ranges).cast()) };
    ranges
}

#[cfg(target_arch = "x86_64")]
mod context {
    use super::ptr;
    use corosensei::trap::TrapHandlerRegs;

    fn get(context: &libc::ucontext_t, register: libc::c_int) -> usize {
        context.uc_mcontext.gregs[register as usize] as usize
    }

    /// Program counter and stack pointer.
    pub fn registers(context: &libc::ucontext_t) -> (usize, usize) {
        (get(context, libc::REG_RIP), get(context, libc::REG_RSP))
    }

    pub fn set_registers(context: &mut libc::ucontext_t, regs: &TrapHandlerRegs) {
        let gregs = &mut context.uc_mcontext.gregs;
        gregs[libc::REG_RIP as usize] = regs.rip as i64;
        gregs[libc::REG_RSP as usize] = regs.rsp as i64;
        gregs[libc::REG_RBP as usize] = regs.rbp as i64;
        gregs[libc::REG_RDI as usize] = regs.rdi as i64;
        gregs[libc::REG_RSI as usize] = regs.rsi as i64;
        // The ABI requires a clear direction flag at a call; an interrupted string instruction may
        // have had it set. A single step of a watched access must not continue either.
        gregs[libc::REG_EFL as usize] &= !(1 << 10 | 1 << 8);
    }

    pub fn set_program_counter(context: &mut libc::ucontext_t, pc: usize) {
        context.uc_mcontext.gregs[libc::REG_RIP as usize] = pc as i64;
    }

    /// Makes the processor trap after the next instruction, or not.
    #[cfg(traced)]
    pub fn set_single_step(context: &mut libc::ucontext_t, step: bool) {
        const TRAP: i64 = 1 << 8;
        let flags = &mut context.uc_mcontext.gregs[libc::REG_EFL as usize];
        *flags = if step { *flags | TRAP } else { *flags & !TRAP };
    }

    /// Bit 1 of a page fault's error code.
    pub fn is_write(context: &libc::ucontext_t) -> Option<bool> {
        const PAGE_FAULT: usize = 14;
        (get(context, libc::REG_TRAPNO) == PAGE_FAULT).then(|| get(context, libc::REG_ERR) & 2 != 0)
    }

    /// The word at the top of the stack, if that is inside `stack`.
    pub fn return_address(
        context: &libc::ucontext_t,
        stack: std::ops::Range<usize>,
    ) -> Option<usize> {
        let sp = get(context, libc::REG_RSP);
        (sp.is_multiple_of(8) && stack.contains(&sp) && stack.contains(&(sp + 7))).then(|| {
            // SAFETY: an aligned word inside the accessible part of the running
            // coroutine's stack.
            unsafe { ptr::with_exposed_provenance::<usize>(sp).read_volatile() }
        })
    }
}

#[cfg(target_arch = "aarch64")]
mod context {
    use super::ptr;
    use corosensei::trap::TrapHandlerRegs;

    /// Program counter and stack pointer.
    pub fn registers(context: &libc::ucontext_t) -> (usize, usize) {
        (
            context.uc_mcontext.pc as usize,
            context.uc_mcontext.sp as usize,
        )
    }

    pub fn set_registers(context: &mut libc::ucontext_t, regs: &TrapHandlerRegs) {
        let machine = &mut context.uc_mcontext;
        machine.pc = regs.pc;
        machine.sp = regs.sp;
        machine.regs[0] = regs.x0;
        machine.regs[1] = regs.x1;
        machine.regs[29] = regs.x29;
        machine.regs[30] = regs.lr;
    }

    pub fn set_program_counter(context: &mut libc::ucontext_t, pc: usize) {
        context.uc_mcontext.pc = pc as u64;
    }

    /// WnR of the exception syndrome, which the kernel adds to the context in a
    /// record of its own for data aborts.
    pub fn is_write(context: &libc::ucontext_t) -> Option<bool> {
        const ESR_MAGIC: u32 = 0x4553_5201;
        // The records follow `pstate`, aligned to 16 bytes, in 4096 bytes.
        let after = (&raw const context.uc_mcontext.pstate).wrapping_add(1);
        let mut record = after.addr().next_multiple_of(16);
        let end = record + 4096;
        while record + 16 <= end {
            // SAFETY: the kernel terminates the records with one of magic 0, and
            // each states its size; all of them lie inside the 4096 bytes of the
            // signal frame, which is readable for the whole handler.
            let (magic, size) = unsafe {
                let head = ptr::with_exposed_provenance::<u32>(record);
                (head.read(), head.add(1).read() as usize)
            };
            if magic == 0 || size == 0 {
                return None;
            }
            if magic == ESR_MAGIC {
                // SAFETY: this record holds the syndrome as a u64 after its head.
                let esr = unsafe { ptr::with_exposed_provenance::<u64>(record + 8).read() };
                let class = esr >> 26 & 0x3F;
                // Data abort from a lower or from the same exception level.
                return matches!(class, 0x24 | 0x25).then_some(esr & (1 << 6) != 0);
            }
            record += size;
        }
        None
    }

    /// The link register.
    pub fn return_address(
        context: &libc::ucontext_t,
        _stack: std::ops::Range<usize>,
    ) -> Option<usize> {
        Some(context.uc_mcontext.regs[30] as usize)
    }
}

#[cfg(traced)]
use context::set_single_step;
use context::{is_write, registers, return_address, set_program_counter, set_registers};
