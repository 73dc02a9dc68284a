//! The kernels of first derivatives of the 8th order, and which of them suits a field.

use super::boundary;
use crate::axis::Axis;
use crate::grid::Boundary;
use crate::variants::variants;
use crate::{Error, Shape3};
use gpu_kernels::derivative3d::geometry::{
    MAX_PENCIL_LEN, check_extents, check_rows, points_per_thread,
};
use gpu_kernels::derivative3d::{
    PENCILS_LARGE, PENCILS_SMALL, RADIUS, x_pencil::*, x_unaligned::*, x_vector::*, y_column::*,
    y_pencil::*, z_column::*, z_pencil::*,
};
use gpu_kernels::registry::{Entry, Problem};
use std::fmt;

variants! {
    /// One of the kernels.
    ///
    /// The textbook's, which one block runs for whole pencils:
    ///
    /// | kernel | shared tile | threads per block | points per thread |
    /// |---|---|---|---|
    /// | `derivative3d_x_pencil4` | 4 × (nx + 8) | (nx, 4) | 1 |
    /// | `derivative3d_x_pencil32` | 32 × (nx + 8) | (nx, 4) | 8 |
    /// | `derivative3d_y_pencil4` | (ny + 8) × 4 | (4, ny) | 1 |
    /// | `derivative3d_y_pencil32` | (ny + 8) × 32 | (32, ny / 8) | 8 |
    /// | `derivative3d_z_pencil4` | (nz + 8) × 4 | (4, nz) | 1 |
    /// | `derivative3d_z_pencil32` | (nz + 8) × 32 | (32, nz / 8) | 8 |
    ///
    /// And the tuned ones, which need no shared memory:
    ///
    /// | kernel | shapes | how |
    /// |---|---|---|
    /// | `derivative3d_x_vector4` | nx a multiple of 4 | 16-byte accesses, neighbours from other lanes |
    /// | `derivative3d_x_unaligned4` | any | the same for rows that begin anywhere |
    /// | `derivative3d_y_column2` | nx even | goes along y, 8-byte accesses, neighbours in registers |
    /// | `derivative3d_y_column1` | any | the same with 4-byte accesses |
    /// | `derivative3d_z_column2` | nx · ny even | the same along z, 8-byte accesses |
    /// | `derivative3d_z_column1` | any | the same with 4-byte accesses |
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, Boundary, Variant};
    /// use halo_gpu::{Error, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // What the library picks depends on whether rows are whole numbers of vectors.
    /// let tuned = |nx| Variant::tuned(Axis::X, Shape3::new(nx, 8, 8)).name();
    /// assert_eq!(tuned(64), "derivative3d_x_vector4");
    /// assert_eq!(tuned(63), "derivative3d_x_unaligned4");
    ///
    /// // The textbook's tiles hold 4 whole rows with their halos, and need as many.
    /// let textbook = Variant::TEXTBOOK[0];
    /// assert_eq!(textbook.tile(Shape3::cube(64)), Some([4, 72]));
    /// textbook.check(Shape3::cube(64), Boundary::Periodic)?;
    /// let refused = textbook.check(Shape3::new(64, 62, 64), Boundary::Periodic);
    /// assert!(matches!(refused, Err(Error::InvalidSize { axis: "ny", given: 62, .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub enum Variant {
        /// `derivative3d_x_pencil4`
        XPencil4: derivative3d_x_pencil4;
        /// `derivative3d_x_pencil32`
        XPencil32: derivative3d_x_pencil32;
        /// `derivative3d_y_pencil4`
        YPencil4: derivative3d_y_pencil4;
        /// `derivative3d_y_pencil32`
        YPencil32: derivative3d_y_pencil32;
        /// `derivative3d_z_pencil4`
        ZPencil4: derivative3d_z_pencil4;
        /// `derivative3d_z_pencil32`
        ZPencil32: derivative3d_z_pencil32;
        /// `derivative3d_x_vector4`
        XVector4: derivative3d_x_vector4;
        /// `derivative3d_x_unaligned4`
        XUnaligned4: derivative3d_x_unaligned4;
        /// `derivative3d_y_column2`
        YColumn2: derivative3d_y_column2;
        /// `derivative3d_y_column1`
        YColumn1: derivative3d_y_column1;
        /// `derivative3d_z_column2`
        ZColumn2: derivative3d_z_column2;
        /// `derivative3d_z_column1`
        ZColumn1: derivative3d_z_column1;
    }
}

/// How a kernel goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// Tiles of so many whole pencils in shared memory.
    Pencils(usize),
    /// No tile; aligned vectors of 4 points along x, 2 along y and z.
    Vectors,
    /// No tile; any shape.
    Any,
}

/// The field, as the table sees it.
pub(super) const fn problem(shape: Shape3) -> Problem {
    Problem::volume(shape.nx, shape.ny, shape.nz)
}

impl Variant {
    /// The six tuned kernels, by axis, that for vectors first.
    pub const TUNED: [Self; 6] = [
        Self::XVector4,
        Self::XUnaligned4,
        Self::YColumn2,
        Self::YColumn1,
        Self::ZColumn2,
        Self::ZColumn1,
    ];

    /// All kernels, the textbook's first.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    /// The axis of the derivative and how the kernel goes along it.
    const fn how(self) -> (Axis, Method) {
        match self {
            Self::XPencil4 => (Axis::X, Method::Pencils(PENCILS_SMALL)),
            Self::XPencil32 => (Axis::X, Method::Pencils(PENCILS_LARGE)),
            Self::YPencil4 => (Axis::Y, Method::Pencils(PENCILS_SMALL)),
            Self::YPencil32 => (Axis::Y, Method::Pencils(PENCILS_LARGE)),
            Self::ZPencil4 => (Axis::Z, Method::Pencils(PENCILS_SMALL)),
            Self::ZPencil32 => (Axis::Z, Method::Pencils(PENCILS_LARGE)),
            Self::XVector4 => (Axis::X, Method::Vectors),
            Self::XUnaligned4 => (Axis::X, Method::Any),
            Self::YColumn2 => (Axis::Y, Method::Vectors),
            Self::YColumn1 => (Axis::Y, Method::Any),
            Self::ZColumn2 => (Axis::Z, Method::Vectors),
            Self::ZColumn1 => (Axis::Z, Method::Any),
        }
    }

    /// What the table says of it.
    pub(super) const fn entry(self) -> &'static Entry {
        &self.entries()[0]
    }

    /// The kernel's entry point, as in the PTX.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// The kernel that the library picks along `axis` for fields of `shape`.
    #[must_use]
    pub fn tuned(axis: Axis, shape: Shape3) -> Self {
        let of_axis = 2 * axis.index();
        let [vectors, any] = [Self::TUNED[of_axis], Self::TUNED[of_axis + 1]];
        if vectors.vectors_fit(shape) {
            vectors
        } else {
            any
        }
    }

    /// The axis it differentiates along.
    #[must_use]
    pub const fn axis(self) -> Axis {
        self.how().0
    }

    /// Pencils per tile, 4 or 32, of a textbook kernel.
    #[must_use]
    pub const fn pencils(self) -> Option<usize> {
        match self.how().1 {
            Method::Pencils(pencils) => Some(pencils),
            Method::Vectors | Method::Any => None,
        }
    }

    /// The shared tile of a textbook kernel for a field of `shape`: its extents,
    /// slowest first, each at most `usize::MAX`.
    #[must_use]
    pub const fn tile(self, shape: Shape3) -> Option<[usize; 2]> {
        let Some(pencils) = self.pencils() else {
            return None;
        };
        let len = self.axis().extent(shape).saturating_add(2 * RADIUS);
        Some(match self.axis() {
            Axis::X => [pencils, len],
            Axis::Y | Axis::Z => [len, pencils],
        })
    }

    /// The axis along which its pencils stand side by side.
    const fn side(self) -> Axis {
        match self.axis() {
            Axis::X => Axis::Y,
            Axis::Y | Axis::Z => Axis::X,
        }
    }

    /// Whether every row, or for z every plane, is a whole number of vectors.
    const fn vectors_fit(self, shape: Shape3) -> bool {
        match self.axis() {
            Axis::X => shape.nx.is_multiple_of(4),
            Axis::Y => shape.nx.is_multiple_of(2),
            Axis::Z => shape.nx.is_multiple_of(2) || shape.ny.is_multiple_of(2),
        }
    }

    /// Checks that this kernel can compute on a field of `shape`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] with the extent and the multiple or the range that
    /// the kernel needs, [`Error::IndexOverflow`] for more points than it can count.
    pub fn check(self, shape: Shape3, boundary: Boundary) -> Result<(), Error> {
        let refuse = |axis: Axis, required: String| {
            Err(Error::InvalidSize {
                operation: self.name(),
                axis: axis.extent_name(),
                given: axis.extent(shape),
                required,
            })
        };
        let (len, side) = (self.axis().extent(shape), self.side().extent(shape));
        boundary::require_periodic(self.name(), boundary)?;
        let min = boundary::min_extent(boundary);
        let (_, method) = self.how();
        let Method::Pencils(pencils) = method else {
            if len < min {
                return refuse(self.axis(), format!("at least {min}"));
            }
            if method == Method::Vectors && !self.vectors_fit(shape) {
                let what = match self.axis() {
                    Axis::X => "a multiple of 4, for accesses of 16 bytes",
                    Axis::Y => "even, for accesses of 8 bytes",
                    Axis::Z => "even, or ny, for accesses of 8 bytes",
                };
                return refuse(Axis::X, what.to_owned());
            }
            let axis = self.axis().index();
            return Ok(check_extents(self.name(), axis, &problem(shape))?);
        };
        let max = MAX_PENCIL_LEN;
        if !(min..=max).contains(&len) {
            return refuse(
                self.axis(),
                format!("between {min} and {max} (one block owns whole pencils)"),
            );
        }
        let points = points_per_thread(pencils);
        if self.axis() != Axis::X && !len.is_multiple_of(points) {
            return refuse(
                self.axis(),
                format!("a multiple of {points} (the points of a thread)"),
            );
        }
        if side == 0 || !side.is_multiple_of(pencils) {
            return refuse(
                self.side(),
                format!("a positive multiple of {pencils} (the pencils of a tile)"),
            );
        }
        if self.axis() == Axis::X {
            check_rows(self.name(), &problem(shape))?;
        }
        Ok(())
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
