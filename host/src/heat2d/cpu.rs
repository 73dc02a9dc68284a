//! The CPU port: one row after the other, several rows at a time.
//!
//! Written from the formula and not from the kernels, which are checked against
//! it. The order of the operations is part of the definition: east and west,
//! north and south, then the two sums.
#![forbid(unsafe_code)]

use crate::Shape2;
use crate::simd::{STREAMED_FROM, stream, vectorised};
use bytemuck::Pod;
use rayon::prelude::*;
use std::ops::{Add, Mul, Sub};

/// What the formula asks of a temperature: `f32` or `f64`.
pub(super) trait Temperature:
    Pod
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + From<f32>
    + PartialOrd
{
}

impl<T> Temperature for T where
    T: Pod
        + Send
        + Sync
        + Add<Output = T>
        + Sub<Output = T>
        + Mul<Output = T>
        + From<f32>
        + PartialOrd
{
}

/// Points that are worth handing to another thread.
const POINTS_PER_TASK: usize = 1 << 13;

/// Bytes of a row from which on it is worth writing past the caches by itself.
const STREAMED_ROW: usize = 4 << 10;

/// One sweep from `old` into the interior points of `new`, both of `shape`, at
/// least 3 × 3. Plates that no cache holds are written past the caches.
pub(super) fn sweep<T: Temperature>(shape: Shape2, old: &[T], new: &mut [T]) {
    let row_bytes = shape.nx * size_of::<T>();
    let streams = size_of_val(old) >= STREAMED_FROM && row_bytes >= STREAMED_ROW;
    sweep_by(shape, streams, old, new);
}

/// As [`sweep`], past the caches or not.
fn sweep_by<T: Temperature>(shape: Shape2, streams: bool, old: &[T], new: &mut [T]) {
    let Shape2 { nx, ny } = shape;
    let row = |j: usize| &old[j * nx..][..nx];
    let staging = || match streams {
        true => vec![T::zeroed(); nx],
        false => Vec::new(),
    };

    new.par_chunks_exact_mut(nx)
        .enumerate()
        .skip(1)
        .take(ny - 2)
        .with_min_len(POINTS_PER_TASK.div_ceil(nx))
        .for_each_init(staging, |staged, (j, new)| {
            let (south, middle, north) = (row(j - 1), row(j), row(j + 1));
            let out = if streams { &mut **staged } else { &mut *new };
            vectorised(
                #[inline(always)]
                || sweep_row(out, south, middle, north),
            );
            if streams {
                let interior = 1..nx - 1;
                stream(&mut new[interior.clone()], &staged[interior]);
            }
        });
}

/// The interior points of one row, from the three rows around it, all of one
/// length, at least 3.
// A function, not a loop in the closure: that its arguments are different memory
// is known from their types, and without that nothing is vectorised.
#[inline(always)]
fn sweep_row<T: Temperature>(new: &mut [T], south: &[T], middle: &[T], north: &[T]) {
    let quarter = T::from(0.25);
    let vertical = north[1..].iter().zip(&south[1..]);
    for ((new, middle), (&north, &south)) in
        new[1..].iter_mut().zip(middle.windows(3)).zip(vertical)
    {
        let (west, east) = (middle[0], middle[2]);
        *new = ((east + west) + (north + south)) * quarter;
    }
}

/// The largest magnitude of a difference; NaN if there is one.
pub(super) fn largest_change<T: Temperature>(old: &[T], new: &[T]) -> T {
    // Of two NaN, or of one and a number, a NaN.
    let larger = |a: T, b: T| {
        if a >= b || a.partial_cmp(&a).is_none() {
            a
        } else {
            b
        }
    };
    old.par_iter()
        .zip(new)
        .with_min_len(POINTS_PER_TASK)
        .map(|(&old, &new)| if new >= old { new - old } else { old - new })
        .reduce(|| T::from(0.0), larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_past_the_caches_is_a_sweep() {
        for (nx, ny) in [(3, 3), (4, 9), (37, 5), (256, 70)] {
            let old: Vec<f32> = (0..nx * ny).map(|i| (i * i % 1013) as f32).collect();
            let mut swept = [vec![f32::NAN; nx * ny], vec![f32::NAN; nx * ny]];
            for (streams, new) in [false, true].into_iter().zip(&mut swept) {
                sweep_by(Shape2::new(nx, ny), streams, &old, new);
            }
            let [plain, streamed] = swept.map(|field| field.into_iter().map(f32::to_bits));
            assert!(plain.eq(streamed), "{nx} x {ny}");
        }
    }
}
