//! Launches kernels; every launch of the library goes through here.
//!
//! Every family computes its geometry once, as a [`LaunchConfig`], and hands it
//! with typed arguments to [`launch`]; the emulator and CUDA devices take the
//! same call. Limits are checked before anything runs, and an error names the
//! kernel, the axis, the requirement and the value.

use crate::device::Backend;
use crate::error::LaunchAxis;
use crate::{Device, Error};
use cuda_std::host::{Kernel, LaunchBounds};
use gpu_kernels::registry::{Problem, Registered};

use crate::constants::Constants;
use crate::device::call::{Call, CallOf};
use crate::geometry::LaunchConfig;

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
    check(K::NAME, K::LAUNCH_BOUNDS, device, config)?;
    match device.backend() {
        Backend::Cpu => Err(Error::NotLaunchable { kernel: K::NAME }),
        Backend::Emulator(_) => Ok(1),
        #[cfg(halo_cuda)]
        Backend::Cuda(cuda) => cuda.blocks_per_multiprocessor(K::NAME, config),
    }
}

/// How many blocks of the kernel `K`, launched as `config` says, `device` holds at the
/// same time: the largest grid of a kernel whose blocks wait for each other. The grid's
/// extents do not matter.
///
/// On a CUDA device without other work this is [`blocks_per_multiprocessor`] on every
/// multiprocessor. On the emulator it is 1, unless its blocks are
/// [`Blocks::Resident`](crate::device::Blocks::Resident).
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
/// As [`launch`]; [`Error::SymbolNotFound`] and [`Error::SymbolSize`] when the loaded code
/// lacks a constant or has it in another size.
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
    // SAFETY: the caller's promise, passed on.
    unsafe { launch_call(device, config, constants, &CallOf::<K>(args)) }
}

/// [`launch_with_constants`], of any kernel.
///
/// # Safety
///
/// As [`launch_with_constants`].
unsafe fn launch_call(
    device: &Device,
    config: &LaunchConfig,
    constants: &Constants<'_>,
    call: &dyn Call,
) -> Result<(), Error> {
    check(call.name(), call.bounds(), device, config)?;
    match device.backend() {
        Backend::Cpu => Err(Error::NotLaunchable {
            kernel: call.name(),
        }),
        Backend::Emulator(emulator) => {
            // SAFETY: the caller's promise, passed on.
            unsafe { emulator.launch(config, constants, call) }
        }
        #[cfg(halo_cuda)]
        Backend::Cuda(cuda) => {
            // SAFETY: the caller's promise, passed on.
            unsafe { cuda.launch(config, constants, call) }
        }
    }
}

/// Launches `K` with the geometry that its entry gives for `problem`.
///
/// # Errors
///
/// As for [`Refusal`] and [`launch_with_constants`].
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

/// Checks a launch of `kernel` against a device's limits and the kernel's own bounds.
fn check(
    kernel: &'static str,
    bounds: Option<LaunchBounds>,
    device: &Device,
    config: &LaunchConfig,
) -> Result<(), Error> {
    config.check(kernel, device.limits())?;
    let threads = config.block.volume();
    match bounds {
        Some(bounds) if threads > u128::from(bounds.max_threads_per_block) => {
            Err(Error::LaunchLimit {
                kernel,
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
