//! An antisymmetric nine-point stencil on a line, with coefficients that the caller chooses.
//!
//! ```text
//! out[i] = c1 (in[i+1] - in[i-1]) + c2 (in[i+2] - in[i-2])
//!        + c3 (in[i+3] - in[i-3]) + c4 (in[i+4] - in[i-4])      4 <= i < n - 4
//! ```
//!
//! The first and the last four elements of `out` are not written. A central
//! difference for an odd derivative has this form (Fornberg, "Generation of
//! finite difference formulas on arbitrarily spaced grids", Math. Comp. 51
//! (1988)); the textbook's coefficients are -1, -2, 2, 1.
//!
//! # The teaching kernels
//!
//! Both load a tile of `block + 8` elements into shared memory; the first four threads of the block
//! also load both halos. They differ in where the coefficients are:
//!
//! - [`constant`]: in constant memory, which serves a whole warp at once if all its lanes read the
//!   same word, as here.
//! - [`readonly`]: in global memory, read through the read-only data cache.
//!
//! # The tuned kernel
//!
//! [`vector4`] loads 16 bytes at a time into registers and gets the neighbours from
//! other lanes.
//!
//! All do the same arithmetic in the same order, one multiplication and three
//! fused multiply-adds per element, and give the same bits as the CPU port.
//!
//! Moves 4 bytes in and 4 bytes out per element; 11 flops.
//!
//! [`custom`] is the general case: any coefficients, up to eight neighbours.

pub mod constant;
pub mod custom;
#[cfg(not(target_arch = "nvptx64"))]
pub mod geometry;
mod nine_point;
pub mod readonly;
pub mod vector4;

pub use nine_point::{BLOCK_DEFAULT, FLOPS_PER_ELEMENT, N_DEFAULT, RADIUS, VECTOR_BLOCK, VECTORS};

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "stencil1d",
    computes: "a stencil on a line",
    kernels: crate::entries![
        constant::stencil1d_constant,
        readonly::stencil1d_readonly,
        vector4::stencil1d_vector4,
        custom::stencil1d_custom_f32,
        custom::stencil1d_custom_f64,
    ],
};
