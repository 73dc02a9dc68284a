//! Page-locked host memory, for copies that the host does not wait for.

use super::core::Core;
use super::driver::said;
use super::handle::CudaDevice;
use crate::Error;
use cuda_loader::sys::CUstream;
use cust::error::CudaError;
use cust::event::{Event, EventFlags};
use cust::memory::LockedBuffer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Page-locked host memory; a device copies from it and to it while the host continues.
pub(in crate::device) struct LockedMemory {
    bytes: LockedBuffer<u8>,
    /// Recorded after the last copy.
    copied: Event,
    /// Whether a copy may still be running.
    pending: AtomicBool,
    /// After the other fields, which must be released in its context.
    core: Arc<Core>,
}

impl CudaDevice {
    /// `bytes` zeros.
    pub(in crate::device) fn allocate_locked(&self, bytes: usize) -> Result<LockedMemory, Error> {
        let core = &self.core;
        core.refuse("allocating memory")?;
        let _current = core.enter()?;
        let locked = match LockedBuffer::new(&0, bytes) {
            Err(CudaError::OutOfMemory) => {
                return Err(Error::HostOutOfMemory {
                    requested: bytes as u64,
                });
            }
            result => said("cuMemAllocHost_v2", result)?,
        };
        let copied = Event::new(EventFlags::DISABLE_TIMING);
        Ok(LockedMemory {
            bytes: locked,
            copied: said("cuEventCreate", copied)?,
            pending: AtomicBool::new(false),
            core: Arc::clone(core),
        })
    }
}

impl LockedMemory {
    /// The number of bytes.
    pub(in crate::device) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    /// The bytes, after all copies have ended.
    pub(in crate::device) fn read(&self) -> Result<&[u8], Error> {
        self.wait()?;
        Ok(&self.bytes)
    }

    /// The bytes, mutable, after all copies have ended.
    pub(in crate::device) fn write(&mut self) -> Result<&mut [u8], Error> {
        self.wait()?;
        // Cleared only here: while the value is shared, another thread may be about to enqueue a
        // copy.
        *self.pending.get_mut() = false;
        Ok(&mut self.bytes)
    }

    /// Calls `queue` to enqueue a copy from or to these bytes. Later reads of the bytes, and
    /// freeing them, wait for it. The context is current.
    pub(super) fn copy(
        &self,
        core: &Core,
        queue: impl FnOnce(CUstream) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.pending.store(true, Ordering::Release);
        let queued = queue(core.stream.as_inner());
        if let Err(error) = said("cuEventRecord", self.copied.record(&core.stream)) {
            // No event marks the end of the copy, so wait for it here.
            core.synchronize()?;
            return Err(error);
        }
        queued
    }

    fn wait(&self) -> Result<(), Error> {
        if self.pending.load(Ordering::Acquire) {
            self.core.refuse("waiting for a copy")?;
            let _current = self.core.enter()?;
            said("cuEventSynchronize", self.copied.synchronize())?;
        }
        Ok(())
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has faulted; then no
        // copy is running any more.
        let Ok(_current) = self.core.enter() else {
            return;
        };
        if *self.pending.get_mut() {
            let _ = self.copied.synchronize();
        }
    }
}
