//! The CUDA device: its handle, its own kernels and those that replace them.

use super::core::Core;
use super::loaded::{LoadedModule, Used};
use super::module::Code;
use super::stand_ins::StandIns;
use crate::Error;
use crate::device::image::Image;
use crate::device::ptx;
use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a device was opened.
pub(in crate::device) struct Opened {
    pub(in crate::device) ordinal: usize,
    pub(in crate::device) source: ptx::Source,
}

/// A CUDA device.
pub(crate) struct CudaDevice {
    pub(in crate::device) opened: Opened,
    pub(super) core: Arc<Core>,
    /// The kernels that the device was opened with.
    pub(super) own: Arc<LoadedModule>,
    /// Kernels that launches use instead of the device's own.
    stand_ins: Mutex<Option<StandIns>>,
    /// During a recording, the kernels that its launches use.
    used: Mutex<Vec<Used>>,
}

impl CudaDevice {
    /// A device with kernels from `code`, which the driver loads when they are first needed, or now
    /// if `at_once`.
    pub(super) fn new(
        core: Core,
        code: Code,
        at_once: bool,
        opened: Opened,
    ) -> Result<Self, Error> {
        let core = Arc::new(core);
        let own = Arc::new(LoadedModule::new(&core, code));
        if at_once {
            let _current = core.enter()?;
            own.module().lock().load(&core)?;
        }
        Ok(Self {
            opened,
            core,
            own,
            stand_ins: Mutex::default(),
            used: Mutex::default(),
        })
    }

    /// The modules that the recorded launches use.
    pub(super) fn used(&self) -> MutexGuard<'_, Vec<Used>> {
        // A panic leaves the value consistent.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads more kernels, in addition to the device's own.
    pub(in crate::device) fn load_kernels(&self, image: Image<'_>) -> Result<StandIns, Error> {
        let core = &self.core;
        core.refuse("loading kernels")?;
        let _current = core.enter()?;
        let code = match image {
            Image::Ptx(text) => Code::ptx(Cow::Owned(text.to_owned())),
            Image::Cubin(bytes) => Code::cubin(bytes, &core.name, core.generation.capability)?,
        };
        let loaded = LoadedModule::new(core, code);
        // Load now, so that an image that the driver rejects is an error here.
        loaded.module().lock().load(core)?;
        Ok(StandIns::new(loaded))
    }

    /// Makes launches use these kernels, or with `None` the device's own again. Returns false and
    /// changes nothing if the kernels belong to another device.
    pub(in crate::device) fn put(&self, stand_ins: Option<&StandIns>) -> bool {
        let suit = stand_ins.is_none_or(|it| it.loaded.is_of(&self.core));
        if suit {
            *self.stand_ins() = stand_ins.cloned();
        }
        suit
    }

    fn stand_ins(&self) -> MutexGuard<'_, Option<StandIns>> {
        // A panic leaves the value consistent.
        self.stand_ins
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The code from which launches take a kernel, and its entry point there.
    pub(super) fn code_of(&self, kernel: &'static str) -> (Arc<LoadedModule>, Cow<'static, str>) {
        match &*self.stand_ins() {
            Some(stand_ins) => stand_ins.code_of(kernel),
            None => (Arc::clone(&self.own), Cow::Borrowed(kernel)),
        }
    }

    pub(in crate::device) fn synchronize(&self) -> Result<(), Error> {
        let _current = self.core.enter()?;
        self.core.synchronize()
    }

    /// Runs `work` with the context current, on the stream for this thread's work.
    pub(in crate::device) fn with_stream<R>(
        &self,
        work: impl FnOnce(*mut c_void) -> R,
    ) -> Result<R, Error> {
        let _current = self.core.enter()?;
        Ok(work(self.core.queue().0))
    }
}
