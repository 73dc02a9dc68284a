//! The textbook problem: a mode of a periodic block, which only decays.

use crate::Shape3;
use std::f64::consts::PI;

pub use crate::stencil::problem::periodic_mode;

/// What a step in time with these α Δt / h² multiplies a [`periodic_mode`] by:
/// `1 - 4 Σ r sin²(π k / n)` (LeVeque 2007, section 9.6, in three dimensions).
///
/// ```
/// use halo_gpu::Shape3;
/// use halo_gpu::heat3d::problem::amplification;
///
/// // At the limit of stability the mode that changes sign from point to point keeps its size.
/// assert_eq!(amplification(Shape3::cube(8), [4; 3], [1.0 / 6.0; 3]), -1.0);
/// ```
#[must_use]
pub fn amplification(shape: Shape3, modes: [usize; 3], ratios: [f64; 3]) -> f64 {
    let extents = [shape.nx, shape.ny, shape.nz];
    let sines = (0..3).map(|axis| {
        let angle = PI * modes[axis] as f64 / extents[axis] as f64;
        ratios[axis] * angle.sin().powi(2)
    });
    1.0 - 4.0 * sines.sum::<f64>()
}
