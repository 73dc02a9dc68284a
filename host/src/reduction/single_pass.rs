//! Reductions by one launch each: [`SinglePass`].

use super::{Number, Operation, Partition, require_some};
use crate::{Buffer, Device, Error};

/// Sums, minima and maxima of buffers of one device, each by a single launch of a
/// kernel `reduction_single_pass_*`, or by a port on the CPU.
///
/// [`sum`](super::sum), [`min`](super::min) and [`max`](super::max) make one of these
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
    /// All zero whenever no launch is under way, unless `dirty`.
    workspace: Option<Buffer<u64>>,
    /// A launch was stopped, who knows where.
    dirty: bool,
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
            workspace: None,
            dirty: false,
            result: None,
        }
    }

    /// The same with at most `blocks` blocks in a launch (0 counts as 1).
    ///
    /// Without it there is a block for every chunk of the tree. No result depends on
    /// it; what it does is leave a part of the device to others.
    #[must_use]
    pub fn with_blocks(mut self, blocks: u32) -> Self {
        self.blocks = blocks.clamp(1, self.device.limits().grid.x);
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
        self.device.require("reduction: values", values)?;
        self.device.require("reduction: result", result)?;
        if result.len() != 1 {
            return Err(Error::LengthMismatch {
                what: "reduction: result".to_owned(),
                required: 1,
                given: result.len(),
            });
        }
        if values.is_empty() && operation == Operation::Sum {
            return result.fill(T::zeroed());
        }
        require_some(operation.full_name(), values.len())?;
        if let (Some(values), Some(result)) = (values.as_host_slice(), result.as_host_mut_slice()) {
            result[0] = T::reduce(operation, values);
            return Ok(());
        }

        let partition = match self.tiles {
            None => Partition::of(values.len(), size_of::<T>()),
            Some(tiles) => Partition::with_tiles(values.len(), size_of::<T>(), tiles),
        };
        let blocks = partition.chunks().min(self.blocks);
        let mut workspace = self.take_workspace(partition.workspace_len(size_of::<T>()))?;
        self.dirty = true;
        let launched =
            T::launch_single_pass(operation, partition, blocks, values, &mut workspace, result);
        self.dirty = launched.is_err();
        self.workspace = Some(workspace);
        launched
    }

    /// The workspace, of at least `len` words, all zero.
    fn take_workspace(&mut self, len: usize) -> Result<Buffer<u64>, Error> {
        match self.workspace.take() {
            Some(mut workspace) if workspace.len() >= len => {
                if self.dirty {
                    workspace.fill(0)?;
                }
                Ok(workspace)
            }
            _ => self.device.alloc_filled(len, 0),
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
}
