//! Finds extreme elements and their indices.
//!
//! The order of comparisons does not matter for an extremum. So elements are compared in pieces
//! with the processor's instructions, which ignore the rules for NaN and zeros; those are applied
//! once per piece. The signs of zeros are looked at only where the extreme element is a zero.

use super::share::{FAR_BYTES, SHARE_BYTES};
use crate::pages::prefetch_lines;
use crate::simd::vectorised;
use crate::threads;
use crate::trial::Trial;
use std::ops::{BitAnd, BitOr};
use std::sync::Mutex;

/// Elements of a piece.
const PIECE: usize = 1 << 14;

/// How far ahead elements are prefetched, in bytes.
const AHEAD_BYTES: usize = 2048;

/// Rows that are compared together.
const ROWS: usize = 4;

/// Elements of a sample, which tells whether the extreme element is probably a zero.
const SAMPLE: usize = 512;

/// Elements that are searched together for the index.
const GROUP: usize = 64;

/// Types with an order.
pub(super) trait Ordered: Copy + PartialOrd + Send + Sync {
    /// The greatest and the least value of the type, with which comparisons start.
    const ENDS: [Self; 2];

    /// The bit pattern of a NaN, if the type has NaNs.
    const NAN: Self;

    /// -0 and +0, if they are distinct.
    const ZEROS: Option<[Self; 2]>;

    /// An integer with the same number of bits.
    type Bits: Copy + PartialEq + BitAnd<Output = Self::Bits> + BitOr<Output = Self::Bits>;

    /// All bits clear, and all bits set.
    const BITS: [Self::Bits; 2];

    fn bits(self) -> Self::Bits;

    fn is_nan(self) -> bool;

    /// The rank of the number in the total order: -0 is below +0, and NaN comes first.
    fn rank(self) -> u64;
}

macro_rules! integers {
    ($($integer:ident: $unsigned:ident;)*) => {$(
        impl Ordered for $integer {
            const ENDS: [Self; 2] = [Self::MAX, Self::MIN];
            const NAN: Self = 0;
            const ZEROS: Option<[Self; 2]> = None;
            type Bits = $unsigned;
            const BITS: [$unsigned; 2] = [0, $unsigned::MAX];

            #[inline(always)]
            fn bits(self) -> $unsigned {
                self as $unsigned
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }

            #[inline(always)]
            fn rank(self) -> u64 {
                self.abs_diff(Self::MIN).into()
            }
        }
    )*};
}

integers! {
    i32: u32;
    u32: u32;
    i64: u64;
    u64: u64;
}

macro_rules! floats {
    ($($float:ident: $unsigned:ident, $signed:ident;)*) => {$(
        impl Ordered for $float {
            const ENDS: [Self; 2] = [Self::INFINITY, Self::NEG_INFINITY];
            const NAN: Self = Self::NAN;
            const ZEROS: Option<[Self; 2]> = Some([-0.0, 0.0]);
            type Bits = $unsigned;
            const BITS: [$unsigned; 2] = [0, $unsigned::MAX];

            #[inline(always)]
            fn bits(self) -> $unsigned {
                self.to_bits()
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self.is_nan()
            }

            #[inline(always)]
            fn rank(self) -> u64 {
                // Compared as signed integers, negative numbers are in reverse order.
                let bits = self.to_bits() as $signed;
                let ordered = bits ^ ((bits >> ($signed::BITS - 1)) & $signed::MAX);
                ordered.abs_diff($signed::MIN).into()
            }
        }
    )*};
}

floats! {
    f32: u32, i32;
    f64: u64, i64;
}

/// The least or greatest element of at least one; NaN if any is NaN, and -0 is less than +0.
pub(super) fn value<T: Ordered, const GREATEST: bool>(values: &[T]) -> T {
    found::<T, GREATEST>(values).value
}

/// The index of the first extreme element.
pub(super) fn position<T: Ordered, const GREATEST: bool>(values: &[T]) -> Option<usize> {
    let found = found::<T, GREATEST>(values);
    let begin = found.piece * PIECE;
    let piece = &values[begin..][..PIECE.min(values.len() - begin)];
    Some(begin + first(piece, found.value)?)
}

/// The extreme element of some pieces, and the first piece that contains it.
struct Found<T> {
    value: T,
    piece: usize,
}

impl<T: Ordered> Found<T> {
    /// The order of pieces: first by rank, then the earliest piece.
    fn rank<const GREATEST: bool>(&self) -> (u64, usize) {
        let rank = match (self.value.is_nan(), GREATEST) {
            // NaN has the first rank; no number has the first or the last rank.
            (true, _) => 0,
            (false, false) => self.value.rank(),
            (false, true) => !self.value.rank(),
        };
        (rank, self.piece)
    }

    fn or<const GREATEST: bool>(self, other: Self) -> Self {
        if self.rank::<GREATEST>() <= other.rank::<GREATEST>() {
            self
        } else {
            other
        }
    }
}

fn found<T: Ordered, const GREATEST: bool>(values: &[T]) -> Found<T> {
    let pieces = values.len().div_ceil(PIECE);
    let threads = threads::worth(size_of_val(values), SHARE_BYTES);
    let far = size_of_val(values) >= FAR_BYTES;
    let in_piece = |piece: usize, prefetched: bool, signs: bool| {
        let begin = piece * PIECE;
        let values = &values[begin..][..PIECE.min(values.len() - begin)];
        let mut value = of_piece::<T, GREATEST>(values, prefetched, signs);
        if !signs && is_zero(value) {
            value = of_piece::<T, GREATEST>(values, false, true);
        }
        Found { value, piece }
    };
    // In a short array the signs take less time than a sample.
    let probably_zero = match values.get(..SAMPLE) {
        Some(sample) if T::ZEROS.is_some() && values.len() > 8 * SAMPLE => {
            is_zero(of_piece::<T, GREATEST>(sample, false, false))
        }
        _ => true,
    };
    let all = Mutex::new(None::<Found<T>>);
    threads::share(threads, pieces, |mine| {
        let mut trial = Trial::of(if far { pieces / threads } else { 0 });
        let mut signs = probably_zero;
        let of_mine = mine
            .map(|piece| {
                let found = trial.run(|prefetched| in_piece(piece, prefetched, signs));
                // If it is a zero, that of the next piece probably is one too.
                signs = is_zero(found.value);
                found
            })
            .reduce(Found::or::<GREATEST>);
        let mut all = all.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *all = match (all.take(), of_mine) {
            (Some(a), Some(b)) => Some(a.or::<GREATEST>(b)),
            (a, b) => a.or(b),
        };
    });
    let all = all
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    all.unwrap_or(Found {
        value: T::ENDS[usize::from(GREATEST)],
        piece: 0,
    })
}

/// Whether it is a zero with a sign.
fn is_zero<T: Ordered>(value: T) -> bool {
    T::ZEROS.is_some_and(|[negative, _]| value == negative)
}

/// The extreme element of a piece, which is read with or without prefetches. Without `signs`, a zero
/// may have either sign.
fn of_piece<T: Ordered, const GREATEST: bool>(values: &[T], prefetched: bool, signs: bool) -> T {
    // A row has 128 bytes, at least two vectors. The rows that are compared together have 512: the
    // processor's prefetches work best for memory that is read almost in order.
    let of_rows = match (size_of::<T>(), signs && T::ZEROS.is_some()) {
        (8, false) => of_rows::<T, 16, GREATEST, false>,
        (8, true) => of_rows::<T, 16, GREATEST, true>,
        (_, false) => of_rows::<T, 32, GREATEST, false>,
        (_, true) => of_rows::<T, 32, GREATEST, true>,
    };
    of_rows(values, prefetched)
}

/// [`of_piece`] with rows of this many elements.
fn of_rows<T: Ordered, const ROW: usize, const GREATEST: bool, const SIGNS: bool>(
    values: &[T],
    prefetched: bool,
) -> T {
    vectorised(
        #[inline(always)]
        || Columns::<T, ROW>::of::<GREATEST, SIGNS>(values, prefetched),
    )
}

/// What is known of the elements at each place of all rows.
struct Columns<T: Ordered, const ROW: usize> {
    /// The extremes. NaNs do not count, and of two zeros it is either.
    extremes: [T; ROW],
    /// All bits are set if there is a NaN, or else none.
    nans: [T::Bits; ROW],
    /// The bits that any element has or, for the greatest element, that all have; untouched without
    /// `SIGNS`.
    bits: [T::Bits; ROW],
}

impl<T: Ordered, const ROW: usize> Columns<T, ROW> {
    /// The extreme element of `values`; without `SIGNS`, a zero may have either sign.
    #[inline(always)]
    fn of<const GREATEST: bool, const SIGNS: bool>(values: &[T], prefetched: bool) -> T {
        let mut columns = Self {
            extremes: [T::ENDS[usize::from(GREATEST)]; ROW],
            nans: [T::BITS[0]; ROW],
            bits: [T::BITS[usize::from(GREATEST)]; ROW],
        };
        let (rows, others) = values.as_chunks::<ROW>();
        let (groups, rows) = rows.as_chunks::<ROWS>();
        for group in groups {
            if prefetched {
                let group = group.as_flattened();
                prefetch_lines(group, AHEAD_BYTES / size_of::<T>(), group.len());
            }
            columns.take::<ROWS, GREATEST, SIGNS>(group);
        }
        for row in rows {
            columns.take::<1, GREATEST, SIGNS>(std::array::from_ref(row));
        }
        for (place, &value) in others.iter().enumerate() {
            columns.extremes[place] = extreme_of::<T, GREATEST>(value, columns.extremes[place]);
            columns.nans[place] = marked::<T>(columns.nans[place], value.is_nan());
            if SIGNS {
                columns.bits[place] = common::<T, GREATEST>(columns.bits[place], value.bits());
            }
        }
        columns.value::<GREATEST, SIGNS>()
    }

    /// Adds `rows`.
    #[inline(always)]
    fn take<const N: usize, const GREATEST: bool, const SIGNS: bool>(
        &mut self,
        rows: &[[T; ROW]; N],
    ) {
        let Self {
            extremes,
            nans,
            bits: all_bits,
        } = self;
        for place in 0..ROW {
            let (mut extreme, mut nan, mut bits) = (extremes[place], false, all_bits[place]);
            for row in rows {
                extreme = extreme_of::<T, GREATEST>(row[place], extreme);
                nan |= row[place].is_nan();
                if SIGNS {
                    bits = common::<T, GREATEST>(bits, row[place].bits());
                }
            }
            extremes[place] = extreme;
            nans[place] = marked::<T>(nans[place], nan);
            if SIGNS {
                all_bits[place] = bits;
            }
        }
    }

    /// The extreme element.
    #[inline(always)]
    fn value<const GREATEST: bool, const SIGNS: bool>(mut self) -> T {
        let mut len = ROW;
        while len > 1 {
            len /= 2;
            for place in 0..len {
                let other = self.extremes[place + len];
                self.extremes[place] = extreme_of::<T, GREATEST>(other, self.extremes[place]);
            }
        }
        let all = |bits: T::Bits, more: &T::Bits| bits | *more;
        if self.nans.iter().fold(T::BITS[0], all) != T::BITS[0] {
            return T::NAN;
        }
        let extreme = self.extremes[0];
        if !SIGNS {
            return extreme;
        }
        let Some([negative, positive]) = T::ZEROS.filter(|zeros| extreme == zeros[0]) else {
            return extreme;
        };
        // If the least element is zero, only -0 has a sign bit; if the greatest is, only +0 has
        // none.
        let sign = negative.bits();
        let signs = self
            .bits
            .iter()
            .fold(self.bits[0], |all, &bits| common::<T, GREATEST>(all, bits));
        if signs & sign == sign {
            negative
        } else {
            positive
        }
    }
}

/// The bits that either has or, for the greatest element, that both have.
#[inline(always)]
fn common<T: Ordered, const GREATEST: bool>(a: T::Bits, b: T::Bits) -> T::Bits {
    if GREATEST { a & b } else { a | b }
}

/// `nans` with all bits set if there is a `nan`.
#[inline(always)]
fn marked<T: Ordered>(nans: T::Bits, nan: bool) -> T::Bits {
    if nan { T::BITS[1] } else { nans }
}

/// The operation of x86-64: returns `extreme` if either is NaN or both are zeros.
#[inline(always)]
fn extreme_of<T: Ordered, const GREATEST: bool>(value: T, extreme: T) -> T {
    let more = if GREATEST {
        value > extreme
    } else {
        value < extreme
    };
    if more { value } else { extreme }
}

/// The index of the first element that equals `wanted`; NaNs are equal.
fn first<T: Ordered>(values: &[T], wanted: T) -> Option<usize> {
    let bits = wanted.bits();
    match wanted.is_nan() {
        true => first_where(
            values,
            #[inline(always)]
            |value| value.is_nan(),
        ),
        false => first_where(
            values,
            #[inline(always)]
            |value| value.bits() == bits,
        ),
    }
}

/// The index of the first element that `is_wanted`, searched in groups that compile to vectors.
#[inline(always)]
fn first_where<T: Ordered>(values: &[T], is_wanted: impl Fn(T) -> bool) -> Option<usize> {
    vectorised(
        #[inline(always)]
        || {
            let group = values.chunks(GROUP).position(
                #[inline(always)]
                |group| {
                    group
                        .iter()
                        .fold(false, |any, &value| any | is_wanted(value))
                },
            )?;
            let at = group * GROUP;
            let within = values[at..].iter().position(|&value| is_wanted(value))?;
            Some(at + within)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_numbers::numbers;

    #[test]
    fn a_piece_has_the_same_extreme_with_and_without_prefetches() {
        let mut numbers = numbers();
        for len in [1, 31, 32, 127, 128, 129, 1000, PIECE - 1, PIECE] {
            let values: Vec<f64> = (0..len)
                .map(|_| numbers() as f64 - f64::from(1_u32 << 23))
                .collect();
            let narrow: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = narrow.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for (prefetched, signs) in [(false, false), (false, true), (true, false), (true, true)]
            {
                let of_values = of_piece::<f64, false>(&values, prefetched, signs);
                assert_eq!(of_values, least, "{len}");
                let of_narrow = of_piece::<f32, true>(&narrow, prefetched, signs);
                assert_eq!(of_narrow, greatest, "{len}");
            }
            let mut with_nan = narrow;
            with_nan[len / 2] = f32::NAN;
            for signs in [false, true] {
                assert!(
                    of_piece::<f32, false>(&with_nan, true, signs).is_nan(),
                    "{len}"
                );
            }
        }
    }

    #[test]
    fn negative_zero_is_less_than_positive_zero_wherever_it_is() {
        for len in [1, 2, 31, 32, 129, 1000, PIECE] {
            for number in [-1.0, -0.0, 0.0, 1.0] {
                for zero in [-0.0, 0.0] {
                    let mut values = vec![number; len];
                    values[len / 3] = zero;
                    let by_order = |sign: f64| {
                        values.iter().copied().reduce(|a, b| {
                            match (sign * a).total_cmp(&(sign * b)) {
                                std::cmp::Ordering::Greater => b,
                                _ => a,
                            }
                        })
                    };
                    let found = [
                        of_piece::<f64, false>(&values, false, true),
                        of_piece::<f64, true>(&values, false, true),
                    ];
                    let expected = [by_order(1.0), by_order(-1.0)].map(Option::unwrap);
                    assert_eq!(
                        found.map(f64::to_bits),
                        expected.map(f64::to_bits),
                        "{len}: one {zero:?} among {number:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_zero_of_the_first_rank_is_found_in_whichever_piece_it_is() {
        const PIECES: usize = 5;
        let len = PIECES * PIECE - 7;
        for (number, wanted, other) in [(0.0, -0.0_f32, 1.0), (-0.0, 0.0, -1.0)] {
            let find = |values: &[f32]| match wanted.is_sign_negative() {
                true => (value::<_, false>(values), position::<_, false>(values)),
                false => (value::<_, true>(values), position::<_, true>(values)),
            };
            for piece in 0..PIECES {
                let mut values = vec![number; len];
                let at = piece * PIECE + 1000;
                values[at] = wanted;
                let (zero, place) = find(&values);
                assert_eq!((zero.to_bits(), place), (wanted.to_bits(), Some(at)));
                // The pieces before it have no zero.
                values[..at].fill(other);
                let (zero, place) = find(&values);
                assert_eq!((zero.to_bits(), place), (wanted.to_bits(), Some(at)));
                // It is not the extreme any more.
                values[len / 2] = -other;
                let (one, place) = find(&values);
                assert_eq!((one, place), (-other, Some(len / 2)));
            }
        }
    }
}
