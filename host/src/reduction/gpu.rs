//! Launches of the kernels, on a CUDA device or on the emulator.

use super::{Operation, Partition, Reduction, Variant};
use crate::{Buffer, Device, DeviceKind, Element, Error, LaunchConfig, blocks_for, launch};
use cuda_std::host::Kernel;
use gpu_kernels::reduction as kernels;
use kernels::{global::*, shared::*, shared_unroll4::*, shared_unroll4_dynamic::*, single_pass::*};

/// Types that the kernels sum.
pub trait Kernels: Element {
    /// The entry point of `variant` for this type, as in the PTX.
    fn kernel(variant: Variant) -> &'static str;

    /// Launches the kernel that sums `values` in place, destroying them.
    ///
    /// The caller has checked the buffers' lengths and devices.
    fn launch_in_place(
        config: &LaunchConfig,
        values: &mut Buffer<Self>,
        partials: &mut Buffer<Self>,
    ) -> Result<(), Error>;

    /// Launches `variant`, one of the three that only read `values`.
    ///
    /// The caller has checked the buffers' lengths and devices.
    fn launch(
        variant: ReadOnly,
        config: &LaunchConfig,
        values: &Buffer<Self>,
        partials: &mut Buffer<Self>,
    ) -> Result<(), Error>;
}

/// The kernels that leave their input as it was.
#[derive(Debug, Clone, Copy)]
pub enum ReadOnly {
    Shared,
    SharedUnroll4,
    SharedUnroll4Dynamic,
}

impl Reduction {
    /// Grid, block and shared memory for `n` elements of `T`, checked against
    /// the device's limits.
    pub(super) fn launch_config<T: Kernels>(
        &self,
        device: &Device,
        n: usize,
    ) -> Result<LaunchConfig, Error> {
        let kernel = T::kernel(self.variant());
        if device.kind() == DeviceKind::Cpu {
            // Here too, before anything is allocated or copied.
            return Err(Error::NotLaunchable { kernel });
        }
        let grid = blocks_for(kernel, n, self.elements_per_block())?;
        let shared = match self.variant() {
            Variant::SharedUnroll4Dynamic => self.block() * size_of::<T>() as u32,
            Variant::Global | Variant::Shared | Variant::SharedUnroll4 => 0,
        };
        let config = LaunchConfig::new(grid, self.block()).with_dynamic_shared_bytes(shared);
        config.check(kernel, device.limits())?;
        Ok(config)
    }
}

macro_rules! kernels {
    ($type:ty: $global:ident, $shared:ident, $unroll4:ident, $dynamic:ident) => {
        impl Kernels for $type {
            fn kernel(variant: Variant) -> &'static str {
                match variant {
                    Variant::Global => $global::NAME,
                    Variant::Shared => $shared::NAME,
                    Variant::SharedUnroll4 => $unroll4::NAME,
                    Variant::SharedUnroll4Dynamic => $dynamic::NAME,
                }
            }

            fn launch_in_place(
                config: &LaunchConfig,
                values: &mut Buffer<Self>,
                partials: &mut Buffer<Self>,
            ) -> Result<(), Error> {
                let (device, n) = (values.device().clone(), values.len());
                let args = $global::args(values, n, partials);
                // SAFETY: as for the kernels below; `values` is borrowed mutably.
                unsafe { launch::<$global>(&device, config, args) }
            }

            fn launch(
                variant: ReadOnly,
                config: &LaunchConfig,
                values: &Buffer<Self>,
                partials: &mut Buffer<Self>,
            ) -> Result<(), Error> {
                let (device, n) = (values.device().clone(), values.len());
                // SAFETY: both buffers are on `device`, as the caller checked,
                // and distinct, since `partials` is borrowed mutably. The
                // geometry is that of `launch_config` for this many elements, of
                // which there is at least one, and `partials` has one element
                // per block of it.
                unsafe {
                    match variant {
                        ReadOnly::Shared => {
                            launch::<$shared>(&device, config, $shared::args(values, n, partials))
                        }
                        ReadOnly::SharedUnroll4 => {
                            launch::<$unroll4>(&device, config, $unroll4::args(values, n, partials))
                        }
                        ReadOnly::SharedUnroll4Dynamic => {
                            launch::<$dynamic>(&device, config, $dynamic::args(values, n, partials))
                        }
                    }
                }
            }
        }
    };
}

kernels! {
    i32: reduction_global_i32, reduction_shared_i32, reduction_shared_unroll4_i32,
    reduction_shared_unroll4_dynamic_i32
}
kernels! {
    f32: reduction_global_f32, reduction_shared_f32, reduction_shared_unroll4_f32,
    reduction_shared_unroll4_dynamic_f32
}

/// Types that the single-pass kernels reduce.
pub trait SinglePassKernels: Element {
    /// The entry point of `operation` for this type, as in the PTX.
    fn single_pass(operation: Operation) -> &'static str;

    /// Launches that kernel, once.
    ///
    /// The caller has checked that all buffers are on one device and `values` is not
    /// empty, has cut it as `partition` says, into at least `blocks` chunks, and gives
    /// a workspace of the partition's length, all zero, and a result of one element.
    fn launch_single_pass(
        operation: Operation,
        partition: Partition,
        blocks: u32,
        values: &Buffer<Self>,
        workspace: &mut Buffer<u64>,
        result: &mut Buffer<Self>,
    ) -> Result<(), Error>;
}

macro_rules! single_pass {
    ($type:ty: $sum:ident, $min:ident, $max:ident) => {
        impl SinglePassKernels for $type {
            fn single_pass(operation: Operation) -> &'static str {
                match operation {
                    Operation::Sum => $sum::NAME,
                    Operation::Min => $min::NAME,
                    Operation::Max => $max::NAME,
                }
            }

            fn launch_single_pass(
                operation: Operation,
                partition: Partition,
                blocks: u32,
                values: &Buffer<Self>,
                workspace: &mut Buffer<u64>,
                result: &mut Buffer<Self>,
            ) -> Result<(), Error> {
                let device = values.device().clone();
                let config = LaunchConfig::new(blocks, THREADS);
                let (n, tiles, chunks) = (values.len(), partition.tiles(), partition.chunks());
                macro_rules! launch {
                    ($kernel:ident) => {
                        // SAFETY: the buffers are on `device`, distinct (two are
                        // borrowed mutably) and of the lengths that the kernel asks
                        // for, the workspace is zero, as the caller checked; every
                        // allocation is aligned to 16 bytes. The partition is one of
                        // `n >= 1` elements, the geometry at most a block for each of
                        // its chunks. Blocks that have begun run to their end on
                        // every device: on a GPU they have their place on a
                        // multiprocessor, on the emulator their thread.
                        unsafe {
                            launch::<$kernel>(
                                &device,
                                &config,
                                $kernel::args(values, n, tiles, chunks, workspace, result),
                            )
                        }
                    };
                }
                match operation {
                    Operation::Sum => launch!($sum),
                    Operation::Min => launch!($min),
                    Operation::Max => launch!($max),
                }
            }
        }
    };
}

single_pass! {
    i32: reduction_single_pass_sum_i32, reduction_single_pass_min_i32, reduction_single_pass_max_i32
}
single_pass! {
    f32: reduction_single_pass_sum_f32, reduction_single_pass_min_f32, reduction_single_pass_max_f32
}
single_pass! {
    f64: reduction_single_pass_sum_f64, reduction_single_pass_min_f64, reduction_single_pass_max_f64
}
