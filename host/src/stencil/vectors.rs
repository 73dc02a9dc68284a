//! Computes rows of points in the processor's vectors.
//!
//! Consecutive rows in memory are computed together if all rows that they read are consecutive too.
//! The inputs are looked up once, so the loop over vectors needs no look-ups and no checks. The
//! values beyond the ends of rows are found in one of two ways:
//!
//! - Updates that read only near values along x, and do not write over past fields: the rows are
//!   computed as one long row, as if each row continued in the next. Then the points at their ends
//!   are computed again, one by one. If rows consist of whole vectors, the first and the last vector
//!   of each are computed with the values beyond the ends instead.
//! - Others: rows that are read along x are first copied to windows, each between the values beyond
//!   its ends.
#![forbid(unsafe_code)]

use super::number::Number;
use crate::caches::LINE_BYTES;
use crate::pages::{elements_per_prefetch, prefetch, prefetch_next_page};
use crate::simd::{InVectors, before_aligned, lanes};
use crate::streaming::{Streaming, before_line};
use halo_stencil::{
    Layout, MAX_BOX, MAX_RADIUS, Neighbourhood, Place, PointUpdate, Reach, furthest, overwritten,
};
use pulp::{Simd, WithSimd};
use std::marker::PhantomData;
use std::mem::take;
use std::ops::Range;

/// Rows along an axis: those on either side and the point's own.
const ALONG: usize = 2 * MAX_RADIUS + 1;

/// The same for one axis of a box.
const BOX: usize = 2 * MAX_BOX + 1;

/// Updates that read at most this many values keep a slice for each value.
const MOST: usize = 64;

/// An array with `$one!(number)` for each value.
macro_rules! for_each_value {
    ($one:ident) => {
        for_each_value!($one:
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60
            61 62 63)
    };
    ($one:ident: $($number:literal)+) => {
        [$($one!($number)),+]
    };
}

/// If the radius along x is at most this, rows are computed as one long row.
const SHORT: usize = 2;

/// The number of points that are computed together, without and with windows. They fit in the
/// first-level cache together with what they read, windows included.
const RUN: usize = 4096;
const RUN_WITH_WINDOWS: usize = 1024;

/// The ends of rows of this many points are computed, then the rest of these rows.
const BLOCK: usize = 512;

/// For each vector, values that nothing has read yet are prefetched this many points ahead.
const AHEAD: usize = 512;

/// The number of values of a field that an update reads. Offsets are along x, within a plane, and
/// along the slowest axis.
const fn values_of(reach: Reach, dimensions: usize) -> usize {
    let [x, y, z] = radii(reach, dimensions);
    if reach.is_box() {
        (2 * x + 1) * (2 * y + 1) * (2 * z + 1)
    } else {
        1 + 2 * (x + y + z)
    }
}

/// The radii of a field along x, within a plane, and along the slowest axis.
const fn radii(reach: Reach, dimensions: usize) -> [usize; 3] {
    if dimensions == 2 {
        [reach.radius(0), 0, reach.radius(1)]
    } else {
        [reach.radius(0), reach.radius(1), reach.radius(2)]
    }
}

/// For each field, the number of values of all fields before it.
const fn values_before<const INPUTS: usize>(
    reach: &[Reach; INPUTS],
    dimensions: usize,
) -> [usize; INPUTS] {
    let (mut before, mut field) = ([0; INPUTS], 1);
    while field < INPUTS {
        before[field] = before[field - 1] + values_of(reach[field - 1], dimensions);
        field += 1;
    }
    before
}

/// The number of values of all fields.
pub(super) const fn all_values(reach: &[Reach], dimensions: usize) -> usize {
    let (mut all, mut field) = (0, 0);
    while field < reach.len() {
        all += values_of(reach[field], dimensions);
        field += 1;
    }
    all
}

/// The number of a value within its field: values are counted axis by axis or, for a box, through
/// the box.
#[inline(always)]
const fn number_of(reach: Reach, dimensions: usize, [di, dj, ds]: [isize; 3]) -> usize {
    let [x, y, z] = radii(reach, dimensions);
    let (i, j, s) = (
        di.wrapping_add_unsigned(x) as usize,
        dj.wrapping_add_unsigned(y) as usize,
        ds.wrapping_add_unsigned(z) as usize,
    );
    if reach.is_box() {
        return (s * (2 * y + 1) + j) * (2 * x + 1) + i;
    }
    // Along the other axes the point itself is not counted again.
    if ds != 0 {
        2 * (x + y) + s + (ds < 0) as usize
    } else if dj != 0 {
        2 * x + j + (dj < 0) as usize
    } else if di != 0 {
        i + (di < 0) as usize
    } else {
        0
    }
}

/// The field and the offset of a value, from its number among the values of all fields.
const fn value_of(
    reach: &[Reach],
    dimensions: usize,
    number: usize,
) -> Option<(usize, [isize; 3])> {
    let (mut field, mut left) = (0, number);
    while field < reach.len() && left >= values_of(reach[field], dimensions) {
        left -= values_of(reach[field], dimensions);
        field += 1;
    }
    if field == reach.len() {
        return None;
    }
    let along = radii(reach[field], dimensions);
    let mut offset = [0; 3];
    let mut axis = 0;
    if reach[field].is_box() {
        while axis < 3 {
            let places = 2 * along[axis] + 1;
            offset[axis] = (left % places) as isize - along[axis] as isize;
            left /= places;
            axis += 1;
        }
        return Some((field, offset));
    }
    while axis < 3 && left > 0 {
        if left <= 2 * along[axis] {
            let d = left as isize - 1 - along[axis] as isize;
            offset[axis] = if d < 0 { d } else { d + 1 };
            break;
        }
        left -= 2 * along[axis];
        axis += 1;
    }
    Some((field, offset))
}

/// The rows that are looked up as value `number`. The value at offset 0 along x stands for its row,
/// and the value at offset 1 for the row with the values beside it. `None` for all other values,
/// and for past fields that are overwritten.
const fn looked_up<T, U, const INPUTS: usize, const OUTPUTS: usize>(
    number: usize,
) -> Option<(usize, [isize; 3])>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    match value_of(&U::REACH, U::DIMENSIONS, number) {
        Some((field, offset))
            if (offset[0] == 0 || offset[0] == 1)
                && overwritten::<T, U, INPUTS, OUTPUTS>(field).is_none() =>
        {
            Some((field, offset))
        }
        _ => None,
    }
}

/// Whether rows are copied to windows. Results may be written over past fields only with windows:
/// without them, points are computed again after they were written.
const fn in_windows<T, U, const INPUTS: usize, const OUTPUTS: usize>() -> bool
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    U::OVER_PAST || furthest(&U::REACH, 0) > SHORT
}

/// Whether the loop over vectors has a slice of vectors for each value. The slices of values in
/// windows would have to be cut anew for each row.
const fn is_packed<T, U, const INPUTS: usize, const OUTPUTS: usize>() -> bool
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    !in_windows::<T, U, INPUTS, OUTPUTS>() && all_values(&U::REACH, U::DIMENSIONS) <= MOST
}

/// The number of points at each end of a row that are computed one by one.
const fn margin<T, U, const INPUTS: usize, const OUTPUTS: usize>() -> usize
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    match in_windows::<T, U, INPUTS, OUTPUTS>() {
        true => 0,
        false => furthest(&U::REACH, 0),
    }
}

/// The radii, within a plane and along the slowest axis, of the rows in which a field is read along
/// x.
const fn rows_along_x(reach: Reach, dimensions: usize) -> [usize; 2] {
    let [_, y, z] = radii(reach, dimensions);
    if reach.is_box() { [y, z] } else { [0, 0] }
}

/// The number of windows that a row has for all fields before this one.
const fn windows_before(reach: &[Reach], dimensions: usize, field: usize) -> usize {
    let (mut before, mut at) = (0, 0);
    while at < field {
        let [y, z] = rows_along_x(reach[at], dimensions);
        if reach[at].radius(0) > 0 {
            before += (2 * y + 1) * (2 * z + 1);
        }
        at += 1;
    }
    before
}

/// The most rows of `nx` points that are computed together.
pub(super) const fn most_rows<T, U, const INPUTS: usize, const OUTPUTS: usize>(nx: usize) -> usize
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    let points = match in_windows::<T, U, INPUTS, OUTPUTS>() {
        true => RUN_WITH_WINDOWS,
        false => RUN,
    };
    if nx < points { points / nx } else { 1 }
}

/// The number of elements of the windows for rows of `nx` points.
pub(super) const fn windows_len<T, U, const INPUTS: usize, const OUTPUTS: usize>(nx: usize) -> usize
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    if !in_windows::<T, U, INPUTS, OUTPUTS>() {
        return 0;
    }
    let row = nx + 2 * furthest(&U::REACH, 0);
    windows_before(&U::REACH, U::DIMENSIONS, INPUTS) * most_rows::<T, U, INPUTS, OUTPUTS>(nx) * row
}

/// Converts an offset to one along x, within a plane, and along the slowest axis.
#[inline(always)]
const fn by_march(dimensions: usize, [di, dj, dk]: [isize; 3]) -> [isize; 3] {
    if dimensions == 2 {
        [di, 0, dj]
    } else {
        [di, dj, dk]
    }
}

/// The rows that a row reads, and the elements after them in memory.
pub(super) struct Rows<'r, T, const INPUTS: usize> {
    /// Rows of the same plane, and rows at the same position in other planes.
    within: [[&'r [T]; ALONG]; INPUTS],
    across: [[&'r [T]; ALONG]; INPUTS],
    /// All other rows of other planes.
    off: [[[&'r [T]; BOX]; BOX]; INPUTS],
}

impl<'r, T: Number, const INPUTS: usize> Rows<'r, T, INPUTS> {
    pub(super) fn new() -> Self {
        Self {
            within: [[&[]; ALONG]; INPUTS],
            across: [[&[]; ALONG]; INPUTS],
            off: [[[&[]; BOX]; BOX]; INPUTS],
        }
    }

    /// Looks up the rows: `row` returns that of a field at an offset within the plane and along the
    /// slowest axis.
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        reach: &[Reach; INPUTS],
        dimensions: usize,
        row: impl Fn(usize, [i32; 2]) -> &'r [T],
    ) {
        self.each(
            reach,
            dimensions,
            #[inline(always)]
            |found, field, offset| *found = row(field, offset),
        );
    }

    /// Goes on to the rows that begin `elements` after these in memory.
    #[inline(always)]
    pub(super) fn advance(&mut self, reach: &[Reach; INPUTS], dimensions: usize, elements: usize) {
        self.each(
            reach,
            dimensions,
            #[inline(always)]
            |found, _, _| *found = found.get(elements..).unwrap_or_default(),
        );
    }

    /// Changes each row that is read, given its field and its offset.
    #[inline(always)]
    fn each(
        &mut self,
        reach: &[Reach; INPUTS],
        dimensions: usize,
        change: impl Fn(&mut &'r [T], usize, [i32; 2]),
    ) {
        for (field, reach) in reach.iter().enumerate() {
            let [_, within, across] = radii(*reach, dimensions).map(|radius| radius as i32);
            for ds in -across..=across {
                let found = &mut self.across[field][(MAX_RADIUS as i32 + ds) as usize];
                change(found, field, [0, ds]);
            }
            for dj in -within..=within {
                if dj != 0 {
                    let found = &mut self.within[field][(MAX_RADIUS as i32 + dj) as usize];
                    change(found, field, [dj, 0]);
                }
                if reach.is_box() {
                    for ds in -across..=across {
                        let found = &mut self.off[field][(MAX_BOX as i32 + dj) as usize]
                            [(MAX_BOX as i32 + ds) as usize];
                        change(found, field, [dj, ds]);
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

/// Rows that are computed together.
#[derive(Clone, Copy)]
pub(super) struct Run<'s, 'r, S, T, U, const INPUTS: usize> {
    pub(super) simd: S,
    pub(super) update: U,
    pub(super) layout: &'s Layout<T, INPUTS>,
    /// The rows that the first row reads, each followed by those of the later rows.
    pub(super) rows: &'s Rows<'r, T, INPUTS>,
    /// Whether the fields are farther away than the last-level cache.
    pub(super) is_far: bool,
}

impl<S: Simd, T: Number, U, const INPUTS: usize> Run<'_, '_, S, T, U, INPUTS> {
    /// Computes the rows `out`, at most [`most_rows`]. `windows` has [`windows_len`] elements. With
    /// `stream`, whole cache lines are written by non-temporal stores, unless past fields are
    /// overwritten.
    ///
    /// The work is a function of its own: inlined into the loops around it, the loop over vectors
    /// would not keep its constants in registers.
    #[inline(always)]
    pub(super) fn compute<'out, const OUTPUTS: usize>(
        &self,
        out: [&'out mut [T]; OUTPUTS],
        windows: &mut [T],
        stream: Option<&Streaming<'out>>,
    ) where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        struct Compute<'c, 's, 'r, 'out, S, T, U, const INPUTS: usize, const OUTPUTS: usize> {
            run: &'c Run<'s, 'r, S, T, U, INPUTS>,
            out: [&'out mut [T]; OUTPUTS],
            windows: &'c mut [T],
            stream: Option<&'c Streaming<'out>>,
        }

        impl<S, T, U, const INPUTS: usize, const OUTPUTS: usize> WithSimd
            for Compute<'_, '_, '_, '_, S, T, U, INPUTS, OUTPUTS>
        where
            S: Simd,
            T: Number,
            U: PointUpdate<T, INPUTS, OUTPUTS>,
        {
            type Output = ();

            #[inline(always)]
            fn with_simd<V: Simd>(self, _: V) {
                // No store can change the copy, so the loop over vectors keeps its constants in
                // registers. Where there are windows, they would not all fit.
                let copy = *self.run;
                let run = match const { in_windows::<T, U, INPUTS, OUTPUTS>() } {
                    true => self.run,
                    false => &copy,
                };
                run.inlined(self.out, self.windows, self.stream);
            }
        }

        self.simd.vectorize(Compute {
            run: self,
            out,
            windows,
            stream,
        });
    }

    /// As [`compute`](Self::compute).
    #[inline(always)]
    fn inlined<'out, const OUTPUTS: usize>(
        &self,
        mut out: [&'out mut [T]; OUTPUTS],
        windows: &mut [T],
        stream: Option<&Streaming<'out>>,
    ) where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let radius = const { furthest(&U::REACH, 0) };
        let (lanes, nx) = (lanes::<S, T>(), self.layout.extents[0] as usize);
        let len = out[0].len();
        let windowed = const { in_windows::<T, U, INPUTS, OUTPUTS>() };
        let is_short = match windowed {
            true => nx < lanes,
            false => nx <= 2 * radius || len < lanes + 2 * radius,
        };
        if is_short {
            for first in (0..len).step_by(nx) {
                for i in 0..nx {
                    self.put_point(&mut out, [first, i]);
                }
            }
            return;
        }
        if windowed {
            self.fill(len / nx, windows);
        }
        let found = Found::<T, U, INPUTS, OUTPUTS> {
            rows: self.rows,
            len,
            windows,
            window: len / nx * (nx + 2 * radius),
            update: PhantomData,
        };
        self.stretches(&found, out, stream);
    }

    /// Computes point `i` of the row that begins with element `first`.
    #[inline(always)]
    fn put_point<const OUTPUTS: usize>(&self, out: &mut [&mut [T]; OUTPUTS], [first, i]: [usize; 2])
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let at = first + i;
        let mut old = [T::zeroed(); OUTPUTS];
        for (old, out) in old.iter_mut().zip(&*out) {
            *old = out[at];
        }
        let results = self.update.update(&Point::<T, U, INPUTS, OUTPUTS> {
            layout: self.layout,
            rows: self.rows,
            old,
            first,
            i,
            update: PhantomData,
        });
        for (out, result) in out.iter_mut().zip(results) {
            out[at] = result;
        }
    }

    /// Fills the windows of some rows.
    #[inline(always)]
    fn fill<const OUTPUTS: usize>(&self, rows: usize, windows: &mut [T])
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let margin = const { furthest(&U::REACH, 0) };
        let nx = self.layout.extents[0] as usize;
        let row = nx + 2 * margin;
        let mut windows = windows.chunks_exact_mut(rows * row);
        for (field, reach) in U::REACH.iter().enumerate() {
            let radius = reach.radius(0);
            if radius == 0 {
                continue;
            }
            let [y, z] = rows_along_x(*reach, U::DIMENSIONS).map(|radius| radius as isize);
            for (ds, dj) in (-z..=z).flat_map(|ds| (-y..=y).map(move |dj| (ds, dj))) {
                let from = self.rows.at(field, dj, ds);
                let window = windows.next().unwrap_or_default();
                let each = from.chunks_exact(nx).zip(window.chunks_exact_mut(row));
                for (from, window) in each {
                    window[margin..][..nx].copy_from_slice(from);
                }
                for m in 1..=radius {
                    for (place, cell) in [
                        (-(m as i32), margin - m),
                        ((nx + m - 1) as i32, margin + nx + m - 1),
                    ] {
                        let cells = window.chunks_exact_mut(row).map(|window| &mut window[cell]);
                        match self.layout.place(field, 0, place) {
                            Place::Point(point) => {
                                for (from, cell) in from.chunks_exact(nx).zip(cells) {
                                    *cell = from[point as usize];
                                }
                            }
                            Place::End(end) => {
                                let value = self.layout.value(field, end);
                                cells.for_each(|cell| *cell = value);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Computes all points. If the update reads few values, they are first looked up, once for all
    /// points.
    #[inline(always)]
    fn stretches<'out, const OUTPUTS: usize>(
        &self,
        found: &Found<'_, '_, T, U, INPUTS, OUTPUTS>,
        out: [&'out mut [T]; OUTPUTS],
        stream: Option<&Streaming<'out>>,
    ) where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        if const { all_values(&U::REACH, U::DIMENSIONS) > MOST } {
            self.each_stretch(found, out, stream);
            return;
        }
        macro_rules! value {
            ($number:literal) => {
                match const { looked_up::<T, U, INPUTS, OUTPUTS>($number) } {
                    Some((field, [0, dj, ds])) => &found.row(field, dj, ds)[..found.len],
                    Some((field, [_, dj, ds])) => &found.wide(field, dj, ds)[..found.wide_len()],
                    None => &[],
                }
            };
        }
        let values: [&[T]; MOST] = for_each_value!(value);
        self.each_stretch(
            &Table::<T, U, INPUTS, OUTPUTS> {
                rows: &values,
                update: PhantomData,
            },
            out,
            stream,
        );
    }

    /// Computes all points, in stretches of at least one vector.
    #[inline(always)]
    fn each_stretch<'out, V, const OUTPUTS: usize>(
        &self,
        values: &V,
        mut out: [&'out mut [T]; OUTPUTS],
        stream: Option<&Streaming<'out>>,
    ) where
        V: Values<T>,
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let margin = const { margin::<T, U, INPUTS, OUTPUTS>() };
        let nx = self.layout.extents[0] as usize;
        if let Some(stream) = stream
            && !U::OVER_PAST
            && nx >= lanes::<S, T>() + 2 * margin
        {
            self.stream_rows(values, out, stream);
            return;
        }
        let (len, lanes) = (out[0].len(), lanes::<S, T>());
        if const { is_packed::<T, U, INPUTS, OUTPUTS>() }
            && (1..=lanes).contains(&margin)
            && nx.is_multiple_of(lanes)
            && nx >= 2 * lanes
            && before_aligned::<S, T>(out[0]) == 0
        {
            self.rows_of_vectors(values, &mut out);
            return;
        }
        let together = match const { in_windows::<T, U, INPUTS, OUTPUTS>() } {
            true => nx,
            // The ends of rows are computed again.
            false => len,
        };
        for (row, first) in (margin..len).step_by(together).enumerate() {
            let at = self.at::<OUTPUTS>(row, first);
            self.stretch(values, at, together - 2 * margin, &mut out);
        }
        self.put_ends(&mut out);
    }

    /// The indices in [`Values::row`] and in [`Values::wide`] for element `first`, which is in row
    /// `row`.
    #[inline(always)]
    fn at<const OUTPUTS: usize>(&self, row: usize, first: usize) -> [usize; 2]
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let radius = const { furthest(&U::REACH, 0) };
        match const { in_windows::<T, U, INPUTS, OUTPUTS>() } {
            true => [first, first + row * 2 * radius],
            false => [first, first - radius],
        }
    }

    /// Computes the points at the ends of rows that are computed one by one.
    #[inline(always)]
    fn put_ends<const OUTPUTS: usize>(&self, out: &mut [&mut [T]; OUTPUTS])
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let margin = const { margin::<T, U, INPUTS, OUTPUTS>() };
        let nx = self.layout.extents[0] as usize;
        // The outer loop is over columns: what lies beside a column is then found once for all rows.
        for i in (0..margin).chain(nx - margin..nx) {
            for first in (0..out[0].len()).step_by(nx) {
                self.put_point(out, [first, i]);
            }
        }
    }

    /// Computes rows of at least two vectors, all aligned, for updates that are
    /// [packed](is_packed). Each vector is computed once, the first and the last of a row with the
    /// values beyond its ends.
    #[inline(always)]
    fn rows_of_vectors<V, const OUTPUTS: usize>(&self, values: &V, out: &mut [&mut [T]; OUTPUTS])
    where
        V: Values<T>,
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let (lanes, nx) = (lanes::<S, T>(), self.layout.extents[0] as usize);
        let (each, len) = (nx / lanes, out[0].len());
        let block = (BLOCK / nx).max(1) * nx;
        for first in (0..len).step_by(block) {
            let block = first..len.min(first + block);
            self.put_end_vectors::<V, true, OUTPUTS>(values, block.clone(), out);
            self.put_end_vectors::<V, false, OUTPUTS>(values, block.clone(), out);
            if each > 2 {
                let at = self.at::<OUTPUTS>(0, first + lanes);
                self.pairs(values, at, [block.len() / nx, each, each - 2], out);
            }
        }
    }

    /// Computes the first vector of each of these rows, or the last if it is not the `START`.
    #[inline(always)]
    fn put_end_vectors<V, const START: bool, const OUTPUTS: usize>(
        &self,
        values: &V,
        rows: Range<usize>,
        out: &mut [&mut [T]; OUTPUTS],
    ) where
        V: Values<T>,
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let nx = self.layout.extents[0] as usize;
        let mut beyond = [[Place::Point(0); SHORT]; INPUTS];
        for (field, beyond) in beyond.iter_mut().enumerate() {
            for (d, beyond) in (1..).zip(beyond) {
                let place = if START { -d } else { nx as i32 - 1 + d };
                *beyond = self.layout.place(field, 0, place);
            }
        }
        let column = if START { 0 } else { nx - lanes::<S, T>() };
        for first in rows.step_by(nx) {
            let results = self
                .update
                .update(&EndVector::<S, T, U, V, START, INPUTS, OUTPUTS> {
                    simd: self.simd,
                    layout: self.layout,
                    values,
                    beyond: &beyond,
                    first,
                    at: first + column,
                    update: PhantomData,
                });
            put::<S, T, OUTPUTS>(out, first + column, results);
        }
    }

    /// As [`each_stretch`](Self::each_stretch), by non-temporal stores except near the ends of rows.
    #[inline(always)]
    fn stream_rows<'out, V, const OUTPUTS: usize>(
        &self,
        values: &V,
        mut out: [&'out mut [T]; OUTPUTS],
        stream: &Streaming<'out>,
    ) where
        V: Values<T>,
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let margin = const { margin::<T, U, INPUTS, OUTPUTS>() };
        let nx = self.layout.extents[0] as usize;
        let (len, count) = (out[0].len(), nx - 2 * margin);
        for (row, first) in (margin..len).step_by(nx).enumerate() {
            let lines = whole_lines::<S, T>(&out, first, count);
            for part in [0..lines.start, lines.end..count] {
                if !part.is_empty() {
                    let at = self.at::<OUTPUTS>(row, first + part.start);
                    self.stretch(values, at, part.len(), &mut out);
                }
            }
        }
        self.put_ends(&mut out);
        // The number of elements that were taken from the start of `out`.
        let mut before = 0;
        for (row, first) in (margin..len).step_by(nx).enumerate() {
            let lines = whole_lines::<S, T>(&out, first - before, count);
            let mut now: [&'out mut [T]; OUTPUTS] = std::array::from_fn(|_| &mut [][..]);
            for (out, now) in out.iter_mut().zip(&mut now) {
                let (_, later) = take(out).split_at_mut(first - before + lines.start);
                (*now, *out) = later.split_at_mut(lines.len());
            }
            before = first + lines.end;
            let at = self.at::<OUTPUTS>(row, first + lines.start);
            self.stream(values, at, now, stream);
        }
    }

    /// Computes `out`, a multiple of two vectors, by non-temporal stores.
    #[inline(always)]
    fn stream<'out, V, const OUTPUTS: usize>(
        &self,
        values: &V,
        [first, first_x]: [usize; 2],
        out: [&'out mut [T]; OUTPUTS],
        stream: &Streaming<'out>,
    ) where
        V: Values<T>,
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let (lanes, end) = (lanes::<S, T>(), out[0].len());
        // No past field is overwritten, so results do not depend on the outputs.
        let no_past: [&mut [T]; OUTPUTS] = std::array::from_fn(|_| &mut [][..]);
        let mut vectors = out.map(|out| T::vectors_mut::<S>(out).iter_mut());
        let mut i = 0;
        while i < end {
            self.prefetch_page(values, first + i);
            let page_end = end.min(i + elements_per_prefetch::<T>());
            while i < page_end {
                let next = i + lanes;
                self.prefetch(values, first + i + AHEAD, &no_past);
                let results = self.vector(values, [first + i, first_x + i], &no_past);
                let results_next = self.vector(values, [first + next, first_x + next], &no_past);
                for results in [results, results_next] {
                    for (vectors, result) in vectors.iter_mut().zip(results) {
                        if let Some(vector) = vectors.next() {
                            stream.put(self.simd, vector, T::lanes(result));
                        }
                    }
                }
                i += 2 * lanes;
            }
        }
    }

    /// Computes `count` points from element `first` on.
    #[inline(always)]
    fn stretch<V, const OUTPUTS: usize>(
        &self,
        values: &V,
        [first, first_x]: [usize; 2],
        count: usize,
        out: &mut [&mut [T]; OUTPUTS],
    ) where
        V: Values<T>,
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let lanes = lanes::<S, T>();
        // The vectors of the first output are aligned, so each lies in one cache line. The first
        // and the last vector overlap others, so some points are computed twice. These two are
        // computed before the others, while an output over a past field still has the past values,
        // and are written last.
        let begin = before_aligned::<S, T>(&out[0][first..]);
        // Two vectors at a time: each address is loaded once for both.
        let end = count - (count - begin) % (2 * lanes);
        let left = count - end;
        let results = |i| self.vector(values, [first + i, first_x + i], out);
        let head = (begin > 0).then(|| results(0));
        let single = (left >= lanes).then(|| results(end));
        let tail = (!left.is_multiple_of(lanes)).then(|| results(count - lanes));
        if const { is_packed::<T, U, INPUTS, OUTPUTS>() } {
            if begin < end {
                let (at, count) = ([first + begin, first_x + begin], (end - begin) / lanes);
                self.pairs(values, at, [1, count, count], out);
            }
        } else {
            let mut i = begin;
            while i < end {
                // These updates read many rows from the second-level cache, and would wait for
                // prefetches from the last-level cache.
                if self.is_far {
                    for out in &*out {
                        prefetch_next_page(out, first + i);
                    }
                    self.prefetch_page(values, first + i);
                }
                let page_end = end.min(i + elements_per_prefetch::<T>());
                while i < page_end {
                    let next = i + lanes;
                    if self.is_far {
                        self.prefetch(values, first + i + AHEAD, out);
                    }
                    let results = self.vector(values, [first + i, first_x + i], out);
                    let results_next = self.vector(values, [first + next, first_x + next], out);
                    put::<S, T, OUTPUTS>(out, first + i, results);
                    put::<S, T, OUTPUTS>(out, first + next, results_next);
                    i += 2 * lanes;
                }
            }
        }
        for (i, results) in [(0, head), (end, single), (count - lanes, tail)] {
            if let Some(results) = results {
                put::<S, T, OUTPUTS>(out, first + i, results);
            }
        }
    }

    /// Computes vectors of points from element `first` on, for updates that are
    /// [packed](is_packed): in each of `rows` rows of `step` vectors the first `count`. Each value
    /// becomes a slice of vectors, so the loop needs no checks.
    #[inline(always)]
    fn pairs<V, const OUTPUTS: usize>(
        &self,
        values: &V,
        [first, first_x]: [usize; 2],
        [rows, step, count]: [usize; 3],
        out: &mut [&mut [T]; OUTPUTS],
    ) where
        V: Values<T>,
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let margin = const { furthest(&U::REACH, 0) };
        let lanes = lanes::<S, T>();
        let all = (rows - 1) * step + count;
        macro_rules! vectors {
            ($number:literal) => {
                match const { value_of(&U::REACH, U::DIMENSIONS, $number) } {
                    Some((field, [0, dj, ds])) => {
                        &T::vectors::<S>(&values.row(field, dj, ds)[first..])[..all]
                    }
                    Some((field, [di, dj, ds])) => {
                        let wide = &values.wide(field, dj, ds)[first_x..];
                        &T::vectors::<S>(&wide[margin.wrapping_add_signed(di)..])[..all]
                    }
                    None => &[],
                }
            };
        }
        let vectors: [&[T::Lanes<S>]; MOST] = for_each_value!(vectors);
        let mut out_vectors: [&mut [T::Lanes<S>]; OUTPUTS] = std::array::from_fn(|_| &mut [][..]);
        for (vectors, out) in out_vectors.iter_mut().zip(out) {
            *vectors = &mut T::vectors_mut::<S>(&mut out[first..])[..all];
        }
        // Without windows, no past field is overwritten.
        let no_past: [&mut [T]; OUTPUTS] = std::array::from_fn(|_| &mut [][..]);
        let mut page = 0;
        for row in 0..rows {
            let mut v = row * step;
            let end = all.min(v + count);
            while v < end {
                if v >= page {
                    for out in &out_vectors {
                        prefetch_next_page(out, v);
                    }
                    self.prefetch_page(values, first + v * lanes);
                    page = v + elements_per_prefetch::<T::Lanes<S>>();
                }
                let pairs_end = end.min(page);
                while v + 1 < pairs_end {
                    self.prefetch(values, first + v * lanes + AHEAD, &no_past);
                    let (now, next) = (self.packed(&vectors, v), self.packed(&vectors, v + 1));
                    put_vector::<S, T, OUTPUTS>(&mut out_vectors, v, now);
                    put_vector::<S, T, OUTPUTS>(&mut out_vectors, v + 1, next);
                    v += 2;
                }
                if v < pairs_end {
                    put_vector::<S, T, OUTPUTS>(&mut out_vectors, v, self.packed(&vectors, v));
                    v += 1;
                }
            }
        }
    }

    /// The results for vector `v` of the points.
    #[inline(always)]
    fn packed<const OUTPUTS: usize>(
        &self,
        vectors: &[&[T::Lanes<S>]; MOST],
        v: usize,
    ) -> [T::Vector<S>; OUTPUTS]
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        self.update.update(&Packed::<S, T, U, INPUTS, OUTPUTS> {
            simd: self.simd,
            vectors,
            v,
            update: PhantomData,
        })
    }

    /// Prefetches a cache line from the next page of each field that is read.
    #[inline(always)]
    fn prefetch_page<V, const OUTPUTS: usize>(&self, values: &V, at: usize)
    where
        V: Values<T>,
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        for (field, reach) in U::REACH.iter().enumerate() {
            if overwritten::<T, U, INPUTS, OUTPUTS>(field).is_some() {
                continue;
            }
            let [_, y, z] = radii(*reach, U::DIMENSIONS).map(|radius| radius as isize);
            prefetch_next_page(values.row(field, 0, z), at);
            if y > 0 {
                prefetch_next_page(values.row(field, y, 0), at);
            }
        }
    }

    /// Prefetches the values of two vectors, from element `at` on, that no earlier row or plane has
    /// read.
    #[inline(always)]
    fn prefetch<V, const OUTPUTS: usize>(&self, values: &V, at: usize, out: &[&mut [T]; OUTPUTS])
    where
        V: Values<T>,
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        for (field, reach) in U::REACH.iter().enumerate() {
            let furthest = radii(*reach, U::DIMENSIONS)[2];
            let row = match overwritten::<T, U, INPUTS, OUTPUTS>(field) {
                Some(output) => &*out[output],
                None => values.row(field, 0, furthest as isize),
            };
            prefetch(row, at);
            // Shorter vectors share a line, most of the time.
            let lanes = lanes::<S, T>();
            if lanes * size_of::<T>() >= LINE_BYTES {
                prefetch(row, at + lanes);
            }
        }
    }

    /// The results for a vector of points. `at` is the index of the first point in [`Values::row`]
    /// and in [`Values::wide`].
    #[inline(always)]
    fn vector<V, const OUTPUTS: usize>(
        &self,
        values: &V,
        at: [usize; 2],
        out: &[&mut [T]; OUTPUTS],
    ) -> [T::Vector<S>; OUTPUTS]
    where
        V: Values<T>,
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        // Loops, because `map` of an array is a call.
        let mut old = [InVectors::splat(T::zeroed(), self.simd); OUTPUTS];
        if U::OVER_PAST {
            for (old, out) in old.iter_mut().zip(out) {
                *old = vector(self.simd, &out[at[0]..]);
            }
        }
        self.update.update(&Vectors::<S, T, U, V, INPUTS, OUTPUTS> {
            simd: self.simd,
            values,
            old,
            at,
            update: PhantomData,
        })
    }
}

/// The values that points in memory order read in the rows at an offset within a plane and along
/// the slowest axis. [`Run::at`] returns the indices.
trait Values<T> {
    /// The values at the points' own places.
    fn row(&self, field: usize, dj: isize, ds: isize) -> &[T];

    /// The same with the values beside them along x. At a point's index is the furthest value
    /// before it.
    fn wide(&self, field: usize, dj: isize, ds: isize) -> &[T];
}

/// Looks up the values at each call.
struct Found<'s, 'r, T, U, const INPUTS: usize, const OUTPUTS: usize> {
    rows: &'s Rows<'r, T, INPUTS>,
    /// The number of points.
    len: usize,
    /// The windows of the rows, and the number of elements for each value.
    windows: &'s [T],
    window: usize,
    update: PhantomData<U>,
}

impl<T, U, const INPUTS: usize, const OUTPUTS: usize> Found<'_, '_, T, U, INPUTS, OUTPUTS>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    /// The number of elements of each [`wide`](Values::wide) slice.
    #[inline(always)]
    fn wide_len(&self) -> usize {
        match const { in_windows::<T, U, INPUTS, OUTPUTS>() } {
            true => self.window,
            false => self.len,
        }
    }
}

impl<T, U, const INPUTS: usize, const OUTPUTS: usize> Values<T>
    for Found<'_, '_, T, U, INPUTS, OUTPUTS>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    #[inline]
    fn row(&self, field: usize, dj: isize, ds: isize) -> &[T] {
        &self.rows.at(field, dj, ds)[..self.len]
    }

    #[inline]
    fn wide(&self, field: usize, dj: isize, ds: isize) -> &[T] {
        if !const { in_windows::<T, U, INPUTS, OUTPUTS>() } {
            return self.row(field, dj, ds);
        }
        let [y, z] = rows_along_x(U::REACH[field], U::DIMENSIONS);
        let number = windows_before(&U::REACH, U::DIMENSIONS, field)
            + ds.wrapping_add_unsigned(z) as usize * (2 * y + 1)
            + dj.wrapping_add_unsigned(y) as usize;
        &self.windows[number * self.window..][..self.window]
    }
}

/// Rows that have been looked up, by the numbers of [`looked_up`].
struct Table<'s, 'r, T, U, const INPUTS: usize, const OUTPUTS: usize> {
    rows: &'s [&'r [T]; MOST],
    update: PhantomData<U>,
}

impl<T, U, const INPUTS: usize, const OUTPUTS: usize> Table<'_, '_, T, U, INPUTS, OUTPUTS>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    #[inline(always)]
    fn at(&self, field: usize, offset: [isize; 3]) -> &[T] {
        let before = const { values_before(&U::REACH, U::DIMENSIONS) };
        self.rows[before[field] + number_of(U::REACH[field], U::DIMENSIONS, offset)]
    }
}

impl<T, U, const INPUTS: usize, const OUTPUTS: usize> Values<T>
    for Table<'_, '_, T, U, INPUTS, OUTPUTS>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    #[inline(always)]
    fn row(&self, field: usize, dj: isize, ds: isize) -> &[T] {
        self.at(field, [0, dj, ds])
    }

    #[inline(always)]
    fn wide(&self, field: usize, dj: isize, ds: isize) -> &[T] {
        self.at(field, [1, dj, ds])
    }
}

/// The cache lines for non-temporal stores among `count` elements from `first` on: whole pairs of
/// vectors, between at least a line for ordinary stores on either side. None if the outputs' lines
/// begin at different elements.
#[inline(always)]
fn whole_lines<S: Simd, T: InVectors>(
    out: &[&mut [T]],
    first: usize,
    count: usize,
) -> Range<usize> {
    let line = LINE_BYTES / size_of::<T>();
    let begins = |out: &[T]| before_line(&out[first..]);
    let before = begins(out[0]);
    let start = before + line;
    let pairs = count.saturating_sub(start + line) / (2 * lanes::<S, T>());
    if pairs == 0 || out.iter().any(|out| begins(out) != before) {
        return count..count;
    }
    start..start + pairs * 2 * lanes::<S, T>()
}

/// Writes vector `v` of each output.
#[inline(always)]
fn put_vector<S: Simd, T: InVectors, const OUTPUTS: usize>(
    out: &mut [&mut [T::Lanes<S>]; OUTPUTS],
    v: usize,
    results: [T::Vector<S>; OUTPUTS],
) {
    for (out, result) in out.iter_mut().zip(results) {
        out[v] = T::lanes(result);
    }
}

/// Writes a vector to each output, from element `at` on.
#[inline(always)]
fn put<S: Simd, T: InVectors, const OUTPUTS: usize>(
    out: &mut [&mut [T]; OUTPUTS],
    at: usize,
    results: [T::Vector<S>; OUTPUTS],
) {
    for (out, result) in out.iter_mut().zip(results) {
        let out = &mut out[at..][..lanes::<S, T>()];
        T::vectors_mut::<S>(out)[0] = T::lanes(result);
    }
}

/// The vector at the start of `row`.
#[inline(always)]
fn vector<S: Simd, T: InVectors>(simd: S, row: &[T]) -> T::Vector<S> {
    <T as InVectors>::load(simd, T::vectors::<S>(&row[..lanes::<S, T>()])[0])
}

/// A vector of points.
struct Vectors<'s, S: Simd, T: InVectors, U, V, const INPUTS: usize, const OUTPUTS: usize> {
    simd: S,
    values: &'s V,
    /// The outputs before they are written, if past fields are overwritten.
    old: [T::Vector<S>; OUTPUTS],
    /// The index of the first point in [`Values::row`] and in [`Values::wide`].
    at: [usize; 2],
    update: PhantomData<U>,
}

impl<S, T, U, V, const INPUTS: usize, const OUTPUTS: usize> Neighbourhood<T>
    for Vectors<'_, S, T, U, V, INPUTS, OUTPUTS>
where
    S: Simd,
    T: Number,
    V: Values<T>,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Value = T::Vector<S>;

    const REACH: &'static [Reach] = &U::REACH;

    #[inline(always)]
    fn value(&self, field: usize, offset: [isize; 3]) -> T::Vector<S> {
        if let Some(output) = overwritten::<T, U, INPUTS, OUTPUTS>(field) {
            return self.old[output];
        }
        let margin = const { furthest(&U::REACH, 0) };
        let [di, dj, ds] = by_march(U::DIMENSIONS, offset);
        if di == 0 {
            return vector(self.simd, &self.values.row(field, dj, ds)[self.at[0]..]);
        }
        let wide = &self.values.wide(field, dj, ds)[self.at[1]..][..lanes::<S, T>() + 2 * margin];
        vector(self.simd, &wide[margin.wrapping_add_signed(di)..])
    }

    #[inline(always)]
    fn splat(&self, number: T) -> T::Vector<S> {
        InVectors::splat(number, self.simd)
    }
}

/// The vector at an end of a row.
struct EndVector<
    's,
    S: Simd,
    T: InVectors,
    U,
    V,
    const START: bool,
    const INPUTS: usize,
    const OUTPUTS: usize,
> {
    simd: S,
    layout: &'s Layout<T, INPUTS>,
    values: &'s V,
    /// For each field, where the values beyond the end are found, the nearest first.
    beyond: &'s [[Place; SHORT]; INPUTS],
    /// The element at which the row begins, and that at which the vector begins.
    first: usize,
    at: usize,
    update: PhantomData<U>,
}

impl<S, T, U, V, const START: bool, const INPUTS: usize, const OUTPUTS: usize> Neighbourhood<T>
    for EndVector<'_, S, T, U, V, START, INPUTS, OUTPUTS>
where
    S: Simd,
    T: Number,
    V: Values<T>,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Value = T::Vector<S>;

    const REACH: &'static [Reach] = &U::REACH;

    #[inline(always)]
    fn value(&self, field: usize, offset: [isize; 3]) -> T::Vector<S> {
        let [di, dj, ds] = by_march(U::DIMENSIONS, offset);
        let row = self.values.row(field, dj, ds);
        if di == 0 || (di > 0) == START {
            return vector(self.simd, &row[self.at.wrapping_add_signed(di)..]);
        }
        let mut values = T::rotated(vector(self.simd, &row[self.at..]), -di);
        for inner in 0..di.unsigned_abs() {
            let value = match self.beyond[field][di.unsigned_abs() - inner - 1] {
                Place::Point(i) => row[self.first + i as usize],
                Place::End(end) => self.layout.value(field, end),
            };
            let lane = if START {
                inner
            } else {
                lanes::<S, T>() - 1 - inner
            };
            values = value.with_lane(values, lane);
        }
        values
    }

    #[inline(always)]
    fn splat(&self, number: T) -> T::Vector<S> {
        InVectors::splat(number, self.simd)
    }
}

/// Vector `v` of some points. `vectors` has a slice for each value that they read, in the order of
/// the values' numbers.
struct Packed<'s, S: Simd, T: InVectors, U, const INPUTS: usize, const OUTPUTS: usize> {
    simd: S,
    vectors: &'s [&'s [T::Lanes<S>]; MOST],
    v: usize,
    update: PhantomData<U>,
}

impl<S, T, U, const INPUTS: usize, const OUTPUTS: usize> Neighbourhood<T>
    for Packed<'_, S, T, U, INPUTS, OUTPUTS>
where
    S: Simd,
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Value = T::Vector<S>;

    const REACH: &'static [Reach] = &U::REACH;

    #[inline(always)]
    fn value(&self, field: usize, offset: [isize; 3]) -> T::Vector<S> {
        let before = const { values_before(&U::REACH, U::DIMENSIONS) };
        let offset = by_march(U::DIMENSIONS, offset);
        let number = before[field] + number_of(U::REACH[field], U::DIMENSIONS, offset);
        <T as InVectors>::load(self.simd, self.vectors[number][self.v])
    }

    #[inline(always)]
    fn splat(&self, number: T) -> T::Vector<S> {
        InVectors::splat(number, self.simd)
    }
}

/// A single point.
struct Point<'s, 'r, T, U, const INPUTS: usize, const OUTPUTS: usize> {
    layout: &'s Layout<T, INPUTS>,
    rows: &'s Rows<'r, T, INPUTS>,
    /// The outputs before they are written.
    old: [T; OUTPUTS],
    /// The element at which its row begins.
    first: usize,
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
        if let Some(output) = overwritten::<T, U, INPUTS, OUTPUTS>(field) {
            return self.old[output];
        }
        let [di, dj, ds] = by_march(U::DIMENSIONS, offset);
        let row = self.rows.at(field, dj, ds);
        if di == 0 {
            return row[self.first + self.i];
        }
        match self.layout.place(field, 0, self.i as i32 + di as i32) {
            Place::Point(i) => row[self.first + i as usize],
            Place::End(end) => self.layout.value(field, end),
        }
    }

    #[inline(always)]
    fn splat(&self, number: T) -> T {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_a_number_of_its_own() {
        let reach = [Reach::axes([2, 1, 3]), Reach::cube(1), Reach::POINT];
        for dimensions in [2, 3] {
            let all = all_values(&reach, dimensions);
            let before = values_before(&reach, dimensions);
            for number in 0..all {
                let (field, offset) = value_of(&reach, dimensions, number).unwrap();
                let again = before[field] + number_of(reach[field], dimensions, offset);
                assert_eq!(again, number, "{field} {offset:?}");
            }
            assert_eq!(value_of(&reach, dimensions, all), None);
        }
        assert_eq!(all_values(&reach, 2), (1 + 2 * (2 + 1)) + 9 + 1);
        assert_eq!(all_values(&reach, 3), (1 + 2 * (2 + 1 + 3)) + 27 + 1);
    }
}
