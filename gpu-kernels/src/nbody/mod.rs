//! All-pairs gravity.
//!
//! ```text
//! r   = x_j - x_i
//! s   = m_j / (|r|² + ε²)^(3/2)
//! a_i = Σ_j r s
//! ```
//!
//! with the gravitational constant 1 and the softening length ε > 0 of Plummer spheres (Aarseth,
//! "Gravitational N-Body Simulations", 2003, section 2.1). The sum runs over all j: a body does not
//! pull on itself because its r is zero, and no test is needed since ε is not.
//!
//! # The teaching kernels
//!
//! One thread computes the acceleration of one body and processes all n bodies in order, so the
//! sums of all kernels round alike and equal those of the plain CPU port. The only difference on a
//! GPU is its approximate reciprocal square root.
//!
//! - [`aos`]: every thread reads every body from global memory. All threads of a warp
//!   read the same one at the same time, which is one 16-byte access (two in f64). Six
//!   kernels differ in the number of interactions per iteration of the loop.
//! - [`shared`]: a block copies as many bodies as it has threads to shared memory
//!   and then reads them from there.
//!
//! # The kernels that the library chooses
//!
//! - [`register_tile`]: four bodies per thread share each load from the tile, and several blocks
//!   each compute a part of the sum over the others.
//! - [`symmetric`]: computes each pair once, for both of its bodies.
//! - [`sum`] adds the partial sums of either kernel in a fixed order.
//!
//! # Operations
//!
//! An interaction is 12 instructions and a reciprocal square root in f32, and counts as
//! [`FLOPS_PER_INTERACTION_F32`] operations; [`body_body`] lists them.

pub mod aos;
mod body;
#[cfg(not(target_arch = "nvptx64"))]
pub mod geometry;
pub mod kick_drift;
pub mod mixed;
#[cfg(not(target_arch = "nvptx64"))]
pub mod parts;
pub mod potential;
pub mod register_tile;
pub mod shared;
pub mod sum;
pub mod symmetric;
mod tiles;

pub use body::{
    Body, FLOPS_PER_INTERACTION_F32, FLOPS_PER_INTERACTION_F64, Real, body_body, body_body_refined,
};
pub use tiles::{
    REGISTER_BLOCK, REGISTER_BODIES, SHARED_UNROLL, SYMMETRIC_BLOCK, SYMMETRIC_BODIES,
    SYMMETRIC_GROUP, SYMMETRIC_TILE, SYMMETRIC_TILES,
};

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "nbody",
    computes: "all-pairs gravity",
    kernels: crate::entries![
        aos::nbody_aos_unroll1_f32,
        aos::nbody_aos_unroll1_f64,
        aos::nbody_aos_unroll2_f32,
        aos::nbody_aos_unroll2_f64,
        aos::nbody_aos_unroll4_f32,
        aos::nbody_aos_unroll4_f64,
        aos::nbody_aos_unroll8_f32,
        aos::nbody_aos_unroll8_f64,
        aos::nbody_aos_unroll16_f32,
        aos::nbody_aos_unroll16_f64,
        aos::nbody_aos_unroll32_f32,
        aos::nbody_aos_unroll32_f64,
        shared::nbody_shared_f32,
        shared::nbody_shared_f64,
        register_tile::nbody_register_tile_f32,
        register_tile::nbody_register_tile_f64,
        symmetric::nbody_symmetric_f32,
        symmetric::nbody_symmetric_f64,
        sum::nbody_sum_f32,
        sum::nbody_sum_f64,
        potential::nbody_potential_f32,
        potential::nbody_potential_f64,
        mixed::nbody_mixed_f32,
        kick_drift::nbody_kick_drift_f32,
        kick_drift::nbody_kick_drift_f64,
    ],
};
