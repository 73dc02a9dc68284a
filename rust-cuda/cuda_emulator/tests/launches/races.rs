//! Tests race detection: planted races are reported with both threads, the memory and the lines;
//! ordered accesses are not reported.

use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::common::{Buffer, config, tid, verify};
use cuda_emulator::intrinsics::{self as cuda, SharedSlot, ShuffleKind};
use cuda_emulator::{
    Access, Blocks, DeviceMemory, Diagnosis, MemoryKind, RacingAccess, ThreadOrder, Verify,
};

/// A pointer that kernels use like a parameter, by plain accesses.
#[derive(Clone, Copy)]
struct Param(u64);

impl Param {
    fn at(self, i: u32) -> *mut u32 {
        std::ptr::with_exposed_provenance_mut::<u32>(self.0 as usize).wrapping_add(i as usize)
    }

    #[inline(always)]
    fn read(self, i: u32) -> u32 {
        // SAFETY: kernels here stay inside their buffers; the tests are about their races.
        unsafe { *self.at(i) }
    }

    #[inline(always)]
    fn write(self, i: u32, value: u32) {
        // SAFETY: as in `read`.
        unsafe { *self.at(i) = value }
    }

    fn atomic(self, i: u32) -> &'static AtomicU32 {
        cuda::atomic();
        // SAFETY: the word is aligned, and its buffer outlives the launch.
        unsafe { AtomicU32::from_ptr(self.at(i)) }
    }

    fn read_volatile(self, i: u32) -> u32 {
        // SAFETY: as in `read`.
        unsafe { self.at(i).read_volatile() }
    }

    fn write_volatile(self, i: u32, value: u32) {
        // SAFETY: as in `read`.
        unsafe { self.at(i).write_volatile(value) }
    }
}

/// The shared array of these kernels, of 256 words.
fn tile() -> Param {
    static TILE: SharedSlot = SharedSlot::new("TILE", file!(), line!());
    let start = cuda::shared_static(&TILE, 256 * 4, 4);
    Param(start.expose_provenance() as u64)
}

fn block() -> u32 {
    cuda::block_idx()[0]
}

fn index() -> u32 {
    block() * cuda::block_dim()[0] + tid()
}

/// A kernel with an `input`, which has at least one value per thread, and an output.
type Kernel = fn(input: Param, out: Param);

/// Verifies a kernel with inputs 0, 1, 2, …
fn check(grid: u32, threads: u32, kernel: Kernel) -> Result<(), Diagnosis> {
    check_so(&Verify::default(), grid, threads, kernel)
}

fn check_so(how: &Verify, grid: u32, threads: u32, kernel: Kernel) -> Result<(), Diagnosis> {
    let memory = DeviceMemory::new();
    let values: Vec<u32> = (0..grid * threads + 64).collect();
    let input = Buffer::new(&memory, "input", &values);
    let out = Buffer::new(&memory, "out", &vec![0_u32; values.len()]);
    let (input, out) = (
        Param(input.ptr().raw().addr() as u64),
        Param(out.ptr().raw().addr() as u64),
    );
    let run = || kernel(input, out);
    verify(&config(grid, threads), how, &memory, &run).map(drop)
}

struct Planted {
    name: &'static str,
    grid: u32,
    threads: u32,
    kernel: Kernel,
    /// The memory with the race.
    memory: (MemoryKind, &'static str),
    /// Whether the report must name threads of different warps or of different blocks.
    across: Across,
    /// Whether some order, with one block at a time, gives a different result.
    shows: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Across {
    Threads,
    Warps,
    Blocks,
}

const BUFFER: (MemoryKind, &str) = (MemoryKind::Buffer, "out");
const SHARED: (MemoryKind, &str) = (MemoryKind::SharedArray, "TILE");

const PLANTED: &[Planted] = &[
    Planted {
        name: "lost update in global memory, threads of one warp",
        grid: 1,
        threads: 32,
        kernel: |_, out| out.write(0, out.read(0) + 1),
        memory: BUFFER,
        across: Across::Threads,
        shows: false,
    },
    Planted {
        name: "lost update in global memory, several warps",
        grid: 1,
        threads: 256,
        kernel: |_, out| {
            if tid().is_multiple_of(32) {
                out.write(0, out.read(0) + 1);
            }
        },
        memory: BUFFER,
        across: Across::Warps,
        shows: false,
    },
    Planted {
        name: "lost update in global memory, several blocks",
        grid: 16,
        threads: 64,
        kernel: |_, out| {
            if tid() == 0 {
                out.write(3, out.read(3) + 1);
            }
        },
        memory: BUFFER,
        across: Across::Blocks,
        shows: false,
    },
    Planted {
        name: "lost update in shared memory, one warp",
        grid: 2,
        threads: 32,
        kernel: |_, out| {
            let tile = tile();
            if tid() == 0 {
                tile.write(0, 0);
            }
            cuda::barrier();
            tile.write(0, tile.read(0) + 1);
            cuda::barrier();
            out.write(index(), tile.read(0));
        },
        memory: SHARED,
        across: Across::Threads,
        shows: false,
    },
    Planted {
        name: "histogram in shared memory without atomics",
        grid: 2,
        threads: 256,
        kernel: |input, out| {
            let bins = tile();
            bins.write(tid(), 0);
            cuda::barrier();
            let bin = input.read(index()) % 16;
            bins.write(bin, bins.read(bin) + 1);
            cuda::barrier();
            if tid() < 16 {
                out.write(block() * 16 + tid(), bins.read(tid()));
            }
        },
        memory: SHARED,
        across: Across::Threads,
        shows: false,
    },
    Planted {
        name: "maximum by reading, comparing and writing",
        grid: 4,
        threads: 64,
        kernel: |input, out| {
            let value = input.read(index());
            if value > out.read(0) {
                out.write(0, value);
            }
        },
        memory: BUFFER,
        across: Across::Threads,
        shows: false,
    },
    Planted {
        name: "different values written to one place",
        grid: 1,
        threads: 64,
        kernel: |_, out| out.write(5, tid()),
        memory: BUFFER,
        across: Across::Threads,
        shows: true,
    },
    Planted {
        name: "different values written to one place by blocks",
        grid: 8,
        threads: 64,
        kernel: |_, out| {
            if tid() == 63 {
                out.write(5, block());
            }
        },
        memory: BUFFER,
        across: Across::Blocks,
        shows: true,
    },
    Planted {
        name: "a neighbour's element read after it was written",
        grid: 1,
        threads: 64,
        kernel: |input, out| {
            let tile = tile();
            tile.write(tid(), 0);
            cuda::barrier();
            tile.write(tid(), input.read(tid()) + 1);
            out.write(tid(), tile.read((tid() + 1) % 64));
        },
        memory: SHARED,
        across: Across::Threads,
        shows: true,
    },
    Planted {
        name: "no barrier between a tile's load and its use",
        grid: 4,
        threads: 256,
        kernel: |input, out| {
            let tile = tile();
            tile.write(tid(), input.read(index()));
            out.write(index(), tile.read(255 - tid()));
        },
        memory: SHARED,
        across: Across::Threads,
        shows: true,
    },
    Planted {
        name: "no barrier at the end of a loop",
        grid: 1,
        threads: 128,
        kernel: |input, out| {
            let tile = tile();
            let mut sum = 0;
            for round in 0..4 {
                tile.write(tid(), input.read(tid()) + round);
                cuda::barrier();
                sum += tile.read((tid() + 17) % 128);
            }
            out.write(tid(), sum);
        },
        memory: SHARED,
        across: Across::Threads,
        shows: true,
    },
    Planted {
        name: "a warp's reduction without warp barriers",
        grid: 1,
        threads: 32,
        kernel: |input, out| {
            let tile = tile();
            tile.write(tid(), input.read(tid()) + 1);
            tile.write(tid() + 32, 0);
            cuda::warp_barrier(u32::MAX);
            for offset in [16, 8, 4, 2, 1] {
                let sum = tile.read(tid()) + tile.read(tid() + offset);
                tile.write(tid(), sum);
            }
            out.write(tid(), tile.read(0));
        },
        memory: SHARED,
        across: Across::Threads,
        shows: true,
    },
    Planted {
        name: "a flag between blocks without atomics",
        grid: 2,
        threads: 32,
        kernel: |_, out| {
            if tid() == 0 && block() == 0 {
                out.write(1, 42);
                out.write(0, 1);
            } else if tid() == 0 && out.read(0) == 1 {
                out.write(2, out.read(1));
            }
        },
        memory: BUFFER,
        across: Across::Blocks,
        shows: true,
    },
    Planted {
        name: "an update in place",
        grid: 8,
        threads: 32,
        kernel: |input, _| {
            let i = index();
            let left = input.read(i.saturating_sub(1));
            cuda::barrier();
            input.write(i, left + 2);
        },
        memory: (MemoryKind::Buffer, "input"),
        across: Across::Blocks,
        shows: true,
    },
    Planted {
        name: "a plain read beside atomic additions",
        grid: 1,
        threads: 64,
        kernel: |_, out| {
            out.atomic(0).fetch_add(1, Ordering::Relaxed);
            let seen = out.read(0);
            out.write(1 + tid(), seen);
        },
        memory: BUFFER,
        across: Across::Threads,
        shows: true,
    },
    Planted {
        name: "an update through an input",
        grid: 1,
        threads: 64,
        kernel: |input, out| {
            let constant = input.at(7).cast_const();
            // SAFETY: the element is inside the buffer. The write through an input is the race of
            // this kernel.
            unsafe { *constant.cast_mut() += tid() + 1 };
            out.write(tid(), 1);
        },
        memory: (MemoryKind::Buffer, "input"),
        across: Across::Threads,
        shows: false,
    },
];

#[test]
fn planted_races_are_found() {
    for planted in PLANTED {
        let name = planted.name;
        let diagnosis = check(planted.grid, planted.threads, planted.kernel).expect_err(name);
        let Diagnosis::DataRace {
            kernel,
            memory,
            accesses,
            ..
        } = &diagnosis
        else {
            panic!("{name}: {diagnosis}");
        };
        assert_eq!(*kernel, "kernel", "{name}");
        assert_eq!(
            (memory.kind, memory.name.as_str()),
            planted.memory,
            "{name}"
        );
        let [first, second] = &**accesses;
        let thread = |access: &RacingAccess| access.at.thread.unwrap()[0];
        let same_block = first.at.block == second.at.block;
        match planted.across {
            Across::Threads => assert_ne!(
                (first.at.block, first.at.thread),
                (second.at.block, second.at.thread),
                "{name}"
            ),
            Across::Warps => {
                assert!(same_block, "{name}");
                assert_ne!(thread(first) / 32, thread(second) / 32, "{name}");
            }
            Across::Blocks => assert!(!same_block, "{name}"),
        }
        assert!(
            accesses.iter().any(|access| access.access == Access::Write),
            "{name}"
        );
        for access in &**accesses {
            let line = access.at.line.as_ref().expect(name);
            assert!(line.file.ends_with("races.rs"), "{name}: {line}");
        }
        let message = diagnosis.to_string();
        for part in [
            "kernel `kernel`",
            "data race",
            planted.memory.1,
            "thread (",
            "races.rs:",
        ] {
            assert!(message.contains(part), "{name}: {message}");
        }
    }
}

#[test]
fn some_planted_races_show_in_the_order_of_threads() {
    let mut how = Verify::default();
    how.watched_accesses = 0;
    how.options.blocks = Blocks::OneAtATime;
    for planted in PLANTED {
        let shown = check_so(&how, planted.grid, planted.threads, planted.kernel).is_err();
        assert_eq!(shown, planted.shows, "{}", planted.name);
    }
}

/// The variable that names the file of a child process.
const COPY: &str = "HALO_RACES_COPY";

#[test]
#[ignore = "run by the test below, as a program without debug information"]
fn child_without_debug_information() {
    // Debug information is read from the program's file.
    std::fs::remove_file(std::env::var_os(COPY).expect("the test below sets it")).unwrap();
    for planted in PLANTED {
        let diagnosis =
            check(planted.grid, planted.threads, planted.kernel).expect_err(planted.name);
        let message = diagnosis.to_string();
        let Diagnosis::PossibleDataRace { memory, .. } = diagnosis else {
            panic!("{}: {message}", planted.name);
        };
        assert_eq!(memory.name, planted.memory.1, "{}", planted.name);
        for part in ["kernel `kernel`", "may be", "line-tables-only"] {
            assert!(message.contains(part), "{message}");
        }
    }
    // Atomic additions, and accesses that barriers order, need no debug information.
    for name in ["atomic additions", "a tile with barriers, in a loop"] {
        let &(_, grid, threads, kernel) = CORRECT.iter().find(|it| it.0 == name).unwrap();
        check(grid, threads, kernel).expect(name);
    }
}

#[test]
fn without_debug_information_races_are_possible() {
    let copy = std::env::temp_dir().join(format!("halo-races-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let output = std::process::Command::new(&copy)
        .args([
            "races::child_without_debug_information",
            "--exact",
            "--ignored",
        ])
        .env(COPY, &copy)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

/// Kernels without races: their accesses are ordered, or all threads write the same value.
const CORRECT: &[(&str, u32, u32, Kernel)] = &[
    ("atomic additions", 8, 256, |_, out| {
        out.atomic(0).fetch_add(1, Ordering::Relaxed);
    }),
    ("a maximum by atomics", 8, 64, |input, out| {
        out.atomic(0)
            .fetch_max(input.read(index()), Ordering::Relaxed);
    }),
    (
        "a histogram by atomics in shared memory",
        2,
        256,
        |input, out| {
            let bins = tile();
            bins.write(tid(), 0);
            cuda::barrier();
            bins.atomic(input.read(index()) % 16)
                .fetch_add(1, Ordering::Relaxed);
            cuda::barrier();
            if tid() < 16 {
                out.atomic(tid())
                    .fetch_add(bins.read(tid()), Ordering::Relaxed);
            }
        },
    ),
    ("a tile with barriers, in a loop", 4, 256, |input, out| {
        let tile = tile();
        let mut sum = 0;
        for round in 0..4 {
            tile.write(tid(), input.read(index()) + round);
            cuda::barrier();
            sum += tile.read(255 - tid());
            cuda::barrier();
        }
        out.write(index(), sum);
    }),
    (
        "a warp's reduction with warp barriers",
        2,
        64,
        |input, out| {
            let tile = tile();
            let first = tid() / 32 * 64;
            let lane = tid() % 32;
            tile.write(first + lane, input.read(index()));
            tile.write(first + lane + 32, 0);
            cuda::warp_barrier(u32::MAX);
            for offset in [16, 8, 4, 2, 1] {
                let sum = tile.read(first + lane) + tile.read(first + lane + offset);
                cuda::warp_barrier(u32::MAX);
                tile.write(first + lane, sum);
                cuda::warp_barrier(u32::MAX);
            }
            out.write(index(), tile.read(first));
        },
    ),
    ("a warp's reduction by shuffles", 4, 64, |input, out| {
        let mut sum = input.read(index());
        for offset in [16, 8, 4, 2, 1] {
            let other = cuda::shuffle(u32::MAX, u64::from(sum), ShuffleKind::Down, offset, 32);
            sum = sum.wrapping_add(other.0 as u32);
        }
        if tid().is_multiple_of(32) {
            out.write(index() / 32, sum);
        }
    }),
    (
        "a chain of warp barriers with parts of the warp",
        1,
        32,
        |_, out| {
            let tile = tile();
            if tid() == 0 {
                tile.write(0, 7);
            }
            if tid() < 2 {
                cuda::warp_barrier(0b011);
            }
            if tid() == 1 || tid() == 2 {
                cuda::warp_barrier(0b110);
            }
            if tid() == 2 {
                out.write(0, tile.read(0));
            }
        },
    ),
    ("the last block adds up", 8, 64, |input, out| {
        if tid() == 0 {
            let sum = (0..64).map(|k| input.read(block() * 64 + k)).sum();
            out.write(1 + block(), sum);
            fence(Ordering::SeqCst);
        }
        let tile = tile();
        if tid() == 0 {
            tile.write(0, out.atomic(0).fetch_add(1, Ordering::Relaxed));
        }
        cuda::barrier();
        if tile.read(0) == 7 {
            fence(Ordering::SeqCst);
            if tid() == 1 {
                out.write(20, (0..8).map(|k| out.read(1 + k)).sum());
            }
            if tid() == 0 {
                // Resets the counter for the next launch.
                out.write(0, 0);
            }
        }
    }),
    ("the same value written by all", 4, 64, |_, out| {
        out.write(0, 1)
    }),
    ("elements of their own", 8, 256, |input, out| {
        out.write(index(), input.read(index()) + input.read(index() + 1));
    }),
    ("copies that are waited for", 2, 64, |input, out| {
        let tile = tile();
        // SAFETY: the words are inside both arrays.
        unsafe { cuda::cp_async(tile.at(tid()).cast(), input.at(index()).cast(), 4) };
        cuda::cp_async_commit();
        cuda::cp_async_wait(0);
        cuda::barrier();
        out.write(index(), tile.read(63 - tid()));
    }),
];

/// The same, with blocks that wait for other blocks and so must be resident together.
const WAITING: &[(&str, u32, u32, Kernel)] = &[
    (
        "a block that waits for the one before, by volatile reads",
        4,
        32,
        |_, out| {
            if tid() == 0 && block() > 0 {
                while out.read_volatile(block() - 1) == 0 {
                    cuda::step();
                }
                fence(Ordering::SeqCst);
                out.write(16 + block(), out.read(15 + block()) + 1);
            }
            if tid() == 0 {
                fence(Ordering::SeqCst);
                out.write_volatile(block(), 1);
            }
        },
    ),
    (
        "a flag that is published and awaited by atomics",
        2,
        32,
        |_, out| {
            if tid() == 0 && block() == 0 {
                out.write(1, 42);
                out.atomic(0).store(1, Ordering::Release);
            } else if tid() == 0 {
                while out.atomic(0).load(Ordering::Acquire) == 0 {}
                out.write(2, out.read(1));
            }
        },
    ),
];

#[test]
fn what_is_ordered_is_not_blamed() {
    for &(name, grid, threads, kernel) in CORRECT {
        if let Err(diagnosis) = check(grid, threads, kernel) {
            panic!("{name}: {diagnosis}");
        }
    }
    let mut resident = Verify::default();
    resident.options.blocks = Blocks::Resident;
    for &(name, grid, threads, kernel) in WAITING {
        if let Err(diagnosis) = check_so(&resident, grid, threads, kernel) {
            panic!("{name}: {diagnosis}");
        }
    }
}

/// When a block starts, it notes how many blocks have ended; then it greets its neighbours twice.
/// On a GPU, blocks that are not its neighbours may have ended before it starts.
#[test]
fn blocks_that_are_resident_may_start_late() {
    const BLOCKS: u32 = 8;
    let mut how = Verify::default();
    how.options.blocks = Blocks::Resident;
    let diagnosis = check_so(&how, BLOCKS, 1, |_, out| {
        let (b, last) = (block(), BLOCKS - 1);
        let (ended, greeted) = (out.atomic(0), |b: u32| out.atomic(1 + b));
        let before = ended.load(Ordering::SeqCst);
        for greeting in 1..=2 {
            greeted(b).store(greeting, Ordering::SeqCst);
            for neighbour in [b.saturating_sub(1), last.min(b + 1)] {
                while greeted(neighbour).load(Ordering::SeqCst) < greeting {}
            }
        }
        out.atomic(20 + b).store(before, Ordering::SeqCst);
        ended.fetch_add(1, Ordering::SeqCst);
    })
    .unwrap_err();
    let Diagnosis::OrderDependent { orders, .. } = &diagnosis else {
        panic!("{diagnosis}");
    };
    assert!(matches!(orders[1], ThreadOrder::Random(_)), "{diagnosis}");
}

#[test]
fn the_line_of_an_asynchronous_copy_is_the_kernels() {
    let diagnosis = check(1, 64, |input, out| {
        let tile = tile();
        // SAFETY: the words are inside both arrays.
        unsafe { cuda::cp_async(tile.at(tid()).cast(), input.at(tid()).cast(), 4) };
        cuda::cp_async_commit();
        cuda::cp_async_wait(0);
        out.write(tid(), tile.read(63 - tid()));
    })
    .unwrap_err();
    let Diagnosis::DataRace { accesses, .. } = &diagnosis else {
        panic!("{diagnosis}");
    };
    for access in &**accesses {
        let line = access.at.line.as_ref().unwrap();
        assert!(line.file.ends_with("races.rs"), "{diagnosis}");
    }
}

#[test]
fn nothing_is_watched_when_not_asked_for() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32]);
    let out = Param(out.allocation.addr());
    let mut how = Verify::default();
    how.watched_accesses = 0;
    let add = || out.write(0, out.read(0) + 1);
    // The sum is correct in every order in which each thread runs to its end without interruption.
    verify(&config(1, 64), &how, &memory, &add).unwrap();
}

#[test]
fn memory_is_accessible_afterwards() {
    let memory = DeviceMemory::new();
    let mut out = Buffer::new(&memory, "out", &[0_u32; 64]);
    let param = Param(out.allocation.addr());
    verify(&config(1, 64), &Verify::default(), &memory, &|| {
        param.write(tid(), 1)
    })
    .unwrap();
    out.set(&[2; 64]);
    assert_eq!(out.get(), [2; 64]);
    // Memory is also accessible after a launch that fails in the middle.
    let fails = || {
        param.write(tid(), 1);
        assert!(tid() < 40, "fails");
    };
    verify(&config(1, 64), &Verify::default(), &memory, &fails).unwrap_err();
    assert_eq!(out.get()[39], 1);
    crate::common::run(&memory, 1, 64, || param.write(tid(), 3)).unwrap();
    assert_eq!(out.get(), [3; 64]);
}
