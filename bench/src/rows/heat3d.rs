//! Rows of heat3d: its kernels by their cases; on the CPU steps of a mode of an insulated box by
//! the stencil.

use halo_gpu::heat3d::{Heat3d, Kernels, problem};
use halo_gpu::stencil::Stencil;
use halo_gpu::{Boundary, Device, Grid3};

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

const NAME: &str = "heat3d";

/// Added to the mode, which fades. Without it, the field would have only subnormal numbers after some
/// hundred steps, and processors compute slowly with these.
const WARM: f64 = 1.0;

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    steps::plan(NAME, device, size, |shape| {
        let grid = Grid3::new(shape, [1.0; 3])?.with_boundaries(Boundary::NeumannHalfway)?;
        // The longest stable step.
        Ok(Heat3d::new(grid))
    })
}

impl<T: Kernels> Textbook<T, 3, 1, 1> for Heat3d {
    type Update = T::Step;

    const NAME: &'static str = "heat3d, CPU port";
    const CPP: (&'static str, &'static [&'static str]) = (NAME, &["planes", "slabs"]);

    fn stencil(&self) -> Result<Stencil<T::Step, T, 3, 1, 1>, Error> {
        Ok(*self.plan(&Device::cpu())?.stencil())
    }

    fn inputs(&self) -> Result<[Vec<T>; 1], Error> {
        let mode = problem::mode::<T>(self, modes(self.grid().shape()))?;
        let warm = T::nearest(WARM);
        Ok([mode.as_slice().iter().map(|&u| u + warm).collect()])
    }

    fn exact(&self, steps: usize) -> Result<[Vec<f64>; 1], Error> {
        let modes = modes(self.grid().shape());
        let factor = problem::amplification(self, modes).powi(steps as i32);
        let mut field = problem::mode::<f64>(self, modes)?;
        let after = |u: &mut f64| *u = *u * factor + WARM;
        field.as_mut_slice().iter_mut().for_each(after);
        Ok([field.into_vec()])
    }

    /// Each operation of a step adds some; later steps do not enlarge them.
    fn roundings(steps: usize) -> f64 {
        10.0 * steps as f64
    }

    fn parameters(&self) -> Result<Vec<f64>, Error> {
        Ok(self.ratios().into())
    }
}
