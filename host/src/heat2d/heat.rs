//! What is swept: the shape of plates, and their walls.

use super::blocked::Setup;
use super::check::Checked;
use super::gpu::{self, Variant};
use super::walls::Walls;
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Error, Shape2};

/// The fewest points along an axis: two walls and a point between them.
pub const MIN_EXTENT: usize = 3;

/// Floating-point operations per point that is swept: 3 additions, 1 multiplication. A
/// source is one addition more.
pub const FLOPS_PER_POINT: u64 = 4;

/// The same per point of a step in time: 3 additions, 2 fused multiply-adds.
const STEP_FLOPS_PER_POINT: u64 = 7;

/// The largest α Δt / h² of a stable step in time (LeVeque, "Finite Difference Methods for
/// Ordinary and Partial Differential Equations", SIAM 2007, section 9.3, in two dimensions).
const STABLE_RATIO: f64 = 0.25;

/// An explicit step in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// α Δt / h².
    pub(super) ratio: f64,
    /// Δt.
    pub(super) length: f64,
}

/// Sweeps over plates of a given shape: Jacobi iterations, or steps in time.
///
/// Temperatures are in any unit and from any zero, lengths in spacings of the grid, whose
/// cells are square. Plates and buffers hold `nx * ny` temperatures, x fastest.
///
/// ```
/// use halo_gpu::Shape2;
/// use halo_gpu::heat2d::{Heat2d, Walls};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let heat = Heat2d::new(Shape2::new(5, 4))?;
/// assert_eq!(heat.swept_points(), 3 * 2); // all but those on the walls
/// assert_eq!(heat.bytes::<f32>(), 4 * (20 + 6));
/// assert_eq!(heat.flops(), 4 * 6);
/// assert_eq!(heat.with_walls(Walls::INSULATED).swept_points(), 20);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat2d {
    shape: Shape2,
    walls: Walls,
    step: Option<Step>,
}

impl Heat2d {
    /// Sweeps over plates of `shape`, walls included, which are fixed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for an extent below [`MIN_EXTENT`];
    /// [`Error::IndexOverflow`] for one above `i32::MAX`, or if the plate has
    /// more points than can be indexed.
    pub fn new(shape: Shape2) -> Result<Self, Error> {
        for (axis, what, given) in [
            ("nx", "heat2d: nx", shape.nx),
            ("ny", "heat2d: ny", shape.ny),
        ] {
            if given < MIN_EXTENT {
                return Err(Error::InvalidSize {
                    operation: "heat2d",
                    axis,
                    given,
                    required: format!("at least {MIN_EXTENT} (two walls and a point between them)"),
                });
            }
            // Kernels count points along an axis, and a block beyond, in 32 bits.
            if i32::try_from(given).is_err() {
                return Err(Error::IndexOverflow {
                    what: what.to_owned(),
                    given: given.to_string(),
                    limit: i32::MAX as u64,
                });
            }
        }
        shape.points()?;
        Ok(Self {
            shape,
            walls: Walls::FIXED,
            step: None,
        })
    }

    /// The same with these walls.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, Wall, Walls};
    /// use halo_gpu::{Device, Field2, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // From 0 at the left wall to 8 at the right, with nothing lost at the others.
    /// let shape = Shape2::new(9, 5);
    /// let walls = Walls { bottom: Wall::Insulated, top: Wall::Insulated, ..Walls::FIXED };
    /// let initial = Field2::from_fn(shape, |i, _| if i == 8 { 8.0_f32 } else { 0.0 })?;
    /// let plate = Heat2d::new(shape)?.with_walls(walls).solve(&Device::cpu(), &initial, 500)?;
    /// assert!((plate[(3, 0)] - 3.0).abs() < 1e-4 && (plate[(6, 4)] - 6.0).abs() < 1e-4);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn with_walls(mut self, walls: Walls) -> Self {
        self.walls = walls;
        self
    }

    /// The same plates with explicit steps in time of the heat equation in place of Jacobi
    /// iterations: each sweep is a step.
    ///
    /// ```text
    /// u_t = α ∇²u + q      new = u + r (((E + W) + (N + S)) - 4 u)      r = α Δt / h²
    /// ```
    ///
    /// with the `diffusivity` α, the distance h of two points (`spacing`) and the length Δt of
    /// a step (`time_step`), in units that go together: m²/s, m and s. Heat that a plate is
    /// given ([`Plate::with_source`](super::Plate::with_source)) is h² q / α. Steps are forward
    /// in time and centred in space (LeVeque 2007, chapter 9): of first order in Δt, of second
    /// in h. They are stable up to Δt = h² / (4 α), where a step is a Jacobi iteration but for
    /// rounding.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, Walls, problem};
    /// use halo_gpu::{Device, Error, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // Copper, 1.11 cm² a second; 32 cells of 1 cm, kept at 0 °C around.
    /// let shape = Shape2::new(33, 33);
    /// let heat = Heat2d::new(shape)?.with_time_step(1.11, 1.0, 0.2)?;
    /// let initial = problem::sine_mode::<f64>(shape, [1, 1])?;
    /// let mut plate = heat.start(&Device::cpu(), &initial)?;
    /// plate.sweep(500)?;
    /// assert!((plate.time() - 100.0).abs() < 1e-9);
    ///
    /// // The mode decays as exp(-2 α (π/L)² t), to the order of the steps.
    /// let decay = (-2.0 * 1.11 * (std::f64::consts::PI / 32.0).powi(2) * 100.0).exp();
    /// assert!((plate.field()?[(16, 16)] / decay - 1.0).abs() < 4e-3);
    ///
    /// let refused = Heat2d::new(shape)?.with_time_step(1.11, 1.0, 0.3);
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
    pub fn with_time_step(
        mut self,
        diffusivity: f64,
        spacing: f64,
        time_step: f64,
    ) -> Result<Self, Error> {
        const OPERATION: &str = "heat2d";
        let parameters = [
            ("the diffusivity", diffusivity),
            ("the spacing", spacing),
            ("the time step", time_step),
        ];
        for (parameter, given) in parameters {
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
        }
        let limit = STABLE_RATIO * (spacing / diffusivity) * spacing;
        if !limit.is_normal() {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the diffusivity",
                given: diffusivity.to_string(),
                required: format!(
                    "such that spacing² / diffusivity is in the range of f64, with a spacing of \
                     {spacing}"
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
        self.step = Some(Step {
            // At the limit exactly that of a Jacobi iteration.
            ratio: STABLE_RATIO * (time_step / limit),
            length: time_step,
        });
        Ok(self)
    }

    /// The same on plates of another shape.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_shape(self, shape: Shape2) -> Result<Self, Error> {
        Ok(Self {
            shape: Self::new(shape)?.shape,
            ..self
        })
    }

    /// The residual of Poisson's equation at a point that a sweep changes by so much
    /// ([`Tolerance::Residual`](super::Tolerance::Residual)): four times as much for Jacobi
    /// iterations, h² / (α Δt) times as much for steps in time.
    #[must_use]
    pub fn residual_of<T: Scalar>(&self, change: T) -> T {
        T::nearest(Into::<f64>::into(change) / self.part_of_residual())
    }

    /// By which part of its residual a sweep changes a point.
    pub(super) fn part_of_residual(&self) -> f64 {
        self.step.map_or(0.25, |step| step.ratio)
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

    /// The walls of the plates.
    #[must_use]
    pub const fn walls(&self) -> Walls {
        self.walls
    }

    /// The shape of the plates, walls included.
    #[must_use]
    pub const fn shape(&self) -> Shape2 {
        self.shape
    }

    /// The points that a sweep computes: all but those on fixed walls.
    #[must_use]
    pub const fn swept_points(&self) -> u64 {
        // `new` checked both the extents and the product.
        let Walls {
            left,
            right,
            bottom,
            top,
        } = self.walls;
        let nx = self.shape.nx - left.fixed_points() - right.fixed_points();
        let ny = self.shape.ny - bottom.fixed_points() - top.fixed_points();
        (nx * ny) as u64
    }

    /// The bytes a sweep in `T` has to move at the least: each point read once, each
    /// point that is swept written once. A source is as many again as are read. At most
    /// `u64::MAX`.
    #[must_use]
    pub const fn bytes<T: Scalar>(&self) -> u64 {
        // Corners between fixed walls have no neighbour that is swept, but share sectors
        // with points that have.
        let points = (self.shape.nx * self.shape.ny) as u64;
        points
            .saturating_add(self.swept_points())
            .saturating_mul(size_of::<T>() as u64)
    }

    /// The floating-point operations of a sweep, at most `u64::MAX`; a source is one more
    /// per point.
    #[must_use]
    pub const fn flops(&self) -> u64 {
        let each = match self.step {
            None => FLOPS_PER_POINT,
            Some(_) => STEP_FLOPS_PER_POINT,
        };
        self.swept_points().saturating_mul(each)
    }

    /// Sweeps from `old` into `new`, at least once and at most `sweeps` times, and returns
    /// how often. Only the points that are swept are written. The buffers have been checked.
    pub(super) fn launch<T: Scalar>(
        &self,
        by: By,
        source: Option<&Buffer<T>>,
        old: &Buffer<T>,
        new: &mut Buffer<T>,
        sweeps: usize,
        workspace: &mut gpu::Workspace,
    ) -> Result<usize, Error> {
        let variant = match by {
            By::Port => {
                let plates = Checked::new(self.shape, source, old, new)?;
                self.sweep_port(plates);
                return Ok(1);
            }
            By::Kernel(variant) => variant,
            By::Library if self.step.is_some() => Variant::Step,
            By::Library if self.walls.any_insulated() || source.is_some() => Variant::General,
            By::Library if sweeps == 1 => gpu::SINGLE_SWEEP,
            By::Library => gpu::MANY_SWEEPS,
        };
        let plates = Checked::new(self.shape, source, old, new)?;
        match variant {
            Variant::General => T::launch_general(self.walls, plates).map(|()| 1),
            Variant::Step => {
                let ratio = T::nearest(self.step.map_or(STABLE_RATIO, |step| step.ratio));
                T::launch_step(self.walls, ratio, plates).map(|()| 1)
            }
            _ => T::launch_sweeps(variant, plates, sweeps, workspace),
        }
    }

    /// Sweeps the plate in `current` at least once and at most `sweeps` times, of which
    /// there is one, and returns how often. `next` has the same fixed walls. The buffers
    /// have been checked.
    pub(super) fn advance<T: Scalar>(
        &self,
        by: By,
        source: Option<&Buffer<T>>,
        current: &mut Buffer<T>,
        next: &mut Buffer<T>,
        sweeps: usize,
        workspace: &mut gpu::Workspace,
    ) -> Result<usize, Error> {
        if !matches!(by, By::Port) {
            let done = self.launch(by, source, current, next, sweeps, workspace)?;
            current.give_way_to(next);
            return Ok(done);
        }
        Checked::new(self.shape, source, current, next)?;
        let setup = self.setup(source);
        let (Some(old), Some(new)) = (current.as_host_mut_slice(), next.as_host_mut_slice()) else {
            unreachable!("buffers of the CPU device that are written are host memory");
        };
        if T::sweeps(setup, old, new, sweeps)? {
            current.give_way_to(next);
        }
        Ok(sweeps)
    }

    fn sweep_port<T: Scalar>(&self, plates: Checked<'_, T>) {
        let setup = self.setup(plates.source());
        let (old, new) = plates.into_plates();
        let (Some(old), Some(new)) = (old.as_host_slice(), new.as_host_mut_slice()) else {
            unreachable!("buffers of the CPU device are host memory");
        };
        T::sweep(setup, old, new);
    }

    /// What the port is told, with a source on the CPU device that has been checked.
    fn setup<'a, T: Scalar>(&self, source: Option<&'a Buffer<T>>) -> Setup<'a, T> {
        let host = |source: &'a Buffer<T>| match source.as_host_slice() {
            Some(source) => source,
            None => unreachable!("buffers of the CPU device are host memory"),
        };
        Setup {
            shape: self.shape,
            walls: self.walls,
            source: source.map(host),
            ratio: self.step.map(|step| T::nearest(step.ratio)),
        }
    }

    pub(super) fn check_launchable<T: Scalar>(
        &self,
        variant: Variant,
        device: &Device,
    ) -> Result<(), Error> {
        let refused = |given, required: String| Error::InvalidParameter {
            operation: "heat2d",
            parameter: "the kernel",
            given,
            required,
        };
        let Some(kernel) = variant.kernel::<T>() else {
            let required = "one that is not the textbook's, which are in f32";
            let given = format!("{variant} for {}", T::NAME);
            return Err(refused(given, required.to_owned()));
        };
        if self.step.is_some() != (variant == Variant::Step) {
            let required = match self.step {
                Some(_) => format!("{}, as sweeps are steps in time", Variant::Step),
                None => "one of an iteration, as there is no time step".to_owned(),
            };
            return Err(refused(variant.to_string(), required));
        }
        if self.walls.any_insulated() && !matches!(variant, Variant::General | Variant::Step) {
            let required = format!("{}, as a wall is insulated", Variant::General);
            return Err(refused(variant.to_string(), required));
        }
        match device.kind() {
            DeviceKind::Cpu => Err(Error::NotLaunchable { kernel }),
            DeviceKind::Emulator | DeviceKind::Cuda => Ok(()),
        }
    }
}

/// What sweeps a plate.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    Port,
    /// The kernel that the library takes.
    Library,
    Kernel(Variant),
}

impl By {
    /// What is taken on `device` where nobody says.
    pub(super) fn of(device: &Device) -> Self {
        match device.kind() {
            DeviceKind::Cpu => Self::Port,
            DeviceKind::Emulator | DeviceKind::Cuda => Self::Library,
        }
    }
}
