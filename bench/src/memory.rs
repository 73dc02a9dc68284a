//! Allocates host memory; if there is not enough, it returns an error.

use super::error::Error;

/// An empty vector with room for `len` elements; an error if there is not enough memory.
///
/// Unlike the library, it does not ask for huge pages: baselines have their arrays in the pages
/// that the allocator gives.
pub(super) fn reserve<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(len)
        .map_err(|_| halo_gpu::Error::HostOutOfMemory {
            requested: (len as u64).saturating_mul(size_of::<T>() as u64),
        })?;
    Ok(values)
}
