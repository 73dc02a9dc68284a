//! The kernels with data for them, for tests and benchmarks that go through the table.

use super::{Custom, MAX_RADIUS, RADIUS, Stencil1d, Variant, cpu};
use crate::Error;
use crate::scalar::Scalar;
use crate::subject::{
    Case, Entry, Expected, Problem, Random, Role, ScalarType, Subject, buffer, buffer_mut, random,
};

/// The family.
pub(crate) struct Cases;

/// Nothing that a stencil of numbers up to 1 could compute, and different everywhere.
fn poison<T>(n: usize, convert: impl Fn(f64) -> T) -> Vec<T> {
    (0..n).map(|i| convert(1e6 + i as f64)).collect()
}

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "stencil1d"
    }

    fn problems(&self, entry: &Entry) -> Vec<Problem> {
        let lengths = |ends: &[usize]| -> Vec<usize> {
            let around = ends.iter().flat_map(|&end| end - 9..=end + 9);
            around.chain([3001]).collect()
        };
        match variant(entry) {
            None => lengths(&[2 * MAX_RADIUS + 10, 512, 1024])
                .into_iter()
                .map(Problem::line)
                .collect(),
            Some(_) if entry.role != Role::Textbook => lengths(&[18, 128, 512, 1024, 2048])
                .into_iter()
                .map(Problem::line)
                .collect(),
            // Their blocks are the caller's choice.
            Some(_) => [32, 64, 96]
                .into_iter()
                .flat_map(|block| {
                    lengths(&[18, block, 2 * block, 3 * block])
                        .into_iter()
                        .filter(|&n| n > 2 * RADIUS)
                        .map(move |n| Problem::line(n).with_block(block as u32))
                })
                .collect(),
        }
    }

    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        numbers: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error> {
        let n = problem.points();
        let case = match (variant(entry), entry.scalar) {
            (Some(variant), _) => {
                let coefficients = random(numbers, RADIUS, |x| x as f32);
                let [a, b, c, d] = coefficients[..] else {
                    unreachable!("as many as asked for")
                };
                let mut stencil = Stencil1d::new(n, [a, b, c, d])?;
                if let Some(block) = problem.block {
                    stencil = stencil.with_block(block)?;
                }
                let input = random(numbers, n, |x| x as f32);
                let before = poison(n, |x| x as f32);
                let mut expected = before.clone();
                cpu::stencil([a, b, c, d], &input, &mut expected[RADIUS..n - RADIUS]);
                Case {
                    inputs: vec![Box::new(input)],
                    outputs: vec![Box::new(before)],
                    launch: Box::new(move |inputs, outputs| {
                        let output = buffer_mut(outputs[0].as_mut());
                        stencil.apply_with(variant, buffer(inputs[0].as_ref()), output)
                    }),
                    expected: Expected::Bits(vec![Box::new(expected)]),
                }
            }
            (None, ScalarType::F64) => custom(n, numbers, |x| x)?,
            (None, _) => custom(n, numbers, |x| x as f32)?,
        };
        Ok(vec![case])
    }
}

/// The variant of a nine-point kernel; `None`: those of any coefficients.
fn variant(entry: &Entry) -> Option<Variant> {
    Variant::ALL
        .into_iter()
        .find(|variant| variant.name() == entry.name)
}

/// The widest stencil, every coefficient for itself.
fn custom<T: Scalar>(
    n: usize,
    numbers: &mut Random<'_>,
    convert: impl Fn(f64) -> T,
) -> Result<Case, Error> {
    let coefficients = random(numbers, 2 * MAX_RADIUS + 1, &convert);
    let stencil = Custom::any(n, &coefficients)?;
    let input = random(numbers, n, &convert);
    let before = poison(n, &convert);
    let mut expected = before.clone();
    T::stencil(
        stencil.form(),
        stencil.radius(),
        &stencil.coefficients,
        &input,
        &mut expected[MAX_RADIUS..n - MAX_RADIUS],
    );
    Ok(Case {
        inputs: vec![Box::new(input)],
        outputs: vec![Box::new(before)],
        launch: Box::new(move |inputs, outputs| {
            stencil.apply(buffer(inputs[0].as_ref()), buffer_mut(outputs[0].as_mut()))
        }),
        expected: Expected::Bits(vec![Box::new(expected)]),
    })
}
