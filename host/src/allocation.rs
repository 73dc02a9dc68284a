//! Allocates host memory; if there is not enough, it returns an error instead of aborting.

use crate::Error;
use crate::pages::advise_huge_pages;
use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_slice_box;

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
