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
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
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

/// A value in cache lines of its own: helpers poll it all the time, and the calling thread's other
/// writes should not wait for them.
#[repr(align(128))]
struct CacheLine<T>(T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Helpers `1..MOST`, and the one piece of work that is open to them.
pub(super) struct Team {
    /// [`Open`], packed.
    open: CacheLine<AtomicU64>,
    /// Whether a calling thread owns the team.
    taken: AtomicBool,
    /// The open work; valid while `open` says so or while a helper is inside.
    work: UnsafeCell<*const Work<'static>>,
    /// The processor of the calling thread; `u32::MAX` if unknown.
    processor: AtomicU32,
    /// The number of the work in which a helper last left that processor.
    left: AtomicU32,
    /// Whether the helper of this number is awake or has been spawned.
    about: [AtomicBool; MOST],
    /// The first panic of a helper.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: only the thread that has taken the team writes `work`, while it is closed and no helper
// is inside. Only helpers inside read it, and `open` synchronises them with the write. It points to
// a Sync value. All other fields are Sync.
unsafe impl Sync for Team {}

/// The state: the number of the work, which differs from the previous one; the number of threads
/// that may take part; and the number of helpers inside.
#[derive(Clone, Copy)]
struct Open {
    number: u32,
    helpers: u16,
    inside: u16,
}

impl Open {
    const fn unpack(bits: u64) -> Self {
        Self {
            number: (bits >> 32) as u32,
            helpers: (bits >> 16) as u16,
            inside: bits as u16,
        }
    }

    const fn pack(self) -> u64 {
        (self.number as u64) << 32 | (self.helpers as u64) << 16 | self.inside as u64
    }
}

/// The team of the process.
pub(super) static TEAM: Team = Team {
    open: CacheLine(AtomicU64::new(0)),
    taken: AtomicBool::new(false),
    work: UnsafeCell::new(&(nothing as fn(usize))),
    processor: AtomicU32::new(u32::MAX),
    left: AtomicU32::new(1 << 31),
    about: [const { AtomicBool::new(false) }; MOST],
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
        // SAFETY: this thread owns the team, which is closed and has no helper inside: its last
        // owner waited for that.
        unsafe { *self.work.get() = work };
        let processor = processor::current().unwrap_or(u32::MAX);
        self.processor.store(processor, Ordering::Relaxed);
        let number = Open::unpack(self.open.load(Ordering::Relaxed)).number;
        let open = Open {
            number: number.wrapping_add(1),
            helpers: threads as u16,
            inside: 0,
        };
        self.open.store(open.pack(), Ordering::Release);
        let closing = Closing(self);
        for helper in 1..threads {
            let about = &self.about[helper];
            if !about.load(Ordering::Relaxed) && !about.swap(true, Ordering::Relaxed) {
                rayon::spawn(move || self.help(helper));
            }
        }
        work(0);
        drop(closing);
        true
    }

    /// Moves a helper to another processor if it runs on that of the calling thread.
    fn leave_caller(&self, number: u32) {
        let Some(here) = processor::current() else {
            return;
        };
        let last = self.left.load(Ordering::Relaxed);
        if here == self.processor.load(Ordering::Relaxed) && number.wrapping_sub(last) >= RARELY {
            self.left.store(number, Ordering::Relaxed);
            processor::leave(here);
        }
    }

    /// Runs a helper until it has found nothing to do for [`AWAKE`].
    fn help(&self, helper: usize) {
        let mut last = None;
        let mut since = Instant::now();
        loop {
            for _ in 0..LOOKS {
                let bits = self.open.load(Ordering::Relaxed);
                let open = Open::unpack(bits);
                if Some(open.number) == last || helper >= usize::from(open.helpers) {
                    spin_loop();
                    continue;
                }
                let inside = Open {
                    inside: open.inside + 1,
                    ..open
                };
                let entered = self.open.compare_exchange_weak(
                    bits,
                    inside.pack(),
                    Ordering::Acquire,
                    Ordering::Relaxed,
                );
                if entered.is_err() {
                    continue;
                }
                last = Some(open.number);
                self.leave_caller(open.number);
                // SAFETY: this helper is inside, so the work exists until it has left, and was
                // written before it was opened.
                let work = unsafe { &**self.work.get() };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(helper))) {
                    let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(panic);
                }
                self.open.fetch_sub(1, Ordering::Release);
                since = Instant::now();
            }
            if since.elapsed() > AWAKE {
                break;
            }
        }
        self.about[helper].store(false, Ordering::Relaxed);
    }
}

/// On drop, closes the work of a team, waits for the helpers inside, and releases the team.
struct Closing<'a>(&'a Team);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let Self(team) = self;
        let mut looks = 0;
        let mut open = Open::unpack(team.open.load(Ordering::Relaxed));
        loop {
            let closed = Open { helpers: 0, ..open };
            // No helper enters after this exchange.
            match team.open.compare_exchange_weak(
                open.pack(),
                closed.pack(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => open = Open::unpack(now),
            }
        }
        // The acquire loads make the helpers' results visible once they have left.
        while Open::unpack(team.open.load(Ordering::Acquire)).inside > 0 {
            looks += 1;
            if looks < PATIENCE {
                spin_loop();
            } else {
                thread::yield_now();
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
