//! Kernels that measure the device instead of computing anything: how fast it
//! issues arithmetic when nothing stands in the way.
//!
//! A kernel that is not waiting for memory is limited by how many instructions a
//! multiprocessor issues per clock. [`fma`] finds that limit for fused
//! multiply-adds, in f32 and in f64: the roof that kernels bound by arithmetic are
//! measured against, as they are measured against a copy where memory binds them.

pub mod fma;

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "roofline",
    computes: "the limits of a device's arithmetic",
    kernels: crate::entries![fma::roofline_fma_f32, fma::roofline_fma_f64],
};

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Chains of multiply-adds of a thread, none of which waits for another: more
/// than the latency of an instruction asks for, even with a single warp.
pub const CHAINS: usize = 8;

/// Multiply-adds that a chain has in one turn of the loop. The loop's own
/// instructions are a hundredth of a turn.
pub const STEPS_PER_ROUND: usize = 32;

/// Multiply-adds of a thread in one turn of the loop.
pub const FMAS_PER_ROUND: u64 = (CHAINS * STEPS_PER_ROUND) as u64;
