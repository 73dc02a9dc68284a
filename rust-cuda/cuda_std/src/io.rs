//! Printing from kernels, and assertions that fail the launch.
//!
//! The device keeps what kernels print in a ring buffer (1 MiB unless the host
//! says otherwise; when it is full the oldest goes) and writes it to the
//! program's standard output when the host synchronises, launches, copies
//! blockingly, or ends the context. One call prints as a whole: output of other
//! threads never comes in between.
//!
//! Formatting goes through the device heap and costs registers and code: for
//! finding mistakes, not for kernels in earnest.
//!
//! On the host `cuda_std::println!` and its kin *are* `std`'s macros, under a
//! second name, so that a crate may import them by a glob and still say
//! `println!`: the same name for two macros would be ambiguous.

#[cfg(target_arch = "nvptx64")]
mod device;
#[cfg(target_arch = "nvptx64")]
pub use device::*;
