//! Kernels in the place of a device's own.

use super::handle::CudaDevice;
use super::loaded::LoadedModule;
use super::module::Code;
use crate::Error;
use crate::device::image::Image;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// Kernels that this thread puts in the place of others, the last the first
    /// to be looked at.
    static IN_USE: RefCell<Vec<StandIns>> = const { RefCell::new(Vec::new()) };
}

/// Kernels in the place of a device's own.
#[derive(Clone)]
pub(in crate::device) struct StandIns {
    loaded: Arc<LoadedModule>,
    /// Kernels that another entry point than that of their name stands in for.
    entries: Arc<[(String, String)]>,
}

impl CudaDevice {
    /// Loads code besides the device's own.
    pub(in crate::device) fn load_kernels(&self, image: Image<'_>) -> Result<StandIns, Error> {
        let core = &self.core;
        core.refuse("loading kernels")?;
        let _current = core.enter()?;
        let code = match image {
            Image::Ptx(text) => Code::ptx(Cow::Owned(text.to_owned())),
            Image::Cubin(bytes) => Code::cubin(bytes, &core.name, core.generation.capability)?,
        };
        let loaded = LoadedModule::new(core, code);
        // At once, so that an image which the driver refuses is an error here.
        loaded.module().lock().load(core)?;
        Ok(StandIns {
            loaded: Arc::new(loaded),
            entries: Arc::from([]),
        })
    }

    /// Runs `work` with these kernels in the place of the device's own; `None`
    /// where they are another device's.
    pub(in crate::device) fn using<R>(
        &self,
        kernels: &StandIns,
        work: impl FnOnce() -> R,
    ) -> Option<R> {
        /// Takes the kernels out again, also when the work panics.
        struct InUse;
        impl Drop for InUse {
            fn drop(&mut self) {
                IN_USE.with_borrow_mut(Vec::pop);
            }
        }

        if !kernels.loaded.is_of(&self.core) {
            return None;
        }
        IN_USE.with_borrow_mut(|stack| stack.push(kernels.clone()));
        let _in_use = InUse;
        Some(work())
    }

    /// The code that this thread's launches of a kernel take it from, and its entry point
    /// there.
    pub(super) fn code_of(&self, kernel: &'static str) -> (Arc<LoadedModule>, Cow<'static, str>) {
        IN_USE.with_borrow(|stack| {
            let mut stack = stack.iter().rev();
            match stack.find(|kernels| kernels.loaded.is_of(&self.core)) {
                Some(kernels) => kernels.code_of(kernel),
                None => (Arc::clone(&self.own), Cow::Borrowed(kernel)),
            }
        })
    }
}

impl StandIns {
    fn code_of(&self, kernel: &'static str) -> (Arc<LoadedModule>, Cow<'static, str>) {
        let entry = self.entries.iter().rev().find(|(of, _)| of == kernel);
        let entry = entry.map_or(Cow::Borrowed(kernel), |(_, entry)| {
            Cow::Owned(entry.clone())
        });
        (Arc::clone(&self.loaded), entry)
    }

    pub(in crate::device) fn with_entry(self, kernel: &str, entry: &str) -> Self {
        let added = (kernel.to_owned(), entry.to_owned());
        Self {
            entries: self.entries.iter().cloned().chain([added]).collect(),
            ..self
        }
    }
}
