//! The kernels with data for them, for tests and benchmarks that go through the table.

use super::first::Derivative3d;
use super::general::FiniteDifferences3d;
use super::operator::{Operator, Order};
use super::variant::Variant;
use crate::axis::Axis;
use crate::grid::Boundary;
use crate::scalar::Scalar;
use crate::subject::{
    Case, Entry, Expected, Memory, Problem, Random, ScalarType, Subject, Values, buffer,
    buffer_mut, random,
};
use crate::{Buffer, Device, Error, Shape3};
use gpu_kernels::derivative3d::general::{min_len, rule};

/// The family.
pub(crate) struct Cases;

/// What lies beyond the ends, by the number that kernels take for it, but for a fixed value.
const BOUNDARIES: [Boundary; 6] = {
    let mut boundaries = [Boundary::OneSided; 6];
    boundaries[rule::PERIODIC as usize] = Boundary::Periodic;
    boundaries[rule::PERIODIC_WITH_ENDPOINT as usize] = Boundary::PeriodicWithEndpoint;
    boundaries[rule::MIRROR_ON_POINT as usize] = Boundary::Neumann;
    boundaries[rule::MIRROR_HALFWAY as usize] = Boundary::NeumannHalfway;
    boundaries[rule::FIXED as usize] = Boundary::Dirichlet(-0.75);
    boundaries
};

/// What gradients are taken of: extents around the radius, the vector, the tile of 32 lanes
/// by some rows and the segment.
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

/// Other spacings along each axis.
const SPACING: [f64; 3] = [0.3, 0.01, 7.0];

/// What a kernel computes.
#[derive(Clone, Copy)]
enum Kernel {
    /// The 8th order in f32, by this variant.
    First(Variant),
    /// All three of those.
    Gradient,
    /// Any order, along this axis.
    Along(Axis),
    Operator(Operator),
}

fn kernel(entry: &Entry) -> Kernel {
    fn general<T: Scalar>(entry: &Entry) -> Option<Kernel> {
        let is = |it: &Entry| it.name == entry.name;
        let along = T::ALONG.iter().position(is);
        let operator = T::OPERATORS.iter().position(is);
        along
            .map(|axis| Kernel::Along(Axis::ALL[axis]))
            .or_else(|| operator.map(|nth| Kernel::Operator(Operator::ALL[nth])))
    }
    let general = general::<f32>(entry).or_else(|| general::<f64>(entry));
    let variant = || Variant::ALL.into_iter().find(|it| it.name() == entry.name);
    match general.or_else(|| variant().map(Kernel::First)) {
        Some(kernel) => kernel,
        None => Kernel::Gradient,
    }
}

const fn shape(problem: &Problem) -> Shape3 {
    let [nx, ny, nz] = problem.extents;
    Shape3::new(nx, ny, nz)
}

/// Extents of which this one is along `axis`, the others in turn.
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
            Kernel::First(variant) => first(variant),
            Kernel::Gradient => gradients(),
            Kernel::Along(axis) => derivatives(axis),
            Kernel::Operator(_) => operators(),
        }
    }

    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        numbers: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error> {
        match (kernel(entry), entry.scalar) {
            (Kernel::First(variant), _) => {
                let len = variant.axis().extent(shape(problem));
                conventions(len)
                    .map(|boundary| {
                        let plan = Derivative3d::new(shape(problem), boundary, SPACING)?;
                        derivative(plan, variant, numbers)
                    })
                    .collect()
            }
            (Kernel::Gradient, _) => {
                let [nx, ny, nz] = problem.extents;
                conventions(nx.min(ny).min(nz))
                    .map(|boundary| {
                        let plan = Derivative3d::new(shape(problem), boundary, SPACING)?;
                        gradient(plan, numbers)
                    })
                    .collect()
            }
            (Kernel::Along(axis), ScalarType::F64) => general::<f64>(axis, problem, numbers),
            (Kernel::Along(axis), _) => general::<f32>(axis, problem, numbers),
            (Kernel::Operator(it), ScalarType::F64) => {
                Ok(vec![operator::<f64>(it, problem, numbers)?])
            }
            (Kernel::Operator(it), _) => Ok(vec![operator::<f32>(it, problem, numbers)?]),
        }
    }
}

/// The conventions of periodic axes that so many points are enough for.
fn conventions(len: usize) -> impl Iterator<Item = Boundary> {
    [Boundary::Periodic, Boundary::PeriodicWithEndpoint]
        .into_iter()
        .filter(move |boundary| len >= super::boundary::min_extent(*boundary))
}

/// Lengths of pencils around the radius, the tile and the block, and primes, and across
/// them as many pencils as one, two and three tiles; for the others extents around the
/// radius, the vector, the warp, the step and the segment of the march and the block,
/// across and along, multiples of 4 and not.
fn first(variant: Variant) -> Vec<Problem> {
    let fits = |problem: &Problem| variant.check(shape(problem), Boundary::Periodic).is_ok();
    let mut problems: Vec<Problem> = match variant.pencils() {
        Some(pencils) => [
            4, 5, 6, 7, 8, 9, 11, 12, 16, 24, 31, 32, 33, 40, 61, 64, 96, 127, 128, 251, 255, 256,
        ]
        .into_iter()
        .enumerate()
        .map(|(nth, len)| {
            let sides = [pencils * (1 + nth % 3), 1 + nth % 2];
            along(variant.axis(), len, sides)
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
    // Several blocks come last.
    problems.push(match variant.pencils() {
        Some(pencils) => along(variant.axis(), 16, [3 * pencils, 2]),
        None => Problem::volume(132, 34, 35),
    });
    problems
}

/// Those of the gradient's own kernel.
fn gradients() -> Vec<Problem> {
    let volume = |[nx, ny, nz]: [usize; 3]| Problem::volume(nx, ny, nz);
    GRADIENT_EXTENTS.map(volume).into()
}

/// A rule for each axis, those of x first.
fn rules(nth: usize) -> u32 {
    let rule = |axis| ((nth + axis) % BOUNDARIES.len()) as u32;
    rule(0) | rule(1) << 8 | rule(2) << 16
}

/// All rules and radii, with the shortest axis allowed and longer ones; at the end more
/// than one block along each axis.
fn derivatives(axis: Axis) -> Vec<Problem> {
    let mut problems = Vec::new();
    for nth in 0..BOUNDARIES.len() {
        let rules = rules(nth + BOUNDARIES.len() - axis.index());
        for radius in 1..=4 {
            // Along an axis of one point nothing is launched.
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

/// All radii, rules in turn, and extents that are multiples of nothing; then several blocks
/// along each axis, with rows of whole accesses, of pairs of points, and of neither.
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

/// So many fields of random numbers.
fn fields<T: Scalar>(
    count: usize,
    shape: Shape3,
    numbers: &mut Random<'_>,
) -> Result<Vec<Vec<T>>, Error> {
    let points = shape.points()?;
    let mut field = |_| random(numbers, points, T::nearest);
    Ok((0..count).map(&mut field).collect())
}

/// A launch on fields, which on the CPU, by the port, gives what must come out.
fn case<T: Scalar>(
    shape: Shape3,
    inputs: Vec<Vec<T>>,
    outputs: usize,
    port: impl Fn(&[&Buffer<T>], &mut [Buffer<T>]) -> Result<(), Error>,
    launch: impl Fn(&[&Buffer<T>], &mut [&mut Buffer<T>]) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<Case, Error> {
    let poison = vec![T::nearest(f64::NAN); shape.points()?];
    let cpu = Device::cpu();
    let given: Vec<Buffer<T>> = inputs
        .iter()
        .map(|it| cpu.upload(it))
        .collect::<Result<_, _>>()?;
    let mut results = Vec::new();
    for _ in 0..outputs {
        results.push(cpu.upload(&poison)?);
    }
    port(&given.iter().collect::<Vec<_>>(), &mut results)?;
    let mut expected: Vec<Box<dyn Values>> = Vec::new();
    for result in results {
        expected.push(Box::new(result.to_vec()?));
    }
    let values = |all: Vec<Vec<T>>| all.into_iter().map(|it| Box::new(it) as _).collect();
    Ok(Case {
        inputs: values(inputs),
        outputs: values(vec![poison; outputs]),
        launch: Box::new(move |inputs, outputs: &mut [Box<dyn Memory>]| {
            let inputs: Vec<&Buffer<T>> = inputs.iter().map(|it| buffer(it.as_ref())).collect();
            let mut outputs: Vec<&mut Buffer<T>> = outputs
                .iter_mut()
                .map(|it| buffer_mut(it.as_mut()))
                .collect();
            launch(&inputs, &mut outputs)
        }),
        expected: Expected::Bits(expected),
    })
}

fn derivative(
    plan: Derivative3d,
    variant: Variant,
    numbers: &mut Random<'_>,
) -> Result<Case, Error> {
    let (shape, port) = (plan.shape(), plan.clone());
    case::<f32>(
        shape,
        fields(1, shape, numbers)?,
        1,
        |f, df| port.apply(variant.axis(), f[0], &mut df[0]),
        move |f, df| plan.apply_with(variant, f[0], df[0]),
    )
}

fn gradient(plan: Derivative3d, numbers: &mut Random<'_>) -> Result<Case, Error> {
    let (shape, port) = (plan.shape(), plan.clone());
    case::<f32>(
        shape,
        fields(1, shape, numbers)?,
        3,
        |f, df| {
            let mut axes = Axis::ALL.into_iter().zip(df);
            axes.try_for_each(|(axis, df)| port.apply(axis, f[0], df))
        },
        move |f, df| match df {
            [x, y, z] => plan.gradient(f[0], [x, y, z]),
            _ => unreachable!("as many as a gradient has"),
        },
    )
}

/// The grid that a problem is about.
fn grid<T: Scalar>(problem: &Problem) -> Result<FiniteDifferences3d<T>, Error> {
    let mut grid =
        FiniteDifferences3d::new(shape(problem), SPACING)?.with_accuracy(2 * problem.radius)?;
    for axis in Axis::ALL {
        let rule = problem.rules >> (8 * axis.index()) & 0xff;
        grid = grid.with_boundary(axis, BOUNDARIES[rule as usize])?;
    }
    Ok(grid)
}

/// Both orders, or the one that the axis is long enough for.
fn general<T: Scalar>(
    axis: Axis,
    problem: &Problem,
    numbers: &mut Random<'_>,
) -> Result<Vec<Case>, Error> {
    let case = |order| {
        let plan = grid::<T>(problem)?;
        let apply = move |f: &Buffer<T>, df: &mut Buffer<T>| match order {
            Order::First => plan.derivative_by_general_kernel(axis, f, df),
            Order::Second => plan.second_derivative(axis, f, df),
        };
        let (shape, port) = (shape(problem), apply.clone());
        case::<T>(
            shape,
            fields(1, shape, numbers)?,
            1,
            |f, df| port(f[0], &mut df[0]),
            move |f, df| apply(f[0], df[0]),
        )
    };
    let (len, rule) = (
        axis.extent(shape(problem)),
        problem.rules >> (8 * axis.index()) & 0xff,
    );
    let orders = [Order::First, Order::Second].into_iter();
    orders
        .filter(|order| len >= min_len(problem.radius as usize, *order as usize, rule))
        .map(case)
        .collect()
}

/// An operator, put together from the port's derivatives along one axis.
fn operator<T: Scalar>(
    operator: Operator,
    problem: &Problem,
    numbers: &mut Random<'_>,
) -> Result<Case, Error> {
    let plan = grid::<T>(problem)?;
    let (shape, port) = (shape(problem), plan.clone());
    let (read, written) = operator.fields();
    case::<T>(
        shape,
        fields(read, shape, numbers)?,
        written,
        |f, out| by_definition(&port, operator, f, out),
        move |f, out| match (operator, f, out) {
            (Operator::Gradient, [f], [x, y, z]) => plan.gradient_by_general_kernel(f, [x, y, z]),
            (Operator::Divergence, [u, v, w], [out]) => plan.divergence([u, v, w], out),
            (Operator::Curl, [u, v, w], [x, y, z]) => plan.curl([u, v, w], [x, y, z]),
            (Operator::Laplacian, [f], [out]) => plan.laplacian(f, out),
            _ => unreachable!("as many fields as the operator has"),
        },
    )
}

/// Sums, or differences, of the port's derivatives.
fn by_definition<T: Scalar>(
    plan: &FiniteDifferences3d<T>,
    operator: Operator,
    fields: &[&Buffer<T>],
    outputs: &mut [Buffer<T>],
) -> Result<(), Error> {
    const X: Axis = Axis::X;
    const Y: Axis = Axis::Y;
    const Z: Axis = Axis::Z;
    // Of each output the derivatives: of which field, along which axis.
    let terms: &[&[(usize, Axis)]] = match operator {
        Operator::Gradient => &[&[(0, X)], &[(0, Y)], &[(0, Z)]],
        Operator::Divergence => &[&[(0, X), (1, Y), (2, Z)]],
        Operator::Curl => &[&[(2, Y), (1, Z)], &[(0, Z), (2, X)], &[(1, X), (0, Y)]],
        Operator::Laplacian => &[&[(0, X), (0, Y), (0, Z)]],
    };
    for (output, terms) in outputs.iter_mut().zip(terms) {
        let mut sum: Vec<T> = Vec::new();
        for &(field, axis) in *terms {
            let mut derivative = fields[field].try_clone()?;
            match operator.order() {
                Order::First => plan.derivative(axis, fields[field], &mut derivative)?,
                Order::Second => plan.second_derivative(axis, fields[field], &mut derivative)?,
            }
            let derivative = derivative.to_vec()?;
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
        output.copy_from_slice(&sum)?;
    }
    Ok(())
}
