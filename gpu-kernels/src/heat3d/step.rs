//! An explicit step in time: `u + Σ r_a ((before + behind) - 2 u)` over the axes, x first.
//!
//! One field in, one out. A sum and two fused multiply-adds for each axis: 15 flops a point.

use halo_stencil::{Neighbourhood, PointUpdate, Reach, Real};

// gate heat3d_step_f32: spills = 0, stack = 0, LD = 0, ST = 0, STG.E.EF.128 >= 1
// gate heat3d_step_f64: spills = 0, stack = 0, LD = 0, ST = 0, STG.E.EF.128 >= 1

/// The step, with `α Δt / h²` along x, y and z.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Step<T> {
    /// Along each axis.
    pub ratios: [T; 3],
}

impl<T: Real> PointUpdate<T, 1, 1> for Step<T> {
    const DIMENSIONS: usize = 3;
    const REACH: [Reach; 1] = [Reach::star(1)];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        use halo_stencil::Value;

        let u = n.at::<0, 0, 0, 0>();
        let minus_two = n.splat(T::from(-2.0));
        let x = u.fused(minus_two, n.at::<0, -1, 0, 0>() + n.at::<0, 1, 0, 0>());
        let y = u.fused(minus_two, n.at::<0, 0, -1, 0>() + n.at::<0, 0, 1, 0>());
        let z = u.fused(minus_two, n.at::<0, 0, 0, -1>() + n.at::<0, 0, 0, 1>());
        let [rx, ry, rz] = self.ratios;
        [z.fused(n.splat(rz), y.fused(n.splat(ry), x.fused(n.splat(rx), u)))]
    }
}

halo_stencil::stencil! {
    /// A step in time in `f32`.
    pub heat3d_step_f32: Step<f32>, f32, (u) -> (new)
}
halo_stencil::stencil! {
    /// A step in time in `f64`.
    pub heat3d_step_f64: Step<f64>, f64, (u) -> (new)
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "an explicit step in time, 7 points, any boundary",
            geometry: crate::marching::geometry::<$real>,
            cost: |field| crate::marching::cost::<$real>(field, 1, 1, 15),
            example: super::EXAMPLE,
            tile: "32 accesses of 16 bytes × 8 rows",
            unmeasured: "times on a GPU are still to be taken",
        }
    )+};
}

registered! {
    heat3d_step_f32: f32;
    heat3d_step_f64: f64;
}
