//! Launches of the kernels, on a CUDA device or on the emulator.

use super::cpu::Port;
use super::{Extremum, Moment, Operation, Partition, Reduction, Variant};
use crate::{Buffer, Device, DeviceKind, Element, Error, LaunchConfig, blocks_for, launch};
use cuda_std::host::{In, Kernel, Out};
use gpu_kernels::reduction as kernels;
use kernels::{
    arg_extremum::*, dot::*, global::*, moment::*, shared::*, shared_unroll4::*,
    shared_unroll4_dynamic::*, single_pass::*,
};
use std::borrow::Borrow;

/// Types that the kernels sum.
pub trait Kernels: Element {
    /// The entry point of `variant` for this type, as in the PTX.
    fn kernel(variant: Variant) -> &'static str;

    /// Launches the kernel that sums the values in place, destroying them.
    fn launch_in_place(checked: Checked<'_, &mut Buffer<Self>, Self>) -> Result<(), Error>;

    /// Launches `variant`, one of the three that only read the values.
    fn launch(variant: ReadOnly, checked: Checked<'_, &Buffer<Self>, Self>) -> Result<(), Error>;
}

/// Buffers that fit a reduction, on one device, and the geometry for them. Whoever has
/// one may launch a kernel on it, and only the check makes one.
#[derive(Debug)]
pub struct Checked<'a, V, T: Element> {
    config: LaunchConfig,
    values: V,
    partials: &'a mut Buffer<T>,
}

impl<'a, V: Borrow<Buffer<T>>, T: Kernels> Checked<'a, V, T> {
    /// Checks.
    pub(super) fn new(
        reduction: &Reduction,
        values: V,
        partials: &'a mut Buffer<T>,
    ) -> Result<Self, Error> {
        let config = reduction.check(values.borrow(), partials)?;
        Ok(Self {
            config,
            values,
            partials,
        })
    }
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

            fn launch_in_place(checked: Checked<'_, &mut Buffer<Self>, Self>) -> Result<(), Error> {
                let Checked {
                    config,
                    values,
                    partials,
                } = checked;
                let (device, n) = (values.device().clone(), values.len());
                let args = $global::args(values, n, partials);
                // SAFETY: as for the kernels below; `values` is borrowed mutably.
                unsafe { launch::<$global>(&device, &config, args) }
            }

            fn launch(
                variant: ReadOnly,
                checked: Checked<'_, &Buffer<Self>, Self>,
            ) -> Result<(), Error> {
                let Checked {
                    config,
                    values,
                    partials,
                } = checked;
                let config = &config;
                let (device, n) = (values.device().clone(), values.len());
                // SAFETY: both buffers are on `device`, as `Checked` says,
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

/// How an array is cut and how many blocks share the work.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    pub partition: Partition,
    pub blocks: u32,
}

/// Types that the single-pass kernels reduce.
///
/// Of every launch the caller has checked that all buffers are on one device and no
/// input is empty, has cut it as the partition says, into at least `blocks` chunks, and
/// gives a workspace of the partition's length for results of the kernel's size, all
/// zero, and a result of one element.
pub trait SinglePassKernels: Element + Port {
    /// The entry point of `operation` for this type, as in the PTX.
    fn single_pass(operation: Operation) -> &'static str;

    /// The entry point of moments.
    const MOMENT: &'static str;

    /// The entry point of dot products.
    const DOT: &'static str;

    /// The entry point of positions of extrema.
    const ARG_EXTREMUM: &'static str;

    /// Bytes of what that combines: a key and an index.
    const CANDIDATE_BYTES: usize;

    /// Launches the kernel of `operation`, once.
    fn launch_single_pass(
        operation: Operation,
        cut: Cut,
        values: &Buffer<Self>,
        workspace: &mut Buffer<u64>,
        result: &mut Buffer<Self>,
    ) -> Result<(), Error>;

    /// Launches the kernel of moments, once. `scale` is a power of two.
    fn launch_moment(
        moment: Moment,
        scale: f64,
        cut: Cut,
        values: &Buffer<Self>,
        workspace: &mut Buffer<u64>,
        result: &mut Buffer<f64>,
    ) -> Result<(), Error>;

    /// Launches the kernel of dot products, once. `x` and `y` have one length.
    fn launch_dot(
        cut: Cut,
        x: &Buffer<Self>,
        y: &Buffer<Self>,
        workspace: &mut Buffer<u64>,
        result: &mut Buffer<Self::Product>,
    ) -> Result<(), Error>;

    /// Launches the kernel of positions of extrema, once.
    fn launch_arg_extremum(
        extremum: Extremum,
        cut: Cut,
        values: &Buffer<Self>,
        workspace: &mut Buffer<u64>,
        result: &mut Buffer<u64>,
    ) -> Result<(), Error>;
}

/// Launches `$kernel`: the arrays, of the type whose bits it wants, then the sizes, then
/// what is special to it, then workspace and result.
macro_rules! launch {
    ($kernel:ident, $cut:ident, [$($array:ident),+] of $bits:ty, ($($special:expr),*), $workspace:ident, $result:ident of $output:ty) => {{
        let config = LaunchConfig::new($cut.blocks, THREADS);
        let (tiles, chunks) = ($cut.partition.tiles(), $cut.partition.chunks());
        let device = $workspace.device().clone();
        launch!(@first n $($array)+);
        // SAFETY: the buffers are on `device`, those that are written are borrowed
        // mutably and so distinct, and all are of the lengths that the kernel asks for;
        // the workspace is zero, as the caller checked; every allocation is aligned to
        // 16 bytes. The partition is one of `n >= 1` elements, the geometry at most a
        // block for each of its chunks. Blocks that have begun run to their end on every
        // device: on a GPU they have their place on a multiprocessor, on the emulator
        // their thread. A kernel of another type is one for integers of the same size,
        // every pattern of whose bits is a value.
        unsafe {
            $(let $array = In::<$bits>::from_raw($array.device_address(), n);)+
            let result = Out::<$output>::from_raw($result.device_address(), 1);
            launch::<$kernel>(
                &device,
                &config,
                $kernel::args($($array,)+ n, tiles, chunks, $($special,)* $workspace, result),
            )
        }
    }};
    (@first $n:ident $array:ident $($rest:ident)*) => {
        let $n = $array.len();
    };
}

macro_rules! single_pass {
    ($($type:ty: $sum:ident of $sum_type:ty, $min:ident, $max:ident, $moment:ident,
        $dot:ident of $dot_type:ty => $product:ty,
        $arg:ident of $arg_type:ty => $key:ty, $min_mask:expr, $max_mask:expr;)*) => {$(
        impl SinglePassKernels for $type {
            const MOMENT: &'static str = $moment::NAME;
            const DOT: &'static str = $dot::NAME;
            const ARG_EXTREMUM: &'static str = $arg::NAME;
            const CANDIDATE_BYTES: usize = size_of::<Self>() + size_of::<u64>();

            fn single_pass(operation: Operation) -> &'static str {
                match operation {
                    Operation::Sum => $sum::NAME,
                    Operation::Min => $min::NAME,
                    Operation::Max => $max::NAME,
                }
            }

            fn launch_single_pass(
                operation: Operation,
                cut: Cut,
                values: &Buffer<Self>,
                workspace: &mut Buffer<u64>,
                result: &mut Buffer<Self>,
            ) -> Result<(), Error> {
                match operation {
                    Operation::Sum => {
                        launch!($sum, cut, [values] of $sum_type, (), workspace, result of $sum_type)
                    }
                    Operation::Min => launch!($min, cut, [values] of Self, (), workspace, result of Self),
                    Operation::Max => launch!($max, cut, [values] of Self, (), workspace, result of Self),
                }
            }

            fn launch_moment(
                moment: Moment,
                scale: f64,
                cut: Cut,
                values: &Buffer<Self>,
                workspace: &mut Buffer<u64>,
                result: &mut Buffer<f64>,
            ) -> Result<(), Error> {
                let squared = u32::from(moment == Moment::Second);
                launch!($moment, cut, [values] of Self, (scale, squared), workspace, result of f64)
            }

            fn launch_dot(
                cut: Cut,
                x: &Buffer<Self>,
                y: &Buffer<Self>,
                workspace: &mut Buffer<u64>,
                result: &mut Buffer<Self::Product>,
            ) -> Result<(), Error> {
                launch!($dot, cut, [x, y] of $dot_type, (), workspace, result of $product)
            }

            fn launch_arg_extremum(
                extremum: Extremum,
                cut: Cut,
                values: &Buffer<Self>,
                workspace: &mut Buffer<u64>,
                result: &mut Buffer<u64>,
            ) -> Result<(), Error> {
                let mask: $key = match extremum {
                    Extremum::Min => $min_mask,
                    Extremum::Max => $max_mask,
                };
                launch!($arg, cut, [values] of $arg_type, (mask), workspace, result of u64)
            }
        }
    )*};
}

/// The sign bits of integers: with them turned round, negative integers come first.
const SIGN_32: u32 = 1 << 31;
const SIGN_64: u64 = 1 << 63;

single_pass! {
    i32: reduction_single_pass_sum_i32 of i32, reduction_single_pass_min_i32, reduction_single_pass_max_i32,
        reduction_moment_i32, reduction_dot_i32 of i32 => i64,
        reduction_arg_extremum_u32 of u32 => u32, SIGN_32, !SIGN_32;
    u32: reduction_single_pass_sum_i32 of i32, reduction_single_pass_min_u32, reduction_single_pass_max_u32,
        reduction_moment_u32, reduction_dot_u32 of u32 => u64,
        reduction_arg_extremum_u32 of u32 => u32, 0, !0;
    i64: reduction_single_pass_sum_i64 of i64, reduction_single_pass_min_i64, reduction_single_pass_max_i64,
        reduction_moment_i64, reduction_dot_i64 of i64 => i64,
        reduction_arg_extremum_u64 of u64 => u64, SIGN_64, !SIGN_64;
    u64: reduction_single_pass_sum_i64 of i64, reduction_single_pass_min_u64, reduction_single_pass_max_u64,
        reduction_moment_u64, reduction_dot_i64 of i64 => i64,
        reduction_arg_extremum_u64 of u64 => u64, 0, !0;
    f32: reduction_single_pass_sum_f32 of f32, reduction_single_pass_min_f32, reduction_single_pass_max_f32,
        reduction_moment_f32, reduction_dot_f32 of f32 => f64,
        reduction_arg_extremum_f32 of f32 => u32, 0, !0;
    f64: reduction_single_pass_sum_f64 of f64, reduction_single_pass_min_f64, reduction_single_pass_max_f64,
        reduction_moment_f64, reduction_dot_f64 of f64 => f64,
        reduction_arg_extremum_f64 of f64 => u64, 0, !0;
}
