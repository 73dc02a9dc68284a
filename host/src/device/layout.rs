//! Lays out the elements of a texture in memory.

use crate::Error;
use crate::limits::TextureLimits;
use std::ops::Range;

/// The value of reads outside a texture's extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AddressMode {
    /// The nearest element inside.
    #[default]
    Clamp,
    /// Zero.
    Border,
}

/// The positions of the elements in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Elements of a row.
    pub(super) width: usize,
    /// Rows.
    pub(super) height: usize,
    /// Elements from the start of one row to the start of the next.
    pub(super) pitch: usize,
    pub(super) address_mode: AddressMode,
}

impl Layout {
    pub(super) fn new(
        limits: &TextureLimits,
        width: usize,
        height: usize,
        address_mode: AddressMode,
    ) -> Result<Self, Error> {
        // The limit on the pitch limits the width too.
        let widest = limits
            .width
            .min(limits.pitch_bytes / size_of::<f32>() as u32);
        for (axis, given, limit) in [("width", width, widest), ("height", height, limits.height)] {
            if given == 0 || given > limit as usize {
                return Err(Error::InvalidSize {
                    operation: "Texture2d",
                    axis,
                    given,
                    required: format!("at least 1 and at most {limit} on this device"),
                });
            }
        }
        // Both are at most u32 now; their products fit u64, and usize on every platform with a
        // driver.
        let alignment = limits.pitch_alignment as usize;
        let largest = limits.pitch_bytes as usize;
        if alignment == 0 || !alignment.is_multiple_of(size_of::<f32>()) || alignment > largest {
            return Err(Error::InvalidParameter {
                operation: "Texture2d",
                parameter: "the limits' pitch_alignment",
                given: alignment.to_string(),
                required: format!(
                    "a multiple of {} that a pitch of {largest} bytes can have",
                    size_of::<f32>()
                ),
            });
        }
        let pitch_bytes = (width * size_of::<f32>()).next_multiple_of(alignment);
        Ok(Self {
            width,
            height,
            pitch: pitch_bytes / size_of::<f32>(),
            address_mode,
        })
    }

    /// For each row, its start in bytes, and its byte range among densely packed rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let [pitch, dense] = [self.pitch, self.width].map(|elements| elements * size_of::<f32>());
        (0..self.height).map(move |row| (row * pitch, row * dense..(row + 1) * dense))
    }

    /// Elements of all rows, padding included.
    pub(super) fn elements(&self) -> usize {
        self.pitch * self.height
    }

    /// Bytes of all rows, padding included.
    pub(super) fn bytes(&self) -> usize {
        self.elements() * size_of::<f32>()
    }
}
