//! Two disc galaxies pass each other and draw out tails: draws galaxies.gif.
//!
//! ```sh
//! cargo run --release -p halo-examples --example galaxies                  # on the CPU
//! cargo run --release -p halo-examples --example galaxies --features gpu   # on a GPU
//! ```
//!
//! A number after `--` sets the number of frames, 120 by default. The encounter is parabolic (A.
//! and J. Toomre, "Galactic bridges and tails", ApJ 178 (1972)).

use halo_gpu::Device;
use halo_gpu::nbody::problem::{Cluster, Disc};
use halo_gpu::nbody::{Body, Gravity};
use image::codecs::gif::{GifEncoder, Repeat};
use image::{Delay, Frame, Rgba, RgbaImage};
use indicatif::ProgressIterator;

const SIZE: u32 = 360;
#[rustfmt::skip]
const DISC: Disc = Disc { bodies: 1500, center: 1.0, mass: 0.015, inner: 0.4, outer: 2.2 };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gravity = Gravity::new(0.05)?;
    let galaxy = Cluster::<f32>::cold_disc(&gravity, &DISC)?;
    let left = galaxy.clone().moved([-4.5, -2.0, 0.0], [0.28, -0.08, 0.0]);
    let right = galaxy.turned(-0.9);
    let both = left.and(right.moved([4.5, 2.0, 0.0], [-0.28, 0.08, 0.0]));

    let device = Device::best();
    println!("{} bodies on {}", both.bodies.len(), device.name());
    let mut galaxies = gravity.start(&device, &both.bodies, &both.velocities, 0.02)?;
    let frames: u32 = std::env::args()
        .nth(1)
        .map_or(Ok(120), |frames| frames.parse())?;
    let mut film = GifEncoder::new_with_speed(std::fs::File::create("galaxies.gif")?, 10);
    film.set_repeat(Repeat::Infinite)?;
    for _ in (0..frames).progress() {
        let (picture, delay) = (draw(&galaxies.bodies()?), Delay::from_numer_denom_ms(50, 1));
        film.encode_frame(Frame::from_parts(picture, 0, 0, delay))?;
        galaxies.advance(12)?;
    }
    println!("see galaxies.gif: {} steps", galaxies.steps());
    Ok(())
}

/// The bodies seen from above; brighter where there are more.
fn draw(bodies: &[Body<f32>]) -> RgbaImage {
    let mut picture = RgbaImage::from_pixel(SIZE, SIZE, Rgba([4, 4, 16, 255]));
    let pixel = |x: f32| (((x / 16.0 + 0.5) * SIZE as f32).floor() as i32).cast_unsigned();
    for (n, body) in bodies.iter().enumerate() {
        let tint = [[110, 80, 50], [50, 80, 120]][2 * n / bodies.len()];
        if let Some(pixel) = picture.get_pixel_mut_checked(pixel(body.x), pixel(-body.y)) {
            for (channel, tint) in pixel.0.iter_mut().zip(tint) {
                *channel = channel.saturating_add(tint);
            }
        }
    }
    picture
}
