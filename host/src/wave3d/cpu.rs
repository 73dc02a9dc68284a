//! The formula for waves, point by point: the reference for the kernels and for the CPU's vector
//! code.
#![forbid(unsafe_code)]

use super::wave::Wave3d;
use crate::Axis;
use crate::stencil::{Number, Plain, Value, of_points};

/// A step from fields with the points of the grid: u, u one step before, and the coefficients, with
/// or without damping.
pub(super) fn step<T: Number>(wave: &Wave3d, fields: &[Vec<T>]) -> Vec<T> {
    let plain = |field: usize| Plain::new(wave.grid(), &fields[field]);
    let (u, past, courant) = (plain(0), plain(1), plain(2));
    let (own, weights) = wave.weights();
    let own = own * wave.relative().iter().sum::<f64>();
    of_points(wave.grid(), |point| {
        let now = u.at(point);
        let mut sum = now * T::nearest(own);
        for (axis, relative) in Axis::ALL.into_iter().zip(wave.relative()) {
            for (distance, weight) in (1..).zip(weights) {
                let both = u.along(point, axis, -distance) + u.along(point, axis, distance);
                sum = Value::fused(both, T::nearest(weight * relative), sum);
            }
        }
        let on = match fields.get(3) {
            None => Value::fused(now, T::from(2.0), -past.at(point)),
            Some(kept) => {
                let kept = Plain::new(wave.grid(), kept);
                Value::fused(now - past.at(point), kept.at(point), now)
            }
        };
        Value::fused(sum, courant.at(point), on)
    })
}
