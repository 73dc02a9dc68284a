//! Stencils on the CPU: rows in vectors, tiles that stay in the caches, all cores.
//!
//! - The slowest axis is shared out among the threads. Each goes through a tile of rows along
//!   it, so narrow that the planes a field is read from stay in the second-level cache, and
//!   then through the next tile.
//! - A row is computed in the processor's vectors. A vector near an end of the row finds its
//!   neighbours in a window that has what lies beyond the end; rows beyond an end are other
//!   rows, or rows of the value there. The last vector of a row may compute points again.
//! - Results that no cache could hold until they are read are stored past the caches, row by
//!   row from a buffer in the first-level cache.
//!
//! A point's operations are the update's, whichever way its row is computed: the bits are
//! those of the kernels.
#![forbid(unsafe_code)]

use super::number::Number;
use crate::simd::{InVectors, dispatched};
use crate::streaming::{Stores, Streaming, streamed};
use crate::{Error, allocation, threads};
use halo_stencil::{
    Layout, MAX_BOX, MAX_RADIUS, Neighbourhood, Place, PointUpdate, Reach, furthest,
};
use pulp::{Simd, WithSimd};
use std::marker::PhantomData;
use std::mem::take;
use std::ops::Range;

/// Points that are worth a thread.
const POINTS_PER_THREAD: usize = 1 << 14;

/// The most steps along the slowest axis of a piece of work.
const LONGEST: usize = 128;

/// Pieces of work for each thread, so that one that is slower does not decide.
const PIECES_PER_THREAD: usize = 2;

/// Bytes of the rows that a tile is computed from.
const TILE_BYTES: usize = 512 << 10;

/// Points that are computed before they are stored past the caches.
const CHUNK: usize = 512;

/// The most lanes of a vector, and points of a window: those of a vector and on either side.
const MAX_LANES: usize = 16;
const WINDOW: usize = MAX_RADIUS + MAX_LANES + MAX_RADIUS;

/// Rows on either side along an axis and the point's own.
const ALONG: usize = 2 * MAX_RADIUS + 1;

/// The same in a box.
const BOX: usize = 2 * MAX_BOX + 1;

/// What a step does not change.
#[derive(Debug)]
pub(super) struct Sweep<T, const INPUTS: usize> {
    layout: Layout<T, INPUTS>,
    dimensions: usize,
    /// For each field and end of y and z, a row of the value beyond it, if there is one.
    beyond: Vec<Vec<T>>,
}

impl<T: Number, const INPUTS: usize> Sweep<T, INPUTS> {
    pub(super) fn new(layout: Layout<T, INPUTS>, dimensions: usize) -> Result<Self, Error> {
        let nx = layout.extents[0] as usize;
        let mut beyond = Vec::new();
        for (field, end) in (0..INPUTS).flat_map(|field| (2..6).map(move |end| (field, end))) {
            let mut row = Vec::new();
            if layout.has_value(field, end) {
                row = allocation::reserve(nx)?;
                row.resize(nx, layout.value(field, end));
            }
            beyond.push(row);
        }
        Ok(Self {
            layout,
            dimensions,
            beyond,
        })
    }

    /// Points along x, rows of a plane, steps along the slowest axis.
    fn extents(&self) -> [usize; 3] {
        let [nx, ny, nz] = self.layout.extents.map(|extent| extent as usize);
        if self.dimensions == 2 {
            [nx, 1, ny]
        } else {
            [nx, ny, nz]
        }
    }

    /// One step. All fields have the layout's points.
    pub(super) fn step<U, const OUTPUTS: usize>(
        &self,
        update: U,
        inputs: [&[T]; INPUTS],
        outputs: [&mut [T]; OUTPUTS],
    ) where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let [nx, ny, steps] = self.extents();
        let threads = threads::worth(nx * ny * steps, POINTS_PER_THREAD);
        let pieces = if threads == 1 {
            1
        } else {
            threads::ready();
            threads * PIECES_PER_THREAD
        };
        let stores = Stores::of(&outputs);
        let step = Step {
            sweep: self,
            update,
            inputs,
            longest: steps.div_ceil(pieces).min(LONGEST),
            parallel: threads > 1,
            stores,
        };
        step.of(0..steps, outputs);
    }

    /// A row of a field that may be beyond the ends of the plane and of the slowest axis.
    #[inline(always)]
    fn row<'r>(&'r self, inputs: &[&'r [T]; INPUTS], field: usize, j: i32, slow: i32) -> &'r [T] {
        let nx = self.layout.extents[0] as usize;
        let beyond = |end: usize| &self.beyond[4 * field + end - 2][..nx];
        let slow = match self.layout.place(field, self.dimensions - 1, slow) {
            Place::Point(slow) => slow as usize,
            Place::End(end) => return beyond(end),
        };
        let at = if self.dimensions == 2 {
            slow
        } else {
            match self.layout.place(field, 1, j) {
                Place::Point(j) => slow * self.layout.extents[1] as usize + j as usize,
                Place::End(end) => return beyond(end),
            }
        };
        &inputs[field][at * nx..][..nx]
    }
}

/// One step.
struct Step<'s, T, U, const INPUTS: usize> {
    sweep: &'s Sweep<T, INPUTS>,
    update: U,
    inputs: [&'s [T]; INPUTS],
    /// The most steps along the slowest axis of a piece.
    longest: usize,
    parallel: bool,
    stores: Stores,
}

impl<T: Number, U, const INPUTS: usize> Step<'_, T, U, INPUTS> {
    /// The steps `slow` along the slowest axis, whose points the outputs are.
    fn of<const OUTPUTS: usize>(&self, slow: Range<usize>, outputs: [&mut [T]; OUTPUTS])
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        if slow.len() <= self.longest {
            return streamed(|stream| {
                dispatched(Piece {
                    step: self,
                    stream,
                    slow,
                    outputs,
                });
            });
        }
        let [nx, ny, _] = self.sweep.extents();
        let middle = slow.len() / 2;
        let mut halves = outputs.map(|output| output.split_at_mut(middle * nx * ny));
        let low = halves.each_mut().map(|(low, _)| take(low));
        let high = halves.each_mut().map(|(_, high)| take(high));
        let middle = slow.start + middle;
        if self.parallel {
            rayon::join(
                || self.of(slow.start..middle, low),
                || self.of(middle..slow.end, high),
            );
        } else {
            self.of(slow.start..middle, low);
            self.of(middle..slow.end, high);
        }
    }
}

/// What one thread computes.
struct Piece<'s, 'out, T, U, const INPUTS: usize, const OUTPUTS: usize> {
    step: &'s Step<'s, T, U, INPUTS>,
    stream: &'s Streaming<'out>,
    slow: Range<usize>,
    outputs: [&'out mut [T]; OUTPUTS],
}

impl<T, U, const INPUTS: usize, const OUTPUTS: usize> WithSimd
    for Piece<'_, '_, T, U, INPUTS, OUTPUTS>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (step, sweep) = (self.step, self.step.sweep);
        let [nx, ny, _] = sweep.extents();
        // Planes of each output, of which rows are taken off.
        let mut planes = self.outputs.map(|output| {
            let mut planes = output.chunks_exact_mut(nx * ny);
            std::array::from_fn::<_, LONGEST, _>(|_| planes.next().unwrap_or_default())
        });
        let mut rows = Rows::<T, INPUTS>::new();
        let mut windows = Windows::<T, INPUTS>::new();
        let mut chunks = [[T::zeroed(); CHUNK]; OUTPUTS];
        let tile = tile_rows::<T>(&U::REACH, sweep.dimensions, nx);
        let mut first = 0;
        while first < ny {
            let tile = tile.min(ny - first);
            for slow in self.slow.clone() {
                let mut out: [&mut [T]; OUTPUTS] = planes.each_mut().map(|planes| {
                    let plane = &mut planes[slow - self.slow.start];
                    let (now, later) = take(plane).split_at_mut(tile * nx);
                    *plane = later;
                    now
                });
                for j in first..first + tile {
                    rows.find(sweep, &step.inputs, &U::REACH, j as i32, slow as i32);
                    let row = out.each_mut().map(|out| {
                        let (row, later) = take(out).split_at_mut(nx);
                        *out = later;
                        row
                    });
                    let span = Span {
                        simd,
                        update: step.update,
                        layout: &sweep.layout,
                        rows: &rows,
                    };
                    if step.stores == Stores::Ordinary {
                        span.compute(0..nx, row, &mut windows);
                    } else {
                        span.stream(self.stream, row, &mut chunks, &mut windows);
                    }
                }
            }
            first += tile;
        }
    }
}

/// Rows of a tile, so that the planes that it is computed from stay in the cache.
fn tile_rows<T>(reach: &[Reach], dimensions: usize, nx: usize) -> usize {
    let planes = reach
        .iter()
        .map(|reach| 2 * reach.radius(dimensions - 1) + 1);
    let row_bytes = planes.sum::<usize>() * nx * size_of::<T>();
    // Rows beside the tile are read as well.
    (TILE_BYTES / row_bytes.max(1))
        .saturating_sub(2 * furthest(reach, 1))
        .max(4)
}

/// The rows that a row is computed from.
struct Rows<'r, T, const INPUTS: usize> {
    /// Of the same plane, and at the same place of other planes.
    within: [[&'r [T]; ALONG]; INPUTS],
    across: [[&'r [T]; ALONG]; INPUTS],
    /// Others of other planes.
    off: [[[&'r [T]; BOX]; BOX]; INPUTS],
}

impl<'r, T: Number, const INPUTS: usize> Rows<'r, T, INPUTS> {
    fn new() -> Self {
        Self {
            within: [[&[]; ALONG]; INPUTS],
            across: [[&[]; ALONG]; INPUTS],
            off: [[[&[]; BOX]; BOX]; INPUTS],
        }
    }

    /// Finds them for row `j`.
    #[inline(always)]
    fn find(
        &mut self,
        sweep: &'r Sweep<T, INPUTS>,
        inputs: &[&'r [T]; INPUTS],
        reach: &[Reach; INPUTS],
        j: i32,
        slow: i32,
    ) {
        for (field, reach) in reach.iter().enumerate() {
            let radius = |axis: usize| reach.radius(axis) as i32;
            let across = radius(sweep.dimensions - 1);
            for ds in -across..=across {
                self.across[field][(MAX_RADIUS as i32 + ds) as usize] =
                    sweep.row(inputs, field, j, slow + ds);
            }
            if sweep.dimensions == 2 {
                continue;
            }
            let within = radius(1);
            for dj in -within..=within {
                self.within[field][(MAX_RADIUS as i32 + dj) as usize] =
                    sweep.row(inputs, field, j + dj, slow);
                if reach.is_box() {
                    for ds in -across..=across {
                        let row = sweep.row(inputs, field, j + dj, slow + ds);
                        self.off[field][(MAX_BOX as i32 + dj) as usize]
                            [(MAX_BOX as i32 + ds) as usize] = row;
                    }
                }
            }
        }
    }

    /// The row at this offset.
    #[inline(always)]
    fn at(&self, field: usize, dj: isize, ds: isize) -> &'r [T] {
        let along = |d: isize| (MAX_RADIUS as isize + d) as usize;
        let in_box = |d: isize| (MAX_BOX as isize + d) as usize;
        if dj == 0 {
            self.across[field][along(ds)]
        } else if ds == 0 {
            self.within[field][along(dj)]
        } else {
            self.off[field][in_box(dj)][in_box(ds)]
        }
    }
}

/// What a vector near an end of its row reads: the points of the vector, and on either side.
struct Windows<T, const INPUTS: usize>([[[[T; WINDOW]; BOX]; BOX]; INPUTS]);

impl<T: Number, const INPUTS: usize> Windows<T, INPUTS> {
    fn new() -> Self {
        Self([[[[T::zeroed(); WINDOW]; BOX]; BOX]; INPUTS])
    }

    /// Fills those of the rows that are read along x, for `lanes` points from `i` on.
    #[inline(always)]
    fn fill(
        &mut self,
        rows: &Rows<'_, T, INPUTS>,
        layout: &Layout<T, INPUTS>,
        reach: &[Reach; INPUTS],
        dimensions: usize,
        i: usize,
        lanes: usize,
    ) {
        for (field, reach) in reach.iter().enumerate() {
            let radius = reach.radius(0);
            if radius == 0 {
                continue;
            }
            let off = |axis: usize| match reach.is_box() && axis != 0 {
                true => reach.radius(axis) as isize,
                false => 0,
            };
            let (within, across) = match dimensions {
                2 => (0, off(1)),
                _ => (off(1), off(2)),
            };
            for (dj, ds) in
                (-within..=within).flat_map(|dj| (-across..=across).map(move |ds| (dj, ds)))
            {
                let row = rows.at(field, dj, ds);
                let window = &mut self.0[field][(MAX_BOX as isize + dj) as usize]
                    [(MAX_BOX as isize + ds) as usize];
                // What is in the row, and then what is beyond its ends.
                let (from, to) = (
                    i.saturating_sub(radius),
                    (i + lanes + radius).min(row.len()),
                );
                let at = |place: usize| place + MAX_RADIUS - i;
                window[at(from)..at(to)].copy_from_slice(&row[from..to]);
                let mut beyond = |place: i32, cell: usize| {
                    window[cell] = match layout.place(field, 0, place) {
                        Place::Point(point) => row[point as usize],
                        Place::End(end) => layout.value(field, end),
                    };
                };
                for m in i + 1..=radius {
                    beyond(i as i32 - m as i32, MAX_RADIUS - m);
                }
                for place in row.len()..i + lanes + radius {
                    beyond(place as i32, at(place));
                }
            }
        }
    }
}

/// Points of a row.
struct Span<'s, 'r, S, T, U, const INPUTS: usize> {
    simd: S,
    update: U,
    layout: &'s Layout<T, INPUTS>,
    rows: &'s Rows<'r, T, INPUTS>,
}

impl<S: Simd, T: Number, U, const INPUTS: usize> Span<'_, '_, S, T, U, INPUTS> {
    /// Computes a whole row and stores it past the caches.
    #[inline(always)]
    fn stream<'out, const OUTPUTS: usize>(
        &self,
        stream: &Streaming<'out>,
        mut row: [&'out mut [T]; OUTPUTS],
        chunks: &mut [[T; CHUNK]; OUTPUTS],
        windows: &mut Windows<T, INPUTS>,
    ) where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let (mut begin, nx) = (0, self.layout.extents[0] as usize);
        while begin < nx {
            // Nothing is left over that is shorter than a vector.
            let len = match nx - begin {
                left @ ..=CHUNK => left,
                left if left < CHUNK + MAX_LANES => CHUNK - 4 * MAX_LANES,
                _ => CHUNK,
            };
            let out = chunks.each_mut().map(|chunk| &mut chunk[..len]);
            self.compute(begin..begin + len, out, windows);
            for (row, chunk) in row.iter_mut().zip(&*chunks) {
                let (now, later) = take(row).split_at_mut(len);
                *row = later;
                stream.copy(now, &chunk[..len]);
            }
            begin += len;
        }
    }

    /// Computes the points `span` of the row.
    #[inline(always)]
    fn compute<const OUTPUTS: usize>(
        &self,
        span: Range<usize>,
        mut out: [&mut [T]; OUTPUTS],
        windows: &mut Windows<T, INPUTS>,
    ) where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let lanes = lanes::<S, T>();
        if span.len() < lanes {
            for i in span.clone() {
                let results = self.update.update(&Point::<T, U, INPUTS, OUTPUTS> {
                    layout: self.layout,
                    rows: self.rows,
                    i,
                    update: PhantomData,
                });
                for (out, result) in out.iter_mut().zip(results) {
                    out[i - span.start] = result;
                }
            }
            return;
        }
        let (nx, radius) = (
            self.layout.extents[0] as usize,
            const { furthest(&U::REACH, 0) },
        );
        let mut i = span.start;
        loop {
            let near = Near::<S, T, U, INPUTS, OUTPUTS> {
                simd: self.simd,
                rows: self.rows,
                i,
                update: PhantomData,
            };
            let results = if i >= radius && i + lanes + radius <= nx {
                self.update.update(&near)
            } else {
                windows.fill(self.rows, self.layout, &U::REACH, U::DIMENSIONS, i, lanes);
                self.update.update(&NearEnd {
                    near,
                    windows: &*windows,
                })
            };
            for (out, result) in out.iter_mut().zip(results) {
                let out = &mut out[i - span.start..][..lanes];
                T::vectors_mut::<S>(out)[0] = T::lanes(result);
            }
            if i + lanes == span.end {
                return;
            }
            // The last vector computes points again.
            i = (i + lanes).min(span.end - lanes);
        }
    }
}

/// Lanes of a vector.
#[inline(always)]
const fn lanes<S: Simd, T: InVectors>() -> usize {
    size_of::<T::Lanes<S>>() / size_of::<T>()
}

/// The vector at the beginning of `row`.
#[inline(always)]
fn vector<S: Simd, T: InVectors>(simd: S, row: &[T]) -> T::Vector<S> {
    T::load(simd, T::vectors::<S>(&row[..lanes::<S, T>()])[0])
}

/// An offset along x, within a plane, and along the slowest axis.
#[inline(always)]
const fn by_march(dimensions: usize, [di, dj, dk]: [isize; 3]) -> [isize; 3] {
    if dimensions == 2 {
        [di, 0, dj]
    } else {
        [di, dj, dk]
    }
}

/// A vector of points whose neighbours are all in their rows.
struct Near<'s, 'r, S, T, U, const INPUTS: usize, const OUTPUTS: usize> {
    simd: S,
    rows: &'s Rows<'r, T, INPUTS>,
    /// The first.
    i: usize,
    update: PhantomData<U>,
}

impl<S, T, U, const INPUTS: usize, const OUTPUTS: usize> Neighbourhood<T>
    for Near<'_, '_, S, T, U, INPUTS, OUTPUTS>
where
    S: Simd,
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Value = T::Vector<S>;

    const REACH: &'static [Reach] = &U::REACH;

    #[inline(always)]
    fn value(&self, field: usize, offset: [isize; 3]) -> T::Vector<S> {
        let [di, dj, ds] = by_march(U::DIMENSIONS, offset);
        let row = self.rows.at(field, dj, ds);
        vector(self.simd, &row[self.i.wrapping_add_signed(di)..])
    }

    #[inline(always)]
    fn splat(&self, number: T) -> T::Vector<S> {
        InVectors::splat(number, self.simd)
    }
}

/// A vector of points near an end of the row.
struct NearEnd<'s, 'r, S, T, U, const INPUTS: usize, const OUTPUTS: usize> {
    near: Near<'s, 'r, S, T, U, INPUTS, OUTPUTS>,
    windows: &'s Windows<T, INPUTS>,
}

impl<S, T, U, const INPUTS: usize, const OUTPUTS: usize> Neighbourhood<T>
    for NearEnd<'_, '_, S, T, U, INPUTS, OUTPUTS>
where
    S: Simd,
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Value = T::Vector<S>;

    const REACH: &'static [Reach] = &U::REACH;

    #[inline(always)]
    fn value(&self, field: usize, offset: [isize; 3]) -> T::Vector<S> {
        let [di, dj, ds] = by_march(U::DIMENSIONS, offset);
        if di == 0 {
            return self.near.value(field, offset);
        }
        let window = &self.windows.0[field][(MAX_BOX as isize + dj) as usize]
            [(MAX_BOX as isize + ds) as usize];
        vector(
            self.near.simd,
            &window[(MAX_RADIUS as isize + di) as usize..],
        )
    }

    #[inline(always)]
    fn splat(&self, number: T) -> T::Vector<S> {
        self.near.splat(number)
    }
}

/// A point of a row that is shorter than a vector.
struct Point<'s, 'r, T, U, const INPUTS: usize, const OUTPUTS: usize> {
    layout: &'s Layout<T, INPUTS>,
    rows: &'s Rows<'r, T, INPUTS>,
    i: usize,
    update: PhantomData<U>,
}

impl<T, U, const INPUTS: usize, const OUTPUTS: usize> Neighbourhood<T>
    for Point<'_, '_, T, U, INPUTS, OUTPUTS>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Value = T;

    const REACH: &'static [Reach] = &U::REACH;

    #[inline(always)]
    fn value(&self, field: usize, offset: [isize; 3]) -> T {
        let [di, dj, ds] = by_march(U::DIMENSIONS, offset);
        match self.layout.place(field, 0, self.i as i32 + di as i32) {
            Place::Point(i) => self.rows.at(field, dj, ds)[i as usize],
            Place::End(end) => self.layout.value(field, end),
        }
    }

    #[inline(always)]
    fn splat(&self, number: T) -> T {
        number
    }
}
