//! Events: markers in the work of a device that other devices and the host can wait for.

use super::handle::{Backend, Device};
use crate::Error;
use std::fmt;

#[cfg(halo_cuda)]
use super::cuda;

/// A marker after all work that a device had been given when the event was recorded.
///
/// Another [handle](Device::new_handle) waits for it with [`Device::wait_event`], while the host
/// continues. Use events to order work on data that the library does not know of, such as your own
/// kernels. Buffers need no event: [`Buffer::move_to`](crate::Buffer::move_to) and
/// [`Buffer::copy_across`](crate::Buffer::copy_across) order the work on them.
///
/// ```
/// use halo_gpu::Device;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::best();
/// let second = device.new_handle()?;
/// let mut field = device.zeros::<f32>(1 << 16)?;
/// field.fill(1.0)?;
/// let filled = device.record_event()?;
/// second.wait_event(&filled)?; // later work of `second` runs after the fill
/// second.synchronize()?;
/// assert!(filled.is_complete()?);
/// # Ok(())
/// # }
/// ```
pub struct Event {
    mark: Mark,
    device: Device,
}

enum Mark {
    /// The work was complete before the event was recorded.
    Past,
    #[cfg(halo_cuda)]
    Cuda(cuda::Event),
}

impl Device {
    /// Records an event after all work that this device has been given.
    ///
    /// # Errors
    ///
    /// [`Error::NotReplayable`] within [`Device::record`], [`Error::Driver`].
    pub fn record_event(&self) -> Result<Event, Error> {
        let mark = match self.backend() {
            Backend::Cpu | Backend::Emulator(_) => Mark::Past,
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => Mark::Cuda(cuda.record_event("recording an event")?),
        };
        Ok(Event {
            mark,
            device: self.clone(),
        })
    }

    /// Makes later work of this device wait for `event`, of this or any other device. The host
    /// waits only if the event is of a CUDA device and this is another kind of device.
    ///
    /// # Errors
    ///
    /// [`Error::NotReplayable`] within [`Device::record`], [`Error::Driver`].
    pub fn wait_event(&self, event: &Event) -> Result<(), Error> {
        match (self.backend(), &event.mark) {
            (_, Mark::Past) => Ok(()),
            #[cfg(halo_cuda)]
            (Backend::Cuda(cuda), Mark::Cuda(mark)) => cuda.wait_event(mark),
            #[cfg(halo_cuda)]
            (_, Mark::Cuda(mark)) => mark.synchronize(),
        }
    }
}

impl Event {
    /// The device that recorded the event.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// Whether all work before the event is complete. Does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], also if a kernel before the event has failed.
    pub fn is_complete(&self) -> Result<bool, Error> {
        match &self.mark {
            Mark::Past => Ok(true),
            #[cfg(halo_cuda)]
            Mark::Cuda(mark) => mark.is_complete(),
        }
    }

    /// Waits until all work before the event is complete. Does not wait for later work.
    ///
    /// # Errors
    ///
    /// As for [`is_complete`](Self::is_complete).
    pub fn synchronize(&self) -> Result<(), Error> {
        match &self.mark {
            Mark::Past => Ok(()),
            #[cfg(halo_cuda)]
            Mark::Cuda(mark) => mark.synchronize(),
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("device", &self.device.name())
            .finish_non_exhaustive()
    }
}
