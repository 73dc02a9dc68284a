//! The functions of the driver that cust refers to.
//!
//! cust declares them as `extern "C"` and leaves them to the linker, which finds
//! them here. Each passes its arguments on to the address in its slot. Before
//! the driver is loaded that is [`not_initialized`], and [`missing`] when the
//! driver does not have the function, so no call ever reaches an address that
//! was not found.
//!
//! A trampoline knows neither the number nor the types of its arguments: it
//! leaves every register that passes one alone. The functions with at most six
//! of them have none on the stack on either architecture, so their trampolines
//! can *call* and look at the code that comes back: cust's result type is a
//! closed enum, and a code outside it would be undefined behaviour. The two
//! functions with more are *jumped* to, which leaves the stack as it was and
//! the code as it comes; do not call them through cust.

use super::library::{self, Entry, Slot};
use super::sys;
use cust::sys::CUresult;
use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

thread_local! {
    static LAST_CODE: Cell<u32> = const { Cell::new(0) };
}

/// The code that the calling thread's latest call through cust returned.
///
/// The number itself, also where cust has no name for it and reports
/// `UnknownError`. 0 when there was no call yet.
#[must_use]
pub fn last_code() -> u32 {
    LAST_CODE.get()
}

/// Keeps the code for [`last_code`] and returns one that cust's enum has.
///
/// The trampolines end in a jump to here, with the code as the argument.
extern "C" fn checked(code: u32) -> u32 {
    LAST_CODE.set(code);
    if KNOWN.contains(&code) {
        code
    } else {
        CUresult::CUDA_ERROR_UNKNOWN as u32
    }
}

/// What every slot holds before the driver is loaded.
extern "C" fn not_initialized() -> u32 {
    CUresult::CUDA_ERROR_NOT_INITIALIZED as u32
}

/// What the slots of called functions hold when the driver lacks them.
extern "C" fn missing() -> u32 {
    sys::CUresult::SYMBOL_MISSING.0
}

/// What the slots of jumped-to functions hold when the driver lacks them: a
/// code of cust's enum, because nothing stands between it and cust.
extern "C" fn missing_unchecked() -> u32 {
    CUresult::CUDA_ERROR_NOT_SUPPORTED as u32
}

/// Initialises the driver, and loads it first.
///
/// Without a driver library the result is `CUDA_ERROR_NO_DEVICE`.
///
/// # Safety
///
/// None of its own; `cuda.h` declares it like this.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuInit(flags: c_uint) -> u32 {
    if library::load().is_err() {
        return checked(CUresult::CUDA_ERROR_NO_DEVICE as u32);
    }
    // SAFETY: takes any flags, and refuses those it does not know.
    checked(unsafe { sys::cuInit(flags) }.0)
}

/// More devices than any machine has.
const TOO_MANY_DEVICES: c_int = 1024;

/// How many devices there are; a driver is not believed every number.
///
/// # Safety
///
/// `count` is good for the number that is written.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> u32 {
    // SAFETY: the caller's promise.
    let mut code = unsafe { sys::cuDeviceGetCount(count) };
    // SAFETY: as above; a success has written the number.
    if code == sys::CUresult::SUCCESS && !(0..TOO_MANY_DEVICES).contains(unsafe { &*count }) {
        code = sys::CUresult::INVALID_ANSWER;
    }
    checked(code.0)
}

/// A device's name; one that does not end within its bytes is none, which cust takes
/// for granted.
///
/// # Safety
///
/// `name` is good for `len` bytes, which were written to before.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) -> u32 {
    // SAFETY: the caller's promise.
    let mut code = unsafe { sys::cuDeviceGetName(name, len, device) };
    if code == sys::CUresult::SUCCESS {
        let len = usize::try_from(len).unwrap_or(0);
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(name, len) };
        if !bytes.contains(&0) {
            code = sys::CUresult::INVALID_ANSWER;
        }
    }
    checked(code.0)
}

/// The description of a code, which there always is: cust reads what was written
/// without asking whether something was. Describing leaves [`last_code`] alone.
///
/// # Safety
///
/// `words` is good for the pointer that is written.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(code: u32, words: *mut *const c_char) -> u32 {
    // SAFETY: the caller's promise.
    let described = unsafe { sys::cuGetErrorString(sys::CUresult(code), words) };
    // SAFETY: as above; a success has written the pointer.
    if described != sys::CUresult::SUCCESS || unsafe { *words }.is_null() {
        // SAFETY: as above.
        unsafe { *words = c"the CUDA driver has no words for it".as_ptr() };
    }
    CUresult::CUDA_SUCCESS as u32
}

macro_rules! trampolines {
    (
        written: [$($written:ident),* $(,)?],
        called: [$($called:ident),* $(,)?],
        jumped: [$($jumped:ident),* $(,)?] $(,)?
    ) => {
        /// Every function defined here, for cust to be linked with: what cust
        /// 0.3.2 refers to.
        pub const SYMBOLS: &[&str] = &[
            $(stringify!($written),)*
            $(stringify!($called),)*
            $(stringify!($jumped),)*
        ];

        #[allow(non_upper_case_globals, reason = "a slot is called as its function")]
        mod slots {
            use super::{Slot, not_initialized};
            $(pub(super) static $called: Slot = Slot::new(not_initialized as *mut _);)*
            $(pub(super) static $jumped: Slot = Slot::new(not_initialized as *mut _);)*
        }

        /// The functions, for the loader to fill in.
        pub(crate) fn entries() -> Vec<Entry> {
            vec![
                $(Entry {
                    name: c_name(concat!(stringify!($called), "\0")),
                    slot: &slots::$called,
                    missing: missing as *mut c_void,
                },)*
                $(Entry {
                    name: c_name(concat!(stringify!($jumped), "\0")),
                    slot: &slots::$jumped,
                    missing: missing_unchecked as *mut c_void,
                },)*
            ]
        }

        $(
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "the driver's name")]
            unsafe extern "C" fn $called() {
                // The stack is 16-byte aligned at a call, so eight bytes off
                // here. The result is in eax, the argument of `checked` in edi.
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    "sub rsp, 8",
                    "call qword ptr [rip + {slot}]",
                    "add rsp, 8",
                    "mov edi, eax",
                    "jmp {checked}",
                    slot = sym slots::$called,
                    checked = sym checked,
                );
                // x16 passes no argument. Result and argument are both in w0.
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    "stp x29, x30, [sp, #-16]!",
                    "mov x29, sp",
                    "adrp x16, {slot}",
                    "ldr x16, [x16, :lo12:{slot}]",
                    "blr x16",
                    "ldp x29, x30, [sp], #16",
                    "b {checked}",
                    slot = sym slots::$called,
                    checked = sym checked,
                );
            }
        )*

        $(
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "the driver's name")]
            unsafe extern "C" fn $jumped() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    "jmp qword ptr [rip + {slot}]",
                    slot = sym slots::$jumped,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    "adrp x16, {slot}",
                    "ldr x16, [x16, :lo12:{slot}]",
                    "br x16",
                    slot = sym slots::$jumped,
                );
            }
        )*
    };
}

/// A name that ends in its only zero byte, as C wants it.
const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a function's name with a zero byte inside"),
    }
}

// The functions that cust 0.3.2 refers to, generic code included. A test
// compares this list with cust's compiled objects.
trampolines! {
    written: [cuInit, cuDeviceGetCount, cuDeviceGetName, cuGetErrorString],
    called: [
        cuArray3DCreate_v2, cuArray3DGetDescriptor_v2, cuArrayDestroy, cuCtxCreate_v2,
        cuCtxDestroy_v2, cuCtxGetApiVersion, cuCtxGetCacheConfig, cuCtxGetCurrent,
        cuCtxGetDevice, cuCtxGetFlags, cuCtxGetLimit, cuCtxGetSharedMemConfig,
        cuCtxGetStreamPriorityRange, cuCtxPopCurrent_v2, cuCtxPushCurrent_v2,
        cuCtxSetCacheConfig, cuCtxSetCurrent, cuCtxSetLimit, cuCtxSetSharedMemConfig,
        cuCtxSynchronize, cuDestroyExternalMemory, cuDeviceGet, cuDeviceGetAttribute,
        cuDevicePrimaryCtxRelease_v2,
        cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxRetain,
        cuDevicePrimaryCtxSetFlags_v2, cuDeviceTotalMem_v2, cuDriverGetVersion,
        cuEventCreate, cuEventDestroy_v2, cuEventElapsedTime, cuEventQuery,
        cuEventRecord, cuEventSynchronize, cuExternalMemoryGetMappedBuffer,
        cuFuncGetAttribute, cuFuncSetCacheConfig, cuFuncSetSharedMemConfig,
        cuGraphAddKernelNode, cuGraphCreate, cuGraphDebugDotPrint,
        cuGraphDestroy, cuGraphGetEdges, cuGraphGetNodes, cuGraphKernelNodeGetParams,
        cuGraphNodeGetType, cuImportExternalMemory, cuLaunchHostFunc, cuLinkComplete,
        cuLinkCreate_v2, cuLinkDestroy, cuMemAdvise, cuMemAllocAsync, cuMemAllocHost_v2,
        cuMemAllocManaged, cuMemAlloc_v2, cuMemFreeAsync, cuMemFreeHost, cuMemFree_v2,
        cuMemGetInfo_v2, cuMemPrefetchAsync, cuMemcpy2D_v2, cuMemcpyAtoH_v2,
        cuMemcpyDtoDAsync_v2, cuMemcpyDtoD_v2, cuMemcpyDtoHAsync_v2, cuMemcpyDtoH_v2,
        cuMemcpyHtoA_v2, cuMemcpyHtoDAsync_v2, cuMemcpyHtoD_v2, cuMemsetD16Async,
        cuMemsetD16_v2, cuMemsetD32Async, cuMemsetD32_v2, cuMemsetD8Async,
        cuMemsetD8_v2, cuModuleGetFunction, cuModuleGetGlobal_v2, cuModuleLoad,
        cuModuleLoadData, cuModuleLoadDataEx, cuModuleUnload,
        cuOccupancyAvailableDynamicSMemPerBlock,
        cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxPotentialBlockSize,
        cuStreamCreateWithPriority, cuStreamDestroy_v2, cuStreamGetFlags,
        cuStreamGetPriority, cuStreamSynchronize, cuStreamWaitEvent, cuSurfObjectCreate,
        cuSurfObjectDestroy, cuSurfObjectGetResourceDesc, cuTexObjectCreate,
        cuTexObjectDestroy, cuTexObjectGetResourceDesc,
    ],
    jumped: [cuLaunchKernel, cuLinkAddData_v2],
}

/// The codes of cust's enum: variants, so each is one by construction.
const KNOWN: &[u32] = {
    use CUresult as R;
    &[
        R::CUDA_SUCCESS as u32,
        R::CUDA_ERROR_INVALID_VALUE as u32,
        R::CUDA_ERROR_OUT_OF_MEMORY as u32,
        R::CUDA_ERROR_NOT_INITIALIZED as u32,
        R::CUDA_ERROR_DEINITIALIZED as u32,
        R::CUDA_ERROR_PROFILER_DISABLED as u32,
        R::CUDA_ERROR_PROFILER_NOT_INITIALIZED as u32,
        R::CUDA_ERROR_PROFILER_ALREADY_STARTED as u32,
        R::CUDA_ERROR_PROFILER_ALREADY_STOPPED as u32,
        R::CUDA_ERROR_STUB_LIBRARY as u32,
        R::CUDA_ERROR_NO_DEVICE as u32,
        R::CUDA_ERROR_INVALID_DEVICE as u32,
        R::CUDA_ERROR_DEVICE_NOT_LICENSED as u32,
        R::CUDA_ERROR_INVALID_IMAGE as u32,
        R::CUDA_ERROR_INVALID_CONTEXT as u32,
        R::CUDA_ERROR_CONTEXT_ALREADY_CURRENT as u32,
        R::CUDA_ERROR_MAP_FAILED as u32,
        R::CUDA_ERROR_UNMAP_FAILED as u32,
        R::CUDA_ERROR_ARRAY_IS_MAPPED as u32,
        R::CUDA_ERROR_ALREADY_MAPPED as u32,
        R::CUDA_ERROR_NO_BINARY_FOR_GPU as u32,
        R::CUDA_ERROR_ALREADY_ACQUIRED as u32,
        R::CUDA_ERROR_NOT_MAPPED as u32,
        R::CUDA_ERROR_NOT_MAPPED_AS_ARRAY as u32,
        R::CUDA_ERROR_NOT_MAPPED_AS_POINTER as u32,
        R::CUDA_ERROR_ECC_UNCORRECTABLE as u32,
        R::CUDA_ERROR_UNSUPPORTED_LIMIT as u32,
        R::CUDA_ERROR_CONTEXT_ALREADY_IN_USE as u32,
        R::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED as u32,
        R::CUDA_ERROR_INVALID_PTX as u32,
        R::CUDA_ERROR_INVALID_GRAPHICS_CONTEXT as u32,
        R::CUDA_ERROR_NVLINK_UNCORRECTABLE as u32,
        R::CUDA_ERROR_JIT_COMPILER_NOT_FOUND as u32,
        R::CUDA_ERROR_UNSUPPORTED_PTX_VERSION as u32,
        R::CUDA_ERROR_JIT_COMPILATION_DISABLED as u32,
        R::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY as u32,
        R::CUDA_ERROR_INVALID_SOURCE as u32,
        R::CUDA_ERROR_FILE_NOT_FOUND as u32,
        R::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND as u32,
        R::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED as u32,
        R::CUDA_ERROR_OPERATING_SYSTEM as u32,
        R::CUDA_ERROR_INVALID_HANDLE as u32,
        R::CUDA_ERROR_ILLEGAL_STATE as u32,
        R::CUDA_ERROR_NOT_FOUND as u32,
        R::CUDA_ERROR_NOT_READY as u32,
        R::CUDA_ERROR_ILLEGAL_ADDRESS as u32,
        R::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES as u32,
        R::CUDA_ERROR_LAUNCH_TIMEOUT as u32,
        R::CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING as u32,
        R::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED as u32,
        R::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED as u32,
        R::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE as u32,
        R::CUDA_ERROR_CONTEXT_IS_DESTROYED as u32,
        R::CUDA_ERROR_ASSERT as u32,
        R::CUDA_ERROR_TOO_MANY_PEERS as u32,
        R::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED as u32,
        R::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED as u32,
        R::CUDA_ERROR_HARDWARE_STACK_ERROR as u32,
        R::CUDA_ERROR_ILLEGAL_INSTRUCTION as u32,
        R::CUDA_ERROR_MISALIGNED_ADDRESS as u32,
        R::CUDA_ERROR_INVALID_ADDRESS_SPACE as u32,
        R::CUDA_ERROR_INVALID_PC as u32,
        R::CUDA_ERROR_LAUNCH_FAILED as u32,
        R::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE as u32,
        R::CUDA_ERROR_NOT_PERMITTED as u32,
        R::CUDA_ERROR_NOT_SUPPORTED as u32,
        R::CUDA_ERROR_SYSTEM_NOT_READY as u32,
        R::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH as u32,
        R::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE as u32,
        R::CUDA_ERROR_MPS_CONNECTION_FAILED as u32,
        R::CUDA_ERROR_MPS_RPC_FAILURE as u32,
        R::CUDA_ERROR_MPS_SERVER_NOT_READY as u32,
        R::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED as u32,
        R::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED as u32,
        R::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED as u32,
        R::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED as u32,
        R::CUDA_ERROR_STREAM_CAPTURE_MERGE as u32,
        R::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED as u32,
        R::CUDA_ERROR_STREAM_CAPTURE_UNJOINED as u32,
        R::CUDA_ERROR_STREAM_CAPTURE_ISOLATION as u32,
        R::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT as u32,
        R::CUDA_ERROR_CAPTURED_EVENT as u32,
        R::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD as u32,
        R::CUDA_ERROR_TIMEOUT as u32,
        R::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE as u32,
        R::CUDA_ERROR_EXTERNAL_DEVICE as u32,
        R::CUDA_ERROR_UNKNOWN as u32,
    ]
};
