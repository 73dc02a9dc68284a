//! A cold plate with one hot wall warms up: draws heated-plate.gif and heated-plate.png.
//!
//! ```sh
//! cargo run --release -p halo-examples --example heated_plate                  # on the CPU
//! cargo run --release -p halo-examples --example heated_plate --features gpu   # on a GPU
//! ```
//!
//! The film has more and more Jacobi iterations between frames, because the heat spreads ever more
//! slowly. The picture shows the plate when an iteration hardly changes it.

use halo_examples::{Film, draw};
use halo_gpu::heat2d::{Heat2d, problem};
use halo_gpu::{Device, Field2, Shape2};
use image::RgbaImage;
use indicatif::ProgressIterator;

const SHAPE: Shape2 = Shape2::new(240, 160);
const FRAMES: usize = 60;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best();
    println!("{SHAPE} points on {}", device.name());
    let initial = problem::hot_left_wall::<f32>(SHAPE)?;
    let mut plate = Heat2d::dirichlet(SHAPE)?.start(&device, &initial)?;

    let mut film = Film::create("heated-plate.gif")?;
    for frame in (0..FRAMES).progress() {
        film.show(picture(&plate.field()?))?;
        plate.iterate(1 + frame * frame / 8)?;
    }
    let outcome = plate.iterate_until(1e-6, 500, 100_000)?;
    picture(&plate.field()?).save("heated-plate.png")?;
    println!(
        "see heated-plate.gif and heated-plate.png: {} iterations, the last changed {:.1e}",
        plate.iterations(),
        outcome.change
    );
    Ok(())
}

/// Colours from 0 to 1: black, red, yellow, white, with a contour at every tenth.
fn picture(plate: &Field2<f32>) -> RgbaImage {
    draw(SHAPE, |index| {
        let at = plate.as_slice()[index];
        let on_contour = at > 0.02 && (at * 10.0).fract() < 0.06;
        [0.0, 0.33, 0.66].map(|from| {
            let light = ((at - from) * 3.0).clamp(0.0, 1.0);
            light * if on_contour { 0.59 } else { 1.0 }
        })
    })
}
