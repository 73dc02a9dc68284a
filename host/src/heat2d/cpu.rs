//! The CPU port: one row after the other, several rows at a time.
//!
//! Written from the formula and not from the kernels, which are checked against
//! it. The order of the operations is part of the definition: east and west,
//! north and south, then the two sums.
#![forbid(unsafe_code)]

use crate::Shape2;
use rayon::prelude::*;

/// Points that are worth handing to another thread.
const POINTS_PER_TASK: usize = 1 << 13;

/// One sweep from `old` into the interior points of `new`, both of `shape`, at
/// least 3 × 3.
pub(super) fn sweep(shape: Shape2, old: &[f32], new: &mut [f32]) {
    let Shape2 { nx, ny } = shape;
    let row = |j: usize| &old[j * nx..][..nx];

    new.par_chunks_exact_mut(nx)
        .enumerate()
        .skip(1)
        .take(ny - 2)
        .with_min_len(POINTS_PER_TASK.div_ceil(nx))
        .for_each(|(j, new)| {
            let middle = row(j).windows(3);
            let north = &row(j + 1)[1..];
            let south = &row(j - 1)[1..];
            let vertical = north.iter().zip(south);
            for ((new, middle), (north, south)) in new[1..].iter_mut().zip(middle).zip(vertical) {
                let (west, east) = (middle[0], middle[2]);
                *new = ((east + west) + (north + south)) * 0.25;
            }
        });
}
