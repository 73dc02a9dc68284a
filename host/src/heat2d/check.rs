//! What is checked before a launch.

use crate::{Buffer, Device, Element, Error, Shape2};

/// Buffers that a sweep may be launched on: of the shape of a plate that kernels count,
/// on one device. Whoever has them may launch a kernel on them, and only the check makes
/// them.
#[derive(Debug)]
pub struct Checked<'a, T: Element> {
    shape: Shape2,
    old: &'a Buffer<T>,
    new: &'a mut Buffer<T>,
    source: Option<&'a Buffer<T>>,
}

impl<'a, T: Element> Checked<'a, T> {
    /// For a plate of `shape`, at least 3 × 3 points and at most `i32::MAX` along an axis.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::ShapeMismatch`] and [`Error::DeviceMismatch`] for
    /// buffers that do not fit.
    pub(super) fn new(
        shape: Shape2,
        source: Option<&'a Buffer<T>>,
        old: &'a Buffer<T>,
        new: &'a mut Buffer<T>,
    ) -> Result<Self, Error> {
        fit(shape, ("old", old), ("new", new))?;
        if let Some(source) = source {
            fit(shape, ("old", old), ("source", source))?;
        }
        Ok(Self {
            shape,
            old,
            new,
            source,
        })
    }

    /// The plate's shape.
    pub(super) const fn shape(&self) -> Shape2 {
        self.shape
    }

    /// The device of the buffers.
    pub(super) fn device(&self) -> &Device {
        self.old.device()
    }

    /// The plate before the sweep, and the one after it.
    pub(super) fn into_plates(self) -> (&'a Buffer<T>, &'a mut Buffer<T>) {
        (self.old, self.new)
    }

    /// The source.
    pub(super) const fn source(&self) -> Option<&'a Buffer<T>> {
        self.source
    }
}

/// Refuses two buffers, given with their names, unless both are of the plate's shape and on
/// one device.
pub(super) fn fit<T: Element>(
    shape: Shape2,
    (a_name, a): (&str, &Buffer<T>),
    (b_name, b): (&str, &Buffer<T>),
) -> Result<(), Error> {
    for (name, buffer) in [(a_name, a), (b_name, b)] {
        buffer.require_shape(|| format!("heat2d: {name}"), shape)?;
    }
    a.device().require(&format!("heat2d: {b_name}"), b)
}
