//! The error type of the library.
//!
//! Every message names the fault and the requirement. An error about a kernel names the kernel, the
//! axis or parameter, the requirement and the given value.

use crate::argument::Argument;
use crate::extents::{Shape, Shape2, Shape3};
use crate::{ComputeCapability, DriverVersion};
use cuda_emulator::Diagnosis;

/// The reasons why an operation of this library can fail.
///
/// The enum is `#[non_exhaustive]`: match the variants you can act on and treat the rest as
/// failure. Validation errors (`InvalidSize`, `NonFinite`, `InvalidParameter`, `Unstable`,
/// `InvalidElement`, `EmptyInput`, `IndexOverflow`, `LengthMismatch`, `ShapeMismatch`,
/// `DeviceMismatch`, `LaunchLimit`) are reported before anything runs on a device, so no buffer has
/// changed.
///
/// ```
/// use halo_gpu::{Device, Error, reduction};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let values = Device::cpu().upload::<f32>(&[])?;
/// match reduction::mean(&values) {
///     Err(Error::EmptyInput { operation }) => assert_eq!(operation, "reduction: mean"),
///     other => panic!("{other:?}"),
/// }
/// let refused = halo_gpu::heat2d::Heat2d::dirichlet(halo_gpu::Shape2::new(2, 9)).unwrap_err();
/// assert_eq!(
///     refused.to_string(),
///     "heat2d: nx is 2, but must be at least 3 (two ends and a point between them)"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An extent does not fit the operation or the kernel's tile.
    #[error("{operation}: {axis} is {given}, but must be {required}")]
    InvalidSize {
        /// The kernel or library operation that returned the error.
        operation: &'static str,
        /// The name of the extent: `nx`, `ny`, `nz`, `n`, `block`, ….
        axis: &'static str,
        /// The given value.
        given: usize,
        /// The requirement; completes "must be".
        required: String,
    },

    /// A floating-point parameter is NaN or infinite.
    #[error("{operation}: {parameter} is {given}, but must be a finite number")]
    NonFinite {
        /// The operation that returned the error.
        operation: &'static str,
        /// The parameter's name.
        parameter: &'static str,
        /// The given value.
        given: f64,
    },

    /// A parameter has a value for which the operation is not defined.
    #[error("{operation}: {parameter} is {given}, but must be {required}")]
    InvalidParameter {
        /// The operation that returned the error.
        operation: &'static str,
        /// The parameter's name.
        parameter: &'static str,
        /// The given value, as text.
        given: String,
        /// The requirement; completes "must be".
        required: String,
    },

    /// The time step is too long: the explicit scheme would be unstable.
    #[error("{operation}: the time step is {time_step}, but must be at most {limit} to be stable")]
    Unstable {
        /// The operation that returned the error.
        operation: &'static str,
        /// The given time step.
        time_step: f64,
        /// The longest stable time step.
        limit: f64,
    },

    /// An input element has a value for which the operation is not defined.
    #[error("{operation}: {what} {index} is {given}, but must be {required}")]
    InvalidElement {
        /// The operation that returned the error.
        operation: &'static str,
        /// The name of the elements; the index follows it: `the mass of body`.
        what: &'static str,
        /// The index of the first invalid element.
        index: usize,
        /// Its value.
        given: f64,
        /// The requirement; completes "must be".
        required: String,
    },

    /// The input is empty, and the operation needs at least one element.
    #[error("{operation}: the input is empty, but at least one element is needed")]
    EmptyInput {
        /// The operation that returned the error.
        operation: &'static str,
    },

    /// A size or an index does not fit the integer type that must hold it.
    #[error("{quantity} is {given}, but at most {limit} can be indexed here")]
    IndexOverflow {
        /// The quantity that overflowed, for example `nx * ny * nz`.
        quantity: Argument,
        /// Its value, as text (it may fit no integer type).
        given: String,
        /// The largest possible value.
        limit: u64,
    },

    /// Two lengths must be equal, but are not.
    #[error("{argument} has {given} elements, but must have {required}")]
    LengthMismatch {
        /// The slice, vector or buffer with the wrong length.
        argument: Argument,
        /// The required number of elements.
        required: usize,
        /// The number of elements it has.
        given: usize,
    },

    /// Two shapes must be equal, but are not, although their numbers of points may be.
    #[error("{argument} has the shape {given}, but must have {}", in_words(.required))]
    ShapeMismatch {
        /// The field or buffer with the wrong shape.
        argument: Argument,
        /// The required shape; if any shape with that number of axes would do, its extents are 0.
        required: Shape,
        /// The shape it has.
        given: Shape,
    },

    /// A buffer is on another device than the one the operation runs on.
    #[error("{argument} is on {given}, but the operation runs on {required}")]
    DeviceMismatch {
        /// The buffer.
        argument: Argument,
        /// The device that the operation runs on.
        required: String,
        /// The device that holds the buffer.
        given: String,
    },

    /// The launch needs more than the device allows, or than the kernel allows on that device.
    #[error("{kernel}: {axis} is {given}, but must be {required}")]
    LaunchLimit {
        /// The kernel.
        kernel: &'static str,
        /// The resource that the launch needs too much of, or none.
        axis: LaunchAxis,
        /// The allowed range; completes "must be".
        required: String,
        /// The amount that the launch needs.
        given: u64,
    },

    /// The CPU device cannot launch kernels: they run on CUDA devices and on the emulator, never on
    /// [`DeviceKind::Cpu`](crate::DeviceKind::Cpu).
    #[error(
        "{kernel}: the cpu device runs CPU ports and launches no kernels; \
         use Device::cuda or Device::emulator"
    )]
    NotLaunchable {
        /// The kernel.
        kernel: &'static str,
    },

    /// The device does not have that much free memory.
    #[error(
        "out of memory on {device}: {requested} bytes were requested, {free} of {total} are free"
    )]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// The requested bytes.
        requested: u64,
        /// The bytes that are free now.
        free: u64,
        /// The bytes that the device has.
        total: u64,
    },

    /// The host does not have that much free memory.
    #[error("out of memory on the host: {requested} bytes were requested")]
    HostOutOfMemory {
        /// The requested bytes.
        requested: u64,
    },

    /// The library was built without its `gpu` feature.
    #[error(
        "this build of halo-gpu has no CUDA support; enable it with `--features gpu` \
         (in Cargo.toml: halo-gpu = {{ …, features = [\"gpu\"] }})"
    )]
    GpuFeatureDisabled,

    /// The `gpu` feature is on, but this library does not support CUDA on this platform.
    #[error("CUDA devices are supported on Linux on x86_64 and aarch64, not on {os} on {arch}")]
    UnsupportedPlatform {
        /// `std::env::consts::OS`.
        os: &'static str,
        /// `std::env::consts::ARCH`.
        arch: &'static str,
    },

    /// The CUDA driver library could not be loaded.
    #[error(
        "no usable CUDA driver: {reason} (searched: {searched}); \
         install the NVIDIA driver, or put the folder of its libcuda.so.1 on the library path"
    )]
    DriverMissing {
        /// The file names that were tried, in order, separated by `, `.
        searched: String,
        /// Why the first of them could not be used.
        reason: String,
    },

    /// The CUDA driver is installed, but reports no device.
    #[error("the CUDA driver reports no device (is one hidden by CUDA_VISIBLE_DEVICES?)")]
    NoDevice,

    /// There is no CUDA device with that number.
    #[error("there is no CUDA device {given}: ordinals must be below {count} here")]
    DeviceOrdinal {
        /// The requested ordinal.
        given: usize,
        /// The number of devices.
        count: usize,
    },

    /// The installed driver lacks a required function.
    #[error(
        "the CUDA driver ({driver_version}) has no function {function}; a newer driver is needed"
    )]
    DriverTooOld {
        /// The missing function of the driver API.
        function: &'static str,
        /// The CUDA version that the driver supports, for example `12.4`.
        driver_version: String,
    },

    /// The device or its driver is too old for the PTX.
    #[error(
        "PTX for {ptx_target} (PTX ISA {ptx_version}) cannot run on {device}, which has compute \
         capability {compute_capability} and a driver for CUDA {driver_version}; \
         a device of at least {ptx_target} and a driver that knows PTX ISA {ptx_version} are \
         needed{}", and_log(.jit_log)
    )]
    UnsupportedPtx {
        /// The `.target` of the PTX, for example `sm_75`.
        ptx_target: String,
        /// The `.version` of the PTX, for example `8.0`.
        ptx_version: String,
        /// The device's name.
        device: String,
        /// The device's compute capability, for example 7.0.
        compute_capability: ComputeCapability,
        /// The CUDA version that the driver supports, for example 12.4.
        driver_version: DriverVersion,
        /// The log of the driver's compiler; empty if it wrote nothing or did not run.
        jit_log: String,
    },

    /// The driver's compiler rejected the PTX.
    #[error(
        "the driver refused the PTX, which is for {ptx_target} (PTX ISA {ptx_version}), on \
         {device}, which has compute capability {compute_capability} and a driver for CUDA \
         {driver_version}; its log says:\n{jit_log}"
    )]
    InvalidPtx {
        /// The `.target` of the PTX, for example `sm_75`; `an unknown target` if it has none.
        ptx_target: String,
        /// The `.version` of the PTX, for example `8.0`; `unknown` if it has none.
        ptx_version: String,
        /// The device's name.
        device: String,
        /// The device's compute capability, for example 9.0.
        compute_capability: ComputeCapability,
        /// The CUDA version that the driver supports, for example 12.4.
        driver_version: DriverVersion,
        /// The log of the driver's compiler.
        jit_log: String,
    },

    /// The machine code is not a cubin that a device can run.
    #[error("the machine code {fault}; a cubin is needed, as `nvcc -cubin` writes it")]
    InvalidCubin {
        /// What is wrong with it.
        fault: CubinFault,
    },

    /// The machine code was compiled for another GPU generation.
    #[error(
        "machine code for compute capability {built_for} cannot run on {device}, which has \
         {compute_capability}; compile it for that"
    )]
    UnsupportedCubin {
        /// The compute capability that it was compiled for.
        built_for: ComputeCapability,
        /// The device's name.
        device: String,
        /// The device's compute capability.
        compute_capability: ComputeCapability,
    },

    /// The operation needs a CUDA device.
    #[error("{operation} needs a CUDA device, but {device} is not one")]
    NotCuda {
        /// The operation.
        operation: &'static str,
        /// The device's name.
        device: String,
    },

    /// The operation cannot be recorded for replay.
    #[error(
        "{operation} cannot be recorded; launches, fills and copies from buffer to buffer can, \
         so do the rest before `Device::record`"
    )]
    NotReplayable {
        /// The operation.
        operation: &'static str,
    },

    /// The loaded code has no kernel of that name.
    #[error("the loaded code has no kernel {kernel}; was it built from other sources?")]
    KernelNotFound {
        /// The kernel.
        kernel: &'static str,
    },

    /// The loaded code has no global variable of that name.
    #[error("the loaded code has no constant {symbol}; was it built from other sources?")]
    SymbolNotFound {
        /// The constant's name.
        symbol: &'static str,
    },

    /// The loaded code has a global variable of that name, but with another size.
    #[error(
        "the constant {symbol} has {required} bytes in the loaded code, but the value has {given}"
    )]
    SymbolSize {
        /// The constant's name.
        symbol: &'static str,
        /// The bytes that the loaded code reserves for it.
        required: usize,
        /// The bytes of the value.
        given: usize,
    },

    /// A call to the CUDA driver failed.
    ///
    /// Codes from 700 on mostly report that an earlier kernel faulted, not the one that the call
    /// was for. Every later driver call in this process then fails as well.
    #[error("{call}{} failed with {name} ({code}): {text}", for_kernel(.kernel))]
    Driver {
        /// The function of the driver API.
        call: &'static str,
        /// The kernel that the call was for, if any.
        kernel: Option<&'static str>,
        /// The driver's error code; it may be one that this library does not know.
        code: u32,
        /// The driver's name for the code.
        name: String,
        /// The driver's description of the code.
        text: String,
    },

    /// The emulator stopped a launch and reports the reason.
    #[error(transparent)]
    Emulator(Box<Diagnosis>),
}

/// The end of a message: the log of the driver's compiler, if it wrote one.
fn and_log(jit_log: &str) -> String {
    if jit_log.is_empty() {
        String::new()
    } else {
        format!("; the driver's log says:\n{jit_log}")
    }
}

/// A required shape: its extents, or their names if any extents would do.
fn in_words(required: &Shape) -> String {
    match required {
        Shape::Plane(Shape2 { nx: 0, ny: 0 }) => "nx × ny".to_owned(),
        Shape::Volume(Shape3 {
            nx: 0,
            ny: 0,
            nz: 0,
        }) => "nx × ny × nz".to_owned(),
        required => required.to_string(),
    }
}

/// The words for the kernel that a call was for, if any.
fn for_kernel(kernel: &Option<&'static str>) -> String {
    kernel.map_or_else(String::new, |kernel| format!(" for {kernel}"))
}

/// Returns an error unless the parameter is a finite number.
pub(crate) fn require_finite(
    operation: &'static str,
    parameter: &'static str,
    given: f64,
) -> Result<(), Error> {
    if given.is_finite() {
        return Ok(());
    }
    Err(Error::NonFinite {
        operation,
        parameter,
        given,
    })
}

/// Returns an error unless the parameter is a finite, positive number.
pub(crate) fn require_positive(
    operation: &'static str,
    parameter: &'static str,
    given: f64,
) -> Result<(), Error> {
    require_finite(operation, parameter, given)?;
    if given > 0.0 {
        return Ok(());
    }
    Err(Error::InvalidParameter {
        operation,
        parameter,
        given: given.to_string(),
        required: "positive".to_owned(),
    })
}

impl From<Diagnosis> for Error {
    fn from(diagnosis: Diagnosis) -> Self {
        Self::Emulator(Box::new(diagnosis))
    }
}

/// What can be wrong with machine code, for [`Error::InvalidCubin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CubinFault {
    /// It is not an ELF file.
    NotElf,
    /// It is for a CPU.
    NotForGpu,
    /// It is truncated.
    CutOff {
        /// The bytes it has.
        bytes: usize,
        /// The least number of bytes that a complete file would have.
        needed: u64,
    },
    /// Its ABI version is unknown, and so is the place of the GPU generation in it.
    UnknownAbi {
        /// The ABI version.
        version: u8,
    },
    /// The driver rejected it.
    Refused {
        /// The driver's error code.
        code: u32,
    },
}

impl std::fmt::Display for CubinFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotElf => f.write_str("is not an ELF file"),
            Self::NotForGpu => f.write_str("is for a CPU, not for a GPU"),
            Self::CutOff { bytes, needed } => {
                write!(
                    f,
                    "is truncated: it has {bytes} bytes, but needs at least {needed}"
                )
            }
            Self::UnknownAbi { version } => write!(f, "has the unknown ABI version {version}"),
            Self::Refused { code } => write!(f, "was rejected by the driver (code {code})"),
        }
    }
}

/// The quantity of a launch that [`Error::LaunchLimit`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LaunchAxis {
    /// Blocks along x.
    GridX,
    /// Blocks along y.
    GridY,
    /// Blocks along z.
    GridZ,
    /// Threads of a block along x.
    BlockX,
    /// Threads of a block along y.
    BlockY,
    /// Threads of a block along z.
    BlockZ,
    /// Threads of a block: the product of its three extents.
    ThreadsPerBlock,
    /// Dynamic shared memory of a block, in bytes.
    DynamicSharedBytes,
    /// Static and dynamic shared memory of a block together, in bytes.
    SharedBytes,
}

impl std::fmt::Display for LaunchAxis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::GridX => "grid.x",
            Self::GridY => "grid.y",
            Self::GridZ => "grid.z",
            Self::BlockX => "block.x",
            Self::BlockY => "block.y",
            Self::BlockZ => "block.z",
            Self::ThreadsPerBlock => "the number of threads per block",
            Self::DynamicSharedBytes => "the dynamic shared memory per block in bytes",
            Self::SharedBytes => "the static and dynamic shared memory per block in bytes",
        })
    }
}
