//! Reads a field from an .npy file, differentiates it, and writes the result.
//!
//! ```sh
//! cargo run --release -p halo-examples --example npy                  # makes a wave first
//! cargo run --release -p halo-examples --example npy -- field.npy x   # or takes yours
//! ```
//!
//! The file holds float32 in C order, `array[z, y, x]`, as NumPy writes it. The spacing is 1, and
//! the field is periodic along the axis.

use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::{Axis, Device, Field3, Grid3, Shape3};
use ndarray_npy::{read_npy, write_npy};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let input = match arguments.next() {
        Some(path) => path,
        None => write_wave("wave.npy")?,
    };
    let axis = match arguments.next().as_deref() {
        None | Some("x") => Axis::X,
        Some("y") => Axis::Y,
        Some("z") => Axis::Z,
        Some(other) => return Err(format!("{other} is no axis: say x, y or z").into()),
    };

    let array: ndarray::Array3<f32> = read_npy(&input)?;
    let field = Field3::from_view(&array.view())?;
    let differences = FiniteDifferences3d::new(&Grid3::new(field.shape(), [1.0; 3])?)?;
    let device = Device::best();
    let result = differences.derivative_of(&device, axis, &field)?;

    let output = format!("{}-d{axis}.npy", input.trim_end_matches(".npy"));
    write_npy(&output, &result.view()?)?;
    println!("{input} → {output}: {} on {}", field.shape(), device.name());
    Ok(())
}

/// One period of a sine along x.
fn write_wave(path: &str) -> Result<String> {
    let shape = Shape3::new(64, 16, 16);
    let wave = |i, _, _| (std::f32::consts::TAU * i as f32 / 64.0).sin();
    write_npy(path, &Field3::from_fn(shape, wave)?.view()?)?;
    Ok(path.to_owned())
}
