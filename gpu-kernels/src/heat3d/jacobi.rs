//! A Jacobi iteration: `Σ w_a (before + behind) + w f` over the axes, x first.
//!
//! Two fields in, u and f, one out. Three sums, a product and three fused multiply-adds: 10
//! flops a point.

use halo_stencil::{Neighbourhood, PointUpdate, Reach, Real};

// gate heat3d_jacobi_f32: spills = 0, stack = 0, LD = 0, ST = 0, STG.E.EF.128 >= 1
// gate heat3d_jacobi_f64: spills = 0, stack = 0, LD = 0, ST = 0, STG.E.EF.128 >= 1

/// The iteration, with `w_a = w / h_a²` and `w = 1 / (2 / h_x² + 2 / h_y² + 2 / h_z²)`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Jacobi<T> {
    /// `w_a` along x, y and z.
    pub weights: [T; 3],
    /// `w`.
    pub source: T,
}

impl<T: Real> PointUpdate<T, 2, 1> for Jacobi<T> {
    const DIMENSIONS: usize = 3;
    const REACH: [Reach; 2] = [Reach::star(1), Reach::POINT];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        use halo_stencil::Value;

        let x = n.at::<0, -1, 0, 0>() + n.at::<0, 1, 0, 0>();
        let y = n.at::<0, 0, -1, 0>() + n.at::<0, 0, 1, 0>();
        let z = n.at::<0, 0, 0, -1>() + n.at::<0, 0, 0, 1>();
        let [wx, wy, wz] = self.weights;
        let sum = z.fused(n.splat(wz), y.fused(n.splat(wy), x * wx));
        [n.at::<1, 0, 0, 0>().fused(n.splat(self.source), sum)]
    }
}

halo_stencil::stencil! {
    /// A Jacobi iteration in `f32`.
    pub heat3d_jacobi_f32: Jacobi<f32>, f32, (u, f) -> (new)
}
halo_stencil::stencil! {
    /// A Jacobi iteration in `f64`.
    pub heat3d_jacobi_f64: Jacobi<f64>, f64, (u, f) -> (new)
}

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "a Jacobi iteration with a source, 7 points, any boundary",
            geometry: crate::marching::geometry::<$real>,
            cost: |field| crate::marching::cost::<$real>(field, 2, 1, 10),
            example: super::EXAMPLE,
            tile: "32 accesses of 16 bytes × 8 rows",
            unmeasured: "times on a GPU are still to be taken",
        }
    )+};
}

registered! {
    heat3d_jacobi_f32: f32;
    heat3d_jacobi_f64: f64;
}
