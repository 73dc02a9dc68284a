//! The CPU port: any size, plain loops, one task per plane.
//!
//! Written from the formula and not from the kernels, which are checked against
//! it. The order of the operations is part of the definition: one product, then
//! three fused multiply-adds, nearest neighbours first.
#![forbid(unsafe_code)]

use super::{Axis, Derivative3d, RADIUS};
use rayon::prelude::*;

/// ∂f/∂axis of `f` into `df`, both of the plan's shape.
///
/// The axis has at least `RADIUS + overlap` points.
pub(super) fn derivative(plan: &Derivative3d, axis: Axis, f: &[f32], df: &mut [f32]) {
    let shape = plan.shape();
    let n = axis.extent(shape) as isize;
    let period = n - plan.boundary().overlap() as isize;
    let weights = plan.weights(axis);
    // The stored point that lies `offset` points from point `p`. With an end point
    // stored twice it matters which of the two copies is read when they differ:
    // the halo cell n - 1 + m is point m, also where m is the last point.
    let image = |p: usize, offset: isize| {
        let q = p as isize + offset;
        let stored = if q < 0 {
            q + period
        } else if q >= n {
            q - period
        } else {
            q
        };
        stored as usize
    };
    let plane = shape.nx * shape.ny;

    df.par_chunks_mut(plane.max(1))
        .enumerate()
        .for_each(|(k, df)| {
            for (j, df) in df.chunks_mut(shape.nx).enumerate() {
                let row = |j: usize, k: usize| &f[k * plane + j * shape.nx..][..shape.nx];
                match axis {
                    Axis::X => {
                        let f = row(j, k);
                        for (i, df) in df.iter_mut().enumerate() {
                            *df = combine(&weights, |m| f[image(i, m)] - f[image(i, -m)]);
                        }
                    }
                    Axis::Y => rows(df, &weights, |m| row(image(j, m), k)),
                    Axis::Z => rows(df, &weights, |m| row(j, image(k, m))),
                }
            }
        });
}

/// A derivative across rows: `neighbour(m)` is the row `m` points ahead.
fn rows<'f>(df: &mut [f32], weights: &[f32; RADIUS], neighbour: impl Fn(isize) -> &'f [f32]) {
    let ahead: [&[f32]; RADIUS] = std::array::from_fn(|m| neighbour(m as isize + 1));
    let behind: [&[f32]; RADIUS] = std::array::from_fn(|m| neighbour(-(m as isize) - 1));
    for (i, df) in df.iter_mut().enumerate() {
        *df = combine(weights, |m| {
            ahead[m as usize - 1][i] - behind[m as usize - 1][i]
        });
    }
}

/// Σ weights[m-1] · difference(m), the nearest neighbours first.
fn combine(weights: &[f32; RADIUS], difference: impl Fn(isize) -> f32) -> f32 {
    let mut sum = weights[0] * difference(1);
    for m in 2..=RADIUS {
        sum = difference(m as isize).mul_add(weights[m - 1], sum);
    }
    sum
}
