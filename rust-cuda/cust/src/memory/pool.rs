//! Pools for stream-ordered allocation of device memory.

use super::{DeviceCopy, DevicePointer};
use crate::context::home::Home;
use crate::device::Device;
use crate::error::{CudaError, CudaResult, ToResult};
use crate::stream::Stream;
use crate::sys::{self, CUmemoryPool};

/// A pool of device memory. Memory freed to it is reused for the next allocation.
#[derive(Debug)]
pub struct MemoryPool {
    raw: CUmemoryPool,
    home: Home,
}

impl MemoryPool {
    /// A pool on this device, for the context that is current.
    ///
    /// # Errors
    ///
    /// [`CudaError::NotSupported`] where the device or the driver has no pools; what else the
    /// driver says.
    pub fn new(device: Device) -> CudaResult<Self> {
        let properties = sys::CUmemPoolProps {
            allocType: sys::MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: 0,
            locationType: sys::MEM_LOCATION_TYPE_DEVICE,
            locationId: device.as_raw(),
            win32SecurityAttributes: std::ptr::null_mut(),
            reserved: [0; 64],
        };
        let home = Home::current()?;
        let mut raw = CUmemoryPool::NULL;
        // SAFETY: both pointers are good for what is written and read through them.
        match unsafe { sys::cuMemPoolCreate(&raw mut raw, &raw const properties) } {
            sys::CUresult::SYMBOL_MISSING => Err(CudaError::NotSupported),
            code => code.to_result().map(|()| Self { raw, home }),
        }
    }

    /// The unused bytes that the pool keeps when a stream is synchronised.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_release_threshold(&self, bytes: u64) -> CudaResult<()> {
        let mut bytes = bytes;
        // SAFETY: the pool is alive, and the attribute is a `u64`.
        unsafe {
            sys::cuMemPoolSetAttribute(
                self.raw,
                sys::MEMPOOL_RELEASE_THRESHOLD,
                (&raw mut bytes).cast(),
            )
        }
        .to_result()
    }

    /// Lets `device`, which [can](Device::can_access) reach the memory of the pool's own, reach
    /// the pool: copies between the two then need no host.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn let_in(&self, device: Device) -> CudaResult<()> {
        let access = sys::CUmemAccessDesc {
            locationType: sys::MEM_LOCATION_TYPE_DEVICE,
            locationId: device.as_raw(),
            flags: sys::MEM_ACCESS_READWRITE,
        };
        // SAFETY: the pool is alive, and the pointer is good for one description.
        unsafe { sys::cuMemPoolSetAccess(self.raw, &raw const access, 1) }.to_result()
    }

    /// Returns unused memory to the device, except for this many bytes.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn trim_to(&self, bytes: usize) -> CudaResult<()> {
        // SAFETY: the pool is alive; memory in use is not touched.
        unsafe { sys::cuMemPoolTrimTo(self.raw, bytes) }.to_result()
    }

    /// Memory for `count` elements, in the order of a stream's work.
    ///
    /// # Errors
    ///
    /// As [`cuda_malloc_async`](super::cuda_malloc_async).
    ///
    /// # Safety
    ///
    /// As [`cuda_malloc_async`](super::cuda_malloc_async). The memory is freed before the pool
    /// is dropped.
    pub unsafe fn allocate_async<T: DeviceCopy>(
        &self,
        stream: &Stream,
        count: usize,
    ) -> CudaResult<DevicePointer<T>> {
        let bytes = super::malloc::bytes_of::<T>(count)?;
        let mut address = 0;
        // SAFETY: the pointer is good for one address; pool and stream are alive.
        unsafe {
            sys::cuMemAllocFromPoolAsync(&raw mut address, bytes, self.raw, stream.as_inner())
        }
        .to_result()?;
        super::malloc::there(address)
    }
}

impl Drop for MemoryPool {
    fn drop(&mut self) {
        let Ok(_entered) = self.home.enter() else {
            return;
        };
        // SAFETY: the pool is ours; the driver waits for what is still being freed. A failure
        // means that the driver is shutting down.
        let _ = unsafe { sys::cuMemPoolDestroy(self.raw) };
    }
}
