//! Loads the CUDA driver library at run time.
//!
//! A program that is linked with `libcuda.so.1` does not start on a machine without it. A program
//! that calls the driver through [`sys`] starts anywhere: [`load`] looks up the functions, or says
//! why there is no driver. Building needs no part of CUDA.
//!
//! ```
//! match cuda_loader::load() {
//!     Ok(()) => println!("there is a CUDA driver"),
//!     Err(error) => println!("{error}"), // no CUDA driver: libcuda.so.1: …
//! }
//! ```
//!
//! [`sys`] declares the driver's functions; their result codes can be any number. A function fails
//! with [`sys::CUresult::NOT_INITIALIZED`] before the driver is loaded, and with
//! [`sys::CUresult::SYMBOL_MISSING`] if the installed driver lacks it, so no call jumps to an
//! address that was not found. The crate `cust` wraps the functions for programs.
//!
//! # Platforms
//!
//! Linux on x86_64 and aarch64. Elsewhere the crate has only [`load`], which fails, and the types
//! of its error.

#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "unsupported.rs"
)]
mod driver;
mod error;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub use driver::sys;

pub use error::LoadError;

/// Loads the driver library once per process; later calls return the result of the first. The
/// library is never unloaded.
///
/// Call it before you call the driver.
///
/// # Errors
///
/// [`LoadError`] if no driver library can be loaded.
pub fn load() -> Result<(), &'static LoadError> {
    driver::load()
}
