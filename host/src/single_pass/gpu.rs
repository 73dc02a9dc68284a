//! Launches the single-pass reduction kernels, on a CUDA device or on the emulator.

use super::cpu::Port;
use super::kinds::{Extremum, Moment, Operation};
use super::reduce::{Checked, Reduce};
use crate::variants::launch_registered;
use crate::{Buffer, Constants, Device, DeviceKind, Element, Error};
use cuda_std::host::{In, Out};
use gpu_kernels::reduction::geometry::in_chunks;
use gpu_kernels::reduction::partition::Partition;
use gpu_kernels::reduction::{arg_extremum::*, dot::*, moment::*, single_pass::*};
use gpu_kernels::registry::{Entry, Problem, Registered};

/// A type that the kernels reduce.
pub trait SinglePassKernels: Element + Port {
    /// The kernel of `operation` for this type.
    fn elements(operation: Operation) -> Entry;

    /// The kernel for moments.
    const MOMENT: Entry;

    /// The kernel for dot products.
    const DOT: Entry;

    /// The kernel for argmin and argmax.
    const ARG_EXTREMUM: Entry;

    /// Launches a kernel.
    fn launch(ready: Ready<'_, Self>) -> Result<(), Error>;
}

/// A reduction whose buffers fit, with the division of its arrays and the number of blocks, at most
/// one per chunk. The workspace is long enough and zero, except possibly for the first ticket. The
/// kernel may be launched on them. Only [`Workspace`] can make this type.
#[derive(Debug)]
pub struct Ready<'a, T: SinglePassKernels> {
    reduce: Reduce<'a, T>,
    partition: Partition,
    problem: Problem,
    workspace: &'a mut Buffer<u64>,
}

/// The kernels' workspace, which is kept between launches.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    /// All zero when no launch is running, unless `dirty`.
    words: Option<Buffer<u64>>,
    /// A launch was stopped at an unknown point.
    dirty: bool,
}

impl Workspace {
    /// Launches a reduction with at most `blocks` blocks, on chunks of `tiles` tiles or, with
    /// `None`, of the library's default number.
    pub(super) fn launch<T: SinglePassKernels>(
        &mut self,
        checked: Checked<'_, T>,
        tiles: Option<u32>,
        blocks: u32,
    ) -> Result<(), Error> {
        let reduce = checked.into_inner();
        let n = reduce.values().len();
        let partition = match tiles {
            None => Partition::of(n, size_of::<T>()),
            Some(tiles) => Partition::with_tiles(n, size_of::<T>(), tiles),
        };
        let len = partition.workspace_len(reduce.combined_bytes());
        let mut workspace = self.take(reduce.values(), len)?;
        self.dirty = true;
        let launched = T::launch(Ready {
            reduce,
            partition,
            problem: in_chunks(n, partition, blocks),
            workspace: &mut workspace,
        });
        self.dirty = launched.is_err();
        self.words = Some(workspace);
        launched
    }

    /// The result of each chunk of `tiles` tiles, in 32-bit words, from a launch with at most
    /// `blocks` blocks. Waits for it. `None` for a single chunk, whose result is the whole.
    ///
    /// The kernels leave a chunk's result in its slot; the block with the last ticket collects and
    /// clears all slots. Here the tickets begin after the last: no block gets it, and all slots
    /// stay full.
    pub(super) fn chunks<T: SinglePassKernels>(
        &mut self,
        checked: Checked<'_, T>,
        tiles: u32,
        blocks: u32,
    ) -> Result<Option<Vec<u32>>, Error> {
        /// The flag of a full slot, above the 32 bits of each word.
        const FULL: u64 = 1 << 32;
        let reduce = checked.into_inner();
        let n = reduce.values().len();
        let partition = Partition::with_tiles(n, size_of::<T>(), tiles);
        let words = partition.workspace_len(reduce.combined_bytes());
        let slots = partition.chunks() as usize * (reduce.combined_bytes() / size_of::<u32>());
        let mut workspace = self.take(reduce.values(), words)?;
        self.dirty = true;
        if partition.chunks() > 1 {
            // The ticket is the lower half of the first word.
            workspace.view_mut(..1)?.fill(u64::from(u32::MAX))?;
        }
        let launched = T::launch(Ready {
            reduce,
            partition,
            problem: in_chunks(n, partition, blocks),
            workspace: &mut workspace,
        });
        let left = launched.and_then(|()| workspace.view(words - slots..words)?.to_vec());
        self.words = Some(workspace);
        let left = left?;
        if partition.chunks() == 1 {
            return Ok(None);
        }
        debug_assert!(left.iter().all(|word| word >> 32 == FULL >> 32));
        Ok(Some(left.into_iter().map(|word| word as u32).collect()))
    }

    /// Allocates the workspace for the largest results of elements of `T` in this partition: an
    /// element and its index.
    pub(super) fn reserve<T: Element>(
        &mut self,
        device: &Device,
        partition: Partition,
    ) -> Result<(), Error> {
        if device.kind() != DeviceKind::Cpu {
            let len = partition.workspace_len(size_of::<T>() + size_of::<u64>());
            self.words = Some(device.alloc_filled(len, 0)?);
        }
        Ok(())
    }

    /// At least `len` zero words on the device of `values`.
    fn take<T: Element>(&mut self, values: &Buffer<T>, len: usize) -> Result<Buffer<u64>, Error> {
        match self.words.take() {
            Some(mut words) if words.len() >= len && words.device() == values.device() => {
                if self.dirty {
                    words.fill(0)?;
                }
                Ok(words)
            }
            _ => values.device().alloc_filled(len, 0),
        }
    }
}

/// Launches `$kernel` with the arrays (as the kernel's type with the same bits), the sizes, its
/// special arguments, the workspace and the result.
macro_rules! launch {
    ($kernel:ident, $ready:expr, [$($array:ident),+] of $bits:ty, ($($special:expr),*), $result:ident of $output:ty) => {{
        let (partition, problem, workspace) = $ready;
        let (tiles, chunks) = (partition.tiles(), partition.chunks());
        let device = workspace.device().clone();
        launch!(@first n $($array)+);
        // SAFETY: `Ready` guarantees that the buffers are on `device`. The written buffers are
        // borrowed mutably, so they are distinct. All have the lengths that the kernel requires.
        // The workspace is zero, or has a first ticket beyond the last, in which case no block
        // collects the posted results; every allocation is aligned to 16 bytes. The partition is
        // one of `n >= 1` elements, and the geometry has at most a block for each of its chunks.
        // Blocks that have begun run to their end on every device: a GPU gives them their place on
        // a multiprocessor, the emulator their thread. A kernel of another type is one for integers
        // of the same size, for which every bit pattern is a value.
        unsafe {
            $(let $array = In::<$bits>::from_raw($array.device_address(), n);)+
            let result = Out::<$output>::from_raw($result.device_address(), 1);
            let args = $kernel::args($($array,)+ n, tiles, chunks, $($special,)* workspace, result);
            launch_registered::<$kernel>(&device, &problem, &Constants::new(), args)
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
            const MOMENT: Entry = $moment::ENTRY;
            const DOT: Entry = $dot::ENTRY;
            const ARG_EXTREMUM: Entry = $arg::ENTRY;

            fn elements(operation: Operation) -> Entry {
                match operation {
                    Operation::Sum => $sum::ENTRY,
                    Operation::Min => $min::ENTRY,
                    Operation::Max => $max::ENTRY,
                }
            }

            fn launch(
                Ready { reduce, partition, problem, workspace }: Ready<'_, Self>,
            ) -> Result<(), Error> {
                let ready = (partition, problem, workspace);
                match reduce {
                    Reduce::Elements { operation, values, result } => match operation {
                        Operation::Sum => {
                            launch!($sum, ready, [values] of $sum_type, (), result of $sum_type)
                        }
                        Operation::Min => {
                            launch!($min, ready, [values] of Self, (), result of Self)
                        }
                        Operation::Max => {
                            launch!($max, ready, [values] of Self, (), result of Self)
                        }
                    },
                    Reduce::Moment { moment, scale, values, result } => {
                        let squared = u32::from(moment == Moment::Second);
                        launch!(
                            $moment, ready, [values] of Self, (scale, squared), result of f64
                        )
                    }
                    Reduce::Dot { x, y, result } => {
                        launch!($dot, ready, [x, y] of $dot_type, (), result of $product)
                    }
                    Reduce::ArgExtremum { extremum, values, result } => {
                        let mask: $key = match extremum {
                            Extremum::Min => $min_mask,
                            Extremum::Max => $max_mask,
                        };
                        launch!($arg, ready, [values] of $arg_type, (mask), result of u64)
                    }
                }
            }
        }
    )*};
}

/// The sign bits of integers: with them inverted, negative integers come first.
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
