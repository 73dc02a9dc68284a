//! Kernels that replace a device's own kernels, such as the CUDA C++ baselines.

use super::loaded::LoadedModule;
use std::borrow::Cow;
use std::sync::Arc;

/// Kernels that replace a device's own kernels.
#[derive(Clone)]
pub(in crate::device) struct StandIns {
    pub(super) loaded: Arc<LoadedModule>,
    /// Pairs of a kernel and the entry point that replaces it, if its name differs from the
    /// kernel's.
    entries: Arc<[(String, String)]>,
}

impl StandIns {
    pub(super) fn new(loaded: LoadedModule) -> Self {
        Self {
            loaded: Arc::new(loaded),
            entries: Arc::from([]),
        }
    }

    /// The code that contains this kernel, and its entry point there.
    pub(super) fn code_of(&self, kernel: &'static str) -> (Arc<LoadedModule>, Cow<'static, str>) {
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
