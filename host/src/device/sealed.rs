//! Buffers in transit from one device to another.

use super::buffer::{Buffer, require_len};
use super::event::Event;
use super::storage::Element;
use super::view::ViewMut;
use crate::Error;
use std::fmt;

#[cfg(halo_cuda)]
use super::storage::Storage;

/// A buffer that is given no work any more, and an event behind the last: what a device hands
/// to another one, whose thread may be another.
///
/// [`Buffer::copy_across`] waits for all that the source's device has been given by then. A copy
/// from a sealed buffer waits for what had been given when it was sealed, however much follows:
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
    /// There until it is opened or dropped.
    buffer: Option<Buffer<T>>,
    /// Behind all work on the buffer.
    behind: Event,
}

impl<T: Element> Buffer<T> {
    /// Seals the buffer behind what its device has been given.
    ///
    /// # Errors
    ///
    /// As [`Device::record_event`](crate::Device::record_event).
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

    /// How many elements the buffer has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer().len()
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffer. Later work of its device runs after the copies from it.
    ///
    /// # Errors
    ///
    /// As [`Device::wait_event`](crate::Device::wait_event).
    pub fn open(mut self) -> Result<Buffer<T>, Error> {
        self.buffer().device().wait_event(&self.behind)?;
        match self.buffer.take() {
            Some(buffer) => Ok(buffer),
            None => unreachable!("it goes with the value"),
        }
    }
}

impl<T: Element> ViewMut<'_, T> {
    /// Overwrites the bytes of the elements by those of `source`, of any device. On CUDA devices
    /// the copy runs after earlier work of the target's device, and after the work that the
    /// source's device had before it was sealed. The host does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] unless both have as many bytes; as [`Buffer::copy_across`].
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
            // SAFETY: this device waits for the event behind all work on the source, which is
            // given no more until it is opened or dropped: both wait for the event below first.
            unsafe { to.copy_unordered(start * size, from, 0..bytes) }?;
            source.behind = device.record_event().inspect_err(|_| {
                // Nothing keeps later work off the source, so that the copy is waited for here.
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
        // The memory goes behind the copies from it. A failure means that the driver is shutting
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
