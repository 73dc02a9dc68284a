//! Plates that are shared by ranks.

use crate::region::pieces;
use crate::rims::Rims;
use crate::{Communicator, Decomposition, Error, Ghosted};
use halo_gpu::elementwise::largest_difference;
use halo_gpu::heat2d::{Heat2d, Outcome, Tolerance, Wall, Walls};
use halo_gpu::{Buffer, Device, Field2, Scalar, Shape2};

/// A plate whose points are shared by ranks: [`halo_gpu::heat2d::Plate`] over several devices,
/// with the bits of one.
///
/// With `width` rows and columns of ghost points there is an exchange every `width` sweeps:
/// each sweep makes the outermost ghost points useless, and no others. More of them mean fewer
/// exchanges, and more points that several ranks sweep.
///
/// Where rows alone are cut, into blocks of at least 2 `width` rows, and devices are no CPUs, the
/// rows that neighbours need are computed first, and exchanged while the others are.
#[derive(Debug)]
pub struct Plate<'a, T: Scalar> {
    communicator: &'a Communicator,
    /// Of the whole plate.
    heat: Heat2d,
    /// Of this rank's part, ghost points included.
    part: Heat2d,
    field: Ghosted<T, 2>,
    scratch: Buffer<T>,
    rims: Option<Rims<T>>,
    /// How many sweeps the ghost points are good for.
    fresh: usize,
    sweeps: u64,
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
        let [[left, right], [bottom, top]] = field.ghosts();
        // Beyond ghost points the plate goes on: the outermost of them keep their value, and
        // what this makes wrong moves inwards by one point in each sweep.
        let wall = |ghosts, wall| if ghosts > 0 { Wall::Fixed } else { wall };
        let walls = heat.walls();
        let [nx, ny] = field.extents();
        let part = heat.with_shape(Shape2::new(nx, ny))?.with_walls(Walls {
            left: wall(left, walls.left),
            right: wall(right, walls.right),
            bottom: wall(bottom, walls.bottom),
            top: wall(top, walls.top),
        });
        Ok(Self {
            communicator,
            heat,
            part,
            scratch: field.buffer().try_clone()?,
            rims: Rims::new(communicator, &part, &field)?,
            field,
            fresh: 0,
            sweeps: 0,
        })
    }

    /// Sweeps the given number of times.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`](crate::Transport::exchange); [`Error::Device`]. What the plate
    /// holds is then unspecified.
    pub fn sweep(&mut self, sweeps: usize) -> Result<(), Error> {
        let mut left = sweeps;
        while left > 0 {
            let now = left.min(self.fresh()?);
            if let Some(rims) = &mut self.rims
                && now == self.field.width()
            {
                rims.round(self.communicator, &mut self.field, |field| {
                    let current = field.buffer_mut();
                    Ok(self.part.sweeps(current, &mut self.scratch, now)?)
                })?;
                self.swept(now);
                self.fresh = now;
                left -= now;
                continue;
            }
            let (current, scratch) = (self.field.buffer_mut(), &mut self.scratch);
            self.part.sweeps(current, scratch, now)?;
            self.swept(now);
            left -= now;
        }
        Ok(())
    }

    /// How many sweeps may come before the next exchange, which is made now if it is due.
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

    fn swept(&mut self, sweeps: usize) {
        self.fresh = self.fresh.saturating_sub(sweeps);
        self.sweeps += sweeps as u64;
    }

    /// Sweeps until the plate is steady to a tolerance, at most `most` times, and looks after
    /// each `every` sweeps, as [`halo_gpu::heat2d::Plate::sweep_until`] does: it stops on all
    /// ranks in the sweep in which that stops on one device.
    ///
    /// Whether a plate that is insulated all around can come to rest is not looked at: where it
    /// cannot, this ends after `most` sweeps.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the tolerance is negative or not a number, or if `every`
    /// is 0; [`Error::Disagreement`] unless all ranks give the same; as [`sweep`](Self::sweep).
    pub fn sweep_until(
        &mut self,
        tolerance: impl Into<Tolerance<T>>,
        every: usize,
        most: usize,
    ) -> Result<Outcome<T>, Error> {
        let tolerance = tolerance.into();
        let asked = (tolerance, every, most);
        self.communicator.agree("the end of the sweeps", &asked)?;
        let invalid = |parameter, given, required: &str| Error::InvalidParameter {
            operation: "a plate",
            parameter,
            given,
            required: required.to_owned(),
        };
        let (Tolerance::Change(bound) | Tolerance::Residual(bound)) = tolerance;
        if !(bound >= T::from(0.0)) {
            return Err(invalid("the tolerance", bound.to_string(), "at least 0"));
        }
        if every == 0 {
            let parameter = "sweeps between two looks";
            return Err(invalid(parameter, "0".to_owned(), "at least 1"));
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
            outcome.change = self.sweep_and_compare()?;
            outcome.residual = self.heat.residual_of(outcome.change);
            left -= round;
            outcome.sweeps += round as u64;
            outcome.converged = match tolerance {
                Tolerance::Change(_) => outcome.change <= bound,
                Tolerance::Residual(_) => outcome.residual <= bound,
            };
        }
        Ok(outcome)
    }

    /// One sweep, and the largest change that it makes anywhere on the plate; NaN if there is
    /// a NaN.
    fn sweep_and_compare(&mut self) -> Result<T, Error> {
        self.fresh()?;
        // Both get the walls, which a sweep leaves.
        self.scratch.copy_from(self.field.buffer())?;
        self.part.sweep(self.field.buffer(), &mut self.scratch)?;
        std::mem::swap(self.field.buffer_mut(), &mut self.scratch);
        self.swept(1);
        let (new, old) = (self.field.buffer(), &self.scratch);
        let own = if self.field.is_whole() {
            largest_difference(old, new)?
        } else {
            largest_difference(&self.without_ghosts(old)?, &self.without_ghosts(new)?)?
        };
        // A NaN is larger than all.
        let is_nan = |value: T| value.partial_cmp(&value).is_none();
        let larger = |a, b| if a >= b || is_nan(a) { a } else { b };
        self.communicator.all_reduce(own, larger)
    }

    /// The rank's own points alone.
    fn without_ghosts(&self, buffer: &Buffer<T>) -> Result<Buffer<T>, Error> {
        let own = self.field.own();
        let mut copy = buffer.device().zeros(crate::region::points(&own))?;
        let mut done = 0;
        for piece in pieces(self.field.extents(), &own) {
            let next = done + piece.len();
            copy.view_mut(done..next)?.copy_from(buffer.view(piece)?)?;
            done = next;
        }
        Ok(copy)
    }

    /// How many sweeps there have been.
    #[must_use]
    pub const fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// What is computed, on the whole plate.
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
