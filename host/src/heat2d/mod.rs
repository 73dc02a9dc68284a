//! The steady temperature of a plate, by Jacobi iteration of the 2-D heat equation.
//!
//! ```text
//! new(i, j) = ((E + W) + (N + S)) * 0.25
//! E = old(i+1, j)   W = old(i-1, j)   N = old(i, j+1)   S = old(i, j-1)
//! ```
//!
//! at every interior point. The outermost points are the walls, which keep their
//! temperature. Each sweep moves the plate towards the solution of Laplace's
//! equation on square cells (LeVeque, "Finite Difference Methods for Ordinary
//! and Partial Differential Equations", SIAM 2007, sections 3.2 and 4.1).
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

mod cpu;
mod gpu;
pub mod problem;

use crate::{AddressMode, Buffer, Device, DeviceKind, Element, Error, Field2, Shape2, Texture2d};
use gpu_kernels::heat2d::{BLOCK, HALO_TILE};
use std::fmt;

/// The fewest points along an axis: two walls and a point between them.
pub const MIN_EXTENT: usize = 3;

/// Floating-point operations per interior point: 3 additions, 1 multiplication.
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
}

impl Variant {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Global,
        Self::SharedCore,
        Self::SharedOverlap,
        Self::SharedHalo,
        Self::Texture,
        Self::March,
        Self::Temporal,
        Self::Resident,
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
            | Self::March => 1,
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
        }
    }

    /// The tile in shared memory, rows and columns; `None` for the kernels that
    /// have none.
    #[must_use]
    pub const fn tile(self) -> Option<[usize; 2]> {
        match self {
            Self::Global | Self::Texture | Self::March | Self::Temporal | Self::Resident => None,
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
    + From<f32>
    + Into<f64>
    + gpu::Entries
    + fmt::Debug
    + fmt::Display
{
    /// `f32` or `f64`.
    const NAME: &'static str;
}

impl Real for f32 {
    const NAME: &'static str = "f32";
}

impl Real for f64 {
    const NAME: &'static str = "f64";
}

/// Sweeps over plates of a given shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heat2d {
    shape: Shape2,
}

impl Heat2d {
    /// Sweeps over plates of `shape`, walls included.
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
        Ok(Self { shape })
    }

    /// The shape of the plates, walls included.
    #[must_use]
    pub const fn shape(&self) -> Shape2 {
        self.shape
    }

    /// The points that a sweep computes: all but the walls.
    #[must_use]
    pub const fn interior_points(&self) -> u64 {
        // `new` checked both the extents and the product.
        ((self.shape.nx - 2) * (self.shape.ny - 2)) as u64
    }

    /// The bytes a sweep in `T` has to move at the least: each point read once, each
    /// interior point written once.
    #[must_use]
    pub const fn bytes<T: Real>(&self) -> u64 {
        // The corners have no interior neighbour, but share sectors with points
        // that have.
        let points = (self.shape.nx * self.shape.ny) as u64;
        size_of::<T>() as u64 * (points + self.interior_points())
    }

    /// The floating-point operations of a sweep.
    #[must_use]
    pub const fn flops(&self) -> u64 {
        FLOPS_PER_POINT * self.interior_points()
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
    /// which runs no kernels; [`Error::InvalidSize`] if `variant` is
    /// [`Variant::Texture`] and the plate exceeds what the device can bind to a
    /// texture.
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
            By::Port => State::buffers(by, device, initial.as_slice())?,
            By::Kernel(variant) => {
                Self::check_launchable::<T>(variant, device)?;
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
            sweeps: 0,
        })
    }

    /// One sweep, from `old` into the interior points of `new`, on the device of
    /// the buffers.
    ///
    /// `old` and `new` hold `nx * ny` elements, x fastest. The walls of `new` are
    /// left as they are: both buffers get them before the first sweep.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that
    /// do not fit, and what a launch can fail with.
    pub fn sweep<T: Real>(&self, old: &Buffer<T>, new: &mut Buffer<T>) -> Result<(), Error> {
        self.check_buffers("old", old, "new", new)?;
        match old.device().kind() {
            DeviceKind::Cpu => self.sweep_port(old, new),
            DeviceKind::Emulator | DeviceKind::Cuda => {
                T::launch(self.shape, gpu::SINGLE_SWEEP, old, new, 1, &mut None).map(drop)
            }
        }
    }

    /// As [`sweep`](Self::sweep), by the given kernel.
    ///
    /// [`Variant::Texture`] needs rows with padding: it copies both buffers to
    /// textures and the result back, through host memory. A [`Plate`] has them
    /// from the start.
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
        Self::check_launchable::<T>(variant, old.device())?;
        if variant != Variant::Texture {
            return T::launch(self.shape, variant, old, new, 1, &mut None).map(drop);
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
            left -= self.launch(by, current, scratch, left, &mut workspace)?;
            std::mem::swap(current, scratch);
        }
        Ok(())
    }

    /// At least one sweep and at most so many, from `old` into the interior points of
    /// `new`, which have been checked. Returns how many.
    fn launch<T: Real>(
        &self,
        by: By,
        old: &Buffer<T>,
        new: &mut Buffer<T>,
        sweeps: usize,
        workspace: &mut gpu::Workspace,
    ) -> Result<usize, Error> {
        match by {
            By::Port => self.sweep_port(old, new).map(|()| 1),
            By::Kernel(variant) => T::launch(self.shape, variant, old, new, sweeps, workspace),
        }
    }

    /// As [`sweeps`](Self::sweeps), by the given kernel.
    ///
    /// With [`Variant::Texture`] the plate goes through host memory before the
    /// first and after the last sweep.
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
        Self::check_launchable::<T>(variant, current.device())?;
        if variant == Variant::Texture {
            let mut state = State::textures(self.shape, current.device(), &current.to_vec()?)?;
            for _ in 0..sweeps {
                state.sweep(self, 1)?;
            }
            return current.copy_from_slice(&state.to_vec()?);
        }
        self.sweeps_by(By::Kernel(variant), current, scratch, sweeps)
    }

    fn sweep_port<T: Real>(&self, old: &Buffer<T>, new: &mut Buffer<T>) -> Result<(), Error> {
        let (Some(old), Some(new)) = (old.as_host_slice(), new.as_host_mut_slice()) else {
            unreachable!("buffers of the CPU device are host memory");
        };
        cpu::sweep(self.shape, old, new);
        Ok(())
    }

    fn check_launchable<T: Real>(variant: Variant, device: &Device) -> Result<(), Error> {
        let Some(kernel) = variant.kernel::<T>() else {
            return Err(Error::InvalidParameter {
                operation: "heat2d",
                parameter: "the kernel",
                given: format!("{variant} for {}", T::NAME),
                required: "one that is not the textbook's, which are in f32".to_owned(),
            });
        };
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
        let required = self.shape.points()?;
        for (name, buffer) in [(a_name, a), (b_name, b)] {
            if buffer.len() != required {
                return Err(Error::LengthMismatch {
                    what: format!("heat2d: {name}"),
                    required,
                    given: buffer.len(),
                });
            }
        }
        a.device().require(&format!("heat2d: {b_name}"), b)
    }
}

/// A plate on a device, between sweeps.
#[derive(Debug)]
pub struct Plate<T: Real = f32> {
    heat: Heat2d,
    state: State<T>,
    sweeps: u64,
}

impl<T: Real> Plate<T> {
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
            let done = self.state.sweep(&self.heat, left)?;
            left -= done;
            self.sweeps += done as u64;
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
    /// [`Error::InvalidParameter`] if `tolerance` is negative or not a number, or `every`
    /// is 0; and as [`sweep`](Self::sweep).
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

    /// How many sweeps there have been.
    #[must_use]
    pub const fn sweeps(&self) -> u64 {
        self.sweeps
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
    Kernel(Variant),
}

impl By {
    /// What the library takes for many sweeps on `device`.
    fn of(device: &Device) -> Self {
        match device.kind() {
            DeviceKind::Cpu => Self::Port,
            DeviceKind::Emulator | DeviceKind::Cuda => Self::Kernel(gpu::MANY_SWEEPS),
        }
    }
}

/// A plate and the one it is swept into, with the same walls.
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

    /// At least one sweep and at most so many; returns how many.
    fn sweep(&mut self, heat: &Heat2d, sweeps: usize) -> Result<usize, Error> {
        match self {
            Self::Buffers {
                by,
                current,
                next,
                workspace,
            } => {
                let done = heat.launch(*by, current, next, sweeps, workspace)?;
                std::mem::swap(current, next);
                Ok(done)
            }
            Self::Textures { current, next } => {
                gpu::launch_texture(heat.shape, current, next)?;
                std::mem::swap(current, next);
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
