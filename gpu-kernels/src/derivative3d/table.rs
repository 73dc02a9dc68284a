//! The table of weights that the general kernels have for each axis, which travels with
//! each launch.

/// The largest radius: half the order of accuracy 8.
pub const MAX_RADIUS: usize = 4;

/// The most points of a row for the end of a one-sided axis: order 8, second derivative.
pub const MAX_END_POINTS: usize = 2 * MAX_RADIUS + 2;

/// Where in an axis' table the rows for the ends begin; the one of point p, of
/// [`MAX_END_POINTS`], is p rows further on. Before them are the weights of the middle.
pub const TABLE_ENDS: usize = MAX_RADIUS;

/// Where in an axis' table the value beyond a fixed end is.
pub const TABLE_FIXED: usize = TABLE_ENDS + MAX_RADIUS * MAX_END_POINTS;

/// Elements of an axis' table.
pub const TABLE_LEN: usize = TABLE_FIXED + 1;

/// What a general kernel has to know of an axis besides its extent: weights over a power
/// of the spacing, [`TABLE_LEN`] elements in all.
///
/// A kernel has it among its parameters, by value. That is constant memory, which needs
/// no copy before the launch and no wait for it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Table<T>(pub [T; TABLE_LEN]);

/// Those of x, y and z.
pub type Tables<T> = [Table<T>; 3];

impl<T: Copy> Table<T> {
    /// An element.
    ///
    /// # Safety
    ///
    /// `index < TABLE_LEN`.
    #[inline(always)]
    #[must_use]
    pub(super) unsafe fn element(&self, index: usize) -> T {
        // SAFETY: the caller's promise. By pointer: no check stands in a kernel.
        unsafe { *self.0.as_ptr().add(index) }
    }

    /// The weight of the points m away, 1 to [`MAX_RADIUS`], in the middle of the axis: for
    /// an m that is constant once loops are unrolled.
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
