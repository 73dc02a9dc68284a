//! All-pairs gravity with several bodies in the registers of each thread, and the sum over the
//! others divided among several blocks.
//!
//! - Input as for [`aos`](super::aos).
//! - A thread computes the accelerations of [`REGISTER_BODIES`] bodies, so one load of 16 bytes
//!   from the tile serves that many interactions. In f32 an interaction is 12 FP32 instructions, a
//!   reciprocal square root and a quarter of a load: 13.25 issue slots, or 13.4 with the loop. At
//!   one slot per cycle that is 2500 G interactions/s on an H200 (132 multiprocessors, 1.98 GHz).
//! - In f64 it is 16 double-precision instructions, of which a multiprocessor executes 64 per
//!   clock: 1045 G interactions/s.
//! - Tile: [`REGISTER_BLOCK`] bodies in static shared memory, filled up with [`Body::NOTHING`], so
//!   the inner loop needs no check.
//! - A launch computes the accelerations of `targets` of the bodies, by all bodies or by those of
//!   some parts.
//! - Grid: `ceil(targets / (REGISTER_BLOCK · REGISTER_BODIES))` along x, parts along y. Part k sums
//!   over bodies `k · per_part` to `(k + 1) · per_part - 1`. The parts let few bodies fill a large
//!   GPU, and [`sum`](super::sum) adds them in order: for a given number of parts the result has
//!   the same bits every time.
//! - Output: three reals per target and part, `partials[part · targets + target]`.

use super::body::{Body, Real, body_body_refined};
use super::tiles::{REGISTER_BLOCK, REGISTER_BODIES};
use crate::loops::{keep_rolled, unrolled};
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array};

// 4 bodies times 8 or 4 of the tile per iteration:
// gate nbody_register_tile_f32: FADD = 96, FFMA = 192, FMUL = 96, MUFU.RSQ = 32, LDS.128 = 8
// gate nbody_register_tile_f32: registers <= 128, LD = 0, ST = 0
// gate nbody_register_tile_f64: DADD = 48, DFMA = 128, DMUL = 80, MUFU.RSQ64H = 16, LDS.128 = 8
// gate nbody_register_tile_f64: registers <= 128, LD = 0, ST = 0

/// Declares entry points: name, real type, bodies of the tile per iteration.
macro_rules! register_tile_kernels {
    ($($name:ident: $real:ty, $unroll:literal;)+) => {$(
        #[doc = concat!("Parts of the accelerations of bodies in `", stringify!($real), "`.")]
        ///
        /// `bodies`: `n` elements; `softening_squared`: ε²; `per_part`: the bodies that a part sums
        /// over; `parts`: the number of parts; `first_part`: the part that the first row of blocks
        /// computes; the next rows compute the following parts, and part 0 follows the last part;
        /// `first_target` and `targets`: the first body whose acceleration is computed, and the
        /// number of these bodies; `partials`: `targets` elements for each part.
        ///
        /// # Safety
        ///
        /// - `bodies` is readable for `n` elements, `partials` writable for `targets · parts`
        ///   elements; they do not overlap, and nothing else accesses `partials` during the launch.
        /// - Blocks have [`REGISTER_BLOCK`] threads along x; along x the grid has
        ///   `ceil(targets / (REGISTER_BLOCK · REGISTER_BODIES))` of them, and along y at most
        ///   `parts`.
        /// - `first_part` is below `parts`, and `first_target + targets` at most `n`.
        /// - `n` is at most 2³¹, and so is `per_part · (parts - 1)`.
        #[kernel]
        #[launch_bounds(REGISTER_BLOCK, 4)]
        pub unsafe fn $name(
            bodies: *const Body<$real>,
            n: u32,
            softening_squared: $real,
            per_part: u32,
            parts: u32,
            first_part: u32,
            first_target: u32,
            targets: u32,
            partials: *mut [$real; 3],
        ) {
            let tile = shared_array![Body<$real>; REGISTER_BLOCK as usize];
            // SAFETY: forwarded word for word; the tile is the block's own.
            unsafe {
                register_tile::<$real, $unroll>(
                    tile, bodies, n, softening_squared, [per_part, parts, first_part],
                    [first_target, targets], partials,
                );
            }
        }
    )+};
}

register_tile_kernels! {
    nbody_register_tile_f32: f32, 8;
    nbody_register_tile_f64: f64, 4;
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "four bodies per thread, the sums in parts",
            geometry: |kernel, bodies| {
                let per_block = REGISTER_BLOCK as usize * REGISTER_BODIES;
                super::geometry::in_parts(REGISTER_BLOCK, per_block, kernel, bodies)
            },
            cost: super::geometry::accelerations::<$real>,
            example: super::geometry::EXAMPLE_IN_PARTS,
            tile: "512 × 128 bodies",
        }
    )+};
}

registered! {
    nbody_register_tile_f32: f32;
    nbody_register_tile_f64: f64;
}

/// Computes part `first_part + blockIdx.y`, modulo `parts`, of the sums for the thread's bodies.
///
/// # Safety
///
/// As the entry points; `tile` is shared memory of [`REGISTER_BLOCK`] bodies.
#[inline(always)]
unsafe fn register_tile<T: Real, const UNROLL: usize>(
    tile: *mut Body<T>,
    bodies: *const Body<T>,
    n: u32,
    softening_squared: T,
    [per_part, parts, first_part]: [u32; 3],
    [first_target, targets]: [u32; 2],
    partials: *mut [T; 3],
) {
    let t = thread::thread_idx_x();
    let mut part = first_part + thread::block_idx_y();
    if part >= parts {
        part -= parts;
    }
    let first = thread::block_idx_x() * (REGISTER_BLOCK * REGISTER_BODIES as u32) + t;
    let body = |j: u32, end: u32| {
        if j < end {
            // SAFETY: `end` is at most n, so body j exists.
            unsafe { Body::load(bodies.add(j as usize)) }
        } else {
            Body::NOTHING
        }
    };

    let mut positions = [[T::ZERO; 3]; REGISTER_BODIES];
    let mut sums = [[T::ZERO; 3]; REGISTER_BODIES];
    unrolled::<REGISTER_BODIES>(|q| {
        let target = first_target + first + q as u32 * REGISTER_BLOCK;
        positions[q] = body(target, first_target + targets).position();
    });

    let mut start = part * per_part;
    let end = (start + per_part).min(n);
    // equivalent mutant (comparison): one more tile, whose bodies add nothing
    while start < end {
        keep_rolled();
        let own = body(start + t, end);
        // No thread stores this tile while others still read the previous one.
        thread::sync_threads();
        // SAFETY: t < REGISTER_BLOCK; each thread stores its own element, and
        // nobody reads the tile before the barrier.
        unsafe { *tile.add(t as usize) = own };
        thread::sync_threads();

        let mut k = 0;
        // equivalent mutant (width: made `REGISTER_BLOCK - 1`): k is a multiple of UNROLL
        while k < REGISTER_BLOCK {
            keep_rolled();
            unrolled::<UNROLL>(|u| {
                // SAFETY: k + u < REGISTER_BLOCK, since UNROLL divides it; all
                // of the tile was written before the barrier.
                let other = unsafe { Body::load(tile.add(k as usize + u)) };
                unrolled::<REGISTER_BODIES>(|q| {
                    sums[q] = body_body_refined(sums[q], positions[q], other, softening_squared);
                });
            });
            k += UNROLL as u32;
        }
        start += REGISTER_BLOCK;
    }

    unrolled::<REGISTER_BODIES>(|q| {
        let i = first + q as u32 * REGISTER_BLOCK;
        if i < targets {
            // SAFETY: `part` is below the number of parts and `i` below `targets`, so the
            // element is in `partials`; no other thread writes it.
            unsafe { *partials.add(part as usize * targets as usize + i as usize) = sums[q] };
        }
    });
}
