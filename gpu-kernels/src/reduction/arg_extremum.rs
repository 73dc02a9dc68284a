//! The argmin or argmax of an array in one launch: the index of its first least or greatest
//! element.
//!
//! Each element maps to a **key**, an unsigned integer of the same size, such that the wanted
//! element has the least key:
//!
//! ```text
//! integers   key = bits ^ mask
//! floats     key = 0 for NaN, else (bits ^ (sign ? all ones : sign bit)) ^ mask
//! ```
//!
//! The parenthesised part of the second line maps the order of IEEE 754 (-0 before +0) to unsigned
//! integers. The host chooses the mask: it reverses the order for a maximum, and puts negative
//! integers before positive ones. No number has the key 0, so the first NaN, if any, is found.
//!
//! Of equal keys the one with the smaller index wins, so the result does not depend on the order of
//! combination.
//!
//! - Shapes: `values` has n elements; the result is one index, a u64.
//! - Tree, launch and workspace are those of [`single_pass`](super::single_pass). A lane remembers
//!   the tile of its element in 32 bits; the index is computed at the end of a chunk. Lanes
//!   exchange a key and an index, 3 or 4 words.
//!
//! # What limits it
//!
//! - Bytes: every element is read once.
//! - Instructions per element: 1 (integers) to about 6 (floats) for the key, a comparison and two
//!   selections; twice as many for 8 bytes. For a vector of 4 floats that is 36 instructions of 32
//!   lanes. At 20 bytes per clock and multiprocessor its transfer takes 26 clocks, in which 52 of
//!   them fit (integer instructions issue at half the rate). Predicted: the speed of reading.

// gate reduction_arg_extremum_*: registers <= 40, spills = 0, LDG.E.128 >= 8

use super::operator::MAX_WORDS;
use super::operator::{Operator, Terms, Words};
use super::single_pass::{Shared, THREADS, WARPS, reduce};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array};

/// Blocks that a multiprocessor must be able to hold: as many as leave a thread 40 registers.
const BLOCKS_PER_MULTIPROCESSOR: u32 = if cfg!(target_feature = "sm_90") { 3 } else { 2 };

/// The unsigned integers by which elements are compared.
pub trait Key: Words + Ord {
    /// The key of a missing element: the greatest key.
    const LAST: Self;
}

impl Key for u32 {
    const LAST: Self = Self::MAX;
}

impl Key for u64 {
    const LAST: Self = Self::MAX;
}

/// Element types with a key.
pub trait Keyed: Words {
    /// The unsigned integer of the same size.
    type Key: Key;

    /// The element's key under this mask.
    #[must_use]
    fn key(self, mask: Self::Key) -> Self::Key;
}

macro_rules! keyed {
    ($($integer:ident, $float:ident, $signed:ident;)*) => {$(
        impl Keyed for $integer {
            type Key = $integer;

            #[inline(always)]
            fn key(self, mask: $integer) -> $integer {
                self ^ mask
            }
        }

        impl Keyed for $float {
            type Key = $integer;

            #[inline(always)]
            fn key(self, mask: $integer) -> $integer {
                let bits = self.to_bits();
                // All ones for a negative number.
                let negative = (bits as $signed >> ($signed::BITS - 1)) as $integer;
                let key = bits ^ (negative | 1 << ($integer::BITS - 1)) ^ mask;
                if self.is_nan() { 0 } else { key }
            }
        }
    )*};
}

keyed! {
    u32, f32, i32;
    u64, f64, i64;
}

/// A key and the index of its element.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<K> {
    key: K,
    index: u64,
}

impl Words for Candidate<u32> {
    const COUNT: usize = 3;

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        let [low, high, ..] = self.index.to_words();
        [low, high, self.key, 0]
    }

    #[inline(always)]
    fn from_words(words: [u32; MAX_WORDS]) -> Self {
        Self {
            key: words[2],
            index: u64::from_words(words),
        }
    }
}

impl Words for Candidate<u64> {
    const COUNT: usize = 4;

    #[inline(always)]
    fn to_words(self) -> [u32; MAX_WORDS] {
        let [low, high, ..] = self.index.to_words();
        let [key_low, key_high, ..] = self.key.to_words();
        [low, high, key_low, key_high]
    }

    #[inline(always)]
    fn from_words(words: [u32; MAX_WORDS]) -> Self {
        let [.., key_low, key_high] = words;
        Self {
            key: u64::from_words([key_low, key_high, 0, 0]),
            index: u64::from_words(words),
        }
    }
}

/// Selects the candidate with the least key and, of equal keys, the least index.
#[derive(Debug)]
pub struct First<K>(PhantomData<K>);

impl<K: Key> Operator for First<K>
where
    Candidate<K>: Words,
{
    type Value = Candidate<K>;
    type Output = u64;
    const IDENTITY: Candidate<K> = Candidate {
        key: K::LAST,
        index: u64::MAX,
    };

    #[inline(always)]
    fn combine(a: Candidate<K>, b: Candidate<K>) -> Candidate<K> {
        // equivalent mutant (comparison: in `b.index < a.index`): equal candidates are one
        let before = b.key < a.key || (b.key == a.key && b.index < a.index);
        Candidate {
            key: if before { b.key } else { a.key },
            index: if before { b.index } else { a.index },
        }
    }

    #[inline(always)]
    fn finish(total: Candidate<K>) -> u64 {
        total.index
    }
}

/// The terms: elements with their indices.
#[derive(Debug, Clone, Copy)]
struct Indexed<T: Keyed> {
    mask: T::Key,
}

impl<T: Keyed> Terms<1> for Indexed<T>
where
    Candidate<T::Key>: Words,
{
    type Element = T;
    type Operator = First<T::Key>;
    /// The lane's least key so far and the first tile in which it occurs.
    type Lane = (T::Key, u32);
    // If all keys of a lane are `LAST`, its first tile counts, which is right. A lane without an
    // element has a greater index than those with one, so it loses against them.
    const EMPTY: (T::Key, u32) = (T::Key::LAST, 0);

    #[inline(always)]
    fn take(self, (least, at): (T::Key, u32), [element]: [T; 1], tile: u32) -> (T::Key, u32) {
        let key = element.key(self.mask);
        let before = key < least;
        (
            if before { key } else { least },
            if before { tile } else { at },
        )
    }

    #[inline(always)]
    fn value((key, tile): (T::Key, u32), index: impl FnOnce(u32) -> u64) -> Candidate<T::Key> {
        Candidate {
            key,
            index: index(tile),
        }
    }
}

/// Declares entry points.
macro_rules! kernels {
    ($($name:ident of $type:ident, mask of $key:ident: $what:literal;)*) => {$(
        /// The index of the first element with the least key.
        ///
        /// `n`, `tiles`, `chunks` and `workspace`: as for the kernels of
        /// [`single_pass`](super::single_pass), with results of 12 bytes, or of 16 for elements of
        /// 8 bytes. `result`: one element. `mask`: see the [module](self).
        ///
        /// # Safety
        ///
        /// As for the kernels of [`single_pass`](super::single_pass).
        #[kernel]
        #[launch_bounds(THREADS, BLOCKS_PER_MULTIPROCESSOR)]
        pub unsafe fn $name(
            values: *const $type,
            n: usize,
            tiles: u32,
            chunks: u32,
            mask: $key,
            workspace: *mut u64,
            result: *mut u64,
        ) {
            let shared = Shared {
                partials: shared_array![Candidate<$key>; 2 * WARPS],
                ticket: shared_array![u32; 1],
            };
            let terms = Indexed::<$type> { mask };
            // SAFETY: forwarded word for word; the arrays are this block's.
            unsafe { reduce(terms, [values], n, tiles, chunks, workspace, result, shared) }
        }

        crate::register! {
            $name: $type, Tuned,
            concat!("where an array has its first ", $what, ", in one launch"),
            geometry: super::geometry::chunks::<$type>,
            cost: super::geometry::elements::<$type>,
            example: super::geometry::EXAMPLE_IN_CHUNKS,
            tile: super::geometry::TILE,
        }
    )*};
}

kernels! {
    reduction_arg_extremum_u32 of u32, mask of u32: "extreme element, also of `i32`";
    reduction_arg_extremum_u64 of u64, mask of u64: "extreme element, also of `i64`";
    reduction_arg_extremum_f32 of f32, mask of u32: "extreme element";
    reduction_arg_extremum_f64 of f64, mask of u64: "extreme element";
}
