//! The line-stencil kernels with test data, for tests and benchmarks that iterate over the table.

use super::{MAX_RADIUS, Stencil1d, Variant};
use crate::scalar::Scalar;
use crate::subject::{
    Case, Entry, Expected, Problem, Random, ScalarType, Subject, buffer, buffer_mut, launching,
    random,
};
use crate::{Buffer, Error};
use gpu_kernels::stencil1d::RADIUS;

/// The family of line stencils.
pub(crate) struct Cases;

/// Values that no stencil of numbers up to 1 could compute, all different.
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
            Variant::Custom => lengths(&[2 * MAX_RADIUS + 10, 512, 1024])
                .into_iter()
                .map(Problem::line)
                .collect(),
            // The caller chooses the block of these kernels.
            Variant::Constant | Variant::ReadOnly => [32, 64, 96]
                .into_iter()
                .flat_map(|block| {
                    lengths(&[18, block, 2 * block, 3 * block])
                        .into_iter()
                        .filter(|&n| n > 2 * RADIUS)
                        .map(move |n| Problem::line(n).with_block(block as u32))
                })
                .collect(),
            _ => lengths(&[18, 128, 512, 1024, 2048])
                .into_iter()
                .map(Problem::line)
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
        let variant = variant(entry);
        Ok(vec![match (variant, entry.scalar) {
            (Variant::Custom, ScalarType::F64) => custom(n, variant, numbers, |x| x)?,
            (Variant::Custom, _) => custom(n, variant, numbers, |x| x as f32)?,
            _ => {
                let coefficients = random(numbers, RADIUS, |x| x as f32);
                let mut stencil = Stencil1d::antisymmetric(n, &coefficients)?;
                if let Some(block) = problem.block {
                    stencil = stencil.with_block(block)?;
                }
                case(stencil, variant, numbers, |x| x as f32)?
            }
        }])
    }
}

/// The variant of a kernel.
fn variant(entry: &Entry) -> Variant {
    let mut all = Variant::ALL.into_iter();
    let found = all.find(|variant| variant.entries().iter().any(|it| it.name == entry.name));
    match found {
        Some(variant) => variant,
        None => unreachable!("each kernel is one of the variants"),
    }
}

/// The widest stencil, with independent coefficients.
fn custom<T: Scalar>(
    n: usize,
    variant: Variant,
    numbers: &mut Random<'_>,
    convert: impl Fn(f64) -> T,
) -> Result<Case, Error> {
    let coefficients = random(numbers, 2 * MAX_RADIUS + 1, &convert);
    case(Stencil1d::any(n, &coefficients)?, variant, numbers, convert)
}

/// A stencil by a kernel, with the port's result for the same line.
fn case<T: Scalar>(
    stencil: Stencil1d<T>,
    variant: Variant,
    numbers: &mut Random<'_>,
    convert: impl Fn(f64) -> T,
) -> Result<Case, Error> {
    let (n, radius) = (stencil.n(), stencil.radius());
    let input = random(numbers, n, &convert);
    let before = poison(n, &convert);
    let mut expected = before.clone();
    stencil.on_cpu(&input, &mut expected[radius..n - radius]);
    Ok(Case {
        inputs: vec![Box::new(input)],
        outputs: vec![Box::new(before)],
        launch: Box::new(move |inputs, outputs| {
            let (input, output) = (buffer(inputs[0].as_ref()), buffer_mut(outputs[0].as_mut()));
            let (input, output): (&Buffer<T>, &mut Buffer<T>) = (input, output);
            let device = launching([input.device(), output.device()]);
            stencil.plan_with(device, variant)?.apply(input, output)
        }),
        expected: Expected::Bits(vec![Box::new(expected)]),
    })
}
