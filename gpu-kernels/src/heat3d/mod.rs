//! Heat in three dimensions, by explicit steps in time or Jacobi iterations.
//!
//! ```text
//! ∂u/∂t = α ∇²u + q
//! new = u + Σ r_a ((low + high) - 2 u) + Δt q      over the axes a, r_a = α Δt / h_a²
//! ```
//!
//! at every point of an `nx` × `ny` × `nz` field, x fastest: forward in time and centred in
//! space, seven points (LeVeque, "Finite Difference Methods for Ordinary and Partial
//! Differential Equations", SIAM 2007, chapter 9). A Jacobi iteration of Poisson's equation is
//! the step at the limit of stability, `2 Σ r_a = 1`.
//!
//! | kernel | |
//! |---|---|
//! | [`step`], `step` | without a source: q = 0 |
//! | [`step`], `heated` | with a source |
//!
//! Both are stencils: `halo_stencil` finds the neighbours of a point and applies the boundaries.

pub mod step;

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "heat3d",
    computes: "heat in space, step by step",
    kernels: crate::entries![
        step::heat3d_step_f32,
        step::heat3d_step_f64,
        step::heat3d_heated_f32,
        step::heat3d_heated_f64,
    ],
};
