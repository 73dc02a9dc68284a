//! Plates that are shared by ranks.

use crate::checkpoint::{Checkpoint, Checkpoints, Of};
use crate::ghosts::Fields;
use crate::rims::{Rims, Strip};
use crate::{Communicator, Decomposition, Error, Ghosted, Stored};
use halo_gpu::elementwise::{larger, largest_difference};
use halo_gpu::heat2d::{Heat2d, Iterated, Outcome, Plan, Sums, Tolerance};
use halo_gpu::{Axis, Boundary, Buffer, Device, Field2, Grid2, Scalar, Shape2, Tally};
use std::path::PathBuf;

/// A plate whose points are shared by ranks: [`halo_gpu::heat2d::Plate`] over several devices,
/// with the bits of one.
///
/// With `width` rows and columns of ghost points there is an exchange every `width` iterations:
/// each iteration makes the outermost ghost points useless, and no others. More of them mean
/// fewer exchanges, and more points that several ranks compute.
///
/// Where blocks have at least 2 `width` points along the axes that are cut, the points that
/// neighbours need are computed first, and exchanged while the others are computed: see
/// [`Communicator::with_rims`].
#[derive(Debug)]
pub struct Plate<'a, T: Scalar> {
    communicator: &'a Communicator,
    /// Of the whole plate.
    heat: Heat2d,
    /// For this rank's part, ghost points included.
    plan: Plan<T>,
    field: Ghosted<T, 2>,
    /// The part before the last iteration that was compared.
    before: Option<Buffer<T>>,
    rims: Option<Rims<Strip2<T>, 2>>,
    /// How many iterations the ghost points are good for.
    fresh: usize,
    iterations: Tally,
}

impl<'a, T: Scalar> Plate<'a, T> {
    /// The plate of `heat`, with the temperatures that `initial` gives for the points of the
    /// whole plate.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same plate, decomposition, width and
    /// type; [`Error::InvalidParameter`] unless the decomposition is one of the plate's points,
    /// without periodic axes; as [`Ghosted::new`]. [`Error::Device`] where a part with its
    /// ghost points has fewer than 3 points along an axis.
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
                required: format!("of {nx} × {ny} points, periodic along no axis"),
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
                // Beyond ghost points the plate goes on: the outermost of them keep their value,
                // and what this makes wrong moves inwards by one point in each iteration.
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

    /// A plate that goes on from a checkpoint, with the bits that it would have had without it.
    /// Ranks, decomposition, width and devices may be others than when it was saved.
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

    /// Saves it, to go on from with [`restore`](Self::restore), and returns the folder.
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
    /// As [`Transport::exchange`](crate::Transport::exchange); [`Error::Device`]. What the plate
    /// holds is then unspecified.
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
            // Replays leave them as outdated as the recording does, or more.
            self.fresh = 0;
        }
        Ok(())
    }

    /// How many iterations may come before the next exchange, which is made now if it is due.
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
    /// each `every` iterations, as [`halo_gpu::heat2d::Plate::iterate_until`] does. It stops on all
    /// ranks after as many iterations as one device does, and refuses a plate without a steady
    /// state.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same; [`Error::Device`] if the
    /// tolerance is negative, not a number, or cannot be reached, or if `every` is 0; as
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

    /// How many iterations there have been.
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

/// What a checkpoint of a plate is of.
fn of<T: Stored>(heat: &Heat2d) -> Of {
    let Shape2 { nx, ny } = heat.shape();
    Of {
        family: "heat2d".to_owned(),
        element: <T as Stored>::NAME.to_owned(),
        points: vec![nx, ny],
        problem: format!("{heat:?}"),
    }
}

/// Rows or columns that are iterated by themselves.
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
        // Both have what keeps its temperature, which an iteration leaves.
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
