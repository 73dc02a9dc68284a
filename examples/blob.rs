//! A vortex carries a blob around while it spreads: draws blob.gif.
//! `cargo run --release -p halo-examples --example blob`

use halo_examples::{Film, draw, plane};
use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil};
use halo_gpu::{Boundary, Device, Grid2, Shape2};
use std::f32::consts::PI;

/// `∂c/∂t + ∂(u c)/∂x + ∂(v c)/∂y = α ∇²c` by central differences: c, u Δt / 2h, v Δt / 2h.
/// Stable for `(u² + v²) Δt ≤ 2 α` and `α Δt ≤ h² / 4`.
#[derive(Debug, Clone, Copy)]
pub struct Carried {
    /// α Δt / h².
    ratio: f32,
}

impl PointUpdate<f32, 3, 1> for Carried {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 3] = [Reach::star(1); 3];

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
        let c = n.at::<0, 0, 0, 0>();
        let east = n.at::<1, 1, 0, 0>() * n.at::<0, 1, 0, 0>();
        let west = n.at::<1, -1, 0, 0>() * n.at::<0, -1, 0, 0>();
        let north = n.at::<2, 0, 1, 0>() * n.at::<0, 0, 1, 0>();
        let south = n.at::<2, 0, -1, 0>() * n.at::<0, 0, -1, 0>();
        let spread = (n.pair::<0, 0>(1) + n.pair::<0, 1>(1) - c * 4.0) * self.ratio;
        [c - ((east - west) + (north - south)) + spread]
    }
}

halo_stencil::stencil! {
    /// A step of the transport.
    pub carried: Carried, f32, (c, u, v) -> (new)
}

const SHAPE: Shape2 = Shape2::new(200, 200);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The velocity of the stream function sin²(πx) sin²(πy), which has no flow through the walls.
    let flow = |a: f32, b: f32| {
        let [a, b] = [a, b].map(|it| (it + 0.5) * PI / 200.0);
        0.2 * a.sin().powi(2) * (2.0 * b).sin()
    };
    let (u, v) = (plane(SHAPE, flow), plane(SHAPE, |x, y| -flow(y, x)));
    let blob = plane(SHAPE, |x, y| {
        (-((x - 100.0).powi(2) + (y - 150.0).powi(2)) / 200.0).exp()
    });
    let grid = Grid2::new(SHAPE, [1.0; 2])?.with_boundaries(Boundary::NeumannHalfway)?;
    let update = Carried { ratio: 0.1 };
    let mut run = Stencil::new(update, grid)?.start(&Device::cpu(), [&blob, &u, &v])?;
    let mut film = Film::create("blob.gif")?;
    for _ in 0..100 {
        let c = run.to_vec(0)?;
        film.show(draw(SHAPE, |at| {
            [2.0, 1.0, 0.4].map(|dark| 1.0 - dark * c[at])
        }))?;
        run.steps(12)?;
    }
    let kept = run.to_vec(0)?.iter().sum::<f32>() / blob.iter().sum::<f32>();
    println!("see blob.gif: {kept:.3} of the blob is still there");
    Ok(())
}
