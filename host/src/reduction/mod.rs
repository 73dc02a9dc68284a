//! Sum, extrema and where they are, mean, L2 norm and dot product of arrays: `i32`,
//! `u32`, `i64`, `u64`, `f32`, `f64`.
//!
//! [`sum`], [`min`], [`max`], [`argmin`], [`argmax`], [`mean`], [`norm`] and [`dot`]
//! reduce a buffer on its device, [`sum_of`] and so on a slice. On a CUDA device and on the emulator that is one launch of
//! a kernel that reads memory as fast as memory goes, and on the CPU a port with the
//! same bits; [`SinglePass`] does it again and again, and without waiting.
//!
//! The four sums of the textbook's ladder can be asked for by name ([`sum_with`],
//! [`Variant`], [`Reduction`]). They leave one partial sum per block, which the host
//! adds.
//!
//! ```
//! use halo_gpu::reduction::{self, Variant};
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
//! assert_eq!(reduction::sum_with(Variant::Shared, 64, &buffer)?, 500_500);
//! # Ok(())
//! # }
//! ```
//!
//! # What is reproducible
//!
//! A sum of floats depends on the order of the additions. Here the order is a
//! function of the **number of elements and of their type**, and of nothing else:
//!
//! - [`sum`], [`mean`], [`norm`], [`dot`], the extrema and [`SinglePass`] give the same
//!   bits on the CPU, on the emulator and on every GPU, with any number of blocks or
//!   threads, every time.
//! - They do not give the bits of another order: a loop from the first element to
//!   the last, another library, the kernels of the textbook, or the sums of two
//!   halves added. One more element can change the order of all. A later version of
//!   this library may choose another order, and will say so.
//!
//! The order is a tree, described with [`single_pass`](gpu_kernels::reduction::single_pass);
//! how far its sum can be from the exact one says [`SinglePass::error_bound`].
//!
//! # What the results are
//!
//! - **No elements**: sum, norm and dot product are 0 (of floats: +0); extrema, where
//!   they are, and the mean are an error, [`Error::EmptyInput`], and so is everything of
//!   [`Reduction`].
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
mod single_pass;

use crate::{Buffer, Device, DeviceKind, Element, Error};
use cpu::{Finish, Port};
use gpu::{Checked, Kernels, ReadOnly, SinglePassKernels};
pub use gpu_kernels::reduction::single_pass::Partition;
pub use gpu_kernels::reduction::{MAX_BLOCK, MIN_BLOCK};
use gpu_kernels::reduction::{UNROLL, additions};
pub use single_pass::SinglePass;
use std::fmt;

/// Threads per block of the textbook's examples.
pub const DEFAULT_BLOCK: u32 = 128;

/// What [`SinglePass`] reduces: `i32`, `u32`, `i64`, `u64`, `f32` and `f64`.
///
/// `Product`, which dot products are, is f64 for `f32` and `f64`, i64 for `i32` and `i64`,
/// u64 for `u32` and `u64`.
pub trait Number: Element + SinglePassKernels + Port {}

impl Number for i32 {}
impl Number for u32 {}
impl Number for i64 {}
impl Number for u64 {}
impl Number for f32 {}
impl Number for f64 {}

/// What the textbook kernels sum: `i32`, wrapping around on overflow, and `f32`.
///
/// Kernels are launched on buffers that have been checked, and in no other way:
///
/// ```compile_fail,E0061
/// use halo_gpu::{Buffer, LaunchConfig, reduction};
///
/// fn f<T: reduction::Summand>(c: &LaunchConfig, v: &mut Buffer<T>, p: &mut Buffer<T>) {
///     T::launch_in_place(c, v, p).ok();
/// }
/// ```
pub trait Summand: Number + Kernels + Finish {}

impl Summand for i32 {}
impl Summand for f32 {}

/// What [`SinglePass`] computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The sum.
    Sum,
    /// The least element.
    Min,
    /// The greatest element.
    Max,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sum, Self::Min, Self::Max];

    /// Its name: `sum`, `min` or `max`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// The name that errors speak of.
    const fn full_name(self) -> &'static str {
        match self {
            Self::Sum => "reduction: sum",
            Self::Min => "reduction: min",
            Self::Max => "reduction: max",
        }
    }

    /// The entry point that computes it of elements of `T`, as in the PTX:
    /// `reduction_single_pass_sum_f32` and so on. Sums of unsigned integers are those
    /// of signed ones.
    #[must_use]
    pub fn kernel<T: Number>(self) -> &'static str {
        T::single_pass(self)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which extreme element is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extremum {
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl Extremum {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Min, Self::Max];

    /// The entry point that finds it among elements of `T`, as in the PTX:
    /// `reduction_arg_extremum_f32` and so on. Signed integers are looked for by the
    /// kernels of unsigned ones.
    #[must_use]
    pub const fn kernel<T: Number>(self) -> &'static str {
        T::ARG_EXTREMUM
    }

    const fn full_name(self) -> &'static str {
        match self {
            Self::Min => "reduction: argmin",
            Self::Max => "reduction: argmax",
        }
    }
}

/// What is summed in f64: the elements or their squares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The elements, for a mean.
    First,
    /// Their squares, for a norm.
    Second,
}

impl Moment {
    /// Both.
    pub const ALL: [Self; 2] = [Self::First, Self::Second];

    /// The entry point that sums elements of `T`, as in the PTX: `reduction_moment_f32`
    /// and so on.
    #[must_use]
    pub const fn kernel<T: Number>(self) -> &'static str {
        T::MOMENT
    }

    const fn full_name(self) -> &'static str {
        match self {
            Self::First => "reduction: first moment",
            Self::Second => "reduction: second moment",
        }
    }
}

/// The entry point of dot products of elements of `T`, as in the PTX:
/// `reduction_dot_f32` and so on. Those of `u64` are those of `i64`.
#[must_use]
pub const fn dot_kernel<T: Number>() -> &'static str {
    T::DOT
}

/// One of the textbook kernels. Each exists for `i32` and for `f32`.
///
/// | kernel | where a block adds | elements per block |
/// |---|---|---|
/// | `reduction_global` | in the input itself | `block` |
/// | `reduction_shared` | in static shared memory | `block` |
/// | `reduction_shared_unroll4` | the same; before, each thread adds 4 elements that lie `block` apart | `4 * block` |
/// | `reduction_shared_unroll4_dynamic` | the same in dynamic shared memory | `4 * block` |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// `reduction_global`. The kernel destroys its input; the library gives it a
    /// copy, except in [`Reduction::partials_in_place`].
    Global,
    /// `reduction_shared`.
    Shared,
    /// `reduction_shared_unroll4`.
    SharedUnroll4,
    /// `reduction_shared_unroll4_dynamic`.
    SharedUnroll4Dynamic,
}

impl Variant {
    /// The four steps of the ladder, in order.
    pub const ALL: [Self; 4] = [
        Self::Global,
        Self::Shared,
        Self::SharedUnroll4,
        Self::SharedUnroll4Dynamic,
    ];

    /// The kernel's name without the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "reduction_global",
            Self::Shared => "reduction_shared",
            Self::SharedUnroll4 => "reduction_shared_unroll4",
            Self::SharedUnroll4Dynamic => "reduction_shared_unroll4_dynamic",
        }
    }

    /// The kernel's entry point for elements of `T`, as in the PTX: the name with
    /// `_i32` or `_f32`.
    #[must_use]
    pub fn kernel<T: Summand>(self) -> &'static str {
        T::kernel(self)
    }

    /// Elements that one thread adds before its block does: 1 or 4.
    #[must_use]
    pub const fn elements_per_thread(self) -> u32 {
        match self {
            Self::Global | Self::Shared => 1,
            Self::SharedUnroll4 | Self::SharedUnroll4Dynamic => UNROLL,
        }
    }

    /// The kernel without the one that destroys its input.
    const fn read_only(self) -> Option<ReadOnly> {
        match self {
            Self::Global => None,
            Self::Shared => Some(ReadOnly::Shared),
            Self::SharedUnroll4 => Some(ReadOnly::SharedUnroll4),
            Self::SharedUnroll4Dynamic => Some(ReadOnly::SharedUnroll4Dynamic),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
    SinglePass::new(values.device()).sum(values)
}

/// The least element of a buffer, found on its device. NaN if there is one; -0 is
/// less than +0.
///
/// # Errors
///
/// As [`sum`], and [`Error::EmptyInput`].
pub fn min<T: Number>(values: &Buffer<T>) -> Result<T, Error> {
    SinglePass::new(values.device()).min(values)
}

/// The greatest element of a buffer, found on its device. NaN if there is one; +0 is
/// greater than -0.
///
/// # Errors
///
/// As [`min`].
pub fn max<T: Number>(values: &Buffer<T>) -> Result<T, Error> {
    SinglePass::new(values.device()).max(values)
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
    SinglePass::new(values.device()).argmin(values)
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
    SinglePass::new(values.device()).argmax(values)
}

/// The mean of a buffer, Σ x / n, summed in f64 ([`SinglePass::mean`]).
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
    SinglePass::new(values.device()).mean(values)
}

/// The L2 norm of a buffer, √(Σ x²), summed in f64 and safe from overflow
/// ([`SinglePass::norm`]); 0 if it is empty.
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
    SinglePass::new(values.device()).norm(values)
}

/// The dot product Σ x y of two buffers of one device and one length, in 64 bits
/// ([`SinglePass::dot`]); 0 if they are empty.
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
    SinglePass::new(x.device()).dot(x, y)
}

/// The index of the first least element of a slice, found on `device`, which gets a
/// copy; see [`argmin`].
///
/// # Errors
///
/// As [`min_of`].
pub fn argmin_of<T: Number>(device: &Device, values: &[T]) -> Result<u64, Error> {
    argmin(&device.upload(values)?)
}

/// The index of the first greatest element of a slice, found on `device`, which gets a
/// copy; see [`argmax`].
///
/// # Errors
///
/// As [`max_of`].
pub fn argmax_of<T: Number>(device: &Device, values: &[T]) -> Result<u64, Error> {
    argmax(&device.upload(values)?)
}

/// The mean of a slice, computed on `device`, which gets a copy; see [`mean`].
///
/// # Errors
///
/// As [`min_of`].
pub fn mean_of<T: Number>(device: &Device, values: &[T]) -> Result<f64, Error> {
    mean(&device.upload(values)?)
}

/// The L2 norm of a slice, computed on `device`, which gets a copy; see [`norm`].
///
/// # Errors
///
/// As [`sum_of`].
pub fn norm_of<T: Number>(device: &Device, values: &[T]) -> Result<f64, Error> {
    norm(&device.upload(values)?)
}

/// The dot product of two slices of one length, computed on `device`, which gets copies;
/// see [`dot`].
///
/// # Errors
///
/// As [`sum_of`], and [`Error::LengthMismatch`].
pub fn dot_of<T: Number>(device: &Device, x: &[T], y: &[T]) -> Result<T::Product, Error> {
    dot(&device.upload(x)?, &device.upload(y)?)
}

/// The sum of a slice, computed on `device`.
///
/// On the CPU the slice is read where it is; other devices get a copy.
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
    reduce_slice(Operation::Sum, device, values)
}

/// The least element of a slice, found on `device`; see [`sum_of`].
///
/// # Errors
///
/// As [`min`], and [`Error::OutOfMemory`] for the copy.
pub fn min_of<T: Number>(device: &Device, values: &[T]) -> Result<T, Error> {
    reduce_slice(Operation::Min, device, values)
}

/// The greatest element of a slice, found on `device`; see [`sum_of`].
///
/// # Errors
///
/// As [`max`], and [`Error::OutOfMemory`] for the copy.
pub fn max_of<T: Number>(device: &Device, values: &[T]) -> Result<T, Error> {
    reduce_slice(Operation::Max, device, values)
}

fn reduce_slice<T: Number>(
    operation: Operation,
    device: &Device,
    values: &[T],
) -> Result<T, Error> {
    if device.kind() == DeviceKind::Cpu && !values.is_empty() {
        return Ok(T::reduce(operation, values));
    }
    SinglePass::new(device).reduce(operation, &device.upload(values)?)
}

/// The sum of a buffer by the given kernel, with blocks of `block` threads.
///
/// # Errors
///
/// As [`Reduction::new`] and [`Reduction::sum`].
pub fn sum_with<T: Summand>(variant: Variant, block: u32, values: &Buffer<T>) -> Result<T, Error> {
    Reduction::new(variant, block)?.sum(values)
}

/// The bytes that a reduction of `n` elements of `T` has to move: each read once.
/// At most `u64::MAX`. Effective bandwidths are this over the time.
#[must_use]
pub const fn bytes<T: Number>(n: usize) -> u64 {
    (n as u64).saturating_mul(size_of::<T>() as u64)
}

/// The additions in the sum of `n` elements, or the comparisons for an extremum.
#[must_use]
pub const fn flops(n: usize) -> u64 {
    (n as u64).saturating_sub(1)
}

/// A kernel and its block: how a sum is computed where it is computed by a kernel.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::reduction::{Reduction, Variant};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let reduction = Reduction::new(Variant::SharedUnroll4, 32)?; // 128 elements per block
/// let values = device.upload(&[0.25_f32; 300])?;
/// let mut partials = device.alloc_filled(reduction.partials_len(values.len())?, 0.0)?;
/// reduction.partials(&values, &mut partials)?;
/// assert_eq!(partials.to_vec()?, [32.0, 32.0, 11.0]);
/// assert_eq!(Reduction::finish(&partials.to_vec()?), 75.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reduction {
    variant: Variant,
    block: u32,
}

/// `reduction_shared_unroll4` with blocks of 128 threads.
impl Default for Reduction {
    fn default() -> Self {
        Self {
            variant: Variant::SharedUnroll4,
            block: DEFAULT_BLOCK,
        }
    }
}

impl Reduction {
    /// By the given kernel, with blocks of `block` threads.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] unless `block` is 32, 64, 128, 256, 512 or 1024.
    pub fn new(variant: Variant, block: u32) -> Result<Self, Error> {
        if !block.is_power_of_two() || !(MIN_BLOCK..=MAX_BLOCK).contains(&block) {
            return Err(Error::InvalidSize {
                operation: variant.name(),
                axis: "block",
                given: block as usize,
                required: format!("a power of two from {MIN_BLOCK} to {MAX_BLOCK}"),
            });
        }
        Ok(Self { variant, block })
    }

    /// The kernel.
    #[must_use]
    pub const fn variant(&self) -> Variant {
        self.variant
    }

    /// Threads per block.
    #[must_use]
    pub const fn block(&self) -> u32 {
        self.block
    }

    /// Elements that one block sums: `block` or `4 * block`.
    #[must_use]
    pub const fn elements_per_block(&self) -> usize {
        self.block as usize * self.variant.elements_per_thread() as usize
    }

    /// How many partial sums `n` elements give: one for each block, also for a
    /// last one that is not full.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`] if `n` is 0.
    pub fn partials_len(&self, n: usize) -> Result<usize, Error> {
        require_some(self.variant.name(), n)?;
        Ok(n.div_ceil(self.elements_per_block()))
    }

    /// The most that an `f32` sum can differ from the exact one, where
    /// `magnitudes` is the sum of the absolute values of the `n` elements.
    ///
    /// An element passes through at most `log2(block)` additions in f32, three
    /// more where a thread adds four elements; then through less than `n`
    /// additions in f64, and the rounding of the total. Each makes a relative
    /// error of at most u = 2⁻²⁴ in f32 and v = 2⁻⁵³ in f64, so that with
    /// s = (additions in f32 + 1) u + (n - 1) v the sum is off by at most
    /// s / (1 - s) · `magnitudes` (Higham, "Accuracy and Stability of Numerical
    /// Algorithms", lemma 3.1). Underflow adds nothing: a sum of floats that is
    /// subnormal is exact.
    ///
    /// It holds while no partial sum leaves the range of f32, and for the port on
    /// the CPU as well, which adds in f64 from the start.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::{Reduction, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let values: Vec<f32> = (1..=1000).map(|n| 1.0 / n as f32).collect();
    /// let exact: f64 = values.iter().map(|&x| f64::from(x)).sum();
    /// let reduction = Reduction::new(Variant::Shared, 64)?;
    /// let sum = reduction.sum(&Device::emulator().upload(&values)?)?;
    /// let bound = reduction.error_bound(1000, exact);
    /// assert!((f64::from(sum) - exact).abs() <= bound && bound < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn error_bound(&self, n: usize, magnitudes: f64) -> f64 {
        let u = f64::from(f32::EPSILON) / 2.0;
        let v = f64::EPSILON / 2.0;
        let in_f32 = additions(self.block, self.variant.elements_per_thread()) + 1;
        let in_f64 = n.saturating_sub(1);
        let s = f64::from(in_f32) * u + in_f64 as f64 * v;
        s / (1.0 - s) * magnitudes
    }

    /// The sum of a buffer, by this kernel.
    ///
    /// `values` stays as it was: `reduction_global` gets a copy.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`]; [`Error::NotLaunchable`] if the buffer is on the CPU
    /// device, which runs no kernels; [`Error::OutOfMemory`] for the partial sums
    /// and the copy; [`Error::LaunchLimit`] for more blocks than the device's
    /// grids have, or more threads per block; and what else a launch can fail with.
    pub fn sum<T: Summand>(&self, values: &Buffer<T>) -> Result<T, Error> {
        let len = self.partials_len(values.len())?;
        // Before anything is allocated.
        self.launch_config::<T>(values.device(), values.len())?;
        let mut partials = values.device().alloc_filled(len, T::zeroed())?;
        self.partials(values, &mut partials)?;
        Ok(Self::finish(&partials.to_vec()?))
    }

    /// The partial sums of a buffer, one for each block, into `partials`.
    ///
    /// Partial sum b is that of the elements from `b * elements_per_block` on.
    /// `values` stays as it was: `reduction_global` gets a copy, made on the
    /// device.
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum); [`Error::LengthMismatch`] unless `partials` has
    /// [`partials_len`](Self::partials_len) elements; [`Error::DeviceMismatch`]
    /// if it is on another device.
    pub fn partials<T: Summand>(
        &self,
        values: &Buffer<T>,
        partials: &mut Buffer<T>,
    ) -> Result<(), Error> {
        // Before anything is copied.
        let checked = Checked::new(self, values, &mut *partials)?;
        match self.variant.read_only() {
            Some(variant) => T::launch(variant, checked),
            None => {
                let mut copy = values.try_clone()?;
                T::launch_in_place(Checked::new(self, &mut copy, partials)?)
            }
        }
    }

    /// [`partials`](Self::partials), but `reduction_global` works in `values`
    /// itself and leaves it **destroyed**: the first element of each block's part
    /// is then the part's sum, the others are what the steps left there. The other
    /// kernels leave `values` as it was.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::{Reduction, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let reduction = Reduction::new(Variant::Global, 32)?;
    /// let mut values = device.upload(&[1_i32; 70])?;
    /// let mut partials = device.alloc_filled(3, 0)?;
    /// reduction.partials_in_place(&mut values, &mut partials)?;
    /// assert_eq!(partials.to_vec()?, [32, 32, 6]);
    /// let values = values.to_vec()?;
    /// assert_eq!([values[0], values[32], values[64]], [32, 32, 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`partials`](Self::partials).
    pub fn partials_in_place<T: Summand>(
        &self,
        values: &mut Buffer<T>,
        partials: &mut Buffer<T>,
    ) -> Result<(), Error> {
        match self.variant.read_only() {
            Some(variant) => T::launch(variant, Checked::new(self, &*values, partials)?),
            None => T::launch_in_place(Checked::new(self, values, partials)?),
        }
    }

    /// The sum of partial sums, on the host and in their order: `i32` wrapping
    /// around, `f32` added in f64 and rounded once.
    #[must_use]
    pub fn finish<T: Summand>(partials: &[T]) -> T {
        T::finish(partials)
    }

    fn check<T: Kernels>(
        &self,
        values: &Buffer<T>,
        partials: &Buffer<T>,
    ) -> Result<crate::LaunchConfig, Error> {
        let required = self.partials_len(values.len())?;
        if partials.len() != required {
            return Err(Error::LengthMismatch {
                what: format!("{}: partials", T::kernel(self.variant)),
                required,
                given: partials.len(),
            });
        }
        values.device().require("reduction: partials", partials)?;
        self.launch_config::<T>(values.device(), values.len())
    }
}

fn require_some(operation: &'static str, n: usize) -> Result<(), Error> {
    if n == 0 {
        return Err(Error::EmptyInput { operation });
    }
    Ok(())
}
