//! The properties of the CPU as a device; the CPU ports do the work.

use super::properties::Properties;
use crate::threads;

pub(super) fn properties() -> Properties {
    Properties {
        name: "cpu".to_owned(),
        multiprocessors: u32::try_from(threads::hardware()).unwrap_or(1),
        threads_per_multiprocessor: None,
        total_memory: None,
        l2_cache_bytes: None,
        peak_memory_bandwidth: None,
        compute_capability: None,
        driver_version: None,
        ptx_target: None,
    }
}
