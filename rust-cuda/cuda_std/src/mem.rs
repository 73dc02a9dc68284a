//! The device heap, and how much shared memory a block has.
//!
//! On the device this crate's [`CUDAAllocator`] is the global allocator, so that
//! `Box`, `Vec` and `format!` work in kernels. The heap is slow and small (8 MiB
//! unless the host says otherwise); an allocation that fails stops the launch.

/// The global allocator of kernels: the device's `malloc` and `free`.
///
/// On the host it is the system's allocator under another name.
#[derive(Debug, Clone, Copy, Default)]
pub struct CUDAAllocator;

#[cfg(target_arch = "nvptx64")]
pub use device::{GLOBAL_ALLOCATOR, free, malloc};

#[cfg(target_arch = "nvptx64")]
mod device {
    use super::CUDAAllocator;
    use alloc::alloc::{GlobalAlloc, Layout};
    use core::ffi::c_void;

    unsafe extern "C" {
        /// Takes `size` bytes, aligned to 16, from the device heap; null when it
        /// has no more.
        pub fn malloc(size: usize) -> *mut c_void;

        /// Gives back what [`malloc`] returned. Null is ignored.
        pub fn free(pointer: *mut c_void);
    }

    /// What the device's `malloc` aligns to.
    const HEAP_ALIGN: usize = 16;

    // SAFETY: memory comes from the device's heap, whose functions may be called
    // from all threads at once; alignment beyond the heap's own is made here.
    unsafe impl GlobalAlloc for CUDAAllocator {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if layout.align() <= HEAP_ALIGN {
                // SAFETY: any size may be asked for.
                return unsafe { malloc(layout.size()) }.cast();
            }
            // More than the heap aligns to: take that much more, and keep the
            // heap's own pointer in front of the aligned memory.
            let Some(size) = layout.size().checked_add(layout.align()) else {
                return core::ptr::null_mut();
            };
            // SAFETY: any size may be asked for.
            let start = unsafe { malloc(size) }.cast::<u8>();
            if start.is_null() {
                return start;
            }
            let past = layout.align() - start.addr() % layout.align();
            // SAFETY: `past` is at least 16 (both addresses are multiples of
            // that) and at most the alignment added: the memory, and a pointer
            // in front of it, are inside.
            unsafe {
                let aligned = start.add(past);
                aligned.cast::<*mut u8>().sub(1).write(start);
                aligned
            }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            let start = if layout.align() <= HEAP_ALIGN {
                pointer
            } else {
                // SAFETY: `alloc` left the heap's pointer there.
                unsafe { pointer.cast::<*mut u8>().sub(1).read() }
            };
            // SAFETY: the heap's own pointer, given back once.
            unsafe { free(start.cast()) };
        }
    }

    /// The global allocator.
    #[global_allocator]
    pub static GLOBAL_ALLOCATOR: CUDAAllocator = CUDAAllocator;
}

#[cfg(not(target_arch = "nvptx64"))]
// SAFETY: the system's allocator does all of it.
unsafe impl std::alloc::GlobalAlloc for CUDAAllocator {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { std::alloc::System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: std::alloc::Layout) {
        // SAFETY: as the caller promises.
        unsafe { std::alloc::System.dealloc(pointer, layout) };
    }
}

/// Bytes of dynamic shared memory that the launch gave every block.
#[must_use]
#[inline(always)]
pub fn dynamic_smem_size() -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: reads a special register that every thread has.
    let bytes = unsafe { crate::sys::dynamic_smem_size() };
    #[cfg(not(target_arch = "nvptx64"))]
    let bytes = cuda_emulator::intrinsics::dynamic_shared_len() as u32;
    bytes
}

/// Bytes of shared memory that every block takes, static and dynamic, rounded up
/// to the hardware's unit of allocation.
///
/// The emulator, which learns of static arrays when they are first used, counts
/// those that the block has used so far, and rounds up to 128 bytes.
#[must_use]
#[inline(always)]
pub fn total_smem_size() -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: reads a special register that every thread has.
    let bytes = unsafe { crate::sys::total_smem_size() };
    #[cfg(not(target_arch = "nvptx64"))]
    let bytes = crate::__private::shared_bytes().next_multiple_of(128) as u32;
    bytes
}
