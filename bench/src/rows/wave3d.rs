//! Rows of wave3d: its kernels by their cases; on the CPU steps of 8th order of a standing wave
//! in a periodic box by the stencil.

use halo_gpu::stencil::{Number, Stencil};
use halo_gpu::wave3d::{Kernels, Wave3d, problem};
use halo_gpu::{Device, Field3, Grid3};

use crate::row::{Family, Plan};
use crate::size::Size;
use super::steps::{self, Textbook, modes};
use crate::error::Error;

pub(super) const FAMILY: Family = Family {
    name: NAME,
    plan,
    sizes: &["128", "256", "512"],
    cpu_sizes: &["64", "256"],
    cpu_comparison: &["32", "64", "128", "256"],
    small: "20x21x22",
};

const NAME: &str = "wave3d";

const ORDER: u32 = 8;

const VELOCITY: f64 = 1.0;

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    steps::plan(NAME, device, size, |shape| {
        Wave3d::new(Grid3::new(shape, [1.0; 3])?, ORDER)
    })
}

/// Half the longest stable step.
fn time_step(wave: &Wave3d) -> f64 {
    0.5 * wave.longest_step(VELOCITY)
}

/// The standing wave after this many steps.
fn after<T: Number>(wave: &Wave3d, steps: f64) -> Result<Field3<T>, Error> {
    let (modes, time_step) = (modes(wave.grid().shape()), time_step(wave));
    let frequency = problem::frequency_on_grid(wave, modes, VELOCITY, time_step);
    Ok(problem::mode(wave, modes, (frequency * steps * time_step).cos())?)
}

impl<T: Kernels> Textbook<T, 3, 3, 1> for Wave3d {
    type Update = T::Closed;

    const NAME: &'static str = "wave3d, CPU port";
    const CPP: (&'static str, &'static [&'static str]) = (NAME, &["planes", "slabs"]);

    fn stencil(&self) -> Result<Stencil<T::Closed, T, 3, 3, 1>, Error> {
        Ok(*self.plan(&Device::cpu())?.stencil())
    }

    fn inputs(&self) -> Result<[Vec<T>; 3], Error> {
        let velocity = Field3::filled(self.grid().shape(), T::nearest(VELOCITY))?;
        Ok([
            after(self, 0.0)?.into_vec(),
            after(self, -1.0)?.into_vec(),
            self.coefficients(time_step(self), &velocity)?,
        ])
    }

    fn exact(&self, steps: usize) -> Result<[Vec<f64>; 1], Error> {
        Ok([after(self, steps as f64)?.into_vec()])
    }

    /// Each operation of a step adds some, which then travel as waves.
    fn roundings(steps: usize) -> f64 {
        10.0 * (steps * steps) as f64
    }

    fn parameters(&self) -> Result<Vec<f64>, Error> {
        let stencil = Textbook::<f64, 3, 3, 1>::stencil(self)?;
        let laplacian = stencil.update().laplacian;
        let weights = laplacian.weights.iter().flatten().copied();
        Ok([laplacian.own].into_iter().chain(weights).collect())
    }
}
