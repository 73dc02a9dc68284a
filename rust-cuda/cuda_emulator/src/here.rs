//! What the calling OS thread is doing: which block, which coroutine, and
//! whether the code running is the kernel's own.
//!
//! Signal handlers read this, so it is a thread-local without initialiser and
//! destructor, and `in_kernel` is ordered against the rest by compiler fences:
//! while it is set, nothing else here changes.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};

use corosensei::trap::CoroutineTrapHandler;

use crate::block::Block;
use crate::race::Trace;
use crate::sys::Fault;

/// How an emulated thread ended. (`Copy`, because only then is corosensei's
/// handle to the way out of a coroutine.)
#[derive(Clone, Copy)]
pub(crate) enum Exit {
    /// It returned, or called `exit_thread`.
    Done,
    /// It panicked; [`panics::take`](crate::panics::take) has what it said.
    Panicked,
    /// It touched memory that it may not touch.
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

/// Where a call returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Return {
    /// The place on the stack where the address is kept.
    pub slot: usize,
    /// The address.
    pub address: usize,
}

thread_local! {
    /// The state of this OS thread.
    pub(crate) static HERE: Here = const {
        Here {
            block: Cell::new(ptr::null()),
            trap: Cell::new(None),
            stack: Cell::new((0, 0)),
            in_kernel: AtomicBool::new(false),
            unwinding: Cell::new(false),
            last_words: Cell::new(None),
            stop_wanted: Cell::new(false),
            detour: Cell::new(None),
            trace: Cell::new(ptr::null()),
        }
    };
}

pub(crate) struct Here {
    /// The block whose threads this OS thread runs, or null. Points to a
    /// `Block<'_>` that outlives the time it is set for.
    block: Cell<*const ()>,
    trap: Cell<Option<CoroutineTrapHandler<Exit>>>,
    /// Lowest accessible address and end of the running coroutine's stack.
    stack: Cell<(usize, usize)>,
    /// Whether the kernel's own code is running, as opposed to the emulator's.
    in_kernel: AtomicBool,
    /// Whether the running thread has begun to panic or to exit by unwinding.
    unwinding: Cell<bool>,
    /// What to print if the panic that has begun ends the process.
    last_words: Cell<Option<NonNull<str>>>,
    /// Whether the running thread should have been stopped where no thread may be.
    stop_wanted: Cell<bool>,
    /// The call that will not return to its caller, where the running thread has one:
    /// the thread ends there.
    detour: Cell<Option<Return>>,
    /// What watches the launch that this OS thread runs, or null.
    trace: Cell<*const Trace>,
}

impl Here {
    /// Makes `block` this OS thread's block until the guard is dropped, which
    /// brings back what was there before.
    pub fn enter_block<'a>(&'a self, block: &'a Block<'_>) -> Entered<'a> {
        Entered {
            here: self,
            before: self.block.replace(ptr::from_ref(block).cast()),
        }
    }

    /// The block this OS thread runs, if any.
    pub fn block(&self) -> Option<&Block<'_>> {
        let block = self.block.get().cast::<Block<'_>>();
        // SAFETY: set by `enter_block` from a reference that is valid until the
        // guard resets the pointer, and the guard is held while coroutines of
        // the block run, which are the only code that gets here. The returned
        // lifetime is that of the borrow of this thread-local, which callers
        // cannot extend beyond one call of `HERE.with`.
        unsafe { block.as_ref() }
    }

    /// Notes the coroutine that is about to be resumed.
    pub fn about_to_resume(&self, trap: CoroutineTrapHandler<Exit>, stack: Range<usize>) {
        self.trap.set(Some(trap));
        self.stop_wanted.set(false);
        self.detour.set(None);
        self.stack.set((stack.start, stack.end));
    }

    /// Has `trace` watch the launches of this OS thread while `run` runs.
    pub fn traced<R>(&self, trace: &Trace, run: impl FnOnce() -> R) -> R {
        /// Ends the watch, also when a launch panics.
        struct Watch<'a>(&'a Here);
        impl Drop for Watch<'_> {
            fn drop(&mut self) {
                self.0.trace.set(ptr::null());
            }
        }
        self.trace.set(trace);
        let _watch = Watch(self);
        run()
    }

    /// What watches the launch that this OS thread runs.
    #[inline]
    pub fn trace(&self) -> Option<&Trace> {
        // SAFETY: set by `traced` from a reference that outlives the time it is set
        // for. The returned lifetime is that of the borrow of this thread-local.
        unsafe { self.trace.get().as_ref() }
    }

    /// From here on the kernel's own code runs.
    #[inline]
    pub fn enter_kernel(&self) {
        compiler_fence(Ordering::SeqCst);
        self.in_kernel.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// From here on the emulator's code runs.
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

    /// The running thread begins, or has ended, unwinding.
    pub fn set_unwinding(&self, unwinding: bool) {
        self.unwinding.set(unwinding);
    }

    /// Whether the running thread is unwinding. It must not wait then: other
    /// threads would run with this one's panic in flight.
    pub fn unwinding(&self) -> bool {
        // Both: a kernel may have caught its panic, and the host may be
        // panicking while it launches.
        self.unwinding.get() && std::thread::panicking()
    }

    /// Keeps the address of what to print if the panic that has begun ends the
    /// process. The text must stay where it is until this is called again.
    pub fn set_last_words(&self, text: Option<&str>) {
        self.last_words.set(text.map(NonNull::from));
    }

    /// What to print when the process aborts at this moment: the panic that a thread
    /// of a kernel is in, or the place of the thread. Nothing if the kernel has no
    /// part in it. Allocates nothing.
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
            && let Some(block) = self.block()
        {
            writeln!(out, "{}: ended the process", block.place_of_running())
        } else {
            Ok(())
        }
    }

    /// The way out of the running coroutine, if the kernel's own code is running.
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

    /// The accessible part of the running coroutine's stack.
    #[allow(
        dead_code,
        reason = "for signal handlers, which not all platforms have"
    )]
    pub fn stack(&self) -> Range<usize> {
        let (start, end) = self.stack.get();
        start..end
    }

    /// Asks the running thread to end at its next call of the emulator. For signal
    /// handlers.
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

    /// Lets it return there again: before the running thread unwinds, for its frames are
    /// found by their return addresses.
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
        self.block().is_some_and(|block| block.out_of_time())
    }
}

/// See [`Here::enter_block`].
pub(crate) struct Entered<'a> {
    here: &'a Here,
    before: *const (),
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.here.block.set(self.before);
    }
}
