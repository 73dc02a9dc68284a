//! The CPU port: row by row.
//!
//! Written from the formulas and not from the kernels, which are checked against it.
//! The order of the operations is part of the definition; it is the same whether a
//! loop goes over the points of a row or over the terms of a sum.
#![forbid(unsafe_code)]

use super::{
    Axis, AxisBoundary, FiniteDifferences3d, MAX_END_POINTS, Operator, Order, Real, TABLE_ENDS,
    TABLE_FIXED,
};
use crate::derivative3d::rows::{Sweep, for_each_row};
use crate::simd::vectorised;

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
    let stencil = Stencil::new(plan, axis, order);
    let sweep = match axis {
        Axis::X | Axis::Y => Sweep::Planes,
        Axis::Z => Sweep::AlongZ,
    };
    for_each_row(
        plan.shape(),
        sweep,
        [df],
        || (),
        |(), j, k, [row]| {
            stencil.row(f, j, k, row);
        },
    );
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
    let [x, y, z] = Axis::ALL.map(|axis| Stencil::new(plan, axis, operator.order()));
    let shape = plan.shape();
    let spare = || vec![T::ZERO; shape.nx];
    let plus = |a: T, b: T| a + b;
    let minus = |a: T, b: T| a - b;
    match (operator, inputs, outputs) {
        (Operator::Gradient, [f], [gx, gy, gz]) => {
            for_each_row(
                shape,
                Sweep::Planes,
                [gx, gy, gz],
                || (),
                |(), j, k, [gx, gy, gz]| {
                    x.row(f, j, k, gx);
                    y.row(f, j, k, gy);
                    z.row(f, j, k, gz);
                },
            );
        }
        (Operator::Divergence, [u, v, w], [out]) => {
            for_each_row(shape, Sweep::Planes, [out], spare, |more, j, k, [out]| {
                x.row(u, j, k, out);
                y.row(v, j, k, more);
                combine(out, more, plus);
                z.row(w, j, k, more);
                combine(out, more, plus);
            });
        }
        (Operator::Laplacian, [f], [out]) => {
            for_each_row(shape, Sweep::Planes, [out], spare, |more, j, k, [out]| {
                x.row(f, j, k, out);
                y.row(f, j, k, more);
                combine(out, more, plus);
                z.row(f, j, k, more);
                combine(out, more, plus);
            });
        }
        (Operator::Curl, [u, v, w], [cx, cy, cz]) => {
            for_each_row(
                shape,
                Sweep::Planes,
                [cx, cy, cz],
                spare,
                |more, j, k, [cx, cy, cz]| {
                    y.row(w, j, k, cx);
                    z.row(v, j, k, more);
                    combine(cx, more, minus);
                    z.row(u, j, k, cy);
                    x.row(w, j, k, more);
                    combine(cy, more, minus);
                    x.row(v, j, k, cz);
                    y.row(u, j, k, more);
                    combine(cz, more, minus);
                },
            );
        }
        _ => unreachable!("as many fields as the operator has"),
    }
}

/// `out = operation(out, more)`, point by point.
fn combine<T: Real>(out: &mut [T], more: &[T], operation: impl Fn(T, T) -> T) {
    for (out, more) in out.iter_mut().zip(more) {
        *out = operation(*out, *more);
    }
}

/// One derivative along one axis.
struct Stencil<'p, T> {
    plan: &'p FiniteDifferences3d<T>,
    axis: Axis,
    order: Order,
    /// A row of what lies beyond a fixed end.
    beyond: Vec<T>,
}

impl<'p, T: Real> Stencil<'p, T> {
    fn new(plan: &'p FiniteDifferences3d<T>, axis: Axis, order: Order) -> Self {
        let fixed = plan.table(axis, order)[TABLE_FIXED];
        Self {
            plan,
            axis,
            order,
            beyond: vec![fixed; plan.shape().nx],
        }
    }

    /// The derivative of row (j, k) of `f`, into `out`.
    fn row(&self, f: &[T], j: usize, k: usize, out: &mut [T]) {
        let shape = self.plan.shape();
        let row = |j: usize, k: usize| &f[(k * shape.ny + j) * shape.nx..][..shape.nx];
        match self.axis {
            Axis::X => self.along_row(row(j, k), out),
            Axis::Y => self.across_rows(j, |j| row(j, k), out),
            Axis::Z => self.across_rows(k, |k| row(j, k), out),
        }
    }

    /// Points along the axis.
    fn len(&self) -> usize {
        self.axis.extent(self.plan.shape())
    }

    /// Whether all neighbours of point `p` are points of the axis.
    fn inside(&self, p: usize) -> bool {
        let radius = self.plan.radius();
        p >= radius && p + radius < self.len()
    }

    /// Along the row itself.
    fn along_row(&self, f: &[T], out: &mut [T]) {
        let (n, radius) = (f.len(), self.plan.radius());
        let (begin, end) = if n > 2 * radius {
            (radius, n - radius)
        } else {
            (n, n)
        };
        // Near an end the neighbours are picked one by one.
        for p in (0..begin).chain(end..n) {
            let (mut sum, here) = ([T::ZERO], [f[p]]);
            self.sum(
                p,
                &here,
                |q| std::slice::from_ref(&f[q]),
                &self.beyond[..1],
                &mut sum,
            );
            out[p] = sum[0];
        }
        if begin < end {
            let shifted = |m: isize| &f[radius.wrapping_add_signed(m)..];
            self.central(shifted, &mut out[begin..end]);
        }
    }

    /// Across rows; `row(q)` is the row at point q of the axis, and `out` is at `p`.
    fn across_rows<'f>(&self, p: usize, row: impl Fn(usize) -> &'f [T], out: &mut [T])
    where
        T: 'f,
    {
        if self.inside(p) {
            self.central(|m| row(p.wrapping_add_signed(m)), out);
        } else {
            self.sum(p, row(p), &row, &self.beyond, out);
        }
    }

    /// The derivative at `p`, of rows of any length, of which some may lie beyond an
    /// end: `here` is the one at `p`.
    fn sum<'f>(
        &self,
        p: usize,
        here: &[T],
        row: impl Fn(usize) -> &'f [T],
        beyond: &[T],
        out: &mut [T],
    ) where
        T: 'f,
    {
        let table = self.plan.table(self.axis, self.order);
        let (n, radius) = (self.len(), self.plan.radius());
        if self.plan.boundary(self.axis) == AxisBoundary::OneSided {
            let (from_end, at_first) = if p < radius {
                (p, true)
            } else {
                (n - 1 - p, false)
            };
            let weights = &table[TABLE_ENDS + MAX_END_POINTS * from_end..];
            let mut first = true;
            for q in (0..2 * radius + self.order as usize).filter(|q| *q != from_end) {
                let weight = weights[q];
                let point = row(if at_first { q } else { n - 1 - q });
                for ((out, there), here) in out.iter_mut().zip(point).zip(here) {
                    let term = *there - *here;
                    *out = if first {
                        weight * term
                    } else {
                        term.multiply_add(weight, *out)
                    };
                }
                first = false;
            }
            // Seen from the other end, a first derivative has the other sign.
            if self.order == Order::First && !at_first {
                out.iter_mut().for_each(|out| *out = -*out);
            }
            return;
        }
        let at = |offset: isize| match self.image(p as isize + offset) {
            Some(q) => row(q),
            None => beyond,
        };
        for m in 1..=radius as isize {
            let (weight, ahead, behind) = (table[m as usize - 1], at(m), at(-m));
            for (i, out) in out.iter_mut().enumerate() {
                let term = match self.order {
                    Order::First => ahead[i] - behind[i],
                    Order::Second => here[i].multiply_add(T::nearest(-2.0), ahead[i] + behind[i]),
                };
                *out = if m == 1 {
                    weight * term
                } else {
                    term.multiply_add(weight, *out)
                };
            }
        }
    }

    /// The stored point that stands for point `q`; none beyond a fixed end.
    fn image(&self, q: isize) -> Option<usize> {
        let n = self.len() as isize;
        let last = n - 1;
        let image = match self.plan.boundary(self.axis) {
            _ if (0..n).contains(&q) => q,
            AxisBoundary::Periodic => q.rem_euclid(n),
            AxisBoundary::PeriodicWithEndpoint if q < 0 => q + last,
            AxisBoundary::PeriodicWithEndpoint => q - last,
            AxisBoundary::MirrorOnPoint => last - (last - q.abs()).abs(),
            AxisBoundary::MirrorHalfway if q < 0 => -q - 1,
            AxisBoundary::MirrorHalfway => last - (q - n),
            AxisBoundary::Fixed(_) => return None,
            AxisBoundary::OneSided => unreachable!("one-sided stencils stay inside"),
        };
        Some(image as usize)
    }

    /// The central stencil; `at(m)` is the row m points ahead, at least as long as `out`.
    fn central<'f>(&self, at: impl Fn(isize) -> &'f [T], out: &mut [T])
    where
        T: 'f,
    {
        match self.plan.radius() {
            1 => self.central_of::<1>(at, out),
            2 => self.central_of::<2>(at, out),
            3 => self.central_of::<3>(at, out),
            _ => self.central_of::<4>(at, out),
        }
    }

    fn central_of<'f, const R: usize>(&self, at: impl Fn(isize) -> &'f [T], out: &mut [T])
    where
        T: 'f,
    {
        let table = self.plan.table(self.axis, self.order);
        let weights: [T; R] = std::array::from_fn(|m| table[m]);
        let ahead = std::array::from_fn(|m| at(m as isize + 1));
        let behind = std::array::from_fn(|m| at(-(m as isize) - 1));
        let here = at(0);
        match self.order {
            Order::First => vectorised(
                #[inline(always)]
                || central_loop::<T, R, false>(out, weights, here, ahead, behind),
            ),
            Order::Second => vectorised(
                #[inline(always)]
                || central_loop::<T, R, true>(out, weights, here, ahead, behind),
            ),
        }
    }
}

// A function, for the reason that `simd` gives.
#[inline(always)]
fn central_loop<T: Real, const R: usize, const SECOND: bool>(
    out: &mut [T],
    weights: [T; R],
    here: &[T],
    ahead: [&[T]; R],
    behind: [&[T]; R],
) {
    let n = out.len();
    let here = &here[..n];
    let (ahead, behind) = (ahead.map(|row| &row[..n]), behind.map(|row| &row[..n]));
    for i in 0..n {
        let term = |m: usize| {
            if SECOND {
                here[i].multiply_add(T::nearest(-2.0), ahead[m][i] + behind[m][i])
            } else {
                ahead[m][i] - behind[m][i]
            }
        };
        let mut sum = weights[0] * term(0);
        for (m, weight) in weights.into_iter().enumerate().skip(1) {
            sum = term(m).multiply_add(weight, sum);
        }
        out[i] = sum;
    }
}
