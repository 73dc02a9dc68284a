//! The kernels with data for them, for tests and benchmarks that go through the table.

use super::cpu;
use crate::stencil::{Compiled, Number, Stencil};
use crate::subject::{
    Case, Entry, Expected, Problem, Random, ScalarType, Subject, Values, buffer, buffer_mut, random,
};
use crate::{Error, Grid3, Shape3};
use gpu_kernels::heat3d::{Jacobi, Step};

/// The family.
pub(crate) struct Cases;

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "heat3d"
    }

    fn problems(&self, _: &Entry) -> Vec<Problem> {
        // A point, whole vectors and others, more than a block along each axis.
        [(1, 1, 1), (4, 2, 3), (7, 9, 5), (36, 10, 17), (133, 9, 11)]
            .map(|(nx, ny, nz)| Problem::volume(nx, ny, nz))
            .to_vec()
    }

    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        numbers: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error> {
        let case = match entry.scalar {
            ScalarType::F64 => case_f64(entry, problem, numbers)?,
            _ => case_f32(entry, problem, numbers)?,
        };
        Ok(vec![case])
    }
}

macro_rules! case {
    ($name:ident, $real:ident) => {
        fn $name(
            entry: &Entry,
            problem: &Problem,
            numbers: &mut Random<'_>,
        ) -> Result<Case, Error> {
            let points = problem.points();
            let mut field = || random(numbers, points, |x| x as $real);
            let (u, f) = (field(), field());
            let weights = [0.11, 0.17, 0.05];
            if entry.variant == "step" {
                let expected = cpu::step(problem.extents, weights, &u);
                let update = Step { ratios: weights };
                of::<_, _, 1>(update, problem, vec![Box::new(u)], expected)
            } else {
                let source = 0.3;
                let expected = cpu::iteration(problem.extents, weights, source, &u, &f);
                let update = Jacobi { weights, source };
                of::<_, _, 2>(update, problem, vec![Box::new(u), Box::new(f)], expected)
            }
        }
    };
}

case!(case_f32, f32);
case!(case_f64, f64);

/// A step of `update` on a periodic grid.
fn of<T, U, const INPUTS: usize>(
    update: U,
    problem: &Problem,
    inputs: Vec<Box<dyn Values>>,
    expected: Vec<T>,
) -> Result<Case, Error>
where
    T: Number,
    U: Compiled<T, INPUTS, 1>,
{
    let [nx, ny, nz] = problem.extents;
    let grid = Grid3::new(Shape3::new(nx, ny, nz), [1.0; 3])?;
    let stencil = Stencil::new(update, grid)?;
    let before: Vec<T> = (0..expected.len())
        .map(|i| T::nearest(1e6 + i as f64))
        .collect();
    Ok(Case {
        inputs,
        outputs: vec![Box::new(before)],
        launch: Box::new(move |inputs, outputs| {
            let inputs = std::array::from_fn(|field| buffer(inputs[field].as_ref()));
            let plan = stencil.plan(inputs[0].device())?;
            plan.step(inputs, [buffer_mut(outputs[0].as_mut())])
        }),
        expected: Expected::Bits(vec![Box::new(expected)]),
    })
}
