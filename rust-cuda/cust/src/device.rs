//! Devices: their number, names and attributes.

use crate::error::{CudaError, CudaResult, ToResult};
use cuda_loader::sys;
use std::ffi::{c_char, c_int};
use std::ops::Range;

macro_rules! attributes {
    ($($name:ident = $number:literal),* $(,)?) => {
        /// The attributes of [`Device::get_attribute`], named after the driver's
        /// `CU_DEVICE_ATTRIBUTE_…`.
        #[allow(missing_docs, reason = "the driver's documentation has them by these names")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum DeviceAttribute {
            $($name = $number),*
        }
    };
}

attributes! {
    MaxThreadsPerBlock = 1,
    MaxBlockDimX = 2,
    MaxBlockDimY = 3,
    MaxBlockDimZ = 4,
    MaxGridDimX = 5,
    MaxGridDimY = 6,
    MaxGridDimZ = 7,
    MaxSharedMemoryPerBlock = 8,
    TotalConstantMemory = 9,
    WarpSize = 10,
    MaxPitch = 11,
    MaxRegistersPerBlock = 12,
    ClockRate = 13,
    TextureAlignment = 14,
    MultiprocessorCount = 16,
    KernelExecTimeout = 17,
    Integrated = 18,
    CanMapHostMemory = 19,
    ComputeMode = 20,
    MaximumTexture1DWidth = 21,
    MaximumTexture2DWidth = 22,
    MaximumTexture2DHeight = 23,
    MaximumTexture3DWidth = 24,
    MaximumTexture3DHeight = 25,
    MaximumTexture3DDepth = 26,
    MaximumTexture2DLayeredWidth = 27,
    MaximumTexture2DLayeredHeight = 28,
    MaximumTexture2DLayeredLayers = 29,
    SurfaceAlignment = 30,
    ConcurrentKernels = 31,
    EccEnabled = 32,
    PciBusId = 33,
    PciDeviceId = 34,
    TccDriver = 35,
    MemoryClockRate = 36,
    GlobalMemoryBusWidth = 37,
    L2CacheSize = 38,
    MaxThreadsPerMultiprocessor = 39,
    AsyncEngineCount = 40,
    UnifiedAddressing = 41,
    MaximumTexture1DLayeredWidth = 42,
    MaximumTexture1DLayeredLayers = 43,
    MaximumTexture2DGatherWidth = 45,
    MaximumTexture2DGatherHeight = 46,
    MaximumTexture3DWidthAlternate = 47,
    MaximumTexture3DHeightAlternate = 48,
    MaximumTexture3DDepthAlternate = 49,
    PciDomainId = 50,
    TexturePitchAlignment = 51,
    MaximumTextureCubemapWidth = 52,
    MaximumTextureCubemapLayeredWidth = 53,
    MaximumTextureCubemapLayeredLayers = 54,
    MaximumSurface1DWidth = 55,
    MaximumSurface2DWidth = 56,
    MaximumSurface2DHeight = 57,
    MaximumSurface3DWidth = 58,
    MaximumSurface3DHeight = 59,
    MaximumSurface3DDepth = 60,
    MaximumSurface1DLayeredWidth = 61,
    MaximumSurface1DLayeredLayers = 62,
    MaximumSurface2DLayeredWidth = 63,
    MaximumSurface2DLayeredHeight = 64,
    MaximumSurface2DLayeredLayers = 65,
    MaximumSurfacecubemapWidth = 66,
    MaximumSurfacecubemapLayeredWidth = 67,
    MaximumSurfacecubemapLayeredLayers = 68,
    MaximumTexture1DLinearWidth = 69,
    MaximumTexture2DLinearWidth = 70,
    MaximumTexture2DLinearHeight = 71,
    MaximumTexture2DLinearPitch = 72,
    MaximumTexture2DMipmappedWidth = 73,
    MaximumTexture2DMipmappedHeight = 74,
    ComputeCapabilityMajor = 75,
    ComputeCapabilityMinor = 76,
    MaximumTexture1DMipmappedWidth = 77,
    StreamPrioritiesSupported = 78,
    GlobalL1CacheSupported = 79,
    LocalL1CacheSupported = 80,
    MaxSharedMemoryPerMultiprocessor = 81,
    MaxRegistersPerMultiprocessor = 82,
    ManagedMemory = 83,
    MultiGpuBoard = 84,
    MultiGpuBoardGroupId = 85,
    HostNativeAtomicSupported = 86,
    SingleToDoublePrecisionPerfRatio = 87,
    PageableMemoryAccess = 88,
    ConcurrentManagedAccess = 89,
    ComputePreemptionSupported = 90,
    CanUseHostPointerForRegisteredMem = 91,
    CooperativeLaunch = 95,
    MaxSharedMemoryPerBlockOptin = 97,
    MemoryPoolsSupported = 115,
    ClusterLaunch = 120,
}

/// A device, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    pub(crate) device: sys::CUdevice,
}

impl Device {
    /// The number of devices.
    ///
    /// # Errors
    ///
    /// [`CudaError::NotInitialized`] before [`init`](crate::init).
    pub fn num_devices() -> CudaResult<u32> {
        let mut count: c_int = 0;
        // SAFETY: the pointer is valid for one integer.
        unsafe { sys::cuDeviceGetCount(&raw mut count) }.to_result()?;
        // A negative or absurdly large number is an error of the driver.
        u16::try_from(count)
            .map(u32::from)
            .map_err(|_| CudaError::from_code(sys::CUresult::INVALID_ANSWER.0))
    }

    /// The device with this number, counted from 0.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidDevice`] if there is none.
    pub fn get_device(ordinal: u32) -> CudaResult<Self> {
        let ordinal = c_int::try_from(ordinal).map_err(|_| CudaError::InvalidDevice)?;
        let mut device = 0;
        // SAFETY: the pointer is valid for one number.
        unsafe { sys::cuDeviceGet(&raw mut device, ordinal) }.to_result()?;
        Ok(Self { device })
    }

    /// All devices.
    ///
    /// # Errors
    ///
    /// As [`Device::num_devices`].
    pub fn devices() -> CudaResult<Devices> {
        Ok(Devices {
            range: 0..Self::num_devices()?,
        })
    }

    /// The memory in bytes.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn total_memory(self) -> CudaResult<usize> {
        let mut bytes = 0;
        // SAFETY: the pointer is valid for one size.
        unsafe { sys::cuDeviceTotalMem_v2(&raw mut bytes, self.device) }.to_result()?;
        Ok(bytes)
    }

    /// The name, e.g. `NVIDIA H200`.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, or an error if the name does not end.
    pub fn name(self) -> CudaResult<String> {
        let mut name = [0_u8; 256];
        // SAFETY: the pointer is valid for the number of bytes that is passed with it.
        unsafe {
            sys::cuDeviceGetName(
                name.as_mut_ptr().cast::<c_char>(),
                name.len() as c_int,
                self.device,
            )
        }
        .to_result()?;
        let end = name.iter().position(|byte| *byte == 0);
        let end = end.ok_or(CudaError::from_code(sys::CUresult::INVALID_ANSWER.0))?;
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// An attribute of the device.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidValue`] if the driver does not know the attribute.
    pub fn get_attribute(self, attr: DeviceAttribute) -> CudaResult<i32> {
        let mut value = 0;
        // SAFETY: the pointer is valid for one integer.
        unsafe { sys::cuDeviceGetAttribute(&raw mut value, attr as c_int, self.device) }
            .to_result()?;
        Ok(value)
    }

    /// Whether the device can access the memory of `other`.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn can_access(self, other: Self) -> CudaResult<bool> {
        let mut can = 0;
        // SAFETY: the pointer is valid for one integer.
        unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, self.device, other.device) }
            .to_result()?;
        Ok(can != 0)
    }

    /// The driver's number of the device.
    #[must_use]
    pub fn as_raw(&self) -> sys::CUdevice {
        self.device
    }
}

/// An iterator over all devices; see [`Device::devices`].
#[derive(Debug, Clone)]
pub struct Devices {
    range: Range<u32>,
}

impl Iterator for Devices {
    type Item = CudaResult<Device>;

    fn next(&mut self) -> Option<Self::Item> {
        self.range.next().map(Device::get_device)
    }
}
