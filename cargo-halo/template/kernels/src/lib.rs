//! The kernels: compiled for a GPU by `build.rs`, and for the host, where the emulator runs
//! them.

#![no_std]

use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array};

/// Threads of a block, and points of a tile.
pub const BLOCK: usize = 128;

/// `out[i] = (x[i-1] + x[i] + x[i+1]) / 3`; beyond its ends `x` repeats its end points.
///
/// A block computes `BLOCK` points. Its tile in shared memory has one more on either side, the
/// halo.
///
/// # Safety
///
/// - `x` has at least one element, and `out` is valid for writes of as many.
/// - Blocks of `(BLOCK, 1, 1)` threads; the grid has `ceil(x.len() / BLOCK)` of them.
// gate smooth: registers <= 32, LDG = 3, STG = 1, LD = 0, ST = 0
#[kernel]
#[launch_bounds(128)]
pub unsafe fn smooth(x: &[f32], out: *mut f32) {
    let tile = shared_array![f32; BLOCK + 2];
    let t = thread::thread_idx_x() as usize;
    let i = thread::block_idx_x() as usize * BLOCK + t;
    let last = x.len() - 1;
    // SAFETY: the index is at most the last one, by the minimum.
    let at = |i: usize| unsafe { *x.get_unchecked(if i < last { i } else { last }) };

    // SAFETY: the tile has BLOCK + 2 elements, each written by one thread.
    unsafe {
        *tile.add(t + 1) = at(i);
        if t == 0 {
            *tile = at(i.saturating_sub(1));
        }
        if t == BLOCK - 1 {
            *tile.add(t + 2) = at(i + 1);
        }
    }
    // Every thread must come here: the others of its block wait.
    thread::sync_threads();
    if i <= last {
        // SAFETY: three elements of the tile, written before the barrier; `out` has `i`.
        unsafe {
            *out.add(i) = (*tile.add(t) + *tile.add(t + 1) + *tile.add(t + 2)) * (1.0 / 3.0);
        }
    }
}
