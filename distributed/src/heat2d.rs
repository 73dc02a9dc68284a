//! Heat on a plate that several ranks share.

use crate::checkpoint::{Checkpoint, Checkpoints, Of};
use crate::ghosts::Fields;
use crate::rims::{Rims, Strip};
use crate::{Communicator, Decomposition, Error, Ghosted, Stored};
use halo_gpu::elementwise::{larger, largest_difference};
use halo_gpu::heat2d::{Heat2d, Iterated, Outcome, Plan, Sums, Tolerance};
use halo_gpu::{Axis, Boundary, Buffer, Device, Field2, Grid2, Scalar, Shape2, Tally};
use std::path::PathBuf;

/// A plate whose points several ranks share: [`halo_gpu::heat2d::Plate`] over several devices, with
/// the bits of one.
///
/// With `width` rows and columns of ghost points there is an exchange every `width` iterations,
/// because each iteration invalidates the outermost valid ghost points. A larger `width` means
/// fewer exchanges, and more points that several ranks compute.
///
/// If blocks have at least 2 `width` points along the axes that are cut, the points that neighbours
/// need are computed first and exchanged while the other points are computed: see
/// [`Communicator::with_rims`].
#[derive(Debug)]
pub struct Plate<'a, T: Scalar> {
    communicator: &'a Communicator,
    /// The description of the whole plate.
    heat: Heat2d,
    /// The plan for this rank's part, ghost points included.
    plan: Plan<T>,
    field: Ghosted<T, 2>,
    /// The part before the last iteration whose change was measured.
    before: Option<Buffer<T>>,
    rims: Option<Rims<Strip2<T>, 2>>,
    /// For how many iterations the ghost points are valid.
    fresh: usize,
    iterations: Tally,
}

impl<'a, T: Scalar> Plate<'a, T> {
    /// The plate of `heat`, with the temperatures that `initial` gives for the points of the
    /// whole plate.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same plate, decomposition, width and type;
    /// [`Error::InvalidParameter`] unless the decomposition has the plate's points and no periodic
    /// axis; as [`Ghosted::new`]; [`Error::Device`] if a part with its ghost points has fewer than
    /// 3 points along an axis.
    pub fn new(
        communicator: &'a Communicator,
        device: &Device,
        heat: Heat2d,
        decomposition: Decomposition<2>,
        width: usize,
        initial: impl FnMut([usize; 2]) -> T,
    ) -> Result<Self, Error> {
        communicator.agree("the plate", &heat)?;
        let Shape2 { nx, ny } = heat.shape();
        let fits = Decomposition::new([nx, ny], decomposition.parts())?;
        if decomposition != fits {
            return Err(Error::InvalidParameter {
                operation: "a plate",
                parameter: "the decomposition",
                given: format!("{decomposition:?}"),
                required: format!("of {nx} × {ny} points, not periodic along any axis"),
            });
        }
        let field = Ghosted::new(communicator, device, decomposition, width, initial)?;
        let [nx, ny] = field.extents();
        let axes = [Axis::X, Axis::Y];
        let spacing = axes.map(|axis| heat.grid().spacing(axis));
        let mut grid = Grid2::new(Shape2::new(nx, ny), spacing)?;
        for (axis, ghosts) in axes.into_iter().zip(field.ghosts()) {
            let mut ends = heat.grid().ends(axis);
            for (end, ghosts) in ends.iter_mut().zip(ghosts) {
                // The plate continues beyond the ghost points. The part keeps the outermost ghost
                // points constant, and the error this causes moves inwards by one point per
                // iteration.
                if ghosts > 0 {
                    *end = Boundary::DirichletOnPoint;
                }
            }
            grid = grid.with_ends(axis, ends)?;
        }
        let part = heat.with_grid(&grid)?;
        let plan = communicator.together(part.plan(device).map_err(Error::from))?;
        let rims = Rims::new(
            communicator,
            device,
            field.cut(),
            |device, cut, [nx, ny]| {
                let mut grid = Grid2::new(Shape2::new(nx, ny), spacing)?;
                for axis in axes {
                    let mut ends = part.grid().ends(axis);
                    if axis.index() == cut {
                        ends = [Boundary::DirichletOnPoint; 2];
                    }
                    grid = grid.with_ends(axis, ends)?;
                }
                Ok(Strip2 {
                    plan: part.with_grid(&grid)?.plan(device)?,
                    points: device.zeros(nx * ny)?,
                })
            },
        );
        let rims = communicator.together(rims)?;
        Ok(Self {
            communicator,
            heat,
            plan,
            rims,
            field,
            before: None,
            fresh: 0,
            iterations: Tally::default(),
        })
    }

    /// A plate that continues from a checkpoint, with the bits of a run without interruption.
    /// Ranks, decomposition, width and devices may differ from those that saved it.
    ///
    /// # Errors
    ///
    /// [`Error::Unfit`] for a checkpoint of another plate or of another type,
    /// [`Error::Corrupted`], [`Error::File`], [`Error::FileLength`], and [`Error::Elsewhere`] on
    /// the other ranks; as [`new`](Self::new).
    pub fn restore(
        communicator: &'a Communicator,
        device: &Device,
        heat: Heat2d,
        decomposition: Decomposition<2>,
        width: usize,
        checkpoint: &Checkpoint,
    ) -> Result<Self, Error>
    where
        T: Stored,
    {
        checkpoint.require(communicator, &of::<T>(&heat))?;
        let Shape2 { nx, ny } = heat.shape();
        let block = decomposition.block_among(communicator)?;
        let saved = checkpoint.read(communicator, 0, [nx, ny], block)?;
        let value = |point| saved[point];
        let plate = Self::new(communicator, device, heat, decomposition, width, value)?;
        plate.iterations.add(device, checkpoint.steps());
        Ok(plate)
    }

    /// Saves the plate for [`restore`](Self::restore), and returns the folder of the checkpoint.
    ///
    /// # Errors
    ///
    /// [`Error::File`], and [`Error::Elsewhere`] on the other ranks; as
    /// [`Ghosted::own_values`]; as [`Transport::exchange`](crate::Transport::exchange).
    pub fn save(&self, checkpoints: &Checkpoints) -> Result<PathBuf, Error>
    where
        T: Stored,
    {
        let communicator = self.communicator;
        let own = communicator.together(self.field.own_values(communicator))?;
        let Shape2 { nx, ny } = self.heat.shape();
        let of = of::<T>(&self.heat);
        let mut writer = checkpoints.begin(communicator, of, self.iterations())?;
        writer.field([nx, ny], self.field.block(), &own)?;
        writer.finish()
    }

    /// Iterates the given number of times.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`](crate::Transport::exchange); [`Error::Device`]. After an error
    /// the contents of the plate are unspecified.
    pub fn iterate(&mut self, count: usize) -> Result<(), Error> {
        let is_recording = self.communicator.is_recording();
        if is_recording {
            self.fresh = 0;
        }
        let mut left = count;
        while left > 0 {
            let now = left.min(self.fresh()?);
            if let Some(rims) = &mut self.rims
                && now == self.field.width()
                && !is_recording
            {
                let (plan, part) = (&mut self.plan, self.field.parts_mut());
                rims.round(self.communicator, part, [1, 1], now, |field| {
                    Ok(plan.iterate(field, now)?)
                })?;
                self.iterated(now);
                self.fresh = now;
                left -= now;
                continue;
            }
            self.plan.iterate(self.field.buffer_mut(), now)?;
            self.iterated(now);
            left -= now;
        }
        if is_recording {
            // A replay leaves the ghost points at least as outdated as the recording.
            self.fresh = 0;
        }
        Ok(())
    }

    /// Exchanges ghost points if due, and returns for how many iterations they are valid.
    fn fresh(&mut self) -> Result<usize, Error> {
        if self.field.is_whole() {
            return Ok(usize::MAX);
        }
        if self.fresh == 0 {
            self.field.exchange(self.communicator)?;
            self.fresh = self.field.width();
        }
        Ok(self.fresh)
    }

    fn iterated(&mut self, count: usize) {
        self.fresh = self.fresh.saturating_sub(count);
        let device = self.field.buffer().device();
        self.iterations.add(device, count as u64);
    }

    /// Iterates until the plate is steady to a tolerance, at most `most` times, with a check after
    /// every `every` iterations, as [`halo_gpu::heat2d::Plate::iterate_until`]. All ranks stop
    /// after the same number of iterations as one device. A plate without a steady state is an
    /// error.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same arguments; [`Error::Device`] if the
    /// tolerance is negative, NaN, or cannot be reached, or if `every` is 0; as
    /// [`iterate`](Self::iterate).
    pub fn iterate_until(
        &mut self,
        tolerance: impl Into<Tolerance<T>>,
        every: usize,
        most: usize,
    ) -> Result<Outcome<T>, Error> {
        let tolerance = tolerance.into();
        let asked = (tolerance, every, most);
        self.communicator
            .agree("the end of the iterations", &asked)?;
        let heat = self.heat;
        heat.iterate_until(self, tolerance, every, most)
    }

    /// The number of iterations so far.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.iterations.get()
    }

    /// The description of the computation, for the whole plate.
    #[must_use]
    pub const fn heat(&self) -> &Heat2d {
        &self.heat
    }

    /// This rank's part.
    #[must_use]
    pub const fn part(&self) -> &Ghosted<T, 2> {
        &self.field
    }

    /// The temperatures of the whole plate, on every rank.
    ///
    /// # Errors
    ///
    /// As [`Ghosted::gather`].
    pub fn field(&self) -> Result<Field2<T>, Error> {
        let whole = self.field.gather(self.communicator)?;
        Ok(Field2::from_vec(self.heat.shape(), whole)?)
    }
}

/// The identity of a plate in its checkpoints.
fn of<T: Stored>(heat: &Heat2d) -> Of {
    let Shape2 { nx, ny } = heat.shape();
    Of {
        family: "heat2d".to_owned(),
        element: <T as Stored>::NAME.to_owned(),
        points: vec![nx, ny],
        problem: format!("{heat:?}"),
    }
}

/// Rows or columns at a cut, which are iterated separately.
struct Strip2<T: Scalar> {
    plan: Plan<T>,
    points: Buffer<T>,
}

impl<T: Scalar> Fields<T> for Strip2<T> {
    fn field(&self, _: usize) -> &Buffer<T> {
        &self.points
    }

    fn field_mut(&mut self, _: usize) -> &mut Buffer<T> {
        &mut self.points
    }
}

impl<T: Scalar> Strip<T> for Strip2<T> {
    fn steps(&mut self, count: usize) -> Result<(), Error> {
        Ok(self.plan.iterate(&mut self.points, count)?)
    }
}

impl<T: Scalar> Iterated<T> for Plate<'_, T> {
    type Error = Error;

    fn iterate(&mut self, count: usize) -> Result<(), Error> {
        self.iterate(count)
    }

    fn iterate_and_compare(&mut self) -> Result<T, Error> {
        self.fresh()?;
        // Both buffers hold the points with constant temperature, which an iteration does not
        // write.
        let before = match &mut self.before {
            Some(before) => {
                before.copy_from(self.field.buffer())?;
                before
            }
            before => before.insert(self.field.buffer().try_clone()?),
        };
        self.plan.iterate_into(self.field.buffer(), before)?;
        std::mem::swap(self.field.buffer_mut(), before);
        self.iterated(1);
        let (new, Some(old)) = (self.field.buffer(), &self.before) else {
            unreachable!("it has just been there");
        };
        let own = if self.field.is_whole() {
            largest_difference(old, new)?
        } else {
            largest_difference(&self.field.own_points(old)?, &self.field.own_points(new)?)?
        };
        self.communicator.all_reduce(own, larger)
    }

    fn sums(&self) -> Result<[Sums; 2], Error> {
        let block = self.field.block();
        let [i, j] = block.start;
        let values = self.field.own_points(self.field.buffer())?.to_vec()?;
        let rows = values.chunks_exact(block.extents[0]);
        let own = rows.zip(j..).fold(Sums::ZERO, |sums, (row, j)| {
            sums.with_row(self.heat.shape(), [i, j], row)
        });
        let all = self.communicator.all_reduce(own, Sums::and)?;
        Ok([all, Sums::ZERO])
    }
}
