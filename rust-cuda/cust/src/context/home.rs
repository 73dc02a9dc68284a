//! Keeps an object's context alive.
//!
//! The driver's objects (memory, streams, modules …) end with their context. Each holds a [`Home`],
//! so that a context made by this crate outlives them, and so that they are released in it,
//! whichever context is current then.

use crate::error::{CudaError, CudaResult, ToResult};
use crate::sys::{self, CUcontext, CUdevice};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How a context was made, which determines how it is released.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin {
    /// The one that a device shares with the runtime API.
    Primary(CUdevice),
    /// One of its own.
    Created,
}

/// A context that this crate has made, until nothing holds it.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) raw: CUcontext,
    pub(crate) origin: Origin,
    released: bool,
}

/// All of them that are alive, by address.
static OWNED: Mutex<BTreeMap<usize, Weak<Owned>>> = Mutex::new(BTreeMap::new());

fn owned() -> MutexGuard<'static, BTreeMap<usize, Weak<Owned>>> {
    // A panic leaves the value consistent.
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Owned {
    /// Retains the primary context of a device.
    pub(crate) fn primary(device: CUdevice) -> CudaResult<Arc<Self>> {
        let mut raw = CUcontext::NULL;
        // SAFETY: the pointer is good for one handle.
        unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut raw, device) }.to_result()?;
        if raw == CUcontext::NULL {
            return Err(CudaError::from_code(sys::CUresult::INVALID_ANSWER.0));
        }
        let mut all = owned();
        if let Some(known) = all.get(&raw.0.addr()).and_then(Weak::upgrade) {
            // One owner is enough: this one holds the context once more than it needs to.
            // SAFETY: retained above, and the owner that is known still holds the context.
            unsafe { sys::cuDevicePrimaryCtxRelease_v2(device) }.to_result()?;
            return Ok(known);
        }
        Ok(Self::noted(&mut all, raw, Origin::Primary(device)))
    }

    /// The owner of a context that was just created.
    pub(crate) fn created(raw: CUcontext) -> Arc<Self> {
        Self::noted(&mut owned(), raw, Origin::Created)
    }

    fn noted(all: &mut BTreeMap<usize, Weak<Self>>, raw: CUcontext, origin: Origin) -> Arc<Self> {
        let owner = Arc::new(Self {
            raw,
            origin,
            released: false,
        });
        all.insert(raw.0.addr(), Arc::downgrade(&owner));
        owner
    }

    fn give_back(&mut self) -> CudaResult<()> {
        if self.released {
            return Ok(());
        }
        // SAFETY: `released` makes sure that a context that was retained or created once is given
        // back once. No object of this crate is left in it, because each held this value.
        let code = unsafe {
            match self.origin {
                Origin::Primary(device) => sys::cuDevicePrimaryCtxRelease_v2(device),
                Origin::Created => sys::cuCtxDestroy_v2(self.raw),
            }
        };
        code.to_result()?;
        self.released = true;
        Ok(())
    }

    /// Gives the context back where nothing else holds it; the owner again on failure.
    pub(crate) fn release(this: Arc<Self>) -> Result<(), (CudaError, Arc<Self>)> {
        match Arc::try_unwrap(this) {
            Ok(mut last) => last.give_back().map_err(|error| (error, Arc::new(last))),
            Err(_still_held) => Ok(()),
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        {
            let mut all = owned();
            let key = self.raw.0.addr();
            if all.get(&key).is_some_and(|it| it.strong_count() == 0) {
                all.remove(&key);
            }
        }
        // A failure means that the driver is shutting down.
        let _ = self.give_back();
    }
}

/// The context of an object.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    raw: CUcontext,
    /// `None` for a context that other code has made and keeps.
    _owned: Option<Arc<Owned>>,
}

impl Home {
    /// The context that is current on this thread.
    pub(crate) fn current() -> CudaResult<Self> {
        let raw = current()?;
        if raw == CUcontext::NULL {
            return Err(CudaError::InvalidContext);
        }
        Ok(Self {
            raw,
            _owned: owned().get(&raw.0.addr()).and_then(Weak::upgrade),
        })
    }

    /// Makes this context current on this thread.
    pub(crate) fn enter(&self) -> CudaResult<Entered<'_>> {
        enter(self.raw)
    }
}

/// The handle of the context that is current on this thread, or null.
pub(crate) fn current() -> CudaResult<CUcontext> {
    let mut raw = CUcontext::NULL;
    // SAFETY: the pointer is good for one handle.
    unsafe { sys::cuCtxGetCurrent(&raw mut raw) }.to_result()?;
    Ok(raw)
}

pub(crate) fn enter<'a>(raw: CUcontext) -> CudaResult<Entered<'a>> {
    if current()? == raw {
        return Ok(Entered {
            pushed: false,
            thread: PhantomData,
        });
    }
    // SAFETY: takes a handle; callers hold the context that it is of.
    unsafe { sys::cuCtxPushCurrent_v2(raw) }.to_result()?;
    Ok(Entered {
        pushed: true,
        thread: PhantomData,
    })
}

/// A context is current on this thread for as long as this lives; then the one that was
/// current before is again.
#[derive(Debug)]
pub struct Entered<'a> {
    pushed: bool,
    /// Of one thread, and no longer than its context.
    thread: PhantomData<(*const (), &'a ())>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = CUcontext::NULL;
            // SAFETY: the pointer is good for one handle. A failure means that the driver
            // is shutting down.
            let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
        }
    }
}
