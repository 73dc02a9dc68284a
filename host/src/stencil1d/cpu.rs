//! The CPU port: any length, several parts of the line at a time.
//!
//! Written from the formula and not from the kernels, which are checked against
//! it. The order of the operations is part of the definition: one product, then
//! three fused multiply-adds, nearest neighbours first.
#![forbid(unsafe_code)]

use super::RADIUS;
use crate::simd::antisymmetric;
use rayon::prelude::*;

/// Elements that are worth handing to another thread.
const ELEMENTS_PER_TASK: usize = 1 << 13;

/// The stencil on `input` into the inner elements of `output`, both of one
/// length, at least `2 * RADIUS + 1`.
pub(super) fn stencil(coefficients: [f32; RADIUS], input: &[f32], output: &mut [f32]) {
    let inner = RADIUS..output.len() - RADIUS;
    output[inner]
        .par_chunks_mut(ELEMENTS_PER_TASK)
        .enumerate()
        .for_each(|(task, output)| {
            // Element i of this task's output is centred on element i + RADIUS here.
            let input = &input[task * ELEMENTS_PER_TASK..];
            let ahead = std::array::from_fn(|m| &input[RADIUS + (m + 1)..]);
            let behind = std::array::from_fn(|m| &input[RADIUS - (m + 1)..]);
            antisymmetric(output, coefficients, ahead, behind);
        });
}
