//! Launches the line-stencil kernels, on a CUDA device or on the emulator.

use super::check::Checked;
use super::form::Form;
use crate::variants::{launch_registered, variants};
use crate::{Constants, Element, Error};
use gpu_kernels::registry::HasScalar;
use gpu_kernels::stencil1d::RADIUS;
use gpu_kernels::stencil1d::constant::{STENCIL1D_COEFFICIENTS, stencil1d_constant};
use gpu_kernels::stencil1d::custom::{
    ANTISYMMETRIC, ANY, MAX_RADIUS, SYMMETRIC, stencil1d_custom_f32, stencil1d_custom_f64,
};
use gpu_kernels::stencil1d::readonly::stencil1d_readonly;
use gpu_kernels::stencil1d::vector4::stencil1d_vector4;
use std::fmt;

/// Threads of a warp; the number of threads of a block is a multiple of it.
pub(super) const WARP: u32 = 32;

/// The most threads of a block on any device.
pub(super) const MAX_BLOCK: u32 = 1024;

variants! {
    /// One of the kernels, for [`Stencil1d::plan_with`](super::Stencil1d::plan_with).
    ///
    /// The first three take antisymmetric stencils of four neighbours in `f32`. The textbook's two
    /// have a tile of `block + 8` elements in shared memory and one element per thread; the first
    /// four threads load both halos.
    pub enum Variant {
        /// `stencil1d_constant`: the coefficients are in constant memory.
        Constant: stencil1d_constant;
        /// `stencil1d_readonly`: the coefficients are in global memory, read through the read-only
        /// data cache.
        ReadOnly: stencil1d_readonly;
        /// `stencil1d_vector4`: no tile; 16-byte accesses, neighbours from other lanes. The library
        /// chooses it for such stencils.
        Vector4: stencil1d_vector4;
        /// `stencil1d_custom_f32` and `_f64`: any stencil. The library chooses it for all others.
        Custom: stencil1d_custom_f32, stencil1d_custom_f64;
    }
}

impl Variant {
    /// The name of the kernel's entry point for `T` in the PTX; `None` if it does not exist.
    #[must_use]
    pub fn kernel<T: Kernels>(self) -> Option<&'static str> {
        let mut entries = self.entries().iter();
        let entry = entries.find(|entry| entry.scalar == T::SCALAR)?;
        Some(entry.name)
    }

    /// The kernel's name without the type suffix.
    #[must_use]
    pub const fn name(self) -> &'static str {
        let entry = &self.entries()[0];
        let len = entry.family.len() + "_".len() + entry.variant.len();
        entry.name.split_at(len).0
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A type with kernels.
pub trait Kernels: Element + HasScalar {
    /// Launches a kernel on the device of the buffers. The variant must have a kernel for this
    /// type.
    fn launch_line(variant: Variant, line: Checked<'_, Self>) -> Result<(), Error>;
}

/// Launches the kernel for any coefficients.
macro_rules! custom {
    ($kernel:ident, $line:ident) => {{
        let (stencil, input) = ($line.line(), $line.input());
        let (device, n) = (input.device().clone(), input.len());
        let form = match stencil.form {
            Form::Antisymmetric => ANTISYMMETRIC,
            Form::Symmetric => SYMMETRIC,
            Form::Any => ANY,
        };
        let (radius, coefficients) = (stencil.radius, *stencil.coefficients);
        let args = $kernel::args(input, $line.into_output(), n, radius, form, coefficients);
        // SAFETY: only `Checked::new` makes this type, and it checked that input and output have
        // the same length and are on `device`; they are distinct, because output is borrowed
        // mutably, and every allocation is aligned to 16 bytes. The radius of a stencil is from 1
        // to 8 and leaves an element with all neighbours. The grid has a thread for every
        // THREAD_BYTES of a line.
        unsafe { launch_registered::<$kernel>(&device, &stencil.problem, &Constants::new(), args) }
    }};
}

impl Kernels for f32 {
    fn launch_line(variant: Variant, line: Checked<'_, Self>) -> Result<(), Error> {
        let (stencil, input) = (line.line(), line.input());
        let (device, n) = (input.device().clone(), input.len());
        let (problem, none) = (&stencil.problem, Constants::new());
        let coefficients: [Self; RADIUS] =
            std::array::from_fn(|m| stencil.coefficients[MAX_RADIUS + 1 + m]);
        // SAFETY, of each launch: `Checked::new` checked that input and output have the same length
        // and device; they are distinct, because output is borrowed mutably, and aligned to 16
        // bytes like all buffers. The geometry is the one that the kernel documents for that many
        // elements, with blocks of at least a warp, as `with_block` of the stencil requires.
        match variant {
            Variant::Constant => {
                let constants = Constants::new().with::<STENCIL1D_COEFFICIENTS>(&coefficients);
                let args = stencil1d_constant::args(input, line.into_output(), n);
                // SAFETY: as above; this call sets the coefficients.
                unsafe {
                    launch_registered::<stencil1d_constant>(&device, problem, &constants, args)
                }
            }
            Variant::ReadOnly => {
                let Some(uploaded) = stencil.uploaded.filter(|it| it.len() == RADIUS) else {
                    unreachable!("a plan uploads what its kernel reads");
                };
                let args = stencil1d_readonly::args(input, line.into_output(), uploaded, n);
                // SAFETY: as above; the coefficients are RADIUS elements that the plan has uploaded
                // to its device, which is that of the buffers. They are borrowed, so no work
                // launched before the end of this call writes them.
                unsafe { launch_registered::<stencil1d_readonly>(&device, problem, &none, args) }
            }
            Variant::Vector4 => {
                let args = stencil1d_vector4::args(input, line.into_output(), n, coefficients);
                // SAFETY: as above.
                unsafe { launch_registered::<stencil1d_vector4>(&device, problem, &none, args) }
            }
            Variant::Custom => custom!(stencil1d_custom_f32, line),
        }
    }
}

impl Kernels for f64 {
    fn launch_line(variant: Variant, line: Checked<'_, Self>) -> Result<(), Error> {
        match variant {
            Variant::Custom => custom!(stencil1d_custom_f64, line),
            _ => unreachable!("a plan has a kernel of its type"),
        }
    }
}
