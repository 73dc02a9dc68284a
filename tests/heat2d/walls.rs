//! Insulated walls and sources: `heat2d_general_f32`, `heat2d_general_f64` and the CPU
//! port.

use super::{devices_for_many_sweeps, point, sweeps_by_definition};
use halo_gpu::Scalar;
use halo_gpu::heat2d::{Heat2d, Variant, Wall, Walls};
use halo_gpu::{Buffer, Device, DeviceKind, Error, Field2, Shape2};
use halo_tests::{Bits, assert_same_bits, devices, for_each, kernel_devices, property, rng};
use proptest::prelude::*;
use rand::{Rng, RngExt};

/// All sixteen.
fn all_walls() -> Vec<Walls> {
    (0..16).map(walls).collect()
}

/// Walls by the bits of a number, which are not those of the kernel.
pub fn walls(bits: u32) -> Walls {
    let wall = |bit: u32| match bits >> bit & 1 {
        0 => Wall::Fixed,
        _ => Wall::Insulated,
    };
    Walls {
        left: wall(3),
        top: wall(2),
        right: wall(1),
        bottom: wall(0),
    }
}

/// Numbers in [-1, 1).
fn random<T: Scalar>(rng: &mut impl Rng, len: usize) -> Vec<T> {
    (0..len)
        .map(|_| T::from(rng.random_range(-1.0..1.0_f32)) * T::from(1.0 / 3.0))
        .collect()
}

/// Whether a point keeps its temperature.
pub fn is_fixed(shape: Shape2, walls: Walls, i: usize, j: usize) -> bool {
    let on = |at: bool, wall: Wall| at && wall == Wall::Fixed;
    on(i == 0, walls.left)
        || on(i == shape.nx - 1, walls.right)
        || on(j == 0, walls.bottom)
        || on(j == shape.ny - 1, walls.top)
}

/// A sweep by definition, one point at a time: the fixed walls are those of `new`.
fn sweep_by_definition<T: Scalar>(
    shape: Shape2,
    walls: Walls,
    source: Option<&[T]>,
    old: &[T],
    new: &[T],
) -> Vec<T> {
    let Shape2 { nx, ny } = shape;
    // What is `by` points from p, back again beyond a wall.
    let reflected = |p: usize, by: isize, n: usize| {
        let last = n as isize - 1;
        (last - (last - (p as isize + by).abs()).abs()) as usize
    };
    let mut result = new.to_vec();
    for (index, value) in result.iter_mut().enumerate() {
        let (i, j) = (index % nx, index / nx);
        if is_fixed(shape, walls, i, j) {
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

/// One sweep on `device`, into a buffer that holds `new`.
fn sweep<T: Scalar + Bits>(
    device: &Device,
    heat: &Heat2d,
    source: Option<&[T]>,
    old: &[T],
    new: &[T],
) -> Vec<T> {
    let input = device.upload(old).unwrap();
    let mut output = device.upload(new).unwrap();
    match source {
        Some(values) => {
            let source = device.upload(values).unwrap();
            heat.sweep_with_source(&source, &input, &mut output)
                .unwrap();
            assert_same_bits(&source.to_vec().unwrap(), values, |index| {
                format!("the source of {}", point(heat.shape(), index))
            });
        }
        None => heat.sweep(&input, &mut output).unwrap(),
    }
    assert_same_bits(&input.to_vec().unwrap(), old, |index| {
        format!("{}, which was only to be read,", point(heat.shape(), index))
    });
    output.to_vec().unwrap()
}

fn one_sweep_gives_the_bits_of_the_definition<T: Scalar + Bits>() {
    let mut rng = rng();
    // All walls on small plates: one vector, some points and several rows of blocks; and
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
        .flat_map(|extents| all_walls().into_iter().map(move |walls| (extents, walls)))
        .collect();
    for (nth, extents) in seams.into_iter().enumerate() {
        let bits = 5 * nth as u32 + 2;
        cases.extend([bits % 16, !bits % 16, 15].map(|bits| (extents, walls(bits))));
    }
    for_each("device", devices(), |device| {
        for_each("plate", &cases, |&((nx, ny), walls)| {
            let shape = Shape2::new(nx, ny);
            let heat = Heat2d::new(shape).unwrap().with_walls(walls);
            assert_eq!(heat.walls(), walls);
            let old = random::<T>(&mut rng, nx * ny);
            let source = random::<T>(&mut rng, nx * ny);
            // Nothing a sweep could compute from `old`, and different everywhere.
            let new: Vec<T> = (0..nx * ny)
                .map(|index| T::from(100.0 + index as f32))
                .collect();
            for source in [None, Some(&source[..])] {
                let got = sweep(&device, &heat, source, &old, &new);
                let expected = sweep_by_definition(shape, walls, source, &old, &new);
                assert_same_bits(&got, &expected, |index| {
                    format!("{} with source {}", point(shape, index), source.is_some())
                });
            }
        });
    });
}

#[test]
fn any_walls_give_the_bits_of_the_definition() {
    one_sweep_gives_the_bits_of_the_definition::<f32>();
}

#[test]
fn any_walls_give_the_bits_of_the_definition_in_f64() {
    one_sweep_gives_the_bits_of_the_definition::<f64>();
}

#[test]
fn nothing_is_added_where_there_is_no_source() {
    // A zero would make 0 of -0.
    let shape = Shape2::new(9, 8);
    let heat = (Heat2d::new(shape).unwrap()).with_walls(walls(0b1010));
    let (plate, new) = ([-0.0_f32; 72], [1.0; 72]);
    for_each("device", devices(), |device| {
        for (source, zero) in [(None, -0.0), (Some(&[0.0; 72][..]), 0.0_f32)] {
            let got = sweep(&device, &heat, source, &plate, &new);
            assert_eq!(got[4 * 9].to_bits(), zero.to_bits());
            let expected = sweep_by_definition(shape, heat.walls(), source, &plate, &new);
            assert_same_bits(&got, &expected, |index| point(shape, index));
        }
    });
}

/// What the emulator, with its few blocks, does not come to; and more rows than 65535
/// blocks of 6 have.
#[cfg(feature = "gpu")]
#[test]
fn large_plates_with_any_walls_give_the_bits_of_the_port() {
    fn check<T: Scalar + Bits>() {
        let mut rng = rng();
        let cuda = halo_tests::cuda();
        let shapes = [(1000, 997), (2051, 1533), (4096, 130), (3, 65_535 * 6 + 1)];
        for (nth, (nx, ny)) in shapes.into_iter().enumerate() {
            let shape = Shape2::new(nx, ny);
            let initial = Field2::from_vec(shape, random::<T>(&mut rng, nx * ny)).unwrap();
            let source = Field2::from_vec(shape, random::<T>(&mut rng, nx * ny)).unwrap();
            for walls in [walls(15), walls(6 + nth as u32), walls(9 - nth as u32)] {
                let heat = Heat2d::new(shape).unwrap().with_walls(walls);
                let [port, kernel] = [&Device::cpu(), &cuda].map(|device| {
                    let plate = heat.start(device, &initial).unwrap();
                    let mut plate = plate.with_source(&source).unwrap();
                    plate.sweep(4).unwrap();
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
fn every_call_takes_walls_and_source() {
    let mut rng = rng();
    let shape = Shape2::new(21, 9);
    let walls = walls(0b1100);
    let heat = Heat2d::new(shape).unwrap().with_walls(walls);
    let initial = Field2::from_vec(shape, random::<f32>(&mut rng, 21 * 9)).unwrap();
    let source = Field2::from_vec(shape, random::<f32>(&mut rng, 21 * 9)).unwrap();
    let swept = |source: Option<&[f32]>, sweeps: usize| {
        (0..sweeps).fold(initial.as_slice().to_vec(), |plate, _| {
            sweep_by_definition(shape, walls, source, &plate, &plate)
        })
    };
    let check = |got: &[f32], expected: &[f32]| {
        assert_same_bits(got, expected, |index| point(shape, index));
    };
    for_each("device", devices_for_many_sweeps(), |device| {
        let plain = swept(None, 3);
        check(heat.solve(&device, &initial, 3).unwrap().as_slice(), &plain);
        let mut current = device.upload(initial.as_slice()).unwrap();
        let mut scratch = device.alloc_filled(21 * 9, f32::NAN).unwrap();
        heat.sweeps(&mut current, &mut scratch, 3).unwrap();
        check(&current.to_vec().unwrap(), &plain);

        // The last source counts.
        let warm = swept(Some(source.as_slice()), 3);
        let plate = heat.start(&device, &initial).unwrap();
        let mut plate = (plate.with_source(&initial).unwrap())
            .with_source(&source)
            .unwrap();
        plate.sweep(3).unwrap();
        assert_eq!(plate.sweeps(), 3);
        check(plate.field().unwrap().as_slice(), &warm);

        if device.kind() != DeviceKind::Cpu {
            let plate = heat.start_with(Variant::General, &device, &initial);
            let mut plate = plate.unwrap().with_source(&source).unwrap();
            plate.sweep(3).unwrap();
            check(plate.field().unwrap().as_slice(), &warm);
            let old = device.upload(initial.as_slice()).unwrap();
            let mut new = old.try_clone().unwrap();
            heat.sweep_with(Variant::General, &old, &mut new).unwrap();
            check(&new.to_vec().unwrap(), &swept(None, 1));
        }

        // A source alone, with all walls fixed, and then none.
        let fixed = Heat2d::new(shape).unwrap();
        let mut plate = fixed.start(&device, &initial).unwrap();
        plate.sweep(2).unwrap();
        let cold = sweeps_by_definition(shape, initial.as_slice(), 2);
        let mut plate = plate.with_source(&source).unwrap();
        plate.sweep(1).unwrap();
        let expected =
            sweep_by_definition(shape, Walls::FIXED, Some(source.as_slice()), &cold, &cold);
        check(plate.field().unwrap().as_slice(), &expected);
    });
}

#[test]
fn whole_numbers_that_solve_the_equations_are_steady() {
    // Whole numbers: every sum is exact. With p = nx - 1 and q = ny - 1.
    let shape = Shape2::new(22, 15);
    let (p, q) = (21.0, 14.0);
    let (i, o) = (Wall::Insulated, Wall::Fixed);
    let walls = |left, right, bottom, top| Walls {
        left,
        right,
        bottom,
        top,
    };
    type Exact = fn(f32, f32, f32, f32) -> f32;
    let cases: [(&str, Walls, f32, Exact); 8] = [
        ("rises along x", walls(o, o, i, i), 0.0, |x, _, _, _| {
            3.0 * x - 7.0
        }),
        ("rises along y", walls(i, i, o, o), 0.0, |_, y, _, _| {
            5.0 - 2.0 * y
        }),
        (
            "heated rod along x",
            walls(o, o, i, i),
            2.0,
            |x, _, p, _| x * (p - x),
        ),
        ("its right half", walls(o, i, i, i), 2.0, |x, _, p, _| {
            x * (2.0 * p - x)
        }),
        ("its left half", walls(i, o, i, i), 2.0, |x, _, p, _| {
            p * p - x * x
        }),
        (
            "lower half along y",
            walls(i, i, o, i),
            4.0,
            |_, y, _, q| 2.0 * y * (2.0 * q - y),
        ),
        (
            "upper half along y",
            walls(i, i, i, o),
            -2.0,
            |_, y, _, _| y * y,
        ),
        ("a quarter", walls(i, o, o, i), 6.0, |x, y, _, q| {
            2.0 * y * (2.0 * q - y) - x * x
        }),
    ];
    for_each("device", devices_for_many_sweeps(), |device| {
        for_each("plate", cases, |(_, walls, source, exact)| {
            let heat = Heat2d::new(shape).unwrap().with_walls(walls);
            let plate = Field2::from_fn(shape, |i, j| exact(i as f32, j as f32, p, q)).unwrap();
            let source = Field2::filled(shape, source).unwrap();
            let start = heat.start(&device, &plate).unwrap();
            let mut swept = start.with_source(&source).unwrap();
            swept.sweep(2).unwrap();
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
    // -∇²u = f on the unit square, of which the left and the bottom wall are insulated
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
    let walls = Walls {
        left: Wall::Insulated,
        bottom: Wall::Insulated,
        ..Walls::FIXED
    };
    for_each("device", devices_for_many_sweeps(), |device| {
        let heat = Heat2d::new(shape).unwrap().with_walls(walls);
        let cold = Field2::filled(shape, 0.0_f64).unwrap();
        let start = heat.start(&device, &cold).unwrap();
        let mut plate = start.with_source(&source).unwrap();
        let outcome = plate.sweep_until(1e-9, 100, 10_000).unwrap();
        assert!(outcome.converged && outcome.sweeps > 500, "{outcome:?}");
        let plate = plate.field().unwrap();
        for (index, (got, u)) in plate.as_slice().iter().zip(u.as_slice()).enumerate() {
            // The change of a sweep over what is left of the slowest mode by it,
            // 1 - cos(πh/2).
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

/// Sums over the points of even and of odd i + j, walls counting half.
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
    // Whole numbers, of which ten sweeps make no more than 53 bits.
    let mut rng = rng();
    let mut whole = |shape: Shape2| {
        let points = shape.points().unwrap();
        let values = (0..points).map(|_| f64::from(rng.random_range(-500..500)));
        Field2::from_vec(shape, values.collect()).unwrap()
    };
    for_each("device", devices_for_many_sweeps(), |device| {
        for_each("shape", [(3, 3), (4, 7), (17, 12), (70, 5)], |(nx, ny)| {
            let shape = Shape2::new(nx, ny);
            let heat = Heat2d::new(shape).unwrap().with_walls(Walls::INSULATED);
            let (initial, source) = (whole(shape), whole(shape));
            let [mut even, mut odd] = sums(&initial);
            let mut plate = heat.start(&device, &initial).unwrap();
            for sweep in 1..=5 {
                plate.sweep(1).unwrap();
                (even, odd) = (odd, even);
                assert_eq!(sums(&plate.field().unwrap()), [even, odd], "{sweep}");
            }
            let [to_even, to_odd] = sums(&source);
            let mut plate = plate.with_source(&source).unwrap();
            for sweep in 6..=10 {
                plate.sweep(1).unwrap();
                (even, odd) = (odd + to_even / 4.0, even + to_odd / 4.0);
                assert_eq!(sums(&plate.field().unwrap()), [even, odd], "{sweep}");
            }
        });
    });
}

#[test]
fn a_plate_that_never_comes_to_rest_is_refused() {
    fn check<T: Scalar + Bits>(device: &Device) {
        let shape = Shape2::new(5, 4);
        let heat = Heat2d::new(shape).unwrap().with_walls(Walls::INSULATED);
        let field = |value: fn(usize, usize) -> f32| {
            Field2::from_fn(shape, |i, j| T::from(value(i, j))).unwrap()
        };
        let start = |initial: &Field2<T>| heat.start(device, initial).unwrap();
        let until = |plate: &mut halo_gpu::heat2d::Plate<T>, tolerance: f32| {
            plate.sweep_until(T::from(tolerance), 5, 1000)
        };
        let refused = |error: Error, change: &str| {
            assert_eq!(
                error.to_string(),
                format!(
                    "heat2d: the tolerance is 0.125, but must be at least {change}, by which a \
                     plate that is insulated all around goes on to change with this source and \
                     from these temperatures"
                )
            );
        };

        // A source of 1 everywhere: a quarter in each sweep.
        let warm = field(|_, _| 2.5);
        let mut plate = start(&warm).with_source(&field(|_, _| 1.0)).unwrap();
        refused(until(&mut plate, 0.125).unwrap_err(), "2.5e-1");
        assert_eq!(plate.sweeps(), 0);
        // Which is enough for who asks for no more.
        assert!(until(&mut plate, 0.25).unwrap().converged);
        plate.sweep(3).unwrap();
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
        // A corner counts a quarter, a wall half.
        point[(0, 0)] = T::from(6.0);
        refused(until(&mut start(&point), 0.125).unwrap_err(), "2.5e-1");
        point[(0, 1)] = T::from(3.0);
        let outcome = until(&mut start(&point), 1e-5).unwrap();
        assert!(outcome.converged && outcome.sweeps > 5, "{outcome:?}");

        // What goes in goes out again, and rounding is no reason to refuse.
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
        assert!(plate.sweep_until(T::from(0.0), 1, 5).unwrap().converged);
        // A NaN is not refused but found.
        point[(3, 3)] = T::from(f32::NAN);
        let outcome = until(&mut start(&point), 0.125).unwrap();
        let change: f64 = outcome.change.into();
        assert!(!outcome.converged && change.is_nan());
        // One fixed wall takes what the source gives.
        let walls = Walls {
            top: Wall::Fixed,
            ..Walls::INSULATED
        };
        let mut plate = heat.with_walls(walls).start(device, &warm).unwrap();
        plate = plate.with_source(&field(|_, _| 1.0)).unwrap();
        assert!(until(&mut plate, 1e-5).unwrap().converged);
    }
    for_each("device", devices_for_many_sweeps(), |device| {
        check::<f32>(&device);
        check::<f64>(&device);
    });
}

#[test]
fn the_change_of_a_sweep_is_also_looked_for_on_insulated_walls() {
    // By elementwise_difference_f32, where there are kernels: one point is heated.
    let shape = Shape2::new(9, 6);
    let heat = (Heat2d::new(shape).unwrap()).with_walls(walls(0b0111));
    let cold = Field2::filled(shape, 0.0_f32).unwrap();
    for_each("device", devices_for_many_sweeps(), |device| {
        for (x, y) in [(8, 3), (4, 0), (4, 5), (8, 5), (8, 0)] {
            let mut source = cold.clone();
            source[(x, y)] = 8.0;
            let plate = heat.start(&device, &cold).unwrap();
            let mut plate = plate.with_source(&source).unwrap();
            let outcome = plate.sweep_until(0.5, 1, 1).unwrap();
            assert_eq!((outcome.change, outcome.converged), (2.0, false));
            assert_eq!(plate.field().unwrap()[(x, y)], 2.0);
        }
    });
}

#[test]
fn the_work_of_a_sweep_with_insulated_walls_is_counted() {
    let heat = Heat2d::new(Shape2::new(10, 7)).unwrap();
    for_each(
        "walls",
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
            let heat = heat.with_walls(walls(bits));
            assert_eq!(heat.swept_points(), points);
            assert_eq!(heat.bytes::<f32>(), 4 * (70 + points));
            assert_eq!(heat.flops(), 4 * points);
        },
    );
}

#[test]
fn what_has_no_meaning_is_refused() {
    let shape = Shape2::new(20, 18);
    let fixed = Heat2d::new(shape).unwrap();
    let insulated = fixed.with_walls(Walls {
        right: Wall::Insulated,
        ..Walls::FIXED
    });
    let field = Field2::filled(shape, 1.0_f32).unwrap();
    for_each("device", devices(), |device| {
        // Sources of another shape, and that are no numbers.
        let start = || insulated.start(&device, &field).unwrap();
        let turned = Field2::filled(Shape2::new(18, 20), 1.0_f32).unwrap();
        assert_eq!(
            start().with_source(&turned).unwrap_err().to_string(),
            "heat2d: the source is of 18 × 20 points, but must be of 20 × 18 points"
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

        // Buffers that do not fit, and nothing is touched.
        let buffer = |len, value: f32| device.alloc_filled(len, value).unwrap();
        let (old, mut new) = (buffer(360, 1.0), buffer(360, 2.0));
        let mut refused = |source: &Buffer<f32>| {
            let error = insulated.sweep_with_source(source, &old, &mut new);
            assert!(new.to_vec().unwrap().iter().all(|&it| it == 2.0));
            error.unwrap_err()
        };
        let error = refused(&buffer(361, 0.0));
        assert_eq!(
            error.to_string(),
            "heat2d: source has 361 elements, but must have 360"
        );
        let elsewhere = match device.kind() {
            DeviceKind::Cpu => Device::emulator(),
            DeviceKind::Emulator | DeviceKind::Cuda => Device::cpu(),
        };
        let error = refused(&elsewhere.alloc_filled(360, 0.0).unwrap());
        assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
        let source = buffer(360, 0.0);
        let mut short = buffer(359, 2.0);
        let error = insulated.sweep_with_source(&source, &old, &mut short);
        assert!(matches!(error, Err(Error::LengthMismatch { .. })));
    });

    // Kernels that keep all walls or know no source.
    for_each("device", kernel_devices(), |device| {
        for_each("kernel", &Variant::ALL[..8], |&variant| {
            let mut a = device.upload(field.as_slice()).unwrap();
            let mut b = a.try_clone().unwrap();
            for error in [
                insulated.sweep_with(variant, &a, &mut b).unwrap_err(),
                (insulated.sweeps_with(variant, &mut a, &mut b, 1)).unwrap_err(),
                insulated.start_with(variant, &device, &field).unwrap_err(),
            ] {
                assert_eq!(
                    error.to_string(),
                    format!(
                        "heat2d: the kernel is {variant}, but must be heat2d_general, as a wall \
                         is insulated"
                    )
                );
            }
            let plate = fixed.start_with(variant, &device, &field).unwrap();
            assert_eq!(
                plate.with_source(&field).unwrap_err().to_string(),
                format!(
                    "heat2d: the kernel is {variant}, but must be heat2d_general, as there is a \
                     source"
                )
            );
        });
    });
    let error = (insulated.start_with(Variant::General, &Device::cpu(), &field)).unwrap_err();
    assert!(matches!(
        error,
        Error::NotLaunchable {
            kernel: "heat2d_general_f32"
        }
    ));
}

proptest! {
    #![proptest_config(property::cases(256))]

    /// A plate with an insulated wall is half of one that is symmetric about it, whose
    /// points on the wall are interior ones. To the last bit: addition commutes.
    #[test]
    fn insulated_plates_are_halves_of_symmetric_ones(
        (nx, ny) in (3_usize..24, 3_usize..24),
        others in 0_u32..16,
        sweeps in 1_usize..6,
        seed in any::<u64>(),
    ) {
        let value = |i: usize, j: usize, salt: u64| {
            let mixed = (seed ^ salt)
                .wrapping_add((i * 1009 + j) as u64)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed >> 40) as f32 / (1 << 24) as f32 - 0.5
        };
        let swept = |shape: Shape2, walls: Walls, at: &dyn Fn(usize, usize) -> (usize, usize)| {
            let field = |salt| {
                Field2::from_fn(shape, |i, j| {
                    let (i, j) = at(i, j);
                    value(i, j, salt)
                })
                .unwrap()
            };
            let heat = Heat2d::new(shape).unwrap().with_walls(walls);
            let plate = heat.start(&Device::cpu(), &field(0)).unwrap();
            let mut plate = plate.with_source(&field(1)).unwrap();
            plate.sweep(sweeps).unwrap();
            plate.field().unwrap()
        };
        let (all, shape) = (walls(others), Shape2::new(nx, ny));

        let half = Walls { left: Wall::Insulated, ..all };
        let whole = Walls { left: all.right, ..all };
        let half = swept(shape, half, &|i, j| (i, j));
        let whole = swept(Shape2::new(2 * nx - 1, ny), whole, &|i, j| (i.abs_diff(nx - 1), j));
        for j in 0..ny {
            for i in 0..nx {
                prop_assert_eq!(half[(i, j)].to_bits(), whole[(nx - 1 + i, j)].to_bits());
            }
        }

        let half = Walls { top: Wall::Insulated, ..all };
        let whole = Walls { top: all.bottom, ..all };
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
