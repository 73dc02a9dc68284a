//! All-pairs gravity that computes each pair of bodies once, for both of them.
//!
//! - Input as for [`aos`](super::aos).
//! - A pair is 18 FP32 instructions and a reciprocal square root in f32, while two separate
//!   interactions are 24 and 2. That is 9.5 issue slots per interaction, or 9.56 with its share of
//!   loads, shuffles and the loop: 3500 G interactions/s on an H200 at one slot per cycle. In f64
//!   it is 21 instructions of double precision, 10.5 per interaction: 1590 G interactions/s.
//! - Bodies form groups of [`SYMMETRIC_GROUP`]. On a circle of groups, group a meets itself and the
//!   groups at distances 1 to `groups / 2` after it, so any two groups meet once; if the number of
//!   groups is even, only those in the first half meet the opposite one.
//! - Grid: groups along x, parts along y. A block holds the bodies of group a in registers,
//!   [`SYMMETRIC_BODIES`] per thread, and processes `per_part` tiles of [`SYMMETRIC_TILE`] bodies
//!   of the groups it meets, from tile `first + per_part · part` on; tile `t` belongs to distance
//!   `t / SYMMETRIC_TILES`.
//! - A warp takes 32 bodies of the tile at a time. In step k lane l loads body `(l + k) % 32` in
//!   accesses of 16 bytes (the 32 are stored twice in sequence, so the address is the lane's plus a
//!   constant) and holds the sum that the body has gathered so far: three shuffles pass it to the
//!   lane that has the body next. After 32 steps every sum is back in its first lane.
//! - The four warps' sums go to shared memory and are added in the order of the warps into
//!   `reactions[(distance - from) · n + body]`, where `from` is the launch's first distance, but at
//!   least 1. The accelerations of the group's own bodies go to `partials[part · n + body]`.
//!   [`sum`](super::sum) adds the partials and subtracts the reactions in order: for a given number
//!   of parts the result has the same bits every time, and no atomic operation is needed.
//! - For group a with itself (distance 0) every interaction is computed, as in
//!   [`register_tile`](super::register_tile).

use super::body::{Body, Real, body_body_refined, separation};
use super::tiles::{
    SYMMETRIC_BLOCK, SYMMETRIC_BODIES, SYMMETRIC_GROUP, SYMMETRIC_TILE, SYMMETRIC_TILES,
};
use crate::loops::{keep_rolled, unrolled};
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array};

/// Lanes of a warp.
const LANES: u32 = 32;

/// Warps of a block.
const WARPS: usize = (SYMMETRIC_BLOCK / LANES) as usize;

/// Bodies of the tile in shared memory, each stored twice.
const STORED: usize = 2 * SYMMETRIC_TILE as usize;

/// Sums in shared memory along one axis: one per warp and body of the tile.
const GATHERED: usize = WARPS * SYMMETRIC_TILE as usize;

// The pairs of an iteration, 4 bodies times 8 or 2 steps, and the interactions of an iteration of a
// group with itself, 4 times 4:
// gate nbody_symmetric_f32: FADD = 156, FFMA = 384, FMUL = 208, MUFU.RSQ = 48, SHFL = 24
// gate nbody_symmetric_f32: registers <= 80, stack = 0, LD = 0, ST = 0
// gate nbody_symmetric_f64: MUFU.RSQ64H = 24, SHFL = 12, CALL = 0
// gate nbody_symmetric_f64: registers <= 128, stack = 0, LD = 0, ST = 0

/// Declares entry points: name, real type, steps per iteration, blocks that a multiprocessor must
/// be able to hold.
macro_rules! symmetric_kernels {
    ($($name:ident: $real:ty, $unroll:literal, $blocks:literal;)+) => {$(
        #[doc = concat!(
            "Parts of the accelerations of `n` bodies in `", stringify!($real), "`, and what they do to others.",
        )]
        ///
        /// `bodies`: `n` elements; `softening_squared`: ε²; `first` to `end - 1`: the tiles of this
        /// launch, in whole distances; `per_part`: the tiles of a part; `partials`: `n` elements
        /// for each part; `reactions`: `n` elements for each distance but 0.
        ///
        /// # Safety
        ///
        /// - `bodies` is readable for `n` elements; `partials` and `reactions` are writable for
        ///   those numbers of elements; the three do not overlap, and nothing else accesses the
        ///   last two during the launch.
        /// - Blocks have [`SYMMETRIC_BLOCK`] threads along x; the grid has
        ///   `ceil(n / SYMMETRIC_GROUP)` along x and `ceil((end - first) / per_part)`
        ///   along y.
        /// - `first` and `end` are multiples of [`SYMMETRIC_TILES`], at most
        ///   `(groups / 2 + 1) · SYMMETRIC_TILES`, and `n` is at most 2³¹.
        #[kernel]
        #[launch_bounds(SYMMETRIC_BLOCK, $blocks)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            bodies: *const Body<$real>,
            n: u32,
            softening_squared: $real,
            first: u32,
            end: u32,
            per_part: u32,
            partials: *mut [$real; 3],
            reactions: *mut [$real; 3],
        ) {
            let tile = shared_array![Body<$real>; STORED];
            let gathered = shared_array![$real; 3 * GATHERED];
            // SAFETY: forwarded word for word; the arrays are the block's own.
            unsafe {
                symmetric::<$real, $unroll>(
                    tile, gathered, bodies, n, softening_squared, first, end, per_part,
                    partials, reactions,
                );
            }
        }
    )+};
}

symmetric_kernels! {
    nbody_symmetric_f32: f32, 8, 6;
    nbody_symmetric_f64: f64, 2, 4;
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "each pair once, the sums in parts",
            geometry: |kernel, bodies| {
                let per_block = SYMMETRIC_GROUP as usize;
                super::geometry::in_parts(SYMMETRIC_BLOCK, per_block, kernel, bodies)
            },
            cost: super::geometry::accelerations::<$real>,
            example: super::geometry::EXAMPLE_IN_PARTS,
            tile: "512 × 128 bodies",
        }
    )+};
}

registered! {
    nbody_symmetric_f32: f32;
    nbody_symmetric_f64: f64;
}

/// Computes the tiles of the block's part.
///
/// # Safety
///
/// As the entry points; `tile` and `gathered` are shared memory of [`STORED`]
/// bodies and 3 · [`GATHERED`] reals.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn symmetric<T: Real, const UNROLL: usize>(
    tile: *mut Body<T>,
    gathered: *mut T,
    bodies: *const Body<T>,
    n: u32,
    softening_squared: T,
    first: u32,
    end: u32,
    per_part: u32,
    partials: *mut [T; 3],
    reactions: *mut [T; 3],
) {
    let t = thread::thread_idx_x();
    let (warp, lane) = (t / LANES, t % LANES);
    let next = (lane + 1) % LANES;
    let (group, groups) = (thread::block_idx_x(), thread::grid_dim_x());
    let part = thread::block_idx_y();
    let body = |j: u32| {
        if j < n {
            // SAFETY: body j exists.
            unsafe { Body::load(bodies.add(j as usize)) }
        } else {
            Body::NOTHING
        }
    };

    let own = group * SYMMETRIC_GROUP + t;
    let mut positions = [[T::ZERO; 3]; SYMMETRIC_BODIES];
    let mut masses = [T::ZERO; SYMMETRIC_BODIES];
    let mut sums = [[T::ZERO; 3]; SYMMETRIC_BODIES];
    unrolled::<SYMMETRIC_BODIES>(|q| {
        let body = body(own + q as u32 * SYMMETRIC_BLOCK);
        positions[q] = body.position();
        masses[q] = body.mass;
    });

    // With an even number of groups, those in the first half meet one more group.
    let opposite = groups / 2;
    let meets = if groups.is_multiple_of(2) && group >= opposite {
        opposite
    } else {
        // equivalent mutant (literal: made `2`): `end` is at most this distance
        opposite + 1
    };
    let from = (first / SYMMETRIC_TILES).max(1);
    let mut at = first + part * per_part;
    let stop = (at + per_part).min(end).min(meets * SYMMETRIC_TILES);
    while at < stop {
        keep_rolled();
        let distance = at / SYMMETRIC_TILES;
        let mut other = group + distance;
        if other >= groups {
            other -= groups;
        }
        let start = other * SYMMETRIC_GROUP + at % SYMMETRIC_TILES * SYMMETRIC_TILE;
        at += 1;
        // This condition is the same for all threads of the block.
        // equivalent mutant (comparison): a tile without bodies adds nothing
        if start >= n {
            continue;
        }

        let own = body(start + t);
        // No thread stores while others still read the previous tile or its sums.
        thread::sync_threads();
        // SAFETY: the tile has as many bodies as the block has threads; each thread stores its own
        // twice, 32 apart, and nobody reads before the barrier.
        unsafe {
            let stored = tile.add((warp * 2 * LANES + lane) as usize);
            *stored = own;
            *stored.add(LANES as usize) = own;
        }
        thread::sync_threads();

        let mut chunk = 0;
        // equivalent mutant (width: made `SYMMETRIC_TILE + 1`): the quotient is the same
        while chunk < SYMMETRIC_TILE / LANES {
            keep_rolled();
            // SAFETY: within the tile.
            let chunk_bodies = unsafe { tile.add((chunk * 2 * LANES) as usize) };
            let mut k = 0;
            // equivalent mutant (guard: made `false`): the same sums in another order, and slower
            if distance == 0 {
                while k < LANES {
                    keep_rolled();
                    unrolled::<4>(|u| {
                        // SAFETY: k + u < 32; written before the barrier.
                        let other = unsafe { Body::load(chunk_bodies.add(k as usize + u)) };
                        unrolled::<SYMMETRIC_BODIES>(|q| {
                            sums[q] =
                                body_body_refined(sums[q], positions[q], other, softening_squared);
                        });
                    });
                    k += 4;
                }
            } else {
                let mut gathering = [T::ZERO; 3];
                while k < LANES {
                    keep_rolled();
                    unrolled::<UNROLL>(|u| {
                        // SAFETY: lane + k + u < 64; written before the barrier.
                        let other =
                            unsafe { Body::load(chunk_bodies.add((lane + k) as usize + u)) };
                        unrolled::<SYMMETRIC_BODIES>(|q| {
                            let position = positions[q];
                            let (r, distance_squared) =
                                separation(position, other, softening_squared);
                            let [inverse, square] = distance_squared.inverse_cube();
                            let s = (other.mass * inverse) * square;
                            for axis in 0..3 {
                                sums[q][axis] = s.mul_add(r[axis], sums[q][axis]);
                            }
                            let s = (masses[q] * inverse) * square;
                            for axis in 0..3 {
                                gathering[axis] = s.mul_add(r[axis], gathering[axis]);
                            }
                        });
                        for sum in &mut gathering {
                            *sum = T::at_lane(*sum, next);
                        }
                    });
                    k += UNROLL as u32;
                }
                let place = (warp * SYMMETRIC_TILE + chunk * LANES + lane) as usize;
                unrolled::<3>(|axis| {
                    // SAFETY: each combination of warp, chunk and lane has its own place.
                    unsafe { *gathered.add(axis * GATHERED + place) = gathering[axis] };
                });
            }
            chunk += 1;
        }

        if distance != 0 {
            thread::sync_threads();
            let j = start + t;
            if j < n {
                let mut sum = [T::ZERO; 3];
                unrolled::<3>(|axis| {
                    unrolled::<WARPS>(|warp| {
                        let place = warp * SYMMETRIC_TILE as usize + t as usize;
                        // SAFETY: within the array; all of it was written before
                        // the barrier.
                        sum[axis] = sum[axis] + unsafe { *gathered.add(axis * GATHERED + place) };
                    });
                });
                let row = (distance - from) as usize;
                // SAFETY: no other block has this distance and this body: group `other` is at
                // `distance` from only one group.
                unsafe { *reactions.add(row * n as usize + j as usize) = sum };
            }
        }
    }

    unrolled::<SYMMETRIC_BODIES>(|q| {
        let i = own + q as u32 * SYMMETRIC_BLOCK;
        if i < n {
            // SAFETY: part and i are within the grid and the bodies, and no other
            // thread has this pair.
            unsafe { *partials.add(part as usize * n as usize + i as usize) = sums[q] };
        }
    });
}
