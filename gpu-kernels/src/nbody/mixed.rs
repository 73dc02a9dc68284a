//! All-pairs gravity in mixed precision: interactions in f32, their sums in f64.
//!
//! This is the kernel of [`shared`](super::shared), except that each tile's sum starts at zero and
//! is then added to a sum in f64. In f32 an acceleration from n bodies takes n roundings of its
//! growing sum; here it takes as many as a tile has bodies, for any n, at the cost of three
//! additions in f64 per tile. The error of the interactions themselves remains, since positions and
//! their differences are still in f32.
//!
//! - Input: n bodies in f32. Output: n accelerations in f64.
//! - Tile, grid and threads: as for `shared`.
//! - 24 bytes written per body; 20 flops per interaction.
//!
//! # What limits it
//!
//! Instructions, as for `shared`: 12 FP32, a reciprocal square root and a load of 16 bytes from
//! shared memory per interaction. The three conversions and three additions in f64 per tile of 128
//! are fewer than one instruction in two hundred.

use super::body::{Body, body_body};
use super::tiles::SHARED_UNROLL;
use crate::loops::{keep_rolled, unrolled};
use cuda_std::prelude::*;
use cuda_std::shared::dynamic_shared_mem;

// gate nbody_mixed_f32: FADD = 48, FFMA = 96, FMUL = 48, MUFU = 16, LDS.128 = 16, DADD = 3
// gate nbody_mixed_f32: registers <= 40, LD = 0, ST = 0, spills = 0

/// Accelerations of `n` bodies in f32, summed in f64.
///
/// `bodies` and `accelerations`: `n` elements; `softening_squared`: ε².
///
/// # Safety
///
/// - `bodies` is readable and `accelerations` writable for `n` elements; they do not
///   overlap, and nothing else accesses `accelerations` during the launch.
/// - The launch extends along x alone and has `n` threads or more; the block is a
///   multiple of [`SHARED_UNROLL`], and n plus the block size is below 2³².
/// - The dynamic shared memory holds one body per thread of the block.
#[kernel]
pub unsafe fn nbody_mixed_f32(
    bodies: *const Body<f32>,
    n: u32,
    softening_squared: f32,
    accelerations: *mut [f64; 3],
) {
    let tile = dynamic_shared_mem::<Body<f32>>();
    let t = thread::thread_idx_x();
    let block = thread::block_dim_x();
    let i = thread::index_1d();
    let body = |j: u32| {
        if j < n {
            // SAFETY: body j exists.
            unsafe { Body::load(bodies.add(j as usize)) }
        } else {
            Body::NOTHING
        }
    };

    let position = body(i).position();
    let mut total = [0.0_f64; 3];
    let mut start = 0;
    // equivalent mutant (comparison): one more tile, whose bodies add nothing
    while start < n {
        let own = body(start + t);
        // SAFETY: t < block, the length of the tile; each thread stores its own
        // element, and nobody reads the tile before the barrier.
        unsafe { *tile.add(t as usize) = own };
        thread::sync_threads();

        let mut sum = [0.0_f32; 3];
        let mut k = 0;
        while k < block {
            keep_rolled();
            unrolled::<SHARED_UNROLL>(|u| {
                // SAFETY: k + u < block, since SHARED_UNROLL divides block; all of the
                // tile was written before the barrier.
                let other = unsafe { Body::load(tile.add(k as usize + u)) };
                sum = body_body(sum, position, other, softening_squared);
            });
            k += SHARED_UNROLL as u32;
        }
        unrolled::<3>(|axis| total[axis] += f64::from(sum[axis]));
        // No thread stores the next tile while others still read this one.
        thread::sync_threads();
        start += block;
    }

    if i < n {
        // SAFETY: acceleration i exists, and no other thread has this i.
        unsafe { *accelerations.add(i as usize) = total };
    }
}

crate::register! {
    nbody_mixed_f32: f32, Tuned,
    "interactions in f32, their sums in f64",
    geometry: super::geometry::tiled::<f32>,
    cost: |bodies| super::geometry::all_pairs::<f32>(
        bodies, size_of::<[f64; 3]>(), super::body::FLOPS_PER_INTERACTION_F32,
    ),
    example: super::geometry::EXAMPLE,
    tile: "block bodies",
}
