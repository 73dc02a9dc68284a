//! Two disc galaxies pass each other and draw out tails: galaxies.gif.
//!
//! ```sh
//! cargo run --release -p halo-examples --example galaxies                  # on the CPU
//! cargo run --release -p halo-examples --example galaxies --features gpu   # on a GPU
//! ```
//!
//! A nucleus each and a disc of light stars on circles around it, on a parabolic
//! encounter (A. and J. Toomre, "Galactic bridges and tails", ApJ 178 (1972)).

use halo_gpu::Device;
use halo_gpu::nbody::{Body, Gravity, Leapfrog};
use image::codecs::gif::{GifEncoder, Repeat};
use image::{Delay, Frame, Rgba, RgbaImage};
use indicatif::ProgressIterator;

const STARS: u32 = 1500;
const SIZE: u32 = 360;
const FRAMES: u32 = 120;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut bodies, mut velocities) = (Vec::new(), Vec::new());
    for (side, tilt) in [(-1.0_f32, 0.0_f32), (1.0, 0.9)] {
        let (place, motion) = (
            [4.5 * side, 2.0 * side, 0.0],
            [-0.28 * side, 0.08 * side, 0.0],
        );
        let mut add = |[x, y, z]: [f32; 3], [u, v, w]: [f32; 3], mass| {
            let [x, y, z] = [place[0] + x, place[1] + y, place[2] + z];
            bodies.push(Body { x, y, z, mass });
            velocities.push([motion[0] + u, motion[1] + v, motion[2] + w]);
        };
        add([0.0; 3], [0.0; 3], 1.0);
        for star in 0..STARS {
            let radius = 0.4 + 1.8 * (star as f32 / STARS as f32).sqrt();
            // By the golden angle, no two stars get close.
            let (sin, cos) = (2.399_963_2 * star as f32).sin_cos();
            let turned = |x: f32, y: f32| [x * tilt.cos(), y, x * tilt.sin()];
            let speed = radius.sqrt().recip();
            add(
                turned(radius * cos, radius * sin),
                turned(-speed * sin, speed * cos),
                1e-5,
            );
        }
    }

    let device = Device::best();
    println!("{} bodies on {}", bodies.len(), device.name());
    let mut galaxies = Leapfrog::new(Gravity::new(0.05)?, &device, &bodies, &velocities, 0.02)?;
    let mut film = GifEncoder::new_with_speed(std::fs::File::create("galaxies.gif")?, 10);
    film.set_repeat(Repeat::Infinite)?;
    for _ in (0..FRAMES).progress() {
        film.encode_frame(Frame::from_parts(
            draw(&galaxies.bodies()?),
            0,
            0,
            Delay::from_numer_denom_ms(50, 1),
        ))?;
        galaxies.advance(12)?;
    }
    println!(
        "see galaxies.gif: {} steps, time {:.1}",
        galaxies.steps(),
        galaxies.time()
    );
    Ok(())
}

/// The bodies from above: where more of them are, it is brighter.
fn draw(bodies: &[Body<f32>]) -> RgbaImage {
    let mut picture = RgbaImage::from_pixel(SIZE, SIZE, Rgba([4, 4, 16, 255]));
    for (n, body) in bodies.iter().enumerate() {
        let pixel = |x: f32| ((x / 16.0 + 0.5) * SIZE as f32).floor() as i64;
        let tint = if n < bodies.len() / 2 {
            [110, 80, 50]
        } else {
            [50, 80, 120]
        };
        let (x, y) = (pixel(body.x), pixel(-body.y));
        if let (Ok(x), Ok(y)) = (x.try_into(), y.try_into())
            && let Some(pixel) = picture.get_pixel_mut_checked(x, y)
        {
            for (channel, tint) in pixel.0.iter_mut().zip(tint) {
                *channel = channel.saturating_add(tint);
            }
        }
    }
    picture
}
