//! The order in which the CPU ports go over the rows of a field.
#![forbid(unsafe_code)]

use crate::Shape3;
use crate::simd::{STREAMED_FROM, stream};
use bytemuck::Pod;
use rayon::prelude::*;

/// What a march along z should hold of its last planes: half of a small second-level
/// cache.
const TILE_BYTES: usize = 512 << 10;

/// Planes that a march along z needs at a time: the 8th order's and the one written.
const PLANES: usize = 10;

/// What is written to a thread's own memory before it goes past the caches to where it
/// belongs: a part of the second-level cache, and long enough to make little of the wait
/// at its end.
const STAGED_BYTES: usize = 64 << 10;

/// Tasks for each thread, so that none waits long for the last.
const TASKS_PER_THREAD: usize = 4;

/// Which rows come after each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweep {
    /// Plane by plane: neighbours along x and y are near in time.
    Planes,
    /// A few rows of a plane, then those of the next: neighbours along z are still in
    /// the second-level cache, which whole planes are not.
    AlongZ,
}

/// Calls `work` with something to spare, j, k and the row of each output, for all rows of
/// fields of `shape`, on all threads.
///
/// What a row holds before `work` is not said: `work` writes all of it. Outputs that no
/// cache holds are written past the caches, which would otherwise read them first.
pub(super) fn for_each_row<T: Pod + Send, S, const N: usize>(
    shape: Shape3,
    sweep: Sweep,
    outputs: [&mut [T]; N],
    spare: impl Fn() -> S + Sync + Send,
    work: impl Fn(&mut S, usize, usize, [&mut [T]; N]) + Sync,
) {
    let bytes: usize = outputs.iter().map(|output| size_of_val(*output)).sum();
    for_each_row_by(shape, sweep, bytes >= STREAMED_FROM, outputs, spare, work);
}

/// As [`for_each_row`], past the caches or not.
fn for_each_row_by<T: Pod + Send, S, const N: usize>(
    shape: Shape3,
    sweep: Sweep,
    streams: bool,
    outputs: [&mut [T]; N],
    spare: impl Fn() -> S + Sync + Send,
    work: impl Fn(&mut S, usize, usize, [&mut [T]; N]) + Sync,
) {
    let Shape3 { nx, ny, nz } = shape;
    let (rows, planes) = match sweep {
        Sweep::Planes => (ny, 1),
        Sweep::AlongZ => {
            let rows = (TILE_BYTES / (PLANES * size_of::<T>()) / nx).clamp(1, ny);
            let tasks = TASKS_PER_THREAD * rayon::current_num_threads();
            (rows, nz.div_ceil(tasks.div_ceil(ny.div_ceil(rows))))
        }
    };
    // Of a task: for each of its planes the first row, the plane, and the rows.
    let columns = ny.div_ceil(rows);
    let mut tasks: Vec<_> = (0..columns * nz.div_ceil(planes))
        .map(|_| Vec::with_capacity(planes))
        .collect();
    let mut outputs = outputs.map(|output| output.chunks_mut(nx * ny));
    for k in 0..nz {
        let plane = outputs
            .each_mut()
            .map(|output| output.next().unwrap_or_default());
        let mut parts = plane.map(|plane| plane.chunks_mut(rows * nx));
        for column in 0..columns {
            let part = parts
                .each_mut()
                .map(|parts| parts.next().unwrap_or_default());
            tasks[k / planes * columns + column].push((column * rows, k, part));
        }
    }
    let row_bytes = nx * size_of::<T>();
    let group = if streams {
        (STAGED_BYTES / (N * row_bytes)).clamp(1, rows)
    } else {
        rows
    };
    let staging = || match streams {
        true => vec![T::zeroed(); N * group * nx],
        false => Vec::new(),
    };
    // The rows from j on, in plane k.
    let lines = |spare: &mut S, j: usize, k: usize, part: [&mut [T]; N]| {
        let rows = part[0].len() / nx;
        let mut lines = part.map(|part| part.chunks_mut(nx));
        for j in j..j + rows {
            let row = lines
                .each_mut()
                .map(|lines| lines.next().unwrap_or_default());
            work(spare, j, k, row);
        }
    };
    let both = || (spare(), staging());
    tasks
        .into_par_iter()
        .for_each_init(both, |(spare, staged), task| {
            for (first, k, part) in task {
                if !streams {
                    lines(spare, first, k, part);
                    continue;
                }
                let mut j = first;
                let mut groups = part.map(|part| part.chunks_mut(group * nx));
                loop {
                    let targets = groups.each_mut().map(Iterator::next);
                    if targets.iter().any(Option::is_none) {
                        break;
                    }
                    let targets = targets.map(Option::unwrap_or_default);
                    let len = targets[0].len();
                    let mut parts = staged.chunks_mut(group * nx);
                    let part =
                        std::array::from_fn(|_| &mut parts.next().unwrap_or_default()[..len]);
                    lines(spare, j, k, part);
                    for (target, staged) in targets.into_iter().zip(staged.chunks(group * nx)) {
                        stream(target, &staged[..len]);
                    }
                    j += group;
                }
            }
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_row_comes_once_and_is_the_one_it_is_said_to_be() {
        let ways = [Sweep::Planes, Sweep::AlongZ].map(|sweep| [(sweep, false), (sweep, true)]);
        for (sweep, streams) in ways.into_iter().flatten() {
            // Long rows make parts of one row, short ones whole planes.
            for (nx, ny, nz) in [
                (1, 1, 1),
                (7, 5, 33),
                (20_000, 3, 9),
                (3, 1, 200),
                (4096, 9, 4),
            ] {
                let shape = Shape3::new(nx, ny, nz);
                let mut first = vec![0_usize; nx * ny * nz];
                let mut second = vec![0_usize; nx * ny * nz];
                let outputs = [&mut first[..], &mut second[..]];
                let calls: Vec<AtomicUsize> = (0..ny * nz).map(|_| 0.into()).collect();
                for_each_row_by(
                    shape,
                    sweep,
                    streams,
                    outputs,
                    || (),
                    |(), j, k, [a, b]| {
                        assert_eq!((a.len(), b.len()), (nx, nx));
                        a.fill(1 + k * ny + j);
                        b.fill(1);
                        calls[k * ny + j].fetch_add(1, Ordering::Relaxed);
                    },
                );
                assert!(
                    calls.into_iter().all(|calls| calls.into_inner() == 1),
                    "{sweep:?}"
                );
                assert!(second.iter().all(|value| *value == 1), "{sweep:?}, {shape}");
                for (row, values) in first.chunks(nx).enumerate() {
                    assert!(
                        values.iter().all(|value| *value == 1 + row),
                        "{sweep:?}, {shape}"
                    );
                }
            }
        }
    }
}
