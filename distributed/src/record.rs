//! Records work of several ranks, messages included, to replay it many times.

use crate::{Communicator, Error};
use halo_gpu::{Device, DeviceKind};
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

/// Work recorded by [`Communicator::record`].
pub struct Replay<'a> {
    replay: halo_gpu::Replay<'a>,
    communicator: &'a Communicator,
    failed: Failed,
}

/// An error of the recorded work that is not an error of its device.
type Failed = Rc<Cell<Option<Error>>>;

impl Communicator {
    /// Runs `work` once and records it `count` times; [`Replay::run`] replays it. This is
    /// [`Device::record`] for work of several ranks, with its exchanges. All ranks record the same
    /// work.
    ///
    /// On CUDA devices the recording is a graph, and a replay costs the host one call, however many
    /// steps and exchanges it has. This requires messages over NCCL
    /// ([`with_nccl`](Self::with_nccl)), or a single rank. On the CPU and the emulator a replay
    /// calls `work` again, over any transport.
    ///
    /// Plates, stencils and bodies exchange at the start of each recorded call, and do not compute
    /// points at cuts ahead. So give `iterate` and `steps` as many steps as the ghost points allow,
    /// or a multiple. Results have the same bits. Stencils whose new fields are written over the
    /// past ones, such as waves, swap two fields: on CUDA devices a recording of them must have an
    /// even number of steps in all. Other stencils that read a past state rotate three fields:
    /// their number of steps must be a multiple of three.
    ///
    /// ```
    /// use halo_distributed::{Decomposition, Error, heat2d};
    /// use halo_gpu::heat2d::Heat2d;
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let heat = Heat2d::dirichlet(Shape2::new(40, 30))?;
    /// let iterations = halo_distributed::run(2, |communicator| {
    ///     let slabs = Decomposition::slabs([40, 30], 2)?;
    ///     let hot = |[i, _]: [usize; 2]| if i == 0 { 1.0_f32 } else { 0.0 };
    ///     let device = Device::cpu();
    ///     let mut plate = heat2d::Plate::new(&communicator, &device, heat, slabs, 4, hot)?;
    ///     // Twenty exchanges, each followed by four iterations.
    ///     let mut replay = communicator.record(&device, 20, || plate.iterate(4))?;
    ///     replay.run()?;
    ///     replay.run()?;
    ///     drop(replay); // the plate can be used again
    ///     Ok(plate.iterations())
    /// })?;
    /// assert_eq!(iterations, [164, 164]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotRecordable`] for several ranks with CUDA devices over a transport whose messages
    /// a graph cannot contain; [`Error::Elsewhere`] if another rank has failed; the errors of
    /// `work`; [`Error::Device`] as [`Device::record`].
    pub fn record<'a>(
        &'a self,
        device: &Device,
        count: usize,
        mut work: impl FnMut() -> Result<(), Error> + 'a,
    ) -> Result<Replay<'a>, Error> {
        if device.kind() == DeviceKind::Cuda && self.size() > 1 {
            self.require_recordable()?;
        }
        let failed = Failed::default();
        let told = Rc::clone(&failed);
        let work = move || {
            let _recording = Recording::begin(self);
            work().map_err(|error| match error {
                Error::Device(error) => error,
                error => {
                    told.set(Some(error));
                    halo_gpu::Error::NotReplayable {
                        operation: "work that returns an error",
                    }
                }
            })
        };
        let recorded = device.record(count, work);
        let recorded = recorded.map_err(|error| failed.take().unwrap_or(Error::Device(error)));
        Ok(Replay {
            replay: self.together(recorded)?,
            communicator: self,
            failed,
        })
    }
}

impl Replay<'_> {
    /// Replays the recorded work once, on all ranks. On CUDA devices it does not wait for the end.
    ///
    /// # Errors
    ///
    /// As [`halo_gpu::Replay::run`]; as [`Transport::exchange`](crate::Transport::exchange).
    pub fn run(&mut self) -> Result<(), Error> {
        self.replay
            .run()
            .map_err(|error| self.failed.take().unwrap_or(Error::Device(error)))?;
        self.communicator.replayed(self.replay.device())
    }

    /// The number of times the work was recorded: each [`run`](Self::run) repeats it that often.
    #[must_use]
    pub fn count(&self) -> usize {
        self.replay.count()
    }
}

/// Marks the communicator as recording until it is dropped.
struct Recording<'a>(&'a Cell<bool>);

impl<'a> Recording<'a> {
    fn begin(communicator: &'a Communicator) -> Self {
        let recording = communicator.recording();
        recording.set(true);
        Self(recording)
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.replay.fmt(f)
    }
}
