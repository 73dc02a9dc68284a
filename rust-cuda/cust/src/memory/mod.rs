//! Device memory, unified memory, and page-locked host memory.
//!
//! | type | location | who may use it |
//! |---|---|---|
//! | [`DeviceBox`], [`DeviceBuffer`], [`DeviceVariable`] | device | kernels; the host by copies |
//! | [`UnifiedBox`], [`UnifiedBuffer`] | moves between host and device | both, in turns |
//! | [`LockedBox`], [`LockedBuffer`] | host, page-locked | the host; its copies can overlap with kernels |
//! | [`array::ArrayObject`] | device, in the layout of textures | textures and surfaces; the host by copies |

pub mod array;
mod device_box;
mod device_buffer;
mod device_slice;
mod device_variable;
mod locked;
mod malloc;
mod pointer;
mod pool;
mod unified;

pub use bytemuck;
pub use cust_core::_hidden::DeviceCopy;
pub use cust_derive::DeviceCopy;
pub use device_box::DeviceBox;
pub use device_buffer::DeviceBuffer;
pub use device_slice::{DeviceSlice, DeviceSliceIndex};
pub use device_variable::DeviceVariable;
pub use locked::{LockedBox, LockedBuffer};
pub use malloc::{
    cuda_free, cuda_free_async, cuda_free_locked, cuda_free_unified, cuda_malloc,
    cuda_malloc_async, cuda_malloc_locked, cuda_malloc_unified,
};
pub use pointer::{DevicePointer, UnifiedPointer};
pub use pool::MemoryPool;
pub use unified::{MemoryAdvise, UnifiedBox, UnifiedBuffer};

use crate::context::Context;
use crate::error::{CudaResult, ToResult};
use crate::private::Sealed;
use crate::stream::Stream;
use crate::sys::{self, CUdeviceptr};
use std::ffi::c_void;

/// Device memory that can be copied to and from. A call returns when the copy has ended.
pub trait CopyDestination<O: ?Sized>: Sealed {
    /// Copies from `source`.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    fn copy_from(&mut self, source: &O) -> CudaResult<()>;

    /// Copies to `dest`.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    fn copy_to(&self, dest: &mut O) -> CudaResult<()>;
}

/// Device memory that can be copied to and from in stream order. A call returns at once.
pub trait AsyncCopyDestination<O: ?Sized>: Sealed {
    /// Copies from `source` after the earlier work of the stream.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Safety
    ///
    /// Until the copy has ended, both sides stay allocated, `source` does not change, and only work
    /// of the stream uses this side.
    unsafe fn async_copy_from(&mut self, source: &O, stream: &Stream) -> CudaResult<()>;

    /// Copies to `dest` after the earlier work of the stream.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Safety
    ///
    /// Until the copy has ended, both sides stay allocated, this side does not change, and only
    /// work of the stream uses `dest`.
    unsafe fn async_copy_to(&self, dest: &mut O, stream: &Stream) -> CudaResult<()>;
}

/// Elements that a kernel can use, in device memory or unified memory.
#[allow(clippy::len_without_is_empty, reason = "the trait that cust has")]
pub trait GpuBuffer<T: DeviceCopy>: Sealed {
    /// The address of the first element.
    fn as_device_ptr(&self) -> DevicePointer<T>;

    /// The number of elements.
    fn len(&self) -> usize;
}

impl<T: DeviceCopy> GpuBuffer<T> for DeviceBuffer<T> {
    fn as_device_ptr(&self) -> DevicePointer<T> {
        (**self).as_device_ptr()
    }

    fn len(&self) -> usize {
        (**self).len()
    }
}

impl<T: DeviceCopy> GpuBuffer<T> for UnifiedBuffer<T> {
    fn as_device_ptr(&self) -> DevicePointer<T> {
        DevicePointer::from_raw(self.as_ptr().expose_provenance() as u64)
    }

    fn len(&self) -> usize {
        (**self).len()
    }
}

/// One value that a kernel can use, in device memory or unified memory.
pub trait GpuBox<T: DeviceCopy>: Sealed {
    /// The address of the value.
    fn as_device_ptr(&self) -> DevicePointer<T>;
}

impl<T: DeviceCopy> GpuBox<T> for DeviceBox<T> {
    fn as_device_ptr(&self) -> DevicePointer<T> {
        self.as_device_ptr()
    }
}

impl<T: DeviceCopy> GpuBox<T> for UnifiedBox<T> {
    fn as_device_ptr(&self) -> DevicePointer<T> {
        DevicePointer::from_raw(self.as_unified_ptr().as_raw().expose_provenance() as u64)
    }
}

/// A piece of device memory, of any type.
pub trait DeviceMemory {
    /// Its address.
    fn as_raw_ptr(&self) -> CUdeviceptr;

    /// Its size in bytes.
    fn size_in_bytes(&self) -> usize;
}

impl<T: DeviceCopy> DeviceMemory for DeviceBox<T> {
    fn as_raw_ptr(&self) -> CUdeviceptr {
        self.as_device_ptr().as_raw()
    }

    fn size_in_bytes(&self) -> usize {
        size_of::<T>()
    }
}

impl<T: DeviceCopy> DeviceMemory for DeviceVariable<T> {
    fn as_raw_ptr(&self) -> CUdeviceptr {
        self.as_device_ptr().as_raw()
    }

    fn size_in_bytes(&self) -> usize {
        size_of::<T>()
    }
}

impl<T: DeviceCopy> DeviceMemory for DeviceBuffer<T> {
    fn as_raw_ptr(&self) -> CUdeviceptr {
        (**self).as_raw_ptr()
    }

    fn size_in_bytes(&self) -> usize {
        (**self).size_in_bytes()
    }
}

impl<T: DeviceCopy> DeviceMemory for DeviceSlice<T> {
    fn as_raw_ptr(&self) -> CUdeviceptr {
        self.as_device_ptr().as_raw()
    }

    fn size_in_bytes(&self) -> usize {
        size_of::<T>() * self.len()
    }
}

/// Copies from the host to the device.
///
/// # Errors
///
/// The error that the driver reports.
///
/// # Safety
///
/// `size` bytes are readable at `src_ptr`, and the caller owns `size` bytes of device memory at
/// `d_ptr`.
pub unsafe fn memcpy_htod(
    d_ptr: CUdeviceptr,
    src_ptr: *const c_void,
    size: usize,
) -> CudaResult<()> {
    // SAFETY: the caller's promise.
    unsafe { sys::cuMemcpyHtoD_v2(d_ptr, src_ptr, size) }.to_result()
}

/// Copies between the memories of two devices, in the order of a stream of either.
///
/// It works for any two devices. If they can access each other's memory, the copy does not pass
/// through the host.
///
/// # Errors
///
/// The error that the driver reports.
///
/// # Safety
///
/// `size` bytes at `src` are memory of the context `src_context`, and `size` bytes at `dst` are
/// memory of `dst_context`, which the caller owns. Both stay allocated until the copy has ended.
/// Meanwhile nothing writes the source, and nothing else uses the target.
pub unsafe fn memcpy_peer_async(
    dst: CUdeviceptr,
    dst_context: &Context,
    src: CUdeviceptr,
    src_context: &Context,
    size: usize,
    stream: &Stream,
) -> CudaResult<()> {
    let (to, from) = (dst_context.as_raw(), src_context.as_raw());
    // SAFETY: contexts and stream are alive, the rest is the caller's promise.
    unsafe { sys::cuMemcpyPeerAsync(dst, to, src, from, size, stream.as_inner()) }.to_result()
}

/// Free and total memory of the current context's device, in bytes.
///
/// # Errors
///
/// The error that the driver reports.
pub fn mem_get_info() -> CudaResult<(usize, usize)> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: the pointers are valid for one size each.
    unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) }.to_result()?;
    Ok((free, total))
}
