//! Contexts that a program creates for itself, and each thread's stack of them. New programs use
//! the primary [`Context`](super::Context).

pub use super::current::{
    CacheConfig, CurrentContext, ResourceLimit, SharedMemoryConfig, StreamPriorityRange,
};
pub use super::{ContextFlags, ContextHandle};

use super::home::{self, Owned};
use crate::CudaApiVersion;
use crate::device::Device;
use crate::error::{CudaResult, DropResult, ToResult};
use crate::private::Sealed;
use crate::sys::{self, CUcontext};
use std::sync::Arc;

/// A separate context, beside the device's primary one.
///
/// It stays as long as this or anything that was made in it lives.
#[derive(Debug)]
pub struct Context {
    owned: Arc<Owned>,
}

impl Context {
    /// Makes a context, and makes it current above the present one.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn create_and_push(flags: ContextFlags, device: Device) -> CudaResult<Self> {
        let owned = super::create(flags, device)?;
        Ok(Self { owned })
    }

    /// The version of the interface that the context was made with.
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

/// The handle of a context that other code keeps. After its end, calls with this handle fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnownedContext {
    raw: CUcontext,
}

impl UnownedContext {
    /// The version of the interface that the context was made with.
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

/// This thread's stack of contexts. The uppermost is current.
#[derive(Debug)]
pub struct ContextStack;

impl ContextStack {
    /// Takes the uppermost context away.
    ///
    /// # Errors
    ///
    /// [`InvalidContext`](crate::error::CudaError::InvalidContext) where there is none.
    pub fn pop() -> CudaResult<UnownedContext> {
        let mut raw = CUcontext::NULL;
        // SAFETY: the pointer is good for one handle.
        unsafe { sys::cuCtxPopCurrent_v2(&raw mut raw) }.to_result()?;
        Ok(UnownedContext { raw })
    }

    /// Puts a context on top.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn push<C: ContextHandle>(ctx: &C) -> CudaResult<()> {
        // SAFETY: takes the handle of a context; one that was destroyed is an error.
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
