//! Kernels that measure the device instead of computing anything: how fast it
//! issues arithmetic when nothing stands in the way.
//!
//! A kernel that is not waiting for memory is limited by how many instructions a
//! multiprocessor issues per clock. [`fma`] finds that limit for fused
//! multiply-adds, in f32 and in f64: the roof that kernels bound by arithmetic are
//! measured against, as they are measured against a copy where memory binds them.

pub mod fma;

pub use fma::{BLOCK, CHAINS, FMAS_PER_ROUND, STEPS_PER_ROUND};

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "roofline",
    computes: "the limits of a device's arithmetic",
    kernels: crate::entries![fma::roofline_fma_f32, fma::roofline_fma_f64],
};
