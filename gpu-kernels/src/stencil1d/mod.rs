//! A nine-point stencil on a line, antisymmetric, with coefficients of your own.
//!
//! ```text
//! out[i] = c1 (in[i+1] - in[i-1]) + c2 (in[i+2] - in[i-2])
//!        + c3 (in[i+3] - in[i-3]) + c4 (in[i+4] - in[i-4])      4 <= i < n - 4
//! ```
//!
//! The first and the last four elements of `out` are not written. A central
//! difference for an odd derivative has this form (Fornberg, "Generation of
//! finite difference formulas on arbitrarily spaced grids", Math. Comp. 51
//! (1988)); the textbook's coefficients are -1, -2, 2, 1.
//!
//! # The teaching kernels
//!
//! Both load a tile of `block + 8` elements into shared memory, the first four
//! threads of the block both halos, and differ in where the coefficients are:
//!
//! - [`constant`]: in constant memory, which serves a whole warp at once when all
//!   of its lanes read the same word, as they do here.
//! - [`readonly`]: in global memory, loaded through the read-only data cache.
//!
//! # The tuned kernel
//!
//! [`vector4`] loads 16 bytes at a time into registers and gets the neighbours from
//! other lanes.
//!
//! All do the same arithmetic in the same order, one multiplication and three
//! fused multiply-adds per element, and give the same bits as the CPU port.
//!
//! Moves 4 bytes in and 4 bytes out per element; 11 flops.
//!
//! [`custom`] is the general case: any coefficients, up to eight neighbours.

use cuda_std::prelude::*;
use cuda_std::{GpuFloat, shared};

pub mod constant;
pub mod custom;
#[cfg(not(target_arch = "nvptx64"))]
pub mod geometry;
pub mod readonly;
pub mod vector4;

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "stencil1d",
    computes: "a stencil on a line",
    kernels: crate::entries![
        constant::stencil1d_constant,
        readonly::stencil1d_readonly,
        vector4::stencil1d_vector4,
        custom::stencil1d_custom_f32,
        custom::stencil1d_custom_f64,
    ],
};

/// How far the stencil reaches to either side, in elements: the width of the halo.
pub const RADIUS: usize = 4;

/// Threads of a block of the teaching kernels, unless the caller says otherwise.
pub const BLOCK_DEFAULT: u32 = 32;

/// Threads of a block of the tuned kernel.
pub const VECTOR_BLOCK: u32 = 128;

/// Vectors of 4 elements that each of them computes.
pub const VECTORS: usize = 2;

/// The elements of the textbook's line.
pub const N_DEFAULT: usize = 1 << 16;

/// Floating-point operations per element: 4 subtractions, 1 multiplication and
/// 3 fused multiply-adds of two operations each.
pub const FLOPS_PER_ELEMENT: u64 = 11;

/// The sum over m of `coefficient(m) * difference(m)`, in the order of every kernel.
#[inline(always)]
fn weighted_sum(coefficient: impl Fn(usize) -> f32, difference: impl Fn(usize) -> f32) -> f32 {
    let mut sum = coefficient(1) * difference(1);
    sum = GpuFloat::mul_add(difference(2), coefficient(2), sum);
    sum = GpuFloat::mul_add(difference(3), coefficient(3), sum);
    GpuFloat::mul_add(difference(4), coefficient(4), sum)
}

/// The body of the teaching kernels, with `coefficient(m)` for the neighbours `m` elements
/// away.
///
/// - Tile: `blockDim.x + 8` elements of dynamic shared memory; cell c holds the
///   element `c - 4` of the block's own.
/// - Threads: one per element. Thread t < 4 also loads cell t of the left halo
///   and cell t of the right one.
///
/// # Safety
///
/// - `input` is readable and `output` writable for `n` elements; they do not
///   overlap. During the launch nobody writes `input`, and nothing else accesses
///   `output`.
/// - Blocks are one-dimensional and have at least 4 threads; the grid is
///   one-dimensional, `ceil(n / blockDim.x)` blocks.
/// - The launch gives `blockDim.x + 8` elements of dynamic shared memory.
#[inline(always)]
unsafe fn stencil1d(
    input: *const f32,
    output: *mut f32,
    n: usize,
    coefficient: impl Fn(usize) -> f32,
) {
    let tile = shared::dynamic_shared_mem::<f32>();
    let block = thread::block_dim_x();
    let t = thread::thread_idx_x();
    let first_block = thread::block_idx_x() == 0;
    let loads_halo = t < RADIUS as u32;
    // 64 bits: a line may have more than 2³² elements, a tile has few.
    let i = thread::block_idx_x() as usize * block as usize + t as usize;
    let radius = RADIUS as u32;

    // SAFETY: two of the elements are below n by their conditions. The left halo
    // lies before the first element of the block, which is below n, and not
    // below 0, since i >= block > RADIUS in any block but the first. Cells are
    // below block + 2 * RADIUS, and no two threads have the same.
    unsafe {
        // All loads before the first store, so that they are on their way at
        // once. What lies beyond either end is never used.
        let (mut here, mut left, mut right) = (0.0, 0.0, 0.0);
        if i < n {
            here = *input.add(i);
        }
        // equivalent mutant (guard): the other threads would load, but store nothing
        if loads_halo {
            let ahead = i + block as usize;
            if !first_block {
                left = *input.add(i - RADIUS);
            }
            if ahead < n {
                right = *input.add(ahead);
            }
        }
        *tile.add((radius + t) as usize) = here;
        if loads_halo {
            *tile.add(t as usize) = left;
            *tile.add((radius + block + t) as usize) = right;
        }
    }
    // Every thread comes here, also those beyond the end.
    thread::sync_threads();

    if i >= RADIUS && i + RADIUS < n {
        // SAFETY: the eight neighbours are elements of the line, so the
        // conditions above let them be loaded, before the barrier; they lie
        // RADIUS cells around this thread's. Threads own disjoint elements of
        // `output`.
        unsafe {
            let center = tile.add((radius + t) as usize);
            *output.add(i) = weighted_sum(coefficient, |m| *center.add(m) - *center.sub(m));
        }
    }
}
