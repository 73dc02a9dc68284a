//! Runs your own stencils on several ranks.

use crate::checkpoint::{Checkpoint, Checkpoints, Of};
use crate::ghosts::{Fields, Ghosts};
use crate::rims::{Rims, Strip};
use crate::{Communicator, Decomposition, Error, Stored};
use halo_gpu::elementwise::{larger, largest_difference};
use halo_gpu::stencil::{Compiled, Number, Settled, Stencil};
use halo_gpu::{Axis, Boundary, Buffer, Device, allocation, stencil};
use halo_stencil::furthest;
use std::fmt;
use std::path::PathBuf;

/// The operation in errors.
const OPERATION: &str = "a stencil over ranks";

/// Fields that several ranks share, and that a stencil steps: [`halo_gpu::stencil::Run`] over
/// several devices, with the bits of one.
///
/// With `width` planes of ghost points, and an update that reads r points away, there is an
/// exchange every `width / r` steps. If blocks have at least 2 `width` planes along the axes that
/// are cut, the planes that neighbours need are computed first and exchanged while the other planes
/// are computed: see [`Communicator::with_rims`].
///
/// ```
/// use halo_distributed::{Decomposition, Error, stencil};
/// use halo_gpu::heat3d::Heat3d;
/// use halo_gpu::{Device, Grid3, Shape3};
///
/// # fn main() -> Result<(), Error> {
/// let stencil = Heat3d::new(Grid3::new(Shape3::new(8, 9, 12), [1.0; 3])?).stencil::<f32>()?;
/// let initial: Vec<_> = (0..8 * 9 * 12).map(|i| (i % 7) as f32).collect();
/// let mut one = stencil.start(&Device::cpu(), [&initial])?;
/// one.steps(10)?;
///
/// let several = halo_distributed::run(2, |communicator| {
///     // The grid is periodic, and so is its decomposition along the axis that is cut.
///     let slabs = Decomposition::slabs([8, 9, 12], 2)?.periodic(2)?;
///     let value = |_, [i, j, k]: [usize; 3]| initial[(k * 9 + j) * 8 + i];
///     let device = Device::cpu();
///     // Three planes of ghost points: an exchange every three steps.
///     let mut run = stencil::Run::new(&communicator, &device, stencil, slabs, 3, value)?;
///     run.steps(10)?;
///     run.gather(0)
/// })?;
/// assert_eq!(several, [one.to_vec(0)?, one.to_vec(0)?]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Run<'a, U, T: Number, const D: usize, const INPUTS: usize, const OUTPUTS: usize> {
    communicator: &'a Communicator,
    /// The stencil on the whole grid.
    stencil: Stencil<U, T, D, INPUTS, OUTPUTS>,
    /// The run of this rank's part, ghost points included.
    part: stencil::Run<U, T, D, INPUTS, OUTPUTS>,
    ghosts: Ghosts<D>,
    /// How many planes of ghost points a step invalidates.
    reach: usize,
    /// For how many steps the ghost points are valid.
    fresh: usize,
    /// Whether the ghost points of past states and coefficients are outdated.
    stale: bool,
    /// The number of steps before the checkpoint from which it continues.
    steps_before: u64,
    rims: Option<Rims<stencil::Run<U, T, D, INPUTS, OUTPUTS>, D>>,
    /// Whether the rims have the current coefficients.
    have_coefficients: bool,
}

impl<'a, U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize>
    Run<'a, U, T, D, INPUTS, OUTPUTS>
where
    T: Number,
    U: Compiled<T, INPUTS, OUTPUTS>,
{
    /// The fields of `stencil`. `value` returns the initial value of an input, given by its number,
    /// at a point of the whole grid.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same grid, boundaries, decomposition,
    /// width and type; [`Error::InvalidParameter`] for a decomposition of another grid, a
    /// decomposition that is periodic along a cut axis along which a field is not, or the reverse,
    /// a cut along an axis that is [periodic with its end point](Boundary::PeriodicWithEndpoint),
    /// and a width below the reach of the update or above the points of the thinnest block;
    /// [`Error::Device`] as [`Stencil::start`], and [`Error::Elsewhere`] on the other ranks; as
    /// [`Transport::exchange`](crate::Transport::exchange).
    pub fn new(
        communicator: &'a Communicator,
        device: &Device,
        stencil: Stencil<U, T, D, INPUTS, OUTPUTS>,
        decomposition: Decomposition<D>,
        width: usize,
        mut value: impl FnMut(usize, [usize; D]) -> T,
    ) -> Result<Self, Error> {
        let axes: [Axis; D] = std::array::from_fn(|axis| Axis::ALL[axis]);
        let ends: [_; INPUTS] =
            std::array::from_fn(|field| axes.map(|axis| stencil.ends(field, axis)));
        let update = std::any::type_name::<U>();
        communicator.agree("the stencil", &(update, stencil.grid(), ends))?;
        let invalid = |parameter, given: String, required: String| Error::InvalidParameter {
            operation: OPERATION,
            parameter,
            given,
            required,
        };
        let points = points_of(&stencil);
        if decomposition.points() != points {
            let given = format!("of {:?} points", decomposition.points());
            let required = format!("of {points:?} points, like the grid");
            return Err(invalid("the decomposition", given, required));
        }
        let cut = (0..D).filter(|&axis| decomposition.parts()[axis] > 1);
        for axis in cut.clone() {
            for [low, _] in ends.iter().filter_map(|ends| ends[axis]) {
                if low == Boundary::PeriodicWithEndpoint {
                    let required =
                        format!("another boundary along {0}, because {0} is cut", axes[axis]);
                    return Err(invalid("the boundary", low.to_string(), required));
                }
                if low.is_periodic() != decomposition.is_periodic(axis) {
                    let required = format!(
                        "periodic along {} if and only if the fields are",
                        axes[axis]
                    );
                    return Err(invalid(
                        "the decomposition",
                        format!("{decomposition:?}"),
                        required,
                    ));
                }
            }
        }
        let reach = cut.map(|axis| furthest(&U::REACH, axis)).max();
        let reach = reach.unwrap_or(0);
        if width < reach {
            let required = format!("at least {reach}, the reach of the update");
            return Err(invalid(
                "the width of the ghosts",
                width.to_string(),
                required,
            ));
        }
        let ghosts = Ghosts::new(communicator, decomposition, width)?;
        let part_of = |extents, planes: [[usize; 2]; D]| -> Result<_, Error> {
            let grid = stencil.grid().with_extents(extents)?;
            let mut part = Stencil::new(*stencil.update(), grid)?;
            for (field, ends) in ends.iter().enumerate() {
                for (axis, planes) in axes.into_iter().zip(planes) {
                    let Some(mut ends) = ends[axis.index()] else {
                        continue;
                    };
                    for (end, planes) in ends.iter_mut().zip(planes) {
                        // The field continues beyond the ghost points. The part computes wrong
                        // values at its ends, and this error moves inwards by the reach of the
                        // update per step.
                        if planes > 0 {
                            *end = Boundary::OneSided;
                        }
                    }
                    part = part.with_ends(field, axis, ends)?;
                }
            }
            Ok(part)
        };
        let mut start = || -> Result<_, Error> {
            let mut inputs = [const { Vec::new() }; INPUTS];
            for (field, input) in inputs.iter_mut().enumerate() {
                *input = ghosts.values(|point| value(field, point))?;
            }
            let part = part_of(ghosts.extents(), ghosts.planes())?;
            Ok(part.start(device, inputs.each_ref().map(Vec::as_slice))?)
        };
        let part = communicator.together(start())?;
        // An update that reads no neighbours needs no messages.
        let rims = if reach == 0 {
            Ok(None)
        } else {
            Rims::new(communicator, device, &ghosts, |device, axis, extents| {
                let mut planes = ghosts.planes();
                planes[axis] = [width; 2];
                let nothing: Vec<T> = allocation::zeroed(extents.iter().product())?;
                Ok(part_of(extents, planes)?.start(device, [&nothing; INPUTS])?)
            })
        };
        let rims = communicator.together(rims)?;
        Ok(Self {
            communicator,
            stencil,
            part,
            ghosts,
            reach,
            fresh: 0,
            stale: true,
            steps_before: 0,
            rims,
            have_coefficients: false,
        })
    }

    /// Fields that continue from a checkpoint, with the bits of a run without interruption. Ranks,
    /// decomposition, width and devices may differ from those that saved it.
    ///
    /// # Errors
    ///
    /// [`Error::Unfit`] for a checkpoint with another stencil, other parameters, another grid or
    /// another type, [`Error::Corrupted`], [`Error::File`], [`Error::FileLength`], and
    /// [`Error::Elsewhere`] on the other ranks; as [`new`](Self::new).
    pub fn restore(
        communicator: &'a Communicator,
        device: &Device,
        stencil: Stencil<U, T, D, INPUTS, OUTPUTS>,
        decomposition: Decomposition<D>,
        width: usize,
        checkpoint: &Checkpoint,
    ) -> Result<Self, Error>
    where
        U: fmt::Debug,
        T: Stored,
    {
        checkpoint.require(communicator, &of(&stencil))?;
        let block = decomposition.block_among(communicator)?;
        let points = points_of(&stencil);
        let mut fields = Vec::new();
        for field in 0..INPUTS {
            fields.push(checkpoint.read::<T, D>(communicator, field, points, block)?);
        }
        let value = |field: usize, point| fields[field][point];
        let mut run = Self::new(communicator, device, stencil, decomposition, width, value)?;
        run.steps_before = checkpoint.steps();
        Ok(run)
    }

    /// Saves all inputs for [`restore`](Self::restore), and returns the folder of the checkpoint.
    ///
    /// # Errors
    ///
    /// [`Error::File`], and [`Error::Elsewhere`] on the other ranks; as
    /// [`own_values`](Self::own_values).
    pub fn save(&self, checkpoints: &Checkpoints) -> Result<PathBuf, Error>
    where
        U: fmt::Debug,
        T: Stored,
    {
        let communicator = self.communicator;
        let points = points_of(&self.stencil);
        let of = of(&self.stencil);
        let mut writer = checkpoints.begin(communicator, of, self.steps_taken())?;
        for field in 0..INPUTS {
            let own = communicator.together(self.own_values(field))?;
            writer.field(points, self.ghosts.block(), &own)?;
        }
        writer.finish()
    }

    /// Takes `count` steps. On CUDA devices the host does not wait, unless messages go through it.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`](crate::Transport::exchange); [`Error::Device`]. After an error
    /// the contents of the fields are unspecified.
    pub fn steps(&mut self, count: usize) -> Result<(), Error> {
        let is_recording = self.communicator.is_recording();
        if is_recording {
            self.fresh = 0;
        }
        let mut left = count;
        while left > 0 {
            let now = left.min(self.fresh()?);
            left -= now;
            if self.rims.is_some() && now == self.good_for() && !is_recording {
                self.round(now)?;
                continue;
            }
            self.part.steps(now)?;
            self.fresh = self.fresh.saturating_sub(now);
        }
        if is_recording {
            // A replay leaves the ghost points at least as outdated as the recording.
            self.fresh = 0;
        }
        Ok(())
    }

    /// For how many steps ghost points are valid after an exchange.
    fn good_for(&self) -> usize {
        self.ghosts.width() / self.reach
    }

    /// The number of inputs that an exchange updates if the constant inputs are up to date.
    fn exchanged(&self) -> usize {
        match self.good_for() {
            // The past state got its ghost points when it was the current state.
            1 => OUTPUTS,
            _ => OUTPUTS * (1 + U::PAST),
        }
    }

    /// Takes all steps for which the ghost points are valid, and overlaps them with the next
    /// exchange.
    fn round(&mut self, steps: usize) -> Result<(), Error> {
        let sent = self.exchanged();
        let Some(rims) = &mut self.rims else {
            return Ok(());
        };
        let taken = if self.have_coefficients {
            OUTPUTS * (1 + U::PAST)
        } else {
            INPUTS
        };
        let part = (&mut self.part, &self.ghosts);
        rims.round(self.communicator, part, [taken, sent], steps, |part| {
            Ok(part.steps(steps)?)
        })?;
        self.have_coefficients = true;
        Ok(())
    }

    /// Exchanges ghost points if due, and returns for how many steps they are valid.
    fn fresh(&mut self) -> Result<usize, Error> {
        if self.reach == 0 || self.ghosts.is_whole() {
            return Ok(usize::MAX);
        }
        if self.fresh == 0 {
            let count = if self.stale { INPUTS } else { self.exchanged() };
            self.ghosts
                .exchange(self.communicator, &mut self.part, count)?;
            self.have_coefficients &= !self.stale;
            self.stale = false;
            self.fresh = self.good_for();
        }
        Ok(self.fresh)
    }

    /// Takes steps until one changes no value by more than `tolerance`, at most `most` steps, with
    /// a check after every `every` steps, as [`halo_gpu::stencil::Run::steps_until`]. All ranks
    /// stop after the same step as one device.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same arguments; [`Error::Device`] for a
    /// tolerance that is NaN or negative, and if `every` is 0; as [`steps`](Self::steps).
    pub fn steps_until(
        &mut self,
        tolerance: f64,
        every: usize,
        most: usize,
    ) -> Result<Settled, Error> {
        let asked = (tolerance, every, most);
        self.communicator.agree("the end of the steps", &asked)?;
        Settled::after(tolerance, every, most, |count| {
            self.steps(count - 1)?;
            let before: [_; OUTPUTS] = std::array::from_fn(|output| self.own(output));
            self.steps(1)?;
            let mut change = 0.0;
            for (output, before) in before.into_iter().enumerate() {
                let now = largest_difference(&before?, &self.own(output)?)?;
                change = larger(change, now.into());
            }
            self.communicator.all_reduce(change, larger)
        })
    }

    /// A copy of the rank's own points of an input, on its device.
    fn own(&self, field: usize) -> Result<Buffer<T>, Error> {
        self.ghosts.own_points(self.input(field)?)
    }

    fn input(&self, field: usize) -> Result<&Buffer<T>, Error> {
        self.part
            .field(field)
            .ok_or_else(|| no_field::<INPUTS>(field))
    }

    /// The current values of input number `field` at the points of the whole grid, the first axis
    /// fastest, on every rank.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a field that the run does not have; as
    /// [`steps`](Self::steps).
    pub fn gather(&self, field: usize) -> Result<Vec<T>, Error> {
        self.ghosts.gather(self.communicator, self.input(field)?)
    }

    /// The same, only at this rank's own points.
    ///
    /// # Errors
    ///
    /// As [`gather`](Self::gather).
    pub fn own_values(&self, field: usize) -> Result<Vec<T>, Error> {
        self.ghosts
            .own_values(self.communicator, self.input(field)?)
    }

    /// The value of input `field` at a point of the whole grid, on every rank. Use it as a
    /// receiver.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a field that the run does not have, and for a point outside
    /// the grid; as [`steps`](Self::steps).
    pub fn at(&self, field: usize, point: [usize; D]) -> Result<T, Error> {
        self.input(field)?;
        self.communicator.settle()?;
        let own = match self.own_place(point)? {
            Some(place) => vec![self.part.at(field, place)?],
            None => Vec::new(),
        };
        let all = self.communicator.all_gather(&own)?.concat();
        match all[..] {
            [value] => Ok(value),
            _ => unreachable!("each point of the grid has one owner"),
        }
    }

    /// Adds `value` to input `field` at a point of the whole grid. Use it between steps as a
    /// source. All ranks give the same arguments.
    ///
    /// # Errors
    ///
    /// As [`at`](Self::at).
    pub fn add(&mut self, field: usize, point: [usize; D], value: T) -> Result<(), Error> {
        self.input(field)?;
        if let Some(place) = self.own_place(point)? {
            self.part.add(field, place, value)?;
        }
        // Other ranks may have a copy of the point.
        self.fresh = 0;
        self.stale |= field >= OUTPUTS;
        Ok(())
    }

    /// Sets values at points of the whole grid that no step changes, as
    /// [`halo_gpu::stencil::Run::hold`]. All ranks give the same points and values; a rank calls
    /// `value` only for the points of its part. From now on rims are not computed ahead.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same output and the same number of points;
    /// as [`halo_gpu::stencil::Run::hold`].
    pub fn hold(
        &mut self,
        output: usize,
        points: impl IntoIterator<Item = [usize; D]>,
        mut value: impl FnMut([usize; D]) -> T,
    ) -> Result<(), Error> {
        let whole = self.whole();
        self.give(output, points, |part, places| {
            part.hold(output, places, |place| value(whole.point(place)))
        })
    }

    /// As [`hold`](Self::hold), with values that change with time, as
    /// [`halo_gpu::stencil::Run::drive`]. The step number includes the steps before a checkpoint.
    ///
    /// # Errors
    ///
    /// As [`hold`](Self::hold). Later [`steps`](Self::steps) may fail as for
    /// [`halo_gpu::stencil::Run::drive`].
    pub fn drive(
        &mut self,
        output: usize,
        points: impl IntoIterator<Item = [usize; D]>,
        value: impl Fn([usize; D], u64) -> T + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let (whole, before) = (self.whole(), self.steps_before);
        self.give(output, points, |part, places| {
            part.drive(output, places, move |place, step| {
                value(whole.point(place), before + step)
            })
        })
    }

    /// Releases all held and driven points on this rank. All ranks must call it.
    pub fn release(&mut self) {
        self.part.release();
    }

    /// Calls `begin` with the places of these points in the part.
    fn give(
        &mut self,
        output: usize,
        points: impl IntoIterator<Item = [usize; D]>,
        begin: impl FnOnce(
            &mut stencil::Run<U, T, D, INPUTS, OUTPUTS>,
            Vec<[usize; D]>,
        ) -> Result<(), halo_gpu::Error>,
    ) -> Result<(), Error> {
        let whole = self.whole();
        let mut count = 0_usize;
        let mut places = Ok(Vec::new());
        for point in points {
            count += 1;
            if let Err(error) = self.require_point(point) {
                places = Err(error);
            }
            if let Ok(places) = &mut places {
                whole.add_places(point, places);
            }
        }
        let communicator = self.communicator;
        communicator.agree("the held or driven points", &(output, count))?;
        let begun = places.and_then(|places| Ok(begin(&mut self.part, places)?));
        communicator.together(begun)?;
        self.rims = None;
        Ok(())
    }

    /// The position of the part in the whole grid.
    fn whole(&self) -> Whole<D> {
        Whole {
            points: self.ghosts.decomposition().points(),
            start: self.ghosts.block().start,
            below: self.ghosts.planes().map(|[below, _]| below),
            extents: self.ghosts.extents(),
        }
    }

    fn require_point(&self, point: [usize; D]) -> Result<(), Error> {
        let points = self.ghosts.decomposition().points();
        if point.iter().zip(&points).any(|(at, points)| at >= points) {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the point",
                given: format!("{point:?}"),
                required: format!("a point of the grid of {}", self.stencil.shape()),
            });
        }
        Ok(())
    }

    /// The place in this rank's part of a point of the grid, if the point is the rank's own.
    fn own_place(&self, point: [usize; D]) -> Result<Option<[usize; D]>, Error> {
        self.require_point(point)?;
        let (block, planes) = (self.ghosts.block(), self.ghosts.planes());
        let mut place = [0; D];
        for axis in 0..D {
            let Some(at) = point[axis].checked_sub(block.start[axis]) else {
                return Ok(None);
            };
            if at >= block.extents[axis] {
                return Ok(None);
            }
            place[axis] = planes[axis][0] + at;
        }
        Ok(Some(place))
    }

    /// The number of steps taken, including those before a checkpoint.
    #[must_use]
    pub fn steps_taken(&self) -> u64 {
        self.steps_before + self.part.steps_taken()
    }

    /// The description of the computation, for the whole grid.
    #[must_use]
    pub const fn stencil(&self) -> &Stencil<U, T, D, INPUTS, OUTPUTS> {
        &self.stencil
    }
}

/// The position of a rank's part, ghost points included, in the whole grid.
#[derive(Debug, Clone, Copy)]
struct Whole<const D: usize> {
    points: [usize; D],
    /// The first of the rank's own points.
    start: [usize; D],
    /// Planes of ghost points before it.
    below: [usize; D],
    /// Points of the part.
    extents: [usize; D],
}

impl<const D: usize> Whole<D> {
    /// The point of the grid at a place in the part. Ghost points may lie beyond periodic ends.
    fn point(&self, place: [usize; D]) -> [usize; D] {
        std::array::from_fn(|axis| {
            let n = self.points[axis];
            (place[axis] + n + self.start[axis] - self.below[axis]) % n
        })
    }

    /// Adds all places in the part where a point of the grid lies.
    fn add_places(&self, point: [usize; D], places: &mut Vec<[usize; D]>) {
        let first = places.len();
        places.push([0; D]);
        for axis in 0..D {
            let n = self.points[axis];
            let nearest = (point[axis] + n + self.below[axis] - self.start[axis]) % n;
            let along = (nearest..self.extents[axis]).step_by(n);
            let so_far = places.split_off(first);
            for at in along {
                places.extend(so_far.iter().map(|place| {
                    let mut place = *place;
                    place[axis] = at;
                    place
                }));
            }
        }
    }
}

fn points_of<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize>(
    stencil: &Stencil<U, T, D, INPUTS, OUTPUTS>,
) -> [usize; D]
where
    T: Number,
    U: Compiled<T, INPUTS, OUTPUTS>,
{
    std::array::from_fn(|axis| stencil.grid().extent(Axis::ALL[axis]))
}

/// The identity of a stencil in its checkpoints; the update is written with its parameters. It
/// contains nothing that belongs to this process, because another one restores it.
fn of<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize>(
    stencil: &Stencil<U, T, D, INPUTS, OUTPUTS>,
) -> Of
where
    T: Number + Stored,
    U: Compiled<T, INPUTS, OUTPUTS> + fmt::Debug,
{
    let ends: [_; INPUTS] =
        std::array::from_fn(|field| Axis::ALL.map(|axis| stencil.ends(field, axis)));
    Of {
        family: "stencil".to_owned(),
        element: <T as Stored>::NAME.to_owned(),
        points: points_of(stencil).to_vec(),
        problem: format!("{:?}, {:?}, {ends:?}", stencil.update(), stencil.grid()),
    }
}

impl<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize> Fields<T>
    for stencil::Run<U, T, D, INPUTS, OUTPUTS>
where
    T: Number,
    U: Compiled<T, INPUTS, OUTPUTS>,
{
    fn field(&self, number: usize) -> &Buffer<T> {
        match stencil::Run::field(self, number) {
            Some(field) => field,
            None => unreachable!("no field beyond the inputs is asked for"),
        }
    }

    fn field_mut(&mut self, number: usize) -> &mut Buffer<T> {
        match stencil::Run::field_mut(self, number) {
            Some(field) => field,
            None => unreachable!("no field beyond the inputs is asked for"),
        }
    }
}

impl<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize> Strip<T>
    for stencil::Run<U, T, D, INPUTS, OUTPUTS>
where
    T: Number,
    U: Compiled<T, INPUTS, OUTPUTS>,
{
    fn steps(&mut self, count: usize) -> Result<(), Error> {
        Ok(stencil::Run::steps(self, count)?)
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
