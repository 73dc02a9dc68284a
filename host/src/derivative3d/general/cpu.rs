//! The CPU port's stencils, with what they use beyond the ends.
#![forbid(unsafe_code)]

use crate::Shape3;
use crate::axis::Axis;
use crate::derivative3d::cpu::{Beyond, Stencil};
use crate::derivative3d::operator::Order;
use crate::grid::Boundary;
use crate::scalar::Scalar;
use gpu_kernels::derivative3d::general::{MAX_END_POINTS, TABLE_ENDS, TABLE_FIXED, TABLE_LEN};
use std::array::from_fn;

/// The stencil along `axis`, of these weights and this boundary.
pub(super) fn stencil<T: Scalar>(
    shape: Shape3,
    axis: Axis,
    order: Order,
    radius: usize,
    boundary: Boundary,
    table: &[T; TABLE_LEN],
) -> Stencil<'_, T> {
    let n = axis.extent(shape);
    // Beyond the radius there are none to be had, nor are any used.
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

/// The point that stands for `q`, which lies beyond an end of an axis of `n` points.
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

#[cfg(test)]
mod tests {
    use super::super::FiniteDifferences3d;
    use super::*;
    use crate::derivative3d::operator::Operator;
    use crate::streaming::Stores;
    use Boundary::{Dirichlet, Neumann, NeumannHalfway, OneSided, Periodic, PeriodicWithEndpoint};

    /// Which numbers does not matter, only that they differ.
    fn field<T: Scalar>(shape: Shape3, seed: u64) -> Vec<T> {
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

    fn streaming_gives_what_ordinary_stores_give<T: Scalar>() {
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
                (4, Neumann),
                (2, NeumannHalfway),
                (8, Dirichlet(0.375)),
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
                        let stencil = plan.stencil(axis, order);
                        let [ordinary, streaming] =
                            [Stores::Ordinary, Stores::Streaming].map(|stores| {
                                let mut df = empty();
                                T::along(&stencil, stores, fields[0], &mut df);
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
                    let stencils = Axis::ALL.map(|axis| plan.stencil(axis, operator.order()));
                    let [ordinary, streaming] =
                        [Stores::Ordinary, Stores::Streaming].map(|stores| {
                            let mut results = vec![empty(); outputs];
                            let mut outputs: Vec<&mut [T]> =
                                results.iter_mut().map(Vec::as_mut_slice).collect();
                            let inputs = &fields[..inputs];
                            T::operator(&stencils, operator, stores, inputs, &mut outputs);
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
