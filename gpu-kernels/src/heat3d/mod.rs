//! Heat in space: explicit steps in time, and Jacobi iterations towards the steady state.
//!
//! ```text
//! u_t = α ∇²u:     new = u + Σ r_a ((before + behind) - 2 u)         r_a = α Δt / h_a²
//! -∇²u = f:        new = Σ w_a (before + behind) + w f               a = x, y, z
//! ```
//!
//! with the neighbours of a point along each axis: the 7-point stencils (LeVeque, "Finite
//! Difference Methods for Ordinary and Partial Differential Equations", SIAM 2007, sections 3.2,
//! 4.1 and 9.3, in three dimensions). Fields are `nx` × `ny` × `nz`, x fastest; every point is
//! computed, and what lies beyond the ends is the launch's.
//!
//! Both are updates of a point, from which `halo_stencil` makes the kernels; its documentation
//! has the march, the tiles and the boundaries.

pub mod jacobi;
pub mod step;

pub use jacobi::Jacobi;
pub use step::Step;

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "heat3d",
    computes: "heat in space, in time or at rest",
    kernels: crate::entries![
        step::heat3d_step_f32,
        step::heat3d_step_f64,
        jacobi::heat3d_jacobi_f32,
        jacobi::heat3d_jacobi_f64,
    ],
};

/// The field of the benchmark.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const EXAMPLE: crate::registry::Problem =
    crate::registry::Problem::volume(256, 256, 256);
