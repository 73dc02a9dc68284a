//! Loads NCCL's library, and finds its functions.
//!
//! Names, parameters and constants are those of NCCL's header `nccl.h`, version 2.17; NCCL's
//! documentation describes the functions. A code may be any number, so it is not an enum.

use crate::Error;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// The environment variable that names the library's file, instead of the one that the dynamic
/// linker finds.
const VARIABLE: &str = "HALO_NCCL";
const NAME: &str = "libnccl.so.2";

/// `ncclResult_t`.
pub(super) type Code = c_int;
pub(super) const SUCCESS: Code = 0;
pub(super) const IN_PROGRESS: Code = 7;

/// `ncclUint8`.
pub(super) const BYTES: c_int = 1;

/// `ncclComm_t`.
pub(super) type Comm = *mut c_void;

/// `ncclUniqueId`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct UniqueId(pub(super) [u8; 128]);

/// `ncclConfig_t` of version 2.17. Newer libraries use defaults for missing fields.
#[repr(C)]
pub(super) struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
    cga_cluster_size: c_int,
    min_ctas: c_int,
    max_ctas: c_int,
    net_name: *const c_char,
}

impl Config {
    /// The configuration for calls that return at once and are polled.
    pub(super) fn non_blocking() -> Self {
        // As `NCCL_CONFIG_INITIALIZER` says; `c_int::MIN` is `NCCL_CONFIG_UNDEF_INT`.
        Self {
            size: size_of::<Self>(),
            magic: 0xcafe_beef,
            version: 21_700,
            blocking: 0,
            cga_cluster_size: c_int::MIN,
            min_ctas: c_int::MIN,
            max_ctas: c_int::MIN,
            net_name: std::ptr::null(),
        }
    }
}

macro_rules! functions {
    ($($name:ident: fn($($parameter:ty),*);)+) => {
        /// NCCL's functions.
        #[allow(non_snake_case, reason = "these are NCCL's names")]
        pub(super) struct Nccl {
            $(pub(super) $name: unsafe extern "C" fn($($parameter),*) -> Code,)+
            ncclGetErrorString: unsafe extern "C" fn(Code) -> *const c_char,
            /// Missing in some versions.
            ncclGetLastError: Option<unsafe extern "C" fn(Comm) -> *const c_char>,
            /// The file of the library.
            pub(super) file: String,
        }

        impl Nccl {
            /// The functions of a library, or the name of a function that it lacks.
            fn of(library: &Library, file: &str) -> Result<Self, &'static str> {
                macro_rules! find {
                    ($function:ident) => {{
                        const NAME: &str = concat!(stringify!($function), "\0");
                        // SAFETY: a function of NCCL, with the parameters in its header. The
                        // library is never closed.
                        unsafe { library.get(NAME.as_bytes()) }
                            .map(|it| *it)
                            .map_err(|_| stringify!($function))
                    }};
                }
                Ok(Self {
                    $($name: find!($name)?,)+
                    ncclGetErrorString: find!(ncclGetErrorString)?,
                    ncclGetLastError: find!(ncclGetLastError).ok(),
                    file: file.to_owned(),
                })
            }
        }
    };
}

functions! {
    ncclGetVersion: fn(*mut c_int);
    ncclGetUniqueId: fn(*mut UniqueId);
    ncclCommInitRankConfig: fn(*mut Comm, c_int, UniqueId, c_int, *mut Config);
    ncclCommGetAsyncError: fn(Comm, *mut Code);
    ncclCommFinalize: fn(Comm);
    ncclCommDestroy: fn(Comm);
    ncclCommAbort: fn(Comm);
    ncclGroupStart: fn();
    ncclGroupEnd: fn();
    ncclSend: fn(*const c_void, usize, c_int, c_int, Comm, *mut c_void);
    ncclRecv: fn(*mut c_void, usize, c_int, c_int, Comm, *mut c_void);
}

impl Nccl {
    /// The library, loaded once per process and never unloaded.
    pub(super) fn load() -> Result<&'static Self, Error> {
        static LOADED: OnceLock<Result<Nccl, (String, String)>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| {
            let file = std::env::var(VARIABLE).unwrap_or_else(|_| NAME.to_owned());
            // SAFETY: opening a library runs its initialisers. The library is NCCL, under its
            // well-known name or the name that the user has given, and its initialisers require
            // nothing of the caller.
            let library = unsafe { Library::new(&file) };
            let library = library.map_err(|error| (file.clone(), error.to_string()))?;
            let functions = Self::of(&library, &file);
            // NCCL's own threads run its code, so it must stay loaded.
            std::mem::forget(library);
            functions.map_err(|missing| (file, format!("it has no function {missing}")))
        });
        loaded
            .as_ref()
            .map_err(|(searched, reason)| Error::NcclMissing {
                searched: searched.clone(),
                reason: reason.clone(),
            })
    }

    /// The error for a code, with NCCL's description of it and NCCL's last message about `comm`,
    /// which may be null.
    pub(super) fn error(&self, call: &'static str, code: Code, comm: Comm) -> Error {
        let words = |text: *const c_char| {
            if text.is_null() {
                return None;
            }
            // SAFETY: NCCL returns strings that live until the next call of this thread.
            let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
            (!text.is_empty()).then(|| text.into_owned())
        };
        // SAFETY: the function takes any number.
        let text = words(unsafe { (self.ncclGetErrorString)(code) });
        let last = self.ncclGetLastError.and_then(|last| {
            // SAFETY: the function takes a valid communicator, or null.
            words(unsafe { last(comm) })
        });
        Error::Nccl {
            call,
            code,
            text: match (text, last) {
                (Some(text), Some(last)) => format!("{text}: {last}"),
                (Some(text), None) | (None, Some(text)) => text,
                (None, None) => "an error without a description".to_owned(),
            },
        }
    }
}
