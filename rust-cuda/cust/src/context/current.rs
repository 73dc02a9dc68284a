//! Queries and settings of the current context of this thread.

use super::{ContextFlags, ContextHandle};
use crate::device::Device;
use crate::error::{CudaError, CudaResult, ToResult};
use cuda_loader::sys::{self, CUresult};
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
            /// The value with this number, or an error if this crate does not know the number.
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
    /// How the L1 cache is divided between cache and shared memory.
    CacheConfig {
        /// The driver chooses.
        PreferNone = 0,
        /// More shared memory.
        PreferShared = 1,
        /// More cache.
        PreferL1 = 2,
        /// The same amount of both.
        PreferEqual = 3,
    }
}

choices! {
    /// How wide the banks of shared memory are.
    SharedMemoryConfig {
        /// The default of the device.
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
    /// The nesting depth to which kernels may wait for kernels that they launch.
    DeviceRuntimeSynchronizeDepth = 3,
    /// The number of launches by kernels that may be pending.
    DeviceRuntimePendingLaunchCount = 4,
    /// Bytes that the L2 cache fetches at a time.
    MaxL2FetchGranularity = 5,
}

/// The range of stream priorities. A smaller number is a higher priority.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamPriorityRange {
    /// The lowest priority.
    pub least: i32,
    /// The highest priority.
    pub greatest: i32,
}

/// The context that is current on this thread.
///
/// All functions fail with [`CudaError::InvalidContext`] if there is none.
#[derive(Debug)]
pub struct CurrentContext;

impl CurrentContext {
    /// How kernels without their own setting divide the L1 cache.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_cache_config() -> CudaResult<CacheConfig> {
        let mut config = 0;
        // SAFETY: the pointer is valid for one number.
        unsafe { sys::cuCtxGetCacheConfig(&raw mut config) }.to_result()?;
        CacheConfig::from_number(config)
    }

    /// The device of the context.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_device() -> CudaResult<Device> {
        let mut device = 0;
        // SAFETY: the pointer is valid for one number.
        unsafe { sys::cuCtxGetDevice(&raw mut device) }.to_result()?;
        Ok(Device { device })
    }

    /// The flags with which it was made.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_flags() -> CudaResult<ContextFlags> {
        let mut flags = 0;
        // SAFETY: the pointer is valid for one number.
        unsafe { sys::cuCtxGetFlags(&raw mut flags) }.to_result()?;
        Ok(ContextFlags::from_bits_truncate(flags))
    }

    /// One of its limits.
    ///
    /// # Errors
    ///
    /// [`CudaError::UnsupportedLimit`], or another error of the driver.
    pub fn get_resource_limit(resource: ResourceLimit) -> CudaResult<usize> {
        let mut limit = 0;
        // SAFETY: the pointer is valid for one size.
        unsafe { sys::cuCtxGetLimit(&raw mut limit, resource as c_uint) }.to_result()?;
        Ok(limit)
    }

    /// The bank width of shared memory.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_shared_memory_config() -> CudaResult<SharedMemoryConfig> {
        let mut config = 0;
        // SAFETY: the pointer is valid for one number.
        unsafe { sys::cuCtxGetSharedMemConfig(&raw mut config) }.to_result()?;
        SharedMemoryConfig::from_number(config)
    }

    /// The range of priorities of its streams.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_stream_priority_range() -> CudaResult<StreamPriorityRange> {
        let mut range = StreamPriorityRange {
            least: 0,
            greatest: 0,
        };
        // SAFETY: the pointers are valid for one number each.
        unsafe { sys::cuCtxGetStreamPriorityRange(&raw mut range.least, &raw mut range.greatest) }
            .to_result()?;
        Ok(range)
    }

    /// Sets how kernels without their own setting divide the L1 cache.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_cache_config(cfg: CacheConfig) -> CudaResult<()> {
        // SAFETY: the argument is a number.
        unsafe { sys::cuCtxSetCacheConfig(cfg as c_uint) }.to_result()
    }

    /// Sets one of its limits. The driver may round it.
    ///
    /// # Errors
    ///
    /// [`CudaError::UnsupportedLimit`], [`CudaError::OutOfMemory`], or another error of the driver.
    pub fn set_resource_limit(resource: ResourceLimit, limit: usize) -> CudaResult<()> {
        // SAFETY: the arguments are numbers.
        unsafe { sys::cuCtxSetLimit(resource as c_uint, limit) }.to_result()
    }

    /// Sets the bank width of shared memory.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_shared_memory_config(cfg: SharedMemoryConfig) -> CudaResult<()> {
        // SAFETY: the argument is a number.
        unsafe { sys::cuCtxSetSharedMemConfig(cfg as c_uint) }.to_result()
    }

    /// Makes a context current on this thread.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_current<C: ContextHandle>(c: &C) -> CudaResult<()> {
        // SAFETY: the argument is the handle of a context; the driver reports an error for a
        // destroyed one.
        unsafe { sys::cuCtxSetCurrent(c.get_inner()) }.to_result()
    }

    /// Waits for all work of the context.
    ///
    /// # Errors
    ///
    /// The error of a failed kernel, or another error of the driver.
    pub fn synchronize() -> CudaResult<()> {
        // SAFETY: the call takes no arguments.
        unsafe { sys::cuCtxSynchronize() }.to_result()
    }
}
