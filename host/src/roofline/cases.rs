//! The multiply-add kernels with test data, for tests and benchmarks that iterate over the table.

use super::{MultiplyAdds, Real};
use crate::Error;
use crate::subject::{Case, Entry, Expected, Problem, Random, ScalarType, Subject, buffer_mut};
use gpu_kernels::roofline::{BLOCK, CHAINS, STEPS_PER_ROUND};
use std::ops::AddAssign;

/// The family of multiply-adds.
pub(crate) struct Cases;

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "roofline"
    }

    /// One round, several rounds, and odd numbers of rounds.
    fn problems(&self, _: &Entry) -> Vec<Problem> {
        let shapes = [(1, 1), (1, 2), (2, 1), (3, 5)];
        shapes
            .map(|(blocks, rounds)| Problem::plane(blocks * BLOCK as usize, rounds))
            .to_vec()
    }

    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        _: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error> {
        let [threads, rounds, _] = problem.extents;
        let work = MultiplyAdds {
            blocks: (threads / BLOCK as usize) as u32,
            rounds: rounds as u32,
        };
        Ok(vec![match entry.scalar {
            ScalarType::F64 => case(work, f64::NAN, |number| number as f64, f64::mul_add),
            _ => case(work, f32::NAN, |number| number as f32, f32::mul_add),
        }])
    }
}

/// Computes every step of every thread's chains, one chain after the other.
fn case<T: Real + AddAssign + std::fmt::Debug>(
    work: MultiplyAdds,
    nan: T,
    convert: fn(usize) -> T,
    mul_add: fn(T, T, T) -> T,
) -> Case {
    let steps = work.rounds as usize * STEPS_PER_ROUND;
    let sum = |thread: usize| {
        let mut sum = convert(0);
        for chain in 0..CHAINS {
            let start = convert(thread * CHAINS + chain);
            sum += (0..steps).fold(start, |x, _| mul_add(x, T::FACTOR, T::ADDEND));
        }
        sum
    };
    let expected: Vec<T> = (0..work.threads()).map(sum).collect();
    Case {
        inputs: Vec::new(),
        outputs: vec![Box::new(vec![nan; work.threads()])],
        launch: Box::new(move |_, outputs| work.run(buffer_mut::<T>(outputs[0].as_mut()))),
        expected: Expected::Bits(vec![Box::new(expected)]),
    }
}
