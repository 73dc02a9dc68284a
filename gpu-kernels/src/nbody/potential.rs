//! The potential of each body, or its share of the potential energy.
//!
//! ```text
//! φ_i = -Σ_{j ≠ i} m_j / √(|x_j - x_i|² + ε²)        E = Σ_i m_i φ_i / 2
//! ```
//!
//! (the potential whose negative gradient is the acceleration of [`body_body`](super::body_body);
//! Aarseth, "Gravitational N-Body Simulations", 2003, section 1.2.)
//!
//! - Input: n bodies, f32 or f64. Output: n numbers in f64, φ_i or m_i φ_i / 2.
//! - Tile: as many bodies as the block has threads, in dynamic shared memory; a thread computes the
//!   potential of one body and loads one of each tile. The last tile is filled up with
//!   [`Body::NOTHING`], which adds nothing.
//! - The term of a body with itself, m / ε, is left out, and not subtracted at the end, which would
//!   cost all digits if ε is small. It occurs only in the block's own tile.
//! - Arithmetic: terms and the sum over a tile in the type of the bodies, the sum of the tiles in
//!   f64. So the error does not grow with n: it is that of a term and one rounding for each body of
//!   a tile.
//! - 8 bytes written per body; 3 differences, 3 fused multiply-adds, a reciprocal square root and
//!   one more fused multiply-add: 13 flops per interaction (f64: 23, the root counted as 12).
//!
//! # What limits it
//!
//! Instructions: 7 FP32 and a reciprocal square root, issued at a sixteenth of the rate of the four
//! schedulers together (16 a clock), and a load of 16 bytes from shared memory that all lanes
//! share. The roots and the other 8 warp instructions on one scheduler take equally long:
//! predicted, 8 clocks per warp and interaction, or 132 × 4 × 32 / 8 = 2112 interactions a clock on
//! an H200.

use super::body::{Body, Real, separation};
use super::tiles::SHARED_UNROLL;
use crate::loops::{keep_rolled, unrolled};
use cuda_std::prelude::*;
use cuda_std::shared::dynamic_shared_mem;

/// Declares entry points: name, real type.
macro_rules! potential_kernels {
    ($($name:ident: $real:ty;)+) => {$(
        #[doc = concat!("Potentials of `n` bodies in `", stringify!($real), "`, in f64.")]
        ///
        /// `bodies` and `potentials`: `n` elements; `softening_squared`: ε²; `weighted`: 0
        /// for φ_i, else m_i φ_i / 2.
        ///
        /// # Safety
        ///
        /// - `bodies` is readable and `potentials` writable for `n` elements; they do not
        ///   overlap, and nothing else accesses `potentials` during the launch.
        /// - The launch extends along x alone and has `n` threads or more; the block is a
        ///   multiple of [`SHARED_UNROLL`], and n plus the block size is below 2³².
        /// - The dynamic shared memory holds one body per thread of the block.
        #[kernel]
        pub unsafe fn $name(
            bodies: *const Body<$real>,
            n: u32,
            softening_squared: $real,
            weighted: u32,
            potentials: *mut f64,
        ) {
            // SAFETY: forwarded word for word.
            unsafe { potential::<$real>(bodies, n, softening_squared, weighted, potentials) }
        }
    )+};
}

// 16 interactions per iteration, in the loop of the block's own tile and in that of the others,
// each with 7 FP32 instructions, a reciprocal square root and a load of 16 bytes from the tile.
// gate nbody_potential_f32: MUFU = 32, LDS.128 = 32, LD = 0, ST = 0, spills = 0
// gate nbody_potential_f64: LDS.128 = 64, LD = 0, ST = 0, spills = 0

potential_kernels! {
    nbody_potential_f32: f32;
    nbody_potential_f64: f64;
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "potentials, or shares of their energy",
            geometry: super::geometry::tiled::<$real>,
            cost: super::geometry::potentials::<$real>,
            example: super::geometry::EXAMPLE,
            tile: "block bodies",
        }
    )+};
}

registered! {
    nbody_potential_f32: f32;
    nbody_potential_f64: f64;
}

/// The potential at the thread's body.
///
/// # Safety
///
/// As the entry points.
#[inline(always)]
unsafe fn potential<T: Real>(
    bodies: *const Body<T>,
    n: u32,
    softening_squared: T,
    weighted: u32,
    potentials: *mut f64,
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

    let here = body(i);
    let position = here.position();
    let mut total = 0.0_f64;
    let mut start = 0;
    // equivalent mutant (comparison): one more tile, whose bodies add nothing
    while start < n {
        let own = body(start + t);
        // SAFETY: t < block, the length of the tile; each thread stores its own
        // element, and nobody reads the tile before the barrier.
        unsafe { *tile.add(t as usize) = own };
        thread::sync_threads();

        // SAFETY: all of the tile was written before the barrier.
        let sum = unsafe {
            if i - t == start {
                tile_sum(tile, block, position, softening_squared, Some(t))
            } else {
                tile_sum(tile, block, position, softening_squared, None)
            }
        };
        total += sum.widened();
        // No thread stores the next tile while others still read this one.
        thread::sync_threads();
        start += block;
    }

    if i < n {
        let factor = if weighted == 0 {
            -1.0
        } else {
            -0.5 * here.mass.widened()
        };
        // SAFETY: potential i exists, and no other thread has this i.
        unsafe { *potentials.add(i as usize) = factor * total };
    }
}

/// `Σ m / √(|r|² + ε²)` over the bodies of a tile except number `without`.
///
/// # Safety
///
/// The tile is readable for `block` bodies, a multiple of [`SHARED_UNROLL`].
#[inline(always)]
unsafe fn tile_sum<T: Real>(
    tile: *const Body<T>,
    block: u32,
    position: [T; 3],
    softening_squared: T,
    without: Option<u32>,
) -> T {
    let mut sum = T::ZERO;
    let mut k = 0;
    while k < block {
        keep_rolled();
        unrolled::<SHARED_UNROLL>(|u| {
            // SAFETY: k + u < block, since SHARED_UNROLL divides block.
            let other = unsafe { Body::load(tile.add(k as usize + u)) };
            let (_, distance_squared) = separation(position, other, softening_squared);
            let inverse = distance_squared.rsqrt_ftz();
            let mass = match without {
                Some(t) if k + u as u32 == t => T::ZERO,
                _ => other.mass,
            };
            sum = mass.mul_add(inverse, sum);
        });
        k += SHARED_UNROLL as u32;
    }
    sum
}
