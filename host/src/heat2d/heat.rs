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

/// Sweeps over plates of a given shape.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heat2d {
    shape: Shape2,
    walls: Walls,
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
        self.swept_points().saturating_mul(FLOPS_PER_POINT)
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
            By::Library if self.walls.any_insulated() || source.is_some() => Variant::General,
            By::Library if sweeps == 1 => gpu::SINGLE_SWEEP,
            By::Library => gpu::MANY_SWEEPS,
        };
        let plates = Checked::new(self.shape, source, old, new)?;
        match variant {
            Variant::General => T::launch_general(self.walls, plates).map(|()| 1),
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
        if self.walls.any_insulated() && variant != Variant::General {
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
