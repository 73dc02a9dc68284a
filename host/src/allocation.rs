//! Allocates host memory; if there is not enough, it returns an error instead of aborting.

use crate::Error;
use crate::caches::LINE_BYTES;
use crate::pages::{PAGE_BYTES, advise_huge_pages};
use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_slice_box;
use std::ops::{Deref, DerefMut};

/// The size of `len` elements of `T` in bytes.
pub(crate) fn bytes_of<T>(len: usize) -> Result<usize, Error> {
    // No Rust object is larger than isize::MAX bytes, and pointer arithmetic in kernels relies on
    // that.
    len.checked_mul(size_of::<T>())
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(|| Error::IndexOverflow {
            quantity: "the size in bytes of a buffer".into(),
            given: format!("{len} * {}", size_of::<T>()),
            limit: isize::MAX as u64,
        })
}

/// An empty vector with room for `len` elements.
///
/// # Errors
///
/// [`Error::HostOutOfMemory`]; [`Error::IndexOverflow`] for more bytes than a Rust object can have.
pub fn reserve<T>(len: usize) -> Result<Vec<T>, Error> {
    let bytes = bytes_of::<T>(len)?;
    let mut values = Vec::new();
    values
        .try_reserve_exact(len)
        .map_err(|_| Error::HostOutOfMemory {
            requested: bytes as u64,
        })?;
    advise_huge_pages(&mut values.spare_capacity_mut()[..len]);
    Ok(values)
}

/// `len` zeros. The operating system supplies the pages when they are first touched.
///
/// # Errors
///
/// As for [`reserve`].
pub fn zeroed<T: Zeroable>(len: usize) -> Result<Vec<T>, Error> {
    let bytes = bytes_of::<T>(len)?;
    let mut zeros = try_zeroed_slice_box(len).map_err(|()| Error::HostOutOfMemory {
        requested: bytes as u64,
    })?;
    advise_huge_pages(&mut zeros);
    Ok(zeros.into_vec())
}

/// Elements that begin at a page or, if they are few, at a cache line. Vectors of a field then do
/// not cross cache lines. An allocator puts large memory 16 bytes after the start of a page, or
/// directly behind its last allocation.
#[derive(Debug)]
pub(crate) struct Aligned<T> {
    /// Unused elements up to `start`, then the elements themselves.
    memory: Vec<T>,
    start: usize,
}

impl<T: Zeroable + Copy> Aligned<T> {
    /// `len` zeros, as by [`zeroed`].
    ///
    /// # Errors
    ///
    /// As for [`reserve`].
    pub(crate) fn zeroed(len: usize) -> Result<Self, Error> {
        let mut memory = with_room(len, zeroed)?;
        let start = start_of(memory.as_ptr(), len);
        memory.truncate(start + len);
        Ok(Self { memory, start })
    }

    /// `len` copies of a value.
    ///
    /// # Errors
    ///
    /// As for [`reserve`].
    pub(crate) fn filled(len: usize, value: T) -> Result<Self, Error> {
        let mut elements = Self::none(len)?;
        let end = elements.start + len;
        elements.memory.resize(end, value);
        Ok(elements)
    }

    /// A copy of some elements.
    ///
    /// # Errors
    ///
    /// As for [`reserve`].
    pub(crate) fn copy_of(values: &[T]) -> Result<Self, Error> {
        let mut elements = Self::none(values.len())?;
        elements.memory.extend_from_slice(values);
        Ok(elements)
    }

    /// No elements yet, with room for `len`.
    fn none(len: usize) -> Result<Self, Error> {
        let mut memory = with_room(len, reserve)?;
        let start = start_of(memory.as_ptr(), len);
        memory.resize(start, T::zeroed());
        Ok(Self { memory, start })
    }

    /// The elements as a vector. They move to the start of its memory, by less than a page;
    /// elements that come from a vector are already there.
    pub(crate) fn into_vec(self) -> Vec<T> {
        let Self { mut memory, start } = self;
        memory.drain(..start);
        memory
    }
}

impl<T> From<Vec<T>> for Aligned<T> {
    /// Takes over the vector's memory, aligned or not.
    fn from(memory: Vec<T>) -> Self {
        Self { memory, start: 0 }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory[self.start..]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..]
    }
}

/// The alignment of `len` elements in bytes.
const fn alignment<T>(len: usize) -> usize {
    if len.saturating_mul(size_of::<T>()) < 16 * PAGE_BYTES {
        LINE_BYTES
    } else {
        PAGE_BYTES
    }
}

/// The most elements before the first aligned one.
fn room<T>(len: usize) -> usize {
    alignment::<T>(len).checked_div(size_of::<T>()).unwrap_or(0)
}

/// Memory for `len` elements, and room to align them.
fn with_room<T>(
    len: usize,
    allocate: impl Fn(usize) -> Result<Vec<T>, Error>,
) -> Result<Vec<T>, Error> {
    let bytes = bytes_of::<T>(len)?;
    // An error reports the size of the elements, without the room.
    allocate(len + room::<T>(len)).map_err(|_| Error::HostOutOfMemory {
        requested: bytes as u64,
    })
}

/// The index of the first aligned element. If no element is aligned, the index is 0.
fn start_of<T>(memory: *const T, len: usize) -> usize {
    let start = memory.align_offset(alignment::<T>(len));
    if start <= room::<T>(len) { start } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths_and_contents<T: Zeroable + Copy + PartialEq + std::fmt::Debug>(value: T) {
        for len in [0, 1, 15, 1000, 16_384, 1 << 21] {
            let (zeros, filled) = (Aligned::<T>::zeroed(len), Aligned::filled(len, value));
            let values = vec![value; len];
            let (zeros, filled) = (zeros.unwrap(), filled.unwrap());
            let copy = Aligned::copy_of(&values).unwrap();
            if len > 0 && 64_usize.is_multiple_of(size_of::<T>()) {
                for elements in [&zeros, &filled, &copy] {
                    let address = elements.as_ptr().addr();
                    assert_eq!(address % alignment::<T>(len), 0, "{len}");
                }
            }
            assert_eq!(zeros.into_vec(), vec![T::zeroed(); len]);
            assert_eq!(*filled, *values);
            assert_eq!(filled.into_vec(), values);
            assert_eq!(copy.into_vec(), values);
        }
    }

    #[test]
    fn elements_are_as_many_as_asked_for_and_begin_at_a_line_or_a_page() {
        lengths_and_contents(3_u8);
        lengths_and_contents(1.5_f32);
        lengths_and_contents(-2.5_f64);
        lengths_and_contents([1.0_f32, 2.0, 3.0]);
        lengths_and_contents(());
    }

    #[test]
    fn memory_of_a_vector_stays_where_it_is() {
        let values = vec![1, 2, 3];
        let place = values.as_ptr();
        let back = Aligned::from(values).into_vec();
        assert_eq!(back.as_ptr(), place);
    }

    #[test]
    fn errors_are_about_the_elements() {
        let len = isize::MAX as usize / 8;
        assert!(matches!(
            Aligned::<u64>::zeroed(len),
            Err(Error::HostOutOfMemory { requested }) if requested == 8 * len as u64
        ));
        assert!(matches!(
            Aligned::<u64>::filled(usize::MAX, 1),
            Err(Error::IndexOverflow { .. })
        ));
    }
}
