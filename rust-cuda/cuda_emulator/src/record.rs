//! Allocations, live and freed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::diagnosis::{MemoryKind, MemoryName};
use crate::region::Region;

/// One allocation, live or freed.
#[derive(Debug)]
pub(crate) struct Record {
    pub region: Region,
    pub label: String,
    pub element_bytes: usize,
    pub(crate) freed: AtomicBool,
    /// Held while the emulator itself accesses the memory of a live allocation,
    /// and while it is being freed: another OS thread may drop the allocation
    /// at any time.
    pub(crate) access: Mutex<()>,
}

impl Record {
    pub fn name(&self) -> MemoryName {
        MemoryName {
            kind: MemoryKind::Buffer,
            name: self.label.clone(),
            address: self.region.data().addr() as u64,
            parameters: Vec::new(),
            elements: self.region.len() / self.element_bytes,
            element_bytes: self.element_bytes,
        }
    }

    pub fn freed(&self) -> bool {
        self.freed.load(Ordering::Acquire)
    }

    /// Calls `look` with the region, unless it has been freed; it cannot be
    /// freed meanwhile.
    pub fn while_live<R>(&self, look: impl FnOnce(&Region) -> R) -> Option<R> {
        let _access = self.access.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.freed()).then(|| look(&self.region))
    }
}
