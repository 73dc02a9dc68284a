//! Neumann boundaries and sources: `heat2d_march_*`, `heat2d_heated_*` and the CPU
//! port.

use super::{devices_for_many_iterations, iterations_by_definition, point};
use halo_gpu::Scalar;
use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::heat2d::{Heat2d, Plate, Variant};
use halo_gpu::{
    Axis, Boundary, Buffer, Cost, Device, DeviceKind, Error, Field2, Grid2, Grid3, Shape2, Shape3,
};
use halo_tests::{Bits, assert_same_bits, devices, for_each, kernel_devices, property, rng};
use proptest::prelude::*;
use rand::{Rng, RngExt};

/// The boundaries at the left and the right, and at the bottom and the top.
pub type Ends = [[Boundary; 2]; 2];

pub const DIRICHLET: Ends = [[Boundary::DirichletOnPoint; 2]; 2];
pub const NEUMANN: Ends = [[Boundary::Neumann; 2]; 2];

/// All sixteen.
fn all_ends() -> Vec<Ends> {
    (0..16).map(ends).collect()
}

/// Boundaries by the bits of a number (other bits than the kernel's).
pub fn ends(bits: u32) -> Ends {
    let end = |bit: u32| match bits >> bit & 1 {
        0 => Boundary::DirichletOnPoint,
        _ => Boundary::Neumann,
    };
    [[end(3), end(1)], [end(0), end(2)]]
}

/// Iterations on plates with these boundaries.
pub fn heat2d(shape: Shape2, ends: Ends) -> Result<Heat2d, Error> {
    Heat2d::dirichlet(shape)?
        .with_ends(Axis::X, ends[0])?
        .with_ends(Axis::Y, ends[1])
}

/// Numbers in [-1, 1).
fn random<T: Scalar>(rng: &mut impl Rng, len: usize) -> Vec<T> {
    (0..len)
        .map(|_| T::from(rng.random_range(-1.0..1.0_f32)) * T::from(1.0 / 3.0))
        .collect()
}

/// Whether a point keeps its temperature.
pub fn is_kept(shape: Shape2, ends: Ends, i: usize, j: usize) -> bool {
    let on = |at: bool, end: Boundary| at && end == Boundary::DirichletOnPoint;
    let [[left, right], [bottom, top]] = ends;
    on(i == 0, left)
        || on(i == shape.nx - 1, right)
        || on(j == 0, bottom)
        || on(j == shape.ny - 1, top)
}

/// An iteration by definition, one point at a time; fixed points keep the values of `new`.
fn iteration_by_definition<T: Scalar>(
    shape: Shape2,
    ends: Ends,
    source: Option<&[T]>,
    old: &[T],
    new: &[T],
) -> Vec<T> {
    let Shape2 { nx, ny } = shape;
    // The point `by` points from p, mirrored beyond an end.
    let reflected = |p: usize, by: isize, n: usize| {
        let last = n as isize - 1;
        (last - (last - (p as isize + by).abs()).abs()) as usize
    };
    let mut result = new.to_vec();
    for (index, value) in result.iter_mut().enumerate() {
        let (i, j) = (index % nx, index / nx);
        if is_kept(shape, ends, i, j) {
            continue;
        }
        let at = |x: isize, y: isize| old[reflected(j, y, ny) * nx + reflected(i, x, nx)];
        let mut sum = (at(1, 0) + at(-1, 0)) + (at(0, 1) + at(0, -1));
        if let Some(source) = source {
            sum = sum + source[index];
        }
        *value = sum * T::from(0.25);
    }
    result
}

/// One iteration on `device`, into a buffer that holds `new`.
fn iterated<T: Scalar + Bits>(
    device: &Device,
    heat: &Heat2d,
    source: Option<&[T]>,
    old: &[T],
    new: &[T],
) -> Vec<T> {
    let input = device.upload(old).unwrap();
    let mut output = device.upload(new).unwrap();
    let mut plan = heat.plan(device).unwrap();
    if let Some(values) = source {
        plan = plan.with_source(device.upload(values).unwrap()).unwrap();
    }
    plan.iterate_into(&input, &mut output).unwrap();
    if let Some(values) = source {
        let source = plan.source_mut().unwrap();
        assert_same_bits(&source.to_vec().unwrap(), values, |index| {
            format!("the source of {}", point(heat.shape(), index))
        });
    }
    assert_same_bits(&input.to_vec().unwrap(), old, |index| {
        format!("{}, which was only to be read,", point(heat.shape(), index))
    });
    output.to_vec().unwrap()
}

fn one_iteration_gives_the_bits_of_the_definition<T: Scalar + Bits>() {
    let mut rng = rng();
    // All boundaries on small plates: one vector, some points and several rows of blocks; and
    // some of them around the seams of warps and blocks, with whole vectors and without.
    let small = [(3, 3), (4, 4), (5, 8), (8, 3), (33, 7), (36, 14)];
    let seams = [
        (31, 13),
        (32, 5),
        (34, 4),
        (63, 3),
        (64, 9),
        (65, 3),
        (68, 3),
        (124, 3),
        (128, 4),
        (132, 3),
        (257, 3),
        (512, 3),
        (514, 3),
        (516, 4),
        (1024, 3),
        (1028, 4),
        (3, 301),
        (101, 103),
    ];
    let mut cases: Vec<_> = (small.into_iter())
        .flat_map(|extents| all_ends().into_iter().map(move |ends| (extents, ends)))
        .collect();
    for (nth, extents) in seams.into_iter().enumerate() {
        let bits = 5 * nth as u32 + 2;
        cases.extend([bits % 16, !bits % 16, 15].map(|bits| (extents, ends(bits))));
    }
    for_each("device", devices(), |device| {
        for_each("plate", &cases, |&((nx, ny), ends)| {
            let shape = Shape2::new(nx, ny);
            let heat = heat2d(shape, ends).unwrap();
            assert_eq!([Axis::X, Axis::Y].map(|axis| heat.grid().ends(axis)), ends);
            let old = random::<T>(&mut rng, nx * ny);
            let source = random::<T>(&mut rng, nx * ny);
            // Nothing an iteration could compute from `old`, and different everywhere.
            let new: Vec<T> = (0..nx * ny)
                .map(|index| T::from(100.0 + index as f32))
                .collect();
            for source in [None, Some(&source[..])] {
                let got = iterated(&device, &heat, source, &old, &new);
                let expected = iteration_by_definition(shape, ends, source, &old, &new);
                assert_same_bits(&got, &expected, |index| {
                    format!("{} with source {}", point(shape, index), source.is_some())
                });
            }
        });
    });
}

#[test]
fn any_boundaries_give_the_bits_of_the_definition() {
    one_iteration_gives_the_bits_of_the_definition::<f32>();
}

#[test]
fn any_boundaries_give_the_bits_of_the_definition_in_f64() {
    one_iteration_gives_the_bits_of_the_definition::<f64>();
}

#[test]
fn nothing_is_added_where_there_is_no_source() {
    // A zero would make 0 of -0.
    let shape = Shape2::new(9, 8);
    let ends = ends(0b1010);
    let heat = heat2d(shape, ends).unwrap();
    let (plate, new) = ([-0.0_f32; 72], [1.0; 72]);
    for_each("device", devices(), |device| {
        for (source, zero) in [(None, -0.0), (Some(&[0.0; 72][..]), 0.0_f32)] {
            let got = iterated(&device, &heat, source, &plate, &new);
            assert_eq!(got[4 * 9].to_bits(), zero.to_bits());
            let expected = iteration_by_definition(shape, ends, source, &plate, &new);
            assert_same_bits(&got, &expected, |index| point(shape, index));
        }
    });
}

/// Cases that need more blocks than the emulator tries, and more rows than 65535 blocks of 6 have.
#[cfg(feature = "gpu")]
#[test]
fn large_plates_with_any_boundaries_give_the_bits_of_the_port() {
    fn check<T: Scalar + Bits>() {
        let mut rng = rng();
        let cuda = halo_tests::cuda();
        let shapes = [(1000, 997), (2051, 1533), (4096, 130), (3, 65_535 * 6 + 1)];
        for (nth, (nx, ny)) in shapes.into_iter().enumerate() {
            let shape = Shape2::new(nx, ny);
            let initial = Field2::from_vec(shape, random::<T>(&mut rng, nx * ny)).unwrap();
            let source = Field2::from_vec(shape, random::<T>(&mut rng, nx * ny)).unwrap();
            for bits in [15, 6 + nth as u32, 9 - nth as u32] {
                let heat = heat2d(shape, ends(bits)).unwrap();
                let [port, kernel] = [&Device::cpu(), &cuda].map(|device| {
                    let plate = heat.start(device, &initial).unwrap();
                    let mut plate = plate.with_source(&source).unwrap();
                    plate.iterate(4).unwrap();
                    plate.field().unwrap()
                });
                assert_same_bits(kernel.as_slice(), port.as_slice(), |index| {
                    point(shape, index)
                });
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn every_call_takes_boundaries_and_source() {
    let mut rng = rng();
    let shape = Shape2::new(21, 9);
    let ends = ends(0b1100);
    let heat = heat2d(shape, ends).unwrap();
    let initial = Field2::from_vec(shape, random::<f32>(&mut rng, 21 * 9)).unwrap();
    let source = Field2::from_vec(shape, random::<f32>(&mut rng, 21 * 9)).unwrap();
    let swept = |source: Option<&[f32]>, iterations: usize| {
        (0..iterations).fold(initial.as_slice().to_vec(), |plate, _| {
            iteration_by_definition(shape, ends, source, &plate, &plate)
        })
    };
    let check = |got: &[f32], expected: &[f32]| {
        assert_same_bits(got, expected, |index| point(shape, index));
    };
    for_each("device", devices_for_many_iterations(), |device| {
        let plain = swept(None, 3);
        let solved = heat.iterate_of(&device, &initial, 3).unwrap();
        check(solved.as_slice(), &plain);
        let mut plan = heat.plan(&device).unwrap();
        for count in [3, 2, 1] {
            let mut current = device.upload(initial.as_slice()).unwrap();
            plan.iterate(&mut current, count).unwrap();
            check(&current.to_vec().unwrap(), &swept(None, count));
        }
        let mut plan = plan
            .with_source(device.upload(source.as_slice()).unwrap())
            .unwrap();
        for count in [3, 2, 1] {
            let mut current = device.upload(initial.as_slice()).unwrap();
            plan.iterate(&mut current, count).unwrap();
            check(
                &current.to_vec().unwrap(),
                &swept(Some(source.as_slice()), count),
            );
        }
        // A source may change between calls.
        let other = plan.source_mut().unwrap();
        other.copy_from_slice(initial.as_slice()).unwrap();
        let mut current = device.upload(initial.as_slice()).unwrap();
        plan.iterate(&mut current, 2).unwrap();
        check(
            &current.to_vec().unwrap(),
            &swept(Some(initial.as_slice()), 2),
        );

        // The last source counts.
        let warm = swept(Some(source.as_slice()), 3);
        let plate = heat.start(&device, &initial).unwrap();
        let mut plate = (plate.with_source(&initial).unwrap())
            .with_source(&source)
            .unwrap();
        plate.iterate(3).unwrap();
        assert_eq!(plate.iterations(), 3);
        check(plate.field().unwrap().as_slice(), &warm);

        if device.kind() != DeviceKind::Cpu {
            let march = || heat.plan_with(&device, Variant::March).unwrap();
            let plate = march().start(&initial).unwrap();
            let mut plate = plate.with_source(&source).unwrap();
            plate.iterate(3).unwrap();
            check(plate.field().unwrap().as_slice(), &warm);
            let old = device.upload(initial.as_slice()).unwrap();
            let mut new = old.try_clone().unwrap();
            march().iterate_into(&old, &mut new).unwrap();
            check(&new.to_vec().unwrap(), &swept(None, 1));
        }

        // A source alone, with Dirichlet boundaries all around.
        let fixed = Heat2d::dirichlet(shape).unwrap();
        let mut plate = fixed.start(&device, &initial).unwrap();
        plate.iterate(2).unwrap();
        let cold = iterations_by_definition(shape, initial.as_slice(), 2);
        let mut plate = plate.with_source(&source).unwrap();
        plate.iterate(1).unwrap();
        let expected =
            iteration_by_definition(shape, DIRICHLET, Some(source.as_slice()), &cold, &cold);
        check(plate.field().unwrap().as_slice(), &expected);
    });
}

#[test]
fn whole_numbers_that_solve_the_equations_are_steady() {
    // Whole numbers: every sum is exact. With p = nx - 1 and q = ny - 1.
    let shape = Shape2::new(22, 15);
    let (p, q) = (21.0, 14.0);
    let (i, o) = (Boundary::Neumann, Boundary::DirichletOnPoint);
    let ends = |left, right, bottom, top| [[left, right], [bottom, top]];
    type Exact = fn(f32, f32, f32, f32) -> f32;
    let cases: [(&str, Ends, f32, Exact); 8] = [
        ("rises along x", ends(o, o, i, i), 0.0, |x, _, _, _| {
            3.0 * x - 7.0
        }),
        ("rises along y", ends(i, i, o, o), 0.0, |_, y, _, _| {
            5.0 - 2.0 * y
        }),
        ("heated rod along x", ends(o, o, i, i), 2.0, |x, _, p, _| {
            x * (p - x)
        }),
        ("its right half", ends(o, i, i, i), 2.0, |x, _, p, _| {
            x * (2.0 * p - x)
        }),
        ("its left half", ends(i, o, i, i), 2.0, |x, _, p, _| {
            p * p - x * x
        }),
        ("lower half along y", ends(i, i, o, i), 4.0, |_, y, _, q| {
            2.0 * y * (2.0 * q - y)
        }),
        (
            "upper half along y",
            ends(i, i, i, o),
            -2.0,
            |_, y, _, _| y * y,
        ),
        ("a quarter", ends(i, o, o, i), 6.0, |x, y, _, q| {
            2.0 * y * (2.0 * q - y) - x * x
        }),
    ];
    for_each("device", devices_for_many_iterations(), |device| {
        for_each("plate", cases, |(_, ends, source, exact)| {
            let heat = heat2d(shape, ends).unwrap();
            let plate = Field2::from_fn(shape, |i, j| exact(i as f32, j as f32, p, q)).unwrap();
            let source = Field2::filled(shape, source).unwrap();
            let start = heat.start(&device, &plate).unwrap();
            let mut swept = start.with_source(&source).unwrap();
            swept.iterate(2).unwrap();
            assert_same_bits(
                swept.field().unwrap().as_slice(),
                plate.as_slice(),
                |index| point(shape, index),
            );
        });
    });
}

#[test]
fn a_cold_plate_comes_to_the_solution() {
    // -∇²u = f on the unit square, with Neumann ends to the left and at the bottom,
    // and the others at 0: u = cos(πx/2) cos(πy/2), f = π²/2 u. The discrete solution is
    // a multiple of it: 4 sin²(πh/4) / h² per axis instead of (π/2)².
    let n = 17;
    let (shape, h) = (Shape2::new(n, n), 1.0 / (n - 1) as f64);
    let quarter = std::f64::consts::FRAC_PI_2;
    let u = Field2::from_fn(shape, |i, j| {
        (quarter * h * i as f64).cos() * (quarter * h * j as f64).cos()
    })
    .unwrap();
    let source =
        Field2::from_fn(shape, |i, j| h * h * 2.0 * quarter * quarter * u[(i, j)]).unwrap();
    let factor = (quarter * h / 2.0).powi(2) / (quarter * h / 2.0).sin().powi(2);
    let ends = [[Boundary::Neumann, Boundary::DirichletOnPoint]; 2];
    for_each("device", devices_for_many_iterations(), |device| {
        let heat = heat2d(shape, ends).unwrap();
        let cold = Field2::filled(shape, 0.0_f64).unwrap();
        let start = heat.start(&device, &cold).unwrap();
        let mut plate = start.with_source(&source).unwrap();
        let outcome = plate.iterate_until(1e-9, 100, 10_000).unwrap();
        assert!(outcome.converged && outcome.iterations > 500, "{outcome:?}");
        let plate = plate.field().unwrap();
        for (index, (got, u)) in plate.as_slice().iter().zip(u.as_slice()).enumerate() {
            // The change of an iteration divided by what remains of the slowest mode after it, 1 -
            // cos(πh/2).
            let bound = 1e-9 / (1.0 - (quarter * h).cos());
            let error = (got - factor * u).abs();
            assert!(error <= bound, "{}: off by {error}", point(shape, index));
        }
    });
}

/// What a point counts by its place p among n: half at the ends.
pub fn half(p: usize, n: usize) -> f64 {
    if p == 0 || p == n - 1 { 0.5 } else { 1.0 }
}

/// Sums over the points of even and of odd i + j, ends counting half.
fn sums(field: &Field2<f64>) -> [f64; 2] {
    let shape = field.shape();
    let mut sums = [0.0; 2];
    for j in 0..shape.ny {
        for i in 0..shape.nx {
            sums[(i + j) % 2] += half(i, shape.nx) * half(j, shape.ny) * field[(i, j)];
        }
    }
    sums
}

#[test]
fn no_heat_leaves_a_plate_that_is_insulated_all_around() {
    // Whole numbers that stay within 53 bits for ten iterations.
    let mut rng = rng();
    let mut whole = |shape: Shape2| {
        let points = shape.points().unwrap();
        let values = (0..points).map(|_| f64::from(rng.random_range(-500..500)));
        Field2::from_vec(shape, values.collect()).unwrap()
    };
    for_each("device", devices_for_many_iterations(), |device| {
        for_each("shape", [(3, 3), (4, 7), (17, 12), (70, 5)], |(nx, ny)| {
            let shape = Shape2::new(nx, ny);
            let heat = heat2d(shape, NEUMANN).unwrap();
            let (initial, source) = (whole(shape), whole(shape));
            let [mut even, mut odd] = sums(&initial);
            let mut plate = heat.start(&device, &initial).unwrap();
            for iteration in 1..=5 {
                plate.iterate(1).unwrap();
                (even, odd) = (odd, even);
                assert_eq!(sums(&plate.field().unwrap()), [even, odd], "{iteration}");
            }
            let [to_even, to_odd] = sums(&source);
            let mut plate = plate.with_source(&source).unwrap();
            for iteration in 6..=10 {
                plate.iterate(1).unwrap();
                (even, odd) = (odd + to_even / 4.0, even + to_odd / 4.0);
                assert_eq!(sums(&plate.field().unwrap()), [even, odd], "{iteration}");
            }
        });
    });
}

#[test]
fn a_plate_that_never_comes_to_rest_is_refused() {
    fn check<T: Scalar + Bits>(device: &Device) {
        let shape = Shape2::new(5, 4);
        let heat = heat2d(shape, NEUMANN).unwrap();
        let field = |value: fn(usize, usize) -> f32| {
            Field2::from_fn(shape, |i, j| T::from(value(i, j))).unwrap()
        };
        let start = |initial: &Field2<T>| heat.start(device, initial).unwrap();
        let until =
            |plate: &mut Plate<T>, tolerance: f32| plate.iterate_until(T::from(tolerance), 5, 1000);
        let refused = |error: Error, change: &str| {
            assert_eq!(
                error.to_string(),
                format!(
                    "heat2d: the tolerance is 0.125, but must be at least {change}, by which a \
                     plate with Neumann boundaries all around goes on to change with this source \
                     and from these temperatures"
                )
            );
        };

        // A source of 1 everywhere: a quarter in each iteration.
        let warm = field(|_, _| 2.5);
        let mut plate = start(&warm).with_source(&field(|_, _| 1.0)).unwrap();
        refused(until(&mut plate, 0.125).unwrap_err(), "2.5e-1");
        assert_eq!(plate.iterations(), 0);
        // Which is enough for who asks for no more.
        assert!(until(&mut plate, 0.25).unwrap().converged);
        plate.iterate(3).unwrap();
        refused(until(&mut plate, 0.125).unwrap_err(), "2.5e-1");
        // The same at the points of odd i + j alone.
        let odd = field(|i, j| if (i + j) % 2 == 1 { 1.0 } else { 0.0 });
        let mut plate = start(&warm).with_source(&odd).unwrap();
        refused(until(&mut plate, 0.125).unwrap_err(), "2.5e-1");
        // Heat in one point, of 12 by weight of all: 6 of even i + j.
        let mut point = field(|_, _| 0.0);
        point[(2, 2)] = T::from(3.0);
        refused(until(&mut start(&point), 0.125).unwrap_err(), "5e-1");
        point[(2, 2)] = T::from(0.0);
        // A corner counts a quarter, an end half.
        point[(0, 0)] = T::from(6.0);
        refused(until(&mut start(&point), 0.125).unwrap_err(), "2.5e-1");
        point[(0, 1)] = T::from(3.0);
        let outcome = until(&mut start(&point), 1e-5).unwrap();
        assert!(outcome.converged && outcome.iterations > 5, "{outcome:?}");

        // The sum of the source is zero up to rounding, and rounding must not refuse it.
        let source = field(|i, _| [4.0, 0.0, 0.0, 0.0, -4.0][i]);
        let mut plate = start(&field(|_, _| 0.1)).with_source(&source).unwrap();
        assert!(until(&mut plate, 1e-5).unwrap().converged);
        let plate = plate.field().unwrap();
        for (i, expected) in [4.0, 2.0, 0.0, -2.0, -4.0].into_iter().enumerate() {
            let got: f64 = plate[(i, 2)].into();
            assert!(
                (got - 0.1 - expected).abs() < 1e-3,
                "{got}, not {expected} + 0.1"
            );
        }
        let third = T::from(0.1) * T::from(1.0 / 3.0);
        let mut plate = start(&Field2::filled(shape, third).unwrap());
        assert!(plate.iterate_until(T::from(0.0), 1, 5).unwrap().converged);
        // A NaN is not refused; it makes the result NaN.
        point[(3, 3)] = T::from(f32::NAN);
        let outcome = until(&mut start(&point), 0.125).unwrap();
        let change: f64 = outcome.change.into();
        assert!(!outcome.converged && change.is_nan());
        // One end that is kept takes what the source gives.
        let top = [Boundary::Neumann, Boundary::DirichletOnPoint];
        let heat = heat.with_ends(Axis::Y, top).unwrap();
        let mut plate = heat.start(device, &warm).unwrap();
        plate = plate.with_source(&field(|_, _| 1.0)).unwrap();
        assert!(until(&mut plate, 1e-5).unwrap().converged);
    }
    for_each("device", devices_for_many_iterations(), |device| {
        check::<f32>(&device);
        check::<f64>(&device);
    });
}

#[test]
fn the_change_of_an_iteration_is_also_looked_for_on_neumann_boundaries() {
    // By elementwise_difference_f32, where there are kernels: one point is heated.
    let shape = Shape2::new(9, 6);
    let heat = heat2d(shape, ends(0b0111)).unwrap();
    let cold = Field2::filled(shape, 0.0_f32).unwrap();
    for_each("device", devices_for_many_iterations(), |device| {
        for (x, y) in [(8, 3), (4, 0), (4, 5), (8, 5), (8, 0)] {
            let mut source = cold.clone();
            source[(x, y)] = 8.0;
            let plate = heat.start(&device, &cold).unwrap();
            let mut plate = plate.with_source(&source).unwrap();
            let outcome = plate.iterate_until(0.5, 1, 1).unwrap();
            assert_eq!((outcome.change, outcome.converged), (2.0, false));
            assert_eq!(plate.field().unwrap()[(x, y)], 2.0);
        }
    });
}

#[test]
fn the_work_of_an_iteration_with_neumann_boundaries_is_counted() {
    for_each(
        "boundaries",
        [
            (0, 40),
            (0b1000, 45),
            (0b0010, 45),
            (0b0100, 48),
            (0b0001, 48),
            (15, 70),
            (6, 54),
        ],
        |(bits, points)| {
            let heat = heat2d(Shape2::new(10, 7), ends(bits)).unwrap();
            assert_eq!(heat.unknowns(), points);
            let (bytes, flops) = (4 * (70 + points), 4 * points);
            assert_eq!(heat.cost::<f32>(), Cost { bytes, flops });
        },
    );
}

#[test]
fn what_has_no_meaning_is_refused() {
    let shape = Shape2::new(20, 18);
    let fixed = Heat2d::dirichlet(shape).unwrap();
    let right = [Boundary::DirichletOnPoint, Boundary::Neumann];
    let insulated = fixed.with_ends(Axis::X, right).unwrap();
    let field = Field2::filled(shape, 1.0_f32).unwrap();
    for_each("device", devices(), |device| {
        // Sources of another shape, and sources with values that are not numbers.
        let start = || insulated.start(&device, &field).unwrap();
        let turned = Field2::filled(Shape2::new(18, 20), 1.0_f32).unwrap();
        assert_eq!(
            start().with_source(&turned).unwrap_err().to_string(),
            "heat2d: the source has the shape 18 × 20, but must have 20 × 18"
        );
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut source = field.clone();
            source[(3, 2)] = value;
            let error = start().with_source(&source).unwrap_err();
            assert!(
                matches!(error, Error::InvalidElement { index: 43, .. }),
                "{error}"
            );
        }

        // Buffers that do not fit.
        let refused = |source: Buffer<f32>| {
            let plan = insulated.plan(&device).unwrap();
            plan.with_source(source).unwrap_err()
        };
        let error = refused(device.alloc_filled(361, 0.0).unwrap());
        assert_eq!(
            error.to_string(),
            "heat2d: source has 361 elements, but must have 360"
        );
        let elsewhere = match device.kind() {
            DeviceKind::Cpu => Device::emulator(),
            DeviceKind::Emulator | DeviceKind::Cuda => Device::cpu(),
        };
        let error = refused(elsewhere.alloc_filled(360, 0.0).unwrap());
        assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
        let error = refused(turned.to_device(&device).unwrap());
        assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
        let (old, mut short) = (device.zeros(360).unwrap(), device.zeros(359).unwrap());
        let mut plan = (insulated.plan::<f32>(&device).unwrap())
            .with_source(device.zeros(360).unwrap())
            .unwrap();
        let error = plan.iterate_into(&old, &mut short);
        assert!(matches!(error, Err(Error::LengthMismatch { .. })));
    });

    // Kernels that know no Neumann boundary or no source.
    for_each("device", kernel_devices(), |device| {
        let others = Variant::ALL.into_iter();
        let others = others.filter(|it| !matches!(it, Variant::March | Variant::Step));
        for_each("kernel", others, |variant| {
            let error = insulated.plan_with::<f32>(&device, variant).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "heat2d: the kernel is {variant}, but must be heat2d_march, because a \
                     boundary is Neumann"
                )
            );
            let plan = || fixed.plan_with(&device, variant).unwrap();
            assert_eq!(plan().variant(), Some(variant));
            let source = device.upload(field.as_slice()).unwrap();
            for error in [
                plan().with_source(source).unwrap_err(),
                plan()
                    .start(&field)
                    .unwrap()
                    .with_source(&field)
                    .unwrap_err(),
            ] {
                assert_eq!(
                    error.to_string(),
                    format!(
                        "heat2d: the kernel is {variant}, but must be heat2d_march, because there \
                         is a source"
                    )
                );
            }
        });
    });
    let error = (insulated.plan_with::<f32>(&Device::cpu(), Variant::March)).unwrap_err();
    assert!(matches!(
        error,
        Error::NotLaunchable {
            kernel: "heat2d_march_f32"
        }
    ));
}

#[test]
fn operators_have_no_points_that_are_kept() {
    let grid = (Grid3::new(Shape3::cube(9), [1.0; 3]).unwrap())
        .with_boundary(Axis::Y, Boundary::DirichletOnPoint)
        .unwrap();
    assert_eq!(
        FiniteDifferences3d::<f32>::new(&grid)
            .unwrap_err()
            .to_string(),
        "derivative3d: boundary along y is Dirichlet (kept on the end point), but must be another \
         boundary, because every point has a derivative"
    );
}

/// What a grid can say and a plate cannot be.
#[test]
fn grids_that_are_no_plates_are_refused_by_name() {
    let grid = |shape, spacing| Grid2::new(shape, spacing).unwrap();
    let shape = Shape2::new(9, 7);
    let plate = (grid(shape, [0.5; 2]).with_boundaries(Boundary::Neumann)).unwrap();
    let known = "Dirichlet (kept on the end point) or Neumann (mirrored on the end point)";
    for_each(
        "boundary",
        [
            (Boundary::Periodic, "periodic (period n)"),
            (
                Boundary::PeriodicWithEndpoint,
                "periodic with end point (period n-1)",
            ),
            (Boundary::Dirichlet(2.5), "Dirichlet (2.5)"),
            (
                Boundary::NeumannHalfway,
                "Neumann (mirrored half a spacing beyond)",
            ),
            (Boundary::OneSided, "one-sided"),
        ],
        |(boundary, given)| {
            for (axis, name) in [(Axis::X, "x"), (Axis::Y, "y")] {
                let wrong = plate.with_boundary(axis, boundary).unwrap();
                let heat = Heat2d::new(&plate).unwrap();
                for error in [
                    Heat2d::new(&wrong).unwrap_err(),
                    heat.with_grid(&wrong).unwrap_err(),
                    heat.with_ends(axis, [boundary; 2]).unwrap_err(),
                ] {
                    assert_eq!(
                        error.to_string(),
                        format!("heat2d: boundary along {name} is {given}, but must be {known}")
                    );
                }
            }
        },
    );
    let error = (Heat2d::new(&plate).unwrap())
        .with_ends(Axis::Z, [Boundary::Neumann; 2])
        .unwrap_err();
    assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");

    let oblong = (grid(shape, [0.5, 0.25]).with_boundaries(Boundary::Neumann)).unwrap();
    assert_eq!(
        Heat2d::new(&oblong).unwrap_err().to_string(),
        "heat2d: spacing along y is 0.25, but must be 0.5, which it is along x: cells are square"
    );
    let thin = (grid(Shape2::new(2, 7), [0.5; 2]).with_boundaries(Boundary::Neumann)).unwrap();
    let error = Heat2d::new(&thin).unwrap_err();
    assert!(
        matches!(
            error,
            Error::InvalidSize {
                axis: "nx",
                given: 2,
                ..
            }
        ),
        "{error}"
    );

    // A step that is stable on one grid, on another.
    let steps = (Heat2d::new(&plate).unwrap().with_time_step(1.0, 0.0625)).unwrap();
    assert_eq!(
        steps.with_ends(Axis::X, DIRICHLET[0]).unwrap().time_step(),
        Some(0.0625)
    );
    let finer = (grid(shape, [0.25; 2]).with_boundaries(Boundary::Neumann)).unwrap();
    let error = steps.with_grid(&finer).unwrap_err();
    assert!(
        matches!(error, Error::Unstable { limit, .. } if limit == 0.015625),
        "{error}"
    );
}

proptest! {
    #![proptest_config(property::cases(256))]

    /// A plate with a Neumann boundary is half of one that is symmetric about it, whose
    /// points on the wall are interior ones. To the last bit: addition commutes.
    #[test]
    fn neumann_plates_are_halves_of_symmetric_ones(
        (nx, ny) in (3_usize..24, 3_usize..24),
        others in 0_u32..16,
        iterations in 1_usize..6,
        seed in any::<u64>(),
    ) {
        let value = |i: usize, j: usize, salt: u64| {
            let mixed = (seed ^ salt)
                .wrapping_add((i * 1009 + j) as u64)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed >> 40) as f32 / (1 << 24) as f32 - 0.5
        };
        let swept = |shape: Shape2, ends: Ends, at: &dyn Fn(usize, usize) -> (usize, usize)| {
            let field = |salt| {
                Field2::from_fn(shape, |i, j| {
                    let (i, j) = at(i, j);
                    value(i, j, salt)
                })
                .unwrap()
            };
            let heat = heat2d(shape, ends).unwrap();
            let plate = heat.start(&Device::cpu(), &field(0)).unwrap();
            let mut plate = plate.with_source(&field(1)).unwrap();
            plate.iterate(iterations).unwrap();
            plate.field().unwrap()
        };
        let ([x, y], shape) = (ends(others), Shape2::new(nx, ny));

        let half = [[Boundary::Neumann, x[1]], y];
        let whole = [[x[1]; 2], y];
        let half = swept(shape, half, &|i, j| (i, j));
        let whole = swept(Shape2::new(2 * nx - 1, ny), whole, &|i, j| (i.abs_diff(nx - 1), j));
        for j in 0..ny {
            for i in 0..nx {
                prop_assert_eq!(half[(i, j)].to_bits(), whole[(nx - 1 + i, j)].to_bits());
            }
        }

        let half = [x, [y[0], Boundary::Neumann]];
        let whole = [x, [y[0]; 2]];
        let half = swept(shape, half, &|i, j| (i, j));
        let whole = swept(Shape2::new(nx, 2 * ny - 1), whole, &|i, j| {
            (i, if j < ny { j } else { 2 * (ny - 1) - j })
        });
        for j in 0..ny {
            for i in 0..nx {
                prop_assert_eq!(half[(i, j)].to_bits(), whole[(i, j)].to_bits());
            }
        }
    }
}
