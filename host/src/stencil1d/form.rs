//! The symmetry of a stencil's coefficients.

/// How the coefficients of a stencil belong together, and with that the order of its
/// operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// c₋ₘ = -cₘ and c₀ = 0: differences of neighbours are multiplied. A constant line
    /// gives exactly 0.
    Antisymmetric,
    /// c₋ₘ = cₘ: sums of neighbours are multiplied.
    Symmetric,
    /// Every coefficient for itself.
    Any,
}
