//! Detects data races by watching the memory accesses of some threads of some blocks.
//!
//! The memory of buffers and shared arrays is closed while a watched thread
//! runs. Each of its accesses faults, is recorded with its instruction, address
//! and bytes, and is executed by a single step with the memory open. The
//! operations that order threads are recorded, too: barriers, warp barriers,
//! atomics. Two accesses of different threads to the same bytes, one of them a
//! write, with nothing between them that orders them, are a race, whichever
//! came first in this run.
//!
//! Watching needs single steps and page faults as on Linux on x86-64; elsewhere
//! nothing is watched.

#[cfg(traced)]
mod analysis;
#[cfg(traced)]
mod decode;
#[cfg(traced)]
mod sample;
#[cfg(traced)]
mod trace;

#[cfg(traced)]
pub(crate) use self::{analysis::first_race, trace::Trace};

#[cfg(not(traced))]
mod absent;
#[cfg(not(traced))]
pub(crate) use self::absent::{Trace, first_race};

use crate::here::Here;

/// The trace that watches the launch of this OS thread, if any.
#[inline]
pub(crate) fn watching(here: &Here) -> Option<&Trace> {
    let trace = here.watching()?;
    // SAFETY: `Watching` promises that it is a `Trace`.
    Some(unsafe { &*std::ptr::from_ref(trace).cast() })
}
