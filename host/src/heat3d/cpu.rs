//! The updates as plain loops over a periodic field, from the formulas: what tests compare the
//! kernels with.
#![forbid(unsafe_code)]

use crate::simd::Value;

/// Each point of a periodic field: its element and those of its neighbours, west, east, south,
/// north, below, above.
fn neighbours([nx, ny, nz]: [usize; 3]) -> impl Iterator<Item = [usize; 7]> {
    let rows = (0..nz).flat_map(move |k| (0..ny).map(move |j| (j, k)));
    rows.flat_map(move |(j, k)| {
        (0..nx).map(move |i| {
            let at = |i: usize, j: usize, k: usize| (k * ny + j) * nx + i;
            [
                at(i, j, k),
                at((i + nx - 1) % nx, j, k),
                at((i + 1) % nx, j, k),
                at(i, (j + ny - 1) % ny, k),
                at(i, (j + 1) % ny, k),
                at(i, j, (k + nz - 1) % nz),
                at(i, j, (k + 1) % nz),
            ]
        })
    })
}

/// `u + Σ r ((before + behind) - 2 u)`.
pub(super) fn step<T: Value + From<f32>>(
    extents: [usize; 3],
    [rx, ry, rz]: [T; 3],
    u: &[T],
) -> Vec<T> {
    neighbours(extents)
        .map(|[here, west, east, south, north, below, above]| {
            let here = u[here];
            let second =
                |before: usize, behind: usize| here.fused(T::from(-2.0), u[before] + u[behind]);
            let with_x = second(west, east).fused(rx, here);
            let with_y = second(south, north).fused(ry, with_x);
            second(below, above).fused(rz, with_y)
        })
        .collect()
}

/// `Σ w (before + behind) + w f`.
pub(super) fn iteration<T: Value>(
    extents: [usize; 3],
    [wx, wy, wz]: [T; 3],
    source: T,
    u: &[T],
    f: &[T],
) -> Vec<T> {
    neighbours(extents)
        .map(|[here, west, east, south, north, below, above]| {
            let with_x = (u[west] + u[east]) * wx;
            let with_y = (u[south] + u[north]).fused(wy, with_x);
            let with_z = (u[below] + u[above]).fused(wz, with_y);
            f[here].fused(source, with_z)
        })
        .collect()
}
