//! Tests of launches: the results of kernels, and the faults that the emulator reports.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod barriers;
mod bounds;
mod memory;
#[cfg(traced)]
mod races;
mod sharing;
mod threads;
mod verification;
mod warps;
