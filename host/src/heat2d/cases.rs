//! The kernels with data for them, for tests and benchmarks that go through the table.

use super::Heat2d;
use super::blocked::Setup;
use super::gpu::Variant;
use super::plan::launch;
use crate::grid::Boundary;
use crate::scalar::Scalar;
use crate::subject::{
    Case, Entry, Expected, Problem, Random, Role, ScalarType, Subject, buffer, buffer_mut,
    launching, random,
};
use crate::{Axis, Error, Shape2};

/// The family.
pub(crate) struct Cases;

/// Blocks that look for the largest change, on the emulator.
const CHANGE_BLOCKS: usize = 8;

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "heat2d"
    }

    fn problems(&self, entry: &Entry) -> Vec<Problem> {
        let plates = |shapes: &[(usize, usize)]| -> Vec<Problem> {
            let plates = shapes.iter();
            plates.map(|&(nx, ny)| Problem::plane(nx, ny)).collect()
        };
        let Some(variant) = variant(entry) else {
            return [9, 255, 256, 257, 1901]
                .map(|n| Problem::line(n).with_resident_blocks(CHANGE_BLOCKS))
                .to_vec();
        };
        match variant {
            // Rows that are whole vectors and rows that are not, more than a block of either.
            Variant::March | Variant::Step => {
                plates(&[(3, 3), (4, 9), (5, 8), (260, 3), (1024, 9), (1029, 14)])
            }
            // A strip, two, and the rest of several; at the end a plate whose blocks have a row
            // each, however many the device holds.
            Variant::Temporal => {
                plates(&[(3, 3), (97, 5), (224, 40), (255, 9), (500, 31), (90, 7)])
            }
            Variant::Resident => {
                let mut plates = plates(&[(3, 3), (49, 9), (50, 10)]);
                plates.push(Problem::plane(61, 37).with_resident_blocks(64));
                plates
            }
            // Around one tile and two, of 14 and of 16 points with and without ends.
            _ => plates(&[
                (3, 3),
                (15, 16),
                (16, 17),
                (17, 15),
                (18, 18),
                (19, 3),
                (30, 34),
                (33, 31),
                (45, 52),
            ]),
        }
    }

    fn waits_for_blocks(&self, entry: &Entry) -> bool {
        variant(entry) == Some(Variant::Resident)
    }

    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        numbers: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error> {
        let case = match entry.scalar {
            ScalarType::F64 => case(entry, problem, numbers, |x| x)?,
            _ => case(entry, problem, numbers, |x| x as f32)?,
        };
        Ok(vec![case])
    }
}

/// The variant; `None`: the search for the largest change.
fn variant(entry: &Entry) -> Option<Variant> {
    Variant::ALL.into_iter().find(|variant| {
        let mut entries = variant.entries().iter();
        entry.role != Role::Step && entries.any(|it| it.name == entry.name)
    })
}

fn case<T: Scalar>(
    entry: &Entry,
    problem: &Problem,
    numbers: &mut Random<'_>,
    convert: fn(f64) -> T,
) -> Result<Case, Error> {
    match variant(entry) {
        Some(variant) => {
            let heated = variant.heated_kernel::<T>() == Some(entry.name);
            iterations(variant, heated, problem, numbers, convert)
        }
        None => unreachable!("all kernels are variants"),
    }
}

/// As many iterations as show what the kernel does: one, a pass, or some exchanges.
fn iterations<T: Scalar>(
    variant: Variant,
    heated: bool,
    problem: &Problem,
    numbers: &mut Random<'_>,
    convert: fn(f64) -> T,
) -> Result<Case, Error> {
    let [nx, ny, _] = problem.extents;
    let mut ends = [[Boundary::DirichletOnPoint; 2]; 2];
    if matches!(variant, Variant::March | Variant::Step) {
        for end in ends.as_flattened_mut() {
            if numbers() >= 0.0 {
                *end = Boundary::Neumann;
            }
        }
    }
    let shape = Shape2::new(nx, ny);
    let mut heat = Heat2d::dirichlet(shape)?
        .with_ends(Axis::X, ends[0])?
        .with_ends(Axis::Y, ends[1])?;
    if variant == Variant::Step {
        heat = heat.with_time_step(1.0, 0.15 + 0.1 * numbers())?;
    }
    let ratio = heat.step().map(|step| T::nearest(step.ratio));
    let count = match variant {
        Variant::Resident => 19,
        _ => variant.iterations_per_launch::<T>(),
    };

    let points = shape.points()?;
    let old = random(numbers, points, convert);
    let source = heated.then(|| random(numbers, points, convert));
    // Points of a Dirichlet end keep the values that the output buffer had.
    let before: Vec<T> = (0..points).map(|i| convert(1e6 + i as f64)).collect();
    let (mut given, mut expected) = (old.clone(), before.clone());
    if count > 1 {
        expected.clone_from(&old);
    }
    let first = expected.clone();
    for _ in 0..count {
        let setup = Setup {
            grid: *heat.grid(),
            source: source.as_deref(),
            ratio,
        };
        T::iteration(setup, &given, &mut expected);
        given.clone_from(&expected);
    }

    let mut inputs: Vec<Box<dyn crate::subject::Values>> = vec![Box::new(old)];
    inputs.extend(source.map(|source| Box::new(source) as _));
    Ok(Case {
        inputs,
        outputs: vec![Box::new(first)],
        launch: Box::new(move |inputs, outputs| {
            let old = buffer::<T>(inputs[0].as_ref());
            let source = inputs.get(1).map(|source| buffer(source.as_ref()));
            let new = buffer_mut(outputs[0].as_mut());
            let device = launching([old.device(), new.device()]);
            heat.check_launchable::<T>(variant, heated, device)?;
            if variant == Variant::Texture {
                return heat.plan_with(device, variant)?.iterate_into(old, new);
            }
            let done = launch(&heat, variant, source, old, new, count, &mut None)?;
            assert_eq!(done, count, "all in one launch");
            Ok(())
        }),
        expected: Expected::Bits(vec![Box::new(expected)]),
    })
}
