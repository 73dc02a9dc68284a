//! The one way in which kernels are launched.
//!
//! Every family computes its geometry once, as a [`LaunchConfig`], and hands it
//! with typed arguments to [`launch`]; the emulator and CUDA devices take the
//! same call. Limits are checked before anything runs, and an error names the
//! kernel, the axis, the requirement and the value.

use crate::device::Backend;
use crate::error::LaunchAxis;
use crate::{Device, Error, Limits};
use cuda_std::host::{Kernel, Symbol};
use gpu_kernels::registry::{Geometry, Problem, Refusal, Registered};
use std::fmt;

/// Three extents or a point, x y z, as CUDA counts blocks and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dim3 {
    /// Along x, the fastest axis.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

impl Dim3 {
    /// The extents `x`, `y`, `z`.
    #[must_use]
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// The product of the three.
    #[must_use]
    pub const fn volume(self) -> u128 {
        self.x as u128 * self.y as u128 * self.z as u128
    }

    /// The three as an array.
    #[must_use]
    pub const fn to_array(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self::new(x, 1, 1)
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self::new(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self::new(x, y, z)
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {} × {}", self.x, self.y, self.z)
    }
}

/// The geometry of a launch.
///
/// ```
/// use halo_gpu::{Dim3, LaunchConfig};
///
/// let config = LaunchConfig::new(16, (32, 4)).with_dynamic_shared_bytes(1024);
/// assert_eq!(config.grid, Dim3::new(16, 1, 1));
/// assert_eq!(config.block, Dim3::new(32, 4, 1));
/// assert_eq!(config.threads(), 16 * 32 * 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks along each axis.
    pub grid: Dim3,
    /// Threads of a block along each axis.
    pub block: Dim3,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared_bytes: u32,
    /// See [`with_steps`](Self::with_steps).
    pub steps: u64,
}

impl LaunchConfig {
    /// `grid` blocks of `block` threads, without dynamic shared memory.
    #[must_use]
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        Self {
            grid: grid.into(),
            block: block.into(),
            dynamic_shared_bytes: 0,
            steps: 0,
        }
    }

    /// The same with `bytes` of dynamic shared memory per block.
    #[must_use]
    pub const fn with_dynamic_shared_bytes(mut self, bytes: u32) -> Self {
        self.dynamic_shared_bytes = bytes;
        self
    }

    /// The same where each thread by design comes to about so many barriers, warp
    /// operations and atomics: for the emulator, which otherwise takes a kernel that
    /// comes to very many for one that never ends
    /// ([`EmulatorOptions::step_limit`](crate::EmulatorOptions)).
    ///
    /// ```
    /// use halo_gpu::LaunchConfig;
    ///
    /// let sweeps = 600_000;
    /// assert_eq!(LaunchConfig::new(1, 64).with_steps(2 * sweeps).steps, 1_200_000);
    /// ```
    #[must_use]
    pub const fn with_steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self
    }

    /// Threads of the whole grid.
    #[must_use]
    pub const fn threads(&self) -> u128 {
        self.grid.volume().saturating_mul(self.block.volume())
    }

    /// Checks the geometry against a device's limits.
    ///
    /// ```
    /// use halo_gpu::{Error, LaunchAxis, LaunchConfig, Limits};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// LaunchConfig::new((70_000, 2), (32, 32)).check("mine", &Limits::SM_90)?;
    /// let refused = LaunchConfig::new((2, 70_000), (32, 32)).check("mine", &Limits::SM_90);
    /// assert!(matches!(refused, Err(Error::LaunchLimit { axis: LaunchAxis::GridY, .. })));
    /// assert_eq!(
    ///     refused.unwrap_err().to_string(),
    ///     "mine: grid.y is 70000, but must be at least 1 and at most 65535"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LaunchLimit`] for the first axis that exceeds its limit or is zero.
    pub fn check(&self, kernel: &'static str, limits: &Limits) -> Result<(), Error> {
        let extents = [
            (LaunchAxis::GridX, self.grid.x, limits.grid.x),
            (LaunchAxis::GridY, self.grid.y, limits.grid.y),
            (LaunchAxis::GridZ, self.grid.z, limits.grid.z),
            (LaunchAxis::BlockX, self.block.x, limits.block.x),
            (LaunchAxis::BlockY, self.block.y, limits.block.y),
            (LaunchAxis::BlockZ, self.block.z, limits.block.z),
        ];
        for (axis, given, limit) in extents {
            if given == 0 || given > limit {
                return Err(Error::LaunchLimit {
                    kernel,
                    axis,
                    required: format!("at least 1 and at most {limit}"),
                    given: u64::from(given),
                });
            }
        }
        let threads = self.block.volume();
        if threads > u128::from(limits.threads_per_block) {
            return Err(Error::LaunchLimit {
                kernel,
                axis: LaunchAxis::ThreadsPerBlock,
                required: format!("at most {}", limits.threads_per_block),
                // Three extents within their limits stay far below u64.
                given: u64::try_from(threads).unwrap_or(u64::MAX),
            });
        }
        if self.dynamic_shared_bytes > limits.shared_bytes_opt_in {
            return Err(Error::LaunchLimit {
                kernel,
                axis: LaunchAxis::DynamicSharedBytes,
                required: format!("at most {}", limits.shared_bytes_opt_in),
                given: u64::from(self.dynamic_shared_bytes),
            });
        }
        Ok(())
    }
}

/// Checks a launch of `K` against a device's limits and the kernel's own bounds.
fn check<K: Kernel>(device: &Device, config: &LaunchConfig) -> Result<(), Error> {
    config.check(K::NAME, device.limits())?;
    let threads = config.block.volume();
    match K::LAUNCH_BOUNDS {
        Some(bounds) if threads > u128::from(bounds.max_threads_per_block) => {
            Err(Error::LaunchLimit {
                kernel: K::NAME,
                axis: LaunchAxis::ThreadsPerBlock,
                required: format!(
                    "at most {}, by the kernel's launch bounds",
                    bounds.max_threads_per_block
                ),
                // At most the device's limit.
                given: u64::try_from(threads).unwrap_or(u64::MAX),
            })
        }
        _ => Ok(()),
    }
}

/// How many groups of `per_group` cover `points`: the extent of a grid along
/// one axis, or of a loop over tiles.
///
/// ```
/// use halo_gpu::blocks_for;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// assert_eq!(blocks_for("stencil1d_constant", 1000, 32)?, 32);
/// assert_eq!(blocks_for("stencil1d_constant", 1024, 32)?, 32);
/// assert_eq!(blocks_for("stencil1d_constant", 1025, 32)?, 33);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::IndexOverflow`] when the number does not fit `u32`;
/// [`Error::InvalidParameter`] when `per_group` is zero.
pub fn blocks_for(kernel: &'static str, points: usize, per_group: usize) -> Result<u32, Error> {
    Ok(gpu_kernels::registry::blocks_for(
        kernel, points, per_group,
    )?)
}

/// Values of device constants that belong to one launch.
///
/// The constants are set and the kernel is launched as one step: launches that
/// other threads give to the same device come before or after both, so each
/// launch sees the values given with it.
///
/// There is an example with [`launch_with_constants`].
#[derive(Default)]
pub struct Constants<'a> {
    entries: Vec<Constant<'a>>,
}

pub(crate) struct Constant<'a> {
    pub(crate) name: &'static str,
    pub(crate) bytes: &'a [u8],
    /// Where the kernel's own static of that name lies, for the emulator.
    pub(crate) host_address: fn() -> *mut u8,
}

impl<'a> Constants<'a> {
    /// No constants.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// These, and the constant `S` set to `value`.
    #[must_use]
    pub fn with<S: Symbol>(mut self, value: &'a S::Value) -> Self
    where
        S::Value: bytemuck::NoUninit,
    {
        self.entries.push(Constant {
            name: S::NAME,
            bytes: bytemuck::bytes_of(value),
            host_address: || S::host_address().cast(),
        });
        self
    }

    pub(crate) fn entries(&self) -> &[Constant<'a>] {
        &self.entries
    }
}

impl fmt::Debug for Constants<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.entries.iter().map(|constant| constant.name))
            .finish()
    }
}

/// How many blocks of the kernel `K`, launched as `config` says, one
/// multiprocessor of `device` holds at a time, given the registers and the shared
/// memory they need. The grid's extents do not matter.
///
/// Times [`Properties::multiprocessors`](crate::Properties), this is the grid of a
/// kernel whose blocks loop over the work. On the emulator it is always 1.
///
/// There is an example with [`resident_blocks`].
///
/// # Errors
///
/// As [`launch`], [`Error::Emulator`] apart.
pub fn blocks_per_multiprocessor<K: Kernel>(
    device: &Device,
    config: &LaunchConfig,
) -> Result<u32, Error> {
    check::<K>(device, config)?;
    match device.backend() {
        Backend::Cpu => Err(Error::NotLaunchable { kernel: K::NAME }),
        Backend::Emulator(_) => Ok(1),
        #[cfg(halo_cuda)]
        Backend::Cuda(cuda) => cuda.blocks_per_multiprocessor::<K>(config),
    }
}

/// How many blocks of the kernel `K`, launched as `config` says, `device` holds at the
/// same time: the largest grid of a kernel whose blocks wait for each other. The grid's
/// extents do not matter.
///
/// On a CUDA device that nobody else uses this is
/// [`blocks_per_multiprocessor`] on every multiprocessor. On the emulator it is 1,
/// unless its blocks are [`Blocks::Resident`](crate::device::Blocks::Resident).
///
/// ```
/// use cuda_std::prelude::kernel;
/// use halo_gpu::{Device, Error, LaunchConfig, blocks_per_multiprocessor, resident_blocks};
///
/// /// Does nothing.
/// ///
/// /// # Safety
/// ///
/// /// Nothing is asked for.
/// #[kernel]
/// pub unsafe fn idle() {}
///
/// # fn main() -> Result<(), Error> {
/// let (device, config) = (Device::emulator(), LaunchConfig::new(1, 128));
/// assert_eq!(blocks_per_multiprocessor::<idle>(&device, &config)?, 1);
/// assert_eq!(resident_blocks::<idle>(&device, &config)?, 1); // blocks run one by one
/// let on_cpu = resident_blocks::<idle>(&Device::cpu(), &config);
/// assert!(matches!(on_cpu, Err(Error::NotLaunchable { kernel: "idle" })));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`blocks_per_multiprocessor`].
pub fn resident_blocks<K: Kernel>(device: &Device, config: &LaunchConfig) -> Result<u32, Error> {
    let per_multiprocessor = blocks_per_multiprocessor::<K>(device, config)?;
    Ok(match device.backend() {
        // A block has at most 1024 threads.
        Backend::Emulator(emulator) => emulator.resident_blocks(config.block.volume() as u64),
        _ => per_multiprocessor * device.properties().multiprocessors,
    })
}

/// Launches the kernel `K` on `device`.
///
/// On the emulator the launch is over when this returns. On CUDA devices it is
/// queued behind all earlier work of the device, and a fault of the kernel is
/// reported by a later call that waits, such as [`Device::synchronize`].
///
/// A kernel is a function with the attribute `kernel` of `cuda_std`, which also makes the
/// type of that name, with a function `args` that takes the kernel's own parameters:
///
/// ```
/// use cuda_std::prelude::{kernel, thread};
/// use halo_gpu::{Device, LaunchConfig, blocks_for, launch};
///
/// /// Multiplies each of `n` values by a factor.
/// ///
/// /// # Safety
/// ///
/// /// `values` has `n` elements; a one-dimensional grid and block.
/// #[kernel]
/// pub unsafe fn multiply(values: *mut f32, n: u32, factor: f32) {
///     let i = thread::index_1d();
///     if i < n {
///         // SAFETY: below n, and no other thread has this index.
///         unsafe { *values.add(i as usize) *= factor };
///     }
/// }
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let mut values = device.upload(&[1.5_f32; 100])?;
/// let config = LaunchConfig::new(blocks_for("multiply", 100, 32)?, 32);
/// // SAFETY: a buffer of 100 elements on this device, and a one-dimensional launch.
/// unsafe { launch::<multiply>(&device, &config, multiply::args(&mut values, 100, 2.0))? };
/// assert_eq!(values.to_vec()?, [3.0; 100]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::LaunchLimit`] when the geometry exceeds what the device or the
/// kernel allows, [`Error::NotLaunchable`] on [`Device::cpu`],
/// [`Error::Emulator`] with a diagnosis, [`Error::UnsupportedPtx`],
/// [`Error::InvalidPtx`], [`Error::KernelNotFound`] or [`Error::Driver`] on
/// CUDA devices.
///
/// # Safety
///
/// - All buffers behind `args` are on `device` (check with [`Device::require`]).
/// - With this geometry and these arguments the kernel keeps to its own
///   contract: every address that a thread reads or writes lies in the buffers
///   it was given, no two threads write the same element unless both do so
///   atomically, and no thread reads what another writes without a barrier or
///   an atomic between them.
/// - The same holds for values passed by value: any address in them (a texture
///   handle, say) stays valid until the launch is over.
pub unsafe fn launch<K: Kernel>(
    device: &Device,
    config: &LaunchConfig,
    args: K::Args<'_>,
) -> Result<(), Error> {
    // SAFETY: the caller's promise, passed on; there are no constants to be right.
    unsafe { launch_with_constants::<K>(device, config, &Constants::new(), args) }
}

/// [`launch`], with constants that are set for this launch.
///
/// A constant keeps its value for later launches that do not set it, but
/// launches by other threads may have set another in between: give a launch
/// every constant its kernel reads.
///
/// ```
/// use cuda_std::prelude::{kernel, thread};
/// use cuda_std::{address_space, externally_visible};
/// use halo_gpu::{Constants, Device, LaunchConfig, launch_with_constants};
///
/// /// What [`multiply`] multiplies by.
/// #[externally_visible]
/// #[address_space(constant)]
/// pub static mut FACTOR: f32 = 1.0;
///
/// /// Multiplies each value by [`FACTOR`](value@FACTOR).
/// ///
/// /// # Safety
/// ///
/// /// `values` has an element for each thread of the grid; both are one-dimensional.
/// #[kernel]
/// pub unsafe fn multiply(values: *mut f32) {
///     // SAFETY: the host writes constants only between launches, and each thread has an
///     // element of its own.
///     unsafe { *values.add(thread::index_1d() as usize) *= FACTOR };
/// }
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let mut values = device.upload(&[1.5_f32; 64])?;
/// let config = LaunchConfig::new(2, 32);
/// let constants = Constants::new().with::<FACTOR>(&4.0);
/// // SAFETY: 64 elements on this device, 64 threads, and the constant is set.
/// unsafe {
///     launch_with_constants::<multiply>(&device, &config, &constants, multiply::args(&mut values))?;
/// }
/// assert_eq!(values.to_vec()?, [6.0; 64]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`launch`], and [`Error::SymbolNotFound`] when the loaded code lacks a
/// constant or has it in another size.
///
/// # Safety
///
/// As [`launch`]; the values of the constants are part of what the kernel's
/// contract speaks of.
pub unsafe fn launch_with_constants<K: Kernel>(
    device: &Device,
    config: &LaunchConfig,
    constants: &Constants<'_>,
    args: K::Args<'_>,
) -> Result<(), Error> {
    check::<K>(device, config)?;
    match device.backend() {
        Backend::Cpu => Err(Error::NotLaunchable { kernel: K::NAME }),
        Backend::Emulator(emulator) => {
            // SAFETY: the caller's promise, passed on.
            unsafe { emulator.launch::<K>(config, constants, &args) }
        }
        #[cfg(halo_cuda)]
        Backend::Cuda(cuda) => {
            // SAFETY: the caller's promise, passed on.
            unsafe { cuda.launch::<K>(config, constants, &args) }
        }
    }
}

impl From<Geometry> for LaunchConfig {
    fn from(geometry: Geometry) -> Self {
        let ([gx, gy, gz], [bx, by, bz]) = (geometry.grid, geometry.block);
        Self::new((gx, gy, gz), (bx, by, bz))
            .with_dynamic_shared_bytes(geometry.dynamic_shared_bytes)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooMany {
                kernel,
                what,
                given,
                limit,
            } => Self::IndexOverflow {
                what: format!("{kernel}: {what}"),
                given: given.to_string(),
                limit,
            },
            Refusal::NothingPerBlock { kernel } => Self::InvalidParameter {
                operation: kernel,
                parameter: "the number of points per block",
                given: "0".to_owned(),
                required: "at least 1".to_owned(),
            },
        }
    }
}

/// Launches `K` with the geometry that its entry gives for `problem`.
///
/// # Errors
///
/// [`Refusal`]'s, and those of [`launch_with_constants`].
///
/// # Safety
///
/// As [`launch_with_constants`], of the geometry that the entry of `K` gives.
pub(crate) unsafe fn launch_registered<K: Registered>(
    device: &Device,
    problem: &Problem,
    constants: &Constants<'_>,
    args: K::Args<'_>,
) -> Result<(), Error> {
    let config = K::ENTRY.geometry(problem)?.into();
    // SAFETY: the caller's promise, passed on.
    unsafe { launch_with_constants::<K>(device, &config, constants, args) }
}
