//! Elements in device memory.

use super::copy::{self, AsyncCopyDestination, CopyDestination};
use super::device_slice::DeviceSlice;
use super::malloc::{cuda_free, cuda_free_async, cuda_malloc, cuda_malloc_async};
use super::pointer::DevicePointer;
use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, DropResult, ToResult};
use crate::private::Sealed;
use crate::stream::Stream;
use bytemuck::{Pod, PodCastError, Zeroable};
use cuda_loader::sys;
use cust_core::DeviceCopy;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// Elements in device memory, freed when this is dropped.
///
/// Whoever launches a kernel promises that the memory it uses lives until the kernel has ended.
#[derive(Debug)]
pub struct DeviceBuffer<T: DeviceCopy> {
    /// The address; without memory, as for elements without bytes, it is aligned and not null.
    start: DevicePointer<T>,
    len: usize,
    /// `None` if there is nothing to free.
    home: Option<Home>,
}

// SAFETY: it owns its elements, and any thread may call the driver.
unsafe impl<T: DeviceCopy + Send> Send for DeviceBuffer<T> {}
// SAFETY: as above; a shared reference only allows copies from the device.
unsafe impl<T: DeviceCopy + Sync> Sync for DeviceBuffer<T> {}

impl<T: DeviceCopy> DeviceBuffer<T> {
    /// A buffer without memory, for this many elements of size zero.
    fn nothing(len: usize) -> Self {
        Self {
            start: DevicePointer::from_raw(align_of::<T>() as u64),
            len,
            home: None,
        }
    }

    /// Memory for `size` elements, with unspecified contents.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`], [`CudaError::InvalidMemoryAllocation`] if the size in bytes
    /// exceeds the address space, or another error of the driver.
    ///
    /// # Safety
    ///
    /// The elements are written before they are read.
    pub unsafe fn uninitialized(size: usize) -> CudaResult<Self> {
        if size == 0 || size_of::<T>() == 0 {
            return Ok(Self::nothing(size));
        }
        let home = Home::current()?;
        Ok(Self {
            // SAFETY: the buffer frees the memory when it is dropped, in its context, which `home`
            // keeps.
            start: unsafe { cuda_malloc(size)? },
            len: size,
            home: Some(home),
        })
    }

    /// [`DeviceBuffer::uninitialized`], in stream order.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    ///
    /// # Safety
    ///
    /// The elements are written before they are read, and only work after this in stream order uses
    /// them.
    pub unsafe fn uninitialized_async(size: usize, stream: &Stream) -> CudaResult<Self> {
        if size == 0 || size_of::<T>() == 0 {
            return Ok(Self::nothing(size));
        }
        let home = Home::current()?;
        Ok(Self {
            // SAFETY: as above.
            start: unsafe { cuda_malloc_async(stream, size)? },
            len: size,
            home: Some(home),
        })
    }

    /// Frees the memory in stream order.
    ///
    /// # Errors
    ///
    /// The error that the driver reports; the memory then leaks.
    pub fn drop_async(self, stream: &Stream) -> CudaResult<()> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the field is read once, because the value is not dropped.
        let home = unsafe { std::ptr::read(&raw const this.home) };
        let Some(home) = home else { return Ok(()) };
        let _entered = home.enter()?;
        // SAFETY: this value owns the memory, and no later work can get its address.
        unsafe { cuda_free_async(stream, this.start) }
    }

    /// The buffer of these elements; it takes ownership.
    ///
    /// # Safety
    ///
    /// [`cuda_malloc`](super::cuda_malloc) has allocated the memory in the current context. It
    /// holds `capacity` initialised elements, and has no other owner.
    #[must_use]
    pub unsafe fn from_raw_parts(ptr: DevicePointer<T>, capacity: usize) -> Self {
        if capacity == 0 || size_of::<T>() == 0 {
            return Self::nothing(capacity);
        }
        Self {
            start: ptr,
            len: capacity,
            home: Home::current().ok(),
        }
    }

    /// Frees the memory, and returns the driver's error if that fails.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the buffer.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(mut dev_buf: Self) -> DropResult<Self> {
        dev_buf.free().map_err(|error| (error, dev_buf))
    }

    fn free(&mut self) -> CudaResult<()> {
        if let Some(home) = &self.home {
            let _entered = home.enter()?;
            // SAFETY: this value owns the memory, and nothing uses it afterwards.
            unsafe { cuda_free(self.start) }?;
        }
        self.home = None;
        Ok(())
    }

    /// A buffer of copies of these elements.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    pub fn from_slice(slice: &[T]) -> CudaResult<Self> {
        // SAFETY: the elements are written below.
        let mut buffer = unsafe { Self::uninitialized(slice.len()) }?;
        let target: &mut DeviceSlice<T> = &mut buffer;
        copy_from_slice(target, slice)?;
        Ok(buffer)
    }

    /// A buffer of copies of these elements, in stream order.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    ///
    /// # Safety
    ///
    /// Until the copy has ended, `slice` does not change, and only work of the stream uses the
    /// buffer.
    pub unsafe fn from_slice_async(slice: &[T], stream: &Stream) -> CudaResult<Self> {
        // SAFETY: the elements are written below.
        let buffer = unsafe { Self::uninitialized_async(slice.len(), stream) }?;
        let bytes = size_of_val(slice);
        if bytes > 0 {
            // SAFETY: both sides have this many bytes; the rest is the caller's promise.
            unsafe {
                sys::cuMemcpyHtoDAsync_v2(
                    buffer.start.as_raw(),
                    slice.as_ptr().cast(),
                    bytes,
                    stream.as_inner(),
                )
            }
            .to_result()?;
        }
        Ok(buffer)
    }

    /// All elements.
    #[must_use]
    pub fn as_slice(&self) -> &DeviceSlice<T> {
        self
    }
}

/// Copies a slice to the device; [`CopyDestination`] does not take slices directly.
fn copy_from_slice<T: DeviceCopy>(target: &mut DeviceSlice<T>, source: &[T]) -> CudaResult<()> {
    let bytes = size_of_val(source);
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the target has as many elements as the source, and is borrowed exclusively.
    unsafe {
        copy::memcpy_htod(
            target.as_device_ptr().as_raw(),
            source.as_ptr().cast(),
            bytes,
        )
    }
}

impl<T: DeviceCopy + Zeroable> DeviceBuffer<T> {
    /// A buffer of zeros.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    pub fn zeroed(size: usize) -> CudaResult<Self> {
        // SAFETY: the elements are written in the next line.
        let mut buffer = unsafe { Self::uninitialized(size) }?;
        buffer.set_zero()?;
        Ok(buffer)
    }

    /// A buffer of zeros, in stream order.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    ///
    /// # Safety
    ///
    /// Until the stream has done this, only work of the stream uses the buffer.
    pub unsafe fn zeroed_async(size: usize, stream: &Stream) -> CudaResult<Self> {
        // SAFETY: the elements are written in the next line.
        let mut buffer = unsafe { Self::uninitialized_async(size, stream) }?;
        // SAFETY: the caller's promise.
        unsafe { buffer.set_zero_async(stream) }?;
        Ok(buffer)
    }
}

impl<A: DeviceCopy + Pod> DeviceBuffer<A> {
    /// The same bytes as elements of another type.
    ///
    /// # Panics
    ///
    /// If [`DeviceBuffer::try_cast`] fails.
    #[must_use]
    pub fn cast<B: Pod + DeviceCopy>(self) -> DeviceBuffer<B> {
        match self.try_cast() {
            Ok(buffer) => buffer,
            Err(error) => panic!("a buffer cannot be cast: {error}"),
        }
    }

    /// The same bytes as elements of another type.
    ///
    /// # Errors
    ///
    /// If the bytes are not a whole number of elements of the other type, or that type needs a
    /// larger alignment. The buffer is then freed.
    pub fn try_cast<B: Pod + DeviceCopy>(self) -> Result<DeviceBuffer<B>, PodCastError> {
        if align_of::<B>() > align_of::<A>()
            && !self.start.as_raw().is_multiple_of(align_of::<B>() as u64)
        {
            return Err(PodCastError::TargetAlignmentGreaterAndInputNotAligned);
        }
        let bytes = size_of::<A>() * self.len;
        let len = match size_of::<B>() {
            0 if bytes == 0 => self.len,
            0 => return Err(PodCastError::SizeMismatch),
            size if bytes.is_multiple_of(size) => bytes / size,
            _ => return Err(PodCastError::OutputSliceWouldHaveSlop),
        };
        let this = ManuallyDrop::new(self);
        Ok(DeviceBuffer {
            start: this.start.cast(),
            len,
            // SAFETY: the field is read once, because the value is not dropped.
            home: unsafe { std::ptr::read(&raw const this.home) },
        })
    }
}

impl<T: DeviceCopy> Deref for DeviceBuffer<T> {
    type Target = DeviceSlice<T>;

    fn deref(&self) -> &DeviceSlice<T> {
        // SAFETY: the buffer has this many elements, and is borrowed.
        unsafe { DeviceSlice::from_raw_parts(self.start, self.len) }
    }
}

impl<T: DeviceCopy> DerefMut for DeviceBuffer<T> {
    fn deref_mut(&mut self) -> &mut DeviceSlice<T> {
        // SAFETY: the buffer has this many elements, and is borrowed exclusively.
        unsafe { DeviceSlice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl<T: DeviceCopy> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has failed.
        let _: Result<(), CudaError> = self.free();
    }
}

impl<T: DeviceCopy> Sealed for DeviceBuffer<T> {}

impl<T: DeviceCopy> CopyDestination<DeviceBuffer<T>> for DeviceSlice<T> {
    fn copy_from(&mut self, source: &DeviceBuffer<T>) -> CudaResult<()> {
        self.copy_from(&**source)
    }

    fn copy_to(&self, dest: &mut DeviceBuffer<T>) -> CudaResult<()> {
        self.copy_to(&mut **dest)
    }
}

impl<T: DeviceCopy> AsyncCopyDestination<DeviceBuffer<T>> for DeviceSlice<T> {
    unsafe fn async_copy_from(
        &mut self,
        source: &DeviceBuffer<T>,
        stream: &Stream,
    ) -> CudaResult<()> {
        // SAFETY: the caller's promise.
        unsafe { self.async_copy_from(&**source, stream) }
    }

    unsafe fn async_copy_to(&self, dest: &mut DeviceBuffer<T>, stream: &Stream) -> CudaResult<()> {
        // SAFETY: the caller's promise.
        unsafe { self.async_copy_to(&mut **dest, stream) }
    }
}
