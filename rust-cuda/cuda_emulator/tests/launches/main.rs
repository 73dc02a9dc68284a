//! Tests launches: what kernels compute in the emulator, and what it finds wrong with them.

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
