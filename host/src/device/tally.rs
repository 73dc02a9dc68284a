//! Counters that replays advance too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts operations of a device, including those in [replays](crate::Replay).
///
/// A plain number would count the recording of work, and not its replays:
///
/// ```
/// use halo_gpu::{Device, Tally};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let (device, rounds) = (Device::best(), Tally::default());
/// let mut field = device.zeros::<f32>(1000)?;
/// let mut replay = device.record(10, || {
///     field.fill(1.0)?;
///     rounds.add(&device, 1);
///     Ok(())
/// })?;
/// assert_eq!(rounds.get(), 1); // once to see that it can be done
/// replay.run()?;
/// assert_eq!(rounds.get(), 11);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Tally(Arc<AtomicU64>);

impl Tally {
    /// The current count.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds to the count now.
    pub(in crate::device) fn count(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Whether both are the same counter.
    #[cfg(halo_cuda)]
    pub(in crate::device) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Another handle of the same counter.
    #[cfg(halo_cuda)]
    pub(in crate::device) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
