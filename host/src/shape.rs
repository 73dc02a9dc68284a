//! Extents of arrays with one, two or three axes.
//!
//! Everywhere in this library x runs fastest: the point (i, j, k) of `nx` × `ny` × `nz`
//! points is element `(k * ny + j) * nx + i`.

use crate::Error;

/// The extents of a 2-D field, in points.
///
/// ```
/// use halo_gpu::Shape2;
///
/// let shape = Shape2::new(4, 3);
/// assert_eq!(shape.index(2, 1), Some(6)); // j * nx + i
/// assert_eq!(shape.index(4, 0), None);
/// assert_eq!(shape.points()?, 12);
/// # Ok::<(), halo_gpu::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape2 {
    /// Points along x, the fastest axis.
    pub nx: usize,
    /// Points along y.
    pub ny: usize,
}

/// The extents of a 3-D field, in points.
///
/// ```
/// use halo_gpu::{Error, Shape3};
///
/// let shape = Shape3::new(4, 3, 2);
/// assert_eq!(shape.index(2, 1, 1), Some(18)); // (k * ny + j) * nx + i
/// assert_eq!(shape.index(0, 0, 2), None);
/// assert_eq!(shape.points()?, 24);
/// let huge = Shape3::cube(1 << 32).points();
/// assert!(matches!(huge, Err(Error::IndexOverflow { .. })));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape3 {
    /// Points along x, the fastest axis.
    pub nx: usize,
    /// Points along y.
    pub ny: usize,
    /// Points along z, the slowest axis.
    pub nz: usize,
}

/// The extents of a [`Buffer`](crate::Buffer): of one, two or three axes.
///
/// ```
/// use halo_gpu::{Shape, Shape2, Shape3};
///
/// assert_eq!(Shape::from(Shape2::new(4, 3)).points()?, 12);
/// assert_eq!(Shape::from(7), Shape::Line(7));
/// assert_eq!(Shape::from(Shape3::cube(2)).to_string(), "2 × 2 × 2");
/// # Ok::<(), halo_gpu::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// So many elements, of which nothing else is known.
    Line(usize),
    /// A plane, x fastest.
    Plane(Shape2),
    /// A volume, x fastest.
    Volume(Shape3),
}

impl Shape {
    /// The number of points.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOverflow`] when the product does not fit `usize`.
    pub fn points(self) -> Result<usize, Error> {
        match self {
            Self::Line(n) => Ok(n),
            Self::Plane(shape) => shape.points(),
            Self::Volume(shape) => shape.points(),
        }
    }

    /// Whether elements of this shape are those of `other` in the same order: a line fits
    /// all of its length, a plane is a volume of one plane.
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

impl From<usize> for Shape {
    fn from(n: usize) -> Self {
        Self::Line(n)
    }
}

impl From<Shape2> for Shape {
    fn from(shape: Shape2) -> Self {
        Self::Plane(shape)
    }
}

impl From<Shape3> for Shape {
    fn from(shape: Shape3) -> Self {
        Self::Volume(shape)
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(n) => write!(f, "{n}"),
            Self::Plane(shape) => shape.fmt(f),
            Self::Volume(shape) => shape.fmt(f),
        }
    }
}

impl Shape2 {
    /// A shape of `nx` × `ny` points.
    #[must_use]
    pub const fn new(nx: usize, ny: usize) -> Self {
        Self { nx, ny }
    }

    /// The number of points.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOverflow`] when the product does not fit `usize`.
    pub fn points(self) -> Result<usize, Error> {
        checked_points("nx * ny", &[self.nx, self.ny], self.nx.checked_mul(self.ny))
    }

    /// The element of point (i, j), or `None` outside the shape.
    #[must_use]
    pub const fn index(self, i: usize, j: usize) -> Option<usize> {
        if i >= self.nx || j >= self.ny {
            return None;
        }
        match j.checked_mul(self.nx) {
            Some(row) => row.checked_add(i),
            None => None,
        }
    }
}

impl Shape3 {
    /// A shape of `nx` × `ny` × `nz` points.
    #[must_use]
    pub const fn new(nx: usize, ny: usize, nz: usize) -> Self {
        Self { nx, ny, nz }
    }

    /// A shape of `n` points along each axis.
    #[must_use]
    pub const fn cube(n: usize) -> Self {
        Self::new(n, n, n)
    }

    /// The number of points.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOverflow`] when the product does not fit `usize`.
    pub fn points(self) -> Result<usize, Error> {
        // An extent of zero makes the product zero, whatever the others are;
        // multiplying in order would call 0 points of MAX × MAX × 0 an overflow.
        let product = if self.nx == 0 || self.ny == 0 || self.nz == 0 {
            Some(0)
        } else {
            self.nx
                .checked_mul(self.ny)
                .and_then(|plane| plane.checked_mul(self.nz))
        };
        checked_points("nx * ny * nz", &[self.nx, self.ny, self.nz], product)
    }

    /// The element of point (i, j, k), or `None` outside the shape.
    #[must_use]
    pub const fn index(self, i: usize, j: usize, k: usize) -> Option<usize> {
        if i >= self.nx || j >= self.ny || k >= self.nz {
            return None;
        }
        let Some(plane) = k.checked_mul(self.ny) else {
            return None;
        };
        let Some(row) = plane.checked_add(j) else {
            return None;
        };
        match row.checked_mul(self.nx) {
            Some(start) => start.checked_add(i),
            None => None,
        }
    }
}

impl std::fmt::Display for Shape2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} × {}", self.nx, self.ny)
    }
}

impl std::fmt::Display for Shape3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} × {} × {}", self.nx, self.ny, self.nz)
    }
}

fn checked_points(what: &str, extents: &[usize], product: Option<usize>) -> Result<usize, Error> {
    product.ok_or_else(|| {
        let extents: Vec<String> = extents.iter().map(usize::to_string).collect();
        Error::IndexOverflow {
            what: what.to_owned(),
            given: extents.join(" * "),
            limit: usize::MAX as u64,
        }
    })
}

/// Refuses what `given` is, of `required` points or a line of as many.
pub(crate) fn require_shape(
    what: impl FnOnce() -> String,
    required: Shape,
    given: Shape,
) -> Result<(), Error> {
    if given.fits(required) {
        return Ok(());
    }
    Err(match given {
        Shape::Line(given) => Error::LengthMismatch {
            what: what(),
            required: required.points()?,
            given,
        },
        _ => Error::ShapeMismatch {
            what: what(),
            required: required.to_string(),
            given: given.to_string(),
        },
    })
}
