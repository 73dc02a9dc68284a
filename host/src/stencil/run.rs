//! Runs a stencil step after step on its own fields.

use super::held::Held;
use super::number::{Number, OPERATION};
use super::operation::Stencil;
use super::plan::{Plan, all_of};
use crate::argument::Argument;
use crate::device::Tally;
use crate::elementwise::{larger, largest_difference};
use crate::scalar::Scalar;
use crate::{Axis, Boundary, Buffer, Device, Error};
use halo_stencil::{Compiled, overwritten};

/// Fields on a device that a stencil advances step by step, from [`Stencil::start`].
///
/// Outputs become inputs by exchanging buffers: nothing is copied. A run keeps the inputs and,
/// unless the update is [`OVER_PAST`](halo_stencil::PointUpdate::OVER_PAST), a buffer for each
/// output.
#[derive(Debug)]
pub struct Run<U, T: Number, const D: usize, const INPUTS: usize, const OUTPUTS: usize> {
    plan: Plan<U, T, D, INPUTS, OUTPUTS>,
    /// The outputs to be written, then the current fields, then the past ones: `OUTPUTS` fields
    /// each. If outputs are written over the past fields, the current fields come first.
    states: Vec<Buffer<T>>,
    coefficients: Vec<Buffer<T>>,
    held: Vec<Held<T>>,
    steps: Tally,
}

/// The result of [`Run::steps_until`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settled {
    /// The number of steps taken.
    pub steps: usize,
    /// The largest change of a value in the last step.
    pub change: f64,
    /// Whether that change is at most the tolerance.
    pub converged: bool,
}

impl Settled {
    /// The loop of all families that step until little changes. `advance` takes the given number of
    /// steps and returns the largest change of a value in the last of them.
    ///
    /// # Errors
    ///
    /// As for [`Run::steps_until`]; the errors of `advance`.
    #[doc(hidden)]
    pub fn after<E: From<Error>>(
        tolerance: f64,
        every: usize,
        most: usize,
        mut advance: impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<Self, E> {
        require_looks(OPERATION, "steps between two checks", tolerance, every)?;
        let mut settled = Self {
            steps: 0,
            change: f64::NAN,
            converged: false,
        };
        while settled.steps < most && !settled.converged {
            let count = every.min(most - settled.steps);
            settled.change = advance(count)?;
            settled.steps += count;
            settled.converged = settled.change <= tolerance;
        }
        Ok(settled)
    }
}

/// Returns an error for a tolerance that nothing can meet, and for 0 steps `between` two checks.
pub(crate) fn require_looks<T: Scalar>(
    operation: &'static str,
    between: &'static str,
    tolerance: T,
    every: usize,
) -> Result<(), Error> {
    let invalid = |parameter, given, required: &str| {
        Err(Error::InvalidParameter {
            operation,
            parameter,
            given,
            required: required.to_owned(),
        })
    };
    if !(tolerance >= T::nearest(0.0)) {
        return invalid("the tolerance", tolerance.to_string(), "at least 0");
    }
    if every == 0 {
        return invalid(between, "0".to_owned(), "at least 1");
    }
    Ok(())
}

impl<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize>
    Stencil<U, T, D, INPUTS, OUTPUTS>
where
    T: Number,
    U: Compiled<T, INPUTS, OUTPUTS>,
{
    /// A run that starts from these inputs, copied to `device`: each has as many values as the grid
    /// has points, x fastest.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for an input of another length; the errors of [`plan`](Self::plan)
    /// and [`Device::upload`].
    pub fn start(
        &self,
        device: &Device,
        inputs: [&[T]; INPUTS],
    ) -> Result<Run<U, T, D, INPUTS, OUTPUTS>, Error> {
        let points = self.points();
        for (field, input) in inputs.iter().enumerate() {
            if input.len() != points {
                return Err(Error::LengthMismatch {
                    argument: Argument::new(OPERATION, "input").numbered(field),
                    required: points,
                    given: input.len(),
                });
            }
        }
        let plan = self.plan(device)?;
        plan.reserve()?;
        let mut states = Vec::new();
        if !U::OVER_PAST {
            for _ in 0..OUTPUTS {
                states.push(device.zeros(points)?);
            }
        }
        let (past, coefficients) = inputs.split_at(OUTPUTS * (1 + U::PAST));
        for input in past {
            states.push(device.upload(input)?);
        }
        let coefficients = coefficients.iter().map(|input| device.upload(input));
        let coefficients = coefficients.collect::<Result<_, _>>()?;
        Ok(Run {
            plan,
            states,
            coefficients,
            held: Vec::new(),
            steps: Tally::default(),
        })
    }
}

impl<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize> Run<U, T, D, INPUTS, OUTPUTS>
where
    T: Number,
    U: Compiled<T, INPUTS, OUTPUTS>,
{
    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan<U, T, D, INPUTS, OUTPUTS> {
        &self.plan
    }

    /// The number of steps taken, including those in replays of a recording.
    #[must_use]
    pub fn steps_taken(&self) -> u64 {
        self.steps.get()
    }

    /// Sets other parameters from the next step on, as [`Plan::set_update`] does.
    ///
    /// # Errors
    ///
    /// As for [`Plan::set_update`].
    pub fn set_update(&mut self, update: U) -> Result<(), Error> {
        self.plan.set_update(update)
    }

    /// Sets other boundaries of a field from the next step on, as [`Plan::set_ends`] does, for
    /// example values that change with time.
    ///
    /// ```
    /// use halo_gpu::heat3d::Heat3d;
    /// use halo_gpu::{Axis, Boundary, Device, Field3, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // The seasons' warmth goes into the ground: less of it and later, the deeper.
    /// let shape = Shape3::new(60, 1, 1);
    /// let heat = Heat3d::new(Grid3::new(shape, [0.25, 1.0, 1.0])?);
    /// let heat = heat.with_time_step(1.0, 0.02)?; // metres, and units of time of m² over α
    /// let mut ground = heat.start(&Device::cpu(), &Field3::filled(shape, 0.0_f64)?)?;
    /// let mut warmest = [0.0_f64; 2];
    /// for step in 0..2000 {
    ///     // A year is 500 steps.
    ///     let surface = (std::f64::consts::TAU * f64::from(step) * 0.02 / 10.0).sin();
    ///     let ends = [Boundary::Dirichlet(surface), Boundary::Neumann];
    ///     ground.set_ends(0, Axis::X, ends)?;
    ///     ground.steps(1)?;
    ///     for (most, depth) in warmest.iter_mut().zip([3, 7]).filter(|_| step >= 1500) {
    ///         *most = most.max(ground.at(0, [depth, 0, 0])?);
    ///     }
    /// }
    /// // e^(-x √(π / year)) at x = 1 and 2.
    /// assert!((warmest[0] - 0.57).abs() < 0.02 && (warmest[1] - 0.33).abs() < 0.02);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Plan::set_ends`].
    pub fn set_ends(&mut self, field: usize, axis: Axis, ends: [Boundary; 2]) -> Result<(), Error> {
        self.plan.set_ends(field, axis, ends)
    }

    /// Gives points of an output the values that `value` returns, from now on: steps do not change
    /// them, and the points around them use them. [`Grid::rim`](crate::Grid::rim) lists the points
    /// at the ends.
    ///
    /// ```
    /// use halo_gpu::heat3d::Heat3d;
    /// use halo_gpu::{Device, Field3, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // A block whose faces have the temperatures of x² - y².
    /// let shape = Shape3::new(9, 9, 5);
    /// let grid = Grid3::new(shape, [1.0; 3])?;
    /// let mut block = Heat3d::new(grid).start(&Device::cpu(), &Field3::filled(shape, 0.0)?)?;
    /// let steady = |[i, j, _]: [usize; 3]| (i * i) as f64 - (j * j) as f64;
    /// block.hold(0, grid.rim([[1, 1], [1, 1], [0, 0]]), steady)?;
    /// block.steps(500)?;
    /// assert!((block.at(0, [2, 6, 3])? - -32.0).abs() < 1e-9);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If a point is held several times, the latest value counts. On CUDA devices each step then
    /// needs one more launch.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a field that is not an output, and for a point outside the
    /// grid, [`Error::NonFinite`] for a value that is not a finite number; the errors of
    /// [`Device::upload`].
    pub fn hold(
        &mut self,
        output: usize,
        points: impl IntoIterator<Item = [usize; D]>,
        mut value: impl FnMut([usize; D]) -> T,
    ) -> Result<(), Error> {
        let (at, points) = self.places(output, points)?;
        if at.is_empty() {
            return Ok(());
        }
        let values: Vec<T> = points.into_iter().map(&mut value).collect();
        let held = Held::fixed(self.plan.device(), output, &at, &values)?;
        self.begin(held)
    }

    /// Like [`hold`](Self::hold), with values that change with time: `value(point, n)` returns the
    /// value of a point after n steps. It is called for each point before each step.
    ///
    /// ```
    /// use halo_gpu::heat3d::Heat3d;
    /// use halo_gpu::{Axis, Boundary, Device, Field3, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // A rod whose first point warms up while its last one stays cold: in the end the middle
    /// // is half as warm as the first.
    /// let shape = Shape3::new(11, 1, 1);
    /// let grid = Grid3::new(shape, [1.0; 3])?.with_boundary(Axis::X, Boundary::OneSided)?;
    /// let heat = Heat3d::new(grid).with_time_step(1.0, 0.1)?;
    /// let mut rod = heat.start(&Device::cpu(), &Field3::filled(shape, 0.0_f64)?)?;
    /// rod.drive(0, grid.rim([[1, 1], [0, 0], [0, 0]]), |[i, ..], step| match i {
    ///     0 => (step as f64 / 1000.0).min(1.0),
    ///     _ => 0.0,
    /// })?;
    /// rod.steps(1000)?;
    /// assert_eq!(rod.at(0, [0, 0, 0])?, 1.0);
    /// rod.steps(3000)?;
    /// assert!((rod.at(0, [5, 0, 0])? - 0.5).abs() < 1e-3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// On CUDA devices the host computes and copies the values of a step while the device computes
    /// earlier steps. The copies cannot be recorded: within [`Device::record`] they fail with
    /// [`Error::NotReplayable`].
    ///
    /// # Errors
    ///
    /// As for [`hold`](Self::hold). Later, [`steps`](Self::steps) fails with [`Error::NonFinite`]
    /// before a step for which a value is not a finite number.
    pub fn drive(
        &mut self,
        output: usize,
        points: impl IntoIterator<Item = [usize; D]>,
        value: impl Fn([usize; D], u64) -> T + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let (at, points) = self.places(output, points)?;
        if at.is_empty() {
            return Ok(());
        }
        let value = Box::new(move |number: usize, step| value(points[number], step));
        let mut held = Held::changing(self.plan.device(), output, &at, value)?;
        held.prepare(self.steps_taken())?;
        self.begin(held)
    }

    /// Releases all held and driven points: from the next step on they are computed like all
    /// others.
    pub fn release(&mut self) {
        self.held.clear();
    }

    /// The element indices of points, ascending, with those points.
    #[allow(clippy::type_complexity)]
    fn places(
        &self,
        output: usize,
        points: impl IntoIterator<Item = [usize; D]>,
    ) -> Result<(Vec<usize>, Vec<[usize; D]>), Error> {
        if output >= OUTPUTS {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the output",
                given: output.to_string(),
                required: format!("below {OUTPUTS}, the number of outputs"),
            });
        }
        let mut all = Vec::new();
        for point in points {
            all.push((self.index(point)?, point));
        }
        all.sort_unstable();
        all.dedup();
        Ok(all.into_iter().unzip())
    }

    /// Sets the current values of the points, and keeps them for all later steps.
    fn begin(&mut self, held: Held<T>) -> Result<(), Error> {
        let steps = self.steps_taken();
        held.put(steps, &mut self.states[Self::NOW + held.output()])?;
        self.held.push(held);
        Ok(())
    }

    /// Takes `count` steps. On CUDA devices it does not wait for them.
    ///
    /// # Errors
    ///
    /// As for [`Plan::step`] and [`drive`](Self::drive).
    pub fn steps(&mut self, count: usize) -> Result<(), Error> {
        let most = self.held.iter().map(Held::most_steps).min();
        let most = most.unwrap_or(usize::MAX);
        let mut left = count;
        while left > 0 {
            let depth = self.plan.depth(left.min(most));
            self.pass(depth)?;
            left -= depth;
        }
        Ok(())
    }

    /// Takes `depth` steps in one pass.
    fn pass(&mut self, depth: usize) -> Result<(), Error> {
        let first = self.steps_taken();
        let last = first + depth as u64;
        let mut given = Vec::new();
        for held in &mut self.held {
            (first + 1..=last).try_for_each(|step| held.prepare(step))?;
            if depth > 1 {
                given.push(held.in_pass(first, depth));
            }
        }
        let (low, high) = self.states.split_at_mut(OUTPUTS);
        let (new, old) = if U::OVER_PAST {
            (high, low)
        } else {
            (low, high)
        };
        let inputs = std::array::from_fn(|field| {
            if overwritten::<T, U, INPUTS, OUTPUTS>(field).is_some() {
                return None;
            }
            match field.checked_sub(Self::STATES) {
                None => Some(&old[field]),
                Some(coefficient) => Some(&self.coefficients[coefficient]),
            }
        });
        self.plan.pass(depth, &given, inputs, all_of(new))?;
        for held in &self.held {
            held.put(last, &mut new[held.output()])?;
        }
        // Exchanges each state with the newer one, the oldest first.
        for older in (OUTPUTS..self.states.len()).rev() {
            let (newer, older) = self.states.split_at_mut(older);
            let newer = &mut newer[newer.len() - OUTPUTS];
            older[0].give_way_to(newer);
        }
        self.steps.add(self.plan.device(), depth as u64);
        Ok(())
    }

    /// Takes steps until the last one has changed no value by more than `tolerance`, but at most
    /// `most` steps. It checks the change after every `every` steps, and waits for each check.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a tolerance that is NaN or negative, and if `every` is 0;
    /// the errors of [`steps`](Self::steps).
    pub fn steps_until(
        &mut self,
        tolerance: f64,
        every: usize,
        most: usize,
    ) -> Result<Settled, Error> {
        Settled::after(tolerance, every, most, |count| {
            // The last step is taken alone, so that the values before it are kept.
            self.steps(count - 1)?;
            self.pass(1)?;
            (0..OUTPUTS).try_fold(0.0, |change, output| {
                let now = largest_difference(self.now(output), self.before(output))?;
                Ok::<_, Error>(larger(change, now.into()))
            })
        })
    }

    /// The number of inputs that are states: the current fields and the past ones.
    const STATES: usize = OUTPUTS * (1 + U::PAST);

    /// The index of the first current field among the states.
    const NOW: usize = if U::OVER_PAST { 0 } else { OUTPUTS };

    fn now(&self, output: usize) -> &Buffer<T> {
        &self.states[Self::NOW + output]
    }

    /// An output before the last step: the past output or, without one, the buffer that the next
    /// step overwrites.
    fn before(&self, output: usize) -> &Buffer<T> {
        let first = if U::PAST == 0 { 0 } else { Self::NOW + OUTPUTS };
        &self.states[first + output]
    }

    /// The current input number `field`, on the device; `None` if it does not exist.
    #[must_use]
    pub fn field(&self, field: usize) -> Option<&Buffer<T>> {
        match field.checked_sub(Self::STATES) {
            None => self.states.get(Self::NOW + field),
            Some(coefficient) => self.coefficients.get(coefficient),
        }
    }

    /// Like [`field`](Self::field), mutable: for a source between steps, or a coefficient that
    /// changes.
    #[must_use]
    pub fn field_mut(&mut self, field: usize) -> Option<&mut Buffer<T>> {
        match field.checked_sub(Self::STATES) {
            None => self.states.get_mut(Self::NOW + field),
            Some(coefficient) => self.coefficients.get_mut(coefficient),
        }
    }

    /// Adds `value` to input `field` at a point, between steps: a source. Waits for the steps.
    ///
    /// ```
    /// use halo_gpu::wave3d::Wave3d;
    /// use halo_gpu::{Device, Field3, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let shape = Shape3::new(24, 6, 6);
    /// let wave = Wave3d::new(Grid3::new(shape, [1.0; 3])?, 4)?;
    /// let (still, velocity) = (Field3::filled(shape, 0.0)?, Field3::filled(shape, 1.0_f32)?);
    /// let mut run = wave.start(&Device::cpu(), 0.4, &velocity, [&still, &still])?;
    /// let mut heard = Vec::new();
    /// for step in 0..40 {
    ///     run.add(0, [4, 3, 3], (0.5 * step as f32).sin())?; // a source
    ///     run.steps(1)?;
    ///     heard.push(run.at(0, [12, 3, 3])?); // a receiver, 8 away: 20 steps
    /// }
    /// assert!(heard[10].abs() < 1e-3 && heard.iter().any(|u| u.abs() > 0.05));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a field that the run does not have and for a point outside
    /// the grid; the errors of [`Buffer::to_vec`].
    pub fn add(&mut self, field: usize, point: [usize; D], value: T) -> Result<(), Error> {
        let sum = self.at(field, point)? + value;
        let index = self.index(point)?;
        match self.field_mut(field) {
            Some(buffer) => buffer.view_mut(index..=index)?.copy_from_slice(&[sum]),
            None => Err(no_field::<INPUTS>(field)),
        }
    }

    /// The value of input `field` at a point, for example a receiver. Waits for the steps.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add).
    pub fn at(&self, field: usize, point: [usize; D]) -> Result<T, Error> {
        let index = self.index(point)?;
        let mut value = [T::from(0.0)];
        match self.field(field) {
            Some(buffer) => buffer.view(index..=index)?.copy_to_slice(&mut value)?,
            None => return Err(no_field::<INPUTS>(field)),
        }
        Ok(value[0])
    }

    /// The element index of a point.
    fn index(&self, point: [usize; D]) -> Result<usize, Error> {
        let extents = self.plan.stencil().extents();
        let mut axes = point.iter().zip(extents).rev();
        let index = axes.try_fold(0, |index, (&at, n)| (at < n).then_some(index * n + at));
        index.ok_or_else(|| Error::InvalidParameter {
            operation: OPERATION,
            parameter: "the point",
            given: format!("{point:?}"),
            required: format!("a point of the grid of {}", self.plan.stencil().shape()),
        })
    }

    /// The current input number `field`, copied to the host. Waits for the steps.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a field that the run does not have; the errors of
    /// [`Buffer::to_vec`].
    pub fn to_vec(&self, field: usize) -> Result<Vec<T>, Error> {
        match self.field(field) {
            Some(buffer) => buffer.to_vec(),
            None => Err(no_field::<INPUTS>(field)),
        }
    }
}

fn no_field<const INPUTS: usize>(field: usize) -> Error {
    Error::InvalidParameter {
        operation: OPERATION,
        parameter: "the field",
        given: field.to_string(),
        required: format!("below {INPUTS}, the number of inputs"),
    }
}
