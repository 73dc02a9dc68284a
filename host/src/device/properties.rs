//! Properties of a device, and the priority of its handles.

use crate::{ComputeCapability, DriverVersion};

/// Properties of a device. `None` where this kind of device has no such property.
///
/// ```
/// use halo_gpu::Device;
///
/// let device = Device::best();
/// let properties = device.properties();
/// println!("{}, {} multiprocessors", properties.name, properties.multiprocessors);
/// if let Some(bytes) = properties.total_memory {
///     println!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
/// }
/// assert!(properties.multiprocessors >= 1);
/// assert!(Device::emulator().properties().compute_capability.is_none());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Properties {
    /// The device's name, e.g. `NVIDIA H200`, `cpu`, `emulator`.
    pub name: String,
    /// Multiprocessors of a CUDA device; hardware threads otherwise.
    pub multiprocessors: u32,
    /// Threads that one multiprocessor can hold at a time.
    pub threads_per_multiprocessor: Option<u32>,
    /// Device memory, in bytes.
    pub total_memory: Option<u64>,
    /// Second-level cache, in bytes.
    pub l2_cache_bytes: Option<u64>,
    /// Peak bandwidth of device memory in bytes per second, as memory clock ×
    /// bus width × 2 transfers per clock. `None` where the driver does not say.
    pub peak_memory_bandwidth: Option<f64>,
    /// The generation of a CUDA device.
    pub compute_capability: Option<ComputeCapability>,
    /// The CUDA version that the installed driver supports.
    pub driver_version: Option<DriverVersion>,
    /// The target of the PTX that this device was given, e.g. `sm_90`.
    pub ptx_target: Option<String>,
}

/// Which of two handles of one device goes first, where both have work that waits for a place
/// on it.
///
/// On CUDA devices the priority of the handle's stream. It decides which block is placed next,
/// and takes no place from a block that runs. On other devices, which do work at once, it
/// changes nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Behind the others: what a device has that was opened.
    #[default]
    Low,
    /// In front of the others: for little work that others wait for, such as the rim of a
    /// field.
    High,
}
