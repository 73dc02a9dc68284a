//! Queries and settings of the current context of this thread.

use super::{ContextFlags, ContextHandle};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, ToResult};
use crate::sys::{self, CUresult};
use std::ffi::c_uint;

macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $number,)*
        }

        impl $name {
            /// The choice of this number, or an error for one that is not known here.
            fn from_number(number: c_uint) -> CudaResult<Self> {
                match number {
                    $($number => Ok(Self::$variant),)*
                    _ => Err(CudaError::from_code(CUresult::INVALID_ANSWER.0)),
                }
            }
        }
    };
}

choices! {
    /// How the first-level cache is divided between cache and shared memory.
    CacheConfig {
        /// As the driver thinks best.
        PreferNone = 0,
        /// More shared memory.
        PreferShared = 1,
        /// More cache.
        PreferL1 = 2,
        /// As much of either.
        PreferEqual = 3,
    }
}

choices! {
    /// How wide the banks of shared memory are.
    SharedMemoryConfig {
        /// As the device has them.
        DefaultBankSize = 0,
        /// Four bytes.
        FourByteBankSize = 1,
        /// Eight bytes.
        EightByteBankSize = 2,
    }
}

/// A limited resource of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum ResourceLimit {
    /// Bytes of a thread's stack.
    StackSize = 0,
    /// Bytes of the buffer that a kernel's `printf` fills.
    PrintfFifoSize = 1,
    /// Bytes of the heap of a kernel's `malloc`.
    MallocHeapSize = 2,
    /// How deeply kernels that launch kernels may wait for them.
    DeviceRuntimeSynchronizeDepth = 3,
    /// Launches by kernels that may wait to be run.
    DeviceRuntimePendingLaunchCount = 4,
    /// Bytes that the second-level cache fetches at a time.
    MaxL2FetchGranularity = 5,
}

/// The priorities that streams may have. Smaller numbers go first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamPriorityRange {
    /// Goes last.
    pub least: i32,
    /// Goes first.
    pub greatest: i32,
}

/// The context that is current on this thread.
///
/// All functions fail with [`CudaError::InvalidContext`] where there is none.
#[derive(Debug)]
pub struct CurrentContext;

impl CurrentContext {
    /// How kernels without a setting of their own divide the first-level cache.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_cache_config() -> CudaResult<CacheConfig> {
        let mut config = 0;
        // SAFETY: the pointer is good for one number.
        unsafe { sys::cuCtxGetCacheConfig(&raw mut config) }.to_result()?;
        CacheConfig::from_number(config)
    }

    /// The device.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_device() -> CudaResult<Device> {
        let mut device = 0;
        // SAFETY: the pointer is good for one number.
        unsafe { sys::cuCtxGetDevice(&raw mut device) }.to_result()?;
        Ok(Device { device })
    }

    /// The flags that it was made with.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_flags() -> CudaResult<ContextFlags> {
        let mut flags = 0;
        // SAFETY: the pointer is good for one number.
        unsafe { sys::cuCtxGetFlags(&raw mut flags) }.to_result()?;
        Ok(ContextFlags::from_bits_truncate(flags))
    }

    /// One of its limits.
    ///
    /// # Errors
    ///
    /// [`CudaError::UnsupportedLimit`], or what else the driver says.
    pub fn get_resource_limit(resource: ResourceLimit) -> CudaResult<usize> {
        let mut limit = 0;
        // SAFETY: the pointer is good for one size.
        unsafe { sys::cuCtxGetLimit(&raw mut limit, resource as c_uint) }.to_result()?;
        Ok(limit)
    }

    /// The banks of shared memory.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_shared_memory_config() -> CudaResult<SharedMemoryConfig> {
        let mut config = 0;
        // SAFETY: the pointer is good for one number.
        unsafe { sys::cuCtxGetSharedMemConfig(&raw mut config) }.to_result()?;
        SharedMemoryConfig::from_number(config)
    }

    /// The priorities that its streams may have.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_stream_priority_range() -> CudaResult<StreamPriorityRange> {
        let mut range = StreamPriorityRange {
            least: 0,
            greatest: 0,
        };
        // SAFETY: the pointers are good for one number each.
        unsafe { sys::cuCtxGetStreamPriorityRange(&raw mut range.least, &raw mut range.greatest) }
            .to_result()?;
        Ok(range)
    }

    /// Sets how kernels divide the first-level cache that do not say it themselves.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_cache_config(cfg: CacheConfig) -> CudaResult<()> {
        // SAFETY: takes a number.
        unsafe { sys::cuCtxSetCacheConfig(cfg as c_uint) }.to_result()
    }

    /// Sets one of its limits. The driver may round it.
    ///
    /// # Errors
    ///
    /// [`CudaError::UnsupportedLimit`], [`CudaError::OutOfMemory`], or what else the driver
    /// says.
    pub fn set_resource_limit(resource: ResourceLimit, limit: usize) -> CudaResult<()> {
        // SAFETY: takes numbers.
        unsafe { sys::cuCtxSetLimit(resource as c_uint, limit) }.to_result()
    }

    /// Sets the banks of shared memory.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_shared_memory_config(cfg: SharedMemoryConfig) -> CudaResult<()> {
        // SAFETY: takes a number.
        unsafe { sys::cuCtxSetSharedMemConfig(cfg as c_uint) }.to_result()
    }

    /// Makes another context the current one of this thread.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_current<C: ContextHandle>(c: &C) -> CudaResult<()> {
        // SAFETY: takes the handle of a context; one that was destroyed is an error.
        unsafe { sys::cuCtxSetCurrent(c.get_inner()) }.to_result()
    }

    /// Waits for all work of the context.
    ///
    /// # Errors
    ///
    /// The error of a kernel that has failed, or another one that the driver reports.
    pub fn synchronize() -> CudaResult<()> {
        // SAFETY: takes nothing.
        unsafe { sys::cuCtxSynchronize() }.to_result()
    }
}
