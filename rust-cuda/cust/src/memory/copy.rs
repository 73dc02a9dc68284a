//! Copies to and from device memory.

use crate::context::Context;
use crate::error::{CudaResult, ToResult};
use crate::private::Sealed;
use crate::stream::Stream;
use cuda_loader::sys::{self, CUdeviceptr};
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
