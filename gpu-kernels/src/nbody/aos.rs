//! All-pairs gravity where every thread reads every body from global memory.
//!
//! - Input: an array of structures, body j at `bodies[j]`: 16 bytes in f32, 32
//!   in f64. Output: three reals per body, packed.
//! - Grid: `ceil(n / block)` blocks along x, any block size; a thread computes
//!   the acceleration of one body.
//! - A warp reads one body at a time, the same for all lanes: the addresses do not depend on the
//!   thread, and after the first read by a block they hit the first-level cache.
//! - An iteration of the loop holds 1, 2, 4, 8, 16 or 32 interactions: with more of them, more
//!   share one comparison, one branch and one step of the address, and more loads are in flight.
//!   The remaining bodies are processed one by one.
//! - Reads n bodies and writes 12 or 24 bytes per thread; 20 or 30 flops per interaction.

use super::body::{Body, Real, body_body};
use crate::loops::{keep_rolled, unrolled};
use cuda_std::prelude::*;

/// Declares entry points: name, real type, interactions per iteration.
macro_rules! aos_kernels {
    ($($name:ident: $real:ty, $unroll:literal;)+) => {$(
        #[doc = concat!(
            "Accelerations of `n` bodies in `", stringify!($real), "`; a turn of the loop holds ",
            stringify!($unroll), " interaction(s).",
        )]
        ///
        /// `bodies` and `accelerations`: `n` elements; `softening_squared`: ε².
        ///
        /// # Safety
        ///
        /// - `bodies` is readable and `accelerations` writable for `n` elements;
        ///   they do not overlap, and nothing else accesses `accelerations`
        ///   during the launch.
        /// - The launch extends along x alone and has `n` threads or more, but
        ///   fewer than 2³².
        #[kernel]
        pub unsafe fn $name(
            bodies: *const Body<$real>,
            n: u32,
            softening_squared: $real,
            accelerations: *mut [$real; 3],
        ) {
            // SAFETY: forwarded word for word.
            unsafe { aos::<$real, $unroll>(bodies, n, softening_squared, accelerations) }
        }
    )+};
}

// The interactions of an iteration and one for the rest, each with 12 FP32 instructions, a
// reciprocal square root and a load of 16 bytes, and one more load for the position:
// gate nbody_aos_*: LD = 0, ST = 0
// gate nbody_aos_unroll1_f32: FADD = 3, FFMA = 6, FMUL = 3, MUFU = 1, LDG.E.128 = 2
// gate nbody_aos_unroll8_f32: FADD = 27, FFMA = 54, FMUL = 27, MUFU = 9, LDG.E.128 = 10
// gate nbody_aos_unroll32_f32: FADD = 99, FFMA = 198, FMUL = 99, MUFU = 33, LDG.E.128 = 34

aos_kernels! {
    nbody_aos_unroll1_f32: f32, 1;
    nbody_aos_unroll2_f32: f32, 2;
    nbody_aos_unroll4_f32: f32, 4;
    nbody_aos_unroll8_f32: f32, 8;
    nbody_aos_unroll16_f32: f32, 16;
    nbody_aos_unroll32_f32: f32, 32;
    nbody_aos_unroll1_f64: f64, 1;
    nbody_aos_unroll2_f64: f64, 2;
    nbody_aos_unroll4_f64: f64, 4;
    nbody_aos_unroll8_f64: f64, 8;
    nbody_aos_unroll16_f64: f64, 16;
    nbody_aos_unroll32_f64: f64, 32;
}

/// Declares entries of the table: name, real type, what the kernel computes.
macro_rules! registered {
    ($($name:ident: $real:ident, $computes:literal;)+) => {$(
        crate::register! {
            $name: $real, Textbook,
            $computes,
            geometry: super::geometry::threads,
            cost: super::geometry::accelerations::<$real>,
            example: super::geometry::EXAMPLE,
            twin: same,
        }
    )+};
}

registered! {
    nbody_aos_unroll1_f32: f32, "bodies from global memory, one interaction per turn";
    nbody_aos_unroll2_f32: f32, "two interactions per turn";
    nbody_aos_unroll4_f32: f32, "four interactions per turn";
    nbody_aos_unroll8_f32: f32, "eight interactions per turn";
    nbody_aos_unroll16_f32: f32, "sixteen interactions per turn";
    nbody_aos_unroll32_f32: f32, "thirty-two interactions per turn";
    nbody_aos_unroll1_f64: f64, "bodies from global memory, one interaction per turn";
    nbody_aos_unroll2_f64: f64, "two interactions per turn";
    nbody_aos_unroll4_f64: f64, "four interactions per turn";
    nbody_aos_unroll8_f64: f64, "eight interactions per turn";
    nbody_aos_unroll16_f64: f64, "sixteen interactions per turn";
    nbody_aos_unroll32_f64: f64, "thirty-two interactions per turn";
}

/// The acceleration of the thread's body, with `UNROLL` interactions per iteration.
///
/// # Safety
///
/// As the entry points.
#[inline(always)]
unsafe fn aos<T: Real, const UNROLL: usize>(
    bodies: *const Body<T>,
    n: u32,
    softening_squared: T,
    accelerations: *mut [T; 3],
) {
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    let i = i as usize;
    let (mut turns, mut rest) = (n / UNROLL as u32, n % UNROLL as u32);

    // SAFETY: i < n, so body i and acceleration i exist, and no other thread has this i. `next`
    // takes n values from `bodies` on: UNROLL in each of the `turns` and one in each of the `rest`.
    unsafe {
        let position = Body::load(bodies.add(i)).position();
        let mut sum = [T::ZERO; 3];

        let mut next = bodies;
        while turns != 0 {
            keep_rolled();
            unrolled::<UNROLL>(|k| {
                sum = body_body(sum, position, Body::load(next.add(k)), softening_squared);
            });
            next = next.add(UNROLL);
            turns -= 1;
        }
        while rest != 0 {
            keep_rolled();
            sum = body_body(sum, position, Body::load(next), softening_squared);
            next = next.add(1);
            rest -= 1;
        }
        *accelerations.add(i) = sum;
    }
}
