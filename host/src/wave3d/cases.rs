//! The wave kernels with test data, for tests and benchmarks that iterate over the table.

use super::cpu;
use super::gpu::Kernels;
use super::wave::Wave3d;
use crate::Error;
use crate::subject::{
    Case, Entry, Expected, Problem, Random, ScalarType, Subject, Values, buffer, buffer_mut,
    launching, periodic_and_walled, random,
};

/// The family of waves.
pub(crate) struct Cases;

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "wave3d"
    }

    fn problems(&self, _entry: &Entry) -> Vec<Problem> {
        // Single points, rows that are whole vectors of one type or of both, and more than one
        // block.
        [
            [1, 1, 1],
            [2, 3, 2],
            [4, 1, 3],
            [7, 5, 4],
            [32, 11, 9],
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
        let [periodic, walled] = periodic_and_walled(problem, numbers)?;
        let waves = [Wave3d::new(periodic, 4)?, Wave3d::new(walled, 8)?];
        Ok(waves
            .map(|wave| match entry.scalar {
                ScalarType::F64 => case::<f64>(entry, wave, numbers),
                _ => case::<f32>(entry, wave, numbers),
            })
            .into())
    }
}

fn case<T: Kernels>(entry: &Entry, wave: Wave3d, numbers: &mut Random<'_>) -> Case {
    let points = wave.grid().shape().points().unwrap_or_default();
    let absorbing = entry.variant == "absorbing";
    let mut inputs: Vec<Vec<T>> = (0..3 + usize::from(absorbing))
        .map(|_| random(numbers, points, T::nearest))
        .collect();
    let expected = cpu::step(&wave, &inputs);
    let past = inputs.remove(1);
    let inputs = inputs
        .into_iter()
        .map(|field| Box::new(field) as Box<dyn Values>);
    Case {
        inputs: inputs.collect(),
        outputs: vec![Box::new(past)],
        launch: Box::new(move |inputs, outputs| {
            let input = |field: usize| buffer::<T>(inputs[field].as_ref());
            let past = buffer_mut::<T>(outputs[0].as_mut());
            let mut devices: Vec<_> = (0..inputs.len())
                .map(|field| input(field).device())
                .collect();
            devices.push(past.device());
            let device = launching(devices).clone();
            if absorbing {
                let fields = [input(0), input(1), input(2)];
                wave.plan_absorbing(&device)?.step_over(fields, [past])
            } else {
                wave.plan(&device)?.step_over([input(0), input(1)], [past])
            }
        }),
        expected: Expected::Bits(vec![Box::new(expected)]),
    }
}
