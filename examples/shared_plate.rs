//! Iterates a plate that several ranks share; each has its own device if there are enough.
//!
//! `cargo run --release -p halo-examples --example shared_plate -- 4` runs four ranks as threads.
//! Without the number, the ranks are the processes of an MPI launcher (with `--features mpi`), or
//! there is one rank. With `--features gpu` it runs on GPUs. The picture `shared-plate.png` has the
//! same bits for any number of ranks.

use halo_distributed::{Communicator, Decomposition, Error, heat2d, run};
use halo_gpu::heat2d::Heat2d;
use halo_gpu::{Field2, Shape2};
use image::{GrayImage, Luma};

const NX: usize = 320;
const NY: usize = 240;

/// The rank, and the whole plate after the iterations.
fn plate(communicator: Communicator) -> Result<(usize, Field2<f32>), Error> {
    let heat = Heat2d::dirichlet(Shape2::new(NX, NY))?;
    let blocks = Decomposition::least_surface([NX, NY], communicator.size())?;
    let hot = |[i, j]: [usize; 2]| {
        let at_wall = i == 0 || (j == 0 && i < NX / 2);
        if at_wall { 1.0 } else { 0.0 }
    };
    let device = communicator.device()?;
    let mut plate = heat2d::Plate::new(&communicator, &device, heat, blocks, 8, hot)?;
    plate.iterate(5000)?;
    Ok((communicator.rank(), plate.field()?))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plates = match std::env::args().nth(1) {
        Some(threads) => run(threads.parse()?, plate)?,
        None => vec![plate(Communicator::from_launcher()?)?],
    };
    // Every rank has the whole plate; the first one draws it.
    if let (0, plate) = &plates[0] {
        let picture = GrayImage::from_fn(NX as u32, NY as u32, |i, j| {
            Luma([(255.0 * plate[(i as usize, NY - 1 - j as usize)]) as u8])
        });
        picture.save("shared-plate.png")?;
    }
    Ok(())
}
