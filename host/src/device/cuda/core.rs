//! The context, stream and memory pool of a device: buffers, textures and events keep them alive,
//! and this module releases them.

use super::driver::{checked, said};
use super::generation::{Generation, optional_attribute};
use super::queue::Recorder;
use crate::device::properties::Priority;
use crate::{Error, Limits};
use cuda_loader::sys::{self, CUDA_MEMCPY2D, CUarray, CUdeviceptr};
use cust::context::{Context, CurrentContext, Entered};
use cust::device::{Device, DeviceAttribute};
use cust::error::{CudaError, CudaResult};
use cust::event::{Event, EventFlags};
use cust::memory::{self, DevicePointer, MemoryPool};
use cust::stream::{Stream, StreamWaitEventFlags};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The parts of a device. Fields are released in this order, the context last.
pub(super) struct Core {
    pub(super) name: String,
    pub(super) generation: Generation,
    pub(super) limits: Limits,
    pub(super) recorder: Recorder,
    kept: Mutex<Kept>,
    /// A memory pool of this device handle, so that freeing memory does not wait. `None` on devices
    /// without pools.
    pool: Option<MemoryPool>,
    /// The other devices for which access to the pool has been set up, if possible.
    asked: Mutex<Vec<Device>>,
    pub(super) stream: Stream,
    context: Context,
}

/// Resources that were dropped while a graph may still use them.
#[derive(Default)]
struct Kept {
    /// The number of recordings and graphs.
    holders: usize,
    waiting: Vec<Resource>,
}

/// Resources that a device gets from the driver and must release.
pub(super) enum Resource {
    Memory(OwnMemory),
    Texture(cust::texture::Texture),
    Module(cust::module::Module),
}

/// Device memory that must be freed.
pub(super) struct OwnMemory {
    address: CUdeviceptr,
    /// The handle that has allocated the memory and will free it; `None` if it is the handle that
    /// uses it.
    lender: Option<Arc<Core>>,
}

impl OwnMemory {
    pub(super) fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Passes the memory on from `from` to `to`, two handles of the same GPU.
    ///
    /// Memory stays bound to the pool and the stream of the handle that has allocated it: some
    /// drivers crash in `cuStreamSynchronize` after memory is freed in another stream and its pool
    /// destroyed.
    pub(super) fn lent(self, from: &Arc<Core>, to: &Arc<Core>) -> Self {
        let lender = self.lender.unwrap_or_else(|| Arc::clone(from));
        Self {
            address: self.address,
            lender: (!Arc::ptr_eq(&lender, to)).then_some(lender),
        }
    }
}

impl Core {
    pub(super) fn new(
        device: Device,
        name: String,
        generation: Generation,
        limits: Limits,
        priority: Priority,
    ) -> Result<Self, Error> {
        let context = said("cuDevicePrimaryCtxRetain", Context::retain(device))?;
        let (stream, pool) = {
            let _current = said("cuCtxPushCurrent_v2", context.enter())?;
            let number = match priority {
                Priority::Low => None,
                Priority::High => {
                    let range = CurrentContext::get_stream_priority_range();
                    Some(said("cuCtxGetStreamPriorityRange", range)?.greatest)
                }
            };
            let stream = Stream::new_non_blocking(number);
            (said("cuStreamCreateWithPriority", stream)?, pool(device)?)
        };
        Ok(Self {
            name,
            generation,
            limits,
            recorder: Recorder::default(),
            kept: Mutex::default(),
            pool,
            asked: Mutex::default(),
            stream,
            context,
        })
    }

    /// Makes the device's context current on this thread.
    ///
    /// Every call to the driver requires that. It takes a few nanoseconds if the context is already
    /// current.
    pub(super) fn enter(&self) -> Result<Entered<'_>, Error> {
        said("cuCtxPushCurrent_v2", self.context.enter())
    }

    /// Returns an error if this thread is recording, because `what` cannot be recorded.
    pub(super) fn refuse(&self, what: &'static str) -> Result<(), Error> {
        self.recorder.refuse(what)
    }

    /// The stream for this thread's work on the device.
    pub(super) fn queue(&self) -> sys::CUstream {
        let recording = self.recorder.stream();
        recording.unwrap_or_else(|| self.stream.as_inner())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A panic leaves the value consistent.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a graph or a recording, which may use any resource.
    pub(super) fn hold(&self) {
        self.kept().holders += 1;
    }

    /// Whether a graph or a recording exists.
    pub(super) fn is_held(&self) -> bool {
        self.kept().holders > 0
    }

    /// Whether both are handles of the same GPU.
    pub(super) fn same_device(&self, other: &Self) -> bool {
        self.context.device() == other.context.device()
    }

    /// Makes later work of this handle wait for earlier work of `other`, a handle of any GPU.
    pub(super) fn follow(&self, other: &Self) -> Result<(), Error> {
        let event = {
            // An event can only be recorded in streams of its own context.
            let _current = other.enter()?;
            let event = said("cuEventCreate", Event::new(EventFlags::DISABLE_TIMING))?;
            said("cuEventRecord", event.record(&other.stream))?;
            event
        };
        self.wait_event(&event)
    }

    /// Makes later work of this handle wait for `event`, of any GPU.
    pub(super) fn wait_event(&self, event: &Event) -> Result<(), Error> {
        let _current = self.enter()?;
        let waits = self.stream.wait_event(event, StreamWaitEventFlags::DEFAULT);
        said("cuStreamWaitEvent", waits)
    }

    /// Gives another device access to this device's pool, at the first call.
    fn allow_access(&self, other: &Self) {
        let Some(pool) = &self.pool else { return };
        let (own, device) = (self.context.device(), other.context.device());
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.contains(&device) {
            asked.push(device);
            // Without access, or without pools, the driver copies through the host.
            if device.can_access(own) == Ok(true) {
                let _: CudaResult<()> = pool.allow_access(device);
            }
        }
    }

    /// Copies between the memories of two handles, after the earlier work of both and before their
    /// later work. The host does not wait.
    ///
    /// # Safety
    ///
    /// `from` has this many bytes of `other`'s memory, and `to` of this handle's. Only the caller
    /// uses them, except work that was enqueued before. They do not overlap, and are freed in the
    /// order of their handles' work or later.
    pub(super) unsafe fn copy_across(
        &self,
        to: CUdeviceptr,
        other: &Self,
        from: CUdeviceptr,
        bytes: usize,
    ) -> Result<(), Error> {
        self.follow(other)?;
        // SAFETY: the caller's promise. Earlier writes of the source precede this copy, because
        // this handle follows `other`.
        unsafe { self.copy_unordered(to, other, from, bytes) }?;
        other.follow(self).inspect_err(|_| {
            // Nothing orders later work on the source after the copy, so wait for the copy here. If
            // that fails too, a kernel has faulted, and no copy is running any more.
            if let Ok(_current) = self.enter() {
                let _: CudaResult<()> = self.stream.synchronize();
            }
        })
    }

    /// Copies between the memories of two handles, after the earlier work of this handle only.
    ///
    /// # Safety
    ///
    /// As for [`copy_across`](Self::copy_across); and the caller orders the copy with `other`'s
    /// earlier and later work.
    pub(super) unsafe fn copy_unordered(
        &self,
        to: CUdeviceptr,
        other: &Self,
        from: CUdeviceptr,
        bytes: usize,
    ) -> Result<(), Error> {
        let _current = self.enter()?;
        if self.same_device(other) {
            // SAFETY: the caller's promise; both are memory of one context.
            return unsafe { copy(to, from, bytes, self.stream.as_inner()) };
        }
        self.allow_access(other);
        other.allow_access(self);
        let (own, others) = (&self.context, &other.context);
        // SAFETY: the caller's promise; both contexts are alive.
        let copied =
            unsafe { memory::memcpy_peer_async(to, own, from, others, bytes, &self.stream) };
        said("cuMemcpyPeerAsync", copied)
    }

    /// Unregisters a recording or a graph. After the last one, releases the waiting resources.
    pub(super) fn release(&self) {
        let waiting: Vec<Resource> = {
            let mut kept = self.kept();
            kept.holders -= 1;
            if kept.holders > 0 {
                return;
            }
            std::mem::take(&mut kept.waiting)
        };
        let Ok(_current) = self.enter() else { return };
        for resource in waiting {
            self.free(resource);
        }
    }

    /// Releases a resource to the driver: now, or, while a graph may use it, after the last graph
    /// is gone. Only work that was enqueued before may still use it.
    pub(super) fn give_back(&self, resource: Resource) {
        // A failure means that the driver is shutting down or that a kernel has faulted; the
        // resource is then gone with the context.
        let Ok(_current) = self.enter() else { return };
        let mut kept = self.kept();
        if kept.holders > 0 {
            kept.waiting.push(resource);
            return;
        }
        drop(kept);
        self.free(resource);
    }

    /// Releases a resource to the driver. The context is current.
    fn free(&self, resource: Resource) {
        // Enqueued work ends first: memory of a pool is freed in stream order, and everything else
        // after waiting. For failures see `give_back`.
        let wait = || {
            let _: CudaResult<()> = self.stream.synchronize();
        };
        match resource {
            Resource::Memory(OwnMemory { address, lender }) => match lender {
                Some(lender) => {
                    if lender.follow(self).is_err() {
                        wait();
                    }
                    // SAFETY: the lender allocated it, and it is released once, when the value is
                    // dropped. The lender's later work, and so the release, runs after this
                    // handle's earlier work.
                    unsafe { lender.free_memory(address) };
                }
                // SAFETY: this handle allocated it, and it is released once.
                None => unsafe { self.free_memory(address) },
            },
            Resource::Texture(texture) => {
                wait();
                drop(texture);
            }
            Resource::Module(module) => {
                wait();
                drop(module);
            }
        }
    }

    /// Frees memory after the enqueued work. The context is current.
    ///
    /// # Safety
    ///
    /// `address` comes from [`allocate`](Self::allocate) of this handle and is freed once. Only
    /// work that was enqueued in this handle's stream before may still use it.
    unsafe fn free_memory(&self, address: CUdeviceptr) {
        let memory = DevicePointer::<u8>::from_raw(address);
        // For failures see `give_back`.
        let _: CudaResult<()> = if self.pool.is_some() {
            // SAFETY: the caller's promise; the memory comes from this handle's pool.
            unsafe { memory::cuda_free_async(&self.stream, memory) }
        } else {
            let _: CudaResult<()> = self.stream.synchronize();
            // SAFETY: the caller's promise; no work uses it any more.
            unsafe { memory::cuda_free(memory) }
        };
    }

    /// Waits for the end of all work.
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        self.refuse("waiting for the device")?;
        said("cuStreamSynchronize", self.stream.synchronize())
    }

    /// `bytes` (not zero) of memory. The context is current.
    pub(super) fn allocate(&self, bytes: usize) -> Result<OwnMemory, Error> {
        let mut allocated = self.try_allocate(bytes);
        if allocated.1 == Err(CudaError::OutOfMemory)
            && let Some(pool) = &self.pool
        {
            // The pool may hold enough free memory, but in unsuitable pieces.
            self.synchronize()?;
            said("cuMemPoolTrimTo", pool.trim_to(0))?;
            allocated = self.try_allocate(bytes);
        }
        match allocated {
            (_, Err(CudaError::OutOfMemory)) => Err(self.out_of_memory(bytes)),
            (call, result) => Ok(OwnMemory {
                address: said(call, result)?.as_raw(),
                lender: None,
            }),
        }
    }

    fn try_allocate(&self, bytes: usize) -> (&'static str, CudaResult<DevicePointer<u8>>) {
        // SAFETY: `free` frees the memory before the pool and the context are released. The device
        // has only one stream, so work that uses the memory runs after its allocation.
        unsafe {
            match &self.pool {
                Some(pool) => (
                    "cuMemAllocFromPoolAsync",
                    pool.allocate_async(&self.stream, bytes),
                ),
                None => ("cuMemAlloc_v2", memory::cuda_malloc(bytes)),
            }
        }
    }

    pub(super) fn out_of_memory(&self, requested: usize) -> Error {
        // If the query fails, these are zeros; the reported error is that of the allocation.
        let (free, total) = memory::mem_get_info().unwrap_or_default();
        Error::OutOfMemory {
            device: self.name.clone(),
            requested: requested as u64,
            free: free as u64,
            total: total as u64,
        }
    }

    /// Copies from the host to the device, and waits for it. The context is current.
    ///
    /// # Safety
    ///
    /// `target` has as many bytes as `source`, in this device's memory. Only the caller uses them,
    /// except work that was enqueued before.
    pub(super) unsafe fn upload(&self, target: CUdeviceptr, source: &[u8]) -> Result<(), Error> {
        let (from, bytes) = (source.as_ptr().cast(), source.len());
        // SAFETY: the caller promises the target. The source is borrowed until the copy has ended,
        // because this function waits for it; earlier work ends first, by stream order.
        checked("cuMemcpyHtoDAsync_v2", unsafe {
            sys::cuMemcpyHtoDAsync_v2(target, from, bytes, self.stream.as_inner())
        })?;
        self.synchronize()
    }

    /// Copies from the device to the host, and waits for it. The context is current.
    ///
    /// # Safety
    ///
    /// `source` has as many bytes as `target`, in this device's memory. Only work that was enqueued
    /// before writes them.
    pub(super) unsafe fn download(
        &self,
        target: &mut [u8],
        source: CUdeviceptr,
    ) -> Result<(), Error> {
        let (to, bytes) = (target.as_mut_ptr().cast(), target.len());
        // SAFETY: the caller promises the source. The target is borrowed until the copy has ended,
        // because this function waits for it.
        checked("cuMemcpyDtoHAsync_v2", unsafe {
            sys::cuMemcpyDtoHAsync_v2(to, source, bytes, self.stream.as_inner())
        })?;
        self.synchronize()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has faulted; there is
        // nothing to save or report. Buffers, textures and events, which share this value, are
        // gone; the stream's work ends before its resources are released.
        let Ok(_current) = self.context.enter() else {
            return;
        };
        let _: CudaResult<()> = self.stream.synchronize();
    }
}

/// Copies within a device, in the order of this stream's work. The context is current.
///
/// # Safety
///
/// Both pieces have that many bytes of this device's memory, do not overlap, and live until the
/// stream's work has ended or, in a recording, until its graph is gone. Only the caller uses the
/// target, except work that was enqueued before.
pub(super) unsafe fn copy(
    to: CUdeviceptr,
    from: CUdeviceptr,
    bytes: usize,
    stream: sys::CUstream,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    checked("cuMemcpyDtoDAsync_v2", unsafe {
        sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream)
    })
}

/// The description of a copy of `count` rows of `bytes` bytes, whose source and target the caller
/// fills in.
pub(super) fn rows(count: usize, bytes: usize) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: 0,
        srcHost: std::ptr::null(),
        srcDevice: 0,
        srcArray: CUarray::NULL,
        srcPitch: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: 0,
        dstHost: std::ptr::null_mut(),
        dstDevice: 0,
        dstArray: CUarray::NULL,
        dstPitch: 0,
        WidthInBytes: bytes,
        Height: count,
    }
}

/// Copies rows, in the order of this stream's work. The context is current.
///
/// # Safety
///
/// Both sides have all of the rows at their pitch, in this device's memory or the host's, and do
/// not overlap. They live until the stream's work has ended or, in a recording, until its graph is
/// gone. Only the caller uses the target, except work that was enqueued before.
pub(super) unsafe fn copy_rows(copy: &CUDA_MEMCPY2D, stream: sys::CUstream) -> Result<(), Error> {
    // SAFETY: the caller's promise; the description is read before the call returns.
    checked("cuMemcpy2DAsync_v2", unsafe {
        sys::cuMemcpy2DAsync_v2(copy, stream)
    })
}

/// A pool on `device` that keeps freed memory, or `None` if the device has no pools. The context is
/// current.
fn pool(device: Device) -> Result<Option<MemoryPool>, Error> {
    if optional_attribute(device, DeviceAttribute::MemoryPoolsSupported).is_none() {
        return Ok(None);
    }
    let pool = match MemoryPool::new(device) {
        Err(CudaError::NotSupported) => return Ok(None),
        result => said("cuMemPoolCreate", result)?,
    };
    // By default every synchronisation returns unused memory to the driver, and the next allocation
    // must request it again. This pool returns its memory when memory runs short and when the
    // device is dropped.
    let kept = pool.set_release_threshold(u64::MAX);
    said("cuMemPoolSetAttribute", kept)?;
    Ok(Some(pool))
}
