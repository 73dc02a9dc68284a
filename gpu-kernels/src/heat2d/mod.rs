//! The 2-D heat equation's steady state by Jacobi iteration.
//!
//! ```text
//! new(i, j) = ((E + W) + (N + S)) * 0.25
//! E = old(i+1, j)   W = old(i-1, j)   N = old(i, j+1)   S = old(i, j-1)
//! ```
//!
//! for every interior point of an `nx` × `ny` field, x fastest: point (i, j) is
//! element `j * nx + i`. The outermost points are the walls; no kernel but [`march`] and
//! [`step`] writes them, where they are insulated. This is the five-point discretisation of Laplace's equation on square
//! cells, solved by Jacobi's method (LeVeque, "Finite Difference Methods for
//! Ordinary and Partial Differential Equations", SIAM 2007, sections 3.2 and
//! 4.1). One launch is one iteration; the host exchanges the two buffers.
//!
//! # The teaching kernels
//!
//! Each point is read by its four neighbours. The kernels differ in where they read it:
//!
//! | kernel | a block's tile | points it writes |
//! |---|---|---|
//! | [`global`] | none: four loads from global memory per point | 16 × 16 |
//! | [`shared_core`] | 16 × 16 in shared memory; points beyond it are read from global memory | 16 × 16 |
//! | [`shared_overlap`] | 16 × 16, blocks overlap by 2 | the inner 14 × 14 |
//! | [`shared_halo`] | 18 × 18, loaded by 256 threads in two rounds | 16 × 16 |
//! | [`texture`] | none: four fetches through the texture cache | 16 × 16 |
//!
//! All five add in the order of the formula, three additions and one
//! multiplication per point, and give the same bits as the CPU port. Swapping
//! north and south, or east and west, changes no bit either: addition commutes.
//!
//! # The kernels that the library chooses
//!
//! | kernel | in `f32` and `f64` |
//! |---|---|
//! | [`march`] | one iteration at the speed of memory, with any walls and a source: a stencil of `halo_stencil` |
//! | [`temporal`] | 16 iterations in one pass over memory |
//! | [`resident`] | all iterations in one launch, for plates that fit on the chip |
//! | [`step`] | as [`march`], an explicit step in time |
//!
//! The first three compute the same formula in the same order, so they give the same bits.
//! [`difference`](crate::elementwise::difference) finds how much an iteration has changed.
//!
//! Least traffic per iteration: 4 bytes (8 in `f64`) read per point and as many written per
//! interior point; 4 flops per interior point.

#[cfg(not(target_arch = "nvptx64"))]
mod geometry;
pub mod global;
mod lanes;
pub mod march;
mod plate;
pub mod resident;
pub mod shared_core;
pub mod shared_halo;
pub mod shared_overlap;
pub mod step;
pub mod strips;
pub mod temporal;
pub mod texture;

pub use plate::{BLOCK, HALO, HALO_TILE, OVERLAP_STEP, Real};

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "heat2d",
    computes: "the steady temperature of a plate",
    kernels: crate::entries![
        global::heat2d_global,
        shared_core::heat2d_shared_core,
        shared_overlap::heat2d_shared_overlap,
        shared_halo::heat2d_shared_halo,
        texture::heat2d_texture,
        march::heat2d_march_f32,
        march::heat2d_march_f64,
        march::heat2d_heated_f32,
        march::heat2d_heated_f64,
        temporal::heat2d_temporal_f32,
        temporal::heat2d_temporal_f64,
        resident::heat2d_resident_f32,
        resident::heat2d_resident_f64,
        step::heat2d_step_f32,
        step::heat2d_step_f64,
        step::heat2d_heated_step_f32,
        step::heat2d_heated_step_f64,
    ],
};
