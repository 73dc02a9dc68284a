//! One explicit step in time of the heat equation, at the speed of memory.
//!
//! ```text
//! u_t = α ∇²u + q
//! new(i, j) = u + r ((((E + W) + (N + S)) + source(i, j)) - 4 u)      r = α Δt / h²
//! ```
//!
//! with u = old(i, j), α the diffusivity, Δt the length of the step, h the spacing of points, and
//! `source` = h² q / α; the term is absent without a source. The difference and the product with r
//! are fused multiply-adds, each rounded once. Forward in time, centred in space (LeVeque, "Finite
//! Difference Methods for Ordinary and Partial Differential Equations", SIAM 2007, sections 9.1 and
//! 9.7): of first order in Δt and second in h, and stable for r ≤ 1/4. With r = 1/4 it is an
//! iteration of [`march`](super::march) with different rounding.
//!
//! Walls and loads are those of [`march`](super::march), and so are the bytes. Predicted: copy
//! bandwidth.

use super::march::neighbours;
use halo_stencil::{Neighbourhood, PointUpdate, Reach, Real, Value};

// gate heat2d_step_*: registers <= 64, stack = 0, LD = 0, ST = 0, LDL = 0, STL = 0, LDG.E.128.CONSTANT >= 3, STG.E.EF.128 >= 1
// gate heat2d_heated_step_*: registers <= 64, stack = 0, LD = 0, ST = 0, LDL = 0, STL = 0, LDG.E.128.CONSTANT >= 4, STG.E.EF.128 >= 1

/// A step in time. 7 operations per point.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Step<T> {
    /// `α Δt / h²`.
    pub ratio: T,
}

impl<T: Real> Step<T> {
    /// The new value of the point, from the sum of its neighbours and its source.
    #[inline(always)]
    fn of<N: Neighbourhood<T>>(&self, n: &N, sum: N::Value) -> [N::Value; 1] {
        let u = n.at::<0, 0, 0, 0>();
        let change = u.fused(n.splat(T::from(-4.0)), sum);
        [change.fused(n.splat(self.ratio), u)]
    }
}

impl<T: Real> PointUpdate<T, 1, 1> for Step<T> {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 1] = [Reach::star(1)];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        self.of(n, neighbours(n))
    }
}

/// The same with a source: the fields are u and h² q / α. 8 operations per point.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HeatedStep<T> {
    /// The step without the source.
    pub step: Step<T>,
}

impl<T: Real> PointUpdate<T, 2, 1> for HeatedStep<T> {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::star(1), Reach::POINT];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        self.step.of(n, neighbours(n) + n.at::<1, 0, 0, 0>())
    }
}

halo_stencil::stencil! {
    /// One step in time in f32.
    pub heat2d_step_f32: Step<f32>, f32, (old) -> (new) within unknowns
}

halo_stencil::stencil! {
    /// One step in time in f64.
    pub heat2d_step_f64: Step<f64>, f64, (old) -> (new) within unknowns
}

halo_stencil::stencil! {
    /// One step in time with a source, in f32.
    pub heat2d_heated_step_f32: HeatedStep<f32>, f32, (old, source) -> (new) within unknowns
}

halo_stencil::stencil! {
    /// One step in time with a source, in f64.
    pub heat2d_heated_step_f64: HeatedStep<f64>, f64, (old, source) -> (new) within unknowns
}

macro_rules! registered {
    ($($name:ident: $real:ident, $computes:literal, $cost:expr;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            $computes,
            geometry: crate::registry::march_of_stencil::<$real, 2, 1>,
            cost: $cost,
            example: super::geometry::EXAMPLE,
            tile: "64 vectors × 8 rows",
        }
    )+};
}

registered! {
    heat2d_step_f32: f32, "a step in time; rows in registers, marching along y", super::geometry::step::<f32>;
    heat2d_step_f64: f64, "a step in time; rows in registers, marching along y", super::geometry::step::<f64>;
    heat2d_heated_step_f32: f32, "the same, with a source", super::geometry::heated_step::<f32>;
    heat2d_heated_step_f64: f64, "the same, with a source", super::geometry::heated_step::<f64>;
}
