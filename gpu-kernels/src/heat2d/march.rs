//! One iteration at the speed of memory, of a plate with any walls, without a source or with one.
//!
//! ```text
//! new(i, j) = ((E + W) + (N + S)) * 0.25
//! new(i, j) = (((E + W) + (N + S)) + source(i, j)) * 0.25      with a source
//! at an insulated wall:  W = E at i = 0      E = W at i = nx-1
//!                        S = N at j = 0      N = S at j = ny-1
//! ```
//!
//! This is the second-order discretisation of Poisson's equation -∇²u = f with u given on the fixed
//! walls and no heat flux through the insulated ones: the central difference across the wall
//! eliminates the point beyond it (LeVeque, "Finite Difference Methods for Ordinary and Partial
//! Differential Equations", SIAM 2007, section 2.12, second approach, and section 3.2). `source` is
//! h² f, with h the spacing of points.
//!
//! Both are stencils: `halo_stencil` marches along y with rows in registers. An insulated wall is a
//! mirror on its points (`Beyond::MirrorOnPoint`); the points of a fixed wall are outside of the
//! region that a launch computes.
//!
//! Bytes: each point is read once and written once; with a source, it is read once as well. A march
//! of 2 rows reads 2 more, from the second-level cache. Predicted: copy bandwidth. Measurements:
//! `docs/tuning/heat2d.md`.

use halo_stencil::{Neighbourhood, PointUpdate, Reach, Real};

// gate heat2d_march_*: registers <= 64, stack = 0, LD = 0, ST = 0, LDL = 0, STL = 0, LDG.E.128.CONSTANT >= 3, STG.E.EF.128 >= 1, FFMA = 0, DFMA = 0
// gate heat2d_heated_f32: registers <= 64, stack = 0, LD = 0, ST = 0, LDL = 0, STL = 0, LDG.E.128.CONSTANT >= 4, STG.E.EF.128 >= 1, FFMA = 0, DFMA = 0
// gate heat2d_heated_f64: registers <= 64, stack = 0, LD = 0, ST = 0, LDL = 0, STL = 0, LDG.E.128.CONSTANT >= 4, STG.E.EF.128 >= 1, FFMA = 0, DFMA = 0

/// The sum of the four neighbours: 3 operations. The order is part of the definition.
#[inline(always)]
pub(super) fn neighbours<T: Real, N: Neighbourhood<T>>(n: &N) -> N::Value {
    let across = n.at::<0, 1, 0, 0>() + n.at::<0, -1, 0, 0>();
    let along = n.at::<0, 0, 1, 0>() + n.at::<0, 0, -1, 0>();
    across + along
}

/// A Jacobi iteration: the average of the neighbours. 4 operations per point.
#[derive(Debug, Clone, Copy)]
pub struct Jacobi;

impl<T: Real> PointUpdate<T, 1, 1> for Jacobi {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 1] = [Reach::star(1)];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        [neighbours(n) * T::from(0.25)]
    }
}

/// A Jacobi iteration with a source: the fields are u and h² f. 5 operations per point.
#[derive(Debug, Clone, Copy)]
pub struct Heated;

impl<T: Real> PointUpdate<T, 2, 1> for Heated {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::star(1), Reach::POINT];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        [(neighbours(n) + n.at::<1, 0, 0, 0>()) * T::from(0.25)]
    }
}

halo_stencil::stencil! {
    /// One iteration in f32.
    pub heat2d_march_f32: Jacobi, f32, (old) -> (new) within unknowns
}

halo_stencil::stencil! {
    /// One iteration in f64.
    pub heat2d_march_f64: Jacobi, f64, (old) -> (new) within unknowns
}

halo_stencil::stencil! {
    /// One iteration with a source, in f32.
    pub heat2d_heated_f32: Heated, f32, (old, source) -> (new) within unknowns
}

halo_stencil::stencil! {
    /// One iteration with a source, in f64.
    pub heat2d_heated_f64: Heated, f64, (old, source) -> (new) within unknowns
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
    heat2d_march_f32: f32, "rows in registers, marching along y", super::geometry::iteration::<f32>;
    heat2d_march_f64: f64, "rows in registers, marching along y", super::geometry::iteration::<f64>;
    heat2d_heated_f32: f32, "the same, with a source", super::geometry::heated::<f32>;
    heat2d_heated_f64: f64, "the same, with a source", super::geometry::heated::<f64>;
}
