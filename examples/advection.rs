//! A blob is carried round and spreads: advection.png.
//!
//! `c_t + v·∇c = D ∇²c`, upwind in the first derivatives, with a velocity that turns, as an
//! equation of one's own: `cargo run --release -p halo-examples --example advection`.

use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil, Value};
use halo_gpu::{Boundary, Device, Grid2, Shape2};

#[derive(Debug, Clone, Copy)]
pub struct Advection {
    /// D Δt / h²; velocities are given times Δt / h.
    diffusion: f32,
}

impl PointUpdate<f32, 3, 1> for Advection {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 3] = [Reach::star(1), Reach::POINT, Reach::POINT];

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
        let (c, none) = (n.at::<0, 0, 0, 0>(), n.splat(0.0));
        let (west, east) = (n.at::<0, -1, 0, 0>(), n.at::<0, 1, 0, 0>());
        let (south, north) = (n.at::<0, 0, -1, 0>(), n.at::<0, 0, 1, 0>());
        // From where it comes.
        let carried = |v: N::Value, before: N::Value, behind: N::Value| {
            v.larger(none) * (c - before) + v.smaller(none) * (behind - c)
        };
        let by_x = carried(n.at::<1, 0, 0, 0>(), west, east);
        let by_y = carried(n.at::<2, 0, 0, 0>(), south, north);
        let spread = ((west + east) + (south + north) - c * 4.0) * self.diffusion;
        [c - (by_x + by_y) + spread]
    }
}

halo_stencil::stencil! {
    /// A step of the blob.
    pub advection: Advection, f32, (c, vx, vy) -> (new_c)
}

const N: usize = 300;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let grid =
        Grid2::new(Shape2::new(N, N), [1.0; 2])?.with_boundaries(Boundary::Dirichlet(0.0))?;
    let stencil = Stencil::new(Advection { diffusion: 0.01 }, grid)?;
    let points = |f: fn(f32, f32) -> f32| -> Vec<f32> {
        let place = |at: usize| at as f32 - (N - 1) as f32 / 2.0;
        let all = 0..N * N;
        all.map(|at| f(place(at % N), place(at / N))).collect()
    };
    let blob = points(|x, y| (-((x - 70.0).powi(2) + y * y) / 200.0).exp());
    let (vx, vy) = (points(|_, y| -y / 400.0), points(|x, _| x / 400.0));
    let mut run = stencil.start(&Device::cpu(), [&blob, &vx, &vy])?;
    run.steps(900)?;
    let c = run.to_vec(0)?;
    let picture = image::GrayImage::from_fn(N as u32, N as u32, |x, y| {
        image::Luma([(c[y as usize * N + x as usize] * 400.0) as u8])
    });
    picture.save("advection.png")?;
    println!("see advection.png");
    Ok(())
}
