//! The library's error type.
//!
//! Every message names the fault and the requirement. An error of a kernel has the kernel's name,
//! the axis or parameter, the requirement and the value that was given.

use crate::argument::Argument;
use crate::extents::{Shape, Shape2, Shape3};
use crate::{ComputeCapability, DriverVersion};
use cuda_emulator::Diagnosis;

/// The reasons why an operation of this library can fail.
///
/// The enum is `#[non_exhaustive]`: match the variants you can act on and
/// treat the rest as failure. Validation errors (`InvalidSize`, `NonFinite`,
/// `InvalidParameter`, `Unstable`, `InvalidElement`, `EmptyInput`, `IndexOverflow`, `LengthMismatch`, `ShapeMismatch`,
/// `DeviceMismatch`, `LaunchLimit`) are reported before anything runs on a
/// device, so no buffer has changed.
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
    /// An extent does not suit the operation or the kernel's tile.
    #[error("{operation}: {axis} is {given}, but must be {required}")]
    InvalidSize {
        /// The kernel or library operation that refused.
        operation: &'static str,
        /// The extent in question: `nx`, `ny`, `nz`, `n`, `block`, ….
        axis: &'static str,
        /// The value that was given.
        given: usize,
        /// The requirement, as words that follow "must be".
        required: String,
    },

    /// A floating-point parameter is NaN or infinite.
    #[error("{operation}: {parameter} is {given}, but must be a finite number")]
    NonFinite {
        /// The operation that refused.
        operation: &'static str,
        /// The parameter's name.
        parameter: &'static str,
        /// The value that was given.
        given: f64,
    },

    /// The operation has no meaning for this value of a parameter.
    #[error("{operation}: {parameter} is {given}, but must be {required}")]
    InvalidParameter {
        /// The operation that refused.
        operation: &'static str,
        /// The parameter's name.
        parameter: &'static str,
        /// The value that was given, as text.
        given: String,
        /// The requirement, as words that follow "must be".
        required: String,
    },

    /// The time step is too long: the explicit scheme would be unstable.
    #[error("{operation}: the time step is {time_step}, but must be at most {limit} to be stable")]
    Unstable {
        /// The operation that refused.
        operation: &'static str,
        /// The step that was given.
        time_step: f64,
        /// The longest stable one.
        limit: f64,
    },

    /// The operation has no meaning for this value of an input element.
    #[error("{operation}: {what} {index} is {given}, but must be {required}")]
    InvalidElement {
        /// The operation that refused.
        operation: &'static str,
        /// A name for the elements, as words before the index: `the mass of body`.
        what: &'static str,
        /// The index of the first element that was refused.
        index: usize,
        /// The value that it has.
        given: f64,
        /// The requirement, as words that follow "must be".
        required: String,
    },

    /// The input holds no element, and the operation has no value for that.
    #[error("{operation}: the input is empty, but at least one element is needed")]
    EmptyInput {
        /// The operation that refused.
        operation: &'static str,
    },

    /// A size or an index does not fit the integer type it is needed in.
    #[error("{quantity} is {given}, but at most {limit} can be indexed here")]
    IndexOverflow {
        /// The quantity that overflowed, e.g. `nx * ny * nz`.
        quantity: Argument,
        /// The quantity's value, as text (it may fit no integer type).
        given: String,
        /// The largest value that is possible.
        limit: u64,
    },

    /// Two lengths that have to agree do not.
    #[error("{argument} has {given} elements, but must have {required}")]
    LengthMismatch {
        /// The slice, vector or buffer in question.
        argument: Argument,
        /// The number of elements it has to have.
        required: usize,
        /// The number of elements it has.
        given: usize,
    },

    /// Two shapes that have to agree do not, though they may have as many points.
    #[error("{argument} is of {given} points, but must be of {}", in_words(.required))]
    ShapeMismatch {
        /// The field or buffer in question.
        argument: Argument,
        /// The shape it has to have; one without points where any of as many axes would do.
        required: Shape,
        /// The shape it has.
        given: Shape,
    },

    /// A buffer lives on another device than the operation runs on.
    #[error("{argument} is on {given}, but the operation runs on {required}")]
    DeviceMismatch {
        /// The buffer in question.
        argument: Argument,
        /// The device that the operation runs on.
        required: String,
        /// The device that the buffer is on.
        given: String,
    },

    /// The launch asks for more than the device, or the kernel on that device, allows.
    #[error("{kernel}: {axis} is {given}, but must be {required}")]
    LaunchLimit {
        /// The kernel that was to be launched.
        kernel: &'static str,
        /// The resource: the launch asks for more of it than allowed, or for none.
        axis: LaunchAxis,
        /// The allowed range, as words that follow "must be".
        required: String,
        /// The request.
        given: u64,
    },

    /// Kernels run on CUDA devices and on the emulator, never on [`DeviceKind::Cpu`](crate::DeviceKind::Cpu).
    #[error(
        "{kernel}: the cpu device runs CPU ports and launches no kernels; \
         use Device::cuda or Device::emulator"
    )]
    NotLaunchable {
        /// The kernel that was to be launched.
        kernel: &'static str,
    },

    /// The device cannot give that much memory.
    #[error(
        "out of memory on {device}: {requested} bytes were requested, {free} of {total} are free"
    )]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// Bytes that were asked for.
        requested: u64,
        /// Bytes that are free now.
        free: u64,
        /// Bytes that the device has.
        total: u64,
    },

    /// The host cannot give that much memory.
    #[error("out of memory on the host: {requested} bytes were requested")]
    HostOutOfMemory {
        /// Bytes that were asked for.
        requested: u64,
    },

    /// The library was built without its `gpu` feature.
    #[error(
        "this build of halo-gpu has no CUDA support; enable it with `--features gpu` \
         (in Cargo.toml: halo-gpu = {{ …, features = [\"gpu\"] }})"
    )]
    GpuFeatureDisabled,

    /// The `gpu` feature is on, but this platform has no CUDA support in this library.
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

    /// The CUDA driver is there, but reports no device.
    #[error("the CUDA driver reports no device (is one hidden by CUDA_VISIBLE_DEVICES?)")]
    NoDevice,

    /// There is no CUDA device with that number.
    #[error("there is no CUDA device {given}: ordinals must be below {count} here")]
    DeviceOrdinal {
        /// The ordinal that was asked for.
        given: usize,
        /// The number of devices there are.
        count: usize,
    },

    /// The installed driver lacks a function that is needed.
    #[error(
        "the CUDA driver ({driver_version}) has no function {function}; a newer driver is needed"
    )]
    DriverTooOld {
        /// The missing function of the driver API.
        function: &'static str,
        /// The CUDA version that the driver supports, e.g. `12.4`.
        driver_version: String,
    },

    /// The device, or its driver, is too old for the PTX.
    #[error(
        "PTX for {ptx_target} (PTX ISA {ptx_version}) cannot run on {device}, which has compute \
         capability {compute_capability} and a driver for CUDA {driver_version}; \
         a device of at least {ptx_target} and a driver that knows PTX ISA {ptx_version} are \
         needed{}", and_log(.jit_log)
    )]
    UnsupportedPtx {
        /// The `.target` of the PTX, e.g. `sm_75`.
        ptx_target: String,
        /// The `.version` of the PTX, e.g. `8.0`.
        ptx_version: String,
        /// The device's name.
        device: String,
        /// The device's compute capability, e.g. 7.0.
        compute_capability: ComputeCapability,
        /// The CUDA version that the driver supports, e.g. 12.4.
        driver_version: DriverVersion,
        /// The log of the driver's compiler; empty where it wrote nothing or was not
        /// asked.
        jit_log: String,
    },

    /// The driver's compiler refused the PTX.
    #[error(
        "the driver refused the PTX, which is for {ptx_target} (PTX ISA {ptx_version}), on \
         {device}, which has compute capability {compute_capability} and a driver for CUDA \
         {driver_version}; its log says:\n{jit_log}"
    )]
    InvalidPtx {
        /// The `.target` of the PTX, e.g. `sm_75`; `an unknown target` where it has none.
        ptx_target: String,
        /// The `.version` of the PTX, e.g. `8.0`; `unknown` where it has none.
        ptx_version: String,
        /// The device's name.
        device: String,
        /// The device's compute capability, e.g. 9.0.
        compute_capability: ComputeCapability,
        /// The CUDA version that the driver supports, e.g. 12.4.
        driver_version: DriverVersion,
        /// The log of the driver's compiler.
        jit_log: String,
    },

    /// The machine code is none that a device could run.
    #[error("the machine code {fault}; a cubin is needed, as `nvcc -cubin` writes it")]
    InvalidCubin {
        /// The fault.
        fault: CubinFault,
    },

    /// The machine code is for another generation of device.
    #[error(
        "machine code for compute capability {built_for} cannot run on {device}, which has \
         {compute_capability}; compile it for that"
    )]
    UnsupportedCubin {
        /// The GPU generation it was compiled for.
        built_for: ComputeCapability,
        /// The device's name.
        device: String,
        /// The device's compute capability.
        compute_capability: ComputeCapability,
    },

    /// Only CUDA devices can do that.
    #[error("{operation} needs a CUDA device, and {device} is none")]
    NotCuda {
        /// The request.
        operation: &'static str,
        /// The device's name.
        device: String,
    },

    /// The recorded work cannot be replayed.
    #[error(
        "{operation} cannot be recorded; launches, fills and copies from buffer to buffer can, \
         so do the rest before `Device::record`"
    )]
    NotReplayable {
        /// The operation that was recorded.
        operation: &'static str,
    },

    /// The loaded code has no kernel of that name.
    #[error("the loaded code has no kernel {kernel}; was it built from other sources?")]
    KernelNotFound {
        /// The kernel that was to be launched.
        kernel: &'static str,
    },

    /// The loaded code has no global of that name.
    #[error("the loaded code has no constant {symbol}; was it built from other sources?")]
    SymbolNotFound {
        /// The constant's name.
        symbol: &'static str,
    },

    /// The loaded code has a global of that name, but of another size.
    #[error(
        "the constant {symbol} has {required} bytes in the loaded code, but the value has {given}"
    )]
    SymbolSize {
        /// The constant's name.
        symbol: &'static str,
        /// The bytes that it has there.
        required: usize,
        /// The bytes of the value.
        given: usize,
    },

    /// A call of the CUDA driver failed.
    ///
    /// Codes from 700 on mostly report that an earlier kernel faulted, not the one
    /// that the call was for. The driver then keeps failing in this process until it
    /// ends.
    #[error("{call}{} failed with {name} ({code}): {text}", for_kernel(.kernel))]
    Driver {
        /// The function of the driver API.
        call: &'static str,
        /// The kernel that the call was for, where it was for one.
        kernel: Option<&'static str>,
        /// The driver's number, whether or not this library knows it.
        code: u32,
        /// The driver's name of the number.
        name: String,
        /// The driver's description.
        text: String,
    },

    /// The emulator stopped a launch and says why.
    #[error(transparent)]
    Emulator(Box<Diagnosis>),
}

/// The end of a message: what the driver's compiler wrote, if anything.
fn and_log(jit_log: &str) -> String {
    if jit_log.is_empty() {
        String::new()
    } else {
        format!("; the driver's log says:\n{jit_log}")
    }
}

/// A shape that is required: its extents, or their names where any would do.
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

/// The kernel that a call was for, if it was for one.
fn for_kernel(kernel: &Option<&'static str>) -> String {
    kernel.map_or_else(String::new, |kernel| format!(" for {kernel}"))
}

/// Refuses a parameter that is not a finite number.
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

/// Refuses a parameter that is not a finite, positive number.
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

/// The faults of machine code, for [`Error::InvalidCubin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CubinFault {
    /// It is not an ELF file.
    NotElf,
    /// It is for a processor.
    NotForGpu,
    /// It ends before it should.
    CutOff {
        /// The bytes there are.
        bytes: usize,
        /// The least that there would be in a whole one.
        needed: u64,
    },
    /// Where its generation stands in a file of its ABI is not known.
    UnknownAbi {
        /// The version of the ABI.
        version: u8,
    },
    /// The driver refuses it.
    Refused {
        /// The driver's number for the reason.
        code: u32,
    },
}

impl std::fmt::Display for CubinFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotElf => f.write_str("is no ELF file"),
            Self::NotForGpu => f.write_str("is for a processor, not for a GPU"),
            Self::CutOff { bytes, needed } => {
                write!(
                    f,
                    "is cut off: it has {bytes} bytes, but a whole one at least {needed}"
                )
            }
            Self::UnknownAbi { version } => write!(f, "has the unknown ABI version {version}"),
            Self::Refused { code } => write!(f, "is refused by the driver (code {code})"),
        }
    }
}

/// The quantity of a launch that [`Error::LaunchLimit`] speaks of.
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
