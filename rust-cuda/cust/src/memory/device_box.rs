//! [`DeviceBox`]: one value in device memory.

use super::copy::{AsyncCopyDestination, CopyDestination};
use super::device_buffer::DeviceBuffer;
use super::pointer::DevicePointer;
use crate::error::{CudaResult, DropResult, ToResult};
use crate::private::Sealed;
use crate::stream::Stream;
use bytemuck::Zeroable;
use cuda_loader::sys::{self, CUdeviceptr};
use cust_core::DeviceCopy;
use std::fmt;
use std::mem::ManuallyDrop;

/// One value in device memory, freed when this is dropped.
///
/// Whoever launches a kernel promises that the memory it uses lives until the kernel has ended.
#[derive(Debug)]
pub struct DeviceBox<T: DeviceCopy> {
    /// A buffer of one element.
    buffer: DeviceBuffer<T>,
}

impl<T: DeviceCopy> DeviceBox<T> {
    /// A copy of this value.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    pub fn new(val: &T) -> CudaResult<Self> {
        let buffer = DeviceBuffer::from_slice(std::slice::from_ref(val))?;
        Ok(Self { buffer })
    }

    /// A copy of this value, in stream order.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    ///
    /// # Safety
    ///
    /// Until the copy has ended, `val` does not change, and only work of the stream uses the box.
    pub unsafe fn new_async(val: &T, stream: &Stream) -> CudaResult<Self> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { DeviceBuffer::from_slice_async(std::slice::from_ref(val), stream) }?;
        Ok(Self { buffer })
    }

    /// Frees the memory in stream order.
    ///
    /// # Errors
    ///
    /// The error that the driver reports; the memory then leaks.
    pub fn drop_async(self, stream: &Stream) -> CudaResult<()> {
        self.buffer.drop_async(stream)
    }

    /// The value, copied to the host.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn as_host_value(&self) -> CudaResult<T> {
        let value = self.buffer.as_host_vec()?.pop();
        Ok(value.unwrap_or_else(|| unreachable!("a box has one value")))
    }

    /// Memory for a value, with unspecified contents.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    ///
    /// # Safety
    ///
    /// The value is written before it is read.
    pub unsafe fn uninitialized() -> CudaResult<Self> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { DeviceBuffer::uninitialized(1) }?;
        Ok(Self { buffer })
    }

    /// [`DeviceBox::uninitialized`], in stream order.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    ///
    /// # Safety
    ///
    /// As [`DeviceBuffer::uninitialized_async`].
    pub unsafe fn uninitialized_async(stream: &Stream) -> CudaResult<Self> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { DeviceBuffer::uninitialized_async(1, stream) }?;
        Ok(Self { buffer })
    }

    /// The box of the value at this address; it takes ownership.
    ///
    /// # Safety
    ///
    /// As [`DeviceBuffer::from_raw_parts`] with one element.
    #[must_use]
    pub unsafe fn from_raw(ptr: CUdeviceptr) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::from_device(DevicePointer::from_raw(ptr)) }
    }

    /// As [`DeviceBox::from_raw`].
    ///
    /// # Safety
    ///
    /// As [`DeviceBox::from_raw`].
    #[must_use]
    pub unsafe fn from_device(ptr: DevicePointer<T>) -> Self {
        Self {
            // SAFETY: the caller's promise.
            buffer: unsafe { DeviceBuffer::from_raw_parts(ptr, 1) },
        }
    }

    /// Returns the address; the caller takes ownership of the memory.
    #[must_use]
    #[allow(clippy::wrong_self_convention, reason = "the form that cust has")]
    pub fn into_device(b: Self) -> DevicePointer<T> {
        ManuallyDrop::new(b).buffer.as_device_ptr()
    }

    /// The address of the value.
    #[must_use]
    pub fn as_device_ptr(&self) -> DevicePointer<T> {
        self.buffer.as_device_ptr()
    }

    /// Frees the memory, and returns the driver's error if that fails.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the box.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(dev_box: Self) -> DropResult<Self> {
        DeviceBuffer::drop(dev_box.buffer).map_err(|(error, buffer)| (error, Self { buffer }))
    }
}

impl<T: DeviceCopy + Zeroable> DeviceBox<T> {
    /// A value of zeros.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    pub fn zeroed() -> CudaResult<Self> {
        let buffer = DeviceBuffer::zeroed(1)?;
        Ok(Self { buffer })
    }

    /// A value of zeros, in stream order.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::uninitialized`].
    ///
    /// # Safety
    ///
    /// As [`DeviceBuffer::zeroed_async`].
    pub unsafe fn zeroed_async(stream: &Stream) -> CudaResult<Self> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { DeviceBuffer::zeroed_async(1, stream) }?;
        Ok(Self { buffer })
    }
}

impl<T: DeviceCopy> fmt::Pointer for DeviceBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.as_device_ptr(), f)
    }
}

impl<T: DeviceCopy> Sealed for DeviceBox<T> {}

/// One value as a slice, which copies take.
struct One<'a, T>(&'a mut [T]);

impl<T> AsRef<[T]> for One<'_, T> {
    fn as_ref(&self) -> &[T] {
        self.0
    }
}

impl<T> AsMut<[T]> for One<'_, T> {
    fn as_mut(&mut self) -> &mut [T] {
        self.0
    }
}

impl<T: DeviceCopy> CopyDestination<T> for DeviceBox<T> {
    fn copy_from(&mut self, source: &T) -> CudaResult<()> {
        let mut source = *source;
        self.buffer
            .copy_from(&One(std::slice::from_mut(&mut source)))
    }

    fn copy_to(&self, dest: &mut T) -> CudaResult<()> {
        self.buffer.copy_to(&mut One(std::slice::from_mut(dest)))
    }
}

impl<T: DeviceCopy> CopyDestination<Self> for DeviceBox<T> {
    fn copy_from(&mut self, source: &Self) -> CudaResult<()> {
        self.buffer.copy_from(&source.buffer)
    }

    fn copy_to(&self, dest: &mut Self) -> CudaResult<()> {
        self.buffer.copy_to(&mut dest.buffer)
    }
}

impl<T: DeviceCopy> AsyncCopyDestination<T> for DeviceBox<T> {
    unsafe fn async_copy_from(&mut self, source: &T, stream: &Stream) -> CudaResult<()> {
        if size_of::<T>() == 0 {
            return Ok(());
        }
        // SAFETY: both sides are a `T`; the rest is the caller's promise.
        unsafe {
            sys::cuMemcpyHtoDAsync_v2(
                self.as_device_ptr().as_raw(),
                std::ptr::from_ref(source).cast(),
                size_of::<T>(),
                stream.as_inner(),
            )
        }
        .to_result()
    }

    unsafe fn async_copy_to(&self, dest: &mut T, stream: &Stream) -> CudaResult<()> {
        // SAFETY: the caller's promise.
        unsafe {
            self.buffer
                .async_copy_to(&mut One(std::slice::from_mut(dest)), stream)
        }
    }
}

impl<T: DeviceCopy> AsyncCopyDestination<Self> for DeviceBox<T> {
    unsafe fn async_copy_from(&mut self, source: &Self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: the caller's promise.
        unsafe { self.buffer.async_copy_from(&source.buffer, stream) }
    }

    unsafe fn async_copy_to(&self, dest: &mut Self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: the caller's promise.
        unsafe { self.buffer.async_copy_to(&mut dest.buffer, stream) }
    }
}
