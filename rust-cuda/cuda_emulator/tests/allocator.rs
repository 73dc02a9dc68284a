//! Kernels that are stopped while they allocate, by the time limit or by a stack overflow. The
//! program's allocator has one lock, which must be free after the launch.

#![cfg(guarded)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{config, launch};
use cuda_emulator::{DeviceMemory, Diagnosis, Options};

/// The system's allocator with a lock.
struct Locked(AtomicBool);

impl Locked {
    fn locked<R>(&self, work: impl FnOnce() -> R) -> R {
        while self.0.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let result = work();
        self.0.store(false, Ordering::Release);
        result
    }
}

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Locked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are the same.
        self.locked(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        self.locked(|| unsafe { System.dealloc(pointer, layout) });
    }
}

#[global_allocator]
static ALLOCATOR: Locked = Locked(AtomicBool::new(false));

#[test]
fn a_kernel_that_allocates_leaves_the_allocator_usable() {
    let memory = DeviceMemory::new();
    let mut options = Options::default();
    options.time_limit = Some(Duration::from_millis(30));
    for _ in 0..5 {
        let diagnosis = launch(&config(2, 32), &options, &memory, &|| {
            loop {
                let mut sum = Box::new(0_u32);
                for i in 0..10 {
                    *sum = std::hint::black_box(*sum + i);
                }
            }
        });
        assert!(matches!(diagnosis, Err(Diagnosis::NeverEnds { .. })));
        drop(std::hint::black_box(vec![1; 100]));
    }
}

/// Allocates at each level. A level needs less stack than the allocator, so the overflow happens in
/// the allocator.
fn allocate_deeper(level: u64) -> u64 {
    let kept = std::hint::black_box(Box::new(level));
    if level == u64::MAX {
        return 0;
    }
    std::hint::black_box(allocate_deeper(level + 1)) + *kept
}

#[test]
fn a_kernel_that_overflows_its_stack_while_it_allocates_leaves_the_allocator_usable() {
    let memory = DeviceMemory::new();
    for _ in 0..5 {
        let diagnosis = launch(&config(2, 32), &Options::default(), &memory, &|| {
            allocate_deeper(0);
        });
        assert!(matches!(diagnosis, Err(Diagnosis::StackOverflow { .. })));
        drop(std::hint::black_box(vec![1; 100]));
    }
}
