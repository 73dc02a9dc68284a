//! The CPU port: any length, plain loops, several parts of the line at a time.
//!
//! Written from the formula and not from the kernels, which are checked against
//! it. The order of the operations is part of the definition: one product, then
//! three fused multiply-adds, nearest neighbours first.
#![forbid(unsafe_code)]

use super::RADIUS;
use rayon::prelude::*;

/// Elements that are worth handing to another thread.
const ELEMENTS_PER_TASK: usize = 1 << 13;

/// The stencil on `input` into the inner elements of `output`, both of one
/// length, at least `2 * RADIUS + 1`.
pub(super) fn stencil(coefficients: [f32; RADIUS], input: &[f32], output: &mut [f32]) {
    let inner = RADIUS..output.len() - RADIUS;
    output[inner]
        .par_iter_mut()
        // Window number i is centred on element i + RADIUS.
        .zip(input.par_windows(2 * RADIUS + 1))
        .with_min_len(ELEMENTS_PER_TASK)
        .for_each(|(output, window)| {
            let difference = |m: usize| window[RADIUS + m] - window[RADIUS - m];
            let mut sum = coefficients[0] * difference(1);
            for m in 2..=RADIUS {
                sum = difference(m).mul_add(coefficients[m - 1], sum);
            }
            *output = sum;
        });
}
