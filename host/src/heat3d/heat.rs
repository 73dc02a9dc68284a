//! Describes a computation of heat in space: `Heat3d`, a grid and the kind of step.

use super::gpu::Kernels;
use crate::argument::Argument;
use crate::error::require_positive;
use crate::shape::require_shape;
use crate::stencil::{self, Stencil};
use crate::{Axis, Device, Error, Field3, Grid3};
use gpu_kernels::registry::Cost;

/// The family's name in errors.
const OPERATION: &str = "heat3d";

/// The steps of a [`Heat3d`] on a device, on buffers of the caller: `step` computes the new field
/// from the old one.
pub type Plan<T> = stencil::Plan<<T as Kernels>::Step, T, 3, 1, 1>;

/// A body on a device: `steps` advances its field, `steps_until` advances it until it changes
/// little, and `to_vec(0)` copies it to the host.
pub type Body<T> = stencil::Run<<T as Kernels>::Step, T, 3, 1, 1>;

/// Like [`Plan`], with a source: `step` takes the old field and the heat that a step adds
/// ([`Heat3d::heating`]).
pub type HeatedPlan<T> = stencil::Plan<<T as Kernels>::Heated, T, 3, 2, 1>;

/// A body with a heat source, on a device.
pub type HeatedBody<T> = stencil::Run<<T as Kernels>::Heated, T, 3, 2, 1>;

/// The heat equation on a grid, with Jacobi iterations or time steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat3d {
    grid: Grid3,
    /// The diffusivity and the time step; `None` for Jacobi iterations.
    time: Option<(f64, f64)>,
    /// `α Δt / h²` along x, y and z.
    ratios: [f64; 3],
}

impl Heat3d {
    /// Jacobi iterations of Laplace's equation, or with a source of Poisson's equation: the body
    /// approaches its steady temperature.
    ///
    /// ```
    /// use halo_gpu::heat3d::Heat3d;
    /// use halo_gpu::{Axis, Boundary, Device, Field3, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // A cube with one hot face: six of them, turned, add up to 1 in the middle.
    /// let shape = Shape3::cube(9);
    /// let [cold, hot] = [Boundary::Dirichlet(0.0), Boundary::Dirichlet(1.0)];
    /// let grid = Grid3::new(shape, [1.0; 3])?
    ///     .with_boundaries(cold)?
    ///     .with_ends(Axis::Z, [hot, cold])?;
    /// let mut cube = Heat3d::new(grid).start(&Device::cpu(), &Field3::filled(shape, 0.0_f64)?)?;
    /// assert!(cube.steps_until(1e-12, 50, 5000)?.converged);
    /// let cube = Field3::from_vec(shape, cube.to_vec(0)?)?;
    /// assert!((cube[(4, 4, 4)] - 1.0 / 6.0).abs() < 1e-10);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn new(grid: Grid3) -> Self {
        // (1 / h_a²) / (2 Σ 1 / h_b²), computed without squares that could overflow or underflow.
        let ratios = Axis::ALL.map(|a| {
            let relative = Axis::ALL.map(|b| (grid.spacing(a) / grid.spacing(b)).powi(2));
            0.5 / relative.iter().sum::<f64>()
        });
        Self {
            grid,
            time: None,
            ratios,
        }
    }

    /// Uses time steps of the heat equation instead, with the `diffusivity` α and the time step Δt,
    /// in consistent units: m²/s and s, with spacings in m.
    ///
    /// ```
    /// use halo_gpu::heat3d::Heat3d;
    /// use halo_gpu::{Error, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let heat = Heat3d::new(Grid3::new(Shape3::cube(32), [0.5, 1.0, 1.0])?);
    /// assert!((heat.longest_step(2.0) - 1.0 / 24.0).abs() < 1e-15); // 1 / (2 · 2 (4 + 1 + 1))
    /// let refused = heat.with_time_step(2.0, 0.05);
    /// assert!(matches!(refused, Err(Error::Unstable { limit, .. }) if limit < 0.042));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] and [`Error::InvalidParameter`] for a parameter that is not a positive
    /// number, and if h² / α is outside the range of f64; [`Error::Unstable`] for a time step
    /// longer than [`longest_step`](Self::longest_step).
    pub fn with_time_step(self, diffusivity: f64, time_step: f64) -> Result<Self, Error> {
        let parameters = [
            ("the diffusivity", diffusivity),
            ("the time step", time_step),
        ];
        for (parameter, given) in parameters {
            require_positive(OPERATION, parameter, given)?;
        }
        let limit = self.longest_step(diffusivity);
        if !limit.is_normal() {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the diffusivity",
                given: diffusivity.to_string(),
                required: format!(
                    "such that spacing² / diffusivity is in the range of f64, with the spacings {:?}",
                    Axis::ALL.map(|axis| self.grid.spacing(axis))
                ),
            });
        }
        if time_step > limit {
            return Err(Error::Unstable {
                operation: OPERATION,
                time_step,
                limit,
            });
        }
        let jacobi = Self::new(self.grid);
        Ok(Self {
            time: Some((diffusivity, time_step)),
            // At the limit these are exactly the ratios of a Jacobi iteration.
            ratios: jacobi.ratios.map(|ratio| ratio * (time_step / limit)),
            ..self
        })
    }

    /// The longest stable time step, `1 / (2 α Σ 1 / h²)`, in the unit of h² divided by that of the
    /// `diffusivity` α.
    #[must_use]
    pub fn longest_step(&self, diffusivity: f64) -> f64 {
        let x = self.grid.spacing(Axis::X);
        Self::new(self.grid).ratios[0] * (x / diffusivity) * x
    }

    /// The grid.
    #[must_use]
    pub const fn grid(&self) -> &Grid3 {
        &self.grid
    }

    /// The diffusivity; `None` for Jacobi iterations.
    #[must_use]
    pub fn diffusivity(&self) -> Option<f64> {
        self.time.map(|(diffusivity, _)| diffusivity)
    }

    /// The time step; `None` for Jacobi iterations.
    #[must_use]
    pub fn time_step(&self) -> Option<f64> {
        self.time.map(|(_, time_step)| time_step)
    }

    /// `α Δt / h²` along x, y and z. For Jacobi iterations these are the ratios of a time step at
    /// the limit.
    #[must_use]
    pub const fn ratios(&self) -> [f64; 3] {
        self.ratios
    }

    /// This computation as a stencil.
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan).
    pub fn stencil<T: Kernels>(&self) -> Result<Stencil<T::Step, T, 3, 1, 1>, Error> {
        T::steps(self.ratios.map(T::nearest), self.grid)
    }

    /// This computation as a stencil with a source, on the field and its
    /// [`heating`](Self::heating).
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan).
    pub fn heated<T: Kernels>(&self) -> Result<Stencil<T::Heated, T, 3, 2, 1>, Error> {
        T::heated(self.ratios.map(T::nearest), self.grid)
    }

    /// The heat that a step adds to each point, x fastest, for a body with a `source`: Δt q, where
    /// q is a temperature per time. For Jacobi iterations of Poisson's equation `∇²u = -f` the
    /// source is f, and an iteration adds `f / (2 Σ 1 / h²)`.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] for a source of another shape than the grid.
    pub fn heating<T: Kernels>(&self, source: &Field3<T>) -> Result<Vec<T>, Error> {
        self.require_grid("the source", source)?;
        let time_step = self.time_step().unwrap_or_else(|| self.longest_step(1.0));
        let all = source.as_slice().iter();
        Ok(all
            .map(|&q| T::nearest(time_step * Into::<f64>::into(q)))
            .collect())
    }

    /// The least cost of a step: each point is read once and written once, with 15 operations.
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan).
    pub fn cost<T: Kernels>(&self) -> Result<Cost, Error> {
        Ok(self.stencil::<T>()?.cost())
    }

    /// Plans the steps on `device`.
    ///
    /// ```
    /// use halo_gpu::heat3d::Heat3d;
    /// use halo_gpu::{Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let heat = Heat3d::new(Grid3::new(Shape3::new(4, 1, 1), [1.0; 3])?);
    /// let old = device.upload(&[6.0_f32, 0.0, 0.0, 0.0])?;
    /// let mut new = device.zeros(4)?;
    /// heat.plan(&device)?.step([&old], [&mut new])?;
    /// assert_eq!(new.to_vec()?, [4.0, 1.0, 0.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for [`Boundary::DirichletOnPoint`](crate::Boundary), because a
    /// step computes all points; [`Error::IndexOverflow`] for a grid that is too large for the
    /// kernels' indices, [`Error::HostOutOfMemory`].
    pub fn plan<T: Kernels>(&self, device: &Device) -> Result<Plan<T>, Error> {
        self.stencil()?.plan(device)
    }

    /// Plans the steps with a source on `device`.
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan).
    pub fn plan_heated<T: Kernels>(&self, device: &Device) -> Result<HeatedPlan<T>, Error> {
        self.heated()?.plan(device)
    }

    /// A body with these temperatures on `device`, at the start of a run.
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan) and [`Device::upload`]; [`Error::ShapeMismatch`] for a field of
    /// another shape than the grid.
    pub fn start<T: Kernels>(
        &self,
        device: &Device,
        initial: &Field3<T>,
    ) -> Result<Body<T>, Error> {
        self.require_grid("the field", initial)?;
        self.stencil()?.start(device, [initial.as_slice()])
    }

    /// Like [`start`](Self::start), with a `source` as for [`heating`](Self::heating).
    ///
    /// ```
    /// use halo_gpu::heat3d::Heat3d;
    /// use halo_gpu::{Axis, Boundary, Device, Field3, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // u'' = -2 between walls at 0: u = x (L - x), which the grid has exactly.
    /// let shape = Shape3::new(9, 2, 2);
    /// let grid = Grid3::new(shape, [0.1, 1.0, 1.0])?
    ///     .with_ends(Axis::X, [Boundary::Dirichlet(0.0); 2])?;
    /// let (cold, source) = (Field3::filled(shape, 0.0_f64)?, Field3::filled(shape, 2.0)?);
    /// let mut rod = Heat3d::new(grid).start_heated(&Device::cpu(), &cold, &source)?;
    /// assert!(rod.steps_until(1e-14, 50, 5000)?.converged);
    /// assert!((rod.at(0, [4, 1, 1])? - 0.25).abs() < 1e-11); // the point at x = 0.5, of L = 1
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start), also for the source.
    pub fn start_heated<T: Kernels>(
        &self,
        device: &Device,
        initial: &Field3<T>,
        source: &Field3<T>,
    ) -> Result<HeatedBody<T>, Error> {
        self.require_grid("the field", initial)?;
        let heating = self.heating(source)?;
        self.heated()?.start(device, [initial.as_slice(), &heating])
    }

    fn require_grid<T: Kernels>(&self, name: &'static str, field: &Field3<T>) -> Result<(), Error> {
        let (required, given) = (self.grid.shape().into(), field.shape().into());
        require_shape(Argument::new(OPERATION, name), required, given)
    }

    /// Computes `steps` steps of a field in host memory on `device` and returns the new field.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start), and the errors of a launch.
    pub fn steps_of<T: Kernels>(
        &self,
        device: &Device,
        initial: &Field3<T>,
        steps: usize,
    ) -> Result<Field3<T>, Error> {
        let mut body = self.start(device, initial)?;
        body.steps(steps)?;
        Field3::from_vec(self.grid.shape(), body.to_vec(0)?)
    }
}
