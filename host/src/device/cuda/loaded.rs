//! The modules that a device has loaded: the library's own and additional ones.

use super::core::{Core, Resource};
use super::module::{Code, Module};
use std::sync::Arc;

/// A module; it is unloaded when it has no owner and no graph can use it.
pub(super) struct LoadedModule {
    module: Module,
    core: Arc<Core>,
}

/// A module that recorded launches use.
pub(super) struct Used {
    pub(super) code: Arc<LoadedModule>,
    /// The constants that those launches set, with their values.
    pub(super) constants: Vec<(&'static str, Box<[u8]>)>,
}

impl LoadedModule {
    pub(super) fn new(core: &Arc<Core>, code: Code) -> Self {
        Self {
            module: Module::new(code),
            core: Arc::clone(core),
        }
    }

    pub(super) fn module(&self) -> &Module {
        &self.module
    }

    /// Whether the module is loaded on this device.
    pub(super) fn is_of(&self, core: &Core) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.core), core)
    }
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        for module in self.module.take() {
            self.core.give_back(Resource::Module(module));
        }
    }
}
