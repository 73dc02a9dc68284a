//! The symmetry of a stencil's coefficients.

/// The symmetry of a stencil's coefficients, which determines the order of its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// c₋ₘ = -cₘ and c₀ = 0: differences of neighbours are multiplied. A constant line gives
    /// exactly 0.
    Antisymmetric,
    /// c₋ₘ = cₘ: sums of neighbours are multiplied.
    Symmetric,
    /// All coefficients are independent.
    Any,
}
