//! Where a thread's work for a device goes: the device's stream, or that of a recording.

use crate::Error;
use cuda_loader::sys::CUstream;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// The device for which this thread records, and the stream of the recording.
    static RECORDING: Cell<Option<(Key, CUstream)>> = const { Cell::new(None) };
}

/// Which device it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    /// Another than all before.
    pub(super) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self(COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// The stream of this thread's recording of work for the device.
    pub(super) fn recording(self) -> Option<CUstream> {
        RECORDING
            .get()
            .filter(|(device, _)| *device == self)
            .map(|(_, stream)| stream)
    }

    /// Fails where this thread is recording: `what` cannot be part of that.
    pub(super) fn refuse(self, what: &'static str) -> Result<(), Error> {
        match self.recording() {
            Some(_) => Err(Error::NotReplayable { what }),
            None => Ok(()),
        }
    }

    /// From now on this thread's work for the device goes to `stream`.
    pub(super) fn record(self, stream: CUstream) {
        RECORDING.set(Some((self, stream)));
    }
}

/// Whether this thread records, for any device.
pub(super) fn is_recording() -> bool {
    RECORDING.get().is_some()
}

/// This thread's work goes to its devices' streams again.
pub(super) fn record_no_more() {
    RECORDING.set(None);
}
