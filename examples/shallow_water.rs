//! A drop falls into a basin: shallow-water.png, the height of the water.
//!
//! `h_t + (hu)_x + (hv)_y = 0` and momentum, by Lax and Friedrichs's scheme, as an equation of
//! one's own: `cargo run --release -p halo-examples --example shallow_water`.

use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil};
use halo_gpu::{Boundary, Device, Grid2, Shape2};

#[derive(Debug, Clone, Copy)]
pub struct ShallowWater {
    /// Δt / (2 h), with gravity 1.
    ratio: f32,
}

impl PointUpdate<f32, 3, 3> for ShallowWater {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 3] = [Reach::star(1); 3];

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 3] {
        let fields = |i: isize, j: isize| [0, 1, 2].map(|field| n.value(field, [i, j, 0]));
        let (west, east) = (fields(-1, 0), fields(1, 0));
        let (south, north) = (fields(0, -1), fields(0, 1));
        // What flows along x, and along y: of water, of momentum along x and along y.
        let along_x = |[h, p, q]: [N::Value; 3]| [p, p * p / h + h * h * 0.5, p * q / h];
        let along_y = |[h, p, q]: [N::Value; 3]| [q, p * q / h, q * q / h + h * h * 0.5];
        let flows = [along_x(west), along_x(east), along_y(south), along_y(north)];
        [0, 1, 2].map(|at| {
            let mean = ((west[at] + east[at]) + (south[at] + north[at])) * 0.25;
            let [west, east, south, north] = flows.map(|flow| flow[at]);
            mean - ((east - west) + (north - south)) * self.ratio
        })
    }
}

halo_stencil::stencil! {
    /// A step of the water.
    pub shallow_water: ShallowWater, f32, (h, p, q) -> (new_h, new_p, new_q)
}

const N: usize = 400;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let grid = Grid2::new(Shape2::new(N, N), [1.0; 2])?.with_boundaries(Boundary::OneSided)?;
    let water = Stencil::new(ShallowWater { ratio: 0.2 }, grid)?;
    let square = |p: usize, centre: f32| (p as f32 - centre).powi(2);
    let drop = |at: usize| (-(square(at % N, 150.0) + square(at / N, 220.0)) / 300.0).exp();
    let (still, height) = (vec![0.0; N * N], (0..N * N).map(|at| 1.0 + 0.5 * drop(at)));
    let height: Vec<f32> = height.collect();
    let mut run = water.start(&Device::cpu(), [&height, &still, &still])?;
    run.steps(300)?;
    let h = run.to_vec(0)?;
    let picture = image::GrayImage::from_fn(N as u32, N as u32, |x, y| {
        image::Luma([((h[y as usize * N + x as usize] - 0.95) * 1500.0).clamp(0.0, 255.0) as u8])
    });
    picture.save("shallow-water.png")?;
    println!("see shallow-water.png");
    Ok(())
}
