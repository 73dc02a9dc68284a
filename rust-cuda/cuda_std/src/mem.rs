//! The device heap, and the size of a block's shared memory.
//!
//! On the device this crate's [`CUDAAllocator`] is the global allocator, so
//! that `Box`, `Vec` and `format!` work in kernels. The heap is slow and small
//! (8 MiB unless the host sets another size); an allocation that fails stops
//! the launch.

/// The global allocator of kernels: the device's `malloc` and `free`.
///
/// On the host it forwards to the system's allocator.
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
        /// Allocates `size` bytes from the device heap, aligned to 16; null
        /// when the heap is exhausted.
        pub fn malloc(size: usize) -> *mut c_void;

        /// Frees what [`malloc`] returned. Null is ignored.
        pub fn free(pointer: *mut c_void);
    }

    /// The alignment of what the device's `malloc` returns.
    const HEAP_ALIGN: usize = 16;

    // SAFETY: memory comes from the device's heap, whose functions may be called
    // from all threads at once; alignment beyond the heap's own is made here.
    unsafe impl GlobalAlloc for CUDAAllocator {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if layout.align() <= HEAP_ALIGN {
                // SAFETY: any size may be requested.
                return unsafe { malloc(layout.size()) }.cast();
            }
            // For a larger alignment, allocate that many bytes more and keep
            // the heap's own pointer in front of the aligned memory.
            let Some(size) = layout.size().checked_add(layout.align()) else {
                return core::ptr::null_mut();
            };
            // SAFETY: any size may be requested.
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
// SAFETY: forwards to the system's allocator.
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

/// The bytes of dynamic shared memory that the launch gave each block
/// (`%dynamic_smem_size`).
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

/// The bytes of shared memory that each block takes, static and dynamic,
/// rounded up to the hardware's unit of allocation (`%total_smem_size`).
///
/// The emulator learns of a static array when it is first used: it counts those
/// that the block has used so far, and rounds up to 128 bytes.
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
