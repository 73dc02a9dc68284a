//! One block: what its threads are doing, and what they ask for.
//!
//! Everything here happens on one OS thread, partly on the stack of an emulated
//! thread (the functions that intrinsics call) and partly on the scheduler's
//! (see [`Runner`](crate::runner::Runner)), never both at once. So the state is
//! in `Cell`s, and nothing holds a borrow of a `RefCell` while it suspends.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{Location, resume_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corosensei::Yielder;

use crate::config::{Blocks, LaunchConfig, Options, SHARED_LIMIT_DEFAULT, ThreadOrder, WARP_SIZE};
use crate::diagnosis::{
    Access, Diagnosis, Doing, Limit, MemoryKind, MemoryName, Place, SourceLine, SourceMissing,
};
use crate::here::HERE;
use crate::intrinsics::{SharedSlot, ShuffleKind};
use crate::memory::{DeviceMemory, Textures, canary_word};
use crate::random::Random;
use crate::region::{Offset, fill_words};
use crate::shared::RegionId;
use crate::symbol;
use crate::sys::{self, Fault};
use crate::texture::Texture;
use crate::watchdog::Ticket;
use crate::workspace::Workspace;

/// A source line, as `#[track_caller]` gives it.
pub(crate) type Site = &'static Location<'static>;

/// What all blocks of a launch have in common.
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

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It can go on.
    Ready,
    /// It has let the others go first.
    Yielded,
    /// It waits at a block barrier.
    Barrier,
    /// It waits for lanes of its warp.
    Warp,
    /// It waits until its warp is as converged as it gets.
    Converging,
    /// It is no more.
    Exited,
    /// It found something wrong and will not go on.
    Failed,
}

/// Forms of the block barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Count,
    And,
    Or,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "barrier",
            Self::Count => "barrier_count",
            Self::And => "barrier_and",
            Self::Or => "barrier_or",
        }
    }
}

/// Operations of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WarpOperation {
    Barrier,
    Shuffle(ShuffleKind),
    Ballot,
    All,
    Any,
    MatchAny,
    MatchAll,
}

impl WarpOperation {
    fn name(self) -> &'static str {
        match self {
            Self::Barrier => "warp_barrier",
            Self::Shuffle(ShuffleKind::Up) => "shuffle (up)",
            Self::Shuffle(ShuffleKind::Down) => "shuffle (down)",
            Self::Shuffle(ShuffleKind::Xor) => "shuffle (xor)",
            Self::Shuffle(ShuffleKind::Index) => "shuffle (index)",
            Self::Ballot => "vote_ballot",
            Self::All => "vote_all",
            Self::Any => "vote_any",
            Self::MatchAny => "match_any",
            Self::MatchAll => "match_all",
        }
    }
}

/// A thread's part in a warp operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WarpRequest {
    pub operation: WarpOperation,
    pub mask: u32,
    pub bits: u64,
    /// Shuffles: the lane argument and the width.
    pub lane_arg: u32,
    pub width: u32,
}

/// One thread.
struct Slot {
    index: Cell<[u32; 3]>,
    yielder: Cell<*const Yielder<(), ()>>,
    steps: Cell<u64>,
    /// Its steps when it last gave the turn away.
    steps_at_turn: Cell<u64>,
    site: Cell<Site>,
    form: Cell<Form>,
    request: Cell<WarpRequest>,
    /// What the warp operation gave.
    result: Cell<(u64, bool)>,
    copies: RefCell<Option<Box<Copies>>>,
}

/// The asynchronous copies of a thread.
#[derive(Default)]
struct Copies {
    open: Vec<AsyncCopy>,
    groups: VecDeque<Vec<AsyncCopy>>,
}

#[derive(Clone, Copy)]
struct AsyncCopy {
    dst: *mut u8,
    src: *const u8,
    bytes: usize,
    src_bytes: usize,
}

/// Lanes of one warp, as bits.
struct Warp {
    /// Lanes that the block has.
    present: u32,
    /// Lanes that wait in a warp operation.
    waiting: Cell<u32>,
    converging: Cell<u32>,
}

/// Counts for the report.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub barriers: u64,
    pub warp_operations: u64,
    pub atomics: u64,
    pub shared_bytes: usize,
}

/// A shared array of the block.
struct SharedArray {
    key: *const SharedSlot,
    kind: MemoryKind,
    name: &'static str,
    size: usize,
    align: usize,
    region: RegionId,
}

#[derive(Default)]
struct Shared {
    arrays: Vec<SharedArray>,
    /// In-place statics: slot, address and size.
    in_place: Vec<(*const SharedSlot, usize, usize)>,
    /// Held from the first in-place static to the end of the block.
    in_place_lock: Option<MutexGuard<'static, ()>>,
    static_bytes: usize,
}

/// Serialises the blocks that use shared memory in place, over all launches.
static IN_PLACE: Mutex<()> = Mutex::new(());

/// After this many steps a thread lets the others of its block run.
const STEPS_PER_TURN: u64 = 32;

pub(crate) struct Block<'l> {
    pub launch: &'l Launch<'l>,
    pub workspace: &'l Workspace,
    index: Cell<[u32; 3]>,
    state: Vec<Cell<State>>,
    slots: Vec<Slot>,
    warps: Vec<Warp>,
    /// The thread whose turn it is.
    running: Cell<u32>,
    exited: Cell<u32>,
    yielded: Cell<u32>,
    /// Threads at a block barrier, whether at more than one, the first of them,
    /// and for how many the predicate is true.
    at_barrier: Cell<u32>,
    barriers_differ: Cell<bool>,
    first_at_barrier: Cell<u32>,
    trues: Cell<u32>,
    /// `trues` of the last barrier completed.
    barrier_result: Cell<u32>,
    random: Cell<Random>,
    counts: Cell<Counts>,
    shared: RefCell<Shared>,
    /// While the emulator touches memory for the kernel: the kernel's line.
    accessing: Cell<Option<Site>>,
    failure: RefCell<Option<Diagnosis>>,
    abandoned: Cell<bool>,
}

/// The payload that unwinds a thread that called `exit_thread`.
pub(crate) struct ExitThread;

impl<'l> Block<'l> {
    pub fn new(launch: &'l Launch<'l>, workspace: &'l Workspace) -> Self {
        let threads = launch.threads;
        let [width, height, _] = launch.config.block;
        let nowhere = Location::caller();
        let slots = (0..threads)
            .map(|t| Slot {
                index: Cell::new([t % width, t / width % height, t / width / height]),
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
        let [width, height, _] = self.launch.config.grid.map(u64::from);
        // Each is below a grid extent, which is a u32.
        self.index.set([
            (linear % width) as u32,
            (linear / width % height) as u32,
            (linear / width / height) as u32,
        ]);
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

    /// Ends the block's use of shared memory; finds what was written around its
    /// arrays.
    pub fn end(&self) -> Option<Diagnosis> {
        let shared = self.shared.take();
        let mut pool = self.workspace.shared.borrow_mut();
        let mut found = None;
        for array in &shared.arrays {
            if let Some(Offset(offset)) = pool.region(array.region).check_canaries() {
                found.get_or_insert_with(|| Diagnosis::CanaryOverwritten {
                    at: Box::new(self.place(None, None)),
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

    /// Notes what is wrong; the first finding stays.
    pub fn set_failure(&self, diagnosis: Diagnosis) {
        self.failure.borrow_mut().get_or_insert(diagnosis);
    }

    /// From here on the remaining threads are only unwound.
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

    /// Lets the threads at the barrier go, if it is complete.
    pub fn release_barrier(&self) -> bool {
        if self.at_barrier.get() != self.threads() || self.barriers_differ.get() {
            return false;
        }
        for state in &self.state {
            state.set(State::Ready);
        }
        self.at_barrier.set(0);
        self.barrier_result.set(self.trues.get());
        let mut counts = self.counts.get();
        counts.barriers += 1;
        self.counts.set(counts);
        true
    }

    /// Lets those go that let others go first. Returns whether there were any.
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

    /// Answers the lanes of `warp` that ask for the active mask, once no other
    /// lane can go on. Returns whether there were any.
    pub fn converge(&self, warp: u32) -> bool {
        let base = warp * WARP_SIZE;
        let warp = &self.warps[warp as usize];
        let mut left = warp.converging.take();
        if left == 0 {
            return false;
        }
        while left != 0 {
            let site = self.slots[(base + left.trailing_zeros()) as usize]
                .site
                .get();
            let group = lanes(left)
                .filter(|lane| same_site(self.slots[(base + lane) as usize].site.get(), site))
                .fold(0, |group, lane| group | 1 << lane);
            for lane in lanes(group) {
                self.slots[(base + lane) as usize]
                    .result
                    .set((u64::from(group), true));
                self.state[(base + lane) as usize].set(State::Ready);
            }
            left &= !group;
        }
        true
    }

    /// Says why no thread can go on.
    pub fn explain_deadlock(&self) -> Diagnosis {
        let waiting = |wanted| move |&t: &u32| self.state[t as usize].get() == wanted;
        let all = 0..self.threads();
        // A lane that waits for another, before barriers: threads at a barrier
        // may wait for just these lanes.
        for t in all.clone().filter(waiting(State::Warp)) {
            let request = self.slots[t as usize].request.get();
            let base = t / WARP_SIZE * WARP_SIZE;
            let present = self.warps[(t / WARP_SIZE) as usize].present;
            let missing = lanes(request.mask & present).find(|&lane| {
                let theirs = self.slots[(base + lane) as usize].request.get();
                self.state[(base + lane) as usize].get() != State::Warp
                    || theirs.operation != request.operation
                    || theirs.mask != request.mask
            });
            if let Some((lane, doing)) =
                missing.and_then(|lane| Some((lane, self.doing(base + lane)?)))
            {
                return Diagnosis::WarpDivergence {
                    at: Box::new(self.place(Some(t), Some(self.slots[t as usize].site.get()))),
                    operation: request.operation.name(),
                    mask: request.mask,
                    lane,
                    doing,
                };
            }
        }
        let Some(first) = all.clone().find(waiting(State::Barrier)) else {
            // Threads that are ready, yielded or converging can go on, and no
            // lane waits in vain: only barriers are left.
            unreachable!("a block stopped, though none of its threads waits");
        };
        let slot = &self.slots[first as usize];
        let (site, form) = (slot.site.get(), slot.form.get());
        let here = |t: &u32| {
            let slot = &self.slots[*t as usize];
            waiting(State::Barrier)(t)
                && slot.form.get() == form
                && same_site(slot.site.get(), site)
        };
        let (other, doing) = all
            .clone()
            .filter(|t| !here(t))
            .find_map(|t| Some((t, self.doing(t)?)))
            .unwrap_or((first, Doing::Exited));
        Diagnosis::BarrierDivergence {
            at: Box::new(self.place(Some(first), Some(site))),
            form: form.name(),
            waiting: all.filter(here).count() as u32,
            threads: self.threads(),
            other: self.slots[other as usize].index.get(),
            doing,
        }
    }

    fn doing(&self, thread: u32) -> Option<Doing> {
        let slot = &self.slots[thread as usize];
        match self.state[thread as usize].get() {
            State::Exited => Some(Doing::Exited),
            State::Barrier => Some(Doing::AtBarrier {
                form: slot.form.get().name(),
                line: slot.site.get().into(),
            }),
            State::Warp => Some(Doing::InWarpOperation {
                operation: slot.request.get().operation.name(),
                mask: slot.request.get().mask,
                line: slot.site.get().into(),
            }),
            State::Ready | State::Yielded | State::Converging | State::Failed => None,
        }
    }

    /// Says what a fault of `thread` means. `stack` is the lowest address of the
    /// thread's stack, where its guard is.
    pub fn explain_fault(&self, thread: u32, fault: &Fault, stack: usize) -> Diagnosis {
        let mut place = self.place(Some(thread), self.accessing.take());
        if place.line.is_none() {
            place.line = symbol::line_of_fault(fault);
        }
        let at = Box::new(place);
        let access = match fault.write {
            Some(true) => Access::Write,
            Some(false) => Access::Read,
            None => Access::Unknown,
        };
        let Some(address) = fault.address else {
            return Diagnosis::WildAccess {
                at,
                access,
                address: None,
            };
        };
        if (stack..stack + sys::page_size()).contains(&address) {
            return Diagnosis::StackOverflow {
                at,
                stack_bytes: self.launch.options.stack_bytes,
            };
        }
        let pool = self.workspace.shared.borrow();
        for array in &self.shared.borrow().arrays {
            if let Some(Offset(offset)) = pool.region(array.region).locate(address) {
                return Diagnosis::OutOfBounds {
                    at,
                    access,
                    memory: array.memory_name(),
                    element: offset.div_euclid(array.align as i64),
                    offset,
                };
            }
        }
        if let Some(record) = self.launch.memory.find(address)
            && let Some(Offset(offset)) = record.region.locate(address)
        {
            let memory = record.name();
            return if record.freed() {
                Diagnosis::UseAfterFree {
                    at,
                    access,
                    memory,
                    offset,
                }
            } else {
                Diagnosis::OutOfBounds {
                    at,
                    access,
                    element: offset.div_euclid(memory.element_bytes as i64),
                    memory,
                    offset,
                }
            };
        }
        Diagnosis::WildAccess {
            at,
            access,
            address: Some(address),
        }
    }

    pub fn explain_panic(
        &self,
        thread: u32,
        message: String,
        line: Option<SourceLine>,
    ) -> Diagnosis {
        let mut place = self.place(Some(thread), None);
        place.line = line;
        Diagnosis::Panic {
            at: Box::new(place),
            message,
        }
    }

    pub fn explain_stop(&self, thread: u32, instruction: usize) -> Diagnosis {
        let mut place = self.place(Some(thread), self.accessing.take());
        if place.line.is_none() {
            place.line = symbol::line_of_instruction(instruction);
        }
        Diagnosis::NeverEnds {
            at: Box::new(place),
            limit: self.time_limit(),
        }
    }

    fn time_limit(&self) -> Limit {
        Limit::Time(
            self.launch
                .ticket
                .as_ref()
                .map_or_else(Default::default, |ticket| ticket.limit()),
        )
    }

    /// The place of the running thread, but for its line.
    pub fn place_of_running(&self) -> Place {
        self.place(Some(self.running.get()), None)
    }

    fn place(&self, thread: Option<u32>, site: Option<Site>) -> Place {
        Place {
            kernel: self.launch.config.kernel,
            block: Some(self.index.get()),
            thread: thread.map(|t| self.slots[t as usize].index.get()),
            line: site.map(SourceLine::from),
            order: self.launch.options.order,
            poison: self.launch.options.poison,
        }
    }

    // ---- The threads' side: called on the running thread's stack ----

    fn slot(&self) -> &Slot {
        &self.slots[self.running.get() as usize]
    }

    fn set_state(&self, state: State) {
        self.state[self.running.get() as usize].set(state);
    }

    pub fn thread_idx(&self) -> [u32; 3] {
        self.slot().index.get()
    }

    pub fn block_idx(&self) -> [u32; 3] {
        self.index.get()
    }

    pub fn linear_thread_idx(&self) -> u32 {
        self.running.get()
    }

    /// Gives the turn back to the scheduler; returns when the thread gets it
    /// again. Unwinds if the block is abandoned meanwhile.
    fn suspend(&self) {
        // SAFETY: set at the start of the running coroutine, on whose stack this
        // is; the yielder lives as long as that.
        unsafe { (*self.slot().yielder.get()).suspend(()) };
    }

    /// Reports the running thread and never returns.
    fn fail(&self, diagnosis: Diagnosis) -> ! {
        self.set_failure(diagnosis);
        self.set_state(State::Failed);
        loop {
            // Unwinds when the scheduler abandons the block.
            self.suspend();
        }
    }

    fn here(&self, site: Site) -> Box<Place> {
        Box::new(self.place(Some(self.running.get()), Some(site)))
    }

    fn invalid(&self, site: Site, operation: &'static str, reason: String) -> ! {
        self.fail(Diagnosis::InvalidOperation {
            at: self.here(site),
            operation,
            reason,
        })
    }

    /// Counts a step.
    fn tick(&self, site: Site) {
        let slot = self.slot();
        let steps = slot.steps.get() + 1;
        slot.steps.set(steps);
        let most = self.launch.options.most_steps();
        let limit = if steps > most {
            Limit::Steps(most)
        } else if self.out_of_time() {
            self.time_limit()
        } else {
            return;
        };
        self.fail(Diagnosis::NeverEnds {
            at: self.here(site),
            limit,
        })
    }

    /// Counts a step and from time to time gives the turn away.
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
                // Counted from the last time: barriers and warp operations are steps too,
                // and give no turn away.
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
    }

    /// A block barrier; returns for how many threads `pred` was true.
    pub fn barrier(&self, form: Form, pred: bool, site: Site) -> u32 {
        self.tick(site);
        let slot = self.slot();
        slot.site.set(site);
        slot.form.set(form);
        let before = self.at_barrier.get();
        if before == 0 {
            self.first_at_barrier.set(self.running.get());
            self.barriers_differ.set(false);
            self.trues.set(0);
        } else {
            let first = &self.slots[self.first_at_barrier.get() as usize];
            if first.form.get() != form || !same_site(first.site.get(), site) {
                self.barriers_differ.set(true);
            }
        }
        self.at_barrier.set(before + 1);
        self.trues.set(self.trues.get() + u32::from(pred));
        self.set_state(State::Barrier);
        self.suspend();
        self.barrier_result.get()
    }

    /// An operation of the warp.
    pub fn warp_operation(&self, request: WarpRequest, site: Site) -> (u64, bool) {
        self.tick(site);
        let lane = self.running.get() % WARP_SIZE;
        if request.mask >> lane & 1 == 0 {
            self.fail(Diagnosis::NotInMask {
                at: self.here(site),
                operation: request.operation.name(),
                mask: request.mask,
                lane,
            });
        }
        if !request.width.is_power_of_two() || request.width > WARP_SIZE {
            self.invalid(
                site,
                request.operation.name(),
                format!(
                    "width {}; needed is a power of two from 1 to {WARP_SIZE}",
                    request.width
                ),
            );
        }
        let slot = self.slot();
        slot.site.set(site);
        slot.request.set(request);
        self.set_state(State::Warp);
        let warp = &self.warps[(self.running.get() / WARP_SIZE) as usize];
        let needed = request.mask & warp.present;
        let waiting = warp.waiting.get() | 1 << lane;
        warp.waiting.set(waiting);
        if waiting & needed == needed && self.agree(needed, request) {
            self.complete(needed, request);
            warp.waiting.set(waiting & !needed);
            if needed == 1 << lane {
                // Nobody else took part, so nobody else need have a turn.
                return slot.result.get();
            }
        }
        self.suspend();
        slot.result.get()
    }

    /// Whether all `lanes` of the running thread's warp ask for the same.
    fn agree(&self, needed: u32, request: WarpRequest) -> bool {
        let base = self.warp_base();
        lanes(needed).all(|lane| {
            let theirs = self.slots[base + lane as usize].request.get();
            theirs.operation == request.operation && theirs.mask == request.mask
        })
    }

    /// Number of lane 0 of the running thread's warp.
    fn warp_base(&self) -> usize {
        (self.running.get() / WARP_SIZE * WARP_SIZE) as usize
    }

    /// Gives all `needed` lanes their results and lets them go.
    fn complete(&self, needed: u32, request: WarpRequest) {
        let mut counts = self.counts.get();
        counts.warp_operations += 1;
        self.counts.set(counts);
        let base = self.warp_base();
        let slot = |lane: u32| &self.slots[base + lane as usize];
        let bits = |lane| slot(lane).request.get().bits;
        let ballot = || {
            lanes(needed)
                .filter(|&lane| bits(lane) != 0)
                .fold(0_u32, |ballot, lane| ballot | 1 << lane)
        };
        match request.operation {
            WarpOperation::Barrier => {}
            WarpOperation::Shuffle(kind) => {
                for lane in lanes(needed) {
                    let theirs = slot(lane).request.get();
                    let (source, inside) =
                        shuffle_source(lane, kind, theirs.lane_arg, theirs.width);
                    if needed >> source & 1 == 0 {
                        self.fail(self.missing_source(lane, source, request.mask));
                    }
                    slot(lane).result.set((bits(source), inside));
                }
            }
            WarpOperation::Ballot => {
                let ballot = u64::from(ballot());
                lanes(needed).for_each(|lane| slot(lane).result.set((ballot, ballot != 0)));
            }
            WarpOperation::All => {
                let all = ballot() == needed;
                lanes(needed).for_each(|lane| slot(lane).result.set((u64::from(all), all)));
            }
            WarpOperation::Any => {
                let any = ballot() != 0;
                lanes(needed).for_each(|lane| slot(lane).result.set((u64::from(any), any)));
            }
            WarpOperation::MatchAny => {
                for lane in lanes(needed) {
                    let equal = lanes(needed)
                        .filter(|&other| bits(other) == bits(lane))
                        .fold(0_u64, |equal, other| equal | 1 << other);
                    slot(lane).result.set((equal, true));
                }
            }
            WarpOperation::MatchAll => {
                let first = bits(needed.trailing_zeros());
                let all = lanes(needed).all(|lane| bits(lane) == first);
                let result = (if all { u64::from(needed) } else { 0 }, all);
                lanes(needed).for_each(|lane| slot(lane).result.set(result));
            }
        }
        for lane in lanes(needed) {
            self.state[base + lane as usize].set(State::Ready);
        }
    }

    fn missing_source(&self, lane: u32, source: u32, mask: u32) -> Diagnosis {
        let thread = self.warp_base() as u32 + lane;
        Diagnosis::ShuffleSource {
            at: Box::new(self.place(Some(thread), Some(self.slots[thread as usize].site.get()))),
            lane,
            source_lane: source,
            mask,
            reason: if mask >> source & 1 == 0 {
                SourceMissing::OutsideMask
            } else {
                SourceMissing::NotInBlock
            },
        }
    }

    pub fn active_mask(&self, site: Site) -> u32 {
        self.tick(site);
        let running = self.running.get();
        let slot = self.slot();
        slot.site.set(site);
        let warp = &self.warps[(running / WARP_SIZE) as usize];
        warp.converging
            .set(warp.converging.get() | 1 << (running % WARP_SIZE));
        self.set_state(State::Converging);
        self.suspend();
        // A mask of 32 lanes.
        slot.result.get().0 as u32
    }

    pub fn shared_static(
        &self,
        key: &'static SharedSlot,
        size: usize,
        align: usize,
        site: Site,
    ) -> *mut u8 {
        let known = self.array(key);
        if let Some((start, known_size, known_align)) = known {
            if (known_size, known_align) != (size, align) {
                self.invalid(
                    site,
                    "shared_static",
                    format!(
                        "`{}` is asked for with {size} bytes aligned to {align}, and was with \
                         {known_size} aligned to {known_align}",
                        key.name()
                    ),
                );
            }
            return start;
        }
        if !align.is_power_of_two() || align > sys::page_size() {
            self.invalid(
                site,
                "shared_static",
                format!(
                    "alignment {align} of `{}`; needed is a power of two up to {}",
                    key.name(),
                    sys::page_size()
                ),
            );
        }
        self.count_static(key, size, site);
        self.add_array(key, MemoryKind::SharedArray, key.name(), size, align)
    }

    pub fn dynamic_shared(&self) -> *mut u8 {
        match self.array(ptr::null()) {
            Some((start, ..)) => start,
            None => self.add_array(
                ptr::null(),
                MemoryKind::DynamicShared,
                "dynamic",
                self.launch.config.dynamic_shared_bytes,
                16,
            ),
        }
    }

    /// Start, size and alignment of the array with this key, if it is there.
    fn array(&self, key: *const SharedSlot) -> Option<(*mut u8, usize, usize)> {
        let shared = self.shared.borrow();
        let array = shared.arrays.iter().find(|array| ptr::eq(array.key, key))?;
        let pool = self.workspace.shared.borrow();
        Some((pool.region(array.region).data(), array.size, array.align))
    }

    fn add_array(
        &self,
        key: *const SharedSlot,
        kind: MemoryKind,
        name: &'static str,
        size: usize,
        align: usize,
    ) -> *mut u8 {
        let poison = self.launch.options.poison;
        let taken = self.launch.memory.or_make_room(|| {
            let mut pool = self.workspace.shared.borrow_mut();
            pool.take(size, align, poison.word(), canary_word(poison))
        });
        let region = match taken {
            Ok(region) => region,
            Err(error) => self.fail(Diagnosis::OutOfMemory {
                kernel: self.launch.config.kernel,
                what: format!("shared array `{name}`"),
                reason: error.to_string(),
            }),
        };
        self.shared.borrow_mut().arrays.push(SharedArray {
            key,
            kind,
            name,
            size,
            align,
            region,
        });
        self.workspace.shared.borrow().region(region).data()
    }

    /// Adds `size` bytes to the block's static shared memory, if the limits allow.
    fn count_static(&self, key: &SharedSlot, size: usize, site: Site) {
        let before = self.shared.borrow().static_bytes;
        let bytes = before.saturating_add(size);
        let total = bytes.saturating_add(self.launch.config.dynamic_shared_bytes);
        let limit = self.launch.options.shared_limit;
        let (needed, limit) = if bytes > SHARED_LIMIT_DEFAULT {
            (bytes, SHARED_LIMIT_DEFAULT)
        } else if total > limit {
            (total, limit)
        } else {
            self.shared.borrow_mut().static_bytes = bytes;
            return;
        };
        self.fail(Diagnosis::SharedMemoryLimit {
            at: self.here(site),
            what: format!(
                "static array `{}` of {size} bytes ({}:{})",
                key.name(),
                key.file(),
                key.line()
            ),
            needed,
            limit,
        })
    }

    /// See [`intrinsics::register_shared_static`](crate::intrinsics::register_shared_static).
    ///
    /// # Safety
    ///
    /// As there.
    pub unsafe fn register_shared_static(
        &self,
        key: &'static SharedSlot,
        start: *mut u8,
        size: usize,
        site: Site,
    ) {
        let (known, locked) = {
            let shared = self.shared.borrow();
            let entry = (ptr::from_ref(key), start.addr(), size);
            (
                shared.in_place.contains(&entry),
                shared.in_place_lock.is_some(),
            )
        };
        if known {
            return;
        }
        if self.launch.options.blocks == Blocks::Resident {
            self.invalid(
                site,
                "register_shared_static",
                format!(
                    "`{}` exists once for all blocks, so they cannot be resident together; use \
                     shared_array! or another way to run blocks",
                    key.name()
                ),
            );
        }
        self.count_static(key, size, site);
        // Waits while a block of another OS thread has it. That block never
        // waits for this one, so it comes to an end.
        let lock = (!locked).then(|| IN_PLACE.lock().unwrap_or_else(PoisonError::into_inner));
        let mut shared = self.shared.borrow_mut();
        if lock.is_some() {
            shared.in_place_lock = lock;
        }
        shared.in_place.push((key, start.addr(), size));
        // SAFETY: valid for writes and used by emulated threads only, says the
        // caller; of those only this block's can be running, by the lock.
        unsafe { fill_words(start, size, self.launch.options.poison.word()) };
    }

    pub fn shared_bytes(&self) -> usize {
        self.shared.borrow().static_bytes + self.launch.config.dynamic_shared_bytes
    }

    pub fn is_shared(&self, address: usize) -> bool {
        let shared = self.shared.borrow();
        let pool = self.workspace.shared.borrow();
        let in_array = |array: &SharedArray| pool.region(array.region).contains(address);
        let in_static = |&(_, start, size): &(_, usize, usize)| {
            (start..start.saturating_add(size)).contains(&address)
        };
        shared.arrays.iter().any(in_array) || shared.in_place.iter().any(in_static)
    }

    pub fn is_global(&self, address: usize) -> bool {
        self.launch
            .memory
            .find(address)
            .is_some_and(|record| !record.freed() && record.region.contains(address))
    }

    /// Touches memory on behalf of the kernel: faults meanwhile are the kernel's,
    /// at `site`.
    fn access<R>(&self, site: Site, touch: impl FnOnce() -> R) -> R {
        self.accessing.set(Some(site));
        HERE.with(|here| here.enter_kernel());
        let result = touch();
        HERE.with(|here| here.leave_kernel());
        self.accessing.set(None);
        result
    }

    pub fn texture_linear(&self, handle: u64, index: i32, site: Site) -> f32 {
        let texture = self.texture("tex1d_fetch", handle, site);
        let element = texture.linear(index);
        self.fetch("tex1d_fetch", handle, texture, element, site)
    }

    pub fn texture_planar(&self, handle: u64, x: f32, y: f32, site: Site) -> f32 {
        let texture = self.texture("tex2d", handle, site);
        let element = texture.planar(x, y);
        self.fetch("tex2d", handle, texture, element, site)
    }

    fn texture(&self, operation: &'static str, handle: u64, site: Site) -> &Texture {
        match self.launch.textures.get(&handle) {
            Some(texture) => texture,
            None => self.invalid(
                site,
                operation,
                format!("{handle} is not the handle of a texture bound at the time of the launch"),
            ),
        }
    }

    fn fetch(
        &self,
        operation: &'static str,
        handle: u64,
        texture: &Texture,
        element: Result<Option<u64>, &'static str>,
        site: Site,
    ) -> f32 {
        match element {
            Ok(None) => 0.0,
            Ok(Some(address)) if texture.record.freed() => self.fail(Diagnosis::UseAfterFree {
                at: self.here(site),
                access: Access::Read,
                memory: texture.record.name(),
                offset: texture
                    .record
                    .region
                    .locate(address as usize)
                    .map_or(0, |Offset(offset)| offset),
            }),
            Ok(Some(address)) => {
                let element = ptr::with_exposed_provenance::<f32>(address as usize);
                // SAFETY: the address is inside the allocation the texture was
                // bound to, aligned to four. If that is freed at this very
                // moment the read faults (the texture keeps its address range
                // taken), and `access` makes that a diagnosis.
                self.access(site, || unsafe { element.read_volatile() })
            }
            Err(wrong) => self.invalid(site, operation, format!("texture {handle} {wrong}")),
        }
    }

    /// Starts an asynchronous copy.
    ///
    /// # Safety
    ///
    /// As [`intrinsics::cp_async_zfill`](crate::intrinsics::cp_async_zfill).
    pub unsafe fn cp_async(
        &self,
        dst: *mut u8,
        src: *const u8,
        bytes: usize,
        src_bytes: usize,
        site: Site,
    ) {
        let operation = "cp_async";
        if !matches!(bytes, 4 | 8 | 16) || src_bytes > bytes {
            self.invalid(
                site,
                operation,
                format!(
                    "{src_bytes} bytes into {bytes}; needed are 4, 8 or 16, and no more in the \
                     source"
                ),
            );
        }
        if !dst.addr().is_multiple_of(bytes) || src_bytes > 0 && !src.addr().is_multiple_of(bytes) {
            self.invalid(
                site,
                operation,
                format!(
                    "{bytes} bytes from {:#x} to {:#x}; both must be multiples of {bytes}",
                    src.addr(),
                    dst.addr()
                ),
            );
        }
        let poison = self.launch.options.poison.word();
        // SAFETY: the caller promises that `dst` is valid for these writes; if it
        // is not, that is the kernel's fault, which `access` reports.
        self.access(site, || unsafe { fill_words(dst, bytes, poison) });
        self.slot()
            .copies
            .borrow_mut()
            .get_or_insert_default()
            .open
            .push(AsyncCopy {
                dst,
                src,
                bytes,
                src_bytes,
            });
    }

    pub fn cp_async_commit(&self) {
        let mut copies = self.slot().copies.borrow_mut();
        let copies = copies.get_or_insert_default();
        let group = std::mem::take(&mut copies.open);
        copies.groups.push_back(group);
    }

    /// Makes the copies of all groups but the `pending` most recent.
    pub fn cp_async_wait(&self, pending: u32, site: Site) {
        loop {
            let group = {
                let mut copies = self.slot().copies.borrow_mut();
                let Some(copies) = copies.as_mut() else {
                    return;
                };
                if copies.groups.len() <= pending as usize {
                    return;
                }
                copies.groups.pop_front()
            };
            for copy in group.into_iter().flatten() {
                // SAFETY: the caller of `cp_async` promised that both sides stay
                // valid until now; if they are not, `access` reports it.
                self.access(site, || unsafe {
                    ptr::copy(copy.src, copy.dst, copy.src_bytes);
                    ptr::write_bytes(copy.dst.add(copy.src_bytes), 0, copy.bytes - copy.src_bytes);
                });
            }
        }
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

impl SharedArray {
    fn memory_name(&self) -> MemoryName {
        // What is known of the element type is its alignment.
        MemoryName {
            kind: self.kind,
            name: self.name.to_owned(),
            elements: self.size / self.align,
            element_bytes: self.align,
        }
    }
}

/// The bits that are set in `mask`, from the lowest.
fn lanes(mask: u32) -> impl Iterator<Item = u32> + Clone {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let lane = left.trailing_zeros();
        left &= left - 1;
        Some(lane)
    })
}

/// Whether two sites are the same line and column. (One call has several
/// `Location`s where its function was instantiated several times.)
fn same_site(a: Site, b: Site) -> bool {
    ptr::eq(a, b) || a == b
}

/// The lane that `lane` reads from, and whether it is inside its segment: the
/// definition of `shfl.sync` in the PTX manual.
fn shuffle_source(lane: u32, kind: ShuffleKind, lane_arg: u32, width: u32) -> (u32, bool) {
    let segment = !(width - 1) & (WARP_SIZE - 1);
    let low = lane & segment;
    let high = low | (width - 1);
    let arg = lane_arg % WARP_SIZE;
    let (source, inside) = match kind {
        ShuffleKind::Up => {
            let source = lane.wrapping_sub(arg);
            (source, arg <= lane && source >= low)
        }
        ShuffleKind::Down => (lane + arg, lane + arg <= high),
        ShuffleKind::Xor => (lane ^ arg, lane ^ arg <= high),
        ShuffleKind::Index => (low | (arg & !segment), true),
    };
    if inside {
        (source, true)
    } else {
        (lane, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_sources_are_those_of_the_ptx_manual() {
        use ShuffleKind::{Down, Index, Up, Xor};
        let cases = [
            // lane, kind, argument, width, source, inside
            (5, Up, 1, 32, 4, true),
            (0, Up, 1, 32, 0, false),
            (8, Up, 1, 8, 8, false),
            (9, Up, 1, 8, 8, true),
            (31, Down, 1, 32, 31, false),
            (30, Down, 1, 32, 31, true),
            (7, Down, 1, 8, 7, false),
            (15, Down, 16, 32, 31, true),
            (5, Xor, 1, 32, 4, true),
            (5, Xor, 16, 32, 21, true),
            // A later segment is out of range, an earlier one is not.
            (3, Xor, 8, 8, 3, false),
            (11, Xor, 8, 8, 3, true),
            (0, Index, 7, 32, 7, true),
            (12, Index, 3, 8, 11, true),
            (12, Index, 11, 8, 11, true),
            (12, Index, 0, 1, 12, true),
            // Only five bits of the argument count.
            (4, Up, 32, 32, 4, true),
            (4, Index, 33, 32, 1, true),
        ];
        for (lane, kind, arg, width, source, inside) in cases {
            assert_eq!(
                shuffle_source(lane, kind, arg, width),
                (source, inside),
                "lane {lane}, {kind:?} {arg}, width {width}"
            );
        }
    }

    #[test]
    fn lanes_come_from_the_lowest() {
        assert_eq!(lanes(0).count(), 0);
        assert_eq!(lanes(0x8000_0005).collect::<Vec<_>>(), [0, 2, 31]);
        assert_eq!(lanes(u32::MAX).count(), 32);
    }
}
