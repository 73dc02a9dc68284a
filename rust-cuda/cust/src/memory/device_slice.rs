//! [`DeviceSlice`]: a borrowed part of device memory.

use super::copy::{AsyncCopyDestination, CopyDestination};
use super::pointer::DevicePointer;
use crate::error::{CudaResult, ToResult};
use crate::private::Sealed;
use crate::stream::Stream;
use bytemuck::{Pod, Zeroable};
use cuda_loader::sys::{self, CUresult};
use cust_core::DeviceCopy;
use std::marker::PhantomData;
use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

/// Elements in device memory, always behind a reference, as `[T]` for host memory.
///
/// It cannot outlive the memory of which it is a part:
///
/// ```compile_fail,E0597
/// use cust::memory::DeviceBuffer;
///
/// let part = {
///     let whole = DeviceBuffer::<f32>::zeroed(10)?;
///     whole.index(..5)
/// };
/// println!("{}", part.len());
/// # Ok::<(), cust::error::CudaError>(())
/// ```
#[repr(transparent)]
pub struct DeviceSlice<T: DeviceCopy> {
    element: PhantomData<T>,
    /// One unit per element; units take no host memory. Their address is the address of the
    /// elements on the device.
    places: [()],
}

// SAFETY: a reference to it is an address and a length; copies require the same as for references
// to host elements.
unsafe impl<T: DeviceCopy + Send> Send for DeviceSlice<T> {}
// SAFETY: as above.
unsafe impl<T: DeviceCopy + Sync> Sync for DeviceSlice<T> {}

impl<T: DeviceCopy> std::fmt::Debug for DeviceSlice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeviceSlice({:p}, {})", self.as_device_ptr(), self.len())
    }
}

/// An argument of [`DeviceSlice::index`]: an index or a range.
pub trait DeviceSliceIndex<T: DeviceCopy>: Sealed {
    /// The range of indices, within a slice of this length.
    ///
    /// # Panics
    ///
    /// If it is outside the slice.
    #[doc(hidden)]
    fn range(self, len: usize) -> Range<usize>;
}

impl Sealed for usize {}
impl<T: DeviceCopy> DeviceSliceIndex<T> for usize {
    fn range(self, len: usize) -> Range<usize> {
        assert!(self < len, "index {self} is beyond a slice of {len}");
        self..self + 1
    }
}

macro_rules! ranges {
    ($($range:ty),*) => {$(
        impl Sealed for $range {}
        impl<T: DeviceCopy> DeviceSliceIndex<T> for $range {
            fn range(self, len: usize) -> Range<usize> {
                within(&self, len)
            }
        }
    )*};
}

ranges!(
    Range<usize>,
    RangeTo<usize>,
    RangeFrom<usize>,
    RangeFull,
    RangeInclusive<usize>,
    RangeToInclusive<usize>
);

fn within(range: &impl RangeBounds<usize>, len: usize) -> Range<usize> {
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
    match start.zip(end) {
        Some((start, end)) if start <= end && end <= len => start..end,
        _ => panic!("the range is outside a slice of {len}"),
    }
}

impl<T: DeviceCopy> DeviceSlice<T> {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The address of the first element.
    #[must_use]
    pub fn as_device_ptr(&self) -> DevicePointer<T> {
        DevicePointer::from_raw(self.places.as_ptr().addr() as u64)
    }

    /// The elements at this address.
    ///
    /// # Safety
    ///
    /// `ptr` points to `len` initialised elements and is not null. Nothing writes them as long as
    /// the result lives.
    #[must_use]
    pub unsafe fn from_raw_parts<'a>(ptr: DevicePointer<T>, len: usize) -> &'a Self {
        let places = std::ptr::slice_from_raw_parts(ptr.as_ptr().cast::<()>(), len);
        // SAFETY: units take no memory, so every address except null is a valid address of `len`
        // units; the rest is the caller's promise.
        unsafe { &*(places as *const Self) }
    }

    /// The elements at this address.
    ///
    /// # Safety
    ///
    /// `ptr` points to `len` initialised elements and is not null. Nothing else uses them as long
    /// as the result lives.
    #[must_use]
    pub unsafe fn from_raw_parts_mut<'a>(ptr: DevicePointer<T>, len: usize) -> &'a mut Self {
        let places = std::ptr::slice_from_raw_parts_mut(ptr.as_mut_ptr().cast::<()>(), len);
        // SAFETY: as above.
        unsafe { &mut *(places as *mut Self) }
    }

    /// A part of the slice.
    ///
    /// # Panics
    ///
    /// If the part is outside the slice.
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn index<Idx: DeviceSliceIndex<T>>(&self, idx: Idx) -> &Self {
        let Range { start, end } = idx.range(self.len());
        // SAFETY: the range lies within this slice, which is borrowed.
        unsafe { Self::from_raw_parts(self.as_device_ptr().add(start), end - start) }
    }

    /// A writable part of the slice.
    ///
    /// # Panics
    ///
    /// If the part is outside the slice.
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "as index")]
    pub fn index_mut<Idx: DeviceSliceIndex<T>>(&mut self, idx: Idx) -> &mut Self {
        let Range { start, end } = idx.range(self.len());
        // SAFETY: the range lies within this slice, which is borrowed exclusively.
        unsafe { Self::from_raw_parts_mut(self.as_device_ptr().add(start), end - start) }
    }

    /// The parts before `mid` and from `mid` on.
    ///
    /// # Panics
    ///
    /// If `mid` is beyond the end.
    #[must_use]
    pub fn split_at(&self, mid: usize) -> (&Self, &Self) {
        (self.index(..mid), self.index(mid..))
    }

    /// The writable parts before `mid` and from `mid` on.
    ///
    /// # Panics
    ///
    /// If `mid` is beyond the end.
    #[must_use]
    pub fn split_at_mut(&mut self, mid: usize) -> (&mut Self, &mut Self) {
        let len = self.len();
        assert!(mid <= len, "the split at {mid} is beyond a slice of {len}");
        let start = self.as_device_ptr();
        // SAFETY: the parts lie within this slice, which is borrowed exclusively, and do not
        // overlap.
        unsafe {
            (
                Self::from_raw_parts_mut(start, mid),
                Self::from_raw_parts_mut(start.add(mid), len - mid),
            )
        }
    }

    /// The elements, copied to the host.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn as_host_vec(&self) -> CudaResult<Vec<T>> {
        let mut elements: Vec<T> = Vec::with_capacity(self.len());
        if self.bytes() > 0 {
            // SAFETY: there is space for all elements that are copied.
            unsafe {
                sys::cuMemcpyDtoH_v2(
                    elements.as_mut_ptr().cast(),
                    self.as_device_ptr().as_raw(),
                    self.bytes(),
                )
            }
            .to_result()?;
        }
        // SAFETY: the elements were copied above; copied bytes of a `DeviceCopy` type are valid
        // values.
        unsafe { elements.set_len(self.len()) };
        Ok(elements)
    }

    fn bytes(&self) -> usize {
        size_of::<T>() * self.len()
    }

    fn check_length(&self, other: usize) {
        let len = self.len();
        assert!(
            len == other,
            "{len} elements and {other} cannot be copied to each other"
        );
    }

    /// The number of words of the type `W`; fails unless the slice is a whole number of aligned
    /// words.
    fn words<W>(&self) -> CudaResult<usize> {
        let whole = self.bytes().is_multiple_of(size_of::<W>());
        let aligned = self
            .as_device_ptr()
            .as_raw()
            .is_multiple_of(align_of::<W>() as u64);
        if whole && aligned {
            Ok(self.bytes() / size_of::<W>())
        } else {
            Err(crate::error::CudaError::InvalidValue)
        }
    }
}

macro_rules! fills {
    ($($name:ident, $async_name:ident: $word:ty = $now:ident, $queued:ident;)*) => {$(
        /// Fills all elements with this word, and waits for the end.
        ///
        /// # Errors
        ///
        /// [`InvalidValue`](crate::error::CudaError::InvalidValue) unless the slice is a whole
        /// number of aligned words; other errors of the driver.
        pub fn $name(&mut self, value: $word) -> CudaResult<()> {
            let words = self.words::<$word>()?;
            if words == 0 {
                return Ok(());
            }
            // SAFETY: the slice has this many words, and is borrowed exclusively.
            unsafe { sys::$now(self.as_device_ptr().as_raw(), value.into(), words) }.to_result()
        }

        /// Fills all elements with this word, in stream order.
        ///
        /// # Errors
        ///
        /// As for the function without a stream.
        ///
        /// # Safety
        ///
        /// Until the stream has done this, only work of the stream uses the elements.
        pub unsafe fn $async_name(&mut self, value: $word, stream: &Stream) -> CudaResult<()> {
            let words = self.words::<$word>()?;
            if words == 0 {
                return Ok(());
            }
            // SAFETY: the slice has this many words; the caller promises the rest.
            unsafe {
                sys::$queued(self.as_device_ptr().as_raw(), value.into(), words, stream.as_inner())
            }
            .to_result()
        }
    )*};
}

impl<T: DeviceCopy + Pod> DeviceSlice<T> {
    fills! {
        set_8, set_8_async: u8 = cuMemsetD8_v2, cuMemsetD8Async;
        set_16, set_16_async: u16 = cuMemsetD16_v2, cuMemsetD16Async;
        set_32, set_32_async: u32 = cuMemsetD32_v2, cuMemsetD32Async;
    }
}

impl<T: DeviceCopy + Zeroable> DeviceSlice<T> {
    /// Fills all elements with zeros, and waits for the end.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_zero(&mut self) -> CudaResult<()> {
        let code = match self.bytes() {
            0 => CUresult::SUCCESS,
            // SAFETY: the slice has this many bytes, and is borrowed exclusively; zeros are valid
            // elements.
            bytes => unsafe { sys::cuMemsetD8_v2(self.as_device_ptr().as_raw(), 0, bytes) },
        };
        code.to_result()
    }

    /// Fills all elements with zeros, in stream order.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Safety
    ///
    /// Until the stream has done this, only work of the stream uses the elements.
    pub unsafe fn set_zero_async(&mut self, stream: &Stream) -> CudaResult<()> {
        let code = match self.bytes() {
            0 => CUresult::SUCCESS,
            // SAFETY: the slice has this many bytes; the caller promises the rest.
            bytes => unsafe {
                sys::cuMemsetD8Async(self.as_device_ptr().as_raw(), 0, bytes, stream.as_inner())
            },
        };
        code.to_result()
    }
}

impl<T: DeviceCopy> Sealed for DeviceSlice<T> {}

impl<T: DeviceCopy, I: AsRef<[T]> + AsMut<[T]> + ?Sized> CopyDestination<I> for DeviceSlice<T> {
    fn copy_from(&mut self, source: &I) -> CudaResult<()> {
        let source = source.as_ref();
        self.check_length(source.len());
        if self.bytes() == 0 {
            return Ok(());
        }
        // SAFETY: both sides have this many bytes, the source is borrowed, and this slice is
        // borrowed exclusively.
        unsafe {
            sys::cuMemcpyHtoD_v2(
                self.as_device_ptr().as_raw(),
                source.as_ptr().cast(),
                self.bytes(),
            )
        }
        .to_result()
    }

    fn copy_to(&self, dest: &mut I) -> CudaResult<()> {
        let dest = dest.as_mut();
        self.check_length(dest.len());
        if self.bytes() == 0 {
            return Ok(());
        }
        // SAFETY: both sides have this many bytes, and the target is borrowed exclusively.
        unsafe {
            sys::cuMemcpyDtoH_v2(
                dest.as_mut_ptr().cast(),
                self.as_device_ptr().as_raw(),
                self.bytes(),
            )
        }
        .to_result()
    }
}

impl<T: DeviceCopy> CopyDestination<Self> for DeviceSlice<T> {
    fn copy_from(&mut self, source: &Self) -> CudaResult<()> {
        source.copy_to(self)
    }

    fn copy_to(&self, dest: &mut Self) -> CudaResult<()> {
        self.check_length(dest.len());
        if self.bytes() == 0 {
            return Ok(());
        }
        // SAFETY: both sides have this many bytes; the target is borrowed exclusively, so they do
        // not overlap.
        unsafe {
            sys::cuMemcpyDtoD_v2(
                dest.as_device_ptr().as_raw(),
                self.as_device_ptr().as_raw(),
                self.bytes(),
            )
        }
        .to_result()
    }
}

impl<T: DeviceCopy, I: AsRef<[T]> + AsMut<[T]> + ?Sized> AsyncCopyDestination<I>
    for DeviceSlice<T>
{
    unsafe fn async_copy_from(&mut self, source: &I, stream: &Stream) -> CudaResult<()> {
        let source = source.as_ref();
        self.check_length(source.len());
        if self.bytes() == 0 {
            return Ok(());
        }
        // SAFETY: both sides have this many bytes; the rest is the caller's promise.
        unsafe {
            sys::cuMemcpyHtoDAsync_v2(
                self.as_device_ptr().as_raw(),
                source.as_ptr().cast(),
                self.bytes(),
                stream.as_inner(),
            )
        }
        .to_result()
    }

    unsafe fn async_copy_to(&self, dest: &mut I, stream: &Stream) -> CudaResult<()> {
        let dest = dest.as_mut();
        self.check_length(dest.len());
        if self.bytes() == 0 {
            return Ok(());
        }
        // SAFETY: both sides have this many bytes; the rest is the caller's promise.
        unsafe {
            sys::cuMemcpyDtoHAsync_v2(
                dest.as_mut_ptr().cast(),
                self.as_device_ptr().as_raw(),
                self.bytes(),
                stream.as_inner(),
            )
        }
        .to_result()
    }
}

impl<T: DeviceCopy> AsyncCopyDestination<Self> for DeviceSlice<T> {
    unsafe fn async_copy_from(&mut self, source: &Self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: the caller's promise.
        unsafe { source.async_copy_to(self, stream) }
    }

    unsafe fn async_copy_to(&self, dest: &mut Self, stream: &Stream) -> CudaResult<()> {
        self.check_length(dest.len());
        if self.bytes() == 0 {
            return Ok(());
        }
        // SAFETY: both sides have this many bytes; the rest is the caller's promise.
        unsafe {
            sys::cuMemcpyDtoDAsync_v2(
                dest.as_device_ptr().as_raw(),
                self.as_device_ptr().as_raw(),
                self.bytes(),
                stream.as_inner(),
            )
        }
        .to_result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(len: usize) -> &'static DeviceSlice<f32> {
        // SAFETY: nothing is copied.
        unsafe { DeviceSlice::from_raw_parts(DevicePointer::from_raw(0x1000), len) }
    }

    #[test]
    fn parts_begin_where_their_elements_do() {
        let whole = slice(10);
        assert_eq!(
            (
                whole.index(2..5).len(),
                whole.index(2..5).as_device_ptr().as_raw()
            ),
            (3, 0x1008)
        );
        assert_eq!(whole.index(..=4).len(), 5);
        assert_eq!(whole.index(9).as_device_ptr().as_raw(), 0x1024);
        let (left, right) = whole.split_at(10);
        assert_eq!((left.len(), right.len()), (10, 0));
        assert_eq!(format!("{:?}", whole.index(7..)), "DeviceSlice(0x101c, 3)");
    }

    #[test]
    #[should_panic(expected = "the range is outside a slice of 10")]
    fn a_range_beyond_the_end_panics() {
        let _ = slice(10).index(3..11);
    }

    #[test]
    #[should_panic(expected = "the range is outside a slice of 10")]
    fn a_range_to_the_last_number_panics() {
        let _ = slice(10).index(..=usize::MAX);
    }
}
