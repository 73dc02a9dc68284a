//! Unified memory, which host and device access at one address.

use super::malloc::{cuda_free_unified, cuda_malloc_unified};
use super::pointer::UnifiedPointer;
use crate::context::home::Home;
use crate::device::Device;
use crate::error::{CudaError, CudaResult, DropResult, ToResult};
use crate::private::Sealed;
use crate::stream::Stream;
use cuda_loader::sys::{self, CUdevice};
use cust_core::DeviceCopy;
use std::borrow::{Borrow, BorrowMut};
use std::ffi::c_uint;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Elements that host and device share.
///
/// Whoever launches a kernel promises that the host does not use the kernel's memory meanwhile.
#[derive(Debug)]
pub struct UnifiedBuffer<T: DeviceCopy> {
    /// The address; without memory, as for elements without bytes, it is aligned and not null.
    start: UnifiedPointer<T>,
    len: usize,
    /// `None` if there is nothing to free.
    home: Option<Home>,
}

// SAFETY: it owns its elements, and any thread may call the driver.
unsafe impl<T: DeviceCopy + Send> Send for UnifiedBuffer<T> {}
// SAFETY: as above; a shared reference gives shared references to the elements.
unsafe impl<T: DeviceCopy + Sync> Sync for UnifiedBuffer<T> {}

impl<T: DeviceCopy> UnifiedBuffer<T> {
    /// A buffer of `size` copies of this value.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`], [`CudaError::InvalidMemoryAllocation`] if the size in bytes
    /// exceeds the address space, or another error of the driver.
    pub fn new(value: &T, size: usize) -> CudaResult<Self> {
        Self::filled(size, |_| *value)
    }

    /// A buffer of copies of these elements.
    ///
    /// # Errors
    ///
    /// As [`UnifiedBuffer::new`].
    pub fn from_slice(slice: &[T]) -> CudaResult<Self> {
        Self::filled(slice.len(), |at| slice[at])
    }

    fn filled(size: usize, value: impl Fn(usize) -> T) -> CudaResult<Self> {
        // SAFETY: the elements are written below, before anything reads them.
        let mut buffer = unsafe { Self::uninitialized(size) }?;
        let start = buffer.start.as_raw_mut();
        for at in 0..size {
            // SAFETY: the address lies within the buffer.
            unsafe { start.add(at).write(value(at)) };
        }
        Ok(buffer)
    }

    /// Memory for `size` elements, with unspecified contents.
    ///
    /// # Errors
    ///
    /// As [`UnifiedBuffer::new`].
    ///
    /// # Safety
    ///
    /// The elements are written, through a pointer or by a kernel, before they are read or
    /// borrowed.
    pub unsafe fn uninitialized(size: usize) -> CudaResult<Self> {
        if size == 0 || size_of::<T>() == 0 {
            return Ok(Self {
                // SAFETY: elements without bytes need no memory.
                start: unsafe { UnifiedPointer::wrap(std::ptr::dangling_mut()) },
                len: size,
                home: None,
            });
        }
        let home = Home::current()?;
        Ok(Self {
            // SAFETY: the buffer frees the memory when it is dropped, in its context, which `home`
            // keeps.
            start: unsafe { cuda_malloc_unified(size)? },
            len: size,
            home: Some(home),
        })
    }

    /// All elements.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        self
    }

    /// All elements, writable.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self
    }

    /// The address of the first element.
    #[must_use]
    pub fn as_unified_ptr(&mut self) -> UnifiedPointer<T> {
        self.start
    }

    /// The buffer of these elements; it takes ownership.
    ///
    /// # Safety
    ///
    /// [`cuda_malloc_unified`](super::cuda_malloc_unified) has allocated the memory in the current
    /// context. It holds `capacity` initialised elements, and has no other owner.
    #[must_use]
    pub unsafe fn from_raw_parts(ptr: UnifiedPointer<T>, capacity: usize) -> Self {
        let nothing = capacity == 0 || size_of::<T>() == 0;
        Self {
            start: ptr,
            len: capacity,
            home: if nothing { None } else { Home::current().ok() },
        }
    }

    /// Frees the memory, and returns the driver's error if that fails.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the buffer.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(mut uni_buf: Self) -> DropResult<Self> {
        uni_buf.free().map_err(|error| (error, uni_buf))
    }

    fn free(&mut self) -> CudaResult<()> {
        if let Some(home) = &self.home {
            let _entered = home.enter()?;
            // SAFETY: this value owns the memory, and nothing uses it afterwards.
            unsafe { cuda_free_unified(self.start) }?;
        }
        self.home = None;
        Ok(())
    }
}

impl<T: DeviceCopy> Deref for UnifiedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the buffer has `len` initialised elements, and is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_raw(), self.len) }
    }
}

impl<T: DeviceCopy> DerefMut for UnifiedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_raw_mut(), self.len) }
    }
}

impl<T: DeviceCopy> AsRef<[T]> for UnifiedBuffer<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: DeviceCopy> AsMut<[T]> for UnifiedBuffer<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: DeviceCopy> Drop for UnifiedBuffer<T> {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has failed.
        let _: Result<(), CudaError> = self.free();
    }
}

impl<T: DeviceCopy> Sealed for UnifiedBuffer<T> {}

/// One value that host and device share.
///
/// Whoever launches a kernel promises that the host does not use the kernel's memory meanwhile.
#[derive(Debug)]
pub struct UnifiedBox<T: DeviceCopy> {
    /// A buffer of one element.
    buffer: UnifiedBuffer<T>,
}

impl<T: DeviceCopy> UnifiedBox<T> {
    /// Moves a value to unified memory.
    ///
    /// # Errors
    ///
    /// As [`UnifiedBuffer::new`].
    pub fn new(val: T) -> CudaResult<Self> {
        let buffer = UnifiedBuffer::new(&val, 1)?;
        Ok(Self { buffer })
    }

    /// Memory for a value, with unspecified contents.
    ///
    /// # Errors
    ///
    /// As [`UnifiedBuffer::new`].
    ///
    /// # Safety
    ///
    /// As [`UnifiedBuffer::uninitialized`].
    pub unsafe fn uninitialized() -> CudaResult<Self> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { UnifiedBuffer::uninitialized(1) }?;
        Ok(Self { buffer })
    }

    /// The box of the value at this address; it takes ownership.
    ///
    /// # Safety
    ///
    /// As [`UnifiedBuffer::from_raw_parts`] with one element.
    #[must_use]
    pub unsafe fn from_raw(ptr: *mut T) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::from_unified(UnifiedPointer::wrap(ptr)) }
    }

    /// As [`UnifiedBox::from_raw`].
    ///
    /// # Safety
    ///
    /// As [`UnifiedBox::from_raw`].
    #[must_use]
    pub unsafe fn from_unified(ptr: UnifiedPointer<T>) -> Self {
        Self {
            // SAFETY: the caller's promise.
            buffer: unsafe { UnifiedBuffer::from_raw_parts(ptr, 1) },
        }
    }

    /// Returns the pointer; the caller takes ownership of the memory.
    #[must_use]
    #[allow(clippy::wrong_self_convention, reason = "the form that cust has")]
    pub fn into_unified(b: Self) -> UnifiedPointer<T> {
        std::mem::ManuallyDrop::new(b).as_unified_ptr()
    }

    /// The address of the value.
    #[must_use]
    pub fn as_unified_ptr(&self) -> UnifiedPointer<T> {
        self.buffer.start
    }

    /// Leaks the box: the value is never freed.
    ///
    /// Its context is never released either.
    #[must_use]
    pub fn leak<'a>(b: Self) -> &'a mut T
    where
        T: 'a,
    {
        let mut leaked = std::mem::ManuallyDrop::new(b);
        // SAFETY: the value is initialised, and nothing is dropped, so the value and its context
        // stay for ever.
        unsafe { &mut *leaked.buffer.start.as_raw_mut() }
    }

    /// Frees the memory, and returns the driver's error if that fails.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the box.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(uni_box: Self) -> DropResult<Self> {
        UnifiedBuffer::drop(uni_box.buffer).map_err(|(error, buffer)| (error, Self { buffer }))
    }
}

impl<T: DeviceCopy> Deref for UnifiedBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.buffer[0]
    }
}

impl<T: DeviceCopy> DerefMut for UnifiedBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.buffer[0]
    }
}

impl<T: DeviceCopy> Borrow<T> for UnifiedBox<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: DeviceCopy> BorrowMut<T> for UnifiedBox<T> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: DeviceCopy> AsRef<T> for UnifiedBox<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: DeviceCopy> AsMut<T> for UnifiedBox<T> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: DeviceCopy + fmt::Display> fmt::Display for UnifiedBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: DeviceCopy> fmt::Pointer for UnifiedBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.buffer.start, f)
    }
}

impl<T: DeviceCopy + PartialEq> PartialEq for UnifiedBox<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: DeviceCopy + Eq> Eq for UnifiedBox<T> {}

impl<T: DeviceCopy + PartialOrd> PartialOrd for UnifiedBox<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: DeviceCopy + Ord> Ord for UnifiedBox<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: DeviceCopy + std::hash::Hash> std::hash::Hash for UnifiedBox<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: DeviceCopy> Sealed for UnifiedBox<T> {}

/// `CU_DEVICE_CPU`: the host, instead of a device number.
const HOST: CUdevice = -1;

/// The driver's `CU_MEM_ADVISE_…`.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Advice {
    SetReadMostly = 1,
    UnsetReadMostly = 2,
    SetPreferredLocation = 3,
    UnsetPreferredLocation = 4,
}

/// Advice to the driver about the use of unified memory, so that it moves memory in time.
pub trait MemoryAdvise<T: DeviceCopy>: Sealed {
    /// The elements.
    fn as_slice(&self) -> &[T];

    /// Moves the elements to the host, in stream order.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    fn prefetch_to_host(&self, stream: &Stream) -> CudaResult<()> {
        prefetch(self.as_slice(), HOST, stream)
    }

    /// Moves the elements to a device, in stream order.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    fn prefetch_to_device(&self, stream: &Stream, device: &Device) -> CudaResult<()> {
        prefetch(self.as_slice(), device.as_raw(), stream)
    }

    /// Says whether the elements are read much more often than written; if so, each reader gets a
    /// copy.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    fn advise_read_mostly(&self, read_mostly: bool) -> CudaResult<()> {
        let advice = if read_mostly {
            Advice::SetReadMostly
        } else {
            Advice::UnsetReadMostly
        };
        advise(self.as_slice(), advice, 0)
    }

    /// Says where the elements should stay; `None` is the host.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    fn preferred_location(&self, preferred_location: Option<Device>) -> CudaResult<()> {
        let place = preferred_location.map_or(HOST, |device| device.as_raw());
        advise(self.as_slice(), Advice::SetPreferredLocation, place)
    }

    /// Withdraws the preferred location.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    fn unset_preferred_location(&self) -> CudaResult<()> {
        advise(self.as_slice(), Advice::UnsetPreferredLocation, 0)
    }
}

fn prefetch<T>(elements: &[T], place: CUdevice, stream: &Stream) -> CudaResult<()> {
    let bytes = size_of_val(elements);
    if bytes == 0 {
        return Ok(());
    }
    let address = elements.as_ptr().addr() as u64;
    // SAFETY: the unified memory has this size, and the stream is alive. The contents do not
    // change.
    unsafe { sys::cuMemPrefetchAsync(address, bytes, place, stream.as_inner()) }.to_result()
}

fn advise<T>(elements: &[T], advice: Advice, place: CUdevice) -> CudaResult<()> {
    let bytes = size_of_val(elements);
    if bytes == 0 {
        return Ok(());
    }
    let address = elements.as_ptr().addr() as u64;
    // SAFETY: the unified memory has this size. The contents do not change.
    unsafe { sys::cuMemAdvise(address, bytes, advice as c_uint, place) }.to_result()
}

impl<T: DeviceCopy> MemoryAdvise<T> for UnifiedBox<T> {
    fn as_slice(&self) -> &[T] {
        &self.buffer
    }
}

impl<T: DeviceCopy> MemoryAdvise<T> for UnifiedBuffer<T> {
    fn as_slice(&self) -> &[T] {
        self
    }
}
