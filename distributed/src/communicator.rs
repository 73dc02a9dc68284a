//! [`Communicator`]: connects a rank to the others.

use crate::threads::Thread;
use crate::{Arrival, Error, Expected, Incoming, Outgoing, Parcel, Transport};
use halo_gpu::{Device, Element};
use std::cell::Cell;
use std::fmt;
use std::time::Duration;

/// A rank, with its connection to the other ranks.
///
/// All ranks make the collective calls, in the same order.
///
/// ```
/// use halo_distributed::Communicator;
///
/// # fn main() -> Result<(), halo_distributed::Error> {
/// let communicator = Communicator::alone();
/// assert_eq!((communicator.rank(), communicator.size()), (0, 1));
/// assert_eq!(communicator.all_gather(&[1.0, 2.0])?, [[1.0, 2.0]]);
/// # Ok(())
/// # }
/// ```
pub struct Communicator {
    transport: Box<dyn Transport>,
    deadline: Duration,
    rims: Ahead,
    /// Whether this rank is recording its work.
    recording: Cell<bool>,
}

/// When a rank computes while messages are under way: see [`Communicator::with_rims`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ahead {
    /// Where it saves time. For points: on CUDA devices and in the emulator; on CPUs only among
    /// ranks of several machines, and only if at most a few points are computed twice. For bodies:
    /// where messages pass through the memory of the host or go to other machines.
    #[default]
    Auto,
    /// Wherever blocks are thick enough.
    Always,
    /// Nowhere.
    Never,
}

/// How long a rank waits for another one by default.
const DEADLINE: Duration = Duration::from_secs(60);

impl Communicator {
    /// A single rank, which has all points.
    #[must_use]
    pub fn alone() -> Self {
        let [alone] = <[Thread; 1]>::try_from(Thread::all(1))
            .unwrap_or_else(|_| unreachable!("one rank was asked for"));
        Self::over(alone)
    }

    /// Ranks of this process, one for each thread. [`run`](crate::run) starts the threads as well.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for no ranks.
    pub fn threads(ranks: usize) -> Result<Vec<Self>, Error> {
        if ranks == 0 {
            return Err(Error::InvalidParameter {
                operation: "ranks that are threads",
                parameter: "their number",
                given: "0".to_owned(),
                required: "at least 1".to_owned(),
            });
        }
        Ok(Thread::all(ranks).into_iter().map(Self::over).collect())
    }

    /// The rank of this process among the launcher's processes, over MPI (with the feature `mpi`);
    /// without a launcher, a single rank.
    ///
    /// ```
    /// use halo_distributed::Communicator;
    ///
    /// # fn main() -> Result<(), halo_distributed::Error> {
    /// // One rank here, four under `mpirun -n 4` or `srun -n 4`.
    /// let communicator = Communicator::from_launcher()?;
    /// assert!(communicator.rank() < communicator.size());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As `Communicator::mpi`; [`Error::NoMpi`] where a launcher has started several ranks of a
    /// program that was built without MPI: each of them would do all the work.
    pub fn from_launcher() -> Result<Self, Error> {
        #[cfg(feature = "mpi")]
        return Self::mpi();
        #[cfg(not(feature = "mpi"))]
        match launched_ranks().into_iter().find(|it| it.ranks != 1) {
            None => Ok(Self::alone()),
            Some(Launched { variable, ranks }) => Err(Error::NoMpi {
                variable,
                launched: ranks,
            }),
        }
    }

    /// Fails on all ranks unless their programs use the same version of this library.
    #[cfg_attr(
        not(feature = "mpi"),
        allow(dead_code, reason = "threads have the same")
    )]
    pub(crate) fn agree_on_version(&self, version: &str) -> Result<(), Error> {
        self.agree("the version of halo-distributed", &version)
    }

    /// A rank that sends its messages over this transport.
    #[must_use]
    pub fn over(transport: impl Transport + 'static) -> Self {
        Self {
            transport: Box::new(transport),
            deadline: DEADLINE,
            rims: Ahead::default(),
            recording: Cell::new(false),
        }
    }

    /// Its parts.
    #[cfg(all(feature = "nccl", unix))]
    pub(crate) fn into_parts(self) -> (Box<dyn Transport>, Duration, Ahead) {
        (self.transport, self.deadline, self.rims)
    }

    /// Sets how long this rank waits for another one; the default is 60 seconds. The deadline
    /// starts anew for each message.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets when plates and stencils compute the points that neighbours need before the other
    /// points. All ranks give the same `ahead`. A rank sends the points for its neighbours while it
    /// computes the others, and the results have the same bits. The cost: along each axis that is
    /// cut, 6 w planes are computed twice, where w is the width of the ghost points.
    ///
    /// `ahead` has the same meaning for work that need not be done twice. A rank computes the
    /// derivatives that need no ghost points during the messages, and the others after them. A GPU
    /// sums over its rank's own bodies while the others arrive. The cost: more launches, each of
    /// which begins when the one before has ended on all multiprocessors.
    ///
    /// ```
    /// use halo_distributed::{Ahead, Decomposition, Error, heat2d};
    /// use halo_gpu::heat2d::Heat2d;
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let heat = Heat2d::dirichlet(Shape2::new(40, 30))?;
    /// let plates = |ahead| {
    ///     halo_distributed::run(4, |communicator| {
    ///         let communicator = communicator.with_rims(ahead);
    ///         let blocks = Decomposition::least_surface([40, 30], 4)?;
    ///         let hot = |[i, _]: [usize; 2]| if i == 0 { 1.0_f32 } else { 0.0 };
    ///         let device = Device::cpu();
    ///         let mut plate = heat2d::Plate::new(&communicator, &device, heat, blocks, 3, hot)?;
    ///         plate.iterate(30)?;
    ///         Ok(plate.field()?.into_vec())
    ///     })
    /// };
    /// assert_eq!(plates(Ahead::Always)?, plates(Ahead::Never)?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_rims(mut self, ahead: Ahead) -> Self {
        self.rims = ahead;
        self
    }

    /// The setting of [`with_rims`](Self::with_rims).
    pub(crate) const fn rims(&self) -> Ahead {
        self.rims
    }

    /// Whether the ranks are on more than one machine.
    pub(crate) fn is_across_machines(&self) -> bool {
        self.transport.is_across_machines()
    }

    /// Whether messages of CUDA devices pass through the memory of the host.
    pub(crate) fn is_through_host(&self) -> bool {
        self.transport.is_through_host()
    }

    /// Whether this rank is recording; [`record`](Self::record) sets it.
    pub(crate) const fn recording(&self) -> &Cell<bool> {
        &self.recording
    }

    /// Whether this rank is recording. Recorded work must not depend on earlier work.
    pub(crate) const fn is_recording(&self) -> bool {
        self.recording.get()
    }

    /// Fails unless exchanges of CUDA devices can be recorded.
    pub(crate) fn require_recordable(&self) -> Result<(), Error> {
        self.transport.recordable().map_err(|reason| {
            let transport = self.transport();
            Error::NotRecordable { transport, reason }
        })
    }

    /// Notes that a replay has given recorded exchanges to `device`.
    pub(crate) fn replayed(&self, device: &Device) -> Result<(), Error> {
        self.transport.replayed(device, self.deadline)
    }

    /// The number of this rank, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.transport.size()
    }

    /// The number of this rank among the ranks of its machine, from 0.
    #[must_use]
    pub fn local_rank(&self) -> usize {
        self.transport.local_rank()
    }

    /// The name of the transport, for people.
    #[must_use]
    pub fn transport(&self) -> String {
        self.transport.name()
    }

    /// The CUDA device of this rank, or the CPU if there is none. The ranks of a machine take its
    /// devices round-robin.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is a CUDA device that cannot be opened.
    pub fn device(&self) -> Result<Device, Error> {
        match Device::cuda_count() {
            Ok(count) if count > 0 => Ok(Device::cuda(self.local_rank() % count)?),
            _ => Ok(Device::cpu()),
        }
    }

    /// Sends and receives these messages.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`].
    pub fn exchange(
        &self,
        outgoing: &[Outgoing<'_>],
        incoming: &mut [Incoming<'_>],
    ) -> Result<(), Error> {
        self.transport.exchange(outgoing, incoming, self.deadline)
    }

    /// Begins to send and receive messages of devices; [`Arrival`] ends the exchange.
    ///
    /// # Errors
    ///
    /// As [`Transport::begin`].
    pub fn begin<'a>(
        &'a self,
        device: &'a Device,
        outgoing: Vec<Parcel>,
        incoming: Vec<Expected>,
    ) -> Result<Arrival<'a>, Error> {
        self.transport
            .begin(device, outgoing, incoming, self.deadline)
    }

    /// As [`Transport::is_in_place`].
    pub(crate) fn is_in_place(&self) -> bool {
        self.transport.is_in_place()
    }

    /// Waits until pending exchanges have ended, or failed, on the device too. Call it before you
    /// wait for the device itself, because that wait has no deadline.
    ///
    /// # Errors
    ///
    /// As [`Transport::settle`].
    pub fn settle(&self) -> Result<(), Error> {
        self.transport.settle(self.deadline)
    }

    /// Collects the elements of all ranks on every rank, in the order of the ranks. Ranks may give
    /// different numbers of elements.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`]; [`Error::MessageLength`] if a rank gives elements of another
    /// size.
    pub fn all_gather<T: Element>(&self, own: &[T]) -> Result<Vec<Vec<T>>, Error> {
        let all = self
            .transport
            .all_gather(bytemuck::cast_slice(own), self.deadline)?;
        let size = size_of::<T>().max(1);
        let elements = |(peer, bytes): (usize, Vec<u8>)| {
            if !bytes.len().is_multiple_of(size) {
                return Err(Error::MessageLength {
                    rank: self.rank(),
                    peer,
                    required: bytes.len().next_multiple_of(size),
                    given: bytes.len(),
                });
            }
            Ok(bytemuck::pod_collect_to_vec(&bytes))
        };
        all.into_iter().enumerate().map(elements).collect()
    }

    /// Combines the values of all ranks by `combine`, in the order of the ranks. The result is the
    /// same on every rank.
    ///
    /// The result depends on the number of ranks unless `combine` is associative, as minimum,
    /// maximum and the sum of integers are. The sum of floating-point numbers is not associative:
    /// for the same bits on any number of ranks use [`sum()`](crate::sum()).
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`]; [`Error::MessageLength`] if a rank does not give one value of
    /// this size.
    pub fn all_reduce<T: Element>(&self, own: T, combine: impl Fn(T, T) -> T) -> Result<T, Error> {
        let mut all = Vec::with_capacity(self.size());
        for (peer, values) in self.all_gather(&[own])?.into_iter().enumerate() {
            let [value] = values[..] else {
                return Err(Error::MessageLength {
                    rank: self.rank(),
                    peer,
                    required: size_of::<T>(),
                    given: size_of_val(&values[..]),
                });
            };
            all.push(value);
        }
        Ok(all.into_iter().reduce(combine).unwrap_or(own))
    }

    /// Waits until all ranks have called it.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`].
    pub fn barrier(&self) -> Result<(), Error> {
        self.all_gather::<u8>(&[]).map(drop)
    }

    /// Fails on all ranks if `own` is an error on any rank.
    ///
    /// ```
    /// use halo_distributed::{Error, run};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let ends = run(2, |communicator| {
    ///     let rank = communicator.rank();
    ///     let own = if rank == 0 { Ok(1) } else { Err(Error::NoSuchRank { given: 5, ranks: 2 }) };
    ///     Ok(communicator.together(own))
    /// })?;
    /// assert!(matches!(ends[0], Err(Error::Elsewhere { rank: 0, peer: 1, .. })));
    /// assert!(matches!(ends[1], Err(Error::NoSuchRank { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The rank's own error, or [`Error::Elsewhere`]; as [`Transport::exchange`].
    pub fn together<R>(&self, own: Result<R, Error>) -> Result<R, Error> {
        let message = own.as_ref().err().map(ToString::to_string);
        // A byte before the message, which may be empty.
        let words = message.map_or(Vec::new(), |message| [b"!", message.as_bytes()].concat());
        let all = match self.all_gather(&words) {
            // The rank's own error says more than the failure to report it.
            Err(error) => return own.and(Err(error)),
            Ok(all) => all,
        };
        let own = own?;
        match all.iter().position(|words| !words.is_empty()) {
            None => Ok(own),
            Some(peer) => Err(Error::Elsewhere {
                rank: self.rank(),
                peer,
                message: String::from_utf8_lossy(&all[peer][1..]).into_owned(),
            }),
        }
    }

    /// Fails on all ranks unless each gives the same `own`, as [`fmt::Debug`] writes it.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`]; as [`Transport::exchange`].
    pub fn agree(&self, what: &'static str, own: &impl fmt::Debug) -> Result<(), Error> {
        self.agree_and_gather(what, own, 0).map(drop)
    }

    /// As [`agree`](Self::agree). Each rank also sends a number, and gets the numbers of all ranks.
    pub(crate) fn agree_and_gather(
        &self,
        what: &'static str,
        own: &impl fmt::Debug,
        number: u64,
    ) -> Result<Vec<u64>, Error> {
        let own = format!("{own:?}");
        let message = [&number.to_ne_bytes(), own.as_bytes()].concat();
        let all = self.all_gather(&message)?;
        let numbers = all.iter().map(|other| {
            let (number, other) = other.split_first_chunk()?;
            (other == own.as_bytes()).then(|| u64::from_ne_bytes(*number))
        });
        let numbers: Vec<_> = numbers.collect();
        let Some(peer) = numbers.iter().position(Option::is_none) else {
            return Ok(numbers.into_iter().flatten().collect());
        };
        let other = all[peer].get(size_of::<u64>()..).unwrap_or_default();
        Err(Error::Disagreement {
            what,
            rank: self.rank(),
            other: String::from_utf8_lossy(other).into_owned(),
            own,
            peer,
        })
    }
}

/// The number of ranks that a launcher says it has started.
pub(crate) struct Launched {
    /// The environment variable with the number.
    pub(crate) variable: &'static str,
    pub(crate) ranks: usize,
}

/// The variables of MPI launchers: of Open MPI, of MPICH and its relatives, and of PMIx.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"];

/// Slurm's variable. Processes that another launcher starts through `srun` have it as well, with
/// another meaning.
const SLURM: &str = "SLURM_STEP_NUM_TASKS";

/// The numbers of ranks that launchers have set in the environment of this process.
pub(crate) fn launched_ranks() -> Vec<Launched> {
    let told = |variable| {
        let ranks = std::env::var(variable).ok()?.parse().ok()?;
        Some(Launched { variable, ranks })
    };
    let all: Vec<_> = SIZES.into_iter().filter_map(told).collect();
    if all.is_empty() {
        return told(SLURM).into_iter().collect();
    }
    all
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Communicator")
            .field("rank", &self.rank())
            .field("size", &self.size())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Error, run};

    #[test]
    fn programs_of_different_versions_are_told_apart() {
        let errors = run(3, |communicator| {
            let version = ["1.0.0", "1.0.0", "1.0.1"][communicator.rank()];
            let agreed = communicator.agree_on_version(version);
            Ok(agreed.expect_err("one is of another version"))
        });
        for (rank, error) in errors.expect("all learn it").into_iter().enumerate() {
            let right = if rank == 2 { 0 } else { 2 };
            assert!(
                matches!(&error, Error::Disagreement { what, peer, .. }
                    if what.contains("version") && *peer == right),
                "{error}"
            );
        }
    }
}
