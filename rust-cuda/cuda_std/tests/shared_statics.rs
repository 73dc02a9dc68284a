//! Statics in shared memory that kernels use by their names, in emulated
//! launches.
//!
//! This is a separate test binary: the emulator has to assume that a static
//! outside a kernel belongs to every kernel of the process.
#![allow(
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    missing_docs,
    reason = "test kernels"
)]

use cuda_emulator::{DeviceMemory, LaunchConfig, Options, Poison, Report, launch};
use cuda_std::host::{Kernel, Out};
use cuda_std::{address_space, kernel, thread};

#[address_space(shared)]
static mut OUTSIDE: [u32; 64] = [0; 64];

unsafe fn stage(i: usize, value: u32) {
    unsafe { OUTSIDE[i] = value };
}

/// Uses a static inside the kernel, and one outside through a helper.
#[kernel]
pub unsafe fn reverse(data: *mut u32) {
    #[address_space(shared)]
    static mut INSIDE: [u32; 64] = [0; 64];
    let i = thread::thread_idx_x() as usize;
    let at = unsafe { data.add(thread::index_1d() as usize) };
    unsafe { INSIDE[i] = *at };
    unsafe { stage(i, 1000 * *at) };
    thread::sync_threads();
    unsafe { *at = INSIDE[63 - i] + OUTSIDE[63 - i] };
}

/// Reads a static that nobody has written, declared in a block of the kernel.
#[kernel]
pub unsafe fn read_first(out: *mut u32) {
    if thread::thread_idx_x() == 0 {
        #[address_space(shared)]
        static mut UNWRITTEN: u32 = 5;
        unsafe { *out.add(thread::block_idx_x() as usize) = UNWRITTEN };
        unsafe { UNWRITTEN = 6 };
    }
}

fn run<K: for<'a> Kernel<Args<'a> = (Out<'a, u32>,)>>(
    blocks: u32,
    threads: u32,
    data: &mut [u32],
) -> Report {
    let config = LaunchConfig {
        kernel: K::NAME,
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        dynamic_shared_bytes: 0,
    };
    let address = data.as_mut_ptr().expose_provenance() as u64;
    let args = (unsafe { Out::from_raw(address, data.len()) },);
    let thread = || unsafe { K::run_thread(&args) };
    unsafe { launch(&config, &Options::default(), &DeviceMemory::new(), &thread) }
        .unwrap_or_else(|diagnosis| panic!("{diagnosis}"))
}

#[test]
fn they_are_each_blocks_own_in_turn() {
    let mut data: Vec<u32> = (0..16 * 64).collect();
    let report = run::<reverse>(16, 64, &mut data);
    for (i, &value) in data.iter().enumerate() {
        let partner = i as u32 / 64 * 64 + 63 - i as u32 % 64;
        assert_eq!(value, 1001 * partner, "element {i}");
    }
    assert_eq!(report.shared_bytes, 512, "both count");
}

#[test]
fn they_are_poisoned_before_each_block() {
    let mut out = [0; 3];
    run::<read_first>(3, 2, &mut out);
    let poison = Poison::default().word();
    assert_eq!(
        out, [poison; 3],
        "neither the initialiser nor what the last block left"
    );
}

#[test]
fn a_kernel_called_as_a_function_finds_them_as_they_are() {
    // Outside a launch there is no emulated thread to register them for.
    let mut out = [0; 1];
    let panic = std::panic::catch_unwind(move || unsafe { read_first(out.as_mut_ptr()) });
    let message = panic.unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(
        message.contains("thread_idx called outside a kernel launch"),
        "{message}"
    );
}
