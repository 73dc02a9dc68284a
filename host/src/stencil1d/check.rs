//! What is checked before a launch.

use super::{Plan, Stencil1d};
use crate::scalar::Scalar;
use crate::{Buffer, Error};

/// What errors call the family.
pub(super) const OPERATION: &str = "stencil1d";

/// Refuses another length than the stencil's.
pub(super) fn length(what: &str, required: usize, given: usize) -> Result<(), Error> {
    if given == required {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        what: format!("{OPERATION}: {what}"),
        required,
        given,
    })
}

/// Buffers that fit a plan: of its length, on its device. Whoever has them may launch
/// the plan's kernel on them, and only the check makes them.
#[derive(Debug)]
pub struct Checked<'a, T: Scalar> {
    plan: &'a Plan<T>,
    input: &'a Buffer<T>,
    output: &'a mut Buffer<T>,
}

impl<'a, T: Scalar> Checked<'a, T> {
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that do not fit.
    pub(super) fn new(
        plan: &'a Plan<T>,
        input: &'a Buffer<T>,
        output: &'a mut Buffer<T>,
    ) -> Result<Self, Error> {
        length("input", plan.stencil().n(), input.len())?;
        length("output", plan.stencil().n(), output.len())?;
        plan.device().require("stencil1d: input", input)?;
        plan.device().require("stencil1d: output", output)?;
        Ok(Self {
            plan,
            input,
            output,
        })
    }

    /// What is computed.
    pub(super) fn stencil(&self) -> &'a Stencil1d<T> {
        self.plan.stencil()
    }

    /// The coefficients on the device, for the kernel that reads them there.
    pub(super) fn uploaded(&self) -> Option<&'a Buffer<T>> {
        self.plan.uploaded()
    }

    /// The input.
    pub(super) fn input(&self) -> &'a Buffer<T> {
        self.input
    }

    /// The output.
    pub(super) fn into_output(self) -> &'a mut Buffer<T> {
        self.output
    }
}
