//! Sealed buffers: buffers on their way from one device to another.

use super::buffer::{Buffer, require_len};
use super::event::Event;
use super::storage::Element;
use super::view::ViewMut;
use crate::Error;
use std::fmt;

#[cfg(halo_cuda)]
use super::storage::Storage;

/// A buffer that gets no more work, with an event after its last work. One device passes it to
/// another, possibly on another thread.
///
/// [`Buffer::copy_across`] waits for all work that the source's device has been given at the time
/// of the copy. A copy from a sealed buffer waits only for the work given before it was sealed,
/// however much follows:
///
/// ```
/// use halo_gpu::Device;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let (device, other) = (Device::best(), Device::best());
/// let mut message = device.upload(&[1_u32, 2, 3])?.seal()?;
/// // Here `device` continues.
/// let mut target = other.zeros::<u8>(12)?;
/// target.view_mut(..)?.copy_from_sealed(&mut message)?; // the host does not wait
/// let again = message.open()?; // work on it comes behind the copy
/// assert_eq!((target.to_vec()?[4], again.len()), (2_u32.to_ne_bytes()[0], 3));
/// # Ok(())
/// # }
/// ```
pub struct Sealed<T: Element> {
    /// `Some` until it is opened or dropped.
    buffer: Option<Buffer<T>>,
    /// After all work on the buffer.
    behind: Event,
}

impl<T: Element> Buffer<T> {
    /// Seals the buffer after all work that its device has been given.
    ///
    /// # Errors
    ///
    /// As for [`Device::record_event`](crate::Device::record_event).
    pub fn seal(self) -> Result<Sealed<T>, Error> {
        let behind = self.device().record_event()?;
        Ok(Sealed {
            buffer: Some(self),
            behind,
        })
    }
}

impl<T: Element> Sealed<T> {
    fn buffer(&self) -> &Buffer<T> {
        match &self.buffer {
            Some(buffer) => buffer,
            None => unreachable!("it goes with the value"),
        }
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer().len()
    }

    /// Whether the buffer has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Opens the buffer. Later work of its device runs after the copies from it.
    ///
    /// # Errors
    ///
    /// As for [`Device::wait_event`](crate::Device::wait_event).
    pub fn open(mut self) -> Result<Buffer<T>, Error> {
        self.buffer().device().wait_event(&self.behind)?;
        match self.buffer.take() {
            Some(buffer) => Ok(buffer),
            None => unreachable!("it goes with the value"),
        }
    }
}

impl<T: Element> ViewMut<'_, T> {
    /// Overwrites the bytes of the elements with those of `source`, of any device. On CUDA devices
    /// the copy runs after earlier work of the target's device, and after the work that the
    /// source's device had been given before the source was sealed. The host does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] unless both have the same number of bytes; the errors of
    /// [`Buffer::copy_across`].
    pub fn copy_from_sealed<U: Element>(&mut self, source: &mut Sealed<U>) -> Result<(), Error> {
        let size = size_of::<T>();
        let (own, start, len) = self.parts_mut();
        let bytes = source.len() * size_of::<U>();
        require_len("the sealed buffer, as bytes,", len * size, bytes)?;
        let device = own.device().clone();
        let from = source.buffer();
        device.wait_event(&source.behind)?;
        if device.kind() != from.device().kind() {
            let here = device.upload(&from.to_vec()?)?;
            return own
                .storage
                .copy_bytes(start * size, &here.storage, 0..bytes);
        }
        #[cfg(halo_cuda)]
        if let (Storage::Cuda(to), Storage::Cuda(from)) = (&mut own.storage, &from.storage) {
            // SAFETY: this device waits for the event after all work on the source. The source gets
            // no more work until it is opened or dropped, and both first wait for the event
            // recorded below.
            unsafe { to.copy_unordered(start * size, from, 0..bytes) }?;
            source.behind = device.record_event().inspect_err(|_| {
                // Nothing orders later work on the source after the copy, so wait for the copy
                // here.
                let _: Result<(), Error> = device.synchronize();
            })?;
            return Ok(());
        }
        own.storage
            .copy_bytes(start * size, &from.storage, 0..bytes)
    }
}

impl<T: Element> Drop for Sealed<T> {
    fn drop(&mut self) {
        // The memory is freed after the copies from it. A failure means that the driver is shutting
        // down or that a kernel has faulted.
        if let Some(buffer) = &self.buffer {
            let _: Result<(), Error> = buffer.device().wait_event(&self.behind);
        }
    }
}

impl<T: Element> fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sealed").field(self.buffer()).finish()
    }
}
