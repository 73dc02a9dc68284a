//! What happens to heat at the walls of a plate.

/// What happens to heat at a wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Wall {
    /// Its points keep the temperature that they have at the start.
    #[default]
    Fixed,
    /// No heat goes through it: the temperature beyond it mirrors that before it, and
    /// its points are swept like all others.
    Insulated,
}

impl Wall {
    /// Points that the wall takes from a row or column of those that are swept.
    pub(super) const fn fixed_points(self) -> usize {
        match self {
            Self::Fixed => 1,
            Self::Insulated => 0,
        }
    }
}

/// The four walls of a plate of nx × ny points.
///
/// ```
/// use halo_gpu::heat2d::{Wall, Walls};
///
/// let walls = Walls { top: Wall::Insulated, ..Walls::FIXED };
/// assert_eq!(walls.left, Wall::Fixed);
/// assert_eq!(Walls::default(), Walls::FIXED);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Walls {
    /// At i = 0.
    pub left: Wall,
    /// At i = nx - 1.
    pub right: Wall,
    /// At j = 0.
    pub bottom: Wall,
    /// At j = ny - 1.
    pub top: Wall,
}

impl Walls {
    /// All four fixed.
    pub const FIXED: Self = Self::all(Wall::Fixed);

    /// All four insulated.
    pub const INSULATED: Self = Self::all(Wall::Insulated);

    /// All four alike.
    #[must_use]
    pub const fn all(wall: Wall) -> Self {
        Self {
            left: wall,
            right: wall,
            bottom: wall,
            top: wall,
        }
    }

    /// Whether any is insulated.
    pub(super) fn any_insulated(self) -> bool {
        self != Self::FIXED
    }
}
