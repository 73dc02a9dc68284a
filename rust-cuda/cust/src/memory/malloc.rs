//! Allocates and frees memory by hand, where the owning types do not fit.

use super::{DeviceCopy, DevicePointer, UnifiedPointer};
use crate::error::{CudaError, CudaResult, ToResult};
use crate::stream::Stream;
use crate::sys;
use std::ffi::{c_uint, c_void};

/// `CU_MEM_ATTACH_GLOBAL`: kernels of all streams may use the memory.
const ATTACH_GLOBAL: c_uint = 1;

/// The size of this many elements in bytes: not zero, and within the address space.
pub(super) fn bytes_of<T>(count: usize) -> CudaResult<usize> {
    count
        .checked_mul(size_of::<T>())
        .filter(|bytes| *bytes > 0)
        .ok_or(CudaError::InvalidMemoryAllocation)
}

/// The address of memory that was allocated, which is not null.
pub(super) fn there<T: DeviceCopy>(address: sys::CUdeviceptr) -> CudaResult<DevicePointer<T>> {
    match address {
        0 => Err(CudaError::from_code(sys::CUresult::INVALID_ANSWER.0)),
        address => Ok(DevicePointer::from_raw(address)),
    }
}

/// Allocates device memory for `count` elements.
///
/// # Errors
///
/// [`CudaError::InvalidMemoryAllocation`] for none or more than an address can count,
/// [`CudaError::OutOfMemory`], or what else the driver says.
///
/// # Safety
///
/// The memory holds anything until it is written. It is freed by [`cuda_free`], once, before
/// its context goes.
pub unsafe fn cuda_malloc<T: DeviceCopy>(count: usize) -> CudaResult<DevicePointer<T>> {
    let bytes = bytes_of::<T>(count)?;
    let mut address = 0;
    // SAFETY: the pointer is good for one address.
    unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes) }.to_result()?;
    there(address)
}

/// [`cuda_malloc`], in the order of a stream's work.
///
/// # Errors
///
/// As [`cuda_malloc`].
///
/// # Safety
///
/// As [`cuda_malloc`]; only work behind this, by the stream's order, uses the memory. It is
/// freed by [`cuda_free_async`] or [`cuda_free`].
pub unsafe fn cuda_malloc_async<T: DeviceCopy>(
    stream: &Stream,
    count: usize,
) -> CudaResult<DevicePointer<T>> {
    let bytes = bytes_of::<T>(count)?;
    let mut address = 0;
    // SAFETY: the pointer is good for one address, the stream is alive.
    unsafe { sys::cuMemAllocAsync(&raw mut address, bytes, stream.as_inner()) }.to_result()?;
    there(address)
}

/// Allocates memory for `count` elements that host and device share.
///
/// # Errors
///
/// As [`cuda_malloc`].
///
/// # Safety
///
/// As [`cuda_malloc`]; it is freed by [`cuda_free_unified`].
pub unsafe fn cuda_malloc_unified<T: DeviceCopy>(count: usize) -> CudaResult<UnifiedPointer<T>> {
    let bytes = bytes_of::<T>(count)?;
    let mut address = 0;
    // SAFETY: the pointer is good for one address.
    unsafe { sys::cuMemAllocManaged(&raw mut address, bytes, ATTACH_GLOBAL) }.to_result()?;
    let address = there::<T>(address)?.as_raw() as usize;
    // SAFETY: the driver has just mapped it for host and device.
    Ok(unsafe { UnifiedPointer::wrap(std::ptr::with_exposed_provenance_mut(address)) })
}

/// Allocates page-locked memory of the host for `count` elements.
///
/// # Errors
///
/// As [`cuda_malloc`].
///
/// # Safety
///
/// As [`cuda_malloc`]; it is freed by [`cuda_free_locked`].
pub unsafe fn cuda_malloc_locked<T>(count: usize) -> CudaResult<*mut T> {
    let bytes = bytes_of::<T>(count)?;
    let mut pointer: *mut c_void = std::ptr::null_mut();
    // SAFETY: the pointer is good for one pointer.
    unsafe { sys::cuMemAllocHost_v2(&raw mut pointer, bytes) }.to_result()?;
    there::<u8>(pointer.addr() as u64)?;
    Ok(pointer.cast())
}

/// Frees what [`cuda_malloc`] has allocated.
///
/// # Errors
///
/// [`CudaError::InvalidMemoryAllocation`] for null, or what the driver says.
///
/// # Safety
///
/// It was allocated by [`cuda_malloc`] or [`cuda_malloc_async`], is not freed yet, and
/// nothing uses it any more. Its context is current.
pub unsafe fn cuda_free<T: DeviceCopy>(ptr: DevicePointer<T>) -> CudaResult<()> {
    if ptr.is_null() {
        return Err(CudaError::InvalidMemoryAllocation);
    }
    // SAFETY: the caller's promise.
    unsafe { sys::cuMemFree_v2(ptr.as_raw()) }.to_result()
}

/// Frees what [`cuda_malloc_async`] has allocated, in the order of a stream's work.
///
/// # Errors
///
/// As [`cuda_free`].
///
/// # Safety
///
/// As [`cuda_free`]; only work in front of this, by the stream's order, uses the memory.
pub unsafe fn cuda_free_async<T: DeviceCopy>(
    stream: &Stream,
    p: DevicePointer<T>,
) -> CudaResult<()> {
    if p.is_null() {
        return Err(CudaError::InvalidMemoryAllocation);
    }
    // SAFETY: the caller's promise; the stream is alive.
    unsafe { sys::cuMemFreeAsync(p.as_raw(), stream.as_inner()) }.to_result()
}

/// Frees what [`cuda_malloc_unified`] has allocated.
///
/// # Errors
///
/// As [`cuda_free`].
///
/// # Safety
///
/// As [`cuda_free`], of what [`cuda_malloc_unified`] has allocated.
pub unsafe fn cuda_free_unified<T: DeviceCopy>(p: UnifiedPointer<T>) -> CudaResult<()> {
    let address = p.as_raw().addr() as u64;
    // SAFETY: the caller's promise; shared memory is freed as device memory is.
    unsafe { cuda_free(DevicePointer::<T>::from_raw(address)) }
}

/// Frees what [`cuda_malloc_locked`] has allocated.
///
/// # Errors
///
/// As [`cuda_free`].
///
/// # Safety
///
/// As [`cuda_free`], of what [`cuda_malloc_locked`] has allocated.
pub unsafe fn cuda_free_locked<T>(ptr: *mut T) -> CudaResult<()> {
    if ptr.is_null() {
        return Err(CudaError::InvalidMemoryAllocation);
    }
    // SAFETY: the caller's promise.
    unsafe { sys::cuMemFreeHost(ptr.cast()) }.to_result()
}
