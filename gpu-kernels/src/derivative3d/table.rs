//! The table of weights that the general kernels have for each axis.

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
