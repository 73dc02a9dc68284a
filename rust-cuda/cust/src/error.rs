//! The errors of driver calls.

use cuda_loader::sys::CUresult;
use std::fmt;

/// An error code of the driver, or of this crate.
///
/// It can hold any number, because newer drivers have codes without a name here.
///
/// ```
/// use cust::error::CudaError;
///
/// let words = match CudaError::from_code(2) {
///     CudaError::OutOfMemory => "too much",
///     CudaError::NotFound => "no such thing",
///     _ => "something else",
/// };
/// assert_eq!(words, "too much");
/// assert_eq!(CudaError::from_code(12_345).code(), 12_345);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CudaError(u32);

/// The result of most calls.
pub type CudaResult<T> = Result<T, CudaError>;

/// The result of an explicit release. On failure it also returns the object, so that the caller can
/// try again.
pub type DropResult<T> = Result<(), (CudaError, T)>;

macro_rules! codes {
    ($($name:ident = $code:literal: $words:literal),* $(,)?) => {
        // Named like the variants of an enum, so that programs can match on them.
        #[allow(non_upper_case_globals, reason = "cust has these as the variants of an enum")]
        impl CudaError {
            $(#[doc = concat!($words, ".")] pub const $name: Self = Self($code);)*
        }

        impl fmt::Debug for CudaError {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name => f.write_str(stringify!($name)),)*
                    Self(code) => write!(f, "CudaError({code})"),
                }
            }
        }
    };
}

codes! {
    InvalidValue = 1: "A parameter is out of range",
    OutOfMemory = 2: "There is not enough memory",
    NotInitialized = 3: "The driver is not loaded or not initialised",
    Deinitialized = 4: "The driver is shutting down",
    ProfilerDisabled = 5: "The profiler is not available",
    ProfilerNotInitialized = 6: "The profiler is not initialised",
    ProfilerAlreadyStarted = 7: "The profiler is already running",
    ProfilerAlreadyStopped = 8: "The profiler has stopped already",
    NoDevice = 100: "There is no CUDA device, or no driver",
    InvalidDevice = 101: "There is no device of that number",
    InvalidImage = 200: "The image of the module is not valid",
    InvalidContext = 201: "No context is current, or the context is not valid",
    ContextAlreadyCurrent = 202: "The context is current already",
    MapFailed = 205: "Mapping has failed",
    UnmapFailed = 206: "Unmapping has failed",
    ArrayIsMapped = 207: "The array is mapped",
    AlreadyMapped = 208: "The resource is mapped already",
    NoBinaryForGpu = 209: "No code in the module suits the device",
    AlreadyAcquired = 210: "The resource is already in use",
    NotMapped = 211: "The resource is not mapped",
    NotMappedAsArray = 212: "The resource is not mapped as an array",
    NotMappedAsPointer = 213: "The resource is not mapped as a pointer",
    EccUncorrectable = 214: "Memory has an error that cannot be corrected",
    UnsupportedLimit = 215: "The device has no such limit",
    ContextAlreadyInUse = 216: "The context is in use on another thread",
    PeerAccessUnsupported = 217: "The devices have no access to each other",
    InvalidPtx = 218: "The driver's compiler has rejected the PTX",
    InvalidGraphicsContext = 219: "The context of OpenGL or DirectX is not valid",
    NvlinkUncorrectable = 220: "NVLink has an error that cannot be corrected",
    InvalidSource = 300: "The source is not valid",
    FileNotFound = 301: "The file does not exist",
    SharedObjectSymbolNotFound = 302: "A shared library lacks a symbol",
    SharedObjectInitFailed = 303: "A shared library cannot be initialised",
    OperatingSystemError = 304: "A call of the operating system has failed",
    InvalidHandle = 400: "The handle is not valid",
    NotFound = 500: "There is no kernel, global or texture of that name",
    NotReady = 600: "The work has not finished",
    IllegalAddress = 700: "A kernel has used an address outside the memory of its context",
    LaunchOutOfResources = 701: "The launch needs more registers or threads than the device has",
    LaunchTimeout = 702: "A kernel has run too long",
    LaunchIncompatibleTexturing = 703: "The launch does not suit the textures",
    PeerAccessAlreadyEnabled = 704: "The devices have access to each other already",
    PeerAccessNotEnabled = 705: "Access to the other device is not enabled",
    PrimaryContextActive = 708: "The primary context is initialised already",
    ContextIsDestroyed = 709: "The context is destroyed",
    AssertError = 710: "An assertion in a kernel has failed",
    TooManyPeers = 711: "Too many devices have access to each other",
    HostMemoryAlreadyRegistered = 712: "The host's memory is registered already",
    HostMemoryNotRegistered = 713: "The host's memory is not registered",
    HardwareStackError = 714: "The stack of a kernel is corrupted, or too large",
    IllegalInstruction = 715: "A kernel has executed an invalid instruction",
    MisalignedAddress = 716: "A kernel has used an address that is not aligned",
    InvalidAddressSpace = 717: "A kernel has used an address of another address space",
    InvalidProgramCounter = 718: "A kernel has jumped to an address without code",
    LaunchFailed = 719: "A kernel has failed",
    NotPermitted = 800: "The operation is not permitted",
    NotSupported = 801: "The device or the driver does not support the operation",
    UnknownError = 999: "An unknown error",
    InvalidMemoryAllocation = 100_100: "The requested memory has no bytes, or more than a pointer can address",
    OptixError = 100_101: "OptiX has failed",
}

impl CudaError {
    /// The error with this code.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        Self(code)
    }

    /// The driver's number.
    #[must_use]
    pub const fn code(self) -> u32 {
        self.0
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::InvalidMemoryAllocation => {
                f.write_str("the requested memory has no bytes, or more than a pointer can address")
            }
            Self::OptixError => f.write_str("OptiX has failed"),
            Self(code) => f.write_str(&CUresult(code).text()),
        }
    }
}

impl std::error::Error for CudaError {}

/// Turns the code that a call returns into a result.
pub(crate) trait ToResult {
    fn to_result(self) -> CudaResult<()>;
}

impl ToResult for CUresult {
    fn to_result(self) -> CudaResult<()> {
        self.into_result().map_err(|code| CudaError(code.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_where_they_are_known() {
        assert_eq!(format!("{:?}", CudaError::IllegalAddress), "IllegalAddress");
        assert_eq!(format!("{:?}", CudaError(12_345)), "CudaError(12345)");
        assert_eq!(CUresult(0).to_result(), Ok(()));
        assert_eq!(CUresult(700).to_result(), Err(CudaError::IllegalAddress));
    }

    #[test]
    fn codes_are_described_without_a_driver() {
        assert_eq!(
            CudaError::NotInitialized.to_string(),
            "the CUDA driver is not loaded or not initialised"
        );
        assert!(
            CudaError::InvalidMemoryAllocation
                .to_string()
                .contains("has no bytes")
        );
    }
}
