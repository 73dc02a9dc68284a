//! derivative3d: the CPU port, the six textbook kernels and the tuned ones on every
//! device, and derivatives of other orders and with other boundaries. That every kernel
//! gives the bits of the port is `conformance.rs`'s.

#[path = "derivative3d/general.rs"]
mod general;
#[path = "derivative3d/planes.rs"]
mod planes;
#[path = "derivative3d/properties.rs"]
mod properties;
#[path = "derivative3d/vector_calculus.rs"]
mod vector_calculus;

use approx::assert_relative_eq;
use halo_gpu::case::{Problem, registry};
use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, Plan, RADIUS, Variant, problem};
use halo_gpu::{
    Axis, Boundary, Buffer, Device, DeviceKind, Error, Field3, Grid3, LaunchAxis, Shape3,
};
use halo_tests::{
    assert_same_bits, devices, for_each, kernel_devices, ptx, rng, test_cases, uniform,
};

/// Of the 8th order, for the differences of neighbours 1 to 4 points away (Fornberg 1988).
const WEIGHTS: [f64; 4] = [4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0];

const BOUNDARIES: [Boundary; 2] = [Boundary::Periodic, Boundary::PeriodicWithEndpoint];

/// The kernels of `general` and of `vector_calculus`.
const GENERAL_KERNELS: [&str; 14] = [
    "derivative3d_general_x_f32",
    "derivative3d_general_x_f64",
    "derivative3d_general_y_f32",
    "derivative3d_general_y_f64",
    "derivative3d_general_z_f32",
    "derivative3d_general_z_f64",
    "derivative3d_general_gradient_f32",
    "derivative3d_general_gradient_f64",
    "derivative3d_general_divergence_f32",
    "derivative3d_general_divergence_f64",
    "derivative3d_general_curl_f32",
    "derivative3d_general_curl_f64",
    "derivative3d_general_laplacian_f32",
    "derivative3d_general_laplacian_f64",
];

/// A periodic grid with this boundary along all axes.
fn grid(shape: Shape3, boundary: Boundary, spacing: [f64; 3]) -> Grid3 {
    Grid3::new(shape, spacing)
        .and_then(|grid| grid.with_boundaries(boundary))
        .unwrap()
}

/// The same, whose period along each axis is 1.
fn unit_period(shape: Shape3, boundary: Boundary) -> Grid3 {
    grid(shape, boundary, [1.0; 3]).of_unit_length().unwrap()
}

/// First derivatives of the 8th order in f32.
fn first(grid: &Grid3) -> FiniteDifferences3d<f32> {
    FiniteDifferences3d::new(grid).unwrap()
}

/// Whether kernels take a shape, and why not.
fn check(variant: Variant, axis: Axis, shape: Shape3, boundary: Boundary) -> Result<(), Error> {
    let grid = Grid3::new(shape, [1.0; 3])?.with_boundaries(boundary)?;
    let differences = FiniteDifferences3d::<f32>::new(&grid)?;
    let plan = differences.plan_with(&Device::emulator(), variant)?;
    plan.check(Operator::Derivative(axis))
}

/// What computes a derivative along an axis.
#[derive(Debug, Clone, Copy)]
enum Implementation {
    /// The CPU port, or the kernels that the library picks.
    Default,
    Kernels(Variant),
}

impl Implementation {
    /// All there are for `axis` on `device` and `shape`.
    fn all(device: &Device, axis: Axis, shape: Shape3, boundary: Boundary) -> Vec<Self> {
        let mut all: Vec<Self> = Variant::ALL
            .into_iter()
            .filter(|variant| {
                device.kind() != DeviceKind::Cpu && check(*variant, axis, shape, boundary).is_ok()
            })
            .map(Self::Kernels)
            .collect();
        if device.kind() == DeviceKind::Cpu || !all.is_empty() {
            all.push(Self::Default);
        }
        all
    }

    /// Runs it on buffers whose output was poisoned with NaN.
    fn run(self, device: &Device, grid: &Grid3, axis: Axis, f: &[f32]) -> Vec<f32> {
        let input = device.upload(f).unwrap();
        let mut output = device.alloc_filled(f.len(), f32::NAN).unwrap();
        let plan = match self {
            Self::Default => first(grid).plan(device).unwrap(),
            Self::Kernels(variant) => first(grid).plan_with(device, variant).unwrap(),
        };
        plan.derivative(axis, &input, &mut output).unwrap();
        assert_same_bits(&input.to_vec().unwrap(), f, |i| {
            format!("input {i}, which was written")
        });
        output.to_vec().unwrap()
    }
}

/// Runs `check` for every implementation along every axis on every device.
fn for_each_implementation(
    what: &str,
    shape: Shape3,
    mut check: impl FnMut(&Device, Implementation, &Grid3, Axis),
) {
    let mut cases = Vec::new();
    for device in devices() {
        for boundary in BOUNDARIES {
            for axis in Axis::ALL {
                for implementation in Implementation::all(&device, axis, shape, boundary) {
                    cases.push((device.clone(), boundary, axis, implementation));
                }
            }
        }
    }
    // The CPU port and, on each device with kernels, six of them and the default.
    let kernels = kernel_devices().len();
    assert_eq!(
        cases.len(),
        BOUNDARIES.len() * 3 * (1 + 7 * kernels),
        "{shape} suits all kernels"
    );
    for_each(what, cases, |(device, boundary, axis, implementation)| {
        check(&device, implementation, &unit_period(shape, boundary), axis);
    });
}

/// The point (i, j, k) of an element.
fn point(shape: Shape3, index: usize) -> String {
    let (row, i) = (index / shape.nx, index % shape.nx);
    format!("({i}, {}, {})", row % shape.ny, row / shape.ny)
}

/// The stored points that point `p` of `n` sees `m` to its right and to its left,
/// straight from the definition: walk one point at a time.
fn neighbours(p: usize, m: usize, n: usize, boundary: Boundary) -> (usize, usize) {
    let (first, last) = (0, n - 1);
    let (mut right, mut left) = (p, p);
    for _ in 0..m {
        right = match (right == last, boundary) {
            // The point after the last is point 0, or, where the last point is
            // point 0, the one after that.
            (true, Boundary::Periodic) => first,
            (true, _) => first + 1,
            (false, _) => right + 1,
        };
        left = match (left == first, boundary) {
            (true, Boundary::Periodic) => last,
            (true, _) => last - 1,
            (false, _) => left - 1,
        };
    }
    (right, left)
}

/// The derivative by definition, in f64, one point at a time.
fn oracle(grid: &Grid3, axis: Axis, f: &[f32]) -> Vec<f64> {
    let (shape, [boundary, _]) = (grid.shape(), grid.ends(axis));
    let (n, stride) = (axis.extent(shape), axis.stride(shape));
    (0..f.len())
        .map(|index| {
            let p = index / stride % n;
            let at = |q: usize| f64::from(f[index - p * stride + q * stride]);
            (1..=RADIUS)
                .map(|m| {
                    let (right, left) = neighbours(p, m, n, boundary);
                    WEIGHTS[m - 1] / grid.spacing(axis) * (at(right) - at(left))
                })
                .sum()
        })
        .collect()
}

/// Half the sum of the sizes of the terms that the oracle adds, times the
/// roundings of each: weight, difference, product and four sums.
fn rounding_bound(grid: &Grid3, axis: Axis, largest: f64) -> f64 {
    let weights: f64 = WEIGHTS.iter().map(|weight| weight.abs()).sum();
    let terms = 2.0 * largest * weights / grid.spacing(axis);
    7.0 * terms * f64::from(f32::EPSILON) / 2.0
}

#[test]
fn an_impulse_gives_back_the_weights() {
    // One point of 1 in a field of 0, at every place along the axis: the
    // derivative at the neighbours m points away is ∓ the weight of m, exactly,
    // and 0 elsewhere. At the ends this is the seam of either convention.
    let shape = Shape3::new(32, 32, 32);
    for_each_implementation("impulse", shape, |device, implementation, periods, axis| {
        let (n, stride) = (axis.extent(shape), axis.stride(shape));
        let [boundary, _] = periods.ends(axis);
        let unit = grid(shape, boundary, [1.0; 3]);
        // A pencil off the corner, and a few places along it; the CPU and the
        // GPU can afford all of them.
        let corner = (shape.points().unwrap() - 1) / 2 / (stride * n) * (stride * n) + stride / 3;
        let few = device.kind() == DeviceKind::Emulator || !test_cases::all();
        let places: Vec<usize> = if few {
            vec![0, 3, 17, n - 4, n - 1]
        } else {
            (0..n).collect()
        };
        for place in places {
            let mut f = vec![0.0; shape.points().unwrap()];
            f[corner + place * stride] = 1.0;
            let expected: Vec<f32> = (0..f.len())
                .map(|index| {
                    let p = index / stride % n;
                    if index - p * stride != corner {
                        return 0.0;
                    }
                    let mut sum = 0.0_f32;
                    for m in 1..=RADIUS {
                        let (right, left) = neighbours(p, m, n, boundary);
                        sum += WEIGHTS[m - 1] as f32
                            * (f32::from(right == place) - f32::from(left == place));
                    }
                    sum
                })
                .collect();
            let df = implementation.run(device, &unit, axis, &f);
            // -0.0 equals 0.0 here: the sign of a zero is the order's affair.
            for (index, (got, expected)) in df.iter().zip(&expected).enumerate() {
                assert!(
                    got == expected,
                    "{}: {got}, not {expected}",
                    point(shape, index)
                );
            }
        }
    });
}

#[test]
fn the_textbook_problem_is_solved() {
    let shape = Shape3::cube(64);
    for_each_implementation(
        "textbook problem",
        shape,
        |device, implementation, grid, axis| {
            let f = problem::cosine(grid, axis).unwrap();
            let df = implementation.run(device, grid, axis, f.as_slice());
            let errors = problem::errors(grid, axis, &df);
            let bounds = problem::error_bounds(grid, axis);
            assert!(
                errors.within(bounds.rms, bounds.max),
                "{errors:?} exceeds {bounds:?}"
            );
            if grid.ends(axis) == [Boundary::PeriodicWithEndpoint; 2] {
                // Published for this problem: 7.277675e-06 and 2.861023e-05.
                assert_relative_eq!(errors.rms, 7.28e-6, max_relative = 0.05);
                assert_relative_eq!(errors.max, 2.86e-5, max_relative = 0.05);
            }
        },
    );
}

#[test]
fn a_constant_has_no_derivative() {
    let shape = Shape3::new(64, 32, 32);
    for_each_implementation("constant", shape, |device, implementation, grid, axis| {
        let f = vec![0.7; shape.points().unwrap()];
        let df = implementation.run(device, grid, axis, &f);
        assert!(df.iter().all(|&value| value == 0.0));
    });
}

#[test]
fn the_cpu_port_matches_the_definition_at_any_size() {
    let mut rng = rng();
    let device = Device::cpu();
    let shapes = [
        (5, 5, 5),
        (5, 6, 7),
        (7, 5, 6),
        (6, 7, 5),
        (8, 9, 10),
        (9, 8, 31),
        (31, 5, 6),
        (33, 17, 9),
        (64, 5, 11),
        (1, 5, 1),
        (5, 1, 1),
        (1, 1, 5),
        (101, 1, 6),
        (13, 257, 5),
    ];
    let mut cases = Vec::new();
    for (nx, ny, nz) in shapes {
        for boundary in BOUNDARIES {
            for axis in Axis::ALL {
                if axis.extent(Shape3::new(nx, ny, nz)) >= RADIUS + boundary.overlap() {
                    cases.push((Shape3::new(nx, ny, nz), boundary, axis));
                }
            }
        }
    }
    for_each(
        "cpu port against the definition",
        cases,
        |(shape, boundary, axis)| {
            let grid = grid(shape, boundary, [0.3, 0.01, 7.0]);
            let f = uniform(&mut rng, shape.points().unwrap());
            let df = Implementation::Default.run(&device, &grid, axis, &f);
            let bound = rounding_bound(&grid, axis, 1.0);
            for (index, (&got, expected)) in df.iter().zip(oracle(&grid, axis, &f)).enumerate() {
                let error = (f64::from(got) - expected).abs();
                assert!(
                    error <= bound,
                    "{}: {got}, not {expected} ± {bound}",
                    point(shape, index)
                );
            }
        },
    );
}

/// The kernels' names for x, y and z.
fn names(variant: Variant) -> [&'static str; 3] {
    Axis::ALL.map(|axis| variant.kernel::<f32>(Operator::Derivative(axis)).unwrap())
}

#[test]
fn the_tuned_kernels_have_their_names() {
    assert_eq!(
        [Variant::Vector, Variant::Unaligned].map(names),
        [
            [
                "derivative3d_x_vector4",
                "derivative3d_y_column2",
                "derivative3d_z_column2",
            ],
            [
                "derivative3d_x_unaligned4",
                "derivative3d_y_column1",
                "derivative3d_z_column1",
            ],
        ]
    );
    let others = |variant: Variant| {
        let along = Axis::ALL.map(Operator::SecondDerivative);
        let all = along.into_iter().chain(Operator::VECTOR_CALCULUS);
        all.filter_map(|operator| variant.kernel::<f32>(operator))
            .collect::<Vec<_>>()
    };
    assert_eq!(others(Variant::Vector), ["derivative3d_gradient4"]);
    for variant in [Variant::Pencil4, Variant::Pencil32, Variant::Unaligned] {
        assert!(others(variant).is_empty(), "{variant}");
    }
}

#[test]
fn the_kernel_that_suits_the_shape_is_picked() {
    // Vectors of 4 points along x, 2 along y and z, where each row, or for z each
    // plane, is a whole number of them.
    for_each(
        "shapes",
        [
            ((8, 5, 5), [true, true, true]),
            ((6, 5, 5), [false, true, true]),
            ((5, 8, 5), [false, false, true]),
            ((7, 5, 8), [false, false, false]),
        ],
        |((nx, ny, nz), vectors)| {
            let grid = grid(Shape3::new(nx, ny, nz), Boundary::Periodic, [1.0; 3]);
            let plan = first(&grid).plan(&Device::emulator()).unwrap();
            for (axis, vectors) in Axis::ALL.into_iter().zip(vectors) {
                let picked = plan.variant(Operator::Derivative(axis));
                let expected = if vectors {
                    Variant::Vector
                } else {
                    Variant::Unaligned
                };
                assert_eq!(picked, Some(expected), "{axis}");
            }
        },
    );
}

/// `docs/tuning/derivative3d.md` has the times.
#[test]
fn along_z_in_f64_large_planes_have_the_general_kernel() {
    let emulator = Device::emulator();
    for (shape, name) in [
        (Shape3::new(512, 511, 12), "derivative3d_z_columns_f64"),
        (Shape3::new(512, 512, 12), "derivative3d_general_z_f64"),
        (Shape3::new(8192, 4096, 12), "derivative3d_general_z_f64"),
    ] {
        let grid = grid(shape, Boundary::Neumann, [1.0; 3]);
        let along_z = Operator::Derivative(Axis::Z);
        let double = FiniteDifferences3d::<f64>::new(&grid).unwrap();
        assert_eq!(double.plan(&emulator).unwrap().kernel(along_z), Some(name));
        let single = first(&grid).plan(&emulator).unwrap().kernel(along_z);
        assert_eq!(single, Some("derivative3d_z_columns_f32"));
        let named = double.plan_with(&emulator, Variant::AnyBoundary).unwrap();
        assert_eq!(named.kernel(along_z), Some("derivative3d_z_columns_f64"));
        named.check(along_z).unwrap();
    }
}

#[test]
fn kernels_for_any_boundary_are_picked_where_no_others_suit() {
    let emulator = Device::emulator();
    let along = Axis::ALL.map(Operator::Derivative);
    let shape = |nx| Shape3::new(nx, 9, 11);
    let general = Some(Variant::General);
    let any = Some(Variant::AnyBoundary);
    for (nx, boundary, of_f32, of_f64) in [
        (
            12,
            Boundary::Periodic,
            [
                Some(Variant::Vector),
                Some(Variant::Vector),
                Some(Variant::Vector),
            ],
            [any; 3],
        ),
        (12, Boundary::OneSided, [any; 3], [any; 3]),
        (10, Boundary::Neumann, [general, any, any], [any; 3]),
        (
            11,
            Boundary::Dirichlet(1.0),
            [general, any, any],
            [general, any, any],
        ),
    ] {
        let grid = grid(shape(nx), boundary, [1.0; 3]);
        let plan = first(&grid).plan(&emulator).unwrap();
        let double = FiniteDifferences3d::<f64>::new(&grid).unwrap();
        let sixth = double.clone().with_accuracy(6).unwrap();
        let [double, sixth] = [double, sixth].map(|it| it.plan(&emulator).unwrap());
        assert_eq!(along.map(|it| plan.variant(it)), of_f32, "{nx}, {boundary}");
        assert_eq!(
            along.map(|it| double.variant(it)),
            of_f64,
            "{nx}, {boundary}"
        );
        assert_eq!(along.map(|it| sixth.variant(it)), [general; 3]);
        for axis in Axis::ALL {
            let second = Operator::SecondDerivative(axis);
            assert_eq!(plan.variant(second), general);
        }
    }
}

#[test]
fn the_gradient_is_the_three_derivatives_bit_for_bit() {
    let mut rng = rng();
    // Extents around the radius, the vector, the tile of 32 lanes by some rows and the
    // segment, multiples of 4 and not.
    let shapes = [
        (5, 5, 5),
        (8, 6, 5),
        (9, 17, 6),
        (12, 9, 19),
        (6, 33, 7),
        (64, 16, 5),
        (127, 5, 8),
        (128, 8, 6),
        (129, 7, 5),
        (132, 15, 7),
        (260, 6, 5),
        (33, 5, 65),
        (16, 5, 131),
    ];
    let mut cases = Vec::new();
    for device in devices() {
        for boundary in BOUNDARIES {
            for (nx, ny, nz) in shapes {
                cases.push((device.clone(), boundary, Shape3::new(nx, ny, nz)));
            }
        }
    }
    let cpu = Device::cpu();
    for_each("gradient", cases, |(device, boundary, shape)| {
        let grid = grid(shape, boundary, [0.3, 0.01, 7.0]);
        let f = uniform(&mut rng, shape.points().unwrap());
        let input = device.upload(&f).unwrap();
        let poisoned = || device.alloc_filled(f.len(), f32::NAN).unwrap();
        let mut df = [poisoned(), poisoned(), poisoned()];
        let plan = first(&grid).plan(&device).unwrap();
        plan.gradient(&input, df.each_mut()).unwrap();
        assert_same_bits(&input.to_vec().unwrap(), &f, |i| {
            format!("input {i}, which was written")
        });
        let field = Field3::from_vec(shape, f.clone()).unwrap();
        let fields = first(&grid).gradient_of(&device, &field).unwrap();
        for ((axis, df), field) in Axis::ALL.into_iter().zip(&df).zip(&fields) {
            let expected = Implementation::Default.run(&cpu, &grid, axis, &f);
            let at = |index| format!("∂f/∂{axis} at {}", point(shape, index));
            assert_same_bits(&df.to_vec().unwrap(), &expected, at);
            assert_same_bits(field.as_slice(), &expected, at);
        }
    });
}

#[test]
fn a_gradient_of_bad_input_is_refused_before_anything_runs() {
    for_each("bad input", devices(), |device| {
        let shape = Shape3::new(8, 4, 8);
        let points = shape.points().unwrap();
        let f = device.upload(&vec![1.0_f32; points]).unwrap();
        let poisoned = |len: usize| device.alloc_filled(len, f32::NAN).unwrap();
        let untouched = |df: &[Buffer<f32>; 3]| {
            df.iter()
                .all(|df| df.to_vec().unwrap().iter().all(|value| value.is_nan()))
        };
        let plan = |boundary| first(&unit_period(shape, boundary)).plan(&device).unwrap();
        for short in 0..3 {
            let mut df = [0, 1, 2].map(|axis| poisoned(points - usize::from(axis == short)));
            let [x, y, z] = &mut df;
            let error = plan(Boundary::Periodic)
                .gradient(&f, [x, y, z])
                .unwrap_err();
            assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
            assert!(untouched(&df));
        }
        let mut df = [0; 3].map(|_| poisoned(points));
        let [x, y, z] = &mut df;
        let error = plan(Boundary::PeriodicWithEndpoint)
            .gradient(&f, [x, y, z])
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "derivative3d: ny is 4, but must be at least 5 for order 8 (periodic with end point \
             (period n-1))"
        );
        assert!(untouched(&df));
    });
}

#[test]
fn the_gradients_kernel_is_that_for_its_rows() {
    let kernel = |nx: usize| {
        let grid = unit_period(Shape3::new(nx, 9, 9), Boundary::Periodic);
        let plan = first(&grid).plan(&Device::emulator()).unwrap();
        plan.kernel(Operator::Gradient).unwrap()
    };
    assert_eq!(kernel(12), "derivative3d_gradient4");
    for nx in [9, 10, 11, 13] {
        assert_eq!(kernel(nx), "derivative3d_general_gradient_f32");
    }
}

#[test]
fn every_length_a_kernel_accepts_works_and_no_other_is_launched() {
    // The rule of the documentation, stated once more.
    let accepts = |variant: Variant, axis: Axis, len: usize, side: usize, boundary: Boundary| {
        let min = RADIUS + usize::from(boundary == Boundary::PeriodicWithEndpoint);
        let pencils = variant.pencils().unwrap();
        let points = if axis == Axis::X { 1 } else { pencils / 4 };
        len >= min
            && len <= 256
            && len.is_multiple_of(points)
            && side > 0
            && side.is_multiple_of(pencils)
    };
    let mut cases = Vec::new();
    for boundary in BOUNDARIES {
        for variant in Variant::TEXTBOOK {
            for axis in Axis::ALL {
                for len in (0..=40).chain(250..=260) {
                    for side in [0, 1, 3, 4, 5, 31, 32, 33, 36, 64] {
                        cases.push((variant, axis, len, side, boundary));
                    }
                }
            }
        }
    }
    for_each(
        "tile rules",
        cases,
        |(variant, axis, len, side, boundary)| {
            let shape = match axis {
                Axis::X => Shape3::new(len, side, 1),
                Axis::Y => Shape3::new(side, len, 1),
                Axis::Z => Shape3::new(side, 1, len),
            };
            assert_eq!(
                check(variant, axis, shape, boundary).is_ok(),
                accepts(variant, axis, len, side, boundary),
                "{shape}"
            );
        },
    );
}

#[test]
fn a_field_of_another_shape_is_refused_though_it_has_as_many_points() {
    let (shape, turned) = (Shape3::new(8, 9, 10), Shape3::new(10, 9, 8));
    let differences = first(&grid(shape, Boundary::Periodic, [1.0; 3]));
    for_each("shapes", devices(), |ref device| {
        let refused = |result: Result<(), Error>| match result.unwrap_err() {
            Error::ShapeMismatch {
                required, given, ..
            } => assert_eq!((required, given), (shape.into(), turned.into())),
            error => panic!("{error}"),
        };
        let field = Field3::filled(turned, 1.0_f32).unwrap();
        let right = Field3::filled(shape, 1.0_f32).unwrap();
        let mut into = field.clone();
        for axis in Axis::ALL {
            refused(differences.derivative_of(device, axis, &field).map(drop));
            refused(
                differences
                    .second_derivative_of(device, axis, &field)
                    .map(drop),
            );
            refused(differences.derivative_of_into(device, axis, &right, &mut into));
            refused(differences.second_derivative_of_into(device, axis, &right, &mut into));
        }
        refused(differences.gradient_of(device, &field).map(drop));
        refused(differences.divergence_of(device, [&field; 3]).map(drop));
        refused(differences.curl_of(device, [&field; 3]).map(drop));
        refused(differences.laplacian_of(device, &field).map(drop));
        refused(differences.divergence_of_into(device, [&right; 3], &mut into));
        refused(differences.laplacian_of_into(device, &right, &mut into));
        let mut three = [right.clone(), right.clone(), field.clone()];
        refused(differences.gradient_of_into(device, &right, three.each_mut()));
        refused(differences.curl_of_into(device, [&right; 3], three.each_mut()));
        // A refused call has changed nothing.
        assert_eq!(into, field);
        assert_eq!(three, [right.clone(), right.clone(), field.clone()]);

        // In buffers, on either side; one without a shape is taken at its length.
        let mut plans = vec![differences.plan(device).unwrap()];
        if device.kind() != DeviceKind::Cpu {
            plans.push(differences.plan_with(device, Variant::General).unwrap());
        }
        let plain = device.alloc_filled(720, 1.0_f32).unwrap();
        let mut fits = plain.try_clone().unwrap().shaped(shape).unwrap();
        let mut other = field.to_device(device).unwrap();
        for plan in plans {
            refused(plan.derivative(Axis::X, &other, &mut fits));
            refused(plan.derivative(Axis::X, &plain, &mut other));
            refused(plan.laplacian(&fits, &mut other));
            plan.derivative(Axis::X, &plain, &mut fits).unwrap();
            plan.laplacian(&plain, &mut fits).unwrap();
        }
        assert!(Field3::from_device(&fits).unwrap().as_slice() == [0.0; 720]);
        assert_eq!(other.try_clone().unwrap().shape(), turned.into());
        let error = Field3::from_device(&plain).unwrap_err();
        assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
        let error = plain.shaped(Shape3::cube(9)).unwrap_err();
        assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
    });
}

#[test]
fn sizes_that_do_not_fit_are_refused_by_name() {
    fn refusal(variant: Variant, axis: Axis, shape: Shape3) -> String {
        let boundary = Boundary::PeriodicWithEndpoint;
        let refused = check(variant, axis, shape, boundary);
        refused.unwrap_err().to_string()
    }
    use Axis::{X, Y, Z};
    use Variant::{AnyBoundary, Pencil4, Pencil32, Unaligned, Vector};
    let cases = [
        (
            refusal(Pencil4, X, Shape3::new(64, 63, 1)),
            "derivative3d_x_pencil4: ny is 63, but must be a positive multiple of 4 (the pencils of a tile)",
        ),
        (
            refusal(Pencil32, Y, Shape3::new(48, 64, 1)),
            "derivative3d_y_pencil32: nx is 48, but must be a positive multiple of 32 (the pencils of a tile)",
        ),
        (
            refusal(Pencil32, Z, Shape3::new(32, 1, 60)),
            "derivative3d_z_pencil32: nz is 60, but must be a multiple of 8 (the points of a thread)",
        ),
        (
            refusal(Pencil32, X, Shape3::new(257, 32, 1)),
            "derivative3d_x_pencil32: nx is 257, but must be between 5 and 256 (one block owns whole pencils)",
        ),
        (
            refusal(Vector, X, Shape3::new(62, 32, 1)),
            "derivative3d_x_vector4: nx is 62, but must be a multiple of 4, for accesses of 16 bytes",
        ),
        (
            refusal(Unaligned, X, Shape3::new(4, 32, 1)),
            "derivative3d: nx is 4, but must be at least 5 for order 8 (periodic with end point (period n-1))",
        ),
        (
            refusal(AnyBoundary, X, Shape3::new(62, 32, 1)),
            "derivative3d_x_rows_f32: nx is 62, but must be a multiple of 4, for accesses of 16 bytes",
        ),
        (
            refusal(AnyBoundary, Y, Shape3::new(6, 1 << 31, 1)),
            "derivative3d_y_columns_f32: ny is 2147483648, but at most 2147479551 can be indexed here",
        ),
        (
            refusal(Vector, Y, Shape3::new(65, 32, 1)),
            "derivative3d_y_column2: nx is 65, but must be even, for accesses of 8 bytes",
        ),
        (
            refusal(Vector, Z, Shape3::new(7, 5, 8)),
            "derivative3d_z_column2: nx is 7, but must be even, or ny, for accesses of 8 bytes",
        ),
        (
            refusal(Unaligned, Z, Shape3::new(6, 5, 1 << 31)),
            "derivative3d_z_column1: nz is 2147483648, but at most 2147479551 can be indexed here",
        ),
    ];
    for_each("refusals", cases, |(got, expected)| {
        assert_eq!(got, expected)
    });
}

#[test]
fn bad_input_is_refused_before_anything_runs() {
    for_each("bad input", devices(), |device| {
        let shape = Shape3::cube(32);
        let plan = |shape, boundary| -> Plan<f32> {
            first(&unit_period(shape, boundary)).plan(&device).unwrap()
        };
        let points = shape.points().unwrap();
        let f = device.upload(&vec![1.0_f32; points]).unwrap();
        let untouched = |df: &Buffer<f32>| df.to_vec().unwrap().iter().all(|value| value.is_nan());

        // Buffers of another length.
        let mut short = device.alloc_filled(points - 1, f32::NAN).unwrap();
        let cube = plan(shape, Boundary::Periodic);
        let error = cube.derivative(Axis::X, &f, &mut short).unwrap_err();
        assert!(
            matches!(&error, Error::LengthMismatch { required, given, .. }
                if (*required, *given) == (points, points - 1)),
            "{error}"
        );
        assert!(untouched(&short));

        // A buffer of another device.
        let mut elsewhere = Device::cpu().alloc_filled(points, f32::NAN).unwrap();
        let error = cube.derivative(Axis::X, &f, &mut elsewhere).unwrap_err();
        assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
        assert!(untouched(&elsewhere));

        // Too few points for the stencil.
        let thin = Shape3::new(32, 32, 4);
        let thin = plan(thin, Boundary::PeriodicWithEndpoint);
        let f = device.upload(&vec![1.0_f32; 4096]).unwrap();
        let mut df = device.alloc_filled(4096, f32::NAN).unwrap();
        let error = thin.derivative(Axis::Z, &f, &mut df).unwrap_err();
        assert!(
            matches!(
                error,
                Error::InvalidSize {
                    axis: "nz",
                    given: 4,
                    ..
                }
            ),
            "{error}"
        );
        assert!(untouched(&df));
    });
}

#[test]
fn the_kernels_have_the_names_of_the_textbook_ladder() {
    assert_eq!(
        Variant::TEXTBOOK.map(names),
        [
            [
                "derivative3d_x_pencil4",
                "derivative3d_y_pencil4",
                "derivative3d_z_pencil4",
            ],
            [
                "derivative3d_x_pencil32",
                "derivative3d_y_pencil32",
                "derivative3d_z_pencil32",
            ],
        ]
    );
}

#[test]
fn kernels_of_another_type_order_or_device_are_refused() {
    let grid = unit_period(Shape3::cube(32), Boundary::Periodic);
    let emulator = Device::emulator();
    let double = FiniteDifferences3d::<f64>::new(&grid).unwrap();
    let sixth = first(&grid).with_accuracy(6).unwrap();
    for_each("variants", Variant::ALL, |variant| {
        let general = variant == Variant::General;
        let both_types = general || variant == Variant::AnyBoundary;
        for (taken, refused) in [
            (both_types, double.plan_with(&emulator, variant).map(drop)),
            (general, sixth.plan_with(&emulator, variant).map(drop)),
        ] {
            match refused {
                Ok(()) => assert!(taken),
                Err(error) => assert!(
                    !taken
                        && matches!(
                            error,
                            Error::InvalidParameter {
                                parameter: "the variant",
                                ..
                            }
                        ),
                    "{error}"
                ),
            }
        }
        let error = first(&grid).plan_with(&Device::cpu(), variant).unwrap_err();
        let name = variant.kernel::<f32>(Operator::Derivative(Axis::X));
        assert!(
            matches!(error, Error::NotLaunchable { kernel } if Some(kernel) == name),
            "{error}"
        );
        // Along an axis that is not periodic, and for a gradient where axes differ.
        let walls = grid.with_boundary(Axis::Y, Boundary::Neumann).unwrap();
        let ends = grid.with_boundary(Axis::Y, Boundary::PeriodicWithEndpoint);
        let [walls, ends] = [walls, ends.unwrap()].map(|grid| {
            let plan = first(&grid).plan_with(&emulator, variant).unwrap();
            let operators = Axis::ALL.map(Operator::Derivative);
            let mut refused = operators.iter().chain(&[Operator::Gradient]);
            let refused = refused.by_ref().filter(|it| plan.check(**it).is_err());
            refused.copied().collect::<Vec<_>>()
        });
        let along_y = Operator::Derivative(Axis::Y);
        let (of_walls, of_ends) = match variant {
            Variant::AnyBoundary | Variant::General => (vec![], vec![]),
            Variant::Vector => (vec![along_y, Operator::Gradient], vec![Operator::Gradient]),
            _ => (vec![along_y], vec![]),
        };
        assert_eq!((walls, ends), (of_walls, of_ends));
    });
}

#[test]
fn more_planes_than_a_grid_has_rows_are_refused() {
    for_each("planes", kernel_devices(), |device| {
        let shape = Shape3::new(5, 4, 65_536);
        let grid = unit_period(shape, Boundary::Periodic);
        let plan = first(&grid).plan_with(&device, Variant::Pencil4).unwrap();
        let f = device
            .upload(&vec![1.0_f32; shape.points().unwrap()])
            .unwrap();
        let mut df = f.try_clone().unwrap();
        let error = plan.derivative(Axis::X, &f, &mut df).unwrap_err();
        assert!(
            matches!(
                error,
                Error::LaunchLimit {
                    axis: LaunchAxis::GridY,
                    given: 65_536,
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn parameters_without_meaning_are_refused() {
    let shape = Shape3::cube(8);
    let with_spacing = |h: f64| {
        let grid = Grid3::new(shape, [1.0, h, 1.0])?;
        FiniteDifferences3d::<f32>::new(&grid)
    };
    for_each(
        "spacing",
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
        |h| {
            let error = with_spacing(h).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::NonFinite {
                        parameter: "spacing along y",
                        ..
                    }
                ),
                "{error}"
            );
        },
    );
    for_each("spacing", [0.0, -0.0, -1.0, 1e-39, 1e300], |h| {
        let error = with_spacing(h).unwrap_err();
        assert!(
            matches!(
                error,
                Error::InvalidParameter {
                    parameter: "spacing along y",
                    ..
                }
            ),
            "{error}"
        );
    });
    for_each(
        "extents",
        [(0, 8, 8), (8, 0, 8), (8, 8, 0)],
        |(nx, ny, nz)| {
            let error = Grid3::new(Shape3::new(nx, ny, nz), [1.0; 3]).unwrap_err();
            assert!(
                matches!(error, Error::InvalidSize { given: 0, .. }),
                "{error}"
            );
        },
    );
    let error = Grid3::new(Shape3::new(usize::MAX / 2, 3, 1), [1.0; 3]).unwrap_err();
    assert!(matches!(error, Error::IndexOverflow { .. }), "{error}");
    // One point, stored twice, has no period.
    let one = grid(
        Shape3::new(8, 1, 8),
        Boundary::PeriodicWithEndpoint,
        [1.0; 3],
    );
    let error = one.of_unit_length().unwrap_err();
    assert!(
        matches!(
            error,
            Error::InvalidSize {
                axis: "ny",
                given: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn two_grids_do_not_see_each_others_weights() {
    // Plans that take turns, and threads that launch at the same time, must each get
    // their own.
    let shape = Shape3::cube(32);
    let f = problem::cosine(&unit_period(shape, Boundary::Periodic), Axis::X).unwrap();
    for_each("weights", devices(), |device| {
        std::thread::scope(|scope| {
            for thread in 1..=3_u32 {
                let (device, f) = (device.clone(), &f);
                scope.spawn(move || {
                    let plan = |h: f64| {
                        let grid = grid(shape, Boundary::Periodic, [h; 3]);
                        first(&grid).plan(&device).unwrap()
                    };
                    let input = device.upload(f.as_slice()).unwrap();
                    let mut unit = device.alloc_filled(f.as_slice().len(), f32::NAN).unwrap();
                    let mut scaled = device.alloc_filled(f.as_slice().len(), f32::NAN).unwrap();
                    // A power of two: dividing by it is exact.
                    let h = f64::from(thread).exp2();
                    for _ in 0..3 {
                        plan(1.0).derivative(Axis::X, &input, &mut unit).unwrap();
                        plan(h).derivative(Axis::X, &input, &mut scaled).unwrap();
                        let expected: Vec<f32> = unit
                            .to_vec()
                            .unwrap()
                            .iter()
                            .map(|value| value / h as f32)
                            .collect();
                        assert_same_bits(&scaled.to_vec().unwrap(), &expected, |i| point(shape, i));
                    }
                });
            }
        });
    });
}

#[test]
fn ptx_facts_of_the_textbook_kernels() {
    let kernels = ptx::TARGETS
        .into_iter()
        .flat_map(|target| Variant::TEXTBOOK.map(|variant| (target, variant)))
        .flat_map(|(target, variant)| names(variant).map(|name| (target, variant, name)));
    for_each("ptx", kernels, |(target, variant, name)| {
        let text = ptx::text(target);
        let body = ptx::entry(text, name);
        // Load, barrier, fill the halo, barrier, compute.
        assert_eq!(
            ptx::count(&body, "bar.sync") + ptx::count(&body, "barrier.sync"),
            2,
            "barriers"
        );
        // The tile is shared memory, the weights are constant memory, the field
        // is global memory, and the compiler knows all three.
        assert_eq!(
            ptx::count(&body, "ld.f32") + ptx::count(&body, "ld.b32"),
            0,
            "generic loads"
        );
        assert_eq!(
            ptx::count(&body, "st.f32") + ptx::count(&body, "st.b32"),
            0,
            "generic stores"
        );
        let points = variant.pencils().unwrap() / 4;
        assert_eq!(
            ptx::count(&body, "ld.global"),
            points,
            "one load of f per point"
        );
        assert_eq!(
            ptx::count(&body, "st.global"),
            points,
            "one store of df per point"
        );
        assert!(
            ptx::count(&body, "ld.shared") >= 8 * points,
            "eight neighbours per point"
        );
        assert!(ptx::count(&body, "ld.const") >= 1, "weights");
        // 4 differences, 1 product, 3 fused multiply-adds per point.
        assert_eq!(
            ptx::count(&body, "sub.rn.f32") + ptx::count(&body, "sub.f32"),
            4 * points
        );
        assert_eq!(ptx::count(&body, "fma.rn.f32"), 3 * points);
        assert_eq!(
            ptx::count(&body, "ld.local") + ptx::count(&body, "st.local"),
            0,
            "local memory"
        );
    });
}

#[test]
fn ptx_facts_of_the_tuned_kernels() {
    let kernels = ptx::TARGETS
        .into_iter()
        .flat_map(|target| [Variant::Vector, Variant::Unaligned].map(|it| (target, it)))
        .flat_map(|(target, variant)| names(variant).map(|name| (target, name)));
    for_each("ptx", kernels, |(target, name)| {
        let text = ptx::text(target);
        let body = ptx::entry(text, name);
        let count = |opcode: &str| ptx::count(&body, opcode);
        // No shared memory, and the compiler knows every address space.
        assert_eq!(count("bar.sync") + count("barrier.sync"), 0, "barriers");
        assert_eq!(count("ld.shared") + count("st.shared"), 0, "shared memory");
        assert_eq!(count("ld.f32") + count("ld.b32"), 0, "generic loads");
        assert_eq!(count("st.f32") + count("st.b32"), 0, "generic stores");
        assert_eq!(count("ld.local") + count("st.local"), 0, "local memory");
        // The field is only read, and the output is never read.
        assert_eq!(count("ld.global"), count("ld.global.nc"));
        assert_eq!(count("st.global"), count("st.global.cs"));
    });
}

#[test]
fn ptx_facts_of_the_kernels_for_any_boundary() {
    let along = Axis::ALL.map(Operator::Derivative);
    let kernels = ptx::TARGETS
        .into_iter()
        .flat_map(|target| along.map(|operator| (target, operator)));
    for_each("ptx", kernels, |(target, operator)| {
        for (name, bytes) in [
            (Variant::AnyBoundary.kernel::<f32>(operator), "b32"),
            (Variant::AnyBoundary.kernel::<f64>(operator), "b64"),
        ] {
            let body = ptx::entry(ptx::text(target), name.unwrap());
            let count = |opcode: &str| ptx::count(&body, opcode);
            assert_eq!(count("bar.sync") + count("barrier.sync"), 0, "barriers");
            assert_eq!(count("ld.shared") + count("st.shared"), 0, "shared memory");
            assert_eq!(count(&format!("ld.{bytes}")), 0, "generic loads");
            assert_eq!(count(&format!("st.{bytes}")), 0, "generic stores");
            assert_eq!(count("ld.local") + count("st.local"), 0, "local memory");
            assert!(count("ld.global.nc") > 0 && count("st.global.cs") > 0);
        }
    });
}

#[test]
fn a_textbook_block_has_the_threads_and_memory_of_its_pencils() {
    let each = (0..3).flat_map(|axis| [4_u32, 32].map(|side| (axis, side)));
    for_each("pencils", each, |(axis, side)| {
        let name = format!("derivative3d_{}_pencil{side}", ["x", "y", "z"][axis]);
        let kernel = registry::entry(&name).unwrap();
        for len in [32, 64, 256] {
            let mut extents = [96, 96, 96];
            extents[axis] = len as usize;
            let [nx, ny, nz] = extents;
            let launch = kernel.geometry(&Problem::volume(nx, ny, nz)).unwrap();
            let block = match axis {
                0 => [len, 4, 1],
                _ => [side, len / (side / 4), 1],
            };
            assert_eq!(launch.grid, [96 / side, 96, 1]);
            assert_eq!(launch.block, block);
            assert_eq!(launch.dynamic_shared_bytes, (len + 2 * 4) * side * 4);
        }
        // 257 points along the axis are one too many, and x kernels count rows in 32 bits.
        let mut long = [64; 3];
        long[axis] = 257;
        let [nx, ny, nz] = long;
        assert!(kernel.geometry(&Problem::volume(nx, ny, nz)).is_err());
        let rows = match axis {
            2 => Problem::volume(64, 1 << 27, 64),
            _ => Problem::volume(64, 64, 1 << 27),
        };
        assert_eq!(kernel.geometry(&rows).is_err(), axis == 0);
    });
}

#[test]
fn ptx_facts_of_the_gradients_kernel() {
    for_each("ptx", ptx::TARGETS, |target| {
        let body = ptx::entry(ptx::text(target), "derivative3d_gradient4");
        let count = |opcode: &str| ptx::count(&body, opcode);
        // One barrier per plane: the tile has two halves.
        assert_eq!(count("bar.sync") + count("barrier.sync"), 1, "barriers");
        assert_eq!(count("ld.f32") + count("ld.b32"), 0, "generic loads");
        assert_eq!(count("st.f32") + count("st.b32"), 0, "generic stores");
        assert_eq!(count("ld.local") + count("st.local"), 0, "local memory");
        assert_eq!(count("ld.global"), count("ld.global.nc"));
        // One for each component and each of the two rows that a thread has.
        assert_eq!(count("st.global"), 6, "stores");
    });
}
