//! Device memory, unified memory, and page-locked host memory.
//!
//! | type | location | who may use it |
//! |---|---|---|
//! | [`DeviceBox`], [`DeviceBuffer`], [`DeviceVariable`] | device | kernels; the host by copies |
//! | [`UnifiedBox`], [`UnifiedBuffer`] | moves between host and device | both, in turns |
//! | [`LockedBox`], [`LockedBuffer`] | host, page-locked | the host; its copies can overlap with kernels |
//! | [`array::ArrayObject`] | device, in the layout of textures | textures and surfaces; the host by copies |

pub mod array;
mod copy;
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
pub use copy::{AsyncCopyDestination, CopyDestination, memcpy_htod, memcpy_peer_async};
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

use crate::error::{CudaResult, ToResult};
use crate::private::Sealed;
use cuda_loader::sys::{self, CUdeviceptr};

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
