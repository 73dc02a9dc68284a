//! The derivative kernels with test data, for tests and benchmarks that iterate over the table.

use super::differences::FiniteDifferences3d;
use super::operator::{Operator, Order};
use super::variant::Variant;
use crate::axis::Axis;
use crate::grid::{Boundary, Grid3};
use crate::scalar::Scalar;
use crate::subject::{
    Case, Entry, Expected, Memory, Problem, Random, ScalarType, Subject, Values, buffer,
    buffer_mut, launching, random,
};
use crate::{Buffer, DeviceKind, Error, Shape3};
use gpu_kernels::derivative3d::general::{min_len, rule};

/// The family of derivatives.
pub(crate) struct Cases;

/// The boundaries without a value, indexed by their numbers in kernels.
const BOUNDARIES: [Boundary; 6] = {
    let mut boundaries = [Boundary::OneSided; 6];
    boundaries[rule::PERIODIC as usize] = Boundary::Periodic;
    boundaries[rule::PERIODIC_WITH_ENDPOINT as usize] = Boundary::PeriodicWithEndpoint;
    boundaries[rule::MIRROR_ON_POINT as usize] = Boundary::Neumann;
    boundaries[rule::MIRROR_HALFWAY as usize] = Boundary::NeumannHalfway;
    boundaries[rule::FIXED as usize] = Boundary::Dirichlet(-0.75);
    boundaries
};

/// Extents for gradients: around the radius, the vector, the tile of 32 lanes by several rows, and
/// the segment.
const GRADIENT_EXTENTS: [[usize; 3]; 10] = [
    [4, 5, 5],
    [8, 6, 5],
    [8, 17, 6],
    [12, 9, 19],
    [64, 16, 5],
    [128, 8, 6],
    [132, 15, 7],
    [260, 6, 5],
    [36, 5, 65],
    [16, 5, 131],
];

/// The extents for which gradients are also computed of fields of zeros of either sign. A sum must
/// begin with a product: 0 plus a product can be a zero of the other sign.
const ZEROS: [usize; 3] = [8, 17, 6];

/// A different spacing along each axis.
const SPACING: [f64; 3] = [0.3, 0.01, 7.0];

/// The variant and the operator of a kernel; a first derivative, if it has several operators.
fn kernel(entry: &Entry) -> (Variant, Operator) {
    let along = Axis::ALL.map(Operator::Derivative);
    let operators = along.iter().chain(&Operator::VECTOR_CALCULUS);
    let mut all = operators.flat_map(|it| Variant::ALL.map(|variant| (variant, *it)));
    let is = |name| name == Some(entry.name);
    let found = all.find(|(variant, operator)| {
        is(variant.kernel::<f32>(*operator)) || is(variant.kernel::<f64>(*operator))
    });
    match found {
        Some(found) => found,
        None => unreachable!("each kernel is one of the variants"),
    }
}

const fn shape(problem: &Problem) -> Shape3 {
    let [nx, ny, nz] = problem.extents;
    Shape3::new(nx, ny, nz)
}

/// A problem with `len` points along `axis`, and `a` and `b` points along the others.
fn along(axis: Axis, len: usize, [a, b]: [usize; 2]) -> Problem {
    match axis {
        Axis::X => Problem::volume(len, a, b),
        Axis::Y => Problem::volume(a, len, b),
        Axis::Z => Problem::volume(a, b, len),
    }
}

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "derivative3d"
    }

    fn problems(&self, entry: &Entry) -> Vec<Problem> {
        match kernel(entry) {
            (Variant::General, Operator::Derivative(axis)) => derivatives(axis),
            (Variant::General, _) => operators(),
            (Variant::AnyBoundary, Operator::Derivative(axis)) => any_boundary(entry, axis),
            (variant, Operator::Derivative(axis)) => first(variant, axis),
            _ => gradients(),
        }
    }

    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        numbers: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error> {
        match (kernel(entry), entry.scalar) {
            ((variant @ (Variant::General | Variant::AnyBoundary), it), ScalarType::F64) => {
                any_rules::<f64>(variant, it, problem, numbers)
            }
            ((variant @ (Variant::General | Variant::AnyBoundary), it), _) => {
                any_rules::<f32>(variant, it, problem, numbers)
            }
            ((variant, it), _) => {
                let shape = shape(problem);
                let shortest = it.axes().map(|axis| axis.extent(shape)).min();
                let mut cases = Vec::new();
                for boundary in conventions(shortest.unwrap_or(0)) {
                    let grid = Grid3::new(shape, SPACING)?.with_boundaries(boundary)?;
                    let differences = FiniteDifferences3d::<f32>::new(&grid)?;
                    cases.push(case(&differences, variant, it, numbers)?);
                    if problem.extents == ZEROS {
                        let mut zeros = || numbers().signum() * 0.0;
                        cases.push(case(&differences, variant, it, &mut zeros)?);
                    }
                }
                Ok(cases)
            }
        }
    }
}

/// The periodic conventions possible on an axis of `len` points.
fn conventions(len: usize) -> impl Iterator<Item = Boundary> {
    [Boundary::Periodic, Boundary::PeriodicWithEndpoint]
        .into_iter()
        .filter(move |boundary| len >= super::boundary::min_extent(*boundary))
}

/// For pencils: lengths around the radius, the tile and the block, and primes, with pencils for
/// one, two and three tiles. For the others: extents around the radius, the vector, the warp, the
/// step and the segment of the march and the block, along and across, both multiples of 4 and
/// others.
fn first(variant: Variant, axis: Axis) -> Vec<Problem> {
    let operator = Operator::Derivative(axis);
    let fits = |problem: &Problem| {
        let boundaries = [Boundary::Periodic; 3];
        let check = variant.check::<f32>(operator, shape(problem), boundaries);
        check.is_ok()
    };
    let mut problems: Vec<Problem> = match variant.pencils() {
        Some(pencils) => [
            4, 5, 6, 7, 8, 9, 11, 12, 16, 24, 31, 32, 33, 40, 61, 64, 96, 127, 128, 251, 255, 256,
        ]
        .into_iter()
        .enumerate()
        .map(|(nth, len)| {
            let sides = [pencils * (1 + nth % 3), 1 + nth % 2];
            along(axis, len, sides)
        })
        .collect(),
        None => [
            (5, 5, 5),
            (8, 5, 6),
            (9, 6, 5),
            (10, 12, 7),
            (12, 17, 9),
            (13, 8, 5),
            (20, 63, 5),
            (6, 65, 5),
            (16, 5, 64),
            (3, 6, 67),
            (2, 129, 6),
            (60, 9, 131),
            (127, 9, 5),
            (128, 7, 5),
            (129, 5, 6),
            (132, 6, 5),
            (516, 9, 5),
            (515, 5, 9),
            (1030, 5, 5),
            (4100, 5, 1),
            (4097, 1, 5),
            (5, 1, 1030),
            (4, 1100, 5),
        ]
        .map(|(nx, ny, nz)| Problem::volume(nx, ny, nz))
        .to_vec(),
    };
    problems.retain(fits);
    // The problems with several blocks come last.
    problems.push(match variant.pencils() {
        Some(pencils) => along(axis, 16, [3 * pencils, 2]),
        None => Problem::volume(132, 34, 35),
    });
    problems
}

/// The problems of the gradient's own kernel.
fn gradients() -> Vec<Problem> {
    let volume = |[nx, ny, nz]: [usize; 3]| Problem::volume(nx, ny, nz);
    GRADIENT_EXTENTS.map(volume).into()
}

/// The rules of three axes, x in the lowest byte.
fn rules(nth: usize) -> u32 {
    let rule = |axis| ((nth + axis) % BOUNDARIES.len()) as u32;
    rule(0) | rule(1) << 8 | rule(2) << 16
}

/// All rules and radii, on the shortest allowed axis and on longer ones; at the end, more than one
/// block along each axis.
fn derivatives(axis: Axis) -> Vec<Problem> {
    let mut problems = Vec::new();
    for nth in 0..BOUNDARIES.len() {
        let rules = rules(nth + BOUNDARIES.len() - axis.index());
        for radius in 1..=4 {
            // The kernels are not launched along an axis of one point.
            let min = min_len(radius, 1, nth as u32).max(2);
            for (more, sides) in [
                (0, [3, 2]),
                (1, [2, 4]),
                (radius + nth, [5, 1]),
                (9 + 11 * nth, [1, 3]),
            ] {
                let problem = along(axis, min + more, sides);
                problems.push(problem.with_stencil(radius as u32, rules));
            }
        }
    }
    for (nth, radius) in [4, 3, 2, 1, 4, 2].into_iter().enumerate() {
        let rules = rules(nth + BOUNDARIES.len() - axis.index());
        problems.push(along(axis, 65, [97, 3]).with_stencil(radius, rules));
    }
    problems
}

/// All rules, on the shortest allowed axis and on longer ones, around the vector, the step and the
/// segment; across the axis, rows and planes with and without partial columns; then several blocks.
fn any_boundary(entry: &Entry, axis: Axis) -> Vec<Problem> {
    let points = match entry.scalar {
        ScalarType::F64 => 2,
        _ => 4,
    };
    let whole = |len: usize| match axis {
        Axis::X => len.next_multiple_of(points),
        Axis::Y | Axis::Z => len,
    };
    let mut problems = Vec::new();
    for nth in 0..BOUNDARIES.len() {
        let rules = rules(nth + BOUNDARIES.len() - axis.index());
        // The kernels are not launched along an axis of one point.
        let min = min_len(4, 1, nth as u32).max(2);
        let lengths = [
            (min, [3, 2]),
            (min + 1, [2, 3]),
            (min + 2, [1, 1]),
            (min + 5, [5, 3]),
            (14, [4, 1]),
            (15, [7, 1]),
            (16, [1, 5]),
            (17, [2, 1]),
            (19, [3, 3]),
            (31, [33, 1]),
            (32, [34, 1]),
            (36, [65, 1]),
            (257, [2, 2]),
            (1026, [1, 2]),
        ];
        for (len, sides) in lengths {
            problems.push(along(axis, whole(len), sides).with_stencil(4, rules));
        }
    }
    for nth in 0..BOUNDARIES.len() {
        let rules = rules(nth + BOUNDARIES.len() - axis.index());
        problems.push(along(axis, whole(66), [68 + nth, 3]).with_stencil(4, rules));
    }
    problems
}

/// All radii, with the rules in turn, and odd extents; then several blocks along each axis, with
/// rows of whole vectors, of whole pairs of points, and of neither.
fn operators() -> Vec<Problem> {
    let all_one_sided = rule::ONE_SIDED | rule::ONE_SIDED << 8 | rule::ONE_SIDED << 16;
    let mut problems = Vec::new();
    for (nth, radius) in [1, 2, 3, 4, 4, 3].into_iter().enumerate() {
        let mut extents = [10 + nth, 11, 13 - nth % 3];
        extents[nth % 3] += [25, 9, 9][nth % 3];
        let [nx, ny, nz] = extents;
        problems.push(Problem::volume(nx, ny, nz).with_stencil(radius, rules(nth)));
    }
    for (nth, [nx, ny, nz]) in [[136, 18, 11], [66, 21, 12], [35, 37, 13]]
        .into_iter()
        .enumerate()
    {
        for rules in [rules(nth), rules(nth + 3), all_one_sided] {
            problems.push(Problem::volume(nx, ny, nz).with_stencil(4, rules));
        }
    }
    problems
}

/// `count` fields of random numbers.
fn fields<T: Scalar>(
    count: usize,
    shape: Shape3,
    numbers: &mut Random<'_>,
) -> Result<Vec<Vec<T>>, Error> {
    let points = shape.points()?;
    let mut field = |_| random(numbers, points, T::nearest);
    Ok((0..count).map(&mut field).collect())
}

/// An operator by a kernel, and the port's result; for operators on several axes, the sums or
/// differences of the port's derivatives along single axes.
fn case<T: Scalar>(
    differences: &FiniteDifferences3d<T>,
    variant: Variant,
    operator: Operator,
    numbers: &mut Random<'_>,
) -> Result<Case, Error> {
    let (shape, (read, written)) = (differences.shape(), operator.fields());
    let inputs = fields::<T>(read, shape, numbers)?;
    let expected = by_definition(differences, operator, &inputs)?;
    let values = |all: Vec<Vec<T>>| -> Vec<Box<dyn Values>> {
        all.into_iter().map(|it| Box::new(it) as _).collect()
    };
    let poison = vec![T::nearest(f64::NAN); shape.points()?];
    let differences = differences.clone();
    Ok(Case {
        inputs: values(inputs),
        outputs: values(vec![poison; written]),
        launch: Box::new(move |inputs, outputs: &mut [Box<dyn Memory>]| {
            let inputs: Vec<&Buffer<T>> = inputs.iter().map(|it| buffer(it.as_ref())).collect();
            let mut outputs: Vec<&mut Buffer<T>> = outputs
                .iter_mut()
                .map(|it| buffer_mut(it.as_mut()))
                .collect();
            let written = outputs.iter().map(|it| it.device());
            let device = launching(inputs.iter().map(|it| it.device()).chain(written)).clone();
            let plan = match device.kind() {
                DeviceKind::Cpu => differences.plan(&device)?,
                _ => differences.plan_with(&device, variant)?,
            };
            plan.apply(operator, &inputs, &mut outputs)
        }),
        expected: Expected::Bits(values(expected)),
    })
}

/// A kernel for any boundary. The general kernels compute both orders of a derivative, or only the
/// order for which the axis is long enough.
fn any_rules<T: Scalar>(
    variant: Variant,
    operator: Operator,
    problem: &Problem,
    numbers: &mut Random<'_>,
) -> Result<Vec<Case>, Error> {
    let mut grid = Grid3::new(shape(problem), SPACING)?;
    for axis in Axis::ALL {
        let rule = problem.rules >> (8 * axis.index()) & 0xff;
        grid = grid.with_boundary(axis, BOUNDARIES[rule as usize])?;
    }
    let differences = FiniteDifferences3d::<T>::new(&grid)?.with_accuracy(2 * problem.radius)?;
    let operators = match operator {
        Operator::Derivative(axis) if variant == Variant::General => {
            vec![operator, Operator::SecondDerivative(axis)]
        }
        _ => vec![operator],
    };
    let possible = operators
        .into_iter()
        .filter(|it| differences.check(*it).is_ok());
    possible
        .map(|it| case(&differences, variant, it, numbers))
        .collect()
}

/// Computes the derivatives along single axes with the port, and adds or subtracts them.
fn by_definition<T: Scalar>(
    differences: &FiniteDifferences3d<T>,
    operator: Operator,
    fields: &[Vec<T>],
) -> Result<Vec<Vec<T>>, Error> {
    const X: Axis = Axis::X;
    const Y: Axis = Axis::Y;
    const Z: Axis = Axis::Z;
    // For each output its derivatives: the field and the axis.
    let along;
    let terms: &[&[(usize, Axis)]] = match operator {
        Operator::Derivative(axis) | Operator::SecondDerivative(axis) => {
            along = [(0, axis)];
            &[&along]
        }
        Operator::Gradient => &[&[(0, X)], &[(0, Y)], &[(0, Z)]],
        Operator::Divergence => &[&[(0, X), (1, Y), (2, Z)]],
        Operator::Curl => &[&[(2, Y), (1, Z)], &[(0, Z), (2, X)], &[(1, X), (0, Y)]],
        Operator::Laplacian => &[&[(0, X), (0, Y), (0, Z)]],
    };
    let mut outputs = Vec::new();
    for terms in terms {
        let mut sum: Vec<T> = Vec::new();
        for &(field, axis) in *terms {
            let along = match operator.order() {
                Order::First => Operator::Derivative(axis),
                Order::Second => Operator::SecondDerivative(axis),
            };
            let mut derivative = vec![T::nearest(f64::NAN); fields[field].len()];
            let planes = 0..differences.shape().nz;
            differences.on_cpu(along, planes, &[&fields[field]], &mut [&mut derivative]);
            if sum.is_empty() {
                sum = derivative;
                continue;
            }
            for (sum, term) in sum.iter_mut().zip(derivative) {
                *sum = match operator {
                    Operator::Curl => *sum - term,
                    _ => *sum + term,
                };
            }
        }
        outputs.push(sum);
    }
    Ok(outputs)
}
