//! Pages of memory: requests for huge pages, and prefetches across the ends of small pages.

use crate::caches::LINE_BYTES;

/// Asks the operating system to back large memory with huge pages. Call it before the memory is
/// first touched.
///
/// A sweep over a field in pages of 4 KiB spends much of its time waiting for the page table
/// (docs/tuning/stencil.md). Linux gives huge pages only on request if
/// `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise`, as on most systems.
pub(crate) fn advise_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        /// The least size, as in NumPy: two huge pages of x86-64.
        const LEAST: usize = 4 << 20;
        /// A multiple of the page size of every processor.
        const PAGE: usize = 64 << 10;

        if size_of_val(memory) < LEAST {
            return;
        }
        let start = memory.as_mut_ptr().cast::<u8>();
        let before = start.align_offset(PAGE);
        let len = (size_of_val(memory) - before) / PAGE * PAGE;
        // SAFETY: these pages lie within `memory`, which is borrowed. The advice changes neither
        // their contents nor what may be done with them. If the system refuses, nothing changes.
        unsafe { libc::madvise(start.add(before).cast(), len, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Brings the cache line of element `at` into the cache, for a later read. The element may be
/// beyond the end of `row`.
#[inline(always)]
pub(crate) fn prefetch<T>(row: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        // SAFETY: every x86-64 has SSE, and a prefetch is valid at any address: it never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (row, at);
}

/// Brings `count` elements into the cache, beginning with element `at`. They may be beyond the end
/// of `row`.
#[inline(always)]
pub(crate) fn prefetch_lines<T>(row: &[T], at: usize, count: usize) {
    for first in (0..count).step_by(LINE_BYTES / size_of::<T>()) {
        prefetch(row, at + first);
    }
}

/// The size of the smallest pages, in bytes.
pub(crate) const PAGE_BYTES: usize = 4096;

/// A loop over a row calls [`prefetch_next_page`] once per this many elements, which is twice per
/// page.
pub(crate) const fn elements_per_prefetch<T>() -> usize {
    PAGE_BYTES / 2 / size_of::<T>()
}

/// Prefetches the cache line one page after element `at`. Without this, a loop waits at the start
/// of each page: the processor must look up the page's address, and its own prefetches stop at the
/// end of the previous page.
#[inline(always)]
pub(crate) fn prefetch_next_page<T>(row: &[T], at: usize) {
    prefetch(row, at + PAGE_BYTES / size_of::<T>());
}
