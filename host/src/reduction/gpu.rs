//! Launches the textbook's reduction kernels, on a CUDA device or on the emulator.

use crate::argument::Argument;
use crate::single_pass::{Operation, SinglePassKernels};
use crate::variants::{launch_registered, variants};
use crate::{Buffer, Constants, Device, DeviceKind, Element, Error, LaunchConfig};
use gpu_kernels::reduction::{
    UNROLL, global::*, shared::*, shared_unroll4::*, shared_unroll4_dynamic::*, single_pass::*,
};
use gpu_kernels::registry::{Entry, HasScalar, Problem, Scalar};
use std::fmt;

variants! {
    /// One of the kernels that compute a sum.
    ///
    /// | kernel | where a block adds | elements per block |
    /// |---|---|---|
    /// | `reduction_global` | in the input itself | `block` |
    /// | `reduction_shared` | in static shared memory | `block` |
    /// | `reduction_shared_unroll4` | the same; first each thread adds 4 elements that are `block` apart | `4 * block` |
    /// | `reduction_shared_unroll4_dynamic` | the same in dynamic shared memory | `4 * block` |
    /// | `reduction_single_pass_sum` | in registers, across lanes | all elements, together with the other blocks |
    ///
    /// The first four are the textbook's. They exist for `i32` and `f32` and leave one sum per
    /// block; the last exists for all types and leaves one sum.
    pub enum Variant {
        /// `reduction_global`. The kernel destroys its input; the library gives it a copy.
        Global: reduction_global_i32, reduction_global_f32;
        /// `reduction_shared`.
        Shared: reduction_shared_i32, reduction_shared_f32;
        /// `reduction_shared_unroll4`.
        SharedUnroll4: reduction_shared_unroll4_i32, reduction_shared_unroll4_f32;
        /// `reduction_shared_unroll4_dynamic`.
        SharedUnroll4Dynamic:
            reduction_shared_unroll4_dynamic_i32, reduction_shared_unroll4_dynamic_f32;
        /// `reduction_single_pass_sum`: the library's choice.
        SinglePass: reduction_single_pass_sum_i32, reduction_single_pass_sum_i64,
            reduction_single_pass_sum_f32, reduction_single_pass_sum_f64;
    }
}

impl Variant {
    /// The kernel's name without the type suffix.
    #[must_use]
    pub const fn name(self) -> &'static str {
        let entry = &self.entries()[0];
        let without = entry.name.len() - "_".len() - entry.scalar.name().len();
        entry.name.split_at(without).0
    }

    /// The kernel for elements of `T`, if it exists.
    pub(super) fn entry<T: SinglePassKernels + TextbookKernels>(self) -> Option<Entry> {
        if self == Self::SinglePass {
            // Also for unsigned integers, which use the kernels of signed ones.
            return Some(T::elements(Operation::Sum));
        }
        let scalar = T::TEXTBOOK.as_ref()?.scalar;
        let mut entries = self.entries().iter();
        entries.find(|entry| entry.scalar == scalar).copied()
    }

    /// The number of elements that a textbook kernel's thread adds before its block does.
    pub(super) const fn elements_per_thread(self) -> u32 {
        match self {
            Self::Global | Self::Shared | Self::SinglePass => 1,
            Self::SharedUnroll4 | Self::SharedUnroll4Dynamic => UNROLL,
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A sum with a textbook kernel, in blocks of this many threads: 32, 64, … or 1024.
#[derive(Debug)]
pub(super) struct Ladder<T: Element> {
    variant: Variant,
    entry: Entry,
    block: u32,
    sums: TextbookSums<T>,
}

impl<T: Element> Clone for Ladder<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Element> Copy for Ladder<T> {}

impl<T: TextbookKernels + SinglePassKernels> Ladder<T> {
    /// The sum with this kernel, if it exists for `T` and the device can launch it. `None` if it is
    /// not a textbook kernel.
    pub(super) fn new(
        device: &Device,
        variant: Variant,
        block: u32,
    ) -> Result<Option<Self>, Error> {
        if variant == Variant::SinglePass {
            return Ok(None);
        }
        let (Some(entry), Some(sums)) = (variant.entry::<T>(), T::TEXTBOOK) else {
            return Err(Error::InvalidParameter {
                operation: "reduction",
                parameter: "the kernel",
                given: format!("{variant}, which sums i32 and f32"),
                required: format!(
                    "{} for elements of {}",
                    Variant::SinglePass,
                    std::any::type_name::<T>()
                ),
            });
        };
        let ladder = Self {
            variant,
            entry,
            block,
            sums,
        };
        // Reports what the device refuses at any length.
        ladder.check_geometry(device, 1)?;
        Ok(Some(ladder))
    }
}

impl<T: Element> Ladder<T> {
    pub(super) const fn variant(&self) -> Variant {
        self.variant
    }

    pub(super) const fn block(&self) -> u32 {
        self.block
    }

    /// The number of elements that one block sums.
    pub(super) const fn elements_per_block(&self) -> usize {
        self.block as usize * self.variant.elements_per_thread() as usize
    }

    /// The number of sums for `n` elements.
    pub(super) fn sums_len(&self, n: usize) -> Result<usize, Error> {
        if n == 0 {
            return Err(Error::EmptyInput {
                operation: self.variant.name(),
            });
        }
        Ok(n.div_ceil(self.elements_per_block()))
    }

    /// The sum of the blocks' sums.
    pub(super) fn finish(&self, sums: &[T]) -> T {
        (self.sums.finish)(sums)
    }

    const fn problem(&self, n: usize) -> Problem {
        Problem::line(n).with_block(self.block)
    }

    /// Checks that the device can launch it for `n` elements.
    pub(super) fn check_geometry(&self, device: &Device, n: usize) -> Result<(), Error> {
        let kernel = self.entry.name;
        if device.kind() == DeviceKind::Cpu {
            // Checked here too, before anything is allocated or copied.
            return Err(Error::NotLaunchable { kernel });
        }
        let config = LaunchConfig::from(self.entry.geometry(&self.problem(n))?);
        config.check(kernel, device.limits())
    }

    /// Checks that the buffers fit, on a device that can launch the kernel.
    fn check(&self, device: &Device, values: &Buffer<T>, sums: &Buffer<T>) -> Result<(), Error> {
        device.require("reduction: values", values)?;
        let required = self.sums_len(values.len())?;
        if sums.len() != required {
            return Err(Error::LengthMismatch {
                argument: Argument::new(self.entry.name, "result"),
                required,
                given: sums.len(),
            });
        }
        device.require("reduction: result", sums)?;
        self.check_geometry(device, values.len())
    }

    /// Launches the kernel. A kernel that destroys its input gets a copy, in `scratch`.
    pub(super) fn launch(
        self,
        device: &Device,
        values: &Buffer<T>,
        sums: &mut Buffer<T>,
        scratch: &mut Option<Buffer<T>>,
    ) -> Result<(), Error> {
        self.check(device, values, sums)?;
        let values = match self.variant {
            Variant::Global => Values::InPlace(match scratch {
                Some(copy) if copy.len() == values.len() => {
                    copy.copy_from(values)?;
                    copy
                }
                _ => scratch.insert(values.try_clone()?),
            }),
            _ => Values::Read(values),
        };
        (self.sums.launch)(Checked {
            ladder: self,
            values,
            sums,
        })
    }

    /// Launches the kernel without a copy.
    #[cfg(feature = "cases")]
    pub(super) fn launch_in_place(
        self,
        device: &Device,
        values: &mut Buffer<T>,
        sums: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.check(device, values, sums)?;
        let values = match self.variant {
            Variant::Global => Values::InPlace(values),
            _ => Values::Read(values),
        };
        (self.sums.launch)(Checked {
            ladder: self,
            values,
            sums,
        })
    }
}

/// The elements to sum.
#[derive(Debug)]
enum Values<'a, T: Element> {
    /// For a kernel that only reads them.
    Read(&'a Buffer<T>),
    /// For [`Variant::Global`], which destroys them.
    InPlace(&'a mut Buffer<T>),
}

/// Buffers that fit a reduction: on one device, with at least one element, and with a sum for each
/// block. The kernel may be launched on them. Only the check can make this type.
#[derive(Debug)]
pub struct Checked<'a, T: Element> {
    ladder: Ladder<T>,
    values: Values<'a, T>,
    sums: &'a mut Buffer<T>,
}

/// The textbook's sums for elements of one type.
#[derive(Debug)]
pub struct TextbookSums<T: Element> {
    scalar: Scalar,
    launch: fn(Checked<'_, T>) -> Result<(), Error>,
    /// Adds the sums that a kernel leaves, in order.
    finish: fn(&[T]) -> T,
}

impl<T: Element> Clone for TextbookSums<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Element> Copy for TextbookSums<T> {}

/// An element type of reductions, with its textbook kernels.
pub trait TextbookKernels: Element {
    /// `None` if only the single-pass kernels sum this type.
    const TEXTBOOK: Option<TextbookSums<Self>>;
}

macro_rules! none {
    ($($type:ty),+) => {$(
        impl TextbookKernels for $type {
            const TEXTBOOK: Option<TextbookSums<Self>> = None;
        }
    )+};
}

none!(u32, i64, u64, f64);

macro_rules! kernels {
    ($($type:ident: $finish:path, $global:ident; $($variant:ident => $kernel:ident),+;)+) => {$(
        impl TextbookKernels for $type {
            const TEXTBOOK: Option<TextbookSums<Self>> = {
                fn launch(checked: Checked<'_, $type>) -> Result<(), Error> {
                    let Checked { ladder, values, sums } = checked;
                    let (device, constants) = (sums.device().clone(), Constants::new());
                    match values {
                        Values::InPlace(values) => {
                            let n = values.len();
                            let (problem, args) = (ladder.problem(n), $global::args(values, n, sums));
                            // SAFETY: as below; `values` is borrowed mutably.
                            unsafe {
                                launch_registered::<$global>(&device, &problem, &constants, args)
                            }
                        }
                        Values::Read(values) => match ladder.variant {
                            Variant::Global | Variant::SinglePass => {
                                unreachable!("one works in place, the other is no ladder's")
                            }
                            $(Variant::$variant => {
                                let n = values.len();
                                let problem = ladder.problem(n);
                                let args = $kernel::args(values, n, sums);
                                // SAFETY: `Checked` guarantees that both buffers are on `device`;
                                // they are distinct, because `sums` is borrowed mutably. The
                                // geometry is the table's for this many elements, at least one, in
                                // blocks of a size that the kernel takes; `sums` has one element
                                // per block.
                                unsafe {
                                    launch_registered::<$kernel>(
                                        &device, &problem, &constants, args,
                                    )
                                }
                            })+
                        },
                    }
                }
                Some(TextbookSums {
                    scalar: <$type>::SCALAR,
                    launch,
                    finish: $finish,
                })
            };
        }
    )+};
}

kernels! {
    i32: super::cpu::finish_i32, reduction_global_i32;
        Shared => reduction_shared_i32,
        SharedUnroll4 => reduction_shared_unroll4_i32,
        SharedUnroll4Dynamic => reduction_shared_unroll4_dynamic_i32;
    f32: super::cpu::finish_f32, reduction_global_f32;
        Shared => reduction_shared_f32,
        SharedUnroll4 => reduction_shared_unroll4_f32,
        SharedUnroll4Dynamic => reduction_shared_unroll4_dynamic_f32;
}
