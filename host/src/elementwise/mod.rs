//! Elementwise operations on buffers, which solvers use between operators.
//!
//! ```
//! use halo_gpu::derivative3d::FiniteDifferences3d;
//! use halo_gpu::{Device, Grid3, Shape3, elementwise};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // Explicit steps of u_t = ∇²u, on whatever device the buffers are.
//! let device = Device::cpu();
//! let grid = Grid3::new(Shape3::cube(8), [1.0; 3])?;
//! let plan = FiniteDifferences3d::<f64>::new(&grid)?.with_accuracy(2)?.plan(&device)?;
//! let mut u = device.upload(&(0..512).map(|i| f64::from(i % 8)).collect::<Vec<_>>())?;
//! let mut laplacian = u.try_clone()?;
//! for _ in 0..200 {
//!     plan.laplacian(&u, &mut laplacian)?;
//!     elementwise::axpby(0.1, &laplacian, 1.0, &mut u)?;
//! }
//! assert!(u.to_vec()?.iter().all(|value| (value - 3.5).abs() < 1e-3));
//! # Ok(())
//! # }
//! ```
//!
//! All devices give the same bits, except the bits of a NaN, which depend on the processor.
//! (Solvers also need [`Buffer::fill`] and [`Buffer::copy_from`].)

#[cfg(feature = "cases")]
pub(crate) mod cases;
pub(crate) mod cpu;
pub(crate) mod gpu;
mod places;

pub use places::Places;

use crate::device::{View, require_len};
use crate::error::require_finite;
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Error};

/// `y ← a x + b y`, on the device of the buffers: it rounds the product b y, then adds a x with a
/// fused multiply-add.
///
/// On a CUDA device it enqueues one launch and does not wait.
///
/// ```
/// use halo_gpu::{Device, elementwise};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let x = device.upload(&[1.0_f32, 2.0, 3.0])?;
/// let mut y = device.upload(&[4.0_f32, 5.0, 6.0])?;
/// elementwise::axpby(2.0, &x, -1.0, &mut y)?;
/// assert_eq!(y.to_vec()?, [-2.0, -1.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::NonFinite`] for a factor that is not finite; [`Error::LengthMismatch`] and
/// [`Error::DeviceMismatch`] for buffers that do not fit; the errors of a launch.
pub fn axpby<T: Scalar>(a: T, x: &Buffer<T>, b: T, y: &mut Buffer<T>) -> Result<(), Error> {
    for (parameter, factor) in [("a", a), ("b", b)] {
        let given = factor.into();
        require_finite("elementwise: axpby", parameter, given)?;
    }
    fit(x, y)?;
    if y.is_empty() {
        return Ok(());
    }
    match (x.as_host_slice(), y.device().kind()) {
        (Some(x), DeviceKind::Cpu) => {
            T::axpby(a, x, b, host(y));
            Ok(())
        }
        _ => T::launch_axpby(a, x, b, y),
    }
}

/// `y ← min(max(y, low), high)`, on the device of the buffer. NaN stays NaN.
///
/// On a CUDA device it enqueues one launch and does not wait.
///
/// ```
/// use halo_gpu::{Device, elementwise};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let mut y = Device::cpu().upload(&[-3.0, 0.5, 7.0])?;
/// elementwise::clamp(&mut y, 0.0, 1.0)?;
/// assert_eq!(y.to_vec()?, [0.0, 0.5, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::InvalidParameter`] unless `low` is at most `high`; the errors of a launch.
pub fn clamp<T: Scalar>(y: &mut Buffer<T>, low: T, high: T) -> Result<(), Error> {
    if !(low <= high) {
        return Err(Error::InvalidParameter {
            operation: "elementwise: clamp",
            parameter: "the lower bound",
            given: low.to_string(),
            required: format!("at most the upper, which is {high}"),
        });
    }
    if y.is_empty() {
        return Ok(());
    }
    match y.device().kind() {
        DeviceKind::Cpu => {
            T::clamp(host(y), low, high);
            Ok(())
        }
        DeviceKind::Emulator | DeviceKind::Cuda => T::launch_clamp(y, low, high),
    }
}

/// `y[at] ← values` at these places, on the device of the buffer. `values` has one value for each
/// place, in their order.
///
/// On a CUDA device it enqueues one launch and does not wait.
///
/// ```
/// use halo_gpu::{Device, elementwise};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let ends = elementwise::Places::new(&device, &[0, 4])?;
/// let mut y = device.upload(&[1.0_f32; 5])?;
/// elementwise::put(device.upload(&[7.0, 8.0])?.view(..)?, &ends, &mut y)?;
/// assert_eq!(y.to_vec()?, [7.0, 1.0, 1.0, 1.0, 8.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::LengthMismatch`] unless there are as many values as places, or if the buffer ends
/// before the last place; [`Error::DeviceMismatch`]; the errors of a launch.
pub fn put<T: Scalar>(
    values: View<'_, T>,
    places: &Places,
    y: &mut Buffer<T>,
) -> Result<(), Error> {
    places.require(values, y)?;
    if places.is_empty() {
        return Ok(());
    }
    match (
        values.as_host_slice(),
        places.at().as_host_slice(),
        y.device().kind(),
    ) {
        (Some(values), Some(at), DeviceKind::Cpu) => {
            T::put(values, at, host(y));
            Ok(())
        }
        _ => T::launch_put(values, places, y),
    }
}

/// The larger of two differences. NaN counts as larger than all numbers.
#[doc(hidden)]
#[must_use]
pub fn larger<C: PartialOrd + Copy>(a: C, b: C) -> C {
    let is_nan = a.partial_cmp(&a).is_none();
    if a >= b || is_nan { a } else { b }
}

/// Writes the largest `|x - y|` to `result`, a buffer of one element, on the device of the buffers.
/// It is NaN if x or y contains a NaN, and 0 if they are empty.
///
/// On a CUDA device it enqueues a fill and a launch and does not wait.
///
/// ```
/// use halo_gpu::{Device, elementwise};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let (x, y) = (device.upload(&[1.0, 2.0, 3.0])?, device.upload(&[1.0, 4.5, 2.0])?);
/// let mut change = device.zeros(1)?;
/// elementwise::largest_difference_into(&x, &y, &mut change)?;
/// assert_eq!(change.to_vec()?, [2.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that do not fit; the errors
/// of a launch.
pub fn largest_difference_into<T: Scalar>(
    x: &Buffer<T>,
    y: &Buffer<T>,
    result: &mut Buffer<T>,
) -> Result<(), Error> {
    fit(x, y)?;
    gpu::require("elementwise: result", 1, x, result)?;
    if let (Some(x), Some(y), DeviceKind::Cpu) =
        (x.as_host_slice(), y.as_host_slice(), x.device().kind())
    {
        host(result)[0] = T::largest_difference(x, y);
        return Ok(());
    }
    result.fill(T::nearest(0.0))?;
    if x.is_empty() {
        return Ok(());
    }
    T::launch_difference(x, y, result)
}

/// Like [`largest_difference_into`], but waits for the result and returns it.
///
/// ```
/// use halo_gpu::{Device, elementwise};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let (x, y) = (device.upload(&[1.0, 2.0, 3.0])?, device.upload(&[1.0, 4.5, 2.0])?);
/// assert_eq!(elementwise::largest_difference(&x, &y)?, 2.5);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As for [`largest_difference_into`], and [`Error::OutOfMemory`].
pub fn largest_difference<T: Scalar>(x: &Buffer<T>, y: &Buffer<T>) -> Result<T, Error> {
    fit(x, y)?;
    let mut result = [T::nearest(0.0)];
    let mut on_device = x.device().upload(&result)?;
    largest_difference_into(x, y, &mut on_device)?;
    on_device.copy_to_slice(&mut result)?;
    Ok(result[0])
}

/// The elements of a buffer on the CPU device.
fn host<T: Scalar>(buffer: &mut Buffer<T>) -> &mut [T] {
    match buffer.as_host_mut_slice() {
        Some(values) => values,
        None => unreachable!("buffers of the CPU device that are written are host memory"),
    }
}

/// Returns an error unless both buffers have the same length and device.
fn fit<T: Scalar>(x: &Buffer<T>, y: &Buffer<T>) -> Result<(), Error> {
    require_len("elementwise: y", x.len(), y.len())?;
    let device: &Device = x.device();
    device.require("elementwise: y", y)
}
