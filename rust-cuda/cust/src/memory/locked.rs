//! Page-locked host memory, whose copies can overlap with kernels.

use super::malloc::{cuda_free_locked, cuda_malloc_locked};
use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, DropResult};
use cust_core::DeviceCopy;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Elements in page-locked host memory.
#[derive(Debug)]
pub struct LockedBuffer<T: DeviceCopy> {
    start: NonNull<T>,
    len: usize,
    /// `None` if there is nothing to free.
    home: Option<Home>,
}

// SAFETY: it owns its elements, and any thread may call the driver.
unsafe impl<T: DeviceCopy + Send> Send for LockedBuffer<T> {}
// SAFETY: as above; a shared reference gives shared references to the elements.
unsafe impl<T: DeviceCopy + Sync> Sync for LockedBuffer<T> {}

impl<T: DeviceCopy> LockedBuffer<T> {
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
    /// As [`LockedBuffer::new`].
    pub fn from_slice(slice: &[T]) -> CudaResult<Self> {
        Self::filled(slice.len(), |at| slice[at])
    }

    fn filled(size: usize, value: impl Fn(usize) -> T) -> CudaResult<Self> {
        // SAFETY: the elements are written below, before anything reads them.
        let buffer = unsafe { Self::uninitialized(size) }?;
        for at in 0..size {
            // SAFETY: the address lies within the buffer.
            unsafe { buffer.start.add(at).write(value(at)) };
        }
        Ok(buffer)
    }

    /// Memory for `size` elements, with unspecified contents.
    ///
    /// # Errors
    ///
    /// As [`LockedBuffer::new`].
    ///
    /// # Safety
    ///
    /// The elements are written, through a pointer, before they are read or borrowed.
    pub unsafe fn uninitialized(size: usize) -> CudaResult<Self> {
        if size == 0 || size_of::<T>() == 0 {
            return Ok(Self {
                start: NonNull::dangling(),
                len: size,
                home: None,
            });
        }
        let home = Home::current()?;
        // SAFETY: the buffer frees the memory when it is dropped, in its context, which `home`
        // keeps.
        let start = NonNull::new(unsafe { cuda_malloc_locked::<T>(size) }?);
        Ok(Self {
            start: start.ok_or(CudaError::InvalidMemoryAllocation)?,
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

    /// The buffer of these elements; it takes ownership.
    ///
    /// # Safety
    ///
    /// [`cuda_malloc_locked`](super::cuda_malloc_locked) has allocated the memory in the current
    /// context. It holds `size` initialised elements, and has no other owner.
    #[must_use]
    pub unsafe fn from_raw_parts(ptr: *mut T, size: usize) -> Self {
        let nothing = size == 0 || size_of::<T>() == 0;
        Self {
            start: NonNull::new(ptr).unwrap_or(NonNull::dangling()),
            len: size,
            home: if nothing { None } else { Home::current().ok() },
        }
    }

    /// Frees the memory, and returns the driver's error if that fails.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the buffer.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(mut buf: Self) -> DropResult<Self> {
        buf.free().map_err(|error| (error, buf))
    }

    fn free(&mut self) -> CudaResult<()> {
        if let Some(home) = &self.home {
            let _entered = home.enter()?;
            // SAFETY: this value owns the memory, and nothing uses it afterwards.
            unsafe { cuda_free_locked(self.start.as_ptr()) }?;
        }
        self.home = None;
        Ok(())
    }
}

impl<T: DeviceCopy> Deref for LockedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the buffer has `len` initialised elements, and is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: DeviceCopy> DerefMut for LockedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: DeviceCopy> AsRef<[T]> for LockedBuffer<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: DeviceCopy> AsMut<[T]> for LockedBuffer<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: DeviceCopy> Drop for LockedBuffer<T> {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has failed.
        let _: Result<(), CudaError> = self.free();
    }
}

/// One value in page-locked host memory.
#[derive(Debug)]
pub struct LockedBox<T: DeviceCopy> {
    /// A buffer of one element.
    buffer: LockedBuffer<T>,
}

impl<T: DeviceCopy> LockedBox<T> {
    /// A copy of this value.
    ///
    /// # Errors
    ///
    /// As [`LockedBuffer::new`].
    pub fn new(val: &T) -> CudaResult<Self> {
        let buffer = LockedBuffer::new(val, 1)?;
        Ok(Self { buffer })
    }

    /// Memory for a value, with unspecified contents.
    ///
    /// # Errors
    ///
    /// As [`LockedBuffer::new`].
    ///
    /// # Safety
    ///
    /// As [`LockedBuffer::uninitialized`].
    pub unsafe fn uninitialized() -> CudaResult<Self> {
        // SAFETY: the caller's promise.
        let buffer = unsafe { LockedBuffer::uninitialized(1) }?;
        Ok(Self { buffer })
    }

    /// Returns the pointer; the caller takes ownership of the memory.
    #[must_use]
    pub fn into_raw(self) -> *mut T {
        std::mem::ManuallyDrop::new(self).as_raw()
    }

    /// The box of the value at this address; it takes ownership.
    ///
    /// # Safety
    ///
    /// As [`LockedBuffer::from_raw_parts`] with one element.
    #[must_use]
    pub unsafe fn from_raw(ptr: *mut T) -> Self {
        Self {
            // SAFETY: the caller's promise.
            buffer: unsafe { LockedBuffer::from_raw_parts(ptr, 1) },
        }
    }

    /// The address of the value.
    #[must_use]
    pub fn as_raw(&self) -> *mut T {
        self.buffer.start.as_ptr()
    }
}

impl<T: DeviceCopy> Deref for LockedBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.buffer[0]
    }
}

impl<T: DeviceCopy> DerefMut for LockedBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.buffer[0]
    }
}
