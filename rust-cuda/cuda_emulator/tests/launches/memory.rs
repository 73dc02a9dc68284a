//! Tests shared memory, textures, asynchronous copies and device memory: correct uses, and the
//! errors of wrong ones.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{Buffer, ORDERS, Shared, config, launch, ordered, run, tid, verify};
use cuda_emulator::intrinsics::{self as cuda, SharedSlot};
use cuda_emulator::{
    Addressing, Blocks, DeviceMemory, Diagnosis, LaunchConfig, MemoryError, Options,
    SHARED_LIMIT_DEFAULT, SHARED_LIMIT_OPT_IN, TextureDescriptor, TextureShape, Verify,
};

#[test]
fn arrays_of_a_block_are_its_own() {
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 64 * 32]);
    let o = out.ptr();
    for order in ORDERS {
        let report = launch(&config(64, 32), &ordered(order), &memory, &|| {
            let (t, b) = (tid() as isize, cuda::block_idx()[0]);
            let first = shared!(u32; 32);
            let second = shared!(u32; 32);
            assert_ne!(first.0, second.0);
            first.write(t, b);
            second.write(t, t as u32);
            cuda::barrier();
            o.write(
                b as isize * 32 + t,
                first.read(31 - t) * 100 + second.read(31 - t),
            );
        })
        .unwrap();
        assert_eq!(report.shared_bytes, 2 * 32 * 4);
        for (i, &v) in out.get().iter().enumerate() {
            assert_eq!(v as usize, i / 32 * 100 + 31 - i % 32);
        }
    }
}

#[test]
fn static_and_dynamic_memory_are_aligned() {
    let memory = DeviceMemory::new();
    let mut config = config(2, 32);
    config.dynamic_shared_bytes = 1000;
    launch(&config, &Options::default(), &memory, &|| {
        static ODD: SharedSlot = SharedSlot::new("ODD", file!(), line!());
        let odd = cuda::shared_static(&ODD, 48, 16);
        assert_eq!(odd.addr() % 16, 0);
        assert_eq!(cuda::dynamic_shared().addr() % 16, 0);
        assert_eq!(cuda::dynamic_shared_len(), 1000);
        assert_eq!(cuda::shared_bytes(), 1048);
        let dynamic = Shared(cuda::dynamic_shared());
        dynamic.write(tid() as isize, 1_u8);
        dynamic.write(999, 1);
    })
    .unwrap();
}

#[test]
fn the_limits_of_shared_memory() {
    let memory = DeviceMemory::new();
    static BIG: SharedSlot = SharedSlot::new("BIG", file!(), line!());
    let big = |bytes: usize| {
        move || {
            let _ = cuda::shared_static(&BIG, bytes, 4);
        }
    };
    run(&memory, 1, 2, big(SHARED_LIMIT_DEFAULT)).unwrap();
    let diagnosis = run(&memory, 1, 2, big(SHARED_LIMIT_DEFAULT + 4)).unwrap_err();
    let Diagnosis::SharedMemoryLimit { needed, limit, .. } = &diagnosis else {
        panic!("{diagnosis}");
    };
    assert_eq!(
        (*needed, *limit),
        (SHARED_LIMIT_DEFAULT + 4, SHARED_LIMIT_DEFAULT)
    );
    assert!(diagnosis.to_string().contains("`BIG`"), "{diagnosis}");

    // The opt-in limit applies to dynamic memory; static arrays may have 48 KiB at most.
    let mut options = Options::default();
    options.shared_limit = SHARED_LIMIT_OPT_IN;
    let mut geometry = config(1, 2);
    geometry.dynamic_shared_bytes = SHARED_LIMIT_OPT_IN - 1024;
    launch(&geometry, &options, &memory, &big(1024)).unwrap();
    for broken in [big(1028), big(SHARED_LIMIT_DEFAULT + 4)] {
        let diagnosis = launch(&geometry, &options, &memory, &broken).unwrap_err();
        assert!(matches!(diagnosis, Diagnosis::SharedMemoryLimit { .. }));
    }
    for limit in [SHARED_LIMIT_DEFAULT, SHARED_LIMIT_OPT_IN] {
        options.shared_limit = limit;
        geometry.dynamic_shared_bytes = limit + 1;
        let diagnosis = launch(&geometry, &options, &memory, &|| {}).unwrap_err();
        assert!(matches!(diagnosis, Diagnosis::InvalidLaunch { .. }));
    }
}

#[test]
fn one_array_has_one_size() {
    let memory = DeviceMemory::new();
    static TILE: SharedSlot = SharedSlot::new("TILE", file!(), line!());
    let kernel = |other: usize| {
        move || {
            let bytes = if tid() == 3 { other } else { 64 };
            let _ = cuda::shared_static(&TILE, bytes, 4);
        }
    };
    let diagnosis = run(&memory, 1, 8, kernel(128)).unwrap_err();
    assert!(matches!(diagnosis, Diagnosis::InvalidOperation { .. }));
    run(&memory, 1, 8, kernel(64)).unwrap();
}

/// A static used in place as shared memory: the same for all blocks of all launches.
static mut IN_PLACE: [u32; 64] = [0; 64];
static IN_PLACE_SLOT: SharedSlot = SharedSlot::new("IN_PLACE", file!(), line!());

fn in_place() -> Shared<u32> {
    let start = (&raw mut IN_PLACE).cast::<u32>();
    // SAFETY: the static has that size, any bits are valid for it, and only kernels that call this
    // function use it.
    unsafe { cuda::register_shared_static(&IN_PLACE_SLOT, start.cast(), 256) };
    Shared(start)
}

#[test]
fn statics_used_in_place_belong_to_one_block_at_a_time() {
    let inside = AtomicU32::new(0);
    let inside = &inside;
    let kernel = |out: crate::common::Ptr<u32>| {
        move || {
            let tile = in_place();
            let (t, b) = (tid() as isize, cuda::block_idx()[0]);
            if t == 0 {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one block");
            }
            tile.write(t, b);
            cuda::barrier();
            if t == 0 {
                // Long enough for other OS threads to enter, if they could.
                std::thread::sleep(Duration::from_micros(100));
                inside.fetch_sub(1, Ordering::SeqCst);
            }
            out.write(b as isize * 64 + t, tile.read(63 - t));
        }
    };
    // Two launches at once, on two OS threads, each with blocks in parallel.
    std::thread::scope(|scope| {
        for order in [ORDERS[0], ORDERS[3]] {
            scope.spawn(move || {
                let memory = DeviceMemory::new();
                let out = Buffer::new(&memory, "out", &[0_u32; 64 * 200]);
                let report = launch(
                    &config(200, 64),
                    &ordered(order),
                    &memory,
                    &kernel(out.ptr()),
                )
                .unwrap();
                assert_eq!(report.shared_bytes, 256);
                for (i, &v) in out.get().iter().enumerate() {
                    assert_eq!(v as usize, i / 64);
                }
            });
        }
    });
    // Every block gets poisoned memory.
    let memory = DeviceMemory::new();
    let out = Buffer::new(&memory, "out", &[0_u32; 3]);
    let o = out.ptr();
    let diagnosis = verify(&config(3, 1), &Verify::default(), &memory, &|| {
        let tile = in_place();
        let b = cuda::block_idx()[0];
        if b == 0 {
            tile.write(0, 9);
        }
        o.write(b as isize, tile.read(0));
    })
    .unwrap_err();
    assert!(matches!(diagnosis, Diagnosis::UninitialisedRead { .. }));
    // An error if all blocks are resident at once.
    let mut options = Options::default();
    options.blocks = Blocks::Resident;
    let diagnosis = launch(&config(3, 1), &options, &memory, &|| {
        in_place();
    })
    .unwrap_err();
    assert!(matches!(diagnosis, Diagnosis::InvalidOperation { .. }));
}

#[test]
fn a_texture_reads_rows_with_a_pitch() {
    let memory = DeviceMemory::new();
    // 5 columns, 3 rows, 8 elements apart; the rest is not part of the texture.
    let mut field = vec![-1.0_f32; 24];
    for row in 0..3 {
        for column in 0..5 {
            field[row * 8 + column] = (row * 10 + column) as f32;
        }
    }
    let buffer = Buffer::new(&memory, "field", &field);
    let texture = |addressing| {
        memory
            .bind_texture(&TextureDescriptor {
                addr: buffer.allocation.addr(),
                shape: TextureShape::Pitch2d {
                    width: 5,
                    height: 3,
                    pitch_bytes: 32,
                    addressing: [addressing; 2],
                    normalised: false,
                },
            })
            .unwrap()
    };
    let (clamp, border) = (texture(Addressing::Clamp), texture(Addressing::Border));
    run(&memory, 1, 1, || {
        for (x, y, clamped, bordered) in [
            (0.0, 0.0, 0.0, 0.0),
            (4.9, 2.9, 24.0, 24.0),
            (2.5, 1.5, 12.0, 12.0),
            (-0.5, 1.0, 10.0, 0.0),
            (5.0, 1.0, 14.0, 0.0),
            (3.0, -7.0, 3.0, 0.0),
            (3.0, 99.0, 23.0, 0.0),
        ] {
            assert_eq!(cuda::tex2d(clamp, x, y), clamped, "({x}, {y})");
            assert_eq!(cuda::tex2d(border, x, y), bordered, "({x}, {y})");
        }
    })
    .unwrap();
}

#[test]
fn a_linear_texture_is_zero_outside() {
    let memory = DeviceMemory::new();
    let buffer = Buffer::new(&memory, "line", &[1_f32, 2.0, 3.0]);
    let handle = memory
        .bind_texture(&TextureDescriptor {
            addr: buffer.allocation.addr() + 4,
            shape: TextureShape::Linear { width: 2 },
        })
        .unwrap();
    run(&memory, 1, 1, || {
        let read: Vec<f32> = (-1..3).map(|i| cuda::tex1d_fetch(handle, i)).collect();
        assert_eq!(read, [0.0, 2.0, 3.0, 0.0]);
    })
    .unwrap();
}

#[test]
fn handles_that_are_none() {
    let memory = DeviceMemory::new();
    let buffer = Buffer::new(&memory, "line", &[1_f32; 16]);
    let descriptor = TextureDescriptor {
        addr: buffer.allocation.addr(),
        shape: TextureShape::Linear { width: 16 },
    };
    let handle = memory.bind_texture(&descriptor).unwrap();
    let fetch = |handle| {
        run(&memory, 1, 1, move || {
            assert_eq!(cuda::tex1d_fetch(handle, 3), 1.0);
        })
    };
    fetch(handle).unwrap();
    for wrong in [0, handle + 1, u64::MAX] {
        let diagnosis = fetch(wrong).unwrap_err();
        assert!(
            matches!(diagnosis, Diagnosis::InvalidOperation { .. }),
            "{diagnosis}"
        );
    }
    // A linear texture that is read as a two-dimensional one.
    let diagnosis = run(&memory, 1, 1, || {
        std::hint::black_box(cuda::tex2d(handle, 0.0, 0.0));
    })
    .unwrap_err();
    assert!(matches!(diagnosis, Diagnosis::InvalidOperation { .. }));
    assert!(memory.unbind_texture(handle));
    assert!(!memory.unbind_texture(handle));
    assert!(fetch(handle).is_err());
    // The next handle is a different one.
    let next = memory.bind_texture(&descriptor).unwrap();
    assert_ne!(next, handle);
    fetch(next).unwrap();
    // A texture of freed memory.
    drop(buffer);
    let diagnosis = fetch(next).unwrap_err();
    assert!(
        matches!(diagnosis, Diagnosis::UseAfterFree { .. }),
        "{diagnosis}"
    );
    let error = memory.bind_texture(&descriptor).unwrap_err();
    assert!(matches!(error, MemoryError::Texture { .. }));
}

#[test]
fn a_texture_must_lie_within_its_memory() {
    let memory = DeviceMemory::new();
    let buffer = Buffer::new(&memory, "line", &[1_f32; 16]);
    let bind = |offset: u64, width| {
        memory.bind_texture(&TextureDescriptor {
            addr: buffer.allocation.addr() + offset,
            shape: TextureShape::Linear { width },
        })
    };
    assert!(bind(0, 17).is_err());
    assert!(bind(4, 16).is_err());
    assert!(bind(64, 1).is_err());
    assert!(bind(0, usize::MAX / 4).is_err());
    assert!(bind(60, 1).is_ok());
    let elsewhere = DeviceMemory::new();
    let foreign = elsewhere.bind_texture(&TextureDescriptor {
        addr: buffer.allocation.addr(),
        shape: TextureShape::Linear { width: 1 },
    });
    assert!(foreign.is_err(), "memory of another device");
}

#[test]
fn asynchronous_copies_arrive_when_waited_for() {
    let memory = DeviceMemory::new();
    let input: Vec<u32> = (0..256).collect();
    let input = Buffer::new(&memory, "input", &input);
    let out = Buffer::new(&memory, "out", &[0_u32; 128]);
    let (i, o) = (input.ptr(), out.ptr());
    let kernel = |wait: bool| {
        move || {
            static TILE: SharedSlot = SharedSlot::new("TILE", file!(), line!());
            let tile = Shared(cuda::shared_static(&TILE, 64 * 8, 16).cast::<u32>());
            let t = tid() as isize;
            let (to, from) = (
                tile.0.wrapping_offset(2 * t),
                i.raw().wrapping_offset(2 * t),
            );
            // SAFETY: both have 64 × 8 bytes.
            unsafe { cuda::cp_async(to.cast(), from.cast(), 8) };
            cuda::cp_async_commit();
            if wait {
                cuda::cp_async_wait(0);
            }
            cuda::barrier();
            o.write(2 * t, tile.read(2 * (63 - t)));
            o.write(2 * t + 1, tile.read(2 * (63 - t) + 1));
        }
    };
    let how = Verify::default();
    let diagnosis = verify(&config(1, 64), &how, &memory, &kernel(false)).unwrap_err();
    assert!(
        matches!(diagnosis, Diagnosis::UninitialisedRead { .. }),
        "{diagnosis}"
    );
    verify(&config(1, 64), &how, &memory, &kernel(true)).unwrap();
    assert_eq!(out.get()[..4], [126, 127, 124, 125]);
}

#[test]
fn a_copy_over_old_contents_is_missed_too_when_not_waited_for() {
    let memory = DeviceMemory::new();
    let input = Buffer::new(&memory, "input", &[1_u32, 2, 3, 4]);
    let out = Buffer::new(&memory, "out", &[0_u32; 4]);
    let (i, o) = (input.ptr(), out.ptr());
    // A pipeline over one buffer: the second copy's data is read too early.
    let kernel = |wait: bool| {
        move || {
            let stage = shared!(u32; 1);
            for k in 0..4 {
                let from = i.raw().wrapping_offset(k);
                // SAFETY: both have four bytes there.
                unsafe { cuda::cp_async(stage.0.cast(), from.cast(), 4) };
                cuda::cp_async_commit();
                if wait || k == 0 {
                    cuda::cp_async_wait(0);
                }
                o.write(k, stage.read(0));
            }
        }
    };
    let how = Verify::default();
    let diagnosis = verify(&config(1, 1), &how, &memory, &kernel(false)).unwrap_err();
    let Diagnosis::UninitialisedRead { difference, .. } = &diagnosis else {
        panic!("{diagnosis}");
    };
    assert_eq!((difference.element, difference.count), (1, 3));
    verify(&config(1, 1), &how, &memory, &kernel(true)).unwrap();
    assert_eq!(out.get(), [1, 2, 3, 4]);
}

#[test]
fn groups_of_copies_arrive_in_order() {
    let memory = DeviceMemory::new();
    let input = Buffer::new(&memory, "input", &[10_u32, 11, 12, 13]);
    let i = input.ptr();
    run(&memory, 2, 2, || {
        let poison = cuda_emulator::Poison::default().word();
        static TILE: SharedSlot = SharedSlot::new("TILE", file!(), line!());
        let tile = Shared(cuda::shared_static(&TILE, 32, 4).cast::<u32>());
        let mine = tid() as isize * 4;
        for k in 0..4 {
            let (to, from) = (tile.0.wrapping_offset(mine + k), i.raw().wrapping_offset(k));
            // SAFETY: the bytes are inside both arrays.
            unsafe { cuda::cp_async(to.cast(), from.cast(), 4) };
            if k < 3 {
                cuda::cp_async_commit();
            }
        }
        let now = || (0..4).map(|k| tile.read(mine + k)).collect::<Vec<_>>();
        assert_eq!(now(), [poison; 4]);
        cuda::cp_async_wait(2);
        assert_eq!(now(), [10, poison, poison, poison]);
        cuda::cp_async_wait(2);
        assert_eq!(now(), [10, poison, poison, poison]);
        cuda::cp_async_wait(0);
        assert_eq!(now(), [10, 11, 12, poison], "the last was not committed");
        cuda::cp_async_wait_all();
        assert_eq!(now(), [10, 11, 12, 13]);
    })
    .unwrap();
}

#[test]
fn copies_can_fill_with_zeros() {
    let memory = DeviceMemory::new();
    let input = Buffer::new(&memory, "input", &[7_u32; 4]);
    let i = input.ptr();
    run(&memory, 1, 1, || {
        static TILE: SharedSlot = SharedSlot::new("TILE", file!(), line!());
        let tile = Shared(cuda::shared_static(&TILE, 32, 16).cast::<u32>());
        // SAFETY: the copy reads eight bytes of the source, and writes 16 of the destination.
        unsafe { cuda::cp_async_zfill(tile.0.cast(), i.raw().cast(), 16, 8) };
        let nothing = std::ptr::null();
        // SAFETY: the copy reads no bytes of the source.
        unsafe { cuda::cp_async_zfill(tile.0.wrapping_add(4).cast(), nothing, 16, 0) };
        cuda::cp_async_wait_all();
        let now: Vec<u32> = (0..8).map(|k| tile.read(k)).collect();
        assert_eq!(now, [7, 7, 0, 0, 0, 0, 0, 0]);
    })
    .unwrap();
}

#[test]
fn copies_of_odd_sizes_or_places_are_refused() {
    let memory = DeviceMemory::new();
    let input = Buffer::new(&memory, "input", &[7_u32; 8]);
    let i = input.ptr();
    let copy = |to: usize, from: usize, bytes: usize, src_bytes: usize| {
        run(&memory, 1, 1, || {
            static TILE: SharedSlot = SharedSlot::new("TILE", file!(), line!());
            let tile = cuda::shared_static(&TILE, 64, 16);
            let source = i.raw().cast::<u8>();
            // SAFETY: the bytes are inside both arrays.
            unsafe {
                cuda::cp_async_zfill(
                    tile.wrapping_add(to),
                    source.wrapping_add(from),
                    bytes,
                    src_bytes,
                );
            }
            cuda::cp_async_wait_all();
        })
    };
    copy(4, 8, 4, 4).unwrap();
    for (to, from, bytes, src_bytes) in [
        (0, 0, 12, 12),
        (0, 0, 0, 0),
        (0, 0, 4, 8),
        (4, 0, 8, 8),
        (0, 4, 8, 8),
        (2, 0, 4, 4),
    ] {
        let diagnosis = copy(to, from, bytes, src_bytes).unwrap_err();
        assert!(
            matches!(diagnosis, Diagnosis::InvalidOperation { .. }),
            "{diagnosis}"
        );
    }
}

#[test]
#[cfg(guarded)]
fn a_copy_past_the_end_is_found_at_its_line() {
    // A device also makes a copy that no thread waits for.
    for wait in [true, false] {
        let memory = DeviceMemory::new();
        let input = Buffer::new(&memory, "input", &[7_u32; 8]);
        let i = input.ptr();
        let mut line = 0;
        let diagnosis = run(&memory, 1, 9, || {
            let tile = shared!(u32; 9);
            let t = tid() as isize;
            let (to, from) = (tile.0.wrapping_offset(t), i.raw().wrapping_offset(t));
            // SAFETY: the words are in the tile and in the input. The last thread's word is beyond
            // the input: the emulator must report that read.
            unsafe { cuda::cp_async(to.cast(), from.cast(), 4) };
            if wait {
                cuda::cp_async_wait_all();
            }
        });
        line += line!() - 5;
        let diagnosis = diagnosis.unwrap_err();
        let Diagnosis::OutOfBounds {
            at,
            memory,
            element,
            ..
        } = &diagnosis
        else {
            panic!("{diagnosis}");
        };
        assert_eq!((memory.name.as_str(), *element), ("input", 8));
        assert_eq!(at.thread, Some([8, 0, 0]));
        assert_eq!(at.line.as_ref().unwrap().line, line);
    }
}

#[test]
fn addresses_are_told_apart() {
    use cuda::Space;
    let memory = DeviceMemory::new();
    let buffer = Buffer::new(&memory, "buffer", &[7_u32; 8]);
    let address = buffer.allocation.addr() as usize;
    let mut config = config(1, 2);
    config.dynamic_shared_bytes = 64;
    launch(&config, &Options::default(), &memory, &|| {
        let tile = shared!(u32; 4);
        let local = 0_u32;
        for (address, space) in [
            (address, Space::Global),
            (address + 31, Space::Global),
            (address + 32, Space::Other),
            (tile.0.addr(), Space::Shared),
            (tile.0.addr() + 15, Space::Shared),
            (tile.0.addr() + 16, Space::Other),
            (cuda::dynamic_shared().addr() + 63, Space::Shared),
            ((&raw const local).addr(), Space::Local),
            (in_place().0.addr(), Space::Shared),
            (0, Space::Other),
        ] {
            assert_eq!(cuda::space_of(address), space, "{address:#x}");
        }
    })
    .unwrap();
}

#[test]
fn device_memory_keeps_count() {
    let memory = DeviceMemory::new();
    let a = memory.alloc(100, 4, "a").unwrap();
    let b = memory.alloc(28, 4, "b").unwrap();
    assert_eq!(memory.live_allocations(), 2);
    assert_eq!(memory.live_bytes(), 128);
    drop(a);
    assert_eq!(memory.live_allocations(), 1);
    assert_eq!((b.len(), b.label()), (28, "b"));
    assert!(memory.alloc(10, 0, "none").is_err());
    assert!(memory.alloc(10, 3, "three").is_err());
    assert!(memory.alloc(usize::MAX - 3, 4, "all").is_err());
    let error = memory.alloc_elements(10, 4, 4, "odd").unwrap_err();
    assert!(matches!(error, MemoryError::Elements { .. }));
    // Far more memory than the quarantine holds.
    for i in 0..2000 {
        let mut c = memory.alloc(4096 + i, 16, "c").unwrap();
        c.copy_from_bytes(i, &[1; 100]);
    }
    assert_eq!(memory.live_allocations(), 1);
}

#[test]
fn host_copies_stay_inside() {
    let memory = DeviceMemory::new();
    let mut a = memory.alloc(8, 4, "a").unwrap();
    let mut b = memory.alloc(8, 4, "b").unwrap();
    a.copy_from_bytes(0, &[1, 2, 3, 4, 5, 6, 7, 8]);
    b.copy_from(0, &a, 4, 4);
    let mut out = [0; 4];
    b.copy_to_bytes(0, &mut out);
    assert_eq!(out, [5, 6, 7, 8]);
    let outside: [&mut dyn FnMut(); 3] = [
        &mut || a.copy_from_bytes(5, &[0; 4]),
        &mut || b.copy_to_bytes(8, &mut [0]),
        &mut || b.copy_to_bytes(usize::MAX, &mut [0; 2]),
    ];
    for copy in outside {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(copy));
        assert!(result.is_err());
    }
}

#[test]
fn geometry_is_checked_before_anything_runs() {
    let memory = DeviceMemory::new();
    let good = config(1, 32);
    let bad = [
        LaunchConfig {
            grid: [0, 1, 1],
            ..good
        },
        LaunchConfig {
            grid: [1, 65_536, 1],
            ..good
        },
        LaunchConfig {
            grid: [1 << 31, 1, 1],
            ..good
        },
        LaunchConfig {
            block: [1, 0, 1],
            ..good
        },
        LaunchConfig {
            block: [1025, 1, 1],
            ..good
        },
        LaunchConfig {
            block: [1, 1, 65],
            ..good
        },
        LaunchConfig {
            block: [32, 33, 1],
            ..good
        },
    ];
    for config in bad {
        let diagnosis = launch(&config, &Options::default(), &memory, &|| {
            panic!("must not run");
        })
        .unwrap_err();
        assert!(
            matches!(diagnosis, Diagnosis::InvalidLaunch { .. }),
            "{config:?}: {diagnosis}"
        );
        assert_eq!(diagnosis.kernel(), "kernel");
    }
    let mut options = Options::default();
    options.stack_bytes = 100;
    assert!(launch(&good, &options, &memory, &|| {}).is_err());
}
