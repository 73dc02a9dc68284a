//! The CPU port: any length, several parts of the line at a time.
//!
//! Written from the formula and not from the kernels, which are checked against
//! it. The order of the operations is part of the definition: one product, then
//! three fused multiply-adds, nearest neighbours first.
#![forbid(unsafe_code)]

use super::RADIUS;
use super::custom::{Form, MAX_POINTS, MAX_RADIUS};
use crate::simd::{InVectors, vectorised};
use rayon::prelude::*;

/// Elements that are worth handing to another thread.
const ELEMENTS_PER_TASK: usize = 1 << 13;

/// The stencil on `input` into the inner elements of `output`, both of one
/// length, at least `2 * RADIUS + 1`.
pub(super) fn stencil(coefficients: [f32; RADIUS], input: &[f32], output: &mut [f32]) {
    let mut points = [0.0; MAX_POINTS];
    points[MAX_RADIUS + 1..][..RADIUS].copy_from_slice(&coefficients);
    by_radius::<f32, RADIUS>(Form::Antisymmetric, &points, input, output);
}

/// The stencil with `coefficients[8 + m]` for the neighbour m, on `input` into the
/// inner elements of `output`, both of one length, at least `2 * radius + 1`.
pub(super) fn custom<T: InVectors>(
    form: Form,
    radius: usize,
    coefficients: &[T; MAX_POINTS],
    input: &[T],
    output: &mut [T],
) {
    match radius {
        1 => by_radius::<T, 1>(form, coefficients, input, output),
        2 => by_radius::<T, 2>(form, coefficients, input, output),
        3 => by_radius::<T, 3>(form, coefficients, input, output),
        4 => by_radius::<T, 4>(form, coefficients, input, output),
        5 => by_radius::<T, 5>(form, coefficients, input, output),
        6 => by_radius::<T, 6>(form, coefficients, input, output),
        7 => by_radius::<T, 7>(form, coefficients, input, output),
        _ => by_radius::<T, 8>(form, coefficients, input, output),
    }
}

fn by_radius<T: InVectors, const R: usize>(
    form: Form,
    coefficients: &[T; MAX_POINTS],
    input: &[T],
    output: &mut [T],
) {
    let center = coefficients[MAX_RADIUS];
    let next: [T; R] = std::array::from_fn(|m| coefficients[MAX_RADIUS + 1 + m]);
    let last: [T; R] = std::array::from_fn(|m| coefficients[MAX_RADIUS - 1 - m]);
    let inner = R..output.len() - R;
    output[inner]
        .par_chunks_mut(ELEMENTS_PER_TASK)
        .enumerate()
        .for_each(|(task, output)| {
            // Element i of this task's output is centred on element i + R here.
            let input = &input[task * ELEMENTS_PER_TASK..];
            let here = &input[R..];
            let ahead: [&[T]; R] = std::array::from_fn(|m| &input[R + (m + 1)..]);
            let behind: [&[T]; R] = std::array::from_fn(|m| &input[R - (m + 1)..]);
            vectorised(
                #[inline(always)]
                || match form {
                    Form::Antisymmetric => each(
                        output,
                        here,
                        ahead,
                        behind,
                        #[inline(always)]
                        |i, _, ahead, behind| {
                            let mut sum = next[0] * (ahead[0][i] - behind[0][i]);
                            for m in 1..R {
                                sum = (ahead[m][i] - behind[m][i]).fused(next[m], sum);
                            }
                            sum
                        },
                    ),
                    Form::Symmetric => each(
                        output,
                        here,
                        ahead,
                        behind,
                        #[inline(always)]
                        |i, here, ahead, behind| {
                            let mut sum = center * here[i];
                            for m in 0..R {
                                sum = (ahead[m][i] + behind[m][i]).fused(next[m], sum);
                            }
                            sum
                        },
                    ),
                    Form::Any => each(
                        output,
                        here,
                        ahead,
                        behind,
                        #[inline(always)]
                        |i, here, ahead, behind| {
                            let mut sum = center * here[i];
                            for m in 0..R {
                                sum = ahead[m][i].fused(next[m], sum);
                                sum = behind[m][i].fused(last[m], sum);
                            }
                            sum
                        },
                    ),
                },
            );
        });
}

// A function, not a loop in the closures: that its arguments are different memory is
// known from their types, and without that nothing is vectorised. The formulas are
// `#[inline(always)]`, too: those of many points would else stay calls.
#[inline(always)]
fn each<T: InVectors, const R: usize>(
    out: &mut [T],
    here: &[T],
    ahead: [&[T]; R],
    behind: [&[T]; R],
    value: impl Fn(usize, &[T], &[&[T]; R], &[&[T]; R]) -> T,
) {
    let n = out.len();
    // Of one length for all to see: no bound is checked in the loop.
    let here = &here[..n];
    let (ahead, behind) = (ahead.map(|row| &row[..n]), behind.map(|row| &row[..n]));
    #[expect(clippy::needless_range_loop, reason = "all rows have one index")]
    for i in 0..n {
        out[i] = value(i, here, &ahead, &behind);
    }
}
