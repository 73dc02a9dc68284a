//! Records work and replays it on a device, any number of times.

use super::handle::{Backend, Device};
use super::tally::Tally;
use crate::Error;
use std::fmt;

#[cfg(halo_cuda)]
use super::cuda::Graph;

/// Work that [`Device::record`] has recorded, for replay.
///
/// It borrows everything that the work borrows, so buffers cannot be used otherwise while it
/// exists. Memory that the work uses stays allocated until it is dropped.
///
/// An example on the CPU, where a replay calls the work again:
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
    how: How<'a>,
    count: usize,
    device: Device,
}

/// How a replay does its work.
enum How<'a> {
    /// Calls the work again.
    Call(Box<dyn FnMut() -> Result<(), Error> + 'a>),
    /// Launches the graph, which owns or borrows everything that the recorded work uses.
    #[cfg(halo_cuda)]
    Graph(
        Graph,
        #[allow(dead_code)] Box<dyn FnMut() -> Result<(), Error> + 'a>,
    ),
}

impl Device {
    /// Runs `work` once and records it `count` times; [`Replay::run`] then repeats it on this
    /// device.
    ///
    /// On CUDA devices the recording is a graph: a replay costs the host one call, however many
    /// launches it has, and the device starts each launch as soon as the previous one has ended.
    /// Use it to run kernels that are shorter than the host's calls, and to measure them. The
    /// recording contains this thread's work for this device: launches, fills and copies between
    /// buffers. On the CPU and the emulator a replay calls `work` again.
    ///
    /// The state that this library keeps on the host is correct on every device: iterations of a
    /// [`Plate`](crate::heat2d::Plate) and steps of a [`Leapfrog`](crate::nbody::Leapfrog) continue
    /// from replay to replay, and each replay counts them. (If two buffers of a plate were
    /// exchanged an odd number of times, each replay on a CUDA device ends with a copy of one of
    /// them.) Other effects of `work` on the host happen at each replay on the CPU and the
    /// emulator, but on CUDA devices only during the recording: `count + 1` times in all. So pass
    /// work that gives the device the same tasks every time, and that neither exchanges buffers nor
    /// counts by itself.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let source = device.upload(&[1.0_f32; 1000])?;
    /// let mut target = device.alloc_filled(1000, 0.0_f32)?;
    /// let mut replay = device.record(50, || target.copy_from(&source))?;
    /// let times = device.time_each(1, 5, || replay.run())?; // of 50 copies each
    /// assert_eq!(times.len(), 5);
    /// drop(replay); // `target` can be used again
    /// assert_eq!(target.to_vec()?, [1.0; 1000]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of `work`. On CUDA devices also [`Error::NotReplayable`]: for operations that a
    /// graph cannot contain (allocating, copies from and to the host, waiting, loading, constants
    /// that change from launch to launch); for steps that exchange three or more buffers in a ring,
    /// whose contents are then unspecified; and while any thread makes another recording of this
    /// device. [`Device::new_handle`] returns a handle for another recording.
    pub fn record<'a>(
        &self,
        count: usize,
        work: impl FnMut() -> Result<(), Error> + 'a,
    ) -> Result<Replay<'a>, Error> {
        let mut work: Box<dyn FnMut() -> Result<(), Error> + 'a> = Box::new(work);
        let how = match self.backend() {
            Backend::Cpu | Backend::Emulator(_) => {
                work()?;
                How::Call(work)
            }
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                let graph = cuda.record(count, &mut work)?;
                How::Graph(graph, work)
            }
        };
        Ok(Replay {
            how,
            count,
            device: self.clone(),
        })
    }

    /// Whether this thread's work for the device is being [recorded](Self::record) as a graph,
    /// which cannot contain waits and allocations.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        match self.backend() {
            Backend::Cpu | Backend::Emulator(_) => false,
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => cuda.is_recording(),
        }
    }
}

impl Replay<'_> {
    /// Does all recorded work once more. On CUDA devices it enqueues the work after all earlier
    /// work and does not wait.
    ///
    /// # Errors
    ///
    /// On CUDA devices [`Error::NotReplayable`] within another recording, and [`Error::Driver`]; on
    /// other devices the errors of the work.
    pub fn run(&mut self) -> Result<(), Error> {
        match &mut self.how {
            How::Call(work) => (0..self.count).try_for_each(|_| work()),
            #[cfg(halo_cuda)]
            How::Graph(graph, _) => graph.launch(),
        }
    }

    /// How many times the work was recorded, and each [`run`](Self::run) does it.
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

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("count", &self.count)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl Tally {
    /// Counts this thread's work for `device`: now or, in a recording for a graph, at every replay.
    pub fn add(&self, device: &Device, more: u64) {
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
}
