//! All other platforms: ordinary memory, no signals.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;

use corosensei::stack::DefaultStack;

/// Whether [`Mapping::reserve`] gives memory that faults when touched.
pub(crate) const GUARDED: bool = false;

/// The unit of [`Mapping`]; nothing here depends on the system's page size.
const PAGE: usize = 4096;

/// Bytes per page.
pub(crate) fn page_size() -> usize {
    PAGE
}

/// A piece of heap memory with the interface of the native mapping.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: heap memory belongs to no thread in particular; this type only hands
// out its address.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Allocates `len` bytes (a multiple of the page size, not zero), zeroed.
    pub fn reserve(len: usize) -> io::Result<Self> {
        let layout = Layout::from_size_align(len, PAGE).map_err(io::Error::other)?;
        if len == 0 {
            return Err(io::Error::other("an empty mapping"));
        }
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        Ok(Self { start, layout })
    }

    /// First address of the range.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Bytes in the range.
    pub fn len(&self) -> usize {
        self.layout.size()
    }

    /// Does nothing but check the range: all of it is accessible.
    pub fn open(&self, offset: usize, len: usize) -> io::Result<()> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len()));
        Ok(())
    }

    /// Does nothing: access cannot be taken away.
    ///
    /// # Safety
    ///
    /// As for the native one: no reference into the range may be in use afterwards.
    pub unsafe fn seal(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: allocated in `reserve` with this layout, freed only here.
        unsafe { dealloc(self.start, self.layout) };
    }
}

/// Bytes of a stack in which no frame may be.
pub(crate) fn stack_guard() -> usize {
    PAGE
}

/// A stack for one emulated thread.
pub(crate) type ThreadStack = DefaultStack;

/// Makes stacks; see the native `ThreadStack::make`.
pub(crate) trait Make: Sized {
    /// Adds a new stack of at least `bytes` to `out`.
    fn make(bytes: usize, out: &mut Vec<Self>) -> io::Result<()>;

    /// Does nothing: no stack has a reserve.
    fn close_reserve(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Make for DefaultStack {
    fn make(bytes: usize, out: &mut Vec<Self>) -> io::Result<()> {
        out.push(DefaultStack::new(bytes)?);
        Ok(())
    }
}

/// Does nothing: there is nothing to prepare.
pub(crate) fn prepare_thread() {}

/// The number of stacks that may exist at once: a conservative one.
pub(crate) fn max_stacks() -> usize {
    16 * 1024
}

/// An OS thread; threads are not distinguished here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OsThread;

/// The calling OS thread.
pub(crate) fn this_thread() -> OsThread {
    OsThread
}

/// Does nothing: threads cannot be interrupted.
///
/// # Safety
///
/// None here; the native one needs the thread to be alive.
pub(crate) unsafe fn stop(_thread: OsThread) {}
