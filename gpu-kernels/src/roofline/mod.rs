//! Kernels that measure how fast the device issues arithmetic when nothing else limits it.
//!
//! A kernel that does not wait for memory is limited by the number of instructions that a
//! multiprocessor issues per clock. [`fma`] measures that limit for fused multiply-adds in f32 and
//! f64. Kernels bound by arithmetic are compared with it, as kernels bound by memory are compared
//! with a copy.

pub mod fma;

pub use fma::{BLOCK, CHAINS, FMAS_PER_ROUND, STEPS_PER_ROUND};

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "roofline",
    computes: "the limits of a device's arithmetic",
    kernels: crate::entries![fma::roofline_fma_f32, fma::roofline_fma_f64],
};
