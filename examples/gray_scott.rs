//! Two substances that react and diffuse form a pattern: draws gray-scott.png.
//! `cargo run --release -p halo-examples --example gray_scott`

use halo_examples::{draw, plane};
use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil};
use halo_gpu::{Device, Grid2, Shape2};

/// Gray and Scott's reaction (Pearson, "Complex patterns in a simple system", Science 261
/// (1993)): `∂u/∂t = 2D ∇²u - u v² + F (1 - u)`, `∂v/∂t = D ∇²v + u v² - (F + k) v`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct GrayScott {
    diffusion: f32,
    feed: f32,
    kill: f32,
}

impl PointUpdate<f32, 2, 2> for GrayScott {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::star(1); 2];

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 2] {
        let (u, v) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
        let spread_u = (n.pair::<0, 0>(1) + n.pair::<0, 1>(1) - u * 4.0) * (2.0 * self.diffusion);
        let spread_v = (n.pair::<1, 0>(1) + n.pair::<1, 1>(1) - v * 4.0) * self.diffusion;
        let reacting = u * v * v;
        [
            u + (spread_u - reacting + (-u + 1.0) * self.feed),
            v + (spread_v + reacting - v * (self.feed + self.kill)),
        ]
    }
}

halo_stencil::stencil! {
    /// A step of the reaction.
    pub gray_scott: GrayScott, f32, (u, v) -> (new_u, new_v)
}

const SHAPE: Shape2 = Shape2::new(256, 192);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (diffusion, feed, kill) = (0.08, 0.037, 0.06);
    let reaction = GrayScott {
        diffusion,
        feed,
        kill,
    };
    // Three spots of v in u.
    let spot = |x: f32, y: f32, at: [f32; 2]| (x - at[0]).hypot(y - at[1]) < 7.0;
    let spots = |x, y| {
        [[60.0, 50.0], [180.0, 120.0], [90.0, 140.0]]
            .map(|at| spot(x, y, at))
            .contains(&true)
    };
    let u = plane(SHAPE, |x, y| if spots(x, y) { 0.5 } else { 1.0 });
    let v = plane(SHAPE, |x, y| if spots(x, y) { 0.25 } else { 0.0 });
    let grid = Grid2::new(SHAPE, [1.0; 2])?;
    let mut run = Stencil::new(reaction, grid)?.start(&Device::cpu(), [&u, &v])?;
    run.steps(8000)?;
    let v = run.to_vec(1)?;
    let colour = |v: f32| [2.5 * v - 0.3, 2.5 * v, 0.25 + 1.5 * v];
    draw(SHAPE, |at| colour(v[at])).save("gray-scott.png")?;
    println!("see gray-scott.png: {} steps", run.steps_taken());
    Ok(())
}
