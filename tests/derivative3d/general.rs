//! Tests first and second derivatives of any order and with any boundary: the port against the
//! definition, zeros, and identities of derivatives.

use super::GENERAL_KERNELS;
use halo_gpu::Scalar;
use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, Plan, Variant};
use halo_gpu::finite_difference::Weights;
use halo_gpu::{Axis, Boundary, Device, DeviceKind, Error, Field3, Grid3, Shape3};
use halo_tests::{
    Bits, assert_same_bits, devices, for_each, kernel_devices, property, rng, test_cases,
};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, RngExt};
use std::f64::consts::TAU;

const BOUNDARIES: [Boundary; 6] = [
    Boundary::Periodic,
    Boundary::PeriodicWithEndpoint,
    Boundary::Neumann,
    Boundary::NeumannHalfway,
    Boundary::Dirichlet(-0.75),
    Boundary::OneSided,
];

const ACCURACIES: [u32; 4] = [2, 4, 6, 8];

const SPACING: [f64; 3] = [0.3, 0.01, 7.0];

/// A type under test.
pub trait Sample: Scalar + Bits {}

impl<T: Scalar + Bits> Sample for T {}

/// Numbers in [-1, 1), none of them special.
pub fn random<T: Sample>(rng: &mut impl Rng, len: usize) -> Vec<T> {
    (0..len)
        .map(|_| T::nearest(rng.random_range(-1.0..1.0)))
        .collect()
}

/// The fewest points of the axis, straight from the documentation.
pub fn min_points(accuracy: u32, order: u32, boundary: Boundary) -> usize {
    let radius = accuracy as usize / 2;
    match boundary {
        Boundary::Periodic | Boundary::NeumannHalfway => radius,
        Boundary::PeriodicWithEndpoint | Boundary::Neumann => radius + 1,
        Boundary::Dirichlet(_) => 1,
        _ => accuracy as usize + order as usize,
    }
}

/// A shape with `len` points along `axis` and the two others across, in turn.
fn shape_of(axis: Axis, len: usize, others: [usize; 2]) -> Shape3 {
    let [a, b] = others;
    match axis {
        Axis::X => Shape3::new(len, a, b),
        Axis::Y => Shape3::new(a, len, b),
        Axis::Z => Shape3::new(a, b, len),
    }
}

/// A plan with this boundary on `axis` and another on the two others.
fn plan_of<T: Scalar>(
    shape: Shape3,
    axis: Axis,
    accuracy: u32,
    boundary: Boundary,
) -> FiniteDifferences3d<T> {
    Grid3::new(shape, SPACING)
        .and_then(|grid| grid.with_boundaries(Boundary::Dirichlet(99.0)))
        .and_then(|grid| grid.with_boundary(axis, boundary))
        .and_then(|grid| FiniteDifferences3d::new(&grid))
        .and_then(|differences| differences.with_accuracy(accuracy))
        .unwrap()
}

/// A line along `axis` with this boundary at its ends.
fn line_of<T: Scalar>(
    axis: Axis,
    n: usize,
    h: f64,
    accuracy: u32,
    boundary: Boundary,
) -> FiniteDifferences3d<T> {
    Grid3::new(line(axis, n), [h; 3])
        .and_then(|grid| grid.with_boundary(axis, boundary))
        .and_then(|grid| FiniteDifferences3d::new(&grid))
        .and_then(|differences| differences.with_accuracy(accuracy))
        .unwrap()
}

/// A plan by the general kernels, or the port.
fn general<T: Scalar>(device: &Device, differences: &FiniteDifferences3d<T>) -> Plan<T> {
    match device.kind() {
        DeviceKind::Cpu => differences.plan(device),
        _ => differences.plan_with(device, Variant::General),
    }
    .unwrap()
}

/// The derivative by the general kernel, or the port, on buffers whose output was
/// poisoned.
fn run<T: Sample>(
    device: &Device,
    differences: &FiniteDifferences3d<T>,
    axis: Axis,
    order: u32,
    f: &[T],
) -> Vec<T> {
    let plan = general(device, differences);
    let input = device.upload(f).unwrap();
    let poison = T::nearest(f64::NAN);
    let mut output = device.alloc_filled(f.len(), poison).unwrap();
    if order == 1 {
        plan.derivative(axis, &input, &mut output).unwrap();
    } else {
        plan.second_derivative(axis, &input, &mut output).unwrap();
    }
    assert_same_bits(&input.to_vec().unwrap(), f, |i| {
        format!("input {i}, which was written")
    });
    output.to_vec().unwrap()
}

/// The values of a line with as many beyond each end, according to the documentation's table.
fn extended(line: &[f64], boundary: Boundary, beyond: usize) -> Vec<f64> {
    let n = line.len();
    let left = |m: usize| match boundary {
        Boundary::Periodic => line[n - m],
        Boundary::PeriodicWithEndpoint => line[n - 1 - m],
        Boundary::Neumann => line[m],
        Boundary::NeumannHalfway => line[m - 1],
        Boundary::Dirichlet(value) => value,
        _ => f64::NAN,
    };
    let right = |m: usize| match boundary {
        Boundary::Periodic => line[m - 1],
        Boundary::PeriodicWithEndpoint => line[m],
        Boundary::Neumann => line[n - 1 - m],
        Boundary::NeumannHalfway => line[n - m],
        Boundary::Dirichlet(value) => value,
        _ => f64::NAN,
    };
    (1..=beyond)
        .rev()
        .map(left)
        .chain(line.iter().copied())
        .chain((1..=beyond).map(right))
        .collect()
}

/// The derivative of a line by definition, and the sum of the sizes of its terms.
fn oracle(line: &[f64], accuracy: u32, order: u32, boundary: Boundary, h: f64) -> Vec<(f64, f64)> {
    let radius = accuracy as usize / 2;
    let n = line.len();
    if n == 1 {
        return vec![(0.0, 0.0)];
    }
    let extended = extended(line, boundary, radius);
    (0..n)
        .map(|p| {
            let near_end = p < radius || p + radius >= n;
            let offsets = if boundary == Boundary::OneSided && near_end {
                let points = (accuracy + order) as i32;
                let first = if p < radius { 0 } else { n as i32 - points };
                first - p as i32..=first - p as i32 + points - 1
            } else {
                -(radius as i32)..=radius as i32
            };
            let weights = Weights::new(order, offsets.clone()).unwrap();
            assert!(weights.accuracy() >= accuracy);
            offsets
                .zip(weights.values())
                .fold((0.0, 0.0), |(sum, size), (offset, weight)| {
                    let value = extended[(p + radius).wrapping_add_signed(offset as isize)];
                    let term = weight / h.powi(order as i32) * value;
                    (sum + term, size + term.abs())
                })
        })
        .collect()
}

/// The elements of each line along `axis`, in order.
pub fn lines(shape: Shape3, axis: Axis) -> impl Iterator<Item = Vec<usize>> {
    let (n, stride) = (axis.extent(shape), axis.stride(shape));
    (0..shape.points().unwrap())
        .filter(move |index| index / stride % n == 0)
        .map(move |first| (0..n).map(|p| first + p * stride).collect())
}

/// Everything but the type that a case consists of.
#[derive(Debug, Clone)]
struct Case {
    device: Device,
    axis: Axis,
    accuracy: u32,
    order: u32,
    boundary: Boundary,
    shape: Shape3,
}

/// Each combination on each device, with the shortest axis allowed and a few others.
fn cases(rng: &mut SmallRng, devices: &[Device], lengths: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for device in devices {
        for axis in Axis::ALL {
            for boundary in BOUNDARIES {
                for accuracy in ACCURACIES {
                    for order in [1, 2] {
                        let min = min_points(accuracy, order, boundary);
                        for length in 0..lengths {
                            let len =
                                min + [0, rng.random_range(1..9), rng.random_range(9..75)][length];
                            let others = [rng.random_range(1..6), rng.random_range(1..4)];
                            cases.push(Case {
                                device: device.clone(),
                                axis,
                                accuracy,
                                order,
                                boundary,
                                shape: shape_of(axis, len, others),
                            });
                        }
                    }
                }
            }
        }
    }
    cases
}

fn the_port_matches_the_definition_in<T: Sample>() {
    let mut rng = rng();
    let cases = cases(&mut rng, &[Device::cpu()], 3);
    let cases = test_cases::one_in(5, cases);
    for_each("the definition", cases, |case| {
        let Case {
            device,
            axis,
            accuracy,
            order,
            boundary,
            shape,
        } = case;
        let plan = plan_of::<T>(shape, axis, accuracy, boundary);
        let f: Vec<T> = random(&mut rng, shape.points().unwrap());
        let got = run(&device, &plan, axis, order, &f);
        for line in lines(shape, axis) {
            let values: Vec<f64> = line.iter().map(|index| f[*index].into()).collect();
            let expected = oracle(&values, accuracy, order, boundary, SPACING[axis.index()]);
            for (index, (expected, size)) in line.into_iter().zip(expected) {
                let got: f64 = got[index].into();
                // Each term is a difference of numbers up to 1, and each of at most
                // 9 is rounded at most 4 times.
                let weights = plan_weight_sum(accuracy, order, SPACING[axis.index()]);
                let bound = 36.0 * (2.0 * T::UNIT_ROUNDOFF) * (size + 4.0 * weights);
                assert!(
                    (got - expected).abs() <= bound,
                    "element {index}: {got}, not {expected} ± {bound}"
                );
            }
        }
    });
}

/// The sum of the sizes of the weights of the widest stencil.
pub fn plan_weight_sum(accuracy: u32, order: u32, h: f64) -> f64 {
    let points = (accuracy + order) as i32;
    let weights = Weights::new(order, 0..=points - 1).unwrap();
    weights
        .values()
        .iter()
        .map(|weight| weight.abs())
        .sum::<f64>()
        / h.powi(order as i32)
}

#[test]
fn the_port_matches_the_definition() {
    the_port_matches_the_definition_in::<f32>();
    the_port_matches_the_definition_in::<f64>();
}

/// Compares the derivative of `f` on the case's device with that by the port.
fn gives_the_bits_of_the_port<T: Sample>(case: &Case, f: &[T]) {
    let plan = plan_of::<T>(case.shape, case.axis, case.accuracy, case.boundary);
    let expected = run(&Device::cpu(), &plan, case.axis, case.order, f);
    let got = run(&case.device, &plan, case.axis, case.order, f);
    assert_same_bits(&got, &expected, |index| format!("element {index}"));
}

/// The sign of a zero tells whether a sum begins with a product, or with 0 and a sum.
fn zeros_have_the_sign_of_the_port_in<T: Sample>() {
    let mut rng = rng();
    let cases = cases(&mut rng, &kernel_devices(), 1);
    for_each("zeros", cases, |case| {
        let f: Vec<T> = (0..case.shape.points().unwrap())
            .map(|_| T::nearest(if rng.random() { 0.0 } else { -0.0 }))
            .collect();
        gives_the_bits_of_the_port(&case, &f);
    });
}

#[test]
fn zeros_have_the_sign_of_the_port() {
    zeros_have_the_sign_of_the_port_in::<f32>();
    zeros_have_the_sign_of_the_port_in::<f64>();
}

/// At a point beside a one-sided end all products are -0, and so is their sum: the term of the
/// point itself, which would be +0, is not added.
fn the_point_itself_takes_no_part_in<T: Sample>() {
    // In the second derivative of 8th order at point 1, these points have positive weights.
    const POSITIVE: [usize; 5] = [0, 3, 5, 7, 9];
    let n = 24;
    let from_end = |point: usize| point.min(n - 1 - point);
    let f: Vec<T> = (0..n)
        .map(|point| POSITIVE.contains(&from_end(point)))
        .map(|positive| T::nearest(if positive { -0.0 } else { 0.0 }))
        .collect();
    let cases = Axis::ALL
        .into_iter()
        .flat_map(|axis| devices().into_iter().map(move |device| (axis, device)));
    for_each("points beside an end", cases, |(axis, device)| {
        let differences = line_of::<T>(axis, n, 1.0, 8, Boundary::OneSided);
        let found = run(&device, &differences, axis, 2, &f);
        assert_same_bits(&[found[1], found[n - 2]], &[T::nearest(-0.0); 2], |i| {
            format!("{axis}, end {i}")
        });
    });
}

#[test]
fn the_point_itself_takes_no_part() {
    the_point_itself_takes_no_part_in::<f32>();
    the_point_itself_takes_no_part_in::<f64>();
}

#[test]
fn the_library_picks_tuned_kernels_which_give_the_same_bits() {
    let mut rng = rng();
    let shape = Shape3::new(32, 32, 32);
    let f: Vec<f32> = random(&mut rng, shape.points().unwrap());
    for_each("8th order, periodic, f32", devices(), |device| {
        for boundary in [Boundary::Periodic, Boundary::PeriodicWithEndpoint] {
            for axis in Axis::ALL {
                // The boundaries of other axes do not matter.
                let differences = plan_of::<f32>(shape, axis, 8, boundary);
                let general = run(&device, &differences, axis, 1, &f);
                let plan = differences.plan(&device).unwrap();
                let expected = (device.kind() != DeviceKind::Cpu).then_some(Variant::Vector);
                assert_eq!(plan.variant(Operator::Derivative(axis)), expected);
                let input = device.upload(&f).unwrap();
                let mut output = device.alloc_filled(f.len(), f32::NAN).unwrap();
                plan.derivative(axis, &input, &mut output).unwrap();
                let picked = output.to_vec().unwrap();
                assert_same_bits(&picked, &general, |i| format!("{axis}, element {i}"));
            }
        }
    });
}

#[test]
fn the_kernels_have_the_names_of_their_axes_and_types() {
    let names = Axis::ALL.into_iter().flat_map(|axis| {
        [
            Variant::General.kernel::<f32>(Operator::Derivative(axis)),
            Variant::General.kernel::<f64>(Operator::Derivative(axis)),
        ]
    });
    let names = names.map(Option::unwrap);
    assert!(names.eq(GENERAL_KERNELS[..6].iter().copied()));
}

/// A line of `n` points, as a shape along `axis`.
fn line(axis: Axis, n: usize) -> Shape3 {
    shape_of(axis, n, [1, 1])
}

#[test]
fn measured_orders_are_those_asked_for() {
    let mut cases = Vec::new();
    // Beyond fixed ends no field goes on as it should.
    let smooth = BOUNDARIES
        .into_iter()
        .filter(|b| !matches!(b, Boundary::Dirichlet(_)));
    for boundary in smooth {
        for accuracy in ACCURACIES {
            for order in [1, 2] {
                cases.push((boundary, accuracy, order));
            }
        }
    }
    for_each("orders", cases, |(boundary, accuracy, order)| {
        let cpu = Device::cpu();
        let error = |intervals: usize| {
            let points = match boundary {
                Boundary::Periodic | Boundary::NeumannHalfway => intervals,
                _ => intervals + 1,
            };
            // A whole period, or half of one between mirrors; one-sided, a piece
            // that is not a period of anything.
            let (length, phase) = match boundary {
                Boundary::Periodic | Boundary::PeriodicWithEndpoint => (1.0, 0.7),
                Boundary::OneSided => (0.4, 0.7),
                _ => (0.5, 0.0),
            };
            let h = length / intervals as f64;
            let first = if boundary == Boundary::NeumannHalfway {
                0.5
            } else {
                0.0
            };
            let x = |p: usize| TAU * h * (p as f64 + first) + phase;
            let shape = line(Axis::Y, points);
            let plan = line_of::<f64>(Axis::Y, points, h, accuracy, boundary);
            let f = Field3::from_fn(shape, |_, j, _| x(j).cos()).unwrap();
            let (df, exact): (_, fn(f64) -> f64) = if order == 1 {
                (plan.derivative_of(&cpu, Axis::Y, &f), |x| -TAU * x.sin())
            } else {
                (plan.second_derivative_of(&cpu, Axis::Y, &f), |x| {
                    -TAU * TAU * x.cos()
                })
            };
            (df.unwrap().as_slice().iter().enumerate())
                .map(|(p, df)| (df - exact(x(p))).abs())
                .fold(0.0, f64::max)
        };
        // Coarse enough for the truncation to stand out from the rounding.
        let coarse = match boundary {
            Boundary::Neumann | Boundary::NeumannHalfway => 9,
            Boundary::OneSided => 12,
            _ => 18,
        };
        let measured = (error(coarse) / error(2 * coarse)).log2();
        // The next power of the spacing adds to it, more so where stencils are long.
        assert!(
            (measured - f64::from(accuracy)).abs() < 0.6,
            "measured order {measured}, not {accuracy}"
        );
    });
}

#[test]
fn axes_can_be_exchanged() {
    // The same line along each axis: not nearly the same, the same.
    let mut rng = rng();
    let f: Vec<f64> = random(&mut rng, 43);
    for_each("exchange", devices(), |device| {
        for boundary in BOUNDARIES {
            for order in [1, 2] {
                let along = |axis: Axis| {
                    let plan = line_of(axis, f.len(), 0.7, 6, boundary);
                    run(&device, &plan, axis, order, &f)
                };
                let x = along(Axis::X);
                assert_same_bits(&along(Axis::Y), &x, |i| format!("y, element {i}"));
                assert_same_bits(&along(Axis::Z), &x, |i| format!("z, element {i}"));
            }
        }
    });
}

#[test]
fn a_constant_has_no_derivative() {
    for_each("constant", devices(), |device| {
        for boundary in BOUNDARIES.into_iter().chain([Boundary::Dirichlet(0.7)]) {
            if boundary == Boundary::Dirichlet(-0.75) {
                continue;
            }
            for (axis, order) in Axis::ALL
                .into_iter()
                .flat_map(|axis| [(axis, 1), (axis, 2)])
            {
                let plan = plan_of::<f64>(shape_of(axis, 21, [2, 2]), axis, 8, boundary);
                let df = run(&device, &plan, axis, order, &[0.7; 84]);
                assert!(df.iter().all(|value| *value == 0.0), "{boundary}: {df:?}");
            }
        }
    });
}

#[test]
fn an_axis_too_short_is_refused_by_name() {
    for_each("short axes", BOUNDARIES, |boundary| {
        for accuracy in ACCURACIES {
            for order in [1, 2] {
                let min = min_points(accuracy, order, boundary);
                for axis in Axis::ALL {
                    let outcome = |len: usize| {
                        let plan = plan_of::<f32>(line(axis, len), axis, accuracy, boundary);
                        let f = Field3::filled(plan.shape(), 1.0).unwrap();
                        if order == 1 {
                            plan.derivative_of(&Device::cpu(), axis, &f)
                        } else {
                            plan.second_derivative_of(&Device::cpu(), axis, &f)
                        }
                    };
                    assert!(outcome(min).is_ok(), "{boundary}: {min}");
                    assert!(outcome(1).is_ok(), "{boundary}: absent");
                    if min > 2 {
                        let error = outcome(min - 1).unwrap_err();
                        assert!(
                            matches!(&error, Error::InvalidSize { axis: name, given, .. }
                                if *name == axis.extent_name() && *given == min - 1),
                            "{error}"
                        );
                    }
                }
            }
        }
    });
}

#[test]
fn parameters_without_meaning_are_refused() {
    let shape = Shape3::cube(9);
    let grid = |h| Grid3::new(shape, [1.0, h, 1.0]).unwrap();
    let f32_on = |grid: &Grid3| FiniteDifferences3d::<f32>::new(grid);
    for_each("accuracy", [0, 1, 3, 5, 7, 9, 10, u32::MAX], |accuracy| {
        let differences = f32_on(&grid(1.0)).unwrap();
        let error = differences.with_accuracy(accuracy).unwrap_err();
        assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
    });
    for_each("fixed values", [f64::NAN, f64::INFINITY], |value| {
        let error = grid(1.0)
            .with_boundary(Axis::X, Boundary::Dirichlet(value))
            .unwrap_err();
        assert!(matches!(error, Error::NonFinite { .. }), "{error}");
    });
    let wide = grid(1.0).with_boundary(Axis::X, Boundary::Dirichlet(1e39));
    let error = f32_on(&wide.unwrap()).unwrap_err();
    assert!(error.to_string().contains("range of f32"), "{error}");
    // 1/h is in range and 1/h² is not.
    let steep = f32_on(&grid(1e-20)).unwrap();
    let f = Field3::filled(shape, 1.0).unwrap();
    assert!(steep.derivative_of(&Device::cpu(), Axis::Y, &f).is_ok());
    let error = steep
        .second_derivative_of(&Device::cpu(), Axis::Y, &f)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("spacing along y is 0.00000000000000000001"),
        "{error}"
    );
    assert!(
        steep
            .second_derivative_of(&Device::cpu(), Axis::X, &f)
            .is_ok()
    );
}

#[test]
fn buffers_that_do_not_fit_are_refused_before_anything_runs() {
    for_each("buffers", devices(), |device| {
        let shape = Shape3::cube(9);
        let grid = Grid3::new(shape, [1.0; 3]).unwrap();
        let differences = FiniteDifferences3d::<f64>::new(&grid).unwrap();
        let plan = differences.plan(&device).unwrap();
        let f = device.upload(&[1.0; 729]).unwrap();
        let mut short = device.alloc_filled(728, 5.0).unwrap();
        for error in [
            plan.derivative(Axis::X, &f, &mut short).unwrap_err(),
            plan.second_derivative(Axis::X, &f, &mut short).unwrap_err(),
        ] {
            assert!(
                matches!(
                    &error,
                    Error::LengthMismatch {
                        required: 729,
                        given: 728,
                        ..
                    }
                ),
                "{error}"
            );
        }
        assert!(short.to_vec().unwrap().iter().all(|value| *value == 5.0));
        let mut elsewhere = Device::emulator().alloc_filled(729, 5.0).unwrap();
        let error = plan.derivative(Axis::X, &f, &mut elsewhere).unwrap_err();
        assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
    });
}

/// One of the boundaries, at random.
pub fn boundary() -> impl Strategy<Value = Boundary> + Clone {
    proptest::sample::select(BOUNDARIES.to_vec())
}

/// One of the orders of accuracy.
pub fn accuracy() -> impl Strategy<Value = u32> {
    proptest::sample::select(ACCURACIES.to_vec())
}

/// One of the axes.
pub fn axis() -> impl Strategy<Value = Axis> {
    proptest::sample::select(Axis::ALL.to_vec())
}

proptest! {
    #![proptest_config(property::cases(256))]

    /// A polynomial of a degree up to the order of accuracy has its exact derivatives,
    /// rounding apart, also at the ends.
    #[test]
    fn polynomials_are_differentiated_exactly(
        axis in axis(),
        accuracy in accuracy(),
        extra in 0_usize..30,
        coefficients in proptest::collection::vec(-1.0_f64..1.0, 9),
    ) {
        let n = accuracy as usize + 2 + extra;
        // On [-1, 1], where no power is large.
        let h = 2.0 / (n - 1) as f64;
        let x = |p: usize| -1.0 + h * p as f64;
        let coefficients = &coefficients[..=accuracy as usize];
        let derivative = |times: u32, x: f64| -> f64 {
            (coefficients.iter().enumerate())
                .filter(|(power, _)| *power >= times as usize)
                .map(|(power, c)| {
                    let factor: f64 = (0..times).map(|k| power as f64 - f64::from(k)).product();
                    c * factor * x.powi(power as i32 - times as i32)
                })
                .sum()
        };
        let plan = line_of::<f64>(axis, n, h, accuracy, Boundary::OneSided);
        let f: Vec<f64> = (0..n).map(|p| derivative(0, x(p))).collect();
        for order in [1, 2] {
            let df = run(&Device::cpu(), &plan, axis, order, &f);
            // Values up to 9, each rounded when it was made, times the weights.
            let bound = 100.0 * f64::EPSILON * 9.0 * plan_weight_sum(accuracy, order, h);
            for (p, df) in df.iter().enumerate() {
                let error = (df - derivative(order, x(p))).abs();
                prop_assert!(error <= bound, "point {p} of {n}: error {error} > {bound}");
            }
        }
    }

    /// D(a f + b g) = a D f + b D g, rounding apart, and exactly for powers of two.
    #[test]
    fn derivatives_are_linear(
        axis in axis(),
        accuracy in accuracy(),
        boundary in boundary(),
        order in 1_u32..=2,
        values in proptest::collection::vec((-1.0_f64..1.0, -1.0_f64..1.0), 10..60),
        (a, b) in (-2.0_f64..2.0, -2.0_f64..2.0),
    ) {
        // The values beyond fixed ends would have to be combined as well.
        let boundary = match boundary {
            Boundary::Dirichlet(_) => Boundary::Dirichlet(0.0),
            boundary => boundary,
        };
        let plan = plan_of::<f64>(line(axis, values.len()), axis, accuracy, boundary);
        let derivative = |f: Vec<f64>| run(&Device::cpu(), &plan, axis, order, &f);
        let of_f = derivative(values.iter().map(|(f, _)| *f).collect());
        let of_g = derivative(values.iter().map(|(_, g)| *g).collect());
        let of_sum = derivative(values.iter().map(|(f, g)| a * f + b * g).collect());
        let of_twice = derivative(values.iter().map(|(f, _)| -4.0 * f).collect());
        let weights = plan_weight_sum(accuracy, order, SPACING[axis.index()]);
        for p in 0..values.len() {
            let error = (of_sum[p] - (a * of_f[p] + b * of_g[p])).abs();
            prop_assert!(error <= 400.0 * f64::EPSILON * weights, "point {p}: {error}");
            prop_assert!(of_twice[p] == -4.0 * of_f[p], "point {p}");
        }
    }

    /// What flows out of a point of a periodic axis flows into others: derivatives add
    /// up to 0. So do second derivatives between mirrors half-way.
    #[test]
    fn derivatives_are_conservative(
        axis in axis(),
        accuracy in accuracy(),
        values in proptest::collection::vec(-1.0_f64..1.0, 4..200),
    ) {
        for (boundary, order) in [
            (Boundary::Periodic, 1),
            (Boundary::Periodic, 2),
            (Boundary::NeumannHalfway, 2),
        ] {
            let plan = plan_of::<f64>(line(axis, values.len()), axis, accuracy, boundary);
            let df = run(&Device::cpu(), &plan, axis, order, &values);
            let sum: f64 = df.iter().sum();
            let weights = plan_weight_sum(accuracy, order, SPACING[axis.index()]);
            let bound = 100.0 * f64::EPSILON * weights * values.len() as f64;
            prop_assert!(sum.abs() <= bound, "{boundary}: {sum} > {bound}");
        }
    }
}
