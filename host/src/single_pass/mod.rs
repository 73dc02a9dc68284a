//! Reductions by one launch each: [`SinglePass`].
//!
//! They are the family [`reduction`](crate::reduction)'s, and stand here for all families
//! that reduce what they have computed.

mod cpu;
mod gpu;
mod kinds;
mod number;
mod reduce;

use crate::{Buffer, Device, Element, Error};
use bytemuck::Zeroable;
use gpu::Workspace;
pub use gpu_kernels::reduction::partition::Partition;
pub use kinds::{Extremum, Moment, Operation};
pub use number::{Number, dot_kernel};
use reduce::Reduce;

/// Reductions of buffers of one device, each by a single launch of a kernel, or by a port
/// on the CPU.
///
/// [`sum`](crate::reduction::sum), [`dot`](crate::reduction::dot) and the other functions make one of these
/// for every call. Keep one where there are many: it holds the workspace of the
/// kernels, a few kilobytes, and [`launch`](Self::launch) does not wait.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::reduction::{Operation, SinglePass};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator(); // or Device::cuda(0)?, or Device::cpu()
/// let mut reductions = SinglePass::new(&device);
/// let values = device.upload(&[3.5_f32, -1.0, 0.25])?;
/// assert_eq!(reductions.sum(&values)?, 2.75);
/// assert_eq!(reductions.min(&values)?, -1.0);
/// assert_eq!(reductions.argmin(&values)?, 1);
/// assert_eq!(reductions.dot(&values, &values)?, 13.3125);
///
/// // Queued, the result staying on the device:
/// let mut greatest = device.alloc_filled(1, 0.0)?;
/// reductions.launch(Operation::Max, &values, &mut greatest)?;
/// assert_eq!(greatest.to_vec()?, [3.5]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SinglePass<T: Number> {
    device: Device,
    blocks: u32,
    tiles: Option<u32>,
    workspace: Workspace,
    result: Option<Buffer<T>>,
}

impl<T: Number> SinglePass<T> {
    /// For buffers of this device.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            blocks: device.limits().grid.x,
            tiles: None,
            workspace: Workspace::default(),
            result: None,
        }
    }

    /// The same with at most `blocks` blocks in a launch (0 counts as 1).
    ///
    /// Without it there is a block for every chunk of the tree. No result depends on
    /// it; what it does is leave a part of the device to others.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::SinglePass;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let values: Vec<f32> = (1..=20_000).map(|n| 1.0 / n as f32).collect();
    /// let values = device.upload(&values)?;
    /// let by_many = SinglePass::new(&device).sum(&values)?;
    /// let by_one = SinglePass::new(&device).with_blocks(1).sum(&values)?;
    /// assert_eq!(by_one.to_bits(), by_many.to_bits());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_blocks(mut self, blocks: u32) -> Self {
        self.blocks = blocks.clamp(1, self.device.limits().grid.x.max(1));
        self
    }

    /// The same with at most so many blocks, also with more than the device's grids have,
    /// which it then refuses.
    #[cfg(feature = "cases")]
    pub(crate) fn with_any_blocks(mut self, blocks: u32) -> Self {
        self.blocks = blocks;
        self
    }

    /// The same with chunks of `tiles` tiles: **another tree**, and other bits.
    ///
    /// For tests, which come to the trees of huge arrays with small ones.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tiles(mut self, tiles: u32) -> Self {
        self.tiles = Some(tiles.max(1));
        self
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The sum; 0 if there are no elements.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] if the buffer is on another device;
    /// [`Error::OutOfMemory`] for the workspace; and what a launch can fail with.
    pub fn sum(&mut self, values: &Buffer<T>) -> Result<T, Error> {
        self.reduce(Operation::Sum, values)
    }

    /// The least element. NaN if there is one; -0 is less than +0.
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum), and [`Error::EmptyInput`].
    pub fn min(&mut self, values: &Buffer<T>) -> Result<T, Error> {
        self.reduce(Operation::Min, values)
    }

    /// The greatest element. NaN if there is one; +0 is greater than -0.
    ///
    /// # Errors
    ///
    /// As [`min`](Self::min).
    pub fn max(&mut self, values: &Buffer<T>) -> Result<T, Error> {
        self.reduce(Operation::Max, values)
    }

    /// One of the three. Waits for the result.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::{Operation, SinglePass};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let values = device.upload(&[3_i64, -1, 5])?;
    /// let mut reductions = SinglePass::new(&device);
    /// let all = Operation::ALL.map(|operation| reductions.reduce(operation, &values));
    /// assert_eq!(all.map(Result::ok), [Some(7), Some(-1), Some(5)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`min`](Self::min); a sum of nothing is no error.
    pub fn reduce(&mut self, operation: Operation, values: &Buffer<T>) -> Result<T, Error> {
        let mut result = match self.result.take() {
            Some(result) => result,
            None => self.device.alloc_filled(1, T::zeroed())?,
        };
        let outcome = self.launch(operation, values, &mut result);
        let mut value = [T::zeroed()];
        let outcome = outcome.and_then(|()| result.copy_to_slice(&mut value));
        self.result = Some(result);
        outcome.map(|()| value[0])
    }

    /// One of the three into `result`, a buffer of one element.
    ///
    /// On a CUDA device this queues one launch and does not wait for it.
    ///
    /// # Errors
    ///
    /// As [`reduce`](Self::reduce); [`Error::LengthMismatch`] unless `result` has one
    /// element, [`Error::DeviceMismatch`] if it is on another device.
    pub fn launch(
        &mut self,
        operation: Operation,
        values: &Buffer<T>,
        result: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.run(Reduce::Elements {
            operation,
            values,
            result,
        })
    }

    /// The mean, Σ x / n, in f64.
    ///
    /// The elements are summed in f64, in the order of the tree, and the sum divided by
    /// n: off by at most [`f64_error_bound`](Self::f64_error_bound) over n. Where the sum
    /// leaves the range of f64 the elements are summed once more, 2⁶⁴ times smaller; so
    /// the mean of finite numbers is finite. NaN where there is one, or infinities of
    /// both signs.
    ///
    /// # Errors
    ///
    /// As [`min`](Self::min).
    pub fn mean(&mut self, values: &Buffer<T>) -> Result<f64, Error> {
        const OPERATION: &str = "reduction: mean";
        // Less than 2⁶⁴ elements, none of which is 2¹⁰²⁴ or more.
        const SMALLER: f64 = 1.0 / 18_446_744_073_709_551_616.0;
        self.device.require("reduction: values", values)?;
        if values.is_empty() {
            return Err(Error::EmptyInput {
                operation: OPERATION,
            });
        }
        let n = values.len() as f64;
        let sum = self.moment(Moment::First, 1.0, values)?;
        if sum.is_finite() {
            return Ok(sum / n);
        }
        let sum = self.moment(Moment::First, SMALLER, values)?;
        let mean = sum / n / SMALLER;
        // Of finite numbers only rounding can lead beyond the largest.
        Ok(if sum.is_finite() {
            mean.clamp(f64::MIN, f64::MAX)
        } else {
            mean
        })
    }

    /// The L2 norm, √(Σ x²), in f64; 0 if there are no elements.
    ///
    /// The squares are summed in f64, in the order of the tree. Where their sum is out of
    /// range, or so small that squares may have been lost, they are summed once more with
    /// all elements scaled by 2⁶⁰⁰ or its inverse; so the norm overflows only if it is
    /// itself beyond f64, and underflow costs nothing. It is off by half the relative
    /// error of the sum of squares ([`f64_error_bound`](Self::f64_error_bound)), and a
    /// rounding. Infinite where an element is and none is NaN; NaN where one is.
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum).
    pub fn norm(&mut self, values: &Buffer<T>) -> Result<f64, Error> {
        /// 2⁶⁰⁰: a number 1.0 × 2^e has the bits of e + 1023 above 52 zeros.
        const LARGER: f64 = f64::from_bits((1023 + 600) << 52);
        /// 2⁻⁹⁰⁰. What squares lose to underflow is less than 2⁻¹⁰⁷⁴ each.
        const SMALL: f64 = f64::from_bits((1023 - 900) << 52);
        self.device.require("reduction: values", values)?;
        if values.is_empty() {
            return Ok(0.0);
        }
        let squares = self.moment(Moment::Second, 1.0, values)?;
        let scale = if squares == f64::INFINITY {
            1.0 / LARGER
        } else if squares < SMALL {
            LARGER
        } else {
            return Ok(squares.sqrt());
        };
        Ok(self.moment(Moment::Second, scale, values)?.sqrt() / scale)
    }

    /// The index of the first element that is least. That is the first NaN where there is
    /// one; -0 is less than +0.
    ///
    /// # Errors
    ///
    /// As [`min`](Self::min).
    pub fn argmin(&mut self, values: &Buffer<T>) -> Result<u64, Error> {
        self.position(Extremum::Min, values)
    }

    /// The index of the first element that is greatest. That is the first NaN where there
    /// is one; +0 is greater than -0.
    ///
    /// # Errors
    ///
    /// As [`min`](Self::min).
    pub fn argmax(&mut self, values: &Buffer<T>) -> Result<u64, Error> {
        self.position(Extremum::Max, values)
    }

    /// The dot product Σ x y of two buffers of one length; 0 if they are empty.
    ///
    /// Of floats in f64: each product is rounded once, with the sum that takes it, so
    /// that the result is off by at most [`f64_error_bound`](Self::f64_error_bound) of
    /// Σ |x y|; products of f32 are exact. It is infinite, or NaN, where a partial sum of
    /// products leaves the range of f64, which those of f32 cannot. Of integers in 64
    /// bits, of the same sign, wrapping around.
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum), and [`Error::LengthMismatch`].
    pub fn dot(&mut self, x: &Buffer<T>, y: &Buffer<T>) -> Result<T::Product, Error> {
        let mut result = self.device.alloc_filled(1, T::Product::zeroed())?;
        self.launch_dot(x, y, &mut result)?;
        first_of(&result)
    }

    /// The dot product into `result`, a buffer of one element.
    ///
    /// On a CUDA device this queues one launch and does not wait for it.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::SinglePass;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let (x, y) = (device.upload(&[1.5_f32, 2.0])?, device.upload(&[4.0, -1.0])?);
    /// let mut dot = device.alloc_filled(1, 0.0_f64)?;
    /// SinglePass::new(&device).launch_dot(&x, &y, &mut dot)?;
    /// assert_eq!(dot.to_vec()?, [4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`dot`](Self::dot), and those of [`launch`](Self::launch) about `result`.
    pub fn launch_dot(
        &mut self,
        x: &Buffer<T>,
        y: &Buffer<T>,
        result: &mut Buffer<T::Product>,
    ) -> Result<(), Error> {
        self.run(Reduce::Dot { x, y, result })
    }

    /// The sum of the elements, or of their squares, in f64 and times a scale, into
    /// `result`, a buffer of one element: what [`mean`](Self::mean) and
    /// [`norm`](Self::norm) begin with.
    ///
    /// On a CUDA device this queues one launch and does not wait for it. `scale`
    /// multiplies every element first; it should be a power of two.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::{Moment, SinglePass};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let values = device.upload(&[3.0_f32, -4.0])?;
    /// let mut sum = device.alloc_filled(1, 0.0)?;
    /// let mut reductions = SinglePass::new(&device);
    /// reductions.launch_moment(Moment::First, 1.0, &values, &mut sum)?;
    /// assert_eq!(sum.to_vec()?, [-1.0]);
    /// // Halved first, then squared.
    /// reductions.launch_moment(Moment::Second, 0.5, &values, &mut sum)?;
    /// assert_eq!(sum.to_vec()?, [6.25]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch) of a minimum; [`Error::NonFinite`] for a scale that
    /// is no finite number.
    pub fn launch_moment(
        &mut self,
        moment: Moment,
        scale: f64,
        values: &Buffer<T>,
        result: &mut Buffer<f64>,
    ) -> Result<(), Error> {
        self.run(Reduce::Moment {
            moment,
            scale,
            values,
            result,
        })
    }

    /// The index of the first extreme element into `result`, a buffer of one element.
    ///
    /// On a CUDA device this queues one launch and does not wait for it.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::{Extremum, SinglePass};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let values = device.upload(&[2.0_f64, -1.0, 7.0, -1.0])?;
    /// let mut index = device.alloc_filled(1, u64::MAX)?;
    /// SinglePass::new(&device).launch_position(Extremum::Min, &values, &mut index)?;
    /// assert_eq!(index.to_vec()?, [1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch) of a minimum.
    pub fn launch_position(
        &mut self,
        extremum: Extremum,
        values: &Buffer<T>,
        result: &mut Buffer<u64>,
    ) -> Result<(), Error> {
        self.run(Reduce::Place {
            extremum,
            values,
            result,
        })
    }

    fn moment(&mut self, moment: Moment, scale: f64, values: &Buffer<T>) -> Result<f64, Error> {
        let mut result = self.device.alloc_filled(1, 0.0)?;
        self.launch_moment(moment, scale, values, &mut result)?;
        first_of(&result)
    }

    fn position(&mut self, extremum: Extremum, values: &Buffer<T>) -> Result<u64, Error> {
        let mut result = self.device.alloc_filled(1, 0)?;
        self.launch_position(extremum, values, &mut result)?;
        first_of(&result)
    }

    fn run(&mut self, reduce: Reduce<'_, T>) -> Result<(), Error> {
        let checked = reduce.check(&self.device)?;
        match checked.and_then(|checked| checked.on_host()) {
            None => Ok(()),
            Some(checked) => self.workspace.launch(checked, self.tiles, self.blocks),
        }
    }

    /// The most that a sum of `n` floats can differ from the exact one, where
    /// `magnitudes` is the sum of their absolute values; 0 for integers.
    ///
    /// An element passes through at most d additions ([`Partition::depth`]), each of
    /// which makes a relative error of at most u, which is 2⁻²⁴ for `f32` and 2⁻⁵³ for
    /// `f64`. So the sum is off by at most d u / (1 - d u) · `magnitudes` (Higham,
    /// "Accuracy and Stability of Numerical Algorithms", lemma 3.1). Underflow adds
    /// nothing: a sum of floats that is subnormal is exact. It holds while no partial
    /// sum leaves the range of the type.
    ///
    /// d is 18 for 2¹⁴ floats of 32 bits, 25 for 2²⁰, 150 for 2³⁰.
    ///
    /// ```
    /// use halo_gpu::reduction::SinglePass;
    ///
    /// let bound = SinglePass::<f32>::error_bound(1 << 20, 1.0);
    /// assert!((bound - 25.0 / 2_f64.powi(24)).abs() < 1e-11);
    /// ```
    #[must_use]
    pub fn error_bound(n: usize, magnitudes: f64) -> f64 {
        let additions = Partition::of(n, size_of::<T>()).depth();
        let s = f64::from(additions) * T::ROUNDOFF;
        s / (1.0 - s) * magnitudes
    }

    /// The most that a [`dot`](Self::dot) product of `n` floats, or a sum that
    /// [`launch_moment`](Self::launch_moment) makes, can differ from the exact one,
    /// where `magnitudes` is the sum of the absolute values of the terms.
    ///
    /// As [`error_bound`](Self::error_bound), with f64 for the type of the sums: a term
    /// is rounded at most twice more (integers of 64 bits on their way to f64, products
    /// in f64), and u is 2⁻⁵³.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::{SinglePass, dot_of};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let x: Vec<f32> = (1..=5000).map(|n| 1.0 / n as f32).collect();
    /// let exact: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    /// let dot = dot_of(&Device::cpu(), &x, &x)?;
    /// let bound = SinglePass::<f32>::f64_error_bound(x.len(), exact);
    /// // The loop above has rounded 5000 times itself.
    /// assert!((dot - exact).abs() <= bound + 5000.0 * f64::EPSILON && bound < 1e-13);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn f64_error_bound(n: usize, magnitudes: f64) -> f64 {
        // The chunks' results are f64: fewer lanes for 4-byte elements than `depth` has.
        let partition = Partition::of(n, size_of::<T>());
        let lanes = Partition::of(1, size_of::<f64>()).lanes() as u32;
        let additions = partition.depth() + partition.chunks().div_ceil(lanes) + 2;
        let s = f64::from(additions) * f64::EPSILON / 2.0;
        s / (1.0 - s) * magnitudes
    }
}

/// What a result of one element holds.
fn first_of<R: Element>(result: &Buffer<R>) -> Result<R, Error> {
    let mut value = [R::zeroed()];
    result.copy_to_slice(&mut value)?;
    Ok(value[0])
}
