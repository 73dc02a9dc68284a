//! Compares the kernel with the formula, point by point.

use halo_gpu::{Device, EmulatorOptions, Error};
use own_kernel_kernels::Reaction;

const REACTION: Reaction = Reaction {
    diffusion_u: 0.16,
    diffusion_v: 0.08,
    feed: 0.05,
    kill: 0.06,
};

/// The GPU (or else the emulator), an emulator that runs every launch in several thread orders and
/// compares the results, and the CPU.
fn devices() -> Result<[Device; 3], Error> {
    let verifying = EmulatorOptions {
        verify: true,
        ..EmulatorOptions::default()
    };
    Ok([
        own_kernel::device()?,
        Device::emulator_with(verifying),
        Device::cpu(),
    ])
}

/// One step of the formula, in double precision.
fn step(nx: usize, u: &[f32], v: &[f32]) -> Vec<[f64; 2]> {
    let ny = u.len() / nx;
    let value = |field: &[f32], i: usize, j: usize| f64::from(field[(j % ny) * nx + i % nx]);
    let laplacian = |field: &[f32], i: usize, j: usize| {
        let across = value(field, i + 1, j) + value(field, i + nx - 1, j);
        let along = value(field, i, j + 1) + value(field, i, j + ny - 1);
        across + along - 4.0 * value(field, i, j)
    };
    (0..u.len())
        .map(|n| (n % nx, n / nx))
        .map(|(i, j)| {
            let (u0, v0) = (value(u, i, j), value(v, i, j));
            let [du, dv] = [REACTION.diffusion_u, REACTION.diffusion_v].map(f64::from);
            let [feed, kill] = [REACTION.feed, REACTION.kill].map(f64::from);
            [
                u0 + du * laplacian(u, i, j) - u0 * v0 * v0 + feed * (1.0 - u0),
                v0 + dv * laplacian(v, i, j) + u0 * v0 * v0 - (feed + kill) * v0,
            ]
        })
        .collect()
}

#[test]
fn one_step_is_that_of_the_formula() -> Result<(), Error> {
    for device in devices()? {
        for (nx, ny) in [(1, 1), (1, 5), (16, 16), (17, 15), (33, 50)] {
            let wave = |n: usize, by: f32| (n as f32 * by).sin().abs();
            let u: Vec<f32> = (0..nx * ny).map(|n| wave(n, 0.7)).collect();
            let v: Vec<f32> = (0..nx * ny).map(|n| wave(n, 1.3)).collect();
            let mut dish = own_kernel::dish(&device, REACTION, nx, &u, &v)?;
            dish.steps(1)?;
            let [new_u, new_v] = [dish.to_vec(0)?, dish.to_vec(1)?];
            for (n, expected) in step(nx, &u, &v).into_iter().enumerate() {
                for (found, expected) in [new_u[n], new_v[n]].into_iter().zip(expected) {
                    let error = (f64::from(found) - expected).abs();
                    // A dozen roundings of values below 4.
                    assert!(
                        error <= 4.0 * 12.0 * f64::from(f32::EPSILON),
                        "{nx} × {ny}, {n}"
                    );
                }
            }
        }
    }
    Ok(())
}
