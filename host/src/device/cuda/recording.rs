//! Records work as a CUDA graph and replays it.
//!
//! While a thread records, its work for the device goes to the recording's stream, which captures
//! the work instead of running it. Other threads work as usual. A device has at most one recording,
//! which belongs to that thread. Work that cannot be captured is refused: waiting, allocating,
//! copies to and from the host, and changing a constant.
//!
//! A graph contains addresses. To keep them valid, the device releases nothing to the driver while
//! a recording or a graph exists: resources dropped in that time wait until the last recording or
//! graph is gone (see [`Core::give_back`]).
//!
//! The host's own work runs once, during the recording: exchanged buffers stay exchanged, and
//! counters keep their values. The library notes its own exchanges and counts here, so that a
//! replay has the same effect as the original work. Counters increase with every replay, see
//! [`note_count`]. If two buffers were exchanged an odd number of times, the graph ends with a copy
//! of the current one to the memory that the next replay reads, see [`note_exchange`]. Three or
//! more buffers that take turns must be back in their places at the end.

use super::core::{Core, copy};
use super::driver::said;
use super::handle::CudaDevice;
use super::loaded::{LoadedModule, Used};
use super::queue::{ExchangedBuffer, Notes};
use crate::device::tally::Tally;
use crate::{Constants, Error};
use cuda_loader::sys;
use cust::error::CudaResult;
use cust::graph::GraphExec;
use cust::stream::{CaptureMode, Stream};
use std::sync::Arc;

/// Notes the module and the constants that a recorded launch uses.
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
        // A constant cannot change during a recording, so its first value holds for every launch.
        if !noted.iter().any(|(name, _)| *name == constant.name) {
            noted.push((constant.name, constant.bytes.into()));
        }
    }
}

/// In a recording, notes that each replay increases a counter by `more`; the counter does not
/// change now. Returns whether it was recorded.
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

/// In a recording, notes that the host made `now` current instead of `before`, whose contents are
/// no longer needed. Both have `bytes` bytes and do not overlap.
pub(super) fn note_exchange(
    core: &Core,
    now: sys::CUdeviceptr,
    before: sys::CUdeviceptr,
    bytes: usize,
) {
    core.recorder
        .note(|notes| notes.exchange(now, before, bytes));
}

/// Prevents the device from releasing resources while it exists.
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

/// A stream that captures work until this is dropped or ended.
struct Capture<'a> {
    device: &'a CudaDevice,
    stream: Stream,
}

impl<'a> Capture<'a> {
    /// Starts capturing this thread's work for the device. The context is current.
    fn begin(device: &'a CudaDevice) -> Result<Self, Error> {
        let stream = said("cuStreamCreateWithPriority", Stream::new_non_blocking(None))?;
        device.core.recorder.begin(stream.as_inner())?;
        device.used().clear();
        let capture = Self { device, stream };
        let begun = capture.stream.begin_capture(CaptureMode::ThreadLocal);
        said("cuStreamBeginCapture_v2", begun)?;
        Ok(capture)
    }

    /// Ends the capture and returns the recorded work. At its end every buffer's current contents
    /// are in the same memory as at its beginning.
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

    /// Adds copies to the end of the graph, so that current contents end up where they were at the
    /// beginning.
    fn put_in_place(&self) -> Result<(), Error> {
        let moved = self.device.core.recorder.note(|notes| notes.moved());
        let moved = moved.unwrap_or_default();
        for ExchangedBuffer {
            before, now, bytes, ..
        } in &moved
        {
            // With three or more buffers in a ring, a copy could overwrite contents that are still
            // needed.
            if moved
                .iter()
                .any(|it| it.before == *now || it.now == *before)
            {
                return Err(Error::NotReplayable {
                    operation: "exchanging more than two buffers in turns, without bringing them back to their places,",
                });
            }
            // SAFETY: the code that noted the exchange had both pieces, of that size and disjoint;
            // memory dropped since then is not released while a graph exists.
            unsafe { copy(*before, *now, *bytes, self.stream.as_inner()) }?;
        }
        Ok(())
    }

    /// Copies, on the device, the contents from before the recording into the buffers that are
    /// current now, because the recorded work has not run. The context is current.
    fn settle(&self, notes: &Notes) {
        let mut moved = notes.moved();
        // A copy must not overwrite contents that another copy still reads.
        let is_free = |it: &ExchangedBuffer, all: &[ExchangedBuffer]| {
            all.iter().all(|other| other.before != it.now)
        };
        while let Some(at) = moved.iter().position(|it| is_free(it, &moved)) {
            let ExchangedBuffer {
                before, now, bytes, ..
            } = moved.swap_remove(at);
            // SAFETY: as in `put_in_place`. A failure means that the driver is shutting down or
            // that a kernel has faulted: the next call fails too.
            let _ = unsafe { copy(now, before, bytes, self.device.core.stream.as_inner()) };
        }
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        // The recording still exists if the work failed or panicked; the graph is then useless.
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
    /// Released after everything that the graph needs.
    _keep: Keep,
}

impl CudaDevice {
    /// Whether this thread's work is being recorded.
    pub(in crate::device) fn is_recording(&self) -> bool {
        self.core.recorder.stream().is_some()
    }

    /// Runs `work` once and then records it `count` times.
    ///
    /// The first run loads modules and sets constants, which cannot be recorded.
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
    /// Enqueues the recorded work, with the constants that it was recorded with.
    pub(in crate::device) fn launch(&self) -> Result<(), Error> {
        let core = &self.core;
        core.refuse("replaying other work")?;
        let _current = core.enter()?;
        // All modules stay locked until the graph is enqueued. The locks are taken in the order of
        // their addresses.
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
        // SAFETY: everything that the graph uses is alive, because nothing was released since the
        // recording.
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
        // The graph's enqueued work ends before the graph is dropped. A failure means that the
        // driver is shutting down or that a kernel has faulted.
        let _: CudaResult<()> = self.core.stream.synchronize();
    }
}
