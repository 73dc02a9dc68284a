//! Keeps an object's context alive.
//!
//! The driver's objects (memory, streams, modules …) end with their context. So each object of this
//! crate holds a [`Home`]: a context made by this crate outlives its objects, and they are released
//! in it, whichever context is current then.

use crate::error::{CudaError, CudaResult, ToResult};
use cuda_loader::sys::{self, CUcontext, CUdevice};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How a context was made, which determines how it is released.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin {
    /// The primary context, which a device shares with the runtime API.
    Primary(CUdevice),
    /// A separate context.
    Created,
}

/// A context that this crate has made, alive as long as something holds it.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) raw: CUcontext,
    pub(crate) origin: Origin,
    released: bool,
}

/// All of these contexts that are alive, by address.
static OWNED: Mutex<BTreeMap<usize, Weak<Owned>>> = Mutex::new(BTreeMap::new());

fn owned() -> MutexGuard<'static, BTreeMap<usize, Weak<Owned>>> {
    // A panic leaves the value consistent.
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Owned {
    /// Retains the primary context of a device.
    pub(crate) fn primary(device: CUdevice) -> CudaResult<Arc<Self>> {
        let mut raw = CUcontext::NULL;
        // SAFETY: the pointer is valid for one handle.
        unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut raw, device) }.to_result()?;
        if raw == CUcontext::NULL {
            return Err(CudaError::from_code(sys::CUresult::INVALID_ANSWER.0));
        }
        let mut all = owned();
        if let Some(known) = all.get(&raw.0.addr()).and_then(Weak::upgrade) {
            // One owner is enough, so the retain above is undone.
            // SAFETY: the context was retained above, and its known owner still holds it.
            unsafe { sys::cuDevicePrimaryCtxRelease_v2(device) }.to_result()?;
            return Ok(known);
        }
        Ok(Self::noted(&mut all, raw, Origin::Primary(device)))
    }

    /// The owner of a newly created context.
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
        // SAFETY: `released` ensures that a context that was retained or created once is released
        // once. It has no object of this crate left, because each of them held this value.
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

    /// Releases the context if nothing else holds it; on failure returns the owner.
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
    /// `None` for a context that other code has made and owns.
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
    // SAFETY: the pointer is valid for one handle.
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
    // SAFETY: the argument is a handle of a context that the callers hold.
    unsafe { sys::cuCtxPushCurrent_v2(raw) }.to_result()?;
    Ok(Entered {
        pushed: true,
        thread: PhantomData,
    })
}

/// Keeps a context current on this thread. Dropping it makes the previous context current again.
#[derive(Debug)]
pub struct Entered<'a> {
    pushed: bool,
    /// Not `Send`, and does not outlive its context.
    thread: PhantomData<(*const (), &'a ())>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = CUcontext::NULL;
            // SAFETY: the pointer is valid for one handle. A failure means that the driver is
            // shutting down.
            let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
        }
    }
}
