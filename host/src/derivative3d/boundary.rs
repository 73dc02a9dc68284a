//! What lies beyond the ends of an axis.

use super::axis::Boundary;
use crate::Error;
use crate::scalar::Scalar;
use gpu_kernels::derivative3d::general::rule;
use std::fmt;

/// What lies beyond the first and the last point of an axis, for [`FiniteDifferences3d`](super::FiniteDifferences3d).
///
/// With `f[0]` … `f[n-1]` on the axis and m = 1, 2, …:
///
/// | rule | `f[-m]` | `f[n-1+m]` |
/// |---|---|---|
/// | `Periodic` | `f[n-m]` | `f[m-1]` |
/// | `PeriodicWithEndpoint` | `f[n-1-m]` | `f[m]` |
/// | `MirrorOnPoint` | `f[m]` | `f[n-1-m]` |
/// | `MirrorHalfway` | `f[m-1]` | `f[n-m]` |
/// | `Fixed(value)` | `value` | `value` |
/// | `OneSided` | not used | not used |
///
/// All but `Fixed` keep the order of accuracy up to the ends for fields that do
/// continue that way; `OneSided` asks nothing of the field. The ghost values of `Fixed`
/// are as good as the field is constant beyond its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum AxisBoundary {
    /// The period is `n` spacings: the point after `n - 1` is point 0.
    Periodic,
    /// The period is `n - 1` spacings: both end points are stored.
    PeriodicWithEndpoint,
    /// An even reflection about the first and the last point themselves (no flux
    /// through a wall on which points lie).
    MirrorOnPoint,
    /// An even reflection about planes half a spacing beyond the first and the last
    /// point (no flux through the outer faces of cells whose centres are the points).
    MirrorHalfway,
    /// All points beyond either end have this value, in the unit of the field.
    Fixed(f64),
    /// No points beyond the ends are used: within a radius of an end the stencils are
    /// one-sided, of the same order of accuracy.
    OneSided,
}

impl AxisBoundary {
    /// The rule, as the kernels are told it.
    pub(super) const fn rule(self) -> u32 {
        match self {
            Self::Periodic => rule::PERIODIC,
            Self::PeriodicWithEndpoint => rule::PERIODIC_WITH_ENDPOINT,
            Self::MirrorOnPoint => rule::MIRROR_ON_POINT,
            Self::MirrorHalfway => rule::MIRROR_HALFWAY,
            Self::Fixed(_) => rule::FIXED,
            Self::OneSided => rule::ONE_SIDED,
        }
    }

    /// The periodic convention, for those that are periodic.
    pub(super) const fn periodic(self) -> Option<Boundary> {
        match self {
            Self::Periodic => Some(Boundary::Periodic),
            Self::PeriodicWithEndpoint => Some(Boundary::PeriodicWithEndpoint),
            _ => None,
        }
    }

    /// The value beyond the ends, in `T`; 0 where there is no such.
    pub(super) fn fixed_value(self) -> f64 {
        match self {
            Self::Fixed(value) => value,
            _ => 0.0,
        }
    }

    /// The value must be a number of `T`.
    pub(super) fn check<T: Scalar>(self, operation: &'static str) -> Result<(), Error> {
        let value = self.fixed_value();
        if !value.is_finite() {
            return Err(Error::NonFinite {
                operation,
                parameter: "the fixed value beyond the ends of an axis",
                given: value,
            });
        }
        if !T::nearest(value).into().is_finite() {
            return Err(Error::InvalidParameter {
                operation,
                parameter: "the fixed value beyond the ends of an axis",
                given: value.to_string(),
                required: format!("in the range of {}", T::NAME),
            });
        }
        Ok(())
    }
}

impl From<Boundary> for AxisBoundary {
    fn from(boundary: Boundary) -> Self {
        match boundary {
            Boundary::Periodic => Self::Periodic,
            Boundary::PeriodicWithEndpoint => Self::PeriodicWithEndpoint,
        }
    }
}

impl fmt::Display for AxisBoundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Periodic => Boundary::Periodic.fmt(f),
            Self::PeriodicWithEndpoint => Boundary::PeriodicWithEndpoint.fmt(f),
            Self::MirrorOnPoint => f.write_str("mirrored at the end points"),
            Self::MirrorHalfway => f.write_str("mirrored half a spacing beyond the end points"),
            Self::Fixed(value) => write!(f, "{value} beyond the ends"),
            Self::OneSided => f.write_str("one-sided at the ends"),
        }
    }
}
