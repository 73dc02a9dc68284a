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
    /// The thread that owns it; other threads' work is not recorded.
    thread: ThreadId,
    stream: CUstream,
    notes: Notes,
}

/// The notes of a recording, in addition to the work in its stream.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) counted: Vec<(Tally, u64)>,
    /// In order, without pairs that cancel.
    pub(super) exchanges: Vec<Exchange>,
}

/// Two pieces of a device's memory that were exchanged on the host.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    /// The current one.
    pub(super) now: CUdeviceptr,
    /// The one that was current before; its contents are not needed any more.
    pub(super) before: CUdeviceptr,
    /// The bytes of each.
    pub(super) bytes: usize,
}

impl Exchange {
    pub(super) fn has(&self, address: CUdeviceptr) -> bool {
        self.now == address || self.before == address
    }
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Option<Recording>> {
        // A panic leaves the value consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error if there is a recording, of any thread.
    pub(super) fn require_none(&self) -> Result<(), Error> {
        match *self.lock() {
            Some(_) => Err(Error::NotReplayable {
                operation: "another recording of the device",
            }),
            None => Ok(()),
        }
    }

    /// Sends this thread's work to `stream` from now on. An error if there is a recording.
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

    /// Ends the recording; `None` if there was none.
    pub(super) fn end(&self) -> Option<Notes> {
        self.lock().take().map(|recording| recording.notes)
    }

    /// The stream of the recording, if this thread owns it.
    pub(super) fn stream(&self) -> Option<CUstream> {
        self.of_this_thread(|recording| recording.stream)
    }

    /// An error if this thread is recording: `what` cannot be recorded.
    pub(super) fn refuse(&self, what: &'static str) -> Result<(), Error> {
        match self.stream() {
            Some(_) => Err(Error::NotReplayable { operation: what }),
            None => Ok(()),
        }
    }

    /// Calls `note` with the notes, if this thread records.
    pub(super) fn note<R>(&self, note: impl FnOnce(&mut Notes) -> R) -> Option<R> {
        self.of_this_thread(|recording| note(&mut recording.notes))
    }

    fn of_this_thread<R>(&self, what: impl FnOnce(&mut Recording) -> R) -> Option<R> {
        let mut recording = self.lock();
        let recording = recording.as_mut()?;
        (recording.thread == thread::current().id()).then(|| what(recording))
    }
}
