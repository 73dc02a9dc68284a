//! The CPU port's view of a plan: the stencils, with what they use beyond the ends.
#![forbid(unsafe_code)]

use super::{
    Axis, AxisBoundary, FiniteDifferences3d, MAX_END_POINTS, Operator, Order, Real, TABLE_ENDS,
    TABLE_FIXED,
};
use crate::derivative3d::cpu::{self, Beyond, Stencil};
use std::array::from_fn;

/// ∂f/∂axis or ∂²f/∂axis² of `f` into `df`, both of the plan's shape.
///
/// The axis has as many points as the plan demands.
pub(super) fn along<T: Real>(
    plan: &FiniteDifferences3d<T>,
    axis: Axis,
    order: Order,
    f: &[T],
    df: &mut [T],
) {
    cpu::along(&stencil(plan, axis, order), f, df);
}

/// `operator` of fields of the plan's shape: as many as it reads, and writes.
///
/// The axes have as many points as the plan demands.
pub(super) fn operator<T: Real>(
    plan: &FiniteDifferences3d<T>,
    operator: Operator,
    inputs: &[&[T]],
    outputs: &mut [&mut [T]],
) {
    let stencils = Axis::ALL.map(|axis| stencil(plan, axis, operator.order()));
    cpu::operator(&stencils, operator, inputs, outputs);
}

fn stencil<T: Real>(plan: &FiniteDifferences3d<T>, axis: Axis, order: Order) -> Stencil<'_, T> {
    let (table, boundary) = (plan.table(axis, order), plan.boundary(axis));
    let n = axis.extent(plan.shape());
    // Beyond the radius there are none to be had, nor are any used.
    let point = |q: isize, m: usize| {
        if m < plan.radius() {
            image(boundary, n, q)
        } else {
            0
        }
    };
    Stencil {
        shape: plan.shape(),
        axis,
        order,
        radius: plan.radius(),
        weights: from_fn(|m| table[m]),
        beyond: match boundary {
            AxisBoundary::Fixed(_) => Beyond::Value(table[TABLE_FIXED]),
            AxisBoundary::OneSided => Beyond::Nothing {
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

/// The point that stands for `q`, which lies beyond an end of an axis of `n` points.
fn image(boundary: AxisBoundary, n: usize, q: isize) -> usize {
    let n = n as isize;
    let last = n - 1;
    let image = match boundary {
        AxisBoundary::Periodic => q.rem_euclid(n),
        AxisBoundary::PeriodicWithEndpoint if q < 0 => q + last,
        AxisBoundary::PeriodicWithEndpoint => q - last,
        AxisBoundary::MirrorOnPoint => last - (last - q.abs()).abs(),
        AxisBoundary::MirrorHalfway if q < 0 => -q - 1,
        AxisBoundary::MirrorHalfway => last - (q - n),
        AxisBoundary::Fixed(_) | AxisBoundary::OneSided => {
            unreachable!("no point stands for what lies beyond such an end")
        }
    };
    image as usize
}
