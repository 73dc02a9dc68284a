//! The variants: the kernels for first derivatives and gradients, and which of them suit a grid.

use super::boundary;
use super::check::OPERATION;
use super::operator::Operator;
use crate::axis::Axis;
use crate::grid::Boundary;
use crate::variants::variants;
use crate::{Error, Shape3};
use gpu_kernels::derivative3d::geometry::{
    MAX_PENCIL_LEN, check_extents, check_rows, points_per_thread,
};
use gpu_kernels::derivative3d::{
    PENCILS_LARGE, PENCILS_SMALL, RADIUS, columns::*, general::*, gradient::*, vector_calculus::*,
    x_pencil::*, x_rows::*, x_unaligned::*, x_vector::*, y_column::*, y_pencil::*, z_column::*,
    z_pencil::*,
};
use gpu_kernels::registry::{Entry, HasScalar, Problem};
use std::fmt;

variants! {
    /// The kernels to use, for [`plan_with`](super::FiniteDifferences3d::plan_with).
    ///
    /// All but [`General`](Self::General) compute only first derivatives of the 8th order, and all
    /// but that and [`AnyBoundary`](Self::AnyBoundary) only in `f32` along periodic axes. The
    /// kernels of the textbook, in which one block computes whole pencils:
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
    /// The tuned kernels:
    ///
    /// | kernel | shapes | how |
    /// |---|---|---|
    /// | `derivative3d_x_vector4` | nx a multiple of 4 | 16-byte accesses, neighbours from other lanes |
    /// | `derivative3d_x_unaligned4` | any | the same, for rows at any alignment |
    /// | `derivative3d_y_column2` | nx even | marches along y, 8-byte accesses, neighbours in registers |
    /// | `derivative3d_y_column1` | any | the same with 4-byte accesses |
    /// | `derivative3d_z_column2` | nx · ny even | the same along z, 8-byte accesses |
    /// | `derivative3d_z_column1` | any | the same with 4-byte accesses |
    /// | `derivative3d_gradient4` | nx a multiple of 4 | all three derivatives, reads the field once |
    /// | `derivative3d_x_rows_*` | rows of whole 16 bytes | 16-byte accesses, any boundary |
    /// | `derivative3d_y_columns_*` | any | as `y_column2` and `y_column1`, any boundary |
    /// | `derivative3d_z_columns_*` | any | the same along z |
    ///
    /// ```
    /// use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, Variant};
    /// use halo_gpu::{Axis, Device, Error, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let along_x = Operator::Derivative(Axis::X);
    /// let grid = |nx, ny| Grid3::new(Shape3::new(nx, ny, 64), [1.0; 3]);
    ///
    /// // What the library picks depends on whether rows are whole numbers of vectors.
    /// let picked = |nx| -> Result<_, Error> {
    ///     Ok(FiniteDifferences3d::<f32>::new(&grid(nx, 8)?)?.plan(&device)?.kernel(along_x))
    /// };
    /// assert_eq!(picked(64)?, Some("derivative3d_x_vector4"));
    /// assert_eq!(picked(63)?, Some("derivative3d_x_unaligned4"));
    ///
    /// // The textbook's tiles hold 4 whole rows with their halos, and need as many.
    /// assert_eq!(Variant::Pencil4.tile(Axis::X, Shape3::cube(64)), Some([4, 72]));
    /// let textbook = |ny| -> Result<_, Error> {
    ///     FiniteDifferences3d::<f32>::new(&grid(64, ny)?)?.plan_with(&device, Variant::Pencil4)
    /// };
    /// textbook(64)?.check(along_x)?;
    /// let refused = textbook(62)?.check(along_x);
    /// assert!(matches!(refused, Err(Error::InvalidSize { axis: "ny", given: 62, .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub enum Variant {
        /// The textbook's kernels with tiles of 4 pencils: `derivative3d_x_pencil4`, `…_y_…`,
        /// `…_z_…`.
        Pencil4: derivative3d_x_pencil4, derivative3d_y_pencil4, derivative3d_z_pencil4;
        /// The textbook's kernels with tiles of 32 pencils.
        Pencil32: derivative3d_x_pencil32, derivative3d_y_pencil32, derivative3d_z_pencil32;
        /// Accesses of several points: `derivative3d_x_vector4`, `derivative3d_y_column2`,
        /// `derivative3d_z_column2`, `derivative3d_gradient4`.
        Vector: derivative3d_x_vector4, derivative3d_y_column2, derivative3d_z_column2,
            derivative3d_gradient4;
        /// For rows of any number of points: `derivative3d_x_unaligned4`,
        /// `derivative3d_y_column1`, `derivative3d_z_column1`.
        Unaligned: derivative3d_x_unaligned4, derivative3d_y_column1, derivative3d_z_column1;
        /// Any boundary, in `f32` and `f64`: `derivative3d_x_rows_*`,
        /// `derivative3d_y_columns_*`, `derivative3d_z_columns_*`.
        AnyBoundary: derivative3d_x_rows_f32, derivative3d_y_columns_f32,
            derivative3d_z_columns_f32, derivative3d_x_rows_f64, derivative3d_y_columns_f64,
            derivative3d_z_columns_f64;
        /// `derivative3d_general_*`: every operator, order and boundary in `f32` and `f64`.
        General: derivative3d_general_x_f32, derivative3d_general_y_f32,
            derivative3d_general_z_f32, derivative3d_general_gradient_f32,
            derivative3d_general_divergence_f32, derivative3d_general_curl_f32,
            derivative3d_general_laplacian_f32, derivative3d_general_x_f64,
            derivative3d_general_y_f64, derivative3d_general_z_f64,
            derivative3d_general_gradient_f64, derivative3d_general_divergence_f64,
            derivative3d_general_curl_f64, derivative3d_general_laplacian_f64;
    }
}

/// The variants from which the library chooses, the fastest first.
pub(super) const TUNED: [Variant; 4] = [
    Variant::Vector,
    Variant::Unaligned,
    Variant::AnyBoundary,
    Variant::General,
];

impl Variant {
    /// The name of the entry point in the PTX that applies an operator to fields of `T`; `None` if
    /// the variant has none.
    ///
    /// ```
    /// use halo_gpu::Axis;
    /// use halo_gpu::derivative3d::{Operator, Variant};
    ///
    /// let along_y = Operator::Derivative(Axis::Y);
    /// assert_eq!(Variant::Pencil4.kernel::<f32>(along_y), Some("derivative3d_y_pencil4"));
    /// assert_eq!(Variant::Pencil4.kernel::<f64>(along_y), None);
    /// let curl = Variant::General.kernel::<f64>(Operator::Curl);
    /// assert_eq!(curl, Some("derivative3d_general_curl_f64"));
    /// ```
    #[must_use]
    pub fn kernel<T: HasScalar>(self, operator: Operator) -> Option<&'static str> {
        Some(self.entry::<T>(operator)?.name)
    }

    /// Its entry in the table of kernels.
    pub(super) fn entry<T: HasScalar>(self, operator: Operator) -> Option<&'static Entry> {
        // The order of a type's variants.
        let nth = match operator {
            Operator::SecondDerivative(axis) if self == Self::General => axis.index(),
            Operator::SecondDerivative(_) => return None,
            Operator::Derivative(axis) => axis.index(),
            Operator::Gradient => 3,
            Operator::Divergence => 4,
            Operator::Curl => 5,
            Operator::Laplacian => 6,
        };
        let mut of_type = self.entries().iter().filter(|it| it.scalar == T::SCALAR);
        of_type.nth(nth)
    }

    /// Whether another kernel is known to be faster: along z in f64, for planes of 2 MiB or more,
    /// the general kernel is, whose threads march further and read fewer points twice
    /// (`docs/tuning/derivative3d.md`).
    pub(super) fn is_slow<T>(self, operator: Operator, shape: Shape3) -> bool {
        const LARGE_PLANE: usize = 2 << 20;
        let plane = shape.nx.saturating_mul(shape.ny);
        self == Self::AnyBoundary
            && operator == Operator::Derivative(Axis::Z)
            && size_of::<T>() == size_of::<f64>()
            && plane.saturating_mul(size_of::<T>()) >= LARGE_PLANE
    }

    /// Whether the kernel for an operator can compute a range of planes that begins at `first`. A
    /// kernel along z must take the range as arguments. A kernel along x or y gets only those
    /// planes of the fields, which must begin at a multiple of 16 bytes unless it loads single
    /// points.
    pub(super) fn takes_planes<T>(self, operator: Operator, shape: Shape3, first: usize) -> bool {
        match (self, operator.axis()) {
            (Self::General, _) | (Self::AnyBoundary, Some(Axis::Z)) => true,
            (_, Some(Axis::X | Axis::Y)) => {
                // If the product wraps, it still has the same remainder.
                let points = first.wrapping_mul(shape.ny).wrapping_mul(shape.nx);
                points.wrapping_mul(size_of::<T>()).is_multiple_of(16)
            }
            (_, Some(Axis::Z) | None) => false,
        }
    }

    /// Pencils per tile of the textbook's kernels: 4 or 32.
    #[must_use]
    pub const fn pencils(self) -> Option<usize> {
        match self {
            Self::Pencil4 => Some(PENCILS_SMALL),
            Self::Pencil32 => Some(PENCILS_LARGE),
            Self::Vector | Self::Unaligned | Self::AnyBoundary | Self::General => None,
        }
    }

    /// The extents of the shared tile of a textbook kernel along `axis` for a field of `shape`, the
    /// slowest axis first, each at most `usize::MAX`.
    #[must_use]
    pub const fn tile(self, axis: Axis, shape: Shape3) -> Option<[usize; 2]> {
        let Some(pencils) = self.pencils() else {
            return None;
        };
        let len = axis.extent(shape).saturating_add(2 * RADIUS);
        Some(match axis {
            Axis::X => [pencils, len],
            Axis::Y | Axis::Z => [len, pencils],
        })
    }

    /// Checks that the kernel for an operator can compute on a field of `shape`. The general
    /// kernels can do so for every shape.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for an axis that is not periodic; [`Error::InvalidSize`] with
    /// the extent and the multiple or range that the kernel needs; [`Error::IndexOverflow`] for
    /// more points than the kernel can count.
    pub(super) fn check<T: HasScalar>(
        self,
        operator: Operator,
        shape: Shape3,
        boundaries: [Boundary; 3],
    ) -> Result<(), Error> {
        let Some(Entry { name, .. }) = self.entry::<T>(operator) else {
            unreachable!("a plan has a kernel of its type");
        };
        match (self, operator.axis()) {
            (Self::General, _) => Ok(()),
            (Self::AnyBoundary, Some(axis)) => {
                let points = 16 / size_of::<T>();
                if axis == Axis::X && !shape.nx.is_multiple_of(points) {
                    let required = format!("a multiple of {points}, for accesses of 16 bytes");
                    return Err(refusal(name, axis, shape, required));
                }
                Ok(check_extents(name, axis.index(), &problem(shape))?)
            }
            (_, Some(axis)) => self.check_along(name, axis, shape, boundaries[axis.index()]),
            (_, None) => check_gradient(name, shape, boundaries),
        }
    }

    /// Like [`check`](Self::check), for a kernel along one axis.
    fn check_along(
        self,
        kernel: &'static str,
        axis: Axis,
        shape: Shape3,
        boundary: Boundary,
    ) -> Result<(), Error> {
        require_periodic(kernel, boundary)?;
        let min = boundary::min_extent(boundary);
        let len = axis.extent(shape);
        let Some(pencils) = self.pencils() else {
            require_points(kernel, axis, shape, min)?;
            let (fits, what) = match axis {
                Axis::X => (rows_of_vectors(shape), ROWS_OF_VECTORS),
                Axis::Y => (shape.nx.is_multiple_of(2), "even, for accesses of 8 bytes"),
                Axis::Z => (
                    shape.nx.is_multiple_of(2) || shape.ny.is_multiple_of(2),
                    "even, or ny, for accesses of 8 bytes",
                ),
            };
            if self == Self::Vector && !fits {
                return Err(refusal(kernel, Axis::X, shape, what.to_owned()));
            }
            return Ok(check_extents(kernel, axis.index(), &problem(shape))?);
        };
        let max = MAX_PENCIL_LEN;
        if !(min..=max).contains(&len) {
            let required = format!("between {min} and {max} (one block owns whole pencils)");
            return Err(refusal(kernel, axis, shape, required));
        }
        let points = points_per_thread(pencils);
        if axis != Axis::X && !len.is_multiple_of(points) {
            let required = format!("a multiple of {points} (the points of a thread)");
            return Err(refusal(kernel, axis, shape, required));
        }
        // The axis along which pencils are adjacent.
        let side = match axis {
            Axis::X => Axis::Y,
            Axis::Y | Axis::Z => Axis::X,
        };
        let pencils_of_field = side.extent(shape);
        if pencils_of_field == 0 || !pencils_of_field.is_multiple_of(pencils) {
            let required = format!("a positive multiple of {pencils} (the pencils of a tile)");
            return Err(refusal(kernel, side, shape, required));
        }
        if axis == Axis::X {
            check_rows(kernel, &problem(shape))?;
        }
        Ok(())
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pencil4 => "pencils of 4",
            Self::Pencil32 => "pencils of 32",
            Self::Vector => "vectors",
            Self::Unaligned => "unaligned rows",
            Self::AnyBoundary => "any boundary",
            Self::General => "general",
        })
    }
}

/// The field as a problem of the table of kernels.
pub(super) const fn problem(shape: Shape3) -> Problem {
    Problem::volume(shape.nx, shape.ny, shape.nz)
}

/// Whether rows are whole 16-byte vectors.
const fn rows_of_vectors(shape: Shape3) -> bool {
    shape.nx.is_multiple_of(4)
}

/// The requirement on rows, for errors.
const ROWS_OF_VECTORS: &str = "a multiple of 4, for accesses of 16 bytes";

/// Checks what the gradient's kernel needs.
fn check_gradient(
    kernel: &'static str,
    shape: Shape3,
    boundaries: [Boundary; 3],
) -> Result<(), Error> {
    for (axis, boundary) in Axis::ALL.into_iter().zip(boundaries) {
        require_periodic(kernel, boundary)?;
        if boundary != boundaries[0] {
            return Err(Error::InvalidParameter {
                operation: kernel,
                parameter: "the boundary",
                given: format!("{boundary} along {axis} and {} along x", boundaries[0]),
                required: "the same along all axes".to_owned(),
            });
        }
        require_points(kernel, axis, shape, boundary::min_extent(boundary))?;
    }
    if !rows_of_vectors(shape) {
        return Err(refusal(kernel, Axis::X, shape, ROWS_OF_VECTORS.to_owned()));
    }
    Ok(())
}

/// Returns an error unless the boundary is periodic.
fn require_periodic(kernel: &'static str, boundary: Boundary) -> Result<(), Error> {
    if boundary.is_periodic() {
        return Ok(());
    }
    Err(Error::InvalidParameter {
        operation: kernel,
        parameter: "the boundary",
        given: boundary.to_string(),
        required: "periodic".to_owned(),
    })
}

/// Returns an error if there are fewer points than the stencil needs.
fn require_points(
    kernel: &'static str,
    axis: Axis,
    shape: Shape3,
    min: usize,
) -> Result<(), Error> {
    if axis.extent(shape) >= min {
        return Ok(());
    }
    Err(refusal(kernel, axis, shape, format!("at least {min}")))
}

fn refusal(kernel: &'static str, axis: Axis, shape: Shape3, required: String) -> Error {
    Error::InvalidSize {
        operation: kernel,
        axis: axis.extent_name(),
        given: axis.extent(shape),
        required,
    }
}

/// Returns an error if the variant has no kernel for this type or this order of accuracy.
pub(super) fn require_variant<T: HasScalar>(variant: Variant, accuracy: u32) -> Result<(), Error> {
    let any = Operator::Derivative(Axis::X);
    if variant == Variant::General || (variant.entry::<T>(any).is_some() && accuracy == 8) {
        return Ok(());
    }
    Err(Error::InvalidParameter {
        operation: OPERATION,
        parameter: "the variant",
        given: variant.to_string(),
        required: format!(
            "{}: the others have only order 8, and all but {} only f32",
            Variant::General,
            Variant::AnyBoundary
        ),
    })
}
