//! The kernel: reaction and diffusion of two substances, after Gray and Scott.
//!
//! `∂u/∂t = D_u ∇²u - u v² + F (1 - u)` and `∂v/∂t = D_v ∇²v + u v² - (F + k) v`,
//! in explicit steps of length 1 on a grid of spacing 1.
//! J. E. Pearson, "Complex Patterns in a Simple System", Science 261 (1993).

#![no_std]

use halo_stencil::{Neighbourhood, PointUpdate, Reach};

/// The parameters of the reaction.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Reaction {
    /// How fast u diffuses, in grid spacings squared per step.
    pub diffusion_u: f32,
    /// How fast v diffuses.
    pub diffusion_v: f32,
    /// F, the rate at which u is fed.
    pub feed: f32,
    /// k, the rate at which v decays in addition.
    pub kill: f32,
}

impl PointUpdate<f32, 2, 2> for Reaction {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::star(1); 2];

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 2] {
        let (u, v) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
        let laplacian_u = n.pair::<0, 0>(1) + n.pair::<0, 1>(1) - u * 4.0;
        let laplacian_v = n.pair::<1, 0>(1) + n.pair::<1, 1>(1) - v * 4.0;
        let eaten = u * v * v;
        let fed = (-u + 1.0) * self.feed;
        let gone = v * (self.feed + self.kill);
        [
            u + (laplacian_u * self.diffusion_u - eaten + fed),
            v + (laplacian_v * self.diffusion_v + eaten - gone),
        ]
    }
}

halo_stencil::stencil! {
    /// One step from `u`, `v` to `new_u`, `new_v`.
    pub gray_scott: Reaction, f32, (u, v) -> (new_u, new_v)
}
