//! The table of weights of an axis, which the general kernels take with each launch.

/// The largest radius: half the order of accuracy 8.
pub const MAX_RADIUS: usize = 4;

/// The most points of a one-sided stencil: order 8, second derivative.
pub const MAX_END_POINTS: usize = 2 * MAX_RADIUS + 2;

/// The element of an axis' table where the rows for one-sided ends begin. The row of point p, of
/// [`MAX_END_POINTS`] elements, is p rows further on. Before them are the weights of the central
/// stencil.
pub const TABLE_ENDS: usize = MAX_RADIUS;

/// The element of an axis' table with the value beyond a fixed end.
pub const TABLE_FIXED: usize = TABLE_ENDS + MAX_RADIUS * MAX_END_POINTS;

/// Elements of an axis' table.
pub const TABLE_LEN: usize = TABLE_FIXED + 1;

/// The data of an axis that a general kernel needs besides its extent: weights over a power of the
/// spacing and the fixed value, [`TABLE_LEN`] elements in all.
///
/// A kernel takes it as a parameter by value. Parameters are in constant memory, so no copy before
/// the launch is needed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Table<T>(pub [T; TABLE_LEN]);

/// The tables of x, y and z.
pub type Tables<T> = [Table<T>; 3];

impl<T: Copy> Table<T> {
    /// Element `index`.
    ///
    /// # Safety
    ///
    /// `index < TABLE_LEN`.
    #[inline(always)]
    #[must_use]
    pub(super) unsafe fn element(&self, index: usize) -> T {
        // SAFETY: the caller's promise. A pointer avoids the bounds check.
        unsafe { *self.0.as_ptr().add(index) }
    }

    /// The central stencil's weight of the points m away, 1 to [`MAX_RADIUS`]; m must be constant
    /// once loops are unrolled.
    #[inline(always)]
    #[must_use]
    pub(super) const fn weight(&self, m: usize) -> T {
        self.0[m - 1]
    }

    /// The value beyond a fixed end.
    #[inline(always)]
    #[must_use]
    pub(super) const fn fixed_value(&self) -> T {
        self.0[TABLE_FIXED]
    }
}
