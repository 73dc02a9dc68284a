//! The driver library, and the addresses found in it.

use super::{file, sys};
use crate::LoadError;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where the driver is looked for. The plain name is right wherever the driver
/// is installed properly; the others are where WSL and NixOS keep it when the
/// dynamic linker was not told.
///
/// Never `libcuda.so`: that is what a CUDA toolkit calls its link-time stub.
const NAMES: [&str; 3] = [
    "libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
];

/// The address of one function: null before the driver is loaded, and when the driver
/// lacks the function.
pub(crate) type Slot = AtomicPtr<c_void>;

/// One function.
pub(crate) struct Entry {
    pub(crate) name: &'static CStr,
    pub(crate) slot: &'static Slot,
}

pub(crate) fn load() -> Result<(), &'static LoadError> {
    static LOADED: OnceLock<Result<(), LoadError>> = OnceLock::new();
    LOADED.get_or_init(open).as_ref().copied()
}

fn open() -> Result<(), LoadError> {
    let mut reason = None;
    for name in NAMES {
        match open_whole(name) {
            Ok(library) => {
                fill(&library, &sys::entries());
                // The driver has its own threads and callbacks; its code must stay loaded until the
                // process ends.
                std::mem::forget(library);
                return Ok(());
            }
            Err(words) => {
                reason.get_or_insert(words);
            }
        }
    }
    Err(LoadError {
        searched: NAMES.map(str::to_owned).to_vec(),
        reason: reason.unwrap_or_default(),
    })
}

/// Opens a complete library that is a driver; else an error says what the file is.
fn open_whole(name: &str) -> Result<Library, String> {
    if let Some(fault) = file::fault(name) {
        return Err(fault);
    }
    // SAFETY: opening a library runs its initialisers. This is the CUDA
    // driver by its well-known name, the very library that a program linked
    // with it would have loaded before `main`, and its initialisers expect
    // nothing of us.
    let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| describe(&error))?;
    if address(&library, c"cuInit").is_null() {
        return Err(format!(
            "{name} is no CUDA driver: it has no function cuInit"
        ));
    }
    Ok(library)
}

fn fill(library: &Library, entries: &[Entry]) {
    for entry in entries {
        let address = address(library, entry.name);
        entry.slot.store(address, Ordering::Release);
    }
}

/// The address of a function, or null where the library lacks it.
fn address(library: &Library, name: &CStr) -> *mut c_void {
    // SAFETY: the symbol is taken as an address only, never dereferenced at
    // the type named here; who calls it declares its type.
    unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }
        .map_or(std::ptr::null_mut(), |symbol| symbol.into_raw())
}

/// The dynamic linker's own words, which name the file.
fn describe(error: &libloading::Error) -> String {
    match error {
        libloading::Error::DlOpen { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}
