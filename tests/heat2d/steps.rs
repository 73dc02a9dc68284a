//! Steps in time: `heat2d_step_f32`, `heat2d_step_f64` and the CPU port.

use super::boundaries::{Ends, NEUMANN, ends, heat2d, is_kept};
use super::point;
use halo_gpu::heat2d::{Heat2d, Tolerance, Variant, problem};
use halo_gpu::{Axis, Boundary, Cost, Device, DeviceKind, Error, Field2, Grid2, Scalar, Shape2};
use halo_tests::property::{self, Faults, device, rarely};
use halo_tests::{Bits, assert_same_bits, devices, for_each, kernel_devices, rng};
use proptest::prelude::*;
use rand::{Rng, RngExt};

fn random<T: Scalar>(rng: &mut impl Rng, len: usize) -> Vec<T> {
    let numbers = (0..len).map(|_| T::nearest(rng.random_range(-1.0..1.0)));
    numbers.collect()
}

/// The same plate with another spacing.
fn spaced(grid: &Grid2, spacing: f64) -> Heat2d {
    let mut scaled = Grid2::new(grid.shape(), [spacing; 2]).unwrap();
    for axis in [Axis::X, Axis::Y] {
        scaled = scaled.with_ends(axis, grid.ends(axis)).unwrap();
    }
    Heat2d::new(&scaled).unwrap()
}

/// What a step needs of a number, one rounding each.
trait Number: Scalar + Bits {
    fn fma(self, factor: Self, sum: Self) -> Self;
}

impl Number for f32 {
    fn fma(self, factor: Self, sum: Self) -> Self {
        self.mul_add(factor, sum)
    }
}

impl Number for f64 {
    fn fma(self, factor: Self, sum: Self) -> Self {
        self.mul_add(factor, sum)
    }
}

/// A step by definition, one point at a time.
fn step_by_definition<T: Number>(
    shape: Shape2,
    ends: Ends,
    ratio: T,
    source: Option<&[T]>,
    old: &[T],
) -> Vec<T> {
    let Shape2 { nx, ny } = shape;
    let mut new = old.to_vec();
    for j in 0..ny {
        for i in 0..nx {
            if is_kept(shape, ends, i, j) {
                continue;
            }
            let at = |i: usize, j: usize| old[j * nx + i];
            let (east, west) = match i {
                0 => (at(1, j), at(1, j)),
                i if i == nx - 1 => (at(i - 1, j), at(i - 1, j)),
                i => (at(i + 1, j), at(i - 1, j)),
            };
            let (north, south) = match j {
                0 => (at(i, 1), at(i, 1)),
                j if j == ny - 1 => (at(i, j - 1), at(i, j - 1)),
                j => (at(i, j + 1), at(i, j - 1)),
            };
            let mut sum = (east + west) + (north + south);
            if let Some(source) = source {
                sum = sum + source[j * nx + i];
            }
            let here = at(i, j);
            new[j * nx + i] = here.fma(T::nearest(-4.0), sum).fma(ratio, here);
        }
    }
    new
}

#[test]
fn steps_have_the_bits_of_their_definition_everywhere() {
    fn check<T: Number>() {
        let mut rng = rng();
        for (bits, (nx, ny), steps) in [
            (0, (3, 3), 1),
            (0b0101, (7, 5), 4),
            (0b1010, (64, 9), 3),
            (0b1111, (33, 20), 6),
            (0b0011, (130, 7), 2),
            (0b1100, (5, 41), 5),
            (0, (257, 19), 3),
        ] {
            let (shape, ends) = (Shape2::new(nx, ny), ends(bits));
            // At most a quarter, and no power of two.
            let grid = *heat2d(shape, ends).unwrap().grid();
            let heat = spaced(&grid, 2.0)
                .with_time_step(3.0, 0.9 * 4.0 / 12.0)
                .unwrap();
            let ratio = T::nearest(0.25 * ((0.9 * 4.0 / 12.0) / (0.25 * (2.0 / 3.0) * 2.0)));
            let initial = random::<T>(&mut rng, nx * ny);
            let source = random::<T>(&mut rng, nx * ny);
            for source in [None, Some(&source[..])] {
                let expected = (0..steps).fold(initial.clone(), |plate, _| {
                    step_by_definition(shape, ends, ratio, source, &plate)
                });
                let initial = Field2::from_vec(shape, initial.clone()).unwrap();
                for_each("device", devices(), |device| {
                    let mut plates = vec![heat.start(&device, &initial).unwrap()];
                    if device.kind() != DeviceKind::Cpu {
                        let plan = heat.plan_with(&device, Variant::Step).unwrap();
                        plates.push(plan.start(&initial).unwrap());
                    }
                    for mut plate in plates {
                        if let Some(source) = source {
                            let source = Field2::from_vec(shape, source.to_vec()).unwrap();
                            plate = plate.with_source(&source).unwrap();
                        }
                        plate.iterate(steps).unwrap();
                        let field = plate.field().unwrap();
                        assert_same_bits(field.as_slice(), &expected, |at| point(shape, at));
                        let time = steps as f64 * 0.9 * 4.0 / 12.0;
                        assert!((plate.time() - time).abs() < 1e-12);
                    }
                });
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn modes_decay_as_the_scheme_says() {
    let shape = Shape2::new(33, 21);
    for_each("device", devices(), |device| {
        for (modes, ratio) in [
            ([1, 1], 0.25),
            ([2, 3], 0.2),
            ([31, 19], 0.25),
            ([5, 1], 0.01),
        ] {
            let steps = if device.kind() == DeviceKind::Emulator {
                6
            } else {
                60
            };
            let heat = (Heat2d::dirichlet(shape).unwrap())
                .with_time_step(1.0, ratio)
                .unwrap();
            let initial = problem::sine_mode::<f64>(shape, modes).unwrap();
            let mut plate = heat.start(&device, &initial).unwrap();
            plate.iterate(steps).unwrap();
            let factor = problem::amplification(shape, modes, ratio).powi(steps as i32);
            let pairs = plate.field().unwrap().into_vec();
            for (at, (value, start)) in pairs.iter().zip(initial.as_slice()).enumerate() {
                let error = (value - factor * start).abs();
                assert!(
                    error < 1e-13,
                    "{modes:?} {ratio} {}: {error}",
                    point(shape, at)
                );
            }
        }
    });
}

/// Halving the spacing, with a quarter of the step, quarters the error.
#[test]
fn the_error_is_of_second_order_in_the_spacing() {
    use std::f64::consts::PI;
    let error = |cells: usize| {
        let shape = Shape2::new(cells + 1, cells + 1);
        let spacing = 1.0 / cells as f64;
        let step = 0.2 * spacing * spacing;
        let heat = spaced(Heat2d::dirichlet(shape).unwrap().grid(), spacing)
            .with_time_step(1.0, step)
            .unwrap();
        let initial = problem::sine_mode::<f64>(shape, [1, 2]).unwrap();
        let mut plate = heat.start(&Device::cpu(), &initial).unwrap();
        // To the time 0.02, a whole number of steps for each.
        plate.iterate(cells * cells / 10).unwrap();
        assert!((plate.time() - 0.02).abs() < 1e-12);
        let decay = (-5.0 * PI * PI * plate.time()).exp();
        let field = plate.field().unwrap();
        let errors = (field.as_slice().iter().zip(initial.as_slice()))
            .map(|(value, start)| (value - decay * start).abs());
        errors.fold(0.0, f64::max)
    };
    let errors = [error(20), error(40), error(80)];
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!((1.95..2.05).contains(&order), "{order}: {errors:?}");
    }
}

#[test]
fn the_longest_stable_step_is_an_iteration_and_a_longer_one_is_refused() {
    let shape = Shape2::new(19, 23);
    let iterations = Heat2d::dirichlet(shape).unwrap();
    assert_eq!(iterations.time_step(), None);
    let spaced = spaced(iterations.grid(), 3.0);
    let steps = spaced.with_time_step(0.5, 4.5).unwrap();
    assert_eq!(steps.time_step(), Some(4.5));
    // Whole numbers that stay so: nothing is rounded.
    let initial = Field2::from_fn(shape, |i, j| (256 * (i * j % 7)) as f32).unwrap();
    let device = Device::cpu();
    assert_eq!(
        steps.iterate_of(&device, &initial, 4).unwrap(),
        iterations.iterate_of(&device, &initial, 4).unwrap()
    );
    match spaced.with_time_step(0.5, 4.500_001) {
        Err(Error::Unstable {
            operation,
            time_step,
            limit,
        }) => assert_eq!((operation, time_step, limit), ("heat2d", 4.500_001, 4.5)),
        other => panic!("{other:?}"),
    }
    // Beyond what f32 can tell from nothing.
    let short = iterations.with_time_step(1.0, 1e-300).unwrap();
    let error = short.start(&device, &initial).unwrap_err().to_string();
    assert!(error.contains("must be such that diffusivity"), "{error}");
    let wide = Field2::filled(shape, 1.0_f64).unwrap();
    short.start(&device, &wide).unwrap();
}

#[test]
fn kernels_of_iterations_make_no_steps_and_the_other_way_round() {
    let shape = Shape2::new(9, 8);
    let iterations = Heat2d::dirichlet(shape).unwrap();
    let steps = iterations.with_time_step(1.0, 0.1).unwrap();
    for_each("device", kernel_devices(), |device| {
        for variant in Variant::ALL {
            let (right, wrong, words) = if variant == Variant::Step {
                (
                    &steps,
                    &iterations,
                    "a kernel of Jacobi iterations, because there is no time step",
                )
            } else {
                (
                    &iterations,
                    &steps,
                    "heat2d_step, because iterations are steps in time",
                )
            };
            right.plan_with::<f32>(&device, variant).unwrap();
            let error = wrong.plan_with::<f32>(&device, variant).unwrap_err();
            let expected = format!("heat2d: the kernel is {variant}, but must be {words}");
            assert_eq!(error.to_string(), expected);
        }
    });
}

#[test]
fn steps_are_stopped_when_they_change_little_and_refused_when_they_never_will() {
    let shape = Shape2::new(9, 12);
    let heat = (heat2d(shape, NEUMANN).unwrap())
        .with_time_step(1.0, 0.2)
        .unwrap();
    // A checkerboard, which Jacobi iterations would invert for ever.
    let board = Field2::from_fn(shape, |i, j| ((i + j) % 2) as f64).unwrap();
    let mut plate = heat.start(&Device::cpu(), &board).unwrap();
    assert!(plate.iterate_until(1e-12, 10, 5000).unwrap().converged);
    let even = plate.field().unwrap();
    assert!(
        even.as_slice()
            .iter()
            .all(|value| (value - 0.5).abs() < 1e-9)
    );

    // Heat that is never lost.
    let source = Field2::filled(shape, 0.5).unwrap();
    let mut plate = plate.with_source(&source).unwrap();
    let error = plate.iterate_until(0.09, 10, 100).unwrap_err().to_string();
    assert!(error.contains("must be at least 1e-1,"), "{error}");
    assert!(plate.iterate_until(0.11, 1, 100).unwrap().converged);
}

/// The residual of -∇²u = f in the interior, times h², by definition in f64.
fn largest_residual<T: Scalar>(plate: &Field2<T>, source: &Field2<T>) -> f64 {
    let shape = plate.shape();
    let at = |i: usize, j: usize| Into::<f64>::into(plate[(i, j)]);
    let mut largest = 0.0_f64;
    for j in 1..shape.ny - 1 {
        for i in 1..shape.nx - 1 {
            let neighbours = at(i + 1, j) + at(i - 1, j) + at(i, j + 1) + at(i, j - 1);
            let residual = neighbours + Into::<f64>::into(source[(i, j)]) - 4.0 * at(i, j);
            largest = largest.max(residual.abs());
        }
    }
    largest
}

#[test]
fn residuals_are_those_of_the_equation_and_bound_the_iterations() {
    fn check<T: Number>() {
        let shape = Shape2::new(18, 13);
        let mut rng = rng();
        let [initial, source] =
            [(); 2].map(|()| Field2::from_vec(shape, random::<T>(&mut rng, 18 * 13)).unwrap());
        for_each("device", devices(), |device| {
            for ratio in [None, Some(0.25), Some(0.07)] {
                let mut heat = Heat2d::dirichlet(shape).unwrap();
                if let Some(ratio) = ratio {
                    heat = heat.with_time_step(1.0, ratio).unwrap();
                }
                let start = || heat.start(&device, &initial).unwrap();
                let (mut plate, mut before) = (
                    start().with_source(&source).unwrap(),
                    start().with_source(&source).unwrap(),
                );
                let outcome = plate.iterate_until(T::nearest(0.0), 7, 7).unwrap();
                before.iterate(6).unwrap();
                let exact = largest_residual(&before.field().unwrap(), &source);
                let residual: f64 = outcome.residual.into();
                let rounding = 8.0 * T::UNIT_ROUNDOFF * 4.0 / ratio.unwrap_or(0.25);
                assert!((residual - exact).abs() <= rounding, "{residual} {exact}");
                assert!(!outcome.converged && outcome.iterations == 7);

                let bound = 1e-3;
                let tolerance = Tolerance::Residual(T::nearest(bound));
                let outcome = plate.iterate_until(tolerance, 20, 4000).unwrap();
                assert!(outcome.converged && outcome.residual <= T::nearest(bound));
                let left = largest_residual(&plate.field().unwrap(), &source);
                assert!(left <= bound + rounding, "{left}");
                // One look earlier it was not there yet.
                let mut earlier = start().with_source(&source).unwrap();
                earlier
                    .iterate(7 + outcome.iterations as usize - 21)
                    .unwrap();
                let left = largest_residual(&earlier.field().unwrap(), &source);
                assert!(left > bound - rounding, "{left}");
            }
        });
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn steps_cost_what_they_read_write_and_compute() {
    let heat = Heat2d::dirichlet(Shape2::new(12, 10)).unwrap();
    let steps = heat.with_time_step(1.0, 0.25).unwrap();
    let (bytes, flops) = (heat.cost::<f64>().bytes, 7 * 10 * 8);
    assert_eq!(steps.cost::<f64>(), Cost { bytes, flops });
    let entries = halo_gpu::case::registry::FAMILIES
        .iter()
        .flat_map(|family| family.kernels);
    let entry = entries.into_iter().find(|it| it.name == "heat2d_step_f32");
    let plate = halo_gpu::case::Problem::plane(12, 10);
    assert_eq!(entry.unwrap().cost(&plate).flops, flops);
}

/// Plates that are insulated all around keep their heat, in whole numbers exactly.
fn keeps_its_heat<T: Number>(
    (nx, ny): (usize, usize),
    seed: u64,
    steps: usize,
    device: &Device,
) -> Result<(), TestCaseError> {
    let shape = Shape2::new(nx, ny);
    let heat = heat2d(shape, NEUMANN)?.with_time_step(1.0, 0.125)?;
    let initial = Field2::from_fn(shape, |i, j| {
        let mixed = (seed + (i * 1009 + j) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // Eighths of them are halved by each step, and stay exact.
        T::nearest(((mixed >> 58) * 4096) as f64)
    })?;
    let swept = heat.iterate_of(device, &initial, steps)?;
    let weight = |p: usize, n: usize| if p == 0 || p == n - 1 { 0.5 } else { 1.0 };
    let total = |field: &Field2<T>| {
        let mut total = 0.0;
        for j in 0..ny {
            for i in 0..nx {
                total += weight(i, nx) * weight(j, ny) * Into::<f64>::into(field[(i, j)]);
            }
        }
        total
    };
    prop_assert_eq!(total(&swept), total(&initial));
    // And their range.
    let extreme = |field: &Field2<T>, pick: fn(f64, f64) -> f64, from: f64| {
        let values = field.as_slice().iter().map(|&value| value.into());
        values.fold(from, pick)
    };
    let (low, high) = (
        extreme(&initial, f64::min, f64::INFINITY),
        extreme(&initial, f64::max, f64::NEG_INFINITY),
    );
    prop_assert!(extreme(&swept, f64::min, f64::INFINITY) >= low);
    prop_assert!(extreme(&swept, f64::max, f64::NEG_INFINITY) <= high);
    Ok(())
}

/// A parameter that may be anything.
fn parameter() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => 0.1..10.0_f64,
        1 => Just(0.0),
        1 => -1.0..0.0_f64,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(1e200),
        1 => Just(1e-200),
    ]
}

proptest! {
    #![proptest_config(property::cases(96))]

    #[test]
    fn heat_stays_where_nothing_lets_it_out(
        shape in (3..20_usize, 3..20_usize),
        seed in 0..1_u64 << 40,
        steps in 1..4_usize,
        device in device(),
    ) {
        keeps_its_heat::<f32>(shape, seed, steps, &device)?;
        keeps_its_heat::<f64>(shape, seed, steps, &device)?;
    }

    /// As on all devices, however many steps a pass of the port has.
    #[test]
    fn steps_at_once_are_steps_one_by_one(
        (nx, ny) in (3..90_usize, 3..60_usize),
        (bits, steps, timed) in (0..16_u32, 1..20_usize, any::<bool>()),
        sourced in rarely(2),
    ) {
        let shape = Shape2::new(nx, ny);
        let mut heat = heat2d(shape, ends(bits))?;
        if timed {
            heat = heat.with_time_step(1.0, 0.21)?;
        }
        let value = |i: usize, j: usize| ((i * 37 + j * 101) % 256) as f64 / 7.0;
        let initial = Field2::from_fn(shape, value)?;
        let [mut at_once, mut one_by_one] = [(); 2].map(|()| heat.start(&Device::cpu(), &initial));
        if sourced {
            at_once = at_once.and_then(|plate| plate.with_source(&initial));
            one_by_one = one_by_one.and_then(|plate| plate.with_source(&initial));
        }
        let (mut at_once, mut one_by_one) = (at_once?, one_by_one?);
        at_once.iterate(steps)?;
        for _ in 0..steps {
            one_by_one.iterate(1)?;
        }
        prop_assert_eq!(at_once.field()?, one_by_one.field()?);
    }

    #[test]
    fn time_steps_get_the_error_they_deserve(
        (diffusivity, spacing, step) in (parameter(), parameter(), parameter()),
    ) {
        let grid = Grid2::new(Shape2::new(5, 5), [spacing; 2]);
        let wrong = spacing <= 0.0 || !spacing.is_finite();
        let words = format!("spacing along x is {spacing}, but must be");
        let kind = if spacing.is_finite() { "InvalidParameter" } else { "NonFinite" };
        let Some(grid) = Faults::none().and(wrong, kind, words).judge(grid)? else {
            return Ok(());
        };
        let mut faults = Faults::none();
        for (name, given) in [("the diffusivity", diffusivity), ("the time step", step)] {
            let words = format!("{name} is {given}, but must be");
            faults = faults
                .and(!given.is_finite(), "NonFinite", words.clone())
                .and(given <= 0.0 && given.is_finite(), "InvalidParameter", words);
        }
        let limit = 0.25 * (spacing / diffusivity) * spacing;
        let ranged = diffusivity > 0.0 && spacing > 0.0 && !limit.is_normal();
        let words = "in the range of f64, with a spacing";
        let faults = faults.and(ranged, "InvalidParameter", words).and(
            step > limit,
            "Unstable",
            format!("the time step is {step}, but must be at most {limit} to be stable"),
        );
        let heat = Heat2d::new(&grid.with_boundaries(Boundary::Neumann)?)?;
        faults.judge(heat.with_time_step(diffusivity, step))?;
    }
}
