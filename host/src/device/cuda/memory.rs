//! Allocates device memory, copies it and frees it.

use super::core::{Core, OwnMemory, Resource, copy, copy_rows, rows};
use super::driver::checked;
use super::handle::CudaDevice;
use super::locked::LockedMemory;
use super::recording;
use crate::Error;
use cuda_loader::sys::{self, CUDA_MEMCPY2D, CUdeviceptr, MEMORYTYPE_DEVICE};
use std::ops::Range;
use std::sync::Arc;

/// The largest distance between rows that row copies support on every device.
const MAX_PITCH: usize = i32::MAX as usize;

/// Device memory, freed in stream order on drop unless other code owns it.
pub(in crate::device) struct CudaMemory {
    address: CUdeviceptr,
    /// Not zero.
    bytes: usize,
    /// `None` if other code owns the memory.
    owned: Option<OwnMemory>,
    core: Arc<Core>,
}

impl CudaDevice {
    /// Allocates `bytes` bytes (not zero), uninitialised.
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

    /// Memory that other code owns.
    ///
    /// # Safety
    ///
    /// As for `Buffer::from_device_address`, for `bytes` bytes (not zero) at an address that is a
    /// multiple of 16.
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

    /// The address of these bytes, which must lie within this memory.
    pub(super) fn part(&self, bytes: &Range<usize>) -> CUdeviceptr {
        assert!(
            bytes.start <= bytes.end && bytes.end <= self.bytes,
            "callers check the length"
        );
        self.address + bytes.start as u64
    }

    /// Overwrites the bytes from `offset` on with `source`.
    pub(in crate::device) fn upload(&mut self, offset: usize, source: &[u8]) -> Result<(), Error> {
        let target = self.part(&(offset..offset + source.len()));
        self.core.refuse("copying from the host")?;
        let _current = self.core.enter()?;
        // SAFETY: the target has the same size and is borrowed mutably.
        unsafe { self.core.upload(target, source) }
    }

    /// Copies the bytes from `offset` on to `target`.
    pub(in crate::device) fn download(
        &self,
        offset: usize,
        target: &mut [u8],
    ) -> Result<(), Error> {
        let source = self.part(&(offset..offset + target.len()));
        self.core.refuse("copying to the host")?;
        let _current = self.core.enter()?;
        // SAFETY: the target has the same size and is borrowed mutably.
        unsafe { self.core.download(target, source) }
    }

    /// Overwrites the bytes from `offset` on with `source`, of the same device, and does not wait
    /// for the copy.
    pub(in crate::device) fn upload_later(
        &mut self,
        offset: usize,
        source: &LockedMemory,
    ) -> Result<(), Error> {
        let bytes = source.len();
        let target = self.part(&(offset..offset + bytes));
        self.core.refuse("copying from the host")?;
        let _current = self.core.enter()?;
        let start = source.as_ptr();
        source.copy(&self.core, |stream| {
            // SAFETY: the target has the same size and is borrowed mutably, and stream order
            // excludes other work on it. `copy` keeps the source alive and unchanged until the copy
            // has ended.
            checked("cuMemcpyHtoDAsync_v2", unsafe {
                sys::cuMemcpyHtoDAsync_v2(target, start.cast(), bytes, stream)
            })
        })
    }

    /// Copies the bytes from `offset` on to `target`, of the same device, and does not wait for the
    /// copy.
    pub(in crate::device) fn download_later(
        &self,
        offset: usize,
        target: &mut LockedMemory,
    ) -> Result<(), Error> {
        let bytes = target.len();
        let source = self.part(&(offset..offset + bytes));
        self.core.refuse("copying to the host")?;
        let _current = self.core.enter()?;
        let start = target.as_mut_ptr();
        target.copy(&self.core, |stream| {
            // SAFETY: the source has the same size, and stream order excludes other work on it.
            // `copy` keeps the target borrowed, alive and unread until the copy has ended.
            checked("cuMemcpyDtoHAsync_v2", unsafe {
                sys::cuMemcpyDtoHAsync_v2(start.cast(), source, bytes, stream)
            })
        })
    }

    /// The memory for use by another handle: the memory itself if the handle is of the same GPU,
    /// otherwise a copy. The other handle's later work runs after this handle's earlier work.
    pub(in crate::device) fn hand_to(mut self, to: &CudaDevice) -> Result<Self, Error> {
        self.core.refuse("giving memory to another device")?;
        to.core.refuse("taking memory from another device")?;
        // Memory that graphs of the old handle use, or that other code owns, stays there.
        if self.core.same_device(&to.core) && self.owned.is_some() && !self.core.is_held() {
            to.core.follow(&self.core)?;
            return Ok(Self {
                address: self.address,
                bytes: self.bytes,
                owned: self.owned.take().map(|it| it.lent(&self.core, &to.core)),
                core: Arc::clone(&to.core),
            });
        }
        let mut copied = to.allocate(self.bytes)?;
        copied.copy_across(0, &self, 0..self.bytes)?;
        Ok(copied)
    }

    /// Overwrites the bytes from `offset` on with `range` of `source`, memory of any handle. The
    /// copy runs after the earlier work of both handles and before their later work.
    pub(in crate::device) fn copy_across(
        &mut self,
        offset: usize,
        source: &Self,
        range: Range<usize>,
    ) -> Result<(), Error> {
        let to = self.part(&(offset..offset + range.len()));
        let from = source.part(&range);
        if range.is_empty() {
            return Ok(());
        }
        source.core.refuse("copying to another device")?;
        self.core.refuse("copying from another device")?;
        // SAFETY: the two pieces have the same size, and the target is borrowed mutably. Each is
        // freed, or returned to its owner, in the order of its own handle's work.
        unsafe { self.core.copy_across(to, &source.core, from, range.len()) }
    }

    /// Like [`copy_across`](Self::copy_across), but ordered only after the earlier work of this
    /// handle.
    ///
    /// # Safety
    ///
    /// The caller orders the copy with the work of the source's handle: with earlier and later
    /// writes of the source, and with its release.
    pub(in crate::device) unsafe fn copy_unordered(
        &mut self,
        offset: usize,
        source: &Self,
        range: Range<usize>,
    ) -> Result<(), Error> {
        let to = self.part(&(offset..offset + range.len()));
        let from = source.part(&range);
        if range.is_empty() {
            return Ok(());
        }
        self.core.refuse("copying from another device")?;
        // SAFETY: the two pieces have the same size, and the target is borrowed mutably; the caller
        // promises the order.
        unsafe {
            self.core
                .copy_unordered(to, &source.core, from, range.len())
        }
    }

    /// Notes that this memory is now current instead of `before`, which is memory of the same
    /// device and size whose contents are no longer needed.
    pub(in crate::device) fn note_exchange(&self, before: &Self) {
        assert_eq!(before.bytes, self.bytes, "callers check the length");
        recording::note_exchange(&self.core, self.address, before.address, self.bytes);
    }

    /// Overwrites the bytes from `offset` on with `range` of `source`, memory of the same device.
    pub(in crate::device) fn copy_from(
        &mut self,
        offset: usize,
        source: &Self,
        range: Range<usize>,
    ) -> Result<(), Error> {
        let (to, from) = (
            self.part(&(offset..offset + range.len())),
            source.part(&range),
        );
        if range.is_empty() {
            return Ok(());
        }
        let _current = self.core.enter()?;
        let stream = self.core.queue();
        // SAFETY: the two pieces have the same size, and the target is borrowed mutably; stream
        // order excludes other work on both.
        unsafe { copy(to, from, range.len(), stream) }
    }

    /// Overwrites rows with rows of `source`, memory of the same device: `count` rows of `len`
    /// bytes, with a start and a pitch for each side. `count` and `len` are at least 1, and rows do
    /// not overlap.
    pub(in crate::device) fn copy_rows(
        &mut self,
        source: &Self,
        [to, from]: [usize; 2],
        [count, len]: [usize; 2],
        [to_pitch, from_pitch]: [usize; 2],
    ) -> Result<(), Error> {
        if count == 1 || to_pitch.max(from_pitch) > MAX_PITCH {
            return (0..count).try_for_each(|row| {
                let start = from + row * from_pitch;
                self.copy_from(to + row * to_pitch, source, start..start + len)
            });
        }
        let span = |start: usize, pitch: usize| start..start + (count - 1) * pitch + len;
        let target = self.part(&span(to, to_pitch));
        let start = source.part(&span(from, from_pitch));
        let copy = CUDA_MEMCPY2D {
            srcMemoryType: MEMORYTYPE_DEVICE,
            srcDevice: start,
            srcPitch: from_pitch,
            dstMemoryType: MEMORYTYPE_DEVICE,
            dstDevice: target,
            dstPitch: to_pitch,
            ..rows(count, len)
        };
        let _current = self.core.enter()?;
        // SAFETY: `part` has checked that both have all of these rows; the two memories are
        // distinct, and the target is borrowed mutably. Stream order excludes other work on both.
        unsafe { copy_rows(&copy, self.core.queue()) }
    }

    /// Fills these bytes with copies of `element`. They begin at a multiple of its size and are a
    /// whole number of elements.
    pub(in crate::device) fn fill(
        &mut self,
        range: Range<usize>,
        element: &[u8],
    ) -> Result<(), Error> {
        let (address, bytes) = (self.part(&range), range.len());
        assert!(
            bytes.is_multiple_of(element.len()),
            "memory holds whole elements"
        );
        if bytes == 0 {
            return Ok(());
        }
        let _current = self.core.enter()?;
        let stream = self.core.queue();
        if let [first, rest @ ..] = element
            && rest.iter().all(|byte| byte == first)
        {
            // SAFETY: the memory has that many bytes, and is borrowed mutably.
            return checked("cuMemsetD8Async", unsafe {
                sys::cuMemsetD8Async(address, *first, bytes, stream)
            });
        }
        if let Ok(word) = <[u8; 4]>::try_from(element) {
            let word = u32::from_ne_bytes(word);
            // SAFETY: the memory has that many words, and is borrowed mutably. The driver or the
            // owner aligns its start to 16 bytes, and this part begins a whole number of elements
            // after it.
            return checked("cuMemsetD32Async", unsafe {
                sys::cuMemsetD32Async(address, word, bytes / 4, stream)
            });
        }
        // Any other pattern: upload one element, then append copies of the filled part, which
        // doubles each time.
        self.core
            .refuse("filling with elements that are neither 4 bytes nor one byte repeated")?;
        // SAFETY: the memory holds at least one element, and is borrowed mutably.
        unsafe { self.core.upload(address, element) }?;
        let mut done = element.len();
        while done < bytes {
            let next = done.min(bytes - done);
            let target = address + done as u64;
            // SAFETY: both parts lie within the memory, which is borrowed mutably, and are
            // adjacent.
            unsafe { copy(target, address, next, stream) }?;
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
