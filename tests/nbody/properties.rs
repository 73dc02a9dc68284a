//! The errors for invalid numbers of bodies, velocities, time steps and blocks.

use super::body;
use halo_gpu::Scalar;
use halo_gpu::nbody::problem::{Cluster, Disc, Reference, potential_energy};
use halo_gpu::nbody::{Body, Gravity, MAX_BODIES, Variant, interactions};
use halo_gpu::{Buffer, Device, DeviceKind, Error};
use halo_tests::property::{self, Faults, awkward, device, extent, number, rarely};
use proptest::array::uniform3;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The faults of a number of bodies.
fn faults_of_count(n: usize) -> Faults {
    let words = format!("nbody: the number of bodies is {n}, but at most {MAX_BODIES}");
    Faults::none()
        .and(n == 0, "EmptyInput", "nbody: the input is empty")
        .and(n > MAX_BODIES, "IndexOverflow", words)
}

/// The faults of a softening length for bodies of `T`.
fn faults_of_softening<T: Scalar>(softening: f64) -> Faults {
    let words = format!("nbody: the softening length is {softening:?}, but must be");
    let possible = (T::SHORTEST..=T::LONGEST).contains(&softening);
    Faults::none().and(!possible, "InvalidParameter", words)
}

/// The faults of moving bodies, whose masses a softening may forbid.
fn faults_of_bodies<T: Scalar>(gravity: &Gravity, bodies: &[Body<T>]) -> Faults {
    let mut faults =
        faults_of_count(bodies.len()).with(faults_of_softening::<T>(gravity.softening()));
    let mut total = 0.0;
    for (index, body) in bodies.iter().enumerate() {
        for (name, value) in ["x", "y", "z"].into_iter().zip(body.position()) {
            let value: f64 = value.into();
            let possible = value.abs() <= T::LONGEST;
            let words = format!("nbody: the {name} coordinate of body {index} is {value}");
            faults = faults.and(!possible, "InvalidElement", words);
        }
        let mass: f64 = body.mass.into();
        total += mass.abs();
        let possible = mass.is_finite() && total <= gravity.mass_limit::<T>();
        let words = format!("nbody: the mass of body {index} is {mass}");
        faults = faults.and(!possible, "InvalidElement", words);
    }
    faults
}

/// Sets bodies with any faults in motion.
fn is_judged_rightly<T: Scalar>(
    softening: f64,
    bodies: &[[f64; 4]],
    velocities: &[[f64; 3]],
    time_step: f64,
    heavy: Option<f64>,
    device: &Device,
) -> Result<(), TestCaseError> {
    let words = format!("nbody: the softening length is {softening}, but must be a finite number");
    let faults = Faults::none().and(!softening.is_finite(), "NonFinite", words);
    let faults = faults.with(faults_of_softening::<f64>(softening));
    let Some(gravity) = faults.judge(Gravity::new(softening))? else {
        return Ok(());
    };
    let bodies: Vec<Body<T>> = (bodies.iter())
        .map(|&[x, y, z, mass]| {
            let most = gravity.mass_limit::<T>();
            body([x, y, z], heavy.map_or(mass, |heavy| heavy * most))
        })
        .collect();
    let velocities: Vec<[T; 3]> = velocities.iter().map(|v| v.map(T::nearest)).collect();

    let n = bodies.len();
    let given = velocities.len();
    let words = format!("nbody: velocities has {given} elements, but must have {n}");
    let mut faults = faults_of_bodies(&gravity, &bodies).and(given != n, "LengthMismatch", words);
    for (index, velocity) in velocities.iter().enumerate() {
        for (name, &value) in ["x", "y", "z"].into_iter().zip(velocity) {
            let value: f64 = value.into();
            let words = format!("nbody: the velocity along {name} of body {index} is {value}");
            faults = faults.and(!value.is_finite(), "InvalidElement", words);
        }
    }
    let half: f64 = T::nearest(time_step / 2.0).into();
    let words = format!("nbody: the time step is {time_step}, but must be a finite number");
    let range = format!("nbody: the time step is {time_step:?}, but must be a number whose half");
    let faults = faults.and(!time_step.is_finite(), "NonFinite", words).and(
        time_step.is_finite() && (half == 0.0 || !half.is_finite()),
        "InvalidParameter",
        range,
    );
    let outcome = gravity.start(device, &bodies, &velocities, time_step);
    if let Some(mut leapfrog) = faults.judge(outcome)? {
        leapfrog.advance(1)?;
        prop_assert_eq!((leapfrog.len(), leapfrog.steps()), (n, 1));
        prop_assert_eq!(leapfrog.time(), time_step);
    }
    Ok(())
}

/// Asks for potentials and energies in every way, whatever may be wrong.
fn energies_are_judged_rightly<T: Scalar>(
    gravity: &Gravity,
    bodies: &[[f64; 4]],
    longer: bool,
    away: bool,
    count: usize,
    device: &Device,
) -> Result<(), TestCaseError> {
    let bodies: Vec<Body<T>> = (bodies.iter())
        .map(|&[x, y, z, mass]| body([x, y, z], mass))
        .collect();
    let faults = faults_of_bodies(gravity, &bodies);
    let potentials = faults.judge(gravity.potentials_of(device, &bodies))?;
    let energy = faults.judge(potential_energy(gravity, &bodies))?;
    faults.judge(gravity.potential_energy_of(device, &bodies))?;
    if let (Some(potentials), Some(energy)) = (&potentials, energy) {
        prop_assert!(potentials.len() == bodies.len() && energy.is_finite());
    }
    let words = "the number of bodies to compute a reference for is 0";
    let sampled = faults.clone().and(count == 0, "InvalidParameter", words);
    let reference = sampled.judge(Reference::sampled(gravity, &bodies, count))?;
    if let Some(reference) = reference {
        let chosen = reference.accelerations().len();
        prop_assert!(chosen >= count.min(bodies.len()) && chosen <= bodies.len());
        let (n, given) = (bodies.len(), bodies.len() + usize::from(longer));
        let words = format!("nbody: accelerations to compare has {given} elements, but");
        let faults = Faults::none().and(given != n, "LengthMismatch", words);
        faults.judge(reference.errors(&vec![[T::nearest(0.0); 3]; given]))?;
    }

    // What bodies on a device are is not looked at.
    let (n, given) = (bodies.len(), bodies.len() + usize::from(longer));
    let on_device = device.upload(&bodies)?;
    let elsewhere = Device::emulator();
    let place = if away { &elsewhere } else { device };
    let mut results = place.alloc_filled(given, f64::NAN)?;
    let faults = faults_of_count(n).with(faults_of_softening::<T>(gravity.softening()));
    let plan = faults.judge(gravity.plan::<T>(device, n))?;
    let Some(mut plan) = plan else {
        return Ok(());
    };
    plan.potential_energy(&on_device)?;
    let words = format!("has {given} elements, but must have {n}");
    let faults = Faults::none()
        .and(given != n, "LengthMismatch", words.clone())
        .and(away, "DeviceMismatch", "is on");
    let accepted = faults.judge(plan.potentials(&on_device, &mut results))?;
    if let (Some(()), Some(expected)) = (accepted, &potentials) {
        prop_assert_eq!(&results.to_vec()?, expected);
    }
    let mut accelerations = place.alloc_filled(given, [T::nearest(0.0); 3])?;
    faults.judge(plan.accelerations(&on_device, &mut accelerations))?;

    // One number, and bodies of another number or place.
    let total = usize::from(!longer);
    let mut result = place.alloc_filled(total, f64::NAN)?;
    let faults = Faults::none()
        .and(longer, "LengthMismatch", "has 0 elements, but must have 1")
        .and(away, "DeviceMismatch", "is on");
    let accepted = faults.judge(plan.potential_energy_into(&on_device, &mut result))?;
    if accepted.is_some() {
        let same = plan.potential_energy(&on_device)?;
        prop_assert_eq!(result.to_vec()?[0].to_bits(), same.to_bits());
    }
    let others = place.alloc_filled(given, body([0.5; 3], 1.0))?;
    let faults = Faults::none()
        .and(given != n, "LengthMismatch", words.clone())
        .and(away, "DeviceMismatch", "is on");
    faults.judge(plan.potential_energy(&others))?;

    // Memory of the host, of any length.
    let mut results = vec![f64::NAN; given];
    let faults = faults_of_bodies(gravity, &bodies).and(given != n, "LengthMismatch", words);
    let accepted = faults.judge(gravity.potentials_of_into(device, &bodies, &mut results))?;
    if accepted.is_some() {
        prop_assert_eq!(Some(results), potentials);
    }
    let mut results = vec![[T::nearest(0.0); 3]; given];
    let accepted = faults.judge(gravity.accelerations_of_into(device, &bodies, &mut results))?;
    if accepted.is_some() {
        prop_assert!(results == gravity.accelerations_of(device, &bodies)?);
    }
    let narrow: Vec<Body<f32>> = (bodies.iter())
        .map(|one| {
            let [x, y, z, mass] = [one.x, one.y, one.z, one.mass].map(Into::into);
            body([x, y, z], mass)
        })
        .collect();
    let words = format!("has {given} elements, but must have {n}");
    let faults = faults_of_bodies(gravity, &narrow).and(given != n, "LengthMismatch", words);
    let mut results = vec![[0.0_f64; 3]; given];
    let into = gravity.accelerations_mixed_of_into(device, &narrow, &mut results);
    if faults.judge(into)?.is_some() {
        prop_assert_eq!(results, gravity.accelerations_mixed_of(device, &narrow)?);
    }
    Ok(())
}

proptest! {
    #![proptest_config(property::cases(192))]

    #[test]
    fn moving_bodies_get_the_error_they_deserve(
        softening in number(0.01..1.0),
        (bodies, mut velocities) in (0..5_usize).prop_flat_map(|n| {
            // Mostly good ones, so that each may be the only one that is bad.
            let any = || prop_oneof![30 => -2.0..2.0_f64, 1 => awkward()];
            let fours = [any(), any(), any(), any()];
            (vec(fours, n), vec(uniform3(any()), n))
        }),
        more in rarely(8),
        time_step in prop_oneof![3 => -0.1..0.1_f64, 1 => awkward()],
        // Masses as a multiple of the largest allowed total.
        heavy in proptest::option::weighted(0.2, 0.1..1.1_f64),
        device in device(),
    ) {
        if more {
            velocities.push([0.0; 3]);
        }
        let (bodies, velocities) = (&bodies[..], &velocities[..]);
        is_judged_rightly::<f32>(softening, bodies, velocities, time_step, heavy, &device)?;
        is_judged_rightly::<f64>(softening, bodies, velocities, time_step, heavy, &device)?;
    }

    /// No more bodies than are refused or are a few.
    #[test]
    fn numbers_of_bodies_get_the_error_they_deserve(
        n in extent(0..40).prop_filter("memory", |n| !(40..=MAX_BODIES).contains(n)),
        seed in any::<u64>(),
        block in prop_oneof![(0..40_u32).prop_map(|warps| 32 * warps), any::<u32>()],
        parts in 0..3_u32,
        own in (0..3_u32, 0..3_u32).prop_map(|(start, end)| start..end),
        scratch in extent(0..100_000),
        variant in proptest::option::of(select(Variant::ALL.to_vec())),
        longer in rarely(4),
        away in rarely(4),
        device in device(),
    ) {
        let faults = faults_of_count(n);
        if let Some(cluster) = faults.judge(Cluster::<f32>::plummer(n, seed))? {
            prop_assert_eq!((cluster.bodies.len(), cluster.velocities.len()), (n, n));
        }
        faults.judge(Cluster::<f64>::plummer(n, seed))?;

        let right = block > 0 && block <= 1024 && block.is_multiple_of(32);
        let words = format!("nbody: block is {block}, but must be");
        let gravity = Gravity::new(0.5)?.with_scratch_bytes(scratch);
        let blocks = Faults::none().and(!right, "InvalidSize", words);
        let gravity = blocks.judge(gravity.with_block(block))?.unwrap_or(gravity);
        let words = "nbody: the number of parts is 0, but must be at least 1";
        let many = Faults::none().and(parts == 0, "InvalidParameter", words);
        let gravity = many.judge(gravity.with_parts(parts))?.unwrap_or(gravity);
        faults.judge(gravity.plan::<f32>(&device, n))?;
        let none = variant.is_some() && device.kind() == DeviceKind::Cpu;
        let faults = Faults::none().and(none, "NotLaunchable", "launches no kernels").with(faults);
        faults.judge(match variant {
            Some(variant) => gravity.plan_with::<f64>(&device, n, variant),
            None => gravity.plan(&device, n),
        })?;

        // At most 39 bodies are one part.
        let words = format!("the range of parts is {own:?}, but must be at least one of 0..1");
        let share = faults_of_count(n).and(own != (0..1), "InvalidParameter", words);
        if let Some(mut share) = share.judge(gravity.plan_of_parts::<f64>(&device, n, own))? {
            let bodies = Cluster::<f64>::plummer(n, seed)?.bodies;
            prop_assert_eq!(share.own(), 0..n);
            let mut own = device.zeros(n)?;
            share.accelerations(&device.upload(&bodies)?, &mut own)?;
            let accelerations = own.to_vec()?;
            prop_assert!(accelerations.as_flattened().iter().all(|it| it.is_finite()));

            let given = n + usize::from(longer);
            let place = if away { Device::emulator() } else { device.clone() };
            let words = format!("has {given} elements, but must have {n}");
            let faults = Faults::none()
                .and(given != n, "LengthMismatch", words)
                .and(away, "DeviceMismatch", "is on");
            // The plan has a single part, so all bodies are its own.
            let mut all = place.alloc_filled(given, bodies[0])?;
            all.view_mut(..n)?.copy_from_slice(&bodies)?;
            let receive = |_: &mut Buffer<_>| Ok(());
            let accepted = share.accelerations_while::<Error>(&mut all, receive, &mut own);
            if faults.judge(accepted)?.is_some() {
                prop_assert_eq!(own.to_vec()?, accelerations);
            }
        }

        let counted = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        let pairs = (n as u128).saturating_mul(n as u128);
        prop_assert_eq!(interactions(n), counted(pairs));
        prop_assert_eq!(gravity.cost::<f32>(n).flops, counted(pairs.saturating_mul(20)));
        prop_assert_eq!(gravity.cost::<f64>(n).bytes, counted(56 * n as u128));
    }

    /// Potentials and energies, of slices and of buffers.
    #[test]
    fn potentials_get_the_error_they_deserve(
        bodies in (0..5_usize).prop_flat_map(|n| {
            let any = || prop_oneof![30 => -2.0..2.0_f64, 1 => awkward()];
            vec([any(), any(), any(), any()], n)
        }),
        softening in number(0.01..1.0),
        longer in rarely(4),
        away in rarely(4),
        count in 0..7_usize,
        device in device(),
    ) {
        let Ok(gravity) = Gravity::new(softening) else { return Ok(()) };
        energies_are_judged_rightly::<f32>(&gravity, &bodies, longer, away, count, &device)?;
        energies_are_judged_rightly::<f64>(&gravity, &bodies, longer, away, count, &device)?;
    }

    #[test]
    fn discs_get_the_error_they_deserve(
        bodies in extent(1..20).prop_filter("memory", |n| *n < 20 || *n > MAX_BODIES),
        center in number(0.1..2.0),
        mass in number(0.0..1.0),
        inner in number(0.1..1.0),
        wider in number(0.1..1.0),
    ) {
        let disc = Disc { bodies, center, mass, inner, outer: inner + wider };
        let positive = |value: f64| value > 0.0 && value.is_finite();
        // Some possible values leave the range that `Gravity::check` requires.
        let ordinary = |value: f64| (0.01..10.0).contains(&value);
        let usual = [center, inner, wider].into_iter().all(ordinary) && (0.0..10.0).contains(&mass);
        let possible = positive(center) && positive(inner) && positive(disc.outer)
            && disc.outer > inner && mass >= 0.0 && mass.is_finite();
        match Cluster::<f64>::cold_disc(&Gravity::new(0.1)?, &disc) {
            Ok(galaxy) => {
                prop_assert!(possible && bodies < 20);
                prop_assert_eq!(galaxy.bodies.len(), bodies + 1);
            }
            Err(Error::InvalidParameter { .. }) => prop_assert!(!possible),
            Err(Error::InvalidElement { .. }) => prop_assert!(!usual),
            Err(Error::IndexOverflow { .. } | Error::HostOutOfMemory { .. }) => {
                prop_assert!(bodies > MAX_BODIES);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
