//! heat3d: steps in time and iterations on all devices, against what is known exactly.

use halo_gpu::heat3d::{Heat3d, Kernels, problem};
use halo_gpu::{Axis, Boundary, Device, Error, Field3, Grid3, Shape3};
use halo_tests::property::{awkward, cases, device};
use halo_tests::{assert_same_bits, devices};
use proptest::prelude::*;
use std::f64::consts::PI;

/// The largest difference of two fields.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    // NaN wins.
    differences.fold(0.0, |most, it| if it <= most { most } else { it })
}

#[test]
fn a_periodic_mode_decays_by_what_theory_says() {
    let shape = Shape3::new(12, 9, 10);
    let grid = Grid3::new(shape, [0.5, 1.0, 2.0]).unwrap();
    let (alpha, step) = (0.3, 0.2);
    let heat = Heat3d::new(grid)
        .unwrap()
        .with_time_step(alpha, step)
        .unwrap();
    let ratios = Axis::ALL.map(|axis| alpha * step / grid.spacing(axis).powi(2));
    for device in devices() {
        for modes in [[0, 0, 0], [1, 0, 0], [1, 2, 3], [6, 4, 5]] {
            let mode = problem::periodic_mode::<f64>(shape, modes).unwrap();
            let mut run = heat.start(&device, &mode).unwrap();
            run.steps(15).unwrap();
            let factor = problem::amplification(shape, modes, ratios).powi(15);
            let exact: Vec<f64> = mode.as_slice().iter().map(|u| u * factor).collect();
            let error = difference(run.field().unwrap().as_slice(), &exact);
            assert!(error < 1e-14 * 15.0, "{modes:?}: {error}");
            assert!((run.time() - 3.0).abs() < 1e-12);
        }
    }
}

/// The error at the time 0.05 against exp(-α |k|² t), on `n` points of a period of 1.
fn error_in_time(n: usize) -> f64 {
    let shape = Shape3::cube(n);
    let grid = Grid3::new(shape, [1.0 / n as f64; 3]).unwrap();
    // Δt goes with h².
    let steps = n * n / 8;
    let heat = Heat3d::new(grid).unwrap();
    let heat = heat.with_time_step(0.1, 0.05 / steps as f64).unwrap();
    let modes = [1, 0, 1];
    let mode = problem::periodic_mode::<f64>(shape, modes).unwrap();
    let mut run = heat.start(&Device::cpu(), &mode).unwrap();
    run.steps(steps).unwrap();
    let decay = (-0.1 * 2.0 * (2.0 * PI).powi(2) * 0.05).exp();
    let exact: Vec<f64> = mode.as_slice().iter().map(|u| u * decay).collect();
    difference(run.field().unwrap().as_slice(), &exact)
}

#[test]
fn steps_converge_with_the_second_order() {
    let errors = [8, 16, 32].map(error_in_time);
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        println!("heat3d: order {order:.3}");
        assert!((order - 2.0).abs() < 0.15, "{order}: {errors:?}");
    }
}

#[test]
fn insulated_blocks_lose_no_heat() {
    let shape = Shape3::new(13, 7, 9);
    let grid = Grid3::new(shape, [1.0; 3]).unwrap();
    let grid = grid.with_boundaries(Boundary::NeumannHalfway).unwrap();
    let heat = Heat3d::new(grid)
        .unwrap()
        .with_time_step(1.0, 1.0 / 6.0)
        .unwrap();
    let hot = Field3::from_fn(shape, |i, j, k| (i * 7 % 5 + j * 3 % 4 + k) as f64).unwrap();
    let sum = |field: &Field3<f64>| field.as_slice().iter().sum::<f64>();
    for device in devices() {
        let mut run = heat.start(&device, &hot).unwrap();
        run.steps(25).unwrap();
        let now = run.field().unwrap();
        assert!((sum(&now) / sum(&hot) - 1.0).abs() < 1e-13);
        assert!(
            difference(now.as_slice(), hot.as_slice()) > 0.5,
            "it has moved"
        );
    }
}

#[test]
fn iterations_settle_where_poissons_equation_holds() {
    // -∇²u = f between walls at 0, of which sines are eigenvectors.
    let shape = Shape3::new(7, 9, 6);
    let spacing = [0.3, 0.2, 0.4];
    let grid = Grid3::new(shape, spacing).unwrap();
    let grid = grid.with_boundaries(Boundary::Dirichlet(0.0)).unwrap();
    let extents = [7, 9, 6];
    let angle = |axis: usize, n: usize| PI * n as f64 / (extents[axis] + 1) as f64;
    let exact = Field3::from_fn(shape, |i, j, k| {
        angle(0, i + 1).sin() * angle(1, 2 * (j + 1)).sin() * angle(2, k + 1).sin()
    })
    .unwrap();
    let eigenvalue: f64 = [(0, 1), (1, 2), (2, 1)]
        .map(|(axis, mode)| (2.0 * (angle(axis, mode) / 2.0).sin() / spacing[axis]).powi(2))
        .iter()
        .sum();
    let source = exact.as_slice().iter().map(|u| u * eigenvalue).collect();
    let source = Field3::from_vec(shape, source).unwrap();
    let cold = Field3::filled(shape, 0.0).unwrap();
    for device in [Device::cpu(), Device::emulator()] {
        let heat = Heat3d::new(grid).unwrap();
        let mut run = heat.start_with_source(&device, &cold, &source).unwrap();
        let settled = run.settle(1e-13, 20, 2000).unwrap();
        assert!(settled.converged, "{settled:?}");
        assert_eq!(settled.steps as u64, run.steps_taken());
        let error = difference(run.field().unwrap().as_slice(), exact.as_slice());
        assert!(error < 1e-11, "{error}");
        assert_eq!(run.time(), 0.0);
    }
}

/// A few steps in a type, on all devices with the same bits.
fn same_bits<T: Kernels + halo_tests::Bits>() {
    let shape = Shape3::new(21, 10, 8);
    let grid = Grid3::new(shape, [1.0; 3]).unwrap();
    let grid = grid
        .with_ends(Axis::X, [Boundary::Dirichlet(2.0), Boundary::OneSided])
        .unwrap()
        .with_boundary(Axis::Z, Boundary::Neumann)
        .unwrap();
    let start =
        Field3::from_fn(shape, |i, j, k| T::nearest(((i * j + 3 * k) % 11) as f64)).unwrap();
    for heat in [
        Heat3d::new(grid).unwrap(),
        Heat3d::new(grid).unwrap().with_time_step(1.0, 0.1).unwrap(),
    ] {
        let mut expected = None;
        for device in devices() {
            let mut run = heat.start(&device, &start).unwrap();
            run.steps(4).unwrap();
            let field = run.field().unwrap().into_vec();
            let expected = expected.get_or_insert_with(|| field.clone());
            assert_same_bits(&field, expected, |at| format!("{at} on {}", device.name()));
        }
        assert!(heat.cost::<T>().bytes > 0 && heat.cost::<T>().flops > 0);
    }
}

#[test]
fn all_devices_give_the_same_bits() {
    same_bits::<f32>();
    same_bits::<f64>();
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn steps_that_are_too_long_and_what_is_no_number_is_refused(
        alpha in awkward(),
        part in awkward(),
        spacing in 0.1..10.0,
    ) {
        let heat = Heat3d::new(Grid3::new(Shape3::cube(4), [spacing; 3]).unwrap()).unwrap();
        match heat.longest_step(alpha) {
            Ok(limit) => {
                let exact = spacing * spacing / (6.0 * alpha);
                prop_assert!((limit / exact - 1.0).abs() < 1e-12);
                let step = limit * part;
                match heat.with_time_step(alpha, step) {
                    Ok(fine) => {
                        prop_assert!(step > 0.0 && step <= limit);
                        prop_assert_eq!(fine.time_step(), Some(step));
                    }
                    Err(Error::Unstable { .. }) => prop_assert!(step > limit && step.is_finite()),
                    Err(Error::NonFinite { .. }) => prop_assert!(!step.is_finite()),
                    Err(Error::InvalidParameter { .. }) => prop_assert!(step <= 0.0),
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                }
            }
            Err(Error::NonFinite { .. }) => prop_assert!(!alpha.is_finite()),
            Err(Error::InvalidParameter { .. }) => prop_assert!(
                alpha <= 0.0 || !(spacing * spacing / (6.0 * alpha)).is_normal()
            ),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }

    #[test]
    fn fields_that_do_not_fit_are_refused(
        device in device(),
        nx in 1..4_usize,
        tolerance in awkward(),
        every in 0..2_usize,
    ) {
        let shape = Shape3::new(2, 3, 2);
        let heat = Heat3d::new(Grid3::new(shape, [1.0; 3]).unwrap()).unwrap();
        let field = Field3::filled(Shape3::new(nx, 3, 2), 1.0_f32).unwrap();
        let fits = Field3::filled(shape, 1.0_f32).unwrap();
        for outcome in [
            heat.start(&device, &field),
            heat.start_with_source(&device, &fits, &field),
        ] {
            match outcome {
                Ok(mut run) => {
                    prop_assert_eq!(nx, 2);
                    run.steps(1).unwrap();
                    let settled = run.settle(tolerance, every, 3);
                    prop_assert_eq!(settled.is_ok(), tolerance >= 0.0 && every > 0);
                    run.buffer_mut().fill(2.0).unwrap();
                    prop_assert_eq!(run.field().unwrap().into_vec(), vec![2.0; 12]);
                }
                Err(Error::ShapeMismatch { .. }) => prop_assert!(nx != 2),
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            }
        }
        let steps = heat.with_time_step(1.0, 0.1).unwrap();
        let refused = steps.start_with_source(&device, &fits, &fits);
        let is_refused = matches!(refused, Err(Error::InvalidParameter { .. }));
        prop_assert!(is_refused);
    }
}
