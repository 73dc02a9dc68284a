//! The time limit: one thread for the process that wakes when a launch's time is
//! up.
//!
//! At the deadline the launch is marked; threads notice at their next barrier, warp operation,
//! atomic or step. Threads that have not noticed after [`GRACE`] are interrupted by a signal, again
//! and again until the launch ends, and stopped where they hold no lock. A thread that was
//! interrupted where it may hold a lock also ends at its next call of the emulator, for example for
//! its index.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::sys::{self, OsThread};

/// The time in which threads may notice by themselves.
const GRACE: Duration = Duration::from_millis(20);
/// Time between two signals. A thread that prints or allocates for ever and
/// calls nothing of the emulator can be stopped only in the moments between, so
/// there are many.
const REPEAT: Duration = Duration::from_millis(1);

/// A launch with a time limit.
#[derive(Debug)]
pub(crate) struct Ticket {
    deadline: Instant,
    limit: Duration,
    expired: AtomicBool,
    /// The OS threads that run its blocks.
    workers: Mutex<Vec<OsThread>>,
}

impl Ticket {
    /// Whether the time is up.
    pub fn expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    /// The time limit of the launch.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Makes the calling OS thread one that may be interrupted, until the guard
    /// is dropped.
    pub fn enter(&self) -> Worker<'_> {
        let thread = sys::this_thread();
        lock(&self.workers).push(thread);
        Worker {
            ticket: self,
            thread,
        }
    }
}

/// See [`Ticket::enter`].
pub(crate) struct Worker<'a> {
    ticket: &'a Ticket,
    thread: OsThread,
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let mut workers = lock(&self.ticket.workers);
        if let Some(i) = workers.iter().position(|&thread| thread == self.thread) {
            workers.swap_remove(i);
        }
    }
}

/// A launch that is watched until this is dropped.
pub(crate) struct Watched(pub Arc<Ticket>);

impl Drop for Watched {
    fn drop(&mut self) {
        lock(&WATCHDOG.state)
            .tickets
            .retain(|ticket| !Arc::ptr_eq(ticket, &self.0));
    }
}

struct Watchdog {
    state: Mutex<State>,
    sooner: Condvar,
}

struct State {
    tickets: Vec<Arc<Ticket>>,
    running: bool,
    /// When the thread will wake without being notified.
    wakes: Option<Instant>,
}

static WATCHDOG: Watchdog = Watchdog {
    state: Mutex::new(State {
        tickets: Vec::new(),
        running: false,
        wakes: None,
    }),
    sooner: Condvar::new(),
};

/// Watches a launch that starts now and may take `limit`. `None` if the limit is
/// beyond what the clock can express.
pub(crate) fn watch(limit: Duration) -> io::Result<Option<Watched>> {
    let Some(deadline) = Instant::now().checked_add(limit) else {
        return Ok(None);
    };
    let ticket = Arc::new(Ticket {
        deadline,
        limit,
        expired: AtomicBool::new(false),
        workers: Mutex::default(),
    });
    let mut state = lock(&WATCHDOG.state);
    if !state.running {
        thread::Builder::new()
            .name("cuda-emulator-watchdog".to_owned())
            .spawn(run)?;
        state.running = true;
    }
    state.tickets.push(Arc::clone(&ticket));
    if state.wakes.is_none_or(|wakes| deadline < wakes) {
        WATCHDOG.sooner.notify_one();
    }
    Ok(Some(Watched(ticket)))
}

fn run() {
    let mut state = lock(&WATCHDOG.state);
    loop {
        let now = Instant::now();
        let mut next: Option<Instant> = None;
        let mut stopping = false;
        for ticket in &state.tickets {
            let due = if ticket.deadline > now {
                ticket.deadline
            } else {
                ticket.expired.store(true, Ordering::Relaxed);
                if now >= ticket.deadline + GRACE {
                    stopping = true;
                    for &thread in lock(&ticket.workers).iter() {
                        // SAFETY: the thread takes itself off the list, under
                        // the lock held here, before it goes on to other things,
                        // so it has not ended.
                        unsafe { sys::stop(thread) };
                    }
                }
                now + REPEAT
            };
            next = Some(next.map_or(due, |next| next.min(due)));
        }
        if stopping {
            // Without the lock: looking up lines takes a while at first.
            drop(state);
            sys::prepare_to_stop();
            state = lock(&WATCHDOG.state);
        }
        state.wakes = next;
        state = match next {
            None => WATCHDOG
                .sooner
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
            Some(next) => {
                WATCHDOG
                    .sooner
                    .wait_timeout(state, next.saturating_duration_since(now))
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No holder of these locks leaves the lists half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
