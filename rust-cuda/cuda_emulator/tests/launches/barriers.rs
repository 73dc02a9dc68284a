//! Tests block barriers: their effect, and threads that miss them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{Buffer, ORDERS, config, launch, ordered, run, tid};
use cuda_emulator::intrinsics as cuda;
use cuda_emulator::{Blocks, DeviceMemory, Diagnosis, Doing, Options};

/// Runs a kernel in every order; each run must fail, and `check` checks the diagnosis.
fn must_fail(grid: u32, block: u32, kernel: impl Fn() + Sync, check: impl Fn(&Diagnosis)) {
    let memory = DeviceMemory::new();
    for order in ORDERS {
        let diagnosis = launch(&config(grid, block), &ordered(order), &memory, &kernel)
            .expect_err("the kernel is broken");
        assert_eq!(diagnosis.origin().unwrap().order, order);
        assert_eq!(diagnosis.kernel(), "kernel");
        check(&diagnosis);
    }
}

fn must_pass(grid: u32, block: u32, kernel: impl Fn() + Sync) {
    let memory = DeviceMemory::new();
    for order in ORDERS {
        launch(&config(grid, block), &ordered(order), &memory, &kernel).unwrap();
    }
}

#[test]
fn a_barrier_separates_writing_from_reading() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 256]);
    let p = out.ptr();
    for order in ORDERS {
        launch(&config(1, 256), &ordered(order), &memory, &|| {
            let tile = shared!(u32; 256);
            let t = tid() as isize;
            tile.write(t, t as u32 * 3);
            cuda::barrier();
            p.write(t, tile.read(255 - t));
        })
        .unwrap();
        let expected: Vec<u32> = (0..256).map(|t| (255 - t) * 3).collect();
        assert_eq!(out.get(), expected);
    }
}

#[test]
fn counting_barriers_count() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 100]);
    let p = out.ptr();
    for order in ORDERS {
        let report = launch(&config(1, 100), &ordered(order), &memory, &|| {
            let t = tid();
            let count = cuda::barrier_count(t.is_multiple_of(3));
            let all = cuda::barrier_and(t < 100);
            let not_all = cuda::barrier_and(t < 99);
            let any = cuda::barrier_or(t == 57);
            let none = cuda::barrier_or(t == 100);
            p.write(
                t as isize,
                count
                    | u32::from(all) << 8
                    | u32::from(not_all) << 9
                    | u32::from(any) << 10
                    | u32::from(none) << 11,
            );
        })
        .unwrap();
        assert_eq!(report.barriers, 5);
        assert!(out.get().iter().all(|&v| v == 34 | 1 << 8 | 1 << 10));
    }
}

#[test]
fn a_barrier_in_a_loop_is_one_barrier() {
    must_pass(3, 70, || {
        for _ in 0..10 {
            cuda::barrier();
        }
    });
}

#[test]
fn an_early_return_before_a_barrier_is_divergence() {
    let line = line!() + 4;
    let broken = || {
        // The usual guard for a grid larger than the data.
        if tid() < 60 {
            cuda::barrier();
        }
    };
    must_fail(1, 64, broken, |diagnosis| {
        let Diagnosis::BarrierDivergence {
            at,
            waiting,
            threads,
            other,
            doing,
            ..
        } = diagnosis
        else {
            panic!("{diagnosis}");
        };
        assert_eq!((*waiting, *threads), (60, 64));
        assert_eq!(at.thread, Some([0, 0, 0]));
        assert_eq!(at.block, Some([0, 0, 0]));
        let at_line = at.line.as_ref().unwrap();
        assert!(at_line.file.ends_with("barriers.rs"));
        assert_eq!(at_line.line, line);
        assert_eq!(*other, [60, 0, 0]);
        assert_eq!(*doing, Doing::Exited);
        let text = diagnosis.to_string();
        assert!(text.contains("barrier divergence"), "{text}");
        assert!(text.contains("60 of the block's 64 threads"), "{text}");
        assert!(text.contains("thread (60, 0, 0) has exited"), "{text}");
    });
    must_pass(1, 64, || {
        let inside = tid() < 60;
        cuda::barrier();
        if inside {
            cuda::step();
        }
    });
}

#[test]
#[allow(
    clippy::if_same_then_else,
    reason = "two barriers are what this is about"
)]
fn threads_at_different_barriers_diverge() {
    let broken = || {
        if tid().is_multiple_of(2) {
            cuda::barrier();
        } else {
            cuda::barrier();
        }
    };
    must_fail(2, 96, broken, |diagnosis| {
        let Diagnosis::BarrierDivergence { at, doing, .. } = diagnosis else {
            panic!("{diagnosis}");
        };
        let Doing::AtBarrier { line, .. } = doing else {
            panic!("{doing}");
        };
        assert_eq!(line.line, at.line.as_ref().unwrap().line + 2);
    });
    must_pass(2, 96, || {
        if tid().is_multiple_of(2) {
            cuda::step();
        }
        cuda::barrier();
    });
}

#[test]
fn different_forms_at_one_line_diverge() {
    #[rustfmt::skip]
    let broken = || {
        if tid() == 0 { cuda::barrier(); } else { cuda::barrier_or(true); }
    };
    must_fail(1, 32, broken, |diagnosis| {
        assert!(matches!(diagnosis, Diagnosis::BarrierDivergence { .. }));
    });
}

#[test]
fn one_round_more_for_some_is_divergence() {
    must_fail(
        1,
        64,
        || {
            for _ in 0..1 + tid() / 63 {
                cuda::barrier();
            }
        },
        |diagnosis| {
            let Diagnosis::BarrierDivergence { waiting, .. } = diagnosis else {
                panic!("{diagnosis}");
            };
            assert_eq!(*waiting, 1);
        },
    );
}

#[test]
fn a_lane_at_a_barrier_while_its_warp_shuffles_is_divergence() {
    must_fail(
        1,
        32,
        || {
            if tid() == 5 {
                cuda::barrier();
            } else {
                cuda::warp_barrier(u32::MAX);
                cuda::barrier();
            }
        },
        |diagnosis| {
            let Diagnosis::WarpDivergence { lane, doing, .. } = diagnosis else {
                panic!("{diagnosis}");
            };
            assert_eq!(*lane, 5);
            assert!(matches!(doing, Doing::AtBarrier { .. }));
        },
    );
}

#[test]
fn the_failing_block_is_the_first_in_order() {
    let memory = DeviceMemory::new();
    for _ in 0..20 {
        let diagnosis = run(&memory, 500, 33, || {
            let [b, ..] = cuda::block_idx();
            if b < 123 || tid() < 3 {
                cuda::barrier();
            }
        })
        .unwrap_err();
        assert_eq!(diagnosis.origin().unwrap().block, Some([123, 0, 0]));
    }
}

#[test]
#[allow(
    clippy::if_same_then_else,
    reason = "two barriers are what this is about"
)]
fn a_wrapper_that_tracks_its_caller_keeps_barriers_apart() {
    #[track_caller]
    fn sync_threads() {
        cuda::barrier();
    }
    must_fail(
        1,
        32,
        || {
            if tid() == 0 {
                sync_threads();
            } else {
                sync_threads();
            }
        },
        |diagnosis| {
            assert!(matches!(diagnosis, Diagnosis::BarrierDivergence { .. }));
        },
    );
}

#[test]
fn the_first_failing_block_is_reported_even_if_it_fails_last() {
    let memory = DeviceMemory::new();
    for _ in 0..5 {
        let diagnosis = run(&memory, 100, 256, || {
            let [b, ..] = cuda::block_idx();
            if b == 2 && tid() == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(b < 2, "block {b}");
        })
        .unwrap_err();
        assert_eq!(diagnosis.origin().unwrap().block, Some([2, 0, 0]));
    }
}

#[test]
fn blocks_after_a_failure_are_not_run() {
    let memory = DeviceMemory::new();
    let mut options = Options::default();
    options.blocks = Blocks::OneAtATime;
    let ran = AtomicU32::new(0);
    launch(&config(100, 1), &options, &memory, &|| {
        ran.fetch_add(1, Ordering::Relaxed);
        assert!(cuda::block_idx()[0] != 3, "no more");
    })
    .unwrap_err();
    assert_eq!(ran.into_inner(), 4);
}
