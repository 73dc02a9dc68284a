//! What is made of derivatives, and of which order they are.

/// The order of a derivative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    First = 1,
    Second = 2,
}

/// One of the four.
///
/// ```
/// use halo_gpu::derivative3d::Operator;
///
/// assert_eq!(Operator::ALL.map(Operator::fields), [(1, 3), (3, 1), (3, 3), (1, 1)]);
/// assert_eq!(Operator::Curl.kernel_name::<f64>(), "derivative3d_general_curl_f64");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// (∂f/∂x, ∂f/∂y, ∂f/∂z) of one field.
    Gradient,
    /// (∂u/∂x + ∂v/∂y) + ∂w/∂z of three.
    Divergence,
    /// (∂w/∂y - ∂v/∂z, ∂u/∂z - ∂w/∂x, ∂v/∂x - ∂u/∂y) of three.
    Curl,
    /// (∂²f/∂x² + ∂²f/∂y²) + ∂²f/∂z² of one.
    Laplacian,
}

impl Operator {
    /// All four.
    pub const ALL: [Self; 4] = [
        Self::Gradient,
        Self::Divergence,
        Self::Curl,
        Self::Laplacian,
    ];

    /// How many fields it reads and how many it writes.
    #[must_use]
    pub const fn fields(self) -> (usize, usize) {
        match self {
            Self::Gradient => (1, 3),
            Self::Divergence => (3, 1),
            Self::Curl => (3, 3),
            Self::Laplacian => (1, 1),
        }
    }

    /// The order of its derivatives.
    pub(super) const fn order(self) -> Order {
        match self {
            Self::Laplacian => Order::Second,
            _ => Order::First,
        }
    }
}
