//! Checks the arguments of a launch.

use crate::argument::Argument;
use crate::grid::Grid2;
use crate::shape::require_shape;
use crate::{Buffer, Device, Element, Error, Shape2};

/// The family's name in errors.
pub(super) const OPERATION: &str = "heat2d";

/// An error about a parameter.
pub(super) const fn invalid(parameter: &'static str, given: String, required: String) -> Error {
    Error::InvalidParameter {
        operation: OPERATION,
        parameter,
        given,
        required,
    }
}

/// Buffers for an iteration: of the plate's shape, which kernels can index, on one device. A kernel
/// may be launched on them. Only the check makes this type.
#[derive(Debug)]
pub struct Checked<'a, T: Element> {
    grid: &'a Grid2,
    old: &'a Buffer<T>,
    new: &'a mut Buffer<T>,
    source: Option<&'a Buffer<T>>,
}

impl<'a, T: Element> Checked<'a, T> {
    /// For a plate of at least 3 × 3 points and at most `i32::MAX` along an axis.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::ShapeMismatch`] and [`Error::DeviceMismatch`] for
    /// buffers that do not fit.
    pub(super) fn new(
        grid: &'a Grid2,
        source: Option<&'a Buffer<T>>,
        old: &'a Buffer<T>,
        new: &'a mut Buffer<T>,
    ) -> Result<Self, Error> {
        let (device, shape) = (old.device(), grid.shape());
        fit(shape, device, "old", old)?;
        fit(shape, device, "new", new)?;
        if let Some(source) = source {
            fit(shape, device, "source", source)?;
        }
        Ok(Self {
            grid,
            old,
            new,
            source,
        })
    }

    /// The plate's grid.
    pub(super) const fn grid(&self) -> &'a Grid2 {
        self.grid
    }

    /// The plate's shape.
    pub(super) fn shape(&self) -> Shape2 {
        self.grid.shape()
    }

    /// The device of the buffers.
    pub(super) fn device(&self) -> &Device {
        self.old.device()
    }

    /// The plate before the iteration, and the one after it.
    pub(super) fn into_plates(self) -> (&'a Buffer<T>, &'a mut Buffer<T>) {
        (self.old, self.new)
    }

    /// The source.
    pub(super) const fn source(&self) -> Option<&'a Buffer<T>> {
        self.source
    }
}

/// An error for a buffer of another shape or on another device than the plate.
pub(super) fn fit<T: Element>(
    shape: Shape2,
    device: &Device,
    name: &'static str,
    buffer: &Buffer<T>,
) -> Result<(), Error> {
    let argument = Argument::new(OPERATION, name);
    buffer.require_shape(argument, shape)?;
    device.require(argument, buffer)
}

/// An error for a field of another shape than the plate.
pub(super) fn shape(name: &'static str, required: Shape2, given: Shape2) -> Result<(), Error> {
    let argument = Argument::new(OPERATION, name);
    require_shape(argument, required.into(), given.into())
}
