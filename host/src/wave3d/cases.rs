//! The kernels with data for them, for tests and benchmarks that go through the table.

use super::cpu;
use crate::stencil::{Compiled, Number, Stencil};
use crate::subject::{
    Case, Entry, Expected, Problem, Random, ScalarType, Subject, Values, buffer, buffer_mut, random,
};
use crate::{Error, Grid3, Shape3};
use gpu_kernels::wave3d::{Absorbing, Acoustic, Laplacian};

/// The family.
pub(crate) struct Cases;

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "wave3d"
    }

    fn problems(&self, _: &Entry) -> Vec<Problem> {
        // A point, axes shorter than the stencil, whole vectors and others, more than a block
        // along each axis.
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
            let mut weights = [[0.0; 4]; 3];
            for weight in weights.as_flattened_mut() {
                *weight = numbers() as $real;
            }
            let centre = numbers() as $real;
            let laplacian = Laplacian {
                centre,
                axes: weights,
            };
            let mut field = || random(numbers, points, |x| x as $real);
            let (u, past, speed, damping) = (field(), field(), field(), field());
            // Away from -1, of which there is no reciprocal.
            let damping: Vec<$real> = damping.iter().map(|d| d * d).collect();
            let absorbing = entry.variant.starts_with("absorbing");
            let radius = match entry.variant.as_bytes().last() {
                Some(order) => usize::from(order - b'0') / 2,
                None => unreachable!("variants end with their order"),
            };
            let axes = weights.map(|axis| axis[..radius].to_vec());
            let damped = absorbing.then_some(&damping[..]);
            let expected = cpu::step(problem.extents, centre, &axes, [&u, &past, &speed], damped);
            let mut fields: Vec<Box<dyn Values>> =
                vec![Box::new(u), Box::new(past), Box::new(speed)];
            if absorbing {
                fields.push(Box::new(damping));
            }
            match (absorbing, radius) {
                (false, 1) => {
                    of::<_, _, 3>(Acoustic::<_, 1> { laplacian }, problem, fields, expected)
                }
                (false, 2) => {
                    of::<_, _, 3>(Acoustic::<_, 2> { laplacian }, problem, fields, expected)
                }
                (false, 3) => {
                    of::<_, _, 3>(Acoustic::<_, 3> { laplacian }, problem, fields, expected)
                }
                (false, _) => {
                    of::<_, _, 3>(Acoustic::<_, 4> { laplacian }, problem, fields, expected)
                }
                (true, 1) => {
                    of::<_, _, 4>(Absorbing::<_, 1> { laplacian }, problem, fields, expected)
                }
                (true, 2) => {
                    of::<_, _, 4>(Absorbing::<_, 2> { laplacian }, problem, fields, expected)
                }
                (true, 3) => {
                    of::<_, _, 4>(Absorbing::<_, 3> { laplacian }, problem, fields, expected)
                }
                (true, _) => {
                    of::<_, _, 4>(Absorbing::<_, 4> { laplacian }, problem, fields, expected)
                }
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
