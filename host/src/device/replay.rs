//! Work that was recorded once, to be given to a device again and again.

use super::{Backend, Device};
use crate::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(halo_cuda)]
use super::cuda::Graph;

/// Work that [`Device::record`] has recorded.
///
/// It borrows what the work borrows, so buffers cannot be used otherwise while
/// this lives, and memory that the work has used stays allocated until it is
/// dropped.
///
/// Here on the CPU, where replaying calls the work again:
///
/// ```
/// use halo_gpu::Device;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::cpu();
/// let mut runs = 0;
/// let mut replay = device.record(3, || {
///     runs += 1;
///     Ok(())
/// })?;
/// assert_eq!((replay.count(), replay.device()), (3, &device));
/// replay.run()?;
/// replay.run()?;
/// drop(replay);
/// assert_eq!(runs, 1 + 2 * 3); // once to record, and twice three times
/// # Ok(())
/// # }
/// ```
pub struct Replay<'a> {
    pub(super) how: How<'a>,
    pub(super) count: usize,
    pub(super) device: Device,
}

/// What replaying does.
pub(super) enum How<'a> {
    /// It calls the work again.
    Call(Box<dyn FnMut() -> Result<(), Error> + 'a>),
    /// It queues the graph; the work is kept for what it borrows and owns.
    #[cfg(halo_cuda)]
    Graph(
        Graph,
        #[allow(dead_code)] Box<dyn FnMut() -> Result<(), Error> + 'a>,
    ),
}

impl Replay<'_> {
    /// Does everything that was recorded once more: on CUDA devices queued behind
    /// all earlier work, without waiting for its end.
    ///
    /// # Errors
    ///
    /// On CUDA devices [`Error::NotReplayable`] within another recording, and
    /// [`Error::Driver`]; elsewhere whatever the work returns.
    pub fn run(&mut self) -> Result<(), Error> {
        match &mut self.how {
            How::Call(work) => (0..self.count).try_for_each(|_| work()),
            #[cfg(halo_cuda)]
            How::Graph(graph, _) => graph.launch(),
        }
    }

    /// How many times the work was recorded: what [`run`](Self::run) does as often.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The device that it runs on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// How often something was done on a device, by replays as well.
///
/// A plain number would stand still while a graph is replayed, and would count what was
/// merely recorded.
#[derive(Debug, Default)]
pub(crate) struct Tally(Arc<AtomicU64>);

impl Tally {
    /// The number now.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts what was given to `device` by this thread: now or, where that is being
    /// recorded as a graph, at every replay.
    pub(crate) fn add(&self, device: &Device, more: u64) {
        match device.backend() {
            Backend::Cpu | Backend::Emulator(_) => self.count(more),
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                if !cuda.note_count(self, more) {
                    self.count(more);
                }
            }
        }
    }

    /// Counts it now.
    pub(super) fn count(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Whether both are one.
    #[cfg(halo_cuda)]
    pub(super) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The same number, not one of its own.
    #[cfg(halo_cuda)]
    pub(super) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("count", &self.count)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
