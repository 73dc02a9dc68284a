//! A bang above layered rock: sound.gif, a cut through the wave in space.
//!
//! `u_tt = c² ∇²u`, of the 8th order in space, with absorbing layers at the ends:
//! `cargo run --release -p halo-examples --example sound` (`--features gpu` on a GPU).

use halo_gpu::wave3d::Wave3d;
use halo_gpu::{Boundary, Device, Field3, Grid3, Shape3};
use image::codecs::gif::{GifEncoder, Repeat};
use image::{Delay, Frame, Rgba, RgbaImage};
use indicatif::ProgressIterator;

/// Points 10 m apart: 1.6 km wide, 1.2 km deep.
const SHAPE: Shape3 = Shape3::new(160, 64, 120);

/// Metres per second at a depth: water, sediment, rock with a slope.
fn velocity(i: usize, k: usize) -> f32 {
    match k {
        0..40 => 1500.0,
        _ if k < 70 + i / 8 => 2200.0,
        _ => 3600.0,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best();
    println!("{SHAPE} points on {}", device.name());
    let grid = Grid3::new(SHAPE, [10.0; 3])?.with_boundaries(Boundary::Dirichlet(0.0))?;
    let wave = Wave3d::new(grid, 0.001)?
        .with_accuracy(8)?
        .with_absorbing_layer(16, 1e-4)?;
    let bang = Field3::from_fn(SHAPE, |i, j, k| {
        let square = |p: usize, centre: f32| (p as f32 - centre).powi(2);
        (-(square(i, 60.0) + square(j, 31.5) + square(k, 28.0)) / 8.0).exp()
    })?;
    let layers = Field3::from_fn(SHAPE, |i, _, k| velocity(i, k))?;
    let mut sound = wave.start(&device, &layers, &bang)?;

    let mut film = GifEncoder::new_with_speed(std::fs::File::create("sound.gif")?, 10);
    film.set_repeat(Repeat::Infinite)?;
    for _ in (0..60_u32).progress() {
        let delay = Delay::from_numer_denom_ms(60, 1);
        film.encode_frame(Frame::from_parts(draw(&sound.field()?), 0, 0, delay))?;
        sound.steps(8)?;
    }
    println!("see sound.gif: {:.2} s of a wave", sound.time());
    Ok(())
}

/// Red above 0, blue below, over layers in grey.
fn draw(wave: &Field3<f32>) -> RgbaImage {
    RgbaImage::from_fn(SHAPE.nx as u32, SHAPE.nz as u32, |x, z| {
        let (i, k) = (x as usize, z as usize);
        let (rock, u) = (250.0 - velocity(i, k) / 40.0, wave[(i, 31, k)] * 4000.0);
        let shade = |less: f32| (rock - less.max(0.0)).clamp(0.0, 255.0) as u8;
        Rgba([shade(-u), shade(u.abs()), shade(u), 255])
    })
}
