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
//! it runs is the device of the data. On a CUDA device and on the emulator it is
//! one of the five textbook kernels, each of which can also be asked for by name
//! ([`Variant`]); on the CPU it is a port. All of them give the same bits.
//! Temperatures may be any `f32`; a NaN or an infinity spreads by one point per
//! sweep, as the formula says.
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, problem};
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // The left wall at 1, all other walls and the plate at 0.
//! let shape = Shape2::new(17, 33);
//! let initial = problem::hot_left_wall(shape)?;
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
//! let initial = problem::hot_left_wall(shape)?;
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

use crate::{AddressMode, Buffer, Device, DeviceKind, Error, Field2, Shape2, Texture2d};
use gpu_kernels::heat2d::{BLOCK, HALO_TILE};
use std::fmt;

/// The fewest points along an axis: two walls and a point between them.
pub const MIN_EXTENT: usize = 3;

/// Floating-point operations per interior point: 3 additions, 1 multiplication.
pub const FLOPS_PER_POINT: u64 = 4;

/// One of the textbook kernels.
///
/// All have blocks of 16 × 16 threads. They differ in where a thread finds the
/// four neighbours of its point.
///
/// | kernel | neighbours from | a block writes |
/// |---|---|---|
/// | `heat2d_global` | global memory | 16 × 16 |
/// | `heat2d_shared_core` | a 16 × 16 tile; at its rim, global memory | 16 × 16 |
/// | `heat2d_shared_overlap` | a 16 × 16 tile; tiles overlap by 2 | 14 × 14 |
/// | `heat2d_shared_halo` | an 18 × 18 tile | 16 × 16 |
/// | `heat2d_texture` | a texture | 16 × 16 |
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
}

impl Variant {
    /// The five kernels, in the order of the textbook.
    pub const ALL: [Self; 5] = [
        Self::Global,
        Self::SharedCore,
        Self::SharedOverlap,
        Self::SharedHalo,
        Self::Texture,
    ];

    /// The tile in shared memory, rows and columns; `None` for the kernels that
    /// have none.
    #[must_use]
    pub const fn tile(self) -> Option<[usize; 2]> {
        match self {
            Self::Global | Self::Texture => None,
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

    /// The bytes a sweep has to move at the least: each point read once, each
    /// interior point written once.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        // The corners have no interior neighbour, but share sectors with points
        // that have.
        let points = (self.shape.nx * self.shape.ny) as u64;
        size_of::<f32>() as u64 * (points + self.interior_points())
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
    pub fn solve(
        &self,
        device: &Device,
        initial: &Field2<f32>,
        sweeps: usize,
    ) -> Result<Field2<f32>, Error> {
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
    pub fn start(&self, device: &Device, initial: &Field2<f32>) -> Result<Plate, Error> {
        let by = match device.kind() {
            DeviceKind::Cpu => By::Port,
            DeviceKind::Emulator | DeviceKind::Cuda => By::Kernel(gpu::DEFAULT),
        };
        self.place(by, device, initial)
    }

    /// The plate `initial` on `device`, to be swept by the given kernel.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start); [`Error::NotLaunchable`] on the CPU device,
    /// which runs no kernels; [`Error::InvalidSize`] if `variant` is
    /// [`Variant::Texture`] and the plate exceeds what the device can bind to a
    /// texture.
    pub fn start_with(
        &self,
        variant: Variant,
        device: &Device,
        initial: &Field2<f32>,
    ) -> Result<Plate, Error> {
        self.place(By::Kernel(variant), device, initial)
    }

    fn place(&self, by: By, device: &Device, initial: &Field2<f32>) -> Result<Plate, Error> {
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
                Self::check_launchable(variant, device)?;
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
    pub fn sweep(&self, old: &Buffer<f32>, new: &mut Buffer<f32>) -> Result<(), Error> {
        self.check_buffers("old", old, "new", new)?;
        match old.device().kind() {
            DeviceKind::Cpu => self.sweep_port(old, new),
            DeviceKind::Emulator | DeviceKind::Cuda => {
                gpu::launch(self.shape, gpu::DEFAULT, old, new)
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
    pub fn sweep_with(
        &self,
        variant: Variant,
        old: &Buffer<f32>,
        new: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        self.check_buffers("old", old, "new", new)?;
        Self::check_launchable(variant, old.device())?;
        if variant != Variant::Texture {
            return gpu::launch(self.shape, variant, old, new);
        }
        let from = texture(self.shape, old.device(), &old.to_vec()?)?;
        let mut to = texture(self.shape, old.device(), &new.to_vec()?)?;
        gpu::launch_texture(self.shape, &from, &mut to)?;
        new.copy_from_slice(&to.to_vec()?)
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
    pub fn sweeps(
        &self,
        current: &mut Buffer<f32>,
        scratch: &mut Buffer<f32>,
        sweeps: usize,
    ) -> Result<(), Error> {
        self.check_buffers("current", current, "scratch", scratch)?;
        scratch.copy_from(current)?;
        for _ in 0..sweeps {
            self.sweep(current, scratch)?;
            std::mem::swap(current, scratch);
        }
        Ok(())
    }

    /// As [`sweeps`](Self::sweeps), by the given kernel.
    ///
    /// With [`Variant::Texture`] the plate goes through host memory before the
    /// first and after the last sweep.
    ///
    /// # Errors
    ///
    /// As [`sweeps`](Self::sweeps) and [`start_with`](Self::start_with).
    pub fn sweeps_with(
        &self,
        variant: Variant,
        current: &mut Buffer<f32>,
        scratch: &mut Buffer<f32>,
        sweeps: usize,
    ) -> Result<(), Error> {
        self.check_buffers("current", current, "scratch", scratch)?;
        Self::check_launchable(variant, current.device())?;
        if variant == Variant::Texture {
            let mut state = State::textures(self.shape, current.device(), &current.to_vec()?)?;
            for _ in 0..sweeps {
                state.sweep(self)?;
            }
            return current.copy_from_slice(&state.to_vec()?);
        }
        scratch.copy_from(current)?;
        for _ in 0..sweeps {
            gpu::launch(self.shape, variant, current, scratch)?;
            std::mem::swap(current, scratch);
        }
        Ok(())
    }

    fn sweep_port(&self, old: &Buffer<f32>, new: &mut Buffer<f32>) -> Result<(), Error> {
        let (Some(old), Some(new)) = (old.as_host_slice(), new.as_host_mut_slice()) else {
            unreachable!("buffers of the CPU device are host memory");
        };
        cpu::sweep(self.shape, old, new);
        Ok(())
    }

    fn check_launchable(variant: Variant, device: &Device) -> Result<(), Error> {
        match device.kind() {
            DeviceKind::Cpu => Err(Error::NotLaunchable {
                kernel: variant.name(),
            }),
            DeviceKind::Emulator | DeviceKind::Cuda => Ok(()),
        }
    }

    fn check_buffers(
        &self,
        a_name: &str,
        a: &Buffer<f32>,
        b_name: &str,
        b: &Buffer<f32>,
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
pub struct Plate {
    heat: Heat2d,
    state: State,
    sweeps: u64,
}

impl Plate {
    /// Sweeps so many times.
    ///
    /// On a CUDA device this queues the launches and does not wait for them.
    ///
    /// # Errors
    ///
    /// What a launch can fail with. What the plate holds is then unspecified.
    pub fn sweep(&mut self, sweeps: usize) -> Result<(), Error> {
        for _ in 0..sweeps {
            self.state.sweep(&self.heat)?;
            self.sweeps += 1;
        }
        Ok(())
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
    pub fn field(&self) -> Result<Field2<f32>, Error> {
        Field2::from_vec(self.heat.shape, self.state.to_vec()?)
    }
}

/// What sweeps a plate.
#[derive(Debug, Clone, Copy)]
enum By {
    Port,
    Kernel(Variant),
}

/// A plate and the one it is swept into, with the same walls.
#[derive(Debug)]
enum State {
    Buffers {
        by: By,
        current: Buffer<f32>,
        next: Buffer<f32>,
    },
    Textures {
        current: Texture2d,
        next: Texture2d,
    },
}

impl State {
    fn buffers(by: By, device: &Device, initial: &[f32]) -> Result<Self, Error> {
        let current = device.upload(initial)?;
        let next = current.try_clone()?;
        Ok(Self::Buffers { by, current, next })
    }

    fn textures(shape: Shape2, device: &Device, initial: &[f32]) -> Result<Self, Error> {
        Ok(Self::Textures {
            current: texture(shape, device, initial)?,
            next: texture(shape, device, initial)?,
        })
    }

    fn sweep(&mut self, heat: &Heat2d) -> Result<(), Error> {
        match self {
            Self::Buffers { by, current, next } => {
                match *by {
                    By::Port => heat.sweep_port(current, next)?,
                    By::Kernel(variant) => gpu::launch(heat.shape, variant, current, next)?,
                }
                std::mem::swap(current, next);
            }
            Self::Textures { current, next } => {
                gpu::launch_texture(heat.shape, current, next)?;
                std::mem::swap(current, next);
            }
        }
        Ok(())
    }

    fn to_vec(&self) -> Result<Vec<f32>, Error> {
        match self {
            Self::Buffers { current, .. } => current.to_vec(),
            Self::Textures { current, .. } => current.to_vec(),
        }
    }
}

/// `values` behind a texture. No fetch lies outside, so how that is read is moot.
fn texture(shape: Shape2, device: &Device, values: &[f32]) -> Result<Texture2d, Error> {
    Texture2d::from_slice(device, shape.nx, shape.ny, AddressMode::Clamp, values)
}
