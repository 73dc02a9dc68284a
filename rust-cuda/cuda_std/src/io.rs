//! Printing from kernels, and assertions that fail the launch.
//!
//! The device keeps what kernels print in a ring buffer (1 MiB unless the host
//! sets another size; when it is full, the oldest output is lost) and writes it
//! to the program's standard output when the host synchronises, launches,
//! copies blockingly, or ends the context. One call prints as a whole: output
//! of other threads never comes in between.
//!
//! Formatting uses the device heap and costs registers and code: it is for
//! debugging, not for production kernels.
//!
//! On the host `cuda_std::println!` and the other macros *are* `std`'s,
//! re-exported, so that a crate may import them by a glob and still call
//! `println!`: two different macros of one name would be ambiguous.

#[cfg(target_arch = "nvptx64")]
mod device;
#[cfg(target_arch = "nvptx64")]
pub use device::*;
