//! Reads a device's properties from the driver.

use super::driver::{self, cannot_be_right, said};
use crate::device::properties::Properties;
use crate::device::ptx;
use crate::limits::{Limits, TextureLimits};
use crate::{ComputeCapability, Dim3, DriverVersion, Error};
use cust::device::{Device, DeviceAttribute};

/// The properties that decide which PTX a device can run.
#[derive(Clone, Copy)]
pub(super) struct Generation {
    pub(super) capability: ComputeCapability,
    pub(super) driver: DriverVersion,
}

impl Generation {
    pub(super) fn of(device: Device) -> Result<Self, Error> {
        Ok(Self {
            capability: ComputeCapability {
                major: attribute(device, DeviceAttribute::ComputeCapabilityMajor)?,
                minor: attribute(device, DeviceAttribute::ComputeCapabilityMinor)?,
            },
            driver: driver::version()?,
        })
    }

    /// `jit_log` is empty if the driver's compiler did not run.
    pub(super) fn unsupported(self, ptx: &str, device: &str, jit_log: String) -> Error {
        let header = ptx::header(ptx);
        Error::UnsupportedPtx {
            ptx_target: header.target,
            ptx_version: header.version,
            device: device.to_owned(),
            compute_capability: self.capability,
            driver_version: self.driver,
            jit_log,
        }
    }

    /// `jit_log` gives the reason.
    pub(super) fn invalid(self, ptx: &str, device: &str, jit_log: String) -> Error {
        let header = ptx::header(ptx);
        Error::InvalidPtx {
            ptx_target: header.target,
            ptx_version: header.version,
            device: device.to_owned(),
            compute_capability: self.capability,
            driver_version: self.driver,
            jit_log,
        }
    }
}

fn attribute(device: Device, attribute: DeviceAttribute) -> Result<u32, Error> {
    let value = said("cuDeviceGetAttribute", device.get_attribute(attribute))?;
    u32::try_from(value).map_err(|_| cannot_be_right("cuDeviceGetAttribute"))
}

/// Like [`attribute`], for a value that is positive on every device.
fn positive_attribute(device: Device, number: DeviceAttribute) -> Result<u32, Error> {
    match attribute(device, number)? {
        0 => Err(cannot_be_right("cuDeviceGetAttribute")),
        value => Ok(value),
    }
}

/// Like [`attribute`], for a value that a driver may not report.
pub(super) fn optional_attribute(device: Device, number: DeviceAttribute) -> Option<u32> {
    attribute(device, number).ok().filter(|value| *value != 0)
}

pub(super) fn properties(device: Device, generation: Generation) -> Result<Properties, Error> {
    let optional = |number| optional_attribute(device, number);
    let clock_khz = optional(DeviceAttribute::MemoryClockRate);
    let bus_bits = optional(DeviceAttribute::GlobalMemoryBusWidth);
    Ok(Properties {
        name: said("cuDeviceGetName", device.name())?,
        multiprocessors: positive_attribute(device, DeviceAttribute::MultiprocessorCount)?,
        threads_per_multiprocessor: optional(DeviceAttribute::MaxThreadsPerMultiprocessor),
        total_memory: Some(said("cuDeviceTotalMem_v2", device.total_memory())? as u64),
        l2_cache_bytes: optional(DeviceAttribute::L2CacheSize).map(u64::from),
        peak_memory_bandwidth: clock_khz
            .zip(bus_bits)
            .map(|(clock, bits)| 2.0 * f64::from(clock) * 1e3 * f64::from(bits) / 8.0),
        compute_capability: Some(generation.capability),
        driver_version: Some(generation.driver),
        ptx_target: None,
    })
}

pub(super) fn limits(device: Device) -> Result<Limits, Error> {
    let get = |number| positive_attribute(device, number);
    let shared_bytes = get(DeviceAttribute::MaxSharedMemoryPerBlock)?;
    let opt_in = optional_attribute(device, DeviceAttribute::MaxSharedMemoryPerBlockOptin);
    Ok(Limits {
        threads_per_block: get(DeviceAttribute::MaxThreadsPerBlock)?,
        block: Dim3::new(
            get(DeviceAttribute::MaxBlockDimX)?,
            get(DeviceAttribute::MaxBlockDimY)?,
            get(DeviceAttribute::MaxBlockDimZ)?,
        ),
        grid: Dim3::new(
            get(DeviceAttribute::MaxGridDimX)?,
            get(DeviceAttribute::MaxGridDimY)?,
            get(DeviceAttribute::MaxGridDimZ)?,
        ),
        shared_bytes,
        shared_bytes_opt_in: opt_in.unwrap_or(shared_bytes).max(shared_bytes),
        warp_size: get(DeviceAttribute::WarpSize)?,
        texture_2d: TextureLimits {
            width: get(DeviceAttribute::MaximumTexture2DLinearWidth)?,
            height: get(DeviceAttribute::MaximumTexture2DLinearHeight)?,
            pitch_bytes: get(DeviceAttribute::MaximumTexture2DLinearPitch)?,
            pitch_alignment: get(DeviceAttribute::TexturePitchAlignment)?.max(4),
            alignment: get(DeviceAttribute::TextureAlignment)?.max(4),
        },
    })
}
