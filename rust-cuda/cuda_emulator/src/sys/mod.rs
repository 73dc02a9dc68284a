//! What differs between platforms: memory with guard pages, faults turned into
//! diagnoses, and stopping a thread that never comes back.
//!
//! `native` does all of it, on Linux on x86-64 and AArch64. `portable` has
//! ordinary memory and no signals: out-of-bounds writes near an array are then
//! found by their canaries, and an endless loop that calls nothing stays
//! endless.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(feature = "portable")
))]
mod native;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(feature = "portable")
))]
pub(crate) use native::*;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(feature = "portable")
)))]
mod portable;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(feature = "portable")
)))]
pub(crate) use portable::*;

/// A fault of an emulated thread, as the signal handler saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    /// The address that was accessed, where the platform says.
    pub address: Option<usize>,
    /// Whether it was a write, where the platform says.
    pub write: Option<bool>,
    /// Address of the instruction.
    pub instruction: usize,
    /// Where the function would return to, if it is a leaf that has not moved
    /// the stack (`memcpy` of the C library, for instance).
    pub return_address: Option<usize>,
}
