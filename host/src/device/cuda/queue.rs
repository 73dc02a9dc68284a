//! Chooses the stream for new work: the device's own or, on a thread that records, the recording's.

use crate::Error;
use crate::device::tally::Tally;
use cuda_loader::sys::{CUdeviceptr, CUstream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// The current recording of a device's work, if any.
#[derive(Default)]
pub(super) struct Recorder(Mutex<Option<Recording>>);

struct Recording {
    /// The thread that records; work of other threads is not recorded.
    thread: ThreadId,
    stream: CUstream,
    notes: Notes,
}

/// What a recording notes in addition to the work in its stream.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) counted: Vec<(Tally, u64)>,
    /// All buffers that were exchanged.
    places: Vec<ExchangedBuffer>,
}

/// A buffer that the host exchanged with others, and where its contents are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExchangedBuffer {
    /// Its memory before the recording.
    pub(super) before: CUdeviceptr,
    /// Its memory now.
    pub(super) now: CUdeviceptr,
    pub(super) bytes: usize,
    /// Whether its contents are needed.
    is_needed: bool,
}

impl Notes {
    /// Exchanges the buffer in `before` with the one in `now`, of the same size. The contents of
    /// the latter are no longer needed.
    pub(super) fn exchange(&mut self, now: CUdeviceptr, before: CUdeviceptr, bytes: usize) {
        let [buffer, other] = [before, now].map(|address| {
            let at = self.places.iter().position(|place| place.now == address);
            at.unwrap_or_else(|| {
                self.places.push(ExchangedBuffer {
                    before: address,
                    now: address,
                    bytes,
                    is_needed: true,
                });
                self.places.len() - 1
            })
        });
        (self.places[buffer].now, self.places[buffer].is_needed) = (now, true);
        (self.places[other].now, self.places[other].is_needed) = (before, false);
    }

    /// The buffers whose contents are needed and have moved since the recording began.
    pub(super) fn moved(&self) -> Vec<ExchangedBuffer> {
        let has_moved = |place: &&ExchangedBuffer| place.is_needed && place.now != place.before;
        self.places.iter().filter(has_moved).copied().collect()
    }
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Option<Recording>> {
        // A panic leaves the value consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error if any thread is recording.
    pub(super) fn require_none(&self) -> Result<(), Error> {
        match *self.lock() {
            Some(_) => Err(Error::NotReplayable {
                operation: "another recording of the device",
            }),
            None => Ok(()),
        }
    }

    /// Sends this thread's work to `stream` from now on. Returns an error if any thread is
    /// recording.
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

    /// Returns an error if this thread is recording, because `what` cannot be recorded.
    pub(super) fn refuse(&self, what: &'static str) -> Result<(), Error> {
        match self.stream() {
            Some(_) => Err(Error::NotReplayable { operation: what }),
            None => Ok(()),
        }
    }

    /// Calls `note` with the notes if this thread records.
    pub(super) fn note<R>(&self, note: impl FnOnce(&mut Notes) -> R) -> Option<R> {
        self.of_this_thread(|recording| note(&mut recording.notes))
    }

    fn of_this_thread<R>(&self, what: impl FnOnce(&mut Recording) -> R) -> Option<R> {
        let mut recording = self.lock();
        let recording = recording.as_mut()?;
        (recording.thread == thread::current().id()).then(|| what(recording))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The present and the earlier memory of the buffers that have moved.
    fn moved(notes: &Notes) -> Vec<[CUdeviceptr; 2]> {
        let moved = notes.moved().into_iter();
        moved.map(|place| [place.now, place.before]).collect()
    }

    #[test]
    fn buffers_that_are_back_have_not_moved() {
        let mut notes = Notes::default();
        assert!(moved(&notes).is_empty());
        notes.exchange(2, 1, 4);
        assert_eq!(moved(&notes), [[2, 1]]);
        notes.exchange(1, 2, 4);
        assert!(moved(&notes).is_empty());
        // Three buffers in turns: the first takes the memory of the second, then the second that of
        // the third, whose contents are not needed.
        let mut has = [1, 2, 3];
        let mut notes = Notes::default();
        for turn in 1..=6 {
            for [one, other] in [[0, 1], [1, 2]] {
                has.swap(one, other);
                notes.exchange(has[one], has[other], 4);
            }
            let expected = match has == [1, 2, 3] {
                true => vec![],
                false => vec![[has[0], 1], [has[1], 2]],
            };
            assert_eq!(moved(&notes), expected, "after {turn}");
        }
        // Others are not affected.
        notes.exchange(8, 7, 4);
        assert_eq!(moved(&notes), [[8, 7]]);
    }
}
