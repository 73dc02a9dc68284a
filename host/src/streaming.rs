//! Non-temporal stores, which write results past the processor's caches.
//!
//! An ordinary store first reads its cache line, so a result costs two memory transfers and
//! displaces input from the cache. That is right for a result that is read again soon, and wrong
//! for one that is too large to stay in a cache. [`streamed`] stores such results in whole lines,
//! which the processor writes without reading them.

use crate::caches::{LINE_BYTES, last_cache};
use crate::pages::prefetch;
use crate::simd::{Formula, InVectors, Value, dispatched, fill, first_vectors, vector_at};
use bytemuck::Pod;
use pulp::{Simd, WithSimd};
#[cfg(target_arch = "x86_64")]
use std::any::TypeId;
use std::marker::PhantomData;

/// From this size on, results are not expected to stay in a cache until they are read. Measured on
/// a machine that shares 32 MiB of cache with others: non-temporal stores were faster for 16 MiB of
/// results, and slightly faster for 8.
const MIN_BYTES: usize = 8 << 20;

/// How far ahead a fresh row is prefetched, in bytes. The processor's own prefetches do not keep up
/// with non-temporal stores (docs/tuning/heat2d.md).
const AHEAD_BYTES: usize = 4096;

/// The kind of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// Ordinary stores.
    Ordinary,
    /// Non-temporal stores.
    Streaming,
}

impl Stores {
    /// The stores for results of this total size.
    pub(crate) fn of<T>(results: &[&mut [T]]) -> Self {
        let bytes: usize = results.iter().map(|result| size_of_val(*result)).sum();
        if bytes < MIN_BYTES {
            Self::Ordinary
        } else {
            Self::Streaming
        }
    }

    /// The stores for fields that the next step reads, `bytes` in all: they stay in the last-level
    /// cache if they take at most two thirds of it.
    pub(crate) fn of_iterated(bytes: usize) -> Self {
        if bytes <= (last_cache() / 3 * 2).max(2 * MIN_BYTES) {
            Self::Ordinary
        } else {
            Self::Streaming
        }
    }
}

/// The permission to store non-temporally into memory that stays borrowed until the stores are
/// complete.
pub(crate) struct Streaming<'out>(PhantomData<fn(&'out mut ()) -> &'out mut ()>);

/// Calls `work` and waits for its non-temporal stores.
///
/// The targets are borrowed for `'out`, which is longer than the call: nothing else reads or writes
/// them before the stores have completed.
pub(crate) fn streamed<'out, R>(work: impl FnOnce(&Streaming<'out>) -> R) -> R {
    struct Fence;
    impl Drop for Fence {
        fn drop(&mut self) {
            fence();
        }
    }
    // Also dropped if `work` panics.
    let _fence = Fence;
    work(&Streaming(PhantomData))
}

impl<'out> Streaming<'out> {
    /// Sets all points of `out` to `formula`, evaluated on `rows` with `so_far` as the old values.
    /// Row number `fresh` has not been read before, so it is prefetched.
    ///
    /// # Panics
    ///
    /// If `so_far` or a row is shorter than `out`.
    pub(crate) fn fill<T: InVectors, const N: usize>(
        &self,
        out: &'out mut [T],
        so_far: &[T],
        rows: [&[T]; N],
        formula: &impl Formula<T>,
        fresh: Option<usize>,
    ) {
        dispatched(Fill {
            stream: self,
            out,
            so_far,
            rows,
            formula,
            fresh,
        });
    }

    /// Stores a vector of the instruction set `S`.
    ///
    /// # Panics
    ///
    /// If `S` has non-temporal stores and `out` is not aligned to its size.
    #[inline(always)]
    pub(crate) fn put<S: Simd, L: Pod>(&self, simd: S, out: &'out mut L, value: L) {
        store(
            simd,
            self,
            std::slice::from_mut(out),
            #[inline(always)]
            |_| value,
        );
    }

    /// Copies `from` to `out`, which has the same length.
    ///
    /// # Panics
    ///
    /// If `from` is shorter.
    pub(crate) fn copy<T: InVectors>(&self, out: &'out mut [T], from: &[T]) {
        struct Same;

        impl<T> Formula<T> for Same {
            #[inline(always)]
            fn at<V: Value>(&self, _: impl Fn(T) -> V, so_far: V, _: impl Fn(usize) -> V) -> V {
                so_far
            }
        }

        self.fill(out, from, [], &Same, None);
    }
}

/// The number of elements before the first that begins a cache line, or all if none does.
#[inline(always)]
pub(crate) fn before_line<T>(out: &[T]) -> usize {
    out.as_ptr().align_offset(LINE_BYTES).min(out.len())
}

/// The work of [`Streaming::fill`].
struct Fill<'f, 'out, T, F, const N: usize> {
    stream: &'f Streaming<'out>,
    out: &'out mut [T],
    so_far: &'f [T],
    rows: [&'f [T]; N],
    formula: &'f F,
    fresh: Option<usize>,
}

impl<T: InVectors, F: Formula<T>, const N: usize> WithSimd for Fill<'_, '_, T, F, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            out,
            formula,
            fresh,
            ..
        } = self;
        // The processor avoids the read only for whole lines.
        let start = before_line(out);
        let (head, out) = out.split_at_mut(start);
        let whole_lines = out.len() - out.len() % (LINE_BYTES / size_of::<T>());
        let (lines, tail) = out.split_at_mut(whole_lines);
        let end = start + lines.len();
        for (out, first) in [(head, 0), (tail, end)] {
            out.copy_from_slice(&self.so_far[first..][..out.len()]);
            let mut rows = self.rows;
            for row in &mut rows {
                *row = &row[first..];
            }
            fill(out, rows, formula);
        }

        let lines = T::vectors_mut::<S>(lines);
        let rows = first_vectors::<T, S, N>(self.rows.map(|row| &row[start..end]), lines.len());
        let ahead = AHEAD_BYTES / size_of::<T::Lanes<S>>();
        let [so_far] = first_vectors::<T, S, 1>([&self.so_far[start..end]], lines.len());
        store(
            simd,
            self.stream,
            lines,
            #[inline(always)]
            |i| {
                if let Some(fresh) = fresh {
                    prefetch(rows[fresh], i + ahead);
                }
                vector_at(simd, formula, so_far[i], rows, i)
            },
        );
    }
}

/// Stores `value(i)` in each vector `i` of the instruction set `S`.
#[inline(always)]
fn store<'out, S: Simd, L: Pod>(
    _: S,
    _: &Streaming<'out>,
    out: &'out mut [L],
    value: impl Fn(usize) -> L,
) {
    #[cfg(target_arch = "x86_64")]
    if TypeId::of::<S>() == TypeId::of::<pulp::x86::V4>() {
        return for_each(
            out,
            value,
            #[inline(always)]
            // SAFETY: as below, for AVX-512.
            |out, value| unsafe { std::arch::x86_64::_mm512_stream_si512(out, value) },
        );
    }
    #[cfg(target_arch = "x86_64")]
    if TypeId::of::<S>() == TypeId::of::<pulp::x86::V3>() {
        return for_each(
            out,
            value,
            #[inline(always)]
            // SAFETY: a V3 exists only if the processor has AVX. `out` is aligned and
            // writable, as every reference is. Nobody observes that the store completes later: the
            // target is borrowed until `streamed`, which waits for it, has returned.
            |out, value| unsafe { std::arch::x86_64::_mm256_stream_si256(out, value) },
        );
    }
    for_each(
        out,
        value,
        #[inline(always)]
        |out: &mut L, value| *out = value,
    );
}

/// Calls `store` with each vector of `out`, as a `V`, and its value.
#[inline(always)]
fn for_each<L: Pod, V: Pod>(out: &mut [L], value: impl Fn(usize) -> L, store: impl Fn(&mut V, V)) {
    // The compiler knows that what `value` reads has this length.
    let count = out.len();
    // An empty slice need not be aligned.
    if count == 0 {
        return;
    }
    let out: &mut [V] = bytemuck::cast_slice_mut(out);
    let mut i = 0;
    // Both halves of a line are stored one right after the other: a processor may give up waiting
    // for the second half while it loads, and then each half is a transfer of its own.
    while 2 * size_of::<V>() == LINE_BYTES && i + 1 < count {
        let (one, two) = (value(i), value(i + 1));
        store(&mut out[i], bytemuck::cast(one));
        store(&mut out[i + 1], bytemuck::cast(two));
        i += 2;
    }
    while i < count {
        store(&mut out[i], bytemuck::cast(value(i)));
        i += 1;
    }
}

/// Waits for the thread's non-temporal stores.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has SSE.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The old value, less twice the row.
    struct LessTwice;

    impl<T: From<f32>> Formula<T> for LessTwice {
        fn at<V: Value>(&self, splat: impl Fn(T) -> V, so_far: V, row: impl Fn(usize) -> V) -> V {
            row(0).fused(splat(T::from(-2.0)), so_far)
        }
    }

    fn every_point_is_filled_and_no_other<T: InVectors + From<f32> + Into<f64> + PartialEq>() {
        let numbers =
            |sign: f32| -> Vec<T> { (0..200).map(|i| T::from(sign * i as f32)).collect() };
        let (from, row) = (numbers(1.0), numbers(-1.0));
        for first in 0..20 {
            for len in [0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 64, 127, 180] {
                let mut copy = vec![T::from(f32::NAN); 200];
                let mut filled = copy.clone();
                streamed(|stream| {
                    stream.copy(&mut copy[first..][..len], &from[..len]);
                    let out = &mut filled[first..][..len];
                    stream.fill(out, &from, [&row[1..]], &LessTwice, Some(0));
                });
                for (i, (copy, filled)) in copy.into_iter().zip(filled).enumerate() {
                    if (first..first + len).contains(&i) {
                        let point = (i - first) as f32;
                        assert!(copy == T::from(point), "{first}, {len}, {i}");
                        let value = point + 2.0 * (point + 1.0);
                        assert!(filled == T::from(value), "{first}, {len}, {i}");
                    } else {
                        assert!(copy.into().is_nan(), "{first}, {len}, {i}");
                        assert!(filled.into().is_nan(), "{first}, {len}, {i}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_point_is_filled_wherever_the_line_begins_and_no_other() {
        every_point_is_filled_and_no_other::<f32>();
        every_point_is_filled_and_no_other::<f64>();
    }

    #[test]
    #[should_panic(expected = "range end index")]
    fn a_row_that_is_too_short_is_refused() {
        let mut out = [0.0_f64; 40];
        streamed(|stream| stream.copy(&mut out, &[1.0; 39]));
    }
}
