//! Several points of a row in one access of 16 bytes.

use super::plate::Real;
use crate::loops::unrolled;
use crate::words::MAX_WORDS;

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
