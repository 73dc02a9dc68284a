//! Describes a computation of waves: `Wave3d`, a grid and an order of accuracy in space.

use super::gpu::Kernels;
use super::layer::{Layer, OPERATION};
use crate::argument::Argument;
use crate::error::require_positive;
use crate::finite_difference::Weights;
use crate::shape::require_shape;
use crate::stencil::{self, Stencil};
use crate::{Axis, Device, Error, Field3, Grid3, Shape3};
use gpu_kernels::registry::Cost;
use gpu_kernels::wave3d::step::{Laplacian, RADIUS};

/// The steps of a [`Wave3d`] on a device, on buffers of the caller: `step_over` computes the new
/// field from the current one and the coefficients ([`Wave3d::coefficients`]), and writes it over
/// the past field.
pub type Plan<T> = stencil::Plan<<T as Kernels>::Closed, T, 3, 3, 1>;

/// Like [`Plan`], with damping: the last two fields are the [`Wave3d::absorbing_coefficients`].
pub type AbsorbingPlan<T> = stencil::Plan<<T as Kernels>::Absorbing, T, 3, 4, 1>;

/// A field on a device: `steps` advances it, `to_vec(0)` copies it to the host, and `field_mut(0)`
/// borrows it, for a source.
pub type Waves<T> = stencil::Run<<T as Kernels>::Closed, T, 3, 3, 1>;

/// Like [`Waves`], with damping layers.
pub type AbsorbedWaves<T> = stencil::Run<<T as Kernels>::Absorbing, T, 3, 4, 1>;

/// The wave equation on a grid, with differences of a given order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wave3d {
    grid: Grid3,
    order: u32,
    /// The weights of the second derivative for a spacing of 1: that of the point itself, and those
    /// of its neighbours.
    own: f64,
    weights: [f64; RADIUS],
}

impl Wave3d {
    /// Waves on `grid`, with differences in space of order 2, 4, 6 or 8.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for another order.
    pub fn new(grid: Grid3, order: u32) -> Result<Self, Error> {
        if !matches!(order, 2 | 4 | 6 | 8) {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the order in space",
                given: order.to_string(),
                required: "2, 4, 6 or 8".into(),
            });
        }
        let all = Weights::central(2, order)?;
        let radius = order as usize / 2;
        let mut weights = [0.0; RADIUS];
        weights[..radius].copy_from_slice(&all.values()[radius + 1..]);
        Ok(Self {
            grid,
            order,
            own: all.values()[radius],
            weights,
        })
    }

    /// The grid.
    #[must_use]
    pub const fn grid(&self) -> &Grid3 {
        &self.grid
    }

    /// The order in space.
    #[must_use]
    pub const fn order(&self) -> u32 {
        self.order
    }

    /// The factor by which the differences for `-∂²/∂x²`, with a spacing of 1, multiply a wave with
    /// this phase between adjacent points: approximately `phase²`.
    pub(super) fn square_of(&self, phase: f64) -> f64 {
        let each = self.weights.iter().enumerate();
        let others = each.map(|(m, weight)| 2.0 * weight * ((m + 1) as f64 * phase).cos());
        -(self.own + others.sum::<f64>())
    }

    /// The weights of the point itself and of its neighbours, for a spacing of 1.
    #[cfg(feature = "cases")]
    pub(super) const fn weights(&self) -> (f64, [f64; RADIUS]) {
        (self.own, self.weights)
    }

    /// `(h_x / h_a)²` along x, y and z.
    pub(super) fn relative(&self) -> [f64; 3] {
        let x = self.grid.spacing(Axis::X);
        Axis::ALL.map(|axis| (x / self.grid.spacing(axis)).powi(2))
    }

    /// The longest stable step for waves of at most the velocity `fastest`, c: `2 / (c √(Λ Σ 1 /
    /// h²))`, with Λ = 4, 16/3, 272/45 and 2048/315 for the orders from 2 to 8. Without a velocity
    /// any step is stable: the longest is infinite.
    ///
    /// ```
    /// use halo_gpu::wave3d::Wave3d;
    /// use halo_gpu::{Error, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let wave = Wave3d::new(Grid3::new(Shape3::cube(32), [10.0; 3])?, 2)?;
    /// // h / (c √3), Courant, Friedrichs and Lewy's.
    /// assert!((wave.longest_step(1500.0) - 10.0 / (1500.0 * 3.0_f64.sqrt())).abs() < 1e-15);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn longest_step(&self, fastest: f64) -> f64 {
        let most = self.square_of(std::f64::consts::PI) * self.relative().iter().sum::<f64>();
        // The quotient by -0.0, which is a velocity too, would be below every step.
        2.0 / most.sqrt() * (self.grid.spacing(Axis::X) / fastest.abs())
    }

    /// The Laplacian in units of the spacing along x.
    pub(super) fn laplacian<T: Kernels>(&self) -> Laplacian<T> {
        let relative = self.relative();
        Laplacian {
            own: T::nearest(self.own * relative.iter().sum::<f64>()),
            weights: relative.map(|square| self.weights.map(|weight| T::nearest(weight * square))),
        }
    }

    /// This computation as a stencil on the field, the field a step before, and the
    /// [`coefficients`](Self::coefficients).
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan).
    pub fn closed<T: Kernels>(&self) -> Result<Stencil<T::Closed, T, 3, 3, 1>, Error> {
        T::closed(self.laplacian(), self.grid)
    }

    /// This computation as a stencil with damping: the last two fields are the
    /// [`absorbing_coefficients`](Self::absorbing_coefficients).
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan).
    pub fn absorbing<T: Kernels>(&self) -> Result<Stencil<T::Absorbing, T, 3, 4, 1>, Error> {
        T::absorbing(self.laplacian(), self.grid)
    }

    /// The least cost of a step: three fields are read and one is written, with 41 operations per
    /// point.
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan).
    pub fn cost<T: Kernels>(&self) -> Result<Cost, Error> {
        Ok(self.closed::<T>()?.cost())
    }

    /// Plans the steps on `device`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for [`Boundary::DirichletOnPoint`](crate::Boundary), because a
    /// step computes all points; [`Error::IndexOverflow`] for a grid that is too large for the
    /// kernels' indices, [`Error::HostOutOfMemory`].
    pub fn plan<T: Kernels>(&self, device: &Device) -> Result<Plan<T>, Error> {
        self.closed()?.plan(device)
    }

    /// Plans the steps with damping on `device`.
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan).
    pub fn plan_absorbing<T: Kernels>(&self, device: &Device) -> Result<AbsorbingPlan<T>, Error> {
        self.absorbing()?.plan(device)
    }

    /// The coefficients for steps of length `time_step`: `(c Δt / h_x)²` with the velocity at each
    /// point, x fastest.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] for velocities of another shape than the grid,
    /// [`Error::InvalidElement`] for a velocity that is not finite or is negative,
    /// [`Error::NonFinite`] and [`Error::InvalidParameter`] for a step that is not a positive
    /// number, [`Error::Unstable`] for a step that is too long for the largest velocity.
    pub fn coefficients<T: Kernels>(
        &self,
        time_step: f64,
        velocity: &Field3<T>,
    ) -> Result<Vec<T>, Error> {
        self.require_grid("the velocity", velocity)?;
        self.coefficients_of_part(time_step, velocity)
    }

    /// Like [`coefficients`](Self::coefficients), for a part of the grid with the shape of
    /// `velocity`.
    ///
    /// # Errors
    ///
    /// As for [`coefficients`](Self::coefficients), except for the shape.
    pub fn coefficients_of_part<T: Kernels>(
        &self,
        time_step: f64,
        velocity: &Field3<T>,
    ) -> Result<Vec<T>, Error> {
        self.check(time_step, velocity)?;
        let courant = |c: &T| self.courant(time_step, (*c).into());
        let squares = velocity.as_slice().iter().map(courant);
        Ok(squares
            .map(|courant| T::nearest(courant * courant))
            .collect())
    }

    /// The coefficients for steps with damping: `(c Δt / h_x)² / (1 + d)` and `(1 - d) / (1 + d)`
    /// with d = σ Δt / 2.
    ///
    /// # Errors
    ///
    /// As for [`coefficients`](Self::coefficients), and [`Error::InvalidParameter`] for a layer
    /// without points or with more points than there are between open ends, and for a reflection
    /// that is not between 0 and 1.
    pub fn absorbing_coefficients<T: Kernels>(
        &self,
        time_step: f64,
        velocity: &Field3<T>,
        layer: Layer,
    ) -> Result<[Vec<T>; 2], Error> {
        self.require_grid("the velocity", velocity)?;
        self.absorbing_coefficients_of_part(time_step, [0; 3], velocity, layer)
    }

    /// Like [`absorbing_coefficients`](Self::absorbing_coefficients), for a part of the grid that
    /// begins at the point `first` and has the shape of `velocity`.
    ///
    /// # Errors
    ///
    /// As for [`absorbing_coefficients`](Self::absorbing_coefficients), except for the shape;
    /// [`Error::InvalidParameter`] for a part that does not lie within the grid.
    pub fn absorbing_coefficients_of_part<T: Kernels>(
        &self,
        time_step: f64,
        first: [usize; 3],
        velocity: &Field3<T>,
        layer: Layer,
    ) -> Result<[Vec<T>; 2], Error> {
        layer.check(&self.grid)?;
        self.check(time_step, velocity)?;
        let Shape3 { nx, ny, nz } = velocity.shape();
        let extents = Axis::ALL.into_iter().zip([nx, ny, nz]);
        let fits = |((axis, extent), first): ((Axis, usize), usize)| {
            let points = self.grid.extent(axis);
            first <= points && extent <= points - first
        };
        if !extents.zip(first).all(fits) {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the part",
                given: format!("{} from {first:?} on", velocity.shape()),
                required: format!("within the grid of {}", self.grid.shape()),
            });
        }
        let [i, j, k] = first;
        let (mut squares, mut kept) = (Vec::new(), Vec::new());
        for (at, &c) in velocity.as_slice().iter().enumerate() {
            let point = [i + at % nx, j + at / nx % ny, k + at / (nx * ny)];
            let c = c.into();
            let d = layer.damping(&self.grid, point) * (c * time_step) / 2.0;
            squares.push(T::nearest(self.courant(time_step, c).powi(2) / (1.0 + d)));
            kept.push(T::nearest((1.0 - d) / (1.0 + d)));
        }
        Ok([squares, kept])
    }

    /// The number of spacings along x that a wave travels in a step.
    fn courant(&self, time_step: f64, velocity: f64) -> f64 {
        velocity * (time_step / self.grid.spacing(Axis::X))
    }

    fn check<T: Kernels>(&self, time_step: f64, velocity: &Field3<T>) -> Result<(), Error> {
        require_positive(OPERATION, "the time step", time_step)?;
        let mut fastest = 0.0;
        for (index, &c) in velocity.as_slice().iter().enumerate() {
            let c: f64 = c.into();
            if !(c >= 0.0 && c.is_finite()) {
                return Err(Error::InvalidElement {
                    operation: OPERATION,
                    what: "the velocity at point",
                    index,
                    given: c,
                    required: "finite and not negative".into(),
                });
            }
            fastest = f64::max(fastest, c);
        }
        let limit = self.longest_step(fastest);
        if time_step > limit {
            return Err(Error::Unstable {
                operation: OPERATION,
                time_step,
                limit,
            });
        }
        Ok(())
    }

    /// Puts a field on `device`, to advance by steps of length `time_step`: the field `now` and a
    /// step `before`. For a field at rest both are the same, to first order in Δt.
    ///
    /// # Errors
    ///
    /// As for [`coefficients`](Self::coefficients), [`plan`](Self::plan) and [`Device::upload`];
    /// [`Error::ShapeMismatch`] for a field of another shape than the grid.
    pub fn start<T: Kernels>(
        &self,
        device: &Device,
        time_step: f64,
        velocity: &Field3<T>,
        [now, before]: [&Field3<T>; 2],
    ) -> Result<Waves<T>, Error> {
        self.check_fields([now, before])?;
        let courant = self.coefficients(time_step, velocity)?;
        let inputs = [now.as_slice(), before.as_slice(), &courant];
        self.closed()?.start(device, inputs)
    }

    /// Computes `steps` steps of a field in host memory on `device` and returns the new field.
    ///
    /// ```
    /// use halo_gpu::wave3d::Wave3d;
    /// use halo_gpu::{Device, Field3, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let shape = Shape3::new(5, 1, 1);
    /// let wave = Wave3d::new(Grid3::new(shape, [1.0; 3])?, 2)?;
    /// let pulse = Field3::from_vec(shape, vec![0.0_f64, 0.0, 1.0, 0.0, 0.0])?;
    /// let velocity = Field3::filled(shape, 1.0)?;
    /// let after = wave.steps_of(&Device::cpu(), 0.5, &velocity, [&pulse, &pulse], 1)?;
    /// assert_eq!(after.as_slice(), [0.0, 0.25, 0.5, 0.25, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start), and the errors of a launch.
    pub fn steps_of<T: Kernels>(
        &self,
        device: &Device,
        time_step: f64,
        velocity: &Field3<T>,
        fields: [&Field3<T>; 2],
        steps: usize,
    ) -> Result<Field3<T>, Error> {
        let mut waves = self.start(device, time_step, velocity, fields)?;
        waves.steps(steps)?;
        Field3::from_vec(self.grid.shape(), waves.to_vec(0)?)
    }

    /// Like [`start`](Self::start), with a layer before each open end.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start) and [`absorbing_coefficients`](Self::absorbing_coefficients).
    pub fn start_absorbing<T: Kernels>(
        &self,
        device: &Device,
        time_step: f64,
        velocity: &Field3<T>,
        layer: Layer,
        [now, before]: [&Field3<T>; 2],
    ) -> Result<AbsorbedWaves<T>, Error> {
        self.check_fields([now, before])?;
        let [courant, kept] = self.absorbing_coefficients(time_step, velocity, layer)?;
        let inputs = [now.as_slice(), before.as_slice(), &courant, &kept];
        self.absorbing()?.start(device, inputs)
    }

    fn check_fields<T: Kernels>(&self, fields: [&Field3<T>; 2]) -> Result<(), Error> {
        fields
            .into_iter()
            .try_for_each(|field| self.require_grid("the field", field))
    }

    fn require_grid<T: Kernels>(&self, name: &'static str, field: &Field3<T>) -> Result<(), Error> {
        let (required, given) = (self.grid.shape().into(), field.shape().into());
        require_shape(Argument::new(OPERATION, name), required, given)
    }
}
