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

use super::{Core, CudaDevice, Resource, StandIns, checked};
use crate::Error;
use crate::launch::Constants;
use cuda_loader::sys;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// What this thread is recording.
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// A recording in progress.
struct Recording {
    core: Arc<Core>,
    stream: sys::CUstream,
    used: Vec<Used>,
}

/// A module that recorded launches use.
struct Used {
    /// `None` for the device's own.
    stand_ins: Option<StandIns>,
    /// The constants that those launches set, and to what.
    constants: Vec<(&'static str, Box<[u8]>)>,
}

impl Used {
    fn is(&self, stand_ins: Option<&StandIns>) -> bool {
        match (&self.stand_ins, stand_ins) {
            (None, None) => true,
            (Some(own), Some(other)) => own.same_module(other),
            _ => false,
        }
    }
}

/// Whether this thread records work for this device.
fn is_recording(core: &Core) -> bool {
    RECORDING.with_borrow(|recording| {
        recording
            .as_ref()
            .is_some_and(|recording| std::ptr::eq(Arc::as_ptr(&recording.core), core))
    })
}

/// Fails where this thread is recording: `what` cannot be part of that.
pub(super) fn refuse(core: &Core, what: &'static str) -> Result<(), Error> {
    if is_recording(core) {
        return Err(Error::NotReplayable { what });
    }
    Ok(())
}

/// Where this thread's work for this device goes.
pub(super) fn queue(core: &Core) -> sys::CUstream {
    RECORDING.with_borrow(|recording| match recording {
        Some(recording) if std::ptr::eq(Arc::as_ptr(&recording.core), core) => recording.stream,
        _ => core.stream,
    })
}

/// Notes what a launch has used, where it was recorded.
pub(super) fn note_launch(core: &Core, stand_ins: Option<&StandIns>, constants: &Constants<'_>) {
    if !is_recording(core) {
        return;
    }
    RECORDING.with_borrow_mut(|recording| {
        let Some(recording) = recording else { return };
        let used = &mut recording.used;
        let at = match used.iter().position(|used| used.is(stand_ins)) {
            Some(at) => at,
            None => {
                used.push(Used {
                    stand_ins: stand_ins.cloned(),
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

/// Keeps what the device would give back, for as long as this lives.
struct Keep {
    core: Arc<Core>,
}

impl Keep {
    fn new(core: &Arc<Core>) -> Self {
        core.kept().holders += 1;
        Self {
            core: Arc::clone(core),
        }
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        let waiting: Vec<Resource> = {
            let mut kept = self.core.kept();
            kept.holders -= 1;
            if kept.holders > 0 {
                return;
            }
            std::mem::take(&mut kept.waiting)
        };
        let Ok(_current) = self.core.enter() else {
            return;
        };
        for resource in waiting {
            // SAFETY: they were given back by their owners, and the last graph
            // that may have used them is gone.
            unsafe { self.core.free(resource) };
        }
    }
}

/// A stream that notes what it is given, until this is dropped or ended.
struct Capture {
    core: Arc<Core>,
    stream: sys::CUstream,
}

impl Capture {
    /// From now on, work of this thread for this device is noted. The context is
    /// current.
    fn begin(core: &Arc<Core>) -> Result<Self, Error> {
        let mut stream = sys::CUstream::NULL;
        // SAFETY: the pointer is good for the one handle that is written.
        checked("cuStreamCreate", unsafe {
            sys::cuStreamCreate(&raw mut stream, sys::STREAM_NON_BLOCKING)
        })?;
        let capture = Self {
            core: Arc::clone(core),
            stream,
        };
        // SAFETY: the stream is alive.
        checked("cuStreamBeginCapture_v2", unsafe {
            sys::cuStreamBeginCapture_v2(stream, sys::STREAM_CAPTURE_MODE_THREAD_LOCAL)
        })?;
        RECORDING.set(Some(Recording {
            core: Arc::clone(core),
            stream,
            used: Vec::new(),
        }));
        Ok(capture)
    }

    /// What was noted.
    fn end(self) -> Result<(sys::CUgraph, Vec<Used>), Error> {
        let used = RECORDING
            .take()
            .map_or(Vec::new(), |recording| recording.used);
        let mut graph = sys::CUgraph::NULL;
        // SAFETY: the pointer is good for the one handle that is written, the
        // stream is alive.
        checked("cuStreamEndCapture", unsafe {
            sys::cuStreamEndCapture(self.stream, &raw mut graph)
        })?;
        Ok((graph, used))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let Ok(_current) = self.core.enter() else {
            return;
        };
        // Still there where the work failed or panicked, and then the graph is
        // of no use.
        let unfinished = RECORDING.take().is_some();
        // SAFETY: stream and graph are ours and used by nothing else.
        unsafe {
            if unfinished {
                let mut graph = sys::CUgraph::NULL;
                let _ = sys::cuStreamEndCapture(self.stream, &raw mut graph);
                if graph != sys::CUgraph::NULL {
                    let _ = sys::cuGraphDestroy(graph);
                }
            }
            let _ = sys::cuStreamDestroy_v2(self.stream);
        }
    }
}

/// Recorded work, ready to be launched.
pub(in crate::device) struct Graph {
    raw: sys::CUgraphExec,
    used: Vec<Used>,
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
        if RECORDING.with_borrow(Option::is_some) {
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
        let (graph, used) = capture.end()?;
        let mut raw = sys::CUgraphExec::NULL;
        // SAFETY: the pointer is good for the one handle that is written, and
        // the graph, if there is one, is alive and destroyed just once. The
        // executable graph is a copy.
        let code = unsafe {
            let code = sys::cuGraphInstantiateWithFlags(&raw mut raw, graph, 0);
            let _ = sys::cuGraphDestroy(graph);
            code
        };
        checked("cuGraphInstantiateWithFlags", code)?;
        Ok(Graph {
            raw,
            used,
            core: Arc::clone(core),
            _keep: keep,
        })
    }
}

impl Graph {
    /// Queues the recorded work, with the constants that it was recorded with.
    pub(in crate::device) fn launch(&self) -> Result<(), Error> {
        let core = &self.core;
        refuse(core, "replaying other work")?;
        let _current = core.enter()?;
        // All modules stay locked until the graph is queued. Whoever locks
        // several does it in the order of their addresses.
        let mut modules: Vec<_> = self
            .used
            .iter()
            .map(|used| {
                let module = match &used.stand_ins {
                    Some(stand_ins) => stand_ins.module(),
                    None => &core.own,
                };
                (module, &used.constants)
            })
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
        // SAFETY: graph and stream are alive, and so is all that the graph uses,
        // because nothing was given back since it was recorded.
        checked("cuGraphLaunch", unsafe {
            sys::cuGraphLaunch(self.raw, core.stream)
        })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let Ok(_current) = self.core.enter() else {
            return;
        };
        // SAFETY: the graph is ours, and what was queued of it is over.
        unsafe {
            let _ = sys::cuStreamSynchronize(self.core.stream);
            let _ = sys::cuGraphExecDestroy(self.raw);
        }
    }
}
