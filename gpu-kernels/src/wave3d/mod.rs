//! Waves in three dimensions: the acoustic wave equation, second order in time, up to eighth in
//! space.
//!
//! ```text
//! ∂²u/∂t² = c² ∇²u
//! new = (2 u - past) + (c Δt)² L      L = w₀ u + Σ w_m (low_m + high_m)
//! ```
//!
//! over the axes and the distances `m` from 1 to 4, at every point of an `nx` × `ny` × `nz` field,
//! x fastest. `new` is written over `past`. Leapfrog in time, central differences in space (Virieux,
//! Calandra and Plessix, "A review of the spectral, pseudo-spectral, finite-difference and finite-element modelling
//! techniques for geophysical imaging", Geophysical Prospecting 59 (2011), section 3). The weights
//! are parameters; a lower order has zeros for the outermost distances. The velocity c is a field.
//!
//! | kernel | |
//! |---|---|
//! | [`step`], `closed` | as above |
//! | [`step`], `absorbing` | with a damping field σ: `∂²u/∂t² + σ ∂u/∂t = c² ∇²u` |
//!
//! Both are stencils: `halo_stencil` finds the neighbours of a point and applies the boundaries.

pub mod step;

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "wave3d",
    computes: "waves in space, step by step",
    kernels: crate::entries![
        step::wave3d_closed_f32,
        step::wave3d_closed_f64,
        step::wave3d_absorbing_f32,
        step::wave3d_absorbing_f64,
    ],
};
