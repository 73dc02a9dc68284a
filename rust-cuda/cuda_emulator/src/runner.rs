//! The scheduler of one block: decides which thread runs next.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use corosensei::stack::Stack;
use corosensei::{Coroutine, CoroutineResult};

use crate::block::{Block, ExitThread, State, watched};
use crate::config::{Blocks, ThreadOrder, WARP_SIZE};
use crate::diagnosis::Diagnosis;
use crate::here::{Exit, HERE};
use crate::panics;
use crate::race::Trace;
#[cfg(not(guarded))]
use crate::sys::Make as _;
use crate::sys::{self, ThreadStack};

type Thread = Coroutine<(), (), Exit, ThreadStack>;

/// The progress of a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Finished,
    /// Threads wait by taking steps. With all blocks resident, another block should run.
    Spinning,
}

/// The rest of a block is not run; the block's failure gives the reason.
struct Stop;

pub(crate) struct Runner<'b> {
    block: &'b Block<'b>,
    threads: Vec<Option<Thread>>,
    /// Lowest address and end of each thread's stack.
    stacks: Vec<(usize, usize)>,
    /// Threads that have overflowed their stacks, whose reserve is open.
    overflowed: Vec<usize>,
    /// The order of this pass, for random orders.
    order: Vec<u32>,
    /// The number of passes over the threads, up to now, that ended at no barrier.
    idle: u32,
}

/// The number of passes without a barrier after which a block counts as waiting for another; a
/// kernel with many atomics takes many passes, too.
const PATIENCE: u32 = 1024;

/// The least time for which a block that waits for another leaves its core to others: with the
/// default step limit, some seconds in all.
const PAUSE: Duration = Duration::from_micros(20);

impl<'b> Runner<'b> {
    pub fn new(block: &'b Block<'b>) -> Self {
        let n = block.threads();
        Self {
            block,
            threads: (0..n).map(|_| None).collect(),
            stacks: vec![(0, 0); n as usize],
            overflowed: Vec::new(),
            order: (0..n).collect(),
            idle: 0,
        }
    }

    /// Starts block number `linear`. The previous block must have finished.
    pub fn begin(&mut self, linear: u64) {
        self.idle = 0;
        self.block.begin(linear);
    }

    /// Runs the block from start to end.
    pub fn run(&mut self, linear: u64) -> Result<(), Diagnosis> {
        self.begin(linear);
        while self.advance()? == Progress::Spinning {}
        Ok(())
    }

    /// Runs the block until it has finished or, with all blocks resident, until its threads have
    /// let others go first.
    pub fn advance(&mut self) -> Result<Progress, Diagnosis> {
        HERE.with(|here| {
            let _entered = here.enter_block(self.block);
            match self.advance_inside() {
                Ok(Progress::Spinning) => Ok(Progress::Spinning),
                Ok(Progress::Finished) => match self.block.end() {
                    None => Ok(Progress::Finished),
                    Some(diagnosis) => Err(diagnosis),
                },
                Err(Stop) => {
                    self.abandon();
                    self.block.end();
                    match self.block.take_failure() {
                        Some(diagnosis) => Err(diagnosis),
                        None => unreachable!("a block is stopped for a failure only"),
                    }
                }
            }
        })
    }

    fn advance_inside(&mut self) -> Result<Progress, Stop> {
        loop {
            match self.block.launch.options.order {
                ThreadOrder::Forward => {
                    for warp in 0..self.block.warps() {
                        self.run_warp(warp, false)?;
                    }
                }
                ThreadOrder::Reverse => {
                    for warp in (0..self.block.warps()).rev() {
                        self.run_warp(warp, true)?;
                    }
                }
                ThreadOrder::Random(_) => self.run_shuffled()?,
            }
            if self.block.all_exited() {
                return Ok(Progress::Finished);
            }
            let released = self.block.release_barrier();
            let woken = self.block.wake_yielded();
            self.idle = if woken && !released { self.idle + 1 } else { 0 };
            match self.block.launch.options.blocks {
                Blocks::Resident if woken => return Ok(Progress::Spinning),
                Blocks::Parallel => self.let_others_run(),
                _ => {}
            }
            if !released && !woken {
                self.block.set_failure(self.block.explain_deadlock());
                return Err(Stop);
            }
        }
    }

    /// Lets other OS threads run while the block only takes steps: it may be waiting for a block
    /// that one of them has begun and, on a busy machine, cannot continue.
    fn let_others_run(&self) {
        if self.idle > PATIENCE {
            std::thread::sleep(PAUSE);
        } else if self.idle > 0 {
            std::thread::yield_now();
        }
    }

    /// Runs the lanes of a warp in turn until none can run.
    fn run_warp(&mut self, warp: u32, reverse: bool) -> Result<(), Stop> {
        let first = warp * WARP_SIZE;
        let end = (first + WARP_SIZE).min(self.block.threads());
        loop {
            let mut ran = false;
            for i in first..end {
                let thread = if reverse { first + end - 1 - i } else { i };
                if self.block.state(thread) == State::Ready {
                    self.resume(thread)?;
                    ran = true;
                }
            }
            if !ran && !self.block.converge(warp) {
                return Ok(());
            }
        }
    }

    /// Runs all threads in random orders until none can run.
    fn run_shuffled(&mut self) -> Result<(), Stop> {
        loop {
            let mut ran = false;
            let mut order = std::mem::take(&mut self.order);
            self.block.shuffle_order(&mut order);
            for &thread in &order {
                if self.block.state(thread) == State::Ready {
                    if let Err(stop) = self.resume(thread) {
                        self.order = order;
                        return Err(stop);
                    }
                    ran = true;
                }
            }
            self.order = order;
            if ran {
                continue;
            }
            let mut converged = false;
            for warp in 0..self.block.warps() {
                converged |= self.block.converge(warp);
            }
            if !converged {
                return Ok(());
            }
        }
    }

    /// Runs `thread` until it yields.
    fn resume(&mut self, thread: u32) -> Result<(), Stop> {
        let i = thread as usize;
        let coroutine = match &mut self.threads[i] {
            Some(coroutine) => coroutine,
            empty => {
                let memory = self.block.launch.memory;
                let stack = match memory.or_make_room(|| self.block.workspace.stack()) {
                    Ok(stack) => stack,
                    Err(error) => {
                        self.block.set_failure(Diagnosis::OutOfMemory {
                            kernel: self.block.launch.config.kernel,
                            what: "the stacks of threads".to_owned(),
                            reason: error.to_string(),
                        });
                        return Err(Stop);
                    }
                };
                self.stacks[i] = (stack.limit().get(), stack.base().get());
                empty.insert(start(self.block, stack))
            }
        };
        self.block.set_running(thread);
        watched(|trace| trace.enter(self.block.linear(), thread));
        let (low, high) = self.stacks[i];
        let trap = coroutine.trap_handler();
        let (resumed, overflow) = HERE.with(|here| {
            here.about_to_resume(trap, low + sys::stack_guard()..high);
            (coroutine.resume(()), here.overflow())
        });
        // An overflow counts however the thread ended, and even if it has not ended.
        if let Some(fault) = overflow {
            self.overflowed.push(i);
            self.block
                .set_failure(self.block.explain_fault(thread, &fault, low));
        }
        match resumed {
            CoroutineResult::Yield(()) => {}
            CoroutineResult::Return(exit) => {
                self.recycle(i);
                self.block.thread_exited(thread);
                self.note_exit(thread, exit);
            }
        }
        if self.block.failed() {
            return Err(Stop);
        }
        Ok(())
    }

    fn note_exit(&self, thread: u32, exit: Exit) {
        let block = self.block;
        block.set_failure(match exit {
            Exit::Done => return,
            Exit::Panicked => {
                let panicked = panics::take();
                block.explain_panic(thread, panicked.message, panicked.line)
            }
            Exit::Fault(fault) => {
                block.explain_fault(thread, &fault, self.stacks[thread as usize].0)
            }
            Exit::Stopped { instruction } => block.explain_stop(thread, instruction),
        });
    }

    /// Takes back the stack of a thread that is done.
    fn recycle(&mut self, i: usize) {
        if let Some(coroutine) = self.threads[i].take() {
            let stack = coroutine.into_stack();
            // A stack whose reserve cannot be closed is given up.
            if !self.overflowed.contains(&i) || stack.close_reserve().is_ok() {
                self.block.workspace.stacks.borrow_mut().push(stack);
            }
        }
    }

    /// Unwinds the threads that have not exited.
    fn abandon(&mut self) {
        watched(Trace::rest);
        self.block.abandon();
        for i in 0..self.threads.len() {
            if let Some(coroutine) = &mut self.threads[i] {
                self.block.set_running(i as u32);
                coroutine.force_unwind();
                self.recycle(i);
            }
        }
    }
}

impl Drop for Runner<'_> {
    /// Coroutines must not outlive the block they run in. None are left unless the emulator itself
    /// panicked or, with resident blocks, another block failed.
    fn drop(&mut self) {
        if self.threads.iter().any(Option::is_some) {
            HERE.with(|here| {
                let _entered = here.enter_block(self.block);
                self.abandon();
                self.block.end();
            });
        }
    }
}

/// A coroutine that will be one thread of `block`.
fn start<'b>(block: &'b Block<'b>, stack: ThreadStack) -> Thread {
    let body = move |yielder: &corosensei::Yielder<(), ()>, ()| {
        block.set_yielder(yielder);
        HERE.with(|here| here.enter_kernel());
        // All of the kernel's state is lost with the launch when it panics.
        let result = catch_unwind(AssertUnwindSafe(|| (block.launch.kernel)()));
        HERE.with(|here| {
            here.leave_kernel();
            here.set_unwinding(false);
        });
        match result {
            Ok(()) => Exit::Done,
            Err(payload) if payload.is::<ExitThread>() => Exit::Done,
            // Unwound by `abandon`; its result is not used.
            Err(_) if block.abandoned() => Exit::Done,
            Err(payload) => {
                panics::keep(payload.as_ref());
                Exit::Panicked
            }
        }
    };
    // SAFETY: the closure borrows `block`, which outlives the `Runner` that gets
    // the coroutine; the runner drives every coroutine to completion or unwinds
    // it (at the latest when dropped) and never forgets one.
    unsafe { Coroutine::with_stack_unchecked(stack, body) }
}
