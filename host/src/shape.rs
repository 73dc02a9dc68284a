//! Counts the points of shapes and compares shapes.

use crate::argument::Argument;
use crate::error::Error;
use crate::extents::{Shape, Shape2, Shape3};

impl Shape {
    /// The number of points.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOverflow`] if the product does not fit `usize`.
    pub fn points(self) -> Result<usize, Error> {
        match self {
            Self::Line(n) => Ok(n),
            Self::Plane(shape) => shape.points(),
            Self::Volume(shape) => shape.points(),
        }
    }

    /// Whether elements of this shape have the same order as those of `other`: a line fits every
    /// shape of its length, and a plane fits a volume of one plane.
    pub(crate) fn fits(self, other: Self) -> bool {
        let extents = |shape| match shape {
            Self::Line(_) => None,
            Self::Plane(Shape2 { nx, ny }) => Some([nx, ny, 1]),
            Self::Volume(Shape3 { nx, ny, nz }) => Some([nx, ny, nz]),
        };
        match (extents(self), extents(other)) {
            (Some(own), Some(other)) => own == other,
            _ => matches!((self.points(), other.points()), (Ok(a), Ok(b)) if a == b),
        }
    }
}

impl Shape2 {
    /// The number of points.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOverflow`] if the product does not fit `usize`.
    pub fn points(self) -> Result<usize, Error> {
        checked_points("nx * ny", &[self.nx, self.ny], self.nx.checked_mul(self.ny))
    }
}

impl Shape3 {
    /// The number of points.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOverflow`] if the product does not fit `usize`.
    pub fn points(self) -> Result<usize, Error> {
        // If an extent is 0, the product is 0; multiplying in order would report an overflow for
        // MAX × MAX × 0 points.
        let product = if self.nx == 0 || self.ny == 0 || self.nz == 0 {
            Some(0)
        } else {
            self.nx
                .checked_mul(self.ny)
                .and_then(|plane| plane.checked_mul(self.nz))
        };
        checked_points("nx * ny * nz", &[self.nx, self.ny, self.nz], product)
    }
}

fn checked_points(
    what: &'static str,
    extents: &[usize],
    product: Option<usize>,
) -> Result<usize, Error> {
    product.ok_or_else(|| {
        let extents: Vec<String> = extents.iter().map(usize::to_string).collect();
        Error::IndexOverflow {
            quantity: what.into(),
            given: extents.join(" * "),
            limit: usize::MAX as u64,
        }
    })
}

/// Returns an error unless `given` is of `required` points, or a line of the same length.
pub(crate) fn require_shape(
    argument: impl Into<Argument>,
    required: Shape,
    given: Shape,
) -> Result<(), Error> {
    if given.fits(required) {
        return Ok(());
    }
    Err(match given {
        Shape::Line(given) => Error::LengthMismatch {
            argument: argument.into(),
            required: required.points()?,
            given,
        },
        _ => Error::ShapeMismatch {
            argument: argument.into(),
            required,
            given,
        },
    })
}
