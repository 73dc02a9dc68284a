//! The textbook problem: a standing wave of a periodic block, whose frequency is known.

use super::wave::Wave3d;
use crate::{Axis, Error, finite_difference};
use std::f64::consts::PI;

pub use crate::stencil::problem::periodic_mode;

/// The angle by which a [`periodic_mode`] goes on in a step of `wave` with the velocity c at all
/// points: it is cos(n θ) times what it was n steps before.
///
/// `sin(θ/2) = (c Δt / 2) √λ`, λ being what -L makes of the mode:
/// `λ = -Σ_a (w_0 + 2 Σ_m w[m] cos(2π m k_a / n_a)) / h_a²`. Of the equation itself it is
/// c Δt |k| ([`exact_angle`]).
///
/// # Errors
///
/// None for a wave that there is: those of its weights.
pub fn angle(wave: &Wave3d, modes: [usize; 3], velocity: f64) -> Result<f64, Error> {
    let weights = finite_difference::Weights::central(2, wave.accuracy())?;
    let mut eigenvalue = 0.0;
    for axis in Axis::ALL {
        let turn = 2.0 * PI * modes[axis.index()] as f64 / wave.grid().extent(axis) as f64;
        let offsets = weights.offsets().zip(weights.values());
        let sum: f64 = offsets.map(|(m, w)| w * (f64::from(m) * turn).cos()).sum();
        eigenvalue -= sum / wave.grid().spacing(axis).powi(2);
    }
    Ok(2.0 * (velocity * wave.time_step() / 2.0 * eigenvalue.sqrt()).asin())
}

/// The angle by which a [`periodic_mode`] goes on in the time of a step, by the equation itself:
/// c Δt |k|, with k_a = 2π modes_a / (n_a h_a).
#[must_use]
pub fn exact_angle(wave: &Wave3d, modes: [usize; 3], velocity: f64) -> f64 {
    let squares = Axis::ALL.map(|axis| {
        let length = wave.grid().extent(axis) as f64 * wave.grid().spacing(axis);
        (2.0 * PI * modes[axis.index()] as f64 / length).powi(2)
    });
    velocity * wave.time_step() * squares.iter().sum::<f64>().sqrt()
}
