//! The CPU port: any size, row by row.
//!
//! Written from the formula and not from the kernels, which are checked against
//! it. The order of the operations is part of the definition: one product, then
//! three fused multiply-adds, nearest neighbours first.
#![forbid(unsafe_code)]

use super::rows::{Sweep, for_each_row};
use super::{Axis, Derivative3d, RADIUS};
use crate::simd::antisymmetric;

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

    let row = |j: usize, k: usize| &f[k * plane + j * shape.nx..][..shape.nx];
    let sweep = match axis {
        Axis::X | Axis::Y => Sweep::Planes,
        Axis::Z => Sweep::AlongZ,
    };
    // A row between its halos.
    let spare = || match axis {
        Axis::X => vec![0.0; shape.nx + 2 * RADIUS],
        Axis::Y | Axis::Z => Vec::new(),
    };
    for_each_row(shape, sweep, [df], spare, |padded, j, k, [df]| match axis {
        Axis::X => along_row(df, weights, row(j, k), padded, image),
        Axis::Y => across_rows(df, weights, |m| row(image(j, m), k)),
        Axis::Z => across_rows(df, weights, |m| row(j, image(k, m))),
    });
}

/// The derivative of one row along itself, by way of `padded`, which holds it and a halo of
/// `RADIUS` points on both sides; `image(i, m)` is the point `m` points ahead of point `i`.
fn along_row(
    df: &mut [f32],
    weights: [f32; RADIUS],
    f: &[f32],
    padded: &mut [f32],
    image: impl Fn(usize, isize) -> usize,
) {
    let n = f.len();
    padded[RADIUS..RADIUS + n].copy_from_slice(f);
    for m in 1..=RADIUS {
        padded[RADIUS - m] = f[image(0, -(m as isize))];
        padded[RADIUS + n - 1 + m] = f[image(n - 1, m as isize)];
    }
    let ahead = std::array::from_fn(|m| &padded[RADIUS + (m + 1)..]);
    let behind = std::array::from_fn(|m| &padded[RADIUS - (m + 1)..]);
    antisymmetric(df, weights, ahead, behind);
}

/// The derivative of one row across rows: `neighbour(m)` is the row `m` points
/// ahead.
fn across_rows<'f>(df: &mut [f32], weights: [f32; RADIUS], neighbour: impl Fn(isize) -> &'f [f32]) {
    let ahead = std::array::from_fn(|m| neighbour(m as isize + 1));
    let behind = std::array::from_fn(|m| neighbour(-(m as isize) - 1));
    antisymmetric(df, weights, ahead, behind);
}
