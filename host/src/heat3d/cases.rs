//! The kernels with data for them, for tests and benchmarks that go through the table.

use super::cpu;
use super::gpu::Kernels;
use super::heat::Heat3d;
use crate::subject::{
    Case, Entry, Expected, Problem, Random, ScalarType, Subject, buffer, buffer_mut, launching,
    periodic_and_walled, random,
};
use crate::{Buffer, Error};

/// The family.
pub(crate) struct Cases;

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "heat3d"
    }

    fn problems(&self, _entry: &Entry) -> Vec<Problem> {
        // Points, rows that are whole vectors of one type or of both, more than one block.
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
                ScalarType::F64 => case::<f64>(Heat3d::new(grid), numbers),
                _ => case::<f32>(Heat3d::new(grid), numbers),
            })
            .into())
    }
}

fn case<T: Kernels>(heat: Heat3d, numbers: &mut Random<'_>) -> Case {
    let points = heat.grid().shape().points().unwrap_or_default();
    let old = random(numbers, points, T::nearest);
    let expected = cpu::step(&heat, &old);
    Case {
        inputs: vec![Box::new(old)],
        outputs: vec![Box::new(random(numbers, points, |x| T::nearest(1e6 + x)))],
        launch: Box::new(move |inputs, outputs| {
            let old: &Buffer<T> = buffer(inputs[0].as_ref());
            let new: &mut Buffer<T> = buffer_mut(outputs[0].as_mut());
            let device = launching([old.device(), new.device()]);
            heat.plan(device)?.step([old], [new])
        }),
        expected: Expected::Bits(vec![Box::new(expected)]),
    }
}
