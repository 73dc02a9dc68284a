//! The handle of a device: the CPU, an emulator or a CUDA device.

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
    /// Runs the CPU ports: plain Rust, multi-threaded where that pays, without kernels.
    Cpu,
    /// Runs the kernels on the CPU thread by thread, with diagnosis.
    Emulator,
    /// Runs the kernels on a CUDA device, as PTX.
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

/// A device that runs this library's operations.
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

    /// The CPU device. It runs every operation of the library with the CPU ports, and cannot launch
    /// kernels.
    #[must_use]
    pub fn cpu() -> Self {
        Self::new(cpu::properties(), Limits::SM_90, Backend::Cpu)
    }

    /// An emulator with [`EmulatorOptions::default`].
    #[must_use]
    pub fn emulator() -> Self {
        Self::emulator_with(EmulatorOptions::default())
    }

    /// An emulator with these options: thread order, poison, limits, and whether it repeats each
    /// launch in several orders and compares the results.
    #[must_use]
    pub fn emulator_with(options: EmulatorOptions) -> Self {
        Self::new(
            emulator::properties(),
            options.limits,
            Backend::Emulator(EmulatorDevice::new(options)),
        )
    }

    /// CUDA device number `ordinal`, counted from 0 in the driver's order (`CUDA_VISIBLE_DEVICES`
    /// applies).
    ///
    /// It uses the device's primary context, as the CUDA runtime API does, so it shares the device
    /// with other CUDA libraries in the process.
    ///
    /// # Errors
    ///
    /// [`Error::GpuFeatureDisabled`] without the feature `gpu`, [`Error::UnsupportedPlatform`]
    /// outside Linux on x86_64 and aarch64, [`Error::DriverMissing`] without a CUDA driver,
    /// [`Error::NoDevice`] and [`Error::DeviceOrdinal`] without such a device,
    /// [`Error::UnsupportedPtx`] if the device is older than the kernels' lowest target,
    /// [`Error::Driver`] when the driver fails.
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

    /// Like [`Device::cuda`], with kernels from the caller's PTX instead of the library's.
    ///
    /// The driver loads the PTX now, so if it rejects the PTX, this call returns the error and not
    /// the first launch.
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
    /// As for [`Device::cuda`], and [`Error::InvalidPtx`] with the log of the driver's compiler if
    /// it rejects the PTX.
    ///
    /// # Safety
    ///
    /// If the PTX has an entry point with the name of a kernel of this library, and that kernel is
    /// later launched on the device, the entry point must take the same parameters and have the
    /// same effects as the kernel in this build of the library. Nothing can check that, and the
    /// library's safe operations rely on it. PTX that does not load, or that has none of these
    /// names, is allowed.
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

    /// The number of CUDA devices; 0 if there is a driver but no device.
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
    /// As for [`Device::cuda`], except the last four.
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

    /// The first CUDA device, or the CPU if it cannot be opened.
    ///
    /// It never fails; [`Device::kind`] says which device it is. Use [`Device::cuda`] to learn why
    /// a CUDA device could not be opened.
    #[must_use]
    pub fn best() -> Self {
        Self::cuda(0).unwrap_or_else(|_| Self::cpu())
    }

    /// A new handle of this device, whose work runs concurrently with the work of this one.
    ///
    /// Each CUDA handle has its own stream: the work of one handle runs in order, and the work of
    /// two handles may run at the same time. A buffer belongs to one handle.
    /// [`Buffer::move_to`](crate::Buffer::move_to) moves it to the other, after the work that uses
    /// it. So a copy, or a small kernel, can run during another kernel. On other devices work ends
    /// before a call returns, and the new handle has no further effect.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let second = device.new_handle()?;
    /// assert_eq!((device.kind(), device.name()), (second.kind(), second.name()));
    /// assert_ne!(device, second);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Device::cuda`].
    pub fn new_handle(&self) -> Result<Self, Error> {
        self.new_handle_with(Priority::Low)
    }

    /// Like [`Device::new_handle`], with a priority.
    ///
    /// ```
    /// use halo_gpu::{Device, Priority};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let urgent = device.new_handle_with(Priority::High)?;
    /// assert_eq!(device.name(), urgent.name());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Device::cuda`].
    pub fn new_handle_with(&self, priority: Priority) -> Result<Self, Error> {
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

    /// The kind of device.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        match self.backend() {
            Backend::Cpu => DeviceKind::Cpu,
            Backend::Emulator(_) => DeviceKind::Emulator,
            #[cfg(halo_cuda)]
            Backend::Cuda(_) => DeviceKind::Cuda,
        }
    }

    /// The device's name, for example `NVIDIA H200`, `cpu` or `emulator`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.properties.name
    }

    /// The properties of the device.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.inner.properties
    }

    /// The device's limits on launches.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Runs `work` with this device's CUDA context current on this thread, and passes it the
    /// device's stream (a `CUstream`, which is also a `cudaStream_t`).
    ///
    /// For your own CUDA code: work that it enqueues on that stream runs after all earlier work of
    /// this device and before all later work, so it can use buffers by their
    /// [`device_address`](crate::Buffer::device_address). Within [`Device::record`] the stream is
    /// the recording's, which records the work. Do not use the stream after `work` has returned.
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

/// Two handles are equal if one is a clone of the other.
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

/// The reason why this build has no CUDA devices.
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
