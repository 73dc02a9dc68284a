//! The state of the calling OS thread: its block, its coroutine, and whether it is running the
//! kernel's own code.
//!
//! Signal handlers read this, so it is a thread-local without initialiser and
//! destructor, and `in_kernel` is ordered against the rest by compiler fences:
//! while it is set, nothing else here changes.

use std::cell::Cell;
use std::fmt;
use std::mem;
use std::ops::Range;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};

use corosensei::trap::CoroutineTrapHandler;

/// A source line, as `#[track_caller]` gives it.
pub(crate) type Site = &'static Location<'static>;

/// Queries of the block that an OS thread runs, also from signal handlers.
///
/// # Safety
///
/// Only [`Block`](crate::block::Block) implements it: its address here is used as a block's.
pub(crate) unsafe trait Running {
    /// Writes the place of its running thread, without allocating.
    fn write_place(&self, out: &mut dyn fmt::Write) -> fmt::Result;

    /// Whether its launch has used up its time.
    fn out_of_time(&self) -> bool;

    /// The source line for which the emulator accesses memory at this moment, if it does.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    fn accessing(&self) -> Option<Site>;
}

/// Notifications from signal handlers to the trace of a launch.
///
/// # Safety
///
/// Only [`Trace`](crate::race::Trace) implements it: its address here is used as a trace's.
#[allow(
    dead_code,
    reason = "for signal handlers, which not all platforms have"
)]
pub(crate) unsafe trait Watching {
    /// Records a fault at `address`. `None` if the access is not watched; else whether the
    /// instruction is to be single-stepped.
    fn fault(
        &self,
        address: usize,
        write: bool,
        instruction: usize,
        in_kernel: bool,
        site: Option<Site>,
    ) -> Option<bool>;

    /// Records that the instruction has been stepped; returns whether one was to be.
    fn stepped(&self) -> bool;
}

/// A fault of an emulated thread, as the signal handler saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    /// The address that was accessed, where the platform says.
    pub address: Option<usize>,
    /// Whether it was a write, where the platform says.
    pub write: Option<bool>,
    /// Address of the instruction.
    pub instruction: usize,
    /// The return address, if the function is a leaf that has not moved the stack (`memcpy` of the
    /// C library, for instance).
    pub return_address: Option<usize>,
}

/// How an emulated thread ended. (`Copy`, because corosensei's trap handler is `Copy` only then.)
#[derive(Clone, Copy)]
pub(crate) enum Exit {
    /// It returned, or called `exit_thread`.
    Done,
    /// It panicked; [`panics::take`](crate::panics::take) has the message.
    Panicked,
    /// It accessed memory that it must not access.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    Fault(Fault),
    /// It was running when the time was up.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    Stopped {
        /// Address of the instruction it was at.
        instruction: usize,
    },
}

/// The return address of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Return {
    /// The place on the stack that holds the address.
    pub slot: usize,
    /// The address.
    pub address: usize,
}

/// The largest number of instructions that a thread executes one by one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Steps {
    /// In any code.
    Any(u32),
    /// Only in code that is known to hold a lock.
    #[allow(dead_code, reason = "where instructions can be taken one by one")]
    InLock(u32),
}

impl Default for Steps {
    fn default() -> Self {
        Self::Any(0)
    }
}

thread_local! {
    /// The state of this OS thread.
    pub(crate) static HERE: Here = const {
        Here {
            block: Cell::new(None),
            trap: Cell::new(None),
            stack: Cell::new((0, 0)),
            in_kernel: AtomicBool::new(false),
            unwinding: Cell::new(false),
            last_words: Cell::new(None),
            stop_wanted: Cell::new(false),
            detour: Cell::new(None),
            overflow: Cell::new(None),
            delays: Cell::new(0),
            steps: Cell::new(Steps::Any(0)),
            trace: Cell::new(None),
        }
    };
}

pub(crate) struct Here {
    /// The block whose threads this OS thread runs. It is valid while it is set.
    block: Cell<Option<NonNull<dyn Running>>>,
    trap: Cell<Option<CoroutineTrapHandler<Exit>>>,
    /// Lowest accessible address and end of the running coroutine's stack.
    stack: Cell<(usize, usize)>,
    /// Whether the kernel's own code is running, as opposed to the emulator's.
    in_kernel: AtomicBool,
    /// Whether the running thread has begun to panic or to exit by unwinding.
    unwinding: Cell<bool>,
    /// What to print if the panic that has begun ends the process.
    last_words: Cell<Option<NonNull<str>>>,
    /// Whether the running thread was to be stopped at a place where no thread may be stopped.
    stop_wanted: Cell<bool>,
    /// The call that will not return to its caller, where the running thread has one:
    /// the thread ends there.
    detour: Cell<Option<Return>>,
    /// The fault by which the running thread overflowed its stack. It continues on the reserve
    /// beyond the stack, until it holds no lock.
    overflow: Cell<Option<Fault>>,
    /// How often the thread has been allowed to continue since.
    delays: Cell<u32>,
    /// The number of instructions that the thread still executes one by one.
    steps: Cell<Steps>,
    /// The trace of the launch that this OS thread runs. It is valid while it is set.
    trace: Cell<Option<NonNull<dyn Watching>>>,
}

impl Here {
    /// Makes `block` this OS thread's block until the guard is dropped, which restores the previous
    /// one.
    pub fn enter_block<'a>(&'a self, block: &'a dyn Running) -> Entered<'a> {
        let block = NonNull::from(block);
        // SAFETY: the two types differ in a lifetime. `running` gives the block out for no
        // longer than the guard is held, as it says.
        let block = unsafe { mem::transmute::<NonNull<dyn Running>, NonNull<dyn Running>>(block) };
        Entered {
            here: self,
            before: self.block.replace(Some(block)),
        }
    }

    /// The block this OS thread runs, if any.
    pub fn running(&self) -> Option<&dyn Running> {
        // SAFETY: set by `enter_block` from a reference that is valid until the
        // guard resets the pointer, and the guard is held while coroutines of
        // the block run, which are the only code that gets here. The returned
        // lifetime is that of the borrow of this thread-local, which callers
        // cannot extend beyond one call of `HERE.with`.
        self.block.get().map(|block| unsafe { &*block.as_ptr() })
    }

    /// Records the coroutine that is about to be resumed.
    pub fn about_to_resume(&self, trap: CoroutineTrapHandler<Exit>, stack: Range<usize>) {
        self.trap.set(Some(trap));
        self.stop_wanted.set(false);
        self.detour.set(None);
        self.overflow.set(None);
        self.steps.set(Steps::default());
        self.stack.set((stack.start, stack.end));
    }

    /// Lets `trace` watch the launches of this OS thread while `run` runs.
    pub fn traced<R>(&self, trace: &dyn Watching, run: impl FnOnce() -> R) -> R {
        /// Ends the watch, also when a launch panics.
        struct Watch<'a>(&'a Here);
        impl Drop for Watch<'_> {
            fn drop(&mut self) {
                self.0.trace.set(None);
            }
        }
        let trace = NonNull::from(trace);
        // SAFETY: the two types differ in a lifetime. `watching` gives it out for no longer
        // than this call lasts, as it says.
        let trace =
            unsafe { mem::transmute::<NonNull<dyn Watching>, NonNull<dyn Watching>>(trace) };
        self.trace.set(Some(trace));
        let _watch = Watch(self);
        run()
    }

    /// The trace of the launch that this OS thread runs.
    #[inline]
    pub fn watching(&self) -> Option<&dyn Watching> {
        // SAFETY: set by `traced` from a reference that outlives the time it is set
        // for. The returned lifetime is that of the borrow of this thread-local.
        self.trace.get().map(|trace| unsafe { &*trace.as_ptr() })
    }

    /// Marks that the kernel's own code runs from here on.
    #[inline]
    pub fn enter_kernel(&self) {
        compiler_fence(Ordering::SeqCst);
        self.in_kernel.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Marks that the emulator's code runs from here on.
    #[inline]
    pub fn leave_kernel(&self) {
        compiler_fence(Ordering::SeqCst);
        self.in_kernel.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Whether the kernel's own code was running at the moment of a signal or a
    /// panic.
    pub fn in_kernel(&self) -> bool {
        self.in_kernel.load(Ordering::Relaxed)
    }

    /// Records that the running thread begins, or has ended, unwinding.
    pub fn set_unwinding(&self, unwinding: bool) {
        self.unwinding.set(unwinding);
    }

    /// Whether the running thread is unwinding. It must not wait then: other
    /// threads would run with this one's panic in flight.
    pub fn unwinding(&self) -> bool {
        // Both are needed: a kernel may have caught its panic, and the host may be panicking while
        // it launches.
        self.unwinding.get() && std::thread::panicking()
    }

    /// Keeps the address of a text that is printed if the panic in progress ends the process. The
    /// text must stay there until the next call.
    pub fn set_last_words(&self, text: Option<&str>) {
        self.last_words.set(text.map(NonNull::from));
    }

    /// Writes what to print when the process aborts at this moment: the panic that a thread of a
    /// kernel is in, or the place of the thread; nothing if no kernel is involved. Allocates
    /// nothing.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn say_last_words(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        if self.unwinding()
            && let Some(text) = self.last_words.get()
        {
            // SAFETY: whoever set the address keeps the text there.
            writeln!(out, "{}", unsafe { text.as_ref() })
        } else if self.in_kernel()
            && let Some(block) = self.running()
        {
            block.write_place(out)?;
            out.write_str(": ended the process\n")
        } else {
            Ok(())
        }
    }

    /// Writes what to print when the process ends because the running thread has used up its stack
    /// where it may hold a lock. Allocates nothing.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn say_overflow(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        if let Some(block) = self.running() {
            block.write_place(out)?;
            out.write_str(": ")?;
        }
        out.write_str(
            "stack overflow in a call that may hold a lock, which would never be free again\n",
        )
    }

    /// The trap handler of the running coroutine, if the kernel's own code is running.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn interruptible(&self) -> Option<CoroutineTrapHandler<Exit>> {
        if !self.in_kernel() {
            return None;
        }
        self.trap.get()
    }

    /// The trap handler of the coroutine resumed last, in the kernel's code and the emulator's.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn coroutine(&self) -> Option<CoroutineTrapHandler<Exit>> {
        self.running()?;
        self.trap.get()
    }

    /// The accessible part of the running coroutine's stack.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn stack(&self) -> Range<usize> {
        let (start, end) = self.stack.get();
        start..end
    }

    /// Requests that the running thread end at its next call of the emulator. For signal handlers.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn want_stop(&self) {
        self.stop_wanted.set(true);
    }

    /// Whether the running thread is to end at this call.
    #[inline]
    pub fn stop_wanted(&self) -> bool {
        self.stop_wanted.get()
    }

    /// Makes a call of the running thread return to `elsewhere` in place of its caller.
    /// For signal handlers.
    ///
    /// # Safety
    ///
    /// The running thread has been interrupted within the call.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub unsafe fn take_detour(&self, call: Return, elsewhere: usize) {
        // SAFETY: where the call keeps its return address, by the caller's promise.
        unsafe { ptr::with_exposed_provenance_mut::<usize>(call.slot).write_volatile(elsewhere) };
        self.detour.set(Some(call));
    }

    /// The call that does not return to its caller.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn detour(&self) -> Option<Return> {
        self.detour.get()
    }

    /// Records that the call that did not return to its caller has returned. For signal handlers.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn end_detour(&self) {
        self.detour.set(None);
    }

    /// Records that the running thread has overflowed its stack, and requests that it end at its
    /// next call of the emulator. For signal handlers.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn set_overflow(&self, fault: Fault) {
        self.overflow.set(Some(fault));
        self.delays.set(0);
        self.want_stop();
    }

    /// How often the running thread has been allowed to continue since its overflow, counting this
    /// time. For signal handlers.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn delay(&self) -> u32 {
        let delays = self.delays.get() + 1;
        self.delays.set(delays);
        delays
    }

    /// Makes the running thread execute instructions one by one. For signal handlers.
    #[allow(dead_code, reason = "where instructions can be taken one by one")]
    pub fn set_steps(&self, steps: Steps) {
        self.steps.set(steps);
    }

    /// The number of instructions left after one; `None` where none was being counted. For signal
    /// handlers.
    #[allow(dead_code, reason = "where instructions can be taken one by one")]
    pub fn step_taken(&self) -> Option<Steps> {
        let left = match self.steps.get() {
            Steps::Any(count) => Steps::Any(count.checked_sub(1)?),
            Steps::InLock(count) => Steps::InLock(count.checked_sub(1)?),
        };
        self.steps.set(left);
        Some(left)
    }

    /// The fault by which the running thread, or the last one, overflowed its stack, if it did.
    #[inline]
    pub fn overflow(&self) -> Option<Fault> {
        self.overflow.get()
    }

    /// Restores the return address of the call that does not return to its caller: before the
    /// running thread unwinds, because unwinding follows return addresses.
    pub fn leave_detour(&self) {
        if let Some(call) = self.detour.take() {
            // SAFETY: the call has not returned, as the thread would have ended; so its
            // return address is still kept there.
            unsafe {
                ptr::with_exposed_provenance_mut::<usize>(call.slot).write_volatile(call.address);
            }
        }
    }

    /// Whether the running block's launch has used up its time.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn out_of_time(&self) -> bool {
        self.running().is_some_and(Running::out_of_time)
    }
}

/// See [`Here::enter_block`].
pub(crate) struct Entered<'a> {
    here: &'a Here,
    before: Option<NonNull<dyn Running>>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.here.block.set(self.before);
    }
}
