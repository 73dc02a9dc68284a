//! heat2d: the CPU port and all kernels, the textbook's five among them, on every
//! device.

#[path = "heat2d/boundaries.rs"]
mod boundaries;
#[path = "heat2d/properties.rs"]
mod properties;
#[path = "heat2d/steps.rs"]
mod steps;

use halo_gpu::Scalar;
use halo_gpu::case::{Role, registry};
use halo_gpu::device::{Blocks, ThreadOrder};
use halo_gpu::heat2d::{Heat2d, Plan, Plate, Variant, problem};
use halo_gpu::{
    Buffer, Cost, Device, DeviceKind, EmulatorOptions, Error, Field2, LaunchAxis, Shape2,
};
use halo_tests::{
    Bits, assert_same_bits, devices, for_each, is_called, kernel_devices, ptx, rng, test_cases,
    uniform,
};
use rand::RngExt;
use std::ops::{Add, Mul};

/// The kernels of Jacobi iterations: all but the last.
const ITERATING: &[Variant] = match Variant::ALL.split_last() {
    Some((Variant::Step, others)) => others,
    _ => panic!("a new variant comes before `Step`"),
};

/// What iterates a plate.
#[derive(Debug, Clone, Copy)]
enum Implementation {
    /// `Heat2d::plan`: the CPU port, or the kernel the library picks.
    Default,
    Kernel(Variant),
}

impl Implementation {
    /// All there are for `T` on `device`.
    fn all<T: Scalar>(device: &Device) -> Vec<Self> {
        let mut all = vec![Self::Default];
        if device.kind() != DeviceKind::Cpu {
            let there = |variant: &Variant| variant.kernel::<T>().is_some();
            all.extend(ITERATING.iter().copied().filter(there).map(Self::Kernel));
        }
        all
    }

    fn plan<T: Scalar>(self, device: &Device, heat: &Heat2d) -> Plan<T> {
        match self {
            Self::Default => heat.plan(device).unwrap(),
            Self::Kernel(variant) => heat.plan_with(device, variant).unwrap(),
        }
    }

    /// One iteration from `old` into a buffer that holds `new`.
    fn iterate_into<T: Scalar + Bits>(
        self,
        device: &Device,
        heat: &Heat2d,
        old: &[T],
        new: &[T],
    ) -> Vec<T> {
        let input = device.upload(old).unwrap();
        let mut output = device.upload(new).unwrap();
        let mut plan = self.plan(device, heat);
        plan.iterate_into(&input, &mut output).unwrap();
        assert_same_bits(&input.to_vec().unwrap(), old, |index| {
            format!("{}, which was only to be read,", point(heat.shape(), index))
        });
        output.to_vec().unwrap()
    }

    fn start<T: Scalar>(self, device: &Device, heat: &Heat2d, initial: &Field2<T>) -> Plate<T> {
        match self {
            Self::Default => heat.start(device, initial).unwrap(),
            Self::Kernel(_) => self.plan(device, heat).start(initial).unwrap(),
        }
    }
}

/// Runs `check` for every implementation in `f32` on each of these devices.
fn for_each_implementation(
    what: &str,
    devices: Vec<Device>,
    check: impl FnMut(&Device, Implementation),
) {
    for_each_implementation_of::<f32>(what, devices, ITERATING.len(), check);
}

/// Runs `check` for every implementation in `T` on each of these devices, which have
/// so many kernels.
fn for_each_implementation_of<T: Scalar>(
    what: &str,
    devices: Vec<Device>,
    kernels: usize,
    mut check: impl FnMut(&Device, Implementation),
) {
    let with_kernels = devices
        .iter()
        .filter(|device| device.kind() != DeviceKind::Cpu)
        .count();
    assert!(with_kernels > 0, "{what}: no device runs kernels");
    let cases: Vec<_> = devices
        .iter()
        .flat_map(|device| {
            Implementation::all::<T>(device)
                .into_iter()
                .map(|implementation| (device.name().to_owned(), device.clone(), implementation))
        })
        .collect();
    assert_eq!(cases.len(), devices.len() + kernels * with_kernels);
    for_each(what, cases, |(_, device, implementation)| {
        check(&device, implementation);
    });
}

/// All devices, with an emulator that runs each launch once: for many iterations of
/// launches that other tests verify.
fn devices_for_many_iterations() -> Vec<Device> {
    devices()
        .into_iter()
        .map(|device| match device.kind() {
            DeviceKind::Emulator => Device::emulator(),
            DeviceKind::Cpu | DeviceKind::Cuda => device,
        })
        .collect()
}

/// The point (i, j) of an element.
fn point(shape: Shape2, index: usize) -> String {
    format!("({}, {})", index % shape.nx, index / shape.nx)
}

/// Whether a point is on a wall.
fn on_wall(shape: Shape2, index: usize) -> bool {
    let (i, j) = (index % shape.nx, index / shape.nx);
    i == 0 || i == shape.nx - 1 || j == 0 || j == shape.ny - 1
}

/// An iteration by definition, one point at a time; the walls keep the values of `new`.
fn iteration_by_definition<T>(shape: Shape2, old: &[T], new: &[T]) -> Vec<T>
where
    T: Copy + Add<Output = T> + Mul<Output = T> + From<f32>,
{
    let mut result = new.to_vec();
    for (index, value) in result.iter_mut().enumerate() {
        if !on_wall(shape, index) {
            let (east, west) = (old[index + 1], old[index - 1]);
            let (north, south) = (old[index + shape.nx], old[index - shape.nx]);
            *value = ((east + west) + (north + south)) * T::from(0.25);
        }
    }
    result
}

fn iterations_by_definition<T>(shape: Shape2, initial: &[T], iterations: usize) -> Vec<T>
where
    T: Copy + Add<Output = T> + Mul<Output = T> + From<f32>,
{
    let mut plate = initial.to_vec();
    for _ in 0..iterations {
        plate = iteration_by_definition(shape, &plate, &plate);
    }
    plate
}

#[test]
fn the_variants_are_the_kernels_of_the_table() {
    for_each("variants", Variant::ALL, |variant| {
        let textbook = Variant::TEXTBOOK.contains(&variant);
        let entry = registry::entry(variant.kernel::<f32>().unwrap()).unwrap();
        assert!(is_called(entry, variant));
        assert_eq!(variant.name(), format!("heat2d_{}", entry.variant));
        assert_eq!(variant.to_string(), variant.name());
        assert_eq!(textbook, entry.role == Role::Textbook);
        let in_f64 = format!("{}_f64", variant.name());
        let in_f64 = (!textbook).then_some(in_f64.as_str());
        assert_eq!(variant.kernel::<f64>(), in_f64);
        let tile = match variant {
            Variant::SharedCore | Variant::SharedOverlap => Some([16, 16]),
            Variant::SharedHalo => Some([18, 18]),
            _ => None,
        };
        assert_eq!(variant.tile(), tile);
    });
}

/// Shapes around the seams of all kernels.
fn shapes() -> Vec<(usize, usize)> {
    // Around 1, 2 and 3 blocks of 16 points, of 14, and of 16 after the wall,
    // along one axis, with few along the other.
    let mut shapes = vec![
        (17, 301),
        (301, 17),
        (101, 103),
        (3, 523),
        (523, 3),
        (64, 64),
    ];
    let extents = [
        3, 4, 5, 14, 15, 16, 17, 18, 19, 29, 30, 31, 32, 33, 34, 35, 44, 45, 47, 48, 49, 50, 51,
    ];
    for (nth, extent) in extents.into_iter().enumerate() {
        let other = [3, 17, 30, 18, 5, 31][nth % 6];
        shapes.push((extent, other));
        shapes.push((other, extent));
        shapes.push((extent, extent));
    }
    // Warps of 32, 64 and 128 points and blocks of four of them, with rows that are
    // aligned to 16 bytes and such that are not.
    shapes.extend([
        (124, 4),
        (128, 5),
        (132, 3),
        (127, 6),
        (129, 4),
        (508, 3),
        (512, 4),
        (516, 35),
        (511, 3),
        (513, 4),
        (62, 36),
        (66, 67),
        (258, 3),
    ]);
    shapes
}

fn every_implementation_iterations_once<T: Scalar + Bits>(
    kernels: usize,
    mut random: impl FnMut(usize) -> Vec<T>,
) {
    for_each_implementation_of::<T>(
        "one iteration",
        devices(),
        kernels,
        |device, implementation| {
            for_each("shape", shapes(), |(nx, ny)| {
                let shape = Shape2::new(nx, ny);
                let heat = Heat2d::dirichlet(shape).unwrap();
                let old = random(nx * ny);
                // Nothing an iteration could compute from `old`, and different everywhere.
                let new: Vec<T> = (0..nx * ny)
                    .map(|index| T::from(100.0 + index as f32))
                    .collect();
                let got = implementation.iterate_into(device, &heat, &old, &new);
                let expected = iteration_by_definition(shape, &old, &new);
                assert_same_bits(&got, &expected, |index| point(shape, index));
            });
        },
    );
}

#[test]
fn every_implementation_gives_the_bits_of_the_definition() {
    let mut rng = rng();
    every_implementation_iterations_once::<f32>(ITERATING.len(), |n| uniform(&mut rng, n));
}

#[test]
fn every_implementation_gives_the_bits_of_the_definition_in_f64() {
    let mut rng = rng();
    let textbook = Variant::TEXTBOOK.len();
    every_implementation_iterations_once::<f64>(ITERATING.len() - textbook, |n| {
        (0..n).map(|_| rng.random_range(-1.0..1.0)).collect()
    });
}

/// Passes of many iterations of `T`, with a remainder.
fn a_pass_gives_the_bits_of_single_iterations<T: Scalar + Bits>(
    mut random: impl FnMut(usize) -> Vec<T>,
) {
    let pass = Variant::Temporal.iterations_per_launch::<T>();
    assert!(pass > 1);
    // Strips of 224 columns of 256, where the widths of both types meet; one, two and
    // three of them, with rows that are aligned to 16 bytes and such that are not;
    // fewer rows than a pass has iterations, and more.
    let shapes = [
        (3, 3),
        (4, 40),
        (40, 4),
        (17, 33),
        (222, 5),
        (224, 18),
        (225, 17),
        (226, 3),
        (239, 8),
        (240, 35),
        (241, 20),
        (447, 9),
        (448, 7),
        (452, 50),
        (455, 3),
    ];
    for_each("device", kernel_devices(), |device| {
        for_each("shape", shapes, |(nx, ny)| {
            let shape = Shape2::new(nx, ny);
            let heat = Heat2d::dirichlet(shape).unwrap();
            let initial = random(nx * ny);
            let expected = iterations_by_definition(shape, &initial, pass);
            let mut current = device.upload(&initial).unwrap();
            let mut plan = heat.plan_with(&device, Variant::Temporal).unwrap();
            plan.iterate(&mut current, pass).unwrap();
            assert_same_bits(&current.to_vec().unwrap(), &expected, |index| {
                point(shape, index)
            });
        });
        // Two passes, and one iteration less than a third.
        let shape = Shape2::new(230, 21);
        let heat = Heat2d::dirichlet(shape).unwrap();
        let initial = random(230 * 21);
        for_each(
            "iterations",
            [pass - 1, pass + 1, 3 * pass - 1],
            |iterations| {
                let mut current = device.upload(&initial).unwrap();
                let mut plan = heat.plan_with(&device, Variant::Temporal).unwrap();
                plan.iterate(&mut current, iterations).unwrap();
                let expected = iterations_by_definition(shape, &initial, iterations);
                assert_same_bits(&current.to_vec().unwrap(), &expected, |index| {
                    point(shape, index)
                });
            },
        );
    });
}

#[test]
fn a_pass_of_many_iterations_gives_the_bits_of_single_ones() {
    let mut rng = rng();
    a_pass_gives_the_bits_of_single_iterations::<f32>(|n| uniform(&mut rng, n));
}

#[test]
fn a_pass_of_many_iterations_gives_the_bits_of_single_ones_in_f64() {
    let mut rng = rng();
    a_pass_gives_the_bits_of_single_iterations::<f64>(|n| {
        (0..n).map(|_| rng.random_range(-1.0..1.0)).collect()
    });
}

/// Iterations on plates that several resident blocks share, each in two launches.
fn resident_blocks_give_the_bits_of_single_iterations<T: Scalar + Bits>(
    mut random: impl FnMut(usize) -> Vec<T>,
) {
    // Blocks that are all there at once, which the exchange takes.
    let mut devices = vec![Device::emulator_with(EmulatorOptions {
        blocks: Blocks::Resident,
        verify: test_cases::all(),
        ..EmulatorOptions::default()
    })];
    devices.extend(
        kernel_devices()
            .into_iter()
            .filter(|device| device.kind() == DeviceKind::Cuda),
    );
    for_each("device", devices, |device| {
        // One column of blocks, of 48 points, and several; one row of them, of 8, and
        // several; and one block.
        for_each(
            "shape",
            [(30, 40), (116, 12), (70, 25), (50, 10)],
            |(nx, ny)| {
                let shape = Shape2::new(nx, ny);
                let heat = Heat2d::dirichlet(shape).unwrap();
                let initial = random(nx * ny);
                let field = Field2::from_vec(shape, initial.clone()).unwrap();
                for (first, second) in [(1, 8), (9, 16)] {
                    let plan = heat.plan_with(&device, Variant::Resident).unwrap();
                    let mut plate = plan.start(&field).unwrap();
                    plate.iterate(first).unwrap();
                    plate.iterate(second).unwrap();
                    let expected = iterations_by_definition(shape, &initial, first + second);
                    assert_same_bits(plate.field().unwrap().as_slice(), &expected, |index| {
                        point(shape, index)
                    });
                }
            },
        );
    });
}

#[test]
fn resident_blocks_give_the_bits_of_single_ones() {
    let mut rng = rng();
    resident_blocks_give_the_bits_of_single_iterations::<f32>(|n| uniform(&mut rng, n));
}

#[test]
fn resident_blocks_give_the_bits_of_single_ones_in_f64() {
    let mut rng = rng();
    resident_blocks_give_the_bits_of_single_iterations::<f64>(|n| {
        (0..n).map(|_| rng.random_range(-1.0..1.0)).collect()
    });
}

/// Launches of nine iterations, with one exchange each, by resident blocks that run in this order.
fn resident_blocks_give_the_bits_in(order: ThreadOrder, shape: Shape2, launches: usize) {
    let device = Device::emulator_with(EmulatorOptions {
        blocks: Blocks::Resident,
        order,
        ..EmulatorOptions::default()
    });
    let initial = uniform(&mut rng(), shape.nx * shape.ny);
    let heat = Heat2d::dirichlet(shape).unwrap();
    let plan = heat.plan_with::<f32>(&device, Variant::Resident).unwrap();
    let field = Field2::from_vec(shape, initial.clone()).unwrap();
    let mut plate = plan.start(&field).unwrap();
    for launch in 1..=launches {
        plate.iterate(9).unwrap();
        let expected = iterations_by_definition(shape, &initial, 9 * launch);
        assert_same_bits(plate.field().unwrap().as_slice(), &expected, |index| {
            point(shape, index)
        });
    }
}

/// Blocks with more rows than the halos of the blocks above and below: of the rows in between, only
/// the ends are in another block's halo. The emulator holds 128 blocks, here in three columns.
#[test]
fn resident_blocks_with_rows_between_their_halos_give_the_bits_of_single_ones() {
    resident_blocks_give_the_bits_in(ThreadOrder::Forward, Shape2::new(100, 720), 1);
}

/// In a random order the first blocks end before the last ones start. Each launch continues to
/// count the exchanges of the previous one; otherwise blocks would take old words for new ones.
#[test]
fn resident_blocks_may_start_after_others_have_ended() {
    let orders = [
        ThreadOrder::Forward,
        ThreadOrder::Random(1),
        ThreadOrder::Random(2),
    ];
    for order in orders {
        resident_blocks_give_the_bits_in(order, Shape2::new(30, 60), 4);
    }
}

/// Cases that need more blocks than the emulator tries.
#[cfg(feature = "gpu")]
#[test]
fn passes_over_large_plates_give_the_bits_of_single_iterations() {
    let device = halo_tests::cuda();
    let mut rng = rng();
    for_each(
        "shape",
        [(1000, 997), (2051, 1533), (4096, 130)],
        |(nx, ny)| {
            let shape = Shape2::new(nx, ny);
            let heat = Heat2d::dirichlet(shape).unwrap();
            let initial = uniform(&mut rng, nx * ny);
            let expected = iterations_by_definition(shape, &initial, 37);
            let mut current = device.upload(&initial).unwrap();
            let mut plan = heat.plan(&device).unwrap();
            plan.iterate(&mut current, 37).unwrap();
            assert_same_bits(&current.to_vec().unwrap(), &expected, |index| {
                point(shape, index)
            });
            let initial: Vec<f64> = initial.into_iter().map(f64::from).collect();
            let expected = iterations_by_definition(shape, &initial, 37);
            let mut current = device.upload(&initial).unwrap();
            let mut plan = heat.plan(&device).unwrap();
            plan.iterate(&mut current, 37).unwrap();
            assert_same_bits(&current.to_vec().unwrap(), &expected, |index| {
                point(shape, index)
            });
        },
    );
}

#[test]
fn plans_and_plates_iterate_any_number_of_times() {
    let mut rng = rng();
    let shape = Shape2::new(19, 33);
    let heat = Heat2d::dirichlet(shape).unwrap();
    let points = shape.points().unwrap();
    let initial = uniform(&mut rng, points);
    let field = Field2::from_vec(shape, initial.clone()).unwrap();
    for_each_implementation("iterations", devices(), |device, implementation| {
        for_each("number of iterations", 0..=3, |iterations| {
            let expected = iterations_by_definition(shape, &initial, iterations);

            let mut current = device.upload(&initial).unwrap();
            let mut plan = implementation.plan(device, &heat);
            plan.iterate(&mut current, iterations).unwrap();
            assert_same_bits(&current.to_vec().unwrap(), &expected, |index| {
                point(shape, index)
            });
            // Another one, whose temperatures at the boundary are others.
            let other: Vec<f32> = initial.iter().map(|value| 1.5 - value).collect();
            let mut current = device.upload(&other).unwrap();
            plan.iterate(&mut current, iterations).unwrap();
            let of_other = iterations_by_definition(shape, &other, iterations);
            assert_same_bits(&current.to_vec().unwrap(), &of_other, |index| {
                point(shape, index)
            });

            // The same in two parts, on a plate that stays on the device.
            let mut plate = implementation.start(device, &heat, &field);
            plate.iterate(iterations / 2).unwrap();
            plate.iterate(iterations - iterations / 2).unwrap();
            assert_eq!(plate.iterations(), iterations as u64);
            assert_same_bits(plate.field().unwrap().as_slice(), &expected, |index| {
                point(shape, index)
            });
        });
        let mut solved = heat.iterate_of(device, &field, 3).unwrap();
        let expected = iterations_by_definition(shape, &initial, 3);
        assert_same_bits(solved.as_slice(), &expected, |index| point(shape, index));
        heat.iterate_of_into(device, &field, 2, &mut solved)
            .unwrap();
        let expected = iterations_by_definition(shape, &initial, 2);
        assert_same_bits(solved.as_slice(), &expected, |index| point(shape, index));
    });
}

#[test]
fn the_textbook_problem_is_solved() {
    let heat = Heat2d::dirichlet(problem::SHAPE).unwrap();
    assert_eq!(heat.shape(), Shape2::new(256, 256));
    assert_eq!(problem::ITERATIONS, 100);
    let initial = problem::hot_left_wall::<f32>(problem::SHAPE).unwrap();
    assert_eq!(initial.as_slice().iter().sum::<f32>(), 256.0);
    for_each_implementation(
        "textbook problem",
        devices_for_many_iterations(),
        |device, implementation| {
            // The emulator, which takes its time, shows that the size is right.
            let iterations = match device.kind() {
                DeviceKind::Emulator => 4,
                DeviceKind::Cpu | DeviceKind::Cuda => problem::ITERATIONS,
            };
            let expected = iterations_by_definition(problem::SHAPE, initial.as_slice(), iterations);
            let mut plate = implementation.start(device, &heat, &initial);
            plate.iterate(iterations).unwrap();
            let plate = plate.field().unwrap();
            let error = problem::percentage_rms_error(plate.as_slice(), &expected);
            assert!(error == 0.0, "{error} %");
            assert_same_bits(plate.as_slice(), &expected, |index| {
                point(problem::SHAPE, index)
            });
            // Heat goes one point per iteration; some 70 points on there is too
            // little of it for an `f32`.
            assert!(plate[(iterations.min(64), 128)] > 0.0 && plate[(iterations + 1, 128)] == 0.0);
        },
    );
}

/// Iterations on the CPU port until no bit changes any more.
fn iterations_to_the_end(heat: &Heat2d, initial: &Field2<f32>) -> usize {
    let mut plate = heat.start(&Device::cpu(), initial).unwrap();
    let mut before = initial.clone();
    for iterations in 0..100_000 {
        plate.iterate(1).unwrap();
        let after = plate.field().unwrap();
        if after == before {
            return iterations;
        }
        before = after;
    }
    panic!("still changing after 100000 iterations");
}

#[test]
fn a_plate_swept_to_the_end_is_in_the_steady_state() {
    let shapes = [(3, 3), (12, 23), (3, 40), (31, 9), (17, 17)].map(|(x, y)| Shape2::new(x, y));
    let shapes = test_cases::either(&shapes[..2], &shapes);
    for_each_implementation(
        "steady state",
        devices_for_many_iterations(),
        |device, implementation| {
            for_each("shape", shapes.iter().copied(), |shape| {
                let heat = Heat2d::dirichlet(shape).unwrap();
                let initial = problem::hot_left_wall::<f32>(shape).unwrap();
                let iterations = iterations_to_the_end(&heat, &initial);
                let mut plate = implementation.start(device, &heat, &initial);
                plate.iterate(iterations).unwrap();
                let end = plate.field().unwrap();
                plate.iterate(1).unwrap();
                assert_same_bits(plate.field().unwrap().as_slice(), end.as_slice(), |index| {
                    point(shape, index)
                });

                let exact = problem::steady_state(shape).unwrap();
                let bound = problem::steady_state_bound(shape, iterations);
                assert!(bound < 2e-5, "{bound} proves little");
                for (index, (&got, exact)) in
                    end.as_slice().iter().zip(exact.as_slice()).enumerate()
                {
                    let error = (f64::from(got) - exact).abs();
                    assert!(
                        error <= bound,
                        "{}: {got}, not {exact} ± {bound}",
                        point(shape, index)
                    );
                }
            });
        },
    );
}

#[test]
fn iterating_ends_when_an_iteration_changes_little() {
    // By elementwise_difference_f32 and elementwise_difference_f64, where there are kernels.
    fn check<T: Scalar + Bits>(device: &Device, implementation: Implementation) {
        let shape = Shape2::new(19, 17);
        let heat = Heat2d::dirichlet(shape).unwrap();
        let initial = problem::hot_left_wall::<T>(shape).unwrap();
        let tolerance = T::from(0.004);
        // Every 7 iterations, by definition.
        let mut plate = initial.as_slice().to_vec();
        let (mut iterations, mut change) = (0, f64::INFINITY);
        while !(change <= tolerance.into()) {
            let before = iterations_by_definition(shape, &plate, 6);
            plate = iteration_by_definition(shape, &before, &before);
            iterations += 7;
            let changes = before.iter().zip(&plate).map(|(&a, &b)| {
                let (a, b): (f64, f64) = (a.into(), b.into());
                (a - b).abs()
            });
            change = changes.fold(0.0, f64::max);
        }
        assert!(
            (14..700).contains(&iterations),
            "{iterations} iterations show little"
        );

        let mut swept = implementation.start(device, &heat, &initial);
        let outcome = swept.iterate_until(tolerance, 7, 10_000).unwrap();
        assert!(outcome.converged);
        assert_eq!(
            (outcome.iterations, swept.iterations()),
            (iterations, iterations)
        );
        // The difference of two floats that are this close is exact.
        let found: f64 = outcome.change.into();
        assert_eq!(found, change);
        assert_same_bits(swept.field().unwrap().as_slice(), &plate, |index| {
            point(shape, index)
        });

        // Too few iterations, the last round being shorter; and none.
        let mut swept = implementation.start(device, &heat, &initial);
        let outcome = swept.iterate_until(tolerance, 7, 10).unwrap();
        assert!(!outcome.converged && outcome.change > tolerance);
        assert_eq!((outcome.iterations, swept.iterations()), (10, 10));
        let outcome = swept.iterate_until(tolerance, 7, 0).unwrap();
        assert!(!outcome.converged && outcome.iterations == 0);
        // A NaN is not a steady state.
        let mut broken = initial.clone();
        broken[(9, 9)] = T::from(f32::NAN);
        let mut swept = implementation.start(device, &heat, &broken);
        let outcome = swept.iterate_until(tolerance, 2, 2).unwrap();
        let found: f64 = outcome.change.into();
        assert!(!outcome.converged && found.is_nan());

        for (tolerance, every) in [(T::from(-1.0), 1), (T::from(f32::NAN), 1), (tolerance, 0)] {
            let error = swept.iterate_until(tolerance, every, 5).unwrap_err();
            assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
        }
        assert_eq!(swept.iterations(), 2);
    }
    for_each_implementation("until", devices_for_many_iterations(), check::<f32>);
    let tuned = ITERATING.len() - Variant::TEXTBOOK.len();
    for_each_implementation_of::<f64>("until", devices_for_many_iterations(), tuned, check::<f64>);
}

#[test]
fn temperatures_keep_their_order() {
    // Rounding never exchanges two numbers, so these hold to the last bit: a
    // plate that starts cold warms from iteration to iteration, it is never warmer away
    // from the hot wall than near it, and above the middle as below.
    let shape = Shape2::new(21, 35);
    let heat = Heat2d::dirichlet(shape).unwrap();
    let initial = problem::hot_left_wall::<f32>(shape).unwrap();
    for_each_implementation("order", devices(), |device, implementation| {
        let mut plate = implementation.start(device, &heat, &initial);
        let mut before = initial.clone();
        for iteration in 1..=20 {
            plate.iterate(1).unwrap();
            let now = plate.field().unwrap();
            for j in 1..shape.ny - 1 {
                for i in 1..shape.nx - 1 {
                    let at = format!("({i}, {j}) after iteration {iteration}");
                    assert!(now[(i, j)] >= before[(i, j)], "{at} has cooled");
                    assert!(now[(i, j)] <= now[(i - 1, j)], "{at} is too warm");
                    assert_eq!(now[(i, j)], now[(i, shape.ny - 1 - j)], "{at}");
                    // What touches a point the heat has reached is warm next time.
                    assert_eq!(now[(i, j)] > 0.0, i <= iteration, "{at}");
                }
            }
            before = now;
        }
    });
}

#[test]
fn no_point_leaves_the_range_of_its_neighbours() {
    let mut rng = rng();
    let shape = Shape2::new(37, 20);
    let heat = Heat2d::dirichlet(shape).unwrap();
    for_each_implementation("maximum principle", devices(), |device, implementation| {
        let old = uniform(&mut rng, shape.points().unwrap());
        let new = implementation.iterate_into(device, &heat, &old, &old);
        for index in (0..new.len()).filter(|&index| !on_wall(shape, index)) {
            let neighbours =
                [index - shape.nx, index - 1, index + 1, index + shape.nx].map(|at| old[at]);
            let min = neighbours.into_iter().fold(f32::INFINITY, f32::min);
            let max = neighbours.into_iter().fold(f32::NEG_INFINITY, f32::max);
            assert!(
                (min..=max).contains(&new[index]),
                "{}: {} is not between {min} and {max}",
                point(shape, index),
                new[index]
            );
        }
    });
}

#[test]
fn a_linear_temperature_is_steady() {
    // Whole numbers: every sum is exact, and the mean of the neighbours is the
    // point itself.
    let shape = Shape2::new(45, 31);
    let heat = Heat2d::dirichlet(shape).unwrap();
    let field = Field2::from_fn(shape, |i, j| 3.0 * i as f32 - 7.0 * j as f32 + 5.0).unwrap();
    for_each_implementation("linear plate", devices(), |device, implementation| {
        let mut plate = implementation.start(device, &heat, &field);
        plate.iterate(3).unwrap();
        assert_same_bits(
            plate.field().unwrap().as_slice(),
            field.as_slice(),
            |index| point(shape, index),
        );
    });
}

#[test]
fn a_nan_spreads_by_one_point_per_iteration() {
    let shape = Shape2::new(40, 36);
    let heat = Heat2d::dirichlet(shape).unwrap();
    for_each_implementation("nan", devices(), |device, implementation| {
        // Beside the seam of two blocks, of either size.
        for (x, y) in [(15_usize, 16_usize), (14, 28)] {
            let mut field = Field2::filled(shape, 1.0_f32).unwrap();
            field[(x, y)] = f32::NAN;
            let mut plate = implementation.start(device, &heat, &field);
            plate.iterate(2).unwrap();
            let plate = plate.field().unwrap();
            for j in 0..shape.ny {
                for i in 0..shape.nx {
                    // Two steps away, or back again.
                    let reached = [0, 2].contains(&(i.abs_diff(x) + j.abs_diff(y)));
                    assert_eq!(plate[(i, j)].is_nan(), reached, "({i}, {j})");
                }
            }
        }
    });
}

#[test]
fn the_closed_form_satisfies_the_discrete_equations() {
    for_each(
        "steady state",
        [
            (3, 3),
            (3, 4),
            (4, 3),
            (17, 17),
            (40, 12),
            (9, 77),
            (65, 33),
        ],
        |(nx, ny)| {
            let u = problem::steady_state(Shape2::new(nx, ny)).unwrap();
            for j in 0..ny {
                for i in 0..nx {
                    let expected = if i == 0 {
                        1.0
                    } else if i == nx - 1 || j == 0 || j == ny - 1 {
                        0.0
                    } else {
                        (u[(i + 1, j)] + u[(i - 1, j)] + u[(i, j + 1)] + u[(i, j - 1)]) / 4.0
                    };
                    let error = (u[(i, j)] - expected).abs();
                    assert!(error <= 1e-13, "({i}, {j}): off by {error}");
                }
            }
        },
    );
}

#[test]
fn the_discrete_steady_state_approaches_the_continuous_one() {
    // Beside a corner where walls at 1 and at 0 meet, the continuous temperature
    // is 2/π times an angle. Its fourth derivative along x at a distance r is at
    // most (2/π) 3!/r⁴, so that the equation for the distance e of the discrete
    // from the continuous solution is, to leading order in the spacing h,
    // Δe = (h²/6)(12/π) sin(4φ)/r⁴, which -h²/(6π) sin(4φ)/r² solves: no more
    // than h²/(6π r²) from each of the two corners. Twice that allows for the
    // other walls and for higher orders.
    for_each("shape", [(33, 33), (65, 49), (40, 81)], |(nx, ny)| {
        let shape = Shape2::new(nx, ny);
        let discrete = problem::steady_state(shape).unwrap();
        let continuous = problem::continuous_steady_state(shape).unwrap();
        let mut compared = 0;
        for j in 1..ny - 1 {
            for i in 1..nx - 1 {
                let squared = |j: usize| (i * i + j * j) as f64;
                let (lower, upper) = (squared(j), squared(ny - 1 - j));
                let bound = 2.0 / (6.0 * std::f64::consts::PI) * (1.0 / lower + 1.0 / upper);
                let error = (discrete[(i, j)] - continuous[(i, j)]).abs();
                assert!(error <= bound, "({i}, {j}): off by {error}, not {bound}");
                compared += 1;
            }
        }
        assert_eq!(compared, (nx - 2) * (ny - 2));
    });

    // Four plates, each with another wall at 1, add up to a plate at 1.
    for solution in [problem::steady_state, problem::continuous_steady_state] {
        let n = 33;
        let u = solution(Shape2::new(n, n)).unwrap();
        for j in 1..n - 1 {
            for i in 1..n - 1 {
                let (k, l) = (n - 1 - i, n - 1 - j);
                let sum = u[(i, j)] + u[(k, j)] + u[(j, i)] + u[(l, i)];
                assert!((sum - 1.0).abs() <= 1e-12, "({i}, {j}): {sum}");
            }
        }
    }

    // Half the spacing, a quarter of the error, away from the corners.
    let error = |cells: usize| {
        let shape = Shape2::new(cells + 1, cells + 1);
        let at = (cells / 4, cells / 8);
        problem::steady_state(shape).unwrap()[at]
            - problem::continuous_steady_state(shape).unwrap()[at]
    };
    for_each("order of convergence", [16, 32, 64], |cells| {
        let ratio = error(cells) / error(2 * cells);
        assert!((3.5..4.5).contains(&ratio), "{ratio}");
    });
}

#[test]
fn percentages_are_of_the_reference_and_nan_never_passes() {
    use problem::percentage_rms_error as percent;
    assert_eq!(percent(&[6.0, 8.0], &[3.0, 4.0]), 100.0);
    assert_eq!(percent(&[0.0, 1.0], &[0.0, 2.0]), 50.0);
    let nothing: [f32; 0] = [];
    for_each(
        "not a number",
        [
            percent(&[f32::NAN, 1.0], &[1.0, 1.0]),
            percent(&[1.0], &[1.0, 1.0]),
            percent(&nothing, &nothing),
            percent(&[0.0], &[0.0]),
        ],
        |value| assert!(value.is_nan(), "{value}"),
    );
}

#[test]
fn the_work_of_an_iteration_is_counted() {
    let heat = Heat2d::dirichlet(Shape2::new(10, 7)).unwrap();
    assert_eq!(heat.unknowns(), 40);
    let cost = |bytes| Cost { bytes, flops: 160 };
    assert_eq!(heat.cost::<f32>(), cost(4 * 70 + 4 * 40));
    assert_eq!(heat.cost::<f64>(), cost(8 * 70 + 8 * 40));
}

#[test]
fn shapes_that_are_no_plate_are_refused_by_name() {
    fn refusal(nx: usize, ny: usize) -> String {
        Heat2d::dirichlet(Shape2::new(nx, ny))
            .unwrap_err()
            .to_string()
    }
    let too_small = "but must be at least 3 (two ends and a point between them)";
    let cases = [
        (refusal(2, 3), format!("heat2d: nx is 2, {too_small}")),
        (refusal(3, 2), format!("heat2d: ny is 2, {too_small}")),
        (refusal(0, 0), format!("heat2d: nx is 0, {too_small}")),
        (refusal(256, 0), format!("heat2d: ny is 0, {too_small}")),
        (
            refusal(1 << 31, 3),
            "heat2d: nx is 2147483648, but at most 2147483647 can be indexed here".to_owned(),
        ),
        (
            refusal(3, usize::MAX),
            format!(
                "heat2d: ny is {}, but at most 2147483647 can be indexed here",
                usize::MAX
            ),
        ),
    ];
    for_each("refusals", cases, |(got, expected)| {
        assert_eq!(got, expected)
    });
    assert!(Heat2d::dirichlet(Shape2::new(3, 3)).is_ok());
    assert!(Heat2d::dirichlet(Shape2::new((1 << 31) - 1, 3)).is_ok());
}

#[test]
fn bad_input_is_refused_before_anything_runs() {
    let shape = Shape2::new(20, 18);
    let heat = Heat2d::dirichlet(shape).unwrap();
    let points = shape.points().unwrap();
    for_each_implementation("bad input", devices(), |device, implementation| {
        let mut plan = implementation.plan(device, &heat);
        let is_length = |error: &Error| {
            matches!(error, Error::LengthMismatch { required, given, .. }
                if (*required, *given) == (points, points + 1))
        };
        let untouched = |buffer: &Buffer<f32>, value: f32| {
            buffer.to_vec().unwrap().iter().all(|&it| it == value)
        };

        // Buffers of another length, on either side.
        let mut fits = device.alloc_filled(points, 1.0_f32).unwrap();
        let mut long = device.alloc_filled(points + 1, 2.0_f32).unwrap();
        for error in [
            plan.iterate_into(&fits, &mut long).unwrap_err(),
            plan.iterate_into(&long, &mut fits).unwrap_err(),
            plan.iterate(&mut long, 2).unwrap_err(),
            plan.iterate(&mut long, 0).unwrap_err(),
        ] {
            assert!(is_length(&error), "{error}");
        }
        assert!(untouched(&fits, 1.0) && untouched(&long, 2.0));

        // A buffer of another device, on either side.
        let mut elsewhere = Device::cpu().alloc_filled(points, 3.0_f32).unwrap();
        for error in [
            plan.iterate_into(&fits, &mut elsewhere).unwrap_err(),
            plan.iterate_into(&elsewhere, &mut fits).unwrap_err(),
            plan.iterate(&mut elsewhere, 2).unwrap_err(),
        ] {
            assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
        }
        assert!(untouched(&fits, 1.0) && untouched(&elsewhere, 3.0));

        // A plate of another shape with as many points.
        let mut turned = Field2::filled(Shape2::new(18, 20), 1.0_f32).unwrap();
        let field = Field2::filled(shape, 1.0_f32).unwrap();
        for (what, error) in [
            ("the initial plate", plan.start(&turned).unwrap_err()),
            (
                "the initial plate",
                heat.start(device, &turned).unwrap_err(),
            ),
            (
                "the initial plate",
                heat.iterate_of(device, &turned, 1).unwrap_err(),
            ),
            (
                "the result",
                heat.iterate_of_into(device, &field, 1, &mut turned)
                    .unwrap_err(),
            ),
        ] {
            assert!(
                matches!(error, Error::ShapeMismatch { argument, .. }
                    if (argument.operation, argument.name) == ("heat2d", what)),
                "{error:?}"
            );
            assert_eq!(
                error.to_string(),
                format!("heat2d: {what} has the shape 18 × 20, but must have 20 × 18")
            );
        }
        assert!(turned.as_slice().iter().all(|value| *value == 1.0));
    });
}

#[test]
fn the_cpu_launches_no_kernel() {
    let heat = Heat2d::dirichlet(Shape2::new(20, 20)).unwrap();
    for_each("kernels on the cpu", ITERATING, |&variant| {
        let error = heat.plan_with::<f32>(&Device::cpu(), variant).unwrap_err();
        assert!(
            matches!(error, Error::NotLaunchable { kernel } if Some(kernel) == variant.kernel::<f32>()),
            "{error}"
        );
    });
    assert_eq!(heat.plan::<f32>(&Device::cpu()).unwrap().variant(), None);
}

#[test]
fn the_textbooks_kernels_are_not_there_in_f64() {
    let heat = Heat2d::dirichlet(Shape2::new(20, 20)).unwrap();
    let device = Device::emulator();
    for_each("kernels in f64", Variant::TEXTBOOK, |variant| {
        assert_eq!(
            heat.plan_with::<f64>(&device, variant)
                .unwrap_err()
                .to_string(),
            format!(
                "heat2d: the kernel is {variant} for f64, but must be a kernel other than \
                 the textbook's, which are only in f32"
            )
        );
    });
}

#[cfg(feature = "gpu")]
#[test]
fn a_marching_block_takes_more_rows_where_a_grid_has_too_few_blocks() {
    // One row more than 65535 blocks of 4 lines of 2 rows.
    let shape = Shape2::new(3, 65_535 * 8 + 1);
    let heat = Heat2d::dirichlet(shape).unwrap();
    let points = shape.points().unwrap();
    let old: Vec<f32> = (0..points).map(|index| (index % 1000) as f32).collect();
    let device = halo_tests::cuda();
    let input = device.upload(&old).unwrap();
    let mut output = device.upload(&old).unwrap();
    let mut plan = heat.plan_with(&device, Variant::March).unwrap();
    plan.iterate_into(&input, &mut output).unwrap();
    let expected = iteration_by_definition(shape, &old, &old);
    assert_same_bits(&output.to_vec().unwrap(), &expected, |index| {
        point(shape, index)
    });
}

#[test]
fn more_rows_than_a_grid_or_a_texture_has_are_refused() {
    // 65536 rows of blocks, one more than a grid has, for each kernel's step;
    // for a texture one row more than a device binds.
    let cases = kernel_devices().into_iter().flat_map(|device| {
        Variant::TEXTBOOK.map(|variant| (device.name().to_owned(), device.clone(), variant))
    });
    for_each("rows", cases, |(_, device, variant)| {
        let rows = match variant {
            Variant::Global | Variant::SharedCore => 65_535 * 16 + 1,
            Variant::SharedOverlap => 65_535 * 14 + 2 + 1,
            Variant::SharedHalo => 65_535 * 16 + 2 + 1,
            Variant::Texture => device.limits().texture_2d.height as usize + 1,
            _ => unreachable!("they take more rows per block"),
        };
        let shape = Shape2::new(3, rows);
        let heat = Heat2d::dirichlet(shape).unwrap();
        let field = Field2::filled(shape, 1.0_f32).unwrap();
        let error = heat
            .plan_with(&device, variant)
            .and_then(|plan| plan.start(&field)?.iterate(1))
            .unwrap_err();
        let as_expected = match variant {
            Variant::Texture => matches!(
                error,
                Error::InvalidSize { operation: "Texture2d", axis: "height", given, .. }
                    if given == rows
            ),
            _ => matches!(
                error,
                Error::LaunchLimit { kernel, axis: LaunchAxis::GridY, given: 65_536, .. }
                    if kernel == variant.name()
            ),
        };
        assert!(as_expected, "{error}");
    });
}

/// More points than 32 bits can count, in 52 GB.
#[cfg(feature = "gpu")]
#[test]
#[ignore = "needs 52 GB of device memory and 18 GB of the host's"]
fn more_points_than_32_bits_count_are_swept() {
    let device = halo_tests::cuda();
    let shape = Shape2::new(65_537, 65_551);
    let heat = Heat2d::dirichlet(shape).unwrap();
    let points = shape.points().unwrap();
    assert!(points > 1 << 32);
    let old = device.alloc_filled(points, 1.0_f32).unwrap();
    for_each("variant", ITERATING, |&variant| {
        if variant == Variant::Texture {
            return; // Textures have fewer rows than that; refused, as tested above.
        }
        let mut new = device.alloc_filled(points, 0.0_f32).unwrap();
        let mut plan = heat.plan_with(&device, variant).unwrap();
        plan.iterate_into(&old, &mut new).unwrap();
        let new = new.to_vec().unwrap();
        let wrong = (0..points).find(|&at| new[at] != if on_wall(shape, at) { 0.0 } else { 1.0 });
        assert!(wrong.is_none(), "{}", point(shape, wrong.unwrap()));
    });
}

#[test]
fn ptx_facts() {
    let kernels = ptx::TARGETS
        .into_iter()
        .flat_map(|target| Variant::TEXTBOOK.map(|variant| (target, variant)));
    for_each("ptx", kernels, |(target, variant)| {
        let text = ptx::text(target);
        let body = ptx::entry(text, variant.name());
        let count = |opcode: &str| ptx::count(&body, opcode);

        // Load, barrier, compute: one barrier, reached by every thread.
        let barriers = usize::from(variant.tile().is_some());
        assert_eq!(count("bar.sync") + count("barrier.sync"), barriers);

        // The compiler knows every pointer's address space.
        assert_eq!(count("ld.f32") + count("ld.b32"), 0, "generic loads");
        assert_eq!(count("st.f32") + count("st.b32"), 0, "generic stores");
        assert_eq!(count("ld.local") + count("st.local"), 0, "local memory");

        // Loads from global memory, from the tile, fetches, and stores to the tile.
        let loads = [
            count("ld.global"),
            count("ld.shared"),
            count("tex.2d"),
            count("st.shared"),
        ];
        let expected = match variant {
            Variant::Global => [4, 0, 0, 0],
            Variant::SharedCore => [5, 4, 0, 1],
            Variant::SharedOverlap => [1, 4, 0, 1],
            Variant::SharedHalo => [2, 4, 0, 2],
            Variant::Texture => [0, 0, 4, 0],
            _ => unreachable!("their gates stand beside them"),
        };
        assert_eq!(loads, expected, "ld.global, ld.shared, tex.2d, st.shared");
        assert_eq!(count("st.global"), 1, "one store per point");

        // Three additions, one multiplication, nothing fused or approximated.
        let coordinates = if variant == Variant::Texture { 6 } else { 0 };
        assert_eq!(count("add.rn.f32") + count("add.f32"), 3 + coordinates);
        assert_eq!(count("mul.rn.f32") + count("mul.f32"), 1);
        assert_eq!(count("fma"), 0);
    });
}

/// The compiler leaves out an update of size zero, and so does the launch.
#[test]
fn the_march_takes_fields_layout_and_unknowns() {
    for target in ptx::TARGETS {
        let text = ptx::text(target);
        for (kernel, parameters) in [("heat2d_march_f32", 4), ("heat2d_heated_f64", 5)] {
            let of_kernel = format!("{kernel}_param_");
            let declared = |line: &&str| line.contains(".param") && line.contains(&of_kernel);
            let head = text.split_once(&format!(".entry {kernel}(")).unwrap().1;
            let head = head.split_once(')').unwrap().0;
            assert_eq!(
                head.lines().filter(declared).count(),
                parameters,
                "{kernel}"
            );
        }
    }
}

/// The plate is in the plan's memory by turns.
#[test]
fn buffers_keep_their_shapes_and_on_devices_with_kernels_their_memory() {
    let shape = Shape2::new(9, 7);
    let heat = Heat2d::dirichlet(shape).unwrap();
    let initial = problem::hot_left_wall::<f32>(shape).unwrap();
    for_each_implementation("shapes", devices(), |device, implementation| {
        let mut plan = implementation.plan(device, &heat);
        for iterations in 0..4 {
            let mut current = initial.to_device(device).unwrap();
            let address = current.device_address();
            plan.iterate(&mut current, iterations).unwrap();
            assert_eq!(current.shape(), shape.into());
            if device.kind() != DeviceKind::Cpu {
                assert_eq!(current.device_address(), address, "after {iterations}");
            }
            let expected = heat
                .iterate_of(&Device::cpu(), &initial, iterations)
                .unwrap();
            assert!(Field2::from_device(&current).unwrap() == expected);

            let turned = device.alloc_filled(63, 0.0_f32).unwrap();
            let mut turned = turned.shaped(Shape2::new(7, 9)).unwrap();
            let error = plan.iterate(&mut turned, 1).unwrap_err();
            assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
        }
    });
}
