//! Pools for stream-ordered allocation of device memory.

use super::malloc;
use super::pointer::DevicePointer;
use crate::context::home::Home;
use crate::device::Device;
use crate::error::{CudaError, CudaResult, ToResult};
use crate::stream::Stream;
use cuda_loader::sys::{self, CUmemoryPool};
use cust_core::DeviceCopy;

/// A pool of device memory. It reuses freed memory for later allocations.
#[derive(Debug)]
pub struct MemoryPool {
    raw: CUmemoryPool,
    home: Home,
}

impl MemoryPool {
    /// A pool on this device, for the current context.
    ///
    /// # Errors
    ///
    /// [`CudaError::NotSupported`] if the device or the driver has no pools; other errors of the
    /// driver.
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
        // SAFETY: both pointers are valid for what the driver writes and reads through them.
        match unsafe { sys::cuMemPoolCreate(&raw mut raw, &raw const properties) } {
            sys::CUresult::SYMBOL_MISSING => Err(CudaError::NotSupported),
            code => code.to_result().map(|()| Self { raw, home }),
        }
    }

    /// Sets how many unused bytes the pool keeps when a stream is synchronised.
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

    /// Gives `device` access to the pool; it must be [able to access](Device::can_access) the
    /// memory of the pool's device. Copies between the two then do not pass through the host.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn allow_access(&self, device: Device) -> CudaResult<()> {
        let access = sys::CUmemAccessDesc {
            locationType: sys::MEM_LOCATION_TYPE_DEVICE,
            locationId: device.as_raw(),
            flags: sys::MEM_ACCESS_READWRITE,
        };
        // SAFETY: the pool is alive, and the pointer is valid for one description.
        unsafe { sys::cuMemPoolSetAccess(self.raw, &raw const access, 1) }.to_result()
    }

    /// Returns unused memory to the device, and keeps at most this many bytes.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn trim_to(&self, bytes: usize) -> CudaResult<()> {
        // SAFETY: the pool is alive; memory in use is not touched.
        unsafe { sys::cuMemPoolTrimTo(self.raw, bytes) }.to_result()
    }

    /// Allocates memory for `count` elements in stream order.
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
        let bytes = malloc::bytes_of::<T>(count)?;
        let mut address = 0;
        // SAFETY: the pointer is valid for one address; pool and stream are alive.
        unsafe {
            sys::cuMemAllocFromPoolAsync(&raw mut address, bytes, self.raw, stream.as_inner())
        }
        .to_result()?;
        malloc::there(address)
    }
}

impl Drop for MemoryPool {
    fn drop(&mut self) {
        let Ok(_entered) = self.home.enter() else {
            return;
        };
        // SAFETY: this value owns the pool; the driver waits for pending frees. A failure means
        // that the driver is shutting down.
        let _ = unsafe { sys::cuMemPoolDestroy(self.raw) };
    }
}
