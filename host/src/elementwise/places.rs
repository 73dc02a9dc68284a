//! Elements of buffers by their numbers.

use crate::allocation::reserve;
use crate::device::{View, require_len};
use crate::{Buffer, Device, Element, Error};

/// Elements of buffers, by their numbers, on a device: where [`put`](super::put) writes.
#[derive(Debug)]
pub struct Places {
    at: Buffer<u64>,
    /// One more than the last.
    end: usize,
}

impl Places {
    /// The elements with these numbers, which ascend.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a number that is not more than the one before;
    /// [`Error::HostOutOfMemory`]; as [`Device::upload`].
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

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// The numbers.
    pub(crate) const fn at(&self) -> &Buffer<u64> {
        &self.at
    }

    /// There is a value for each, all are in `y`, and all is on one device.
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
