//! Tests that verification finds results that depend on the order of threads or on unwritten
//! memory.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{Buffer, Ptr, config, launch, tid, verify};
use cuda_emulator::intrinsics as cuda;
use cuda_emulator::{
    Blocks, Compare, DeviceMemory, Diagnosis, LaunchConfig, Options, Poison, ThreadOrder, Verify,
};

fn check(
    memory: &DeviceMemory,
    grid: u32,
    block: u32,
    kernel: &(dyn Fn() + Sync),
) -> Result<(), Diagnosis> {
    verify(&config(grid, block), &Verify::default(), memory, kernel).map(drop)
}

#[test]
fn shared_memory_that_was_never_written() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_f32; 64]);
    let o = out.ptr();
    // Unless `complete`, nobody writes the right cell of the halo.
    let kernel = |complete: bool| {
        move || {
            let t = tid() as isize;
            let tile = shared!(f32; 65);
            tile.write(t, t as f32);
            if t == 0 && complete {
                tile.write(64, 0.0);
            }
            cuda::barrier();
            o.write(t, tile.read(t + 1) - tile.read(t));
        }
    };
    // A single launch computes something, and reports nothing.
    launch(&config(1, 64), &Options::default(), &memory, &kernel(false)).unwrap();
    let diagnosis = check(&memory, 1, 64, &kernel(false)).unwrap_err();
    let Diagnosis::UninitialisedRead {
        kernel: name,
        difference,
        poisons,
        ..
    } = &diagnosis
    else {
        panic!("{diagnosis}");
    };
    assert_eq!(*name, "kernel");
    assert_eq!(difference.memory.name, "out");
    assert_eq!(difference.element, 63);
    assert_eq!(difference.count, 1);
    assert_eq!(poisons[0], Poison::Nan);
    // The unwritten memory is shared memory, not the buffer with the different result.
    let message = diagnosis.to_string();
    assert!(message.contains("reads shared memory"), "{message}");
    assert!(
        message.contains("the result depends on what was there: element 63"),
        "{message}"
    );
    check(&memory, 1, 64, &kernel(true)).unwrap();
    assert!(out.get()[..63].iter().all(|&d| d == 1.0));
}

#[test]
fn unwritten_memory_behind_max_min_and_multiplication() {
    // Each of these hides some poison: max(NaN, x) is x, max(-84811, x) is x, min(u, large) is u,
    // and 0 · x is 0 for all x but NaN.
    type Use = fn(u32) -> u32;
    let uses: [(&str, Use); 5] = [
        ("f32 max", |bits| f32::from_bits(bits).max(1.0).to_bits()),
        ("f32 min", |bits| f32::from_bits(bits).min(1.0).to_bits()),
        ("f32 zero times", |bits| {
            (f32::from_bits(bits) * 0.0).to_bits()
        }),
        ("u32 min", |bits| bits.min(5)),
        ("i32 max", |bits| (bits as i32).max(5) as u32),
    ];
    for (name, use_of) in uses {
        let memory = DeviceMemory::new();
        let out = Buffer::new(&memory, "out", &[0_u32; 1]);
        let o = out.ptr();
        let diagnosis = check(&memory, 1, 1, &|| {
            o.write(0, use_of(shared!(u32; 1).read(0)));
        })
        .unwrap_err();
        assert!(
            matches!(diagnosis, Diagnosis::UninitialisedRead { .. }),
            "{name}: {diagnosis}"
        );
    }
}

#[test]
fn shared_memory_of_the_block_before_is_unwritten_again() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 8]);
    let o = out.ptr();
    let diagnosis = check(&memory, 8, 1, &|| {
        let block = cuda::block_idx()[0];
        let tile = shared!(u32; 4);
        if block == 0 {
            tile.write(0, 5);
        }
        o.write(block as isize, tile.read(0));
    })
    .unwrap_err();
    let Diagnosis::UninitialisedRead { difference, .. } = diagnosis else {
        panic!("{diagnosis}");
    };
    assert_eq!(difference.count, 7);
}

#[test]
fn a_missing_barrier_before_reading() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 64]);
    let o = out.ptr();
    // Both phases write before they read, so no thread ever reads poison.
    let kernel = |with_barrier: bool| {
        move || {
            let t = tid() as isize;
            let tile = shared!(u32; 64);
            tile.write(t, 1);
            cuda::barrier();
            tile.write(t, t as u32);
            if with_barrier {
                cuda::barrier();
            }
            o.write(t, tile.read((t + 1) % 64));
        }
    };
    let diagnosis = check(&memory, 1, 64, &kernel(false)).unwrap_err();
    let Diagnosis::OrderDependent {
        difference, orders, ..
    } = &diagnosis
    else {
        panic!("{diagnosis}");
    };
    assert_eq!(difference.memory.name, "out");
    assert_eq!(*orders, [ThreadOrder::Forward, ThreadOrder::Reverse]);
    assert!(diagnosis.to_string().contains("a barrier may be missing"));
    check(&memory, 1, 64, &kernel(true)).unwrap();
}

#[test]
fn a_missing_barrier_at_the_end_of_a_loop() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 96]);
    let o = out.ptr();
    // Without the barrier, a thread overwrites the tile while others still read it.
    let kernel = |with_barrier: bool| {
        move || {
            let t = tid() as isize;
            let tile = shared!(u32; 96);
            let mut sum = 0;
            for round in 0..4 {
                tile.write(t, (t as u32 + 1) * (round + 1));
                cuda::barrier();
                sum += tile.read((t + 17) % 96) + tile.read((t + 95) % 96);
                if with_barrier {
                    cuda::barrier();
                }
            }
            o.write(t, sum);
        }
    };
    let diagnosis = check(&memory, 1, 96, &kernel(false)).unwrap_err();
    assert!(
        matches!(diagnosis, Diagnosis::OrderDependent { .. }),
        "{diagnosis}"
    );
    check(&memory, 1, 96, &kernel(true)).unwrap();
}

#[test]
fn an_unrolled_last_warp_without_warp_barriers() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 1]);
    let o = out.ptr();
    // The textbook's "volatile" reduction, in which no lane waits for another.
    let kernel = |with_barriers: bool| {
        move || {
            let t = tid() as isize;
            let data = shared!(u32; 64);
            data.write(t, t as u32);
            data.write(t + 32, t as u32);
            cuda::warp_barrier(u32::MAX);
            for offset in [32, 16, 8, 4, 2, 1] {
                let sum = data.read(t) + data.read(t + offset);
                if with_barriers {
                    cuda::warp_barrier(u32::MAX);
                }
                if t < offset {
                    data.write(t, sum);
                }
                if with_barriers {
                    cuda::warp_barrier(u32::MAX);
                }
            }
            if t == 0 {
                o.write(0, data.read(0));
            }
        }
    };
    let diagnosis = check(&memory, 1, 32, &kernel(false)).unwrap_err();
    assert!(
        matches!(diagnosis, Diagnosis::OrderDependent { .. }),
        "{diagnosis}"
    );
    check(&memory, 1, 32, &kernel(true)).unwrap();
    assert_eq!(out.get(), [2 * (0..32).sum::<u32>()]);
}

#[test]
fn blocks_that_depend_on_each_other() {
    let memory = DeviceMemory::new();
    let input = Buffer::new(&memory, "field", &[1_u32; 256]);
    let output = Buffer::new(&memory, "next", &[0_u32; 256]);
    let (f, n) = (input.ptr(), output.ptr());
    // A sweep in place: a block reads elements that its neighbour may already have overwritten.
    let sweep = |target: Ptr<u32>| {
        move || {
            let i = (cuda::block_idx()[0] * 32 + tid()) as isize;
            let left = f.read((i - 1).max(0));
            cuda::barrier();
            target.write(i, left + 1);
        }
    };
    let diagnosis = check(&memory, 8, 32, &sweep(f)).unwrap_err();
    assert!(
        matches!(diagnosis, Diagnosis::OrderDependent { .. }),
        "{diagnosis}"
    );
    check(&memory, 8, 32, &sweep(n)).unwrap();
}

#[test]
fn a_race_between_blocks_is_not_taken_for_unwritten_memory() {
    // Every block writes its number; the last one wins.
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 1]);
    let o = out.ptr();
    for _ in 0..20 {
        let diagnosis = check(&memory, 64, 64, &|| {
            o.write(0, cuda::block_idx()[0]);
        })
        .unwrap_err();
        assert!(
            matches!(diagnosis, Diagnosis::OrderDependent { .. }),
            "{diagnosis}"
        );
    }
}

#[test]
fn what_depends_on_timing_is_not_taken_for_unwritten_memory() {
    // The result is the OS thread that runs a block. It differs between runs with blocks in
    // parallel, and is the same with one block at a time.
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u64; 64]);
    let o = out.ptr();
    let result = check(&memory, 64, 64, &|| {
        if tid() == 0 {
            std::thread::sleep(std::time::Duration::from_micros(50));
            let id = std::thread::current().id();
            let mut hasher = std::hash::DefaultHasher::new();
            std::hash::Hash::hash(&id, &mut hasher);
            let hash = std::hash::Hasher::finish(&hasher);
            o.write(cuda::block_idx()[0] as isize, hash);
        }
    });
    if cuda_emulator::parallelism() == 1 {
        result.unwrap();
        return;
    }
    let diagnosis = result.unwrap_err();
    assert!(
        matches!(diagnosis, Diagnosis::OrderDependent { .. }),
        "{diagnosis}"
    );
}

#[test]
fn float_atomics_need_a_tolerance() {
    let memory = DeviceMemory::new();
    let sum = Buffer::new(&memory, "sum", &[0_f32; 1]);
    let s = sum.ptr();
    let kernel = || {
        let i = cuda::block_idx()[0] * 128 + tid();
        let term = 1.0 / (i + 1) as f32;
        // SAFETY: the word is alive and aligned, and only used atomically.
        let cell = unsafe { AtomicU32::from_ptr(s.raw().cast()) };
        cuda::atomic();
        cell.try_update(Ordering::Relaxed, Ordering::Relaxed, |bits| {
            Some((f32::from_bits(bits) + term).to_bits())
        })
        .unwrap();
    };
    let exact = verify(&config(16, 128), &Verify::default(), &memory, &kernel);
    assert!(matches!(
        exact.unwrap_err(),
        Diagnosis::OrderDependent { .. }
    ));
    let mut sum = sum;
    sum.set(&[0.0]);
    let close = Compare::F32 {
        absolute: 0.0,
        relative: 1e-5,
    };
    let tolerant = Verify::default().compare("sum", close);
    let report = verify(&config(16, 128), &tolerant, &memory, &kernel).unwrap();
    assert_eq!(report.atomics, 2048);
    let expected: f64 = (1..=2048).map(|i| 1.0 / f64::from(i)).sum();
    assert!((f64::from(sum.get()[0]) - expected).abs() < 1e-4);
    // A tolerance applies to one label only. The alternative is to ignore the buffer.
    let other = Verify::default().compare("other", close);
    assert!(verify(&config(16, 128), &other, &memory, &kernel).is_err());
    let ignored = Verify::default().compare("sum", Compare::Ignore);
    sum.set(&[0.0]);
    verify(&config(16, 128), &ignored, &memory, &kernel).unwrap();
}

#[test]
fn the_effect_is_that_of_one_launch() {
    let memory = DeviceMemory::new();
    let counter = Buffer::new(&memory, "counter", &[10_u32; 32]);
    let c = counter.ptr();
    check(&memory, 1, 32, &|| {
        let t = tid() as isize;
        c.write(t, c.read(t) + 1);
    })
    .unwrap();
    assert_eq!(counter.get(), [11; 32]);
}

#[test]
fn what_is_not_compared_is_as_the_first_run_left_it() {
    let memory = DeviceMemory::new();
    let order = Buffer::new(&memory, "order", &[0_u32; 65]);
    let o = order.ptr();
    let how = Verify::default().compare("order", Compare::Ignore);
    verify(&config(1, 64), &how, &memory, &|| {
        let position = o.read(64);
        o.write(64, position + 1);
        o.write(position as isize, tid());
    })
    .unwrap();
    assert_eq!(order.get(), (0..65).collect::<Vec<_>>());
}

#[test]
fn only_the_buffers_named_are_touched() {
    let memory = DeviceMemory::new();
    let counter = Buffer::new(&memory, "counter", &[0_u32; 1]);
    let other = Buffer::new(&memory, "other", &[0_u32; 1]);
    let (c, o) = (counter.ptr(), other.ptr());
    let mut how = Verify::default();
    how.buffers = Some(vec![counter.allocation.addr()]);
    // One more run is watched for races, on platforms that support it.
    let runs = how.orders.len() + how.poisons.len() - 1 + usize::from(cfg!(traced));
    verify(&config(1, 1), &how, &memory, &|| {
        c.write(0, c.read(0) + 1);
        o.write(0, o.read(0) + 1);
    })
    .unwrap();
    assert_eq!(counter.get(), [1]);
    assert_eq!(other.get(), [runs as u32]);
    how.buffers = Some(vec![16]);
    assert!(matches!(
        verify(&config(1, 1), &how, &memory, &|| {}).unwrap_err(),
        Diagnosis::InvalidLaunch { .. }
    ));
}

#[test]
fn other_diagnoses_come_through() {
    let memory = DeviceMemory::new();
    let diagnosis = check(&memory, 1, 64, &|| {
        if tid() > 0 {
            cuda::barrier();
        }
    })
    .unwrap_err();
    assert!(matches!(diagnosis, Diagnosis::BarrierDivergence { .. }));
}

#[test]
fn random_orders_repeat_with_their_seed() {
    let memory = DeviceMemory::new();
    let log = Buffer::new(&memory, "log", &[0_u32; 512]);
    let l = log.ptr();
    let position = AtomicU32::new(0);
    let trace = |order| {
        position.store(0, Ordering::Relaxed);
        let mut options = Options::default();
        options.order = order;
        options.blocks = Blocks::OneAtATime;
        let config = LaunchConfig {
            kernel: "trace",
            grid: [2, 1, 1],
            block: [16, 8, 1],
            dynamic_shared_bytes: 0,
        };
        launch(&config, &options, &memory, &|| {
            for _ in 0..2 {
                let at = position.fetch_add(1, Ordering::Relaxed);
                l.write(at as isize, cuda::block_idx()[0] * 1000 + tid());
                cuda::barrier();
            }
        })
        .unwrap();
        log.get()
    };
    let forward = trace(ThreadOrder::Forward);
    assert_eq!(forward[..3], [0, 1, 2]);
    assert_eq!(
        forward[128..131],
        [0, 1, 2],
        "forward after the barrier too"
    );
    assert_eq!(forward[256], 1000);
    let reverse = trace(ThreadOrder::Reverse);
    assert_eq!(reverse[..3], [1127, 1126, 1125]);
    assert_eq!(reverse[128], 1127);
    assert_eq!(reverse[511], 0);
    let random = trace(ThreadOrder::Random(3));
    assert_eq!(random, trace(ThreadOrder::Random(3)));
    assert_ne!(random, trace(ThreadOrder::Random(4)));
    assert_ne!(random, forward);
    assert_ne!(random[..128], random[128..256], "a new order every round");
}

#[test]
fn the_seed_is_in_the_message() {
    let memory = DeviceMemory::new();
    let mut options = Options::default();
    options.order = ThreadOrder::Random(123_456);
    let diagnosis = launch(&config(1, 2), &options, &memory, &|| {
        assert!(tid() > 0, "thread 0 is not welcome");
    })
    .unwrap_err();
    assert!(diagnosis.to_string().contains("seed 123456"), "{diagnosis}");
}
