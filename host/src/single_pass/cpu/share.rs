//! The sizes from which an array is read by several threads, or with prefetches.
#![forbid(unsafe_code)]

/// The fewest bytes of elements for which another thread is worthwhile.
pub(super) const SHARE_BYTES: usize = 64 << 10;

/// An array of at least this many bytes does not fit in a second-level cache, so other ways
/// to read it are tried.
pub(super) const FAR_BYTES: usize = 4 << 20;
