//! How much each thread is given.
#![forbid(unsafe_code)]

/// Bytes of elements for which another thread is worth waking.
pub(super) const SHARE_BYTES: usize = 512 << 10;
