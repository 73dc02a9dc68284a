//! The textbook problem: a standing wave in a periodic box, with a known solution.
//!
//! ```text
//! u(x, y, z, t) = cos(ω t) cos(k_x x) cos(k_y y) cos(k_z z)      ω = c |k|, k_a = 2π m_a / L_a
//! ```
//!
//! with the same velocity everywhere; the period of an axis of `n` points is L = n h. It is a
//! standing wave of the grid too, with another ω: [`frequency_on_grid`].

use super::wave::Wave3d;
use crate::stencil::Number;
use crate::{Axis, Error, Field3};
use std::f64::consts::TAU;

/// The phase of a mode between adjacent points along an axis.
fn phase(wave: &Wave3d, modes: [usize; 3], axis: Axis) -> f64 {
    TAU * modes[axis.index()] as f64 / wave.grid().extent(axis) as f64
}

/// The wave with `modes` periods along x, y and z, at a time when `cos(ω t)` is `height`.
///
/// # Errors
///
/// [`Error::HostOutOfMemory`] for a grid that is too large.
pub fn mode<T: Number>(wave: &Wave3d, modes: [usize; 3], height: f64) -> Result<Field3<T>, Error> {
    let cosine = |axis: Axis, at: usize| {
        let n = wave.grid().extent(axis);
        // Reduces the angle exactly, in integers.
        (TAU * (modes[axis.index()] * at % n) as f64 / n as f64).cos()
    };
    Field3::from_fn(wave.grid().shape(), |i, j, k| {
        let product = cosine(Axis::X, i) * cosine(Axis::Y, j) * cosine(Axis::Z, k);
        T::nearest(height * product)
    })
}

/// ω = c |k| of a [`mode`], in 1 / time.
#[must_use]
pub fn frequency(wave: &Wave3d, modes: [usize; 3], velocity: f64) -> f64 {
    let along = Axis::ALL.map(|axis| {
        let wave_number = phase(wave, modes, axis) / wave.grid().spacing(axis);
        wave_number * wave_number
    });
    velocity * along.iter().sum::<f64>().sqrt()
}

/// ω of a [`mode`] on the grid: `sin(ω Δt / 2) = (c Δt / 2) √(Σ κ_a)`, where κ is the factor by
/// which the differences for `-∂²/∂x²` multiply the mode (Virieux et al. 2011, section 3). NaN for
/// a step that is not stable.
///
/// ```
/// use halo_gpu::wave3d::{Wave3d, problem};
/// use halo_gpu::{Grid3, Shape3};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // Waves of 8 points: with differences of 2nd order they are 2.5 % too slow, of 8th right.
/// let grid = Grid3::new(Shape3::cube(8), [0.125; 3])?;
/// for (order, slow) in [(2, 0.0255), (8, 2.0e-5)] {
///     let wave = Wave3d::new(grid, order)?;
///     let [on_grid, exact] = [
///         problem::frequency_on_grid(&wave, [1, 0, 0], 1.0, 1e-6),
///         problem::frequency(&wave, [1, 0, 0], 1.0),
///     ];
///     assert!((1.0 - on_grid / exact - slow).abs() < 0.05 * slow, "{}", 1.0 - on_grid / exact);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn frequency_on_grid(wave: &Wave3d, modes: [usize; 3], velocity: f64, time_step: f64) -> f64 {
    let along = Axis::ALL.map(|axis| {
        let h = wave.grid().spacing(axis);
        wave.square_of(phase(wave, modes, axis)) / (h * h)
    });
    let sine = velocity * time_step / 2.0 * along.iter().sum::<f64>().sqrt();
    2.0 / time_step * sine.asin()
}
