//! Views: borrowed parts of buffers.

use super::buffer::{Buffer, require_len};
use super::storage::Element;
use crate::Error;
use crate::allocation::zeroed;
use cuda_std::host::{In, Out};
use std::fmt;
use std::ops::{Bound, Range, RangeBounds};

/// Consecutive elements of a [`Buffer`], borrowed for reading.
///
/// Your own kernels can take a view as an input. Its start is aligned for `T`, but not for the
/// 16-byte vectors with which a kernel may read a whole buffer.
///
/// ```
/// use halo_gpu::Device;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let planes = device.upload(&[1, 1, 1, 2, 2, 2, 3, 3, 3])?;
/// assert_eq!(planes.view(3..6)?.to_vec()?, [2; 3]);
///
/// let mut halo = device.zeros::<i32>(6)?;
/// halo.view_mut(..3)?.copy_from(planes.view(6..)?)?;
/// halo.view_mut(3..)?.fill(7)?;
/// assert_eq!(halo.to_vec()?, [3, 3, 3, 7, 7, 7]);
/// # Ok(())
/// # }
/// ```
///
/// While one part of a buffer is borrowed for writing, no other part can be used:
///
/// ```compile_fail,E0502
/// # use halo_gpu::{Device, Error};
/// # fn main() -> Result<(), Error> {
/// let mut buffer = Device::emulator().zeros::<i32>(6)?;
/// let source = buffer.view(3..)?;
/// buffer.view_mut(..3)?.copy_from(source)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct View<'a, T: Element> {
    buffer: &'a Buffer<T>,
    start: usize,
    len: usize,
}

/// Consecutive elements of a [`Buffer`], borrowed for writing: the counterpart of [`View`].
pub struct ViewMut<'a, T: Element> {
    buffer: &'a mut Buffer<T>,
    start: usize,
    len: usize,
}

impl<T: Element> Buffer<T> {
    /// The elements with indices in `range`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] unless the range lies within the buffer.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<View<'_, T>, Error> {
        let Range { start, end } = within(range, self.len())?;
        Ok(View {
            buffer: self,
            start,
            len: end - start,
        })
    }

    /// The elements with indices in `range`, for writing.
    ///
    /// # Errors
    ///
    /// As for [`view`](Self::view).
    pub fn view_mut(&mut self, range: impl RangeBounds<usize>) -> Result<ViewMut<'_, T>, Error> {
        let Range { start, end } = within(range, self.len())?;
        Ok(ViewMut {
            buffer: self,
            start,
            len: end - start,
        })
    }
}

impl<'a, T: Element> View<'a, T> {
    /// The number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the view has no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The index of the first element in the buffer.
    pub(super) const fn start(&self) -> usize {
        self.start
    }

    /// The buffer that holds the elements.
    #[must_use]
    pub const fn buffer(&self) -> &'a Buffer<T> {
        self.buffer
    }

    /// The elements themselves if the buffer is in host memory, as for [`Buffer::as_host_slice`].
    pub(crate) fn as_host_slice(&self) -> Option<&'a [T]> {
        Some(&self.buffer.as_host_slice()?[self.start..][..self.len])
    }

    /// A copy of the elements in host memory.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::to_vec`].
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let mut values = zeroed(self.len)?;
        self.copy_to_slice(&mut values)?;
        Ok(values)
    }

    /// Copies the elements to `values`.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::copy_to_slice`].
    pub fn copy_to_slice(&self, values: &mut [T]) -> Result<(), Error> {
        require_len("the slice to copy to", self.len, values.len())?;
        self.buffer.storage.read(self.start, values)
    }
}

impl<T: Element> ViewMut<'_, T> {
    /// The buffer, the index of the first element in it, and the number of elements.
    pub(super) const fn parts_mut(&mut self) -> (&mut Buffer<T>, usize, usize) {
        (self.buffer, self.start, self.len)
    }

    /// The number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the view has no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same elements, for reading.
    #[must_use]
    pub const fn as_view(&self) -> View<'_, T> {
        View {
            buffer: self.buffer,
            start: self.start,
            len: self.len,
        }
    }

    /// Overwrites the elements with `values`.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::copy_from_slice`].
    pub fn copy_from_slice(&mut self, values: &[T]) -> Result<(), Error> {
        require_len("the slice to copy from", self.len, values.len())?;
        self.buffer.storage.write(self.start, values)
    }

    /// Overwrites the elements with those of `source`, on the device.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::copy_from`].
    pub fn copy_from(&mut self, source: View<'_, T>) -> Result<(), Error> {
        let device = self.buffer.device();
        device.require("the view to copy from", source.buffer)?;
        require_len("the view to copy from", self.len, source.len)?;
        let range = source.start..source.start + source.len;
        let from = &source.buffer.storage;
        self.buffer.storage.copy(self.start, from, range)
    }

    /// Overwrites the bytes of the elements with those of `source`, elements of any type on the
    /// same device. (Every bit pattern is a valid element.)
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let numbers = device.upload(&[1_u16, 2, 3, 4])?;
    /// let mut bytes = device.zeros::<u8>(4)?;
    /// bytes.view_mut(..)?.copy_bytes_from(numbers.view(1..3)?)?;
    /// assert_eq!(bytes.to_vec()?, [2_u16, 3].map(u16::to_ne_bytes).concat());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Buffer::copy_from`], with bytes instead of elements.
    pub fn copy_bytes_from<U: Element>(&mut self, source: View<'_, U>) -> Result<(), Error> {
        let device = self.buffer.device();
        device.require("the view to copy from", source.buffer)?;
        let (bytes, size) = (source.len * size_of::<U>(), size_of::<T>());
        require_len("the view to copy from, as bytes,", self.len * size, bytes)?;
        let start = source.start * size_of::<U>();
        let from = &source.buffer.storage;
        let storage = &mut self.buffer.storage;
        storage.copy_bytes(self.start * size, from, start..start + bytes)
    }

    /// Overwrites rows of bytes with rows of `source`, elements of any type on the same device.
    /// There are `rows` rows of `len` bytes. They start every `pitches` bytes, here and in
    /// `source`, from the first byte on. Bytes between the rows keep their values.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let plane = device.upload(&[11_u8, 12, 13, 21, 22, 23, 31, 32, 33])?;
    /// let mut column = device.zeros::<u8>(3)?;
    /// column.view_mut(..)?.copy_rows_from(plane.view(1..)?, [3, 1], [1, 3])?;
    /// assert_eq!(column.to_vec()?, [12, 22, 32]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`]; [`Error::InvalidParameter`] for rows that overlap or do not lie
    /// within both views; the errors of the device.
    pub fn copy_rows_from<U: Element>(
        &mut self,
        source: View<'_, U>,
        [rows, len]: [usize; 2],
        pitches: [usize; 2],
    ) -> Result<(), Error> {
        let device = self.buffer.device();
        device.require("the view to copy from", source.buffer)?;
        if rows == 0 || len == 0 {
            return Ok(());
        }
        let bytes = [self.len * size_of::<T>(), source.len * size_of::<U>()];
        for (pitch, bytes) in pitches.into_iter().zip(bytes) {
            let end = (rows - 1).checked_mul(pitch);
            let end = end.and_then(|last| last.checked_add(len));
            if (rows > 1 && pitch < len) || end.is_none_or(|end| end > bytes) {
                return Err(Error::InvalidParameter {
                    operation: "a copy of rows",
                    parameter: "the rows",
                    given: format!("{rows} of {len} bytes, {pitch} bytes apart"),
                    required: format!("without overlap and within the view's {bytes} bytes"),
                });
            }
        }
        let places = [self.start * size_of::<T>(), source.start * size_of::<U>()];
        let from = &source.buffer.storage;
        let storage = &mut self.buffer.storage;
        storage.copy_rows(from, places, [rows, len], pitches)
    }

    /// Overwrites the elements with those of `source`, which may be on another device.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::copy_across`].
    pub fn copy_across(&mut self, source: View<'_, T>) -> Result<(), Error> {
        if self.buffer.device() == source.buffer.device() {
            return self.copy_from(source);
        }
        require_len("the view to copy from", self.len, source.len)?;
        let range = source.start..source.start + source.len;
        let from = &source.buffer.storage;
        self.buffer.storage.copy_across(self.start, from, range)
    }

    /// Overwrites the elements with `value`.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::fill`].
    pub fn fill(&mut self, value: T) -> Result<(), Error> {
        let range = self.start..self.start + self.len;
        self.buffer.storage.fill(range, value)
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for View<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self {
            buffer,
            start: 0,
            len: buffer.len(),
        }
    }
}

impl<'a, T: Element> From<View<'a, T>> for In<'a, T> {
    fn from(view: View<'a, T>) -> Self {
        let address = address(view.buffer, view.start);
        // SAFETY: the address is that of `len` initialised elements of the buffer; the shared
        // borrow keeps them there and unwritten for 'a.
        unsafe { In::from_raw(address, view.len) }
    }
}

impl<'a, T: Element> From<&'a mut ViewMut<'_, T>> for Out<'a, T> {
    fn from(view: &'a mut ViewMut<'_, T>) -> Self {
        let address = address(view.buffer, view.start);
        // SAFETY: as above, and the unique borrow prevents all other access to the buffer for 'a.
        unsafe { Out::from_raw(address, view.len) }
    }
}

/// The address of the element with index `start`.
fn address<T: Element>(buffer: &Buffer<T>, start: usize) -> u64 {
    // `start` is within the buffer or at its end, so the address exists.
    buffer.device_address() + (start * size_of::<T>()) as u64
}

/// The range as start and end, if it lies within `len` elements.
fn within(range: impl RangeBounds<usize>, len: usize) -> Result<Range<usize>, Error> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok(start..end),
        _ => Err(Error::InvalidParameter {
            operation: "a view of a buffer",
            parameter: "the range",
            given: format!("{:?} to {:?}", range.start_bound(), range.end_bound()),
            required: format!("within 0..{len}, with a start at or before its end"),
        }),
    }
}

impl<T: Element> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("buffer", self.buffer)
            .field("start", &self.start)
            .field("len", &self.len)
            .finish()
    }
}

impl<T: Element> fmt::Debug for ViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_view().fmt(f)
    }
}
