//! Stress tests: many launches with many features at the same time.

mod common;

use std::sync::atomic::{AtomicU32, Ordering};

use common::{Buffer, ORDERS, config, launch, ordered, run, tid, verify};
use cuda_emulator::intrinsics::{self as cuda, ShuffleKind};
use cuda_emulator::{Blocks, DeviceMemory, Diagnosis, LaunchLock, Options, ThreadOrder, Verify};
use rayon::prelude::*;

/// A block-wide sum with shuffles, shared memory and barriers.
fn block_sum(value: u32) -> u32 {
    let warps = shared!(u32; 32);
    let mut sum = value;
    for offset in [16, 8, 4, 2, 1] {
        sum += cuda::shuffle(u32::MAX, u64::from(sum), ShuffleKind::Xor, offset, 32).0 as u32;
    }
    if cuda::lane_id() == 0 {
        warps.write(cuda::warp_id() as isize, sum);
    }
    cuda::barrier();
    let n = cuda::block_dim()[0] / 32;
    let total = (0..n as isize).map(|w| warps.read(w)).sum();
    cuda::barrier();
    total
}

#[test]
fn full_blocks_in_every_order() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 50]);
    let o = out.ptr();
    for order in ORDERS {
        let report = launch(&config(50, 1024), &ordered(order), &memory, &|| {
            let b = cuda::block_idx()[0];
            let mut sum = 0;
            for _ in 0..3 {
                sum = block_sum(tid() + b);
            }
            if tid() == 0 {
                o.write(b as isize, sum);
            }
        })
        .unwrap();
        assert_eq!(report.barriers, 50 * 6);
        assert_eq!(report.warp_operations, 50 * 32 * 15);
        for (b, &sum) in out.get().iter().enumerate() {
            assert_eq!(sum, 1023 * 512 + 1024 * b as u32);
        }
    }
}

#[test]
fn a_hundred_thousand_small_blocks() {
    let memory = DeviceMemory::new();
    let count = Buffer::new(&memory, "count", &[0_u32]);
    let c = count.ptr();
    // SAFETY: the word is alive and aligned, and only used atomically.
    let counter = move || unsafe { AtomicU32::from_ptr(c.raw()) };
    let report = run(&memory, 100_000, 1, || {
        cuda::atomic();
        counter().fetch_add(1, Ordering::Relaxed);
        cuda::barrier();
    })
    .unwrap();
    assert_eq!(report.atomics, 100_000);
    assert_eq!(count.get(), [100_000]);
}

/// Calls a barrier at the bottom of a deep recursion.
fn deep(depth: u32) -> u32 {
    let local = std::hint::black_box([depth; 16]);
    if depth == 0 {
        cuda::barrier();
        return 0;
    }
    let below = deep(depth - 1);
    if depth.is_multiple_of(16) {
        cuda::barrier();
    }
    below + local[depth as usize % 16]
}

#[test]
fn barriers_at_every_depth_of_the_stack() {
    let memory = DeviceMemory::new();
    for order in ORDERS {
        launch(&config(4, 256), &ordered(order), &memory, &|| {
            assert_eq!(deep(200), 200 * 201 / 2);
        })
        .unwrap();
    }
}

#[test]
fn launches_on_several_os_threads_at_once() {
    std::thread::scope(|scope| {
        for worker in 0..6_u32 {
            scope.spawn(move || {
                let memory = DeviceMemory::new();
                let out = Buffer::new(&memory, "out", &[0_u32; 20]);
                let o = out.ptr();
                for round in 0..30 {
                    let order = match (worker + round) % 3 {
                        0 => ThreadOrder::Forward,
                        1 => ThreadOrder::Reverse,
                        _ => ThreadOrder::Random(u64::from(round)),
                    };
                    launch(&config(20, 96), &ordered(order), &memory, &|| {
                        let sum = block_sum(worker);
                        if tid() == 95 {
                            o.write(cuda::block_idx()[0] as isize, sum);
                        }
                    })
                    .unwrap();
                    assert_eq!(out.get(), [96 * worker; 20]);
                    // Every other launch is a broken one.
                    let diagnosis = launch(&config(20, 96), &ordered(order), &memory, &|| {
                        cuda::barrier();
                        match worker % 3 {
                            0 if tid() == 40 => panic!("worker {worker}"),
                            1 if tid() == 41 => return,
                            2 => cuda::warp_barrier(0),
                            _ => {}
                        }
                        cuda::barrier();
                    })
                    .unwrap_err();
                    assert!(
                        matches!(
                            (worker % 3, &diagnosis),
                            (0, Diagnosis::Panic { .. })
                                | (1, Diagnosis::BarrierDivergence { .. })
                                | (2, Diagnosis::NotInMask { .. })
                        ),
                        "{diagnosis}"
                    );
                }
            });
        }
    });
}

/// Stands for constant memory that the host sets.
static CONSTANT: AtomicU32 = AtomicU32::new(0);

#[test]
fn launches_from_rayon_jobs_that_hold_the_lock() {
    // More jobs than OS threads; each waits for its launch while holding the lock.
    (0..64_u32).into_par_iter().for_each(|job| {
        let memory = DeviceMemory::new();
        let out = Buffer::new(&memory, "out", &[0_u32; 2048]);
        let o = out.ptr();
        let lock = LaunchLock::acquire();
        CONSTANT.store(job, Ordering::Relaxed);
        run(&memory, 32, 64, || {
            let i = cuda::block_idx()[0] * 64 + tid();
            cuda::barrier();
            o.write(i as isize, CONSTANT.load(Ordering::Relaxed));
        })
        .unwrap();
        drop(lock);
        assert_eq!(out.get(), [job; 2048]);
    });
}

#[test]
fn verification_of_a_reduction() {
    let memory = DeviceMemory::new();
    let input: Vec<u32> = (0..64 * 256).map(|i| i % 17).collect();
    let expected: Vec<u32> = input.chunks(256).map(|block| block.iter().sum()).collect();
    let input = Buffer::new(&memory, "input", &input);
    let out = Buffer::new(&memory, "out", &[0_u32; 64]);
    let (i, o) = (input.ptr(), out.ptr());
    verify(&config(64, 256), &Verify::default(), &memory, &|| {
        let b = cuda::block_idx()[0] as isize;
        let sum = block_sum(i.read(b * 256 + tid() as isize));
        if tid() == 0 {
            o.write(b, sum);
        }
    })
    .unwrap();
    assert_eq!(out.get(), expected);
}

#[test]
fn dropping_buffers_while_others_launch() {
    let memory = DeviceMemory::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for i in 0..200 {
                    let buffer = Buffer::new(&memory, "buffer", &[i; 100]);
                    let b = buffer.ptr();
                    run(&memory, 2, 50, || {
                        let at = (cuda::block_idx()[0] * 50 + tid()) as isize;
                        b.write(at, b.read(at) + 1);
                    })
                    .unwrap();
                    assert_eq!(buffer.get(), [i + 1; 100]);
                }
            });
        }
    });
    assert_eq!(memory.live_allocations(), 0);
}

/// The number of mappings (lines of /proc/self/maps) and of resident pages.
#[cfg(target_os = "linux")]
fn usage() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident = statm.split(' ').nth(1).unwrap().parse().unwrap();
    (maps.lines().count(), resident)
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "counts the whole process's memory; run by the test below, alone"]
fn child_repeats_launches() {
    let memory = DeviceMemory::new();
    // One OS thread, so that the number of stacks in use does not vary.
    let mut options = Options::default();
    options.blocks = Blocks::OneAtATime;
    let round = |i: u32| {
        let buffer = Buffer::new(&memory, "buffer", &vec![0_u32; 10_000]);
        let b = buffer.ptr();
        launch(&config(8, 1024), &options, &memory, &|| {
            let tile = shared!(u32; 1024);
            tile.write(tid() as isize, i);
            cuda::barrier();
            b.write(tid() as isize, tile.read(5));
        })
        .unwrap();
        // A launch that stops in the middle, with a thousand threads suspended.
        launch(&config(8, 1024), &options, &memory, &|| {
            let text = format!("thread {} of round {i}", tid());
            cuda::barrier();
            assert!(tid() != 500, "{text}");
            cuda::barrier();
        })
        .unwrap_err();
        // A launch that faults, on platforms with guard pages.
        #[cfg(guarded)]
        launch(&config(1, 64), &options, &memory, &|| {
            b.write(10_000 + tid() as isize, 1);
        })
        .unwrap_err();
        let mut other = options.clone();
        other.stack_bytes = (16 * 1024) << (i % 3);
        launch(&config(1, 64), &other, &memory, &|| cuda::barrier()).unwrap();
    };
    // Fills first what the emulator keeps on purpose: the quarantine of freed buffers, stacks,
    // regions of shared memory.
    for i in 0..300 {
        drop(Buffer::new(&memory, "buffer", &vec![i; 10_000]));
    }
    (0..50).for_each(round);
    let (maps, resident) = usage();
    (50..150).for_each(round);
    let (maps_after, resident_after) = usage();
    assert!(
        maps_after <= maps + 50,
        "{maps} mappings became {maps_after}"
    );
    assert!(
        resident_after <= resident + 500,
        "{resident} resident pages became {resident_after}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn launches_leave_nothing_behind() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["child_repeats_launches", "--exact", "--ignored"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}
