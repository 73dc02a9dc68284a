//! The textbook problem: a cosine mode of a box, whose decay is known.
//!
//! ```text
//! u(x, y, z, t) = e^(-α (k·k) t) cos(k_x x) cos(k_y y) cos(k_z z)      k_a = π m_a / L_a
//! ```
//!
//! in an insulated box. The `n` points along each axis are the centres of cells
//! ([`Boundary::NeumannHalfway`](crate::Boundary::NeumannHalfway)): L = n h, x = (i + 1/2) h. A
//! mode of the box is also a mode of the grid: a step multiplies it by [`amplification`].

use super::heat::Heat3d;
use crate::stencil::Number;
use crate::{Axis, Error, Field3};
use std::f64::consts::PI;

/// The mode with `modes` half waves along x, y and z, at the points of a grid.
///
/// # Errors
///
/// [`Error::HostOutOfMemory`] for a grid that is too large.
pub fn mode<T: Number>(heat: &Heat3d, modes: [usize; 3]) -> Result<Field3<T>, Error> {
    let shape = heat.grid().shape();
    let cosine = |axis: Axis, at: usize| {
        let n = heat.grid().extent(axis);
        // Reduces the angle exactly, in integers.
        let halves = modes[axis.index()] * (2 * at + 1) % (4 * n);
        (PI * halves as f64 / (2 * n) as f64).cos()
    };
    Field3::from_fn(shape, |i, j, k| {
        T::nearest(cosine(Axis::X, i) * cosine(Axis::Y, j) * cosine(Axis::Z, k))
    })
}

/// The factor by which a step multiplies a [`mode`]: `1 - 4 Σ r sin²(π m / 2n)` (LeVeque 2007,
/// sections 9.3 and 9.6).
///
/// ```
/// use halo_gpu::heat3d::{Heat3d, problem};
/// use halo_gpu::{Boundary, Device, Grid3, Shape3};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let shape = Shape3::cube(16);
/// let grid = Grid3::new(shape, [1.0 / 16.0; 3])?.with_boundaries(Boundary::NeumannHalfway)?;
/// let heat = Heat3d::new(grid).with_time_step(1.0, 5e-4)?;
/// let initial = problem::mode::<f64>(&heat, [1, 2, 0])?;
/// let after = heat.steps_of(&Device::cpu(), &initial, 20)?;
///
/// // On the grid, and in the limit of fine ones.
/// let ratio = after[(0, 0, 0)] / initial[(0, 0, 0)];
/// assert!((ratio - problem::amplification(&heat, [1, 2, 0]).powi(20)).abs() < 1e-13);
/// assert!((ratio / problem::decay(&heat, [1, 2, 0], 0.01) - 1.0).abs() < 5e-3);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn amplification(heat: &Heat3d, modes: [usize; 3]) -> f64 {
    let along = Axis::ALL.map(|axis| {
        let n = heat.grid().extent(axis) as f64;
        let sine = (PI * modes[axis.index()] as f64 / (2.0 * n)).sin();
        heat.ratios()[axis.index()] * sine * sine
    });
    1.0 - 4.0 * along.iter().sum::<f64>()
}

/// The factor by which a [`mode`] of the box changes in the time `t`: `e^(-α (k·k) t)`; 1 for
/// Jacobi iterations, which have no time.
#[must_use]
pub fn decay(heat: &Heat3d, modes: [usize; 3], t: f64) -> f64 {
    let along = Axis::ALL.map(|axis| {
        let length = heat.grid().extent(axis) as f64 * heat.grid().spacing(axis);
        (PI * modes[axis.index()] as f64 / length).powi(2)
    });
    (-heat.diffusivity().unwrap_or(0.0) * along.iter().sum::<f64>() * t).exp()
}
