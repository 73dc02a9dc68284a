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

/// Two plates that may be compared: as many points, on one device, which has a place for
/// the result. Only the check makes them.
#[derive(Debug)]
pub struct Compared<'a, T: Element> {
    old: &'a Buffer<T>,
    new: &'a Buffer<T>,
    largest: &'a mut Buffer<u64>,
}

impl<'a, T: Element> Compared<'a, T> {
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that do not fit:
    /// `old` and `new` have one length, `largest` has one element.
    pub(super) fn new(
        old: &'a Buffer<T>,
        new: &'a Buffer<T>,
        largest: &'a mut Buffer<u64>,
    ) -> Result<Self, Error> {
        let lengths = [
            ("new", old.len(), new.len()),
            ("the largest change", 1, largest.len()),
        ];
        for (what, required, given) in lengths {
            if given != required {
                return Err(Error::LengthMismatch {
                    what: format!("heat2d: {what}"),
                    required,
                    given,
                });
            }
        }
        old.device().require("heat2d: new", new)?;
        old.device()
            .require("heat2d: the largest change", largest)?;
        Ok(Self { old, new, largest })
    }

    /// The plates and the place.
    pub(super) fn into_parts(self) -> (&'a Buffer<T>, &'a Buffer<T>, &'a mut Buffer<u64>) {
        (self.old, self.new, self.largest)
    }
}
