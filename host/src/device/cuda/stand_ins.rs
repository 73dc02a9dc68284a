//! Kernels in the place of a device's own.

use super::core::{Core, CudaDevice, Resource};
use super::module::{self, Code, Module};
use super::recording;
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

/// A module besides the device's own.
struct LoadedModule {
    module: Module,
    core: Arc<Core>,
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        for module in self.module.take() {
            // Who launches its kernels keeps it.
            self.core.give_back(Resource::Module(module));
        }
    }
}

impl CudaDevice {
    /// Loads code besides the device's own.
    pub(in crate::device) fn load_kernels(&self, image: Image<'_>) -> Result<StandIns, Error> {
        let core = &self.core;
        recording::refuse(core, "loading kernels")?;
        let _current = core.enter()?;
        let code = match image {
            Image::Ptx(text) => Code::ptx(Cow::Owned(text.to_owned())),
            Image::Cubin(bytes) => Code::cubin(bytes, &core.name, core.generation.capability)?,
        };
        let stand_ins = StandIns {
            loaded: Arc::new(LoadedModule {
                module: Module::new(code),
                core: Arc::clone(core),
            }),
            entries: Arc::from([]),
        };
        // At once, so that an image which the driver refuses is an error here.
        stand_ins.module().lock().load(core)?;
        Ok(stand_ins)
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

        if !Arc::ptr_eq(&kernels.loaded.core, &self.core) {
            return None;
        }
        IN_USE.with_borrow_mut(|stack| stack.push(kernels.clone()));
        let _in_use = InUse;
        Some(work())
    }
}

impl StandIns {
    /// The ones that this thread uses on this device.
    pub(super) fn in_use(core: &Core) -> Option<Self> {
        IN_USE.with_borrow(|stack| {
            stack
                .iter()
                .rev()
                .find(|kernels| std::ptr::eq(Arc::as_ptr(&kernels.loaded.core), core))
                .cloned()
        })
    }

    /// The module that a kernel is in, and its entry point there.
    pub(super) fn or_own<'a>(
        stand_ins: Option<&'a Self>,
        core: &'a Core,
        kernel: &'static str,
    ) -> (module::Locked<'a>, &'a str) {
        match stand_ins {
            Some(stand_ins) => {
                let entry = stand_ins.entries.iter().rev().find(|(of, _)| of == kernel);
                let entry = entry.map_or(kernel, |(_, entry)| entry);
                (stand_ins.module().lock(), entry)
            }
            None => (core.own.lock(), kernel),
        }
    }

    pub(super) fn module(&self) -> &Module {
        &self.loaded.module
    }

    pub(super) fn same_module(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.loaded, &other.loaded)
    }

    pub(in crate::device) fn with_entry(self, kernel: &str, entry: &str) -> Self {
        let added = (kernel.to_owned(), entry.to_owned());
        Self {
            entries: self.entries.iter().cloned().chain([added]).collect(),
            ..self
        }
    }
}
