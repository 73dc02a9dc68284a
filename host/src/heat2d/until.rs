//! Iterations until a plate is steady, on one device and on several.

use super::Heat2d;
use super::check::{OPERATION, invalid};
use super::ends::all_neumann;
use super::heat::STABLE_RATIO;
use super::sums::Sums;
use crate::Error;
use crate::scalar::Scalar;
use crate::stencil::{Settled, require_looks};

/// When a plate is steady enough for [`Plate::iterate_until`](super::Plate::iterate_until).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance<T> {
    /// When an iteration changes no temperature by more.
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

/// How [`Plate::iterate_until`](super::Plate::iterate_until) ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome<T> {
    /// Iterations that were made.
    pub iterations: u64,
    /// The largest change of a temperature by the last of them; infinite if there was
    /// none, NaN if there is a NaN on the plate.
    pub change: T,
    /// The largest residual of the plate before that iteration ([`Tolerance::Residual`]): 4 times
    /// the change, or for steps in time h² / (α Δt) times the change, to within a few roundings of
    /// the temperatures. Infinite or NaN where the change is.
    pub residual: T,
    /// Whether that is within the tolerance.
    pub converged: bool,
}

/// A plate that can be iterated, on one device or on several.
pub trait Iterated<T> {
    /// The error of an iteration.
    type Error: From<Error>;

    /// So many iterations.
    ///
    /// # Errors
    ///
    /// What an iteration can fail with.
    fn iterate(&mut self, count: usize) -> Result<(), Self::Error>;

    /// One iteration, and the largest change of a temperature by it; NaN if there is a NaN.
    ///
    /// # Errors
    ///
    /// As [`iterate`](Self::iterate).
    fn iterate_and_compare(&mut self) -> Result<T, Self::Error>;

    /// Of the temperatures, and of the source.
    ///
    /// # Errors
    ///
    /// What copies to the host can fail with.
    fn sums(&self) -> Result<[Sums; 2], Self::Error>;
}

impl Heat2d {
    /// What [`Plate::iterate_until`](super::Plate::iterate_until) does, on any plate that is
    /// iterated as this says.
    ///
    /// # Errors
    ///
    /// As there.
    #[doc(hidden)]
    pub fn iterate_until<T: Scalar, P: Iterated<T>>(
        &self,
        plate: &mut P,
        tolerance: Tolerance<T>,
        every: usize,
        most: usize,
    ) -> Result<Outcome<T>, P::Error> {
        let (Tolerance::Change(bound) | Tolerance::Residual(bound)) = tolerance;
        require_looks(OPERATION, "iterations between two checks", bound, every)?;
        if all_neumann(self.grid()) {
            let change = self.change_that_stays::<T>(plate.sums()?);
            let least = match tolerance {
                Tolerance::Change(_) => change,
                Tolerance::Residual(_) => change / self.part_of_residual(),
            };
            if least > bound.into() {
                let required = format!(
                    "at least {least:e}, by which a plate with Neumann boundaries all around \
                     goes on to change with this source and from these temperatures"
                );
                return Err(invalid("the tolerance", bound.to_string(), required).into());
            }
        }
        let mut change = T::from(f32::INFINITY);
        let settled = Settled::after(bound.into(), every, most, |count| {
            plate.iterate(count - 1)?;
            change = plate.iterate_and_compare()?;
            let looked_at = match tolerance {
                Tolerance::Change(_) => change,
                Tolerance::Residual(_) => self.residual_of(change),
            };
            Ok::<_, P::Error>(looked_at.into())
        })?;
        Ok(Outcome {
            iterations: settled.steps as u64,
            change,
            residual: self.residual_of(change),
            converged: settled.converged,
        })
    }

    /// The least change in every later iteration of some temperature of a plate with Neumann
    /// boundaries all around; 0 where it is less than rounding errors.
    fn change_that_stays<T: Scalar>(&self, [plate, source]: [Sums; 2]) -> f64 {
        let shape = self.shape();
        let change = match self.step() {
            // The longest stable step is a Jacobi iteration.
            Some(step) if step.ratio < STABLE_RATIO => step.ratio * source.mean(shape).abs(),
            _ => plate.change_that_stays(source, shape),
        };
        let rounding = 2.0 * T::UNIT_ROUNDOFF * (plate.largest + source.largest);
        if change > rounding { change } else { 0.0 }
    }
}
