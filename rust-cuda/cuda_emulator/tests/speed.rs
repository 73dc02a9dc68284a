//! Tests the emulator's promised speed: a launch of 64³ threads with a few barriers each takes less
//! than five seconds, in an optimised build far less.

mod common;

use std::time::Duration;

use common::{Buffer, launch, tid};
use cuda_emulator::intrinsics::{self as cuda, ShuffleKind};
use cuda_emulator::{DeviceMemory, LaunchConfig, Options};

/// A launch of 64³ threads with the structure of the derivative kernels: load a tile, barrier, fill
/// its halo, barrier, compute.
#[test]
fn a_quarter_of_a_million_threads_take_well_under_five_seconds() {
    const N: usize = 64 * 64 * 64;
    let memory = DeviceMemory::new();
    let input: Vec<f32> = (0..N).map(|i| (i % 64) as f32).collect();
    let input = Buffer::new(&memory, "f", &input);
    let output = Buffer::new(&memory, "df", &vec![0_f32; N]);
    let (f, df) = (input.ptr(), output.ptr());
    let config = LaunchConfig {
        kernel: "derivative",
        grid: [16, 64, 1],
        block: [64, 4, 1],
        dynamic_shared_bytes: 0,
    };
    let kernel = || {
        let tile = shared!(f32; 4 * 72);
        let [x, y, _] = cuda::thread_idx();
        let [bx, by, _] = cuda::block_idx();
        let global = ((by * 64 + bx * 4 + y) * 64 + x) as isize;
        let row = (y * 72) as isize;
        let x = x as isize;
        tile.write(row + x + 4, f.read(global));
        cuda::barrier();
        if x < 4 {
            tile.write(row + x, tile.read(row + x + 63));
            tile.write(row + x + 68, tile.read(row + x + 5));
        }
        cuda::barrier();
        let at = |d: isize| tile.read(row + x + 4 + d);
        df.write(global, at(1) - at(-1));
        cuda::barrier();
        assert!(tid() < 256);
    };
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let report = launch(&config, &Options::default(), &memory, &kernel).unwrap();
        assert_eq!(report.threads, N as u64);
        assert_eq!(report.barriers, 3 * 1024);
        best = best.min(report.elapsed);
    }
    println!("64³ threads, 3 barriers each: {best:?}");
    assert!(best < Duration::from_secs(5), "{best:?}");
    let result = output.get();
    assert!(result[1..63].iter().all(|&d| d == 2.0));
}

/// The same number of threads, each in a tree of five shuffles over its warp.
#[test]
fn a_million_shuffles_take_well_under_five_seconds() {
    let memory = DeviceMemory::new();
    let sums = Buffer::new(&memory, "sums", &vec![0_u32; 8192]);
    let s = sums.ptr();
    let config = LaunchConfig {
        kernel: "warp_sums",
        grid: [1024, 1, 1],
        block: [256, 1, 1],
        dynamic_shared_bytes: 0,
    };
    let kernel = || {
        let mut sum = tid();
        for offset in [16, 8, 4, 2, 1] {
            sum += cuda::shuffle(u32::MAX, u64::from(sum), ShuffleKind::Xor, offset, 32).0 as u32;
        }
        if cuda::lane_id() == 0 {
            let warp = cuda::block_idx()[0] * 8 + cuda::warp_id();
            s.write(warp as isize, sum);
        }
    };
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let report = launch(&config, &Options::default(), &memory, &kernel).unwrap();
        assert_eq!(report.warp_operations, 5 * 8192);
        best = best.min(report.elapsed);
    }
    println!("64³ threads, 5 shuffles each: {best:?}");
    assert!(best < Duration::from_secs(5), "{best:?}");
    let result = sums.get();
    assert!(
        (0..8192).all(|warp| result[warp] == (0..32).sum::<u32>() + 32 * 32 * (warp as u32 % 8))
    );
}
