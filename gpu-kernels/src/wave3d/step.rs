//! One time step of the wave: each field is read once from memory, and the new field is written over
//! the past one.

use halo_stencil::{Neighbourhood, PointUpdate, Reach, Real, Value};

/// The distance of the farthest point of the Laplacian along each axis.
pub const RADIUS: usize = 4;

/// The Laplacian, with weights for the spacings of a grid.
///
/// A fused multiply-add for each pair of neighbours, x first, the nearest first: 37 operations per
/// point.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Laplacian<T> {
    /// The weight of the point itself, summed over the axes.
    pub own: T,
    /// The weights of the neighbours at distances 1 to 4, along x, y and z.
    pub weights: [[T; RADIUS]; 3],
}

impl<T: Real> Laplacian<T> {
    /// The Laplacian of the first field.
    #[inline(always)]
    fn of<N: Neighbourhood<T>>(&self, n: &N) -> N::Value {
        let mut sum = n.at::<0, 0, 0, 0>() * self.own;
        macro_rules! add {
            ($axis:literal: $($m:literal ($($low:literal),+) ($($high:literal),+);)+) => {$({
                let both = n.at::<0, $($low),+>() + n.at::<0, $($high),+>();
                sum = both.fused(n.splat(self.weights[$axis][$m - 1]), sum);
            })+};
        }
        add! { 0: 1 (-1, 0, 0) (1, 0, 0); 2 (-2, 0, 0) (2, 0, 0); 3 (-3, 0, 0) (3, 0, 0); 4 (-4, 0, 0) (4, 0, 0); }
        add! { 1: 1 (0, -1, 0) (0, 1, 0); 2 (0, -2, 0) (0, 2, 0); 3 (0, -3, 0) (0, 3, 0); 4 (0, -4, 0) (0, 4, 0); }
        add! { 2: 1 (0, 0, -1) (0, 0, 1); 2 (0, 0, -2) (0, 0, 2); 3 (0, 0, -3) (0, 0, 3); 4 (0, 0, -4) (0, 0, 4); }
        sum
    }
}

/// A step without damping. The fields are u, u one step earlier, and (c Δt)².
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Closed<T> {
    /// The Laplacian.
    pub laplacian: Laplacian<T>,
}

impl<T: Real> PointUpdate<T, 3, 1> for Closed<T> {
    const DIMENSIONS: usize = 3;
    const REACH: [Reach; 3] = [Reach::star(RADIUS), Reach::POINT, Reach::POINT];
    const PAST: usize = 1;
    const OVER_PAST: bool = true;

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        let (u, past) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
        let on = u.fused(n.splat(T::from(2.0)), -past);
        [self.laplacian.of(n).fused(n.at::<2, 0, 0, 0>(), on)]
    }
}

/// A step with damping. With d = σ Δt / 2 the fields are u, u one step earlier, (c Δt)² / (1 + d),
/// and (1 - d) / (1 + d), which is 1 where σ is 0:
///
/// ```text
/// (new - 2 u + past) + d (new - past) = (c Δt)² L
/// ```
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Absorbing<T> {
    /// The Laplacian.
    pub laplacian: Laplacian<T>,
}

impl<T: Real> PointUpdate<T, 4, 1> for Absorbing<T> {
    const DIMENSIONS: usize = 3;
    const REACH: [Reach; 4] = [
        Reach::star(RADIUS),
        Reach::POINT,
        Reach::POINT,
        Reach::POINT,
    ];
    const PAST: usize = 1;
    const OVER_PAST: bool = true;

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        let (u, past) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
        let on = (u - past).fused(n.at::<3, 0, 0, 0>(), u);
        [self.laplacian.of(n).fused(n.at::<2, 0, 0, 0>(), on)]
    }
}

// gate wave3d_*: registers <= 128, stack = 0, LD = 0, ST = 0, LDL = 0, STL = 0, STG.E.EF.128 = 2

halo_stencil::stencil! {
    /// A step of an undamped wave, in f32.
    pub wave3d_closed_f32: Closed<f32>, f32, (u, past, courant) -> (new over past)
}

halo_stencil::stencil! {
    /// A step of an undamped wave, in f64.
    pub wave3d_closed_f64: Closed<f64>, f64, (u, past, courant) -> (new over past)
}

halo_stencil::stencil! {
    /// A step of a damped wave, in f32.
    pub wave3d_absorbing_f32: Absorbing<f32>, f32, (u, past, courant, kept) -> (new over past)
}

halo_stencil::stencil! {
    /// A step of a damped wave, in f64.
    pub wave3d_absorbing_f64: Absorbing<f64>, f64, (u, past, courant, kept) -> (new over past)
}

macro_rules! registered {
    ($($name:ident: $real:ident, $computes:literal, $fields:literal, $flops:literal;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            $computes,
            geometry: crate::registry::march_of_stencil::<$real, 3, RADIUS>,
            cost: |field| crate::registry::cost_of_stencil::<$real>(field, $fields, $flops),
            example: Problem::volume(256, 256, 256),
            tile: "32 vectors × 8 rows",
            twin: same,
        }
    )+};
}

registered! {
    wave3d_closed_f32: f32, "9 planes in registers, marching along z", 4, 41;
    wave3d_closed_f64: f64, "9 planes in registers, marching along z", 4, 41;
    wave3d_absorbing_f32: f32, "the same, with damping", 5, 42;
    wave3d_absorbing_f64: f64, "the same, with damping", 5, 42;
}
