//! Loads and stores of several points of a row per lane, in vectors of 16 bytes.

use super::plate::Real;
use crate::loops::unrolled;
use crate::words::MAX_WORDS;
use cuda_std::cache::{load_readonly, store_streaming};

/// 32-bit words of a vector.
const WORDS: usize = 4;

/// The most points of a vector.
pub(super) const MAX_LANES: usize = 4;

/// Points of a vector: 4 in f32, 2 in f64.
#[must_use]
pub(super) const fn vector_points<T: Real>() -> usize {
    WORDS / T::COUNT
}

/// A vector, which one access of 16 bytes moves.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Vector(u32, u32, u32, u32);

impl Vector {
    /// Reads a vector field by field, which compiles to one access of 16 bytes.
    ///
    /// # Safety
    ///
    /// `from` is valid for reads and aligned.
    #[inline(always)]
    pub(super) unsafe fn read(from: *const Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self((*from).0, (*from).1, (*from).2, (*from).3) }
    }

    /// Writes the vector, also field by field.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes and aligned.
    #[inline(always)]
    pub(super) unsafe fn write(self, to: *mut Self) {
        // SAFETY: as the caller promises.
        unsafe {
            (*to).0 = self.0;
            (*to).1 = self.1;
            (*to).2 = self.2;
            (*to).3 = self.3;
        }
    }

    /// The vector of the points of `values` from `at` on.
    #[inline(always)]
    pub(super) fn of<T: Real, const P: usize>(values: &[T; P], at: usize) -> Self {
        let mut words = [0; WORDS];
        unrolled::<WORDS>(
            #[inline(always)]
            |k| words[k] = values[at + k / T::COUNT].to_words()[k % T::COUNT],
        );
        Self(words[0], words[1], words[2], words[3])
    }

    /// Writes the vector's points to `values` from `at` on.
    #[inline(always)]
    pub(super) fn put<T: Real, const P: usize>(self, values: &mut [T; P], at: usize) {
        let words = [self.0, self.1, self.2, self.3];
        unrolled::<MAX_LANES>(
            #[inline(always)]
            |k| {
                if k < vector_points::<T>() {
                    let mut own = [0; MAX_WORDS];
                    own[..T::COUNT].copy_from_slice(&words[k * T::COUNT..][..T::COUNT]);
                    values[at + k] = T::from_words(own);
                }
            },
        );
    }
}

/// Loads `P` points of a row that nobody writes, by vectors, or one by one if `P` is not a multiple
/// of a vector's points.
///
/// # Safety
///
/// `row` is readable for `P` points of global memory, which nobody writes during the
/// launch; it is aligned to 16 bytes, unless it is read point by point.
#[inline(always)]
pub(super) unsafe fn load<T: Real, const P: usize>(row: *const T) -> [T; P] {
    let mut values = [T::ZERO; P];
    unrolled::<P>(
        #[inline(always)]
        |p| {
            // SAFETY: as the caller promises.
            unsafe {
                // equivalent mutant (guard): the same values, in more accesses; the
                // static gates count those.
                if !P.is_multiple_of(vector_points::<T>()) {
                    values[p] = *row.add(p);
                } else if p % vector_points::<T>() == 0 {
                    load_readonly(row.add(p).cast::<Vector>()).put(&mut values, p);
                }
            }
        },
    );
    values
}

/// Writes `P` points of a row that are not read again soon, by vectors or one by one like [`load`].
///
/// # Safety
///
/// `row` is writable for `P` points of global memory and aligned as [`load`] says.
#[inline(always)]
pub(super) unsafe fn store<T: Real, const P: usize>(row: *mut T, values: &[T; P]) {
    unrolled::<P>(
        #[inline(always)]
        |p| {
            // SAFETY: as the caller promises.
            unsafe {
                if !P.is_multiple_of(vector_points::<T>()) {
                    *row.add(p) = values[p];
                } else if p % vector_points::<T>() == 0 {
                    store_streaming(row.add(p).cast::<Vector>(), Vector::of(values, p));
                }
            }
        },
    );
}
