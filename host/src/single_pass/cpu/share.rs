//! How much each thread is given.
#![forbid(unsafe_code)]

/// Bytes of elements for which another thread is worth its call.
pub(super) const SHARE_BYTES: usize = 64 << 10;
