//! Loads the CUDA driver library at run time.
//!
//! [cust] declares the functions of the CUDA driver and leaves them to the
//! linker, so a program that uses it does not start where there is no
//! `libcuda.so.1`. A program that also links this crate has no such dependency:
//! the functions are defined here, as trampolines through a table that is
//! filled from the driver library at the first `cuInit`. Without a driver
//! `cuInit` fails with `CUDA_ERROR_NO_DEVICE` and every other function with
//! `CUDA_ERROR_NOT_INITIALIZED`, as they do where a driver finds no device and
//! before initialisation. [`load`] says why.
//!
//! ```
//! match cuda_loader::load() {
//!     Ok(()) => println!("there is a CUDA driver"),
//!     Err(error) => println!("{error}"), // no CUDA driver: libcuda.so.1: …
//! }
//! ```
//!
//! # Two ways to the driver
//!
//! - **cust**, for what it wraps well. Its result type is a closed enum, so a
//!   code that a newer driver returns would be undefined behaviour; the
//!   trampolines hand it only codes that it knows, `CUDA_ERROR_UNKNOWN` for the
//!   others, and [`last_code`] keeps the number.
//! - **[`sys`]**, declarations of our own for what cust lacks or gets wrong:
//!   open result codes, logs of the PTX compiler, function attributes,
//!   textures, memory pools, graphs, cluster launches. A function that the
//!   installed driver does not have fails with [`sys::CUresult::SYMBOL_MISSING`];
//!   nothing ever jumps to an address that was not found.
//!
//! # Building without a CUDA toolkit
//!
//! cust's build script insists on a folder with `lib64/libcuda.so`. The folder
//! `stub` of this crate has one, a linker script that says nothing. Point the
//! environment variable `CUDA_LIBRARY_PATH` at it, best in `.cargo/config.toml`:
//!
//! ```toml
//! [env]
//! CUDA_LIBRARY_PATH = { value = "rust-cuda/cuda_loader/stub", relative = true }
//! ```
//!
//! A workspace that depends on this crate from elsewhere makes such a folder of its
//! own: the file holds the text `INPUT()`. With a toolkit installed nothing needs to
//! be set: its stub library is then on the linker's command line, behind this crate,
//! and finds nothing left to define.
//!
//! # Platforms
//!
//! Linux on x86_64 and aarch64. Elsewhere the crate is [`load`], which fails,
//! and the types of its error.
//!
//! [cust]: https://crates.io/crates/cust

use std::fmt;

#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "unsupported.rs"
)]
mod driver;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub use driver::{SYMBOLS, last_code, sys};

/// Why the CUDA driver library could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The file names that were tried, in order. Names without a folder were
    /// looked for where the dynamic linker looks (`LD_LIBRARY_PATH`, its cache).
    pub searched: Vec<String>,
    /// What the dynamic linker said about the first of them.
    pub reason: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no CUDA driver: {}", self.reason)?;
        if !self.searched.is_empty() {
            write!(f, " (searched: {})", self.searched.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

/// Loads the driver library, once per process; later calls return what the
/// first one found. The library is never unloaded.
///
/// Calling this first is not necessary (`cuInit` does), but it is how to learn
/// the reason.
///
/// # Errors
///
/// [`LoadError`] where there is no driver library that can be loaded.
pub fn load() -> Result<(), &'static LoadError> {
    driver::load()
}
