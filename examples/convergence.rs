//! Plots the error of a derivative against the resolution, for orders 2 to 8, as convergence.svg.
//!
//! ```sh
//! cargo run --release -p halo-examples --example convergence                  # on the CPU
//! cargo run --release -p halo-examples --example convergence --features gpu   # on a GPU
//! ```
//!
//! f(x) = exp(sin 2πx), which has all wavelengths, on a periodic line of length 1. At order 8 the
//! error reaches the rounding errors of f64.

use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::{Axis, Device, Error, Errors, Field3, Grid3, Shape3};
use plotters::prelude::*;
use std::f64::consts::TAU;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::best();
    println!("measured orders, on {}:", device.name());
    let canvas = SVGBackend::new("convergence.svg", (800, 600)).into_drawing_area();
    canvas.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&canvas)
        .caption(
            "d/dx exp(sin 2πx): error against points",
            ("sans-serif", 20),
        )
        .margin(20)
        .x_label_area_size(45)
        .y_label_area_size(75)
        .build_cartesian_2d((8.0..2048.0).log_scale(), (1e-13..10.0).log_scale())?;
    let mut mesh = chart.configure_mesh();
    mesh.y_label_formatter(&|y| format!("{y:.0e}")).draw()?;

    for (accuracy, colour) in [(2, RED), (4, BLUE), (6, GREEN), (8, MAGENTA)] {
        let errors = (4..=10_u32)
            .map(|power| error(&device, 1 << power, accuracy))
            .collect::<Result<Vec<(f64, f64)>, Error>>()?;
        let orders = errors.windows(2).map(|pair| (pair[0].1 / pair[1].1).log2());
        let orders: Vec<String> = orders.map(|order| format!("{order:5.2}")).collect();
        println!("order {accuracy}: {}", orders.join(" "));
        chart.draw_series(errors.iter().map(|at| Circle::new(*at, 4, colour.filled())))?;
        chart
            .draw_series([PathElement::new(errors, colour.stroke_width(2))])?
            .label(format!("order {accuracy}"))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour));
    }
    let mut legend = chart.configure_series_labels();
    legend.position(SeriesLabelPosition::LowerLeft).draw()?;
    Ok(canvas.present()?)
}

/// `n`, and the largest error of the derivative on `n` points.
fn error(device: &Device, n: usize, accuracy: u32) -> Result<(f64, f64), Error> {
    let (shape, h) = (Shape3::new(n, 1, 1), 1.0 / n as f64);
    let line = FiniteDifferences3d::new(&Grid3::new(shape, [h; 3])?)?.with_accuracy(accuracy)?;
    let f = Field3::from_fn(shape, |i, _, _| (TAU * h * i as f64).sin().exp())?;
    let df = line.derivative_of(device, Axis::X, &f)?;
    let exact = |i: usize| TAU * (TAU * h * i as f64).cos() * f.as_slice()[i];
    Ok((n as f64, Errors::of(df.as_slice(), exact).max))
}
