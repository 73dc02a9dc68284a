//! A step as a plain loop over a periodic field, from the formula: what tests compare the
//! kernels with.
#![forbid(unsafe_code)]

use crate::simd::Value;
use std::ops::Div;

/// `((2 u - past) + speed L u + damping past) / (1 + damping)`, with as many neighbours along
/// each axis as `axes` has weights; without `damping`, it is left out.
pub(super) fn step<T: Value + Div<Output = T> + From<f32>>(
    extents: [usize; 3],
    centre: T,
    axes: &[Vec<T>; 3],
    [u, past, speed]: [&[T]; 3],
    damping: Option<&[T]>,
) -> Vec<T> {
    let [nx, ny, _] = extents;
    let points = 0..extents.iter().product();
    let next = points.map(|here: usize| {
        let place = [here % nx, here / nx % ny, here / (nx * ny)];
        let at = |axis: usize, distance: usize, before: bool| {
            let (mut place, n) = (place, extents[axis]);
            let distance = distance % n;
            let moved = if before { n - distance } else { distance };
            place[axis] = (place[axis] + moved) % n;
            u[(place[2] * ny + place[1]) * nx + place[0]]
        };
        let mut laplacian = u[here] * centre;
        for m in 0..axes[0].len() {
            for axis in 0..3 {
                let pair = at(axis, m + 1, true) + at(axis, m + 1, false);
                laplacian = pair.fused(axes[axis][m], laplacian);
            }
        }
        let two = T::from(2.0);
        match damping {
            None => laplacian.fused(speed[here], u[here].fused(two, -past[here])),
            Some(damping) => {
                let damped = past[here].fused(damping[here], -past[here]);
                let sum = laplacian.fused(speed[here], u[here].fused(two, damped));
                sum / (damping[here] + T::from(1.0))
            }
        }
    });
    next.collect()
}
