//! A wave passes through layers of different velocities: draws layers.gif.
//! `cargo run --release -p halo-examples --example layers`

use halo_examples::{Film, blue_white_red, draw, plane};
use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil};
use halo_gpu::{Boundary, Device, Grid2, Shape2};

/// `∂²u/∂t² = c² ∇²u`, 4th order in space. Inputs: u, u one step earlier, and (c Δt / h)².
#[derive(Debug, Clone, Copy)]
pub struct Wave;

impl PointUpdate<f32, 3, 1> for Wave {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 3] = [Reach::star(2), Reach::POINT, Reach::POINT];
    const PAST: usize = 1;
    const OVER_PAST: bool = true;

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
        let (u, past) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
        let near = n.pair::<0, 0>(1) + n.pair::<0, 1>(1);
        let far = n.pair::<0, 0>(2) + n.pair::<0, 1>(2);
        let laplacian = (near * 16.0 - far - u * 60.0) / 12.0;
        [(u * 2.0 - past) + n.at::<2, 0, 0, 0>() * laplacian]
    }
}

halo_stencil::stencil! {
    /// A step of the wave.
    pub wave: Wave, f32, (u, past, courant) -> (new over past)
}

const SHAPE: Shape2 = Shape2::new(320, 240);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Slow above and fast below; stable up to 3/8. The upper interface is inclined.
    let courant = plane(SHAPE, |x, y| match y {
        y if y > 150.0 + 0.12 * x => 0.07,
        y if y > 75.0 => 0.16,
        _ => 0.35,
    });
    let pulse = plane(SHAPE, |x, y| {
        (-((x - 160.0).powi(2) + (y - 215.0).powi(2)) / 30.0).exp()
    });
    let grid = Grid2::new(SHAPE, [1.0; 2])?.with_boundaries(Boundary::NeumannHalfway)?;
    let mut run = Stencil::new(Wave, grid)?.start(&Device::cpu(), [&pulse, &pulse, &courant])?;
    let mut film = Film::create("layers.gif")?;
    for _ in 0..90 {
        let u = run.to_vec(0)?;
        film.show(draw(SHAPE, |at| {
            blue_white_red(6.0 * u[at]).map(|light| light * (1.15 - 0.6 * courant[at].sqrt()))
        }))?;
        run.steps(8)?;
    }
    println!("see layers.gif: {} steps", run.steps_taken());
    Ok(())
}
