//! Axes of fields and grids: their order in memory, extents and strides.

use crate::Shape3;
use std::fmt;

/// An axis of a field.
///
/// ```
/// use halo_gpu::{Axis, Shape3};
///
/// let shape = Shape3::new(4, 3, 2);
/// assert_eq!(Axis::ALL.map(|axis| axis.extent(shape)), [4, 3, 2]);
/// assert_eq!(Axis::ALL.map(|axis| axis.stride(shape)), [1, 4, 12]);
/// assert_eq!((Axis::Y.index(), Axis::Y.extent_name()), (1, "ny"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The fastest axis: neighbours are adjacent in memory.
    X,
    /// Neighbours are `nx` elements apart.
    Y,
    /// The slowest axis: neighbours are `nx * ny` elements apart.
    Z,
}

impl Axis {
    /// All three, the fastest first.
    pub const ALL: [Self; 3] = [Self::X, Self::Y, Self::Z];

    /// 0, 1 or 2.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name of the extent along this axis: `nx`, `ny` or `nz`.
    #[must_use]
    pub const fn extent_name(self) -> &'static str {
        ["nx", "ny", "nz"][self.index()]
    }

    /// Points of `shape` along this axis.
    #[must_use]
    pub const fn extent(self, shape: Shape3) -> usize {
        [shape.nx, shape.ny, shape.nz][self.index()]
    }

    /// The distance in elements between two neighbours along this axis, at most `usize::MAX`.
    #[must_use]
    pub const fn stride(self, shape: Shape3) -> usize {
        match self {
            Self::X => 1,
            Self::Y => shape.nx,
            Self::Z => shape.nx.saturating_mul(shape.ny),
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["x", "y", "z"][self.index()])
    }
}
