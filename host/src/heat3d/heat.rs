//! What is computed, and its state.

use super::gpu::Kernels;
use crate::stencil::{Running, Settled};
use crate::{Axis, Buffer, Cost, Device, Error, Field3, Grid3, Shape3};

const OPERATION: &str = "heat3d";

/// The largest Σ α Δt / h² of a stable step in time.
const STABLE: f64 = 0.5;

/// An explicit step in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) diffusivity: f64,
    pub(super) length: f64,
}

/// Jacobi iterations of -∇²u = f on a grid, or explicit steps of u_t = α ∇²u.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat3d {
    grid: Grid3,
    step: Option<Step>,
}

impl Heat3d {
    /// Jacobi iterations on `grid`, any of one point or more.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOverflow`] for a grid that kernels cannot count: more than 2³⁰ points
    /// along an axis, or 2³¹ in a plane.
    pub fn new(grid: Grid3) -> Result<Self, Error> {
        grid.shape().points()?;
        let Shape3 { nx, ny, nz } = grid.shape();
        if halo_stencil::blocks(3, [nx, ny, nz], 1).is_none() {
            return Err(Error::IndexOverflow {
                what: format!("{OPERATION}: an extent of the grid, or the points of a plane,"),
                given: grid.shape().to_string(),
                limit: halo_stencil::MAX_EXTENT.into(),
            });
        }
        Ok(Self { grid, step: None })
    }

    /// Explicit steps in time in the place of iterations, of u_t = α ∇²u with the `diffusivity`
    /// α and the length Δt of a step, in units that go with those of the grid: m²/s and s with
    /// m.
    ///
    /// ```
    /// use halo_gpu::heat3d::Heat3d;
    /// use halo_gpu::{Error, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let heat = Heat3d::new(Grid3::new(Shape3::cube(8), [1.0, 1.0, 2.0])?)?;
    /// assert_eq!(heat.longest_step(0.5)?, 1.0 / (1.0 + 1.0 + 0.25));
    /// let refused = heat.with_time_step(0.5, 0.45);
    /// assert!(matches!(refused, Err(Error::Unstable { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] and [`Error::InvalidParameter`] for a parameter that is not a
    /// positive number, [`Error::Unstable`] for a step above
    /// [`longest_step`](Self::longest_step).
    pub fn with_time_step(mut self, diffusivity: f64, time_step: f64) -> Result<Self, Error> {
        let limit = self.longest_step(diffusivity)?;
        positive("the time step", time_step)?;
        if time_step > limit {
            return Err(Error::Unstable {
                operation: OPERATION,
                time_step,
                limit,
            });
        }
        self.step = Some(Step {
            diffusivity,
            length: time_step,
        });
        Ok(self)
    }

    /// The longest stable step: Δt = 1 / (2 α (1/h_x² + 1/h_y² + 1/h_z²)), where the mode that
    /// changes sign from point to point keeps its size.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] and [`Error::InvalidParameter`] for a diffusivity that is not a
    /// positive number, or for which the step is beyond what f64 holds.
    pub fn longest_step(&self, diffusivity: f64) -> Result<f64, Error> {
        positive("the diffusivity", diffusivity)?;
        let squares = self.inverse_squares();
        let limit = STABLE / diffusivity / squares.iter().sum::<f64>();
        if !limit.is_normal() {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the diffusivity",
                given: diffusivity.to_string(),
                required: "such that spacing² / diffusivity is in the range of f64".to_owned(),
            });
        }
        Ok(limit)
    }

    /// 1 / h² along x, y and z.
    fn inverse_squares(&self) -> [f64; 3] {
        Axis::ALL.map(|axis| self.grid.spacing(axis).powi(-2))
    }

    /// The grid.
    #[must_use]
    pub const fn grid(&self) -> &Grid3 {
        &self.grid
    }

    /// The length of a step in time; `None` for iterations.
    #[must_use]
    pub fn time_step(&self) -> Option<f64> {
        self.step.map(|step| step.length)
    }

    /// The least that a step or an iteration in `T` has to do.
    #[must_use]
    pub fn cost<T: Kernels>(&self) -> Cost {
        // `new` found the product to fit.
        let Shape3 { nx, ny, nz } = self.grid.shape();
        let points = (nx * ny * nz) as u64;
        let (fields, flops) = match self.step {
            Some(_) => (2, 15),
            None => (3, 10),
        };
        Cost {
            bytes: points * fields * size_of::<T>() as u64,
            flops: points * flops,
        }
    }

    /// `initial` on a device, without sources.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] for a field of another shape than the grid's;
    /// [`Error::OutOfMemory`] and what else [`Device::upload`] fails with.
    pub fn start<T: Kernels>(
        &self,
        device: &Device,
        initial: &Field3<T>,
    ) -> Result<Heat<T>, Error> {
        self.start_by(device, initial, None)
    }

    /// `initial` on a device, with the source f of iterations.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and [`Error::InvalidParameter`] for steps in time, which have
    /// no source.
    pub fn start_with_source<T: Kernels>(
        &self,
        device: &Device,
        initial: &Field3<T>,
        source: &Field3<T>,
    ) -> Result<Heat<T>, Error> {
        if self.step.is_some() {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the source",
                given: "one of steps in time".to_owned(),
                required: "one of iterations".to_owned(),
            });
        }
        self.start_by(device, initial, Some(source))
    }

    fn start_by<T: Kernels>(
        &self,
        device: &Device,
        initial: &Field3<T>,
        source: Option<&Field3<T>>,
    ) -> Result<Heat<T>, Error> {
        for (what, field) in [("the initial field", Some(initial)), ("the source", source)] {
            if let Some(field) = field
                && field.shape() != self.grid.shape()
            {
                return Err(Error::ShapeMismatch {
                    what: format!("{OPERATION}: {what}"),
                    required: self.grid.shape().to_string(),
                    given: field.shape().to_string(),
                });
            }
        }
        let squares = self.inverse_squares();
        let running = match self.step {
            Some(Step {
                diffusivity,
                length,
            }) => {
                let ratios = squares.map(|square| diffusivity * length * square);
                T::start_steps(self.grid, ratios, device, initial.as_slice())?
            }
            None => {
                let weight = 0.5 / squares.iter().sum::<f64>();
                let weights = squares.map(|square| weight * square);
                let none;
                let source = match source {
                    Some(source) => source,
                    None => {
                        none = Field3::filled(self.grid.shape(), T::nearest(0.0))?;
                        &none
                    }
                };
                let fields = [initial.as_slice(), source.as_slice()];
                T::start_iterations(self.grid, weights, weight, device, fields)?
            }
        };
        Ok(Heat {
            heat: *self,
            running,
        })
    }
}

/// Refuses what is not a positive number.
fn positive(parameter: &'static str, given: f64) -> Result<(), Error> {
    if !given.is_finite() {
        return Err(Error::NonFinite {
            operation: OPERATION,
            parameter,
            given,
        });
    }
    if given <= 0.0 {
        return Err(Error::InvalidParameter {
            operation: OPERATION,
            parameter,
            given: given.to_string(),
            required: "positive".to_owned(),
        });
    }
    Ok(())
}

/// A temperature on a device, from step to step: [`Heat3d::start`].
#[derive(Debug)]
pub struct Heat<T: Kernels> {
    heat: Heat3d,
    running: Box<dyn Running<T>>,
}

impl<T: Kernels> Heat<T> {
    /// What is computed.
    #[must_use]
    pub const fn heat(&self) -> &Heat3d {
        &self.heat
    }

    /// Takes `count` steps in time, or iterations. On CUDA devices this does not wait for them.
    ///
    /// # Errors
    ///
    /// What a launch can fail with.
    pub fn steps(&mut self, count: usize) -> Result<(), Error> {
        self.running.steps(count)
    }

    /// Goes on until the last step has changed no point by more than `tolerance`, at most
    /// `most` steps, and looks after `every` of them. Waits for each look.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a tolerance that is NaN or negative, and for looks that
    /// are no step apart; as [`steps`](Self::steps).
    pub fn settle(&mut self, tolerance: f64, every: usize, most: usize) -> Result<Settled, Error> {
        self.running.settle(tolerance, every, most)
    }

    /// How many steps have been taken.
    #[must_use]
    pub fn steps_taken(&self) -> u64 {
        self.running.steps_taken()
    }

    /// The time that they have taken; 0 for iterations.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.heat.time_step().unwrap_or(0.0) * self.steps_taken() as f64
    }

    /// The temperature, on the device.
    #[must_use]
    pub fn buffer(&self) -> &Buffer<T> {
        self.running.field(0)
    }

    /// The same to be written: a source between steps.
    #[must_use]
    pub fn buffer_mut(&mut self) -> &mut Buffer<T> {
        self.running.field_mut(0)
    }

    /// The temperature on the host. Waits for the steps.
    ///
    /// # Errors
    ///
    /// As [`Buffer::to_vec`].
    pub fn field(&self) -> Result<Field3<T>, Error> {
        Field3::from_vec(self.heat.grid.shape(), self.buffer().to_vec()?)
    }
}
