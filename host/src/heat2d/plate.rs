//! Plates that stay on their device between iterations.

use super::check::{self, OPERATION};
use super::heat::Heat2d;
use super::plan::{Plan, Workspace};
use super::sums::Sums;
use super::until::{Iterated, Outcome, Tolerance};
use crate::device::Tally;
use crate::elementwise::largest_difference;
use crate::scalar::Scalar;
use crate::{Buffer, Device, Error, Field2};

impl Heat2d {
    /// The plate `initial` on `device`, to go on from.
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan) and [`Plan::start`].
    pub fn start<T: Scalar>(
        &self,
        device: &Device,
        initial: &Field2<T>,
    ) -> Result<Plate<T>, Error> {
        self.check_initial(initial)?;
        self.plan(device)?.start(initial)
    }

    fn check_initial<T: Scalar>(&self, initial: &Field2<T>) -> Result<(), Error> {
        check::shape("the initial plate", self.shape(), initial.shape())
    }
}

impl<T: Scalar> Plan<T> {
    /// The plate `initial` on the plan's device, to go on from.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if `initial` has another shape; [`Error::OutOfMemory`],
    /// [`Error::Driver`].
    pub fn start(mut self, initial: &Field2<T>) -> Result<Plate<T>, Error> {
        self.heat().check_initial(initial)?;
        let current = self.device().upload(initial.as_slice())?;
        self.begin(&current)?;
        Ok(Plate {
            plan: self,
            current,
            iterations: Tally::default(),
        })
    }
}

/// A plate on a device, between iterations.
#[derive(Debug)]
pub struct Plate<T: Scalar = f32> {
    plan: Plan<T>,
    /// The temperatures, unless the plan has them in textures.
    current: Buffer<T>,
    iterations: Tally,
}

impl<T: Scalar> Plate<T> {
    /// The same plate with a source of heat at each point, in place of the one it had:
    /// [`Plan::with_source`] has its units. A plate of temperature 0 is at a quarter of it after
    /// a Jacobi iteration.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if `source` has another shape; [`Error::InvalidParameter`] if
    /// the plate was started with a kernel that knows no source; [`Error::InvalidElement`] if
    /// an element is not a finite number; [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn with_source(mut self, source: &Field2<T>) -> Result<Self, Error> {
        check::shape("the source", self.plan.heat().shape(), source.shape())?;
        self.plan.check_takes_source()?;
        let values = source.as_slice().iter().map(|&value| value.into());
        if let Some((index, given)) = values
            .enumerate()
            .find(|(_, it): &(_, f64)| !it.is_finite())
        {
            return Err(Error::InvalidElement {
                operation: OPERATION,
                what: "the source of element",
                index,
                given,
                required: "a finite number".to_owned(),
            });
        }
        let source = self.plan.device().upload(source.as_slice())?;
        self.plan = self.plan.with_source(source)?;
        Ok(self)
    }

    /// Iterates the given number of times.
    ///
    /// On a CUDA device this queues the launches and does not wait for them.
    ///
    /// # Errors
    ///
    /// What a launch can fail with. What the plate holds is then unspecified.
    pub fn iterate(&mut self, count: usize) -> Result<(), Error> {
        let mut left = count;
        while left > 0 {
            let done = self.plan.advance(&mut self.current, left)?;
            left -= done;
            self.iterations.add(self.plan.device(), done as u64);
        }
        Ok(())
    }

    /// Iterates until the plate is steady to a tolerance, at most `most` times: until an
    /// iteration changes no temperature by more than it (a bare number, or
    /// [`Tolerance::Change`]), or until the residual of the equation is nowhere larger
    /// ([`Tolerance::Residual`]). It looks after each `every` iterations, and waits for each
    /// look.
    ///
    /// It compares the plates before and after the last iteration of each round, on their device; a
    /// comparison costs about as much as an iteration. The distance from the steady state is larger
    /// than the change of an iteration, by a factor of the order of the square of the number of
    /// points along the shorter axis. The residual tells how well the discrete equation holds,
    /// whatever the length of a step in time.
    ///
    /// It goes on where the last call has ended: to show how far it is, or to be able to
    /// stop, call it with fewer iterations at most, again and again until it has converged.
    ///
    /// With Neumann boundaries all around not every plate has a steady state. The heat of the
    /// source stays, so it must add up to 0, where a point on an end counts half and one in a
    /// corner a quarter. And if the points of even i + j are warmer than those of odd i + j, that
    /// heat goes back and forth for ever: the means of both must be equal at the start. (Where they
    /// are not, the mean of two plates that are one iteration apart still tends to the steady
    /// state, and so do steps in time shorter than the longest.) This is checked first, and a plate
    /// with a temperature that changes by more than the tolerance in every iteration is refused.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, Tolerance, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let shape = Shape2::new(20, 30);
    /// let initial = problem::hot_left_wall::<f64>(shape)?;
    /// let mut plate = Heat2d::dirichlet(shape)?.start(&Device::cpu(), &initial)?;
    /// let outcome = plate.iterate_until(1e-9, 50, 100_000)?;
    /// assert!(outcome.converged && outcome.change <= 1e-9);
    /// assert_eq!(outcome.iterations, plate.iterations());
    ///
    /// let outcome = plate.iterate_until(Tolerance::Residual(1e-10), 50, 100_000)?;
    /// assert!(outcome.converged && outcome.residual <= 1e-10);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the tolerance is negative, not a number, or cannot be
    /// reached, or if `every` is 0; and as [`iterate`](Self::iterate).
    pub fn iterate_until(
        &mut self,
        tolerance: impl Into<Tolerance<T>>,
        every: usize,
        most: usize,
    ) -> Result<Outcome<T>, Error> {
        let heat = *self.plan.heat();
        heat.iterate_until(self, tolerance.into(), every, most)
    }

    /// The plan that it goes on by.
    #[must_use]
    pub const fn plan(&self) -> &Plan<T> {
        &self.plan
    }

    /// How many iterations there have been.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.iterations.get()
    }

    /// The time of all steps so far, in the unit of their length; 0 for Jacobi iterations, which
    /// have no time.
    #[must_use]
    pub fn time(&self) -> f64 {
        let step = self.plan.heat().time_step().unwrap_or(0.0);
        self.iterations() as f64 * step
    }

    /// The temperatures now, on the host.
    ///
    /// # Errors
    ///
    /// [`Error::HostOutOfMemory`]; [`Error::Driver`], also when an iteration failed.
    pub fn field(&self) -> Result<Field2<T>, Error> {
        let values = match self.plan.workspace() {
            Workspace::Textures { current, .. } => {
                bytemuck::allocation::cast_vec(current.to_vec()?)
            }
            _ => self.current.to_vec()?,
        };
        Field2::from_vec(self.plan.heat().shape(), values)
    }
}

impl<T: Scalar> Iterated<T> for Plate<T> {
    type Error = Error;

    fn iterate(&mut self, count: usize) -> Result<(), Error> {
        self.iterate(count)
    }

    fn iterate_and_compare(&mut self) -> Result<T, Error> {
        self.iterate(1)?;
        match self.plan.workspace() {
            Workspace::Port { next, .. } | Workspace::Buffers { next, .. } => {
                largest_difference(next, &self.current)
            }
            Workspace::Textures { current, next } => {
                let (old, new) = (next.to_vec()?, current.to_vec()?);
                let [old, new] = [&old, &new].map(|values| bytemuck::cast_slice(values));
                Ok(T::largest_difference(old, new))
            }
        }
    }

    fn sums(&self) -> Result<[Sums; 2], Error> {
        let shape = self.plan.heat().shape();
        let plate = Sums::of(shape, self.field()?.as_slice());
        Ok(match self.plan.source() {
            Some(source) => [plate, Sums::of(shape, &source.to_vec()?)],
            None => [plate, Sums::ZERO],
        })
    }
}
