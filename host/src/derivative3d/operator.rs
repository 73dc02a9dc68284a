//! The differential operators, and the order of their derivatives.

use crate::axis::Axis;
use std::fmt;

/// The order of a derivative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    First = 1,
    Second = 2,
}

/// An operator that a [`Plan`](super::Plan) computes.
///
/// ```
/// use halo_gpu::Axis;
/// use halo_gpu::derivative3d::Operator;
///
/// assert_eq!(Operator::VECTOR_CALCULUS.map(Operator::fields), [(1, 3), (3, 1), (3, 3), (1, 1)]);
/// assert_eq!(Operator::Derivative(Axis::Z).fields(), (1, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// ∂f/∂axis of one field.
    Derivative(Axis),
    /// ∂²f/∂axis² of one field.
    SecondDerivative(Axis),
    /// (∂f/∂x, ∂f/∂y, ∂f/∂z) of one field.
    Gradient,
    /// (∂u/∂x + ∂v/∂y) + ∂w/∂z of three fields.
    Divergence,
    /// (∂w/∂y - ∂v/∂z, ∂u/∂z - ∂w/∂x, ∂v/∂x - ∂u/∂y) of three fields.
    Curl,
    /// (∂²f/∂x² + ∂²f/∂y²) + ∂²f/∂z² of one field.
    Laplacian,
}

impl Operator {
    /// The four operators that take derivatives along all axes.
    pub const VECTOR_CALCULUS: [Self; 4] = [
        Self::Gradient,
        Self::Divergence,
        Self::Curl,
        Self::Laplacian,
    ];

    /// The number of fields that it reads and the number that it writes.
    #[must_use]
    pub const fn fields(self) -> (usize, usize) {
        match self {
            Self::Gradient => (1, 3),
            Self::Divergence => (3, 1),
            Self::Curl => (3, 3),
            Self::Derivative(_) | Self::SecondDerivative(_) | Self::Laplacian => (1, 1),
        }
    }

    /// The number of derivatives that it takes at each point.
    pub(super) const fn derivatives(self) -> usize {
        match self {
            Self::Derivative(_) | Self::SecondDerivative(_) => 1,
            Self::Gradient | Self::Divergence | Self::Laplacian => 3,
            Self::Curl => 6,
        }
    }

    /// The order of its derivatives.
    pub(super) const fn order(self) -> Order {
        match self {
            Self::SecondDerivative(_) | Self::Laplacian => Order::Second,
            _ => Order::First,
        }
    }

    /// The axis of its derivative, if it has only one.
    pub(super) const fn axis(self) -> Option<Axis> {
        match self {
            Self::Derivative(axis) | Self::SecondDerivative(axis) => Some(axis),
            _ => None,
        }
    }

    /// The axes along which it takes derivatives.
    pub(super) fn axes(self) -> impl Iterator<Item = Axis> {
        let only = self.axis();
        let mut axes = Axis::ALL.into_iter();
        std::iter::from_fn(move || axes.find(|axis| only.is_none_or(|only| only == *axis)))
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Derivative(axis) => write!(f, "derivative along {axis}"),
            Self::SecondDerivative(axis) => write!(f, "second derivative along {axis}"),
            Self::Gradient => f.write_str("gradient"),
            Self::Divergence => f.write_str("divergence"),
            Self::Curl => f.write_str("curl"),
            Self::Laplacian => f.write_str("Laplacian"),
        }
    }
}
