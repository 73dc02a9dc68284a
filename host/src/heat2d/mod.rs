//! The steady temperature of a plate, by Jacobi iteration of the 2-D heat equation.
//!
//! ```text
//! new(i, j) = ((E + W) + (N + S)) * 0.25
//! E = old(i+1, j)   W = old(i-1, j)   N = old(i, j+1)   S = old(i, j-1)
//! ```
//!
//! at every interior point. The outermost points are the walls, which keep their
//! temperature if nothing else is said. Each sweep moves the plate towards the solution
//! of Laplace's equation on square cells (LeVeque, "Finite Difference Methods for
//! Ordinary and Partial Differential Equations", SIAM 2007, sections 3.2 and 4.1).
//! [Insulated walls and sources](#insulated-walls-and-sources) are below.
//!
//! [`Heat2d`] says what is computed: the shape, any from 3 × 3 points on. Where
//! it runs is the device of the data, and whether in `f32` or in `f64` is their type.
//! On a CUDA device and on the emulator it is the kernel that is fastest for the size;
//! each kernel, the five of the textbook among them, can also be asked for by name
//! ([`Variant`]). On the CPU it is a port. All of them give the same bits.
//! Temperatures may be any number; a NaN or an infinity spreads by one point per
//! sweep, as the formula says.
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, problem};
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // The left wall at 1, all other walls and the plate at 0.
//! let shape = Shape2::new(17, 33);
//! let initial = problem::hot_left_wall::<f32>(shape)?;
//! let plate = Heat2d::new(shape)?.solve(&Device::cpu(), &initial, 100)?;
//!
//! // It is warmer near the hot wall, and above and below alike.
//! assert!(plate[(1, 16)] > plate[(2, 16)] && plate[(2, 16)] > 0.0);
//! assert_eq!(plate[(5, 9)], plate[(5, 23)]);
//! # Ok(())
//! # }
//! ```
//!
//! A plate that stays on its device between sweeps, by a kernel of your choice:
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, Variant, problem};
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let shape = Shape2::new(17, 33);
//! let initial = problem::hot_left_wall::<f32>(shape)?;
//! let mut plate =
//!     Heat2d::new(shape)?.start_with(Variant::Texture, &Device::emulator(), &initial)?;
//! plate.sweep(3)?;
//! assert_eq!(plate.field()?[(3, 16)], 1.0 / 64.0);
//! assert_eq!(plate.field()?[(4, 16)], 0.0);
//! # Ok(())
//! # }
//! ```
//!
//! # Insulated walls and sources
//!
//! Each wall is fixed or insulated ([`Walls`]), and each point may have a source of heat
//! ([`Plate::with_source`]). The plate then moves towards the solution of Poisson's
//! equation, -∇²u = f, without heat flux through the insulated walls:
//!
//! ```text
//! new(i, j) = (((E + W) + (N + S)) + h² f(i, j)) * 0.25
//! at an insulated wall:  W = E at the left, i = 0      E = W at the right, i = nx-1
//!                        S = N at the bottom, j = 0    N = S at the top, j = ny-1
//! ```
//!
//! with h the distance of two points. What is beyond an insulated wall mirrors what is
//! before it, which makes the central difference across the wall zero: an
//! approximation of second order, as that of the equation is (LeVeque 2007, section 2.12,
//! second approach, and section 3.2). Where two insulated walls meet, both are mirrored;
//! where an insulated wall meets a fixed one, the corner is fixed. These plates have one
//! kernel, [`Variant::General`]; again all devices give the same bits.
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, Wall, Walls};
//! use halo_gpu::{Device, Field2, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // A rod of 21 points, insulated at the sides, 0.05 m from point to point; its ends
//! // are kept at 0 °C. A current heats it: 80 K/m², power per volume over conductivity.
//! let shape = Shape2::new(21, 3);
//! let walls = Walls { bottom: Wall::Insulated, top: Wall::Insulated, ..Walls::FIXED };
//! let cold = Field2::filled(shape, 0.0_f64)?;
//! let heating = Field2::filled(shape, 0.05 * 0.05 * 80.0)?;
//!
//! let heat = Heat2d::new(shape)?.with_walls(walls);
//! let mut rod = heat.start(&Device::cpu(), &cold)?.with_source(&heating)?;
//! assert!(rod.sweep_until(1e-12, 100, 100_000)?.converged);
//!
//! // f x (L - x) / 2, of which the middle has 10 K.
//! let rod = rod.field()?;
//! assert!((rod[(10, 1)] - 10.0).abs() < 1e-8 && (rod[(4, 2)] - 6.4).abs() < 1e-8);
//! # Ok(())
//! # }
//! ```

mod cpu;
mod gpu;
pub mod problem;
mod walls;

use crate::device::Tally;
use crate::simd::Value;
use crate::{AddressMode, Buffer, Device, DeviceKind, Element, Error, Field2, Shape2, Texture2d};
use gpu_kernels::heat2d::{BLOCK, HALO_TILE};
use std::fmt;
pub use walls::{Wall, Walls};

/// The fewest points along an axis: two walls and a point between them.
pub const MIN_EXTENT: usize = 3;

/// Floating-point operations per point that is swept: 3 additions, 1 multiplication. A
/// source is one addition more.
pub const FLOPS_PER_POINT: u64 = 4;

/// One of the kernels.
///
/// Those of the textbook have blocks of 16 × 16 threads and are in `f32` alone. They
/// differ in where a thread finds the four neighbours of its point. The others are in
/// `f32` and `f64`.
///
/// | kernel | neighbours from | a block writes |
/// |---|---|---|
/// | `heat2d_global` | global memory | 16 × 16 |
/// | `heat2d_shared_core` | a 16 × 16 tile; at its rim, global memory | 16 × 16 |
/// | `heat2d_shared_overlap` | a 16 × 16 tile; tiles overlap by 2 | 14 × 14 |
/// | `heat2d_shared_halo` | an 18 × 18 tile | 16 × 16 |
/// | `heat2d_texture` | a texture | 16 × 16 |
/// | `heat2d_march_*` | registers, marching along y | 1024 × 6 in `f32` |
/// | `heat2d_temporal_*` | registers, 16 sweeps in one pass over memory | strips along y |
/// | `heat2d_resident_*` | registers, all sweeps in one launch | what it holds |
/// | `heat2d_general_*` | registers, marching along y | 1024 × 6 in `f32` |
///
/// The last is the only one for insulated walls and for sources.
///
/// With [`Variant::Temporal`] the sweeps that are left over, fewer than a pass has,
/// are [`Variant::March`]'s. A plate that does not fit on the device at once is not
/// swept by [`Variant::Resident`] but by [`Variant::Temporal`]; on the emulator, whose
/// blocks need not run at the same time, that is one of more than a block holds, unless
/// they are [`Blocks::Resident`](crate::device::Blocks::Resident).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// `heat2d_global`
    Global,
    /// `heat2d_shared_core`
    SharedCore,
    /// `heat2d_shared_overlap`
    SharedOverlap,
    /// `heat2d_shared_halo`
    SharedHalo,
    /// `heat2d_texture`
    Texture,
    /// `heat2d_march_f32`, `heat2d_march_f64`
    March,
    /// `heat2d_temporal_f32`, `heat2d_temporal_f64`
    Temporal,
    /// `heat2d_resident_f32`, `heat2d_resident_f64`
    Resident,
    /// `heat2d_general_f32`, `heat2d_general_f64`
    General,
}

impl Variant {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::Global,
        Self::SharedCore,
        Self::SharedOverlap,
        Self::SharedHalo,
        Self::Texture,
        Self::March,
        Self::Temporal,
        Self::Resident,
        Self::General,
    ];

    /// The five kernels of the textbook, in its order.
    pub const TEXTBOOK: [Self; 5] = [
        Self::Global,
        Self::SharedCore,
        Self::SharedOverlap,
        Self::SharedHalo,
        Self::Texture,
    ];

    /// The kernel's entry point for `T`, as in the PTX; `None` for the textbook's
    /// kernels in `f64`, which there are none of.
    #[must_use]
    pub fn kernel<T: Real>(self) -> Option<&'static str> {
        T::entry_name(self)
    }

    /// The most sweeps of a launch in `T`.
    ///
    /// ```
    /// use halo_gpu::heat2d::Variant;
    ///
    /// assert_eq!(Variant::March.sweeps_per_launch::<f32>(), 1);
    /// assert_eq!(Variant::Temporal.sweeps_per_launch::<f32>(), 16);
    /// ```
    #[must_use]
    pub fn sweeps_per_launch<T: Real>(self) -> usize {
        match self {
            Self::Temporal => T::TILING.sweeps(),
            Self::Resident => gpu::RESIDENT_SWEEPS,
            Self::Global
            | Self::SharedCore
            | Self::SharedOverlap
            | Self::SharedHalo
            | Self::Texture
            | Self::March
            | Self::General => 1,
        }
    }

    /// The kernel's name without the type of its temperatures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "heat2d_global",
            Self::SharedCore => "heat2d_shared_core",
            Self::SharedOverlap => "heat2d_shared_overlap",
            Self::SharedHalo => "heat2d_shared_halo",
            Self::Texture => "heat2d_texture",
            Self::March => "heat2d_march",
            Self::Temporal => "heat2d_temporal",
            Self::Resident => "heat2d_resident",
            Self::General => "heat2d_general",
        }
    }

    /// The tile in shared memory, rows and columns; `None` for the kernels that
    /// have none.
    #[must_use]
    pub const fn tile(self) -> Option<[usize; 2]> {
        match self {
            Self::Global
            | Self::Texture
            | Self::March
            | Self::Temporal
            | Self::Resident
            | Self::General => None,
            Self::SharedCore | Self::SharedOverlap => Some([BLOCK as usize; 2]),
            Self::SharedHalo => Some([HALO_TILE as usize; 2]),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What temperatures are given in: `f32` or `f64`.
///
/// No other type can implement it.
pub trait Real:
    gpu_kernels::heat2d::Real
    + Element
    + Value
    + From<f32>
    + Into<f64>
    + gpu::Entries
    + fmt::Debug
    + fmt::Display
{
    /// `f32` or `f64`.
    const NAME: &'static str;

    /// The distance from 1 to the next number.
    const EPSILON: f64;
}

impl Real for f32 {
    const NAME: &'static str = "f32";
    const EPSILON: f64 = Self::EPSILON as f64;
}

impl Real for f64 {
    const NAME: &'static str = "f64";
    const EPSILON: f64 = Self::EPSILON;
}

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
    pub const fn bytes<T: Real>(&self) -> u64 {
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

    /// The plate `initial` after so many sweeps, computed on `device`.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), and what a launch can fail with.
    pub fn solve<T: Real>(
        &self,
        device: &Device,
        initial: &Field2<T>,
        sweeps: usize,
    ) -> Result<Field2<T>, Error> {
        let mut plate = self.start(device, initial)?;
        plate.sweep(sweeps)?;
        plate.field()
    }

    /// The plate `initial` on `device`, to be swept by the port on the CPU and by
    /// the library's kernel elsewhere.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if `initial` has another shape,
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn start<T: Real>(&self, device: &Device, initial: &Field2<T>) -> Result<Plate<T>, Error> {
        self.place(By::of(device), device, initial)
    }

    /// The plate `initial` on `device`, to be swept by the given kernel.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start); [`Error::NotLaunchable`] on the CPU device,
    /// which runs no kernels; [`Error::InvalidParameter`] for a kernel that is not
    /// there in `T` or that keeps all walls where one is insulated;
    /// [`Error::InvalidSize`] if `variant` is [`Variant::Texture`] and the plate exceeds
    /// what the device can bind to a texture.
    pub fn start_with<T: Real>(
        &self,
        variant: Variant,
        device: &Device,
        initial: &Field2<T>,
    ) -> Result<Plate<T>, Error> {
        self.place(By::Kernel(variant), device, initial)
    }

    fn place<T: Real>(
        &self,
        by: By,
        device: &Device,
        initial: &Field2<T>,
    ) -> Result<Plate<T>, Error> {
        if initial.shape() != self.shape {
            return Err(Error::InvalidParameter {
                operation: "heat2d",
                parameter: "the initial plate",
                given: format!("of {} points", initial.shape()),
                required: format!("of {} points", self.shape),
            });
        }
        let state = match by {
            By::Port | By::Library => State::buffers(by, device, initial.as_slice())?,
            By::Kernel(variant) => {
                self.check_launchable::<T>(variant, device)?;
                if variant == Variant::Texture {
                    State::textures(self.shape, device, initial.as_slice())?
                } else {
                    State::buffers(by, device, initial.as_slice())?
                }
            }
        };
        Ok(Plate {
            heat: *self,
            state,
            source: None,
            sweeps: Tally::default(),
        })
    }

    /// One sweep, from `old` into the interior points of `new` and its insulated walls,
    /// on the device of the buffers.
    ///
    /// `old` and `new` hold `nx * ny` elements, x fastest. The fixed walls of `new` are
    /// left as they are: both buffers get them before the first sweep.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let heat = Heat2d::new(Shape2::new(5, 3))?;
    /// let initial = problem::hot_left_wall::<f32>(heat.shape())?;
    /// let old = Device::cpu().upload(initial.as_slice())?;
    /// let mut new = old.try_clone()?; // which has the walls
    /// heat.sweep(&old, &mut new)?;
    /// assert_eq!(new.to_vec()?[5..10], [1.0, 0.25, 0.0, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::ShapeMismatch`] and
    /// [`Error::DeviceMismatch`] for buffers that
    /// do not fit, and what a launch can fail with.
    pub fn sweep<T: Real>(&self, old: &Buffer<T>, new: &mut Buffer<T>) -> Result<(), Error> {
        self.check_buffers("old", old, "new", new)?;
        self.launch(By::of(old.device()), None, old, new, 1, &mut None)
            .map(drop)
    }

    /// As [`sweep`](Self::sweep), of a plate with a source.
    ///
    /// `source` holds `nx * ny` elements, in the units of [`Plate::with_source`]; they
    /// may be any number, like temperatures. Those of points on fixed walls are unused.
    ///
    /// ```
    /// use halo_gpu::heat2d::Heat2d;
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let old = device.alloc_filled(15, 1.0_f32)?;
    /// let mut new = old.try_clone()?;
    /// let source = device.alloc_filled(15, 2.0_f32)?;
    /// Heat2d::new(Shape2::new(5, 3))?.sweep_with_source(&source, &old, &mut new)?;
    /// assert_eq!(new.to_vec()?[5..10], [1.0, 1.5, 1.5, 1.5, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sweep`](Self::sweep).
    pub fn sweep_with_source<T: Real>(
        &self,
        source: &Buffer<T>,
        old: &Buffer<T>,
        new: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.check_buffers("old", old, "new", new)?;
        self.check_buffers("old", old, "source", source)?;
        let by = By::of(old.device());
        self.launch(by, Some(source), old, new, 1, &mut None)
            .map(drop)
    }

    /// As [`sweep`](Self::sweep), by the given kernel.
    ///
    /// [`Variant::Texture`] needs rows with padding: it copies both buffers to
    /// textures and the result back, through host memory. A [`Plate`] has them
    /// from the start.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, Variant, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let heat = Heat2d::new(Shape2::new(5, 3))?;
    /// let initial = problem::hot_left_wall::<f32>(heat.shape())?;
    /// let old = Device::emulator().upload(initial.as_slice())?;
    /// for variant in Variant::TEXTBOOK {
    ///     let mut new = old.try_clone()?;
    ///     heat.sweep_with(variant, &old, &mut new)?;
    ///     assert_eq!(new.to_vec()?[5..10], [1.0, 0.25, 0.0, 0.0, 0.0], "{variant}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sweep`](Self::sweep) and [`start_with`](Self::start_with).
    pub fn sweep_with<T: Real>(
        &self,
        variant: Variant,
        old: &Buffer<T>,
        new: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.check_buffers("old", old, "new", new)?;
        self.check_launchable::<T>(variant, old.device())?;
        if variant != Variant::Texture {
            let by = By::Kernel(variant);
            return self.launch(by, None, old, new, 1, &mut None).map(drop);
        }
        let from = texture(self.shape, old.device(), &old.to_vec()?)?;
        let mut to = texture(self.shape, old.device(), &new.to_vec()?)?;
        gpu::launch_texture(self.shape, &from, &mut to)?;
        new.copy_from_slice(&values_of(&to)?)
    }

    /// So many sweeps of the plate in `current`; the result is in `current`.
    ///
    /// `scratch` has the same length and device; what it held is lost. The two
    /// are exchanged after each sweep, so no element is copied but once, at the
    /// start, to give `scratch` its walls.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let heat = Heat2d::new(Shape2::new(5, 3))?;
    /// let initial = problem::hot_left_wall::<f32>(heat.shape())?;
    /// let device = Device::cpu();
    /// let mut plate = device.upload(initial.as_slice())?;
    /// let mut scratch = device.alloc_filled(15, f32::NAN)?;
    /// heat.sweeps(&mut plate, &mut scratch, 2)?;
    /// assert_eq!(plate.to_vec()?[5..10], [1.0, 0.25, 0.0625, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sweep`](Self::sweep). After an error of a launch, what the buffers
    /// hold is unspecified.
    pub fn sweeps<T: Real>(
        &self,
        current: &mut Buffer<T>,
        scratch: &mut Buffer<T>,
        sweeps: usize,
    ) -> Result<(), Error> {
        self.check_buffers("current", current, "scratch", scratch)?;
        self.sweeps_by(By::of(current.device()), current, scratch, sweeps)
    }

    /// The sweeps of two buffers that have been checked, by anything but the kernel
    /// with textures.
    fn sweeps_by<T: Real>(
        &self,
        by: By,
        current: &mut Buffer<T>,
        scratch: &mut Buffer<T>,
        sweeps: usize,
    ) -> Result<(), Error> {
        scratch.copy_from(current)?;
        let mut workspace = None;
        let mut left = sweeps;
        while left > 0 {
            left -= self.launch(by, None, current, scratch, left, &mut workspace)?;
            current.give_way_to(scratch);
        }
        Ok(())
    }

    /// At least one sweep and at most so many, from `old` into the points of `new` that
    /// are swept; the buffers have been checked. Returns how many.
    fn launch<T: Real>(
        &self,
        by: By,
        source: Option<&Buffer<T>>,
        old: &Buffer<T>,
        new: &mut Buffer<T>,
        sweeps: usize,
        workspace: &mut gpu::Workspace,
    ) -> Result<usize, Error> {
        let variant = match by {
            By::Port => return self.sweep_port(source, old, new).map(|()| 1),
            By::Kernel(variant) => variant,
            By::Library if self.walls.any_insulated() || source.is_some() => Variant::General,
            By::Library if sweeps == 1 => gpu::SINGLE_SWEEP,
            By::Library => gpu::MANY_SWEEPS,
        };
        match variant {
            Variant::General => T::launch_general(self, source, old, new).map(|()| 1),
            _ => T::launch(self.shape, variant, old, new, sweeps, workspace),
        }
    }

    /// As [`sweeps`](Self::sweeps), by the given kernel.
    ///
    /// With [`Variant::Texture`] the plate goes through host memory before the
    /// first and after the last sweep.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, Variant, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let heat = Heat2d::new(Shape2::new(5, 3))?;
    /// let initial = problem::hot_left_wall::<f32>(heat.shape())?;
    /// let device = Device::emulator();
    /// let mut plate = device.upload(initial.as_slice())?;
    /// let mut scratch = plate.try_clone()?;
    /// heat.sweeps_with(Variant::SharedHalo, &mut plate, &mut scratch, 2)?;
    /// assert_eq!(plate.to_vec()?[5..10], [1.0, 0.25, 0.0625, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sweeps`](Self::sweeps) and [`start_with`](Self::start_with).
    pub fn sweeps_with<T: Real>(
        &self,
        variant: Variant,
        current: &mut Buffer<T>,
        scratch: &mut Buffer<T>,
        sweeps: usize,
    ) -> Result<(), Error> {
        self.check_buffers("current", current, "scratch", scratch)?;
        self.check_launchable::<T>(variant, current.device())?;
        if variant == Variant::Texture {
            let mut state = State::textures(self.shape, current.device(), &current.to_vec()?)?;
            for _ in 0..sweeps {
                state.sweep(self, None, 1)?;
            }
            return current.copy_from_slice(&state.to_vec()?);
        }
        self.sweeps_by(By::Kernel(variant), current, scratch, sweeps)
    }

    fn sweep_port<T: Real>(
        &self,
        source: Option<&Buffer<T>>,
        old: &Buffer<T>,
        new: &mut Buffer<T>,
    ) -> Result<(), Error> {
        let source = source.map(|source| source.as_host_slice());
        let (Some(old), Some(new), None | Some(Some(_))) =
            (old.as_host_slice(), new.as_host_mut_slice(), source)
        else {
            unreachable!("buffers of the CPU device are host memory");
        };
        cpu::sweep(self.shape, self.walls, source.flatten(), old, new);
        Ok(())
    }

    fn check_launchable<T: Real>(&self, variant: Variant, device: &Device) -> Result<(), Error> {
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

    fn check_buffers<T: Real>(
        &self,
        a_name: &str,
        a: &Buffer<T>,
        b_name: &str,
        b: &Buffer<T>,
    ) -> Result<(), Error> {
        for (name, buffer) in [(a_name, a), (b_name, b)] {
            buffer.require_shape(|| format!("heat2d: {name}"), self.shape)?;
        }
        a.device().require(&format!("heat2d: {b_name}"), b)
    }
}

/// A plate on a device, between sweeps.
#[derive(Debug)]
pub struct Plate<T: Real = f32> {
    heat: Heat2d,
    state: State<T>,
    source: Option<Buffer<T>>,
    sweeps: Tally,
}

impl<T: Real> Plate<T> {
    /// The same plate with a source of heat at each point, instead of the one it had.
    ///
    /// `source` is h² f, in the units of the temperature: h is the distance of two
    /// points, and f, in -∇²u = f, the power per volume over the conductivity. A plate
    /// of temperature 0 is at a quarter of it after a sweep. What it is at points on
    /// fixed walls is unused.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if `source` has another shape, or if the plate was
    /// started with a kernel that knows no source; [`Error::InvalidElement`] if an
    /// element is not a finite number; [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn with_source(mut self, source: &Field2<T>) -> Result<Self, Error> {
        let invalid = |parameter, given, required| Error::InvalidParameter {
            operation: "heat2d",
            parameter,
            given,
            required,
        };
        let shape = self.heat.shape;
        if source.shape() != shape {
            let given = format!("of {} points", source.shape());
            let required = format!("of {shape} points");
            return Err(invalid("the source", given, required));
        }
        if let Some(variant) = self.state.kernel().filter(|&it| it != Variant::General) {
            let required = format!("{}, as there is a source", Variant::General);
            return Err(invalid("the kernel", variant.to_string(), required));
        }
        let values = source.as_slice().iter().map(|&value| value.into());
        if let Some((index, given)) = values
            .enumerate()
            .find(|(_, it): &(_, f64)| !it.is_finite())
        {
            return Err(Error::InvalidElement {
                operation: "heat2d",
                what: "the source of element",
                index,
                given,
                required: "a finite number".to_owned(),
            });
        }
        self.source = Some(self.state.device().upload(source.as_slice())?);
        Ok(self)
    }

    /// Sweeps so many times.
    ///
    /// On a CUDA device this queues the launches and does not wait for them.
    ///
    /// # Errors
    ///
    /// What a launch can fail with. What the plate holds is then unspecified.
    pub fn sweep(&mut self, sweeps: usize) -> Result<(), Error> {
        let mut left = sweeps;
        while left > 0 {
            let done = self.state.sweep(&self.heat, self.source.as_ref(), left)?;
            left -= done;
            self.sweeps.add(self.state.device(), done as u64);
        }
        Ok(())
    }

    /// Sweeps until a sweep changes no temperature by more than `tolerance`, looking
    /// after every so many sweeps, and at most `most` times.
    ///
    /// What is compared are the plates before and after the last sweep of each round, on
    /// their device; looking costs about as much as a sweep. The distance from the steady
    /// state is larger than the change of a sweep, by a factor of the order of the number
    /// of points along the shorter axis, squared.
    ///
    /// It goes on where the last call has ended: to show how far it is, or to be able to
    /// stop, call it with fewer sweeps at most, again and again until it has converged.
    ///
    /// With four insulated walls not every plate comes to rest. What the source gives
    /// stays, so it must add up to 0, where a point on a wall counts half and one in a
    /// corner a quarter. And heat that points of even i + j have more than those of odd
    /// i + j goes back and forth for ever: the means of both must be the same at the
    /// start. (Where they are not, the mean of two plates that are one sweep apart still
    /// tends to the steady state.) This is looked at first, and a plate of which some
    /// temperature changes by more than `tolerance` in every sweep is refused.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let shape = Shape2::new(20, 30);
    /// let initial = problem::hot_left_wall::<f64>(shape)?;
    /// let mut plate = Heat2d::new(shape)?.start(&Device::cpu(), &initial)?;
    /// let outcome = plate.sweep_until(1e-9, 50, 100_000)?;
    /// assert!(outcome.converged && outcome.change <= 1e-9);
    /// assert_eq!(outcome.sweeps, plate.sweeps());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if `tolerance` is negative, not a number, or cannot be
    /// reached, or if `every` is 0; and as [`sweep`](Self::sweep).
    pub fn sweep_until(
        &mut self,
        tolerance: T,
        every: usize,
        most: usize,
    ) -> Result<Outcome<T>, Error> {
        let invalid = |parameter, given: String, required: &str| Error::InvalidParameter {
            operation: "heat2d",
            parameter,
            given,
            required: required.to_owned(),
        };
        if !(tolerance >= T::from(0.0)) {
            let required = "at least 0";
            return Err(invalid("the tolerance", tolerance.to_string(), required));
        }
        if every == 0 {
            let required = "at least 1";
            return Err(invalid(
                "sweeps between two looks",
                "0".to_owned(),
                required,
            ));
        }
        if self.heat.walls == Walls::INSULATED {
            let change = self.change_that_stays()?;
            if change > tolerance.into() {
                let required = format!(
                    "at least {change:e}, by which a plate that is insulated all around goes on \
                     to change with this source and from these temperatures"
                );
                return Err(invalid("the tolerance", tolerance.to_string(), &required));
            }
        }
        let mut outcome = Outcome {
            sweeps: 0,
            change: T::from(f32::INFINITY),
            converged: false,
        };
        let mut left = most;
        while left > 0 && !outcome.converged {
            let round = every.min(left);
            self.sweep(round - 1)?;
            self.sweep(1)?;
            left -= round;
            outcome.sweeps += round as u64;
            outcome.change = self.state.largest_change()?;
            outcome.converged = outcome.change <= tolerance;
        }
        Ok(outcome)
    }

    /// What some temperature of a plate without fixed walls changes by in every sweep
    /// from now on, at the least; 0 where it is less than rounding makes.
    fn change_that_stays(&self) -> Result<f64, Error> {
        let plate = walls::Means::of(&self.field()?);
        let source = match &self.source {
            Some(source) => walls::Means::of(&Field2::from_vec(self.heat.shape, source.to_vec()?)?),
            None => walls::Means::ZERO,
        };
        let change = plate.change_that_stays(source);
        let rounding = T::EPSILON * (plate.largest + source.largest);
        Ok(if change > rounding { change } else { 0.0 })
    }

    /// How many sweeps there have been.
    #[must_use]
    pub fn sweeps(&self) -> u64 {
        self.sweeps.get()
    }

    /// The temperatures now, on the host.
    ///
    /// # Errors
    ///
    /// [`Error::HostOutOfMemory`]; [`Error::Driver`], also when a sweep failed.
    pub fn field(&self) -> Result<Field2<T>, Error> {
        Field2::from_vec(self.heat.shape, self.state.to_vec()?)
    }
}

/// How [`Plate::sweep_until`] ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome<T> {
    /// Sweeps that were made.
    pub sweeps: u64,
    /// The largest change of a temperature by the last of them; infinite if there was
    /// none, NaN if there is a NaN on the plate.
    pub change: T,
    /// Whether that is within the tolerance.
    pub converged: bool,
}

/// What sweeps a plate.
#[derive(Debug, Clone, Copy)]
enum By {
    Port,
    /// The kernel that the library takes.
    Library,
    Kernel(Variant),
}

impl By {
    /// What is taken on `device` where nobody says.
    fn of(device: &Device) -> Self {
        match device.kind() {
            DeviceKind::Cpu => Self::Port,
            DeviceKind::Emulator | DeviceKind::Cuda => Self::Library,
        }
    }
}

/// A plate and the one it is swept into, with the same fixed walls.
#[derive(Debug)]
enum State<T: Real> {
    Buffers {
        by: By,
        current: Buffer<T>,
        next: Buffer<T>,
        workspace: gpu::Workspace,
    },
    Textures {
        current: Texture2d,
        next: Texture2d,
    },
}

impl<T: Real> State<T> {
    fn buffers(by: By, device: &Device, initial: &[T]) -> Result<Self, Error> {
        let current = device.upload(initial)?;
        let next = current.try_clone()?;
        Ok(Self::Buffers {
            by,
            current,
            next,
            workspace: None,
        })
    }

    fn textures(shape: Shape2, device: &Device, initial: &[T]) -> Result<Self, Error> {
        Ok(Self::Textures {
            current: texture(shape, device, initial)?,
            next: texture(shape, device, initial)?,
        })
    }

    fn device(&self) -> &Device {
        match self {
            Self::Buffers { current, .. } => current.device(),
            Self::Textures { current, .. } => current.device(),
        }
    }

    /// The kernel that was asked for.
    const fn kernel(&self) -> Option<Variant> {
        match self {
            Self::Buffers {
                by: By::Kernel(variant),
                ..
            } => Some(*variant),
            Self::Buffers { .. } => None,
            Self::Textures { .. } => Some(Variant::Texture),
        }
    }

    /// At least one sweep and at most so many; returns how many.
    fn sweep(
        &mut self,
        heat: &Heat2d,
        source: Option<&Buffer<T>>,
        sweeps: usize,
    ) -> Result<usize, Error> {
        match self {
            Self::Buffers {
                by,
                current,
                next,
                workspace,
            } => {
                let done = heat.launch(*by, source, current, next, sweeps, workspace)?;
                current.give_way_to(next);
                Ok(done)
            }
            Self::Textures { current, next } => {
                gpu::launch_texture(heat.shape, current, next)?;
                current.give_way_to(next);
                Ok(1)
            }
        }
    }

    /// The largest change by the last sweep, which was one of a launch of its own.
    fn largest_change(&self) -> Result<T, Error> {
        let (new, old) = match self {
            Self::Buffers { current, next, .. } => {
                if current.device().kind() != DeviceKind::Cpu {
                    return T::largest_change(next, current);
                }
                (current.to_vec()?, next.to_vec()?)
            }
            Self::Textures { current, next } => (values_of(current)?, values_of(next)?),
        };
        Ok(cpu::largest_change(&old, &new))
    }

    fn to_vec(&self) -> Result<Vec<T>, Error> {
        match self {
            Self::Buffers { current, .. } => current.to_vec(),
            Self::Textures { current, .. } => values_of(current),
        }
    }
}

/// `values` behind a texture. No fetch lies outside, so how that is read is moot.
///
/// They are `f32`: no other type has a kernel that reads textures.
fn texture<T: Real>(shape: Shape2, device: &Device, values: &[T]) -> Result<Texture2d, Error> {
    let values = bytemuck::cast_slice(values);
    Texture2d::from_slice(device, shape.nx, shape.ny, AddressMode::Clamp, values)
}

/// The values behind a texture, which are `f32` as in [`texture`].
fn values_of<T: Real>(texture: &Texture2d) -> Result<Vec<T>, Error> {
    Ok(bytemuck::cast_slice(&texture.to_vec()?).to_vec())
}
