//! Textures: 32-bit float, point filtering, bound to linear memory.

use std::sync::Arc;

use crate::record::Record;

/// The memory that a texture is bound to, and its sampling mode.
///
/// The emulator offers what CUDA offers for texture objects on plain device
/// memory with element type `float`, point filtering and element reads. What a
/// device would silently change is refused here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextureDescriptor {
    /// Address of the first element (an [`Allocation::addr`](crate::Allocation::addr),
    /// or inside one), a multiple of four.
    pub addr: u64,
    /// Linear or 2-D.
    pub shape: TextureShape,
}

/// The shape of a texture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TextureShape {
    /// `width` elements in a row, read by [`tex1d_fetch`](crate::intrinsics::tex1d_fetch).
    /// As on a device, it has no addressing mode: a read outside gives zero.
    Linear {
        /// Elements.
        width: usize,
    },
    /// `height` rows of `width` elements, `pitch_bytes` apart, read by
    /// [`tex2d`](crate::intrinsics::tex2d).
    Pitch2d {
        /// Elements per row.
        width: usize,
        /// Rows.
        height: usize,
        /// Bytes from one row to the next: at least four times `width`, and a
        /// multiple of 32, which devices require
        /// (`CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT`).
        pitch_bytes: usize,
        /// The addressing modes for x and y.
        addressing: [Addressing; 2],
        /// Whether coordinates run from 0 to 1 (true) or to width and height.
        normalised: bool,
    },
}

/// The addressing mode of coordinates outside a texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Addressing {
    /// The nearest element of the border.
    #[default]
    Clamp,
    /// Zero.
    Border,
    /// The texture repeats. With normalised coordinates only; devices treat it as
    /// `Clamp` otherwise.
    Wrap,
}

/// Rows must start at multiples of this, bytes.
const PITCH_ALIGNMENT: usize = 32;

impl TextureDescriptor {
    /// Bytes from the first element to the last, if CUDA supports such a descriptor; an error with
    /// the fault otherwise.
    pub(crate) fn bytes(&self) -> Result<usize, String> {
        if !self.addr.is_multiple_of(4) {
            return Err(format!(
                "the address {:#x} is not a multiple of 4",
                self.addr
            ));
        }
        let overflow = || "its size overflows the address space".to_owned();
        match self.shape {
            TextureShape::Linear { width } => {
                if width == 0 {
                    return Err("its width is 0; at least 1 is needed".to_owned());
                }
                width.checked_mul(4).ok_or_else(overflow)
            }
            TextureShape::Pitch2d {
                width,
                height,
                pitch_bytes,
                addressing,
                normalised,
            } => {
                if width == 0 || height == 0 {
                    return Err(format!(
                        "it is {width} by {height}; at least 1 by 1 is needed"
                    ));
                }
                let row = width.checked_mul(4).ok_or_else(overflow)?;
                if pitch_bytes < row || !pitch_bytes.is_multiple_of(PITCH_ALIGNMENT) {
                    return Err(format!(
                        "a pitch of {pitch_bytes} bytes; needed is a multiple of \
                         {PITCH_ALIGNMENT} and at least {row}"
                    ));
                }
                if addressing.contains(&Addressing::Wrap) && !normalised {
                    return Err(
                        "wrapping with unnormalised coordinates, which a device replaces by \
                         clamping; use normalised coordinates or clamp"
                            .to_owned(),
                    );
                }
                (height - 1)
                    .checked_mul(pitch_bytes)
                    .and_then(|bytes| bytes.checked_add(row))
                    .ok_or_else(overflow)
            }
        }
    }
}

/// A texture that has been bound.
#[derive(Debug, Clone)]
pub(crate) struct Texture {
    pub descriptor: TextureDescriptor,
    pub record: Arc<Record>,
}

impl Texture {
    pub fn new(descriptor: TextureDescriptor, record: Arc<Record>) -> Self {
        Self { descriptor, record }
    }

    /// Address of element `index`; `Ok(None)` outside, `Err` for a 2-D texture.
    pub fn linear(&self, index: i32) -> Result<Option<u64>, &'static str> {
        let TextureShape::Linear { width } = self.descriptor.shape else {
            return Err("is two-dimensional; only linear ones can be read so");
        };
        Ok(usize::try_from(index)
            .ok()
            .filter(|&index| index < width)
            .map(|index| self.descriptor.addr + index as u64 * 4))
    }

    /// Address of the element at (x, y); `Ok(None)` where the result is the
    /// border's zero, `Err` for a linear texture.
    pub fn planar(&self, x: f32, y: f32) -> Result<Option<u64>, &'static str> {
        let TextureShape::Pitch2d {
            width,
            height,
            pitch_bytes,
            addressing,
            normalised,
        } = self.descriptor.shape
        else {
            return Err("is linear; only two-dimensional ones can be read so");
        };
        let (Some(column), Some(row)) = (
            resolve(x, width, addressing[0], normalised),
            resolve(y, height, addressing[1], normalised),
        ) else {
            return Ok(None);
        };
        Ok(Some(
            self.descriptor.addr + row as u64 * pitch_bytes as u64 + column as u64 * 4,
        ))
    }
}

/// The element that a coordinate selects along an axis of `n` elements; `None`
/// for the border. NaN counts as zero.
fn resolve(coordinate: f32, n: usize, addressing: Addressing, normalised: bool) -> Option<usize> {
    let position = match (normalised, addressing) {
        (true, Addressing::Wrap) => (coordinate - coordinate.floor()) * n as f32,
        (true, _) => coordinate * n as f32,
        (false, _) => coordinate,
    };
    // Saturates; extents beyond i64 do not exist.
    let index = position.floor() as i64;
    let last = n as i64 - 1;
    match addressing {
        Addressing::Border if !(0..=last).contains(&index) => None,
        _ => Some(index.clamp(0, last) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_follow_the_addressing_mode() {
        use Addressing::{Border, Clamp, Wrap};
        let cases = [
            (0.0, Clamp, false, Some(0)),
            (3.999, Clamp, false, Some(3)),
            (4.0, Clamp, false, Some(3)),
            (-0.001, Clamp, false, Some(0)),
            (f32::INFINITY, Clamp, false, Some(3)),
            (f32::NEG_INFINITY, Clamp, false, Some(0)),
            (f32::NAN, Clamp, false, Some(0)),
            (-0.001, Border, false, None),
            (0.0, Border, false, Some(0)),
            (3.5, Border, false, Some(3)),
            (4.0, Border, false, None),
            (0.5, Clamp, true, Some(2)),
            (1.0, Border, true, None),
            (1.25, Wrap, true, Some(1)),
            (-0.25, Wrap, true, Some(3)),
            // 1 - tiny rounds to 1, which is past the last element.
            (-1e-9, Wrap, true, Some(3)),
        ];
        for (coordinate, addressing, normalised, expected) in cases {
            assert_eq!(
                resolve(coordinate, 4, addressing, normalised),
                expected,
                "{coordinate} {addressing:?} {normalised}"
            );
        }
    }

    #[test]
    fn descriptors_that_cuda_refuses_are_refused() {
        let flat = |width, height, pitch_bytes, addressing, normalised| TextureDescriptor {
            addr: 4096,
            shape: TextureShape::Pitch2d {
                width,
                height,
                pitch_bytes,
                addressing: [addressing; 2],
                normalised,
            },
        };
        assert_eq!(flat(17, 3, 96, Addressing::Clamp, false).bytes(), Ok(260));
        let refused = [
            flat(17, 3, 68, Addressing::Clamp, false),
            flat(17, 3, 64, Addressing::Clamp, false),
            flat(0, 3, 64, Addressing::Clamp, false),
            flat(16, 0, 64, Addressing::Clamp, false),
            flat(16, 2, 64, Addressing::Wrap, false),
            flat(usize::MAX, 2, 64, Addressing::Clamp, false),
            TextureDescriptor {
                addr: 4098,
                shape: TextureShape::Linear { width: 1 },
            },
            TextureDescriptor {
                addr: 4096,
                shape: TextureShape::Linear { width: 0 },
            },
        ];
        for descriptor in refused {
            assert!(descriptor.bytes().is_err(), "{descriptor:?}");
        }
    }
}
