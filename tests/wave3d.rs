//! wave3d: waves on all devices, against what is known exactly.

use halo_gpu::wave3d::{Kernels, Wave3d, problem};
use halo_gpu::{Axis, Boundary, Device, Error, Field3, Grid3, Shape3};
use halo_tests::property::{awkward, cases, device};
use halo_tests::{assert_same_bits, devices};
use proptest::prelude::*;

const ORDERS: [u32; 4] = [2, 4, 6, 8];

fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    // NaN wins.
    differences.fold(0.0, |most, it| if it <= most { most } else { it })
}

fn multiple(field: &Field3<f64>, factor: f64) -> Field3<f64> {
    let values = field.as_slice().iter().map(|u| u * factor).collect();
    Field3::from_vec(field.shape(), values).unwrap()
}

#[test]
fn a_standing_wave_has_the_frequency_of_its_scheme() {
    let shape = Shape3::new(16, 9, 10);
    let grid = Grid3::new(shape, [0.5, 1.0, 0.8]).unwrap();
    let (c, modes) = (1.5, [2, 1, 3]);
    let velocity = Field3::filled(shape, c).unwrap();
    let mode = problem::periodic_mode::<f64>(shape, modes).unwrap();
    for device in devices() {
        for order in ORDERS {
            let wave = Wave3d::new(grid, 0.12)
                .unwrap()
                .with_accuracy(order)
                .unwrap();
            let angle = problem::angle(&wave, modes, c).unwrap();
            let mut sound = wave.start(&device, &velocity, &mode).unwrap();
            for steps in [0.0_f64, 1.0, 9.0] {
                while sound.time() < (steps - 0.5) * 0.12 {
                    sound.steps(1).unwrap();
                }
                let exact = multiple(&mode, (steps * angle).cos());
                let error = difference(sound.field().unwrap().as_slice(), exact.as_slice());
                assert!(error < 1e-12, "order {order}, {steps} steps: {error}");
                let exact = multiple(&mode, ((steps - 1.0) * angle).cos());
                let past = sound.past().to_vec().unwrap();
                assert!(difference(&past, exact.as_slice()) < 1e-12);
            }
        }
    }
}

/// The error after a sixteenth of a time unit against the equation, on `n` points of a period
/// of 1: the step goes with h to the power of half the order.
fn error_of(order: u32, n: usize) -> f64 {
    let shape = Shape3::new(n, 1, n);
    let grid = Grid3::new(shape, [1.0 / n as f64; 3]).unwrap();
    let steps = 2 * (n / 8).pow(order / 2) * 4;
    let step = 1.0 / 16.0 / steps as f64;
    let wave = Wave3d::new(grid, step)
        .unwrap()
        .with_accuracy(order)
        .unwrap();
    let modes = [1, 0, 1];
    let velocity = Field3::filled(shape, 1.0).unwrap();
    let mode = problem::periodic_mode::<f64>(shape, modes).unwrap();
    let angle = problem::exact_angle(&wave, modes, 1.0);
    let past = multiple(&mode, angle.cos());
    let mut sound = wave
        .start_from(&Device::cpu(), &velocity, &mode, &past)
        .unwrap();
    sound.steps(steps).unwrap();
    let exact = multiple(&mode, (steps as f64 * angle).cos());
    difference(sound.field().unwrap().as_slice(), exact.as_slice())
}

#[test]
fn each_order_converges_as_it_says() {
    for order in ORDERS {
        let (coarse, fine) = (error_of(order, 8), error_of(order, 16));
        let measured = (coarse / fine).log2();
        println!("wave3d: order {order} measured as {measured:.3}");
        let expected = f64::from(order);
        assert!(
            (measured - expected).abs() < 0.4,
            "{order}: {measured}, {coarse} {fine}"
        );
    }
}

/// The energy of a leapfrog in space with a velocity that varies:
/// Σ ((u⁺ - u) / (c Δt))² - u⁺ L u, which steps keep where L is symmetric.
fn energy(wave: &Wave3d, velocity: &Field3<f64>, now: &[f64], past: &[f64]) -> f64 {
    let Shape3 { nx, ny, nz } = velocity.shape();
    let weights = halo_gpu::finite_difference::Weights::central(2, wave.accuracy()).unwrap();
    let extents = [nx, ny, nz];
    let mut sum = 0.0;
    for (here, (now, c)) in now.iter().zip(velocity.as_slice()).enumerate() {
        let place = [here % nx, here / nx % ny, here / (nx * ny)];
        let mut laplacian = 0.0;
        for axis in 0..3 {
            for (m, w) in weights.offsets().zip(weights.values()) {
                let mut there = place;
                let n = extents[axis] as i32;
                there[axis] = (place[axis] as i32 + m).rem_euclid(n) as usize;
                let value = past[(there[2] * ny + there[1]) * nx + there[0]];
                laplacian += w * value / wave.grid().spacing(Axis::ALL[axis]).powi(2);
            }
        }
        sum += ((now - past[here]) / (c * wave.time_step())).powi(2) - now * laplacian;
    }
    sum
}

#[test]
fn energy_is_kept_where_the_velocity_varies() {
    let shape = Shape3::new(12, 10, 9);
    let grid = Grid3::new(shape, [1.0, 1.1, 0.9]).unwrap();
    let velocity = Field3::from_fn(shape, |i, j, k| {
        1.0 + 0.1 * ((i + 2 * j + 3 * k) % 7) as f64
    })
    .unwrap();
    let pulse = Field3::from_fn(shape, |i, j, k| {
        let square = |p: usize| (p as f64 - 4.5).powi(2);
        (-(square(i) + square(j) + square(k)) / 3.0).exp()
    })
    .unwrap();
    for order in ORDERS {
        let wave = Wave3d::new(grid, 0.2)
            .unwrap()
            .with_accuracy(order)
            .unwrap();
        let mut sound = wave.start(&Device::cpu(), &velocity, &pulse).unwrap();
        let energy = |sound: &halo_gpu::wave3d::Sound<f64>| {
            let (now, past) = (sound.buffer().to_vec(), sound.past().to_vec());
            energy(&wave, &velocity, &now.unwrap(), &past.unwrap())
        };
        let before = energy(&sound);
        sound.steps(150).unwrap();
        let after = energy(&sound);
        assert!(
            before > 1.0 && (after / before - 1.0).abs() < 1e-11,
            "{before} {after}"
        );
    }
}

#[test]
fn an_absorbing_layer_lets_waves_go() {
    let shape = Shape3::cube(40);
    let grid = Grid3::new(shape, [1.0; 3]).unwrap();
    let grid = grid.with_boundaries(Boundary::Dirichlet(0.0)).unwrap();
    let velocity = Field3::filled(shape, 1.0).unwrap();
    let pulse = Field3::from_fn(shape, |i, j, k| {
        let square = |p: usize| (p as f64 - 19.5).powi(2);
        (-(square(i) + square(j) + square(k)) / 8.0).exp()
    })
    .unwrap();
    let wave = Wave3d::new(grid, 0.4).unwrap().with_accuracy(4).unwrap();
    let left = |wave: &Wave3d| {
        let mut sound = wave.start(&Device::cpu(), &velocity, &pulse).unwrap();
        sound.steps(140).unwrap();
        let squares = sound.field().unwrap().into_vec();
        squares.iter().map(|u| u * u).sum::<f64>()
    };
    let (closed, open) = (
        left(&wave),
        left(&wave.with_absorbing_layer(12, 1e-4).unwrap()),
    );
    println!("wave3d: of the squares {:.1e} are left", open / closed);
    assert!(open < 1e-3 * closed, "{open} {closed}");
}

fn same_bits<T: Kernels + halo_tests::Bits>() {
    let shape = Shape3::new(21, 10, 12);
    let grid = Grid3::new(shape, [1.0, 0.9, 1.2]).unwrap();
    let grid = grid
        .with_ends(Axis::X, [Boundary::Dirichlet(0.0), Boundary::OneSided])
        .unwrap()
        .with_boundary(Axis::Z, Boundary::Neumann)
        .unwrap();
    let velocity = Field3::from_fn(shape, |i, j, k| {
        T::nearest(1.0 + ((i + j * k) % 5) as f64 / 8.0)
    })
    .unwrap();
    let start =
        Field3::from_fn(shape, |i, j, k| T::nearest(((i * j + 3 * k) % 11) as f64)).unwrap();
    for order in ORDERS {
        let wave = Wave3d::new(grid, 0.2)
            .unwrap()
            .with_accuracy(order)
            .unwrap();
        for wave in [wave, wave.with_absorbing_layer(3, 0.01).unwrap()] {
            let mut expected = None;
            for device in [Device::cpu(), Device::emulator()] {
                let mut sound = wave.start(&device, &velocity, &start).unwrap();
                sound.steps(3).unwrap();
                let field = sound.field().unwrap().into_vec();
                let expected = expected.get_or_insert_with(|| field.clone());
                assert_same_bits(&field, expected, |at| format!("{at} on {}", device.name()));
            }
            assert!(wave.cost::<T>().bytes > 0 && wave.cost::<T>().flops > 0);
        }
    }
}

#[test]
fn all_devices_give_the_same_bits() {
    same_bits::<f32>();
    same_bits::<f64>();
}

#[test]
fn the_longest_step_is_stable_and_a_longer_one_is_not() {
    let shape = Shape3::new(8, 6, 10);
    let grid = Grid3::new(shape, [1.0, 0.7, 1.3]).unwrap();
    let velocity = Field3::filled(shape, 2.0).unwrap();
    // It changes sign from point to point.
    let mode = problem::periodic_mode::<f64>(shape, [4, 3, 5]).unwrap();
    for order in ORDERS {
        let wave = Wave3d::new(grid, 1.0)
            .unwrap()
            .with_accuracy(order)
            .unwrap();
        let limit = wave.longest_step(2.0).unwrap();
        let at = |step: f64| {
            Wave3d::new(grid, step)
                .unwrap()
                .with_accuracy(order)
                .unwrap()
        };
        // At the limit the angle is π.
        let angle = problem::angle(&at(limit * (1.0 - 1e-12)), [4, 3, 5], 2.0).unwrap();
        assert!((angle - std::f64::consts::PI).abs() < 1e-5, "{angle}");
        let mut sound = at(limit * 0.999)
            .start(&Device::cpu(), &velocity, &mode)
            .unwrap();
        sound.steps(500).unwrap();
        let largest = sound.field().unwrap().into_vec();
        assert!(largest.iter().all(|u| u.abs() < 2.0));
        let refused = at(limit * 1.001).start(&Device::cpu(), &velocity, &mode);
        assert!(matches!(refused, Err(Error::Unstable { .. })));
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn what_cannot_be_is_refused(
        device in device(),
        step in awkward(),
        accuracy in 0..10_u32,
        layer in 0..5_usize,
        reflection in awkward(),
        c in awkward(),
        nx in 5..8_usize,
    ) {
        let shape = Shape3::new(6, 7, 9);
        let grid = Grid3::new(shape, [1.0; 3]).unwrap();
        let wave = Wave3d::new(grid, step);
        prop_assert_eq!(wave.is_ok(), step > 0.0 && step.is_finite());

        let wave = Wave3d::new(grid, 0.1).unwrap();
        let ordered = wave.with_accuracy(accuracy);
        prop_assert_eq!(ordered.is_ok(), ORDERS.contains(&accuracy));
        prop_assert!(wave.with_absorbing_layer(1, 0.5).is_err(), "periodic all round");
        let closed = grid.with_boundary(Axis::X, Boundary::Neumann).unwrap();
        let outcome = Wave3d::new(closed, 0.1).unwrap().with_absorbing_layer(layer, reflection);
        let fine = (1..=3).contains(&layer) && reflection > 0.0 && reflection < 1.0;
        prop_assert_eq!(outcome.is_ok(), fine);

        let limit = wave.longest_step(c);
        prop_assert_eq!(limit.is_ok(), c > 0.0 && c.is_finite());
        let velocity = Field3::from_fn(shape, |i, _, _| if i == 3 { c } else { 1.0 }).unwrap();
        let field = Field3::filled(Shape3::new(nx, 7, 9), 0.5).unwrap();
        let outcome = wave.start(&device, &velocity, &field);
        let by_hand = wave.start_from(&device, &velocity, &field, &field);
        prop_assert_eq!(outcome.is_ok(), by_hand.is_ok());
        match outcome {
            Ok(mut sound) => {
                prop_assert!(nx == 6 && c > 0.0);
                sound.steps(1).unwrap();
                sound.buffer_mut().fill(0.0).unwrap();
                prop_assert!(sound.field().unwrap().into_vec().iter().all(|u| *u == 0.0));
            }
            Err(Error::ShapeMismatch { .. }) => prop_assert!(nx != 6),
            Err(Error::InvalidElement { index: 3, .. }) => {
                prop_assert!(!(c > 0.0 && c.is_finite()));
            }
            Err(Error::Unstable { .. }) => prop_assert!(c > 1.0),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
        prop_assert!(problem::angle(&wave, [1, 1, 1], 1.0).is_ok());
    }
}
