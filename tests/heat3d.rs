//! Heat in space: modes of a box decay as they must, nothing is lost, and steps that would
//! not be stable are refused.

use halo_gpu::case::{Problem, registry};
use halo_gpu::heat3d::{Heat3d, problem};
use halo_gpu::{Axis, Boundary, Device, Error, Field3, Grid3, Shape3};
use halo_tests::property::{awkward, cases};
use halo_tests::{assert_same_bits, devices, for_each, rng};
use proptest::prelude::*;
use rand::RngExt;

/// An insulated box of these extents, as long as 1 along each axis.
fn insulated([nx, ny, nz]: [usize; 3]) -> Heat3d {
    let spacing = [nx, ny, nz].map(|n| 1.0 / n as f64);
    let grid = Grid3::new(Shape3::new(nx, ny, nz), spacing).unwrap();
    Heat3d::new(grid.with_boundaries(Boundary::NeumannHalfway).unwrap())
}

fn largest_error(got: &[f64], exact: impl Fn(usize) -> f64) -> f64 {
    let errors = got.iter().enumerate().map(|(at, u)| (u - exact(at)).abs());
    errors.fold(0.0, f64::max)
}

#[test]
fn modes_of_the_grid_are_multiplied_by_their_amplification() {
    for device in devices() {
        for_each("modes", [[0, 0, 0], [1, 2, 0], [5, 4, 3]], |modes| {
            let heat = insulated([8, 7, 6]);
            let step = 0.7 * heat.longest_step(1.0);
            let heat = heat.with_time_step(1.0, step).unwrap();
            let initial = problem::mode::<f64>(&heat, modes).unwrap();
            let after = heat.steps_of(&device, &initial, 9).unwrap();
            let factor = problem::amplification(&heat, modes).powi(9);
            let error = largest_error(after.as_slice(), |at| factor * initial.as_slice()[at]);
            assert!(error < 1e-14, "{error} {factor}");
        });
    }
}

#[test]
fn the_error_falls_with_the_square_of_the_spacing() {
    let modes = [1, 2, 1];
    let error = |n: usize| {
        let heat = insulated([n, n, n]);
        let steps = n * n / 8;
        let heat = heat.with_time_step(1.0, 0.01 / steps as f64).unwrap();
        let initial = problem::mode::<f64>(&heat, modes).unwrap();
        let after = heat.steps_of(&Device::cpu(), &initial, steps).unwrap();
        let factor = problem::decay(&heat, modes, 0.01);
        largest_error(after.as_slice(), |at| factor * initial.as_slice()[at])
    };
    let errors = [8, 16, 32].map(error);
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        println!("errors {pair:?}: order {order:.3}");
        assert!((1.9..2.1).contains(&order), "{errors:?}");
    }
}

#[test]
fn an_insulated_or_periodic_body_keeps_its_heat() {
    let mut rng = rng();
    for boundary in [Boundary::NeumannHalfway, Boundary::Periodic] {
        for device in devices() {
            let shape = Shape3::new(12, 9, 10);
            let grid = Grid3::new(shape, [1.0, 0.8, 1.3]).unwrap();
            let heat = Heat3d::new(grid.with_boundaries(boundary).unwrap());
            let heat = heat
                .with_time_step(0.5, 0.9 * heat.longest_step(0.5))
                .unwrap();
            let initial = Field3::from_fn(shape, |_, _, _| rng.random_range(0.0..1.0)).unwrap();
            let after = heat.steps_of(&device, &initial, 50).unwrap();
            let [before, after] = [&initial, &after].map(|it| it.as_slice().iter().sum::<f64>());
            assert!((before - after).abs() < 1e-11, "{before} {after}");
        }
    }
}

#[test]
fn no_point_becomes_warmer_than_the_warmest() {
    let mut rng = rng();
    let shape = Shape3::new(16, 6, 7);
    let grid = Grid3::new(shape, [1.0, 2.0, 0.5]).unwrap();
    let initial = Field3::from_fn(shape, |_, _, _| rng.random_range(0.0_f32..1.0)).unwrap();
    for device in devices() {
        // At the limit of stability, which a Jacobi iteration is.
        let heat = Heat3d::new(grid);
        let limit = heat.longest_step(3.0);
        let steps = heat.with_time_step(3.0, limit).unwrap();
        let [jacobi, steps] = [heat, steps].map(|it| it.steps_of(&device, &initial, 30).unwrap());
        assert_same_bits(steps.as_slice(), jacobi.as_slice(), |at| at);
        assert!(
            jacobi
                .as_slice()
                .iter()
                .all(|u| (-1e-6..=1.0 + 1e-6).contains(u))
        );
    }
}

#[test]
fn a_body_between_walls_becomes_steady() {
    // 0 at one end and 12 at the other: a straight line between the points beyond the ends.
    let shape = Shape3::new(11, 2, 3);
    let grid = Grid3::new(shape, [0.25, 1.0, 1.0]).unwrap();
    let ends = [Boundary::Dirichlet(0.0), Boundary::Dirichlet(12.0)];
    let grid = grid.with_ends(Axis::X, ends).unwrap();
    for device in devices() {
        let cold = Field3::filled(shape, 0.0_f64).unwrap();
        let mut rod = Heat3d::new(grid).start(&device, &cold).unwrap();
        let settled = rod.steps_until(1e-13, 100, 10_000).unwrap();
        assert!(settled.converged, "{settled:?}");
        let line = |at: usize| (at % 11 + 1) as f64;
        assert!(largest_error(&rod.to_vec(0).unwrap(), line) < 1e-9);
    }
}

#[test]
fn a_source_bends_the_steady_state() {
    // u'' = -f between walls at 1 and 5: a parabola, which the differences have exactly.
    let shape = Shape3::new(3, 2, 9);
    let grid = Grid3::new(shape, [1.0, 0.7, 0.5]).unwrap();
    let ends = [Boundary::Dirichlet(1.0), Boundary::Dirichlet(5.0)];
    let grid = grid.with_ends(Axis::Z, ends).unwrap();
    let cold = Field3::filled(shape, 0.0_f64).unwrap();
    let source = Field3::filled(shape, 3.0).unwrap();
    for device in devices() {
        let mut rod = Heat3d::new(grid)
            .start_heated(&device, &cold, &source)
            .unwrap();
        let settled = rod.steps_until(1e-13, 100, 10_000).unwrap();
        assert!(settled.converged, "{settled:?}");
        let parabola = |at: usize| {
            let z = 0.5 * (at / 6 + 1) as f64;
            1.0 + 4.0 * z / 5.0 + 1.5 * z * (5.0 - z)
        };
        assert!(largest_error(&rod.to_vec(0).unwrap(), parabola) < 1e-9);
    }
}

#[test]
fn a_source_gives_its_heat_step_by_step() {
    let mut rng = rng();
    let heat = insulated([9, 7, 5]);
    let heat = heat
        .with_time_step(2.0, 0.6 * heat.longest_step(2.0))
        .unwrap();
    let time_step = heat.time_step().unwrap();
    let shape = heat.grid().shape();
    let [initial, source] =
        [(); 2].map(|()| Field3::from_fn(shape, |_, _, _| rng.random_range(-1.0..1.0)).unwrap());
    let total = |values: &[f64]| values.iter().sum::<f64>();
    let (before, given) = (total(initial.as_slice()), total(source.as_slice()));
    for device in devices() {
        let mut body = heat.start_heated(&device, &initial, &source).unwrap();
        body.steps(12).unwrap();
        let after = total(&body.to_vec(0).unwrap());
        let expected = before + 12.0 * time_step * given;
        assert!((after - expected).abs() < 1e-12, "{after} {expected}");
    }
    let none = Field3::filled(shape, 0.0).unwrap();
    let mut body = heat.start_heated(&Device::cpu(), &initial, &none).unwrap();
    body.steps(3).unwrap();
    let without = heat.steps_of(&Device::cpu(), &initial, 3).unwrap();
    assert_same_bits(&body.to_vec(0).unwrap(), without.as_slice(), |at| at);
}

#[test]
fn wrong_parameters_are_refused() {
    let heat = insulated([4, 4, 4]);
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for error in [
            heat.with_time_step(wrong, 1e-3).unwrap_err(),
            heat.with_time_step(1.0, wrong).unwrap_err(),
        ] {
            let refused = matches!(
                error,
                Error::InvalidParameter { .. } | Error::NonFinite { .. }
            );
            assert!(refused, "{error}");
        }
    }
    let tiny = Grid3::new(Shape3::cube(4), [1e-170; 3]).unwrap();
    let error = Heat3d::new(tiny).with_time_step(1.0, 1.0).unwrap_err();
    assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");

    let limit = heat.longest_step(2.0);
    assert!((limit - 1.0 / (2.0 * 2.0 * 3.0 * 16.0)).abs() < 1e-15);
    assert!(heat.with_time_step(2.0, limit).is_ok());
    let error = heat.with_time_step(2.0, limit * 1.000_001).unwrap_err();
    assert!(matches!(error, Error::Unstable { .. }), "{error}");

    let other = Field3::filled(Shape3::new(2, 4, 8), 0.0_f32).unwrap();
    let cold = Field3::filled(Shape3::cube(4), 0.0_f32).unwrap();
    for error in [
        heat.start(&Device::cpu(), &other).unwrap_err(),
        heat.start_heated(&Device::cpu(), &other, &cold)
            .unwrap_err(),
        heat.start_heated(&Device::cpu(), &cold, &other)
            .unwrap_err(),
        heat.heating(&other).unwrap_err(),
    ] {
        assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
    }
    // The table's costs are the stencils'.
    let cost = |name| {
        registry::entry(name)
            .unwrap()
            .cost(&Problem::volume(4, 4, 4))
    };
    assert_eq!(cost("heat3d_step_f64"), heat.cost::<f64>().unwrap());
    let heated = heat.heated::<f32>().unwrap().cost();
    assert_eq!(cost("heat3d_heated_f32"), heated);
}

#[test]
fn what_kernels_cannot_count_is_refused() {
    let most = 1 << 30;
    for (nx, ny, fits) in [
        (most, 1, true),
        (most + 1, 1, false),
        (1 << 16, 1 << 15, false),
    ] {
        let grid = Grid3::new(Shape3::new(nx, ny, 1), [1.0; 3]).unwrap();
        let planned = Heat3d::new(grid).plan::<f32>(&Device::emulator());
        let refused = matches!(planned, Err(Error::IndexOverflow { .. }));
        assert_eq!(refused, !fits, "{nx} × {ny}");
        for name in ["heat3d_step_f32", "heat3d_step_f64"] {
            let geometry = registry::entry(name)
                .unwrap()
                .geometry(&Problem::volume(nx, ny, 1));
            assert_eq!(geometry.is_ok(), fits, "{name}: {geometry:?}");
        }
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn whatever_is_given_is_an_error_or_a_step(
        diffusivity in awkward(),
        time_step in awkward(),
        modes in [0..9_usize, 0..9, 0..9],
        nx in 1..5_usize,
    ) {
        let heat = insulated([nx, 3, 2]);
        let initial = problem::mode::<f64>(&heat, modes).unwrap();
        prop_assert!(initial.as_slice().iter().all(|u| u.abs() <= 1.0));
        match heat.with_time_step(diffusivity, time_step) {
            Ok(heat) => {
                prop_assert!(time_step > 0.0 && time_step <= heat.longest_step(diffusivity));
                let after = heat.steps_of(&Device::cpu(), &initial, 1).unwrap();
                prop_assert!(after.as_slice().iter().all(|u| u.abs() <= 1.0 + 1e-14));
                let other = Field3::filled(Shape3::cube(3), 0.0_f64).unwrap();
                prop_assert!(heat.start(&Device::cpu(), &other).is_err());
                let heating = heat.heating(&initial).unwrap();
                let device = Device::cpu();
                let [old, heating, cut] = [initial.as_slice(), &heating, &heating[1..]]
                    .map(|values| device.upload(values).unwrap());
                let mut new = device.zeros(old.len()).unwrap();
                let plan = heat.plan_heated(&device).unwrap();
                prop_assert!(plan.step([&old, &cut], [&mut new]).is_err());
                plan.step([&old, &heating], [&mut new]).unwrap();
                let most = 1.0 + heat.time_step().unwrap() + 1e-14;
                prop_assert!(new.to_vec().unwrap().iter().all(|u| u.abs() <= most));
            }
            Err(Error::Unstable { limit, .. }) => prop_assert!(time_step > limit),
            Err(_) => {
                let right = |it: f64| it.is_finite() && it > 0.0;
                let has_limit = heat.longest_step(diffusivity).is_normal();
                prop_assert!(!(right(diffusivity) && right(time_step) && has_limit));
            }
        }
    }
}
