//! Tests potentials, energies, mixed precision and discs; the conservation laws of gravity; and the
//! errors for invalid bodies and parameters.

use super::{body, flat, norm, random_bodies};
use halo_gpu::Scalar;
use halo_gpu::nbody::Range as _;
use halo_gpu::nbody::problem::{Cluster, Disc, Reference, potential_energy};
use halo_gpu::nbody::{Body, Gravity, MIXED_KERNEL, kick_drift, potential_kernel};
use halo_gpu::{Device, DeviceKind, Error};
use halo_tests::property::{self, device};
use halo_tests::{Bits, assert_same_bits, devices, for_each, ptx, rng, test_cases};
use proptest::prelude::*;

/// For each body its potential by definition, and the sum of the sizes of its terms.
fn potentials_by_definition<T: Scalar>(softening: f64, bodies: &[Body<T>]) -> Vec<(f64, f64)> {
    let place = |body: &Body<T>| -> [f64; 3] { body.position().map(Into::into) };
    let potential = |i: usize| {
        let (mut sum, mut size) = (0.0, 0.0);
        for (j, other) in bodies.iter().enumerate() {
            if i != j {
                let (a, b) = (place(&bodies[i]), place(other));
                let distance = norm([a[0] - b[0], a[1] - b[1], a[2] - b[2]]);
                let mass: f64 = other.mass.into();
                let term = -mass / distance.hypot(softening);
                sum += term;
                size += term.abs();
            }
        }
        (sum, size)
    };
    (0..bodies.len()).map(potential).collect()
}

#[test]
fn potentials_and_their_energy_are_as_accurate_as_promised() {
    fn check<T: Scalar + Bits>(device: &Device, gravity: &Gravity, bodies: &[Body<T>]) {
        let expected = potentials_by_definition(gravity.softening(), bodies);
        let given = gravity.potentials_of(device, bodies).unwrap();
        let roundoff = match device.kind() {
            DeviceKind::Cpu => f64::UNIT_ROUNDOFF,
            _ => T::UNIT_ROUNDOFF,
        };
        // And the reference's, a sum in f64 whose terms have some roundings themselves.
        let n = bodies.len() as f64;
        let relative =
            (14.0 + f64::from(gravity.block())) * roundoff + (n + 10.0) * f64::UNIT_ROUNDOFF;
        for (i, (given, (expected, size))) in given.iter().zip(&expected).enumerate() {
            let error = (given - expected).abs();
            assert!(error <= relative * size, "{} of {n}: off by {error:e}", i);
        }
        let shares = bodies
            .iter()
            .zip(&expected)
            .map(|(body, (potential, size))| {
                let mass: f64 = body.mass.into();
                (0.5 * mass * potential, 0.5 * mass.abs() * size)
            });
        let (energy, size) = shares.fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
        let on_device = device.upload(bodies).unwrap();
        let given = gravity
            .plan(device, bodies.len())
            .unwrap()
            .potential_energy(&on_device)
            .unwrap();
        let bound = (relative + (n + 10.0) * f64::UNIT_ROUNDOFF) * size;
        assert!((given - energy).abs() <= bound, "{given} of {energy}");
        assert!((given - potential_energy(gravity, bodies).unwrap()).abs() <= bound);
        assert_same_bits(&flat(&on_device.to_vec().unwrap()), &flat(bodies), |i| {
            format!("number {i}, which was written")
        });
    }
    let mut rng = rng();
    for_each("devices", devices(), |device| {
        for (n, block, softening) in [
            (1, 32, 1.0),
            (2, 64, 1e-6),
            (31, 32, 0.1),
            (129, 128, 1e-3),
            (200, 64, 0.01),
        ] {
            let gravity = Gravity::new(softening).unwrap().with_block(block).unwrap();
            check::<f32>(&device, &gravity, &random_bodies(&mut rng, n));
            check::<f64>(&device, &gravity, &random_bodies(&mut rng, n));
        }
    });
}

#[test]
fn a_body_has_no_potential_of_its_own() {
    for_each("devices", devices(), |device| {
        // So small a softening that subtracting m / ε in the end would leave nothing.
        let gravity = Gravity::new(1e-9).unwrap();
        let alone = [body::<f32>([0.5, 0.5, 0.5], 3.0)];
        assert_eq!(gravity.potentials_of(&device, &alone).unwrap(), [0.0]);
        let two = [body::<f32>([0.0; 3], 3.0), body([2.0, 0.0, 0.0], 4.0)];
        assert_eq!(gravity.potentials_of(&device, &two).unwrap(), [-2.0, -1.5]);
        // Another one at the same place does count.
        let gravity = Gravity::new(0.5).unwrap();
        let together = [body::<f64>([1.0; 3], 3.0), body([1.0; 3], 4.0)];
        assert_eq!(
            gravity.potentials_of(&device, &together).unwrap(),
            [-8.0, -6.0]
        );
    });
}

#[test]
fn mixed_precision_is_more_accurate_where_there_are_many_bodies() {
    let gravity = Gravity::new(0.05).unwrap();
    for_each("devices", devices(), |device| {
        let n = if device.kind() == DeviceKind::Emulator {
            700
        } else {
            test_cases::either(4000, 8000)
        };
        let bodies = Cluster::<f32>::plummer(n, 5).unwrap().bodies;
        let reference = Reference::sampled(&gravity, &bodies, 500).unwrap();
        let on_device = device.upload(&bodies).unwrap();
        let mut accelerations = device.alloc_filled(n, [f64::NAN; 3]).unwrap();
        let mut plan = gravity.plan(&device, n).unwrap();
        plan.accelerations_mixed(&on_device, &mut accelerations)
            .unwrap();
        let mixed = accelerations.to_vec().unwrap();
        let stride = n / 500;
        let bound = (21.0 + 128.0) * f32::UNIT_ROUNDOFF * 1.01;
        for (k, (exact, size)) in reference
            .accelerations()
            .iter()
            .zip(reference.sizes())
            .enumerate()
        {
            let a = mixed[k * stride];
            let error = norm([a[0] - exact[0], a[1] - exact[1], a[2] - exact[2]]);
            assert!(
                error <= bound * size,
                "body {}: off by {error:e} of {size:e}",
                k * stride
            );
        }
        let errors = reference.errors(&mixed).unwrap();
        if n > 1000 {
            let mut plain = vec![[0.0_f32; 3]; n];
            gravity
                .accelerations_by(halo_gpu::nbody::Port::Aos, &bodies, &mut plain)
                .unwrap();
            let in_f32 = reference.errors(&plain).unwrap();
            assert!(
                errors.rms < 0.5 * in_f32.rms,
                "{errors:?} against {in_f32:?}"
            );
        }
    });
}

#[test]
fn a_cold_disc_turns_in_balance() {
    let gravity = Gravity::new(0.02).unwrap();
    let disc = Disc {
        bodies: 400,
        center: 1.0,
        mass: 0.05,
        inner: 0.5,
        outer: 2.0,
    };
    let galaxy = Cluster::<f64>::cold_disc(&gravity, &disc).unwrap();
    assert_eq!((galaxy.bodies.len(), galaxy.velocities.len()), (401, 401));
    assert_eq!(
        (galaxy.bodies[0], galaxy.velocities[0]),
        (body([0.0; 3], 1.0), [0.0; 3])
    );
    let total: f64 = galaxy.bodies[1..].iter().map(|body| body.mass).sum();
    assert!((total - 0.05).abs() < 1e-15);
    let accelerations = gravity
        .accelerations_of(&Device::cpu(), &galaxy.bodies)
        .unwrap();
    let mut inner_half = 0;
    for (i, pull) in accelerations.iter().enumerate().skip(1) {
        let ([x, y, z], [u, v, w]) = (galaxy.bodies[i].position(), galaxy.velocities[i]);
        let radius = x.hypot(y);
        assert!(radius > 0.5 && radius < 2.0 && z == 0.0 && w == 0.0);
        inner_half += usize::from(radius * radius < (0.25 + 4.0) / 2.0);
        // Across, counterclockwise, and as fast as the pull inwards needs.
        assert!((u * x + v * y).abs() < 1e-14 && x * v - y * u > 0.0);
        let inwards = -(pull[0] * x + pull[1] * y) / radius;
        assert!((u.hypot(v).powi(2) / radius - inwards).abs() < 1e-12);
    }
    assert_eq!(inner_half, 200, "as many bodies on as large an area");

    // The galaxy keeps its shape for one turn of its middle, 2 π √1.25³, or for a quarter of a turn
    // if only some cases run.
    let step = 0.02;
    let mut leapfrog = gravity
        .start(&Device::cpu(), &galaxy.bodies, &galaxy.velocities, step)
        .unwrap();
    leapfrog.advance(test_cases::either(110, 440)).unwrap();
    let kept = leapfrog.bodies().unwrap().into_iter().filter(|body| {
        let radius = body.x.hypot(body.y);
        radius > 0.35 && radius < 2.3
    });
    assert!(kept.count() >= 380);

    let moved = galaxy
        .clone()
        .turned(0.5)
        .moved([1.0, 2.0, 3.0], [0.1, 0.2, 0.3]);
    let both = galaxy.clone().and(moved.clone());
    assert_eq!(both.bodies.len(), 802);
    assert_eq!(both.bodies[401].position(), [1.0, 2.0, 3.0]);
    assert_eq!(both.velocities[401], [0.1, 0.2, 0.3]);
    let energy = |cluster: &Cluster<f64>| potential_energy(&gravity, &cluster.bodies).unwrap();
    assert!((energy(&moved) / energy(&galaxy) - 1.0).abs() < 1e-12);
}

#[test]
fn ptx_facts_of_energies() {
    let names = [
        "nbody_potential_f32",
        "nbody_potential_f64",
        "nbody_mixed_f32",
    ];
    assert_eq!(
        [
            potential_kernel::<f32>(),
            potential_kernel::<f64>(),
            MIXED_KERNEL
        ],
        names
    );
    let kernels = ptx::TARGETS
        .into_iter()
        .flat_map(|target| names.map(|name| (target, name)));
    for_each("ptx", kernels, |(target, name)| {
        let body = ptx::entry(ptx::text(target), name);
        let count = |opcode| ptx::count(&body, opcode);
        assert_eq!(count("bar.sync") + count("barrier.sync"), 2);
        assert_eq!(count("ld.local") + count("st.local"), 0, "local memory");
        if name == "nbody_mixed_f32" {
            assert_eq!(
                count("add.rn.f64") + count("add.f64"),
                3,
                "additions per tile"
            );
        }
    });
}

/// Bodies in a cube, of masses above zero.
fn some_bodies() -> impl Strategy<Value = Vec<Body<f64>>> {
    let number = || -2.0..2.0_f64;
    proptest::collection::vec((number(), number(), number(), 0.01..2.0_f64), 1..60).prop_map(
        |all| {
            all.into_iter()
                .map(|(x, y, z, mass)| body([x, y, z], mass))
                .collect()
        },
    )
}

/// How far two lots of vectors are apart, of the largest of them.
fn apart(a: &[[f64; 3]], b: &[[f64; 3]]) -> f64 {
    let largest = a.iter().map(|a| norm(*a)).fold(1e-300, f64::max);
    let differences = a
        .iter()
        .zip(b)
        .map(|(a, b)| norm([a[0] - b[0], a[1] - b[1], a[2] - b[2]]));
    differences.fold(0.0, f64::max) / largest
}

proptest! {
    #![proptest_config(property::cases(40))]

    #[test]
    fn gravity_keeps_what_it_must(
        bodies in some_bodies(),
        softening in 0.05..1.0_f64,
        turn in 0.0..6.0_f64,
        shift in (-4.0..4.0_f64, -4.0..4.0_f64, -4.0..4.0_f64),
        device in device(),
    ) {
        let gravity = Gravity::new(softening)?;
        let a = gravity.accelerations_of(&device, &bodies)?;
        let potentials = gravity.potentials_of(&device, &bodies)?;
        let at = |k: usize| a[k];

        // Momentum: Σ m a = 0.
        let size: f64 = bodies.iter().zip(&a).map(|(body, a)| body.mass * norm(*a)).sum();
        for axis in 0..3 {
            let total: f64 = bodies.iter().enumerate().map(|(k, body)| body.mass * at(k)[axis]).sum();
            prop_assert!(total.abs() <= 1e-12 * (size + 1.0));
        }

        // Elsewhere, and seen from another side, it is the same.
        let cluster = Cluster { bodies: bodies.clone(), velocities: a.clone() };
        let moved = cluster.clone().moved([shift.0, shift.1, shift.2], [0.0; 3]);
        prop_assert!(apart(&a, &gravity.accelerations_of(&device, &moved.bodies)?) < 1e-10);
        let turned = cluster.turned(turn);
        let there = gravity.accelerations_of(&device, &turned.bodies)?;
        // The velocities turned along with the bodies.
        prop_assert!(apart(&turned.velocities, &there) < 1e-10);
        let energy = potential_energy(&gravity, &bodies)?;
        for other in [&moved.bodies, &turned.bodies] {
            let same = gravity.potential_energy_of(&device, other)?;
            prop_assert!((same - energy).abs() <= 1e-11 * energy.abs() + 1e-300);
        }

        // In another order bodies have the same accelerations and potentials.
        let backwards: Vec<_> = bodies.iter().rev().copied().collect();
        let mut b = gravity.accelerations_of(&device, &backwards)?;
        b.reverse();
        prop_assert!(apart(&a, &b) < 1e-11);
        let mut other = gravity.potentials_of(&device, &backwards)?;
        other.reverse();
        for (x, y) in potentials.iter().zip(&other) {
            prop_assert!((x - y).abs() <= 1e-12 * x.abs());
        }
    }

    #[test]
    fn a_short_flight_keeps_energy_and_momentum(bodies in some_bodies(), device in device()) {
        let gravity = Gravity::new(0.5)?;
        let velocities = vec![[0.0, 0.1, 0.0]; bodies.len()];
        let mut leapfrog = gravity.start(&device, &bodies, &velocities, 1e-3)?;
        let before = leapfrog.energy()?;
        leapfrog.advance(10)?;
        let after = leapfrog.energy()?;
        let size = before.kinetic + before.potential.abs();
        prop_assert!((after.total() - before.total()).abs() <= 1e-4 * size);
        let momentum = |velocities: &[[f64; 3]], axis: usize| -> f64 {
            bodies.iter().zip(velocities).map(|(body, v)| body.mass * v[axis]).sum()
        };
        let now = leapfrog.velocities()?;
        for axis in 0..3 {
            let off = (momentum(&now, axis) - momentum(&velocities, axis)).abs();
            prop_assert!(off <= 1e-11 * (1.0 + size));
        }
    }

    #[test]
    fn bodies_of_any_bits_are_accepted_with_numbers_or_refused(
        numbers in proptest::collection::vec(
            prop_oneof![4 => (-10.0..10.0_f32).boxed(), 1 => proptest::num::f32::ANY.boxed()], 0..24,
        ),
        softening in prop_oneof![2 => (1e-3..10.0_f64).boxed(), 1 => proptest::num::f64::ANY.boxed()],
        device in device(),
    ) {
        let bodies: Vec<Body<f32>> = numbers
            .chunks_exact(4)
            .map(|c| Body { x: c[0], y: c[1], z: c[2], mass: c[3] })
            .collect();
        let gravity = match Gravity::new(softening) {
            Ok(gravity) => gravity,
            Err(Error::NonFinite { .. }) => {
                prop_assert!(!softening.is_finite());
                return Ok(());
            }
            Err(Error::InvalidParameter { .. }) => {
                prop_assert!(!(f64::SHORTEST..=f64::LONGEST).contains(&softening));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let checked = gravity.check(&bodies);
        let accelerations = gravity.accelerations_of(&device, &bodies);
        let potentials = gravity.potentials_of(&device, &bodies);
        match checked {
            Ok(()) => {
                prop_assert!(accelerations?.as_flattened().iter().all(|a| a.is_finite()));
                prop_assert!(potentials?.iter().all(|potential| !potential.is_nan()));
            }
            Err(error) => {
                let right = match &error {
                    Error::EmptyInput { .. } => bodies.is_empty(),
                    Error::InvalidParameter { .. } => {
                        !(f32::SHORTEST..=f32::LONGEST).contains(&softening)
                    }
                    Error::InvalidElement { index, given, .. } => {
                        *index < bodies.len() && (given.is_nan() || given.abs() > 10.0 || softening < 1e-3)
                    }
                    _ => false,
                };
                prop_assert!(right, "{}", error);
                prop_assert_eq!(accelerations.unwrap_err().to_string(), error.to_string());
                prop_assert_eq!(potentials.unwrap_err().to_string(), error.to_string());
            }
        }
    }

    #[test]
    fn buffers_of_any_length_and_place_are_taken_or_refused(
        n in 0..5_usize,
        lengths in (0..5_usize, 0..5_usize, 0..5_usize),
        away in any::<[bool; 3]>(),
        times in [proptest::num::f64::ANY, proptest::num::f64::ANY],
        device in device(),
    ) {
        let elsewhere = Device::emulator();
        let place = |away: bool| if away { &elsewhere } else { &device };
        let gravity = Gravity::new(0.5)?;
        let mut bodies = device.upload(&vec![body::<f32>([1.0; 3], 1.0); n])?;
        let mut potentials = place(away[0]).alloc_filled(lengths.0, 0.0_f64)?;
        let mut mixed = place(away[1]).alloc_filled(lengths.1, [0.0_f64; 3])?;
        let mut velocities = place(away[2]).alloc_filled(lengths.2, [0.0_f32; 3])?;
        let accelerations = device.alloc_filled(n, [0.0_f32; 3])?;
        let right = |outcome: &Result<(), Error>, len: usize, away: bool| match outcome {
            Ok(()) => n > 0 && len == n && !away,
            Err(Error::EmptyInput { .. }) => n == 0,
            Err(Error::LengthMismatch { .. }) => n > 0 && len != n,
            Err(Error::DeviceMismatch { .. }) => n > 0 && len == n && away,
            Err(_) => false,
        };
        let plan = || gravity.plan::<f32>(&device, n);
        let outcome = plan().and_then(|mut plan| plan.potentials(&bodies, &mut potentials));
        prop_assert!(right(&outcome, lengths.0, away[0]), "{:?}", outcome);
        let outcome = plan().and_then(|mut plan| plan.accelerations_mixed(&bodies, &mut mixed));
        prop_assert!(right(&outcome, lengths.1, away[1]), "{:?}", outcome);
        match kick_drift(&accelerations, times, &mut velocities, &mut bodies) {
            Err(Error::NonFinite { .. }) => {
                prop_assert!(n > 0 && lengths.2 == n && !away[2]);
                prop_assert!(times.iter().any(|time| !time.is_finite()));
            }
            outcome => prop_assert!(right(&outcome, lengths.2, away[2]), "{:?}", outcome),
        }
        match gravity.plan::<f32>(&device, lengths.0) {
            Ok(_) => prop_assert!(lengths.0 > 0),
            Err(Error::EmptyInput { .. }) => prop_assert!(lengths.0 == 0),
            Err(error) => return Err(error.into()),
        }
    }

    #[test]
    fn discs_are_made_or_refused(
        numbers in [prop_oneof![3 => (0.0..3.0_f64).boxed(), 1 => proptest::num::f64::ANY.boxed()], prop_oneof![3 => (0.0..3.0_f64).boxed(), 1 => proptest::num::f64::ANY.boxed()], prop_oneof![3 => (0.0..3.0_f64).boxed(), 1 => proptest::num::f64::ANY.boxed()], prop_oneof![3 => (0.0..3.0_f64).boxed(), 1 => proptest::num::f64::ANY.boxed()]],
        bodies in 0..40_usize,
    ) {
        let [center, mass, inner, outer] = numbers;
        let disc = Disc { bodies, center, mass, inner, outer };
        let possible = center > 0.0 && mass >= 0.0 && inner > 0.0 && outer > inner
            && numbers.iter().all(|number| number.is_finite());
        match Cluster::<f64>::cold_disc(&Gravity::new(0.1)?, &disc) {
            Ok(galaxy) => {
                prop_assert!(possible);
                prop_assert_eq!(galaxy.bodies.len(), bodies + 1);
                prop_assert!(galaxy.velocities.as_flattened().iter().all(|v| v.is_finite()));
            }
            Err(Error::InvalidParameter { .. }) => prop_assert!(!possible),
            // Of bodies that gravity refuses.
            Err(Error::InvalidElement { .. }) => {
                prop_assert!(numbers.iter().any(|number| number.abs() > 3.0));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
