//! Launches of the textbook's kernels, on a CUDA device or on the emulator.

use crate::variants::{launch_registered, variants};
use crate::{Buffer, Constants, Device, DeviceKind, Element, Error, LaunchConfig};
use gpu_kernels::reduction::geometry::DEFAULT_BLOCK;
use gpu_kernels::reduction::{
    MAX_BLOCK, MIN_BLOCK, UNROLL, global::*, shared::*, shared_unroll4::*,
    shared_unroll4_dynamic::*,
};
use gpu_kernels::registry::{Entry, HasScalar, Problem};
use std::fmt;

variants! {
    /// One of the textbook kernels. Each exists for `i32` and for `f32`.
    ///
    /// | kernel | where a block adds | elements per block |
    /// |---|---|---|
    /// | `reduction_global` | in the input itself | `block` |
    /// | `reduction_shared` | in static shared memory | `block` |
    /// | `reduction_shared_unroll4` | the same; before, each thread adds 4 elements that lie `block` apart | `4 * block` |
    /// | `reduction_shared_unroll4_dynamic` | the same in dynamic shared memory | `4 * block` |
    pub enum Variant {
        /// `reduction_global`. The kernel destroys its input; the library gives it a
        /// copy, except in [`Reduction::partials_in_place`](super::Reduction::partials_in_place).
        Global: reduction_global_i32, reduction_global_f32;
        /// `reduction_shared`.
        Shared: reduction_shared_i32, reduction_shared_f32;
        /// `reduction_shared_unroll4`.
        SharedUnroll4: reduction_shared_unroll4_i32, reduction_shared_unroll4_f32;
        /// `reduction_shared_unroll4_dynamic`.
        SharedUnroll4Dynamic:
            reduction_shared_unroll4_dynamic_i32, reduction_shared_unroll4_dynamic_f32;
    }
}

impl Variant {
    /// The kernel's name without the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        let entry = &self.entries()[0];
        let without = entry.name.len() - "_".len() - entry.scalar.name().len();
        entry.name.split_at(without).0
    }

    /// The kernel for elements of `T`.
    pub(super) fn entry<T: PartialSumKernels>(self) -> &'static Entry {
        let entries = self.entries();
        let Some(entry) = entries.iter().find(|entry| entry.scalar == T::SCALAR) else {
            unreachable!("each exists for every such type")
        };
        entry
    }

    /// Elements that one thread adds before its block does: 1 or 4.
    #[must_use]
    pub const fn elements_per_thread(self) -> u32 {
        match self {
            Self::Global | Self::Shared => 1,
            Self::SharedUnroll4 | Self::SharedUnroll4Dynamic => UNROLL,
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a sum is launched: the kernel, and its threads per block, which are 32, 64, … or
/// 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct How {
    variant: Variant,
    block: u32,
}

/// `reduction_shared_unroll4` with the textbook's blocks.
impl Default for How {
    fn default() -> Self {
        Self {
            variant: Variant::SharedUnroll4,
            block: DEFAULT_BLOCK,
        }
    }
}

impl How {
    /// By this kernel, if it takes such blocks.
    pub(super) fn new(variant: Variant, block: u32) -> Result<Self, Error> {
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

    pub(super) const fn variant(self) -> Variant {
        self.variant
    }

    pub(super) const fn block(self) -> u32 {
        self.block
    }

    /// Elements that one block sums.
    pub(super) const fn elements_per_block(self) -> usize {
        self.block as usize * self.variant.elements_per_thread() as usize
    }

    /// How many partial sums `n` elements give.
    pub(super) fn partials_len(self, n: usize) -> Result<usize, Error> {
        if n == 0 {
            return Err(Error::EmptyInput {
                operation: self.variant.name(),
            });
        }
        Ok(n.div_ceil(self.elements_per_block()))
    }

    const fn problem(self, n: usize) -> Problem {
        Problem::line(n).with_block(self.block)
    }

    /// Whether the device can launch it for `n` elements of `T`.
    pub(super) fn check_geometry<T: PartialSumKernels>(
        self,
        device: &Device,
        n: usize,
    ) -> Result<(), Error> {
        let entry = self.variant.entry::<T>();
        if device.kind() == DeviceKind::Cpu {
            // Here too, before anything is allocated or copied.
            return Err(Error::NotLaunchable { kernel: entry.name });
        }
        let config = LaunchConfig::from(entry.geometry(&self.problem(n))?);
        config.check(entry.name, device.limits())
    }

    /// Whether the buffers fit, on a device that can launch it.
    fn check<T: PartialSumKernels>(
        self,
        values: &Buffer<T>,
        partials: &Buffer<T>,
    ) -> Result<(), Error> {
        let required = self.partials_len(values.len())?;
        if partials.len() != required {
            return Err(Error::LengthMismatch {
                what: format!("{}: partials", self.variant.entry::<T>().name),
                required,
                given: partials.len(),
            });
        }
        values.device().require("reduction: partials", partials)?;
        self.check_geometry::<T>(values.device(), values.len())
    }
}

/// What is summed.
#[derive(Debug)]
enum Values<'a, T: Element> {
    /// By a kernel that only reads it.
    Read(&'a Buffer<T>),
    /// By [`Variant::Global`], which destroys it.
    InPlace(&'a mut Buffer<T>),
}

/// Buffers that fit a reduction: on one device, of one element at least, and with a partial
/// sum for each block. Whoever has one may launch the kernel, and only the check makes one.
#[derive(Debug)]
pub struct Checked<'a, T: Element> {
    how: How,
    values: Values<'a, T>,
    partials: &'a mut Buffer<T>,
}

/// Types that the kernels sum.
pub trait PartialSumKernels: Element + HasScalar {
    /// Launches the kernel.
    fn launch_partials(checked: Checked<'_, Self>) -> Result<(), Error>;
}

/// Launches the kernel; one that destroys its input gets a copy.
pub(super) fn partials<T: PartialSumKernels>(
    how: How,
    values: &Buffer<T>,
    partials: &mut Buffer<T>,
) -> Result<(), Error> {
    how.check(values, partials)?;
    let mut copy;
    let values = match how.variant {
        Variant::Global => {
            copy = values.try_clone()?;
            Values::InPlace(&mut copy)
        }
        _ => Values::Read(values),
    };
    T::launch_partials(Checked {
        how,
        values,
        partials,
    })
}

/// The same without a copy.
pub(super) fn partials_in_place<T: PartialSumKernels>(
    how: How,
    values: &mut Buffer<T>,
    partials: &mut Buffer<T>,
) -> Result<(), Error> {
    how.check(values, partials)?;
    let values = match how.variant {
        Variant::Global => Values::InPlace(values),
        _ => Values::Read(values),
    };
    T::launch_partials(Checked {
        how,
        values,
        partials,
    })
}

macro_rules! kernels {
    ($($type:ty: $global:ident; $($variant:ident => $kernel:ident),+;)+) => {$(
        impl PartialSumKernels for $type {
            fn launch_partials(
                Checked { how, values, partials }: Checked<'_, Self>,
            ) -> Result<(), Error> {
                let (device, constants) = (partials.device().clone(), Constants::new());
                match values {
                    Values::InPlace(values) => {
                        let n = values.len();
                        let (problem, args) = (how.problem(n), $global::args(values, n, partials));
                        // SAFETY: as below; `values` is borrowed mutably.
                        unsafe { launch_registered::<$global>(&device, &problem, &constants, args) }
                    }
                    Values::Read(values) => match how.variant {
                        Variant::Global => unreachable!("it works in place"),
                        $(Variant::$variant => {
                            let n = values.len();
                            let problem = how.problem(n);
                            let args = $kernel::args(values, n, partials);
                            // SAFETY: both buffers are on `device`, as `Checked` says, and
                            // distinct, since `partials` is borrowed mutably. The geometry is
                            // that of the table for this many elements, of which there is at
                            // least one, in blocks of a size that it takes;
                            // `partials` has one element per block.
                            unsafe {
                                launch_registered::<$kernel>(&device, &problem, &constants, args)
                            }
                        })+
                    },
                }
            }
        }
    )+};
}

kernels! {
    i32: reduction_global_i32;
        Shared => reduction_shared_i32,
        SharedUnroll4 => reduction_shared_unroll4_i32,
        SharedUnroll4Dynamic => reduction_shared_unroll4_dynamic_i32;
    f32: reduction_global_f32;
        Shared => reduction_shared_f32,
        SharedUnroll4 => reduction_shared_unroll4_f32,
        SharedUnroll4Dynamic => reduction_shared_unroll4_dynamic_f32;
}
