//! The properties of the CPU as a device; the ports do the work.

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

/// Threads that the machine runs at a time; 1 where the system does not tell.
pub(super) fn hardware_threads() -> u32 {
    std::thread::available_parallelism()
        .ok()
        .and_then(|threads| u32::try_from(threads.get()).ok())
        .unwrap_or(1)
}
