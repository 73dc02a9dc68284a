//! Properties of gradient, divergence, curl and Laplacian on any grid, and the errors for grids,
//! spacings and buffers that do not fit.

use super::general::{
    Sample, accuracy, axis, boundary, lines, min_points, plan_weight_sum, random,
};
use super::vector_calculus::run;
use halo_gpu::Scalar;
use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, RADIUS, Variant, problem};
use halo_gpu::finite_difference::{MAX_OFFSET, MAX_POINTS, Weights};
use halo_gpu::{Axis, Boundary, Buffer, Cost, Device, DeviceKind, Error, Field3, Grid3, Shape3};
use halo_tests::property::{self, Faults, awkward, device, extent, number, points_of, rarely};
use proptest::array::{uniform3, uniform5};
use proptest::prelude::*;
use proptest::sample::select;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Everything of a grid but its type.
#[derive(Debug, Clone)]
pub struct Grid {
    pub extents: [usize; 3],
    pub spacing: [f64; 3],
    pub boundaries: [Boundary; 3],
    pub accuracy: u32,
}

impl Grid {
    fn shape(&self) -> Shape3 {
        let [nx, ny, nz] = self.extents;
        Shape3::new(nx, ny, nz)
    }

    pub fn points(&self) -> usize {
        self.extents.iter().product()
    }

    /// Every point, by its place along each axis.
    fn places(&self) -> impl Iterator<Item = [usize; 3]> {
        let [nx, ny, nz] = self.extents;
        (0..nz).flat_map(move |k| (0..ny).flat_map(move |j| (0..nx).map(move |i| [i, j, k])))
    }

    pub fn differences<T: Scalar>(&self) -> Result<FiniteDifferences3d<T>, Error> {
        let grid = (Axis::ALL.into_iter().zip(self.boundaries)).try_fold(
            Grid3::new(self.shape(), self.spacing)?,
            |grid, (axis, boundary)| grid.with_boundary(axis, boundary),
        )?;
        FiniteDifferences3d::new(&grid)?.with_accuracy(self.accuracy)
    }

    /// The sum of the sizes of all weights of a derivative of this order along each axis.
    fn weights(&self, order: u32) -> f64 {
        let of_axis = |h: &f64| plan_weight_sum(self.accuracy, order, *h);
        self.spacing.iter().map(of_axis).sum()
    }

    /// The same with this boundary everywhere.
    fn within(mut self, boundary: Boundary) -> Self {
        self.boundaries = [boundary; 3];
        self
    }

    /// A field of random numbers in [-1, 1).
    fn random<T: Sample>(&self, rng: &mut SmallRng) -> Result<Field3<T>, Error> {
        Field3::from_vec(self.shape(), random(rng, self.points()))
    }

    /// So many of them.
    fn randoms<T: Sample>(&self, rng: &mut SmallRng, count: usize) -> Vec<Field3<T>> {
        (0..count).map(|_| self.random(rng).unwrap()).collect()
    }

    /// The results as fields.
    fn run<T: Scalar>(
        &self,
        device: &Device,
        operator: Operator,
        fields: &[Field3<T>],
    ) -> Result<Vec<Field3<T>>, Error> {
        let results = run(device, &self.differences()?, operator, fields);
        let field = |values| Field3::from_vec(self.shape(), values);
        results.into_iter().map(field).collect()
    }
}

/// Grids as short as second derivatives allow, or a little longer.
pub fn grids(boundary: impl Strategy<Value = Boundary> + Clone) -> impl Strategy<Value = Grid> {
    (
        accuracy(),
        [boundary.clone(), boundary.clone(), boundary],
        uniform3(0.1..4.0_f64),
        uniform3(0..5_usize),
    )
        .prop_map(|(accuracy, boundaries, spacing, extra)| {
            let extent = |axis: usize| min_points(accuracy, 2, boundaries[axis]) + extra[axis];
            Grid {
                extents: [0, 1, 2].map(extent),
                spacing,
                boundaries,
                accuracy,
            }
        })
}

/// Boundaries within which derivatives are linear: nothing but 0 is fixed.
fn linear_boundary() -> impl Strategy<Value = Boundary> + Clone {
    boundary().prop_map(|boundary| match boundary {
        Boundary::Dirichlet(_) => Boundary::Dirichlet(0.0),
        boundary => boundary,
    })
}

/// The order of an operator's derivatives.
fn order(operator: Operator) -> u32 {
    match operator {
        Operator::Laplacian | Operator::SecondDerivative(_) => 2,
        _ => 1,
    }
}

fn operators() -> impl Strategy<Value = Operator> {
    select(Operator::VECTOR_CALCULUS.to_vec())
}

/// L (a f + b g) = a L f + b L g but for rounding, and L (-4 f) = -4 L f exactly.
fn is_linear<T: Sample>(
    grid: &Grid,
    operator: Operator,
    (a, b): (f64, f64),
    seed: u64,
    device: &Device,
) -> Result<(), TestCaseError> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (inputs, _) = operator.fields();
    let (f, g) = (
        grid.randoms::<T>(&mut rng, inputs),
        grid.randoms::<T>(&mut rng, inputs),
    );
    let (a, b) = (T::nearest(a), T::nearest(b));
    let combined = |a: T, b: T| -> Result<Vec<Field3<T>>, Error> {
        let fields = f.iter().zip(&g).map(|(f, g)| {
            let values = f.as_slice().iter().zip(g.as_slice());
            Field3::from_vec(grid.shape(), values.map(|(&f, &g)| a * f + b * g).collect())
        });
        fields.collect()
    };
    let results = |fields: &[Field3<T>]| grid.run(device, operator, fields);
    let (of_f, of_g) = (results(&f)?, results(&g)?);
    let of_both = results(&combined(a, b)?)?;
    let of_scaled = results(&combined(T::nearest(-4.0), T::nearest(0.0))?)?;
    let (a, b): (f64, f64) = (a.into(), b.into());
    // Of f, g and the sum of both, which is below 4: terms that are rounded four times,
    // at most nine of them along each axis.
    let bound = 1000.0 * T::UNIT_ROUNDOFF * grid.weights(order(operator));
    for nth in 0..of_f.len() {
        for at in 0..grid.points() {
            let value = |fields: &[Field3<T>]| -> f64 { fields[nth].as_slice()[at].into() };
            let (f, g) = (value(&of_f), value(&of_g));
            let error = (value(&of_both) - (a * f + b * g)).abs();
            prop_assert!(
                error <= bound,
                "output {nth}, element {at}: {error} > {bound}"
            );
            prop_assert!(value(&of_scaled) == -4.0 * f, "output {nth}, element {at}");
        }
    }
    Ok(())
}

/// A polynomial of a degree up to `accuracy`, its coefficients below 1 in sum.
fn polynomial(rng: &mut SmallRng, accuracy: u32) -> Vec<f64> {
    let terms = accuracy as usize + 1;
    (0..terms)
        .map(|_| rng.random_range(-1.0..1.0) / terms as f64)
        .collect()
}

/// Its derivative of this order.
fn derivative(polynomial: &[f64], order: usize, x: f64) -> f64 {
    (polynomial.iter().enumerate().skip(order))
        .map(|(power, c)| {
            let factor: usize = (0..order).map(|k| power - k).product();
            c * factor as f64 * x.powi((power - order) as i32)
        })
        .sum()
}

/// Products of a polynomial along each axis have their exact derivatives, but for
/// rounding, also next to the edges and corners of a grid with one-sided ends.
fn is_exact(
    grid: &Grid,
    operator: Operator,
    seed: u64,
    device: &Device,
) -> Result<(), TestCaseError> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (inputs, _) = operator.fields();
    let polynomials: Vec<[Vec<f64>; 3]> = (0..inputs)
        .map(|_| [(); 3].map(|()| polynomial(&mut rng, grid.accuracy)))
        .collect();
    // Values of each derivative at the points of each axis, on [-1, 1], where no power is
    // large.
    let along = |polynomial: &[f64], axis: usize| -> [Vec<f64>; 3] {
        [0, 1, 2].map(|order| {
            let x = |p: usize| grid.spacing[axis] * p as f64 - 1.0;
            let points = 0..grid.extents[axis];
            points
                .map(|p| derivative(polynomial, order, x(p)))
                .collect()
        })
    };
    let values: Vec<[[Vec<f64>; 3]; 3]> = (polynomials.iter())
        .map(|of_axes| [0, 1, 2].map(|axis| along(&of_axes[axis], axis)))
        .collect();
    // The derivative of a field of these orders along the axes.
    let exact = |field: usize, orders: [usize; 3], at: [usize; 3]| -> f64 {
        (0..3)
            .map(|axis| values[field][axis][orders[axis]][at[axis]])
            .product()
    };
    let first = |field: usize, axis: usize, at| {
        let mut orders = [0; 3];
        orders[axis] = 1;
        exact(field, orders, at)
    };
    let fields = (0..inputs)
        .map(|field| Field3::from_fn(grid.shape(), |i, j, k| exact(field, [0; 3], [i, j, k])))
        .collect::<Result<Vec<_>, _>>()?;
    let got = grid.run(device, operator, &fields)?;
    let bound = 500.0 * f64::EPSILON * grid.weights(order(operator));
    for at in grid.places() {
        for (nth, got) in got.iter().enumerate() {
            let (next, last) = ((nth + 1) % 3, (nth + 2) % 3);
            let expected: f64 = match operator {
                Operator::Derivative(_) | Operator::SecondDerivative(_) => {
                    unreachable!("no operator of vector calculus")
                }
                Operator::Gradient => first(0, nth, at),
                Operator::Divergence => (0..3).map(|axis| first(axis, axis, at)).sum(),
                Operator::Curl => first(last, next, at) - first(next, last, at),
                Operator::Laplacian => {
                    let second =
                        |axis: usize| exact(0, [0, 1, 2].map(|it| 2 * usize::from(it == axis)), at);
                    (0..3).map(second).sum()
                }
            };
            let error = (got[(at[0], at[1], at[2])] - expected).abs();
            prop_assert!(error <= bound, "output {nth} at {at:?}: {error} > {bound}");
        }
    }
    Ok(())
}

/// With the axes exchanged, of the grid and of the fields' components alike, the results
/// are the same: to the last bit where no terms change places. A curl changes its sign
/// where right hands become left hands.
fn axes_can_be_exchanged<T: Sample>(
    grid: &Grid,
    operator: Operator,
    from: [usize; 3],
    seed: u64,
    device: &Device,
) -> Result<(), TestCaseError> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (inputs, outputs) = operator.fields();
    let other = Grid {
        extents: from.map(|axis| grid.extents[axis]),
        spacing: from.map(|axis| grid.spacing[axis]),
        boundaries: from.map(|axis| grid.boundaries[axis]),
        accuracy: grid.accuracy,
    };
    // The old point of a new one.
    let old = |new: [usize; 3]| {
        let mut old = [0; 3];
        for (axis, from) in from.into_iter().enumerate() {
            old[from] = new[axis];
        }
        (old[0], old[1], old[2])
    };
    // Which old component is which new one, where there are three.
    let component = |nth: usize, count: usize| if count == 3 { from[nth] } else { nth };
    let fields = grid.randoms::<T>(&mut rng, inputs);
    let exchanged = (0..inputs)
        .map(|nth| {
            let field = &fields[component(nth, inputs)];
            Field3::from_fn(other.shape(), |i, j, k| field[old([i, j, k])])
        })
        .collect::<Result<Vec<_>, _>>()?;
    let expected = grid.run(device, operator, &fields)?;
    let got = other.run(device, operator, &exchanged)?;

    let cyclic = (from[0] + 1) % 3 == from[1];
    let sign = if operator == Operator::Curl && !cyclic {
        -1.0
    } else {
        1.0
    };
    let sums_of_three = matches!(operator, Operator::Divergence | Operator::Laplacian);
    let bound = if sums_of_three && from[2] != 2 {
        6.0 * T::UNIT_ROUNDOFF * grid.weights(order(operator))
    } else {
        0.0
    };
    for at in other.places() {
        for (nth, got) in got.iter().enumerate() {
            let expected: f64 = expected[component(nth, outputs)][old(at)].into();
            let got: f64 = got[(at[0], at[1], at[2])].into();
            let error = (got - sign * expected).abs();
            prop_assert!(error <= bound, "output {nth} at {at:?}: {got}, {expected}");
        }
    }
    Ok(())
}

/// Σ f g over all points and components.
fn product(f: &[Field3<f64>], g: &[Field3<f64>]) -> f64 {
    let values = |fields: &[Field3<f64>]| -> Vec<f64> {
        fields
            .iter()
            .flat_map(|field| field.as_slice().to_vec())
            .collect()
    };
    values(f).iter().zip(&values(g)).map(|(f, g)| f * g).sum()
}

/// What leaves one point enters others. On a periodic grid derivatives add up to 0, and
/// by parts: f div v and -v · grad f, u · curl v and v · curl u, f Δ g and g Δ f have the
/// same sums. The last holds between mirrors half-way as well.
fn is_conservative(mixed: &Grid, seed: u64, device: &Device) -> Result<(), TestCaseError> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let periodic = mixed.clone().within(Boundary::Periodic);
    let points = mixed.points() as f64;
    let f = periodic.randoms::<f64>(&mut rng, 1);
    let g = periodic.randoms::<f64>(&mut rng, 1);
    let u = periodic.randoms::<f64>(&mut rng, 3);
    let v = periodic.randoms::<f64>(&mut rng, 3);
    let first = |operator, fields: &[Field3<f64>]| periodic.run(device, operator, fields);
    let (grad_f, div_v) = (
        first(Operator::Gradient, &f)?,
        first(Operator::Divergence, &v)?,
    );
    let (curl_u, curl_v) = (first(Operator::Curl, &u)?, first(Operator::Curl, &v)?);

    let bound = 200.0 * f64::EPSILON * points * periodic.weights(1);
    for (name, fields) in [
        ("gradient", &grad_f),
        ("divergence", &div_v),
        ("curl", &curl_v),
    ] {
        for (nth, field) in fields.iter().enumerate() {
            let sum: f64 = field.as_slice().iter().sum();
            prop_assert!(sum.abs() <= bound, "{name}, output {nth}: {sum} > {bound}");
        }
    }
    for (axis, along) in Axis::ALL.into_iter().zip(&grad_f) {
        for line in lines(periodic.shape(), axis) {
            let sum: f64 = line.into_iter().map(|index| along.as_slice()[index]).sum();
            prop_assert!(sum.abs() <= bound, "a line along {axis}: {sum} > {bound}");
        }
    }
    let (left, right) = (product(&f, &div_v), -product(&v, &grad_f));
    prop_assert!((left - right).abs() <= bound, "f div v: {left}, {right}");
    let (left, right) = (product(&u, &curl_v), product(&v, &curl_u));
    prop_assert!((left - right).abs() <= bound, "u curl v: {left}, {right}");

    let bound = 200.0 * f64::EPSILON * points * mixed.weights(2);
    let second = |fields: &[Field3<f64>]| mixed.run(device, Operator::Laplacian, fields);
    let (of_f, of_g) = (second(&f)?, second(&g)?);
    let sum: f64 = of_f[0].as_slice().iter().sum();
    prop_assert!(sum.abs() <= bound, "Laplacian: {sum} > {bound}");
    let (left, right) = (product(&f, &of_g), product(&g, &of_f));
    prop_assert!((left - right).abs() <= bound, "f Δ g: {left}, {right}");
    Ok(())
}

/// Derivatives along different axes commute: but for rounding, the curl of a gradient and the
/// divergence of a curl are 0.
fn commutes<T: Sample>(grid: &Grid, seed: u64, device: &Device) -> Result<(), TestCaseError> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let gradient = grid.run(device, Operator::Gradient, &grid.randoms::<T>(&mut rng, 1))?;
    let curl = grid.run(device, Operator::Curl, &grid.randoms::<T>(&mut rng, 3))?;
    let bound = 200.0 * T::UNIT_ROUNDOFF * grid.weights(1).powi(2);
    for (operator, fields) in [(Operator::Curl, gradient), (Operator::Divergence, curl)] {
        for field in grid.run(device, operator, &fields)? {
            for (at, &value) in field.as_slice().iter().enumerate() {
                let value: f64 = value.into();
                prop_assert!(
                    value.abs() <= bound,
                    "{operator:?}, element {at}: {value} > {bound}"
                );
            }
        }
    }
    Ok(())
}

/// Whether every weight that a derivative of this order uses along an axis is a normal
/// number of `T`.
fn weights_fit<T: Scalar>(accuracy: u32, order: u32, boundary: Boundary, h: f64) -> bool {
    let scale = if order == 1 { h } else { h * h };
    let fit = |weight: &f64| *weight == 0.0 || T::nearest(weight / scale).is_normal_number();
    let radius = accuracy as usize / 2;
    let central = Weights::central(order, accuracy).unwrap();
    // That of the point itself belongs to a difference that is not formed.
    if !central.values()[radius + 1..].iter().all(fit) {
        return false;
    }
    let points = (accuracy + order) as i32;
    boundary != Boundary::OneSided
        || (0..radius as i32).all(|p| {
            let row = Weights::new(order, -p..=points - 1 - p).unwrap();
            row.values().iter().all(fit)
        })
}

/// The faults of a shape, for all fields.
fn faults_of_shape(extents: [usize; 3]) -> Faults {
    let empty = extents.contains(&0);
    let faults = (Axis::ALL.into_iter().zip(extents)).fold(Faults::none(), |faults, (axis, n)| {
        faults.and(
            n == 0,
            "InvalidSize",
            format!("{} is 0, but must be", axis.extent_name()),
        )
    });
    let [nx, ny, nz] = extents;
    let words = format!("nx * ny * nz is {nx} * {ny} * {nz}, but at most");
    faults.and(
        !empty && points_of(extents) > usize::MAX as u128,
        "IndexOverflow",
        words,
    )
}

/// The faults of spacings; `fit` says whether weights divided by them are finite.
fn faults_of_spacing(spacing: [f64; 3], fit: impl Fn(Axis, f64) -> bool) -> Faults {
    (Axis::ALL.into_iter().zip(spacing)).fold(Faults::none(), |faults, (axis, h)| {
        let words = format!("spacing along {axis} is {h}, but must be");
        faults.and(!h.is_finite(), "NonFinite", words.clone()).and(
            h.is_finite() && !(h > 0.0 && fit(axis, h)),
            "InvalidParameter",
            words,
        )
    })
}

/// A grid and buffers on it, with possible faults.
#[derive(Debug, Clone)]
struct Attempt {
    extents: [usize; 3],
    spacing: [f64; 3],
    accuracy: u32,
    axis: Axis,
    boundary: Boundary,
    /// Buffers that are one element too long, and such that are elsewhere.
    longer: [bool; 5],
    away: [bool; 5],
}

fn attempts() -> impl Strategy<Value = Attempt> {
    (
        uniform3(extent(2..12)),
        uniform3(number(0.1..4.0)),
        prop_oneof![14 => accuracy(), 1 => 0..12_u32, 1 => any::<u32>()],
        axis(),
        prop_oneof![3 => boundary(), 1 => awkward().prop_map(Boundary::Dirichlet)],
        uniform5(rarely(10)),
        uniform5(rarely(10)),
    )
        .prop_map(
            |(extents, spacing, accuracy, axis, boundary, longer, away)| Attempt {
                extents,
                spacing,
                accuracy,
                axis,
                boundary,
                longer,
                away,
            },
        )
}

/// Makes a plan and derives by it, whatever may be wrong.
fn is_judged_rightly<T: Scalar>(attempt: &Attempt, device: &Device) -> Result<(), TestCaseError> {
    let Attempt {
        extents,
        spacing,
        accuracy,
        axis,
        boundary,
        longer,
        away,
    } = *attempt;
    let [nx, ny, nz] = extents;
    let shape = Shape3::new(nx, ny, nz);
    let periodic = Boundary::Periodic;
    let is_absent = |axis: Axis| extents[axis.index()] == 1;
    let faults = faults_of_shape(extents).with(faults_of_spacing(spacing, |_, _| true));
    let Some(grid) = faults.judge(Grid3::new(shape, spacing))? else {
        return Ok(());
    };

    let boundaries = Axis::ALL.map(|it| if it == axis { boundary } else { periodic });
    let (faults, mut of_type) = match boundary {
        Boundary::Dirichlet(value) => {
            let in_range = T::nearest(value).into().is_finite();
            let words = format!("the value of a Dirichlet boundary is {value}");
            (
                Faults::none().and(!value.is_finite(), "NonFinite", words.clone()),
                Faults::none().and(!in_range, "InvalidParameter", words),
            )
        }
        _ => (Faults::none(), Faults::none()),
    };
    let Some(grid) = faults.judge(grid.with_boundary(axis, boundary))? else {
        return Ok(());
    };

    let faults_of_weights = |accuracy: u32| {
        faults_of_spacing(spacing, |axis, h| {
            is_absent(axis) || weights_fit::<T>(accuracy, 1, boundaries[axis.index()], h)
        })
    };
    of_type = of_type.with(faults_of_weights(8));
    let Some(differences) = of_type.judge(FiniteDifferences3d::<T>::new(&grid))? else {
        return Ok(());
    };

    let faults = if [2, 4, 6, 8].contains(&accuracy) {
        faults_of_weights(accuracy)
    } else {
        let words = format!("the order of accuracy is {accuracy}, but must be 2, 4, 6 or 8");
        Faults::none().and(true, "InvalidParameter", words)
    };
    let Some(differences) = faults.judge(differences.with_accuracy(accuracy))? else {
        return Ok(());
    };

    // As many elements as points, unless that is a large number.
    let points = shape.points()?;
    let len = if points < 10_000 { points } else { 7 };
    let elsewhere = Device::emulator();
    let buffer = |nth: usize| -> Result<Buffer<T>, Error> {
        let place = if away[nth] { &elsewhere } else { device };
        place.alloc_filled(len + usize::from(longer[nth]), T::nearest(1.0))
    };
    let (f, g) = (buffer(0)?, buffer(1)?);
    let (mut x, mut y, mut z) = (buffer(2)?, buffer(3)?, buffer(4)?);
    let faults_of_axis = |axis: Axis, order: u32| {
        let (h, boundary) = (spacing[axis.index()], boundaries[axis.index()]);
        let (n, least) = (axis.extent(shape), min_points(accuracy, order, boundary));
        let words = format!(
            "{} is {n}, but must be at least {least}",
            axis.extent_name()
        );
        let range = format!("spacing along {axis} is {h}, but must be such that");
        Faults::none()
            .and(n > 1 && n < least, "InvalidSize", words)
            .and(
                n > 1 && !weights_fit::<T>(accuracy, order, boundary, h),
                "InvalidParameter",
                range,
            )
    };
    let faults_of_buffers = |names: &[(usize, &str)]| {
        names.iter().fold(Faults::none(), |faults, &(nth, name)| {
            let given = len + usize::from(longer[nth]);
            let words = format!("{name} has {given} elements, but must have {points}");
            faults.and(given != points, "LengthMismatch", words).and(
                away[nth],
                "DeviceMismatch",
                format!("{name} is on"),
            )
        })
    };
    let plan = differences.plan(device)?;
    let general = match device.kind() {
        DeviceKind::Cpu => differences.plan(device)?,
        _ => differences.plan_with(device, Variant::General)?,
    };
    let buffers = |read: &[usize], written: &[usize]| {
        let read = read.iter().map(|nth| (*nth, "derivative3d: f"));
        let written = written.iter().map(|nth| (*nth, "derivative3d: df"));
        faults_of_buffers(&read.chain(written).collect::<Vec<_>>())
    };
    let along = |order| buffers(&[0], &[2]).with(faults_of_axis(axis, order));
    along(1).judge(plan.derivative(axis, &f, &mut x))?;
    along(1).judge(general.derivative(axis, &f, &mut x))?;
    along(2).judge(plan.second_derivative(axis, &f, &mut x))?;
    let all = |order, read: &[usize], written: &[usize]| {
        Axis::ALL
            .into_iter()
            .fold(buffers(read, written), |faults, axis| {
                faults.with(faults_of_axis(axis, order))
            })
    };
    let faults = all(1, &[0], &[2, 3, 4]);
    faults.judge(plan.gradient(&f, [&mut x, &mut y, &mut z]))?;
    faults.judge(general.gradient(&f, [&mut x, &mut y, &mut z]))?;
    all(1, &[0, 1], &[2]).judge(plan.divergence([&f, &g, &g], &mut x))?;
    all(1, &[0, 1], &[2, 3, 4]).judge(plan.curl([&f, &f, &g], [&mut x, &mut y, &mut z]))?;
    all(2, &[0], &[2]).judge(plan.laplacian(&f, &mut x))?;
    Ok(())
}

/// Why a kernel cannot take a shape, by the documentation.
fn faults_of_variant(
    variant: Variant,
    axis: Axis,
    extents: [usize; 3],
    boundary: Boundary,
) -> Faults {
    let of = |axis: Axis| extents[axis.index()];
    let kernel = variant.kernel::<f32>(Operator::Derivative(axis)).unwrap();
    let words = |axis: Axis| format!("{kernel}: {} is {}, but", axis.extent_name(), of(axis));
    let least = RADIUS + usize::from(boundary == Boundary::PeriodicWithEndpoint);
    if variant == Variant::General {
        return Faults::none();
    }
    let Some(pencils) = variant.pencils() else {
        let any_boundary = variant == Variant::AnyBoundary;
        let vectors = variant == Variant::Vector || (any_boundary && axis == Axis::X);
        let fit = match axis {
            Axis::X => extents[0].is_multiple_of(4),
            Axis::Y => extents[0].is_multiple_of(2),
            Axis::Z => extents[0].is_multiple_of(2) || extents[1].is_multiple_of(2),
        };
        let faults = Faults::none()
            .and(
                !any_boundary && of(axis) < least,
                "InvalidSize",
                words(axis),
            )
            .and(vectors && !fit, "InvalidSize", words(Axis::X));
        return Axis::ALL.into_iter().fold(faults, |faults, it| {
            let counted = it == axis || axis == Axis::Y;
            faults.and(
                counted && of(it) > 2_147_479_551,
                "IndexOverflow",
                words(it),
            )
        });
    };
    let (side, points) = match axis {
        Axis::X => (Axis::Y, 1),
        Axis::Y | Axis::Z => (Axis::X, pencils / 4),
    };
    let whole = (least..=256).contains(&of(axis)) && of(axis).is_multiple_of(points);
    let tiles = of(side) > 0 && of(side).is_multiple_of(pencils);
    let rows = extents[1] as u128 * extents[2] as u128;
    Faults::none()
        .and(!whole, "InvalidSize", words(axis))
        .and(!tiles, "InvalidSize", words(side))
        .and(
            axis == Axis::X && rows > u128::from(u32::MAX),
            "IndexOverflow",
            format!("{kernel}: ny * nz is {rows}, but"),
        )
}

/// Any of both conventions.
fn periodic() -> impl Strategy<Value = Boundary> {
    select(vec![Boundary::Periodic, Boundary::PeriodicWithEndpoint])
}

/// An extent that kernels may like.
fn fitting_extent() -> impl Strategy<Value = usize> {
    prop_oneof![3 => extent(0..12), 1 => select(vec![4, 8, 16, 32, 64]), 1 => 250..260_usize]
}

proptest! {
    #![proptest_config(property::cases(64))]

    #[test]
    fn operators_are_linear(
        grid in grids(linear_boundary()),
        operator in operators(),
        factors in (-2.0..2.0_f64, -2.0..2.0_f64),
        seed in any::<u64>(),
        device in device(),
    ) {
        is_linear::<f32>(&grid, operator, factors, seed, &device)?;
        is_linear::<f64>(&grid, operator, factors, seed, &device)?;
    }

    #[test]
    fn operators_are_exact_for_polynomials(
        grid in grids(Just(Boundary::OneSided)),
        operator in operators(),
        seed in any::<u64>(),
        device in device(),
    ) {
        let spacing = grid.extents.map(|n| 2.0 / (n - 1) as f64);
        is_exact(&Grid { spacing, ..grid }, operator, seed, &device)?;
    }

    #[test]
    fn axes_of_operators_can_be_exchanged(
        grid in grids(boundary()),
        operator in operators(),
        from in Just([0, 1, 2]).prop_shuffle(),
        seed in any::<u64>(),
        device in device(),
    ) {
        axes_can_be_exchanged::<f32>(&grid, operator, from, seed, &device)?;
        axes_can_be_exchanged::<f64>(&grid, operator, from, seed, &device)?;
    }

    #[test]
    fn operators_are_conservative(
        grid in grids(select(vec![Boundary::Periodic, Boundary::NeumannHalfway])),
        seed in any::<u64>(),
        device in device(),
    ) {
        is_conservative(&grid, seed, &device)?;
    }

    #[test]
    fn derivatives_along_different_axes_commute(
        grid in grids(linear_boundary()),
        seed in any::<u64>(),
        device in device(),
    ) {
        commutes::<f32>(&grid, seed, &device)?;
        commutes::<f64>(&grid, seed, &device)?;
    }
}

proptest! {
    #![proptest_config(property::cases(256))]

    /// Of fields on the host, which may be of another shape.
    #[test]
    fn fields_get_the_error_they_deserve(
        (extents, given) in (uniform3(9..12_usize), uniform3(9..12_usize)),
        fits in any::<bool>(),
        axis in axis(),
        device in device(),
    ) {
        let [nx, ny, nz] = extents;
        let shape = Shape3::new(nx, ny, nz);
        let [a, b, c] = if fits { extents } else { given };
        let (given, other) = (Shape3::new(a, b, c), Field3::filled(shape, 0.0_f64)?);
        let f = Field3::filled(given, 1.0_f64)?;
        let plan = FiniteDifferences3d::<f64>::new(&Grid3::new(shape, [1.0; 3])?)?;
        let words = format!("has the shape {given}, but must have {shape}");
        let faults = Faults::none().and(given != shape, "ShapeMismatch", words);
        let flat = |outcome: Result<Field3<f64>, Error>| -> Result<(), TestCaseError> {
            let all_zero = |df: &Field3<f64>| df.as_slice().iter().all(|value| *value == 0.0);
            prop_assert!(faults.judge(outcome)?.is_none_or(|df| all_zero(&df)));
            Ok(())
        };
        flat(plan.derivative_of(&device, axis, &f))?;
        flat(plan.second_derivative_of(&device, axis, &f))?;
        flat(plan.laplacian_of(&device, &f))?;
        flat(plan.divergence_of(&device, [&other, &f, &other]))?;
        for outcome in [plan.gradient_of(&device, &f), plan.curl_of(&device, [&f, &other, &other])] {
            faults.judge(outcome)?;
        }
        let mut df = f.clone();
        faults.judge(plan.derivative_of_into(&device, axis, &other, &mut df))?;
        faults.judge(plan.second_derivative_of_into(&device, axis, &other, &mut df))?;
        faults.judge(plan.divergence_of_into(&device, [&other; 3], &mut df))?;
        faults.judge(plan.laplacian_of_into(&device, &other, &mut df))?;
        let mut three = [other.clone(), df.clone(), other.clone()];
        faults.judge(plan.gradient_of_into(&device, &other, three.each_mut()))?;
        faults.judge(plan.curl_of_into(&device, [&other; 3], three.each_mut()))?;
        prop_assert!(given == shape || three == [other.clone(), df.clone(), other]);
        prop_assert!(given == shape || df == f);
    }

    #[test]
    fn weights_get_the_error_they_deserve(
        derivative in prop_oneof![9 => 0..9_u32, 1 => any::<u32>()],
        asked in prop_oneof![9 => 0..9_u32, 1 => any::<u32>()],
        (first, last) in prop_oneof![
            9 => (-12..12_i32, -12..12_i32),
            1 => (any::<i32>(), any::<i32>()),
        ],
    ) {
        let points = i64::from(last) - i64::from(first) + 1;
        let few = points <= i64::from(derivative);
        let far = first < -MAX_OFFSET || last > MAX_OFFSET || points > MAX_POINTS as i64;
        let faults = Faults::none()
            .and(derivative == 0, "InvalidParameter", "the order of the derivative is 0")
            .and(few || far, "InvalidParameter", format!("the range of offsets is {first}..={last}"));
        let made = faults.judge(Weights::new(derivative, first..=last))?;
        let order = made.as_ref().map_or(0, Weights::accuracy);
        let words = format!("must be wide enough for order {asked}");
        let faults = faults.and(made.is_some() && order < asked, "InvalidParameter", words);
        let shifted = faults.judge(Weights::shifted(derivative, asked, first..=last))?;
        prop_assert!(shifted.is_none() || shifted == made);
    }

    #[test]
    fn grids_get_the_error_they_deserve(attempt in attempts(), device in device()) {
        is_judged_rightly::<f32>(&attempt, &device)?;
        is_judged_rightly::<f64>(&attempt, &device)?;
    }

    #[test]
    fn plans_on_grids_get_the_error_they_deserve(
        extents in uniform3(1..9_usize),
        spacing in uniform3(number(0.1..4.0)),
        ends in uniform3((0..6_usize, 0..6_usize)),
    ) {
        let all = [
            Boundary::Neumann,
            Boundary::NeumannHalfway,
            Boundary::OneSided,
            Boundary::Dirichlet(1.0),
            Boundary::Dirichlet(1e300),
            Boundary::Periodic,
        ];
        let [nx, ny, nz] = extents;
        let Ok(mut grid) = Grid3::new(Shape3::new(nx, ny, nz), spacing) else {
            return Ok(());
        };
        let mut faults = Faults::none();
        for (axis, (low, high)) in Axis::ALL.into_iter().zip(ends) {
            let ends = [all[low], all[high]];
            let Ok(with_ends) = grid.with_ends(axis, ends) else {
                continue;
            };
            grid = with_ends;
            let words = format!("boundary along {axis} is {} at one end and", ends[0]);
            faults = faults.and(low != high, "InvalidParameter", words).and(
                low == 4 && high == 4,
                "InvalidParameter",
                "but must be in the range of f32",
            );
        }
        let differences = FiniteDifferences3d::<f32>::new(&grid);
        // The faults of spacings are found on a grid without other faults.
        let periodic = grid.with_boundaries(Boundary::Periodic)?;
        if let Err(error) = FiniteDifferences3d::<f32>::new(&periodic) {
            faults = faults.and(true, "InvalidParameter", error.to_string());
        }
        // One-sided ends have weights of their own.
        let one_sided = Axis::ALL.into_iter().filter(|axis| grid.ends(*axis)[0] == Boundary::OneSided);
        for axis in one_sided {
            let periodic = periodic.with_boundary(axis, Boundary::OneSided)?;
            if let Err(error) = FiniteDifferences3d::<f32>::new(&periodic) {
                faults = faults.and(true, "InvalidParameter", error.to_string());
            }
        }
        if let Some(differences) = faults.judge(differences)? {
            prop_assert_eq!(differences.grid(), &grid);
        }
    }

    /// Costs are computed for fields far larger than any memory, too.
    #[test]
    fn derivatives_get_the_error_they_deserve(
        extents in prop_oneof![
            7 => uniform3(extent(3..12)),
            // The largest there are.
            1 => Just([usize::MAX - 3, 1, 1]).prop_shuffle(),
            1 => Just([1 << 33, 1 << 28, 5]).prop_shuffle(),
        ],
        spacing in uniform3(number(0.1..4.0)),
        boundary in periodic(),
        variant in select(Variant::ALL.to_vec()),
        axis in axis(),
        longer in uniform3(rarely(8)),
        away in rarely(8),
        device in device(),
    ) {
        let [nx, ny, nz] = extents;
        let shape = Shape3::new(nx, ny, nz);
        let faults = faults_of_shape(extents).with(faults_of_spacing(spacing, |_, _| true));
        let Some(grid) = faults.judge(Grid3::new(shape, spacing))? else {
            return Ok(());
        };
        let grid = grid.with_boundaries(boundary)?;
        let least = usize::from(boundary == Boundary::PeriodicWithEndpoint);
        let faults = Axis::ALL.into_iter().fold(Faults::none(), |faults, axis| {
            let n = axis.extent(shape);
            let words = format!("{} is {n}, but must be", axis.extent_name());
            faults.and(n <= least, "InvalidSize", words)
        });
        faults.judge(grid.of_unit_length())?;

        let faults = faults_of_spacing(spacing, |axis, h| {
            axis.extent(shape) == 1 || weights_fit::<f32>(8, 1, boundary, h)
        });
        let Some(differences) = faults.judge(FiniteDifferences3d::<f32>::new(&grid))? else {
            return Ok(());
        };
        let counted = |each: u128| {
            u64::try_from(each.saturating_mul(points_of(extents))).unwrap_or(u64::MAX)
        };
        let cost = |bytes, flops| Cost { bytes: counted(bytes), flops: counted(flops) };
        prop_assert_eq!(differences.cost(Operator::Derivative(axis)), cost(8, 11));
        prop_assert_eq!(differences.cost(Operator::SecondDerivative(axis)), cost(8, 19));
        prop_assert_eq!(differences.cost(Operator::Gradient), cost(16, 33));

        let points = shape.points()?;
        let len = if points < 10_000 { points } else { 7 };
        let lens = longer.map(|longer| len + usize::from(longer));
        let elsewhere = Device::emulator();
        let place = if away { &elsewhere } else { &device };
        let f = device.alloc_filled(lens[0], 1.0)?;
        let mut x = place.alloc_filled(lens[1], 1.0)?;
        let mut y = place.alloc_filled(lens[2], 1.0)?;
        let mut z = place.alloc_filled(lens[1], 1.0)?;
        let faults = |outputs: &[usize], axes: &[Axis]| {
            let of_length = |name: &str, given: usize| {
                let words = format!("{name} has {given} elements, but must have {points}");
                Faults::none().and(given != points, "LengthMismatch", words)
            };
            let faults = of_length("derivative3d: f", lens[0])
                .and(away, "DeviceMismatch", "derivative3d: df is on");
            let faults = outputs.iter().fold(faults, |faults, &len| {
                faults.with(of_length("derivative3d: df", len))
            });
            axes.iter().fold(faults, |faults, axis| {
                let (n, least) = (axis.extent(shape), RADIUS + least);
                let words = format!("{} is {n}, but must be at least {least}", axis.extent_name());
                faults.and(n > 1 && n < least, "InvalidSize", words)
            })
        };
        let plan = differences.plan(&device)?;
        for axis in Axis::ALL {
            faults(&lens[1..2], &[axis]).judge(plan.derivative(axis, &f, &mut x))?;
        }
        faults(&lens[1..], &Axis::ALL).judge(plan.gradient(&f, [&mut x, &mut y, &mut z]))?;

        let kernel = variant.kernel::<f32>(Operator::Derivative(Axis::X)).unwrap();
        let named = Faults::none().and(device.kind() == DeviceKind::Cpu, "NotLaunchable", kernel);
        let Some(plan) = named.judge(differences.plan_with(&device, variant))? else {
            return Ok(());
        };
        let with = faults(&lens[1..2], &[axis])
            .with(faults_of_variant(variant, axis, extents, boundary));
        with.judge(plan.derivative(axis, &f, &mut x))?;
    }

    #[test]
    fn shapes_for_kernels_get_the_error_they_deserve(
        extents in uniform3(fitting_extent()),
        boundary in periodic(),
    ) {
        let [nx, ny, nz] = extents;
        let shape = Shape3::new(nx, ny, nz);
        let device = Device::emulator();
        let differences = faults_of_shape(extents)
            .judge(Grid3::new(shape, [1.0; 3]))?
            .map(|grid| FiniteDifferences3d::<f32>::new(&grid.with_boundaries(boundary)?))
            .transpose()?;
        for (variant, axis) in Variant::ALL.into_iter().flat_map(|it| Axis::ALL.map(|axis| (it, axis))) {
            if let Some(differences) = &differences {
                let (n, least) = (axis.extent(shape), min_points(8, 1, boundary));
                let words = format!("{} is {n}, but must be at least {least}", axis.extent_name());
                let faults = faults_of_variant(variant, axis, extents, boundary)
                    .and(n > 1 && n < least, "InvalidSize", words);
                let plan = differences.plan_with(&device, variant)?;
                faults.judge(plan.check(Operator::Derivative(axis)))?;
            }
            // Of any shape, if only to say that there is none.
            let tile = variant.tile(axis, shape).map(|[rows, columns]| rows.max(columns));
            let longest = axis.extent(shape).saturating_add(2 * RADIUS);
            prop_assert_eq!(tile, variant.pencils().map(|pencils| pencils.max(longest)));
        }
        prop_assert_eq!(Axis::Z.stride(shape), nx.saturating_mul(ny));
    }

    /// Of a field that no memory holds, along whichever axis it is that long.
    #[test]
    fn cosines_get_the_error_they_deserve(
        huge in any::<bool>(),
        short in uniform3(1..9_usize),
        (long, axis) in (axis(), axis()),
        boundary in periodic(),
    ) {
        let mut extents = short;
        if huge {
            extents = [1; 3];
            extents[long.index()] = isize::MAX as usize / 4;
        }
        let [nx, ny, nz] = extents;
        let grid = Grid3::new(Shape3::new(nx, ny, nz), [1.0; 3])?.with_boundaries(boundary)?;
        let words = "out of memory on the host";
        let faults = Faults::none().and(huge, "HostOutOfMemory", words);
        faults.judge(problem::cosine(&grid, axis))?;
    }
}
