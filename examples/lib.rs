//! Drawing for the examples, which are the files beside this one. The package has the dependencies
//! that the examples need and the library does not.

use halo_gpu::Shape2;
use image::codecs::gif::{GifEncoder, Repeat};
use image::{Delay, Frame, ImageResult, Rgba, RgbaImage};
use std::fs::File;

/// A GIF that repeats, 20 pictures a second.
pub struct Film(GifEncoder<File>);

impl Film {
    /// A film without a picture yet, in this file.
    ///
    /// # Errors
    ///
    /// The errors of creating and writing a file.
    pub fn create(path: &str) -> ImageResult<Self> {
        let mut film = GifEncoder::new_with_speed(File::create(path)?, 10);
        film.set_repeat(Repeat::Infinite)?;
        Ok(Self(film))
    }

    /// The next picture.
    ///
    /// # Errors
    ///
    /// The errors of writing a file.
    pub fn show(&mut self, picture: RgbaImage) -> ImageResult<()> {
        let delay = Delay::from_numer_denom_ms(50, 1);
        self.0.encode_frame(Frame::from_parts(picture, 0, 0, delay))
    }
}

/// A picture of a plane, y upwards: `colour` of each point, red, green and blue from 0 to 1.
pub fn draw(shape: Shape2, colour: impl Fn(usize) -> [f32; 3]) -> RgbaImage {
    RgbaImage::from_fn(shape.nx as u32, shape.ny as u32, |x, y| {
        let at = (shape.ny - 1 - y as usize) * shape.nx + x as usize;
        let [red, green, blue] = colour(at).map(|light| (light.clamp(0.0, 1.0) * 255.0) as u8);
        Rgba([red, green, blue, 255])
    })
}

/// Blue below 0, red above, white at 0; full at -1 and 1.
#[must_use]
pub fn blue_white_red(value: f32) -> [f32; 3] {
    [
        1.0 + value.min(0.0),
        1.0 - value.abs(),
        1.0 - value.max(0.0),
    ]
}

/// A value for each point of a plane, x fastest, of its place.
pub fn plane(shape: Shape2, value: impl Fn(f32, f32) -> f32) -> Vec<f32> {
    let rows = 0..shape.ny;
    rows.flat_map(|j| (0..shape.nx).map(move |i| (i as f32, j as f32)))
        .map(|(x, y)| value(x, y))
        .collect()
}
