//! Loads the driver library, and finds its functions.

use super::file;
use super::sys::{self, Function};
use crate::error::LoadError;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// The files to try. The plain name works wherever the driver is installed properly; the other two
/// are its places on WSL and NixOS, for when the dynamic linker does not know them.
///
/// `libcuda.so` is not among them: CUDA toolkits give that name to their link-time stub.
const NAMES: [&str; 3] = [
    "libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
];

pub(crate) fn load() -> Result<(), &'static LoadError> {
    static LOADED: OnceLock<Result<(), LoadError>> = OnceLock::new();
    LOADED.get_or_init(open).as_ref().copied()
}

fn open() -> Result<(), LoadError> {
    let mut reason = None;
    for name in NAMES {
        match open_whole(name) {
            Ok(library) => {
                fill(&library, &sys::functions());
                // The driver has its own threads and callbacks, so its code must stay loaded until
                // the process ends.
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

/// Opens a driver library. If the file is damaged, or built for another machine, the error says so.
fn open_whole(name: &str) -> Result<Library, String> {
    if let Some(fault) = file::fault(name) {
        return Err(fault);
    }
    // SAFETY: opening a library runs its initialisers. This is the CUDA driver under its well-known
    // name, the same library that a program linked with it loads before `main`, and its
    // initialisers require nothing of the caller.
    let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| describe(&error))?;
    if address(&library, c"cuInit").is_null() {
        return Err(format!(
            "{name} is not a CUDA driver: it has no function cuInit"
        ));
    }
    Ok(library)
}

fn fill(library: &Library, functions: &[Function]) {
    for function in functions {
        let address = address(library, function.name);
        function.slot.store(address, Ordering::Release);
    }
}

/// The address of a function, or null if the library lacks it.
fn address(library: &Library, name: &CStr) -> *mut c_void {
    // SAFETY: the symbol is only used as an address, and never dereferenced as the type named here;
    // whoever calls the function declares its type.
    unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }
        .map_or(std::ptr::null_mut(), |symbol| symbol.into_raw())
}

/// The dynamic linker's message, which names the file.
fn describe(error: &libloading::Error) -> String {
    match error {
        libloading::Error::DlOpen { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}
