//! The context, stream and memory pool of a device, which its buffers, textures and events keep
//! alive; and their release.

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
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    /// The other devices that have been checked for access to the pool.
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

/// The address of device memory that must be freed.
pub(super) struct OwnMemory(CUdeviceptr);

impl OwnMemory {
    pub(super) fn address(&self) -> CUdeviceptr {
        self.0
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
    /// Every call of the driver requires it. It takes some nanoseconds if the context is current
    /// already.
    pub(super) fn enter(&self) -> Result<Entered<'_>, Error> {
        said("cuCtxPushCurrent_v2", self.context.enter())
    }

    /// An error if this thread is recording: `what` cannot be recorded.
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

    /// Notes that there is a graph, or a recording, that may use any resource.
    pub(super) fn hold(&self) {
        self.kept().holders += 1;
    }

    /// Whether there is a graph or a recording.
    pub(super) fn is_held(&self) -> bool {
        self.kept().holders > 0
    }

    /// Whether both handles are of one GPU.
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

    /// Gives another device access to this one's pool, at the first call.
    fn let_in(&self, other: &Self) {
        let Some(pool) = &self.pool else { return };
        let (own, device) = (self.context.device(), other.context.device());
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.contains(&device) {
            asked.push(device);
            // Without access, or without pools, the driver copies by way of the host.
            if device.can_access(own) == Ok(true) {
                let _: CudaResult<()> = pool.let_in(device);
            }
        }
    }

    /// Copies between the memories of two handles, after the earlier work of both and before their
    /// later work. The host does not wait.
    ///
    /// # Safety
    ///
    /// `from` has this many bytes of `other`'s memory, and `to` of this handle's. Only the caller
    /// uses them, apart from work that was enqueued before. They do not overlap, and are freed in
    /// the order of their handles' work or later.
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
            // Nothing orders later work on the source behind the copy, so the copy is waited for
            // here. If that fails too, a kernel has faulted, and no copy is running any more.
            if let Ok(_current) = self.enter() {
                let _: CudaResult<()> = self.stream.synchronize();
            }
        })
    }

    /// Copies between the memories of two handles, after the earlier work of this one.
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
        self.let_in(other);
        other.let_in(self);
        let (own, others) = (&self.context, &other.context);
        // SAFETY: the caller's promise; both contexts are alive.
        let copied =
            unsafe { memory::memcpy_peer_async(to, own, from, others, bytes, &self.stream) };
        said("cuMemcpyPeerAsync", copied)
    }

    /// Notes that a recording or a graph is gone. After the last one, releases the waiting
    /// resources.
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

    /// Releases this to the driver: now or, while a graph may use it, as soon as there is none.
    /// Only work that was enqueued before may still use it.
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

    /// Releases this to the driver. The context is current.
    fn free(&self, resource: Resource) {
        // Enqueued work ends first: memory of a pool is freed in stream order, and all else is
        // preceded by waiting. For failures see `give_back`.
        let wait = || {
            let _: CudaResult<()> = self.stream.synchronize();
        };
        match (resource, &self.pool) {
            (Resource::Memory(OwnMemory(address)), Some(_)) => {
                let memory = DevicePointer::<u8>::from_raw(address);
                // SAFETY: `allocate` made it, and it is released once, when the value is dropped.
                let _: CudaResult<()> = unsafe { memory::cuda_free_async(&self.stream, memory) };
            }
            (Resource::Memory(OwnMemory(address)), None) => {
                wait();
                // SAFETY: as above.
                let _: CudaResult<()> =
                    unsafe { memory::cuda_free(DevicePointer::<u8>::from_raw(address)) };
            }
            (Resource::Texture(texture), _) => {
                wait();
                drop(texture);
            }
            (Resource::Module(module), _) => {
                wait();
                drop(module);
            }
        }
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
            // Memory that the pool holds back, in unsuitable pieces, may be what is missing.
            self.synchronize()?;
            said("cuMemPoolTrimTo", pool.trim_to(0))?;
            allocated = self.try_allocate(bytes);
        }
        match allocated {
            (_, Err(CudaError::OutOfMemory)) => Err(self.out_of_memory(bytes)),
            (call, result) => Ok(OwnMemory(said(call, result)?.as_raw())),
        }
    }

    fn try_allocate(&self, bytes: usize) -> (&'static str, CudaResult<DevicePointer<u8>>) {
        // SAFETY: `free` frees the memory before the pool and the context are released; work on the
        // only stream comes after this.
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
        // After a failure these are zeros; the error that is reported is the allocation's.
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
    /// `target` has as many bytes as `source`, memory of this device. Only the caller uses them,
    /// apart from work that was enqueued before.
    pub(super) unsafe fn upload(&self, target: CUdeviceptr, source: &[u8]) -> Result<(), Error> {
        let (from, bytes) = (source.as_ptr().cast(), source.len());
        // SAFETY: the target is the caller's promise. The source is borrowed until the copy has
        // ended, which is waited for; earlier work ends first, by stream order.
        checked("cuMemcpyHtoDAsync_v2", unsafe {
            sys::cuMemcpyHtoDAsync_v2(target, from, bytes, self.stream.as_inner())
        })?;
        self.synchronize()
    }

    /// Copies from the device to the host, and waits for it. The context is current.
    ///
    /// # Safety
    ///
    /// `source` has as many bytes as `target`, memory of this device. Only work that was enqueued
    /// before writes them.
    pub(super) unsafe fn download(
        &self,
        target: &mut [u8],
        source: CUdeviceptr,
    ) -> Result<(), Error> {
        let (to, bytes) = (target.as_mut_ptr().cast(), target.len());
        // SAFETY: the source is the caller's promise, and the target is borrowed until the copy has
        // ended, which is waited for.
        checked("cuMemcpyDtoHAsync_v2", unsafe {
            sys::cuMemcpyDtoHAsync_v2(to, source, bytes, self.stream.as_inner())
        })?;
        self.synchronize()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has faulted; nothing
        // can be saved or reported. Buffers, textures and events, which share this value, are gone;
        // the stream's work ends before its resources are released.
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
/// target, apart from work that was enqueued before.
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

/// A copy of this many rows of this many bytes from nowhere to nowhere, to be completed.
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
/// gone. Only the caller uses the target, apart from work that was enqueued before.
pub(super) unsafe fn copy_rows(copy: &CUDA_MEMCPY2D, stream: sys::CUstream) -> Result<(), Error> {
    // SAFETY: the caller's promise; the description is read before the call returns.
    checked("cuMemcpy2DAsync_v2", unsafe {
        sys::cuMemcpy2DAsync_v2(copy, stream)
    })
}

/// A pool on `device` that keeps freed memory, or `None` where the device has no pools. The context
/// is current.
fn pool(device: Device) -> Result<Option<MemoryPool>, Error> {
    if optional_attribute(device, DeviceAttribute::MemoryPoolsSupported).is_none() {
        return Ok(None);
    }
    let pool = match MemoryPool::new(device) {
        Err(CudaError::NotSupported) => return Ok(None),
        result => said("cuMemPoolCreate", result)?,
    };
    // By default every synchronisation returns unused memory to the driver, and the next allocation
    // asks for it again. The memory that the pool keeps is returned when memory runs short and when
    // the device is dropped.
    let kept = pool.set_release_threshold(u64::MAX);
    said("cuMemPoolSetAttribute", kept)?;
    Ok(Some(pool))
}
