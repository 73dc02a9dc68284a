//! Buffers for messages, used again and again.

use halo_gpu::{Buffer, Device, Error};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Buffers that are free. A clone has none.
///
/// What a rank sends a neighbour is as long as what it receives from it. So from its second
/// exchange on a rank allocates nothing: messages that have arrived become those that are sent
/// next, and those that were sent become rooms.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Vec<Buffer<u8>>>);

/// More than an exchange in space needs, which has up to 26 neighbours, and a field's rims.
const MOST: usize = 64;

impl Spare {
    fn free(&self) -> MutexGuard<'_, Vec<Buffer<u8>>> {
        // A panic leaves the value consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of this many bytes on `device`, which holds anything.
    pub(crate) fn take(&self, device: &Device, bytes: usize) -> Result<Buffer<u8>, Error> {
        let mut free = self.free();
        let fits = |it: &Buffer<u8>| it.len() == bytes && it.device() == device;
        let found = free.iter().position(fits).or_else(|| {
            // Another handle of the same device has it.
            free.iter().position(|it| it.len() == bytes)
        });
        let found = found.map(|at| free.remove(at));
        drop(free);
        match found {
            Some(buffer) => buffer.move_to(device),
            None => device.zeros(bytes),
        }
    }

    /// These are free from now on. The oldest go if there are too many.
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
