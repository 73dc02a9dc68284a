//! Records work as a CUDA graph and replays it.
//!
//! While a thread records, what it gives to the device goes to a stream of the
//! recording, which notes instead of running it; other threads go on as ever. The device
//! knows of its one recording and of that thread, its owner.
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
use super::loaded::{LoadedModule, Used};
use super::queue::{Exchange, Notes};
use crate::device::tally::Tally;
use crate::{Constants, Error};
use cuda_loader::sys;
use cust::error::CudaResult;
use cust::graph::GraphExec;
use cust::stream::{CaptureMode, Stream};
use std::sync::Arc;

/// Notes what a launch has used, where it was recorded.
pub(super) fn note_launch(
    device: &CudaDevice,
    code: &Arc<LoadedModule>,
    constants: &Constants<'_>,
) {
    if device.core.recorder.stream().is_none() {
        return;
    }
    let mut used = device.used();
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
}

/// Notes that something was done so many times, where it was recorded: it is done at
/// each replay, and not now. Returns whether it was recorded.
pub(super) fn note_count(core: &Core, tally: &Tally, more: u64) -> bool {
    let noted = core.recorder.note(|notes| {
        let counted = &mut notes.counted;
        match counted.iter_mut().find(|(it, _)| it.same(tally)) {
            Some((_, count)) => *count += more,
            None => counted.push((tally.share(), more)),
        }
    });
    noted.is_some()
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
    core.recorder.note(|notes| {
        let exchanges = &mut notes.exchanges;
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
struct Capture<'a> {
    device: &'a CudaDevice,
    stream: Stream,
}

impl<'a> Capture<'a> {
    /// From now on, work of this thread for this device is noted. The context is
    /// current.
    fn begin(device: &'a CudaDevice) -> Result<Self, Error> {
        let stream = said("cuStreamCreateWithPriority", Stream::new_non_blocking(None))?;
        device.core.recorder.begin(stream.as_inner())?;
        device.used().clear();
        let capture = Self { device, stream };
        let begun = capture.stream.begin_capture(CaptureMode::ThreadLocal);
        said("cuStreamBeginCapture_v2", begun)?;
        Ok(capture)
    }

    /// The recorded work, which begins and ends with every buffer's current memory in place.
    fn end(self) -> Result<(cust::graph::Graph, Vec<Used>, Notes), Error> {
        self.put_in_place()?;
        let Some(notes) = self.device.core.recorder.end() else {
            unreachable!("a recording goes on until it is ended here or dropped");
        };
        let used = std::mem::take(&mut *self.device.used());
        let graph = self.stream.end_capture();
        self.settle(&notes);
        Ok((said("cuStreamEndCapture", graph)?, used, notes))
    }

    /// Has the graph end with what is current where it began with it.
    fn put_in_place(&self) -> Result<(), Error> {
        let recorder = &self.device.core.recorder;
        let exchanges = recorder.note(|notes| notes.exchanges.clone());
        let exchanges = exchanges.unwrap_or_default();
        for (at, exchange) in exchanges.iter().enumerate() {
            let Exchange { now, before, bytes } = *exchange;
            // With three or more in a ring it would matter what is copied first, and
            // contents could be lost that are needed.
            if exchanges[..at]
                .iter()
                .any(|it| it.has(now) || it.has(before))
            {
                return Err(Error::NotReplayable {
                    operation: "exchanging more than two buffers in turns, without bringing them back to their places,",
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
    fn settle(&self, notes: &Notes) {
        for &Exchange { now, before, bytes } in &notes.exchanges {
            // SAFETY: as in `put_in_place`. A failure means that the driver is shutting
            // down or that a kernel has faulted: whatever comes next fails too.
            let _ = unsafe { copy(now, before, bytes, self.device.core.stream.as_inner()) };
        }
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        // Still there where the work failed or panicked, and then the graph is
        // of no use.
        let unfinished = self.device.core.recorder.end();
        let Ok(_current) = self.device.core.enter() else {
            return;
        };
        if let Some(notes) = &unfinished {
            self.device.used().clear();
            drop(self.stream.end_capture());
            self.settle(notes);
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
        core.recorder.require_none()?;
        let keep = Keep::new(core);
        work()?;
        let _current = core.enter()?;
        let capture = Capture::begin(self)?;
        for _ in 0..count {
            work()?;
        }
        let (graph, used, Notes { counted, .. }) = capture.end()?;
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
