//! All-pairs gravity in mixed precision: interactions in f32, their sums in f64.
//!
//! The kernel of [`shared`](super::shared), tile for tile and interaction for
//! interaction, but for what becomes of a tile's sum: it is added to a sum in f64, and a
//! new one begins at zero. An acceleration of n bodies in f32 takes n roundings of its
//! growing sum; here it takes as many as a tile has bodies, whatever n is, for three
//! additions in f64 per tile. What is left is the error of the interactions themselves,
//! which are in f32 as before, as are positions and their differences.
//!
//! - Input: n bodies in f32. Output: n accelerations in f64.
//! - Tile, grid and threads: as for `shared`.
//! - 24 bytes out per body; 20 flops per interaction.
//!
//! # What limits it
//!
//! Instructions, as for `shared`: 12 FP32, a reciprocal square root and a load of 16
//! bytes from shared memory per interaction, and per tile of 128 three conversions and
//! three additions in f64, below one in two hundred.

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
///   multiple of [`SHARED_UNROLL`], and n and a block more are below 2³².
/// - Dynamic shared memory of one body per thread of the block.
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
    // equivalent mutant (comparison): one tile more, of bodies that add nothing
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
                // SAFETY: k + u < block, of which SHARED_UNROLL is a divisor; all of the
                // tile was written before the barrier.
                let other = unsafe { Body::load(tile.add(k as usize + u)) };
                sum = body_body(sum, position, other, softening_squared);
            });
            k += SHARED_UNROLL as u32;
        }
        unrolled::<3>(|axis| total[axis] += f64::from(sum[axis]));
        // Nobody stores the next tile while others still read this one.
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
