//! Chooses the stream for new work: the device's own or, on a thread that records, the
//! recording's.

use crate::Error;
use crate::device::tally::Tally;
use cuda_loader::sys::{CUdeviceptr, CUstream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// The recording of a device's work, while there is one.
#[derive(Default)]
pub(super) struct Recorder(Mutex<Option<Recording>>);

struct Recording {
    /// Its owner: the work of other threads is not recorded.
    thread: ThreadId,
    stream: CUstream,
    notes: Notes,
}

/// Notes of a recording, besides the work in its stream.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) counted: Vec<(Tally, u64)>,
    /// In order, without those that have undone each other.
    pub(super) exchanges: Vec<Exchange>,
}

/// Two pieces of memory of one device that have changed places, as the host sees them.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    /// What is current since then.
    pub(super) now: CUdeviceptr,
    /// What was current before, and whose content is not needed any more.
    pub(super) before: CUdeviceptr,
    /// Of each of them.
    pub(super) bytes: usize,
}

impl Exchange {
    pub(super) fn has(&self, address: CUdeviceptr) -> bool {
        self.now == address || self.before == address
    }
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Option<Recording>> {
        // Nothing in there is half done when somebody panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails where there is a recording, of this thread or another.
    pub(super) fn require_none(&self) -> Result<(), Error> {
        match *self.lock() {
            Some(_) => Err(Error::NotReplayable {
                operation: "another recording of the device",
            }),
            None => Ok(()),
        }
    }

    /// From now on this thread's work goes to `stream`. Fails where there is a recording.
    pub(super) fn begin(&self, stream: CUstream) -> Result<(), Error> {
        let mut recording = self.lock();
        if recording.is_some() {
            drop(recording);
            return self.require_none();
        }
        *recording = Some(Recording {
            thread: thread::current().id(),
            stream,
            notes: Notes::default(),
        });
        Ok(())
    }

    /// The recording is over; `None` where there was none.
    pub(super) fn end(&self) -> Option<Notes> {
        self.lock().take().map(|recording| recording.notes)
    }

    /// The stream of the recording, where this thread is its owner.
    pub(super) fn stream(&self) -> Option<CUstream> {
        self.of_this_thread(|recording| recording.stream)
    }

    /// Fails where this thread is recording: `what` cannot be part of that.
    pub(super) fn refuse(&self, what: &'static str) -> Result<(), Error> {
        match self.stream() {
            Some(_) => Err(Error::NotReplayable { operation: what }),
            None => Ok(()),
        }
    }

    /// Has `note` note something, where this thread records.
    pub(super) fn note<R>(&self, note: impl FnOnce(&mut Notes) -> R) -> Option<R> {
        self.of_this_thread(|recording| note(&mut recording.notes))
    }

    fn of_this_thread<R>(&self, what: impl FnOnce(&mut Recording) -> R) -> Option<R> {
        let mut recording = self.lock();
        let recording = recording.as_mut()?;
        (recording.thread == thread::current().id()).then(|| what(recording))
    }
}
