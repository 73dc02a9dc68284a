//! Visits the points of a field tile by tile, for the CPU port.
//!
//! A tile consists of whole rows, at least one.
#![forbid(unsafe_code)]

use crate::allocation::{reserve, zeroed};
use crate::simd::{Formula, InVectors, fill, vectorised};
use crate::streaming::{Stores, Streaming, streamed};
use crate::{Error, Shape3, threads};
use std::ops::Range;
use std::sync::Mutex;

/// Bytes of a tile of one field. A tile, the same rows of the planes before and after it, and the
/// results of a few fields fit in a second-level cache together, and the set-up of a tile takes
/// little time compared with its points.
const TILE_BYTES: usize = 32 << 10;

/// The largest scratch for a tile. A longer row fits in no second-level cache, and its scratch
/// would cost memory.
const MAX_DRAFT_BYTES: usize = 1 << 20;

/// Tasks for each thread: enough that no thread waits long for the last task.
const TASKS_PER_THREAD: usize = 16;

/// The fewest bytes of derivatives that form a task.
const TASK_BYTES: usize = 16 << 10;

/// The fewest bytes of derivatives per thread for which it is worth waking another thread.
const SHARE_BYTES: usize = 24 << 10;

/// A field of up to this size fits in a second-level cache together with its results, so the order
/// of tiles does not matter.
const SMALL_BYTES: usize = 256 << 10;

/// The order of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum March {
    /// All tiles of a plane, then those of the next plane: neighbours along x and y are still in
    /// the cache.
    OverPlanes,
    /// The same rows of one plane after the other, then the next rows: neighbours along z are still
    /// in the cache, which cannot hold whole planes.
    AlongZ,
}

/// Whole consecutive rows of one plane.
pub(super) struct Tile {
    /// The indices j of the rows.
    pub rows: Range<usize>,
    /// The index k of the plane.
    pub k: usize,
}

/// Some points of a tile, for one output.
pub(super) enum TilePart<'tile, 'out, T> {
    /// The points themselves; values are stored with ordinary stores.
    Here(&'tile mut [T]),
    /// The points are written once, with non-temporal stores, and never read. All operations before
    /// the last work on a scratch.
    Past {
        draft: &'tile mut [T],
        out: &'out mut [T],
        stream: &'tile Streaming<'out>,
    },
}

impl<'out, T: InVectors> TilePart<'_, 'out, T> {
    /// The memory for intermediate values.
    pub(super) fn draft(&mut self) -> &mut [T] {
        match self {
            Self::Here(out) => out,
            Self::Past { draft, .. } => draft,
        }
    }

    /// The same points, for an operation before the last.
    pub(super) fn begin(&mut self) -> TilePart<'_, 'out, T> {
        TilePart::Here(self.draft())
    }

    /// Copies the scratch to the points.
    pub(super) fn finish(self) {
        if let Self::Past { draft, out, stream } = self {
            stream.copy(out, draft);
        }
    }

    /// Sets all points to `formula`, evaluated on `rows`.
    pub(super) fn fill<const N: usize>(self, rows: [&[T]; N], formula: &impl Formula<T>) {
        match self {
            Self::Here(out) => vectorised(
                #[inline(always)]
                || fill(out, rows, formula),
            ),
            Self::Past { draft, out, stream } => {
                stream.fill(out, draft, rows, formula, None);
            }
        }
    }

    /// The first `count` points, and the others.
    pub(super) fn split_at(self, count: usize) -> (Self, Self) {
        match self {
            Self::Here(out) => {
                let (first, others) = out.split_at_mut(count);
                (Self::Here(first), Self::Here(others))
            }
            Self::Past { draft, out, stream } => {
                let (draft, other_drafts) = draft.split_at_mut(count);
                let (out, others) = out.split_at_mut(count);
                let first = Self::Past { draft, out, stream };
                let others = Self::Past {
                    draft: other_drafts,
                    out: others,
                    stream,
                };
                (first, others)
            }
        }
    }
}

/// The number of rows of a tile, for rows of `nx` elements of `bytes` bytes.
fn rows_per_tile(nx: usize, bytes: usize) -> usize {
    (TILE_BYTES / bytes / nx).max(1)
}

/// Consecutive rows of some planes of each output: the first row, the first plane, the points.
type Rows<'out, T, const N: usize> = (usize, usize, [&'out mut [T]; N]);

/// The division of the tiles into tasks.
#[derive(Debug, Clone, Copy)]
struct Deal {
    /// The shape of the outputs.
    shape: Shape3,
    /// The index in the field of the outputs' first plane.
    first_plane: usize,
    /// The number of rows of a tile.
    tile_rows: usize,
    /// The number of rows and of planes of a task.
    rows: usize,
    planes: usize,
    /// The number of planes of which a task has the rows in one piece. Whole planes are consecutive
    /// and form one piece, however many they are. Other pieces consist of full tiles, except the
    /// last of each plane; those are few.
    slab: usize,
    stores: Stores,
}

impl Deal {
    /// All tiles of these planes in one task, plane by plane.
    fn one<T>(shape: Shape3, planes: Range<usize>, stores: Stores) -> Self {
        let shape = Shape3 {
            nz: planes.len(),
            ..shape
        };
        Self {
            shape,
            first_plane: planes.start,
            tile_rows: rows_per_tile(shape.nx, size_of::<T>()),
            rows: shape.ny,
            planes: shape.nz,
            slab: shape.nz,
            stores,
        }
    }

    /// The same tiles, divided into tasks for `threads` threads, which compute `bytes` bytes of
    /// derivatives in all.
    fn for_threads(self, march: March, threads: usize, bytes: usize) -> Self {
        let Shape3 { ny, nz, .. } = self.shape;
        let tasks = (TASKS_PER_THREAD * threads).min(bytes / TASK_BYTES);
        let (tile_rows, tasks) = (self.tile_rows, tasks.max(threads));
        let (rows, planes) = match march {
            // Parts of a plane, or several planes.
            March::OverPlanes => (
                ny.div_ceil(tasks.div_ceil(nz)).max(tile_rows),
                nz.div_ceil(tasks),
            ),
            March::AlongZ => {
                let columns = ny.div_ceil(tile_rows);
                let bands = threads::full_bands(threads, tasks.div_ceil(columns), columns);
                (tile_rows, nz.div_ceil(bands))
            }
        };
        let slab = if rows >= ny { planes } else { 1 };
        Self {
            rows,
            planes,
            slab,
            ..self
        }
    }

    /// The tasks, each with the rows it writes.
    fn tasks<'out, T, const N: usize>(
        self,
        outputs: &mut [&'out mut [T]; N],
    ) -> Result<Vec<Mutex<Vec<Rows<'out, T, N>>>>, Error> {
        let Self {
            rows, planes, slab, ..
        } = self;
        let Shape3 { nx, ny, nz } = self.shape;
        let columns = ny.div_ceil(rows);
        let mut tasks = reserve(columns * nz.div_ceil(planes))?;
        for _ in 0..tasks.capacity() {
            tasks.push(reserve(planes.div_ceil(slab))?);
        }
        let outputs = outputs.each_mut().map(std::mem::take);
        let mut outputs = outputs.map(|output| output.chunks_mut(nx * ny * slab));
        for k in (0..nz).step_by(slab) {
            let whole = outputs
                .each_mut()
                .map(|output| output.next().unwrap_or_default());
            let mut parts = whole.map(|whole| whole.chunks_mut(rows.min(ny) * nx * slab));
            for column in 0..columns {
                let part = parts
                    .each_mut()
                    .map(|parts| parts.next().unwrap_or_default());
                tasks[k / planes * columns + column].push((column * rows, k, part));
            }
        }
        let mut shared = reserve(tasks.len())?;
        shared.extend(tasks.into_iter().map(Mutex::new));
        Ok(shared)
    }
}

/// A scratch for each output.
struct Drafts<T, const N: usize>(Option<[Vec<T>; N]>);

impl<T: InVectors, const N: usize> Drafts<T, N> {
    /// The scratch memory that the stores need. If there is not enough memory, there is no scratch,
    /// and the stores are ordinary.
    fn new(deal: &Deal) -> Self {
        let len = deal.tile_rows.min(deal.shape.ny) * deal.shape.nx;
        if deal.stores == Stores::Ordinary || len * size_of::<T>() > MAX_DRAFT_BYTES {
            return Self(None);
        }
        let mut drafts = [(); N].map(|()| Vec::new());
        for draft in &mut drafts {
            match zeroed(len) {
                Ok(zeros) => *draft = zeros,
                Err(_) => return Self(None),
            }
        }
        Self(Some(drafts))
    }
}

/// The tiles of some planes of fields.
pub(super) struct Tiles {
    /// The shape of the fields.
    pub shape: Shape3,
    pub planes: Range<usize>,
    pub march: March,
    pub stores: Stores,
    /// The number of derivatives that are computed at each point.
    pub derivatives: usize,
}

impl Tiles {
    /// Calls `work` for all tiles, on all threads, with the tile's points of each output. The outputs
    /// consist of the planes. `work` must write all points that it gets.
    pub(super) fn for_each<'out, T: InVectors, const N: usize>(
        self,
        mut outputs: [&'out mut [T]; N],
        work: impl Fn(&Tile, [TilePart<'_, 'out, T>; N]) + Sync,
    ) {
        let Self {
            shape,
            planes,
            march,
            stores,
            derivatives,
        } = self;
        let bytes = shape.nx * shape.ny * planes.len() * size_of::<T>();
        let one = Deal::one::<T>(shape, planes, stores);
        let computed = bytes.saturating_mul(derivatives);
        let threads = threads::worth(computed, SHARE_BYTES);
        if threads > 1 || bytes > SMALL_BYTES {
            let deal = one.for_threads(march, threads, computed);
            if let Ok(tasks) = deal.tasks(&mut outputs) {
                threads::share(threads, tasks.len(), |mine| {
                    let mut drafts = Drafts::new(&deal);
                    for task in mine {
                        let task = tasks[task]
                            .lock()
                            .map(|mut task| std::mem::take(&mut *task));
                        each_of_task(&deal, &mut drafts, task.unwrap_or_default(), &work);
                    }
                });
                return;
            }
        }
        // A small field, or not enough memory for the list of tasks.
        each_of_task(&one, &mut Drafts::new(&one), [(0, 0, outputs)], &work);
    }
}

/// Calls `work` for all tiles of a task.
fn each_of_task<'out, T: InVectors, const N: usize>(
    deal: &Deal,
    drafts: &mut Drafts<T, N>,
    task: impl IntoIterator<Item = Rows<'out, T, N>>,
    work: &impl Fn(&Tile, [TilePart<'_, 'out, T>; N]),
) {
    let Shape3 { nx, ny, nz } = deal.shape;
    let tile_rows = deal.tile_rows;
    streamed(|stream| {
        for (first, k, part) in task {
            let end = (first + deal.rows).min(ny);
            let mut planes = part.map(|part| part.chunks_mut((end - first) * nx));
            for k in (k..nz).take(deal.slab) {
                let plane = planes
                    .each_mut()
                    .map(|planes| planes.next().unwrap_or_default());
                let mut parts = plane.map(|plane| plane.chunks_mut(tile_rows * nx));
                for first in (first..end).step_by(tile_rows) {
                    let tile = Tile {
                        rows: first..(first + tile_rows).min(end),
                        k: deal.first_plane + k,
                    };
                    let mut drafts = drafts.0.iter_mut().flatten();
                    let points = parts.each_mut().map(|parts| {
                        let out = parts.next().unwrap_or_default();
                        match drafts.next() {
                            Some(draft) => TilePart::Past {
                                draft: &mut draft[..out.len()],
                                out,
                                stream,
                            },
                            None => TilePart::Here(out),
                        }
                    });
                    work(&tile, points);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Value;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Sum;

    impl Formula<f64> for Sum {
        fn at<V: Value>(&self, _: impl Fn(f64) -> V, so_far: V, row: impl Fn(usize) -> V) -> V {
            so_far + row(0)
        }
    }

    #[test]
    fn every_row_comes_once_and_is_the_one_it_is_said_to_be() {
        for (march, stores) in [
            (March::OverPlanes, Stores::Ordinary),
            (March::AlongZ, Stores::Ordinary),
            (March::OverPlanes, Stores::Streaming),
            (March::AlongZ, Stores::Streaming),
        ] {
            // Long rows make tiles of one row, short rows make tiles of whole planes.
            for (nx, ny, nz) in [
                (1, 1, 1),
                (7, 5, 33),
                (20_000, 3, 9),
                (3, 1, 200),
                (3, 40_000, 1),
                (131_072, 2, 2),
                (131_073, 2, 2),
                (1024, 9, 4),
                (40, 33, 50),
            ] {
                let shape = Shape3::new(nx, ny, nz);
                let mut first = vec![f64::NAN; nx * ny * nz];
                let mut second = first.clone();
                let visits: Vec<_> = (0..ny * nz).map(|_| AtomicUsize::new(0)).collect();
                let outputs = [&mut first[..], &mut second[..]];
                let tiles = Tiles {
                    shape,
                    planes: 0..nz,
                    march,
                    stores,
                    derivatives: 2,
                };
                tiles.for_each(outputs, |tile, [mut a, mut b]| {
                    assert!(tile.rows.len() <= rows_per_tile(nx, size_of::<f64>()));
                    let len = nx * tile.rows.len();
                    assert_eq!((a.draft().len(), b.draft().len()), (len, len));
                    for (j, a) in tile.rows.clone().zip(a.draft().chunks_exact_mut(nx)) {
                        visits[tile.k * ny + j].fetch_add(1, Ordering::Relaxed);
                        a.fill((tile.k * ny + j) as f64);
                    }
                    a.finish();
                    b.draft().fill(tile.k as f64);
                    // A row is added to the values of all points but the first.
                    let (one, others) = b.split_at(1);
                    others.fill([&vec![0.5; len - 1]], &Sum);
                    one.finish();
                });
                let once = |visits: &AtomicUsize| visits.load(Ordering::Relaxed) == 1;
                assert!(visits.iter().all(once), "{march:?}, {stores:?}, {shape}");
                for (row, (a, b)) in first.chunks(nx).zip(second.chunks(nx)).enumerate() {
                    let k = (row / ny) as f64;
                    assert!(
                        a.iter().all(|value| *value == row as f64)
                            && b[1..].iter().all(|value| *value == k + 0.5)
                            && (b[0] == k || b[0] == k + 0.5),
                        "{march:?}, {stores:?}, {shape}"
                    );
                }
            }
        }
    }
}
