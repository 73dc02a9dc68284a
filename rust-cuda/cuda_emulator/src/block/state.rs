//! The state of a block and of its threads, and the scheduler's operations on
//! it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{Location, resume_unwind};
use std::ptr;
use std::sync::Arc;

use corosensei::Yielder;

use super::arrays::Shared;
use super::requests::{Copies, Form, WarpOperation, WarpRequest};
use crate::config::{LaunchConfig, Options, ThreadOrder, WARP_SIZE};
use crate::diagnosis::{Diagnosis, Limit, Origin};
use crate::here::{HERE, Here, Running, Site};
use crate::memory::{DeviceMemory, Textures};
use crate::race::{Trace, watching};
use crate::random::Random;
use crate::region::Offset;
use crate::watchdog::Ticket;
use crate::workspace::Workspace;

/// The state that all blocks of a launch share.
pub(crate) struct Launch<'l> {
    pub config: &'l LaunchConfig,
    pub options: &'l Options,
    pub memory: &'l DeviceMemory,
    pub textures: Arc<Textures>,
    pub kernel: &'l (dyn Fn() + Sync),
    pub ticket: Option<Arc<Ticket>>,
    /// Threads per block.
    pub threads: u32,
}

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It can run.
    Ready,
    /// It lets others run first.
    Yielded,
    /// It waits at a block barrier.
    Barrier,
    /// It waits for lanes of its warp.
    Warp,
    /// It waits, for the active mask, until no other lane of its warp can run.
    Converging,
    /// It has exited.
    Exited,
    /// It has failed and will not run again.
    Failed,
}

/// One thread.
pub(super) struct Slot {
    pub(super) index: Cell<[u32; 3]>,
    pub(super) yielder: Cell<*const Yielder<(), ()>>,
    pub(super) steps: Cell<u64>,
    /// The number of its steps when it last let others run.
    pub(super) steps_at_turn: Cell<u64>,
    pub(super) site: Cell<Site>,
    pub(super) form: Cell<Form>,
    pub(super) request: Cell<WarpRequest>,
    /// The result of the warp operation.
    pub(super) result: Cell<(u64, bool)>,
    pub(super) copies: RefCell<Option<Box<Copies>>>,
}

/// Lanes of one warp, as bits.
pub(super) struct Warp {
    /// Lanes that the block has.
    pub(super) present: u32,
    /// Lanes that wait in a warp operation.
    pub(super) waiting: Cell<u32>,
    pub(super) converging: Cell<u32>,
}

/// Counts for the report.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub barriers: u64,
    pub warp_operations: u64,
    pub atomics: u64,
    pub shared_bytes: usize,
}

/// After this many steps a thread lets the others of its block run.
const STEPS_PER_TURN: u64 = 32;

pub(crate) struct Block<'l> {
    pub launch: &'l Launch<'l>,
    pub workspace: &'l Workspace,
    pub(super) index: Cell<[u32; 3]>,
    pub(super) state: Vec<Cell<State>>,
    pub(super) slots: Vec<Slot>,
    pub(super) warps: Vec<Warp>,
    /// The thread whose turn it is.
    pub(super) running: Cell<u32>,
    pub(super) exited: Cell<u32>,
    pub(super) yielded: Cell<u32>,
    /// Threads at a block barrier, whether at more than one, the first of them,
    /// and for how many the predicate is true.
    pub(super) at_barrier: Cell<u32>,
    pub(super) barriers_differ: Cell<bool>,
    pub(super) first_at_barrier: Cell<u32>,
    pub(super) trues: Cell<u32>,
    /// `trues` of the last barrier completed.
    pub(super) barrier_result: Cell<u32>,
    pub(super) random: Cell<Random>,
    pub(super) counts: Cell<Counts>,
    pub(super) shared: RefCell<Shared>,
    /// The kernel's line, while the emulator accesses memory for the kernel.
    pub(super) accessing: Cell<Option<Site>>,
    pub(super) failure: RefCell<Option<Diagnosis>>,
    pub(super) abandoned: Cell<bool>,
}

/// The payload that unwinds a thread that called `exit_thread`.
pub(crate) struct ExitThread;

impl<'l> Block<'l> {
    pub fn new(launch: &'l Launch<'l>, workspace: &'l Workspace) -> Self {
        let threads = launch.threads;
        let nowhere = Location::caller();
        let slots = (0..threads)
            .map(|t| Slot {
                index: Cell::new(launch.config.thread_idx(t)),
                yielder: Cell::new(ptr::null()),
                steps: Cell::new(0),
                steps_at_turn: Cell::new(0),
                site: Cell::new(nowhere),
                form: Cell::new(Form::Plain),
                request: Cell::new(WarpRequest {
                    operation: WarpOperation::Barrier,
                    mask: 0,
                    bits: 0,
                    lane_arg: 0,
                    width: WARP_SIZE,
                }),
                result: Cell::new((0, false)),
                copies: RefCell::new(None),
            })
            .collect();
        let warps = (0..threads.div_ceil(WARP_SIZE))
            .map(|warp| Warp {
                present: match threads - warp * WARP_SIZE {
                    lanes if lanes < WARP_SIZE => (1 << lanes) - 1,
                    _ => u32::MAX,
                },
                waiting: Cell::new(0),
                converging: Cell::new(0),
            })
            .collect();
        Self {
            launch,
            workspace,
            index: Cell::new([0; 3]),
            state: (0..threads).map(|_| Cell::new(State::Exited)).collect(),
            slots,
            warps,
            running: Cell::new(0),
            exited: Cell::new(threads),
            yielded: Cell::new(0),
            at_barrier: Cell::new(0),
            barriers_differ: Cell::new(false),
            first_at_barrier: Cell::new(0),
            trues: Cell::new(0),
            barrier_result: Cell::new(0),
            random: Cell::new(Random::new(0)),
            counts: Cell::new(Counts::default()),
            shared: RefCell::default(),
            accessing: Cell::new(None),
            failure: RefCell::new(None),
            abandoned: Cell::new(false),
        }
    }

    // ---- The scheduler's side ----

    /// Makes this the block with number `linear` (x fastest), all threads ready.
    pub fn begin(&self, linear: u64) {
        self.index.set(self.launch.config.block_idx(linear));
        for (state, slot) in self.state.iter().zip(&self.slots) {
            state.set(State::Ready);
            slot.steps.set(0);
            slot.steps_at_turn.set(0);
            slot.copies.take();
        }
        for warp in &self.warps {
            warp.waiting.set(0);
            warp.converging.set(0);
        }
        self.exited.set(0);
        self.yielded.set(0);
        self.at_barrier.set(0);
        self.accessing.set(None);
        self.abandoned.set(false);
        self.failure.take();
        if let ThreadOrder::Random(seed) = self.launch.options.order {
            self.random.set(Random::stream(seed, linear));
        }
    }

    /// Ends the block's use of shared memory; returns a diagnosis of writes outside its arrays.
    pub fn end(&self) -> Option<Diagnosis> {
        watched(|trace| trace.end_block(self.linear()));
        let shared = self.shared.take();
        let mut pool = self.workspace.shared.borrow_mut();
        let mut found = None;
        for array in &shared.arrays {
            if let Some(Offset(offset)) = pool.region(array.region).check_canaries() {
                found.get_or_insert_with(|| Diagnosis::CanaryOverwritten {
                    at: Box::new(self.origin(None, None)),
                    memory: array.memory_name(),
                    element: offset.div_euclid(array.align as i64),
                    offset,
                });
            }
            pool.put_back(array.region);
        }
        let mut counts = self.counts.get();
        counts.shared_bytes = counts
            .shared_bytes
            .max(shared.static_bytes + self.launch.config.dynamic_shared_bytes);
        self.counts.set(counts);
        found
    }

    pub fn threads(&self) -> u32 {
        self.launch.threads
    }

    pub fn warps(&self) -> u32 {
        self.warps.len() as u32
    }

    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    pub fn state(&self, thread: u32) -> State {
        self.state[thread as usize].get()
    }

    pub fn set_running(&self, thread: u32) {
        self.running.set(thread);
    }

    pub fn set_yielder(&self, yielder: &Yielder<(), ()>) {
        self.slot().yielder.set(yielder);
    }

    /// Draws a random order of threads.
    pub fn shuffle_order(&self, order: &mut [u32]) {
        let mut random = self.random.get();
        random.shuffle(order);
        self.random.set(random);
    }

    pub fn thread_exited(&self, thread: u32) {
        self.state[thread as usize].set(State::Exited);
        self.exited.set(self.exited.get() + 1);
        self.slots[thread as usize].copies.take();
    }

    pub fn all_exited(&self) -> bool {
        self.exited.get() == self.threads()
    }

    pub fn failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    pub fn take_failure(&self) -> Option<Diagnosis> {
        self.failure.take()
    }

    /// Records a failure; the first one stays.
    pub fn set_failure(&self, diagnosis: Diagnosis) {
        self.failure.borrow_mut().get_or_insert(diagnosis);
    }

    /// Marks that the remaining threads are only unwound from here on.
    pub fn abandon(&self) {
        self.abandoned.set(true);
    }

    pub fn abandoned(&self) -> bool {
        self.abandoned.get()
    }

    pub fn out_of_time(&self) -> bool {
        self.launch
            .ticket
            .as_ref()
            .is_some_and(|ticket| ticket.expired())
    }

    /// Makes the threads that yielded ready again. Returns whether there were any.
    pub fn wake_yielded(&self) -> bool {
        if self.yielded.take() == 0 {
            return false;
        }
        for state in &self.state {
            if state.get() == State::Yielded {
                state.set(State::Ready);
            }
        }
        true
    }

    // ---- The threads' side: called on the running thread's stack ----

    pub(super) fn slot(&self) -> &Slot {
        &self.slots[self.running.get() as usize]
    }

    pub(super) fn set_state(&self, state: State) {
        self.state[self.running.get() as usize].set(state);
    }

    pub fn thread_idx(&self) -> [u32; 3] {
        self.slot().index.get()
    }

    /// Number of the block, x fastest.
    pub fn linear(&self) -> u64 {
        let [width, height, _] = self.launch.config.grid.map(u64::from);
        let [x, y, z] = self.index.get().map(u64::from);
        x + width * (y + height * z)
    }

    pub fn block_idx(&self) -> [u32; 3] {
        self.index.get()
    }

    pub fn linear_thread_idx(&self) -> u32 {
        self.running.get()
    }

    /// Yields to the scheduler; returns when the thread runs again. Unwinds if
    /// the block is abandoned meanwhile.
    pub(super) fn suspend(&self) {
        // SAFETY: set at the start of the running coroutine, on whose stack this
        // is; the yielder lives as long as that.
        unsafe { (*self.slot().yielder.get()).suspend(()) };
    }

    /// Records the diagnosis as the block's failure and never returns.
    pub(super) fn fail(&self, diagnosis: Diagnosis) -> ! {
        self.set_failure(diagnosis);
        self.give_up()
    }

    /// Marks the running thread as failed and suspends it for good.
    pub fn give_up(&self) -> ! {
        self.set_state(State::Failed);
        loop {
            // Unwinds when the scheduler abandons the block.
            self.suspend();
        }
    }

    pub(super) fn here(&self, site: Site) -> Box<Origin> {
        Box::new(self.origin(Some(self.running.get()), Some(site)))
    }

    pub(super) fn invalid(&self, site: Site, operation: &'static str, reason: String) -> ! {
        self.fail(Diagnosis::InvalidOperation {
            at: self.here(site),
            operation,
            reason,
        })
    }

    /// Counts a step.
    pub(super) fn tick(&self, site: Site) {
        let slot = self.slot();
        let steps = slot.steps.get() + 1;
        slot.steps.set(steps);
        let most = self.launch.options.most_steps();
        if steps > most {
            self.never_ends(site, Limit::Steps(most));
        }
        self.check_time(site);
    }

    /// Reports the running thread if its launch has used up its time.
    pub fn check_time(&self, site: Site) {
        if self.out_of_time() {
            self.never_ends(site, self.time_limit());
        }
    }

    pub(super) fn never_ends(&self, site: Site, limit: Limit) -> ! {
        self.fail(Diagnosis::NeverEnds {
            at: self.here(site),
            limit,
        })
    }

    /// Counts a step, and from time to time lets other threads run.
    pub fn step(&self, site: Site) {
        self.tick(site);
        let turn_over = match self.launch.options.order {
            ThreadOrder::Random(_) => {
                let mut random = self.random.get();
                let lost = random.below(8) == 0;
                self.random.set(random);
                lost
            }
            ThreadOrder::Forward | ThreadOrder::Reverse => {
                // Counted from the last yield: barriers and warp operations are
                // steps too, and do not let others run.
                let slot = self.slot();
                slot.steps.get() - slot.steps_at_turn.get() >= STEPS_PER_TURN
            }
        };
        if turn_over {
            self.slot().steps_at_turn.set(self.slot().steps.get());
            self.set_state(State::Yielded);
            self.yielded.set(self.yielded.get() + 1);
            self.suspend();
        }
    }

    pub fn atomic(&self, site: Site) {
        let mut counts = self.counts.get();
        counts.atomics += 1;
        self.counts.set(counts);
        self.step(site);
        watched(|trace| trace.atomic(self.linear(), self.running.get()));
    }

    pub fn is_global(&self, address: usize) -> bool {
        self.launch
            .memory
            .find(address)
            .is_some_and(|record| !record.freed() && record.region.contains(address))
    }

    /// Accesses memory on behalf of the kernel: a fault meanwhile is the
    /// kernel's, at `site`.
    pub(super) fn access<R>(&self, site: Site, touch: impl FnOnce() -> R) -> R {
        self.accessing.set(Some(site));
        HERE.with(|here| here.enter_kernel());
        let result = touch();
        HERE.with(|here| here.leave_kernel());
        self.accessing.set(None);
        result
    }

    pub fn exit_thread(&self) -> ! {
        HERE.with(|here| here.set_unwinding(true));
        resume_unwind(Box::new(ExitThread))
    }

    pub fn trap(&self, site: Site) -> ! {
        self.fail(Diagnosis::Trap {
            at: self.here(site),
        })
    }
}

// SAFETY: this is `Block`.
unsafe impl Running for Block<'_> {
    fn write_place(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "{}", self.origin_of_running())
    }

    fn out_of_time(&self) -> bool {
        Self::out_of_time(self)
    }

    fn accessing(&self) -> Option<Site> {
        self.accessing.get()
    }
}

/// The block that this OS thread runs, if any.
pub(crate) fn running(here: &Here) -> Option<&Block<'_>> {
    let block = here.running()?;
    // SAFETY: `Running` promises that it is a `Block`, whose lifetime is shortened to that of
    // the borrow.
    Some(unsafe { &*ptr::from_ref(block).cast() })
}

/// Calls `tell` with the trace that watches this launch, if any.
#[inline]
pub(crate) fn watched(tell: impl FnOnce(&Trace)) {
    HERE.with(|here| watching(here).map_or((), tell));
}

/// Whether two sites are the same line and column. (One call has several
/// `Location`s where its function was instantiated several times.)
pub(super) fn same_site(a: Site, b: Site) -> bool {
    ptr::eq(a, b) || a == b
}
