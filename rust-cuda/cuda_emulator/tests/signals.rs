//! Tests that faults outside kernels reach the signal handlers that were installed before.
//!
//! Each test runs a test marked `ignore` in a child process, which dies.

#![cfg(guarded)]

mod common;

use std::ffi::{c_int, c_void};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use common::{Buffer, run, tid};
use cuda_emulator::{DeviceMemory, Diagnosis};

/// Runs the ignored test `name` alone, and returns its exit status and its output.
fn child(name: &str) -> (ExitStatus, String) {
    child_with(name, &[])
}

/// As [`child`], with these environment variables.
fn child_with(name: &str, variables: &[(&str, &str)]) -> (ExitStatus, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--ignored", "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status, text)
}

/// A launch with a fault that is diagnosed. Afterwards the emulator's handlers are installed.
fn faulting_launch() {
    let memory = DeviceMemory::new();
    let buffer = Buffer::new(&memory, "buffer", &[0_u32; 4]);
    let b = buffer.ptr();
    let diagnosis = run(&memory, 4, 64, || b.write(tid() as isize, 1)).unwrap_err();
    assert!(matches!(diagnosis, Diagnosis::OutOfBounds { .. }));
    println!("the launch was diagnosed");
}

fn host_fault() {
    let nowhere = std::ptr::without_provenance::<u32>(std::hint::black_box(8));
    // SAFETY: none: the process is meant to die.
    unsafe { nowhere.read_volatile() };
}

#[test]
#[ignore = "dies; run by the test below"]
fn child_faults_on_the_host() {
    faulting_launch();
    host_fault();
    println!("survived");
}

#[test]
fn a_fault_of_the_host_kills_the_process() {
    let (status, text) = child("child_faults_on_the_host");
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{text}");
    assert!(text.contains("the launch was diagnosed"), "{text}");
    assert!(!text.contains("survived"), "{text}");
}

fn overflow(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 32]);
    if depth == u64::MAX {
        return 0;
    }
    overflow(depth + 1).wrapping_add(frame[depth as usize % 32])
}

#[test]
#[ignore = "dies; run by the test below"]
fn child_overflows_a_stack_of_the_host() {
    faulting_launch();
    std::hint::black_box(overflow(0));
    println!("survived");
}

#[test]
fn a_stack_overflow_of_the_host_is_reported_by_rust() {
    let (status, text) = child("child_overflows_a_stack_of_the_host");
    assert_eq!(status.signal(), Some(libc::SIGABRT), "{text}");
    assert!(text.contains("has overflowed its stack"), "{text}");
}

extern "C" fn earlier_handler(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the operating system passes a valid siginfo; _exit is async-signal-safe.
    unsafe {
        let expected = (*info).si_addr().addr() == 8;
        libc::_exit(if expected { 42 } else { 43 });
    }
}

#[test]
#[ignore = "ends the process; run by the test below"]
fn child_has_a_handler_of_its_own() {
    // SAFETY: the handler has the signature that SA_SIGINFO requires.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = earlier_handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(
            libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()),
            0
        );
    }
    faulting_launch();
    host_fault();
}

#[test]
fn an_earlier_handler_still_gets_what_is_not_ours() {
    let (status, text) = child("child_has_a_handler_of_its_own");
    assert_eq!(status.code(), Some(42), "{text}");
}

/// Runs on an OS thread that Rust did not start. It has no stack for signal handlers unless the
/// emulator makes one.
extern "C" fn foreign_thread(result: *mut c_void) -> *mut c_void {
    let memory = DeviceMemory::new();
    let launched = run(&memory, 1, 2, || {
        std::hint::black_box(overflow(0));
    });
    // SAFETY: the pointer points to the caller's variable, which outlives this thread.
    unsafe { *result.cast::<Option<Result<cuda_emulator::Report, Diagnosis>>>() = Some(launched) };
    std::ptr::null_mut()
}

#[test]
fn a_launch_on_a_thread_that_rust_did_not_start() {
    let mut result: Option<Result<cuda_emulator::Report, Diagnosis>> = None;
    // SAFETY: the thread function has the right signature, and `result` outlives the thread, which
    // is joined here.
    unsafe {
        let mut thread: libc::pthread_t = std::mem::zeroed();
        let created = libc::pthread_create(
            &mut thread,
            std::ptr::null(),
            foreign_thread,
            (&raw mut result).cast(),
        );
        assert_eq!(created, 0);
        assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
    }
    let diagnosis = result.unwrap().unwrap_err();
    assert!(
        matches!(diagnosis, Diagnosis::StackOverflow { .. }),
        "{diagnosis}"
    );
}

#[test]
#[ignore = "prints; run by the test below"]
fn child_panics_in_a_kernel_and_on_the_host() {
    let memory = DeviceMemory::new();
    run(&memory, 4, 64, || assert!(tid() < 3, "of the kernel")).unwrap_err();
    let host = std::panic::catch_unwind(|| panic!("of the host"));
    assert!(host.is_err());
}

#[test]
fn panics_of_kernels_are_not_printed_and_others_are() {
    let (status, text) = child("child_panics_in_a_kernel_and_on_the_host");
    assert!(status.success(), "{text}");
    assert!(text.contains("of the host"), "{text}");
    assert!(!text.contains("of the kernel"), "{text}");
}

/// Mistakes that do not unwind. With debug assertions each ends the process by a panic that cannot
/// unwind; without them by a fault, or not at all.
#[test]
#[ignore = "dies; run by the test below"]
fn child_panics_without_unwinding() {
    let what = std::env::var("HALO_TEST_FAULT").unwrap();
    let data = std::hint::black_box([1_u32; 4]);
    let index = std::hint::black_box(9_usize);
    let memory = DeviceMemory::new();
    let launched = run(&memory, 2, 64, || {
        if cuda_emulator::intrinsics::block_idx()[0] != 1 || tid() != 3 {
            return;
        }
        // SAFETY: none: each is a mistake that must be reported.
        unsafe {
            match &*what {
                "null dereference" => {
                    std::hint::black_box(*std::hint::black_box(std::ptr::null::<u32>()));
                }
                "misaligned dereference" => {
                    let odd = data.as_ptr().byte_add(std::hint::black_box(1));
                    std::hint::black_box(*odd);
                }
                "get_unchecked" => {
                    std::hint::black_box(data.get_unchecked(index));
                }
                "unwrap_unchecked" => {
                    let none = std::hint::black_box(None::<u32>);
                    std::hint::black_box(none.unwrap_unchecked());
                }
                "overlapping copy" => {
                    let mut data = data;
                    let start = data.as_mut_ptr();
                    std::ptr::copy_nonoverlapping(start, std::hint::black_box(start.add(1)), 3);
                    std::hint::black_box(data);
                }
                "panic in C" => panics_in_c(),
                "abort" => std::process::abort(),
                _ => panic!("unknown: {what}"),
            }
        }
    });
    println!("survived with {launched:?}");
}

extern "C" fn panics_in_c() {
    panic!("of a function that cannot unwind");
}

#[test]
fn what_does_not_unwind_is_reported_before_the_process_dies() {
    let message_of = [
        ("null dereference", "null pointer dereference"),
        ("misaligned dereference", "misaligned pointer dereference"),
        ("get_unchecked", "get_unchecked"),
        ("unwrap_unchecked", "unreachable_unchecked"),
        ("overlapping copy", "copy_nonoverlapping"),
        ("panic in C", "of a function that cannot unwind"),
        ("abort", ""),
    ];
    for (what, message) in message_of {
        let (status, text) = child_with(
            "child_panics_without_unwinding",
            &[("HALO_TEST_FAULT", what)],
        );
        if !cfg!(debug_assertions) && !["panic in C", "abort"].contains(&what) {
            continue;
        }
        assert_eq!(status.signal(), Some(libc::SIGABRT), "{what}: {text}");
        for part in [
            "kernel `kernel`, block (1, 0, 0), thread (3, 0, 0)",
            message,
        ] {
            assert!(text.contains(part), "{what}: no {part:?} in {text}");
        }
        let line = text.lines().any(|line| {
            line.contains("thread (3, 0, 0), at ")
                && line.contains("cuda_emulator/tests/signals.rs:")
        });
        assert!(line || what == "abort", "{what}: {text}");
        assert!(!text.contains("survived"), "{what}: {text}");
    }
}

#[test]
#[ignore = "forks; run by the test below, alone"]
fn child_forks() {
    let memory = DeviceMemory::new();
    run(&memory, 64, 64, || {}).unwrap();
    // SAFETY: the new process only makes a launch, which is an error, and exits at once.
    unsafe {
        let forked = libc::fork();
        if forked == 0 {
            let refused = run(&memory, 64, 64, || {});
            let right = matches!(refused, Err(Diagnosis::InvalidLaunch { .. }));
            libc::_exit(if right { 42 } else { 43 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(forked, &mut status, 0), forked);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42);
    }
    run(&memory, 64, 64, || {}).unwrap();
}

#[test]
fn a_launch_in_a_forked_process_is_refused() {
    let (status, text) = child("child_forks");
    assert!(status.success(), "{text}");
}
