//! Shapes: the extents of arrays with one, two or three axes.
//!
//! In the whole library x is the fastest axis: of `nx` × `ny` × `nz` points, the point (i, j, k) is
//! element `(k * ny + j) * nx + i`.

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

/// The extents of a [`Buffer`](crate::Buffer) with one, two or three axes.
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
    /// A number of elements without further structure.
    Line(usize),
    /// A plane; x is the fastest axis.
    Plane(Shape2),
    /// A volume; x is the fastest axis.
    Volume(Shape3),
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

    /// The element index of point (i, j), or `None` outside the shape.
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

    /// The element index of point (i, j, k), or `None` outside the shape.
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
