//! A column of water collapses in a basin: draws shallow-water.gif.
//! `cargo run --release -p halo-examples --example shallow_water`

use halo_examples::{Film, blue_white_red, draw, plane};
use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil};
use halo_gpu::{Axis, Boundary, Device, Grid2, Shape2};

/// The shallow-water equations, `∂h/∂t + ∇·m = 0` and `∂m/∂t + ∇·(m m / h) + ∇(h²/2) = 0`, by the
/// Lax–Friedrichs scheme: the depth h and the momentum m along x and y, with g = 1.
#[derive(Debug, Clone, Copy)]
pub struct ShallowWater {
    /// Δt / 2Δx; stable if no wave moves further than Δx / √2 in a step.
    ratio: f32,
}

impl PointUpdate<f32, 3, 3> for ShallowWater {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 3] = [Reach::star(1); 3];

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 3] {
        // The fluxes along an axis: of depth, of momentum along it, and of momentum across it.
        let along_x = |d| {
            let (h, m, across) = (n.along::<0, 0>(d), n.along::<1, 0>(d), n.along::<2, 0>(d));
            [m, m * m / h + h * h * 0.5, m * across / h]
        };
        let along_y = |d| {
            let (h, m, across) = (n.along::<0, 1>(d), n.along::<2, 1>(d), n.along::<1, 1>(d));
            [m, m * across / h, m * m / h + h * h * 0.5]
        };
        let (west, east, south, north) = (along_x(-1), along_x(1), along_y(-1), along_y(1));
        let flows = |q: usize| ((east[q] - west[q]) + (north[q] - south[q])) * self.ratio;
        [
            (n.pair::<0, 0>(1) + n.pair::<0, 1>(1)) * 0.25 - flows(0),
            (n.pair::<1, 0>(1) + n.pair::<1, 1>(1)) * 0.25 - flows(1),
            (n.pair::<2, 0>(1) + n.pair::<2, 1>(1)) * 0.25 - flows(2),
        ]
    }
}

halo_stencil::stencil! {
    /// A step of the water.
    pub shallow_water: ShallowWater, f32, (h, mx, my) -> (new_h, new_mx, new_my)
}

const SHAPE: Shape2 = Shape2::new(300, 220);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let column = |x: f32, y: f32| {
        if (x - 90.0).hypot(y - 80.0) < 30.0 {
            2.0
        } else {
            1.0
        }
    };
    let (h, still) = (plane(SHAPE, column), plane(SHAPE, |_, _| 0.0));
    // Walls: the surface has no slope, and there is no flow through them.
    let grid = Grid2::new(SHAPE, [1.0; 2])?.with_boundaries(Boundary::Neumann)?;
    let stencil = Stencil::new(ShallowWater { ratio: 0.2 }, grid)?
        .with_ends(1, Axis::X, [Boundary::Dirichlet(0.0); 2])?
        .with_ends(2, Axis::Y, [Boundary::Dirichlet(0.0); 2])?;
    let mut run = stencil.start(&Device::cpu(), [&h, &still, &still])?;
    let mut film = Film::create("shallow-water.gif")?;
    for _ in 0..90 {
        let h = run.to_vec(0)?;
        film.show(draw(SHAPE, |at| blue_white_red(3.0 * (1.0 - h[at]))))?;
        run.steps(8)?;
    }
    println!("see shallow-water.gif");
    Ok(())
}
