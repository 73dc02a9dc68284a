//! The conventions of periodic axes.

use gpu_kernels::derivative3d::RADIUS;
use std::fmt;

/// What lies beyond the first and the last point of an axis.
///
/// The two periodic conventions differ in whether the point that begins the
/// next period is stored. Taking the one for the other shifts every value near
/// the seam by one point, an error that no smooth picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Boundary {
    /// The period is `n` spacings: the point after `n - 1` is point 0. The
    /// ordinary convention of periodic grids.
    Periodic,
    /// The period is `n - 1` spacings: both end points are stored, and point 0
    /// and point `n - 1` are the same physical point. The convention of the
    /// textbook problem. The left halo cell `-m` is `f[n-1-m]`, the right halo
    /// cell `n-1+m` is `f[m]`.
    PeriodicWithEndpoint,
}

impl Boundary {
    /// How many points of the period are stored twice: 0 or 1.
    #[must_use]
    pub const fn overlap(self) -> usize {
        match self {
            Self::Periodic => 0,
            Self::PeriodicWithEndpoint => 1,
        }
    }

    /// The spacing that makes the period of `n` points 1: `1/n` or `1/(n-1)`.
    ///
    /// ```
    /// use halo_gpu::derivative3d::Boundary;
    ///
    /// // 64 intervals: the end point is stored or it is not.
    /// assert_eq!(Boundary::Periodic.unit_spacing(64), 1.0 / 64.0);
    /// assert_eq!(Boundary::PeriodicWithEndpoint.unit_spacing(65), 1.0 / 64.0);
    /// assert_eq!(Boundary::PeriodicWithEndpoint.overlap(), 1);
    /// assert_eq!(Boundary::PeriodicWithEndpoint.min_extent(), 5);
    /// ```
    #[must_use]
    pub fn unit_spacing(self, n: usize) -> f64 {
        1.0 / (n as f64 - self.overlap() as f64)
    }

    /// The fewest points along an axis for which the halo is made of points of
    /// the field: the radius of the stencil, and the end point stored twice.
    #[must_use]
    pub const fn min_extent(self) -> usize {
        RADIUS + self.overlap()
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Periodic => "periodic (period n)",
            Self::PeriodicWithEndpoint => "periodic with end point (period n-1)",
        })
    }
}
