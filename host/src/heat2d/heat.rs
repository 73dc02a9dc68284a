//! `Heat2d`: the grid, and the kind of iteration.

use super::check::{OPERATION, invalid};
use super::ends::unknowns_along;
use crate::argument::Argument;
use crate::error::require_positive;
use crate::grid::{Boundary, Grid2};
use crate::scalar::Scalar;
use crate::{Axis, Error, Shape2};
use gpu_kernels::registry::Cost;

/// The fewest points along an axis: two ends and a point between them.
pub(super) const MIN_EXTENT: usize = 3;

/// Floating-point operations of an iteration per point: 3 additions, 1 multiplication.
const FLOPS_PER_POINT: u64 = 4;

/// The same of a step in time: 3 additions, 2 fused multiply-adds.
const STEP_FLOPS_PER_POINT: u64 = 7;

/// The largest α Δt / h² of a stable step in time (LeVeque, "Finite Difference Methods for
/// Ordinary and Partial Differential Equations", SIAM 2007, section 9.3, in two dimensions).
pub(super) const STABLE_RATIO: f64 = 0.25;

/// The grid's spacings, as errors call them.
const SPACINGS: [&str; 2] = ["spacing along x", "spacing along y"];

/// The grid's boundaries, as errors call them.
const BOUNDARIES: [&str; 2] = ["boundary along x", "boundary along y"];

/// An explicit step in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// α.
    diffusivity: f64,
    /// Δt.
    pub(super) length: f64,
    /// α Δt / h².
    pub(super) ratio: f64,
}

/// Iterations on the points of a plate: Jacobi's, or explicit steps of the heat equation.
///
/// Temperatures are in any unit and from any zero. The cells of the grid are square. At each
/// end of an axis the boundary is [`DirichletOnPoint`](Boundary::DirichletOnPoint), where the
/// points keep their temperature, or [`Neumann`](Boundary::Neumann), where no heat goes
/// through; a corner between the two is kept. Plates and buffers hold `nx * ny` temperatures,
/// x fastest.
///
/// ```
/// use halo_gpu::heat2d::Heat2d;
/// use halo_gpu::{Axis, Boundary, Cost, Error, Grid2, Shape2};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let heat = Heat2d::dirichlet(Shape2::new(5, 4))?;
/// assert_eq!(heat.unknowns(), 3 * 2); // all but those on the boundary
/// assert_eq!(heat.cost::<f32>(), Cost { bytes: 4 * (20 + 6), flops: 4 * 6 });
/// let insulated = heat.with_boundaries(Boundary::Neumann)?;
/// assert_eq!(insulated.unknowns(), 20);
///
/// let periodic = Grid2::new(Shape2::new(5, 4), [0.5; 2])?;
/// assert!(matches!(Heat2d::new(&periodic), Err(Error::InvalidParameter { .. })));
/// let plate = periodic.with_boundaries(Boundary::Neumann)?;
/// assert_eq!(Heat2d::new(&plate)?.grid().spacing(Axis::X), 0.5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat2d {
    grid: Grid2,
    step: Option<Step>,
}

impl Heat2d {
    /// Jacobi iterations on the points of a grid.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for an extent below 3; [`Error::IndexOverflow`] for one above
    /// `i32::MAX`, or if the plate has more points than can be indexed;
    /// [`Error::InvalidParameter`] if the spacings along x and y differ, and for boundaries other
    /// than [`Boundary::DirichletOnPoint`] and [`Boundary::Neumann`].
    pub fn new(grid: &Grid2) -> Result<Self, Error> {
        check_shape(grid.shape())?;
        let [along_x, along_y] = spacings(grid);
        if along_x != along_y {
            let required = format!("{along_x}, which it is along x: cells are square");
            return Err(invalid(SPACINGS[1], along_y.to_string(), required));
        }
        for (axis, name) in [Axis::X, Axis::Y].into_iter().zip(BOUNDARIES) {
            let refused =
                |end: &Boundary| !matches!(end, Boundary::DirichletOnPoint | Boundary::Neumann);
            if let Some(end) = grid.ends(axis).into_iter().find(refused) {
                let required = format!("{} or {}", Boundary::DirichletOnPoint, Boundary::Neumann);
                return Err(invalid(name, end.to_string(), required));
            }
        }
        Ok(Self {
            grid: *grid,
            step: None,
        })
    }

    /// Jacobi iterations on plates of `shape`, whose outermost points keep their temperature;
    /// of spacing 1.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), for the shape.
    pub fn dirichlet(shape: Shape2) -> Result<Self, Error> {
        check_shape(shape)?;
        Self::new(&Grid2::new(shape, [1.0; 2])?.with_boundaries(Boundary::DirichletOnPoint)?)
    }

    /// The same on another grid.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new) and [`with_time_step`](Self::with_time_step).
    pub fn with_grid(&self, grid: &Grid2) -> Result<Self, Error> {
        let heat = Self::new(grid)?;
        match self.step {
            Some(step) => heat.with_time_step(step.diffusivity, step.length),
            None => Ok(heat),
        }
    }

    /// The same with these boundaries at the first and at the last point of an axis.
    ///
    /// ```
    /// use halo_gpu::heat2d::Heat2d;
    /// use halo_gpu::{Axis, Boundary, Device, Field2, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // From 0 at the left end to 8 at the right, with nothing lost at the others.
    /// let shape = Shape2::new(9, 5);
    /// let initial = Field2::from_fn(shape, |i, _| if i == 8 { 8.0_f32 } else { 0.0 })?;
    /// let heat = Heat2d::dirichlet(shape)?.with_ends(Axis::Y, [Boundary::Neumann; 2])?;
    /// let plate = heat.iterate_of(&Device::cpu(), &initial, 500)?;
    /// assert!((plate[(3, 0)] - 3.0).abs() < 1e-4 && (plate[(6, 4)] - 6.0).abs() < 1e-4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for boundaries other than [`Boundary::DirichletOnPoint`] and
    /// [`Boundary::Neumann`], and for an axis that a plate does not have.
    pub fn with_ends(&self, axis: Axis, ends: [Boundary; 2]) -> Result<Self, Error> {
        self.with_grid(&self.grid.with_ends(axis, ends)?)
    }

    /// The same with this boundary at all ends.
    ///
    /// # Errors
    ///
    /// As [`with_ends`](Self::with_ends).
    pub fn with_boundaries(&self, boundary: Boundary) -> Result<Self, Error> {
        self.with_grid(&self.grid.with_boundaries(boundary)?)
    }

    /// The same plates with explicit steps in time of the heat equation in place of Jacobi
    /// iterations: each iteration is a step.
    ///
    /// ```text
    /// u_t = α ∇²u + q      new = u + r (((E + W) + (N + S)) - 4 u)      r = α Δt / h²
    /// ```
    ///
    /// with the `diffusivity` α, the grid's spacing h and the length Δt of a step
    /// (`time_step`), in units that go together: m²/s, m and s. Heat that a plate is given
    /// ([`Plate::with_source`](super::Plate::with_source)) is h² q / α. Steps are forward in
    /// time and centred in space (LeVeque 2007, chapter 9): of first order in Δt, of second in
    /// h. They are stable up to Δt = h² / (4 α), where a step is a Jacobi iteration but for
    /// rounding.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, problem};
    /// use halo_gpu::{Device, Error, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // Copper, 1.11 cm² a second; 32 cells of 1 cm, kept at 0 °C around.
    /// let shape = Shape2::new(33, 33);
    /// let heat = Heat2d::dirichlet(shape)?.with_time_step(1.11, 0.2)?;
    /// let initial = problem::sine_mode::<f64>(shape, [1, 1])?;
    /// let mut plate = heat.start(&Device::cpu(), &initial)?;
    /// plate.iterate(500)?;
    /// assert!((plate.time() - 100.0).abs() < 1e-9);
    ///
    /// // The mode decays as exp(-2 α (π/L)² t), to the order of the steps.
    /// let decay = (-2.0 * 1.11 * (std::f64::consts::PI / 32.0).powi(2) * 100.0).exp();
    /// assert!((plate.field()?[(16, 16)] / decay - 1.0).abs() < 4e-3);
    ///
    /// let refused = Heat2d::dirichlet(shape)?.with_time_step(1.11, 0.3);
    /// assert!(matches!(refused, Err(Error::Unstable { limit, .. }) if limit < 0.226));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] and [`Error::InvalidParameter`] for a parameter that is not a
    /// positive number, and where h² / α is beyond what f64 holds; [`Error::Unstable`] for a
    /// step that is too long.
    pub fn with_time_step(&self, diffusivity: f64, time_step: f64) -> Result<Self, Error> {
        let parameters = [
            ("the diffusivity", diffusivity),
            ("the time step", time_step),
        ];
        for (parameter, given) in parameters {
            require_positive(OPERATION, parameter, given)?;
        }
        let [spacing, _] = spacings(&self.grid);
        let limit = STABLE_RATIO * (spacing / diffusivity) * spacing;
        if !limit.is_normal() {
            let required = format!(
                "such that spacing² / diffusivity is in the range of f64, with a spacing of \
                 {spacing}"
            );
            return Err(invalid(
                "the diffusivity",
                diffusivity.to_string(),
                required,
            ));
        }
        if time_step > limit {
            return Err(Error::Unstable {
                operation: OPERATION,
                time_step,
                limit,
            });
        }
        Ok(Self {
            grid: self.grid,
            step: Some(Step {
                diffusivity,
                length: time_step,
                // At the limit exactly that of a Jacobi iteration.
                ratio: STABLE_RATIO * (time_step / limit),
            }),
        })
    }

    /// The residual of Poisson's equation ([`Tolerance::Residual`](super::Tolerance::Residual)) at
    /// a point that an iteration changes by `change`: four times that for Jacobi iterations, h² /
    /// (α Δt) times that for steps in time.
    pub(super) fn residual_of<T: Scalar>(&self, change: T) -> T {
        T::nearest(Into::<f64>::into(change) / self.part_of_residual())
    }

    /// By which part of its residual an iteration changes a point.
    pub(super) fn part_of_residual(&self) -> f64 {
        self.step.map_or(STABLE_RATIO, |step| step.ratio)
    }

    /// The length of a step in time; `None` for Jacobi iterations.
    #[must_use]
    pub fn time_step(&self) -> Option<f64> {
        self.step.map(|step| step.length)
    }

    /// The step in time.
    pub(super) const fn step(&self) -> Option<Step> {
        self.step
    }

    /// The points of the plates, their spacing and the boundaries.
    #[must_use]
    pub const fn grid(&self) -> &Grid2 {
        &self.grid
    }

    /// The shape of the plates, boundaries included.
    #[must_use]
    pub const fn shape(&self) -> Shape2 {
        self.grid.shape()
    }

    /// The points that an iteration computes: all points without a fixed temperature.
    #[must_use]
    pub fn unknowns(&self) -> u64 {
        // The product of all points has been checked.
        let [x, y] = [Axis::X, Axis::Y].map(|axis| unknowns_along(&self.grid, axis).len());
        (x * y) as u64
    }

    /// The least cost of an iteration in `T`: each point is read once, each unknown written once. A
    /// source adds as many bytes as the points have, and an operation for each unknown. Each is at
    /// most `u64::MAX`.
    #[must_use]
    pub fn cost<T: Scalar>(&self) -> Cost {
        // Corners between Dirichlet boundaries have no neighbour that is computed, but share
        // sectors with points that have.
        let Shape2 { nx, ny } = self.shape();
        let points = (nx * ny) as u64;
        let each = match self.step {
            None => FLOPS_PER_POINT,
            Some(_) => STEP_FLOPS_PER_POINT,
        };
        Cost {
            bytes: points
                .saturating_add(self.unknowns())
                .saturating_mul(size_of::<T>() as u64),
            flops: self.unknowns().saturating_mul(each),
        }
    }
}

/// Those along x and y.
fn spacings(grid: &Grid2) -> [f64; 2] {
    [Axis::X, Axis::Y].map(|axis| grid.spacing(axis))
}

/// Refuses a shape that is not a plate, or one that kernels cannot count.
fn check_shape(shape: Shape2) -> Result<(), Error> {
    let extents = [("nx", shape.nx), ("ny", shape.ny)];
    for (axis, given) in extents {
        if given < MIN_EXTENT {
            return Err(Error::InvalidSize {
                operation: OPERATION,
                axis,
                given,
                required: format!("at least {MIN_EXTENT} (two ends and a point between them)"),
            });
        }
        // Kernels count points along an axis, and a block beyond, in 32 bits.
        if i32::try_from(given).is_err() {
            return Err(Error::IndexOverflow {
                quantity: Argument::new(OPERATION, axis),
                given: given.to_string(),
                limit: i32::MAX as u64,
            });
        }
    }
    shape.points().map(drop)
}
