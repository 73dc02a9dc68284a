//! One step of heat in three dimensions: each point is read once from memory and written once.

use halo_stencil::{Neighbourhood, PointUpdate, Reach, Real, Value};

/// A step in time, or a Jacobi iteration.
///
/// The contribution of each axis is added by a fused multiply-add, x first: 15 operations per
/// point.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Step<T> {
    /// `α Δt / h²` along x, y and z.
    pub ratios: [T; 3],
}

impl<T: Real> PointUpdate<T, 1, 1> for Step<T> {
    const DIMENSIONS: usize = 3;
    const REACH: [Reach; 1] = [Reach::star(1)];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        let u = n.at::<0, 0, 0, 0>();
        let twice = n.splat(T::from(-2.0));
        let along_x = u.fused(twice, n.at::<0, -1, 0, 0>() + n.at::<0, 1, 0, 0>());
        let along_y = u.fused(twice, n.at::<0, 0, -1, 0>() + n.at::<0, 0, 1, 0>());
        let along_z = u.fused(twice, n.at::<0, 0, 0, -1>() + n.at::<0, 0, 0, 1>());
        let new = along_x.fused(n.splat(self.ratios[0]), u);
        let new = along_y.fused(n.splat(self.ratios[1]), new);
        [along_z.fused(n.splat(self.ratios[2]), new)]
    }
}

/// The same with a source of heat: the fields are u and Δt q, the amount that a step adds at each
/// point.
///
/// 16 operations per point.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Heated<T> {
    /// The step without the source.
    pub step: Step<T>,
}

impl<T: Real> PointUpdate<T, 2, 1> for Heated<T> {
    const DIMENSIONS: usize = 3;
    const REACH: [Reach; 2] = [Reach::star(1), Reach::POINT];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        let [new] = self.step.update(n);
        [new + n.at::<1, 0, 0, 0>()]
    }
}

// gate heat3d_heated_*: registers <= 64, stack = 0, LD = 0, ST = 0, LDL = 0, STL = 0, LDG.E.128.CONSTANT >= 7, STG.E.EF.128 = 2
// gate heat3d_step_*: registers <= 64, stack = 0, LD = 0, ST = 0, LDL = 0, STL = 0, LDG.E.128.CONSTANT >= 6, STG.E.EF.128 = 2

halo_stencil::stencil! {
    /// A step of heat in space, in f32.
    pub heat3d_step_f32: Step<f32>, f32, (u) -> (new)
}

halo_stencil::stencil! {
    /// A step of heat in space, in f64.
    pub heat3d_step_f64: Step<f64>, f64, (u) -> (new)
}

halo_stencil::stencil! {
    /// A step of heat in space with a source, in f32.
    pub heat3d_heated_f32: Heated<f32>, f32, (u, heating) -> (new)
}

halo_stencil::stencil! {
    /// A step of heat in space with a source, in f64.
    pub heat3d_heated_f64: Heated<f64>, f64, (u, heating) -> (new)
}

macro_rules! registered {
    ($($name:ident: $real:ident, $computes:literal, $fields:literal, $flops:literal $(, $twin:ident)?;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            $computes,
            geometry: crate::registry::march_of_stencil::<$real, 3, 1>,
            cost: |body| crate::registry::cost_of_stencil::<$real>(body, $fields, $flops),
            example: Problem::volume(256, 256, 256),
            tile: "32 vectors × 8 rows",
            $(twin: $twin,)?
        }
    )+};
}

registered! {
    heat3d_step_f32: f32, "planes in registers, marching along z", 2, 15, same;
    heat3d_step_f64: f64, "planes in registers, marching along z", 2, 15, same;
    heat3d_heated_f32: f32, "the same, with a source", 3, 16;
    heat3d_heated_f64: f64, "the same, with a source", 3, 16;
}
