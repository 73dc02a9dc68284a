//! Sound in space: the acoustic wave equation with a velocity that depends on the place.
//!
//! ```text
//! u_tt = c² ∇²u:   next = (2 u - past) + (c Δt)² L u
//! L u = w_0 u + Σ_m Σ_a w_a[m] (u behind by m + u ahead by m)      m = 1 … r, a = x, y, z
//! ```
//!
//! of second order in time and of order 2 r in space, r from 1 to 4, with the weights of
//! central second derivatives over the squares of the spacings (Fornberg, "Generation of Finite
//! Difference Formulas on Arbitrarily Spaced Grids", Math. Comp. 51 (1988)). With an absorbing
//! layer the equation is u_tt + 2 σ u_t = c² ∇²u, σ growing towards the ends (Israeli and
//! Orszag, "Approximation of Radiation Boundary Conditions", J. Comput. Phys. 41 (1981)):
//!
//! ```text
//! next = ((2 u - past) + (c Δt)² L u + d past) / (1 + d)      d = σ Δt
//! ```
//!
//! Fields are `nx` × `ny` × `nz`, x fastest; every point is computed, and what lies beyond the
//! ends is the launch's. `halo_stencil` makes the kernels of these updates.

pub mod absorbing;
pub mod acoustic;

pub use absorbing::Absorbing;
pub use acoustic::{Acoustic, Laplacian};

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "wave3d",
    computes: "sound in space",
    kernels: crate::entries![
        acoustic::wave3d_acoustic2_f32,
        acoustic::wave3d_acoustic2_f64,
        acoustic::wave3d_acoustic4_f32,
        acoustic::wave3d_acoustic4_f64,
        acoustic::wave3d_acoustic6_f32,
        acoustic::wave3d_acoustic6_f64,
        acoustic::wave3d_acoustic8_f32,
        acoustic::wave3d_acoustic8_f64,
        absorbing::wave3d_absorbing2_f32,
        absorbing::wave3d_absorbing2_f64,
        absorbing::wave3d_absorbing4_f32,
        absorbing::wave3d_absorbing4_f64,
        absorbing::wave3d_absorbing6_f32,
        absorbing::wave3d_absorbing6_f64,
        absorbing::wave3d_absorbing8_f32,
        absorbing::wave3d_absorbing8_f64,
    ],
};

/// The field of the benchmark.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const EXAMPLE: crate::registry::Problem =
    crate::registry::Problem::volume(256, 256, 256);
