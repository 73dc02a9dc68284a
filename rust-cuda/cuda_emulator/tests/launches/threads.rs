//! Tests how emulated threads end (panics, exits, traps), and what then happens to the other
//! threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Buffer, ORDERS, config, launch, ordered, run, tid};
use cuda_emulator::intrinsics as cuda;
use cuda_emulator::{DeviceMemory, Diagnosis, LaunchConfig, Options};

#[test]
fn every_thread_knows_its_place() {
    let memory = DeviceMemory::new();
    let config = LaunchConfig {
        kernel: "places",
        grid: [3, 2, 4],
        block: [5, 7, 2],
        dynamic_shared_bytes: 0,
    };
    let n = 24 * 70;
    let out = Buffer::new(&memory, "out", &vec![0_u32; n]);
    let o = out.ptr();
    for order in ORDERS {
        let report = launch(&config, &ordered(order), &memory, &|| {
            assert_eq!(cuda::grid_dim(), [3, 2, 4]);
            assert_eq!(cuda::block_dim(), [5, 7, 2]);
            assert!(cuda::in_kernel());
            let [x, y, z] = cuda::thread_idx();
            let [bx, by, bz] = cuda::block_idx();
            let linear = x + 5 * (y + 7 * z);
            assert_eq!(cuda::linear_thread_idx(), linear);
            assert_eq!(cuda::lane_id(), linear % 32);
            assert_eq!(cuda::warp_id(), linear / 32);
            let i = (bx + 3 * (by + 2 * bz)) * 70 + linear;
            o.write(i as isize, o.read(i as isize) + 1);
        })
        .unwrap();
        assert_eq!((report.blocks, report.threads), (24, n as u64));
    }
    assert!(out.get().iter().all(|&count| count == ORDERS.len() as u32));
    assert!(!cuda::in_kernel());
}

#[test]
fn outside_a_launch_intrinsics_say_so() {
    let calls: [(&str, fn()); 5] = [
        ("thread_idx", || {
            let _ = cuda::thread_idx();
        }),
        ("barrier", || cuda::barrier()),
        ("vote_any", || {
            cuda::vote_any(1, true);
        }),
        ("dynamic_shared", || {
            let _ = cuda::dynamic_shared();
        }),
        ("atomic", || cuda::atomic()),
    ];
    for (name, call) in calls {
        let payload = std::panic::catch_unwind(call).unwrap_err();
        let message = payload.downcast_ref::<String>().unwrap();
        assert_eq!(*message, format!("{name} called outside a kernel launch"));
    }
}

#[test]
fn a_panic_has_its_message_and_line() {
    let memory = DeviceMemory::new();
    let kernel = |limit: u32| {
        move || {
            cuda::barrier();
            assert!(tid() < limit, "thread {} is too many", tid());
            cuda::barrier();
        }
    };
    let line = line!() - 4;
    for order in ORDERS {
        let diagnosis = launch(&config(2, 65), &ordered(order), &memory, &kernel(64)).unwrap_err();
        let Diagnosis::Panic { at, message } = &diagnosis else {
            panic!("{diagnosis}");
        };
        assert_eq!(message, "thread 64 is too many");
        assert_eq!(at.thread, Some([64, 0, 0]));
        let found = at.line.as_ref().unwrap();
        assert!(found.file.ends_with("threads.rs"));
        assert_eq!(found.line, line);
        launch(&config(2, 65), &ordered(order), &memory, &kernel(65)).unwrap();
    }
}

#[test]
fn arithmetic_overflow_and_odd_payloads() {
    let memory = DeviceMemory::new();
    let zero = std::hint::black_box(0_u32);
    let divide = run(&memory, 1, 4, || {
        std::hint::black_box(1 / (tid() - zero.min(tid())));
    });
    let diagnosis = divide.unwrap_err();
    assert!(diagnosis.to_string().contains("divide by zero"));
    let odd = run(&memory, 1, 1, || std::panic::panic_any(5_u8));
    assert!(odd.unwrap_err().to_string().contains("not text"));
    let resumed = run(&memory, 1, 1, || {
        std::panic::resume_unwind(Box::new("no hook was called"));
    });
    let diagnosis = resumed.unwrap_err();
    assert!(diagnosis.to_string().contains("no hook was called"));
}

/// Counts its live values.
struct Alive<'a>(&'a AtomicUsize);

impl<'a> Alive<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
        // A destructor that waits must not block an abandoned launch.
        cuda::barrier();
        assert!(!cuda::barrier_or(true) || !std::thread::panicking());
        cuda::step();
    }
}

#[test]
fn the_other_threads_of_a_failed_block_are_unwound() {
    let memory = DeviceMemory::new();
    let alive = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    for order in ORDERS {
        for failing in [0, 31, 32, 99] {
            let diagnosis = launch(&config(1, 100), &ordered(order), &memory, &|| {
                let _alive = Alive::new(&alive);
                cuda::barrier();
                most.fetch_max(alive.load(Ordering::Relaxed), Ordering::Relaxed);
                assert!(tid() != failing, "out");
                cuda::barrier();
            })
            .unwrap_err();
            assert!(matches!(diagnosis, Diagnosis::Panic { .. }), "{diagnosis}");
            assert_eq!(alive.load(Ordering::Relaxed), 0);
        }
    }
    assert_eq!(most.load(Ordering::Relaxed), 100);
}

#[test]
fn exits_end_a_thread_and_run_destructors() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 64]);
    let o = out.ptr();
    struct Mark(crate::common::Ptr<u32>);
    impl Drop for Mark {
        fn drop(&mut self) {
            self.0.write(tid() as isize, 7);
        }
    }
    for order in ORDERS {
        launch(&config(1, 64), &ordered(order), &memory, &|| {
            let _mark = Mark(o);
            if tid().is_multiple_of(2) {
                cuda::exit_thread();
            }
            cuda::step();
        })
        .unwrap();
        assert_eq!(out.get(), [7; 64]);
    }
    // A thread that has exited is missing at a barrier.
    let diagnosis = run(&memory, 1, 64, || {
        if tid() == 9 {
            cuda::exit_thread();
        }
        cuda::barrier();
    })
    .unwrap_err();
    assert!(matches!(diagnosis, Diagnosis::BarrierDivergence { .. }));
}

#[test]
fn a_trap_stops_the_launch() {
    let memory = DeviceMemory::new();
    let kernel = |trapping: u32| {
        move || {
            if tid() == trapping {
                cuda::trap();
            }
        }
    };
    let diagnosis = run(&memory, 1, 64, kernel(13)).unwrap_err();
    let Diagnosis::Trap { at } = &diagnosis else {
        panic!("{diagnosis}");
    };
    assert_eq!(at.thread, Some([13, 0, 0]));
    assert!(at.line.as_ref().unwrap().file.ends_with("threads.rs"));
    run(&memory, 1, 64, kernel(64)).unwrap();
}

#[test]
fn a_launch_in_a_launch_is_refused() {
    let memory = DeviceMemory::new();
    run(&memory, 2, 2, || {
        let inner = launch(
            &config(1, 1),
            &Options::default(),
            &DeviceMemory::new(),
            &|| {},
        );
        assert!(matches!(inner, Err(Diagnosis::InvalidLaunch { .. })));
    })
    .unwrap();
}

/// Launches while the host unwinds.
struct LaunchesOnDrop<'a>(&'a AtomicUsize);

impl Drop for LaunchesOnDrop<'_> {
    fn drop(&mut self) {
        assert!(std::thread::panicking());
        let memory = DeviceMemory::new();
        let report = run(&memory, 4, 64, || {
            let all = cuda::barrier_count(true) as usize;
            self.0.fetch_add(all, Ordering::Relaxed);
        });
        assert_eq!(report.unwrap().barriers, 4);
    }
}

#[test]
fn a_launch_while_the_host_unwinds_is_like_any_other() {
    let count = AtomicUsize::new(0);
    let result = std::panic::catch_unwind(|| {
        let _launches = LaunchesOnDrop(&count);
        panic!("of the host");
    });
    assert!(result.is_err());
    assert_eq!(count.load(Ordering::Relaxed), 4 * 64 * 64);
}

#[test]
fn a_kernel_may_catch_its_panics() {
    let memory = DeviceMemory::new();
    let report = run(&memory, 2, 64, || {
        let caught = std::panic::catch_unwind(|| assert!(tid() % 3 != 1, "caught"));
        assert_eq!(caught.is_err(), tid() % 3 == 1);
        let caught = cuda::barrier_count(caught.is_err());
        assert_eq!(caught, 21);
    })
    .unwrap();
    assert_eq!(report.barriers, 2);
}
