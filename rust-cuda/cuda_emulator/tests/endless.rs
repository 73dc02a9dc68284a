//! Tests kernels that never end, and threads and blocks that wait for each other.

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{Buffer, ORDERS, config, launch, ordered, tid};
use cuda_emulator::intrinsics as cuda;
use cuda_emulator::{Blocks, DeviceMemory, Diagnosis, Limit, Options};

fn word(buffer: &Buffer<u32>) -> impl Fn() -> &'static AtomicU32 + Sync + Copy + use<> {
    let p = buffer.ptr();
    // SAFETY: the word is alive and aligned, and only used atomically while the test runs.
    move || unsafe { AtomicU32::from_ptr(p.raw()) }
}

#[test]
fn a_wait_for_what_never_comes_reaches_the_step_limit() {
    let memory = DeviceMemory::new();
    let flag = Buffer::new(&memory, "flag", &[0_u32]);
    let word = word(&flag);
    // The first thread waits for the second to set the flag, or no thread sets it.
    let kernel = |set: bool| {
        move || {
            if tid() == 0 {
                while word().load(Ordering::Relaxed) == 0 {
                    cuda::step();
                }
            } else if set {
                word().store(1, Ordering::Relaxed);
            }
        }
    };
    for order in ORDERS {
        let mut options = ordered(order);
        options.step_limit = 10_000;
        let diagnosis = launch(&config(1, 2), &options, &memory, &kernel(false)).unwrap_err();
        let Diagnosis::NeverEnds { at, limit } = &diagnosis else {
            panic!("{diagnosis}");
        };
        assert_eq!(*limit, Limit::Steps(10_000));
        assert_eq!(at.thread, Some([0, 0, 0]));
        assert!(at.line.as_ref().unwrap().file.ends_with("endless.rs"));
        launch(&config(1, 2), &options, &memory, &kernel(true)).unwrap();
        word().store(0, Ordering::Relaxed);
    }
}

#[test]
fn a_warp_that_waits_as_one_lets_the_other_warps_run() {
    let memory = DeviceMemory::new();
    let flag = Buffer::new(&memory, "flag", &[0_u32]);
    let word = word(&flag);
    for order in ORDERS {
        // For several numbers of operations between two steps at which a warp can yield. The first
        // warp waits for the second, or the second for the first.
        for (operations, waiting) in [(1, 0), (1, 1), (2, 0), (3, 1), (7, 0), (31, 1)] {
            let kernel = move || {
                if tid() / 32 != waiting {
                    word().store(1, Ordering::Relaxed);
                    return;
                }
                loop {
                    cuda::step();
                    let mut there = true;
                    for _ in 0..operations {
                        there &= cuda::vote_all(u32::MAX, word().load(Ordering::Relaxed) == 1);
                    }
                    if there {
                        break;
                    }
                }
            };
            let mut options = ordered(order);
            options.step_limit = 10_000;
            launch(&config(1, 64), &options, &memory, &kernel).unwrap();
            word().store(0, Ordering::Relaxed);
        }
    }
}

#[test]
fn endless_barriers_and_warp_operations_reach_the_step_limit() {
    let memory = DeviceMemory::new();
    let kernels: [fn(); 3] = [
        || cuda::barrier(),
        || cuda::warp_barrier(u32::MAX),
        || {
            std::hint::black_box(cuda::active_mask());
        },
    ];
    for kernel in kernels {
        let mut options = Options::default();
        options.step_limit = 1000;
        let diagnosis = launch(&config(2, 64), &options, &memory, &|| {
            loop {
                kernel();
            }
        })
        .unwrap_err();
        assert!(matches!(diagnosis, Diagnosis::NeverEnds { .. }));
        launch(&config(2, 64), &options, &memory, &|| {
            for _ in 0..1000 {
                kernel();
            }
        })
        .unwrap();
    }
}

#[test]
fn steps_that_a_launch_needs_by_design_are_not_counted() {
    let memory = DeviceMemory::new();
    let kernel = |rounds: u32| {
        move || {
            for _ in 0..rounds {
                cuda::barrier();
            }
        }
    };
    let mut options = Options::default();
    options.step_limit = 100;
    for (rounds, expected, ends) in [
        (100, 0, true),
        (101, 0, false),
        (5000, 4900, true),
        (5001, 4900, false),
        (5001, u64::MAX, true),
    ] {
        options.expected_steps = expected;
        let report = launch(&config(2, 33), &options, &memory, &kernel(rounds));
        assert_eq!(report.is_ok(), ends, "{rounds} of {expected}: {report:?}");
        if let Err(diagnosis) = report {
            let Diagnosis::NeverEnds { limit, .. } = diagnosis else {
                panic!("{diagnosis}");
            };
            assert_eq!(limit, Limit::Steps(100 + expected));
        }
    }
    // The time limit grows with the expected steps, too.
    options.time_limit = Some(Duration::ZERO);
    options.expected_steps = 1_000_000;
    launch(&config(2, 33), &options, &memory, &kernel(5000)).unwrap();
}

#[test]
fn a_spin_lock_between_threads_of_a_block_works() {
    let memory = DeviceMemory::new();
    let lock = Buffer::new(&memory, "lock", &[0_u32]);
    let count = Buffer::new(&memory, "count", &[0_u32]);
    let (word, c) = (word(&lock), count.ptr());
    for order in ORDERS {
        let mut options = ordered(order);
        options.blocks = Blocks::OneAtATime;
        launch(&config(4, 64), &options, &memory, &|| {
            loop {
                cuda::atomic();
                if word().swap(1, Ordering::Acquire) == 0 {
                    break;
                }
            }
            let before = c.read(0);
            // Other threads that run here must not get the lock.
            for _ in 0..5 {
                cuda::step();
            }
            c.write(0, before + 1);
            word().store(0, Ordering::Release);
        })
        .unwrap();
    }
    assert_eq!(count.get(), [4 * 64 * ORDERS.len() as u32]);
}

/// A grid-wide barrier with an atomic counter.
fn grid_barrier(word: &AtomicU32, blocks: u32) {
    cuda::barrier();
    if tid() == 0 {
        cuda::atomic();
        word.fetch_add(1, Ordering::AcqRel);
        while word.load(Ordering::Acquire) < blocks {
            cuda::step();
        }
    }
    cuda::barrier();
}

#[test]
fn blocks_that_wait_for_each_other_must_be_resident() {
    let memory = DeviceMemory::new();
    let mut counter = Buffer::new(&memory, "counter", &[0_u32]);
    let data = Buffer::new(&memory, "data", &[0_u32; 16]);
    let out = Buffer::new(&memory, "out", &[0_u32; 16]);
    let (d, o) = (data.ptr(), out.ptr());
    for order in ORDERS {
        counter.set(&[0]);
        let word = word(&counter);
        let kernel = || {
            let b = cuda::block_idx()[0] as isize;
            if tid() == 0 {
                d.write(b, b as u32 + 1);
            }
            grid_barrier(word(), 16);
            if tid() == 1 {
                o.write(b, d.read((b + 1) % 16));
            }
        };
        let mut options = ordered(order);
        options.step_limit = 20_000;
        options.blocks = Blocks::OneAtATime;
        let diagnosis = launch(&config(16, 40), &options, &memory, &kernel).unwrap_err();
        assert!(
            matches!(diagnosis, Diagnosis::NeverEnds { .. }),
            "{diagnosis}"
        );
        counter.set(&[0]);
        options.blocks = Blocks::Resident;
        let report = launch(&config(16, 40), &options, &memory, &kernel).unwrap();
        assert_eq!(report.barriers, 32);
        let expected: Vec<u32> = (0..16).map(|b| (b + 1) % 16 + 1).collect();
        assert_eq!(out.get(), expected);
    }
}

#[test]
fn a_block_waits_for_those_that_began_before_it() {
    // The last of 8 blocks to begin waits for the others. One of these sleeps, which takes time but
    // no steps, as on a busy machine.
    let memory = DeviceMemory::new();
    let mut begun = Buffer::new(&memory, "begun", &[0_u32]);
    let mut done = Buffer::new(&memory, "done", &[0_u32]);
    let seen = Buffer::new(&memory, "seen", &[0_u32]);
    let s = seen.ptr();
    for order in ORDERS {
        begun.set(&[0]);
        done.set(&[0]);
        let (begun, done) = (word(&begun), word(&done));
        launch(&config(8, 64), &ordered(order), &memory, &|| {
            if tid() == 0 {
                cuda::atomic();
                match begun().fetch_add(1, Ordering::Relaxed) {
                    6 => std::thread::sleep(Duration::from_millis(300)),
                    7 => {
                        while done().load(Ordering::Acquire) < 7 {
                            cuda::atomic();
                        }
                        s.write(0, done().load(Ordering::Relaxed));
                    }
                    _ => {}
                }
                done().fetch_add(1, Ordering::Release);
            }
        })
        .unwrap();
        assert_eq!(seen.get(), [7]);
    }
}

#[test]
fn resident_blocks_are_diagnosed_like_others() {
    let memory = DeviceMemory::new();
    let mut options = Options::default();
    options.blocks = Blocks::Resident;
    let diagnosis = launch(&config(8, 64), &options, &memory, &|| {
        if cuda::block_idx()[0] != 5 || tid() < 10 {
            cuda::barrier();
        }
    })
    .unwrap_err();
    assert!(matches!(diagnosis, Diagnosis::BarrierDivergence { .. }));
    assert_eq!(diagnosis.origin().unwrap().block, Some([5, 0, 0]));
    let report = launch(&config(8, 64), &options, &memory, &|| cuda::barrier()).unwrap();
    assert_eq!(report.blocks, 8);
    let diagnosis = launch(&config(1000, 1024), &options, &memory, &|| {}).unwrap_err();
    assert!(matches!(diagnosis, Diagnosis::InvalidLaunch { .. }));
}

#[test]
fn the_time_limit_ends_threads_that_take_steps() {
    let memory = DeviceMemory::new();
    let mut options = Options::default();
    options.step_limit = u64::MAX;
    options.time_limit = Some(Duration::from_millis(50));
    let begun = Instant::now();
    let diagnosis = launch(&config(4, 64), &options, &memory, &|| {
        loop {
            cuda::barrier();
        }
    })
    .unwrap_err();
    let Diagnosis::NeverEnds { limit, .. } = &diagnosis else {
        panic!("{diagnosis}");
    };
    assert_eq!(*limit, Limit::Time(Duration::from_millis(50)));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// An endless loop without calls.
#[cfg(guarded)]
fn spin() {
    let mut i = 0_u64;
    loop {
        i = std::hint::black_box(i + 1);
        if i == u64::MAX {
            break;
        }
    }
}

#[test]
#[cfg(guarded)]
fn the_time_limit_ends_threads_that_call_nothing() {
    let memory = DeviceMemory::new();
    let mut options = Options::default();
    options.time_limit = Some(Duration::from_millis(30));
    for blocks in [Blocks::Parallel, Blocks::OneAtATime, Blocks::Resident] {
        options.blocks = blocks;
        let begun = Instant::now();
        let diagnosis = launch(&config(8, 128), &options, &memory, &|| {
            cuda::barrier();
            if tid() == 77 {
                spin();
            }
            cuda::barrier();
        })
        .unwrap_err();
        let Diagnosis::NeverEnds { at, limit } = &diagnosis else {
            panic!("{diagnosis}");
        };
        assert_eq!(*limit, Limit::Time(Duration::from_millis(30)));
        assert_eq!(at.thread, Some([77, 0, 0]));
        assert!(at.line.is_some(), "{diagnosis}");
        assert!(begun.elapsed() < Duration::from_secs(20));
        // The next launch works.
        let report = launch(&config(8, 128), &options, &memory, &|| cuda::barrier());
        assert_eq!(report.unwrap().barriers, 8);
    }
}

/// Kernels that are almost always in code that holds a lock.
#[cfg(guarded)]
mod in_locks {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, ExitStatus, Stdio};
    use std::thread::JoinHandle;

    /// Launches a kernel that exceeds the time limit, and prints afterwards.
    fn ends(kernel: &(dyn Fn() + Sync)) {
        let memory = DeviceMemory::new();
        let mut options = Options::default();
        options.time_limit = Some(Duration::from_millis(30));
        let diagnosis = launch(&config(2, 32), &options, &memory, &kernel);
        assert!(diagnosis.is_err());
        println!("the launch has ended: {}", diagnosis.unwrap_err());
        std::io::stdout().flush().unwrap();
    }

    #[test]
    #[ignore = "prints without end; run by the tests below"]
    fn child_prints_for_ever() {
        ends(&|| {
            loop {
                println!("for ever {}", tid());
            }
        });
    }

    #[test]
    #[ignore = "prints without end; run by the tests below"]
    fn child_prints_for_ever_and_asks_for_nothing() {
        ends(&|| {
            loop {
                println!("for ever");
            }
        });
    }

    /// Its printing takes long, and then panics.
    struct Panics;

    impl std::fmt::Display for Panics {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(300) {
                std::hint::spin_loop();
            }
            panic!("while it prints");
        }
    }

    #[test]
    #[ignore = "prints; run by the tests below"]
    fn child_panics_while_it_prints() {
        ends(&|| println!("{}", Panics));
    }

    /// Prints at each level. A level needs less stack than printing, so the overflow happens while
    /// it prints.
    fn print_deeper(level: u64) -> u64 {
        println!("level {level}");
        if level == u64::MAX {
            return 0;
        }
        std::hint::black_box(print_deeper(level + 1)) + 1
    }

    #[test]
    #[ignore = "run by the tests below"]
    fn child_overflows_its_stack_while_it_prints() {
        ends(&|| {
            print_deeper(0);
        });
    }

    /// Its printing never ends.
    struct Deeper(u64);

    impl std::fmt::Display for Deeper {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{}", Deeper(std::hint::black_box(self.0 + 1)))?;
            write!(f, "{}", self.0)
        }
    }

    #[test]
    #[ignore = "ends its process; run by the tests below"]
    fn child_overflows_its_stack_within_one_line() {
        ends(&|| println!("{}", Deeper(0)));
    }

    /// The output of such a child, which must succeed in time.
    fn printed_by(child: &str) -> String {
        let (status, text, _) = ended(child);
        let end = text.lines().rev().take(6).collect::<Vec<_>>();
        assert!(status.success(), "{status}: … {end:?}");
        text
    }

    /// The exit status of such a child, its standard output and its standard error.
    fn ended(child: &str) -> (ExitStatus, String, String) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([&format!("in_locks::{child}"), "--exact", "--ignored"])
            .arg("--nocapture")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        fn read(mut out: impl Read + Send + 'static) -> JoinHandle<String> {
            std::thread::spawn(move || {
                let mut text = String::new();
                out.read_to_string(&mut text).unwrap();
                text
            })
        }
        let out = read(child.stdout.take().unwrap());
        let errors = read(child.stderr.take().unwrap());
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > Duration::from_secs(100) {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        (status, out.join().unwrap(), errors.join().unwrap())
    }

    #[test]
    fn a_kernel_that_prints_leaves_the_output_usable() {
        for child in [
            "child_prints_for_ever",
            "child_prints_for_ever_and_asks_for_nothing",
        ] {
            let text = printed_by(child);
            let end = text.rsplit("the launch has ended: ").next().unwrap();
            assert!(end.contains("may never end"), "{child}: {end}");
        }
    }

    #[test]
    fn a_kernel_that_overflows_its_stack_while_it_prints_leaves_the_output_usable() {
        let text = printed_by("child_overflows_its_stack_while_it_prints");
        let end = text.rsplit("the launch has ended: ").next().unwrap();
        assert!(end.contains("stack overflow"), "{end}");
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_kernel_that_overflows_its_stack_within_a_lock_ends_the_process_and_says_so() {
        let (status, text, errors) = ended("child_overflows_its_stack_within_one_line");
        assert!(!status.success() && !text.contains("has ended"), "{text}");
        let said = "stack overflow in a call that may hold a lock";
        let place = "kernel `kernel`, block (";
        assert!(errors.contains(said) && errors.contains(place), "{errors}");
    }

    #[test]
    fn a_panic_while_it_prints_unwinds_after_the_time_is_up() {
        let text = printed_by("child_panics_while_it_prints");
        assert!(text.contains("the launch has ended: "), "{text}");
    }
}

#[test]
fn a_launch_within_its_time_is_left_alone() {
    let memory = DeviceMemory::new();
    let mut options = Options::default();
    options.time_limit = Some(Duration::from_millis(100));
    for _ in 0..50 {
        launch(&config(4, 64), &options, &memory, &|| cuda::barrier()).unwrap();
    }
    options.time_limit = None;
    launch(&config(4, 64), &options, &memory, &|| cuda::barrier()).unwrap();
    options.time_limit = Some(Duration::MAX);
    launch(&config(4, 64), &options, &memory, &|| cuda::barrier()).unwrap();
}
