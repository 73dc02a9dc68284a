//! The kernels for heat in space with test data, for tests and benchmarks that iterate over the
//! table.

use super::cpu;
use super::gpu::Kernels;
use super::heat::Heat3d;
use crate::Error;
use crate::subject::{
    Case, Entry, Expected, Problem, Random, ScalarType, Subject, Values, buffer, buffer_mut,
    launching, periodic_and_walled, random,
};

/// The family of heat in space.
pub(crate) struct Cases;

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "heat3d"
    }

    fn problems(&self, _entry: &Entry) -> Vec<Problem> {
        // Single points, rows that are whole vectors of one type or of both, and more than one
        // block.
        [
            [1, 1, 1],
            [2, 3, 2],
            [4, 1, 3],
            [7, 5, 4],
            [32, 2, 9],
            [64, 9, 17],
            [130, 10, 9],
        ]
        .map(|[nx, ny, nz]| Problem::volume(nx, ny, nz))
        .to_vec()
    }

    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        numbers: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error> {
        Ok(periodic_and_walled(problem, numbers)?
            .map(|grid| match entry.scalar {
                ScalarType::F64 => case::<f64>(entry, Heat3d::new(grid), numbers),
                _ => case::<f32>(entry, Heat3d::new(grid), numbers),
            })
            .into())
    }
}

fn case<T: Kernels>(entry: &Entry, heat: Heat3d, numbers: &mut Random<'_>) -> Case {
    let points = heat.grid().shape().points().unwrap_or_default();
    let heated = entry.variant == "heated";
    let inputs: Vec<Vec<T>> = (0..1 + usize::from(heated))
        .map(|_| random(numbers, points, T::nearest))
        .collect();
    let expected = cpu::step(&heat, &inputs);
    let inputs = inputs
        .into_iter()
        .map(|field| Box::new(field) as Box<dyn Values>);
    Case {
        inputs: inputs.collect(),
        outputs: vec![Box::new(random(numbers, points, |x| T::nearest(1e6 + x)))],
        launch: Box::new(move |inputs, outputs| {
            let old = buffer::<T>(inputs[0].as_ref());
            let new = buffer_mut::<T>(outputs[0].as_mut());
            if heated {
                let heating = buffer::<T>(inputs[1].as_ref());
                let device = launching([old.device(), heating.device(), new.device()]);
                heat.plan_heated(device)?.step([old, heating], [new])
            } else {
                let device = launching([old.device(), new.device()]);
                heat.plan(device)?.step([old], [new])
            }
        }),
        expected: Expected::Bits(vec![Box::new(expected)]),
    }
}
