//! Marks in the work of a device that other devices and the host can wait for.

use super::handle::{Backend, Device};
use crate::Error;
use std::fmt;

#[cfg(halo_cuda)]
use super::cuda;

/// A mark behind the work that a device had been given when the event was recorded.
///
/// Another [handle](Device::beside) waits for it with [`Device::wait_event`], and the host goes
/// on meanwhile: so work is ordered whose data the library does not see, such as kernels of your
/// own. Buffers need no event: [`Buffer::move_to`](crate::Buffer::move_to) and
/// [`Buffer::copy_across`](crate::Buffer::copy_across) order the work on them themselves.
///
/// ```
/// use halo_gpu::Device;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::best();
/// let beside = device.beside()?;
/// let mut field = device.zeros::<f32>(1 << 16)?;
/// field.fill(1.0)?;
/// let filled = device.record_event()?;
/// beside.wait_event(&filled)?; // later work of `beside` runs after the fill
/// beside.synchronize()?;
/// assert!(filled.is_complete()?);
/// # Ok(())
/// # }
/// ```
pub struct Event {
    mark: Mark,
    device: Device,
}

enum Mark {
    /// The work was done before the event was recorded.
    Past,
    #[cfg(halo_cuda)]
    Cuda(cuda::Event),
}

impl Device {
    /// An event behind all work that this device has been given.
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

    /// Has the work that this device is given from now on wait for `event`, of this or any
    /// other device. The host does not wait, unless the event is of a CUDA device and this is
    /// none.
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
    /// The device whose work it is behind.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// Whether the work in front of it is done. Does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], also when a kernel in front of it has failed.
    pub fn is_complete(&self) -> Result<bool, Error> {
        match &self.mark {
            Mark::Past => Ok(true),
            #[cfg(halo_cuda)]
            Mark::Cuda(mark) => mark.is_complete(),
        }
    }

    /// Waits until the work in front of it is done; not for what the device was given since.
    ///
    /// # Errors
    ///
    /// As [`is_complete`](Self::is_complete).
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
