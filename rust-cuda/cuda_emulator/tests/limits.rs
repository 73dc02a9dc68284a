//! Tests requests that cannot be met: too much memory, impossible alignments.
//!
//! A test that limits the memory of a process runs a test marked `ignore` in a child process.

mod common;

use common::{Buffer, config, run, tid, verify};
use cuda_emulator::{
    Addressing, DeviceMemory, Diagnosis, MemoryError, TextureDescriptor, TextureShape, Verify,
};

#[test]
fn more_than_the_system_has_is_an_error() {
    let memory = DeviceMemory::new();
    // The address space is large enough for the first of these.
    for bytes in [1_usize << 44, isize::MAX as usize, usize::MAX] {
        let refused = memory.alloc_elements(bytes, 1, 1, "huge");
        assert!(
            matches!(refused, Err(MemoryError::Allocation { .. })),
            "{bytes}: {refused:?}"
        );
    }
    assert_eq!(memory.live_allocations(), 0);
}

#[test]
fn an_alignment_beyond_a_page_says_so() {
    let memory = DeviceMemory::new();
    for align in [0, 3, 1 << 20] {
        let error = memory.alloc_elements(64, 1, align, "aligned").unwrap_err();
        assert!(matches!(error, MemoryError::Alignment { .. }), "{error}");
        assert!(error.to_string().contains("power of two"), "{error}");
    }
}

#[test]
fn handles_of_textures_are_not_used_twice() {
    let memory = DeviceMemory::new();
    let buffer = Buffer::new(&memory, "texels", &[1_f32; 8]);
    let descriptor = TextureDescriptor {
        addr: buffer.allocation.addr(),
        shape: TextureShape::Pitch2d {
            width: 8,
            height: 1,
            pitch_bytes: 32,
            addressing: [Addressing::Clamp; 2],
            normalised: false,
        },
    };
    let mut handles = std::collections::HashSet::new();
    for _ in 0..100 {
        let handle = memory.bind_texture(&descriptor).unwrap();
        assert!(handle != 0 && handles.insert(handle));
        assert!(memory.unbind_texture(handle));
        assert!(!memory.unbind_texture(handle));
    }
    let stale = handles.iter().copied().max().unwrap();
    let diagnosis = run(&memory, 1, 1, || {
        std::hint::black_box(cuda_emulator::intrinsics::tex2d(stale, 0.0, 0.0));
    });
    assert!(matches!(diagnosis, Err(Diagnosis::InvalidOperation { .. })));
}

#[cfg(target_os = "linux")]
mod limited {
    use super::*;
    use std::process::Command;

    /// Runs the ignored test `name` of this module alone; it must succeed.
    fn child(name: &str) {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([&format!("limited::{name}"), "--exact", "--ignored"])
            .args(["--nocapture", "--test-threads=1"])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// The bytes of address space that the process uses.
    fn address_space() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096
    }

    fn limit_address_space(bytes: u64) {
        let limit = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: bytes,
        };
        // SAFETY: the pointer is valid for a limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    }

    #[test]
    #[ignore = "limits the process's memory; run by the test below"]
    fn child_frees_what_it_allocates() {
        limit_address_space(address_space() + (4 << 30));
        let memory = DeviceMemory::new();
        for n in 0..200 {
            let buffer = memory.alloc(16 << 20, 4, "buffer");
            assert!(buffer.is_ok(), "buffer {n}: {}", buffer.unwrap_err());
        }
        // Freed memory still faults as long as nothing needs its space.
        let freed = Buffer::new(&memory, "freed", &[0_u32; 32]);
        let f = freed.ptr();
        drop(freed);
        let diagnosis = run(&memory, 1, 32, || f.write(tid() as isize, 1));
        if cuda_emulator::GUARD_PAGES {
            assert!(matches!(diagnosis, Err(Diagnosis::UseAfterFree { .. })));
        }
    }

    #[test]
    fn freed_memory_is_given_back_before_an_allocation_fails() {
        child("child_frees_what_it_allocates");
    }

    #[test]
    #[ignore = "limits the process's memory; run by the test below"]
    fn child_verifies_what_it_cannot_copy() {
        let memory = DeviceMemory::new();
        let buffer = memory.alloc(256 << 20, 4, "large").unwrap();
        // This launch allocates everything else that a launch needs.
        run(&memory, 64, 64, || {}).unwrap();
        limit_address_space(address_space() + (100 << 20));
        let diagnosis = verify(&config(64, 64), &Verify::default(), &memory, &|| {});
        assert!(
            matches!(diagnosis, Err(Diagnosis::OutOfMemory { .. })),
            "{diagnosis:?}"
        );
        run(&memory, 64, 64, || {}).unwrap();
        drop(buffer);
    }

    #[test]
    fn copies_for_a_verification_are_refused_when_there_is_no_room() {
        child("child_verifies_what_it_cannot_copy");
    }

    #[test]
    #[ignore = "counts the process's memory; run by the test below"]
    fn child_makes_textures() {
        let memory = DeviceMemory::new();
        let buffer = Buffer::new(&memory, "texels", &[1_f32; 8]);
        let descriptor = TextureDescriptor {
            addr: buffer.allocation.addr(),
            shape: TextureShape::Linear { width: 8 },
        };
        let repeat = |n| {
            for _ in 0..n {
                let handle = memory.bind_texture(&descriptor).unwrap();
                assert!(memory.unbind_texture(handle));
            }
        };
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
        };
        repeat(1000);
        let before = resident();
        repeat(100_000);
        let grown = resident().saturating_sub(before);
        assert!(grown < 1 << 20, "{grown} bytes");
    }

    #[test]
    fn textures_leave_nothing_behind() {
        child("child_makes_textures");
    }
}
