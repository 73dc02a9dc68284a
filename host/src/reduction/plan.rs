//! Plans reductions on a device: [`Reduction`] makes a [`Plan`].

use super::gpu::{Ladder, TextbookKernels, Variant};
use crate::single_pass::{
    Extremum, Moment, Operation, Partition, Reduce, SinglePass, SinglePassKernels, read,
};
use crate::{Buffer, Device, DeviceKind, Element, Error};
use gpu_kernels::reduction::geometry::{self, DEFAULT_BLOCK};
use gpu_kernels::reduction::{MAX_BLOCK, MIN_BLOCK, additions};
use gpu_kernels::registry::{Cost, Problem};

/// The element types of reductions: `i32`, `u32`, `i64`, `u64`, `f32` and `f64`.
///
/// `Product`, the type of dot products, is f64 for `f32` and `f64`, i64 for `i32` and `i64`, u64
/// for `u32` and `u64`.
///
/// Kernels can be launched only on buffers that have been checked:
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

/// The options of a [`Plan`]: the array length for which it allocates memory in advance, and the
/// numbers of threads and blocks it may use. They do not affect the results of the library's own
/// kernels.
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
    /// Options for arrays of any length, with the default number of blocks.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            len: None,
            block: DEFAULT_BLOCK,
            most_blocks: None,
            tiles: None,
        }
    }

    /// These options, with memory for arrays of up to `n` elements allocated in advance.
    ///
    /// A plan without this option, or for a longer array, allocates memory during a call: once for
    /// each array that is longer than all before.
    #[must_use]
    pub const fn with_len(mut self, n: usize) -> Self {
        self.len = Some(n);
        self
    }

    /// These options, with blocks of `threads` threads, instead of 128, for the textbook's kernels.
    /// The block size determines the order of their additions.
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

    /// These options, with at most `blocks` blocks per launch of the library's own kernels.
    ///
    /// By default there is a block for every chunk of the tree. Fewer blocks leave a part of the
    /// device to other work.
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

    /// These options, with chunks of `tiles` tiles: **another tree**, with other bits.
    ///
    /// For tests, which use the trees of huge arrays on small ones.
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

    /// The least cost of a reduction of `n` elements of `T`: each element is read once, and a sum
    /// or extremum has n - 1 additions or comparisons.
    #[must_use]
    pub const fn cost<T: Number>(&self, n: usize) -> Cost {
        geometry::elements::<T>(&Problem::line(n))
    }

    /// A plan for buffers on this device.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] for the workspace.
    pub fn plan<T: Number>(&self, device: &Device) -> Result<Plan<T>, Error> {
        self.plan_with(device, Variant::SinglePass)
    }

    /// A plan that computes sums with the kernel `variant`.
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
    /// As for [`plan`](Self::plan). For the textbook's kernels also [`Error::InvalidParameter`]
    /// unless `T` is `i32` or `f32`; [`Error::NotLaunchable`] on the CPU device;
    /// [`Error::LaunchLimit`] for blocks larger than the device supports.
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

/// Reduces buffers on one device; holds the workspace.
///
/// Each reduction has two forms:
///
/// - **`…_into`** writes the result to a buffer on the device. It never waits: on a CUDA device it
///   enqueues one launch, which [`Device::record`] can record.
/// - The others **return a number**, and wait for it.
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
/// [`sum`](super::sum), [`dot`](super::dot) and the other functions make a plan for each call. For
/// many calls keep a plan: it allocates nothing after the first call.
///
/// A [`Variant`] names the kernel for sums. Each of the other operations has only one kernel.
#[derive(Debug)]
pub struct Plan<T: Number> {
    single_pass: SinglePass<T>,
    /// The textbook kernel for sums, if one was chosen.
    ladder: Option<Ladder<T>>,
    /// The sums that its blocks leave.
    sums: Option<Buffer<T>>,
    /// A copy of the input, which the kernel overwrites.
    scratch: Option<Buffer<T>>,
    /// Buffers for the returned numbers.
    total: Option<Buffer<T>>,
    float: Option<Buffer<f64>>,
    product: Option<Buffer<T::Product>>,
    place: Option<Buffer<u64>>,
}

impl<T: Number> Plan<T> {
    /// The device of the plan.
    #[must_use]
    pub const fn device(&self) -> &Device {
        self.single_pass.device()
    }

    /// The kernel for sums; `None` on the CPU, where the port computes them.
    #[must_use]
    pub fn variant(&self) -> Option<Variant> {
        let runs_kernels = self.device().kind() != DeviceKind::Cpu;
        let ladder = self.ladder.as_ref();
        runs_kernels.then(|| ladder.map_or(Variant::SinglePass, Ladder::variant))
    }

    /// A bound on the difference between a sum of `n` floats and the exact sum, where `magnitudes`
    /// is the sum of their absolute values; 0 for integers.
    ///
    /// An element takes part in at most d additions, each with a relative error of at most u, which
    /// is 2⁻²⁴ for `f32` and 2⁻⁵³ for `f64`. So the error of the sum is at most d u / (1 - d u) ·
    /// `magnitudes` (Higham, "Accuracy and Stability of Numerical Algorithms", lemma 3.1).
    /// Underflow adds no error, because a subnormal sum of floats is exact. The bound holds if no
    /// partial sum overflows.
    ///
    /// In a single pass d is 18 for 2¹⁴ floats of 32 bits, 25 for 2²⁰, 150 for 2³⁰. For a textbook
    /// kernel it is `log2(block)`, plus 3 if a thread adds four elements, plus 1 for the rounding
    /// of the total; in addition, fewer than `n` additions in f64 add (n - 1) 2⁻⁵³ to d u.
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

    /// A bound on the difference between a [`dot`](Self::dot) product, a
    /// [`sum_f64_into`](Self::sum_f64_into) or a [`sum_squares_into`](Self::sum_squares_into) of
    /// `n` elements and its exact value, where `magnitudes` is the sum of the absolute terms.
    ///
    /// Like [`error_bound`](Self::error_bound), with sums in f64, so u is 2⁻⁵³. A term is rounded
    /// at most twice more: integers of 64 bits when converted to f64, and products in f64.
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
        // The results of chunks are f64, so for 4-byte elements there are fewer lanes than `depth`
        // assumes.
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
    /// [`Error::DeviceMismatch`] if the buffer is on another device; [`Error::OutOfMemory`] for the
    /// workspace; and the errors of a launch. For a textbook kernel also [`Error::EmptyInput`], and
    /// [`Error::LaunchLimit`] for more blocks than a grid of the device can have.
    pub fn sum(&mut self, values: &Buffer<T>) -> Result<T, Error> {
        let Some(ladder) = self.ladder else {
            return self.reduce(Operation::Sum, values);
        };
        let device = self.device().clone();
        device.require("reduction: values", values)?;
        let len = ladder.sums_len(values.len())?;
        // Checked before anything is allocated.
        ladder.check_geometry(&device, values.len())?;
        let sums = match &mut self.sums {
            Some(sums) if sums.len() == len => sums,
            sums => sums.insert(device.alloc_filled(len, T::zeroed())?),
        };
        ladder.launch(&device, values, sums, &mut self.scratch)?;
        Ok(ladder.finish(&sums.to_vec()?))
    }

    /// The least element. It is NaN if any element is NaN; -0 is less than +0.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`]; [`Error::DeviceMismatch`] if the buffer is on another device;
    /// [`Error::OutOfMemory`] for the workspace; and the errors of a launch.
    pub fn min(&mut self, values: &Buffer<T>) -> Result<T, Error> {
        self.reduce(Operation::Min, values)
    }

    /// The greatest element. It is NaN if any element is NaN; +0 is greater than -0.
    ///
    /// # Errors
    ///
    /// As for [`min`](Self::min).
    pub fn max(&mut self, values: &Buffer<T>) -> Result<T, Error> {
        self.reduce(Operation::Max, values)
    }

    /// The index of the first least element. If there is a NaN, it is the index of the first NaN;
    /// -0 is less than +0.
    ///
    /// # Errors
    ///
    /// As for [`min`](Self::min).
    pub fn argmin(&mut self, values: &Buffer<T>) -> Result<u64, Error> {
        self.position(Extremum::Min, values)
    }

    /// The index of the first greatest element. If there is a NaN, it is the index of the first
    /// NaN; +0 is greater than -0.
    ///
    /// # Errors
    ///
    /// As for [`min`](Self::min).
    pub fn argmax(&mut self, values: &Buffer<T>) -> Result<u64, Error> {
        self.position(Extremum::Max, values)
    }

    /// The mean, Σ x / n, in f64.
    ///
    /// The elements are summed in f64, in the order of the tree, and the sum is divided by n. The
    /// error is at most [`f64_error_bound`](Self::f64_error_bound) divided by n. If the sum
    /// overflows, the elements are summed again, scaled by 2⁻⁶⁴, so the mean of finite numbers is
    /// finite. The result is NaN if any element is NaN, or if there are infinities of both signs.
    ///
    /// # Errors
    ///
    /// As for [`min`](Self::min).
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
    /// The squares are summed in f64, in the order of the tree. If their sum overflows, or is so
    /// small that squares may have underflowed, they are summed again with all elements scaled by
    /// 2⁻⁶⁰⁰ or 2⁶⁰⁰. So the norm overflows only if it is itself outside the range of f64, and
    /// underflow does not affect it. Its relative error is half that of the sum of squares
    /// ([`f64_error_bound`](Self::f64_error_bound)), plus one rounding. The result is NaN if any
    /// element is NaN, otherwise infinite if any element is infinite.
    ///
    /// # Errors
    ///
    /// As for [`min`](Self::min), except for empty input.
    pub fn norm(&mut self, values: &Buffer<T>) -> Result<f64, Error> {
        self.device().require("reduction: values", values)?;
        if values.is_empty() {
            return Ok(0.0);
        }
        norm_by(|scale| self.moment(Moment::Second, scale, values))
    }

    /// The dot product Σ x y of two buffers of the same length; 0 if they are empty.
    ///
    /// For floats the result is f64. A fused multiply-add rounds each product together with the
    /// sum, so the error is at most [`f64_error_bound`](Self::f64_error_bound) of Σ |x y|; products
    /// of f32 are exact. The result is infinite or NaN if a partial sum of products overflows f64,
    /// which cannot happen for f32. For integers the result has 64 bits and the same signedness,
    /// and wraps around.
    ///
    /// # Errors
    ///
    /// As for [`norm`](Self::norm), and [`Error::LengthMismatch`].
    pub fn dot(&mut self, x: &Buffer<T>, y: &Buffer<T>) -> Result<T::Product, Error> {
        let (device, single_pass) = (self.device().clone(), &mut self.single_pass);
        read(&mut self.product, &device, |to| single_pass.dot(x, y, to))
    }

    /// Writes the sum to `result`, a buffer of one element, with the bits of [`sum`](Self::sum).
    ///
    /// A textbook kernel leaves a sum for each block: `result` then has
    /// [`sums_len`](Self::sums_len) elements, and [`finish`](Self::finish) adds them.
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
    /// As for [`sum`](Self::sum); [`Error::LengthMismatch`] unless `result` has the right length,
    /// [`Error::DeviceMismatch`] if it is on another device.
    pub fn sum_into(&mut self, values: &Buffer<T>, result: &mut Buffer<T>) -> Result<(), Error> {
        match self.ladder {
            None => self.single_pass.elements(Operation::Sum, values, result),
            Some(ladder) => {
                let device = self.single_pass.device();
                ladder.launch(device, values, result, &mut self.scratch)
            }
        }
    }

    /// The sums of the chunks of an array that has these elements as a part; the sum of that array
    /// is made from the sums of its chunks. A chunk has `tiles` tiles (the last may be shorter),
    /// and a tile 2048 elements of 4 bytes or 1024 of 8. Waits for the sums. Returns `None` on the
    /// CPU, which has no kernel for chunks.
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
    /// As for [`sum`](Self::sum); [`Error::InvalidSize`] if `tiles` is 0.
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

    /// The dot products of chunks of `x` and `y`, as in [`sums_of_chunks`](Self::sums_of_chunks).
    ///
    /// # Errors
    ///
    /// As for [`dot`](Self::dot) and [`sums_of_chunks`](Self::sums_of_chunks).
    pub fn dots_of_chunks(
        &mut self,
        tiles: u32,
        x: &Buffer<T>,
        y: &Buffer<T>,
    ) -> Result<Option<Vec<T::Product>>, Error> {
        self.device().require("reduction: values", y)?;
        self.chunks(tiles, [x, y], |result, [x, y]| Reduce::Dot { x, y, result })
    }

    /// Σ s x in f64 for each chunk, as in [`sums_of_chunks`](Self::sums_of_chunks).
    ///
    /// # Errors
    ///
    /// As for [`sum_f64_into`](Self::sum_f64_into) and [`sums_of_chunks`](Self::sums_of_chunks).
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

    /// Σ (s x)² in f64 for each chunk, as in [`sums_of_chunks`](Self::sums_of_chunks).
    ///
    /// # Errors
    ///
    /// As for [`sums_f64_of_chunks`](Self::sums_f64_of_chunks).
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

    /// Writes the least element to `result`, a buffer of one element.
    ///
    /// # Errors
    ///
    /// As for [`min`](Self::min) and, for `result`, as for [`sum_into`](Self::sum_into).
    pub fn min_into(&mut self, values: &Buffer<T>, result: &mut Buffer<T>) -> Result<(), Error> {
        self.single_pass.elements(Operation::Min, values, result)
    }

    /// Writes the greatest element to `result`, a buffer of one element.
    ///
    /// # Errors
    ///
    /// As for [`min_into`](Self::min_into).
    pub fn max_into(&mut self, values: &Buffer<T>, result: &mut Buffer<T>) -> Result<(), Error> {
        self.single_pass.elements(Operation::Max, values, result)
    }

    /// Writes the index of the first least element to `result`, a buffer of one element.
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
    /// As for [`min_into`](Self::min_into).
    pub fn argmin_into(
        &mut self,
        values: &Buffer<T>,
        result: &mut Buffer<u64>,
    ) -> Result<(), Error> {
        self.single_pass.arg_extremum(Extremum::Min, values, result)
    }

    /// Writes the index of the first greatest element to `result`, a buffer of one element.
    ///
    /// # Errors
    ///
    /// As for [`min_into`](Self::min_into).
    pub fn argmax_into(
        &mut self,
        values: &Buffer<T>,
        result: &mut Buffer<u64>,
    ) -> Result<(), Error> {
        self.single_pass.arg_extremum(Extremum::Max, values, result)
    }

    /// Writes the dot product to `result`, a buffer of one element.
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
    /// As for [`dot`](Self::dot) and, for `result`, as for [`sum_into`](Self::sum_into).
    pub fn dot_into(
        &mut self,
        x: &Buffer<T>,
        y: &Buffer<T>,
        result: &mut Buffer<T::Product>,
    ) -> Result<(), Error> {
        self.single_pass.dot(x, y, result)
    }

    /// Writes Σ s x in f64 to `result`, a buffer of one element: the first step of
    /// [`mean`](Self::mean). Choose a power of two for the scale s, so that scaling does not round.
    ///
    /// # Errors
    ///
    /// As for [`min_into`](Self::min_into); [`Error::NonFinite`] for a scale that is not a finite
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

    /// Writes Σ (s x)² in f64 to `result`, a buffer of one element: the first step of
    /// [`norm`](Self::norm). Choose a power of two for the scale s, so that scaling does not round.
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
    /// As for [`sum_f64_into`](Self::sum_f64_into).
    pub fn sum_squares_into(
        &mut self,
        scale: f64,
        values: &Buffer<T>,
        result: &mut Buffer<f64>,
    ) -> Result<(), Error> {
        let single_pass = &mut self.single_pass;
        single_pass.moment(Moment::Second, scale, values, result)
    }

    /// The number of sums that [`sum_into`](Self::sum_into) leaves for `n` elements: 1, or with a
    /// textbook kernel one for each block, including a last, partial block. Sum b is over the
    /// elements from b · `block` on, or from 4 b · `block` on ([`Variant`]).
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`] if `n` is 0 and the kernel is one of the textbook's.
    pub fn sums_len(&self, n: usize) -> Result<usize, Error> {
        let ladder = self.ladder.as_ref();
        ladder.map_or(Ok(1), |ladder| ladder.sums_len(n))
    }

    /// Adds the partial sums of [`sum_into`](Self::sum_into) on the host. The sums of a textbook
    /// kernel are added in order: `i32` with wrapping, `f32` in f64 with one final rounding.
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
            single_pass.arg_extremum(extremum, values, to)
        })
    }
}

/// The mean of `n` numbers from their sum. `sum` returns Σ s x in f64 for a scale s, as
/// [`Plan::sum_f64_into`] does; the numbers may be spread over several devices. If the sum
/// overflows, `sum` is called again with s = 2⁻⁶⁴.
///
/// # Errors
///
/// The errors of `sum`.
pub fn mean_by<E>(n: u64, mut sum: impl FnMut(f64) -> Result<f64, E>) -> Result<f64, E> {
    // There are fewer than 2⁶⁴ elements, all below 2¹⁰²⁴.
    const SMALLER: f64 = 1.0 / 18_446_744_073_709_551_616.0;
    let n = n as f64;
    let whole = sum(1.0)?;
    if whole.is_finite() {
        return Ok(whole / n);
    }
    let small = sum(SMALLER)?;
    let mean = small / n / SMALLER;
    // For finite numbers only rounding can exceed the largest number.
    Ok(if small.is_finite() {
        mean.clamp(f64::MIN, f64::MAX)
    } else {
        mean
    })
}

/// The L2 norm from the sum of squares. `squares` returns Σ (s x)² in f64 for a scale s, as
/// [`Plan::sum_squares_into`] does; the numbers may be spread over several devices. If the sum
/// overflows, or is so small that squares may have underflowed, `squares` is called again with s =
/// 2⁻⁶⁰⁰ or 2⁶⁰⁰.
///
/// # Errors
///
/// The errors of `squares`.
pub fn norm_by<E>(mut squares: impl FnMut(f64) -> Result<f64, E>) -> Result<f64, E> {
    /// 2⁶⁰⁰: in an f64 the bits of 1.0 × 2^e are e + 1023, followed by 52 zeros.
    const LARGER: f64 = f64::from_bits((1023 + 600) << 52);
    /// 2⁻⁹⁰⁰. Each square loses less than 2⁻¹⁰⁷⁴ to underflow.
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

/// The operations by kind, for tests and the benchmark.
#[cfg(feature = "cases")]
#[doc(hidden)]
impl<T: Number> Plan<T> {
    /// Sets the most blocks. A number above the device's limit is refused only at launch.
    pub(crate) fn with_any_blocks(mut self, blocks: u32) -> Self {
        self.single_pass = self.single_pass.with_blocks(blocks);
        self
    }

    /// Computes a sum or an extremum.
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

    /// Computes a moment.
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

    /// Computes an argmin or argmax.
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

    /// Like [`sum_into`](Self::sum_into), but without copying the input for the kernel that
    /// destroys it: afterwards the first element of each block's part is the part's sum.
    ///
    /// # Errors
    ///
    /// As for [`sum_into`](Self::sum_into).
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

    /// The number of elements that a block of the textbook kernel sums.
    pub fn elements_per_block(&self) -> Option<usize> {
        self.ladder.as_ref().map(Ladder::elements_per_block)
    }
}
