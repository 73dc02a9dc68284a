//! A kernel that allocates for ever, by an allocator that is part of the program and
//! has one lock: the lock is free when the time limit has ended the launch.

#![cfg(guarded)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{config, launch};
use cuda_emulator::{DeviceMemory, Diagnosis, Options};

/// The system's allocator behind a lock.
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

// SAFETY: all is done by the system's allocator.
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
