//! The least share of work for a thread.
#![forbid(unsafe_code)]

/// The fewest bytes of elements for which another thread is worthwhile.
pub(super) const SHARE_BYTES: usize = 64 << 10;
