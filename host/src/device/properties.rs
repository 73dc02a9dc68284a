//! The properties of a device, and the priority of its handles.

use crate::{ComputeCapability, DriverVersion};

/// The properties of a device. `None` means that this kind of device has no such property, or that
/// it is unknown.
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
    /// The device's name, for example `NVIDIA H200`, `cpu`, `emulator`.
    pub name: String,
    /// The number of multiprocessors of a CUDA device, or of hardware threads of the CPU; 2 for the
    /// emulator.
    pub multiprocessors: u32,
    /// Threads that one multiprocessor can hold at a time.
    pub threads_per_multiprocessor: Option<u32>,
    /// Device memory, in bytes.
    pub total_memory: Option<u64>,
    /// Second-level cache, in bytes.
    pub l2_cache_bytes: Option<u64>,
    /// Peak bandwidth of device memory in bytes per second: memory clock × bus width × 2 transfers
    /// per clock. `None` if the driver does not report it.
    pub peak_memory_bandwidth: Option<f64>,
    /// The compute capability of a CUDA device.
    pub compute_capability: Option<ComputeCapability>,
    /// The CUDA version that the installed driver supports.
    pub driver_version: Option<DriverVersion>,
    /// The target of the PTX that this device uses, for example `sm_90`.
    pub ptx_target: Option<String>,
}

/// The priority of a handle over other handles of the same device, if both have waiting work.
///
/// On CUDA devices it is the priority of the handle's stream: it decides which block starts next,
/// and never interrupts a running block. On other devices, which do all work at once, it has no
/// effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Priority {
    /// After the others: the default, also for opened devices.
    #[default]
    Low,
    /// Before the others: for short work that other work waits for, such as the rim of a field.
    High,
}
