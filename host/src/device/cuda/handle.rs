//! The device itself.

use super::core::Core;
use super::loaded::LoadedModule;
use super::module::Code;
use crate::Error;
use crate::device::ptx;
use std::ffi::c_void;
use std::sync::Arc;

/// What a device was opened by.
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
}

impl CudaDevice {
    /// With kernels from `code`, which the driver sees when it is first needed, or `at_once`.
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
        Ok(Self { opened, core, own })
    }

    pub(in crate::device) fn synchronize(&self) -> Result<(), Error> {
        let _current = self.core.enter()?;
        self.core.synchronize()
    }

    /// Runs `work` with the context current, on the stream of this thread's work.
    pub(in crate::device) fn with_stream<R>(
        &self,
        work: impl FnOnce(*mut c_void) -> R,
    ) -> Result<R, Error> {
        let _current = self.core.enter()?;
        Ok(work(self.core.queue().0))
    }
}
