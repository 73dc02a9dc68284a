//! Fields on their way to a device and back. Where the device is the host they stay in
//! their place.

use crate::device::Lent;
use crate::scalar::Scalar;
use crate::shape::require_shape;
use crate::{Buffer, Device, DeviceKind, Error, Field3, Shape3};

/// The fields on `device`, if all are of `shape`; `what` is what errors call one of them.
pub(super) fn upload<'a, T: Scalar, const N: usize>(
    what: &str,
    shape: Shape3,
    device: &Device,
    fields: [&'a Field3<T>; N],
) -> Result<[Lent<'a, T>; N], Error> {
    for field in fields {
        require_shape(|| what.to_owned(), shape.into(), field.shape().into())?;
    }
    each(fields, |field| {
        Lent::new(device, field.as_slice())?.shaped(field.shape())
    })
}

/// Buffers for the results of something of `f`: of its shape and on its device, of NaN
/// where kernels write them.
pub(super) fn for_results<T: Scalar, const N: usize>(
    f: &Buffer<T>,
) -> Result<[Buffer<T>; N], Error> {
    let before = match f.device().kind() {
        DeviceKind::Cpu => T::zeroed(),
        DeviceKind::Emulator | DeviceKind::Cuda => T::nearest(f64::NAN),
    };
    each([(); N], |()| {
        f.device().alloc_filled(f.len(), before)?.shaped(f.shape())
    })
}

/// The fields of `shape` that are in `buffers`.
pub(super) fn download<T: Scalar, const N: usize>(
    shape: Shape3,
    buffers: [Buffer<T>; N],
) -> Result<[Field3<T>; N], Error> {
    each(buffers, |buffer| {
        Field3::from_vec(shape, buffer.into_vec()?)
    })
}

/// What is made of each, up to the first error.
fn each<A, B, const N: usize>(
    all: [A; N],
    make: impl FnMut(A) -> Result<B, Error>,
) -> Result<[B; N], Error> {
    let made: Vec<B> = all.into_iter().map(make).collect::<Result<_, _>>()?;
    match made.try_into() {
        Ok(made) => Ok(made),
        Err(_) => unreachable!("as many have been made"),
    }
}
