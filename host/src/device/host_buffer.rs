//! Host buffers: memory whose copies to and from a device overlap with the host's work.

use super::buffer::{Buffer, require_len};
use super::handle::Device;
use super::storage::Element;
use super::view::{View, ViewMut};
use crate::Error;
use crate::allocation::{bytes_of, zeroed};
use std::fmt;

#[cfg(halo_cuda)]
use super::{cuda::LockedMemory, handle::Backend, storage::Storage};

/// An array of `len` elements in host memory that a device copies from and to directly: page-locked
/// memory on CUDA devices, plain memory on others.
///
/// [`Buffer::copy_from_host`] and [`Buffer::copy_to_host`] enqueue copies after the device's
/// earlier work and return at once. Reading or dropping the elements waits for pending copies, so
/// nobody sees an incomplete copy, and no source changes during a copy.
///
/// ```
/// use halo_gpu::{Device, reduction};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::best();
/// let mut batch = device.alloc_host::<f32>(1 << 16)?;
/// let mut field = device.zeros(1 << 16)?;
/// for number in 0..4 {
///     batch.as_mut_slice()?.fill(number as f32); // waits for the copy before
///     field.copy_from_host(&batch)?; // does not wait
///     // Here the host prepares what comes next.
/// }
/// assert_eq!(reduction::max(&field)?, 3.0);
/// # Ok(())
/// # }
/// ```
///
/// The elements cannot be borrowed while a copy writes them:
///
/// ```compile_fail,E0502
/// # use halo_gpu::{Device, Error};
/// # fn main() -> Result<(), Error> {
/// # let device = Device::cpu();
/// let mut host = device.alloc_host::<f32>(3)?;
/// let field = device.zeros(3)?;
/// let before = host.as_slice()?;
/// field.copy_to_host(&mut host)?;
/// assert_eq!(before, [0.0; 3]);
/// # Ok(())
/// # }
/// ```
///
/// Nor can they be written while a copy may read them, unless you wait for it first:
///
/// ```compile_fail,E0502
/// # use halo_gpu::{Device, Error};
/// # fn main() -> Result<(), Error> {
/// # let device = Device::cpu();
/// let mut host = device.alloc_host::<f32>(3)?;
/// let mut field = device.zeros(3)?;
/// let values = host.as_mut_slice()?;
/// field.copy_from_host(&host)?;
/// values.fill(1.0);
/// # Ok(())
/// # }
/// ```
///
/// Page-locked memory takes long to allocate and cannot be swapped out: allocate it once, and no
/// more than the machine can spare.
pub struct HostBuffer<T: Element> {
    storage: Memory<T>,
    len: usize,
    // After the storage, so that the memory is freed before the device can be.
    device: Device,
}

enum Memory<T> {
    Own(Vec<T>),
    #[cfg(halo_cuda)]
    Locked(LockedMemory),
}

/// The alignment of page-locked memory.
#[cfg(halo_cuda)]
const PAGE: usize = 4096;

impl Device {
    /// Allocates `len` zeros in host memory for copies to and from this device.
    ///
    /// # Errors
    ///
    /// [`Error::HostOutOfMemory`], [`Error::IndexOverflow`] if the size in bytes does not fit
    /// `usize`, [`Error::InvalidParameter`] for types with an alignment of more than a page,
    /// [`Error::NotReplayable`] within [`Device::record`], [`Error::Driver`].
    pub fn alloc_host<T: Element>(&self, len: usize) -> Result<HostBuffer<T>, Error> {
        let bytes = bytes_of::<T>(len)?;
        let storage = match self.backend() {
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) if bytes > 0 => {
                if align_of::<T>() > PAGE {
                    return Err(Error::InvalidParameter {
                        operation: "page-locked memory",
                        parameter: "the alignment of the elements",
                        given: align_of::<T>().to_string(),
                        required: format!("at most {PAGE}"),
                    });
                }
                Memory::Locked(cuda.allocate_locked(bytes)?)
            }
            _ => {
                let _ = bytes;
                Memory::Own(zeroed(len)?)
            }
        };
        Ok(HostBuffer {
            storage,
            len,
            device: self.clone(),
        })
    }
}

impl<T: Element> HostBuffer<T> {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that copies from and to the elements.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The elements. Waits for pending copies.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], also if an earlier kernel has failed; [`Error::NotReplayable`] within
    /// [`Device::record`].
    pub fn as_slice(&self) -> Result<&[T], Error> {
        match &self.storage {
            Memory::Own(own) => Ok(own),
            #[cfg(halo_cuda)]
            Memory::Locked(locked) => Ok(bytemuck::cast_slice(locked.read()?)),
        }
    }

    /// The elements, mutable. Waits for pending copies.
    ///
    /// # Errors
    ///
    /// As for [`as_slice`](Self::as_slice).
    pub fn as_mut_slice(&mut self) -> Result<&mut [T], Error> {
        match &mut self.storage {
            Memory::Own(own) => Ok(own),
            #[cfg(halo_cuda)]
            Memory::Locked(locked) => Ok(bytemuck::cast_slice_mut(locked.write()?)),
        }
    }
}

impl<T: Element> Buffer<T> {
    /// Overwrites all elements with those of `source`, after the device's earlier work, and does
    /// not wait for the copy.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] unless `source` is for this buffer's device,
    /// [`Error::LengthMismatch`] unless it has as many elements, [`Error::NotReplayable`]
    /// within [`Device::record`], [`Error::Driver`].
    pub fn copy_from_host(&mut self, source: &HostBuffer<T>) -> Result<(), Error> {
        self.view_mut(..)?.copy_from_host(source)
    }

    /// Copies all elements to `target`, after the device's earlier work, and does not wait for the
    /// copy: [`HostBuffer::as_slice`] does.
    ///
    /// # Errors
    ///
    /// As for [`copy_from_host`](Self::copy_from_host).
    pub fn copy_to_host(&self, target: &mut HostBuffer<T>) -> Result<(), Error> {
        View::from(self).copy_to_host(target)
    }
}

impl<T: Element> ViewMut<'_, T> {
    /// Like [`Buffer::copy_from_host`], for the elements of this view.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::copy_from_host`].
    pub fn copy_from_host(&mut self, source: &HostBuffer<T>) -> Result<(), Error> {
        let what = "the host's memory to copy from";
        let (buffer, start, len) = self.parts_mut();
        buffer.device().require_same(what, &source.device)?;
        require_len(what, len, source.len)?;
        match (&mut buffer.storage, &source.storage) {
            #[cfg(halo_cuda)]
            (Storage::Cuda(memory), Memory::Locked(locked)) => {
                memory.upload_later(start * size_of::<T>(), locked)
            }
            (storage, _) => storage.write(start, source.as_slice()?),
        }
    }
}

impl<T: Element> View<'_, T> {
    /// Like [`Buffer::copy_to_host`], for the elements of this view.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let field = device.upload(&[1, 2, 3, 4, 5, 6])?;
    /// let mut last_row = device.alloc_host(2)?;
    /// field.view(4..)?.copy_to_host(&mut last_row)?; // does not wait
    /// assert_eq!(last_row.as_slice()?, [5, 6]); // does
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Buffer::copy_from_host`].
    pub fn copy_to_host(&self, target: &mut HostBuffer<T>) -> Result<(), Error> {
        let what = "the host's memory to copy to";
        self.buffer().device().require_same(what, &target.device)?;
        require_len(what, self.len(), target.len)?;
        match (&self.buffer().storage, &mut target.storage) {
            #[cfg(halo_cuda)]
            (Storage::Cuda(memory), Memory::Locked(locked)) => {
                memory.download_later(self.start() * size_of::<T>(), locked)
            }
            (storage, _) => storage.read(self.start(), target.as_mut_slice()?),
        }
    }
}

impl<T: Element> fmt::Debug for HostBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuffer")
            .field("type", &std::any::type_name::<T>())
            .field("len", &self.len)
            .field("device", &self.device.name())
            .finish()
    }
}
