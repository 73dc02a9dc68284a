//! Makes the stencils of the CPU port: the weights, and the values beyond the ends.
#![forbid(unsafe_code)]

use super::cpu::{Beyond, Stencil};
use super::operator::Order;
use crate::Shape3;
use crate::axis::Axis;
use crate::grid::Boundary;
use crate::scalar::Scalar;
use gpu_kernels::derivative3d::general::{MAX_END_POINTS, TABLE_ENDS, TABLE_FIXED, TABLE_LEN};
use std::array::from_fn;

/// The stencil along `axis` with these weights and this boundary.
pub(super) fn stencil<T: Scalar>(
    shape: Shape3,
    axis: Axis,
    order: Order,
    radius: usize,
    boundary: Boundary,
    table: &[T; TABLE_LEN],
) -> Stencil<'_, T> {
    let n = axis.extent(shape);
    // The stencil does not use points beyond the radius, and the axis may not have them.
    let point = |q: isize, m: usize| {
        if m < radius { image(boundary, n, q) } else { 0 }
    };
    Stencil {
        shape,
        axis,
        order,
        radius,
        weights: from_fn(|m| table[m]),
        beyond: match boundary {
            Boundary::Dirichlet(_) => Beyond::Value(table[TABLE_FIXED]),
            Boundary::OneSided => Beyond::Nothing {
                weights: &table[TABLE_ENDS..TABLE_FIXED],
                apart: MAX_END_POINTS,
            },
            _ => Beyond::Points([
                from_fn(|m| point(-1 - m as isize, m)),
                from_fn(|m| point((n + m) as isize, m)),
            ]),
        },
    }
}

/// The point that stands for point `q` beyond an end of an axis of `n` points.
fn image(boundary: Boundary, n: usize, q: isize) -> usize {
    let n = n as isize;
    let last = n - 1;
    let image = match boundary {
        Boundary::Periodic => q.rem_euclid(n),
        Boundary::PeriodicWithEndpoint if q < 0 => q + last,
        Boundary::PeriodicWithEndpoint => q - last,
        Boundary::Neumann => last - (last - q.abs()).abs(),
        Boundary::NeumannHalfway if q < 0 => -q - 1,
        Boundary::NeumannHalfway => last - (q - n),
        Boundary::Dirichlet(_) | Boundary::DirichletOnPoint | Boundary::OneSided => {
            unreachable!("no point stands for what lies beyond such an end")
        }
    };
    image as usize
}
