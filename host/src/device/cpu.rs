//! The properties of the CPU as a device; the CPU ports do the work.

use super::properties::Properties;

pub(super) fn properties() -> Properties {
    Properties {
        name: "cpu".to_owned(),
        multiprocessors: hardware_threads(),
        threads_per_multiprocessor: None,
        total_memory: None,
        l2_cache_bytes: None,
        peak_memory_bandwidth: None,
        compute_capability: None,
        driver_version: None,
        ptx_target: None,
    }
}

/// The number of threads that the machine runs at a time; 1 if unknown.
pub(super) fn hardware_threads() -> u32 {
    std::thread::available_parallelism()
        .ok()
        .and_then(|threads| u32::try_from(threads.get()).ok())
        .unwrap_or(1)
}
