//! The parts that differ between platforms: memory with guard pages, faults
//! turned into diagnoses, and stopping a thread that never returns.
//!
//! `native` does all of it, on Linux on x86-64 and AArch64. `portable` has
//! ordinary memory and no signals: out-of-bounds writes near an array are then
//! found by their canaries, and an endless loop that calls nothing stays
//! endless. The build script decides which.

pub(crate) mod available;

#[cfg(guarded)]
mod native;
#[cfg(guarded)]
pub(crate) use native::*;

#[cfg(not(guarded))]
mod portable;
#[cfg(not(guarded))]
pub(crate) use portable::*;

/// Looks up the addresses that the handlers which stop threads have recorded.
pub(crate) fn prepare_to_stop() {
    #[cfg(guarded)]
    crate::stoppable::look_up();
}
