//! The CPU port: one row after the other, several rows at a time.
//!
//! Written from the formula and not from the kernels, which are checked against
//! it. The order of the operations is part of the definition: east and west,
//! north and south, then the two sums, then the source.
#![forbid(unsafe_code)]

use super::walls::{Wall, Walls};
use crate::Shape2;
use crate::simd::{Value, vectorised};
use rayon::prelude::*;

/// What the formula asks of a temperature: `f32` or `f64`.
pub(super) trait Temperature: Value + From<f32> + PartialOrd {}

impl<T: Value + From<f32> + PartialOrd> Temperature for T {}

/// Points that are worth handing to another thread.
const POINTS_PER_TASK: usize = 1 << 13;

/// One sweep from `old` into the points of `new` that are not on fixed walls, all of
/// `shape`, at least 3 × 3.
pub(super) fn sweep<T: Temperature>(
    shape: Shape2,
    walls: Walls,
    source: Option<&[T]>,
    old: &[T],
    new: &mut [T],
) {
    let Shape2 { nx, ny } = shape;
    let row = |j: usize| &old[j * nx..][..nx];
    let (bottom, top) = (walls.bottom.fixed_points(), walls.top.fixed_points());

    crate::threads::ready();
    new.par_chunks_exact_mut(nx)
        .enumerate()
        .skip(bottom)
        .take(ny - bottom - top)
        .with_min_len(POINTS_PER_TASK.div_ceil(nx))
        .for_each(|(j, new)| {
            // Beyond a wall, which is insulated if it is swept, what is before it.
            let south = row(if j == 0 { 1 } else { j - 1 });
            let north = row(if j == ny - 1 { ny - 2 } else { j + 1 });
            let (middle, source) = (row(j), source.map(|source| &source[j * nx..][..nx]));
            vectorised(
                #[inline(always)]
                || match source {
                    // Any row will do where nothing is taken of it.
                    None => sweep_row(new, south, middle, north, middle, |sum, _| sum),
                    Some(source) => {
                        sweep_row(new, south, middle, north, source, |sum, heat| sum + heat);
                    }
                },
            );
            for (wall, at, inside) in [(walls.left, 0, 1), (walls.right, nx - 1, nx - 2)] {
                if wall == Wall::Insulated {
                    let sum = (middle[inside] + middle[inside]) + (north[at] + south[at]);
                    let sum = source.map_or(sum, |source| sum + source[at]);
                    new[at] = sum * T::from(0.25);
                }
            }
        });
}

/// The interior points of one row, from the three rows around it and that of the source,
/// all of one length, at least 3. `total` adds the source to the neighbours' sum.
// A function, not a loop in the closure: that its arguments are different memory
// is known from their types, and without that nothing is vectorised.
#[inline(always)]
fn sweep_row<T: Temperature>(
    new: &mut [T],
    south: &[T],
    middle: &[T],
    north: &[T],
    source: &[T],
    total: impl Fn(T, T) -> T,
) {
    let quarter = T::from(0.25);
    let vertical = north[1..].iter().zip(&south[1..]);
    for (((new, middle), (&north, &south)), &source) in new[1..]
        .iter_mut()
        .zip(middle.windows(3))
        .zip(vertical)
        .zip(&source[1..])
    {
        let (west, east) = (middle[0], middle[2]);
        *new = total((east + west) + (north + south), source) * quarter;
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
    crate::threads::ready();
    old.par_iter()
        .zip(new)
        .with_min_len(POINTS_PER_TASK)
        .map(|(&old, &new)| if new >= old { new - old } else { old - new })
        .reduce(|| T::from(0.0), larger)
}
