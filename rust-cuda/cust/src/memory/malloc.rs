//! Allocates and frees memory by hand, where the owning types do not fit.

use super::pointer::{DevicePointer, UnifiedPointer};
use crate::error::{CudaError, CudaResult, ToResult};
use crate::stream::Stream;
use cuda_loader::sys;
use cust_core::DeviceCopy;
use std::ffi::{c_uint, c_void};

/// `CU_MEM_ATTACH_GLOBAL`: kernels of all streams may use the memory.
const ATTACH_GLOBAL: c_uint = 1;

/// The size of this many elements in bytes. Fails if it is zero or exceeds the address space.
pub(super) fn bytes_of<T>(count: usize) -> CudaResult<usize> {
    count
        .checked_mul(size_of::<T>())
        .filter(|bytes| *bytes > 0)
        .ok_or(CudaError::InvalidMemoryAllocation)
}

/// The pointer to an allocation. Fails if the address is null.
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
/// [`CudaError::InvalidMemoryAllocation`] if the size in bytes is 0 or exceeds the address space,
/// [`CudaError::OutOfMemory`], or another error of the driver.
///
/// # Safety
///
/// The contents of the memory are unspecified until it is written. [`cuda_free`] frees it, once,
/// before its context ends.
pub unsafe fn cuda_malloc<T: DeviceCopy>(count: usize) -> CudaResult<DevicePointer<T>> {
    let bytes = bytes_of::<T>(count)?;
    let mut address = 0;
    // SAFETY: the pointer is valid for one address.
    unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes) }.to_result()?;
    there(address)
}

/// [`cuda_malloc`], in stream order.
///
/// # Errors
///
/// As [`cuda_malloc`].
///
/// # Safety
///
/// As [`cuda_malloc`]. Only work after this in stream order uses the memory, and
/// [`cuda_free_async`] or [`cuda_free`] frees it.
pub unsafe fn cuda_malloc_async<T: DeviceCopy>(
    stream: &Stream,
    count: usize,
) -> CudaResult<DevicePointer<T>> {
    let bytes = bytes_of::<T>(count)?;
    let mut address = 0;
    // SAFETY: the pointer is valid for one address, the stream is alive.
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
/// As [`cuda_malloc`]; [`cuda_free_unified`] frees it.
pub unsafe fn cuda_malloc_unified<T: DeviceCopy>(count: usize) -> CudaResult<UnifiedPointer<T>> {
    let bytes = bytes_of::<T>(count)?;
    let mut address = 0;
    // SAFETY: the pointer is valid for one address.
    unsafe { sys::cuMemAllocManaged(&raw mut address, bytes, ATTACH_GLOBAL) }.to_result()?;
    let address = there::<T>(address)?.as_raw() as usize;
    // SAFETY: the driver has just mapped the memory for host and device.
    Ok(unsafe { UnifiedPointer::wrap(std::ptr::with_exposed_provenance_mut(address)) })
}

/// Allocates page-locked host memory for `count` elements.
///
/// # Errors
///
/// As [`cuda_malloc`].
///
/// # Safety
///
/// As [`cuda_malloc`]; [`cuda_free_locked`] frees it.
pub unsafe fn cuda_malloc_locked<T>(count: usize) -> CudaResult<*mut T> {
    let bytes = bytes_of::<T>(count)?;
    let mut pointer: *mut c_void = std::ptr::null_mut();
    // SAFETY: the pointer is valid for one pointer.
    unsafe { sys::cuMemAllocHost_v2(&raw mut pointer, bytes) }.to_result()?;
    there::<u8>(pointer.addr() as u64)?;
    Ok(pointer.cast())
}

/// Frees memory of [`cuda_malloc`].
///
/// # Errors
///
/// [`CudaError::InvalidMemoryAllocation`] for null, or the error that the driver reports.
///
/// # Safety
///
/// [`cuda_malloc`] or [`cuda_malloc_async`] has allocated the memory, it is not freed yet, and
/// nothing uses it afterwards. Its context is current.
pub unsafe fn cuda_free<T: DeviceCopy>(ptr: DevicePointer<T>) -> CudaResult<()> {
    if ptr.is_null() {
        return Err(CudaError::InvalidMemoryAllocation);
    }
    // SAFETY: the caller's promise.
    unsafe { sys::cuMemFree_v2(ptr.as_raw()) }.to_result()
}

/// Frees memory of [`cuda_malloc_async`] in stream order.
///
/// # Errors
///
/// As [`cuda_free`].
///
/// # Safety
///
/// As [`cuda_free`]; only work before this in stream order uses the memory.
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

/// Frees memory of [`cuda_malloc_unified`].
///
/// # Errors
///
/// As [`cuda_free`].
///
/// # Safety
///
/// As [`cuda_free`], for memory of [`cuda_malloc_unified`].
pub unsafe fn cuda_free_unified<T: DeviceCopy>(p: UnifiedPointer<T>) -> CudaResult<()> {
    let address = p.as_raw().addr() as u64;
    // SAFETY: the caller's promise; the driver frees unified memory like device memory.
    unsafe { cuda_free(DevicePointer::<T>::from_raw(address)) }
}

/// Frees memory of [`cuda_malloc_locked`].
///
/// # Errors
///
/// As [`cuda_free`].
///
/// # Safety
///
/// As [`cuda_free`], for memory of [`cuda_malloc_locked`].
pub unsafe fn cuda_free_locked<T>(ptr: *mut T) -> CudaResult<()> {
    if ptr.is_null() {
        return Err(CudaError::InvalidMemoryAllocation);
    }
    // SAFETY: the caller's promise.
    unsafe { sys::cuMemFreeHost(ptr.cast()) }.to_result()
}
