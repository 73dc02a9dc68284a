//! The textbook's sums, kernel by kernel: [`Reduction`].

use super::cpu::Finish;
use super::gpu::{self, How, PartialSumKernels, Variant};
use crate::single_pass::Number;
use crate::{Buffer, Error};
use gpu_kernels::reduction::additions;

/// What the textbook kernels sum: `i32`, wrapping around on overflow, and `f32`.
///
/// Kernels are launched on buffers that have been checked, and in no other way:
///
/// ```compile_fail,E0061
/// use halo_gpu::{Buffer, reduction};
///
/// fn f<T: reduction::Summand>(values: &mut Buffer<T>, partials: &mut Buffer<T>) {
///     T::launch_partials(values, partials).ok();
/// }
/// ```
pub trait Summand: Number + PartialSumKernels + Finish {}

impl Summand for i32 {}
impl Summand for f32 {}

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
///
/// The default is `reduction_shared_unroll4` with blocks of 128 threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Reduction {
    how: How,
}

impl Reduction {
    /// By the given kernel, with blocks of `block` threads.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] unless `block` is 32, 64, 128, 256, 512 or 1024.
    pub fn new(variant: Variant, block: u32) -> Result<Self, Error> {
        let how = How::new(variant, block)?;
        Ok(Self { how })
    }

    /// The kernel.
    #[must_use]
    pub const fn variant(&self) -> Variant {
        self.how.variant()
    }

    /// Threads per block.
    #[must_use]
    pub const fn block(&self) -> u32 {
        self.how.block()
    }

    /// Elements that one block sums: `block` or `4 * block`.
    #[must_use]
    pub const fn elements_per_block(&self) -> usize {
        self.how.elements_per_block()
    }

    /// How many partial sums `n` elements give: one for each block, also for a
    /// last one that is not full.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`] if `n` is 0.
    pub fn partials_len(&self, n: usize) -> Result<usize, Error> {
        self.how.partials_len(n)
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
        let in_f32 = additions(self.block(), self.variant().elements_per_thread()) + 1;
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
        self.how
            .check_geometry::<T>(values.device(), values.len())?;
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
        gpu::partials(self.how, values, partials)
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
        gpu::partials_in_place(self.how, values, partials)
    }

    /// The sum of partial sums, on the host and in their order: `i32` wrapping
    /// around, `f32` added in f64 and rounded once.
    #[must_use]
    pub fn finish<T: Summand>(partials: &[T]) -> T {
        T::finish(partials)
    }
}

impl Variant {
    /// The kernel's entry point for elements of `T`, as in the PTX: the name with
    /// `_i32` or `_f32`.
    #[must_use]
    pub fn kernel<T: Summand>(self) -> &'static str {
        self.entry::<T>().name
    }
}
