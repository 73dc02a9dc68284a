//! The stencil with 16 bytes per access and neighbours from shuffles.
//!
//! - The line is a sequence of vectors of 4 elements: thread t of block b has the
//!   vectors `b * VECTOR_BLOCK * VECTORS + t` and every [`VECTOR_BLOCK`]-th after it,
//!   [`VECTORS`] in all.
//! - The stencil reaches one vector to either side. These come from the previous and the next lane
//!   by 8 shuffles; the first and the last lane of a warp load the one that no lane has. No shared
//!   memory, no barrier; all loads come before the first store.
//! - The first vector has no element to compute. A vector with four elements to compute takes one
//!   store; near the end, where a vector has fewer, each element takes its own store.
//! - The coefficients are in constant memory, as a launch parameter.
//!
//! # What limits it
//!
//! - Bytes: 4 in and 4 out per element; 2 vectors of 32 are read twice, nearly always from a cache.
//! - Instructions per vector: 32 of arithmetic, 8 shuffles, a load and a store, about 20 for the
//!   ends: 60, where 228 fit into the time in which memory moves 32 lanes' vectors at 4.3 TB/s on
//!   132 multiprocessors. Predicted: the speed of a copy.
//!
//! Measurements and other variants: `docs/tuning/stencil1d.md`.

use super::nine_point::{RADIUS, VECTOR_BLOCK, VECTORS, weighted_sum};
use crate::loops::unrolled;
use crate::vector::{Points, Vector4, WARP, from_lanes, joined};
use cuda_std::cache::{load_readonly, store_streaming};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

// gate stencil1d_vector4: registers <= 48, spills = 0, stack = 0, LD = 0, ST = 0
// gate stencil1d_vector4: STG.E.EF.128 = 2, SHFL = 16, FMUL = 8, FFMA = 24

/// The stencil, 4 elements per access.
///
/// `input` and `output`: `n` elements; `coefficients[m - 1]` belongs to the neighbours `m`
/// elements away. Writes `output[4..n - 4]`.
///
/// # Safety
///
/// - `input` is readable and `output` writable for `n` elements, both aligned to 16
///   bytes; they do not overlap. During the launch nobody writes `input`, and nothing
///   else accesses `output`.
/// - A one-dimensional grid of `ceil(n / (4 * VECTOR_BLOCK * VECTORS))` blocks of
///   `VECTOR_BLOCK` threads.
#[kernel]
#[launch_bounds(VECTOR_BLOCK)]
pub unsafe fn stencil1d_vector4(
    input: *const f32,
    output: *mut f32,
    n: usize,
    coefficients: [f32; RADIUS],
) {
    const COUNT: usize = Vector4::COUNT;
    let lane = thread::thread_idx_x() % WARP;
    let first = thread::block_idx_x() as usize * (VECTOR_BLOCK as usize * VECTORS)
        + thread::thread_idx_x() as usize;
    // The first element of the thread's nth vector.
    let start = |nth: usize| COUNT * (first + nth * VECTOR_BLOCK as usize);
    let source = |i: usize| {
        // equivalent mutant (comparison): the same four elements are read one by one
        if i + COUNT <= n {
            // SAFETY: four elements of the line, a multiple of four from its start.
            return unsafe { load_readonly(input.add(i).cast::<Vector4>()) };
        }
        Vector4::of(|e| {
            // equivalent mutant (comparison: `<=`): no stencil reaches the element
            if i + e < n {
                // SAFETY: an element of the line.
                unsafe { load_readonly(input.add(i + e)) }
            } else {
                0.0
            }
        })
    };

    let mut own = [Vector4::ZERO; VECTORS];
    let mut before = own;
    let mut behind = own;
    unrolled::<VECTORS>(|nth| own[nth] = source(start(nth)));
    unrolled::<VECTORS>(|nth| {
        // equivalent mutant (literal: in `start(nth) > 0`): a vector starts at a multiple of four
        if lane == 0 && start(nth) > 0 {
            before[nth] = source(start(nth) - COUNT);
        }
        // equivalent mutant (guard): the other lanes would load, but use nothing
        if lane == WARP - 1 {
            behind[nth] = source(start(nth) + COUNT);
        }
    });
    unrolled::<VECTORS>(|nth| {
        // SAFETY: all lanes of the warp are here.
        let (mut left, mut right) = unsafe { from_lanes(own[nth]) };
        if lane == 0 {
            left = before[nth];
        }
        if lane == WARP - 1 {
            right = behind[nth];
        }
        let cells = joined(left, own[nth], right);
        let value = Vector4::of(|e| {
            weighted_sum(
                |m| coefficients[m - 1],
                |m| cells[RADIUS + e + m] - cells[RADIUS + e - m],
            )
        });
        let i = start(nth);
        // equivalent mutant (comparison): without vectors the elements are written one by one
        // equivalent mutant (guard: `false`): as above
        // equivalent mutant (width: in `i >= RADIUS`): as above, and `i` is a multiple of four
        // equivalent mutant (width: `RADIUS + 1` in `i + COUNT + RADIUS`): as above
        if i >= RADIUS && i + COUNT + RADIUS <= n {
            // SAFETY: four inner elements, which no other thread writes.
            unsafe { store_streaming(output.add(i).cast::<Vector4>(), value) };
        // equivalent mutant (width: `RADIUS - 1`): `i` is a multiple of four
        } else if i >= RADIUS {
            unrolled::<COUNT>(|e| {
                if i + e + RADIUS < n {
                    // SAFETY: an inner element, which no other thread writes.
                    unsafe { store_streaming(output.add(i + e), value.point(e)) };
                }
            });
        }
    });
}

crate::register! {
    stencil1d_vector4: f32, Tuned,
    "16 bytes per access, neighbours from other lanes",
    geometry: |kernel, line| {
        let per_block = Vector4::COUNT * VECTOR_BLOCK as usize * VECTORS;
        let grid = blocks_for(kernel, line.points(), per_block)?;
        Ok(Geometry::linear(grid, VECTOR_BLOCK))
    },
    cost: super::geometry::cost,
    example: super::geometry::EXAMPLE,
}
