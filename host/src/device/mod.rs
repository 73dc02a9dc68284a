//! Where work runs: the CPU ports, the emulator, or a CUDA device.
//!
//! A [`Device`] is a cheap handle (clone it freely; it is `Send` and `Sync`).
//! Work on one device runs in the order in which it was given, whichever
//! thread gave it; on CUDA devices it runs asynchronously, and every operation
//! that hands data to the host waits for what it needs. Handles made by
//! separate calls are separate devices: buffers of one are refused by the other.

mod buffer;
mod cpu;
mod emulator;
mod kernels;
mod replay;
mod texture;

#[cfg(halo_cuda)]
mod cubin;
#[cfg(halo_cuda)]
mod cuda;
#[cfg(halo_cuda)]
mod ptx;

pub use buffer::{Buffer, Element};
pub use cuda_emulator::{Blocks, Diagnosis, Placement, Poison, ThreadOrder};
pub use emulator::EmulatorOptions;
pub use kernels::{Image, Kernels};
pub use replay::Replay;
pub use texture::{AddressMode, Texture2d, TextureLimits};

pub(crate) use buffer::{require_shape, reserve};
pub(crate) use emulator::EmulatorDevice;
pub(crate) use replay::Tally;

#[cfg(halo_cuda)]
pub(crate) use cuda::CudaDevice;

use crate::{Dim3, Error};
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The three kinds of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// The CPU ports: no kernels, plain (where it pays: multi-threaded) Rust.
    Cpu,
    /// The kernels, run on the CPU thread by thread, with diagnosis.
    Emulator,
    /// The kernels, run as PTX on a CUDA device.
    Cuda,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Emulator => "emulator",
            Self::Cuda => "cuda",
        })
    }
}

/// The generation of a CUDA device: 9.0 is `major` 9, `minor` 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeCapability {
    /// The part before the dot.
    pub major: u32,
    /// The part after the dot.
    pub minor: u32,
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The CUDA version that an installed driver supports, e.g. 12.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverVersion {
    /// The part before the dot.
    pub major: u32,
    /// The part after the dot.
    pub minor: u32,
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What a device is. `None` where the kind of device has no such thing.
///
/// ```
/// use halo_gpu::Device;
///
/// let device = Device::best();
/// let properties = device.properties();
/// println!("{}, {} multiprocessors", properties.name, properties.multiprocessors);
/// if let Some(bytes) = properties.total_memory {
///     println!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
/// }
/// assert!(properties.multiprocessors >= 1);
/// assert!(Device::emulator().properties().compute_capability.is_none());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Properties {
    /// The device's name, e.g. `NVIDIA H200`, `cpu`, `emulator`.
    pub name: String,
    /// Multiprocessors of a CUDA device; hardware threads otherwise.
    pub multiprocessors: u32,
    /// Threads that one multiprocessor can hold at a time.
    pub threads_per_multiprocessor: Option<u32>,
    /// Device memory, in bytes.
    pub total_memory: Option<u64>,
    /// Second-level cache, in bytes.
    pub l2_cache_bytes: Option<u64>,
    /// Peak bandwidth of device memory in bytes per second, as memory clock ×
    /// bus width × 2 transfers per clock. `None` where the driver does not say.
    pub peak_memory_bandwidth: Option<f64>,
    /// The generation of a CUDA device.
    pub compute_capability: Option<ComputeCapability>,
    /// What the installed CUDA driver supports.
    pub driver_version: Option<DriverVersion>,
    /// The target of the PTX that this device was given, e.g. `sm_90`.
    pub ptx_target: Option<String>,
}

/// What a launch may ask of a device.
///
/// ```
/// use halo_gpu::{Device, EmulatorOptions, Error, LaunchConfig, Limits};
///
/// // An emulator of a device with a smaller shared memory.
/// let mut limits = Limits::SM_90;
/// limits.shared_bytes_opt_in = 64 * 1024;
/// let device = Device::emulator_with(EmulatorOptions { limits, ..EmulatorOptions::default() });
/// assert_eq!(device.limits().threads_per_block, 1024);
///
/// let config = LaunchConfig::new(1, 128).with_dynamic_shared_bytes(100 * 1024);
/// assert!(config.check("any", Device::emulator().limits()).is_ok());
/// assert!(matches!(config.check("any", device.limits()), Err(Error::LaunchLimit { .. })));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Threads of a block, all three extents multiplied.
    pub threads_per_block: u32,
    /// Threads of a block along each axis.
    pub block: Dim3,
    /// Blocks of a grid along each axis.
    pub grid: Dim3,
    /// Shared memory of a block, in bytes, that needs no opting in.
    pub shared_bytes: u32,
    /// Shared memory of a block, in bytes, with opting in. Launches opt in by
    /// themselves when they ask for more than [`shared_bytes`](Self::shared_bytes).
    pub shared_bytes_opt_in: u32,
    /// Threads of a warp.
    pub warp_size: u32,
    /// Sizes of [`Texture2d`].
    pub texture_2d: TextureLimits,
}

impl Limits {
    /// The limits of compute capability 9.0, which the emulator has by default.
    pub const SM_90: Self = Self {
        threads_per_block: 1024,
        block: Dim3::new(1024, 1024, 64),
        grid: Dim3::new(i32::MAX as u32, 65_535, 65_535),
        shared_bytes: 48 * 1024,
        shared_bytes_opt_in: 227 * 1024,
        warp_size: 32,
        texture_2d: TextureLimits::SM_90,
    };
}

/// A place where this library's operations run.
///
/// ```
/// use halo_gpu::{Device, DeviceKind};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator(); // or Device::cuda(0)?, or Device::best()
/// let mut buffer = device.upload(&[1.0_f32, 2.0, 3.0])?;
/// assert_eq!(buffer.to_vec()?, [1.0, 2.0, 3.0]);
/// buffer.fill(0.5)?;
/// assert_eq!(buffer.to_vec()?, [0.5; 3]);
/// assert_eq!(device.kind(), DeviceKind::Emulator);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    properties: Properties,
    limits: Limits,
    backend: Backend,
}

pub(crate) enum Backend {
    Cpu,
    Emulator(EmulatorDevice),
    #[cfg(halo_cuda)]
    Cuda(CudaDevice),
}

impl Device {
    fn new(properties: Properties, limits: Limits, backend: Backend) -> Self {
        Self {
            inner: Arc::new(Inner {
                properties,
                limits,
                backend,
            }),
        }
    }

    /// The CPU ports. Runs every operation of the library, launches no kernels.
    #[must_use]
    pub fn cpu() -> Self {
        Self::new(cpu::properties(), Limits::SM_90, Backend::Cpu)
    }

    /// The emulator with [`EmulatorOptions::default`].
    #[must_use]
    pub fn emulator() -> Self {
        Self::emulator_with(EmulatorOptions::default())
    }

    /// The emulator, told how to run: order of threads, poison, limits, and
    /// whether each launch is repeated in several orders and compared.
    #[must_use]
    pub fn emulator_with(options: EmulatorOptions) -> Self {
        Self::new(
            emulator::properties(),
            options.limits,
            Backend::Emulator(EmulatorDevice::new(options)),
        )
    }

    /// CUDA device number `ordinal`, counted from 0 as the driver counts them
    /// (`CUDA_VISIBLE_DEVICES` applies).
    ///
    /// Uses the device's primary context, as the CUDA runtime API does, so it
    /// shares the device with other CUDA libraries of the process.
    ///
    /// # Errors
    ///
    /// [`Error::GpuFeatureDisabled`] without the feature `gpu`,
    /// [`Error::UnsupportedPlatform`] outside Linux on x86_64 and aarch64,
    /// [`Error::DriverMissing`] without a CUDA driver, [`Error::NoDevice`] and
    /// [`Error::DeviceOrdinal`] without such a device,
    /// [`Error::UnsupportedPtx`] when the device is older than the kernels'
    /// lowest target, [`Error::Driver`] when the driver fails.
    pub fn cuda(ordinal: usize) -> Result<Self, Error> {
        #[cfg(halo_cuda)]
        {
            cuda::open(ordinal, ptx::Source::Embedded)
        }
        #[cfg(not(halo_cuda))]
        {
            let _ = ordinal;
            Err(without_cuda())
        }
    }

    /// [`Device::cuda`], with kernels from PTX text that the caller gives
    /// instead of the PTX that this library carries.
    ///
    /// The PTX is loaded at once, so that a PTX which the driver refuses is an
    /// error here and not at the first launch.
    ///
    /// ```
    /// use halo_gpu::{Device, Error};
    ///
    /// /// A GPU with the kernels of this text or, where there is none, the emulator.
    /// fn device(ptx: &str) -> Result<Device, Error> {
    ///     // SAFETY: the text has none of the library's kernels.
    ///     match unsafe { Device::cuda_with_ptx(0, ptx) } {
    ///         Err(Error::GpuFeatureDisabled | Error::DriverMissing { .. } | Error::NoDevice) => {
    ///             Ok(Device::emulator())
    ///         }
    ///         opened_or_failed => opened_or_failed,
    ///     }
    /// }
    ///
    /// // Here a program has what its build script made: include_str!(…).
    /// let ptx = ".version 6.4\n.target sm_75\n.address_size 64\n";
    /// let device = device(ptx)?;
    /// println!("runs on {}", device.name());
    /// # assert_ne!(device.kind(), halo_gpu::DeviceKind::Cpu);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Device::cuda`], and [`Error::InvalidPtx`] with the log of the
    /// driver's compiler when it refuses the PTX.
    ///
    /// # Safety
    ///
    /// Every kernel of this library that is later launched on the device must,
    /// where the PTX has an entry of its name, take the parameters and have the
    /// effects of the kernel as this library was built with it. Nothing can
    /// check that, and the library's safe operations rely on it. PTX that does
    /// not load, or that has none of the names, is fine.
    pub unsafe fn cuda_with_ptx(ordinal: usize, ptx: &str) -> Result<Self, Error> {
        #[cfg(halo_cuda)]
        {
            cuda::open(ordinal, ptx::Source::Given(ptx.to_owned()))
        }
        #[cfg(not(halo_cuda))]
        {
            let _ = (ordinal, ptx);
            Err(without_cuda())
        }
    }

    /// How many CUDA devices there are; 0 when there is a driver but no device.
    ///
    /// ```
    /// use halo_gpu::{Device, Error};
    ///
    /// match Device::cuda_count() {
    ///     Ok(count) => {
    ///         println!("{count} CUDA devices");
    ///         // They are counted from 0.
    ///         let beyond = Device::cuda(count);
    ///         assert!(matches!(beyond, Err(Error::DeviceOrdinal { .. } | Error::NoDevice)));
    ///     }
    ///     Err(error) => {
    ///         println!("none: {error}");
    ///         assert!(Device::cuda(0).is_err());
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Device::cuda`], without the last four.
    pub fn cuda_count() -> Result<usize, Error> {
        #[cfg(halo_cuda)]
        {
            cuda::count()
        }
        #[cfg(not(halo_cuda))]
        {
            Err(without_cuda())
        }
    }

    /// The first CUDA device, or the CPU where there is none that can be opened.
    ///
    /// Never fails; [`Device::kind`] says which it is. Use [`Device::cuda`] to
    /// learn why a CUDA device was not taken.
    #[must_use]
    pub fn best() -> Self {
        Self::cuda(0).unwrap_or_else(|_| Self::cpu())
    }

    /// Which kind of device this is.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        match self.backend() {
            Backend::Cpu => DeviceKind::Cpu,
            Backend::Emulator(_) => DeviceKind::Emulator,
            #[cfg(halo_cuda)]
            Backend::Cuda(_) => DeviceKind::Cuda,
        }
    }

    /// The device's name, e.g. `NVIDIA H200`, `cpu` or `emulator`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.properties.name
    }

    /// What the device is.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.inner.properties
    }

    /// What launches may ask of it.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// A buffer of `len` elements, all equal to `value`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::IndexOverflow`] when the size in bytes
    /// fits no `usize`, [`Error::Driver`].
    pub fn alloc_filled<T: Element>(&self, len: usize, value: T) -> Result<Buffer<T>, Error> {
        Buffer::filled(self, len, value)
    }

    /// A buffer holding a copy of `values`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        Buffer::from_slice(self, values)
    }

    /// Waits until all work given to this device is done.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use std::time::Instant;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let mut buffer = device.alloc_filled(1 << 16, 0_u32)?;
    /// let start = Instant::now();
    /// buffer.fill(7)?; // queued
    /// device.synchronize()?; // done
    /// println!("{:?}", start.elapsed());
    /// assert_eq!(buffer.to_vec()?[65_535], 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] when a kernel that was launched earlier has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        match self.backend() {
            Backend::Cpu | Backend::Emulator(_) => Ok(()),
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => cuda.synchronize(),
        }
    }

    /// How long the work that `work` gives to this device takes.
    ///
    /// On CUDA devices the time between two events in the device's stream, one
    /// before and one after the work, so launch overhead on the host counts only
    /// where the device waits for it; elsewhere wall-clock time.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let mut buffer = device.alloc_filled(1 << 16, 0_u32)?;
    /// let once = device.time(|| buffer.fill(7))?;
    /// let each = device.time_each(2, 10, || buffer.fill(8))?;
    /// println!("{once:?}, then {each:?}");
    /// assert_eq!((each.len(), buffer.to_vec()?[0]), (10, 8));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Whatever `work` returns, and [`Error::Driver`].
    pub fn time(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
        match self.backend() {
            Backend::Cpu | Backend::Emulator(_) => wall_time(work),
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                let start = cuda.record_event()?;
                work()?;
                let end = cuda.record_event()?;
                cuda.elapsed(&start, &end)
            }
        }
    }

    /// Runs `work` `warmup` times untimed and then `launches` times timed, and
    /// returns the time of each.
    ///
    /// On CUDA devices one event is recorded between consecutive runs and
    /// nothing waits before the last of them, so `work` should only launch:
    /// copies to the host would put their waiting into the measurement.
    ///
    /// # Errors
    ///
    /// Whatever `work` returns first, and [`Error::Driver`].
    pub fn time_each(
        &self,
        warmup: usize,
        launches: usize,
        mut work: impl FnMut() -> Result<(), Error>,
    ) -> Result<Vec<Duration>, Error> {
        for _ in 0..warmup {
            work()?;
        }
        match self.backend() {
            Backend::Cpu | Backend::Emulator(_) => {
                (0..launches).map(|_| wall_time(&mut work)).collect()
            }
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                let mut marks = vec![cuda.record_event()?];
                for _ in 0..launches {
                    work()?;
                    marks.push(cuda.record_event()?);
                }
                marks
                    .windows(2)
                    .map(|pair| cuda.elapsed(&pair[0], &pair[1]))
                    .collect()
            }
        }
    }

    /// Runs `work` once and records it `count` times, to be given to this device
    /// again by [`Replay::run`].
    ///
    /// On CUDA devices the recording is a graph: giving it to the device costs the
    /// host one call however many launches it has, and the device starts each of
    /// them as soon as the one before is over. That is the way to run kernels so
    /// short that the host could not keep up, and to measure them. What goes into
    /// the recording is what this thread gives to this device: launches, fills and
    /// copies from buffer to buffer. On the CPU and the emulator replaying calls
    /// `work` again.
    ///
    /// What this library keeps on the host is right on every device: sweeps of a
    /// [`Plate`](crate::heat2d::Plate) and steps of a [`Leapfrog`](crate::nbody::Leapfrog)
    /// go on from replay to replay, and are counted as they are done; so do
    /// [`Heat2d::sweeps`](crate::heat2d::Heat2d::sweeps), but those that allocate (several
    /// at once, where the kernel wants memory of its own, which a plate keeps). (If two buffers of a plate have changed places
    /// an odd number of times, each replay on a CUDA device ends with a copy of one of
    /// them.) What `work` itself does on the host it does at each replay on the CPU and
    /// the emulator, but on CUDA devices only while it is recorded: `count + 1` times in
    /// all. So give work that gives the device the same every time, and that neither
    /// exchanges buffers nor counts.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let source = device.upload(&[1.0_f32; 1000])?;
    /// let mut target = device.alloc_filled(1000, 0.0_f32)?;
    /// let mut replay = device.record(50, || target.copy_from(&source))?;
    /// let times = device.time_each(1, 5, || replay.run())?; // of 50 copies each
    /// assert_eq!(times.len(), 5);
    /// drop(replay); // `target` can be used again
    /// assert_eq!(target.to_vec()?, [1.0; 1000]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Whatever `work` returns; on CUDA devices [`Error::NotReplayable`] for what
    /// a graph cannot hold: allocating, copies from and to the host, waiting,
    /// loading, recording, constants that change from launch to launch, sweeps that
    /// leave three or more buffers in each other's places (what those hold then is
    /// unspecified).
    pub fn record<'a>(
        &self,
        count: usize,
        work: impl FnMut() -> Result<(), Error> + 'a,
    ) -> Result<Replay<'a>, Error> {
        let mut work: Box<dyn FnMut() -> Result<(), Error> + 'a> = Box::new(work);
        let how = match self.backend() {
            Backend::Cpu | Backend::Emulator(_) => {
                work()?;
                replay::How::Call(work)
            }
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                let graph = cuda.record(count, &mut work)?;
                replay::How::Graph(graph, work)
            }
        };
        Ok(Replay {
            how,
            count,
            device: self.clone(),
        })
    }

    /// Loads kernels from elsewhere, to be put in the place of this device's own
    /// by [`Device::using`]: CUDA C++ compiled by nvcc, say, to compare with.
    ///
    /// ```
    /// use halo_gpu::{Device, Error, Image};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let ptx = ".version 6.4\n.target sm_75\n.address_size 64\n"; // of no kernel at all
    /// // SAFETY: it has none of the library's kernels.
    /// match unsafe { device.load_kernels(Image::Ptx(ptx)) } {
    ///     Ok(kernels) => {
    ///         let values = device.upload(&[1.0_f32, 2.0])?;
    ///         let sum = device.using(&kernels, || halo_gpu::reduction::sum(&values))?;
    ///         assert!(matches!(sum, Err(Error::KernelNotFound { .. })));
    ///         assert_eq!(halo_gpu::reduction::sum(&values)?, 3.0); // by the library's own again
    ///     }
    ///     Err(error) => assert!(matches!(error, Error::NotCuda { .. }), "{error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotCuda`] on other devices. For PTX those of
    /// [`Device::cuda_with_ptx`]; for machine code [`Error::InvalidCubin`] when it
    /// is none, is cut off or is refused by the driver, and
    /// [`Error::UnsupportedCubin`] when it is for another generation of device.
    ///
    /// # Safety
    ///
    /// As [`Device::cuda_with_ptx`], of every kernel that is launched while these
    /// are in use.
    pub unsafe fn load_kernels(&self, image: Image<'_>) -> Result<Kernels, Error> {
        #[cfg(halo_cuda)]
        if let Backend::Cuda(cuda) = self.backend() {
            return Ok(Kernels {
                inner: cuda.load_kernels(image)?,
            });
        }
        let _ = image;
        Err(self.not_cuda("loading kernels"))
    }

    /// Runs `work`, during which this thread's launches on this device take their
    /// kernels from `kernels`.
    ///
    /// Everything else stays as it is: buffers, constants by name, geometry, order.
    /// A kernel that is not in `kernels` is [`Error::KernelNotFound`] there, and
    /// never taken from the device's own.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] when another device has loaded them;
    /// [`Error::NotCuda`] on other devices.
    pub fn using<R>(&self, kernels: &Kernels, work: impl FnOnce() -> R) -> Result<R, Error> {
        #[cfg(halo_cuda)]
        if let Backend::Cuda(cuda) = self.backend() {
            return cuda
                .using(&kernels.inner, work)
                .ok_or_else(|| Error::DeviceMismatch {
                    what: "the module of the kernels".to_owned(),
                    required: self.name().to_owned(),
                    given: "another device".to_owned(),
                });
        }
        let _ = (kernels, work);
        Err(self.not_cuda("using other kernels"))
    }

    /// Runs `work` with this device's CUDA context current on this thread, and
    /// gives it the device's stream (a `CUstream`, which is also a `cudaStream_t`).
    ///
    /// For CUDA code of your own: what it queues on that stream runs behind
    /// everything given to this device before, and before everything given to it
    /// later, so it can use buffers by their
    /// [`device_address`](Buffer::device_address). Within [`Device::record`] the
    /// stream is that of the recording, and what is queued there is recorded. The
    /// stream must not be used after `work` has returned.
    ///
    /// ```
    /// use halo_gpu::{Device, DeviceKind, Error};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let buffer = device.upload(&[1.0_f32; 256])?;
    /// let queued = device.with_cuda_stream(|stream| {
    ///     // Here a function of a CUDA library is given the stream and the address.
    ///     assert!(!stream.is_null());
    ///     buffer.device_address()
    /// });
    /// match queued {
    ///     Ok(address) => assert_eq!(address % 4, 0),
    ///     Err(Error::NotCuda { .. }) => assert_eq!(device.kind(), DeviceKind::Cpu),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotCuda`] on other devices, [`Error::Driver`].
    pub fn with_cuda_stream<R>(&self, work: impl FnOnce(*mut c_void) -> R) -> Result<R, Error> {
        #[cfg(halo_cuda)]
        if let Backend::Cuda(cuda) = self.backend() {
            return cuda.with_stream(work);
        }
        let _ = work;
        Err(self.not_cuda("using the stream"))
    }

    fn not_cuda(&self, operation: &'static str) -> Error {
        Error::NotCuda {
            operation,
            device: self.name().to_owned(),
        }
    }

    /// Fails with [`Error::DeviceMismatch`] unless `buffer` is on this device.
    ///
    /// `what` names the buffer in the message. Launch code calls this for every
    /// buffer that it passes to a kernel.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// device.require("the input", &device.upload(&[1.0_f32])?)?;
    /// let elsewhere = device.require("the input", &Device::cpu().upload(&[1.0_f32])?);
    /// assert_eq!(
    ///     elsewhere.unwrap_err().to_string(),
    ///     "the input is on cpu, but the operation runs on emulator"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`].
    pub fn require<T: Element>(&self, what: &str, buffer: &Buffer<T>) -> Result<(), Error> {
        self.require_same(what, buffer.device())
    }

    pub(crate) fn require_same(&self, what: &str, other: &Self) -> Result<(), Error> {
        if self == other {
            return Ok(());
        }
        let describe = |device: &Self| {
            if device.name() == self.name() && device != self {
                format!("another {}", device.name())
            } else {
                device.name().to_owned()
            }
        };
        Err(Error::DeviceMismatch {
            what: what.to_owned(),
            required: describe(self),
            given: describe(other),
        })
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.backend
    }
}

/// Two handles are equal when they are clones of one device.
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("kind", &self.kind())
            .field("name", &self.name())
            .finish()
    }
}

fn wall_time(work: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// Why this build has no CUDA devices.
#[cfg(not(halo_cuda))]
fn without_cuda() -> Error {
    if cfg!(feature = "gpu") {
        Error::UnsupportedPlatform {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
        }
    } else {
        Error::GpuFeatureDisabled
    }
}
