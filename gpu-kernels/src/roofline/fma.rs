//! Fused multiply-adds in registers only, to measure their rate.
//!
//! - Every chain repeats x ← x · factor + addend. Chain c of thread t starts at the number
//!   `t * CHAINS + c`, so no two chains compute the same. With |factor| below 1 they stay finite at
//!   any length.
//! - Thread t adds its chains, c = 0, 1, …, and writes the sum to `sums[t]`: without a result the
//!   compiler would remove them.
//! - Grid and block: any size along x. A measurement takes as many threads as the device holds.
//! - `rounds` × [`FMAS_PER_ROUND`] multiply-adds per thread;
//!   4 or 8 bytes written.

use crate::loops::{keep_rolled, unrolled};
use cuda_std::GpuFloat;
use cuda_std::prelude::*;

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Independent chains of multiply-adds per thread: more than needed to hide the latency of an
/// instruction, even with a single warp.
pub const CHAINS: usize = 8;

/// Multiply-adds of a chain per iteration of the loop. The loop's own instructions are about a
/// hundredth of an iteration.
pub const STEPS_PER_ROUND: usize = 32;

/// Multiply-adds of a thread per iteration of the loop.
pub const FMAS_PER_ROUND: u64 = (CHAINS * STEPS_PER_ROUND) as u64;

/// `rounds` iterations of multiply-adds in f32.
///
/// `sums`: one element per thread of the launch.
///
/// # Safety
///
/// - `sums` is writable for as many elements as the launch has threads, and
///   nothing else accesses it during the launch.
/// - The launch extends along x alone and has fewer than 2²⁸ threads.
#[kernel]
pub unsafe fn roofline_fma_f32(factor: f32, addend: f32, rounds: u32, sums: *mut f32) {
    let thread = thread::index_1d();
    let start = thread * CHAINS as u32;
    let sum = chains(|c| (start + c) as f32, factor, addend, rounds, 0.0);
    // SAFETY: one element per thread.
    unsafe { *sums.add(thread as usize) = sum };
}

/// `rounds` iterations of multiply-adds in f64.
///
/// `sums`: one element per thread of the launch.
///
/// # Safety
///
/// As [`roofline_fma_f32()`].
#[kernel]
pub unsafe fn roofline_fma_f64(factor: f64, addend: f64, rounds: u32, sums: *mut f64) {
    let thread = thread::index_1d();
    let start = thread * CHAINS as u32;
    let sum = chains(|c| f64::from(start + c), factor, addend, rounds, 0.0);
    // SAFETY: one element per thread.
    unsafe { *sums.add(thread as usize) = sum };
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Instrument,
            "fused multiply-adds in registers",
            // Threads along x, rounds along y.
            geometry: |kernel, threads| {
                let blocks = blocks_for(kernel, threads.extents[0], BLOCK as usize)?;
                Ok(Geometry::linear(blocks, BLOCK))
            },
            cost: |threads| Cost {
                bytes: (threads.extents[0] as u64).saturating_mul(size_of::<$real>() as u64),
                flops: (threads.points() as u64).saturating_mul(2 * FMAS_PER_ROUND),
            },
            example: Problem::plane(BLOCK as usize, 1),
            unmeasured: "it measures the rate that other rows are set against",
        }
    )+};
}

registered! {
    roofline_fma_f32: f32;
    roofline_fma_f64: f64;
}

/// The sum of all chains of a thread; chain c starts at `start(c)`.
#[inline(always)]
fn chains<T: GpuFloat + core::ops::Add<Output = T>>(
    start: impl Fn(u32) -> T,
    factor: T,
    addend: T,
    rounds: u32,
    zero: T,
) -> T {
    let mut x = [zero; CHAINS];
    unrolled::<CHAINS>(|c| x[c] = start(c as u32));
    let mut round = 0;
    while round < rounds {
        keep_rolled();
        // All chains advance one step before any takes the next, so consecutive instructions are
        // independent.
        unrolled::<STEPS_PER_ROUND>(|_| {
            unrolled::<CHAINS>(|c| x[c] = GpuFloat::mul_add(x[c], factor, addend));
        });
        round += 1;
    }
    let mut sum = zero;
    unrolled::<CHAINS>(|c| sum = sum + x[c]);
    sum
}
