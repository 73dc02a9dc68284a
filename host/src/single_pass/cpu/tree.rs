//! Sums floats in the order of the tree: chunks that consist of rows of lanes.
//!
//! A chunk is one piece of work. Its boundaries do not depend on the number of threads, and so
//! neither does the result.

use super::share::{FAR_BYTES, SHARE_BYTES};
use super::widen::Widen;
use crate::pages::prefetch_lines;
use crate::simd::{
    InVectors, Value, dispatched, dispatched_for_conversions, lanes, with_shorter_vectors,
};
use crate::threads;
use crate::trial::Trial;
use gpu_kernels::reduction::partition::Partition;
use pulp::{Simd, WithSimd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The most lanes: for elements of 4 bytes.
const LANES: usize = 2048;

/// The most rows that are added together. Each lane's total is loaded and stored once for all of
/// them.
const ROWS: usize = 4;

/// From this size on, counted over both arrays if there are two, arrays do not stay in a cache. The
/// processor's own prefetches work best if they are read in order, one row after the other.
const IN_MEMORY: usize = 16 << 20;

/// How far ahead arrays in memory are prefetched, in bytes. If a total is twice as long as an element,
/// it is twice as far.
const AHEAD_BYTES: usize = 4096;

/// How far ahead two arrays in the last-level cache are prefetched, in bytes, when several rows are
/// added together.
const AHEAD_IN_ROWS_BYTES: usize = 512;

/// The number of chunks of one row each whose trees are computed together. A vector has at least as
/// many lanes, so [`sums_of_vectors`] leaves a total for each.
const GROUP: usize = 4;

/// The number of elements that are prefetched, and then added, at a time.
const BLOCK: usize = 64;

/// A small number of terms or chunks, which needs less memory.
const FEW: usize = 128;

/// A medium number of terms.
const MEDIUM: usize = 1024;

/// The type of a sum: f32 or f64.
pub(super) trait Total: InVectors {
    /// The identity of addition.
    const NOTHING: Self;

    /// The bits, for passing from thread to thread.
    fn to_word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

impl Total for f32 {
    const NOTHING: Self = -0.0;

    fn to_word(self) -> u64 {
        self.to_bits().into()
    }

    fn from_word(word: u64) -> Self {
        Self::from_bits(word as u32)
    }
}

impl Total for f64 {
    const NOTHING: Self = -0.0;

    fn to_word(self) -> u64 {
        self.to_bits()
    }

    fn from_word(word: u64) -> Self {
        Self::from_bits(word)
    }
}

/// How the rows of a chunk are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    /// Whether they are added one after the other, as they lie in memory, or several together.
    in_order: bool,
    prefetched: bool,
}

impl Reading {
    const TOGETHER: Self = Self {
        in_order: false,
        prefetched: false,
    };
    const IN_ORDER: Self = Self {
        in_order: true,
        prefetched: false,
    };

    fn with_prefetches(self) -> Self {
        Self {
            prefetched: true,
            ..self
        }
    }

    /// Two ways to read arrays of this total size. Where they differ, one is faster on some
    /// processors and the other on others (docs/tuning/reduction.md).
    fn ways<V: Total, T: Terms<V>>(bytes: usize) -> [Self; 2] {
        match (bytes, T::ARRAYS) {
            (IN_MEMORY.., 1) if T::CONVERTED => [Self::TOGETHER, Self::IN_ORDER.with_prefetches()],
            (IN_MEMORY.., _) => [Self::IN_ORDER, Self::IN_ORDER.with_prefetches()],
            (FAR_BYTES.., 2) => [Self::TOGETHER, Self::TOGETHER.with_prefetches()],
            (FAR_BYTES.., _) => [Self::TOGETHER, Self::IN_ORDER],
            _ => [Self::TOGETHER; 2],
        }
    }
}

/// How a term is added to a total. The term is made of `N` elements, which have the type of the
/// total.
pub(super) trait Take<V, const N: usize>: Copy + Sync {
    /// The total with one more term; `splat` makes a value of a number.
    fn take<X: Value>(self, total: X, elements: [X; N], splat: impl Fn(V) -> X) -> X;
}

/// The terms of a sum, with the function that adds a term to a total.
trait Terms<V: Total>: Copy + Sync {
    /// The number of arrays.
    const ARRAYS: usize;

    /// The bytes of an element.
    const SIZE: usize;

    /// Whether elements are converted to a longer type.
    const CONVERTED: bool = size_of::<V>() > Self::SIZE;

    fn len(self) -> usize;

    /// The `len` terms from `first` on.
    fn part(self, first: usize, len: usize) -> Self;

    /// Adds the term at `place` to `total`.
    fn take(self, total: V, place: usize) -> V;

    /// Adds a term to each lane of `total`, the first of them from `place`.
    fn take_vector<S: Simd>(self, simd: S, total: V::Vector<S>, place: usize) -> V::Vector<S>;

    /// Prefetches `count` terms. The first of them lies `ahead` bytes after the first term; some may
    /// lie beyond the end.
    fn prefetch(self, count: usize, ahead: usize);
}

/// Terms that are made of the elements of `N` arrays of the same length.
#[derive(Clone, Copy)]
struct Arrays<'a, T, F, const N: usize> {
    arrays: [&'a [T]; N],
    take: F,
}

impl<V: Total, T: Widen<V>, F: Take<V, N>, const N: usize> Terms<V> for Arrays<'_, T, F, N> {
    const ARRAYS: usize = N;
    const SIZE: usize = size_of::<T>();

    #[inline(always)]
    fn len(self) -> usize {
        self.arrays[0].len()
    }

    #[inline(always)]
    fn part(mut self, first: usize, len: usize) -> Self {
        for array in &mut self.arrays {
            *array = &array[first..][..len];
        }
        self
    }

    #[inline(always)]
    fn take(self, total: V, place: usize) -> V {
        let mut elements = [V::NOTHING; N];
        for (element, array) in elements.iter_mut().zip(&self.arrays) {
            *element = array[place].widened();
        }
        self.take.take(
            total,
            elements,
            #[inline(always)]
            |number| number,
        )
    }

    #[inline(always)]
    fn take_vector<S: Simd>(self, simd: S, total: V::Vector<S>, place: usize) -> V::Vector<S> {
        let mut elements = [total; N];
        for (element, array) in elements.iter_mut().zip(&self.arrays) {
            *element = T::vector(simd, &array[place..][..lanes::<S, V>()]);
        }
        self.take.take(
            total,
            elements,
            #[inline(always)]
            |number| number.splat(simd),
        )
    }

    #[inline(always)]
    fn prefetch(self, count: usize, ahead: usize) {
        for array in self.arrays {
            prefetch_lines(array, ahead / size_of::<T>(), count);
        }
    }
}

/// Adds the terms that `take` makes from the elements of `N` arrays of the same length, in the order
/// of the tree.
pub(super) fn sum<V: Total, T: Widen<V>, const N: usize>(
    arrays: [&[T]; N],
    take: impl Take<V, N>,
) -> V {
    total(Arrays { arrays, take })
}

/// The sum of all terms.
fn total<V: Total, T: Terms<V>>(terms: T) -> V {
    let len = terms.len();
    let partition = Partition::of(len, T::SIZE);
    if len > partition.span() {
        return if len.div_ceil(partition.span()) <= FEW {
            total_of_chunks::<V, T, FEW>(terms)
        } else {
            total_of_chunks::<V, T, LANES>(terms)
        };
    }
    let lanes = partition.lanes();
    // To fill memory for all lanes would take as long as to add a few hundred terms.
    let memory = match lanes.min(len) {
        few if few <= FEW => &mut [V::NOTHING; FEW][..],
        medium if medium <= MEDIUM => &mut [V::NOTHING; MEDIUM],
        _ => &mut [V::NOTHING; LANES],
    };
    chunk(terms, lanes, Reading::TOGETHER, memory)
}

/// Like [`total`], for several chunks, with memory for `N` chunks at a time.
fn total_of_chunks<V: Total, T: Terms<V>, const N: usize>(terms: T) -> V {
    let len = terms.len();
    let partition = Partition::of(len, T::SIZE);
    let (lanes, span) = (partition.lanes(), partition.span());
    let chunks = len.div_ceil(span);
    let bytes = len.saturating_mul(T::SIZE);
    let threads = threads::worth(bytes, SHARE_BYTES);
    let ways = Reading::ways::<V, T>(bytes.saturating_mul(T::ARRAYS));
    let is_tried = ways[0] != ways[1];
    let group = match span == lanes && !is_tried {
        true => GROUP,
        false => 1,
    };
    // The chunks' totals are added like one more chunk, row by row.
    let lanes_of_totals = Partition::of(chunks, size_of::<V>()).lanes().min(N);
    let row = [const { AtomicU64::new(0) }; N];
    let mut totals = [V::NOTHING; N];
    for first in (0..chunks).step_by(lanes_of_totals) {
        let row = &row[..lanes_of_totals.min(chunks - first)];
        threads::share(threads, row.len().div_ceil(group), |mine| {
            let mut totals = [V::NOTHING; LANES];
            let mut trial = match is_tried {
                true => Trial::of(row.len() / threads),
                false => Trial::of(0),
            };
            for piece in mine {
                let places = piece * group..row.len().min((piece + 1) * group);
                let begin = (first + places.start) * span;
                if group == GROUP
                    && GROUP * span <= len - begin
                    && let Some(of_chunks) =
                        single_rows(terms.part(begin, GROUP * span), ways[0], &mut totals)
                {
                    for (total, of_chunk) in of_chunks.into_iter().zip(&row[places]) {
                        of_chunk.store(total.to_word(), Ordering::Relaxed);
                    }
                    continue;
                }
                for place in places {
                    let begin = (first + place) * span;
                    let part = terms.part(begin, span.min(len - begin));
                    let total = trial
                        .run(|second| chunk(part, lanes, ways[usize::from(second)], &mut totals));
                    row[place].store(total.to_word(), Ordering::Relaxed);
                }
            }
        });
        for (total, of_chunk) in totals.iter_mut().zip(row) {
            *total = *total + V::from_word(of_chunk.load(Ordering::Relaxed));
        }
    }
    dispatched(Neighbours {
        totals: &mut totals[..lanes_of_totals.min(chunks.next_power_of_two())],
    })
}

/// The sum of all terms of a chunk; `totals` is memory for the totals of its lanes. Term e belongs
/// to lane e modulo the number of lanes. Each lane adds its terms in order, then neighbouring lanes
/// are added until one remains.
fn chunk<V: Total, T: Terms<V>>(terms: T, lanes: usize, reading: Reading, totals: &mut [V]) -> V {
    // Lanes after the last one with a term would change nothing.
    let lanes = lanes.min(terms.len().next_power_of_two());
    let chunk = Chunk {
        terms,
        totals: &mut totals[..lanes],
        reading,
    };
    dispatched_for_terms::<V, T, _>(reading, chunk)
}

/// Does `work` with vectors of the length that suits terms that are read in this way.
fn dispatched_for_terms<V: Total, T: Terms<V>, W: WithSimd>(
    reading: Reading,
    work: W,
) -> W::Output {
    // In the order of memory, it is the reading that takes the time.
    if T::CONVERTED && !reading.in_order {
        dispatched_for_conversions(work)
    } else {
        dispatched(work)
    }
}

/// The totals of [`GROUP`] chunks of one row each, if the processor has instructions for it and the
/// memory suffices.
fn single_rows<V: Total, T: Terms<V>>(
    terms: T,
    reading: Reading,
    totals: &mut [V; LANES],
) -> Option<[V; GROUP]> {
    dispatched_for_terms::<V, T, _>(reading, SingleRows { terms, totals })
}

/// [`GROUP`] chunks of one row each, and memory for totals.
struct SingleRows<'a, V, T> {
    terms: T,
    totals: &'a mut [V; LANES],
}

impl<V: Total, T: Terms<V>> WithSimd for SingleRows<'_, V, T> {
    /// As of [`single_rows`].
    type Output = Option<[V; GROUP]>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self { terms, totals } = self;
        // One after another they are one long row, whose tree ends earlier.
        let count = sums_of_few::<V, T, S, 1>(simd, [terms], false, totals)?;
        let mut totals = sums_of_vectors(simd, &mut totals[..count]);
        if let Some(shorter) = with_shorter_vectors(simd) {
            totals = sums_of_vectors(shorter, totals);
        }
        sums_of_pairs(totals, GROUP).first_chunk().copied()
    }
}

/// A chunk, and memory for the total of each of its lanes.
struct Chunk<'a, V, T> {
    terms: T,
    totals: &'a mut [V],
    reading: Reading,
}

impl<V: Total, T: Terms<V>> WithSimd for Chunk<'_, V, T> {
    type Output = V;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> V {
        let Self {
            terms,
            totals,
            reading: Reading {
                in_order,
                prefetched,
            },
        } = self;
        let (len, lanes) = (terms.len(), totals.len());
        // If there are few rows, each group of lanes is summed completely before the next.
        let few = match len / lanes {
            _ if in_order || len % lanes > 0 => None,
            1 => sums_of_few::<V, T, S, 1>(simd, [terms], prefetched, totals),
            2 => sums_of_few::<V, T, S, 2>(simd, rows(terms, 0, lanes), prefetched, totals),
            4 => sums_of_few::<V, T, S, 4>(simd, rows(terms, 0, lanes), prefetched, totals),
            // For conversions, which take shorter vectors, there are too few registers.
            8 if !T::CONVERTED => {
                sums_of_few::<V, T, S, 8>(simd, rows(terms, 0, lanes), prefetched, totals)
            }
            _ => None,
        };
        if let Some(count) = few {
            let totals = &mut totals[..count];
            return Neighbours { totals }.with_simd(simd);
        }
        let together = if in_order { 1 } else { ROWS };
        let mut first = match (len / lanes).min(together) {
            0 => {
                totals.fill(V::NOTHING);
                0
            }
            1 => {
                take_in_order::<V, T, true>(totals, terms.part(0, lanes), prefetched);
                lanes
            }
            2 | 3 => {
                take_rows::<V, T, 2, true>(totals, rows(terms, 0, lanes));
                2 * lanes
            }
            _ => {
                take_rows::<V, T, ROWS, true>(totals, rows(terms, 0, lanes));
                ROWS * lanes
            }
        };
        while together == ROWS && len - first >= ROWS * lanes {
            take_rows::<V, T, ROWS, false>(totals, rows(terms, first, lanes));
            first += ROWS * lanes;
        }
        while len - first >= lanes {
            take_in_order::<V, T, false>(totals, terms.part(first, lanes), prefetched);
            first += lanes;
        }
        if first < len {
            let rest = terms.part(first, len - first);
            take_rows::<V, T, 1, false>(&mut totals[..len - first], [rest]);
        }
        Neighbours { totals }.with_simd(simd)
    }
}

/// `N` rows of `lanes` terms, from the term `first` on.
#[inline(always)]
fn rows<V: Total, T: Terms<V>, const N: usize>(terms: T, first: usize, lanes: usize) -> [T; N] {
    let mut rows = [terms; N];
    for (r, row) in rows.iter_mut().enumerate() {
        *row = terms.part(first + r * lanes, lanes);
    }
    rows
}

/// The lanes after adding one term from each row: to the old values, or starting from the first row
/// if `FIRST`.
///
/// A separate function: its types say that the totals and the rows are distinct memory, and
/// otherwise the compiler does not vectorise.
#[inline(always)]
fn take_rows<V: Total, T: Terms<V>, const N: usize, const FIRST: bool>(
    totals: &mut [V],
    mut rows: [T; N],
) {
    // Equal lengths let the compiler drop the bounds checks.
    for row in &mut rows {
        *row = row.part(0, totals.len());
    }
    // With an iterator of the totals the compiler keeps the bounds checks of the rows, and computes
    // the last elements without vectors.
    #[expect(
        clippy::needless_range_loop,
        reason = "one index for all drops the checks"
    )]
    for place in 0..totals.len() {
        let mut sum = if FIRST { V::NOTHING } else { totals[place] };
        for row in &rows {
            sum = row.take(sum, place);
        }
        totals[place] = sum;
    }
}

/// [`take_rows`] for one row of arrays in memory, in blocks.
#[inline(always)]
fn take_in_order<V: Total, T: Terms<V>, const FIRST: bool>(
    totals: &mut [V],
    row: T,
    prefetched: bool,
) {
    let row = row.part(0, totals.len());
    let (blocks, rest) = totals.as_chunks_mut::<BLOCK>();
    let end = blocks.as_flattened().len();
    for (i, totals) in blocks.iter_mut().enumerate() {
        let block = row.part(i * BLOCK, BLOCK);
        if prefetched {
            block.prefetch(BLOCK, AHEAD_BYTES * size_of::<V>() / T::SIZE);
        }
        take_rows::<V, T, 1, FIRST>(totals, [block]);
    }
    take_rows::<V, T, 1, FIRST>(rest, [row.part(end, rest.len())]);
}

/// The most lanes of a vector.
const MAX_LANES: usize = 16;

/// Adds `rows`, which have the same length, and then neighbouring lanes: one sum for as many lanes
/// as a vector has. Puts the sums at the front of `totals` and returns their number; `None` if there
/// are too few lanes, if the processor has no instructions for it, or if `totals` is too short.
#[inline(always)]
fn sums_of_few<V: Total, T: Terms<V>, S: Simd, const N: usize>(
    simd: S,
    rows: [T; N],
    prefetched: bool,
    totals: &mut [V],
) -> Option<usize> {
    let lanes = lanes::<S, V>();
    let block = lanes * lanes;
    let blocks = rows[0].len() / block;
    let nothing = V::NOTHING.splat(simd);
    let sums = V::vectors_mut::<S>(totals).get_mut(..blocks)?;
    for (i, sum) in sums.iter_mut().enumerate() {
        let mut parts = rows;
        for part in &mut parts {
            *part = part.part(i * block, block);
        }
        if prefetched {
            for part in &parts {
                part.prefetch(block, AHEAD_IN_ROWS_BYTES);
            }
        }
        let mut all = [V::lanes(nothing); MAX_LANES];
        for (k, vector) in all.iter_mut().take(lanes).enumerate() {
            let mut total = nothing;
            for part in &parts {
                total = part.take_vector(simd, total, k * lanes);
            }
            *vector = V::lanes(total);
        }
        *sum = V::sums(simd, all.get(..lanes)?)?;
    }
    (blocks > 0).then_some(blocks * lanes)
}

/// Totals; their number is a power of two.
struct Neighbours<'a, V> {
    totals: &'a mut [V],
}

impl<V: Total> WithSimd for Neighbours<'_, V> {
    type Output = V;

    /// Adds neighbours until one remains.
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> V {
        let mut totals = sums_of_vectors(simd, self.totals);
        if let Some(total) = sum_of_vectors(simd, totals) {
            return total;
        }
        if let Some(shorter) = with_shorter_vectors(simd) {
            totals = sums_of_vectors(shorter, totals);
            if let Some(total) = sum_of_vectors(shorter, totals) {
                return total;
            }
        }
        sums_of_pairs(totals, 1)[0]
    }
}

/// Adds neighbours until `count` remain.
#[inline(always)]
fn sums_of_pairs<V: Total>(mut totals: &mut [V], count: usize) -> &mut [V] {
    while totals.len() > count {
        let halves = totals.len() / 2;
        for i in 0..halves {
            totals[i] = totals[2 * i] + totals[2 * i + 1];
        }
        totals = &mut totals[..halves];
    }
    totals
}

/// Adds neighbours while there are at least as many vectors as a vector has lanes.
#[inline(always)]
fn sums_of_vectors<V: Total, S: Simd>(simd: S, mut totals: &mut [V]) -> &mut [V] {
    let lanes = lanes::<S, V>();
    while totals.len() >= lanes * lanes {
        let vectors = V::vectors_mut::<S>(totals);
        let count = vectors.len() / lanes;
        for i in 0..count {
            let Some(sums) = V::sums(simd, &vectors[i * lanes..][..lanes]) else {
                return totals;
            };
            vectors[i] = sums;
        }
        totals = &mut totals[..count * lanes];
    }
    totals
}

/// Adds neighbours until one remains, if there are fewer vectors than a vector has lanes, but at
/// least one, and if the processor has instructions for it.
#[inline(always)]
fn sum_of_vectors<V: Total, S: Simd>(simd: S, totals: &[V]) -> Option<V> {
    let vectors = V::vectors::<S>(totals);
    match vectors.len() {
        1 => sum_of::<V, S, 1>(simd, vectors),
        2 => sum_of::<V, S, 2>(simd, vectors),
        4 => sum_of::<V, S, 4>(simd, vectors),
        8 => sum_of::<V, S, 8>(simd, vectors),
        _ => None,
    }
}

/// The same, for `N` vectors.
#[inline(always)]
fn sum_of<V: Total, S: Simd, const N: usize>(simd: S, vectors: &[V::Lanes<S>]) -> Option<V> {
    let sums = sums_of_some::<V, S>(simd, &vectors[..N])?;
    let total = [sums_of_some::<V, S>(simd, &[sums])?];
    bytemuck::cast_slice(&total).first().copied()
}

/// The sum of each of the given vectors, which are fewer than a vector has lanes; in the other lanes,
/// nothing.
#[inline(always)]
fn sums_of_some<V: Total, S: Simd>(simd: S, some: &[V::Lanes<S>]) -> Option<V::Lanes<S>> {
    let lanes = lanes::<S, V>();
    let mut all = [V::NOTHING; MAX_LANES * MAX_LANES];
    let all = V::vectors_mut::<S>(all.get_mut(..lanes * lanes)?);
    all.get_mut(..some.len())?.copy_from_slice(some);
    V::sums(simd, all)
}

#[cfg(test)]
mod tests {
    use super::super::{Plain, Products, Scaled, ScaledSquares, Squares};
    use super::*;
    use crate::test_numbers::numbers;

    fn of<T, F, const N: usize>(arrays: [&[T]; N], take: F) -> Arrays<'_, T, F, N> {
        Arrays { arrays, take }
    }

    /// The tree by definition: element e belongs to lane e modulo the number of lanes.
    fn by_definition<V: Total>(lanes: usize, terms: impl Terms<V>) -> V {
        let mut totals = vec![V::NOTHING; lanes];
        for place in 0..terms.len() {
            totals[place % lanes] = terms.take(totals[place % lanes], place);
        }
        while totals.len() > 1 {
            totals = totals.chunks(2).map(|pair| pair[0] + pair[1]).collect();
        }
        totals[0]
    }

    fn check<V: Total>(lanes: usize, terms: impl Terms<V>) {
        let expected = by_definition(lanes, terms).to_word();
        for reading in [Reading::TOGETHER, Reading::IN_ORDER] {
            for reading in [reading, reading.with_prefetches()] {
                let mut totals = [V::NOTHING; LANES];
                let got = chunk(terms, lanes, reading, &mut totals).to_word();
                let by_longest = dispatched(Chunk {
                    terms,
                    totals: &mut totals[..lanes.min(terms.len().next_power_of_two())],
                    reading,
                });
                assert_eq!(
                    [got, by_longest.to_word()],
                    [expected; 2],
                    "{} terms, {lanes} lanes, {reading:?}",
                    terms.len()
                );
            }
        }
    }

    #[test]
    fn a_chunk_has_the_bits_of_the_tree_wherever_its_elements_come_from() {
        let mut numbers = numbers();
        let mut number = || numbers() as f64 / f64::from(1_u32 << 22) - 2.0;
        for rows in [0, 1, 2, 3, 4, 5, 8, 13] {
            for more in [0, 1, 63, 64, 65, 1000, 1023] {
                let len = rows * LANES + more;
                let x: Vec<f64> = (0..len).map(|_| number()).collect();
                let y: Vec<f64> = (0..len).map(|_| number()).collect();
                let narrow: Vec<f32> = x.iter().map(|x| *x as f32).collect();
                let shifted: Vec<f32> = y.iter().map(|y| *y as f32).collect();
                let integers: Vec<u32> = (0..len).map(|_| number().to_bits() as u32).collect();
                let long_integers: Vec<i64> = (0..len).map(|_| number().to_bits() as i64).collect();
                check::<f32>(2048, of([&narrow], Plain));
                check::<f64>(2048, of([&narrow], Scaled(0.1)));
                check::<f64>(2048, of([&narrow], ScaledSquares(0.1)));
                check::<f64>(2048, of([&narrow], Squares));
                check::<f64>(2048, of([&narrow, &shifted], Products));
                check::<f64>(2048, of([&integers], Scaled(0.1)));
                check::<f64>(1024, of([&x], Plain));
                check::<f64>(1024, of([&long_integers], Squares));
                check::<f64>(1024, of([&x, &y], Products));
            }
        }
    }

    /// Does `work` with vectors of 32 bytes, if this processor has them.
    fn by_shorter_vectors<R, W: WithSimd<Output = Option<R>>>(work: W) -> Option<R> {
        #[cfg(target_arch = "x86_64")]
        {
            pulp::x86::V3::try_new().and_then(|simd| Simd::vectorize(simd, work))
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            pulp::Scalar.vectorize(work)
        }
    }

    #[test]
    fn chunks_of_one_row_have_the_bits_of_their_trees_together() {
        fn check<V: Total>(lanes: usize, terms: impl Terms<V>) {
            let mut expected = [0; GROUP];
            for (c, expected) in expected.iter_mut().enumerate() {
                *expected = by_definition(lanes, terms.part(c * lanes, lanes)).to_word();
            }
            let memory = || [V::NOTHING; LANES];
            let [mut first, mut second, mut third] = [memory(), memory(), memory()];
            let rows = |totals| SingleRows { terms, totals };
            let results = [
                dispatched(rows(&mut first)),
                dispatched_for_conversions(rows(&mut second)),
                by_shorter_vectors(rows(&mut third)),
            ];
            for got in results.into_iter().flatten() {
                assert_eq!(got.map(V::to_word), expected, "{lanes} lanes");
            }
        }

        let mut numbers = numbers();
        let mut number = || numbers() as f64 / f64::from(1_u32 << 22) - 2.0;
        let x: Vec<f64> = (0..GROUP * LANES).map(|_| number()).collect();
        let y: Vec<f64> = (0..GROUP * LANES).map(|_| number()).collect();
        let narrow: Vec<f32> = x.iter().map(|x| *x as f32).collect();
        let shifted: Vec<f32> = y.iter().map(|y| *y as f32).collect();
        let integers: Vec<u32> = (0..GROUP * LANES)
            .map(|_| number().to_bits() as u32)
            .collect();
        check::<f32>(2048, of([&narrow], Plain));
        check::<f64>(2048, of([&narrow], Squares));
        check::<f64>(2048, of([&narrow, &shifted], Products));
        check::<f64>(2048, of([&integers], Scaled(0.1)));
        let (x, y) = (&x[..GROUP * 1024], &y[..GROUP * 1024]);
        check::<f64>(1024, of([x], ScaledSquares(0.1)));
        check::<f64>(1024, of([x, y], Products));
    }

    #[test]
    fn only_large_arrays_are_read_in_two_ways() {
        type Single<T> = Arrays<'static, T, Squares, 1>;
        type Both<T> = Arrays<'static, T, Products, 2>;
        for bytes in [0, FAR_BYTES - 1] {
            assert_eq!(
                Reading::ways::<f64, Both<f64>>(bytes),
                [Reading::TOGETHER; 2]
            );
        }
        assert_eq!(
            Reading::ways::<f64, Single<f32>>(FAR_BYTES - 1),
            [Reading::TOGETHER; 2]
        );
        let [first, second] = Reading::ways::<f64, Single<f32>>(FAR_BYTES);
        assert!(!first.in_order && second.in_order);
        let [first, second] = Reading::ways::<f64, Both<f64>>(IN_MEMORY - 1);
        assert!(first != second && !second.in_order);
        for [first, second] in [
            Reading::ways::<f64, Single<f64>>(IN_MEMORY),
            Reading::ways::<f64, Both<f64>>(IN_MEMORY),
            Reading::ways::<f64, Both<f32>>(IN_MEMORY),
        ] {
            assert!(first.in_order && second.in_order);
            assert!(!first.prefetched && second.prefetched);
        }
        let [first, second] = Reading::ways::<f64, Single<f32>>(IN_MEMORY);
        assert!(!first.in_order && second.in_order);
    }
}
