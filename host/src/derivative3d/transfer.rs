//! Fields on their way to a device and back.

use super::general::Real;
use crate::shape::require_shape;
use crate::{Buffer, Device, Error, Field3, Shape3};

/// The fields on `device`, if all are of `shape`; `what` is what errors call one of them.
pub(super) fn upload<T: Real, const N: usize>(
    what: &str,
    shape: Shape3,
    device: &Device,
    fields: [&Field3<T>; N],
) -> Result<[Buffer<T>; N], Error> {
    for field in fields {
        require_shape(|| what.to_owned(), shape.into(), field.shape().into())?;
    }
    each(|nth| fields[nth].to_device(device))
}

/// Buffers for the results of something of `f`: of its shape and on its device, of NaN.
pub(super) fn for_results<T: Real, const N: usize>(f: &Buffer<T>) -> Result<[Buffer<T>; N], Error> {
    let nan = T::nearest(f64::NAN);
    each(|_| f.device().alloc_filled(f.len(), nan)?.shaped(f.shape()))
}

/// The fields that are in `buffers`.
pub(super) fn download<T: Real, const N: usize>(
    buffers: &[Buffer<T>; N],
) -> Result<[Field3<T>; N], Error> {
    each(|nth| Field3::from_device(&buffers[nth]))
}

/// As many as the array has, up to the first error.
fn each<B, const N: usize>(make: impl FnMut(usize) -> Result<B, Error>) -> Result<[B; N], Error> {
    let made: Vec<B> = (0..N).map(make).collect::<Result<_, _>>()?;
    match made.try_into() {
        Ok(made) => Ok(made),
        Err(_) => unreachable!("as many have been made"),
    }
}
