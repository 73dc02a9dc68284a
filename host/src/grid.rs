//! Grids: extents, spacings and boundaries.

use crate::axis::Axis;
use crate::error::{require_finite, require_positive};
use crate::{Error, Shape2, Shape3};
use std::fmt;

/// The rule for the values beyond one end of an axis.
///
/// With `f[0]` … `f[n-1]` on the axis and m = 1, 2, …:
///
/// | boundary | `f[-m]` | `f[n-1+m]` |
/// |---|---|---|
/// | `Periodic` | `f[n-m]` | `f[m-1]` |
/// | `PeriodicWithEndpoint` | `f[n-1-m]` | `f[m]` |
/// | `Dirichlet(value)` | `value` | `value` |
/// | `Neumann` | `f[m]` | `f[n-1-m]` |
/// | `NeumannHalfway` | `f[m-1]` | `f[n-m]` |
/// | `DirichletOnPoint` | not used | not used |
/// | `OneSided` | not used | not used |
///
/// The two periodic conventions differ in whether the first point of the next period is stored. The
/// wrong convention shifts every value near the seam by one point, an error that no smooth picture
/// shows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Boundary {
    /// The period is `n` spacings: the point after `n - 1` is point 0. This is the usual
    /// convention.
    Periodic,
    /// The period is `n - 1` spacings: both end points are stored and are the same physical point.
    PeriodicWithEndpoint,
    /// All points beyond the end have this value, in the unit of the field. For values that depend
    /// on position and time, set points of the grid with
    /// [`stencil::Run::drive`](crate::stencil::Run::drive).
    Dirichlet(f64),
    /// The end point lies on the boundary and keeps its value; the operation uses nothing beyond
    /// it. The value may differ from point to point along the end. This boundary is for iterations
    /// and time steps ([`Heat2d`](crate::heat2d::Heat2d)); operators and
    /// [stencils](crate::stencil::Stencil), which compute all points, refuse it.
    DirichletOnPoint,
    /// No flux through a wall at the end point: the field is mirrored at that point.
    Neumann,
    /// No flux through a wall half a spacing beyond the end point, as for points at the centres of
    /// cells.
    NeumannHalfway,
    /// The operation uses nothing beyond the end: near it the stencils are one-sided and have the
    /// same order of accuracy.
    OneSided,
}

impl Boundary {
    /// Whether the axis is periodic, in either convention.
    #[must_use]
    pub const fn is_periodic(self) -> bool {
        matches!(self, Self::Periodic | Self::PeriodicWithEndpoint)
    }

    /// The number of points of a period that are stored twice: 0 or 1.
    #[must_use]
    pub const fn overlap(self) -> usize {
        match self {
            Self::PeriodicWithEndpoint => 1,
            _ => 0,
        }
    }

    /// The spacing that gives an axis of `n` points the length 1: `1/n` for
    /// [`Periodic`](Self::Periodic), whose length is the period, and `1/(n-1)` for all others.
    ///
    /// ```
    /// use halo_gpu::Boundary;
    ///
    /// // 64 intervals: the end point is stored or it is not.
    /// assert_eq!(Boundary::Periodic.unit_spacing(64), 1.0 / 64.0);
    /// assert_eq!(Boundary::PeriodicWithEndpoint.unit_spacing(65), 1.0 / 64.0);
    /// assert_eq!(Boundary::Neumann.unit_spacing(65), 1.0 / 64.0);
    /// assert_eq!(Boundary::PeriodicWithEndpoint.overlap(), 1);
    /// ```
    #[must_use]
    pub fn unit_spacing(self, n: usize) -> f64 {
        match self {
            Self::Periodic => 1.0 / n as f64,
            _ => 1.0 / (n as f64 - 1.0),
        }
    }

    /// The value beyond the end, or 0 for other boundaries.
    pub(crate) const fn dirichlet_value(self) -> f64 {
        match self {
            Self::Dirichlet(value) => value,
            _ => 0.0,
        }
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Periodic => f.write_str("periodic (period n)"),
            Self::PeriodicWithEndpoint => f.write_str("periodic with end point (period n-1)"),
            Self::Dirichlet(value) => write!(f, "Dirichlet ({value})"),
            Self::DirichletOnPoint => f.write_str("Dirichlet (kept on the end point)"),
            Self::Neumann => f.write_str("Neumann (mirrored on the end point)"),
            Self::NeumannHalfway => f.write_str("Neumann (mirrored half a spacing beyond)"),
            Self::OneSided => f.write_str("one-sided"),
        }
    }
}

/// A grid with `D` axes: for each axis the number of points, the spacing, and the boundary at each
/// end.
///
/// `new` makes a [`Grid2`] or [`Grid3`] that is periodic along every axis; the `with_…` methods
/// change the boundaries.
///
/// ```
/// use halo_gpu::{Axis, Boundary, Grid3, Shape3};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // A channel: periodic along x and z, a wall below, open above.
/// let grid = Grid3::new(Shape3::new(64, 33, 16), [0.1, 0.05, 0.1])?
///     .with_ends(Axis::Y, [Boundary::Neumann, Boundary::OneSided])?;
/// assert_eq!(grid.shape(), Shape3::new(64, 33, 16));
/// assert_eq!(grid.spacing(Axis::Y), 0.05);
/// assert_eq!(grid.ends(Axis::Y)[0], Boundary::Neumann);
/// assert_eq!(grid.ends(Axis::X), [Boundary::Periodic; 2]);
///
/// let refused = Grid3::new(Shape3::cube(8), [0.1, -1.0, 0.1]).unwrap_err();
/// assert_eq!(refused.to_string(), "grid: spacing along y is -1, but must be positive");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid<const D: usize> {
    extents: [usize; D],
    spacing: [f64; D],
    ends: [[Boundary; 2]; D],
}

/// A grid in the plane.
pub type Grid2 = Grid<2>;

/// A grid in space.
pub type Grid3 = Grid<3>;

/// The name of grids in errors.
const OPERATION: &str = "grid";

/// The names of the spacings in errors.
const SPACINGS: [&str; 3] = ["spacing along x", "spacing along y", "spacing along z"];

/// The names of the boundaries in errors.
const BOUNDARIES: [&str; 3] = ["boundary along x", "boundary along y", "boundary along z"];

impl Grid<2> {
    /// A grid of `shape` points with the spacings `spacing` along x and y, periodic along both.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for an extent of 0, [`Error::IndexOverflow`] for more points
    /// than can be indexed, [`Error::NonFinite`] and [`Error::InvalidParameter`] for a
    /// spacing that is not a positive number.
    pub fn new(shape: Shape2, spacing: [f64; 2]) -> Result<Self, Error> {
        shape.points()?;
        Self::of([shape.nx, shape.ny], spacing)
    }

    /// Points along each axis.
    #[must_use]
    pub const fn shape(&self) -> Shape2 {
        Shape2::new(self.extents[0], self.extents[1])
    }
}

impl Grid<3> {
    /// A grid of `shape` points with the spacings `spacing` along x, y and z, periodic along all.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for an extent of 0, [`Error::IndexOverflow`] for more points
    /// than can be indexed, [`Error::NonFinite`] and [`Error::InvalidParameter`] for a
    /// spacing that is not a positive number.
    pub fn new(shape: Shape3, spacing: [f64; 3]) -> Result<Self, Error> {
        shape.points()?;
        Self::of([shape.nx, shape.ny, shape.nz], spacing)
    }

    /// Points along each axis.
    #[must_use]
    pub const fn shape(&self) -> Shape3 {
        Shape3::new(self.extents[0], self.extents[1], self.extents[2])
    }
}

impl<const D: usize> Grid<D> {
    fn of(extents: [usize; D], spacing: [f64; D]) -> Result<Self, Error> {
        for (axis, (&extent, &h)) in Axis::ALL.into_iter().zip(extents.iter().zip(&spacing)) {
            if extent == 0 {
                return Err(Error::InvalidSize {
                    operation: OPERATION,
                    axis: axis.extent_name(),
                    given: 0,
                    required: "at least 1".into(),
                });
            }
            let parameter = SPACINGS[axis.index()];
            require_positive(OPERATION, parameter, h)?;
        }
        Ok(Self {
            extents,
            spacing,
            ends: [[Boundary::Periodic; 2]; D],
        })
    }

    /// This grid with `boundary` at both ends of an axis.
    ///
    /// # Errors
    ///
    /// As for [`with_ends`](Self::with_ends).
    pub fn with_boundary(self, axis: Axis, boundary: Boundary) -> Result<Self, Error> {
        self.with_ends(axis, [boundary; 2])
    }

    /// This grid with `boundary` at all ends.
    ///
    /// ```
    /// use halo_gpu::{Axis, Boundary, Grid2, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let plate = Grid2::new(Shape2::new(9, 5), [0.5, 0.5])?
    ///     .with_boundaries(Boundary::Dirichlet(0.0))?
    ///     .with_boundary(Axis::Y, Boundary::Neumann)?;
    /// assert_eq!(plate.ends(Axis::X), [Boundary::Dirichlet(0.0); 2]);
    /// assert_eq!(plate.ends(Axis::Y), [Boundary::Neumann; 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`with_ends`](Self::with_ends).
    pub fn with_boundaries(self, boundary: Boundary) -> Result<Self, Error> {
        let mut axes = Axis::ALL.into_iter().take(D);
        axes.try_fold(self, |grid, axis| grid.with_boundary(axis, boundary))
    }

    /// This grid with the boundaries `ends` at the first and at the last point of an axis.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for an axis that the grid does not have, and if one end is
    /// periodic and the other is not periodic in the same convention; [`Error::NonFinite`] for a
    /// value that is not a finite number.
    pub fn with_ends(mut self, axis: Axis, ends: [Boundary; 2]) -> Result<Self, Error> {
        let invalid = |parameter, given, required: String| Error::InvalidParameter {
            operation: OPERATION,
            parameter,
            given,
            required,
        };
        if axis.index() >= D {
            let required = format!("one of the {D} that the grid has");
            return Err(invalid("the axis", axis.to_string(), required));
        }
        let [low, high] = ends;
        if (low.is_periodic() || high.is_periodic()) && low != high {
            let given = format!("{low} at one end and {high} at the other");
            let required =
                "periodic at both ends with the same period, or at neither end".to_owned();
            return Err(invalid(BOUNDARIES[axis.index()], given, required));
        }
        for end in ends {
            let value = end.dirichlet_value();
            require_finite(OPERATION, "the value of a Dirichlet boundary", value)?;
        }
        self.ends[axis.index()] = ends;
        Ok(self)
    }

    /// A grid with the same spacings and boundaries and `extents` points along each axis, such as a
    /// part of this grid.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for an extent of 0, [`Error::IndexOverflow`] for more points than
    /// can be indexed.
    pub fn with_extents(self, extents: [usize; D]) -> Result<Self, Error> {
        let [nx, ny, nz] = [0, 1, 2].map(|axis| extents.get(axis).copied().unwrap_or(1));
        Shape3::new(nx, ny, nz).points()?;
        let Self { ends, spacing, .. } = self;
        Ok(Self {
            ends,
            ..Self::of(extents, spacing)?
        })
    }

    /// This grid with spacings that make its length 1 along every axis: the period of a periodic
    /// axis, the distance between the ends of any other.
    ///
    /// ```
    /// use halo_gpu::{Axis, Boundary, Grid2, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // 64 intervals along both axes: the end point is stored or it is not.
    /// let grid = Grid2::new(Shape2::new(64, 65), [1.0; 2])?
    ///     .with_boundary(Axis::Y, Boundary::PeriodicWithEndpoint)?
    ///     .of_unit_length()?;
    /// assert_eq!([grid.spacing(Axis::X), grid.spacing(Axis::Y)], [1.0 / 64.0; 2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for an axis with a single point and thus without a length.
    pub fn of_unit_length(mut self) -> Result<Self, Error> {
        for (axis, (spacing, (&n, ends))) in Axis::ALL.into_iter().zip(
            self.spacing
                .iter_mut()
                .zip(self.extents.iter().zip(&self.ends)),
        ) {
            let intervals = match ends[0] {
                Boundary::Periodic => n,
                _ => n - 1,
            };
            if intervals == 0 {
                return Err(Error::InvalidSize {
                    operation: OPERATION,
                    axis: axis.extent_name(),
                    given: n,
                    required: "at least 2 to have a length".into(),
                });
            }
            *spacing = 1.0 / intervals as f64;
        }
        Ok(self)
    }

    /// The points of the outermost layers, x fastest. For each axis, `layers` gives the number of
    /// layers at its first and at its last point.
    ///
    /// ```
    /// use halo_gpu::{Grid2, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let grid = Grid2::new(Shape2::new(5, 3), [1.0; 2])?;
    /// assert_eq!(grid.rim([[1, 1], [1, 1]]).count(), 12);
    /// // Two columns at the first end of x, one row at the last of y.
    /// let corner: Vec<_> = grid.rim([[2, 0], [0, 1]]).collect();
    /// assert_eq!(corner[..4], [[0, 0], [1, 0], [0, 1], [1, 1]]);
    /// assert_eq!(corner[4..], [[0, 2], [1, 2], [2, 2], [3, 2], [4, 2]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn rim(&self, layers: [[usize; 2]; D]) -> impl Iterator<Item = [usize; D]> + use<D> {
        let extents = self.extents;
        let rows = extents[1..].iter().product();
        (0..rows).flat_map(move |row: usize| {
            let (mut left, mut point, mut whole) = (row, [0; D], false);
            for axis in 1..D {
                let [low, high] = layers[axis];
                point[axis] = left % extents[axis];
                left /= extents[axis];
                whole |= point[axis] < low || extents[axis] - point[axis] <= high;
            }
            let n = extents[0];
            let [low, high] = if whole { [n, 0] } else { layers[0] };
            let low = low.min(n);
            let last = n - high.min(n - low);
            (0..low).chain(last..n).map(move |i| {
                point[0] = i;
                point
            })
        })
    }

    /// The number of points along an axis; 1 along an axis that the grid does not have.
    #[must_use]
    pub fn extent(&self, axis: Axis) -> usize {
        self.extents.get(axis.index()).copied().unwrap_or(1)
    }

    /// The distance between two neighbours along an axis; 1 along an axis that the grid does not
    /// have.
    #[must_use]
    pub fn spacing(&self, axis: Axis) -> f64 {
        self.spacing.get(axis.index()).copied().unwrap_or(1.0)
    }

    /// The boundaries at the first and at the last point of an axis; periodic along an axis that
    /// the grid does not have.
    #[must_use]
    pub fn ends(&self, axis: Axis) -> [Boundary; 2] {
        let ends = self.ends.get(axis.index()).copied();
        ends.unwrap_or([Boundary::Periodic; 2])
    }
}
