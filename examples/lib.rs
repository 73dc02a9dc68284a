//! Draws pictures and films for the examples, which are the files beside this one. The package has
//! the dependencies that only the examples need.

use halo_gpu::Shape2;
use image::codecs::gif::{GifEncoder, Repeat};
use image::{Delay, Frame, ImageResult, Rgba, RgbaImage};
use std::fs::File;

/// A GIF that repeats, with 20 frames per second.
pub struct Film(GifEncoder<File>);

impl Film {
    /// Creates the file of a film without frames.
    ///
    /// # Errors
    ///
    /// The errors of creating and writing a file.
    pub fn create(path: &str) -> ImageResult<Self> {
        let mut film = GifEncoder::new_with_speed(File::create(path)?, 10);
        film.set_repeat(Repeat::Infinite)?;
        Ok(Self(film))
    }

    /// Adds a frame.
    ///
    /// # Errors
    ///
    /// The errors of writing a file.
    pub fn show(&mut self, picture: RgbaImage) -> ImageResult<()> {
        let delay = Delay::from_numer_denom_ms(50, 1);
        self.0.encode_frame(Frame::from_parts(picture, 0, 0, delay))
    }
}

/// A picture of a plane, y upwards. `colour` returns red, green and blue, from 0 to 1, of each
/// point.
pub fn draw(shape: Shape2, colour: impl Fn(usize) -> [f32; 3]) -> RgbaImage {
    RgbaImage::from_fn(shape.nx as u32, shape.ny as u32, |x, y| {
        let at = (shape.ny - 1 - y as usize) * shape.nx + x as usize;
        let [red, green, blue] = colour(at).map(|light| (light.clamp(0.0, 1.0) * 255.0) as u8);
        Rgba([red, green, blue, 255])
    })
}

/// Blue below 0, white at 0, red above 0; saturated at -1 and 1.
#[must_use]
pub fn blue_white_red(value: f32) -> [f32; 3] {
    [
        1.0 + value.min(0.0),
        1.0 - value.abs(),
        1.0 - value.max(0.0),
    ]
}

/// The results of `value` at the coordinates of each point of a plane, x fastest.
pub fn plane(shape: Shape2, value: impl Fn(f32, f32) -> f32) -> Vec<f32> {
    let rows = 0..shape.ny;
    rows.flat_map(|j| (0..shape.nx).map(move |i| (i as f32, j as f32)))
        .map(|(x, y)| value(x, y))
        .collect()
}
