//! The reduction kernels with test data, for tests and benchmarks that iterate over the table.

use super::{Extremum, Moment, Number, Operation, Plan, Reduction, Variant};
use crate::subject::{
    Case, Entry, Expected, Problem, Random, ScalarType, Subject, Values, buffer, buffer_mut,
    launching,
};
use crate::{Buffer, Element, Error};
use bytemuck::Pod;
use gpu_kernels::reduction::Addable;
use gpu_kernels::reduction::single_pass::{ALONE, Partition};
use std::fmt::Debug;

/// The family of reductions.
pub(crate) struct Cases;

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "reduction"
    }

    fn problems(&self, entry: &Entry) -> Vec<Problem> {
        match variant(entry) {
            Some(variant) => partial_sums(variant),
            None => chunks(entry.scalar.bytes()),
        }
    }

    fn takes_any_length(&self, entry: &Entry, argument: usize) -> bool {
        // The others require one length: that of partial sums and elements, or of two arrays.
        variant(entry).is_none() && entry.variant != "dot" && argument == 0
    }

    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        numbers: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error> {
        let Some(variant) = variant(entry) else {
            return Ok(all_single_passes(entry, problem, numbers));
        };
        let case = match entry.scalar {
            ScalarType::F32 => partial_sums_of::<f32>(variant, problem, numbers)?,
            _ => partial_sums_of::<i32>(variant, problem, numbers)?,
        };
        Ok(vec![case])
    }
}

/// The names of the kernels' entry points in the PTX.
#[doc(hidden)]
impl Variant {
    /// The entry point for sums of elements of `T`.
    #[must_use]
    pub fn kernel<T: Number>(self) -> Option<&'static str> {
        self.entry::<T>().map(|entry| entry.name)
    }

    /// The number of elements that a textbook kernel's thread adds before its block does: 1 or 4.
    #[must_use]
    pub const fn per_thread(self) -> u32 {
        self.elements_per_thread()
    }
}

#[doc(hidden)]
impl Operation {
    /// `reduction_single_pass_sum_f32` and so on. Unsigned integers use the sum kernels of signed
    /// ones.
    #[must_use]
    pub fn kernel<T: Number>(self) -> &'static str {
        T::elements(self).name
    }
}

#[doc(hidden)]
impl Extremum {
    /// `reduction_arg_extremum_f32` and so on. Signed integers use the kernels of unsigned ones.
    #[must_use]
    pub const fn kernel<T: Number>(self) -> &'static str {
        T::ARG_EXTREMUM.name
    }
}

#[doc(hidden)]
impl Moment {
    /// `reduction_moment_f32` and so on.
    #[must_use]
    pub const fn kernel<T: Number>(self) -> &'static str {
        T::MOMENT.name
    }
}

/// The kernels for dot products: `reduction_dot_f32` and so on. `u64` uses the kernel of `i64`.
#[doc(hidden)]
#[must_use]
pub const fn dot_kernel<T: Number>() -> &'static str {
    T::DOT.name
}

/// The variant of a textbook kernel; `None` for other kernels.
fn variant(entry: &Entry) -> Option<Variant> {
    Variant::TEXTBOOK.into_iter().find(|variant| {
        let kernels = [variant.kernel::<i32>(), variant.kernel::<f32>()];
        kernels.contains(&Some(entry.name))
    })
}

/// One element, a warp, a block, the elements of one, two and three blocks, and primes.
fn partial_sums(variant: Variant) -> Vec<Problem> {
    let mut problems = Vec::new();
    for threads in [32, 64, 128, 256, 512, 1024] {
        let block = threads as usize;
        let span = block * variant.elements_per_thread() as usize;
        let around = [block / 2, block, 2 * block, 3 * block, span, 2 * span];
        let mut lengths: Vec<usize> = around
            .into_iter()
            .flat_map(|near| [near - 1, near, near + 1])
            .chain([1, 2, 31, 32, 33, 61, 127, 1009])
            .chain([3 * span + block / 2 + 7])
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        // The last length needs another block for a single element.
        lengths.push(3 * span + 1);
        problems.extend(
            lengths
                .into_iter()
                .map(|n| Problem::line(n).with_block(threads)),
        );
    }
    problems
}

/// A vector, a warp, a tile, batches of tiles, the most that a block reduces alone, and several
/// chunks, of one tile and of two; also with fewer blocks than chunks.
fn chunks(bytes: usize) -> Vec<Problem> {
    let tile = Partition::of(1, bytes).lanes();
    let one = [1, 2, 3, 4, 5, 7, 31, 32, 33, 61, 127, 128, 129, 1009];
    let whole = (1..=ALONE).flat_map(|tiles| [tiles * tile - 1, tiles * tile]);
    let ragged = [
        tile + 1,
        2 * tile + 3,
        5 * tile + 33,
        7 * tile + tile / 2 + 1,
        9 * tile,
        11 * tile - 1,
        33_013,
        // From 64 tiles on a chunk has two tiles.
        65 * tile + 2,
    ];
    let lines = |n: usize| Problem::line(n).with_resident_blocks(u32::MAX as usize);
    let few =
        [1, 2, 5, 8].map(|blocks| Problem::line(ALONE * tile + 1).with_resident_blocks(blocks));
    one.into_iter()
        .chain(whole)
        .chain(ragged)
        .map(lines)
        .chain(few)
        .chain([lines(ALONE * tile + 1)])
        .collect()
}

/// The types, with their random elements.
trait Sample: Number + Debug {
    /// Numbers of the whole range or, half of the time, of its lower or upper half. Otherwise the
    /// ends of the range would hide what an extremum makes of missing elements. Floats have many
    /// magnitudes, so that different orders of additions give different sums.
    fn random(numbers: &mut Random<'_>, len: usize) -> Vec<Self>;
}

/// 32 random bits.
fn bits(numbers: &mut Random<'_>) -> u32 {
    // From 0 to 2³² - 1.
    ((numbers() + 1.0) * f64::from(1_u32 << 31)) as u32
}

macro_rules! samples {
    ($($integer:ident)*; $($float:ident)*) => {
        $(impl Sample for $integer {
            fn random(numbers: &mut Random<'_>, len: usize) -> Vec<Self> {
                const TOP: $integer = 1 << ($integer::BITS - 1);
                let [set, cleared] = match bits(numbers) % 4 {
                    0 => [TOP, 0],
                    1 => [0, TOP],
                    _ => [0, 0],
                };
                let mut next = || u64::from(bits(numbers)) << 32 | u64::from(bits(numbers));
                (0..len).map(|_| (next() as Self | set) & !cleared).collect()
            }
        })*
        $(impl Sample for $float {
            fn random(numbers: &mut Random<'_>, len: usize) -> Vec<Self> {
                let sign = match bits(numbers) % 4 {
                    0 => Some(-1.0),
                    1 => Some(1.0),
                    _ => None,
                };
                let mut next = || (12.0 * numbers()).exp2() * sign.unwrap_or_else(&mut *numbers);
                (0..len).map(|_| next() as Self).collect()
            }
        })*
    };
}

samples!(i32 u32 i64 u64; f32 f64);

/// A value that differs from `value` in every bit, so no kernel that should leave `value` leaves
/// it.
fn inverted<T: Pod>(value: T) -> T {
    let mut value = value;
    for byte in bytemuck::bytes_of_mut(&mut value) {
        *byte = !*byte;
    }
    value
}

fn boxed<T: Element + Debug>(values: Vec<T>) -> Box<dyn Values> {
    Box::new(values)
}

/// Adds as a block does: the upper half to the lower half, until one value remains.
fn halved<T: Addable>(values: &mut [T], block: usize) {
    let mut half = block / 2;
    while half > 0 {
        for i in 0..half.min(values.len().saturating_sub(half)) {
            values[i] = values[i].add(values[i + half]);
        }
        half /= 2;
    }
}

fn partial_sums_of<T: Sample + Addable>(
    variant: Variant,
    problem: &Problem,
    numbers: &mut Random<'_>,
) -> Result<Case, Error> {
    let reduction = match problem.block {
        Some(block) => Reduction::new().with_block(block)?,
        None => Reduction::new(),
    };
    let block = reduction.block() as usize;
    let per_block = block * variant.elements_per_thread() as usize;
    let values = T::random(numbers, problem.points());
    let mut left = values.clone();
    let partials: Vec<T> = left
        .chunks_mut(per_block)
        .map(|part| {
            if variant == Variant::Global {
                halved(part, block);
                return part[0];
            }
            // A thread has every `block`-th element, or 0 if there are none.
            let of_thread = |thread| part.iter().skip(thread).step_by(block).copied();
            let mut sums: Vec<T> = (0..block)
                .map(|thread| of_thread(thread).fold(T::ZERO, T::add))
                .collect();
            halved(&mut sums, block);
            sums[0]
        })
        .collect();
    let before: Vec<T> = partials.iter().copied().map(inverted).collect();
    Ok(match variant {
        // It works in its input, which is therefore an output too.
        Variant::Global => Case {
            inputs: Vec::new(),
            outputs: vec![boxed(values), boxed(before)],
            launch: Box::new(move |_, outputs| {
                let [values, partials] = outputs else {
                    unreachable!("two outputs")
                };
                let values = buffer_mut::<T>(values.as_mut());
                let partials = buffer_mut(partials.as_mut());
                let device = launching([values.device(), partials.device()]);
                let mut plan = reduction.plan_with(device, variant)?;
                plan.sum_in_place_into(values, partials)
            }),
            expected: Expected::Bits(vec![boxed(left), boxed(partials)]),
        },
        _ => Case {
            inputs: vec![boxed(values)],
            outputs: vec![boxed(before)],
            launch: Box::new(move |inputs, outputs| {
                let values = buffer::<T>(inputs[0].as_ref());
                let partials = buffer_mut(outputs[0].as_mut());
                let device = launching([values.device(), partials.device()]);
                let mut plan = reduction.plan_with(device, variant)?;
                plan.sum_into(values, partials)
            }),
            expected: Expected::Bits(vec![boxed(partials)]),
        },
    })
}

/// One single-pass reduction.
fn single_pass<T: Sample, R: Element + Debug, const ARRAYS: usize>(
    problem: &Problem,
    arrays: [Vec<T>; ARRAYS],
    expected: R,
    launch: impl Fn(&mut Plan<T>, [&Buffer<T>; ARRAYS], &mut Buffer<R>) -> Result<(), Error>
    + Send
    + Sync
    + 'static,
) -> Case {
    let blocks = u32::try_from(problem.resident_blocks).unwrap_or(u32::MAX);
    Case {
        inputs: arrays.map(boxed).into(),
        outputs: vec![boxed(vec![inverted(expected)])],
        launch: Box::new(move |inputs, outputs| {
            let arrays = std::array::from_fn(|i| buffer::<T>(inputs[i].as_ref()));
            let plan = Reduction::new().plan(arrays[0].device())?;
            launch(
                &mut plan.with_any_blocks(blocks),
                arrays,
                buffer_mut(outputs[0].as_mut()),
            )
        }),
        expected: Expected::Bits(vec![boxed(vec![expected])]),
    }
}

/// All reductions of elements of `T` that this kernel computes.
fn single_passes<T: Sample>(
    entry: &Entry,
    problem: &Problem,
    numbers: &mut Random<'_>,
) -> Vec<Case> {
    let n = problem.extents[0];
    let mut array = || T::random(numbers, n);
    let mut cases = Vec::new();
    for operation in Operation::ALL {
        if operation.kernel::<T>() == entry.name {
            let values = array();
            let expected = T::reduce(operation, &values);
            cases.push(single_pass(
                problem,
                [values],
                expected,
                move |plan, [values], result| plan.elements_into(operation, values, result),
            ));
        }
    }
    for moment in Moment::ALL {
        if moment.kernel::<T>() == entry.name {
            let values = array();
            let expected = T::moment(moment, 0.25, &values);
            cases.push(single_pass(
                problem,
                [values],
                expected,
                move |plan, [values], result| plan.moment_into(moment, 0.25, values, result),
            ));
        }
    }
    if dot_kernel::<T>() == entry.name {
        let (x, y) = (array(), array());
        let expected = T::dot(&x, &y);
        cases.push(single_pass(
            problem,
            [x, y],
            expected,
            |plan, [x, y], result| plan.dot_into(x, y, result),
        ));
    }
    for extremum in Extremum::ALL {
        if extremum.kernel::<T>() == entry.name {
            // The extreme element occurs several times; the result must be the first.
            let mut values = array();
            let extreme = values[T::position(extremum, &values).unwrap_or(0)];
            values[n / 2] = extreme;
            values[n - 1] = extreme;
            let expected = T::position(extremum, &values).unwrap_or(0) as u64;
            cases.push(single_pass(
                problem,
                [values],
                expected,
                move |plan, [values], result| plan.place_into(extremum, values, result),
            ));
        }
    }
    cases
}

/// Like [`single_passes`], for all types.
fn all_single_passes(entry: &Entry, problem: &Problem, numbers: &mut Random<'_>) -> Vec<Case> {
    [
        single_passes::<i32>,
        single_passes::<u32>,
        single_passes::<i64>,
        single_passes::<u64>,
        single_passes::<f32>,
        single_passes::<f64>,
    ]
    .into_iter()
    .flat_map(|of_type| of_type(entry, problem, numbers))
    .collect()
}
