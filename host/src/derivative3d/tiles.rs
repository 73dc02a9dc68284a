//! The order in which the CPU ports go over the points of a field: tile by tile.
//!
//! A tile is one row at the least: rows are not divided, also where there is but one.
#![forbid(unsafe_code)]

use crate::Shape3;
use rayon::prelude::*;
use std::ops::Range;

/// What a tile should hold of one field: its rows, those of the planes before and after
/// it, and the results, of a few fields, are together in a second-level cache, and what
/// comes once for a tile is nothing beside its points.
const TILE_BYTES: usize = 32 << 10;

/// Tasks for each thread, so that none waits long for the last.
const TASKS_PER_THREAD: usize = 16;

/// Which tiles come after each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum March {
    /// Those of a plane, then those of the next: neighbours along x and y are near in time.
    OverPlanes,
    /// The tile at the same place of the next plane: neighbours along z are still in the
    /// cache, which whole planes are not.
    AlongZ,
}

/// Whole rows of one plane, which follow each other.
pub(super) struct Tile {
    /// Their j.
    pub rows: Range<usize>,
    /// The plane.
    pub k: usize,
}

/// The rows of a tile of fields whose rows have `nx` elements of `bytes` bytes.
fn rows_per_tile(nx: usize, bytes: usize) -> usize {
    (TILE_BYTES / bytes / nx).max(1)
}

/// Calls `work` for all tiles of fields of `shape`, on all threads, with the tile's points of
/// each output.
pub(super) fn for_each_tile<T: Send, const N: usize>(
    shape: Shape3,
    march: March,
    outputs: [&mut [T]; N],
    work: impl Fn(&Tile, [&mut [T]; N]) + Sync,
) {
    let Shape3 { nx, ny, nz } = shape;
    let tile_rows = rows_per_tile(nx, size_of::<T>());
    let tasks = TASKS_PER_THREAD * rayon::current_num_threads();
    // A task has so many rows of so many planes.
    let (rows, planes) = match march {
        // Parts of a plane, or several planes.
        March::OverPlanes => (
            ny.div_ceil(tasks.div_ceil(nz)).max(tile_rows),
            nz.div_ceil(tasks),
        ),
        March::AlongZ => {
            let columns = ny.div_ceil(tile_rows);
            (tile_rows, nz.div_ceil(tasks.div_ceil(columns)))
        }
    };
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
    tasks.into_par_iter().for_each(|task| {
        for (first, k, part) in task {
            let mut parts = part.map(|part| part.chunks_mut(tile_rows * nx));
            let end = (first + rows).min(ny);
            for first in (first..end).step_by(tile_rows) {
                let tile = Tile {
                    rows: first..(first + tile_rows).min(end),
                    k,
                };
                let points = parts
                    .each_mut()
                    .map(|parts| parts.next().unwrap_or_default());
                work(&tile, points);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_comes_once_and_is_the_one_it_is_said_to_be() {
        for march in [March::OverPlanes, March::AlongZ] {
            // Long rows make tiles of one row, short ones of whole planes.
            for (nx, ny, nz) in [
                (1, 1, 1),
                (7, 5, 33),
                (20_000, 3, 9),
                (3, 1, 200),
                (3, 40_000, 1),
                (1024, 9, 4),
            ] {
                let shape = Shape3::new(nx, ny, nz);
                let mut first = vec![0_usize; nx * ny * nz];
                let mut second = vec![0_usize; nx * ny * nz];
                let outputs = [&mut first[..], &mut second[..]];
                for_each_tile(shape, march, outputs, |tile, [a, b]| {
                    assert!(tile.rows.len() <= rows_per_tile(nx, size_of::<usize>()));
                    assert_eq!((a.len(), b.len()), (nx * tile.rows.len(), a.len()));
                    for (j, a) in tile.rows.clone().zip(a.chunks_exact_mut(nx)) {
                        a.iter_mut().for_each(|a| *a += 1 + tile.k * ny + j);
                    }
                    b.iter_mut().for_each(|b| *b += 1);
                });
                assert!(second.iter().all(|times| *times == 1), "{march:?}, {shape}");
                for (row, values) in first.chunks(nx).enumerate() {
                    assert!(
                        values.iter().all(|value| *value == 1 + row),
                        "{march:?}, {shape}"
                    );
                }
            }
        }
    }
}
