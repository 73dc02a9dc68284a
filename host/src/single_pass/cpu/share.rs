//! How much each thread is given.
#![forbid(unsafe_code)]

/// The least bytes of elements for another thread.
pub(super) const SHARE_BYTES: usize = 64 << 10;
