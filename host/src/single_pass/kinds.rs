//! The kinds of single-pass reductions and their names.

use std::fmt;

/// The kinds of reductions to an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The sum.
    Sum,
    /// The least element.
    Min,
    /// The greatest element.
    Max,
}

impl Operation {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Sum, Self::Min, Self::Max];

    /// The operation's name: `sum`, `min` or `max`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// The name in errors.
    pub(super) const fn full_name(self) -> &'static str {
        match self {
            Self::Sum => "reduction: sum",
            Self::Min => "reduction: min",
            Self::Max => "reduction: max",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of extreme element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extremum {
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl Extremum {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Min, Self::Max];

    pub(super) const fn full_name(self) -> &'static str {
        match self {
            Self::Min => "reduction: argmin",
            Self::Max => "reduction: argmax",
        }
    }
}

/// The terms of a sum in f64: the elements or their squares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The elements, for a mean.
    First,
    /// Their squares, for a norm.
    Second,
}

impl Moment {
    /// Both.
    pub const ALL: [Self; 2] = [Self::First, Self::Second];

    pub(super) const fn full_name(self) -> &'static str {
        match self {
            Self::First => "reduction: first moment",
            Self::Second => "reduction: second moment",
        }
    }
}
