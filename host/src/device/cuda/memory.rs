//! Device memory.

use super::core::{Core, OwnMemory, Resource, copy};
use super::driver::checked;
use super::handle::CudaDevice;
use super::recording;
use crate::Error;
use cuda_loader::sys::{self, CUdeviceptr};
use std::sync::Arc;

/// Device memory that is freed, in stream order, when this is dropped, unless it is
/// somebody else's.
pub(in crate::device) struct CudaMemory {
    address: CUdeviceptr,
    /// Not zero.
    bytes: usize,
    /// `None` where the memory is somebody else's.
    owned: Option<OwnMemory>,
    core: Arc<Core>,
}

impl CudaDevice {
    /// `bytes` (not zero) of memory, uninitialised as far as Rust is concerned.
    pub(in crate::device) fn allocate(&self, bytes: usize) -> Result<CudaMemory, Error> {
        let core = &self.core;
        core.refuse("allocating memory")?;
        let _current = core.enter()?;
        let owned = core.allocate(bytes)?;
        Ok(CudaMemory {
            address: owned.address(),
            bytes,
            owned: Some(owned),
            core: Arc::clone(core),
        })
    }

    /// Memory of somebody else, as if it were ours.
    ///
    /// # Safety
    ///
    /// As `Buffer::from_device_address`, for `bytes` bytes, of which there are some, from
    /// an address that is a multiple of 16 on.
    pub(in crate::device) unsafe fn foreign(&self, address: u64, bytes: usize) -> CudaMemory {
        CudaMemory {
            address,
            bytes,
            owned: None,
            core: Arc::clone(&self.core),
        }
    }
}

impl CudaMemory {
    pub(in crate::device) fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Overwrites everything with `source`, which is as long.
    pub(in crate::device) fn upload(&mut self, source: &[u8]) -> Result<(), Error> {
        assert_eq!(source.len(), self.bytes, "callers check the length");
        self.core.refuse("copying from the host")?;
        let _current = self.core.enter()?;
        // SAFETY: as many bytes, which are ours alone: so says `&mut self`.
        unsafe { self.core.upload(self.address, source) }
    }

    /// Copies everything to `target`, which is as long.
    pub(in crate::device) fn download(&self, target: &mut [u8]) -> Result<(), Error> {
        assert_eq!(target.len(), self.bytes, "callers check the length");
        self.core.refuse("copying to the host")?;
        let _current = self.core.enter()?;
        // SAFETY: as many bytes, which are borrowed.
        unsafe { self.core.download(target, self.address) }
    }

    /// Notes that this has become current in the place of `before`, memory of the same
    /// device, as long, whose content is not needed any more.
    pub(in crate::device) fn note_exchange(&self, before: &Self) {
        assert_eq!(before.bytes, self.bytes, "callers check the length");
        recording::note_exchange(&self.core, self.address, before.address, self.bytes);
    }

    /// Overwrites everything with `source`, memory of the same device, as long.
    pub(in crate::device) fn copy_from(&mut self, source: &Self) -> Result<(), Error> {
        assert_eq!(source.bytes, self.bytes, "callers check the length");
        let _current = self.core.enter()?;
        let stream = self.core.queue();
        // SAFETY: two pieces of memory, as long, of which the target is ours alone; stream
        // order keeps earlier and later work on either away.
        unsafe { copy(self.address, source.address, self.bytes, stream) }
    }

    /// Repeats `element`, whose length divides that of the memory.
    pub(in crate::device) fn fill(&mut self, element: &[u8]) -> Result<(), Error> {
        assert!(
            self.bytes.is_multiple_of(element.len()),
            "memory holds whole elements"
        );
        let _current = self.core.enter()?;
        let stream = self.core.queue();
        if let [first, rest @ ..] = element
            && rest.iter().all(|byte| byte == first)
        {
            // SAFETY: the memory has that many bytes, and is ours alone.
            return checked("cuMemsetD8Async", unsafe {
                sys::cuMemsetD8Async(self.address, *first, self.bytes, stream)
            });
        }
        if let Ok(word) = <[u8; 4]>::try_from(element) {
            let word = u32::from_ne_bytes(word);
            // SAFETY: the memory has that many words, and is ours alone; it is
            // aligned to 16 bytes, by the driver or whoever brought it.
            return checked("cuMemsetD32Async", unsafe {
                sys::cuMemsetD32Async(self.address, word, self.bytes / 4, stream)
            });
        }
        // Any other pattern: one element from the host, then the memory copies
        // to itself, twice as much each time.
        self.core
            .refuse("filling with elements that are neither 4 bytes nor one byte repeated")?;
        // SAFETY: the memory holds at least one element, and is ours alone.
        unsafe { self.core.upload(self.address, element) }?;
        let mut done = element.len();
        while done < self.bytes {
            let next = done.min(self.bytes - done);
            let target = self.address + done as u64;
            // SAFETY: both lie within the memory, which is ours alone, and end and begin
            // where they meet.
            unsafe { copy(target, self.address, next, stream) }?;
            done += next;
        }
        Ok(())
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        if let Some(owned) = self.owned.take() {
            self.core.give_back(Resource::Memory(owned));
        }
    }
}
