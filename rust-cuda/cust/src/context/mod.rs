//! Contexts: they own a program's memory, modules and streams on a device.
//!
//! A [`Context`] is the device's primary context, which the CUDA runtime API uses too. [`legacy`]
//! has separate contexts and the stack of contexts.

mod current;
pub(crate) mod home;
pub mod legacy;

pub use current::{
    CacheConfig, CurrentContext, ResourceLimit, SharedMemoryConfig, StreamPriorityRange,
};
pub use home::Entered;

use crate::device::Device;
use crate::error::{CudaError, CudaResult, DropResult, ToResult};
use crate::private::Sealed;
use crate::version::CudaApiVersion;
use cuda_loader::sys::{self, CUcontext};
use home::Owned;
use std::sync::Arc;

bitflags::bitflags! {
    /// How threads wait for a context's work, and which features the context has.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ContextFlags: u32 {
        /// The driver chooses.
        const SCHED_AUTO = 0x00;
        /// Spins: the least latency, but a busy core.
        const SCHED_SPIN = 0x01;
        /// Spins, and yields to other threads.
        const SCHED_YIELD = 0x02;
        /// Sleeps.
        const SCHED_BLOCKING_SYNC = 0x04;
        /// The device can access page-locked host memory. Drivers ignore the flag today and always
        /// allow it.
        const MAP_HOST = 0x08;
        /// Keeps local memory as large as the largest launch has needed.
        const LMEM_RESIZE_TO_MAX = 0x10;
    }
}

/// Contexts of either kind.
pub trait ContextHandle: Sealed {
    /// The driver's handle.
    #[doc(hidden)]
    fn get_inner(&self) -> CUcontext;
}

/// The primary context of a device.
///
/// It lives as long as this value, a clone of it, or any object made in it.
#[derive(Debug, Clone)]
pub struct Context {
    owned: Arc<Owned>,
    device: Device,
}

impl Context {
    /// Retains the primary context of a device, and makes it current on this thread.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidDevice`], [`CudaError::OutOfMemory`], or another error of the driver.
    pub fn new(device: Device) -> CudaResult<Self> {
        let context = Self::retain(device)?;
        // SAFETY: the context is alive.
        unsafe { sys::cuCtxSetCurrent(context.owned.raw) }.to_result()?;
        Ok(context)
    }

    /// As [`Context::new`], but the current context does not change; see [`Context::enter`].
    ///
    /// # Errors
    ///
    /// As [`Context::new`].
    pub fn retain(device: Device) -> CudaResult<Self> {
        let owned = Owned::primary(device.as_raw())?;
        Ok(Self { owned, device })
    }

    /// Makes the context current on this thread until the result is dropped.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn enter(&self) -> CudaResult<Entered<'_>> {
        home::enter(self.owned.raw)
    }

    /// Destroys everything in the primary context of a device.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Safety
    ///
    /// Nobody in the process uses anything made in the context afterwards.
    pub unsafe fn reset(device: &Device) -> CudaResult<()> {
        // SAFETY: the caller's promise.
        unsafe { sys::cuDevicePrimaryCtxReset_v2(device.as_raw()) }.to_result()
    }

    /// Sets how threads wait.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_flags(&self, flags: ContextFlags) -> CudaResult<()> {
        // SAFETY: the arguments are numbers.
        unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(self.device.as_raw(), flags.bits()) }
            .to_result()
    }

    /// The driver's handle, which stays valid as long as the context lives.
    #[must_use]
    pub fn as_raw(&self) -> CUcontext {
        self.owned.raw
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// The version of the driver interface with which the context was made.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_api_version(&self) -> CudaResult<CudaApiVersion> {
        api_version(self.owned.raw)
    }

    /// Releases the context, and returns the driver's error if that fails. If something else still
    /// holds the context, it stays alive.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the context.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(ctx: Self) -> DropResult<Self> {
        let Self { owned, device } = ctx;
        Owned::release(owned).map_err(|(error, owned)| (error, Self { owned, device }))
    }
}

impl Sealed for Context {}
impl ContextHandle for Context {
    fn get_inner(&self) -> CUcontext {
        self.owned.raw
    }
}

fn api_version(raw: CUcontext) -> CudaResult<CudaApiVersion> {
    let mut version = 0;
    // SAFETY: the pointer is valid for one number, and the context is alive.
    unsafe { sys::cuCtxGetApiVersion(raw, &raw mut version) }.to_result()?;
    let version = i32::try_from(version).map_err(|_| CudaError::InvalidValue)?;
    Ok(CudaApiVersion { version })
}

/// Creates a separate context, and pushes it on this thread's stack.
fn create(flags: ContextFlags, device: Device) -> CudaResult<Arc<Owned>> {
    let mut raw = CUcontext::NULL;
    // SAFETY: the pointer is valid for one handle.
    unsafe { sys::cuCtxCreate_v2(&raw mut raw, flags.bits(), device.as_raw()) }.to_result()?;
    Ok(Owned::created(raw))
}
