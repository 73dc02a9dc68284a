//! The context, stream and memory pool of a device, which its buffers, textures and events keep
//! alive; and when they are released.

use super::driver::{checked, said};
use super::generation::{Generation, optional_attribute};
use super::queue::Recorder;
use crate::device::properties::Priority;
use crate::{Error, Limits};
use cuda_loader::sys::{self, CUdeviceptr};
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
    /// Memory comes from a pool of our own, so that freeing it waits for nothing.
    /// `None` on devices without pools.
    pool: Option<MemoryPool>,
    /// The other devices that were told whether they reach the pool.
    asked: Mutex<Vec<Device>>,
    pub(super) stream: Stream,
    context: Context,
}

/// What was released while a graph may still use it.
#[derive(Default)]
struct Kept {
    /// Recordings and graphs.
    holders: usize,
    waiting: Vec<Resource>,
}

/// Resources that a device gets from the driver and must release.
pub(super) enum Resource {
    Memory(OwnMemory),
    Texture(cust::texture::Texture),
    Module(cust::module::Module),
}

/// The address of device memory that is ours to free.
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
    /// Every call of the driver wants that. It costs one call of some nanoseconds where the
    /// context is current already.
    pub(super) fn enter(&self) -> Result<Entered<'_>, Error> {
        said("cuCtxPushCurrent_v2", self.context.enter())
    }

    /// Fails where this thread is recording: `what` cannot be part of that.
    pub(super) fn refuse(&self, what: &'static str) -> Result<(), Error> {
        self.recorder.refuse(what)
    }

    /// The stream for this thread's work on the device.
    pub(super) fn queue(&self) -> sys::CUstream {
        let recording = self.recorder.stream();
        recording.unwrap_or_else(|| self.stream.as_inner())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing in there is half done when somebody panics.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that there is a graph, or one in the making, that may use anything.
    pub(super) fn hold(&self) {
        self.kept().holders += 1;
    }

    /// Whether there is a graph, or one in the making.
    pub(super) fn is_held(&self) -> bool {
        self.kept().holders > 0
    }

    /// Whether both are handles of one GPU.
    pub(super) fn same_device(&self, other: &Self) -> bool {
        self.context.device() == other.context.device()
    }

    /// Has what this handle is given from now on wait for what `other`, a handle of any GPU,
    /// was given before.
    pub(super) fn follow(&self, other: &Self) -> Result<(), Error> {
        let event = {
            // An event is recorded in streams of its own context alone.
            let _current = other.enter()?;
            let event = said("cuEventCreate", Event::new(EventFlags::DISABLE_TIMING))?;
            said("cuEventRecord", event.record(&other.stream))?;
            event
        };
        self.wait_event(&event)
    }

    /// Has what this handle is given from now on wait for `event`, of any GPU.
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
            // Where it cannot, or the driver knows no access to pools, copies go by way of the
            // host, which the driver sees to.
            if device.can_access(own) == Ok(true) {
                let _: CudaResult<()> = pool.let_in(device);
            }
        }
    }

    /// Copies between the memories of two handles, behind what both were given before and in
    /// front of what they are given later. The host does not wait.
    ///
    /// # Safety
    ///
    /// So many bytes are memory of `other` at `from` and of this handle at `to`, where they are
    /// the caller's alone but for work that this handle was given before. They do not overlap,
    /// and are freed in the order of their handles' work or later.
    pub(super) unsafe fn copy_across(
        &self,
        to: CUdeviceptr,
        other: &Self,
        from: CUdeviceptr,
        bytes: usize,
    ) -> Result<(), Error> {
        self.follow(other)?;
        // SAFETY: the caller's promise. Writers of the source are behind this copy, as this handle
        // follows `other`.
        unsafe { self.copy_unordered(to, other, from, bytes) }?;
        other.follow(self).inspect_err(|_| {
            // Nothing keeps later work off the source, so that the copy is waited for here. If
            // that fails too, a kernel has faulted, and no copy is running any more.
            if let Ok(_current) = self.enter() {
                let _: CudaResult<()> = self.stream.synchronize();
            }
        })
    }

    /// Copies between the memories of two handles, behind what this one was given before.
    ///
    /// # Safety
    ///
    /// As [`copy_across`](Self::copy_across), and the caller orders the copy with the work that
    /// `other` was given before and is given later.
    pub(super) unsafe fn copy_unordered(
        &self,
        to: CUdeviceptr,
        other: &Self,
        from: CUdeviceptr,
        bytes: usize,
    ) -> Result<(), Error> {
        let _current = self.enter()?;
        if self.same_device(other) {
            // SAFETY: the caller's promise; one context has both.
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

    /// Notes that one of them is gone; with the last goes what has waited for that.
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

    /// Gives this back to the driver: now, or where a graph may still use it, as soon as
    /// there is none. Nobody but work that was given to the device already uses it any more.
    pub(super) fn give_back(&self, resource: Resource) {
        // Failures mean that the driver is shutting down or that a kernel has
        // faulted; what there was is then gone with the context.
        let Ok(_current) = self.enter() else { return };
        let mut kept = self.kept();
        if kept.holders > 0 {
            kept.waiting.push(resource);
            return;
        }
        drop(kept);
        self.free(resource);
    }

    /// Returns this to the driver. The context is current.
    fn free(&self, resource: Resource) {
        // What is queued already is done first: freeing memory of a pool is
        // stream-ordered, and everything else is preceded by waiting. For
        // failures see `give_back`.
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
            // What the pool holds back may be in the way of a request that its
            // pieces do not suit.
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
        // SAFETY: the memory is freed by `free`, before the pool and the context go; what is
        // queued on the one stream there is comes behind this.
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
        // A failure leaves zeros; the error that is reported is the greater one.
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
    /// As many bytes as `source` has are the device's at `target`, and nobody's but the
    /// caller's and of work that was given to the device already.
    pub(super) unsafe fn upload(&self, target: CUdeviceptr, source: &[u8]) -> Result<(), Error> {
        let (from, bytes) = (source.as_ptr().cast(), source.len());
        // SAFETY: the target is the caller's promise. The source is borrowed until the copy
        // is over, which is waited for; earlier work is done first, by stream order.
        checked("cuMemcpyHtoDAsync_v2", unsafe {
            sys::cuMemcpyHtoDAsync_v2(target, from, bytes, self.stream.as_inner())
        })?;
        self.synchronize()
    }

    /// Copies from the device to the host, and waits for it. The context is current.
    ///
    /// # Safety
    ///
    /// As many bytes as `target` has are the device's at `source`, and written by nobody but
    /// work that was given to the device already.
    pub(super) unsafe fn download(
        &self,
        target: &mut [u8],
        source: CUdeviceptr,
    ) -> Result<(), Error> {
        let (to, bytes) = (target.as_mut_ptr().cast(), target.len());
        // SAFETY: the source is the caller's promise, and the target is borrowed until the
        // copy is over, which is waited for.
        checked("cuMemcpyDtoHAsync_v2", unsafe {
            sys::cuMemcpyDtoHAsync_v2(to, source, bytes, self.stream.as_inner())
        })?;
        self.synchronize()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Failures here mean that the driver is shutting down or that a kernel
        // has faulted; there is nothing left to save and nobody to tell. What shared this
        // value (buffers, textures, events) is gone; the stream's work is over before
        // anything that it uses goes.
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
/// Both have that many bytes, are the device's own, do not overlap, and live until the
/// stream's work is over or, while it records, its graph is gone; and the target is nobody's
/// but the caller's and of work that was given to the device already.
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

/// A pool on `device` that keeps what is given back to it, or `None` where the
/// device turns out to have none. The context is current.
fn pool(device: Device) -> Result<Option<MemoryPool>, Error> {
    if optional_attribute(device, DeviceAttribute::MemoryPoolsSupported).is_none() {
        return Ok(None);
    }
    let pool = match MemoryPool::new(device) {
        Err(CudaError::NotSupported) => return Ok(None),
        result => said("cuMemPoolCreate", result)?,
    };
    // By default every synchronisation gives unused memory back to the driver,
    // and the next allocation asks for it again. What the pool keeps is given
    // back when memory runs short and when the device is dropped.
    let kept = pool.set_release_threshold(u64::MAX);
    said("cuMemPoolSetAttribute", kept)?;
    Ok(Some(pool))
}
