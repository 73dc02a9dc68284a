//! Reduces arrays to sum, minimum, maximum, argmin, argmax, mean, L2 norm or dot product, for
//! `i32`, `u32`, `i64`, `u64`, `f32` and `f64`.
//!
//! [`sum`], [`min`], [`max`], [`argmin`], [`argmax`], [`mean`], [`norm`] and [`dot`] reduce a
//! buffer on its device; [`sum_of`] and so on reduce a slice on a given device. On a CUDA device
//! and on the emulator that is one launch of a kernel that reads at the speed of memory; on the CPU
//! it is a port with the same bits. A [`Plan`] reduces any number of times without allocating, and
//! can leave the result on the device without waiting.
//!
//! You can also name one of the textbook's four sum kernels ([`Variant`],
//! [`Reduction::plan_with`]). They leave one sum per block, which the host adds.
//!
//! ```
//! use halo_gpu::reduction::{self, Reduction, Variant};
//! use halo_gpu::Device;
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let values: Vec<i32> = (1..=1000).collect();
//! assert_eq!(reduction::sum_of(&Device::cpu(), &values)?, 500_500);
//!
//! let device = Device::emulator(); // or Device::cuda(0)?, or Device::best()
//! let buffer = device.upload(&values)?;
//! assert_eq!(reduction::sum(&buffer)?, 500_500);
//! assert_eq!(reduction::max(&buffer)?, 1000);
//! assert_eq!(reduction::argmax(&buffer)?, 999);
//! assert_eq!(reduction::mean(&buffer)?, 500.5);
//!
//! let mut plan = Reduction::new().with_block(64)?.plan_with(&device, Variant::Shared)?;
//! assert_eq!(plan.sum(&buffer)?, 500_500);
//! # Ok(())
//! # }
//! ```
//!
//! # Reproducibility
//!
//! A sum of floats depends on the order of the additions. Here the order depends only on the
//! **number of elements and their type**:
//!
//! - [`sum`], [`mean`], [`norm`], [`dot`], the extrema and a [`Plan`] give the same bits on the
//!   CPU, on the emulator and on every GPU, with any number of blocks or threads, in every run.
//! - They do not give the bits of another order: that of a loop from the first element to the last,
//!   of another library, of the textbook kernels, or of the sums of two halves added together. One
//!   more element can change the whole order. A later version of this library may choose another
//!   order, and will say so.
//!
//! The order is a tree, described in [`single_pass`](gpu_kernels::reduction::single_pass);
//! [`Plan::error_bound`] bounds the difference from the exact sum.
//!
//! # Results
//!
//! - **No elements**: sum, norm and dot product are 0 (+0 for floats). Minimum, maximum, argmin,
//!   argmax and mean return [`Error::EmptyInput`], and so do the sums of the textbook's kernels.
//! - **Extrema**: [`argmin`] and [`argmax`] return the index of the first element that equals the
//!   minimum or the maximum, by the rules below.
//! - **Means and norms** are computed in f64. They do not overflow unless the result itself does,
//!   and underflow does not affect a norm.
//! - **Dot products** have the type [`Product`](Number): f64 for floats, where dot products of
//!   `f32` do not overflow; `i64` or `u64` for integers, correct modulo 2⁶⁴.
//! - Sums of **integers** wrap around on overflow: they are correct modulo 2³² or 2⁶⁴.
//! - **Float** sums are computed in the type itself. If a partial sum overflows, it is infinite,
//!   even if the total would be in range again. A sum of zeros is -0 if all of them are -0, else
//!   +0.
//! - **NaN** in any element makes sum, minimum, maximum, mean, norm and dot product NaN, with the
//!   bits of [`f32::NAN`] or [`f64::NAN`]. Infinities of both signs make a sum NaN too. [`argmin`]
//!   and [`argmax`] return the index of the first NaN.
//! - **Zeros**: -0 is less than +0. So the minimum of both is -0, the maximum +0. (These are the
//!   operations `minimum` and `maximum` of IEEE 754-2019.)

#[cfg(feature = "cases")]
pub(crate) mod cases;
mod cpu;
mod gpu;
mod plan;

use crate::device::Lent;
#[cfg(feature = "cases")]
#[doc(hidden)]
pub use crate::single_pass::{Extremum, Moment, Operation, Partition};
use crate::{Buffer, Device, Error};
#[cfg(feature = "cases")]
#[doc(hidden)]
pub use cases::dot_kernel;
pub use gpu::Variant;
pub use plan::{Number, Plan, Reduction, mean_by, norm_by};

/// Computes the sum of a buffer on its device; 0 if it is empty.
///
/// ```
/// use halo_gpu::{Device, Error, reduction};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let values = device.upload(&[u32::MAX, 3, 7])?;
/// assert_eq!(reduction::sum(&values)?, 9); // modulo 2³²
/// assert_eq!((reduction::min(&values)?, reduction::max(&values)?), (3, u32::MAX));
///
/// let none = device.upload::<u32>(&[])?;
/// assert_eq!(reduction::sum(&none)?, 0);
/// assert!(matches!(reduction::min(&none), Err(Error::EmptyInput { .. })));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::OutOfMemory`] for the result and the workspace, and the errors of a launch.
pub fn sum<T: Number>(values: &Buffer<T>) -> Result<T, Error> {
    plan_on(values.device())?.sum(values)
}

/// Finds the least element of a buffer on its device. The result is NaN if any element is NaN; -0
/// is less than +0.
///
/// # Errors
///
/// As for [`sum`], and [`Error::EmptyInput`].
pub fn min<T: Number>(values: &Buffer<T>) -> Result<T, Error> {
    plan_on(values.device())?.min(values)
}

/// Finds the greatest element of a buffer on its device. The result is NaN if any element is NaN;
/// +0 is greater than -0.
///
/// # Errors
///
/// As for [`min`].
pub fn max<T: Number>(values: &Buffer<T>) -> Result<T, Error> {
    plan_on(values.device())?.max(values)
}

/// The index of the first least element of a buffer; if there is a NaN, that of the first NaN.
///
/// ```
/// use halo_gpu::{Device, reduction};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let values = Device::emulator().upload(&[2.5_f32, -1.0, 4.0, -1.0])?;
/// assert_eq!(reduction::argmin(&values)?, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As for [`min`].
pub fn argmin<T: Number>(values: &Buffer<T>) -> Result<u64, Error> {
    plan_on(values.device())?.argmin(values)
}

/// The index of the first greatest element of a buffer; if there is a NaN, that of the first NaN.
///
/// ```
/// use halo_gpu::{Device, reduction};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let values = Device::cpu().upload(&[1.0, f64::NAN, 4.0, f64::NAN])?;
/// assert_eq!(reduction::argmax(&values)?, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As for [`min`].
pub fn argmax<T: Number>(values: &Buffer<T>) -> Result<u64, Error> {
    plan_on(values.device())?.argmax(values)
}

/// The mean of a buffer, Σ x / n, summed in f64 ([`Plan::mean`]).
///
/// ```
/// use halo_gpu::{Device, reduction};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let values = Device::cpu().upload(&[f64::MAX, f64::MAX])?;
/// assert_eq!(reduction::mean(&values)?, f64::MAX);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As for [`min`].
pub fn mean<T: Number>(values: &Buffer<T>) -> Result<f64, Error> {
    plan_on(values.device())?.mean(values)
}

/// The L2 norm of a buffer, √(Σ x²), summed in f64 and safe from overflow
/// ([`Plan::norm`]); 0 if it is empty.
///
/// ```
/// use halo_gpu::{Device, reduction};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let values = Device::emulator().upload(&[3e200, -4e200])?;
/// assert!((reduction::norm(&values)? / 5e200 - 1.0).abs() < 1e-15);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As for [`sum`].
pub fn norm<T: Number>(values: &Buffer<T>) -> Result<f64, Error> {
    plan_on(values.device())?.norm(values)
}

/// The dot product Σ x y of two buffers of the same device and length, in 64 bits ([`Plan::dot`]);
/// 0 if they are empty.
///
/// ```
/// use halo_gpu::{Device, reduction};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let (x, y) = (device.upload(&[1_i32, 2, 3])?, device.upload(&[4, -5, 6])?);
/// assert_eq!(reduction::dot(&x, &y)?, 12_i64);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As for [`sum`]; [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] if `y` does not fit `x`.
pub fn dot<T: Number>(x: &Buffer<T>, y: &Buffer<T>) -> Result<T::Product, Error> {
    plan_on(x.device())?.dot(x, y)
}

/// The index of the first least element of a slice, found on `device`; see [`argmin`].
///
/// # Errors
///
/// As for [`min_of`].
pub fn argmin_of<T: Number>(device: &Device, values: &[T]) -> Result<u64, Error> {
    argmin(Lent::new(device, values)?.as_buffer())
}

/// The index of the first greatest element of a slice, found on `device`; see [`argmax`].
///
/// # Errors
///
/// As for [`max_of`].
pub fn argmax_of<T: Number>(device: &Device, values: &[T]) -> Result<u64, Error> {
    argmax(Lent::new(device, values)?.as_buffer())
}

/// The mean of a slice, computed on `device`; see [`mean`].
///
/// # Errors
///
/// As for [`min_of`].
pub fn mean_of<T: Number>(device: &Device, values: &[T]) -> Result<f64, Error> {
    mean(Lent::new(device, values)?.as_buffer())
}

/// The L2 norm of a slice, computed on `device`; see [`norm`].
///
/// # Errors
///
/// As for [`sum_of`].
pub fn norm_of<T: Number>(device: &Device, values: &[T]) -> Result<f64, Error> {
    norm(Lent::new(device, values)?.as_buffer())
}

/// The dot product of two slices of the same length, computed on `device`; see [`dot`].
///
/// # Errors
///
/// As for [`sum_of`], and [`Error::LengthMismatch`].
pub fn dot_of<T: Number>(device: &Device, x: &[T], y: &[T]) -> Result<T::Product, Error> {
    dot(
        Lent::new(device, x)?.as_buffer(),
        Lent::new(device, y)?.as_buffer(),
    )
}

/// The sum of a slice, computed on `device`.
///
/// The CPU reads the slice in place; other devices get a copy.
///
/// All functions on slices are called in the same way:
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::reduction::{
///     argmax_of, argmin_of, dot_of, max_of, mean_of, min_of, norm_of, sum_of,
/// };
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let (device, values) = (Device::cpu(), [3.0_f32, -4.0, 0.0, 12.0]);
/// assert_eq!(sum_of(&device, &values)?, 11.0);
/// assert_eq!((min_of(&device, &values)?, argmin_of(&device, &values)?), (-4.0, 1));
/// assert_eq!((max_of(&device, &values)?, argmax_of(&device, &values)?), (12.0, 3));
/// assert_eq!(mean_of(&device, &values)?, 2.75);
/// assert_eq!(norm_of(&device, &values)?, 13.0);
/// assert_eq!(dot_of(&device, &values, &[1.0, 1.0, 5.0, 0.5])?, 5.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As for [`sum`], and [`Error::OutOfMemory`] for the copy.
pub fn sum_of<T: Number>(device: &Device, values: &[T]) -> Result<T, Error> {
    sum(Lent::new(device, values)?.as_buffer())
}

/// The least element of a slice, found on `device`; see [`sum_of`].
///
/// # Errors
///
/// As for [`min`], and [`Error::OutOfMemory`] for the copy.
pub fn min_of<T: Number>(device: &Device, values: &[T]) -> Result<T, Error> {
    min(Lent::new(device, values)?.as_buffer())
}

/// The greatest element of a slice, found on `device`; see [`sum_of`].
///
/// # Errors
///
/// As for [`max`], and [`Error::OutOfMemory`] for the copy.
pub fn max_of<T: Number>(device: &Device, values: &[T]) -> Result<T, Error> {
    max(Lent::new(device, values)?.as_buffer())
}

fn plan_on<T: Number>(device: &Device) -> Result<Plan<T>, Error> {
    Reduction::new().plan(device)
}
