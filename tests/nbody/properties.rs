//! What is said of numbers of bodies, velocities, time steps and blocks that do not fit.

use super::body;
use halo_gpu::Device;
use halo_gpu::nbody::problem::Cluster;
use halo_gpu::nbody::{Body, Gravity, Leapfrog, MAX_BODIES, Real, Solver, Variant};
use halo_tests::property::{self, Faults, awkward, device, extent, number, rarely};
use proptest::array::uniform3;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// What is wrong with the number of bodies.
fn faults_of_count(n: usize) -> Faults {
    let words = format!("nbody: the number of bodies is {n}, but at most {MAX_BODIES}");
    Faults::none()
        .and(n == 0, "EmptyInput", "nbody: the input is empty")
        .and(n > MAX_BODIES, "IndexOverflow", words)
}

/// What is wrong with a softening length for bodies of `T`.
fn faults_of_softening<T: Real>(softening: f64) -> Faults {
    let words = format!("nbody: the softening length is {softening:?}, but must be");
    let possible = (T::SHORTEST..=T::LONGEST).contains(&softening);
    Faults::none().and(!possible, "InvalidParameter", words)
}

/// What is wrong with moving bodies, whose masses a softening may forbid.
fn faults_of_bodies<T: Real>(gravity: &Gravity, bodies: &[Body<T>]) -> Faults {
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

/// Sets bodies in motion, of which anything may be wrong.
fn is_judged_rightly<T: Real>(
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
    let outcome = Leapfrog::new(gravity, device, &bodies, &velocities, time_step);
    if let Some(mut leapfrog) = faults.judge(outcome)? {
        leapfrog.advance(1)?;
        prop_assert_eq!((leapfrog.len(), leapfrog.steps()), (n, 1));
        prop_assert_eq!(leapfrog.time(), time_step);
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
        // Masses of so much of what all may have together.
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
        scratch in extent(0..100_000),
        variant in proptest::option::of(select(Variant::ALL.to_vec())),
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
        faults.judge(Solver::<f32>::new(&gravity, &device, n, variant))?;
        faults.judge(Solver::<f64>::new(&gravity, &device, n, variant))?;

        let counted = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        let pairs = (n as u128).saturating_mul(n as u128);
        prop_assert_eq!(Gravity::interactions(n), counted(pairs));
        prop_assert_eq!(Gravity::flops::<f32>(n), counted(pairs.saturating_mul(20)));
        prop_assert_eq!(Gravity::bytes::<f64>(n), counted(56 * n as u128));
    }
}
