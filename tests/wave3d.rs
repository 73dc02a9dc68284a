//! Waves in space: standing waves have their frequency, the error falls with the order, energy
//! is kept, layers absorb, and steps that would not be stable are refused.

use halo_gpu::case::{Problem, registry};
use halo_gpu::wave3d::{Layer, Wave3d, problem};
use halo_gpu::{Axis, Boundary, Device, Error, Field3, Grid3, Shape3};
use halo_tests::property::{awkward, cases};
use halo_tests::{devices, for_each, ptx, rng, test_cases};
use proptest::prelude::*;
use rand::RngExt;
use std::f64::consts::TAU;

/// A periodic box of these extents, as long as 1 along each axis.
fn periodic([nx, ny, nz]: [usize; 3], order: u32) -> Wave3d {
    let spacing = [nx, ny, nz].map(|n| 1.0 / n as f64);
    Wave3d::new(Grid3::new(Shape3::new(nx, ny, nz), spacing).unwrap(), order).unwrap()
}

fn everywhere(wave: &Wave3d, velocity: f64) -> Field3<f64> {
    Field3::filled(wave.grid().shape(), velocity).unwrap()
}

fn largest_error(got: &[f64], exact: impl Fn(usize) -> f64) -> f64 {
    let errors = got.iter().enumerate().map(|(at, u)| (u - exact(at)).abs());
    errors.fold(0.0, f64::max)
}

#[test]
fn standing_waves_of_the_grid_have_their_frequency() {
    for device in devices() {
        for_each("orders", [2, 4, 6, 8], |order| {
            let (modes, velocity) = ([1, 2, 1], 0.7);
            let wave = periodic([12, 9, 8], order);
            let time_step = 0.8 * wave.longest_step(velocity);
            let omega = problem::frequency_on_grid(&wave, modes, velocity, time_step);
            let at = |step: f64| {
                problem::mode::<f64>(&wave, modes, (omega * time_step * step).cos()).unwrap()
            };
            let c = everywhere(&wave, velocity);
            let mut run = wave
                .start(&device, time_step, &c, [&at(0.0), &at(-1.0)])
                .unwrap();
            run.steps(11).unwrap();
            let exact = at(11.0);
            let error = largest_error(&run.to_vec(0).unwrap(), |at| exact.as_slice()[at]);
            assert!(error < 1e-13, "{error}");
        });
    }
}

#[test]
fn the_error_falls_with_the_order() {
    let (modes, end) = ([1, 1, 0], 0.25);
    // Of so many steps on the coarse grid their error is small beside that of the differences.
    let orders = [(2_u32, 10.0), (4, 40.0), (6, 150.0), (8, 600.0)];
    let orders = test_cases::either(&orders[..3], &orders).iter().copied();
    for_each("orders", orders, |(order, coarse)| {
        let error = |n: usize| {
            let wave = periodic([n, n, 4], order);
            // The error of the steps falls as fast as that of the differences.
            let steps = (coarse * (n as f64 / 8.0).powf(f64::from(order) / 2.0)).round();
            let time_step = end / steps;
            let omega = problem::frequency(&wave, modes, 1.0);
            let at = |t: f64| problem::mode::<f64>(&wave, modes, (omega * t).cos()).unwrap();
            let (c, before) = (everywhere(&wave, 1.0), at(-time_step));
            let mut run = wave
                .start(&Device::cpu(), time_step, &c, [&at(0.0), &before])
                .unwrap();
            run.steps(steps as usize).unwrap();
            let exact = at(end);
            largest_error(&run.to_vec(0).unwrap(), |at| exact.as_slice()[at])
        };
        let errors = [8, 16].map(error);
        let measured = (errors[0] / errors[1]).log2();
        println!("order {order}: errors {errors:?}, order {measured:.2}");
        let order = f64::from(order);
        assert!((order - 0.6..order + 0.6).contains(&measured), "{errors:?}");
    });
}

/// What leapfrog keeps, twice: `Σ ((new - old) / (c Δt / h))² - new · L old`, with L the
/// differences of 2nd order in units of the spacing.
fn energy(shape: Shape3, courant: &[f64], old: &[f64], new: &[f64]) -> f64 {
    let at = |i: usize, j: usize, k: usize| {
        ((k % shape.nz) * shape.ny + j % shape.ny) * shape.nx + i % shape.nx
    };
    let mut sum = 0.0;
    for k in 0..shape.nz {
        for (j, i) in (0..shape.ny).flat_map(|j| (0..shape.nx).map(move |i| (j, i))) {
            let here = at(i, j, k);
            sum += (new[here] - old[here]).powi(2) / courant[here];
            for next in [at(i + 1, j, k), at(i, j + 1, k), at(i, j, k + 1)] {
                sum += (new[next] - new[here]) * (old[next] - old[here]);
            }
        }
    }
    sum
}

#[test]
fn energy_is_kept_whatever_the_velocities() {
    let mut rng = rng();
    let shape = Shape3::new(12, 7, 9);
    let wave = Wave3d::new(Grid3::new(shape, [0.5; 3]).unwrap(), 2).unwrap();
    let mut random = |range: std::ops::Range<f64>| {
        Field3::from_fn(shape, |_, _, _| rng.random_range(range.clone())).unwrap()
    };
    let (velocity, now, before) = (random(1.0..3.0), random(-1.0..1.0), random(-1.0..1.0));
    let time_step = 0.9 * wave.longest_step(3.0);
    let courant = wave.coefficients(time_step, &velocity).unwrap();
    for device in devices() {
        let mut run = wave
            .start(&device, time_step, &velocity, [&now, &before])
            .unwrap();
        let first = energy(shape, &courant, before.as_slice(), now.as_slice());
        run.steps(100).unwrap();
        let [now, before] = [0, 1].map(|field| run.to_vec(field).unwrap());
        let last = energy(shape, &courant, &before, &now);
        assert!(
            first > 1.0 && (last / first - 1.0).abs() < 1e-11,
            "{first} {last}"
        );
    }
}

/// A packet of waves of 12 points that goes along x, in a channel that is open at both ends.
fn channel() -> (Wave3d, Field3<f64>, [Field3<f64>; 2], f64) {
    let shape = Shape3::new(120, 2, 3);
    let grid = Grid3::new(shape, [1.0; 3]).unwrap();
    let grid = grid.with_boundary(Axis::X, Boundary::OneSided).unwrap();
    let wave = Wave3d::new(grid, 8).unwrap();
    let time_step = 0.4;
    let packet = |t: f64| {
        let height = |x: f64| (-(x / 12.0).powi(2)).exp() * (TAU * x / 12.0).cos();
        Field3::from_fn(shape, |i, _, _| height(i as f64 - 60.0 - t)).unwrap()
    };
    let velocity = everywhere(&wave, 1.0);
    (wave, velocity, [packet(0.0), packet(-time_step)], time_step)
}

#[test]
fn layers_leave_little_of_a_wave() {
    let (wave, velocity, [now, before], time_step) = channel();
    let layer = Layer {
        points: 30,
        reflection: 1e-3,
    };
    for device in devices() {
        // To the end and back to where it began.
        let steps = (120.0 / time_step) as usize;
        let mut closed = wave
            .start(&device, time_step, &velocity, [&now, &before])
            .unwrap();
        let mut open = wave
            .start_absorbing(&device, time_step, &velocity, layer, [&now, &before])
            .unwrap();
        let largest = |values: Vec<f64>| values.into_iter().map(f64::abs).fold(0.0, f64::max);
        open.steps(10).unwrap();
        let untouched = largest(open.to_vec(0).unwrap());
        assert!((untouched - 1.0).abs() < 1e-3, "{untouched}");
        closed.steps(steps).unwrap();
        open.steps(steps - 10).unwrap();
        let reflected = largest(closed.to_vec(0).unwrap());
        assert!(reflected > 0.9, "{reflected}");
        let left = largest(open.to_vec(0).unwrap());
        assert!((1e-5..5e-3).contains(&left), "{left}");
    }
}

#[test]
fn without_open_ends_nothing_is_damped() {
    let wave = periodic([6, 5, 4], 4);
    let velocity = everywhere(&wave, 1.0);
    let layer = Layer {
        points: 100,
        reflection: 0.1,
    };
    let [damped, kept] = wave.absorbing_coefficients(0.01, &velocity, layer).unwrap();
    assert_eq!(damped, wave.coefficients(0.01, &velocity).unwrap());
    assert!(kept.iter().all(|&kept| kept == 1.0));
}

#[test]
fn wrong_parameters_are_refused() {
    let (wave, velocity, [now, before], _) = channel();
    let invalid = |error: Error| matches!(error, Error::InvalidParameter { .. });
    for order in [0, 1, 3, 10] {
        assert!(invalid(Wave3d::new(*wave.grid(), order).unwrap_err()));
    }
    let limit = wave.longest_step(1.0);
    assert!((limit - 2.0 / (3.0 * 2048.0 / 315.0_f64).sqrt()).abs() < 1e-14);
    assert!(wave.coefficients(limit, &velocity).is_ok());
    for zero in [0.0, -0.0] {
        assert_eq!(wave.longest_step(zero), f64::INFINITY);
        let still = wave.coefficients::<f64>(1e300, &everywhere(&wave, zero));
        assert!(still.unwrap().iter().all(|c| *c == 0.0));
    }
    let error = wave.coefficients(limit * 1.000_001, &velocity).unwrap_err();
    assert!(matches!(error, Error::Unstable { .. }), "{error}");
    for layer in [
        Layer {
            points: 0,
            reflection: 0.1,
        },
        Layer {
            points: 121,
            reflection: 0.1,
        },
        Layer {
            points: 9,
            reflection: 0.0,
        },
        Layer {
            points: 9,
            reflection: 1.0,
        },
        Layer {
            points: 9,
            reflection: f64::NAN,
        },
    ] {
        let fields = [&now, &before];
        let refused = wave.start_absorbing(&Device::cpu(), 0.1, &velocity, layer, fields);
        assert!(invalid(refused.unwrap_err()), "{layer:?}");
    }
    let other = Field3::filled(Shape3::cube(3), 1.0).unwrap();
    for (velocity, fields) in [
        (&other, [&now, &before]),
        (&velocity, [&other, &before]),
        (&velocity, [&now, &other]),
    ] {
        let error = wave
            .start(&Device::cpu(), 0.1, velocity, fields)
            .unwrap_err();
        assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
    }
}

/// The kernel writes the past field, so it must not load it as read-only memory. It has three
/// ordinary loads: one of a number, and two of a vector, in marches inside the field and at its
/// rim.
#[test]
fn only_the_past_field_is_loaded_by_loads_of_written_memory() {
    let kernels = registry::family("wave3d").unwrap().kernels;
    assert!(!kernels.is_empty());
    for target in ptx::TARGETS {
        for_each("kernels", kernels, |entry| {
            let body = ptx::entry(ptx::text(target), entry.name);
            let [all, readonly] = ["ld.global", "ld.global.nc"].map(|it| ptx::count(&body, it));
            let vectors = ["ld.global.v4", "ld.global.v2"].map(|it| ptx::count(&body, it));
            assert!(readonly > 3);
            assert_eq!((all - readonly, vectors.iter().sum::<usize>()), (3, 2));
        });
    }
}

#[test]
fn the_table_has_the_costs_of_the_stencils() {
    let wave = periodic([6, 5, 4], 8);
    let entry = |name: &str| {
        registry::entry(name)
            .unwrap()
            .cost(&Problem::volume(6, 5, 4))
    };
    assert_eq!(entry("wave3d_closed_f32"), wave.cost::<f32>().unwrap());
    assert_eq!(entry("wave3d_closed_f64"), wave.cost::<f64>().unwrap());
    let plan = wave.plan_absorbing::<f64>(&Device::cpu()).unwrap();
    assert_eq!(entry("wave3d_absorbing_f64"), plan.cost());
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn whatever_is_given_is_an_error_or_a_step(
        time_step in awkward(),
        fast in awkward(),
        order in 0..10_u32,
        modes in [0..9_usize, 0..9, 0..9],
        height in -1.0..1.0_f64,
        points in 0..7_usize,
        reflection in awkward(),
        extents in [1..6_usize, 1..4, 1..4],
    ) {
        let [nx, ny, nz] = extents;
        let grid = Grid3::new(Shape3::new(nx, ny, nz), [0.5, 1.0, 2.0]).unwrap();
        let grid = grid.with_boundary(Axis::X, Boundary::OneSided).unwrap();
        let wave = Wave3d::new(grid, order);
        prop_assert_eq!(wave.is_ok(), matches!(order, 2 | 4 | 6 | 8));
        let Ok(wave) = wave else { return Ok(()) };
        let mut velocity = everywhere(&wave, 0.25);
        velocity.as_mut_slice()[nx - 1] = fast;
        let right = time_step > 0.0 && time_step.is_finite() && fast >= 0.0 && fast.is_finite()
            && time_step <= wave.longest_step(fast.max(if nx * ny * nz > 1 { 0.25 } else { 0.0 }));
        let field = problem::mode::<f64>(&wave, modes, height).unwrap();
        prop_assert!(field.as_slice().iter().all(|u| u.abs() <= height.abs()));
        let device = Device::cpu();
        let run = wave.start(&device, time_step, &velocity, [&field, &field]);
        prop_assert_eq!(run.is_ok(), right);
        if let Ok(mut run) = run {
            run.steps(1).unwrap();
            prop_assert!(run.to_vec(0).unwrap().iter().all(|u| u.is_finite()));
        }
        let layer = Layer { points, reflection };
        let run = wave.start_absorbing(&device, time_step, &velocity, layer, [&field, &field]);
        let has_layer = reflection > 0.0 && reflection < 1.0 && (1..=nx).contains(&points);
        prop_assert_eq!(run.is_ok(), right && has_layer);
    }
}
