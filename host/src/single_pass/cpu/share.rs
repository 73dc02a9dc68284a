//! Sizes from which on an array is read by several threads, or with prefetches.
#![forbid(unsafe_code)]

/// The fewest bytes of elements for which another thread is worthwhile.
pub(super) const SHARE_BYTES: usize = 64 << 10;

/// An array of at least this many bytes is not in a second-level cache: its elements are
/// prefetched.
pub(super) const FAR_BYTES: usize = 4 << 20;
