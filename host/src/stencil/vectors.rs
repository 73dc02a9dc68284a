//! Computes rows of points in the processor's vectors.
//!
//! Consecutive rows in memory are computed as one long row if all rows that they read are
//! consecutive too. Points at the ends of rows are first computed as if the next row continued
//! there, and then again with the values beyond the end. The inputs of such a run are looked up
//! once, so the loop over its vectors needs no look-ups and no checks.
//!
//! An output that is written over a past field has the past values until it is written. There the
//! points that are computed twice come first: their results are kept apart, and written last.
#![forbid(unsafe_code)]

use super::number::Number;
use crate::simd::InVectors;
use bytemuck::Zeroable;
use halo_stencil::{
    Layout, MAX_BOX, MAX_RADIUS, Neighbourhood, Place, PointUpdate, Reach, furthest, overwritten,
};
use pulp::Simd;
use std::marker::PhantomData;

/// The most lanes of a vector, and the points of a window: a vector with the radius on either side.
const MAX_LANES: usize = 16;
const WINDOW: usize = MAX_RADIUS + MAX_LANES + MAX_RADIUS;

/// Rows along an axis: those on either side and the point's own.
const ALONG: usize = 2 * MAX_RADIUS + 1;

/// The same for one axis of a box.
const BOX: usize = 2 * MAX_BOX + 1;

/// Updates that read at most this many values keep a slice for each value.
const MOST: usize = 64;

/// If the radius is at most this, or more than a vector, the points at the ends of rows are computed
/// one by one.
const SHORT: usize = 2;

/// The most rows of a run whose outputs are written over past fields.
pub(super) const ROWS_OVER: usize = 32;

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
const fn all_values(reach: &[Reach], dimensions: usize) -> usize {
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

/// Like [`value_of`], but `None` as well for a value that an output is written over.
const fn looked_up<T, U, const INPUTS: usize, const OUTPUTS: usize>(
    number: usize,
) -> Option<(usize, [isize; 3])>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    match value_of(&U::REACH, U::DIMENSIONS, number) {
        Some((field, _)) if overwritten::<T, U, INPUTS, OUTPUTS>(field).is_some() => None,
        value => value,
    }
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
        for (field, reach) in reach.iter().enumerate() {
            let [_, within, across] = radii(*reach, dimensions).map(|radius| radius as i32);
            for ds in -across..=across {
                self.across[field][(MAX_RADIUS as i32 + ds) as usize] = row(field, [0, ds]);
            }
            for dj in -within..=within {
                if dj != 0 {
                    self.within[field][(MAX_RADIUS as i32 + dj) as usize] = row(field, [dj, 0]);
                }
                if reach.is_box() {
                    for ds in -across..=across {
                        self.off[field][(MAX_BOX as i32 + dj) as usize]
                            [(MAX_BOX as i32 + ds) as usize] = row(field, [dj, ds]);
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

/// Memory for the points near the ends of rows.
pub(super) struct Near<T, const INPUTS: usize, const OUTPUTS: usize> {
    windows: Windows<T, INPUTS>,
    /// Results that are written last.
    kept: [[T; 2 * MAX_LANES * ROWS_OVER]; OUTPUTS],
}

impl<T: Number, const INPUTS: usize, const OUTPUTS: usize> Near<T, INPUTS, OUTPUTS> {
    pub(super) fn new() -> Self {
        Self {
            windows: Windows([[[[T::zeroed(); WINDOW]; BOX]; BOX]; INPUTS]),
            kept: [[T::zeroed(); 2 * MAX_LANES * ROWS_OVER]; OUTPUTS],
        }
    }
}

/// The values that a vector near an end of its row reads: its points, and those on either side.
struct Windows<T, const INPUTS: usize>([[[[T; WINDOW]; BOX]; BOX]; INPUTS]);

impl<T: Number, const INPUTS: usize> Windows<T, INPUTS> {
    /// Fills the windows of the rows that are read along x, for `lanes` points from `i` on, where
    /// the rows begin at element `first`.
    #[inline(always)]
    fn fill(
        &mut self,
        rows: &Rows<'_, T, INPUTS>,
        layout: &Layout<T, INPUTS>,
        reach: &[Reach; INPUTS],
        dimensions: usize,
        (first, i): (usize, usize),
        lanes: usize,
    ) {
        let nx = layout.extents[0] as usize;
        for (field, reach) in reach.iter().enumerate() {
            let radius = reach.radius(0);
            if radius == 0 {
                continue;
            }
            let [_, within, across] = match reach.is_box() {
                true => radii(*reach, dimensions).map(|radius| radius as isize),
                false => [0; 3],
            };
            for (dj, ds) in
                (-within..=within).flat_map(|dj| (-across..=across).map(move |ds| (dj, ds)))
            {
                let row = &rows.at(field, dj, ds)[first..][..nx];
                let window = &mut self.0[field][(MAX_BOX as isize + dj) as usize]
                    [(MAX_BOX as isize + ds) as usize];
                // First the points in the row, then those beyond its ends.
                let (from, to) = (i.saturating_sub(radius), (i + lanes + radius).min(nx));
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
                for place in nx..i + lanes + radius {
                    beyond(place as i32, at(place));
                }
            }
        }
    }
}

/// Rows that are computed as one.
pub(super) struct Run<'s, 'r, S, T, U, const INPUTS: usize> {
    pub(super) simd: S,
    pub(super) update: U,
    pub(super) layout: &'s Layout<T, INPUTS>,
    /// The rows that the first row reads, each followed by those of the later rows.
    pub(super) rows: &'s Rows<'r, T, INPUTS>,
}

impl<S: Simd, T: Number, U, const INPUTS: usize> Run<'_, '_, S, T, U, INPUTS> {
    /// Computes the rows `out`.
    #[inline(always)]
    pub(super) fn compute<const OUTPUTS: usize>(
        &self,
        mut out: [&mut [T]; OUTPUTS],
        near: &mut Near<T, INPUTS, OUTPUTS>,
    ) where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let radius = const { furthest(&U::REACH, 0) };
        let (lanes, nx) = (lanes::<S, T>(), self.layout.extents[0] as usize);
        let len = out[0].len();
        if nx < lanes.max(radius) || len < lanes + 2 * radius {
            for at in 0..len {
                let results = self.point(old_of(&out, at), at - at % nx, at % nx);
                for (out, result) in out.iter_mut().zip(results) {
                    out[at] = result;
                }
            }
            return;
        }
        if U::OVER_PAST && radius > 0 {
            self.ends(len, &mut out, near);
        }
        if const { all_values(&U::REACH, U::DIMENSIONS) <= MOST } {
            self.inner(radius, len - 2 * radius, &mut out);
        } else {
            self.checked(radius, len - 2 * radius, &mut out);
        }
        if !U::OVER_PAST && radius > 0 {
            self.ends(len, &mut out, near);
        } else if radius > 0 {
            put_kept(&mut out, &near.kept, nx, end_points::<S, T>(radius));
        }
    }

    /// Computes the points at the ends of rows of `len` points in all. Where outputs are written
    /// over past fields, it keeps the results, and `out` is unchanged.
    #[inline(always)]
    fn ends<const OUTPUTS: usize>(
        &self,
        len: usize,
        out: &mut [&mut [T]; OUTPUTS],
        near: &mut Near<T, INPUTS, OUTPUTS>,
    ) where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let radius = const { furthest(&U::REACH, 0) };
        let nx = self.layout.extents[0] as usize;
        let count = end_points::<S, T>(radius);
        let Near { windows, kept } = near;
        let mut number = 0;
        for first in (0..len).step_by(nx) {
            for i in [0, nx - count] {
                if one_by_one::<S, T>(radius) {
                    for e in 0..count {
                        let at = first + i + e;
                        let old = old_of(out, at);
                        let results = self.point(old, first, i + e);
                        for ((out, kept), result) in out.iter_mut().zip(&mut *kept).zip(results) {
                            if U::OVER_PAST {
                                kept[number + e] = result;
                            } else {
                                out[at] = result;
                            }
                        }
                    }
                } else {
                    windows.fill(
                        self.rows,
                        self.layout,
                        &U::REACH,
                        U::DIMENSIONS,
                        (first, i),
                        count,
                    );
                    let results = self.update.update(&NearEnd::<S, T, U, INPUTS, OUTPUTS> {
                        inside: self.inside(first + i, out),
                        windows: &*windows,
                    });
                    if U::OVER_PAST {
                        for (kept, result) in kept.iter_mut().zip(results) {
                            put_one::<S, T>(kept, number, result);
                        }
                    } else {
                        put::<S, T, OUTPUTS>(out, first + i, results);
                    }
                }
                number += count;
            }
        }
    }

    /// Computes point `i` of the row that begins at element `first`, where the outputs are `old`.
    #[inline(always)]
    fn point<const OUTPUTS: usize>(&self, old: [T; OUTPUTS], first: usize, i: usize) -> [T; OUTPUTS]
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        self.update.update(&Point::<T, U, INPUTS, OUTPUTS> {
            layout: self.layout,
            rows: self.rows,
            old,
            first,
            i,
            update: PhantomData,
        })
    }

    /// The neighbourhood of the vector from element `at` on.
    #[inline(always)]
    fn inside<const OUTPUTS: usize>(
        &self,
        at: usize,
        out: &[&mut [T]; OUTPUTS],
    ) -> Inside<'_, '_, S, T, U, INPUTS, OUTPUTS>
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        // Loops, because `map` of an array is a call.
        let mut old = [InVectors::splat(T::zeroed(), self.simd); OUTPUTS];
        if U::OVER_PAST {
            for (old, out) in old.iter_mut().zip(out) {
                *old = vector(self.simd, &out[at..]);
            }
        }
        Inside {
            simd: self.simd,
            rows: self.rows,
            old,
            at,
            update: PhantomData,
        }
    }

    /// Computes `len` points from `first` on, at least one vector, whose neighbours are all in the
    /// rows.
    #[inline(always)]
    fn inner<const OUTPUTS: usize>(&self, first: usize, len: usize, out: &mut [&mut [T]; OUTPUTS])
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let (lanes, end) = (lanes::<S, T>(), first + len);
        // The vectors of the first output are aligned, so each lies in one cache line. The first
        // and the last vector compute some points again.
        let mut aligned = out[0].as_ptr().align_offset(lanes * size_of::<T>());
        if aligned < first {
            // More than one if the radius is more than a vector.
            aligned += (first - aligned).next_multiple_of(lanes);
        }
        if aligned > end {
            aligned = first;
        }
        let whole = (end - aligned) / lanes;
        let [head, tail] = [aligned > first, aligned + whole * lanes < end].map(usize::from);
        let mut parts = [(first, head), (aligned, whole), (end - lanes, tail)];
        let mut outer = None;
        if U::OVER_PAST {
            let head = self.update.update(&self.inside(first, out));
            let tail = self.update.update(&self.inside(end - lanes, out));
            outer = Some([(first, head), (end - lanes, tail)]);
            [parts[0].1, parts[2].1] = [0; 2];
        }
        for (begin, count) in parts {
            macro_rules! values {
                ($($number:literal)+) => {
                    [$(self.vectors(
                        const { looked_up::<T, U, INPUTS, OUTPUTS>($number) },
                        begin,
                        count,
                    )),+]
                };
            }
            let values: [&[T::Lanes<S>]; MOST] = values! {
                0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
                32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60
                61 62 63
            };
            let mut out = out.each_mut().map(|out| {
                let out = &mut out[begin..][..count * lanes];
                &mut T::vectors_mut::<S>(out)[..count]
            });
            let mut at = 0;
            while at < count {
                let mut old = [T::Lanes::<S>::zeroed(); OUTPUTS];
                if U::OVER_PAST {
                    for (old, out) in old.iter_mut().zip(&out) {
                        *old = out[at];
                    }
                }
                let results = self.update.update(&Inner::<S, T, U, INPUTS, OUTPUTS> {
                    simd: self.simd,
                    values: &values,
                    old,
                    at,
                    update: PhantomData,
                });
                for (out, result) in out.iter_mut().zip(results) {
                    out[at] = T::lanes(result);
                }
                at += 1;
            }
        }
        if let Some([(first, head), (last, tail)]) = outer {
            put::<S, T, OUTPUTS>(out, first, head);
            put::<S, T, OUTPUTS>(out, last, tail);
        }
    }

    /// The `count` vectors from `begin` on of a value, if the update reads it. There are many calls
    /// with a constant `value`: an optimised build inlines them, and other builds need not compile
    /// this for each.
    #[inline]
    fn vectors(
        &self,
        value: Option<(usize, [isize; 3])>,
        begin: usize,
        count: usize,
    ) -> &[T::Lanes<S>] {
        let Some((field, [di, dj, ds])) = value else {
            return &[];
        };
        let row = self.rows.at(field, dj, ds);
        let from = &row[begin.wrapping_add_signed(di)..][..count * lanes::<S, T>()];
        &T::vectors::<S>(from)[..count]
    }

    /// Like [`inner`](Self::inner), but looks up and checks each read: for updates that read more
    /// than [`MOST`] values.
    #[inline(always)]
    fn checked<const OUTPUTS: usize>(&self, first: usize, len: usize, out: &mut [&mut [T]; OUTPUTS])
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let (lanes, last) = (lanes::<S, T>(), first + len - lanes::<S, T>());
        // The last vector may compute some points again, so it comes first and is written last.
        let of_last = self.update.update(&self.inside(last, out));
        for at in (first..last).step_by(lanes) {
            let results = self.update.update(&self.inside(at, out));
            put::<S, T, OUTPUTS>(out, at, results);
        }
        put::<S, T, OUTPUTS>(out, last, of_last);
    }
}

/// Writes a vector to each output.
#[inline(always)]
fn put<S: Simd, T: InVectors, const OUTPUTS: usize>(
    out: &mut [&mut [T]; OUTPUTS],
    at: usize,
    results: [T::Vector<S>; OUTPUTS],
) {
    for (out, result) in out.iter_mut().zip(results) {
        put_one::<S, T>(out, at, result);
    }
}

/// Writes a vector.
#[inline(always)]
fn put_one<S: Simd, T: InVectors>(out: &mut [T], at: usize, result: T::Vector<S>) {
    let out = &mut out[at..][..lanes::<S, T>()];
    T::vectors_mut::<S>(out)[0] = T::lanes(result);
}

/// Writes the results that were kept for the first and the last `count` points of each row.
#[inline(always)]
fn put_kept<T: Number, const KEPT: usize, const OUTPUTS: usize>(
    out: &mut [&mut [T]; OUTPUTS],
    kept: &[[T; KEPT]; OUTPUTS],
    nx: usize,
    count: usize,
) {
    for (out, kept) in out.iter_mut().zip(kept) {
        let ends = out.chunks_exact_mut(nx).zip(kept.chunks_exact(2 * count));
        for (row, kept) in ends {
            row[..count].copy_from_slice(&kept[..count]);
            row[nx - count..].copy_from_slice(&kept[count..]);
        }
    }
}

/// The outputs at an element before they are written.
#[inline(always)]
fn old_of<T: Number, const OUTPUTS: usize>(out: &[&mut [T]; OUTPUTS], at: usize) -> [T; OUTPUTS] {
    let mut old = [T::zeroed(); OUTPUTS];
    for (old, out) in old.iter_mut().zip(out) {
        *old = out[at];
    }
    old
}

/// The points at an end of a row that are computed together.
#[inline(always)]
const fn end_points<S: Simd, T: InVectors>(radius: usize) -> usize {
    if one_by_one::<S, T>(radius) {
        radius
    } else {
        lanes::<S, T>()
    }
}

/// Whether the points at an end of a row are computed one by one.
#[inline(always)]
const fn one_by_one<S: Simd, T: InVectors>(radius: usize) -> bool {
    radius <= SHORT || radius > lanes::<S, T>()
}

/// The number of lanes of a vector.
#[inline(always)]
const fn lanes<S: Simd, T: InVectors>() -> usize {
    size_of::<T::Lanes<S>>() / size_of::<T>()
}

/// The vector at the start of `row`.
#[inline(always)]
fn vector<S: Simd, T: InVectors>(simd: S, row: &[T]) -> T::Vector<S> {
    <T as InVectors>::load(simd, T::vectors::<S>(&row[..lanes::<S, T>()])[0])
}

/// A vector of points whose neighbours have been looked up.
struct Inner<'s, 'r, S: Simd, T: InVectors, U, const INPUTS: usize, const OUTPUTS: usize> {
    simd: S,
    /// Indexed by the numbers of the values.
    values: &'s [&'r [T::Lanes<S>]; MOST],
    /// The outputs before they are written.
    old: [T::Lanes<S>; OUTPUTS],
    at: usize,
    update: PhantomData<U>,
}

impl<S, T, U, const INPUTS: usize, const OUTPUTS: usize> Neighbourhood<T>
    for Inner<'_, '_, S, T, U, INPUTS, OUTPUTS>
where
    S: Simd,
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Value = T::Vector<S>;

    const REACH: &'static [Reach] = &U::REACH;

    #[inline(always)]
    fn value(&self, field: usize, offset: [isize; 3]) -> T::Vector<S> {
        if let Some(output) = overwritten::<T, U, INPUTS, OUTPUTS>(field) {
            return <T as InVectors>::load(self.simd, self.old[output]);
        }
        let before = const { values_before(&U::REACH, U::DIMENSIONS) };
        let offset = by_march(U::DIMENSIONS, offset);
        let number = before[field] + number_of(U::REACH[field], U::DIMENSIONS, offset);
        <T as InVectors>::load(self.simd, self.values[number][self.at])
    }

    #[inline(always)]
    fn splat(&self, number: T) -> T::Vector<S> {
        InVectors::splat(number, self.simd)
    }
}

/// A vector of points whose neighbours are all in their rows.
struct Inside<'s, 'r, S: Simd, T: InVectors, U, const INPUTS: usize, const OUTPUTS: usize> {
    simd: S,
    rows: &'s Rows<'r, T, INPUTS>,
    /// The outputs before they are written, if past fields are overwritten.
    old: [T::Vector<S>; OUTPUTS],
    /// The first point.
    at: usize,
    update: PhantomData<U>,
}

impl<S, T, U, const INPUTS: usize, const OUTPUTS: usize> Neighbourhood<T>
    for Inside<'_, '_, S, T, U, INPUTS, OUTPUTS>
where
    S: Simd,
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Value = T::Vector<S>;

    const REACH: &'static [Reach] = &U::REACH;

    #[inline(always)]
    fn value(&self, field: usize, offset: [isize; 3]) -> T::Vector<S> {
        if let Some(output) = overwritten::<T, U, INPUTS, OUTPUTS>(field) {
            return self.old[output];
        }
        let [di, dj, ds] = by_march(U::DIMENSIONS, offset);
        let row = self.rows.at(field, dj, ds);
        vector(self.simd, &row[self.at.wrapping_add_signed(di)..])
    }

    #[inline(always)]
    fn splat(&self, number: T) -> T::Vector<S> {
        InVectors::splat(number, self.simd)
    }
}

/// A vector of points near an end of the row.
struct NearEnd<'s, 'r, S: Simd, T: InVectors, U, const INPUTS: usize, const OUTPUTS: usize> {
    inside: Inside<'s, 'r, S, T, U, INPUTS, OUTPUTS>,
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
            return self.inside.value(field, offset);
        }
        let window = &self.windows.0[field][(MAX_BOX as isize + dj) as usize]
            [(MAX_BOX as isize + ds) as usize];
        vector(
            self.inside.simd,
            &window[(MAX_RADIUS as isize + di) as usize..],
        )
    }

    #[inline(always)]
    fn splat(&self, number: T) -> T::Vector<S> {
        self.inside.splat(number)
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
