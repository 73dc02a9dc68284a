//! Declares the driver API. A result code can be any number, and a call checks that the driver has
//! the function.
//!
//! Names, parameters and constants are those of the driver's header `cuda.h`; the driver's
//! documentation describes the functions. Every function returns [`CUresult::NOT_INITIALIZED`]
//! before the driver library is loaded ([`load`](crate::load)), and [`CUresult::SYMBOL_MISSING`] if
//! the installed driver lacks the function.
//!
//! The module declares what the crate `cust` wraps or needs.

#![allow(
    clippy::too_many_arguments,
    non_camel_case_types,
    non_snake_case,
    reason = "these are the driver's names and parameters; a reader looks for them in its documentation"
)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::fmt;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The result of a driver call. It can be any number; some have a name here.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
#[must_use]
pub struct CUresult(pub u32);

impl CUresult {
    /// The call succeeded.
    pub const SUCCESS: Self = Self(0);
    /// The device does not have enough free memory.
    pub const OUT_OF_MEMORY: Self = Self(2);
    /// The driver is not loaded or `cuInit` was not called.
    pub const NOT_INITIALIZED: Self = Self(3);
    /// The driver is shutting down, or has shut down.
    pub const DEINITIALIZED: Self = Self(4);
    /// There is no CUDA device.
    pub const NO_DEVICE: Self = Self(100);
    /// The image is not a module, or not for this device.
    pub const INVALID_IMAGE: Self = Self(200);
    /// No code in the module suits the device.
    pub const NO_BINARY_FOR_GPU: Self = Self(209);
    /// The compiler of the driver refused the PTX.
    pub const INVALID_PTX: Self = Self(218);
    /// The driver has no compiler for PTX.
    pub const JIT_COMPILER_NOT_FOUND: Self = Self(221);
    /// The PTX is of a newer version than the driver's compiler knows.
    pub const UNSUPPORTED_PTX_VERSION: Self = Self(222);
    /// The driver was told not to compile PTX.
    pub const JIT_COMPILATION_DISABLED: Self = Self(223);
    /// The compiler cannot read the source.
    pub const INVALID_SOURCE: Self = Self(300);
    /// There is no such kernel or global in the module.
    pub const NOT_FOUND: Self = Self(500);
    /// The work is still going on.
    pub const NOT_READY: Self = Self(600);
    /// The device or the driver does not support the operation.
    pub const NOT_SUPPORTED: Self = Self(801);
    /// A code of this crate: the installed driver lacks the function.
    pub const SYMBOL_MISSING: Self = Self(0x4C4F_0001);
    /// A code of this crate: the driver reported success, but its answer is impossible.
    pub const INVALID_ANSWER: Self = Self(0x4C4F_0002);

    /// `Ok` for [`CUresult::SUCCESS`], the code itself as error otherwise.
    ///
    /// # Errors
    ///
    /// The code, unless it is [`CUresult::SUCCESS`].
    pub const fn into_result(self) -> Result<(), Self> {
        if self.0 == Self::SUCCESS.0 {
            Ok(())
        } else {
            Err(self)
        }
    }

    /// The driver's name of the code, e.g. `CUDA_ERROR_INVALID_VALUE`.
    #[must_use]
    pub fn name(self) -> String {
        self.words(cuGetErrorName).unwrap_or_else(|| {
            match self {
                Self::SUCCESS => "CUDA_SUCCESS",
                Self::NOT_INITIALIZED => "CUDA_ERROR_NOT_INITIALIZED",
                Self::NO_DEVICE => "CUDA_ERROR_NO_DEVICE",
                Self::SYMBOL_MISSING => "SYMBOL_MISSING",
                Self::INVALID_ANSWER => "INVALID_ANSWER",
                _ => "an error without a name",
            }
            .to_owned()
        })
    }

    /// The driver's description of the code.
    #[must_use]
    pub fn text(self) -> String {
        self.words(cuGetErrorString).unwrap_or_else(|| {
            match self {
                Self::SUCCESS => "no error",
                Self::NOT_INITIALIZED => "the CUDA driver is not loaded or not initialised",
                Self::NO_DEVICE => "there is no CUDA device, or no CUDA driver",
                Self::SYMBOL_MISSING => "the installed CUDA driver does not have this function",
                Self::INVALID_ANSWER => {
                    "the installed CUDA driver reported success, but its answer cannot be right"
                }
                _ => "the installed CUDA driver does not know this code",
            }
            .to_owned()
        })
    }

    fn words(self, describe: unsafe fn(Self, *mut *const c_char) -> Self) -> Option<String> {
        let mut words = std::ptr::null();
        // SAFETY: both functions take any code, and write a pointer to a string that lives as long
        // as the library, or null for unknown codes.
        let code = unsafe { describe(self, &raw mut words) };
        if code != Self::SUCCESS || words.is_null() {
            return None;
        }
        // SAFETY: the pointer is not null, so it points to a string, as above.
        let words = unsafe { CStr::from_ptr(words) };
        Some(words.to_string_lossy().into_owned())
    }
}

impl fmt::Debug for CUresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUresult({})", self.0)
    }
}

impl fmt::Display for CUresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name(), self.0, self.text())
    }
}

impl std::error::Error for CUresult {}

/// The driver's number of a device.
pub type CUdevice = c_int;
/// An address in device memory.
pub type CUdeviceptr = u64;
/// The handle of a texture, which kernels take.
pub type CUtexObject = c_ulonglong;
/// The handle of a surface, which kernels take.
pub type CUsurfObject = c_ulonglong;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(pub *mut c_void);

        impl $name {
            /// The handle of no object.
            pub const NULL: Self = Self(std::ptr::null_mut());
        }

        // SAFETY: a handle is a number that identifies an object. It is only passed to the driver,
        // whose functions any thread may call.
        unsafe impl Send for $name {}
        // SAFETY: as above; a shared handle offers only its value.
        unsafe impl Sync for $name {}
    )*};
}

handles! {
    /// A context.
    CUcontext;
    /// A loaded module.
    CUmodule;
    /// A kernel in a module.
    CUfunction;
    /// A stream.
    CUstream;
    /// An event.
    CUevent;
    /// A memory pool.
    CUmemoryPool;
    /// A graph that is not yet ready to run.
    CUgraph;
    /// A graph that is ready to run.
    CUgraphExec;
    /// A node of a graph.
    CUgraphNode;
    /// An array for textures and surfaces.
    CUarray;
    /// The state of a linker.
    CUlinkState;
}

/// Attributes for [`cuDeviceGetAttribute`]; their names follow `CU_DEVICE_ATTRIBUTE_`.
pub mod device_attribute {
    use std::ffi::c_int;
    /// The most threads of a block.
    pub const MAX_THREADS_PER_BLOCK: c_int = 1;
    /// The most threads of a block along x.
    pub const MAX_BLOCK_DIM_X: c_int = 2;
    /// The most threads of a block along y.
    pub const MAX_BLOCK_DIM_Y: c_int = 3;
    /// The most threads of a block along z.
    pub const MAX_BLOCK_DIM_Z: c_int = 4;
    /// The most blocks of a grid along x.
    pub const MAX_GRID_DIM_X: c_int = 5;
    /// The most blocks of a grid along y.
    pub const MAX_GRID_DIM_Y: c_int = 6;
    /// The most blocks of a grid along z.
    pub const MAX_GRID_DIM_Z: c_int = 7;
    /// Shared memory of a block, in bytes, without opting in.
    pub const MAX_SHARED_MEMORY_PER_BLOCK: c_int = 8;
    /// Threads of a warp.
    pub const WARP_SIZE: c_int = 10;
    /// Required alignment of textures, in bytes.
    pub const TEXTURE_ALIGNMENT: c_int = 14;
    /// The number of multiprocessors.
    pub const MULTIPROCESSOR_COUNT: c_int = 16;
    /// Memory clock, in kHz.
    pub const MEMORY_CLOCK_RATE: c_int = 36;
    /// Width of the memory bus, in bits.
    pub const GLOBAL_MEMORY_BUS_WIDTH: c_int = 37;
    /// The size of the L2 cache, in bytes.
    pub const L2_CACHE_SIZE: c_int = 38;
    /// Threads that a multiprocessor can hold at a time.
    pub const MAX_THREADS_PER_MULTIPROCESSOR: c_int = 39;
    /// Required alignment of the rows of a pitched texture, in bytes.
    pub const TEXTURE_PITCH_ALIGNMENT: c_int = 51;
    /// The most elements in a row of a pitched texture.
    pub const MAXIMUM_TEXTURE2D_LINEAR_WIDTH: c_int = 70;
    /// The most rows of a pitched texture.
    pub const MAXIMUM_TEXTURE2D_LINEAR_HEIGHT: c_int = 71;
    /// The largest distance between rows of a pitched texture, in bytes.
    pub const MAXIMUM_TEXTURE2D_LINEAR_PITCH: c_int = 72;
    /// The compute capability, before the dot.
    pub const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
    /// The compute capability, after the dot.
    pub const COMPUTE_CAPABILITY_MINOR: c_int = 76;
    /// Shared memory of a block, in bytes, with opting in.
    pub const MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;
    /// Whether `cuMemAllocAsync` and memory pools work.
    pub const MEMORY_POOLS_SUPPORTED: c_int = 115;
}

/// Attributes for [`cuFuncGetAttribute`] and [`cuFuncSetAttribute`]; their names follow
/// `CU_FUNC_ATTRIBUTE_`.
pub mod function_attribute {
    use std::ffi::c_int;
    /// The most threads of a block, given the kernel's registers.
    pub const MAX_THREADS_PER_BLOCK: c_int = 0;
    /// Static shared memory, in bytes.
    pub const SHARED_SIZE_BYTES: c_int = 1;
    /// Local memory of a thread, in bytes.
    pub const LOCAL_SIZE_BYTES: c_int = 3;
    /// Registers of a thread.
    pub const NUM_REGS: c_int = 4;
    /// The most dynamic shared memory that a launch may request, in bytes. Can be set.
    pub const MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;
    /// The share of the L1 cache to use as shared memory, in percent. Can be set.
    pub const PREFERRED_SHARED_MEMORY_CARVEOUT: c_int = 9;
    /// Whether clusters beyond 8 blocks are allowed. Can be set.
    pub const NON_PORTABLE_CLUSTER_SIZE_ALLOWED: c_int = 14;
}

/// Options for [`cuModuleLoadDataEx`]; their names follow `CU_JIT_`.
pub mod jit_option {
    use std::ffi::c_uint;
    /// The most registers of a thread.
    pub const MAX_REGISTERS: c_uint = 0;
    /// A buffer for the compiler's information log.
    pub const INFO_LOG_BUFFER: c_uint = 3;
    /// The size of the buffer in bytes; after the call, the bytes written.
    pub const INFO_LOG_BUFFER_SIZE_BYTES: c_uint = 4;
    /// A buffer for the compiler's error log.
    pub const ERROR_LOG_BUFFER: c_uint = 5;
    /// The size of the buffer in bytes; after the call, the bytes written.
    pub const ERROR_LOG_BUFFER_SIZE_BYTES: c_uint = 6;
    /// The optimisation level, 0 to 4.
    pub const OPTIMIZATION_LEVEL: c_uint = 7;
    /// Compiles for the device of the current context.
    pub const TARGET_FROM_CUCONTEXT: c_uint = 8;
    /// The compute capability to compile for, as 10 × major + minor.
    pub const TARGET: c_uint = 9;
    /// What to use if a fat binary has no code for exactly this device. 0: PTX; 1: code for an
    /// older device.
    pub const FALLBACK_STRATEGY: c_uint = 10;
    /// Whether to generate debug information.
    pub const GENERATE_DEBUG_INFO: c_uint = 11;
    /// Whether to generate line information for profilers.
    pub const GENERATE_LINE_INFO: c_uint = 13;
}

/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the legacy default stream.
pub const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: the driver rejects calls that are not allowed in a
/// capture, of this thread only.
pub const STREAM_CAPTURE_MODE_THREAD_LOCAL: c_uint = 1;
/// `CU_EVENT_DEFAULT`: events that record the time.
pub const EVENT_DEFAULT: c_uint = 0;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`: bytes a pool keeps when it is synchronised; a `u64`.
pub const MEMPOOL_RELEASE_THRESHOLD: c_uint = 4;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
pub const MEM_ALLOCATION_TYPE_PINNED: c_uint = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`.
pub const MEM_LOCATION_TYPE_DEVICE: c_uint = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
pub const MEM_ACCESS_READWRITE: c_uint = 3;
/// `CU_MEMORYTYPE_HOST`.
pub const MEMORYTYPE_HOST: c_uint = 1;
/// `CU_MEMORYTYPE_DEVICE`.
pub const MEMORYTYPE_DEVICE: c_uint = 2;
/// `CU_MEMORYTYPE_ARRAY`.
pub const MEMORYTYPE_ARRAY: c_uint = 3;
/// `CU_RESOURCE_TYPE_ARRAY`.
pub const RESOURCE_TYPE_ARRAY: c_uint = 0;
/// `CU_RESOURCE_TYPE_PITCH2D`.
pub const RESOURCE_TYPE_PITCH2D: c_uint = 3;
/// `CU_AD_FORMAT_FLOAT`.
pub const AD_FORMAT_FLOAT: c_uint = 32;
/// `CU_TR_ADDRESS_MODE_CLAMP`: outside, the nearest element.
pub const TR_ADDRESS_MODE_CLAMP: c_uint = 1;
/// `CU_TR_ADDRESS_MODE_BORDER`: outside, the border colour.
pub const TR_ADDRESS_MODE_BORDER: c_uint = 3;
/// `CU_TR_FILTER_MODE_POINT`: the element itself, no interpolation.
pub const TR_FILTER_MODE_POINT: c_uint = 0;
/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`: the grid may synchronise as a whole.
pub const LAUNCH_ATTRIBUTE_COOPERATIVE: c_uint = 2;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`: blocks of a cluster, three `u32`.
pub const LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: c_uint = 4;

/// The properties of a memory pool.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUmemPoolProps {
    /// [`MEM_ALLOCATION_TYPE_PINNED`].
    pub allocType: c_uint,
    /// How other processes may use it; 0: not at all.
    pub handleTypes: c_uint,
    /// [`MEM_LOCATION_TYPE_DEVICE`].
    pub locationType: c_uint,
    /// The device's number.
    pub locationId: c_int,
    /// Null.
    pub win32SecurityAttributes: *mut c_void,
    /// Zeros: the defaults of fields of newer drivers.
    pub reserved: [u8; 64],
}

/// The access of a device to memory.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUmemAccessDesc {
    /// [`MEM_LOCATION_TYPE_DEVICE`].
    pub locationType: c_uint,
    /// The device's number.
    pub locationId: c_int,
    /// [`MEM_ACCESS_READWRITE`].
    pub flags: c_uint,
}

/// A copy of rows.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUDA_MEMCPY2D {
    /// First byte of each row.
    pub srcXInBytes: usize,
    /// First row.
    pub srcY: usize,
    /// [`MEMORYTYPE_HOST`] or [`MEMORYTYPE_DEVICE`].
    pub srcMemoryType: c_uint,
    /// The address, for host memory.
    pub srcHost: *const c_void,
    /// The address, for device memory.
    pub srcDevice: CUdeviceptr,
    /// The array, for an array.
    pub srcArray: CUarray,
    /// Bytes from the start of a row to the next.
    pub srcPitch: usize,
    /// First byte of each row.
    pub dstXInBytes: usize,
    /// First row.
    pub dstY: usize,
    /// [`MEMORYTYPE_HOST`] or [`MEMORYTYPE_DEVICE`].
    pub dstMemoryType: c_uint,
    /// The address, for host memory.
    pub dstHost: *mut c_void,
    /// The address, for device memory.
    pub dstDevice: CUdeviceptr,
    /// The array, for an array.
    pub dstArray: CUarray,
    /// Bytes from the start of a row to the next.
    pub dstPitch: usize,
    /// Bytes to copy per row.
    pub WidthInBytes: usize,
    /// Rows to copy.
    pub Height: usize,
}

/// The memory of a texture or a surface.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CUDA_RESOURCE_DESC {
    /// [`RESOURCE_TYPE_ARRAY`] or [`RESOURCE_TYPE_PITCH2D`].
    pub resType: c_uint,
    /// The resource itself.
    pub res: CUDA_RESOURCE_DESC_res,
    /// 0.
    pub flags: c_uint,
}

/// The resource of a texture: a union of its kinds.
#[derive(Clone, Copy)]
#[repr(C)]
pub union CUDA_RESOURCE_DESC_res {
    /// The array, with [`RESOURCE_TYPE_ARRAY`].
    pub array: CUarray,
    /// The rows, with [`RESOURCE_TYPE_PITCH2D`].
    pub pitch2D: CUDA_RESOURCE_DESC_pitch2D,
}

/// Rows of elements in linear memory.
///
/// Its size is 128 bytes, as of the union in `cuda.h` that contains it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUDA_RESOURCE_DESC_pitch2D {
    /// First element.
    pub devPtr: CUdeviceptr,
    /// [`AD_FORMAT_FLOAT`].
    pub format: c_uint,
    /// Channels of an element.
    pub numChannels: c_uint,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Bytes from the start of a row to the next.
    pub pitchInBytes: usize,
    /// Zeros: the rest of the union.
    pub reserved: [u64; 11],
}

impl CUDA_RESOURCE_DESC_pitch2D {
    /// No rows: all of the union is zero.
    pub const ZERO: Self = Self {
        devPtr: 0,
        format: 0,
        numChannels: 0,
        width: 0,
        height: 0,
        pitchInBytes: 0,
        reserved: [0; 11],
    };
}

/// The properties of a texture.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUDA_TEXTURE_DESC {
    /// [`TR_ADDRESS_MODE_CLAMP`] or [`TR_ADDRESS_MODE_BORDER`], per axis.
    pub addressMode: [c_uint; 3],
    /// [`TR_FILTER_MODE_POINT`].
    pub filterMode: c_uint,
    /// 0: coordinates count elements, and reads return elements unchanged.
    pub flags: c_uint,
    /// 0.
    pub maxAnisotropy: c_uint,
    /// 0.
    pub mipmapFilterMode: c_uint,
    /// 0.
    pub mipmapLevelBias: f32,
    /// 0.
    pub minMipmapLevelClamp: f32,
    /// 0.
    pub maxMipmapLevelClamp: f32,
    /// The value outside, with [`TR_ADDRESS_MODE_BORDER`].
    pub borderColor: [f32; 4],
    /// Zeros.
    pub reserved: [c_int; 12],
}

/// A copy of boxes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUDA_MEMCPY3D {
    /// First byte of each row.
    pub srcXInBytes: usize,
    /// First row.
    pub srcY: usize,
    /// First plane.
    pub srcZ: usize,
    /// 0.
    pub srcLOD: usize,
    /// [`MEMORYTYPE_HOST`], [`MEMORYTYPE_DEVICE`] or [`MEMORYTYPE_ARRAY`].
    pub srcMemoryType: c_uint,
    /// The address, for host memory.
    pub srcHost: *const c_void,
    /// The address, for device memory.
    pub srcDevice: CUdeviceptr,
    /// The array, for an array.
    pub srcArray: CUarray,
    /// Null.
    pub reserved0: *mut c_void,
    /// Bytes from the start of a row to the next.
    pub srcPitch: usize,
    /// Rows of a plane.
    pub srcHeight: usize,
    /// First byte of each row.
    pub dstXInBytes: usize,
    /// First row.
    pub dstY: usize,
    /// First plane.
    pub dstZ: usize,
    /// 0.
    pub dstLOD: usize,
    /// [`MEMORYTYPE_HOST`], [`MEMORYTYPE_DEVICE`] or [`MEMORYTYPE_ARRAY`].
    pub dstMemoryType: c_uint,
    /// The address, for host memory.
    pub dstHost: *mut c_void,
    /// The address, for device memory.
    pub dstDevice: CUdeviceptr,
    /// The array, for an array.
    pub dstArray: CUarray,
    /// Null.
    pub reserved1: *mut c_void,
    /// Bytes from the start of a row to the next.
    pub dstPitch: usize,
    /// Rows of a plane.
    pub dstHeight: usize,
    /// Bytes to copy per row.
    pub WidthInBytes: usize,
    /// Rows to copy.
    pub Height: usize,
    /// Planes to copy.
    pub Depth: usize,
}

/// The description of an array.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct CUDA_ARRAY3D_DESCRIPTOR {
    /// Elements of a row.
    pub Width: usize,
    /// Rows, or 0.
    pub Height: usize,
    /// Planes or layers, or 0.
    pub Depth: usize,
    /// `CU_AD_FORMAT_…`.
    pub Format: c_uint,
    /// 1, 2 or 4.
    pub NumChannels: c_uint,
    /// `CUDA_ARRAY3D_…`.
    pub Flags: c_uint,
}

/// A view of the resource: the format and the part that a texture reads.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUDA_RESOURCE_VIEW_DESC {
    /// `CU_RES_VIEW_FORMAT_…`.
    pub format: c_uint,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Planes.
    pub depth: usize,
    /// 0 without mipmaps.
    pub firstMipmapLevel: c_uint,
    /// 0 without mipmaps.
    pub lastMipmapLevel: c_uint,
    /// 0 without layers.
    pub firstLayer: c_uint,
    /// 0 without layers.
    pub lastLayer: c_uint,
    /// Zeros.
    pub reserved: [c_uint; 16],
}

/// A kernel launch as a node of a graph.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUDA_KERNEL_NODE_PARAMS {
    /// The kernel.
    pub func: CUfunction,
    /// Blocks along x.
    pub gridDimX: c_uint,
    /// Blocks along y.
    pub gridDimY: c_uint,
    /// Blocks along z.
    pub gridDimZ: c_uint,
    /// Threads of a block along x.
    pub blockDimX: c_uint,
    /// Threads of a block along y.
    pub blockDimY: c_uint,
    /// Threads of a block along z.
    pub blockDimZ: c_uint,
    /// Dynamic shared memory of a block, in bytes.
    pub sharedMemBytes: c_uint,
    /// Pointers to the parameters.
    pub kernelParams: *mut *mut c_void,
    /// Null.
    pub extra: *mut *mut c_void,
}

/// An option of [`cuLaunchKernelEx`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUlaunchAttribute {
    /// [`LAUNCH_ATTRIBUTE_COOPERATIVE`], [`LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`].
    pub id: c_uint,
    /// Zeros.
    pub pad: [u8; 4],
    /// The value, in the first words; the rest zeros.
    pub value: [u64; 8],
}

/// The launch configuration of [`cuLaunchKernelEx`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct CUlaunchConfig {
    /// Blocks along x.
    pub gridDimX: c_uint,
    /// Blocks along y.
    pub gridDimY: c_uint,
    /// Blocks along z.
    pub gridDimZ: c_uint,
    /// Threads of a block along x.
    pub blockDimX: c_uint,
    /// Threads of a block along y.
    pub blockDimY: c_uint,
    /// Threads of a block along z.
    pub blockDimZ: c_uint,
    /// Dynamic shared memory of a block, in bytes.
    pub sharedMemBytes: c_uint,
    /// The stream.
    pub hStream: CUstream,
    /// `numAttrs` options.
    pub attrs: *mut CUlaunchAttribute,
    /// The number of options.
    pub numAttrs: c_uint,
}

/// The address of a function: null before the driver is loaded, and if the driver lacks the
/// function.
pub(crate) type Slot = AtomicPtr<c_void>;

/// A function of the driver.
pub(crate) struct Function {
    pub(crate) name: &'static CStr,
    pub(crate) slot: &'static Slot,
}

macro_rules! functions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        #[allow(non_upper_case_globals, reason = "a slot is called as its function")]
        mod slots {
            $(pub(super) static $name: super::Slot = super::Slot::new(std::ptr::null_mut());)*
        }

        /// All functions with their slots, for the loader to fill.
        pub(crate) fn functions() -> Vec<Function> {
            vec![$(Function {
                name: const {
                    match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => unreachable!(),
                    }
                },
                slot: &slots::$name,
            },)*]
        }

        /// Every function of this module, by name.
        pub const FUNCTIONS: &[&str] = &[$(stringify!($name)),*];

        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// The conditions in the driver's documentation of this function: pointers point to the
            /// data that it reads and writes, and handles are alive.
            pub unsafe fn $name($($argument: $type),*) -> CUresult {
                let address = slots::$name.load(Ordering::Acquire);
                if address.is_null() {
                    return unavailable();
                }
                // SAFETY: the address belongs to the driver's function of this name, and the type
                // is its declaration in `cuda.h`. The result code can be any number, and so can a
                // `CUresult`.
                let function = unsafe {
                    std::mem::transmute::<
                        *mut c_void,
                        unsafe extern "C" fn($($type),*) -> CUresult,
                    >(address)
                };
                // SAFETY: the caller's promise.
                unsafe { function($($argument),*) }
            }
        )*
    };
}

/// The reason why a slot is empty.
fn unavailable() -> CUresult {
    // A library without this function is not loaded as a driver.
    if slots::cuInit.load(Ordering::Acquire).is_null() {
        CUresult::NOT_INITIALIZED
    } else {
        CUresult::SYMBOL_MISSING
    }
}

/// Whether the driver is loaded and has `function`, one of [`FUNCTIONS`].
#[must_use]
pub fn has(function: &str) -> bool {
    functions().iter().any(|it| {
        it.name.to_bytes() == function.as_bytes() && !it.slot.load(Ordering::Acquire).is_null()
    })
}

functions! {
    /// The name of a code.
    fn cuGetErrorName(error: CUresult, pStr: *mut *const c_char);
    /// The description of a code.
    fn cuGetErrorString(error: CUresult, pStr: *mut *const c_char);
    /// Initialises the driver. Does not load it: see [`load`](crate::load).
    fn cuInit(flags: c_uint);
    /// The CUDA version the driver supports, as 1000 × major + 10 × minor.
    fn cuDriverGetVersion(driverVersion: *mut c_int);
    /// The number of devices.
    fn cuDeviceGetCount(count: *mut c_int);
    /// Writes a device's name, which ends in a zero byte, to `len` bytes.
    fn cuDeviceGetName(name: *mut c_char, len: c_int, dev: CUdevice);
    /// One of [`device_attribute`].
    fn cuDeviceGetAttribute(pi: *mut c_int, attrib: c_int, dev: CUdevice);
    /// Whether a device can access the memory of another one.
    fn cuDeviceCanAccessPeer(canAccessPeer: *mut c_int, dev: CUdevice, peerDev: CUdevice);
    /// The driver's number of a device, from its number among the visible devices.
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    /// A device's memory, in bytes.
    fn cuDeviceTotalMem_v2(bytes: *mut usize, dev: CUdevice);
    /// Makes a device's primary context, or increments the number of its users.
    fn cuDevicePrimaryCtxRetain(pctx: *mut CUcontext, dev: CUdevice);
    /// Decrements the number of users of a device's primary context; without users the driver
    /// destroys it.
    fn cuDevicePrimaryCtxRelease_v2(dev: CUdevice);
    /// Destroys everything in a device's primary context, even if others use it.
    fn cuDevicePrimaryCtxReset_v2(dev: CUdevice);
    /// Sets the flags of a device's primary context, such as how threads wait.
    fn cuDevicePrimaryCtxSetFlags_v2(dev: CUdevice, flags: c_uint);
    /// The lowest and the highest stream priority of the current context.
    fn cuCtxGetStreamPriorityRange(leastPriority: *mut c_int, greatestPriority: *mut c_int);

    /// Makes a context, and pushes it on the thread's stack.
    fn cuCtxCreate_v2(pctx: *mut CUcontext, flags: c_uint, dev: CUdevice);
    /// Destroys a context and everything in it.
    fn cuCtxDestroy_v2(ctx: CUcontext);
    /// The version of the driver interface with which a context was made.
    fn cuCtxGetApiVersion(ctx: CUcontext, version: *mut c_uint);
    /// How the current context divides the L1 cache.
    fn cuCtxGetCacheConfig(pconfig: *mut c_uint);
    /// Sets how the current context divides the L1 cache.
    fn cuCtxSetCacheConfig(config: c_uint);
    /// The device of the current context.
    fn cuCtxGetDevice(device: *mut CUdevice);
    /// The flags of the current context.
    fn cuCtxGetFlags(flags: *mut c_uint);
    /// A limit of the current context.
    fn cuCtxGetLimit(pvalue: *mut usize, limit: c_uint);
    /// Sets a limit of the current context.
    fn cuCtxSetLimit(limit: c_uint, value: usize);
    /// The bank width of shared memory, of the current context.
    fn cuCtxGetSharedMemConfig(pConfig: *mut c_uint);
    /// Sets the bank width of shared memory, of the current context.
    fn cuCtxSetSharedMemConfig(config: c_uint);
    /// Waits for all work of the current context.
    fn cuCtxSynchronize();

    /// The calling thread's current context.
    fn cuCtxGetCurrent(pctx: *mut CUcontext);
    /// Makes a context current, instead of the previous one.
    fn cuCtxSetCurrent(ctx: CUcontext);
    /// Pushes a context on the thread's stack, which makes it current.
    fn cuCtxPushCurrent_v2(ctx: CUcontext);
    /// Pops the current context from the thread's stack.
    fn cuCtxPopCurrent_v2(pctx: *mut CUcontext);

    /// Free and total memory of the current context's device, in bytes.
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    /// Allocates device memory, and waits for the device.
    fn cuMemAlloc_v2(dptr: *mut CUdeviceptr, bytesize: usize);
    /// Frees device memory, and waits for the device.
    fn cuMemFree_v2(dptr: CUdeviceptr);
    /// Makes a memory pool.
    fn cuMemPoolCreate(pool: *mut CUmemoryPool, poolProps: *const CUmemPoolProps);
    /// Destroys a memory pool, once all its memory has been freed.
    fn cuMemPoolDestroy(pool: CUmemoryPool);
    /// Sets an attribute of a memory pool.
    fn cuMemPoolSetAttribute(pool: CUmemoryPool, attr: c_uint, value: *mut c_void);
    /// Gives devices access to the memory of a pool.
    fn cuMemPoolSetAccess(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize);
    /// Returns unused memory of a pool to the device.
    fn cuMemPoolTrimTo(pool: CUmemoryPool, minBytesToKeep: usize);
    /// Allocates device memory from a pool, in stream order.
    fn cuMemAllocFromPoolAsync(
        dptr: *mut CUdeviceptr,
        bytesize: usize,
        pool: CUmemoryPool,
        hStream: CUstream,
    );
    /// Frees device memory in stream order.
    fn cuMemFreeAsync(dptr: CUdeviceptr, hStream: CUstream);
    /// Allocates device memory from the device's own pool, in stream order.
    fn cuMemAllocAsync(dptr: *mut CUdeviceptr, bytesize: usize, hStream: CUstream);
    /// Allocates unified memory.
    fn cuMemAllocManaged(dptr: *mut CUdeviceptr, bytesize: usize, flags: c_uint);
    /// Allocates page-locked host memory.
    fn cuMemAllocHost_v2(pp: *mut *mut c_void, bytesize: usize);
    /// Frees page-locked host memory.
    fn cuMemFreeHost(p: *mut c_void);
    /// Moves unified memory to a device, or to the host with -1.
    fn cuMemPrefetchAsync(devPtr: CUdeviceptr, count: usize, dstDevice: CUdevice, hStream: CUstream);
    /// Tells the driver how unified memory will be used.
    fn cuMemAdvise(devPtr: CUdeviceptr, count: usize, advice: c_uint, device: CUdevice);
    /// Copies from the host to the device, and waits.
    fn cuMemcpyHtoD_v2(dstDevice: CUdeviceptr, srcHost: *const c_void, ByteCount: usize);
    /// Copies from the device to the host, and waits.
    fn cuMemcpyDtoH_v2(dstHost: *mut c_void, srcDevice: CUdeviceptr, ByteCount: usize);
    /// Copies on the device.
    fn cuMemcpyDtoD_v2(dstDevice: CUdeviceptr, srcDevice: CUdeviceptr, ByteCount: usize);
    /// Copies boxes, and waits if one side is host memory.
    fn cuMemcpy3D_v2(pCopy: *const CUDA_MEMCPY3D);
    /// Fills with a byte.
    fn cuMemsetD8_v2(dstDevice: CUdeviceptr, uc: u8, N: usize);
    /// Fills with a 16-bit word.
    fn cuMemsetD16_v2(dstDevice: CUdeviceptr, us: u16, N: usize);
    /// Fills with a 32-bit word.
    fn cuMemsetD32_v2(dstDevice: CUdeviceptr, ui: c_uint, N: usize);
    /// Fills with a 16-bit word.
    fn cuMemsetD16Async(dstDevice: CUdeviceptr, us: u16, N: usize, hStream: CUstream);

    /// Makes an array.
    fn cuArray3DCreate_v2(
        pHandle: *mut CUarray,
        pAllocateArray: *const CUDA_ARRAY3D_DESCRIPTOR,
    );
    /// The description of an array.
    fn cuArray3DGetDescriptor_v2(
        pArrayDescriptor: *mut CUDA_ARRAY3D_DESCRIPTOR,
        hArray: CUarray,
    );
    /// Destroys an array.
    fn cuArrayDestroy(hArray: CUarray);
    /// Copies from the host to the device.
    fn cuMemcpyHtoDAsync_v2(
        dstDevice: CUdeviceptr,
        srcHost: *const c_void,
        ByteCount: usize,
        hStream: CUstream,
    );
    /// Copies from the device to the host.
    fn cuMemcpyDtoHAsync_v2(
        dstHost: *mut c_void,
        srcDevice: CUdeviceptr,
        ByteCount: usize,
        hStream: CUstream,
    );
    /// Copies on the device.
    fn cuMemcpyDtoDAsync_v2(
        dstDevice: CUdeviceptr,
        srcDevice: CUdeviceptr,
        ByteCount: usize,
        hStream: CUstream,
    );
    /// Copies from the memory of one context to the memory of another.
    fn cuMemcpyPeerAsync(
        dstDevice: CUdeviceptr,
        dstContext: CUcontext,
        srcDevice: CUdeviceptr,
        srcContext: CUcontext,
        ByteCount: usize,
        hStream: CUstream,
    );
    /// Copies rows.
    fn cuMemcpy2DAsync_v2(pCopy: *const CUDA_MEMCPY2D, hStream: CUstream);
    /// Fills with a byte.
    fn cuMemsetD8Async(dstDevice: CUdeviceptr, uc: u8, N: usize, hStream: CUstream);
    /// Fills with a 32-bit word.
    fn cuMemsetD32Async(dstDevice: CUdeviceptr, ui: c_uint, N: usize, hStream: CUstream);

    /// Loads a module; PTX is compiled, with options from [`jit_option`].
    fn cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        numOptions: c_uint,
        options: *mut c_uint,
        optionValues: *mut *mut c_void,
    );
    /// Unloads a module.
    fn cuModuleUnload(hmod: CUmodule);
    /// Loads a module from a file.
    fn cuModuleLoad(module: *mut CUmodule, fname: *const c_char);
    /// Begins to link.
    fn cuLinkCreate_v2(
        numOptions: c_uint,
        options: *mut c_uint,
        optionValues: *mut *mut c_void,
        stateOut: *mut CUlinkState,
    );
    /// Adds code to a linker.
    fn cuLinkAddData_v2(
        state: CUlinkState,
        r#type: c_uint,
        data: *mut c_void,
        size: usize,
        name: *const c_char,
        numOptions: c_uint,
        options: *mut c_uint,
        optionValues: *mut *mut c_void,
    );
    /// Links. The linker state owns the result.
    fn cuLinkComplete(state: CUlinkState, cubinOut: *mut *mut c_void, sizeOut: *mut usize);
    /// Destroys a linker state.
    fn cuLinkDestroy(state: CUlinkState);
    /// A kernel of a module, by name.
    fn cuModuleGetFunction(hfunc: *mut CUfunction, hmod: CUmodule, name: *const c_char);
    /// A global of a module, by name: address and bytes.
    fn cuModuleGetGlobal_v2(
        dptr: *mut CUdeviceptr,
        bytes: *mut usize,
        hmod: CUmodule,
        name: *const c_char,
    );

    /// One of [`function_attribute`].
    fn cuFuncGetAttribute(pi: *mut c_int, attrib: c_int, hfunc: CUfunction);
    /// Sets one of [`function_attribute`].
    fn cuFuncSetAttribute(hfunc: CUfunction, attrib: c_int, value: c_int);
    /// Sets how a kernel divides the L1 cache.
    fn cuFuncSetCacheConfig(hfunc: CUfunction, config: c_uint);
    /// Sets the bank width of shared memory for a kernel.
    fn cuFuncSetSharedMemConfig(hfunc: CUfunction, config: c_uint);
    /// The most dynamic shared memory of a block so that a number of blocks fit on a
    /// multiprocessor.
    fn cuOccupancyAvailableDynamicSMemPerBlock(
        dynamicSmemSize: *mut usize,
        func: CUfunction,
        numBlocks: c_int,
        blockSize: c_int,
    );
    /// The block size that fills the device, and the smallest grid of such blocks that does.
    fn cuOccupancyMaxPotentialBlockSize(
        minGridSize: *mut c_int,
        blockSize: *mut c_int,
        func: CUfunction,
        blockSizeToDynamicSMemSize: *const c_void,
        dynamicSMemSize: usize,
        blockSizeLimit: c_int,
    );
    /// The number of blocks of a kernel that fit on a multiprocessor.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        numBlocks: *mut c_int,
        func: CUfunction,
        blockSize: c_int,
        dynamicSMemSize: usize,
    );
    /// The number of clusters of a launch that fit on the device. CUDA 11.8.
    fn cuOccupancyMaxActiveClusters(
        numClusters: *mut c_int,
        func: CUfunction,
        config: *const CUlaunchConfig,
    );
    /// Launches a kernel.
    fn cuLaunchKernel(
        f: CUfunction,
        gridDimX: c_uint,
        gridDimY: c_uint,
        gridDimZ: c_uint,
        blockDimX: c_uint,
        blockDimY: c_uint,
        blockDimZ: c_uint,
        sharedMemBytes: c_uint,
        hStream: CUstream,
        kernelParams: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    /// Launches a kernel with options, such as clusters. CUDA 11.8.
    fn cuLaunchKernelEx(
        config: *const CUlaunchConfig,
        f: CUfunction,
        kernelParams: *mut *mut c_void,
        extra: *mut *mut c_void,
    );

    /// Makes a stream.
    fn cuStreamCreate(phStream: *mut CUstream, Flags: c_uint);
    /// Makes a stream with a priority.
    fn cuStreamCreateWithPriority(phStream: *mut CUstream, flags: c_uint, priority: c_int);
    /// The flags of a stream.
    fn cuStreamGetFlags(hStream: CUstream, flags: *mut c_uint);
    /// A stream's priority.
    fn cuStreamGetPriority(hStream: CUstream, priority: *mut c_int);
    /// Whether a stream's work is done.
    fn cuStreamQuery(hStream: CUstream);
    /// Calls a host function after the earlier work of a stream.
    fn cuLaunchHostFunc(
        hStream: CUstream,
        r#fn: unsafe extern "C" fn(*mut c_void),
        userData: *mut c_void,
    );
    /// Destroys a stream once its work has ended.
    fn cuStreamDestroy_v2(hStream: CUstream);
    /// Waits for the work of a stream.
    fn cuStreamSynchronize(hStream: CUstream);
    /// Makes a stream wait for an event.
    fn cuStreamWaitEvent(hStream: CUstream, hEvent: CUevent, Flags: c_uint);
    /// Begins a capture: the driver records a stream's work and does not run it.
    fn cuStreamBeginCapture_v2(hStream: CUstream, mode: c_uint);
    /// Ends a capture, and returns its graph.
    fn cuStreamEndCapture(hStream: CUstream, phGraph: *mut CUgraph);
    /// Makes a graph ready to run. CUDA 11.4.
    fn cuGraphInstantiateWithFlags(
        phGraphExec: *mut CUgraphExec,
        hGraph: CUgraph,
        flags: c_ulonglong,
    );
    /// Queues the work of a graph.
    fn cuGraphLaunch(hGraphExec: CUgraphExec, hStream: CUstream);
    /// Destroys a graph.
    fn cuGraphDestroy(hGraph: CUgraph);
    /// Makes an empty graph.
    fn cuGraphCreate(phGraph: *mut CUgraph, flags: c_uint);
    /// Adds a kernel launch to a graph, after other nodes.
    fn cuGraphAddKernelNode(
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        numDependencies: usize,
        nodeParams: *const CUDA_KERNEL_NODE_PARAMS,
    );
    /// The nodes of a graph.
    fn cuGraphGetNodes(hGraph: CUgraph, nodes: *mut CUgraphNode, numNodes: *mut usize);
    /// The edges of a graph: which node waits for which.
    fn cuGraphGetEdges(
        hGraph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        numEdges: *mut usize,
    );
    /// The kind of a node.
    fn cuGraphNodeGetType(hNode: CUgraphNode, r#type: *mut c_uint);
    /// Writes a graph in the language of Graphviz. CUDA 11.3.
    fn cuGraphDebugDotPrint(hGraph: CUgraph, path: *const c_char, flags: c_uint);
    /// Destroys a graph made by [`cuGraphInstantiateWithFlags`].
    fn cuGraphExecDestroy(hGraphExec: CUgraphExec);

    /// Makes an event.
    fn cuEventCreate(phEvent: *mut CUevent, Flags: c_uint);
    /// Destroys an event.
    fn cuEventDestroy_v2(hEvent: CUevent);
    /// Records an event after the earlier work of a stream.
    fn cuEventRecord(hEvent: CUevent, hStream: CUstream);
    /// Waits for an event.
    fn cuEventSynchronize(hEvent: CUevent);
    /// Whether the work before an event is done.
    fn cuEventQuery(hEvent: CUevent);
    /// The milliseconds between two events.
    fn cuEventElapsedTime(pMilliseconds: *mut f32, hStart: CUevent, hEnd: CUevent);

    /// Makes a texture.
    fn cuTexObjectCreate(
        pTexObject: *mut CUtexObject,
        pResDesc: *const CUDA_RESOURCE_DESC,
        pTexDesc: *const CUDA_TEXTURE_DESC,
        pResViewDesc: *const CUDA_RESOURCE_VIEW_DESC,
    );
    /// Destroys a texture.
    fn cuTexObjectDestroy(texObject: CUtexObject);
    /// Makes a surface.
    fn cuSurfObjectCreate(pSurfObject: *mut CUsurfObject, pResDesc: *const CUDA_RESOURCE_DESC);
    /// Destroys a surface.
    fn cuSurfObjectDestroy(surfObject: CUsurfObject);
}

// Checks the layout of the types that the driver reads, their sizes and the offsets of fields after
// padding, against the layout of `cuda.h` on a 64-bit platform.
const _: () = {
    use std::mem::offset_of;

    assert!(size_of::<CUmemPoolProps>() == 88);
    assert!(offset_of!(CUmemPoolProps, win32SecurityAttributes) == 16);
    assert!(size_of::<CUDA_MEMCPY2D>() == 128);
    assert!(offset_of!(CUDA_MEMCPY2D, srcHost) == 24);
    assert!(offset_of!(CUDA_MEMCPY2D, dstHost) == 80);
    assert!(size_of::<CUDA_MEMCPY3D>() == 200);
    assert!(offset_of!(CUDA_MEMCPY3D, srcHost) == 40);
    assert!(offset_of!(CUDA_MEMCPY3D, dstHost) == 128);
    assert!(size_of::<CUDA_ARRAY3D_DESCRIPTOR>() == 40);
    assert!(offset_of!(CUDA_ARRAY3D_DESCRIPTOR, Format) == 24);
    assert!(size_of::<CUDA_RESOURCE_DESC>() == 144);
    assert!(offset_of!(CUDA_RESOURCE_DESC, res) == 8);
    assert!(offset_of!(CUDA_RESOURCE_DESC, flags) == 136);
    assert!(offset_of!(CUDA_RESOURCE_DESC_pitch2D, width) == 16);
    assert!(offset_of!(CUDA_RESOURCE_DESC_pitch2D, pitchInBytes) == 32);
    assert!(size_of::<CUDA_RESOURCE_VIEW_DESC>() == 112);
    assert!(offset_of!(CUDA_RESOURCE_VIEW_DESC, width) == 8);
    assert!(size_of::<CUDA_TEXTURE_DESC>() == 104);
    assert!(offset_of!(CUDA_TEXTURE_DESC, borderColor) == 40);
    assert!(size_of::<CUDA_KERNEL_NODE_PARAMS>() == 56);
    assert!(offset_of!(CUDA_KERNEL_NODE_PARAMS, kernelParams) == 40);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_code_is_described_without_a_driver() {
        assert_eq!(
            CUresult::SYMBOL_MISSING.to_string(),
            "SYMBOL_MISSING (1280245761): \
             the installed CUDA driver does not have this function"
        );
    }

    #[test]
    fn only_success_is_ok() {
        assert_eq!(CUresult::SUCCESS.into_result(), Ok(()));
        let unknown = CUresult(12_345);
        assert_eq!(unknown.into_result(), Err(unknown));
    }

    #[test]
    fn layouts_of_newer_types_are_those_of_the_header() {
        // cuda.h 12: 64-byte value at 8; seven words, a pointer, a pointer, a word.
        assert_eq!(size_of::<CUlaunchAttribute>(), 72);
        assert_eq!(std::mem::offset_of!(CUlaunchAttribute, value), 8);
        assert_eq!(std::mem::offset_of!(CUlaunchConfig, hStream), 32);
        assert_eq!(std::mem::offset_of!(CUlaunchConfig, attrs), 40);
        assert_eq!(std::mem::offset_of!(CUlaunchConfig, numAttrs), 48);
        assert_eq!(size_of::<CUlaunchConfig>(), 56);
    }
}
