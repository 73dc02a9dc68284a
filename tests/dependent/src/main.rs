//! How long the library's calls on the CPU take from a crate that is built for debugging.
//!
//! Prints a line for each call: its name and its time in microseconds, the least of many.
//! Given the lines of another build in a file, it prints both with their ratio, and fails
//! where one takes more than [`MOST`] times as long as there.

mod kernel;
mod ranks;

use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::heat2d::Heat2d;
use halo_gpu::heat3d::Heat3d;
use halo_gpu::nbody::Gravity;
use halo_gpu::nbody::problem::Cluster;
use halo_gpu::stencil1d::Stencil1d;
use halo_gpu::wave3d::Wave3d;
use halo_gpu::{
    Axis, Device, Error, Field2, Field3, Grid3, Shape2, Shape3, heat3d, reduction, wave3d,
};
use std::time::{Duration, Instant};

/// How much longer than in a release build a call may take.
const MOST: f64 = 3.0;

/// Times `work`: the least of as many calls as fit in a moment.
fn least(mut work: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let begun = Instant::now();
    let mut least = Duration::MAX;
    let mut calls = 0;
    while calls < 5 || begun.elapsed() < Duration::from_millis(300) {
        let before = Instant::now();
        work()?;
        least = least.min(before.elapsed());
        calls += 1;
    }
    Ok(least.as_secs_f64() * 1e6)
}

fn of<T: heat3d::Kernels + wave3d::Kernels + reduction::Number>()
-> Result<Vec<(String, f64)>, Error> {
    let device = Device::cpu();
    let mut times = Vec::new();
    let mut note = |name: &str, time: Result<f64, Error>| {
        times.push((format!("{name}_{}", T::NAME), time?));
        Ok::<(), Error>(())
    };

    let shape = Shape3::new(96, 64, 64);
    let points = shape.points()?;
    let numbers: Vec<T> = (0..points).map(|n| T::nearest((n % 97) as f64)).collect();
    let grid = Grid3::new(shape, [0.1; 3])?;
    let derivatives = FiniteDifferences3d::<T>::new(&grid)?.plan(&device)?;
    let f = device.upload(&numbers)?;
    let [mut x, mut y, mut z] = [f.try_clone()?, f.try_clone()?, f.try_clone()?];
    note(
        "derivative_x",
        least(|| derivatives.derivative(Axis::X, &f, &mut x)),
    )?;
    note(
        "gradient",
        least(|| derivatives.gradient(&f, [&mut x, &mut y, &mut z])),
    )?;
    note("laplacian", least(|| derivatives.laplacian(&f, &mut x)))?;

    let plate = Field2::filled(Shape2::new(512, 512), T::nearest(1.0))?;
    let mut plate = Heat2d::dirichlet(plate.shape())?.start(&device, &plate)?;
    note("heat2d", least(|| plate.iterate(20)))?;

    let field = Field3::from_vec(shape, numbers)?;
    let mut body = Heat3d::new(grid).start(&device, &field)?;
    note("heat3d", least(|| body.steps(4)))?;
    let wave = Wave3d::new(grid, 8)?;
    let velocity = Field3::filled(shape, T::nearest(1.0))?;
    let mut waves = wave.start(&device, 0.01, &velocity, [&field, &field])?;
    note("wave3d", least(|| waves.steps(2)))?;

    let mut out = f.try_clone()?;
    let smooth = Stencil1d::symmetric(points, T::nearest(0.5), &[T::nearest(0.25)])?;
    let smooth = smooth.plan(&device)?;
    note("stencil1d", least(|| smooth.apply(&f, &mut out)))?;

    note("sum", least(|| reduction::sum(&f).map(drop)))?;
    note("argmin", least(|| reduction::argmin(&f).map(drop)))?;
    note("dot", least(|| reduction::dot(&f, &x).map(drop)))?;

    let Cluster { bodies, velocities } = Cluster::<T>::plummer(2048, 1)?;
    let gravity = Gravity::new(0.05)?;
    note(
        "nbody",
        least(|| gravity.accelerations_of(&device, &bodies).map(drop)),
    )?;
    let mut stars = gravity.start(&device, &bodies[..64], &velocities[..64], 0.01)?;
    note("leapfrog", least(|| stars.advance(20)))?;
    Ok(times)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    kernel::check()?;
    ranks::check()?;
    let mut times = of::<f32>()?;
    times.extend(of::<f64>()?);
    let Some(other) = std::env::args().nth(1) else {
        for (name, time) in times {
            println!("{name} {time:.1}");
        }
        return Ok(());
    };
    let mut slow = 0;
    let other = std::fs::read_to_string(other)?;
    for ((name, time), line) in times.iter().zip(other.lines()) {
        let (of, reference) = line.split_once(' ').ok_or("no time in a line")?;
        assert_eq!(name, of);
        let ratio = time / reference.parse::<f64>()?;
        slow += usize::from(ratio > MOST);
        println!("{name:16} {time:10.1} µs, optimised {reference:>10} µs: {ratio:.2}");
    }
    if slow > 0 {
        return Err(format!("{slow} calls take more than {MOST} times as long").into());
    }
    Ok(())
}
