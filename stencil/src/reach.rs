//! The points around a point that an update reads.

/// The largest distance that an update may read along an axis.
pub const MAX_RADIUS: usize = 8;

/// The largest distance along each axis that an update may read off the axes.
pub const MAX_BOX: usize = 2;

/// The points around a point that an update reads of a field.
///
/// ```
/// use halo_stencil::Reach;
///
/// const STAR: Reach = Reach::star(2);
/// assert!(STAR.contains([-2, 0, 0]) && STAR.contains([0, 0, 1]));
/// assert!(!STAR.contains([3, 0, 0]) && !STAR.contains([1, 1, 0]));
/// assert!(Reach::cube(1).contains([1, -1, 1]) && Reach::POINT.contains([0, 0, 0]));
/// assert!(!Reach::axes([0, 2, 1]).contains([1, 0, 0]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    axes: [usize; 3],
    is_box: bool,
}

impl Reach {
    /// The point itself.
    pub const POINT: Self = Self::axes([0; 3]);

    /// Points on the axes through the point, up to `radius` away; at most [`MAX_RADIUS`].
    #[must_use]
    pub const fn star(radius: usize) -> Self {
        Self::axes([radius; 3])
    }

    /// Points on the axes through the point, with a radius for each axis.
    #[must_use]
    pub const fn axes(axes: [usize; 3]) -> Self {
        Self {
            axes,
            is_box: false,
        }
    }

    /// All points that are up to `radius` away along each axis; at most [`MAX_BOX`].
    #[must_use]
    pub const fn cube(radius: usize) -> Self {
        Self {
            axes: [radius; 3],
            is_box: true,
        }
    }

    /// The radius along an axis.
    #[must_use]
    pub const fn radius(self, axis: usize) -> usize {
        self.axes[axis]
    }

    /// Whether it contains points off the axes.
    #[must_use]
    pub const fn is_box(self) -> bool {
        self.is_box
    }

    /// Whether it contains the point itself alone.
    #[must_use]
    pub const fn is_point(self) -> bool {
        matches!(self.axes, [0, 0, 0])
    }

    /// Whether it contains the point at this offset.
    #[must_use]
    pub const fn contains(self, offset: [isize; 3]) -> bool {
        let (mut axis, mut off) = (0, 0);
        while axis < 3 {
            if offset[axis].unsigned_abs() > self.axes[axis] {
                return false;
            }
            if offset[axis] != 0 {
                off += 1;
            }
            axis += 1;
        }
        off <= 1 || self.is_box
    }

    /// Whether its radii are within [`MAX_RADIUS`], or [`MAX_BOX`] for a box.
    #[must_use]
    pub const fn is_possible(self) -> bool {
        let most = if self.is_box { MAX_BOX } else { MAX_RADIUS };
        self.axes[0] <= most && self.axes[1] <= most && self.axes[2] <= most
    }
}

/// The largest radius of these along an axis.
#[must_use]
pub const fn furthest(reach: &[Reach], axis: usize) -> usize {
    let (mut field, mut most) = (0, 0);
    while field < reach.len() {
        if reach[field].axes[axis] > most {
            most = reach[field].axes[axis];
        }
        field += 1;
    }
    most
}
