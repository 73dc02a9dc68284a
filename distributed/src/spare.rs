//! A pool of buffers for messages.

use halo_gpu::{Buffer, Device, Error};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Free buffers. A clone is empty.
///
/// The messages to and from a neighbour have the same length. So a rank allocates nothing after its
/// first exchange: buffers that have arrived are sent next, and buffers that were sent receive the
/// next messages.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Vec<Buffer<u8>>>);

/// The most buffers that are kept: more than the 26 neighbours of an exchange in space and the rims
/// of a field need.
pub(crate) const MOST: usize = 64;

impl Spare {
    fn free(&self) -> MutexGuard<'_, Vec<Buffer<u8>>> {
        // A panic leaves the value consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of this many bytes on `device`, with unspecified contents.
    pub(crate) fn take(&self, device: &Device, bytes: usize) -> Result<Buffer<u8>, Error> {
        let mut free = self.free();
        let fits = |it: &Buffer<u8>| it.len() == bytes && it.device() == device;
        let found = free.iter().position(fits).or_else(|| {
            // Another handle of the same device owns the buffer.
            free.iter().position(|it| it.len() == bytes)
        });
        let found = found.map(|at| free.remove(at));
        drop(free);
        match found {
            Some(buffer) => buffer.move_to(device),
            None => device.zeros(bytes),
        }
    }

    /// Adds free buffers, and drops the oldest if there are too many.
    pub(crate) fn put(&self, buffers: impl IntoIterator<Item = Buffer<u8>>) {
        let mut free = self.free();
        free.extend(buffers);
        let more = free.len().saturating_sub(MOST);
        free.drain(..more);
    }
}

impl Clone for Spare {
    fn clone(&self) -> Self {
        Self::default()
    }
}
