//! A step of a wave: `(2 u - past) + (c Δt)² L u`.
//!
//! Three fields in, u, what it was a step before, and (c Δt)², one out. A product, three sums
//! and three fused multiply-adds for each m, and two for the time: 5 + 9 r flops a point.

use halo_stencil::{Neighbourhood, PointUpdate, Reach, Real};

// gate wave3d_acoustic*: spills = 0, stack = 0, LD = 0, ST = 0, STG.E.EF.128 >= 1

/// The weights of the Laplacian of radius `R`, at most 4.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Laplacian<T> {
    /// That of the point.
    pub centre: T,
    /// Those of the neighbours along x, y and z, the nearest first.
    pub axes: [[T; 4]; 3],
}

impl<T: Real> Laplacian<T> {
    /// L u of field 0, with neighbours up to `R` away: the point first, then the nearest
    /// neighbours, along x, y and z, then the next.
    #[inline(always)]
    pub(super) fn at<N: Neighbourhood<T>, const R: usize>(&self, n: &N) -> N::Value {
        use halo_stencil::Value;

        let mut sum = n.at::<0, 0, 0, 0>() * self.centre;
        macro_rules! distances {
            ($($m:literal)+) => {$(
                if const { R >= $m } {
                    let [x, y, z] = self.axes;
                    let pair = n.near::<0, { -$m }, 0, 0>() + n.near::<0, $m, 0, 0>();
                    sum = pair.fused(n.splat(x[$m - 1]), sum);
                    let pair = n.near::<0, 0, { -$m }, 0>() + n.near::<0, 0, $m, 0>();
                    sum = pair.fused(n.splat(y[$m - 1]), sum);
                    let pair = n.near::<0, 0, 0, { -$m }>() + n.near::<0, 0, 0, $m>();
                    sum = pair.fused(n.splat(z[$m - 1]), sum);
                }
            )+};
        }
        distances!(1 2 3 4);
        sum
    }
}

/// The step, of order `2 R` in space.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Acoustic<T, const R: usize> {
    /// L.
    pub laplacian: Laplacian<T>,
}

impl<T: Real, const R: usize> PointUpdate<T, 3, 1> for Acoustic<T, R> {
    const DIMENSIONS: usize = 3;
    const REACH: [Reach; 3] = [Reach::star(R), Reach::POINT, Reach::POINT];
    const PAST: usize = 1;

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        use halo_stencil::Value;

        let (u, past) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
        let laplacian = self.laplacian.at::<N, R>(n);
        let straight = u.fused(n.splat(T::from(2.0)), -past);
        [laplacian.fused(n.at::<2, 0, 0, 0>(), straight)]
    }
}

macro_rules! kernels {
    ($($name:ident: $real:ident, $radius:literal, $order:literal;)+) => {$(
        halo_stencil::stencil! {
            #[doc = concat!("A step of order ", $order, " in space in `", stringify!($real), "`.")]
            pub $name: Acoustic<$real, $radius>, $real, (u, past, speed) -> (next)
        }

        crate::register! {
            $name: $real, Tuned,
            concat!("a step of a wave, order ", $order, " in space, any boundary"),
            geometry: crate::marching::geometry::<$real>,
            cost: |field| crate::marching::cost::<$real>(field, 3, 1, 5 + 9 * $radius),
            example: super::EXAMPLE,
            tile: "32 accesses of 16 bytes × 8 rows",
            unmeasured: "times on a GPU are still to be taken",
        }
    )+};
}

kernels! {
    wave3d_acoustic2_f32: f32, 1, "2";
    wave3d_acoustic2_f64: f64, 1, "2";
    wave3d_acoustic4_f32: f32, 2, "4";
    wave3d_acoustic4_f64: f64, 2, "4";
    wave3d_acoustic6_f32: f32, 3, "6";
    wave3d_acoustic6_f64: f64, 3, "6";
    wave3d_acoustic8_f32: f32, 4, "8";
    wave3d_acoustic8_f64: f64, 4, "8";
}
