//! Index lists: the elements of buffers that an operation writes.

use crate::allocation::reserve;
use crate::device::{View, require_len};
use crate::{Buffer, Device, Element, Error};

/// Ascending indices of buffer elements, on a device: the elements that [`put`](super::put) writes.
#[derive(Debug)]
pub struct Places {
    at: Buffer<u64>,
    /// The last index plus 1.
    end: usize,
}

impl Places {
    /// The elements with the indices `at`, which must be ascending.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for an index that is not larger than the one before;
    /// [`Error::HostOutOfMemory`]; the errors of [`Device::upload`].
    pub fn new(device: &Device, at: &[usize]) -> Result<Self, Error> {
        let mut numbers = reserve(at.len())?;
        for (n, &element) in at.iter().enumerate() {
            if n > 0 && element <= at[n - 1] {
                return Err(Error::InvalidParameter {
                    operation: "elementwise: put",
                    parameter: "the number of an element",
                    given: element.to_string(),
                    required: format!("more than {}, the one before", at[n - 1]),
                });
            }
            numbers.push(element as u64);
        }
        Ok(Self {
            at: device.upload(&numbers)?,
            end: at.last().map_or(0, |last| last.saturating_add(1)),
        })
    }

    /// The number of indices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// The indices.
    pub(crate) const fn at(&self) -> &Buffer<u64> {
        &self.at
    }

    /// Checks that there is one value for each index, that all indices are in `y`, and that
    /// everything is on one device.
    pub(super) fn require<T: Element>(
        &self,
        values: View<'_, T>,
        y: &Buffer<T>,
    ) -> Result<(), Error> {
        require_len("elementwise: values", self.len(), values.len())?;
        if y.len() < self.end {
            require_len("elementwise: y", self.end, y.len())?;
        }
        let device = y.device();
        device.require("elementwise: places", &self.at)?;
        device.require("elementwise: values", values.buffer())
    }
}
