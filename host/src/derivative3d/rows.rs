//! The order in which the CPU ports go over the rows of a field.
#![forbid(unsafe_code)]

use crate::Shape3;
use rayon::prelude::*;

/// What a march along z should hold of its last planes: half of a small second-level
/// cache.
const TILE_BYTES: usize = 512 << 10;

/// Planes that a march along z needs at a time: the 8th order's and the one written.
const PLANES: usize = 10;

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
pub(super) fn for_each_row<T: Send, S, const N: usize>(
    shape: Shape3,
    sweep: Sweep,
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
    tasks.into_par_iter().for_each_init(spare, |spare, task| {
        for (first, k, part) in task {
            let mut lines = part.map(|part| part.chunks_mut(nx));
            for j in first..(first + rows).min(ny) {
                let row = lines
                    .each_mut()
                    .map(|lines| lines.next().unwrap_or_default());
                work(spare, j, k, row);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_comes_once_and_is_the_one_it_is_said_to_be() {
        for sweep in [Sweep::Planes, Sweep::AlongZ] {
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
                for_each_row(
                    shape,
                    sweep,
                    outputs,
                    || (),
                    |(), j, k, [a, b]| {
                        assert_eq!((a.len(), b.len()), (nx, nx));
                        a.iter_mut().for_each(|a| *a += 1 + k * ny + j);
                        b.iter_mut().for_each(|b| *b += 1);
                    },
                );
                assert!(second.iter().all(|times| *times == 1), "{sweep:?}, {shape}");
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
