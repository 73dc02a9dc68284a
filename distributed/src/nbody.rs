//! Gravity between bodies that several ranks share, and their motion.

use crate::checkpoint::{Checkpoint, Checkpoints, Of};
use crate::spare::Spare;
use crate::{Ahead, Arrival, Block, Communicator, Error, Expected, Parcel, Stored};
use halo_gpu::nbody::problem::Cluster;
use halo_gpu::nbody::{Body, Energy, Gravity, PartPlan, kick_drift};
use halo_gpu::{Buffer, Device, Element, Scalar, Tally, View};
use std::ops::Range;
use std::path::PathBuf;

/// Computes the accelerations of a rank's bodies due to the bodies of all ranks.
/// [`Gravity::plan_of_parts`] forms sums in parts; each rank computes some of these parts, and
/// gathers the bodies of the other ranks.
///
/// For any number of ranks, the results have the bits of one device with the same number of parts.
///
/// ```
/// use halo_distributed::{Error, nbody};
/// use halo_gpu::Device;
/// use halo_gpu::nbody::{Body, Gravity};
///
/// # fn main() -> Result<(), Error> {
/// let body = |x: u16| Body { x: f64::from(x % 7), y: f64::from(x), z: 0.0, mass: 1.0 };
/// let bodies: Vec<_> = (0..500).map(body).collect();
/// let gravity = Gravity::new(0.1)?.with_parts(4)?;
/// let one = gravity.accelerations_of(&Device::cpu(), &bodies)?;
/// let shares = halo_distributed::run(2, |communicator| {
///     let device = Device::cpu();
///     let mut plan = nbody::Plan::new(&communicator, &device, gravity, 500)?;
///     let own = device.upload(&bodies[plan.own()])?;
///     let mut accelerations = device.zeros(own.len())?;
///     plan.accelerations(&own, &mut accelerations)?;
///     Ok(accelerations.to_vec()?)
/// })?;
/// assert_eq!(shares.concat(), one);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Plan<'a, T: Scalar> {
    communicator: &'a Communicator,
    plan: PartPlan<T>,
    /// The bodies of each rank.
    shares: Vec<Range<usize>>,
    all: Buffer<Body<T>>,
    /// Whether sums are computed while bodies arrive.
    ahead: bool,
    spare: Spare,
}

/// Messages under way, which carry the bodies of other ranks.
struct Gathering<'a> {
    /// The ranks that send.
    from: Vec<usize>,
    arrival: Arrival<'a>,
}

impl<'a, T: Scalar> Plan<'a, T> {
    /// A plan for `n` bodies of all ranks together.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same arguments;
    /// [`Error::InvalidParameter`] for more ranks than parts; [`Error::Device`] as
    /// [`Gravity::plan_of_parts`].
    pub fn new(
        communicator: &'a Communicator,
        device: &Device,
        gravity: Gravity,
        n: usize,
    ) -> Result<Self, Error> {
        communicator.agree("the bodies", &(gravity, n, T::NAME))?;
        let parts = gravity.plan_of_parts::<T>(&Device::cpu(), n, 0..1)?.parts();
        let (rank, ranks) = (communicator.rank(), communicator.size());
        if ranks > parts as usize {
            return Err(Error::InvalidParameter {
                operation: "bodies of several ranks",
                parameter: "the number of ranks",
                given: ranks.to_string(),
                required: format!("at most {parts}, the number of parts of each body's sum"),
            });
        }
        let bound = |rank: usize| (u64::from(parts) * rank as u64 / ranks as u64) as u32;
        let share = |rank: usize| bound(rank)..bound(rank + 1);
        let make = || -> Result<_, Error> {
            let plan = gravity.plan_of_parts(device, n, share(rank))?;
            Ok((plan, device.zeros(n)?))
        };
        let (plan, all) = communicator.together(make())?;
        Ok(Self {
            communicator,
            shares: (0..ranks).map(|rank| plan.bodies_of(share(rank))).collect(),
            plan,
            all,
            ahead: match communicator.rims() {
                Ahead::Never => false,
                Ahead::Always => true,
                Ahead::Auto => communicator.is_through_host() || communicator.is_across_machines(),
            },
            spare: Spare::default(),
        })
    }

    /// The range of this rank's bodies among all bodies.
    #[must_use]
    pub fn own(&self) -> Range<usize> {
        self.plan.own()
    }

    /// Writes the acceleration of each of the rank's own bodies to `accelerations`.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`](crate::Transport::exchange); [`Error::Device`] for buffers of
    /// other lengths or on other devices.
    pub fn accelerations(
        &mut self,
        own: &Buffer<Body<T>>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        // A message that is under way would be taken for one of the next call.
        self.plan.check(&self.all, accelerations)?;
        if !self.ahead {
            self.gather(own)?;
            return self.accelerations_as_gathered(accelerations);
        }
        let device = self.all.device().clone();
        let gathering = self.begin(&device, own)?;
        let Self {
            plan,
            all,
            shares,
            spare,
            ..
        } = self;
        let receive = |all: &mut Buffer<_>| gathering.finish(all, shares, spare);
        plan.accelerations_while(all, receive, accelerations)
    }

    /// The same, due to the bodies as last [gathered](Self::gather).
    ///
    /// # Errors
    ///
    /// [`Error::Device`].
    pub fn accelerations_as_gathered(
        &mut self,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        Ok(self.plan.accelerations(&self.all, accelerations)?)
    }

    /// Gathers the bodies of all ranks.
    ///
    /// # Errors
    ///
    /// As [`accelerations`](Self::accelerations).
    pub fn gather(&mut self, own: &Buffer<Body<T>>) -> Result<(), Error> {
        let device = self.all.device().clone();
        let gathering = self.begin(&device, own)?;
        gathering.finish(&mut self.all, &self.shares, &mut self.spare)
    }

    /// Copies the rank's own bodies to `all`, and begins to send them to the other ranks and to
    /// receive theirs.
    fn begin<'b>(
        &mut self,
        device: &'b Device,
        own: &Buffer<Body<T>>,
    ) -> Result<Gathering<'b>, Error>
    where
        'a: 'b,
    {
        self.all.view_mut(self.own())?.copy_from(own.into())?;
        let (rank, size) = (self.communicator.rank(), size_of::<Body<T>>());
        let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
        for (peer, share) in self.shares.iter().enumerate() {
            if peer == rank {
                continue;
            }
            let mut bytes = self.spare.take(device, own.len() * size)?;
            bytes.view_mut(..)?.copy_bytes_from(own.into())?;
            outgoing.push(Parcel {
                to: peer,
                tag: 0,
                bytes: bytes.into(),
            });
            incoming.push(Expected {
                from: peer,
                tag: 0,
                room: self.spare.take(device, share.len() * size)?.into(),
            });
        }
        Ok(Gathering {
            from: incoming.iter().map(|it| it.from).collect(),
            arrival: self.communicator.begin(device, outgoing, incoming)?,
        })
    }
}

impl Gathering<'_> {
    /// Waits for the messages, and copies their bodies into `all`.
    fn finish<T: Scalar>(
        self,
        all: &mut Buffer<Body<T>>,
        shares: &[Range<usize>],
        spare: &mut Spare,
    ) -> Result<(), Error> {
        let arrived = (self.arrival)()?;
        for (peer, bytes) in self.from.into_iter().zip(&arrived.messages) {
            let mut share = all.view_mut(shares[peer].clone())?;
            share.copy_bytes_from(View::from(bytes))?;
        }
        spare.put(arrived.messages);
        spare.put(arrived.spare);
        Ok(())
    }
}

/// Bodies that move under their own gravity, shared by several ranks: [`halo_gpu::nbody::Leapfrog`]
/// over several devices, with the bits of one device that forms its sums in the same number of
/// parts.
///
/// ```
/// use halo_distributed::{Error, nbody};
/// use halo_gpu::Device;
/// use halo_gpu::nbody::Gravity;
/// use halo_gpu::nbody::problem::Cluster;
///
/// # fn main() -> Result<(), Error> {
/// let cluster = Cluster::<f64>::plummer(300, 1)?;
/// let (bodies, velocities) = (&cluster.bodies, &cluster.velocities);
/// let gravity = Gravity::new(0.05)?.with_parts(4)?;
/// let step = 1.0 / 256.0;
/// let mut one = gravity.start(&Device::cpu(), bodies, velocities, step)?;
/// one.advance(10)?;
///
/// let several = halo_distributed::run(2, |communicator| {
///     let start = |body| (bodies[body], velocities[body]);
///     let device = Device::cpu();
///     let mut stars = nbody::Leapfrog::new(&communicator, &device, gravity, 300, step, start)?;
///     stars.advance(10)?;
///     stars.bodies()
/// })?;
/// assert_eq!(several, [one.bodies()?, one.bodies()?]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Leapfrog<'a, T: Scalar> {
    plan: Plan<'a, T>,
    gravity: Gravity,
    time_step: f64,
    steps: Tally,
    /// This rank's bodies.
    bodies: Buffer<Body<T>>,
    velocities: Buffer<[T; 3]>,
    /// The accelerations of the bodies at their present positions.
    accelerations: Buffer<[T; 3]>,
}

impl<'a, T: Scalar> Leapfrog<'a, T> {
    /// `n` bodies of all ranks together, with the bodies and velocities that `start` returns for
    /// their numbers, and steps of length `time_step`.
    ///
    /// # Errors
    ///
    /// As [`Plan::new`]; [`Error::Device`] as [`Gravity::check_motion`], and [`Error::Elsewhere`]
    /// on ranks whose own bodies are valid.
    pub fn new(
        communicator: &'a Communicator,
        device: &Device,
        gravity: Gravity,
        n: usize,
        time_step: f64,
        start: impl FnMut(usize) -> (Body<T>, [T; 3]),
    ) -> Result<Self, Error> {
        communicator.agree("the time step", &time_step)?;
        let plan = Plan::new(communicator, device, gravity, n)?;
        let (bodies, velocities): (Vec<_>, Vec<_>) = plan.own().map(start).unzip();
        let put = || -> Result<_, Error> {
            gravity.check_motion(&bodies, &velocities, time_step)?;
            let accelerations = device.alloc_filled(bodies.len(), [T::nearest(f64::NAN); 3])?;
            Ok((
                device.upload(&bodies)?,
                device.upload(&velocities)?,
                accelerations,
            ))
        };
        let (bodies, velocities, accelerations) = communicator.together(put())?;
        let mut leapfrog = Self {
            plan,
            gravity,
            time_step,
            steps: Tally::default(),
            bodies,
            velocities,
            accelerations,
        };
        leapfrog.accelerate()?;
        Ok(leapfrog)
    }

    /// Bodies that continue from a checkpoint, with the bits of a run without interruption. Ranks
    /// and devices may differ from those that saved it.
    ///
    /// # Errors
    ///
    /// [`Error::Unfit`] for a checkpoint with another number of bodies, gravity, number of parts,
    /// time step or type, [`Error::Corrupted`], [`Error::File`], [`Error::FileLength`], and
    /// [`Error::Elsewhere`] on the other ranks; as [`new`](Self::new).
    pub fn restore(
        communicator: &'a Communicator,
        device: &Device,
        gravity: Gravity,
        n: usize,
        time_step: f64,
        checkpoint: &Checkpoint,
    ) -> Result<Self, Error>
    where
        T: Stored,
    {
        checkpoint.require(communicator, &of::<T>(gravity, n, time_step)?)?;
        let own = Plan::<T>::new(communicator, device, gravity, n)?.own();
        let bodies = checkpoint.read(communicator, 0, [4, n], rows::<4>(&own))?;
        let velocities = checkpoint.read(communicator, 1, [3, n], rows::<3>(&own))?;
        let start = |number: usize| {
            let [x, y, z, mass] = [0, 1, 2, 3].map(|it| bodies[[it, number]]);
            let velocity = [0, 1, 2].map(|it| velocities[[it, number]]);
            (Body { x, y, z, mass }, velocity)
        };
        let stars = Self::new(communicator, device, gravity, n, time_step, start)?;
        stars.steps.add(device, checkpoint.steps());
        Ok(stars)
    }

    /// Saves bodies and velocities for [`restore`](Self::restore), and returns the folder of the
    /// checkpoint.
    ///
    /// # Errors
    ///
    /// [`Error::File`], and [`Error::Elsewhere`] on the other ranks; as
    /// [`bodies`](Self::bodies).
    pub fn save(&self, checkpoints: &Checkpoints) -> Result<PathBuf, Error>
    where
        T: Stored,
    {
        let communicator = self.plan.communicator;
        let own = || -> Result<_, Error> {
            communicator.settle()?;
            Ok((self.bodies.to_vec()?, self.velocities.to_vec()?))
        };
        let (bodies, velocities) = communicator.together(own())?;
        let n = self.plan.all.len();
        let of = of::<T>(self.gravity, n, self.time_step)?;
        let mut writer = checkpoints.begin(communicator, of, self.steps())?;
        let rows_of_bodies: &[T] = bytemuck::cast_slice(&bodies);
        writer.field([4, n], rows::<4>(&self.own()), rows_of_bodies)?;
        writer.field([3, n], rows::<3>(&self.own()), velocities.as_flattened())?;
        writer.finish()
    }

    fn accelerate(&mut self) -> Result<(), Error> {
        let accelerations = &mut self.accelerations;
        self.plan.accelerations(&self.bodies, accelerations)
    }

    fn kick_drift(&mut self, kick: f64, drift: f64) -> Result<(), Error> {
        let (velocities, bodies) = (&mut self.velocities, &mut self.bodies);
        Ok(kick_drift(
            &self.accelerations,
            [kick, drift],
            velocities,
            bodies,
        )?)
    }

    /// Takes `steps` steps.
    ///
    /// # Errors
    ///
    /// As [`Plan::accelerations`]. After an error the bodies may be in the middle of a step.
    pub fn advance(&mut self, steps: u64) -> Result<(), Error> {
        for _ in 0..steps {
            self.kick_drift(0.5 * self.time_step, self.time_step)?;
            self.accelerate()?;
            self.kick_drift(0.5 * self.time_step, 0.0)?;
            self.steps.add(self.bodies.device(), 1);
        }
        Ok(())
    }

    /// Steps taken since the start.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// The time since the start: steps times their length.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.steps() as f64 * self.time_step
    }

    /// The range of this rank's bodies among all bodies.
    #[must_use]
    pub fn own(&self) -> Range<usize> {
        self.plan.own()
    }

    /// The current bodies of all ranks, in the initial order, on every rank.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub fn bodies(&self) -> Result<Vec<Body<T>>, Error> {
        self.gathered(&self.bodies)
    }

    /// The velocities of all bodies, in the same order.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub fn velocities(&self) -> Result<Vec<[T; 3]>, Error> {
        self.gathered(&self.velocities)
    }

    /// The current energy of all bodies, on every rank, as [`halo_gpu::nbody::Leapfrog::energy`] on
    /// one device of the same kind. Each rank computes the whole potential energy, in n²
    /// interactions.
    ///
    /// ```
    /// use halo_distributed::{Error, nbody};
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::Gravity;
    /// use halo_gpu::nbody::problem::Cluster;
    ///
    /// # fn main() -> Result<(), Error> {
    /// let cluster = Cluster::<f64>::plummer(300, 1)?;
    /// let gravity = Gravity::new(0.05)?.with_parts(4)?;
    /// let drifts = halo_distributed::run(2, |communicator| {
    ///     let start = |body| (cluster.bodies[body], cluster.velocities[body]);
    ///     let (device, step) = (Device::cpu(), 1.0 / 256.0);
    ///     let mut stars = nbody::Leapfrog::new(&communicator, &device, gravity, 300, step, start)?;
    ///     let before = stars.energy()?.total();
    ///     stars.advance(64)?;
    ///     Ok(stars.energy()?.total() / before - 1.0)
    /// })?;
    /// assert!(drifts[0].abs() < 1e-3 && drifts[0] == drifts[1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance); [`Error::Device`] as [`Gravity::check`] if bodies have left
    /// the range that it requires, and as [`Device::zeros`].
    pub fn energy(&self) -> Result<Energy, Error> {
        let (gravity, bodies) = (self.gravity, self.bodies()?);
        let cluster = Cluster {
            velocities: self.velocities()?,
            bodies,
        };
        let computed = || -> Result<_, Error> {
            gravity.check(&cluster.bodies)?;
            let device = self.bodies.device();
            let bodies = device.upload(&cluster.bodies)?;
            let mut plan = gravity.plan(device, bodies.len())?;
            Ok(plan.potential_energy(&bodies)?)
        };
        Ok(Energy {
            kinetic: cluster.kinetic_energy(),
            potential: self.plan.communicator.together(computed())?,
        })
    }

    /// The elements of all ranks, in the order of the ranks.
    fn gathered<E: Element>(&self, own: &Buffer<E>) -> Result<Vec<E>, Error> {
        let communicator = self.plan.communicator;
        communicator.settle()?;
        Ok(communicator.all_gather(&own.to_vec()?)?.concat())
    }
}

/// The identity of bodies in their checkpoints. It has the number of parts, because the bits depend
/// on it; by default that follows from the number of bodies.
fn of<T: Scalar + Stored>(gravity: Gravity, n: usize, time_step: f64) -> Result<Of, Error> {
    let parts = gravity.plan_of_parts::<T>(&Device::cpu(), n, 0..1)?.parts();
    let softening = gravity.softening();
    Ok(Of {
        family: "nbody".to_owned(),
        element: <T as Stored>::NAME.to_owned(),
        points: vec![n],
        problem: format!("softening {softening:?}, {parts} parts, time step {time_step:?}"),
    })
}

/// The block of a file that holds `N` numbers for each of these bodies.
fn rows<const N: usize>(bodies: &Range<usize>) -> Block<2> {
    Block {
        start: [0, bodies.start],
        extents: [N, bodies.len()],
    }
}
