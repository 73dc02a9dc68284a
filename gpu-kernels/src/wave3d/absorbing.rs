//! A step of a wave with an absorbing layer:
//! `((2 u - past) + (c Δt)² L u + d past) / (1 + d)`.
//!
//! Four fields in, u, what it was a step before, (c Δt)² and d, one out. As
//! [`acoustic`](super::acoustic), with two fused multiply-adds, a sum and a quotient more.

use super::acoustic::Laplacian;
use halo_stencil::{Neighbourhood, PointUpdate, Reach, Real};

// gate wave3d_absorbing*: spills = 0, stack = 0, LD = 0, ST = 0, STG.E.EF.128 >= 1

/// The step, of order `2 R` in space.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Absorbing<T, const R: usize> {
    /// L.
    pub laplacian: Laplacian<T>,
}

impl<T: Real, const R: usize> PointUpdate<T, 4, 1> for Absorbing<T, R> {
    const DIMENSIONS: usize = 3;
    const REACH: [Reach; 4] = [Reach::star(R), Reach::POINT, Reach::POINT, Reach::POINT];
    const PAST: usize = 1;

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        use halo_stencil::Value;

        let (u, past) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
        let (speed, damping) = (n.at::<2, 0, 0, 0>(), n.at::<3, 0, 0, 0>());
        let laplacian = self.laplacian.at::<N, R>(n);
        let straight = u.fused(n.splat(T::from(2.0)), past.fused(damping, -past));
        [laplacian.fused(speed, straight) / (damping + T::from(1.0))]
    }
}

macro_rules! kernels {
    ($($name:ident: $real:ident, $radius:literal, $order:literal;)+) => {$(
        halo_stencil::stencil! {
            #[doc = concat!("A step of order ", $order, " in space in `", stringify!($real), "`.")]
            pub $name: Absorbing<$real, $radius>, $real, (u, past, speed, damping) -> (next)
        }

        crate::register! {
            $name: $real, Tuned,
            concat!("a step of a wave, order ", $order, " in space, with an absorbing layer"),
            geometry: crate::marching::geometry::<$real>,
            cost: |field| crate::marching::cost::<$real>(field, 4, 1, 9 + 9 * $radius),
            example: super::EXAMPLE,
            tile: "32 accesses of 16 bytes × 8 rows",
            unmeasured: "times on a GPU are still to be taken",
        }
    )+};
}

kernels! {
    wave3d_absorbing2_f32: f32, 1, "2";
    wave3d_absorbing2_f64: f64, 1, "2";
    wave3d_absorbing4_f32: f32, 2, "4";
    wave3d_absorbing4_f64: f64, 2, "4";
    wave3d_absorbing6_f32: f32, 3, "6";
    wave3d_absorbing6_f64: f64, 3, "6";
    wave3d_absorbing8_f32: f32, 4, "8";
    wave3d_absorbing8_f64: f64, 4, "8";
}
