//! Plates that stay on their device between sweeps.

use super::gpu::Variant;
use super::heat::{By, Heat2d};
use super::means::Means;
use super::state::State;
use super::walls::Walls;
use crate::device::Tally;
use crate::scalar::Scalar;
use crate::{Buffer, Device, Error, Field2};

impl Heat2d {
    /// The plate `initial` after the given number of sweeps, computed on `device`.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and what a launch can fail with.
    pub fn solve<T: Scalar>(
        &self,
        device: &Device,
        initial: &Field2<T>,
        sweeps: usize,
    ) -> Result<Field2<T>, Error> {
        let mut plate = self.start(device, initial)?;
        plate.sweep(sweeps)?;
        plate.field()
    }

    /// The plate `initial` on `device`, to be swept by the port on the CPU and by
    /// the library's kernel elsewhere.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if `initial` has another shape,
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn start<T: Scalar>(
        &self,
        device: &Device,
        initial: &Field2<T>,
    ) -> Result<Plate<T>, Error> {
        self.place(By::of(device), device, initial)
    }

    /// The plate `initial` on `device`, to be swept by the given kernel.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start); [`Error::NotLaunchable`] on the CPU device,
    /// which runs no kernels; [`Error::InvalidParameter`] for a kernel that is not
    /// there in `T` or that keeps all walls where one is insulated;
    /// [`Error::InvalidSize`] if `variant` is [`Variant::Texture`] and the plate exceeds
    /// what the device can bind to a texture.
    pub fn start_with<T: Scalar>(
        &self,
        variant: Variant,
        device: &Device,
        initial: &Field2<T>,
    ) -> Result<Plate<T>, Error> {
        self.place(By::Kernel(variant), device, initial)
    }

    fn place<T: Scalar>(
        &self,
        by: By,
        device: &Device,
        initial: &Field2<T>,
    ) -> Result<Plate<T>, Error> {
        if initial.shape() != self.shape() {
            return Err(Error::InvalidParameter {
                operation: "heat2d",
                parameter: "the initial plate",
                given: format!("of {} points", initial.shape()),
                required: format!("of {} points", self.shape()),
            });
        }
        if let Some(step) = self.step()
            && !T::nearest(step.ratio).is_normal_number()
        {
            return Err(Error::InvalidParameter {
                operation: "heat2d",
                parameter: "the time step",
                given: step.length.to_string(),
                required: format!(
                    "such that diffusivity · step / spacing², which is {:e}, is a normal number \
                     of {}",
                    step.ratio,
                    T::NAME
                ),
            });
        }
        let state = match by {
            By::Port | By::Library => State::buffers(by, device, initial.as_slice())?,
            By::Kernel(variant) => {
                self.check_launchable::<T>(variant, device)?;
                if variant == Variant::Texture {
                    State::textures(self.shape(), device, initial.as_slice())?
                } else {
                    State::buffers(by, device, initial.as_slice())?
                }
            }
        };
        Ok(Plate {
            heat: *self,
            state,
            source: None,
            sweeps: Tally::default(),
        })
    }
}

/// A plate on a device, between sweeps.
#[derive(Debug)]
pub struct Plate<T: Scalar = f32> {
    heat: Heat2d,
    state: State<T>,
    source: Option<Buffer<T>>,
    sweeps: Tally,
}

impl<T: Scalar> Plate<T> {
    /// The same plate with a source of heat at each point, instead of the one it had.
    ///
    /// `source` is h² f, in the units of the temperature: h is the distance of two
    /// points, and f, in -∇²u = f, the power per volume over the conductivity. A plate
    /// of temperature 0 is at a quarter of it after a sweep. What it is at points on
    /// fixed walls is unused. For [steps in time](Heat2d::with_time_step) it is h² q / α, with
    /// q the warming in temperature per time and α the diffusivity.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if `source` has another shape, or if the plate was
    /// started with a kernel that knows no source; [`Error::InvalidElement`] if an
    /// element is not a finite number; [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn with_source(mut self, source: &Field2<T>) -> Result<Self, Error> {
        let invalid = |parameter, given, required| Error::InvalidParameter {
            operation: "heat2d",
            parameter,
            given,
            required,
        };
        let shape = self.heat.shape();
        if source.shape() != shape {
            let given = format!("of {} points", source.shape());
            let required = format!("of {shape} points");
            return Err(invalid("the source", given, required));
        }
        let takes_none = |it: &Variant| !matches!(it, Variant::General | Variant::Step);
        if let Some(variant) = self.state.kernel().filter(takes_none) {
            let required = format!("{}, as there is a source", Variant::General);
            return Err(invalid("the kernel", variant.to_string(), required));
        }
        let values = source.as_slice().iter().map(|&value| value.into());
        if let Some((index, given)) = values
            .enumerate()
            .find(|(_, it): &(_, f64)| !it.is_finite())
        {
            return Err(Error::InvalidElement {
                operation: "heat2d",
                what: "the source of element",
                index,
                given,
                required: "a finite number".to_owned(),
            });
        }
        self.source = Some(self.state.device().upload(source.as_slice())?);
        Ok(self)
    }

    /// Sweeps the given number of times.
    ///
    /// On a CUDA device this queues the launches and does not wait for them.
    ///
    /// # Errors
    ///
    /// What a launch can fail with. What the plate holds is then unspecified.
    pub fn sweep(&mut self, sweeps: usize) -> Result<(), Error> {
        let mut left = sweeps;
        while left > 0 {
            let done = self.state.sweep(&self.heat, self.source.as_ref(), left)?;
            left -= done;
            self.sweeps.add(self.state.device(), done as u64);
        }
        Ok(())
    }

    /// Sweeps until the plate is steady to a tolerance, at most `most` times: until a sweep
    /// changes no temperature by more than it (a bare number, or [`Tolerance::Change`]), or
    /// until the residual of the equation is nowhere larger ([`Tolerance::Residual`]). It looks
    /// after each `every` sweeps.
    ///
    /// What is compared are the plates before and after the last sweep of each round, on
    /// their device; looking costs about as much as a sweep. The distance from the steady
    /// state is larger than the change of a sweep, by a factor of the order of the number
    /// of points along the shorter axis, squared. The residual says how well the discrete
    /// equation holds, whatever the length of a step in time.
    ///
    /// It goes on where the last call has ended: to show how far it is, or to be able to
    /// stop, call it with fewer sweeps at most, again and again until it has converged.
    ///
    /// With four insulated walls not every plate comes to rest. What the source gives
    /// stays, so it must add up to 0, where a point on a wall counts half and one in a
    /// corner a quarter. And heat that points of even i + j have more than those of odd
    /// i + j goes back and forth for ever: the means of both must be the same at the
    /// start. (Where they are not, the mean of two plates that are one sweep apart still
    /// tends to the steady state, and so do steps in time shorter than the longest.) This is
    /// looked at first, and a plate of which some temperature changes by more than the
    /// tolerance in every sweep is refused.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, Tolerance, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let shape = Shape2::new(20, 30);
    /// let initial = problem::hot_left_wall::<f64>(shape)?;
    /// let mut plate = Heat2d::new(shape)?.start(&Device::cpu(), &initial)?;
    /// let outcome = plate.sweep_until(1e-9, 50, 100_000)?;
    /// assert!(outcome.converged && outcome.change <= 1e-9);
    /// assert_eq!(outcome.sweeps, plate.sweeps());
    ///
    /// let outcome = plate.sweep_until(Tolerance::Residual(1e-10), 50, 100_000)?;
    /// assert!(outcome.converged && outcome.residual <= 1e-10);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the tolerance is negative, not a number, or cannot be
    /// reached, or if `every` is 0; and as [`sweep`](Self::sweep).
    pub fn sweep_until(
        &mut self,
        tolerance: impl Into<Tolerance<T>>,
        every: usize,
        most: usize,
    ) -> Result<Outcome<T>, Error> {
        let invalid = |parameter, given: String, required: &str| Error::InvalidParameter {
            operation: "heat2d",
            parameter,
            given,
            required: required.to_owned(),
        };
        let tolerance = tolerance.into();
        let (Tolerance::Change(bound) | Tolerance::Residual(bound)) = tolerance;
        if !(bound >= T::from(0.0)) {
            let required = "at least 0";
            return Err(invalid("the tolerance", bound.to_string(), required));
        }
        if every == 0 {
            let required = "at least 1";
            return Err(invalid(
                "sweeps between two looks",
                "0".to_owned(),
                required,
            ));
        }
        if self.heat.walls() == Walls::INSULATED {
            let change = self.change_that_stays()?;
            let least = match tolerance {
                Tolerance::Change(_) => change,
                Tolerance::Residual(_) => change / self.heat.part_of_residual(),
            };
            if least > bound.into() {
                let required = format!(
                    "at least {least:e}, by which a plate that is insulated all around goes on \
                     to change with this source and from these temperatures"
                );
                return Err(invalid("the tolerance", bound.to_string(), &required));
            }
        }
        let mut outcome = Outcome {
            sweeps: 0,
            change: T::from(f32::INFINITY),
            residual: T::from(f32::INFINITY),
            converged: false,
        };
        let mut left = most;
        while left > 0 && !outcome.converged {
            let round = every.min(left);
            self.sweep(round - 1)?;
            self.sweep(1)?;
            left -= round;
            outcome.sweeps += round as u64;
            outcome.change = self.state.largest_change()?;
            outcome.residual = self.heat.residual_of(outcome.change);
            outcome.converged = match tolerance {
                Tolerance::Change(_) => outcome.change <= bound,
                Tolerance::Residual(_) => outcome.residual <= bound,
            };
        }
        Ok(outcome)
    }

    /// What some temperature of a plate without fixed walls changes by in every sweep
    /// from now on, at the least; 0 where it is less than rounding makes.
    fn change_that_stays(&self) -> Result<f64, Error> {
        let plate = Means::of(&self.field()?);
        let source = match &self.source {
            Some(source) => Means::of(&Field2::from_vec(self.heat.shape(), source.to_vec()?)?),
            None => Means::ZERO,
        };
        let change = match self.heat.step() {
            // The longest stable step is a Jacobi iteration.
            Some(step) if step.ratio < 0.25 => step.ratio * source.mean().abs(),
            _ => plate.change_that_stays(source),
        };
        let rounding = 2.0 * T::UNIT_ROUNDOFF * (plate.largest + source.largest);
        Ok(if change > rounding { change } else { 0.0 })
    }

    /// How many sweeps there have been.
    #[must_use]
    pub fn sweeps(&self) -> u64 {
        self.sweeps.get()
    }

    /// The time of all steps so far, in the unit of their length; 0 for Jacobi iterations,
    /// which take none.
    #[must_use]
    pub fn time(&self) -> f64 {
        let step = self.heat.time_step().unwrap_or(0.0);
        self.sweeps() as f64 * step
    }

    /// The temperatures now, on the host.
    ///
    /// # Errors
    ///
    /// [`Error::HostOutOfMemory`]; [`Error::Driver`], also when a sweep failed.
    pub fn field(&self) -> Result<Field2<T>, Error> {
        Field2::from_vec(self.heat.shape(), self.state.to_vec()?)
    }
}

/// When a plate is steady enough for [`Plate::sweep_until`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance<T> {
    /// When a sweep changes no temperature by more.
    Change(T),
    /// When the residual of Poisson's equation, `|h² (f + ∇²u)|` by the five-point formula, is
    /// nowhere larger; for steps in time f is q / α. It is in the unit of the temperature.
    Residual(T),
}

impl<T> From<T> for Tolerance<T> {
    fn from(change: T) -> Self {
        Self::Change(change)
    }
}

/// How [`Plate::sweep_until`] ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome<T> {
    /// Sweeps that were made.
    pub sweeps: u64,
    /// The largest change of a temperature by the last of them; infinite if there was
    /// none, NaN if there is a NaN on the plate.
    pub change: T,
    /// The largest residual of the plate before that sweep ([`Tolerance::Residual`]), of which
    /// the change is a quarter, or for steps in time α Δt / h²: so to a few roundings of the
    /// temperatures. Infinite or NaN where the change is.
    pub residual: T,
    /// Whether that is within the tolerance.
    pub converged: bool,
}
