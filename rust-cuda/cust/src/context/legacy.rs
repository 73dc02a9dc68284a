//! Separate contexts, which a program creates for itself, and each thread's stack of contexts. New
//! programs use the primary [`Context`](super::Context).

pub use super::current::{
    CacheConfig, CurrentContext, ResourceLimit, SharedMemoryConfig, StreamPriorityRange,
};
pub use super::{ContextFlags, ContextHandle};

use super::home::{self, Owned};
use crate::device::Device;
use crate::error::{CudaResult, DropResult, ToResult};
use crate::private::Sealed;
use crate::version::CudaApiVersion;
use cuda_loader::sys::{self, CUcontext};
use std::sync::Arc;

/// A separate context, in addition to the device's primary one.
///
/// It lives as long as this value or any object made in it.
#[derive(Debug)]
pub struct Context {
    owned: Arc<Owned>,
}

impl Context {
    /// Makes a context, and pushes it on this thread's stack.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn create_and_push(flags: ContextFlags, device: Device) -> CudaResult<Self> {
        let owned = super::create(flags, device)?;
        Ok(Self { owned })
    }

    /// The version of the driver interface with which the context was made.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_api_version(&self) -> CudaResult<CudaApiVersion> {
        super::api_version(self.owned.raw)
    }

    /// A handle that does not keep the context alive.
    #[must_use]
    pub fn get_unowned(&self) -> UnownedContext {
        UnownedContext {
            raw: self.owned.raw,
        }
    }

    /// Releases the context, and returns the driver's error if that fails.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the context.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(ctx: Self) -> DropResult<Self> {
        Owned::release(ctx.owned).map_err(|(error, owned)| (error, Self { owned }))
    }
}

impl Sealed for Context {}
impl ContextHandle for Context {
    fn get_inner(&self) -> CUcontext {
        self.owned.raw
    }
}

/// The handle of a context that other code owns. Calls fail after the end of the context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnownedContext {
    raw: CUcontext,
}

impl UnownedContext {
    /// The version of the driver interface with which the context was made.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_api_version(&self) -> CudaResult<CudaApiVersion> {
        super::api_version(self.raw)
    }
}

impl Sealed for UnownedContext {}
impl ContextHandle for UnownedContext {
    fn get_inner(&self) -> CUcontext {
        self.raw
    }
}

/// This thread's stack of contexts. The top one is current.
#[derive(Debug)]
pub struct ContextStack;

impl ContextStack {
    /// Removes the top context.
    ///
    /// # Errors
    ///
    /// [`InvalidContext`](crate::error::CudaError::InvalidContext) if there is none.
    pub fn pop() -> CudaResult<UnownedContext> {
        let mut raw = CUcontext::NULL;
        // SAFETY: the pointer is valid for one handle.
        unsafe { sys::cuCtxPopCurrent_v2(&raw mut raw) }.to_result()?;
        Ok(UnownedContext { raw })
    }

    /// Pushes a context.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn push<C: ContextHandle>(ctx: &C) -> CudaResult<()> {
        // SAFETY: the argument is the handle of a context; the driver reports an error for a
        // destroyed one.
        unsafe { sys::cuCtxPushCurrent_v2(ctx.get_inner()) }.to_result()
    }
}

impl CurrentContext {
    /// The context that is current on this thread.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_current() -> CudaResult<UnownedContext> {
        let raw = home::current()?;
        Ok(UnownedContext { raw })
    }
}
