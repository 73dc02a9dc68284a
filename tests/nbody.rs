//! nbody: both CPU ports and all kernels, in f32 and f64, on every device; of energies
//! `nbody_potential_f32`, `nbody_potential_f64` and `nbody_mixed_f32`.

#[path = "nbody/energy.rs"]
mod energy;
#[path = "nbody/properties.rs"]
mod properties;

use halo_gpu::Scalar;
use halo_gpu::case::{Problem, Role, registry};
use halo_gpu::nbody::Range as _;
use halo_gpu::nbody::problem::{Cluster, Reference, error_bound, potential_energy};
use halo_gpu::nbody::{
    Body, DEFAULT_BLOCK, Gravity, INTERACTION_ROUNDOFFS, MAX_BODIES, Port, Variant, interactions,
    kick_drift,
};
use halo_gpu::{Buffer, Device, DeviceKind, Error};
use halo_tests::{
    Bits, assert_same_bits, devices, for_each, is_called, kernel_devices, ptx, rng, test_cases,
};
use rand::RngExt;
use rand::rngs::SmallRng;

/// The textbook's size.
const DEFAULT_N: usize = 16_384;

/// Accelerations by the kernel, or the port, that the library picks.
fn apply<T: Scalar>(
    gravity: &Gravity,
    bodies: &Buffer<Body<T>>,
    accelerations: &mut Buffer<[T; 3]>,
) -> Result<(), Error> {
    let mut plan = gravity.plan(bodies.device(), bodies.len())?;
    plan.accelerations(bodies, accelerations)
}

/// Accelerations by the given kernel.
fn apply_with<T: Scalar>(
    gravity: &Gravity,
    variant: Variant,
    bodies: &Buffer<Body<T>>,
    accelerations: &mut Buffer<[T; 3]>,
) -> Result<(), Error> {
    let mut plan = gravity.plan_with(bodies.device(), bodies.len(), variant)?;
    plan.accelerations(bodies, accelerations)
}

/// What computes accelerations.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Implementation {
    /// `Gravity::plan`: the port, or the kernel, that the library picks.
    Default,
    Port(Port),
    Kernel(Variant),
}

impl Implementation {
    /// All there are on `device`.
    fn all(device: &Device) -> Vec<Self> {
        let mut all = vec![Self::Default];
        if device.kind() == DeviceKind::Cpu {
            all.extend(Port::ALL.map(Self::Port));
        } else {
            all.extend(Variant::ALL.map(Self::Kernel));
        }
        all
    }

    /// Runs it on an output that was poisoned with NaN.
    fn run<T: Scalar + Bits>(
        self,
        device: &Device,
        gravity: &Gravity,
        bodies: &[Body<T>],
    ) -> Vec<[T; 3]> {
        let poison = [T::nearest(f64::NAN); 3];
        if let Self::Port(port) = self {
            let mut accelerations = vec![poison; bodies.len()];
            gravity
                .accelerations_by(port, bodies, &mut accelerations)
                .unwrap();
            return accelerations;
        }
        let input = device.upload(bodies).unwrap();
        let mut output = device.alloc_filled(bodies.len(), poison).unwrap();
        match self {
            Self::Kernel(variant) => apply_with(gravity, variant, &input, &mut output).unwrap(),
            _ => apply(gravity, &input, &mut output).unwrap(),
        }
        let after = input.to_vec().unwrap();
        assert_same_bits(&flat(&after), &flat(bodies), |i| {
            format!("number {} of body {}, which was written", i % 4, i / 4)
        });
        output.to_vec().unwrap()
    }
}

/// Runs `check` for every implementation on every device, for bodies of `T`.
fn for_each_implementation<T: Scalar>(what: &str, mut check: impl FnMut(&Device, Implementation)) {
    let mut cases = Vec::new();
    for device in devices() {
        for implementation in Implementation::all(&device) {
            cases.push((
                T::NAME,
                device.name().to_owned(),
                implementation,
                device.clone(),
            ));
        }
    }
    // Three on the CPU; nine kernels and the default on each other device.
    assert_eq!(cases.len(), 3 + 10 * kernel_devices().len());
    for_each(what, cases, |(_, _, implementation, device)| {
        check(&device, implementation);
    });
}

/// The numbers of `bodies`, in order.
fn flat<T: Scalar>(bodies: &[Body<T>]) -> Vec<T> {
    bodies
        .iter()
        .flat_map(|body| [body.x, body.y, body.z, body.mass])
        .collect()
}

fn body<T: Scalar>(position: [f64; 3], mass: f64) -> Body<T> {
    let [x, y, z] = position.map(T::nearest);
    Body {
        x,
        y,
        z,
        mass: T::nearest(mass),
    }
}

/// `n` bodies in the cube from -1 to 1, of masses from -1 to 2.
fn random_bodies<T: Scalar>(rng: &mut SmallRng, n: usize) -> Vec<Body<T>> {
    (0..n)
        .map(|_| {
            let position = [(); 3].map(|()| rng.random_range(-1.0..1.0));
            body(position, rng.random_range(-1.0..2.0))
        })
        .collect()
}

/// The place of a number in an array of accelerations.
fn component(index: usize) -> String {
    format!("{} of body {}", ["x", "y", "z"][index % 3], index / 3)
}

fn norm(vector: [f64; 3]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Fails unless each acceleration is within the derived bound of the reference.
fn assert_accurate<T: Scalar>(accelerations: &[[T; 3]], reference: &Reference) {
    let n = accelerations.len();
    assert_eq!(n, reference.accelerations().len());
    let expected = reference.accelerations().iter().zip(reference.sizes());
    for (i, (a, (exact, size))) in accelerations.iter().zip(expected).enumerate() {
        let error = norm([0, 1, 2].map(|axis| a[axis].into() - exact[axis]));
        let bound = error_bound::<T>(n) * size;
        assert!(
            error <= bound,
            "body {i} of {n}: {a:?}, not {exact:?}; off by {error:e}, at most {bound:e}"
        );
    }
}

/// Whether it takes the reciprocal square root as it comes, in f64 as in f32.
fn is_exact_on_the_emulator(implementation: Implementation) -> bool {
    match implementation {
        Implementation::Default => false,
        Implementation::Port(_) => true,
        Implementation::Kernel(variant) => Variant::TEXTBOOK.contains(&variant),
    }
}

/// Whether the implementation does what the plain port does, bit for bit: the
/// kernels in the emulator, where nothing is approximated.
fn has_bits_of_the_plain_port(device: &Device, implementation: Implementation) -> bool {
    match implementation {
        Implementation::Port(port) => port == Port::Aos,
        // Other sums, and in f64 other factors.
        Implementation::Default
        | Implementation::Kernel(Variant::RegisterTile | Variant::Symmetric) => false,
        _ => device.kind() == DeviceKind::Emulator,
    }
}

#[test]
fn the_variants_are_the_kernels_of_the_table() {
    for_each("variants", Variant::ALL, |variant| {
        let in_f32 = registry::entry(variant.kernel::<f32>()).unwrap();
        let in_f64 = registry::entry(variant.kernel::<f64>()).unwrap();
        assert_eq!(in_f32.name, format!("nbody_{}_f32", in_f32.variant));
        assert_eq!(in_f64.name, format!("nbody_{}_f64", in_f32.variant));
        assert!(is_called(in_f32, variant));
        let textbook = Variant::TEXTBOOK.contains(&variant);
        assert_eq!(textbook, in_f32.role == Role::Textbook);
        if let Some(unrolled) = in_f32.variant.strip_prefix("aos_unroll") {
            assert_eq!(unrolled, variant.unroll().to_string());
        }
    });
}

#[test]
fn two_bodies_by_hand() {
    // |r|² + ε² = 1 + 1 + 1 + 1, its root is 2, and 2³ = 8: all exact.
    fn check<T: Scalar + Bits>() {
        let bodies = [body::<T>([0.0; 3], 16.0), body([1.0; 3], 8.0)];
        let gravity = Gravity::new(1.0).unwrap();
        for_each_implementation::<T>("two bodies", |device, implementation| {
            let a = implementation.run(device, &gravity, &bodies);
            // One interaction each: what a GPU may be off is one term's error.
            // What the kernels refine themselves in f64 is off on the emulator, too.
            let refined = T::NAME == "f64" && !is_exact_on_the_emulator(implementation);
            let tolerance = match device.kind() {
                DeviceKind::Cuda => INTERACTION_ROUNDOFFS * T::UNIT_ROUNDOFF,
                DeviceKind::Emulator if refined => INTERACTION_ROUNDOFFS * T::UNIT_ROUNDOFF,
                _ => 0.0,
            };
            for (i, expected) in [1.0, -2.0].into_iter().enumerate() {
                for value in a[i] {
                    let error: f64 = value.into() - expected;
                    assert!(error.abs() <= tolerance * expected.abs(), "{a:?}");
                }
            }
        });
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn three_bodies_on_a_line() {
    // Equal masses at -d, 0 and d: the one in the middle is pulled equally from
    // both sides, the outer two inwards by the two others.
    fn check<T: Scalar + Bits>(axis: usize) {
        let (d, mass, softening) = (0.75_f64, 3.0, 0.5);
        let at = |x: f64| {
            let mut position = [0.0; 3];
            position[axis] = x;
            body::<T>(position, mass)
        };
        let bodies = [at(-d), at(0.0), at(d)];
        let gravity = Gravity::new(softening).unwrap();
        let pull = |r: f64| mass * r / (r * r + softening * softening).powf(1.5);
        let inwards = pull(d) + pull(2.0 * d);
        for_each_implementation::<T>("three bodies", |device, implementation| {
            let a = implementation.run(device, &gravity, &bodies);
            // The size of all terms, which for the middle body cancel.
            let sizes = [inwards, 2.0 * pull(d), inwards];
            for (i, expected) in [inwards, 0.0, -inwards].into_iter().enumerate() {
                for (other, value) in a[i].into_iter().enumerate() {
                    let (expected, bound) = if other == axis {
                        (expected, error_bound::<T>(3) * sizes[i])
                    } else {
                        (0.0, 0.0)
                    };
                    let error: f64 = value.into() - expected;
                    assert!(error.abs() <= bound, "{a:?}, not {expected} ± {bound:e}");
                }
            }
        });
    }
    for axis in 0..3 {
        check::<f32>(axis);
        check::<f64>(axis);
    }
}

#[test]
fn bodies_at_one_place_leave_each_other_alone() {
    fn check<T: Scalar + Bits>() {
        for n in [1, 2, 33, 200] {
            let bodies = vec![body::<T>([0.1, -0.2, 0.3], 5.0); n];
            let gravity = Gravity::new(1e-3).unwrap();
            for_each_implementation::<T>("one place", |device, implementation| {
                let a = implementation.run(device, &gravity, &bodies);
                assert!(a.iter().flatten().all(|&value| value.into() == 0.0));
            });
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn every_implementation_is_as_accurate_as_derived() {
    fn check<T: Scalar + Bits>(rng: &mut SmallRng) {
        let gravity = Gravity::new(0.05).unwrap();
        let sizes = [1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 256, 257, 509, 1009];
        for &n in test_cases::either(&[1, 3, 32, 129, 257, 509][..], &sizes) {
            let bodies = random_bodies::<T>(rng, n);
            let reference = Reference::of(&gravity, &bodies).unwrap();
            let bounds = reference.bounds::<T>();
            for_each_implementation::<T>(&format!("{n} bodies"), |device, implementation| {
                let a = implementation.run(device, &gravity, &bodies);
                assert_accurate(&a, &reference);
                let errors = reference.errors(&a).unwrap();
                assert!(
                    errors.within(bounds.rms, bounds.max),
                    "{errors:?} exceeds {bounds:?}"
                );
            });
        }
    }
    let mut rng = rng();
    check::<f32>(&mut rng);
    check::<f64>(&mut rng);
}

#[test]
fn every_unroll_times_every_remainder_and_block() {
    // All n up to two turns of the loop and one more, so that each kernel sees
    // each remainder with no, one and two whole turns; and tiles that are full,
    // ragged, or hold a single body.
    fn check<T: Scalar + Bits>(rng: &mut SmallRng) {
        let mut cases = Vec::new();
        for device in kernel_devices() {
            for variant in Variant::TEXTBOOK {
                let mut add = |block: u32, n: usize| {
                    cases.push((device.clone(), variant, block, n));
                };
                for n in 1..=2 * variant.unroll() + 1 {
                    add(32, n);
                }
                for n in [1, 63, 64, 65, 129, 193] {
                    add(64, n);
                }
                for n in [95, 96, 97, 389] {
                    add(96, n);
                }
                add(1024, 100);
                if variant == Variant::Shared {
                    for n in [31, 32, 33, 95, 96, 97, 257] {
                        add(32, n);
                    }
                    add(1024, 1025);
                }
            }
        }
        for_each(
            &format!("remainders, {}", T::NAME),
            test_cases::one_in(5, cases),
            |(device, variant, block, n)| {
                let bodies = random_bodies::<T>(rng, n);
                let gravity = Gravity::new(0.05).unwrap().with_block(block).unwrap();
                let implementation = Implementation::Kernel(variant);
                let a = implementation.run(&device, &gravity, &bodies);
                assert_accurate(&a, &Reference::of(&gravity, &bodies).unwrap());
                if has_bits_of_the_plain_port(&device, implementation) {
                    let port = Implementation::Port(Port::Aos).run(&device, &gravity, &bodies);
                    assert_same_bits(a.as_flattened(), port.as_flattened(), component);
                }
            },
        );
    }
    let mut rng = rng();
    check::<f32>(&mut rng);
    check::<f64>(&mut rng);
}

#[test]
fn every_number_of_parts_and_groups() {
    // Bodies that fill tiles of 128 and groups of 512, or miss by one; groups that meet
    // nobody (1), one opposite (2), a whole circle (3) and a circle with opposites (4);
    // parts that are one tile, some, all, and more than there are tiles. What
    // `nbody_sum_f32` and `nbody_sum_f64` add up is part of every case.
    // The emulator takes minutes for all of them: it verifies launches with three parts,
    // launches once with other numbers, and leaves out sizes that are like others.
    fn check<T: Scalar + Bits>(rng: &mut SmallRng) {
        let gravity = Gravity::new(0.05).unwrap();
        let sizes = [
            1, 2, 127, 128, 129, 511, 512, 513, 641, 1024, 1025, 1499, 1537, 2039,
        ];
        let on_gpu_only = [1024, 1499, 2039];
        for &n in test_cases::either(&[129, 512, 1537][..], &sizes) {
            let bodies = random_bodies::<T>(rng, n);
            let mut cases = Vec::new();
            for device in kernel_devices() {
                let emulated = device.kind() == DeviceKind::Emulator;
                if emulated && on_gpu_only.contains(&n) {
                    continue;
                }
                for variant in [Variant::RegisterTile, Variant::Symmetric] {
                    for parts in [1, 3, 1000] {
                        let device = if emulated && parts != 3 {
                            Device::emulator()
                        } else {
                            device.clone()
                        };
                        cases.push((device, variant, parts));
                    }
                }
            }
            if cases.is_empty() {
                continue;
            }
            let reference = Reference::of(&gravity, &bodies).unwrap();
            for_each(
                &format!("{n} bodies, {}", T::NAME),
                cases,
                |(device, variant, parts)| {
                    let gravity = gravity.with_parts(parts).unwrap();
                    let implementation = Implementation::Kernel(variant);
                    let a = implementation.run(&device, &gravity, &bodies);
                    assert_accurate(&a, &reference);
                    if parts == 3 {
                        let device = match device.kind() {
                            DeviceKind::Emulator => Device::emulator(),
                            _ => device,
                        };
                        let again = implementation.run(&device, &gravity, &bodies);
                        assert_same_bits(again.as_flattened(), a.as_flattened(), component);
                    }
                },
            );
        }
    }
    let mut rng = rng();
    check::<f32>(&mut rng);
    check::<f64>(&mut rng);
}

#[test]
fn own_bodies_attract_while_the_others_arrive() {
    fn check<T: Scalar + Bits>(rng: &mut SmallRng) {
        let nan = body([f64::NAN; 3], f64::NAN);
        // One part; five parts of equal length; four parts, the last one shorter.
        for (n, wanted) in [(130, 1), (640, 5), (1411, 4)] {
            let all = random_bodies::<T>(rng, n);
            let gravity = Gravity::new(0.05).unwrap().with_parts(wanted).unwrap();
            for_each(&format!("{n} bodies, {}", T::NAME), devices(), |device| {
                let implementation = match device.kind() {
                    DeviceKind::Cpu => Implementation::Default,
                    _ => Implementation::Kernel(Variant::RegisterTile),
                };
                let right = implementation.run(&device, &gravity, &all);
                let there = device.upload(&all).unwrap();
                for own in [0..1, wanted / 2..wanted, wanted - 1..wanted, 0..wanted] {
                    let mut plan = gravity.plan_of_parts(&device, n, own).unwrap();
                    assert_eq!(plan.parts(), wanted);
                    let own = plan.own();
                    let mut bodies = device.alloc_filled(n, nan).unwrap();
                    let mut known = bodies.view_mut(own.clone()).unwrap();
                    known.copy_from(there.view(own.clone()).unwrap()).unwrap();
                    let mut found = device.alloc_filled(own.len(), [T::nearest(f64::NAN); 3]);
                    let found = found.as_mut().unwrap();
                    let receive =
                        |bodies: &mut Buffer<_>| bodies.view_mut(..)?.copy_from((&there).into());
                    plan.accelerations_while::<Error>(&mut bodies, receive, found)
                        .unwrap();
                    let right = right[own].as_flattened();
                    assert_same_bits(found.to_vec().unwrap().as_flattened(), right, component);
                    found.fill([T::nearest(f64::NAN); 3]).unwrap();
                    plan.accelerations(&there, found).unwrap();
                    assert_same_bits(found.to_vec().unwrap().as_flattened(), right, component);
                    let swap = |bodies: &mut Buffer<_>| {
                        *bodies = bodies.device().zeros(n - 1)?;
                        Ok(())
                    };
                    let refused = plan.accelerations_while::<Error>(&mut bodies, swap, found);
                    assert!(matches!(refused, Err(Error::LengthMismatch { .. })));
                }
            });
        }
    }
    let mut rng = rng();
    check::<f32>(&mut rng);
    check::<f64>(&mut rng);
}

#[test]
fn little_memory_takes_rounds() {
    // With memory for less than one row a round takes one distance, with memory for two rows it
    // takes two. Three groups have the distances 0 and 1. Four groups also have distance 2, to the
    // opposite group. Six groups are the fewest with distance 3.
    fn check<T: Scalar + Bits>(rng: &mut SmallRng) {
        let all = [(1540, 0), (1540, 2), (1030, 0), (1030, 2), (2561, 0)];
        for &(n, rows) in test_cases::either(&all[..2], &all) {
            let bodies = random_bodies::<T>(rng, n);
            let gravity = Gravity::new(0.05).unwrap();
            let reference = Reference::of(&gravity, &bodies).unwrap();
            let gravity = gravity.with_scratch_bytes(rows * n * size_of::<[T; 3]>());
            let implementation = Implementation::Kernel(Variant::Symmetric);
            for_each(
                &format!("{n} bodies, memory for {rows} rows, {}", T::NAME),
                kernel_devices(),
                |device| {
                    let a = implementation.run(&device, &gravity, &bodies);
                    assert_accurate(&a, &reference);
                },
            );
        }
    }
    let mut rng = rng();
    check::<f32>(&mut rng);
    check::<f64>(&mut rng);
}

#[test]
fn blocks_are_the_textbooks_unless_the_problem_says() {
    let kernels = registry::family("nbody").unwrap().kernels.iter();
    for_each("kernels", kernels.map(|entry| entry.name), |name| {
        let entry = registry::entry(name).unwrap();
        let bodies = Problem::plane(1000, 2);
        let told = entry.geometry(&bodies.with_block(DEFAULT_BLOCK)).unwrap();
        assert_eq!(entry.geometry(&bodies).unwrap(), told);
    });
}

#[test]
fn one_part_adds_like_the_port() {
    // In f32 and in the emulator `nbody_register_tile_f32` does what the plain port
    // does; in several parts the sums are others.
    let mut rng = rng();
    let emulators = kernel_devices()
        .into_iter()
        .filter(|device| device.kind() == DeviceKind::Emulator);
    for_each("one part", emulators, |device| {
        for n in [1, 129, 700] {
            let bodies = random_bodies::<f32>(&mut rng, n);
            let gravity = Gravity::new(0.05).unwrap().with_parts(1).unwrap();
            let kernel = Implementation::Kernel(Variant::RegisterTile);
            let a = kernel.run(&device, &gravity, &bodies);
            let port = Implementation::Port(Port::Aos).run(&device, &gravity, &bodies);
            assert_same_bits(a.as_flattened(), port.as_flattened(), component);
        }
    });
}

#[test]
fn a_plan_is_for_its_bodies_and_can_be_used_again() {
    fn check<T: Scalar + Bits>(rng: &mut SmallRng) {
        let gravity = Gravity::new(0.1).unwrap();
        for_each("plans", devices(), |device| {
            for variant in [None, Some(Variant::Symmetric), Some(Variant::Shared)] {
                let n = 600;
                let plan = match variant {
                    None => gravity.plan::<T>(&device, n),
                    Some(_) if device.kind() == DeviceKind::Cpu => continue,
                    Some(variant) => gravity.plan_with(&device, n, variant),
                };
                let mut plan = plan.unwrap();
                assert_eq!(plan.device(), &device);
                assert_eq!(
                    plan.variant(),
                    (device.kind() != DeviceKind::Cpu)
                        .then(|| variant.unwrap_or(Variant::RegisterTile)),
                    "few bodies"
                );
                for _ in 0..2 {
                    let bodies = random_bodies::<T>(rng, n);
                    let input = device.upload(&bodies).unwrap();
                    let poison = [T::nearest(f64::NAN); 3];
                    let mut output = device.alloc_filled(n, poison).unwrap();
                    plan.accelerations(&input, &mut output).unwrap();
                    let reference = Reference::of(&gravity, &bodies).unwrap();
                    assert_accurate(&output.to_vec().unwrap(), &reference);
                }
                let short = device.upload(&random_bodies::<T>(rng, n - 1)).unwrap();
                let mut output = device.alloc_filled(n - 1, [T::nearest(0.0); 3]).unwrap();
                let error = plan.accelerations(&short, &mut output).unwrap_err();
                assert!(
                    matches!(
                        error,
                        Error::LengthMismatch {
                            required: 600,
                            given: 599,
                            ..
                        }
                    ),
                    "{error}"
                );
            }
            let error = gravity.plan::<T>(&device, 0).unwrap_err();
            assert!(matches!(error, Error::EmptyInput { .. }), "{error}");
        });
        let many = gravity.plan::<T>(&Device::emulator(), 8192).unwrap();
        assert_eq!(many.variant(), Some(Variant::Symmetric));
        assert!(Gravity::new(0.1).unwrap().with_parts(0).is_err());
    }
    let mut rng = rng();
    check::<f32>(&mut rng);
    check::<f64>(&mut rng);
}

#[test]
fn the_default_size() {
    // On a GPU, 268 million interactions by each implementation. Elsewhere 17 million, or 4 million
    // if only some cases run: in f32 by both ports, the textbook's best kernel and the library's
    // own, launched once, and in f64 by the faster port.
    fn check<T: Scalar + Bits>(cases: Vec<(Device, Implementation)>) {
        let on_a_gpu = cases.iter().any(|(it, _)| it.kind() == DeviceKind::Cuda);
        let n = if on_a_gpu {
            DEFAULT_N
        } else {
            DEFAULT_N / test_cases::either(8, 4)
        };
        let bodies = Cluster::<T>::plummer(n, 14).unwrap().bodies;
        let gravity = Gravity::new(0.01).unwrap();
        let reference = Reference::of(&gravity, &bodies).unwrap();
        let bounds = reference.bounds::<T>();
        for_each("default size", cases, |(device, implementation)| {
            let a = implementation.run(&device, &gravity, &bodies);
            assert_accurate(&a, &reference);
            let errors = reference.errors(&a).unwrap();
            assert!(
                errors.within(bounds.rms, bounds.max),
                "{errors:?} exceeds {bounds:?}"
            );
        });
    }
    let mut cases = vec![(Device::cpu(), Implementation::Default)];
    for device in kernel_devices() {
        if device.kind() == DeviceKind::Cuda {
            for implementation in Implementation::all(&device) {
                cases.push((device.clone(), implementation));
            }
        }
    }
    check::<f64>(cases.clone());
    cases.push((Device::cpu(), Implementation::Port(Port::Aos)));
    for variant in [Variant::Shared, Variant::Symmetric] {
        cases.push((Device::emulator(), Implementation::Kernel(variant)));
    }
    check::<f32>(cases);
}

#[test]
fn momentum_is_conserved() {
    // Σ m a is zero: what body j does to i, i does to j. What is left is the
    // error of each acceleration, at most the bound times the mass.
    fn check<T: Scalar + Bits>(rng: &mut SmallRng) {
        let gravity = Gravity::new(0.02).unwrap();
        for bodies in [
            Cluster::<T>::plummer(613, rng.random()).unwrap().bodies,
            random_bodies(rng, 419),
        ] {
            let n = bodies.len();
            let sizes = Reference::of(&gravity, &bodies).unwrap().sizes().to_vec();
            let masses: Vec<f64> = bodies.iter().map(|body| body.mass.into()).collect();
            let bound: f64 = (0..n)
                .map(|i| error_bound::<T>(n) * sizes[i] * masses[i].abs())
                .sum();
            for_each_implementation::<T>("momentum", |device, implementation| {
                let a = implementation.run(device, &gravity, &bodies);
                let change = [0, 1, 2]
                    .map(|axis| (0..n).map(|i| masses[i] * a[i][axis].into()).sum::<f64>());
                assert!(
                    norm(change) <= bound,
                    "{change:?} exceeds {bound:e} in size"
                );
            });
        }
    }
    let mut rng = rng();
    check::<f32>(&mut rng);
    check::<f64>(&mut rng);
}

/// Kick, drift, kick: `steps` steps of `dt`. Returns the largest relative change of the energy
/// after any step.
fn energy_drift<T: Scalar + Bits>(
    device: &Device,
    implementation: Implementation,
    gravity: &Gravity,
    cluster: &mut Cluster<T>,
    dt: f64,
    steps: usize,
) -> f64 {
    let energy = |cluster: &Cluster<T>| {
        cluster.kinetic_energy() + potential_energy(gravity, &cluster.bodies).unwrap()
    };
    let add = |to: T, rate: T, time: f64| T::nearest(to.into() + rate.into() * time);
    let kick = |cluster: &mut Cluster<T>, a: &[[T; 3]]| {
        for (velocity, a) in cluster.velocities.iter_mut().zip(a) {
            for axis in 0..3 {
                velocity[axis] = add(velocity[axis], a[axis], 0.5 * dt);
            }
        }
    };

    let start = energy(cluster);
    let mut drift: f64 = 0.0;
    let mut a = implementation.run(device, gravity, &cluster.bodies);
    for _ in 0..steps {
        kick(cluster, &a);
        for (body, velocity) in cluster.bodies.iter_mut().zip(&cluster.velocities) {
            body.x = add(body.x, velocity[0], dt);
            body.y = add(body.y, velocity[1], dt);
            body.z = add(body.z, velocity[2], dt);
        }
        a = implementation.run(device, gravity, &cluster.bodies);
        kick(cluster, &a);
        let change = ((energy(cluster) - start) / start).abs();
        assert!(change.is_finite());
        drift = drift.max(change);
    }
    drift
}

#[test]
fn leapfrog_conserves_energy_to_second_order() {
    // With half the step a quarter of the drift: only if the accelerations are
    // the gradient of the potential does the energy drift so little, and so.
    fn check<T: Scalar + Bits>() {
        let gravity = Gravity::new(0.1).unwrap();
        let start = Cluster::<T>::plummer(100, 1974).unwrap();
        for_each_implementation::<T>("leapfrog", |device, implementation| {
            let drift = |dt: f64, steps: usize| {
                let mut cluster = start.clone();
                energy_drift(device, implementation, &gravity, &mut cluster, dt, steps)
            };
            let (whole, half) = (drift(1.0 / 32.0, 16), drift(1.0 / 64.0, 32));
            println!("drift {whole:e}, with half the step {half:e}");
            assert!(whole <= 1e-3, "{whole:e}");
            assert!((3.5..4.5).contains(&(whole / half)), "{whole:e} / {half:e}");
        });
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn energy_stays_bounded_in_a_long_integration() {
    // Ten crossing times, or two and a half if only some cases run. The energy of a leapfrog
    // oscillates but does not drift.
    fn check<T: Scalar + Bits>() {
        let gravity = Gravity::new(0.1).unwrap();
        let devices: Vec<Device> = devices()
            .into_iter()
            .filter(|device| device.kind() != DeviceKind::Emulator)
            .collect();
        for_each("long integration", devices, |device| {
            let mut cluster = Cluster::<T>::plummer(100, 1974).unwrap();
            let mut run = || {
                let (dt, steps) = (1.0 / 64.0, test_cases::either(226, 904));
                energy_drift(
                    &device,
                    Implementation::Default,
                    &gravity,
                    &mut cluster,
                    dt,
                    steps,
                )
            };
            let (first, second) = (run(), run());
            println!("drift {first:e}, then {second:e}");
            assert!(first <= 1e-3, "{first:e}");
            assert!(second <= 1e-3, "{second:e}");
        });
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn accelerations_are_the_gradient_of_the_potential() {
    // m_i a_i = -∂U/∂x_i, by central differences of second order.
    let mut rng = rng();
    let gravity = Gravity::new(0.3).unwrap();
    let bodies = random_bodies::<f64>(&mut rng, 12);
    let a = gravity.accelerations_of(&Device::cpu(), &bodies).unwrap();
    let h = 1e-4;
    for_each("bodies", 0..bodies.len(), |i| {
        for (axis, a) in a[i].into_iter().enumerate() {
            let potential = |shift: f64| {
                let mut moved = bodies.clone();
                match axis {
                    0 => moved[i].x += shift,
                    1 => moved[i].y += shift,
                    _ => moved[i].z += shift,
                }
                potential_energy(&gravity, &moved).unwrap()
            };
            let force = -(potential(h) - potential(-h)) / (2.0 * h);
            // Twelve bodies, masses below 2: U below 1000, its third derivative
            // below 50 · 4 · 12 / ε⁴, and h² times that below 3e-3.
            let expected = bodies[i].mass * a;
            assert!((force - expected).abs() <= 3e-3, "{force}, not {expected}");
        }
    });
}

#[test]
fn nothing_that_is_accepted_gives_a_nan() {
    // The corners of what `check` lets pass: the shortest and longest softening,
    // bodies at one place and as far apart as can be, all the mass there may be.
    fn check<T: Scalar + Bits>() {
        let far = T::LONGEST;
        for softening in [T::SHORTEST, 1e-6, 1.0, 1e6, T::LONGEST] {
            let gravity = Gravity::new(softening).unwrap();
            let share = gravity.mass_limit::<T>() / 8.0 * (1.0 - 1e-6);
            let places = [
                [far; 3],
                [-far; 3],
                [far, -far, 0.0],
                [0.0; 3],
                [0.0; 3],
                [softening, 0.0, 0.0],
                [T::SHORTEST, 0.0, -softening],
                [0.0, 0.0, -0.0],
            ];
            let bodies = places.map(|place| body::<T>(place, share));
            gravity.check(&bodies).unwrap();
            for_each_implementation::<T>("corners", |device, implementation| {
                let a = implementation.run(device, &gravity, &bodies);
                let finite = |value: &T| Into::<f64>::into(*value).is_finite();
                assert!(
                    a.iter().flatten().all(finite),
                    "softening {softening:e}: {a:?}"
                );
            });
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn softening_must_be_positive_and_in_range() {
    for_each(
        "not finite",
        [f64::NAN, f64::INFINITY, -f64::INFINITY],
        |length| {
            let error = Gravity::new(length).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::NonFinite {
                        parameter: "the softening length",
                        ..
                    }
                ),
                "{error}"
            );
        },
    );
    for_each("no type's", [0.0, -0.0, -1.0, 1e-160, 1e160], |length| {
        let error = Gravity::new(length).unwrap_err();
        assert!(
            matches!(
                error,
                Error::InvalidParameter {
                    parameter: "the softening length",
                    ..
                }
            ),
            "{error}"
        );
    });
    assert_eq!(
        Gravity::new(0.0).unwrap_err().to_string(),
        format!(
            "nbody: the softening length is 0.0, but must be positive, from {:e} to {:e} in f64 \
             (without softening, bodies at one place attract each other infinitely)",
            f64::SHORTEST,
            f64::LONGEST
        )
    );

    // f64 takes these, f32 does not: ε² would be subnormal, or too large.
    let bodies = [body::<f32>([0.0; 3], 1e-30), body([1.0; 3], 1e-30)];
    let wide = bodies.map(|small| body::<f64>([small.x.into(); 3], small.mass.into()));
    for_each("f64 only", [1e-20, 0.99 * f32::SHORTEST, 1e19], |length| {
        let gravity = Gravity::new(length).unwrap();
        gravity.check(&wide).unwrap();
        let refusals = [
            gravity.check(&bodies).unwrap_err(),
            gravity
                .accelerations_of(&Device::cpu(), &bodies)
                .unwrap_err(),
            potential_energy(&gravity, &bodies).unwrap_err(),
            gravity
                .accelerations_by(Port::Aos, &bodies, &mut [[0.0; 3]; 2])
                .unwrap_err(),
        ];
        for error in refusals {
            let text = error.to_string();
            assert!(
                matches!(error, Error::InvalidParameter { .. }) && text.contains("in f32"),
                "{text}"
            );
        }
    });
    for length in [f32::SHORTEST, f32::LONGEST] {
        Gravity::new(length).unwrap().check(&bodies).unwrap();
    }
}

#[test]
fn bodies_without_meaning_are_refused_by_index() {
    fn check<T: Scalar>() {
        let gravity = Gravity::new(0.5).unwrap();
        let good = vec![body::<T>([1.0, 2.0, 3.0], 1.0); 10];
        gravity.check(&good).unwrap();
        let refuse = |index: usize, bad: Body<T>| {
            let mut bodies = good.clone();
            bodies[index] = bad;
            let error = gravity.check(&bodies).unwrap_err();
            let by_energy = potential_energy(&gravity, &bodies).unwrap_err();
            assert_eq!(error.to_string(), by_energy.to_string());
            let by_device = gravity
                .accelerations_of(&Device::cpu(), &bodies)
                .unwrap_err();
            assert_eq!(error.to_string(), by_device.to_string());
            match error {
                Error::InvalidElement {
                    what,
                    index: found,
                    given,
                    ..
                } => {
                    assert_eq!(found, index);
                    (what, given)
                }
                other => panic!("{other}"),
            }
        };
        let values = [
            f64::NAN,
            f64::INFINITY,
            -f64::INFINITY,
            2.0 * T::LONGEST,
            -2.0 * T::LONGEST,
        ];
        for_each("coordinates", values, |value| {
            let whats = [
                refuse(9, body([value, 0.0, 0.0], 1.0)),
                refuse(0, body([0.0, value, 0.0], 1.0)),
                refuse(4, body([0.0, 0.0, value], 1.0)),
            ];
            for ((what, given), axis) in whats.into_iter().zip(["x", "y", "z"]) {
                assert_eq!(what, format!("the {axis} coordinate of body"));
                assert_eq!(given.to_bits(), value.to_bits());
            }
        });
        let limit = gravity.mass_limit::<T>();
        for_each(
            "masses",
            [
                f64::NAN,
                f64::INFINITY,
                -f64::INFINITY,
                1.01 * limit,
                -1.01 * limit,
            ],
            |mass| {
                let (what, given) = refuse(7, body([0.0; 3], mass));
                assert_eq!(what, "the mass of body");
                let expected: f64 = T::nearest(mass).into();
                assert_eq!(given.to_bits(), expected.to_bits());
            },
        );
        // It is the sum that counts, in size: the third makes it too much.
        let mut bodies = good.clone();
        for (index, share) in [(2, 0.4), (5, -0.4), (8, 0.4)] {
            bodies[index].mass = T::nearest(share * limit);
        }
        let error = gravity.check(&bodies).unwrap_err();
        assert!(
            matches!(error, Error::InvalidElement { index: 8, .. }),
            "{error}"
        );
        bodies[8].mass = T::nearest(0.1 * limit);
        gravity.check(&bodies).unwrap();
        // A mass may be nothing, or push.
        for mass in [0.0, -0.0, -3.0] {
            let mut bodies = good.clone();
            bodies[3].mass = T::nearest(mass);
            gravity.check(&bodies).unwrap();
        }
    }
    check::<f32>();
    check::<f64>();

    let mut bodies = vec![body::<f32>([0.0; 3], 1.0); 8];
    bodies[5].y = f32::NAN;
    assert_eq!(
        Gravity::new(1.0)
            .unwrap()
            .check(&bodies)
            .unwrap_err()
            .to_string(),
        "nbody: the y coordinate of body 5 is NaN, but must be a number from -2.305843009213694e18 \
         to 2.305843009213694e18"
    );
}

#[test]
fn blocks_are_multiples_of_a_warp() {
    let gravity = Gravity::new(1.0).unwrap();
    assert_eq!(gravity.block(), DEFAULT_BLOCK);
    for_each("good", (32..=1024).step_by(32), |block| {
        assert_eq!(gravity.with_block(block).unwrap().block(), block);
    });
    for_each(
        "bad",
        [0, 1, 16, 31, 33, 48, 1023, 1056, u32::MAX],
        |block| {
            let error = gravity.with_block(block).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("nbody: block is {block}, but must be a multiple of 32 from 32 to 1024")
            );
        },
    );
}

#[test]
fn buffers_that_do_not_fit_are_refused_and_left_alone() {
    fn check<T: Scalar + Bits>() {
        let gravity = Gravity::new(1.0).unwrap();
        let poison = [T::nearest(-7.0); 3];
        for_each_implementation::<T>("bad buffers", |device, implementation| {
            let variant = match implementation {
                Implementation::Kernel(variant) => Some(variant),
                Implementation::Default => None,
                // Ports have no buffers.
                Implementation::Port(_) => return,
            };
            let attempt = |bodies: usize, accelerations: usize, elsewhere: bool| {
                let bodies = device
                    .upload(&vec![body::<T>([0.0; 3], 1.0); bodies])
                    .unwrap();
                let target = if elsewhere {
                    Device::cpu()
                } else {
                    device.clone()
                };
                let mut accelerations = target.alloc_filled(accelerations, poison).unwrap();
                let error = match variant {
                    Some(variant) => apply_with(&gravity, variant, &bodies, &mut accelerations),
                    None => apply(&gravity, &bodies, &mut accelerations),
                }
                .unwrap_err();
                let after = accelerations.to_vec().unwrap();
                assert!(after.iter().all(|&a| a == poison), "{after:?}");
                error
            };
            for (bodies, accelerations) in [(5, 4), (5, 6), (5, 0), (5, 15)] {
                let error = attempt(bodies, accelerations, false);
                assert_eq!(
                    error.to_string(),
                    format!("nbody: accelerations has {accelerations} elements, but must have 5")
                );
            }
            let error = attempt(0, 0, false);
            assert!(
                matches!(error, Error::EmptyInput { operation: "nbody" }),
                "{error}"
            );
            let error = attempt(5, 5, true);
            assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
        });
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn empty_and_mismatched_host_slices_are_refused() {
    let gravity = Gravity::new(1.0).unwrap();
    let bodies = [body::<f32>([0.0; 3], 1.0); 3];
    for_each("ports", Port::ALL, |port| {
        let error = gravity
            .accelerations_by(port, &bodies, &mut [[0.0; 3]; 2])
            .unwrap_err();
        assert!(
            matches!(
                error,
                Error::LengthMismatch {
                    required: 3,
                    given: 2,
                    ..
                }
            ),
            "{error}"
        );
        let error = gravity
            .accelerations_by::<f32>(port, &[], &mut [])
            .unwrap_err();
        assert!(matches!(error, Error::EmptyInput { .. }), "{error}");
    });
    for error in [
        gravity.check::<f64>(&[]).unwrap_err(),
        potential_energy::<f64>(&gravity, &[]).unwrap_err(),
        Reference::of::<f64>(&gravity, &[]).unwrap_err(),
        Cluster::<f64>::plummer(0, 1).unwrap_err(),
    ] {
        assert!(matches!(error, Error::EmptyInput { .. }), "{error}");
    }
    for_each(
        "devices",
        devices().iter().map(Device::name).zip(devices()),
        |(_, device)| {
            let error = gravity.accelerations_of::<f32>(&device, &[]).unwrap_err();
            assert!(matches!(error, Error::EmptyInput { .. }), "{error}");
        },
    );
    let error = Cluster::<f32>::plummer(MAX_BODIES + 1, 1).unwrap_err();
    assert!(matches!(error, Error::IndexOverflow { .. }), "{error}");
    let reference = Reference::of(&gravity, &bodies).unwrap();
    let error = reference.errors(&[[0.0_f32; 3]; 2]).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
}

#[test]
fn the_cpu_launches_no_kernel() {
    let device = Device::cpu();
    let gravity = Gravity::new(1.0).unwrap();
    let bodies = device.upload(&[body::<f32>([0.0; 3], 1.0); 3]).unwrap();
    let mut accelerations = device.alloc_filled(3, [0.0_f32; 3]).unwrap();
    for_each("kernels on the cpu", Variant::ALL, |variant| {
        let error = apply_with(&gravity, variant, &bodies, &mut accelerations).unwrap_err();
        assert!(
            matches!(error, Error::NotLaunchable { kernel } if kernel == variant.kernel::<f32>()),
            "{error}"
        );
    });
}

#[test]
fn accelerations_of_host_bodies_run_on_the_device() {
    let gravity = Gravity::new(0.1).unwrap();
    let bodies = Cluster::<f32>::plummer(77, 3).unwrap().bodies;
    let reference = Reference::of(&gravity, &bodies).unwrap();
    for_each(
        "devices",
        devices().iter().map(Device::name).zip(devices()),
        |(_, device)| {
            let a = gravity.accelerations_of(&device, &bodies).unwrap();
            assert_accurate(&a, &reference);
            let default = Implementation::Default.run(&device, &gravity, &bodies);
            assert_same_bits(a.as_flattened(), default.as_flattened(), component);
        },
    );
}

#[test]
fn work_is_counted_by_the_conventions() {
    assert_eq!(interactions(DEFAULT_N), 1 << 28);
    let gravity = Gravity::new(0.1).unwrap();
    assert_eq!(gravity.cost::<f32>(DEFAULT_N).flops, 20 << 28);
    assert_eq!(gravity.cost::<f64>(DEFAULT_N).flops, 30 << 28);
    assert_eq!(gravity.cost::<f32>(1000).bytes, 1000 * (16 + 12));
    assert_eq!(gravity.cost::<f64>(1000).bytes, 1000 * (32 + 24));
}

#[test]
fn a_plummer_sphere_is_one() {
    let n = 5_000;
    let cluster = Cluster::<f64>::plummer(n, 1974).unwrap();
    assert_eq!(cluster, Cluster::plummer(n, 1974).unwrap());
    assert_ne!(cluster, Cluster::plummer(n, 1975).unwrap());
    assert_eq!((cluster.bodies.len(), cluster.velocities.len()), (n, n));

    // At rest at the origin, of mass 1.
    let mass: f64 = cluster.bodies.iter().map(|body| body.mass).sum();
    assert!((mass - 1.0).abs() < 1e-12);
    for axis in 0..3 {
        let mean = |value: fn(&Cluster<f64>, usize, usize) -> f64| {
            (0..n).map(|i| value(&cluster, i, axis)).sum::<f64>() / n as f64
        };
        assert!(mean(|cluster, i, axis| cluster.bodies[i].position()[axis]).abs() < 1e-14);
        assert!(mean(|cluster, i, axis| cluster.velocities[i][axis]).abs() < 1e-14);
    }

    // The mass within r of the centre is (1 + (a/r)²)^(-3/2), a = 3π/16, of which
    // the cut at 10 a leaves out 1.5 %. Four standard deviations of n drawings.
    let scale = 3.0 * std::f64::consts::PI / 16.0;
    let within = |r: f64| (1.0 + r.powi(-2)).powf(-1.5);
    for_each("radii", [0.3, 0.7, 1.0, 1.5, 3.0, 6.0], |r| {
        let expected = within(r) / within(10.0);
        let found = cluster
            .bodies
            .iter()
            .filter(|body| norm(body.position()) < r * scale)
            .count() as f64
            / n as f64;
        let deviation = (expected * (1.0 - expected) / n as f64).sqrt();
        assert!(
            (found - expected).abs() <= 4.0 * deviation,
            "{found}, not {expected} ± {deviation}"
        );
    });
    // Nobody escapes: the fastest is below the speed of escape, √(2 φ), at its place.
    for (body, velocity) in cluster.bodies.iter().zip(&cluster.velocities) {
        let r = norm(body.position());
        let escape = (2.0 / (r * r + scale * scale).sqrt()).sqrt();
        assert!(norm(*velocity) <= 1.01 * escape);
    }
    // Potential -1/2, kinetic 1/4: to a few per cent, cut and chance included.
    let gravity = Gravity::new(1e-9).unwrap();
    let potential = potential_energy(&gravity, &cluster.bodies).unwrap();
    let kinetic = cluster.kinetic_energy();
    assert!((potential + 0.5).abs() < 0.02, "{potential}");
    assert!((kinetic - 0.25).abs() < 0.01, "{kinetic}");

    // The same in f32, but for rounding.
    let single = Cluster::<f32>::plummer(100, 5).unwrap();
    let double = Cluster::<f64>::plummer(100, 5).unwrap();
    for (single, double) in single.bodies.iter().zip(&double.bodies) {
        assert_eq!(single.position(), double.position().map(|x| x as f32));
    }
}

#[test]
fn ptx_facts() {
    fn check<T: Scalar>(target: &str, variant: Variant) {
        let text = ptx::text(target);
        let body = ptx::entry(text, variant.kernel::<T>());
        let count = |opcode: &str| ptx::count(&body, opcode);
        let single = T::NAME == "f32";
        let shared = variant == Variant::Shared;

        // As many copies of the interaction as the source says, and one more for
        // the bodies that a last turn would lack, where there can be any: neither
        // unrolled further by LLVM nor rolled up. `ptxas` is told the same.
        let remainder = usize::from(!shared && variant.unroll() > 1);
        let copies = variant.unroll() + remainder;
        let root = if single {
            "rsqrt.approx.ftz.f32"
        } else {
            "rsqrt.approx.f64"
        };
        assert_eq!(count(root), copies, "reciprocal square roots");
        assert_eq!(count("rsqrt"), copies, "other reciprocal square roots");
        let fused = if single { "fma.rn.f32" } else { "fma.rn.f64" };
        assert_eq!(count(fused), 6 * copies, "fused multiply-adds");
        let pragmas = body
            .iter()
            .filter(|line| line.as_str() == ".pragma \"nounroll\";")
            .count();
        assert_eq!(pragmas, 1 + remainder, "loops");
        // No division, no square root, no call: nothing but the instruction.
        for opcode in ["div", "sqrt", "rcp", "call"] {
            assert_eq!(count(opcode), 0, "{opcode}");
        }

        // A body is one access of 16 bytes, or two.
        let wide = if single { ".v4.b32" } else { ".v2.b64" };
        let accesses = if single { 1 } else { 2 };
        let (global, tile) = if shared {
            (0, variant.unroll())
        } else {
            (copies, 0)
        };
        assert_eq!(
            count(&format!("ld.shared{wide}")),
            accesses * tile,
            "loads from the tile"
        );
        assert_eq!(
            count("ld.shared"),
            accesses * tile,
            "narrow loads from the tile"
        );
        // The thread's own body, and the one it puts in the tile. Of its own in
        // f64 it may leave the mass, the second half of the second access.
        let own = 1 + usize::from(shared);
        let loads = count(&format!("ld.global{wide}"));
        let least = accesses * (global + own) - usize::from(!single);
        assert!(
            (least..=accesses * (global + own)).contains(&loads),
            "{loads} loads of bodies"
        );
        assert_eq!(count("ld.global"), accesses * (global + own), "loads");
        assert_eq!(
            count(&format!("st.shared{wide}")),
            accesses * usize::from(shared)
        );
        assert_eq!(
            count("bar.sync") + count("barrier.sync"),
            2 * usize::from(shared)
        );
        assert_eq!(count("st.global"), 3, "stores of the acceleration");

        // Nothing generic, nothing spilled.
        for opcode in [
            "ld.b", "ld.f", "ld.v", "st.b", "st.f", "st.v", "ld.local", "st.local",
        ] {
            assert_eq!(count(opcode), 0, "{opcode}");
        }
    }
    let kernels = ptx::TARGETS
        .into_iter()
        .flat_map(|target| Variant::TEXTBOOK.map(|variant| (target, variant)));
    for_each("ptx", kernels, |(target, variant)| {
        check::<f32>(target, variant);
        check::<f64>(target, variant);
    });
}

/// Sizes around a warp and around a block of the kernel that kicks and drifts.
const LEAPFROG_SIZES: [usize; 7] = [1, 2, 31, 33, 255, 256, 257];

#[test]
fn a_leapfrog_is_kick_drift_kick() {
    // By definition, on the host: nbody_kick_drift_f32 and nbody_kick_drift_f64, and
    // the port, must give these bits.
    fn check<T: Scalar + Bits>(rng: &mut SmallRng, fused: fn(T, T, T) -> T) {
        let gravity = Gravity::new(0.3).unwrap();
        let dt = 1.0 / 16.0;
        let cases = devices()
            .into_iter()
            .flat_map(|device| LEAPFROG_SIZES.map(|n| (device.clone(), n)));
        for_each("leapfrog, bits", cases, |(device, n)| {
            let mut bodies = random_bodies::<T>(rng, n);
            let random = |_| [(); 3].map(|()| T::nearest(rng.random_range(-1.0..1.0)));
            let mut velocities: Vec<[T; 3]> = (0..n).map(random).collect();
            // The same kernels, each launched once.
            let once = match device.kind() {
                DeviceKind::Emulator => Device::emulator(),
                _ => device.clone(),
            };
            let mut leapfrog = gravity.start(&device, &bodies, &velocities, dt).unwrap();
            for steps in [1, 2] {
                leapfrog.advance(steps).unwrap();
                for _ in 0..steps {
                    let kick = |velocities: &mut [[T; 3]], bodies: &[Body<T>]| {
                        let a = gravity.accelerations_of(&once, bodies).unwrap();
                        for (v, a) in velocities
                            .as_flattened_mut()
                            .iter_mut()
                            .zip(a.as_flattened())
                        {
                            *v = fused(*a, T::nearest(0.5 * dt), *v);
                        }
                    };
                    kick(&mut velocities, &bodies);
                    for (body, v) in bodies.iter_mut().zip(&velocities) {
                        body.x = fused(v[0], T::nearest(dt), body.x);
                        body.y = fused(v[1], T::nearest(dt), body.y);
                        body.z = fused(v[2], T::nearest(dt), body.z);
                    }
                    kick(&mut velocities, &bodies);
                }
                assert_same_bits(&flat(&leapfrog.bodies().unwrap()), &flat(&bodies), |i| {
                    format!("number {} of body {}", i % 4, i / 4)
                });
                assert_same_bits(
                    leapfrog.velocities().unwrap().as_flattened(),
                    velocities.as_flattened(),
                    component,
                );
            }
            assert_eq!((leapfrog.steps(), leapfrog.time()), (3, 3.0 * dt));
        });
    }
    let mut rng = rng();
    check::<f32>(&mut rng, f32::mul_add);
    check::<f64>(&mut rng, f64::mul_add);
}

#[test]
fn a_leapfrog_goes_back_the_way_it_came() {
    let gravity = Gravity::new(0.1).unwrap();
    for_each("back and forth", devices(), |device| {
        let start = Cluster::<f64>::plummer(100, 1687).unwrap();
        let run = |cluster: &Cluster<f64>, dt: f64| {
            let mut leapfrog = gravity
                .start(&device, &cluster.bodies, &cluster.velocities, dt)
                .unwrap();
            let before = leapfrog.energy().unwrap();
            assert_eq!(before.kinetic, cluster.kinetic_energy());
            leapfrog.advance(40).unwrap();
            let after = leapfrog.energy().unwrap();
            let change = (after.total() - before.total()) / before.total();
            assert!(change.abs() <= 1e-3, "{change:e}");
            Cluster {
                bodies: leapfrog.bodies().unwrap(),
                velocities: leapfrog.velocities().unwrap(),
            }
        };
        let there = run(&start, 1.0 / 64.0);
        let back = run(&there, -1.0 / 64.0);
        let distance = |cluster: &Cluster<f64>| {
            let errors = flat(&cluster.bodies)
                .into_iter()
                .zip(flat(&start.bodies))
                .map(|(is, was)| (is - was).abs());
            errors.fold(0.0, f64::max)
        };
        assert!(distance(&there) > 0.1, "{:e}", distance(&there));
        // Each step is undone but for rounding.
        assert!(distance(&back) <= 1e-9, "{:e}", distance(&back));
    });
}

#[test]
fn a_leapfrog_without_meaning_is_refused() {
    let gravity = Gravity::new(0.5).unwrap();
    let bodies = [body::<f32>([0.0; 3], 1.0), body([1.0; 3], 1.0)];
    let refuse = |bodies: &[Body<f32>], velocities: &[[f32; 3]], dt: f64| {
        gravity
            .start(&Device::emulator(), bodies, velocities, dt)
            .unwrap_err()
            .to_string()
    };
    let still = [[0.0; 3]; 2];
    assert_eq!(
        refuse(&bodies, &still[..1], 0.1),
        "nbody: velocities has 1 elements, but must have 2"
    );
    assert!(refuse(&[], &[], 0.1).contains("the input is empty"));
    let fast = [[0.0; 3], [0.0, 0.0, f32::INFINITY]];
    assert_eq!(
        refuse(&bodies, &fast, 0.1),
        "nbody: the velocity along z of body 1 is inf, but must be a finite number"
    );
    assert!(refuse(&bodies, &still, f64::NAN).contains("the time step is NaN"));
    // Half of 1e-45 is not an f32 any more, and no f32 is as large as 1e39.
    for step in [0.0, 1e-45, 1e39] {
        assert!(
            refuse(&bodies, &still, step).contains("not zero in f32"),
            "{step}"
        );
    }

    let device = Device::emulator();
    let vectors = |n: usize| device.alloc_filled(n, [0.0_f32; 3]).unwrap();
    let mut two = device.upload(&bodies).unwrap();
    let error = kick_drift(&vectors(2), [0.1, 0.1], &mut vectors(3), &mut two).unwrap_err();
    assert!(
        matches!(
            error,
            Error::LengthMismatch {
                required: 2,
                given: 3,
                ..
            }
        ),
        "{error}"
    );
    let elsewhere = Device::cpu().alloc_filled(2, [0.0_f32; 3]).unwrap();
    let error = kick_drift(&elsewhere, [0.1, 0.1], &mut vectors(2), &mut two).unwrap_err();
    assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
    let error =
        kick_drift(&vectors(2), [0.1, f64::INFINITY], &mut vectors(2), &mut two).unwrap_err();
    assert!(
        error.to_string().contains("the time of the drift is inf"),
        "{error}"
    );
    assert_eq!(flat(&two.to_vec().unwrap()), flat(&bodies));
}
