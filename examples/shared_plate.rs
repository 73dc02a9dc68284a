//! A plate that several ranks share, each on a device of its own where there are as many.
//!
//! `cargo run --release -p halo-examples --example shared_plate -- 4` takes four ranks, and
//! without a number one; with `--features gpu` on GPUs. The picture `shared-plate.png` has the
//! same bits for any number.

use halo_distributed::{Decomposition, Error, heat2d, run};
use halo_gpu::Shape2;
use halo_gpu::heat2d::Heat2d;
use image::{GrayImage, Luma};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ranks = std::env::args().nth(1).map_or(Ok(1), |it| it.parse())?;
    let (nx, ny) = (320, 240);
    let plates = run(ranks, |communicator| -> Result<_, Error> {
        let heat = Heat2d::dirichlet(Shape2::new(nx, ny))?;
        let blocks = Decomposition::least_surface([nx, ny], communicator.size())?;
        let hot = |[i, j]: [usize; 2]| {
            let at_wall = i == 0 || (j == 0 && i < nx / 2);
            if at_wall { 1.0_f32 } else { 0.0 }
        };
        let device = communicator.device()?;
        let mut plate = heat2d::Plate::new(&communicator, &device, heat, blocks, 8, hot)?;
        plate.iterate(5000)?;
        plate.field()
    })?;
    let picture = GrayImage::from_fn(nx as u32, ny as u32, |i, j| {
        Luma([(255.0 * plates[0][(i as usize, ny - 1 - j as usize)]) as u8])
    });
    picture.save("shared-plate.png")?;
    println!("{ranks} ranks: shared-plate.png");
    Ok(())
}
