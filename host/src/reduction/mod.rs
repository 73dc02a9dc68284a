//! Sum, extrema and where they are, mean, L2 norm and dot product of arrays: `i32`,
//! `u32`, `i64`, `u64`, `f32`, `f64`.
//!
//! [`sum`], [`min`], [`max`], [`argmin`], [`argmax`], [`mean`], [`norm`] and [`dot`]
//! reduce a buffer on its device, [`sum_of`] and so on a slice on the device they are given.
//! On a CUDA device and on the emulator that is one launch of a kernel that reads memory as
//! fast as memory goes, and on the CPU a port with the same bits. A [`Plan`] does it again
//! and again without allocating, and leaves the result on the device without waiting.
//!
//! The four sums of the textbook's ladder can be asked for by name ([`Variant`],
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
//! # What is reproducible
//!
//! A sum of floats depends on the order of the additions. Here the order is a
//! function of the **number of elements and of their type**, and of nothing else:
//!
//! - [`sum`], [`mean`], [`norm`], [`dot`], the extrema and a [`Plan`] give the same
//!   bits on the CPU, on the emulator and on every GPU, with any number of blocks or
//!   threads, every time.
//! - They do not give the bits of another order: a loop from the first element to
//!   the last, another library, the kernels of the textbook, or the sums of two
//!   halves added. One more element can change the order of all. A later version of
//!   this library may choose another order, and will say so.
//!
//! The order is a tree, described with [`single_pass`](gpu_kernels::reduction::single_pass);
//! how far its sum can be from the exact one says [`Plan::error_bound`].
//!
//! # What the results are
//!
//! - **No elements**: sum, norm and dot product are 0 (of floats: +0); extrema, where
//!   they are, and the mean are an error, [`Error::EmptyInput`], and so are the sums of the
//!   textbook's kernels.
//! - **Extrema**: [`argmin`] and [`argmax`] give the index of the first element that is
//!   the minimum or the maximum, as below.
//! - **Means and norms** are f64, summed in f64. They do not overflow where the result
//!   itself does not, and underflow costs a norm nothing.
//! - **Dot products** are [`Product`](Number): f64 for floats, where those of `f32` do
//!   not overflow; `i64` or `u64` for integers, right modulo 2⁶⁴.
//! - Sums of **integers** wrap around on overflow: they are right modulo 2³² or 2⁶⁴.
//! - **Float** sums are made in the type itself. Where a partial sum leaves its range
//!   it is infinite, also if the total would be in range again. A sum of zeros alone
//!   is -0 if all of them are, else +0.
//! - **NaN** anywhere makes sum, minimum, maximum, mean, norm and dot product NaN: the
//!   one that [`f32::NAN`] or [`f64::NAN`] is. So do infinities of both signs in a sum.
//!   [`argmin`] and [`argmax`] find the first NaN.
//! - **Zeros**: -0 is less than +0. So the minimum of both is -0, the maximum +0.
//!   (These are the operations `minimum` and `maximum` of IEEE 754-2019.)

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

/// The sum of a buffer, computed on its device; 0 if it is empty.
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
/// [`Error::OutOfMemory`] for the result and the workspace; and what a launch can
/// fail with.
pub fn sum<T: Number>(values: &Buffer<T>) -> Result<T, Error> {
    plan_on(values.device())?.sum(values)
}

/// The least element of a buffer, found on its device. NaN if there is one; -0 is
/// less than +0.
///
/// # Errors
///
/// As [`sum`], and [`Error::EmptyInput`].
pub fn min<T: Number>(values: &Buffer<T>) -> Result<T, Error> {
    plan_on(values.device())?.min(values)
}

/// The greatest element of a buffer, found on its device. NaN if there is one; +0 is
/// greater than -0.
///
/// # Errors
///
/// As [`min`].
pub fn max<T: Number>(values: &Buffer<T>) -> Result<T, Error> {
    plan_on(values.device())?.max(values)
}

/// The index of the first least element of a buffer, or of the first NaN.
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
/// As [`min`].
pub fn argmin<T: Number>(values: &Buffer<T>) -> Result<u64, Error> {
    plan_on(values.device())?.argmin(values)
}

/// The index of the first greatest element of a buffer, or of the first NaN.
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
/// As [`min`].
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
/// As [`min`].
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
/// As [`sum`].
pub fn norm<T: Number>(values: &Buffer<T>) -> Result<f64, Error> {
    plan_on(values.device())?.norm(values)
}

/// The dot product Σ x y of two buffers of one device and one length, in 64 bits
/// ([`Plan::dot`]); 0 if they are empty.
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
/// As [`sum`]; [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for a `y` that
/// does not fit `x`.
pub fn dot<T: Number>(x: &Buffer<T>, y: &Buffer<T>) -> Result<T::Product, Error> {
    plan_on(x.device())?.dot(x, y)
}

/// The index of the first least element of a slice, found on `device`;
/// see [`argmin`].
///
/// # Errors
///
/// As [`min_of`].
pub fn argmin_of<T: Number>(device: &Device, values: &[T]) -> Result<u64, Error> {
    argmin(Lent::new(device, values)?.as_buffer())
}

/// The index of the first greatest element of a slice, found on `device`;
/// see [`argmax`].
///
/// # Errors
///
/// As [`max_of`].
pub fn argmax_of<T: Number>(device: &Device, values: &[T]) -> Result<u64, Error> {
    argmax(Lent::new(device, values)?.as_buffer())
}

/// The mean of a slice, computed on `device`; see [`mean`].
///
/// # Errors
///
/// As [`min_of`].
pub fn mean_of<T: Number>(device: &Device, values: &[T]) -> Result<f64, Error> {
    mean(Lent::new(device, values)?.as_buffer())
}

/// The L2 norm of a slice, computed on `device`; see [`norm`].
///
/// # Errors
///
/// As [`sum_of`].
pub fn norm_of<T: Number>(device: &Device, values: &[T]) -> Result<f64, Error> {
    norm(Lent::new(device, values)?.as_buffer())
}

/// The dot product of two slices of one length, computed on `device`;
/// see [`dot`].
///
/// # Errors
///
/// As [`sum_of`], and [`Error::LengthMismatch`].
pub fn dot_of<T: Number>(device: &Device, x: &[T], y: &[T]) -> Result<T::Product, Error> {
    dot(
        Lent::new(device, x)?.as_buffer(),
        Lent::new(device, y)?.as_buffer(),
    )
}

/// The sum of a slice, computed on `device`.
///
/// On the CPU the slice is read in place; other devices get a copy.
///
/// All functions of slices are called alike:
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
/// As [`sum`], and [`Error::OutOfMemory`] for the copy.
pub fn sum_of<T: Number>(device: &Device, values: &[T]) -> Result<T, Error> {
    sum(Lent::new(device, values)?.as_buffer())
}

/// The least element of a slice, found on `device`; see [`sum_of`].
///
/// # Errors
///
/// As [`min`], and [`Error::OutOfMemory`] for the copy.
pub fn min_of<T: Number>(device: &Device, values: &[T]) -> Result<T, Error> {
    min(Lent::new(device, values)?.as_buffer())
}

/// The greatest element of a slice, found on `device`; see [`sum_of`].
///
/// # Errors
///
/// As [`max`], and [`Error::OutOfMemory`] for the copy.
pub fn max_of<T: Number>(device: &Device, values: &[T]) -> Result<T, Error> {
    max(Lent::new(device, values)?.as_buffer())
}

fn plan_on<T: Number>(device: &Device) -> Result<Plan<T>, Error> {
    Reduction::new().plan(device)
}
