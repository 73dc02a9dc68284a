//! What is checked before a launch.

use crate::{Buffer, Element, Error};

/// Refuses another length than the stencil's.
pub(super) fn length(what: &str, required: usize, given: usize) -> Result<(), Error> {
    if given == required {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        what: format!("stencil1d: {what}"),
        required,
        given,
    })
}

/// Buffers that fit a stencil: of its length, on one device. Whoever has them may launch
/// a kernel on them, and only the check makes them.
#[derive(Debug)]
pub struct Checked<'a, T: Element> {
    input: &'a Buffer<T>,
    output: &'a mut Buffer<T>,
}

impl<'a, T: Element> Checked<'a, T> {
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that do not fit.
    pub(super) fn new(
        n: usize,
        input: &'a Buffer<T>,
        output: &'a mut Buffer<T>,
    ) -> Result<Self, Error> {
        length("input", n, input.len())?;
        length("output", n, output.len())?;
        input.device().require("stencil1d: output", output)?;
        Ok(Self { input, output })
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
