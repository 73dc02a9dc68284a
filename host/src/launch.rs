//! Launches kernels; all launches of the library go through this module.
//!
//! Every family computes its geometry once, as a [`LaunchConfig`], and passes it with typed
//! arguments to [`launch`]; the emulator and CUDA devices take the same call. Limits are checked
//! before anything runs, and an error names the kernel, the axis, the requirement and the value.

use crate::device::Backend;
use crate::error::LaunchAxis;
use crate::{Device, Error};
use cuda_std::host::{Kernel, LaunchBounds};
use gpu_kernels::registry::{Problem, Registered};

use crate::constants::Constants;
use crate::device::call::{Call, CallOf};
use crate::geometry::LaunchConfig;

/// The number of blocks of the kernel `K`, launched with `config`, that one multiprocessor of
/// `device` holds at a time, limited by their registers and shared memory. It does not depend on
/// the grid's extents.
///
/// Multiplied by [`Properties::multiprocessors`](crate::Properties), it is the grid of a kernel
/// whose blocks loop over the work. On the emulator it is always 1.
///
/// For an example see [`resident_blocks`].
///
/// # Errors
///
/// As for [`launch`], except [`Error::Emulator`].
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

/// The number of blocks of the kernel `K`, launched with `config`, that `device` holds at the same
/// time. This is the largest grid of a kernel whose blocks wait for each other. It does not depend
/// on the grid's extents.
///
/// On a CUDA device without other work it is [`blocks_per_multiprocessor`] times the number of
/// multiprocessors. On the emulator it is 1, unless its blocks are
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
/// As for [`blocks_per_multiprocessor`].
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
/// On the emulator the launch is complete when this function returns. On a CUDA device it is queued
/// after all earlier work of the device, and a later call that waits, such as
/// [`Device::synchronize`], reports a fault of the kernel.
///
/// A kernel is a function with the attribute `kernel` of `cuda_std`. The attribute also defines a
/// type of the same name, whose function `args` takes the kernel's parameters:
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
/// [`Error::LaunchLimit`] if the geometry exceeds what the device or the kernel allows,
/// [`Error::NotLaunchable`] on [`Device::cpu`], [`Error::Emulator`] with a diagnosis; on CUDA
/// devices [`Error::UnsupportedPtx`], [`Error::InvalidPtx`], [`Error::KernelNotFound`] or
/// [`Error::Driver`].
///
/// # Safety
///
/// - All buffers behind `args` are on `device` (check with [`Device::require`]).
/// - With this geometry and these arguments the kernel keeps its own contract: every address that a
///   thread reads or writes lies in the buffers passed to it, no two threads write the same element
///   unless both do so atomically, and no thread reads an element that another writes without a
///   barrier or an atomic between them.
/// - The same holds for arguments passed by value: any address in them (a texture handle, for
///   example) stays valid until the launch is complete.
pub unsafe fn launch<K: Kernel>(
    device: &Device,
    config: &LaunchConfig,
    args: K::Args<'_>,
) -> Result<(), Error> {
    // SAFETY: the caller's promise, passed on; no constants are set.
    unsafe { launch_with_constants::<K>(device, config, &Constants::new(), args) }
}

/// [`launch`], with values of constants for this launch.
///
/// A constant keeps its value for later launches that do not set it, but other threads may launch
/// with another value in between: give a launch every constant that its kernel reads.
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
/// As for [`launch`]; [`Error::SymbolNotFound`] if the loaded code lacks a constant, and
/// [`Error::SymbolSize`] if it has the constant with another size.
///
/// # Safety
///
/// As for [`launch`]; the kernel's contract covers the values of the constants too.
pub unsafe fn launch_with_constants<K: Kernel>(
    device: &Device,
    config: &LaunchConfig,
    constants: &Constants<'_>,
    args: K::Args<'_>,
) -> Result<(), Error> {
    // SAFETY: the caller's promise, passed on.
    unsafe { launch_call(device, config, constants, &CallOf::<K>(args)) }
}

/// [`launch_with_constants`], for a call of any kernel.
///
/// # Safety
///
/// As for [`launch_with_constants`].
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

/// Launches `K` with the geometry that its registry entry computes for `problem`.
///
/// # Errors
///
/// As for [`Refusal`] and [`launch_with_constants`].
///
/// # Safety
///
/// As for [`launch_with_constants`], with the geometry from the entry of `K`.
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
                // `threads` is at most the device's limit.
                given: u64::try_from(threads).unwrap_or(u64::MAX),
            })
        }
        _ => Ok(()),
    }
}
