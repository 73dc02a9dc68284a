//! A team of threads that stay awake for a short time after their work, ready for the next call.
//!
//! Waking a thread takes tens of microseconds, longer than the work on a field that fits in a
//! cache. A program usually calls again soon, so a helper polls for more work for [`AWAKE`] before
//! it returns to rayon. The calling thread waits only for helpers that have begun, and does the
//! rest of the work itself.

use super::processor;
use std::any::Any;
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time for which a helper polls for more work.
const AWAKE: Duration = Duration::from_micros(50);

/// Polls between two reads of the clock.
const LOOKS: usize = 64;

/// The number of polls after which the calling thread, waiting for its helpers, begins to yield its
/// processor: a helper may be waiting for one.
const PATIENCE: usize = 1 << 12;

/// A helper leaves the calling thread's processor at most once in this many calls. Where there are
/// more threads than processors, some helper always runs there.
const RARELY: u32 = 32;

/// The most threads of a team, including the calling one.
const MOST: usize = 64;

/// The work of a helper, called with its number.
type Work<'a> = dyn Fn(usize) + Sync + 'a;

/// What a helper may do, or does. Its cache lines are its own: it polls them all the time, and should
/// not wait for other helpers' writes.
#[repr(align(128))]
struct Helper {
    /// One of the states below.
    state: AtomicU32,
    /// Whether it is awake or has been spawned.
    about: AtomicBool,
}

/// No work is open to the helper.
const CLOSED: u32 = 0;
/// The helper may begin the team's work.
const OPEN: u32 = 1;
/// The helper has begun it.
const INSIDE: u32 = 2;

impl Helper {
    const fn new() -> Self {
        Self {
            state: AtomicU32::new(CLOSED),
            about: AtomicBool::new(false),
        }
    }

    /// Changes the state if it is `from`, and tells whether it was.
    fn change(&self, from: u32, to: u32) -> bool {
        // Acquire: whoever sees that work is open, or closed, sees what was written before.
        self.state
            .compare_exchange(from, to, Ordering::Acquire, Ordering::Acquire)
            .is_ok()
    }
}

/// Helpers `1..MOST`, and the one piece of work that is open to them.
pub(super) struct Team {
    helpers: [Helper; MOST],
    /// Whether a calling thread owns the team.
    taken: AtomicBool,
    /// The open work; valid while it is open to a helper or a helper is inside.
    work: UnsafeCell<*const Work<'static>>,
    /// The number of the work.
    number: AtomicU32,
    /// The processor of the calling thread; `u32::MAX` if unknown.
    processor: AtomicU32,
    /// The number of the work in which a helper last left that processor.
    left: AtomicU32,
    /// The first panic of a helper.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: only the thread that has taken the team writes `work`, while all helpers are closed. Only
// helpers inside read it; a helper's state synchronises it with the write. It points to a Sync
// value. All other fields are Sync.
unsafe impl Sync for Team {}

/// The team of the process.
pub(super) static TEAM: Team = Team {
    helpers: [const { Helper::new() }; MOST],
    taken: AtomicBool::new(false),
    work: UnsafeCell::new(&(nothing as fn(usize))),
    number: AtomicU32::new(0),
    processor: AtomicU32::new(u32::MAX),
    left: AtomicU32::new(1 << 31),
    panic: Mutex::new(None),
};

fn nothing(_: usize) {}

impl Team {
    /// Calls `work(0)` on this thread, and on rayon's threads `work(n)`, at most once each, for
    /// those `n` in `1..threads` whose helper comes in time. Returns when all calls have returned.
    /// If another thread owns the team, it calls nothing and returns false.
    ///
    /// `work` must do everything, whichever helpers come. Call this after [`ready`](super::ready)
    /// has found rayon's threads, and not on one of them.
    pub(super) fn call(&'static self, threads: usize, work: &Work<'_>) -> bool {
        if self.taken.swap(true, Ordering::Acquire) {
            return false;
        }
        let threads = threads.min(MOST);
        // SAFETY: only the lifetime changes. `Closing` below waits, even if `work` panics, until no
        // helper that could use it is inside, and none enters later.
        let work = unsafe { std::mem::transmute::<&Work<'_>, &'static Work<'static>>(work) };
        // SAFETY: this thread owns the team, and its last owner waited until all helpers were closed.
        unsafe { *self.work.get() = work };
        let processor = processor::current().unwrap_or(u32::MAX);
        self.processor.store(processor, Ordering::Relaxed);
        let number = self.number.load(Ordering::Relaxed).wrapping_add(1);
        self.number.store(number, Ordering::Relaxed);
        let closing = Closing {
            team: self,
            helpers: &self.helpers[1..threads],
        };
        // First all are told: those that are awake begin.
        for helper in closing.helpers {
            helper.state.store(OPEN, Ordering::Release);
        }
        for (helper, number) in closing.helpers.iter().zip(1..) {
            let about = &helper.about;
            if !about.load(Ordering::Relaxed) && !about.swap(true, Ordering::Relaxed) {
                rayon::spawn(move || self.help(number));
            }
        }
        work(0);
        drop(closing);
        true
    }

    /// Moves a helper to another processor if it runs on that of the calling thread.
    fn leave_caller(&self) {
        let Some(here) = processor::current() else {
            return;
        };
        let number = self.number.load(Ordering::Relaxed);
        let last = self.left.load(Ordering::Relaxed);
        if here == self.processor.load(Ordering::Relaxed) && number.wrapping_sub(last) >= RARELY {
            self.left.store(number, Ordering::Relaxed);
            processor::leave(here);
        }
    }

    /// Runs the helper of this number until it has found nothing to do for [`AWAKE`].
    fn help(&self, number: usize) {
        let helper = &self.helpers[number];
        let mut since = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if helper.state.load(Ordering::Relaxed) != OPEN || !helper.change(OPEN, INSIDE) {
                    spin_loop();
                    continue;
                }
                self.leave_caller();
                // SAFETY: this helper is inside, so the work exists until it is closed, and was
                // written before it was opened.
                let work = unsafe { &**self.work.get() };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(number))) {
                    let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(panic);
                }
                helper.state.store(CLOSED, Ordering::Release);
                since = Instant::now();
            }
            if since.elapsed() > AWAKE {
                break;
            }
        }
        helper.about.store(false, Ordering::Relaxed);
    }
}

/// On drop, closes the work of a team to the helpers to which it is open, waits for those inside,
/// and releases the team.
struct Closing<'a> {
    team: &'a Team,
    helpers: &'a [Helper],
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let Self { team, helpers } = self;
        // No helper enters after this.
        for helper in *helpers {
            if helper.state.load(Ordering::Relaxed) == OPEN {
                helper.change(OPEN, CLOSED);
            }
        }
        let mut looks = 0;
        for helper in *helpers {
            // The acquire load makes the helper's results visible.
            while helper.state.load(Ordering::Acquire) != CLOSED {
                looks += 1;
                if looks < PATIENCE {
                    spin_loop();
                } else {
                    thread::yield_now();
                }
            }
        }
        let panic = team
            .panic
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        team.taken.store(false, Ordering::Release);
        if let Some(panic) = panic
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}
