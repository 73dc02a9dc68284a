//! Tests several OS threads that use one device memory at the same time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{Buffer, config, launch, run, tid, verify};
use cuda_emulator::intrinsics as cuda;
use cuda_emulator::{DeviceMemory, Diagnosis, MemoryError, Verify};

/// Sets the flag when dropped, also after a panic.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn verification_leaves_alone_what_others_have_borrowed() {
    let memory = DeviceMemory::new();
    let verified = Buffer::new(&memory, "verified", &[0_u32; 32]);
    let mut borrowed = Buffer::new(&memory, "borrowed", &[0_u32; 1024]);
    let v = verified.ptr();
    // A verification that restored all memory would lose one write in twenty. Runs that watch
    // accesses protect memory, and take longer, so they write less.
    for (watched_accesses, writes) in [(0, 400), (1024, 20)] {
        let mut how = Verify::default();
        how.watched_accesses = watched_accesses;
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let kernel = || v.write(tid() as isize, tid());
                    verify(&config(1, 32), &how, &memory, &kernel).unwrap();
                }
            });
            let _stop = Stop(&stop);
            for value in 1..=writes {
                borrowed.set(&[value; 1024]);
                thread::yield_now();
                assert!(borrowed.get() == [value; 1024], "write {value} was lost");
            }
        });
    }
}

#[test]
fn a_launch_is_not_blamed_for_what_another_overwrites() {
    let memory = DeviceMemory::new();
    let good = Buffer::new(&memory, "good", &[0_u32; 64]);
    // Five bytes, aligned to four: three bytes of slack follow.
    let bad = memory.alloc_elements(5, 1, 4, "bad").unwrap();
    let (g, b) = (good.ptr(), bad.addr() as usize);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _stop = Stop(&stop);
            for _ in 0..300 {
                let diagnosis = run(&memory, 1, 1, || {
                    let slack = std::ptr::with_exposed_provenance_mut::<u8>(b + 6);
                    // SAFETY: the slack is accessible, though not part of the buffer.
                    unsafe { slack.write_volatile(0xAA) };
                    thread::sleep(Duration::from_millis(1));
                });
                assert!(
                    matches!(diagnosis, Err(Diagnosis::CanaryOverwritten { .. })),
                    "{diagnosis:?}"
                );
            }
        });
        while !stop.load(Ordering::Relaxed) {
            run(&memory, 1, 64, || g.write(tid() as isize, 1)).unwrap();
        }
    });
}

#[test]
fn verification_and_launches_of_one_memory_take_turns() {
    let memory = DeviceMemory::new();
    let counted = Buffer::new(&memory, "counted", &[0_u32]);
    let verified = Buffer::new(&memory, "verified", &[0_u32; 32]);
    let (c, v) = (counted.ptr(), verified.ptr());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let kernel = || v.write(tid() as isize, tid());
                verify(&config(1, 32), &Verify::default(), &memory, &kernel).unwrap();
            }
        });
        let _stop = Stop(&stop);
        for _ in 0..1000 {
            run(&memory, 1, 1, || c.write(0, c.read(0) + 1)).unwrap();
        }
    });
    assert_eq!(counted.get(), [1000]);
}

#[test]
fn what_the_host_does_with_memory_is_refused_in_a_kernel() {
    let memory = DeviceMemory::new();
    let buffer = Buffer::new(&memory, "buffer", &[1_u32; 4]);
    // Also verifies: a kernel that waited for its own verification would wait for ever.
    let both = |kernel: &(dyn Fn() + Sync)| {
        let launched = launch(&config(1, 1), &Default::default(), &memory, kernel);
        let verified = verify(&config(1, 1), &Verify::default(), &memory, kernel);
        [launched, verified]
    };
    let allocates = both(&|| {
        let refused = memory.alloc(4, 4, "inside");
        assert!(matches!(refused, Err(MemoryError::InKernel { .. })));
    });
    for report in allocates {
        report.unwrap();
    }
    for report in both(&|| drop(buffer.get())) {
        let Err(Diagnosis::Panic { message, .. }) = &report else {
            panic!("{report:?}");
        };
        assert!(message.contains("within a kernel"), "{message}");
    }
    for report in both(&|| {
        let inner = verify(&config(1, 1), &Verify::default(), &memory, &|| {});
        assert!(matches!(inner, Err(Diagnosis::InvalidLaunch { .. })));
        cuda::barrier();
    }) {
        report.unwrap();
    }
    for report in both(&|| drop(cuda_emulator::LaunchLock::acquire())) {
        assert!(matches!(report, Err(Diagnosis::Panic { .. })), "{report:?}");
    }
}
