//! Tests the diagnoses of accesses out of bounds.

use crate::common::{Buffer, Ptr, config, run, tid, verify};
use cuda_emulator::intrinsics as cuda;
use cuda_emulator::{DeviceMemory, Diagnosis, MemoryKind, Poison, Verify};

/// Accesses that guard pages detect: exact, with the thread and the line.
#[cfg(guarded)]
mod exact {
    use super::*;
    use crate::common::{ORDERS, launch, ordered};
    use cuda_emulator::{Access, LaunchConfig, Options, Placement};

    fn expect_out_of_bounds(
        diagnosis: &Diagnosis,
        access: Access,
        name: &str,
        element: i64,
        thread: u32,
    ) {
        let Diagnosis::OutOfBounds {
            at,
            access: found,
            memory,
            element: index,
            ..
        } = diagnosis
        else {
            panic!("{diagnosis}");
        };
        assert_eq!(*found, access, "{diagnosis}");
        assert_eq!(memory.name, name);
        assert_eq!(*index, element, "{diagnosis}");
        assert_eq!(at.thread, Some([thread, 0, 0]), "{diagnosis}");
        let line = at.line.as_ref().expect("tests have line tables");
        assert!(line.file.contains("tests"), "{line}");
    }

    #[test]
    fn a_read_just_past_the_end_of_a_buffer() {
        let memory = DeviceMemory::new();
        let input = Buffer::new(&memory, "input", &[1_f32; 100]);
        let output = Buffer::new(&memory, "output", &[0_f32; 100]);
        let (i, o) = (input.ptr(), output.ptr());
        // A stencil without a check at its last point.
        let shifted = move |reach: isize| {
            let t = tid() as isize;
            let neighbour = (t + 1).min(reach);
            o.write(t, i.read(neighbour));
        };
        for order in ORDERS {
            let broken = launch(&config(1, 100), &ordered(order), &memory, &|| shifted(100));
            expect_out_of_bounds(&broken.unwrap_err(), Access::Read, "input", 100, 99);
            launch(&config(1, 100), &ordered(order), &memory, &|| shifted(99)).unwrap();
        }
    }

    #[test]
    fn a_write_just_past_the_end_of_a_buffer() {
        let memory = DeviceMemory::new();
        let output = Buffer::new(&memory, "output", &[0_u32; 1000]);
        let o = output.ptr();
        // 8 blocks of 128 threads for 1000 elements, without and with the guard.
        let kernel = |guard: bool| {
            move || {
                let i = (cuda::block_idx()[0] * 128 + tid()) as isize;
                if i < 1000 || !guard {
                    o.write(i, 1);
                }
            }
        };
        let diagnosis = run(&memory, 8, 128, kernel(false)).unwrap_err();
        expect_out_of_bounds(&diagnosis, Access::Write, "output", 1000, 104);
        assert_eq!(diagnosis.origin().unwrap().block, Some([7, 0, 0]));
        let text = diagnosis.to_string();
        assert!(
            text.contains("write out of bounds: element 1000 of buffer `output` (1000 elements of 4 bytes), 0 bytes past its end"),
            "{text}"
        );
        run(&memory, 8, 128, kernel(true)).unwrap();
    }

    #[test]
    fn an_index_wrong_by_a_whole_plane() {
        let memory = DeviceMemory::new();
        let before = Buffer::new(&memory, "before", &vec![0_f32; 64 * 64 * 64]);
        let field = Buffer::new(&memory, "field", &vec![0_f32; 64 * 64 * 64]);
        let after = Buffer::new(&memory, "after", &vec![0_f32; 64 * 64 * 64]);
        let f = field.ptr();
        for (offset, element) in [(64 * 64 * 64 + 4095, 266_239), (-4096, -4096)] {
            let diagnosis = run(&memory, 1, 1, || f.write(offset, 1.0)).unwrap_err();
            expect_out_of_bounds(&diagnosis, Access::Write, "field", element, 0);
        }
        assert!(before.get().iter().chain(&after.get()).all(|&x| x == 0.0));
    }

    #[test]
    fn a_read_just_before_the_start_with_placement_at_the_start() {
        let memory = DeviceMemory::with_placement(Placement::Start);
        let input = Buffer::new(&memory, "input", &[1_f32; 33]);
        let i = input.ptr();
        let broken = run(&memory, 1, 33, || {
            i.read(tid() as isize - 1);
        });
        expect_out_of_bounds(&broken.unwrap_err(), Access::Read, "input", -1, 0);
        run(&memory, 1, 33, || {
            i.read((tid() as isize - 1).max(0));
        })
        .unwrap();
    }

    #[test]
    fn elements_of_other_sizes() {
        let memory = DeviceMemory::new();
        let bytes = Buffer::new(&memory, "bytes", &[0_u8; 13]);
        let doubles = Buffer::new(&memory, "doubles", &[0_f64; 7]);
        let (b, d) = (bytes.ptr(), doubles.ptr());
        let diagnosis = run(&memory, 1, 1, || {
            b.read(13);
        });
        expect_out_of_bounds(&diagnosis.unwrap_err(), Access::Read, "bytes", 13, 0);
        let diagnosis = run(&memory, 1, 1, || d.write(7, 0.0));
        expect_out_of_bounds(&diagnosis.unwrap_err(), Access::Write, "doubles", 7, 0);
        run(&memory, 1, 1, || {
            b.read(12);
            d.write(6, 0.0);
        })
        .unwrap();
    }

    #[test]
    fn an_empty_buffer() {
        let memory = DeviceMemory::new();
        let empty = Buffer::<f32>::new(&memory, "empty", &[]);
        let e = empty.ptr();
        let diagnosis = run(&memory, 1, 1, || {
            e.read(0);
        });
        expect_out_of_bounds(&diagnosis.unwrap_err(), Access::Read, "empty", 0, 0);
    }

    #[test]
    fn a_copy_by_the_c_library() {
        let memory = DeviceMemory::new();
        let input = Buffer::new(&memory, "input", &[1_u8; 5000]);
        let output = Buffer::new(&memory, "output", &[0_u8; 6000]);
        let (i, o) = (input.ptr(), output.ptr());
        let copy = |bytes: usize| {
            move || {
                // SAFETY: none beyond 5000 bytes: the test is about that.
                unsafe { std::ptr::copy_nonoverlapping(i.raw(), o.raw(), bytes) };
            }
        };
        let diagnosis = run(&memory, 1, 1, copy(std::hint::black_box(5500))).unwrap_err();
        let Diagnosis::OutOfBounds { memory: name, .. } = &diagnosis else {
            panic!("{diagnosis}");
        };
        assert_eq!(name.name, "input");
        run(&memory, 1, 1, copy(std::hint::black_box(5000))).unwrap();
    }

    #[test]
    fn past_the_end_of_a_shared_array() {
        let memory = DeviceMemory::new();
        // With the halo, 32 points and one neighbour, the tile needs 33 elements.
        fn kernel(with_halo: bool) {
            let t = tid() as isize;
            let tile = if with_halo {
                shared!(f32; 33)
            } else {
                shared!(f32; 32)
            };
            tile.write(t, 0.0);
            if t == 0 {
                tile.write(32, 0.0);
            }
            cuda::barrier();
            tile.read(t + 1);
        }
        for order in ORDERS {
            let broken = launch(&config(3, 32), &ordered(order), &memory, &|| kernel(false));
            let diagnosis = broken.unwrap_err();
            expect_out_of_bounds(&diagnosis, Access::Write, "TILE", 32, 0);
            let Diagnosis::OutOfBounds { memory: name, .. } = &diagnosis else {
                unreachable!();
            };
            assert_eq!(name.kind, MemoryKind::SharedArray);
            assert_eq!((name.elements, name.element_bytes), (32, 4));
            launch(&config(3, 32), &ordered(order), &memory, &|| kernel(true)).unwrap();
        }
    }

    #[test]
    fn past_the_end_of_dynamic_shared_memory() {
        let memory = DeviceMemory::new();
        let mut config = LaunchConfig {
            kernel: "kernel",
            grid: [2, 1, 1],
            block: [64, 1, 1],
            dynamic_shared_bytes: 64 * 4,
        };
        let kernel = || {
            let tile = crate::common::Shared(cuda::dynamic_shared().cast::<f32>());
            let t = tid() as isize;
            tile.write(t, 1.0);
            tile.write(t + 64, 1.0);
        };
        let diagnosis = launch(&config, &Options::default(), &memory, &kernel).unwrap_err();
        let Diagnosis::OutOfBounds {
            memory: name,
            offset,
            ..
        } = &diagnosis
        else {
            panic!("{diagnosis}");
        };
        assert_eq!(name.kind, MemoryKind::DynamicShared);
        assert_eq!(*offset, 256);
        config.dynamic_shared_bytes = 128 * 4;
        launch(&config, &Options::default(), &memory, &kernel).unwrap();
        config.dynamic_shared_bytes = 0;
        let diagnosis = launch(&config, &Options::default(), &memory, &kernel).unwrap_err();
        assert!(matches!(diagnosis, Diagnosis::OutOfBounds { .. }));
    }

    #[test]
    fn null_and_wild_pointers() {
        let memory = DeviceMemory::new();
        let wild: [(usize, Option<usize>, &str); 4] = [
            (0, Some(0), "the null pointer"),
            (16, Some(16), "an offset from the null pointer"),
            (
                0x1234_5678_9000,
                Some(0x1234_5678_9000),
                "belongs to no buffer",
            ),
            // Not canonical on x86-64, beyond the address space elsewhere.
            (0x00F0_0000_0000_0000, None, ""),
        ];
        for (address, expected, words) in wild {
            let diagnosis = run(&memory, 1, 8, || {
                if tid() == 3 {
                    let p = std::ptr::with_exposed_provenance::<u32>(std::hint::black_box(address));
                    // SAFETY: none: the test is about that.
                    unsafe { p.read_volatile() };
                }
            })
            .unwrap_err();
            let Diagnosis::WildAccess { at, address, .. } = &diagnosis else {
                panic!("{diagnosis}");
            };
            assert_eq!(at.thread, Some([3, 0, 0]));
            if expected.is_some() {
                assert_eq!(*address, expected);
            }
            assert!(diagnosis.to_string().contains(words), "{diagnosis}");
        }
    }

    #[test]
    fn use_after_free() {
        let memory = DeviceMemory::new();
        let freed = Buffer::new(&memory, "freed", &[1_u32; 10]);
        let f = freed.ptr();
        let kernel = || {
            f.read(tid() as isize);
        };
        run(&memory, 1, 10, kernel).unwrap();
        drop(freed);
        let diagnosis = run(&memory, 1, 10, kernel).unwrap_err();
        let Diagnosis::UseAfterFree {
            memory: name,
            access,
            ..
        } = &diagnosis
        else {
            panic!("{diagnosis}");
        };
        assert_eq!(name.name, "freed");
        assert_eq!(*access, Access::Read);
        assert!(diagnosis.to_string().contains("has been freed"));
    }

    #[test]
    fn the_line_is_that_of_the_access() {
        let memory = DeviceMemory::new();
        let buffer = Buffer::new(&memory, "buffer", &[1_u32; 10]);
        let p: *mut u32 = buffer.ptr().raw();
        let address = p.expose_provenance();
        let mut line = 0;
        let diagnosis = run(&memory, 1, 1, || {
            let p = std::ptr::with_exposed_provenance_mut::<u32>(address);
            // SAFETY: none: the test is about that.
            unsafe { *p.add(std::hint::black_box(10)) = 5 };
        });
        line += line!() - 2;
        let diagnosis = diagnosis.unwrap_err();
        let found = diagnosis.origin().unwrap().line.as_ref().unwrap();
        assert!(found.file.ends_with("bounds.rs"), "{found}");
        assert_eq!(found.line, line);
    }

    /// Endless recursion, with a stack frame that the compiler cannot remove.
    fn recurse(depth: u32) -> u32 {
        let mut frame = [depth; 64];
        std::hint::black_box(&mut frame);
        if depth == u32::MAX {
            0
        } else {
            recurse(depth + 1).wrapping_add(frame[depth as usize % 64])
        }
    }

    #[test]
    fn a_stack_overflow() {
        let memory = DeviceMemory::new();
        for order in ORDERS {
            let diagnosis = launch(&config(1, 40), &ordered(order), &memory, &|| {
                if tid() == 33 {
                    recurse(0);
                }
            })
            .unwrap_err();
            let Diagnosis::StackOverflow { at, stack_bytes } = &diagnosis else {
                panic!("{diagnosis}");
            };
            assert_eq!(*stack_bytes, 128 * 1024);
            assert_eq!(at.thread, Some([33, 0, 0]));
        }
        // The stacks are usable in another launch, and larger stacks hold more.
        run(&memory, 4, 1024, || cuda::barrier()).unwrap();
        let deep = || {
            std::hint::black_box(recurse(u32::MAX - 1000));
        };
        let diagnosis = run(&memory, 1, 2, deep).unwrap_err();
        assert!(matches!(diagnosis, Diagnosis::StackOverflow { .. }));
        let mut options = Options::default();
        options.stack_bytes = 2 << 20;
        launch(&config(1, 2), &options, &memory, &deep).unwrap();
    }

    #[test]
    fn faults_in_every_block_leave_the_emulator_whole() {
        let memory = DeviceMemory::new();
        let buffer = Buffer::new(&memory, "buffer", &[0_u32; 8]);
        let b = buffer.ptr();
        for _ in 0..200 {
            let diagnosis = run(&memory, 16, 64, || {
                cuda::barrier();
                b.write(8 + tid() as isize, 1);
                cuda::barrier();
            })
            .unwrap_err();
            assert_eq!(diagnosis.origin().unwrap().block, Some([0, 0, 0]));
        }
        run(&memory, 16, 64, || cuda::barrier()).unwrap();
    }
}

#[test]
fn a_write_before_the_start_of_a_buffer_is_found_by_value() {
    let memory = DeviceMemory::new();
    let buffer = Buffer::new(&memory, "buffer", &[0_u32; 10]);
    let b = buffer.ptr();
    let diagnosis = run(&memory, 1, 10, || b.write(tid() as isize - 1, 1)).unwrap_err();
    let Diagnosis::CanaryOverwritten {
        at,
        memory: name,
        element,
        offset,
    } = &diagnosis
    else {
        panic!("{diagnosis}");
    };
    assert_eq!(name.name, "buffer");
    // The overwritten byte nearest to the buffer is the last byte of element -1.
    assert_eq!((*element, *offset), (-1, -1));
    assert_eq!(at.thread, None);
    // The canary is restored, so the next launch does not report it.
    run(&memory, 1, 10, || b.write(tid() as isize, 1)).unwrap();
}

#[test]
fn a_write_into_the_slack_behind_a_buffer_is_found_by_value() {
    let memory = DeviceMemory::new();
    // Ten words, aligned to 16 bytes: two words of slack lie before the guard.
    let allocation = memory.alloc_elements(40, 4, 16, "buffer").unwrap();
    let address = allocation.addr();
    let write = |i: usize| {
        move || {
            let p = std::ptr::with_exposed_provenance_mut::<u32>(address as usize);
            // SAFETY: the address is in the pages of the buffer, though not always in the buffer.
            unsafe { p.add(i).write(1) };
        }
    };
    run(&memory, 1, 1, write(9)).unwrap();
    let diagnosis = run(&memory, 1, 1, write(11)).unwrap_err();
    let Diagnosis::CanaryOverwritten {
        element, memory, ..
    } = &diagnosis
    else {
        panic!("{diagnosis}");
    };
    assert_eq!(*element, 11);
    assert_eq!((memory.elements, memory.element_bytes), (10, 4));
}

#[test]
fn a_write_before_the_start_of_a_shared_array_is_found_by_value() {
    let memory = DeviceMemory::new();
    let kernel = |first: isize| {
        move || {
            let tile = shared!(u32; 64);
            if cuda::block_idx()[0] == 2 {
                tile.write(tid() as isize + first, 1);
            }
        }
    };
    let diagnosis = run(&memory, 5, 64, kernel(-1)).unwrap_err();
    let Diagnosis::CanaryOverwritten {
        at,
        memory: name,
        element,
        ..
    } = &diagnosis
    else {
        panic!("{diagnosis}");
    };
    assert_eq!(at.block, Some([2, 0, 0]), "the block is known");
    assert_eq!(name.kind, MemoryKind::SharedArray);
    assert_eq!(*element, -1);
    run(&memory, 5, 64, kernel(0)).unwrap();
}

#[test]
fn a_read_before_the_start_is_found_by_verification() {
    let memory = DeviceMemory::new();
    let input = Buffer::new(&memory, "input", &[1_u32; 32]);
    let output = Buffer::new(&memory, "output", &[0_u32; 32]);
    let (i, o) = (input.ptr(), output.ptr());
    let kernel = |lowest: isize| {
        move || {
            let t = tid() as isize;
            o.write(t, i.read((t - 1).max(lowest)));
        }
    };
    // A single launch reads the canary, and reports nothing.
    run(&memory, 1, 32, kernel(-1)).unwrap();
    let diagnosis = verify(&config(1, 32), &Verify::default(), &memory, &kernel(-1)).unwrap_err();
    let Diagnosis::UninitialisedRead { difference, .. } = &diagnosis else {
        panic!("{diagnosis}");
    };
    assert_eq!(difference.memory.name, "output");
    assert_eq!(difference.element, 0);
    verify(&config(1, 32), &Verify::default(), &memory, &kernel(0)).unwrap();
}

#[test]
fn fresh_buffers_hold_poison() {
    let memory = DeviceMemory::new();
    let allocation = memory.alloc(8, 4, "fresh").unwrap();
    let mut bytes = [0; 8];
    allocation.copy_to_bytes(0, &mut bytes);
    assert_eq!(bytes[..4], Poison::default().word().to_ne_bytes());
    assert_eq!(bytes[4..], Poison::default().word().to_ne_bytes());
    assert!(f32::from_bits(Poison::default().word()).is_nan());
}

#[test]
fn slices_are_checked_by_rust() {
    let memory = DeviceMemory::new();
    let input = Buffer::new(&memory, "input", &[1_u32; 10]);
    let i: Ptr<u32> = input.ptr();
    let kernel = |last: usize| {
        move || {
            // SAFETY: the buffer has ten elements, which nobody writes.
            let slice = unsafe { std::slice::from_raw_parts(i.raw(), 10) };
            std::hint::black_box(slice[(tid() as usize).min(last)]);
        }
    };
    let diagnosis = run(&memory, 1, 11, kernel(10)).unwrap_err();
    let Diagnosis::Panic { at, message } = &diagnosis else {
        panic!("{diagnosis}");
    };
    assert_eq!(at.thread, Some([10, 0, 0]));
    assert!(message.contains("index out of bounds"), "{message}");
    assert!(at.line.as_ref().unwrap().file.ends_with("bounds.rs"));
    run(&memory, 1, 11, kernel(9)).unwrap();
}
