//! The CPU port's view of a plan: the stencils, with what they use beyond the ends.
#![forbid(unsafe_code)]

use super::{
    Axis, AxisBoundary, FiniteDifferences3d, MAX_END_POINTS, Operator, Order, Real, TABLE_ENDS,
    TABLE_FIXED,
};
use crate::derivative3d::cpu::{self, Beyond, Stencil};
use crate::streaming::Stores;
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
    let stores = Stores::of(&[&mut *df]);
    cpu::along(&stencil(plan, axis, order), stores, f, df);
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
    let stores = Stores::of(outputs);
    cpu::operator(&stencils, operator, stores, inputs, outputs);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape3;
    use AxisBoundary::{
        Fixed, MirrorHalfway, MirrorOnPoint, OneSided, Periodic, PeriodicWithEndpoint,
    };

    /// Which numbers does not matter, only that they differ.
    fn field<T: Real>(shape: Shape3, seed: u64) -> Vec<T> {
        let mut state = seed;
        (0..shape.nx * shape.ny * shape.nz)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                T::nearest((state >> 40) as f64 / 65_536.0)
            })
            .collect()
    }

    fn streaming_gives_what_ordinary_stores_give<T: Real>() {
        // No row begins where a line of the cache does, every row, and some.
        let shapes = [(19, 17, 23), (64, 18, 17), (40, 21, 19), (700, 18, 17)];
        for (nx, ny, nz) in shapes {
            let shape = Shape3::new(nx, ny, nz);
            let fields: Vec<Vec<T>> = (1..4).map(|seed| field(shape, seed)).collect();
            let fields: Vec<&[T]> = fields.iter().map(Vec::as_slice).collect();
            let empty = || vec![T::nearest(f64::NAN); nx * ny * nz];
            for (accuracy, boundary) in [
                (8, Periodic),
                (6, PeriodicWithEndpoint),
                (4, MirrorOnPoint),
                (2, MirrorHalfway),
                (8, Fixed(0.375)),
                (6, OneSided),
                (8, OneSided),
            ] {
                let mut plan = FiniteDifferences3d::<T>::new(shape, [0.5, 0.25, 2.0])
                    .and_then(|plan| plan.with_accuracy(accuracy))
                    .unwrap();
                for axis in Axis::ALL {
                    plan = plan.with_boundary(axis, boundary).unwrap();
                }
                for order in [Order::First, Order::Second] {
                    for axis in Axis::ALL {
                        let stencil = stencil(&plan, axis, order);
                        let [ordinary, streaming] =
                            [Stores::Ordinary, Stores::Streaming].map(|stores| {
                                let mut df = empty();
                                cpu::along(&stencil, stores, fields[0], &mut df);
                                df
                            });
                        let what = format!("{shape}, {axis:?}, {order:?}, {boundary:?}");
                        assert!(ordinary == streaming, "{what}");
                    }
                }
                for (operator, inputs, outputs) in [
                    (Operator::Gradient, 1, 3),
                    (Operator::Divergence, 3, 1),
                    (Operator::Curl, 3, 3),
                    (Operator::Laplacian, 1, 1),
                ] {
                    let stencils = Axis::ALL.map(|axis| stencil(&plan, axis, operator.order()));
                    let [ordinary, streaming] =
                        [Stores::Ordinary, Stores::Streaming].map(|stores| {
                            let mut results = vec![empty(); outputs];
                            let mut outputs: Vec<&mut [T]> =
                                results.iter_mut().map(Vec::as_mut_slice).collect();
                            let inputs = &fields[..inputs];
                            cpu::operator(&stencils, operator, stores, inputs, &mut outputs);
                            results
                        });
                    let what = format!("{shape}, {operator:?}, {boundary:?}, {accuracy}");
                    assert!(ordinary == streaming, "{what}");
                }
            }
        }
    }

    #[test]
    fn streaming_gives_what_ordinary_stores_give_in_f32() {
        streaming_gives_what_ordinary_stores_give::<f32>();
    }

    #[test]
    fn streaming_gives_what_ordinary_stores_give_in_f64() {
        streaming_gives_what_ordinary_stores_give::<f64>();
    }
}
