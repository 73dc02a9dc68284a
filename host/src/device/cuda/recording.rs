//! Recording work as a graph, and replaying it.
//!
//! While a thread records, what it gives to the device goes to a stream of the
//! recording, which notes instead of running it; other threads go on as ever.
//! What cannot be noted (waiting, allocating, copies to and from the host, a
//! constant that changes) is refused.
//!
//! A graph holds addresses. So that none of them dangles, nothing of the device is
//! given back to the driver while a recording or a graph of it exists: what is
//! dropped meanwhile waits until the last of them is gone (see
//! [`Core::give_back`]).
//!
//! What the host does besides is done while it is recorded and never again: buffers
//! that have changed places stay so, and counters stand. Where the library does that
//! itself, it is noted here too, so that a graph comes to the same as its work.
//! Counters go on with every replay, see [`note_count`]. If two buffers have changed
//! places an odd number of times, the graph ends by copying the one that is current
//! to where the next replay reads it, see [`note_exchange`].

use super::core::{Core, copy};
use super::driver::said;
use super::handle::CudaDevice;
use super::loaded::LoadedModule;
use super::queue;
use crate::device::tally::Tally;
use crate::{Constants, Error};
use cuda_loader::sys;
use cust::error::CudaResult;
use cust::graph::GraphExec;
use cust::stream::{CaptureMode, Stream};
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// What this thread's recording has noted besides the work.
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// What a recording notes besides the work.
#[derive(Default)]
struct Recording {
    used: Vec<Used>,
    counted: Vec<(Tally, u64)>,
    /// In order, without those that have undone each other.
    exchanges: Vec<Exchange>,
}

/// Two pieces of memory of one device that have changed places, as the host sees them.
#[derive(Clone, Copy)]
struct Exchange {
    /// What is current since then.
    now: sys::CUdeviceptr,
    /// What was current before, and whose content is not needed any more.
    before: sys::CUdeviceptr,
    /// Of each of them.
    bytes: usize,
}

impl Exchange {
    fn has(&self, address: sys::CUdeviceptr) -> bool {
        self.now == address || self.before == address
    }
}

/// A module that recorded launches use.
struct Used {
    code: Arc<LoadedModule>,
    /// The constants that those launches set, and to what.
    constants: Vec<(&'static str, Box<[u8]>)>,
}

/// Has `note` note something, where this thread records work for this device. Returns
/// whether it does.
fn note(core: &Core, note: impl FnOnce(&mut Recording)) -> bool {
    core.key.recording().is_some()
        && RECORDING.with_borrow_mut(|recording| recording.as_mut().map(note).is_some())
}

/// Notes what a launch has used, where it was recorded.
pub(super) fn note_launch(core: &Core, code: &Arc<LoadedModule>, constants: &Constants<'_>) {
    note(core, |recording| {
        let used = &mut recording.used;
        let at = match used.iter().position(|used| Arc::ptr_eq(&used.code, code)) {
            Some(at) => at,
            None => {
                used.push(Used {
                    code: Arc::clone(code),
                    constants: Vec::new(),
                });
                used.len() - 1
            }
        };
        for constant in constants.entries() {
            let noted = &mut used[at].constants;
            // Setting one to another value than before is refused, so the first
            // value is every launch's.
            if !noted.iter().any(|(name, _)| *name == constant.name) {
                noted.push((constant.name, constant.bytes.into()));
            }
        }
    });
}

/// Notes that something was done so many times, where it was recorded: it is done at
/// each replay, and not now. Returns whether it was recorded.
pub(super) fn note_count(core: &Core, tally: &Tally, more: u64) -> bool {
    note(core, |recording| {
        let counted = &mut recording.counted;
        match counted.iter_mut().find(|(it, _)| it.same(tally)) {
            Some((_, count)) => *count += more,
            None => counted.push((tally.share(), more)),
        }
    })
}

/// Notes, where that is recorded, that on the host `now` has become current in the
/// place of `before`, whose content is not needed any more. Both have so many bytes and
/// do not overlap.
pub(super) fn note_exchange(
    core: &Core,
    now: sys::CUdeviceptr,
    before: sys::CUdeviceptr,
    bytes: usize,
) {
    note(core, |recording| {
        let exchanges = &mut recording.exchanges;
        // Exchanges of other buffers do not matter to these two.
        let last = exchanges
            .iter()
            .rposition(|it| it.has(now) || it.has(before));
        match last {
            Some(at) if exchanges[at].has(now) && exchanges[at].has(before) => {
                exchanges.remove(at);
            }
            _ => exchanges.push(Exchange { now, before, bytes }),
        }
    });
}

/// Keeps what the device would give back, for as long as this lives.
struct Keep {
    core: Arc<Core>,
}

impl Keep {
    fn new(core: &Arc<Core>) -> Self {
        core.hold();
        Self {
            core: Arc::clone(core),
        }
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        self.core.release();
    }
}

/// A stream that notes what it is given, until this is dropped or ended.
struct Capture {
    core: Arc<Core>,
    stream: Stream,
}

impl Capture {
    /// From now on, work of this thread for this device is noted. The context is
    /// current.
    fn begin(core: &Arc<Core>) -> Result<Self, Error> {
        let stream = said("cuStreamCreateWithPriority", Stream::new_non_blocking(None))?;
        let begun = stream.begin_capture(CaptureMode::ThreadLocal);
        said("cuStreamBeginCapture_v2", begun)?;
        core.key.record(stream.as_inner());
        RECORDING.set(Some(Recording::default()));
        let capture = Self {
            core: Arc::clone(core),
            stream,
        };
        Ok(capture)
    }

    /// What was noted, which begins and ends with everything in its place.
    fn end(self) -> Result<(cust::graph::Graph, Recording), Error> {
        self.put_in_place()?;
        let Some(recording) = RECORDING.take() else {
            unreachable!("a recording goes on until it is ended here or dropped");
        };
        queue::record_no_more();
        let graph = self.stream.end_capture();
        self.settle(&recording);
        Ok((said("cuStreamEndCapture", graph)?, recording))
    }

    /// Has the graph end with what is current where it began with it.
    fn put_in_place(&self) -> Result<(), Error> {
        let exchanges = RECORDING.with_borrow(|recording| {
            recording
                .as_ref()
                .map_or(Vec::new(), |recording| recording.exchanges.clone())
        });
        for (at, exchange) in exchanges.iter().enumerate() {
            let Exchange { now, before, bytes } = *exchange;
            // With three or more in a ring it would matter what is copied first, and
            // contents could be lost that are needed.
            if exchanges[..at]
                .iter()
                .any(|it| it.has(now) || it.has(before))
            {
                return Err(Error::NotReplayable {
                    what: "sweeping more than two buffers in turns, without bringing them back to their places,",
                });
            }
            // SAFETY: whoever noted the exchange had both, of that size and apart; what
            // has been dropped since is not given back while there is a graph.
            unsafe { copy(before, now, bytes, self.stream.as_inner()) }?;
        }
        Ok(())
    }

    /// Has what is current on the host hold what was current before the recording, in
    /// which nothing was done; of three or more buffers in each other's places not all do.
    /// The context is current.
    fn settle(&self, recording: &Recording) {
        for &Exchange { now, before, bytes } in &recording.exchanges {
            // SAFETY: as in `put_in_place`. A failure means that the driver is shutting
            // down or that a kernel has faulted: whatever comes next fails too.
            let _ = unsafe { copy(now, before, bytes, self.core.stream.as_inner()) };
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let Ok(_current) = self.core.enter() else {
            return;
        };
        // Still there where the work failed or panicked, and then the graph is
        // of no use.
        let unfinished = RECORDING.take();
        queue::record_no_more();
        if unfinished.is_some() {
            drop(self.stream.end_capture());
        }
        if let Some(recording) = &unfinished {
            self.settle(recording);
        }
    }
}

/// Recorded work, ready to be launched.
pub(in crate::device) struct Graph {
    run: GraphExec,
    used: Vec<Used>,
    counted: Vec<(Tally, u64)>,
    core: Arc<Core>,
    /// Behind everything that the graph needs.
    _keep: Keep,
}

impl CudaDevice {
    /// Runs `work` once and then records it `count` times.
    ///
    /// The first run loads and sets what a recording cannot.
    pub(in crate::device) fn record(
        &self,
        count: usize,
        work: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<Graph, Error> {
        let core = &self.core;
        if queue::is_recording() {
            return Err(Error::NotReplayable {
                what: "another recording",
            });
        }
        let keep = Keep::new(core);
        work()?;
        let _current = core.enter()?;
        let capture = Capture::begin(core)?;
        for _ in 0..count {
            work()?;
        }
        let (graph, Recording { used, counted, .. }) = capture.end()?;
        let run = said("cuGraphInstantiateWithFlags", graph.instantiate())?;
        Ok(Graph {
            run,
            used,
            counted,
            core: Arc::clone(core),
            _keep: keep,
        })
    }
}

impl Graph {
    /// Queues the recorded work, with the constants that it was recorded with.
    pub(in crate::device) fn launch(&self) -> Result<(), Error> {
        let core = &self.core;
        core.refuse("replaying other work")?;
        let _current = core.enter()?;
        // All modules stay locked until the graph is queued. Whoever locks
        // several does it in the order of their addresses.
        let mut modules: Vec<_> = self
            .used
            .iter()
            .map(|used| (used.code.module(), &used.constants))
            .collect();
        modules.sort_by_key(|(module, _)| std::ptr::from_ref(*module).addr());
        let mut locked = Vec::with_capacity(modules.len());
        for (module, constants) in modules {
            let mut module = module.lock();
            for (name, value) in constants {
                module.set_constant(core, name, value)?;
            }
            locked.push(module);
        }
        // SAFETY: all that the graph uses is alive, because nothing was given back since
        // it was recorded.
        let queued = unsafe { self.run.launch(&core.stream) };
        said("cuGraphLaunch", queued)?;
        for (tally, count) in &self.counted {
            tally.count(*count);
        }
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let Ok(_current) = self.core.enter() else {
            return;
        };
        // What was queued of it is over before it goes. A failure means that the driver is
        // shutting down or that a kernel has faulted.
        let _: CudaResult<()> = self.core.stream.synchronize();
    }
}
