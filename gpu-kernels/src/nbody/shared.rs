//! All-pairs gravity with bodies read from a tile in shared memory.
//!
//! - Input and output as for [`aos`](super::aos).
//! - Tile: as many bodies as the block has threads, in dynamic shared memory.
//! - Grid: `ceil(n / block)` blocks along x, the block a multiple of
//!   [`SHARED_UNROLL`]; a thread computes the acceleration of one body, and
//!   loads one body of each tile.
//! - The last tile is filled up with [`Body::NOTHING`]; threads beyond the last body load, wait and
//!   compute with the others, but write nothing.
//! - All lanes of a warp read the same body of the tile at the same time, which shared memory
//!   broadcasts. A block reads each body once from global memory: n / block bodies per thread
//!   instead of n.
//! - 12 or 24 bytes written per body; 20 or 30 flops per interaction.

use super::body::{Body, Real, body_body};
use super::tiles::SHARED_UNROLL;
use crate::loops::{keep_rolled, unrolled};
use cuda_std::prelude::*;
use cuda_std::shared::dynamic_shared_mem;

/// Declares entry points: name, real type.
macro_rules! shared_kernels {
    ($($name:ident: $real:ty;)+) => {$(
        #[doc = concat!("Accelerations of `n` bodies in `", stringify!($real), "`.")]
        ///
        /// `bodies` and `accelerations`: `n` elements; `softening_squared`: ε².
        ///
        /// # Safety
        ///
        /// - `bodies` is readable and `accelerations` writable for `n` elements;
        ///   they do not overlap, and nothing else accesses `accelerations`
        ///   during the launch.
        /// - The launch extends along x alone and has `n` threads or more; the block is a
        ///   multiple of [`SHARED_UNROLL`], and n plus the block size is below 2³².
        /// - The dynamic shared memory holds one body per thread of the block.
        #[kernel]
        pub unsafe fn $name(
            bodies: *const Body<$real>,
            n: u32,
            softening_squared: $real,
            accelerations: *mut [$real; 3],
        ) {
            // SAFETY: forwarded word for word.
            unsafe { shared::<$real>(bodies, n, softening_squared, accelerations) }
        }
    )+};
}

// 16 interactions per iteration, each with 12 FP32 instructions, a reciprocal square root and a
// load of 16 bytes from the tile:
// gate nbody_shared_f32: FADD = 48, FFMA = 96, FMUL = 48, MUFU = 16, LDS.128 = 16
// gate nbody_shared_f32: registers <= 32, LD = 0, ST = 0
// gate nbody_shared_f64: LDS.128 = 32, LD = 0, ST = 0

shared_kernels! {
    nbody_shared_f32: f32;
    nbody_shared_f64: f64;
}

crate::register! {
    nbody_shared_f32: f32, Textbook,
    "bodies from a tile in shared memory",
    geometry: super::geometry::tiled::<f32>,
    cost: super::geometry::accelerations::<f32>,
    example: super::geometry::EXAMPLE,
    tile: "block bodies",
    twin: same,
    twins: [("CUDA n-body sample style", "nbody_sample_f32")],
}

crate::register! {
    nbody_shared_f64: f64, Textbook,
    "bodies from a tile in shared memory",
    geometry: super::geometry::tiled::<f64>,
    cost: super::geometry::accelerations::<f64>,
    example: super::geometry::EXAMPLE,
    tile: "block bodies",
    twin: same,
}

/// The acceleration of the thread's body.
///
/// # Safety
///
/// As the entry points.
#[inline(always)]
unsafe fn shared<T: Real>(
    bodies: *const Body<T>,
    n: u32,
    softening_squared: T,
    accelerations: *mut [T; 3],
) {
    let tile = dynamic_shared_mem::<Body<T>>();
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
    let mut sum = [T::ZERO; 3];
    let mut start = 0;
    // equivalent mutant (comparison): one more tile, whose bodies add nothing
    while start < n {
        let own = body(start + t);
        // SAFETY: t < block, the length of the tile; each thread stores its own
        // element, and nobody reads the tile before the barrier.
        unsafe { *tile.add(t as usize) = own };
        thread::sync_threads();

        let mut k = 0;
        while k < block {
            keep_rolled();
            unrolled::<SHARED_UNROLL>(|u| {
                // SAFETY: k + u < block, since SHARED_UNROLL divides block; all
                // of the tile was written before the barrier.
                let other = unsafe { Body::load(tile.add(k as usize + u)) };
                sum = body_body(sum, position, other, softening_squared);
            });
            k += SHARED_UNROLL as u32;
        }
        // No thread stores the next tile while others still read this one.
        thread::sync_threads();
        start += block;
    }

    if i < n {
        // SAFETY: acceleration i exists, and no other thread has this i.
        unsafe { *accelerations.add(i as usize) = sum };
    }
}
