//! Gradient, divergence, curl and Laplacian: each the sum of its derivatives, to the
//! bit, by the port; and what vector calculus says of them.

use super::GENERAL_KERNELS;
use halo_gpu::Scalar;
use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, Variant};
use halo_gpu::{Axis, Boundary, Device, DeviceKind, Error, Field3, Grid3, Shape3};
use halo_tests::{Bits, assert_same_bits, devices, for_each, kernel_devices, rng, test_cases};
use rand::RngExt;
use rand::rngs::SmallRng;
use std::f64::consts::TAU;

const BOUNDARIES: [Boundary; 6] = [
    Boundary::Periodic,
    Boundary::PeriodicWithEndpoint,
    Boundary::Neumann,
    Boundary::NeumannHalfway,
    Boundary::Dirichlet(0.25),
    Boundary::OneSided,
];

/// A field of these numbers.
fn field_of<T: Scalar>(shape: Shape3, mut number: impl FnMut() -> f64) -> Field3<T> {
    Field3::from_fn(shape, |_, _, _| T::nearest(number())).unwrap()
}

/// A field of numbers in [-1, 1).
fn random<T: Scalar>(rng: &mut SmallRng, shape: Shape3) -> Field3<T> {
    field_of(shape, || rng.random_range(-1.0..1.0))
}

/// Another boundary for each axis.
fn boundaries(first: usize) -> [Boundary; 3] {
    [0, 1, 2].map(|axis| BOUNDARIES[(first + axis) % BOUNDARIES.len()])
}

/// Derivatives on a grid with these boundaries along x, y and z.
fn within<T: Scalar>(
    shape: Shape3,
    spacing: [f64; 3],
    boundaries: [Boundary; 3],
    accuracy: u32,
) -> FiniteDifferences3d<T> {
    let mut all = Axis::ALL.into_iter().zip(boundaries);
    Grid3::new(shape, spacing)
        .and_then(|grid| all.try_fold(grid, |grid, (axis, it)| grid.with_boundary(axis, it)))
        .and_then(|grid| FiniteDifferences3d::new(&grid))
        .and_then(|differences| differences.with_accuracy(accuracy))
        .unwrap()
}

/// The same with another boundary on each axis.
fn grid_of<T: Scalar>(shape: Shape3, accuracy: u32, first: usize) -> FiniteDifferences3d<T> {
    within(shape, SPACING, boundaries(first), accuracy)
}

const SPACING: [f64; 3] = [0.3, 0.01, 7.0];

/// With this many planes there are more blocks of two planes than a kernel runs at once.
const TALL: usize = 533;

/// What an operator is, put together from the port's derivatives along one axis.
fn by_definition<T: Scalar>(
    grid: &FiniteDifferences3d<T>,
    operator: Operator,
    fields: &[Field3<T>],
) -> Vec<Vec<T>> {
    let cpu = Device::cpu();
    let first = |field: usize, axis| grid.derivative_of(&cpu, axis, &fields[field]).unwrap();
    let second = |axis| grid.second_derivative_of(&cpu, axis, &fields[0]).unwrap();
    let combine = |a: Vec<T>, b: Field3<T>, operation: fn(T, T) -> T| -> Vec<T> {
        a.into_iter()
            .zip(b.as_slice())
            .map(|(a, b)| operation(a, *b))
            .collect()
    };
    let plus = |a, b| combine(a, b, |a, b| a + b);
    let minus = |a: Field3<T>, b| combine(a.into_vec(), b, |a, b| a - b);
    let (u, v, w) = (0, 1, 2);
    let [x, y, z] = Axis::ALL;
    match operator {
        Operator::Gradient => Axis::ALL
            .map(|axis| first(0, axis).into_vec())
            .into_iter()
            .collect(),
        Operator::Divergence => {
            vec![plus(plus(first(u, x).into_vec(), first(v, y)), first(w, z))]
        }
        Operator::Laplacian => vec![plus(plus(second(x).into_vec(), second(y)), second(z))],
        Operator::Curl => vec![
            minus(first(w, y), first(v, z)),
            minus(first(u, z), first(w, x)),
            minus(first(v, x), first(u, y)),
        ],
        Operator::Derivative(axis) => vec![first(0, axis).into_vec()],
        Operator::SecondDerivative(axis) => vec![second(axis).into_vec()],
    }
}

/// The operator on a device.
pub fn run<T: Scalar>(
    device: &Device,
    grid: &FiniteDifferences3d<T>,
    operator: Operator,
    fields: &[Field3<T>],
) -> Vec<Vec<T>> {
    let all = |fields: [Field3<T>; 3]| fields.map(Field3::into_vec).into_iter().collect();
    match (operator, fields) {
        (Operator::Gradient, [f]) => all(grid.gradient_of(device, f).unwrap()),
        (Operator::Divergence, [u, v, w]) => {
            vec![grid.divergence_of(device, [u, v, w]).unwrap().into_vec()]
        }
        (Operator::Curl, [u, v, w]) => all(grid.curl_of(device, [u, v, w]).unwrap()),
        (Operator::Laplacian, [f]) => vec![grid.laplacian_of(device, f).unwrap().into_vec()],
        _ => panic!("{operator:?} of {} fields", fields.len()),
    }
}

/// Checks the operator on random fields, bit for bit.
fn is_made_of_derivatives<T: Scalar + Bits>(
    rng: &mut SmallRng,
    device: &Device,
    grid: &FiniteDifferences3d<T>,
    operator: Operator,
) {
    is_made_of_derivatives_of(
        device,
        grid,
        operator,
        || random(rng, grid.shape()),
        |it| it,
    );
}

/// Checks the operator on these fields, bit for bit after `as_compared`.
fn is_made_of_derivatives_of<T: Scalar + Bits>(
    device: &Device,
    grid: &FiniteDifferences3d<T>,
    operator: Operator,
    mut field: impl FnMut() -> Field3<T>,
    as_compared: impl Fn(T) -> T,
) {
    let fields: Vec<Field3<T>> = (0..operator.fields().0).map(|_| field()).collect();
    let as_compared =
        |output: &Vec<T>| -> Vec<T> { output.iter().map(|&it| as_compared(it)).collect() };
    let expected = by_definition(grid, operator, &fields);
    let got = run(device, grid, operator, &fields);
    assert_eq!(got.len(), operator.fields().1);
    for (nth, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert_same_bits(&as_compared(got), &as_compared(expected), |i| {
            format!("output {nth}, element {i}")
        });
    }
}

fn operators_are_made_of_derivatives_in<T: Scalar + Bits>() {
    let mut rng = rng();
    let mut cases = Vec::new();
    for device in [Device::cpu()] {
        for operator in Operator::VECTOR_CALCULUS {
            for (nth, accuracy) in [2, 4, 6, 8, 8, 6].into_iter().enumerate() {
                // Not a multiple of anything, long enough for all, across blocks in turn.
                let mut long = [10 + nth, 11, 13 - nth % 3];
                long[nth % 3] += [25, 9, 9][nth % 3];
                cases.push((device.clone(), operator, accuracy, nth, long));
            }
        }
    }
    for_each(
        "operators",
        cases,
        |(device, operator, accuracy, nth, extents)| {
            let [nx, ny, nz] = extents;
            let shape = Shape3::new(nx, ny, nz);
            let grid = grid_of::<T>(shape, accuracy, nth);
            is_made_of_derivatives(&mut rng, &device, &grid, operator);
        },
    );
}

#[test]
fn operators_are_made_of_derivatives() {
    operators_are_made_of_derivatives_in::<f32>();
    operators_are_made_of_derivatives_in::<f64>();
}

/// Every operator on larger grids, with points near two or three ends at once.
fn operators_of_larger_grids_in<T: Scalar + Bits>() {
    let mut rng = rng();
    let mut cases = Vec::new();
    for device in [Device::cpu()] {
        for operator in Operator::VECTOR_CALCULUS {
            // Rows of whole accesses, of pairs of points, and of neither.
            for (nth, extents) in [[136, 18, 11], [66, 21, 12], [35, 37, 13]]
                .into_iter()
                .enumerate()
            {
                for first in [nth, nth + 3] {
                    cases.push((device.clone(), operator, Some(first), extents));
                }
                cases.push((device.clone(), operator, None, extents));
            }
        }
    }
    for_each(
        "operators of larger grids",
        cases,
        |(device, operator, first, [nx, ny, nz])| {
            let shape = Shape3::new(nx, ny, nz);
            // Or with points near two or three ends at once.
            let boundaries = first.map_or([Boundary::OneSided; 3], boundaries);
            let grid = within::<T>(shape, SPACING, boundaries, 8);
            is_made_of_derivatives(&mut rng, &device, &grid, operator);
        },
    );
}

#[test]
fn operators_of_larger_grids() {
    operators_of_larger_grids_in::<f32>();
    operators_of_larger_grids_in::<f64>();
}

/// A block marches through more than two planes only if the field has many blocks.
fn operators_of_tall_columns_in<T: Scalar + Bits>() {
    let mut rng = rng();
    let mut cases = Vec::new();
    for device in kernel_devices() {
        for operator in Operator::VECTOR_CALCULUS {
            cases.push((device.clone(), operator));
        }
    }
    for_each("operators of tall columns", cases, |(device, operator)| {
        let shape = Shape3::new(4, 3, TALL);
        let grid = within::<T>(shape, SPACING, [Boundary::Periodic; 3], 2);
        is_made_of_derivatives(&mut rng, &device, &grid, operator);
    });
}

#[test]
fn operators_of_tall_columns() {
    operators_of_tall_columns_in::<f32>();
    operators_of_tall_columns_in::<f64>();
}

/// Special numbers show which terms a sum has. The sign of a zero shows whether the sum begins with
/// a product or with 0. A number that is not finite shows whether points beyond the stencil are
/// read and multiplied by a weight of 0.
fn operators_read_their_stencil_alone_in<T: Scalar + Bits>() {
    let mut rng = rng();
    let mut cases = Vec::new();
    for device in devices() {
        for operator in Operator::VECTOR_CALCULUS {
            for (nth, accuracy) in [2, 4, 6, 8].into_iter().enumerate() {
                for finite in [true, false] {
                    // Rows that consist of whole vector accesses, and others.
                    for nx in [12, 13] {
                        cases.push((device.clone(), operator, accuracy, nth, finite, nx));
                    }
                }
            }
        }
    }
    for_each(
        "what takes part",
        cases,
        |(device, operator, accuracy, nth, finite, nx)| {
            let grid = grid_of::<T>(Shape3::new(nx, 11, 12), accuracy, nth);
            let mut number = || match rng.random_range(0..100) {
                0 if !finite => f64::INFINITY,
                1 if !finite => f64::NAN,
                it if it % 2 == 0 => 0.0,
                _ => -0.0,
            };
            let field = || field_of(grid.shape(), &mut number);
            // Devices produce NaNs with different bits.
            is_made_of_derivatives_of(&device, &grid, operator, field, |it| match it.into() {
                number if number.is_finite() => it,
                _ => T::nearest(f64::NAN),
            });
        },
    );
}

#[test]
fn operators_read_their_stencil_alone() {
    operators_read_their_stencil_alone_in::<f32>();
    operators_read_their_stencil_alone_in::<f64>();
}

#[test]
fn the_library_picks_a_tuned_gradient_which_gives_the_same_bits() {
    let mut rng = rng();
    // Rows that are whole accesses of 16 bytes, and rows that are not.
    for shape in [Shape3::new(36, 13, 19), Shape3::new(35, 13, 19)] {
        let grid = within::<f32>(shape, [0.5, 0.25, 2.0], [Boundary::Periodic; 3], 8);
        let f = random::<f32>(&mut rng, shape);
        let expected = by_definition(&grid, Operator::Gradient, std::slice::from_ref(&f));
        for_each(&shape.to_string(), devices(), |device| {
            let f = device.upload(f.as_slice()).unwrap();
            let empty = || device.alloc_filled(f.len(), f32::NAN).unwrap();
            for general in [false, true] {
                let mut got = [empty(), empty(), empty()];
                let plan = if general && device.kind() != DeviceKind::Cpu {
                    grid.plan_with(&device, Variant::General)
                } else {
                    grid.plan(&device)
                };
                plan.unwrap().gradient(&f, got.each_mut()).unwrap();
                for (axis, (got, expected)) in Axis::ALL.into_iter().zip(got.iter().zip(&expected))
                {
                    let place =
                        |i| format!("{axis}, element {i}, by the general kernel: {general}");
                    assert_same_bits(&got.to_vec().unwrap(), expected, place);
                }
            }
        });
    }
}

#[test]
fn the_shortest_axes_work() {
    let mut rng = rng();
    for_each("short axes", devices(), |device| {
        for operator in Operator::VECTOR_CALCULUS {
            // One point along z and as few as the stencil allows along the others.
            let shape = Shape3::new(5, 4, 1);
            let boundaries = [
                Boundary::Neumann,
                Boundary::Periodic,
                Boundary::Dirichlet(-2.0),
            ];
            let grid = within::<f64>(shape, [0.5; 3], boundaries, 8);
            let fields: Vec<_> = (0..operator.fields().0)
                .map(|_| random(&mut rng, shape))
                .collect();
            let expected = by_definition(&grid, operator, &fields);
            for (got, expected) in run(&device, &grid, operator, &fields).iter().zip(&expected) {
                assert_same_bits(got, expected, |i| format!("element {i}"));
            }
        }
    });
}

/// A plane or a line in a volume is what it is without the axes of one point: each operator
/// is the sum of its derivatives along the others, and those are the ones of any line of
/// points, which a longer grid's lines of the same numbers have as well.
fn axes_of_one_point_have_no_derivative_in<T: Scalar + Bits>() {
    let mut rng = rng();
    let shapes = [
        [37, 23, 1],
        [26, 1, 22],
        [1, 24, 21],
        [29, 1, 1],
        [1, 25, 1],
        [1, 1, 23],
    ];
    let mut cases = Vec::new();
    for device in devices() {
        for extents in shapes.into_iter().chain([[1, 1, 1]]) {
            for accuracy in [2, 4, 6, 8] {
                for first in 0..BOUNDARIES.len() {
                    cases.push((device.clone(), extents, accuracy, first));
                }
            }
        }
    }
    for_each(
        "absent axes",
        test_cases::one_in(11, cases),
        |(device, [nx, ny, nz], accuracy, first)| {
            let shape = Shape3::new(nx, ny, nz);
            let grid = grid_of::<T>(shape, accuracy, first);
            // The same field again and again along an axis that is absent: nothing changes
            // along it, and there are enough points for any stencil.
            let many = |n: usize| if n == 1 { 19 } else { n };
            let thick = Shape3::new(many(nx), many(ny), many(nz));
            let mut around = boundaries(first);
            for axis in Axis::ALL {
                if axis.extent(shape) == 1 {
                    around[axis.index()] = Boundary::Periodic;
                }
            }
            let reference = within::<T>(thick, SPACING, around, accuracy);
            for operator in Operator::VECTOR_CALCULUS {
                let fields: Vec<Field3<T>> = (0..operator.fields().0)
                    .map(|_| random(&mut rng, shape))
                    .collect();
                let thick_fields: Vec<_> = (fields.iter())
                    .map(|field| {
                        let at = |p: usize, n: usize| if n == 1 { 0 } else { p };
                        Field3::from_fn(thick, |i, j, k| field[(at(i, nx), at(j, ny), at(k, nz))])
                            .unwrap()
                    })
                    .collect();
                let expected = run(&Device::cpu(), &reference, operator, &thick_fields);
                let got = run(&device, &grid, operator, &fields);
                for (nth, (got, expected)) in got.iter().zip(&expected).enumerate() {
                    let got = Field3::from_vec(shape, got.clone()).unwrap();
                    let expected = Field3::from_vec(thick, expected.clone()).unwrap();
                    for k in 0..nz {
                        for j in 0..ny {
                            for i in 0..nx {
                                // Equal, but for the sign of a zero that another is added to.
                                let (got, expected) = (got[(i, j, k)], expected[(i, j, k)]);
                                assert!(
                                    got == expected,
                                    "{operator:?}, output {nth} at {i}, {j}, {k}: {got:?}, {expected:?}"
                                );
                            }
                        }
                    }
                }
                let by_parts = by_definition(&grid, operator, &fields);
                for (got, by_parts) in got.iter().zip(&by_parts) {
                    assert!(got.iter().zip(by_parts).all(|(got, part)| got == part));
                }
            }
            // Exactly +0, whatever the field.
            let zeros = vec![T::nearest(0.0); shape.points().unwrap()];
            for value in [1.5, f64::NAN, f64::INFINITY, f64::MAX] {
                let f = Field3::filled(shape, T::nearest(value)).unwrap();
                let gradient = grid.gradient_of(&device, &f).unwrap();
                for (axis, component) in Axis::ALL.into_iter().zip(gradient) {
                    if axis.extent(shape) > 1 {
                        continue;
                    }
                    let first = grid.derivative_of(&device, axis, &f).unwrap();
                    let second = grid.second_derivative_of(&device, axis, &f).unwrap();
                    for got in [first, second, component] {
                        assert_same_bits(got.as_slice(), &zeros, |i| {
                            format!("{axis}, element {i}")
                        });
                    }
                }
            }
        },
    );
}

#[test]
fn axes_of_one_point_have_no_derivative() {
    axes_of_one_point_have_no_derivative_in::<f32>();
    axes_of_one_point_have_no_derivative_in::<f64>();
}

#[test]
fn the_spacing_of_an_axis_of_one_point_takes_no_part() {
    let shape = Shape3::new(9, 1, 9);
    let grid = |spacing| {
        Grid3::new(shape, [0.5, spacing, 2.0])
            .and_then(|grid| FiniteDifferences3d::<f32>::new(&grid))
    };
    let f = random::<f32>(&mut rng(), shape);
    for_each("spacings", devices(), |device| {
        let laplacian = |spacing| grid(spacing).unwrap().laplacian_of(&device, &f).unwrap();
        // 1/h², and 1/h, are out of the range of f32.
        for spacing in [1e-20, 1e-45, 1e300] {
            assert_same_bits(
                laplacian(spacing).as_slice(),
                laplacian(1.0).as_slice(),
                |i| format!("element {i}"),
            );
        }
    });
    for spacing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(grid(spacing).is_err(), "{spacing}");
    }
}

#[test]
fn gradients_do_not_curl_and_curls_do_not_diverge() {
    // Derivatives along different axes commute, periodic or not.
    let mut rng = rng();
    let cpu = Device::cpu();
    let shape = Shape3::new(19, 14, 12);
    let cases = (0..6).flat_map(|first| [2, 4, 6, 8].map(|accuracy| (first, accuracy)));
    for_each("identities", cases, |(first, accuracy)| {
        let around = boundaries(first).map(|boundary| match boundary {
            // A value is fixed, its derivative is another: 0 it is for both.
            Boundary::Dirichlet(_) => Boundary::Dirichlet(0.0),
            boundary => boundary,
        });
        let grid = within::<f64>(shape, [0.3, 0.2, 0.7], around, accuracy);
        let largest = |field: &Field3<f64>| {
            let values = field.as_slice().iter();
            values.fold(0.0, |max, value| f64::max(max, value.abs()))
        };
        let f = random(&mut rng, shape);
        let [x, y, z] = grid.gradient_of(&cpu, &f).unwrap();
        for curl in grid.curl_of(&cpu, [&x, &y, &z]).unwrap() {
            assert!(largest(&curl) < 1e-9, "{}", largest(&curl));
        }
        let [u, v, w] = [(); 3].map(|()| random(&mut rng, shape));
        let [x, y, z] = grid.curl_of(&cpu, [&u, &v, &w]).unwrap();
        let divergence = grid.divergence_of(&cpu, [&x, &y, &z]).unwrap();
        assert!(largest(&divergence) < 1e-9, "{}", largest(&divergence));
    });
}

#[test]
fn the_measured_order_of_the_laplacian_is_the_one_asked_for() {
    for_each("orders", [2, 4, 6, 8], |accuracy| {
        let error = |n: usize| {
            let h = 1.0 / n as f64;
            let shape = Shape3::new(n, n + 1, 1);
            let boundaries = [
                Boundary::Periodic,
                Boundary::Neumann,
                // One plane stands for all: the values beyond it are equal.
                Boundary::Dirichlet(0.0),
            ];
            let grid = within::<f64>(shape, [h; 3], boundaries, accuracy);
            let at = |i: usize, j: usize| (TAU * h * i as f64).sin() * (TAU * h * j as f64).cos();
            let f = Field3::from_fn(shape, |i, j, _| at(i, j)).unwrap();
            let z = grid
                .second_derivative_of(&Device::cpu(), Axis::Z, &f)
                .unwrap();
            let laplacian = grid.laplacian_of(&Device::cpu(), &f).unwrap();
            let mut worst = 0.0;
            for j in 0..=n {
                for i in 0..n {
                    let exact = -2.0 * TAU * TAU * at(i, j);
                    let got = laplacian[(i, j, 0)] - z[(i, j, 0)];
                    worst = f64::max(worst, (got - exact).abs());
                }
            }
            worst
        };
        let measured = (error(10) / error(20)).log2();
        assert!((measured - f64::from(accuracy)).abs() < 0.6, "{measured}");
    });
}

#[test]
fn every_axis_and_every_buffer_is_checked() {
    for_each("checks", devices(), |device| {
        let periodic = [Boundary::Periodic; 3];
        let grid = within::<f32>(Shape3::new(4, 4, 3), [1.0; 3], periodic, 8);
        let f = Field3::filled(grid.shape(), 1.0).unwrap();
        for error in [
            grid.gradient_of(&device, &f).unwrap_err(),
            grid.divergence_of(&device, [&f; 3]).unwrap_err(),
            grid.curl_of(&device, [&f; 3]).unwrap_err(),
            grid.laplacian_of(&device, &f).unwrap_err(),
        ] {
            assert!(
                matches!(
                    error,
                    Error::InvalidSize {
                        axis: "nz",
                        given: 3,
                        ..
                    }
                ),
                "{error}"
            );
        }
        let cube = within::<f32>(Shape3::cube(4), [1.0; 3], periodic, 8);
        let plan = cube.plan(&device).unwrap();
        for wrong in 0..4 {
            let buffer = |nth: usize| {
                let len = if nth == wrong { 63 } else { 64 };
                device.alloc_filled(len, 1.0_f32).unwrap()
            };
            let (a, b, c) = (buffer(0), buffer(1), buffer(2));
            let mut out = buffer(3);
            let error = plan.divergence([&a, &b, &c], &mut out).unwrap_err();
            assert!(
                matches!(error, Error::LengthMismatch { given: 63, .. }),
                "{error}"
            );
        }
        let here = device.alloc_filled(64, 1.0_f32).unwrap();
        let mut elsewhere = Device::emulator().alloc_filled(64, 1.0_f32).unwrap();
        let error = plan.laplacian(&here, &mut elsewhere).unwrap_err();
        assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
    });
}

#[test]
fn the_kernels_have_the_names_of_their_operators_and_types() {
    let names = Operator::VECTOR_CALCULUS
        .into_iter()
        .flat_map(|operator| {
            [
                Variant::General.kernel::<f32>(operator),
                Variant::General.kernel::<f64>(operator),
            ]
        })
        .map(Option::unwrap);
    assert!(names.eq(GENERAL_KERNELS[6..].iter().copied()));
}
