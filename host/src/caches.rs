//! The sizes of the processor's caches and of their lines.

use crate::threads;
use std::sync::OnceLock;

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// Bytes of the last-level cache, or 0 if unknown.
pub(crate) fn last_cache() -> usize {
    cache_sizes().iter().copied().max().unwrap_or(0)
}

/// A core's share of the last-level cache in bytes, or 0 if unknown.
pub(crate) fn last_cache_per_core() -> usize {
    static SHARE: OnceLock<usize> = OnceLock::new();

    *SHARE.get_or_init(|| last_cache() / threads::hardware())
}

/// Bytes of a core's first-level cache for data; 32 KiB if it is unknown.
pub(crate) fn first_cache() -> usize {
    cache_sizes().first().copied().unwrap_or(32 << 10)
}

/// Bytes of a core's second-level cache; 512 KiB if it is unknown or smaller.
pub(crate) fn second_cache() -> usize {
    const LEAST: usize = 512 << 10;

    // The first two are the first-level caches: data and instructions.
    cache_sizes().get(2).copied().unwrap_or(0).max(LEAST)
}

/// Bytes of the processor's caches, the nearest first; empty if unknown.
fn cache_sizes() -> &'static [usize] {
    static BYTES: OnceLock<Vec<usize>> = OnceLock::new();

    BYTES.get_or_init(|| {
        // Linux prints "32768K".
        let size = |index| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
            let text = std::fs::read_to_string(path).ok()?;
            let kibibytes = text.trim().strip_suffix('K')?.parse::<usize>().ok()?;
            Some(kibibytes << 10)
        };
        (0..8).map_while(size).collect()
    })
}
