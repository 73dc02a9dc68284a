//! Checks the arguments of a stencil before a launch.

use super::form::Form;
use crate::argument::Argument;
use crate::{Buffer, Device, Element, Error};
use gpu_kernels::registry::Problem;
use gpu_kernels::stencil1d::custom::MAX_POINTS;

/// The family's name in errors.
pub(super) const OPERATION: &str = "stencil1d";

/// Returns an error unless the length is the stencil's.
pub(super) fn length(what: &'static str, required: usize, given: usize) -> Result<(), Error> {
    if given == required {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        argument: Argument::new(OPERATION, what),
        required,
        given,
    })
}

/// A plan's stencil, in the form that kernels take.
#[derive(Debug, Clone, Copy)]
pub(super) struct KernelStencil<'a, T: Element> {
    pub form: Form,
    /// From 1 to 8.
    pub radius: u32,
    /// The coefficient of neighbour m is at index 8 + m.
    pub coefficients: &'a [T; MAX_POINTS],
    /// The coefficients on the plan's device, for the kernel that reads them from memory.
    pub uploaded: Option<&'a Buffer<T>>,
    /// The line's length, and the block of the textbook kernels.
    pub problem: Problem,
}

/// Buffers that fit a plan: they have its length and are on its device. The plan's kernel may be
/// launched on them. Only the check can make this type.
#[derive(Debug)]
pub struct Checked<'a, T: Element> {
    line: KernelStencil<'a, T>,
    input: &'a Buffer<T>,
    output: &'a mut Buffer<T>,
}

impl<'a, T: Element> Checked<'a, T> {
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that do not fit.
    pub(super) fn new(
        device: &Device,
        line: KernelStencil<'a, T>,
        input: &'a Buffer<T>,
        output: &'a mut Buffer<T>,
    ) -> Result<Self, Error> {
        let n = line.problem.points();
        length("input", n, input.len())?;
        length("output", n, output.len())?;
        device.require("stencil1d: input", input)?;
        device.require("stencil1d: output", output)?;
        Ok(Self {
            line,
            input,
            output,
        })
    }

    /// The stencil to compute.
    pub(super) const fn line(&self) -> KernelStencil<'a, T> {
        self.line
    }

    /// The input.
    pub(super) const fn input(&self) -> &'a Buffer<T> {
        self.input
    }

    /// The output.
    pub(super) fn into_output(self) -> &'a mut Buffer<T> {
        self.output
    }
}
