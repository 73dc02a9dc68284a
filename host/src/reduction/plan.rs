//! Reductions on a device: [`Plan`], and [`Reduction`], which makes it.

use super::gpu::{Ladder, TextbookKernels, Variant};
use crate::single_pass::{
    Extremum, Moment, Operation, Partition, Reduce, SinglePass, SinglePassKernels, read,
};
use crate::{Buffer, Device, DeviceKind, Element, Error};
use gpu_kernels::reduction::geometry::{self, DEFAULT_BLOCK};
use gpu_kernels::reduction::{MAX_BLOCK, MIN_BLOCK, additions};
use gpu_kernels::registry::{Cost, Problem};

/// The elements of reductions: `i32`, `u32`, `i64`, `u64`, `f32` and `f64`.
///
/// `Product`, which dot products are, is f64 for `f32` and `f64`, i64 for `i32` and `i64`,
/// u64 for `u32` and `u64`.
///
/// Kernels are launched on buffers that have been checked, and in no other way:
///
/// ```compile_fail,E0308
/// use halo_gpu::{Buffer, reduction};
///
/// fn f<T: reduction::Number>(values: &Buffer<T>) {
///     T::launch(values).ok();
/// }
/// ```
///
/// ```compile_fail,E0616
/// use halo_gpu::{Buffer, reduction};
///
/// fn f<T: reduction::Number>(values: &mut Buffer<T>, sums: &mut Buffer<T>) {
///     (T::TEXTBOOK.unwrap().launch)(values, sums).ok();
/// }
/// ```
pub trait Number: SinglePassKernels + TextbookKernels {}

impl Number for i32 {}
impl Number for u32 {}
impl Number for i64 {}
impl Number for u64 {}
impl Number for f32 {}
impl Number for f64 {}

/// Reductions of arrays: for how long ones a [`Plan`] has memory at once, and how many
/// threads and blocks it may use. No result of the library's own kernels depends on any of it.
///
/// ```
/// use halo_gpu::reduction::{Reduction, Variant};
/// use halo_gpu::{Cost, Device};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let reduction = Reduction::new().with_len(1000);
/// assert_eq!(reduction.cost::<f32>(1000), Cost { bytes: 4000, flops: 999 });
///
/// let device = Device::emulator(); // or Device::cuda(0)?, or Device::best()
/// let values = device.upload(&[0.25_f32; 1000])?;
/// assert_eq!(reduction.plan(&device)?.sum(&values)?, 250.0);
/// // The same by a kernel of the textbook.
/// let mut plan = reduction.with_block(64)?.plan_with(&device, Variant::Shared)?;
/// assert_eq!(plan.sum(&values)?, 250.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reduction {
    len: Option<usize>,
    block: u32,
    most_blocks: Option<u32>,
    tiles: Option<u32>,
}

impl Default for Reduction {
    fn default() -> Self {
        Self::new()
    }
}

impl Reduction {
    /// Of arrays of any length, with as many blocks as suit them.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            len: None,
            block: DEFAULT_BLOCK,
            most_blocks: None,
            tiles: None,
        }
    }

    /// The same with memory for arrays of up to `n` elements from the start.
    ///
    /// A plan that meets a longer array, and one made without this, allocates then; once for
    /// each array that is longer than all before.
    #[must_use]
    pub const fn with_len(mut self, n: usize) -> Self {
        self.len = Some(n);
        self
    }

    /// The same with blocks of `threads` threads, instead of 128, for the textbook's kernels. It
    /// decides the order of their additions.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] unless it is 32, 64, 128, 256, 512 or 1024.
    pub fn with_block(mut self, threads: u32) -> Result<Self, Error> {
        if !threads.is_power_of_two() || !(MIN_BLOCK..=MAX_BLOCK).contains(&threads) {
            return Err(Error::InvalidSize {
                operation: "reduction",
                axis: "block",
                given: threads as usize,
                required: format!("a power of two from {MIN_BLOCK} to {MAX_BLOCK}"),
            });
        }
        self.block = threads;
        Ok(self)
    }

    /// The same with at most this many blocks in a launch of the library's own kernels.
    ///
    /// Without it there is a block for every chunk of the tree. It leaves a part of the
    /// device to others.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::Reduction;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let values: Vec<f32> = (1..=20_000).map(|n| 1.0 / n as f32).collect();
    /// let values = device.upload(&values)?;
    /// let by_many = Reduction::new().plan(&device)?.sum(&values)?;
    /// let by_one = Reduction::new().with_most_blocks(1)?.plan(&device)?.sum(&values)?;
    /// assert_eq!(by_one.to_bits(), by_many.to_bits());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for 0.
    pub fn with_most_blocks(mut self, blocks: u32) -> Result<Self, Error> {
        if blocks == 0 {
            return Err(Error::InvalidSize {
                operation: "reduction",
                axis: "the number of blocks",
                given: 0,
                required: "at least 1".to_owned(),
            });
        }
        self.most_blocks = Some(blocks);
        Ok(self)
    }

    /// The same with chunks of `tiles` tiles: **another tree**, and other bits.
    ///
    /// For tests, which try the trees of huge arrays on small ones.
    #[cfg(feature = "cases")]
    #[doc(hidden)]
    #[must_use]
    pub fn with_tiles(mut self, tiles: u32) -> Self {
        self.tiles = Some(tiles.max(1));
        self
    }

    /// Threads per block of the textbook's kernels.
    #[must_use]
    pub const fn block(&self) -> u32 {
        self.block
    }

    /// What a reduction of `n` elements of `T` costs at least: each is read once, and sums
    /// make an addition, extrema a comparison less than there are elements.
    #[must_use]
    pub const fn cost<T: Number>(&self, n: usize) -> Cost {
        geometry::elements::<T>(&Problem::line(n))
    }

    /// A plan for buffers of this device.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] for the workspace.
    pub fn plan<T: Number>(&self, device: &Device) -> Result<Plan<T>, Error> {
        self.plan_with(device, Variant::SinglePass)
    }

    /// A plan whose sums are computed by this kernel.
    ///
    /// ```
    /// use halo_gpu::reduction::{Reduction, Variant};
    /// use halo_gpu::{Device, Error};
    ///
    /// let refused = Reduction::new().plan_with::<u64>(&Device::emulator(), Variant::Shared);
    /// assert!(matches!(refused, Err(Error::InvalidParameter { parameter: "the kernel", .. })));
    /// let refused = Reduction::new().plan_with::<f32>(&Device::cpu(), Variant::Shared);
    /// assert!(matches!(refused, Err(Error::NotLaunchable { kernel: "reduction_shared_f32" })));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan). For the textbook's kernels, too,
    /// [`Error::InvalidParameter`] unless `T` is `i32` or `f32`; [`Error::NotLaunchable`] on
    /// the CPU device; [`Error::LaunchLimit`] for blocks that the device does not have.
    pub fn plan_with<T: Number>(
        &self,
        device: &Device,
        variant: Variant,
    ) -> Result<Plan<T>, Error> {
        let ladder = Ladder::new(device, variant, self.block)?;
        let mut single_pass = SinglePass::new(device).with_tiles(self.tiles);
        if let Some(most) = self.most_blocks {
            single_pass = single_pass.with_blocks(most.min(device.limits().grid.x));
        }
        if let Some(n) = self.len {
            single_pass.reserve(n)?;
        }
        Ok(Plan {
            single_pass,
            ladder,
            sums: None,
            scratch: None,
            total: None,
            float: None,
            product: None,
            place: None,
        })
    }
}

/// Reductions of buffers of one device, with the workspace that they need.
///
/// Each comes in two forms:
///
/// - **`…_into`** writes its result into a buffer of the device. It never waits: on a CUDA
///   device it queues one launch, and a [`Device::record`] takes it.
/// - Those without **return a number**, and wait for it.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::reduction::Reduction;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator(); // or Device::cuda(0)?, or Device::cpu()
/// let mut plan = Reduction::new().plan(&device)?;
/// let values = device.upload(&[3.5_f32, -1.0, 0.25])?;
/// assert_eq!(plan.sum(&values)?, 2.75);
/// assert_eq!(plan.min(&values)?, -1.0);
/// assert_eq!(plan.argmin(&values)?, 1);
/// assert_eq!(plan.dot(&values, &values)?, 13.3125);
///
/// // Queued, the result staying on the device:
/// let mut greatest = device.alloc_filled(1, 0.0)?;
/// plan.max_into(&values, &mut greatest)?;
/// assert_eq!(greatest.to_vec()?, [3.5]);
/// # Ok(())
/// # }
/// ```
///
/// [`sum`](super::sum), [`dot`](super::dot) and the other functions make a plan for each
/// call. Keep one where there are many: after the first call nothing is allocated.
///
/// A [`Variant`] names the kernel of sums. All other operations have one kernel each.
#[derive(Debug)]
pub struct Plan<T: Number> {
    single_pass: SinglePass<T>,
    /// A textbook kernel, where one was chosen for sums.
    ladder: Option<Ladder<T>>,
    /// What its blocks leave.
    sums: Option<Buffer<T>>,
    /// The copy of the input that it overwrites.
    scratch: Option<Buffer<T>>,
    /// The numbers that are returned.
    total: Option<Buffer<T>>,
    float: Option<Buffer<f64>>,
    product: Option<Buffer<T::Product>>,
    place: Option<Buffer<u64>>,
}

impl<T: Number> Plan<T> {
    /// The device.
    #[must_use]
    pub const fn device(&self) -> &Device {
        self.single_pass.device()
    }

    /// The kernel of sums; `None` on the CPU, where the port computes them.
    #[must_use]
    pub fn variant(&self) -> Option<Variant> {
        let runs_kernels = self.device().kind() != DeviceKind::Cpu;
        let ladder = self.ladder.as_ref();
        runs_kernels.then(|| ladder.map_or(Variant::SinglePass, Ladder::variant))
    }

    /// The most that a sum of `n` floats can differ from the exact one, where `magnitudes`
    /// is the sum of their absolute values; 0 for integers.
    ///
    /// An element takes part in at most d additions, each with a relative error of at most u, which
    /// is 2⁻²⁴ for `f32` and 2⁻⁵³ for `f64`. So the error of the sum is at most d u / (1 - d u) ·
    /// `magnitudes` (Higham, "Accuracy and Stability of Numerical Algorithms", lemma 3.1).
    /// Underflow adds nothing: a subnormal sum of floats is exact. The bound holds while no partial
    /// sum leaves the range of the type.
    ///
    /// In a single pass d is 18 for 2¹⁴ floats of 32 bits, 25 for 2²⁰, 150 for 2³⁰. By a
    /// textbook kernel it is `log2(block)`, three more where a thread adds four elements,
    /// and 1 for the rounding of the total; before that, less than `n` additions in f64 add
    /// (n - 1) 2⁻⁵³ to d u.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::{Reduction, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let values: Vec<f32> = (1..=1000).map(|n| 1.0 / n as f32).collect();
    /// let exact: f64 = values.iter().map(|&x| f64::from(x)).sum();
    /// let values = device.upload(&values)?;
    /// for variant in Variant::ALL {
    ///     let mut plan = Reduction::new().plan_with(&device, variant)?;
    ///     let sum = f64::from(plan.sum(&values)?);
    ///     let bound = plan.error_bound(1000, exact);
    ///     assert!((sum - exact).abs() <= bound && bound < 1e-5);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn error_bound(&self, n: usize, magnitudes: f64) -> f64 {
        let s = match &self.ladder {
            None => f64::from(Partition::of(n, size_of::<T>()).depth()) * T::ROUNDOFF,
            Some(ladder) => {
                let per_thread = ladder.variant().elements_per_thread();
                let in_type = additions(ladder.block(), per_thread) + 1;
                let in_f64 = n.saturating_sub(1);
                let v = if T::ROUNDOFF == 0.0 {
                    0.0
                } else {
                    f64::EPSILON / 2.0
                };
                f64::from(in_type) * T::ROUNDOFF + in_f64 as f64 * v
            }
        };
        s / (1.0 - s) * magnitudes
    }

    /// The most that a [`dot`](Self::dot) product of `n` floats, a
    /// [`sum_f64_into`](Self::sum_f64_into) or a [`sum_squares_into`](Self::sum_squares_into)
    /// can differ from the exact one, where `magnitudes` is the sum of the absolute values
    /// of the terms.
    ///
    /// As [`error_bound`](Self::error_bound), with f64 for the type of the sums: a term
    /// is rounded at most twice more (integers of 64 bits on their way to f64, products
    /// in f64), and u is 2⁻⁵³.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::{Plan, dot_of};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let x: Vec<f32> = (1..=5000).map(|n| 1.0 / n as f32).collect();
    /// let exact: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    /// let dot = dot_of(&Device::cpu(), &x, &x)?;
    /// let bound = Plan::<f32>::f64_error_bound(x.len(), exact);
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

    /// The sum; 0 if there are no elements.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] if the buffer is on another device;
    /// [`Error::OutOfMemory`] for the workspace; and what a launch can fail with. Of a
    /// textbook kernel also [`Error::EmptyInput`], and [`Error::LaunchLimit`] for more
    /// blocks than the device's grids have.
    pub fn sum(&mut self, values: &Buffer<T>) -> Result<T, Error> {
        let Some(ladder) = self.ladder else {
            return self.reduce(Operation::Sum, values);
        };
        let device = self.device().clone();
        device.require("reduction: values", values)?;
        let len = ladder.sums_len(values.len())?;
        // Before anything is allocated.
        ladder.check_geometry(&device, values.len())?;
        let sums = match &mut self.sums {
            Some(sums) if sums.len() == len => sums,
            sums => sums.insert(device.alloc_filled(len, T::zeroed())?),
        };
        ladder.launch(&device, values, sums, &mut self.scratch)?;
        Ok(ladder.finish(&sums.to_vec()?))
    }

    /// The least element. NaN if there is one; -0 is less than +0.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`]; [`Error::DeviceMismatch`] if the buffer is on another device;
    /// [`Error::OutOfMemory`] for the workspace; and what a launch can fail with.
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
        self.device().require("reduction: values", values)?;
        if values.is_empty() {
            return Err(Error::EmptyInput {
                operation: "reduction: mean",
            });
        }
        mean_by(values.len() as u64, |scale| {
            self.moment(Moment::First, scale, values)
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
    /// As [`min`](Self::min), except for empty input.
    pub fn norm(&mut self, values: &Buffer<T>) -> Result<f64, Error> {
        self.device().require("reduction: values", values)?;
        if values.is_empty() {
            return Ok(0.0);
        }
        norm_by(|scale| self.moment(Moment::Second, scale, values))
    }

    /// The dot product Σ x y of two buffers of one length; 0 if they are empty.
    ///
    /// For floats in f64: each product is rounded once, with the sum that takes it, so the error is
    /// at most [`f64_error_bound`](Self::f64_error_bound) of Σ |x y|; products of f32 are exact.
    /// The result is infinite, or NaN, where a partial sum of products leaves the range of f64,
    /// which sums of f32's products cannot. For integers in 64 bits, of the same sign, wrapping
    /// around.
    ///
    /// # Errors
    ///
    /// As [`norm`](Self::norm), and [`Error::LengthMismatch`].
    pub fn dot(&mut self, x: &Buffer<T>, y: &Buffer<T>) -> Result<T::Product, Error> {
        let (device, single_pass) = (self.device().clone(), &mut self.single_pass);
        read(&mut self.product, &device, |to| single_pass.dot(x, y, to))
    }

    /// The sum into `result`, a buffer of one element; the bits of [`sum`](Self::sum).
    ///
    /// A textbook kernel leaves a sum for each block: `result` then has
    /// [`sums_len`](Self::sums_len) elements, and [`finish`](Self::finish) adds them up.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::{Reduction, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let values = device.upload(&[0.25_f32; 300])?;
    /// let mut plan = Reduction::new().plan(&device)?;
    /// let mut sum = device.alloc_filled(1, 0.0)?;
    /// plan.sum_into(&values, &mut sum)?;
    /// assert_eq!(sum.to_vec()?, [75.0]);
    ///
    /// // Blocks of 32 threads with 4 elements each.
    /// let reduction = Reduction::new().with_block(32)?;
    /// let mut plan = reduction.plan_with(&device, Variant::SharedUnroll4)?;
    /// let mut sums = device.alloc_filled(plan.sums_len(values.len())?, 0.0)?;
    /// plan.sum_into(&values, &mut sums)?;
    /// assert_eq!(sums.to_vec()?, [32.0, 32.0, 11.0]);
    /// assert_eq!(plan.finish(&sums.to_vec()?), 75.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum); [`Error::LengthMismatch`] unless `result` has the right
    /// length, [`Error::DeviceMismatch`] if it is on another device.
    pub fn sum_into(&mut self, values: &Buffer<T>, result: &mut Buffer<T>) -> Result<(), Error> {
        match self.ladder {
            None => self.single_pass.elements(Operation::Sum, values, result),
            Some(ladder) => {
                let device = self.single_pass.device();
                ladder.launch(device, values, result, &mut self.scratch)
            }
        }
    }

    /// The sums of chunks of this many tiles each (the last may be shorter). The sum of an array is
    /// made of such sums; these elements are a part of the array. A tile is 2048 elements of 4
    /// bytes or 1024 of 8. Waits for them. `None` on the CPU, where no kernel makes
    /// chunks.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::Reduction;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let values = device.alloc_filled(5000, 0.5_f32)?;
    /// let mut plan = Reduction::new().plan(&device)?;
    /// assert_eq!(plan.sums_of_chunks(1, &values)?, Some(vec![1024.0, 1024.0, 452.0]));
    /// assert_eq!(plan.sums_of_chunks(2, &values)?, Some(vec![2048.0, 452.0]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum`](Self::sum); [`Error::InvalidSize`] for no tiles.
    pub fn sums_of_chunks(
        &mut self,
        tiles: u32,
        values: &Buffer<T>,
    ) -> Result<Option<Vec<T>>, Error> {
        self.chunks(tiles, [values; 2], |result, [values, _]| Reduce::Elements {
            operation: Operation::Sum,
            values,
            result,
        })
    }

    /// The dot products of chunks of `x` and `y`, as [`sums_of_chunks`](Self::sums_of_chunks).
    ///
    /// # Errors
    ///
    /// As [`dot`](Self::dot) and [`sums_of_chunks`](Self::sums_of_chunks).
    pub fn dots_of_chunks(
        &mut self,
        tiles: u32,
        x: &Buffer<T>,
        y: &Buffer<T>,
    ) -> Result<Option<Vec<T::Product>>, Error> {
        self.device().require("reduction: values", y)?;
        self.chunks(tiles, [x, y], |result, [x, y]| Reduce::Dot { x, y, result })
    }

    /// Σ s x in f64 of chunks, as [`sums_of_chunks`](Self::sums_of_chunks).
    ///
    /// # Errors
    ///
    /// As [`sum_f64_into`](Self::sum_f64_into) and [`sums_of_chunks`](Self::sums_of_chunks).
    pub fn sums_f64_of_chunks(
        &mut self,
        scale: f64,
        tiles: u32,
        values: &Buffer<T>,
    ) -> Result<Option<Vec<f64>>, Error> {
        self.chunks(tiles, [values; 2], |result, [values, _]| Reduce::Moment {
            moment: Moment::First,
            scale,
            values,
            result,
        })
    }

    /// Σ (s x)² in f64 of chunks, as [`sums_of_chunks`](Self::sums_of_chunks).
    ///
    /// # Errors
    ///
    /// As [`sums_f64_of_chunks`](Self::sums_f64_of_chunks).
    pub fn sums_squares_of_chunks(
        &mut self,
        scale: f64,
        tiles: u32,
        values: &Buffer<T>,
    ) -> Result<Option<Vec<f64>>, Error> {
        self.chunks(tiles, [values; 2], |result, [values, _]| Reduce::Moment {
            moment: Moment::Second,
            scale,
            values,
            result,
        })
    }

    fn chunks<V: Element>(
        &mut self,
        tiles: u32,
        values: [&Buffer<T>; 2],
        reduce: impl for<'r> FnOnce(&'r mut Buffer<V>, [&'r Buffer<T>; 2]) -> Reduce<'r, T>,
    ) -> Result<Option<Vec<V>>, Error> {
        self.device().require("reduction: values", values[0])?;
        if tiles == 0 {
            return Err(Error::InvalidSize {
                operation: "reduction: chunks",
                axis: "tiles",
                given: 0,
                required: "at least 1".to_owned(),
            });
        }
        if self.device().kind() == DeviceKind::Cpu {
            return Ok(None);
        }
        if values[0].is_empty() {
            return Ok(Some(Vec::new()));
        }
        self.single_pass.chunks(tiles, values, reduce).map(Some)
    }

    /// The least element into `result`, a buffer of one element.
    ///
    /// # Errors
    ///
    /// As for [`min`](Self::min) and, about `result`, for [`sum_into`](Self::sum_into).
    pub fn min_into(&mut self, values: &Buffer<T>, result: &mut Buffer<T>) -> Result<(), Error> {
        self.single_pass.elements(Operation::Min, values, result)
    }

    /// The greatest element into `result`, a buffer of one element.
    ///
    /// # Errors
    ///
    /// As [`min_into`](Self::min_into).
    pub fn max_into(&mut self, values: &Buffer<T>, result: &mut Buffer<T>) -> Result<(), Error> {
        self.single_pass.elements(Operation::Max, values, result)
    }

    /// The index of the first least element into `result`, a buffer of one element.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::Reduction;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let values = device.upload(&[2.0_f64, -1.0, 7.0, -1.0])?;
    /// let mut index = device.alloc_filled(1, u64::MAX)?;
    /// Reduction::new().plan(&device)?.argmin_into(&values, &mut index)?;
    /// assert_eq!(index.to_vec()?, [1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`min_into`](Self::min_into).
    pub fn argmin_into(
        &mut self,
        values: &Buffer<T>,
        result: &mut Buffer<u64>,
    ) -> Result<(), Error> {
        self.single_pass.place(Extremum::Min, values, result)
    }

    /// The index of the first greatest element into `result`, a buffer of one element.
    ///
    /// # Errors
    ///
    /// As [`min_into`](Self::min_into).
    pub fn argmax_into(
        &mut self,
        values: &Buffer<T>,
        result: &mut Buffer<u64>,
    ) -> Result<(), Error> {
        self.single_pass.place(Extremum::Max, values, result)
    }

    /// The dot product into `result`, a buffer of one element.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::Reduction;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let (x, y) = (device.upload(&[1.5_f32, 2.0])?, device.upload(&[4.0, -1.0])?);
    /// let mut dot = device.alloc_filled(1, 0.0_f64)?;
    /// Reduction::new().plan(&device)?.dot_into(&x, &y, &mut dot)?;
    /// assert_eq!(dot.to_vec()?, [4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`dot`](Self::dot) and, about `result`, for [`sum_into`](Self::sum_into).
    pub fn dot_into(
        &mut self,
        x: &Buffer<T>,
        y: &Buffer<T>,
        result: &mut Buffer<T::Product>,
    ) -> Result<(), Error> {
        self.single_pass.dot(x, y, result)
    }

    /// Σ s x in f64 into `result`, a buffer of one element: what [`mean`](Self::mean)
    /// begins with. The scale s should be a power of two, so that it rounds nothing.
    ///
    /// # Errors
    ///
    /// As [`min_into`](Self::min_into); [`Error::NonFinite`] for a scale that is not a finite
    /// number.
    pub fn sum_f64_into(
        &mut self,
        scale: f64,
        values: &Buffer<T>,
        result: &mut Buffer<f64>,
    ) -> Result<(), Error> {
        let single_pass = &mut self.single_pass;
        single_pass.moment(Moment::First, scale, values, result)
    }

    /// Σ (s x)² in f64 into `result`, a buffer of one element: what [`norm`](Self::norm)
    /// begins with. The scale s should be a power of two, so that it rounds nothing.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::reduction::Reduction;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let values = device.upload(&[3.0_f32, -4.0])?;
    /// let mut sum = device.alloc_filled(1, 0.0)?;
    /// let mut plan = Reduction::new().plan(&device)?;
    /// plan.sum_f64_into(1.0, &values, &mut sum)?;
    /// assert_eq!(sum.to_vec()?, [-1.0]);
    /// // Halved first, then squared.
    /// plan.sum_squares_into(0.5, &values, &mut sum)?;
    /// assert_eq!(sum.to_vec()?, [6.25]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sum_f64_into`](Self::sum_f64_into).
    pub fn sum_squares_into(
        &mut self,
        scale: f64,
        values: &Buffer<T>,
        result: &mut Buffer<f64>,
    ) -> Result<(), Error> {
        let single_pass = &mut self.single_pass;
        single_pass.moment(Moment::Second, scale, values, result)
    }

    /// How many sums [`sum_into`](Self::sum_into) leaves of `n` elements: 1 or, by a textbook
    /// kernel, one for each block, also for a last one that is not full. Sum b is that of the
    /// elements from b · `block` on, or from 4 b · `block` on ([`Variant`]).
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`] if `n` is 0 and the kernel one of the textbook's.
    pub fn sums_len(&self, n: usize) -> Result<usize, Error> {
        let ladder = self.ladder.as_ref();
        ladder.map_or(Ok(1), |ladder| ladder.sums_len(n))
    }

    /// The sum of the partial sums that [`sum_into`](Self::sum_into) left, on the host. The sums of
    /// a textbook kernel are added in their order: `i32` wrapping around, `f32` in f64 and rounded
    /// once.
    #[must_use]
    pub fn finish(&self, sums: &[T]) -> T {
        match &self.ladder {
            None => T::reduce(Operation::Sum, sums),
            Some(ladder) => ladder.finish(sums),
        }
    }

    fn reduce(&mut self, operation: Operation, values: &Buffer<T>) -> Result<T, Error> {
        let (device, single_pass) = (self.device().clone(), &mut self.single_pass);
        read(&mut self.total, &device, |to| {
            single_pass.elements(operation, values, to)
        })
    }

    fn moment(&mut self, moment: Moment, scale: f64, values: &Buffer<T>) -> Result<f64, Error> {
        let (device, single_pass) = (self.device().clone(), &mut self.single_pass);
        read(&mut self.float, &device, |to| {
            single_pass.moment(moment, scale, values, to)
        })
    }

    fn position(&mut self, extremum: Extremum, values: &Buffer<T>) -> Result<u64, Error> {
        let (device, single_pass) = (self.device().clone(), &mut self.single_pass);
        read(&mut self.place, &device, |to| {
            single_pass.place(extremum, values, to)
        })
    }
}

/// The mean of `n` numbers, of their sum: `sum` gives Σ s x in f64 for a scale s, as
/// [`Plan::sum_f64_into`] does, perhaps of an array that several devices share. Where the sum
/// leaves the range of f64 it is asked for once more, 2⁶⁴ times smaller.
///
/// # Errors
///
/// What `sum` fails with.
pub fn mean_by<E>(n: u64, mut sum: impl FnMut(f64) -> Result<f64, E>) -> Result<f64, E> {
    // Fewer than 2⁶⁴ elements, all below 2¹⁰²⁴.
    const SMALLER: f64 = 1.0 / 18_446_744_073_709_551_616.0;
    let n = n as f64;
    let whole = sum(1.0)?;
    if whole.is_finite() {
        return Ok(whole / n);
    }
    let small = sum(SMALLER)?;
    let mean = small / n / SMALLER;
    // Of finite numbers only rounding can lead beyond the largest.
    Ok(if small.is_finite() {
        mean.clamp(f64::MIN, f64::MAX)
    } else {
        mean
    })
}

/// The L2 norm, of the sum of squares: `squares` gives Σ (s x)² in f64 for a scale s, as
/// [`Plan::sum_squares_into`] does, perhaps of an array that several devices share. Where the
/// sum is out of range, or so small that squares may have been lost, it is asked for once more,
/// with a scale of 2⁶⁰⁰ or its inverse.
///
/// # Errors
///
/// What `squares` fails with.
pub fn norm_by<E>(mut squares: impl FnMut(f64) -> Result<f64, E>) -> Result<f64, E> {
    /// 2⁶⁰⁰: a number 1.0 × 2^e has the bits of e + 1023 above 52 zeros.
    const LARGER: f64 = f64::from_bits((1023 + 600) << 52);
    /// 2⁻⁹⁰⁰. What squares lose to underflow is less than 2⁻¹⁰⁷⁴ each.
    const SMALL: f64 = f64::from_bits((1023 - 900) << 52);
    let sum = squares(1.0)?;
    let scale = if sum == f64::INFINITY {
        1.0 / LARGER
    } else if sum < SMALL {
        LARGER
    } else {
        return Ok(sum.sqrt());
    };
    Ok(squares(scale)?.sqrt() / scale)
}

/// What tests and the benchmark go through by kind.
#[cfg(feature = "cases")]
#[doc(hidden)]
impl<T: Number> Plan<T> {
    /// With at most this many blocks. A number beyond the device's limit is only refused at launch.
    pub(crate) fn with_any_blocks(mut self, blocks: u32) -> Self {
        self.single_pass = self.single_pass.with_blocks(blocks);
        self
    }

    /// A sum or an extremum.
    pub fn elements_into(
        &mut self,
        operation: Operation,
        values: &Buffer<T>,
        result: &mut Buffer<T>,
    ) -> Result<(), Error> {
        match operation {
            Operation::Sum => self.sum_into(values, result),
            Operation::Min => self.min_into(values, result),
            Operation::Max => self.max_into(values, result),
        }
    }

    /// A moment.
    pub fn moment_into(
        &mut self,
        moment: Moment,
        scale: f64,
        values: &Buffer<T>,
        result: &mut Buffer<f64>,
    ) -> Result<(), Error> {
        match moment {
            Moment::First => self.sum_f64_into(scale, values, result),
            Moment::Second => self.sum_squares_into(scale, values, result),
        }
    }

    /// The place of an extremum.
    pub fn place_into(
        &mut self,
        extremum: Extremum,
        values: &Buffer<T>,
        result: &mut Buffer<u64>,
    ) -> Result<(), Error> {
        match extremum {
            Extremum::Min => self.argmin_into(values, result),
            Extremum::Max => self.argmax_into(values, result),
        }
    }

    /// [`sum_into`](Self::sum_into) without a copy for the kernel that works in its input,
    /// which it destroys: the first element of each block's part is then the part's sum.
    ///
    /// # Errors
    ///
    /// As [`sum_into`](Self::sum_into).
    pub fn sum_in_place_into(
        &mut self,
        values: &mut Buffer<T>,
        result: &mut Buffer<T>,
    ) -> Result<(), Error> {
        match self.ladder {
            None => self.sum_into(values, result),
            Some(ladder) => ladder.launch_in_place(self.single_pass.device(), values, result),
        }
    }

    /// Elements that a block of the textbook kernel sums.
    pub fn elements_per_block(&self) -> Option<usize> {
        self.ladder.as_ref().map(Ladder::elements_per_block)
    }
}
