//! Counters that replays advance as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts an operation on a device, including those in replays.
///
/// A plain number would count the recording of work, and not its replays.
#[derive(Debug, Default)]
pub(crate) struct Tally(Arc<AtomicU64>);

impl Tally {
    /// The number now.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts it now.
    pub(in crate::device) fn count(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Whether both are one.
    #[cfg(halo_cuda)]
    pub(in crate::device) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The same number, not one of its own.
    #[cfg(halo_cuda)]
    pub(in crate::device) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
