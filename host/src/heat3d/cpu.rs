//! The formula for heat in space, point by point: the reference for the kernels and for the CPU's
//! vector code.
#![forbid(unsafe_code)]

use super::heat::Heat3d;
use crate::Axis;
use crate::stencil::{Number, Plain, Value, of_points};

/// A step from fields with the points of the grid: u and, if there is a source, the heat that a
/// step adds.
pub(super) fn step<T: Number>(heat: &Heat3d, fields: &[Vec<T>]) -> Vec<T> {
    let field = Plain::new(heat.grid(), &fields[0]);
    let heating = fields.get(1).map(|it| Plain::new(heat.grid(), it));
    of_points(heat.grid(), |point| {
        let u = field.at(point);
        let mut new = u;
        for axis in Axis::ALL {
            let sum = field.along(point, axis, -1) + field.along(point, axis, 1);
            let change = Value::fused(u, T::from(-2.0), sum);
            let ratio = T::nearest(heat.ratios()[axis.index()]);
            new = Value::fused(change, ratio, new);
        }
        heating.map_or(new, |heating| new + heating.at(point))
    })
}
