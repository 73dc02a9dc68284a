//! The elementwise kernels with test data, for tests and benchmarks that iterate over the table.

use super::places::Places;
use crate::Error;
use crate::scalar::Scalar;
use crate::subject::{
    Case, Entry, Expected, Problem, Random, ScalarType, Subject, buffer, buffer_mut, random,
};
use gpu_kernels::elementwise::Number;
use std::sync::{Mutex, PoisonError};

/// The family of elementwise operations.
pub(crate) struct Cases;

/// The number of blocks that search for the largest difference, on the emulator.
const DIFFERENCE_BLOCKS: usize = 8;

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "elementwise"
    }

    fn problems(&self, entry: &Entry) -> Vec<Problem> {
        if entry.variant == "difference" {
            return [9, 255, 256, 257, 1901]
                .map(|n| Problem::line(n).with_resident_blocks(DIFFERENCE_BLOCKS))
                .to_vec();
        }
        // Partial vectors, and sizes around a block of either type.
        [1, 2, 3, 4, 5, 511, 512, 513, 1023, 1024, 1025, 2051]
            .map(Problem::line)
            .to_vec()
    }

    fn takes_any_length(&self, entry: &Entry, _argument: usize) -> bool {
        entry.variant == "clamp"
    }

    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        numbers: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error> {
        Ok(vec![match entry.scalar {
            ScalarType::F64 => case::<f64>(entry, problem, numbers),
            _ => case::<f32>(entry, problem, numbers),
        }])
    }
}

fn case<T: Scalar + Number>(entry: &Entry, problem: &Problem, numbers: &mut Random<'_>) -> Case {
    let n = problem.points();
    let [x, y] = [(); 2].map(|()| random(numbers, n, T::nearest));
    let [a, b] = [(); 2].map(|()| T::nearest(3.0 * numbers()));
    match entry.variant {
        "axpby" => {
            let sum = |(&x, &y): (&T, &T)| x.fused(a, b * y);
            let expected: Vec<T> = x.iter().zip(&y).map(sum).collect();
            Case {
                inputs: vec![Box::new(x)],
                outputs: vec![Box::new(y)],
                launch: Box::new(move |inputs, outputs| {
                    let x = buffer::<T>(inputs[0].as_ref());
                    T::launch_axpby(a, x, b, buffer_mut(outputs[0].as_mut()))
                }),
                expected: Expected::Bits(vec![Box::new(expected)]),
            }
        }
        "put" => {
            // Neighbours, and elements that are apart; the last one is the last of the array.
            let mut at = Vec::with_capacity(n);
            for number in 0..n {
                at.push(number + number / 3);
            }
            let y = random(numbers, at[n - 1] + 1, T::nearest);
            let mut expected: Vec<T> = y.clone();
            for (&at, &value) in at.iter().zip(&x) {
                expected[at] = value;
            }
            // The places on each device, kept between launches: a recording cannot make them.
            let all = Mutex::new(Vec::<Places>::new());
            Case {
                inputs: vec![Box::new(x)],
                outputs: vec![Box::new(y)],
                launch: Box::new(move |inputs, outputs| {
                    let values = buffer::<T>(inputs[0].as_ref());
                    let y = buffer_mut(outputs[0].as_mut());
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    let there = |places: &Places| places.at().device() == y.device();
                    let places = match all.iter().position(there) {
                        Some(places) => places,
                        None => {
                            all.push(Places::new(y.device(), &at)?);
                            all.len() - 1
                        }
                    };
                    T::launch_put(values.view(..)?, &all[places], y)
                }),
                expected: Expected::Bits(vec![Box::new(expected)]),
            }
        }
        "clamp" => {
            let (low, high) = (T::nearest(-0.5), T::nearest(0.25));
            let within = |&y: &T| match y {
                y if y < low => low,
                y if y > high => high,
                y => y,
            };
            let expected: Vec<T> = y.iter().map(within).collect();
            Case {
                inputs: Vec::new(),
                outputs: vec![Box::new(y)],
                launch: Box::new(move |_, outputs| {
                    T::launch_clamp(buffer_mut(outputs[0].as_mut()), low, high)
                }),
                expected: Expected::Bits(vec![Box::new(expected)]),
            }
        }
        _ => {
            let difference = |(&x, &y): (&T, &T)| (y - x).magnitude_bits();
            let largest = x.iter().zip(&y).map(difference).max();
            let largest = T::of_bits(largest.unwrap_or_default());
            Case {
                inputs: vec![Box::new(x), Box::new(y)],
                outputs: vec![Box::new(vec![T::nearest(0.0)])],
                launch: Box::new(|inputs, outputs| {
                    let [x, y] = [0, 1].map(|at| buffer::<T>(inputs[at].as_ref()));
                    T::launch_difference(x, y, buffer_mut(outputs[0].as_mut()))
                }),
                expected: Expected::Bits(vec![Box::new(vec![largest])]),
            }
        }
    }
}
