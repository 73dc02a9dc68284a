//! `Device`: the handle of a CPU, an emulator or a CUDA device.

use super::cpu;
use super::emulator::{self, EmulatorDevice, EmulatorOptions};
use super::properties::{Priority, Properties};
use crate::argument::Argument;
use crate::{Error, Limits};
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

#[cfg(halo_cuda)]
use super::cuda::{self, CudaDevice};
#[cfg(halo_cuda)]
use super::ptx;

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
            Self::of_cuda(ordinal, ptx::Source::Embedded, Priority::Low)
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
    /// As for [`Device::cuda`], and [`Error::InvalidPtx`] with the log of the driver's compiler
    /// when it refuses the PTX.
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
            Self::of_cuda(ordinal, ptx::Source::Given(ptx.to_owned()), Priority::Low)
        }
        #[cfg(not(halo_cuda))]
        {
            let _ = (ordinal, ptx);
            Err(without_cuda())
        }
    }

    #[cfg(halo_cuda)]
    fn of_cuda(ordinal: usize, source: ptx::Source, priority: Priority) -> Result<Self, Error> {
        let (properties, limits, cuda) = cuda::open(ordinal, source, priority)?;
        Ok(Self::new(properties, limits, Backend::Cuda(cuda)))
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

    /// Another handle of this device, whose work runs concurrently with that of this one.
    ///
    /// Each CUDA handle has a stream of its own: the work of one handle runs in order, and that of
    /// two handles may run at the same time. A buffer belongs to one handle.
    /// [`Buffer::move_to`](crate::Buffer::move_to) hands it to the other, after the work that uses
    /// it: so a copy, or a small kernel, runs during another kernel. On other devices work ends
    /// before a call returns, and the handle is simply another one.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let beside = device.beside()?;
    /// assert_eq!((device.kind(), device.name()), (beside.kind(), beside.name()));
    /// assert_ne!(device, beside);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Device::cuda`].
    pub fn beside(&self) -> Result<Self, Error> {
        self.beside_with(Priority::Low)
    }

    /// [`Device::beside`] with a priority.
    ///
    /// ```
    /// use halo_gpu::{Device, Priority};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let urgent = device.beside_with(Priority::High)?;
    /// assert_eq!(device.name(), urgent.name());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Device::cuda`].
    pub fn beside_with(&self, priority: Priority) -> Result<Self, Error> {
        #[cfg(not(halo_cuda))]
        let _ = priority;
        match self.backend() {
            Backend::Cpu => Ok(Self::cpu()),
            Backend::Emulator(emulator) => {
                let options = emulator.options(*self.limits());
                Ok(Self::emulator_with(options))
            }
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                let source = cuda.opened.source.clone();
                Self::of_cuda(cuda.opened.ordinal, source, priority)
            }
        }
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

    /// The properties of the device.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.inner.properties
    }

    /// The limits of launches on it.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Runs `work` with this device's CUDA context current on this thread, and
    /// gives it the device's stream (a `CUstream`, which is also a `cudaStream_t`).
    ///
    /// For your own CUDA code: work that it enqueues on that stream runs after all earlier work of
    /// this device and before all later work, so it can use buffers by their
    /// [`device_address`](crate::Buffer::device_address). Within [`Device::record`] the stream is
    /// the recording's, and the work is recorded. The stream must not be used after `work` has
    /// returned.
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

    pub(super) fn not_cuda(&self, operation: &'static str) -> Error {
        Error::NotCuda {
            operation,
            device: self.name().to_owned(),
        }
    }

    pub(crate) fn require_same(
        &self,
        argument: impl Into<Argument>,
        other: &Self,
    ) -> Result<(), Error> {
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
            argument: argument.into(),
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
