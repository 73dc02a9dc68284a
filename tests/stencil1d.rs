//! stencil1d: the CPU port, the two textbook kernels and the tuned one on every device,
//! and the kernels of any coefficients, `stencil1d_custom_f32` and
//! `stencil1d_custom_f64`.

#[path = "stencil1d/custom.rs"]
mod custom;
#[path = "stencil1d/properties.rs"]
mod properties;

use halo_gpu::case::{Problem, Role, registry};
use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS, Variant, problem};
use halo_gpu::{Buffer, Device, DeviceKind, Dim3, EmulatorOptions, Error, LaunchAxis, Limits};
use halo_tests::{
    assert_same_bits, devices, for_each, is_called, kernel_devices, ptx, rng, uniform,
};

/// Neighbours on either side of the textbook's stencil.
const RADIUS: usize = TEXTBOOK_COEFFICIENTS.len();

/// What computes the stencil.
#[derive(Debug, Clone, Copy)]
enum Implementation {
    /// `Stencil1d::plan`: the CPU port, or the kernel the library picks.
    Default,
    Kernel(Variant),
}

impl Implementation {
    /// All there are on `device`.
    fn all(device: &Device) -> Vec<Self> {
        let mut all = vec![Self::Default];
        if device.kind() != DeviceKind::Cpu {
            all.extend(Variant::ALL.map(Self::Kernel));
        }
        all
    }

    fn apply(
        self,
        stencil: &Stencil1d<f32>,
        input: &Buffer<f32>,
        output: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let device = input.device();
        match self {
            Self::Default => stencil.plan(device)?.apply(input, output),
            Self::Kernel(variant) => stencil.plan_with(device, variant)?.apply(input, output),
        }
    }

    /// Runs it, with an output that held `before`.
    fn run(
        self,
        device: &Device,
        stencil: &Stencil1d<f32>,
        input: &[f32],
        before: &[f32],
    ) -> Vec<f32> {
        let line = device.upload(input).unwrap();
        let mut output = device.upload(before).unwrap();
        self.apply(stencil, &line, &mut output).unwrap();
        assert_same_bits(&line.to_vec().unwrap(), input, |i| {
            format!("input {i}, which was only to be read,")
        });
        output.to_vec().unwrap()
    }
}

/// Runs `check` for every implementation on every device.
fn for_each_implementation(what: &str, mut check: impl FnMut(&Device, Implementation)) {
    let cases: Vec<_> = devices()
        .into_iter()
        .flat_map(|device| {
            Implementation::all(&device)
                .into_iter()
                .map(move |implementation| {
                    (device.name().to_owned(), device.clone(), implementation)
                })
        })
        .collect();
    // The CPU port and, on each device with kernels, four of them and the default.
    assert_eq!(cases.len(), 1 + 5 * kernel_devices().len());
    for_each(what, cases, |(_, device, implementation)| {
        check(&device, implementation);
    });
}

/// What an output holds before: nothing a stencil could compute, and different
/// everywhere.
fn poison(n: usize) -> Vec<f32> {
    (0..n).map(|i| 1e6 + i as f32).collect()
}

/// The stencil by definition, in the order of the operations, one element at a time; the ends keep
/// the values of `before`.
fn by_definition(coefficients: [f32; RADIUS], input: &[f32], before: &[f32]) -> Vec<f32> {
    let n = input.len();
    let mut output = before.to_vec();
    for i in 4..n - 4 {
        let [c1, c2, c3, c4] = coefficients;
        let mut sum = c1 * (input[i + 1] - input[i - 1]);
        sum = f32::mul_add(input[i + 2] - input[i - 2], c2, sum);
        sum = f32::mul_add(input[i + 3] - input[i - 3], c3, sum);
        sum = f32::mul_add(input[i + 4] - input[i - 4], c4, sum);
        output[i] = sum;
    }
    output
}

/// Lengths around one, two and three blocks, so that the last block is full, partial, has fewer
/// threads than a halo, or has nothing to write.
fn lengths(block: usize) -> Vec<usize> {
    let mut lengths: Vec<usize> = (9..=16).collect();
    for blocks in 1..=3 {
        let end = blocks * block;
        lengths.extend([0, 1, 3, 4, 5, 7, 8, 9, 13].map(|more| end + more));
        lengths.extend([1, 2, 4, 5, 8, 11].map(|less| end - less));
    }
    lengths
}

#[test]
fn the_variants_are_the_kernels_of_the_table() {
    let table = registry::family("stencil1d").unwrap().kernels;
    let in_both_types = |variant: Variant| [variant.kernel::<f32>(), variant.kernel::<f64>()];
    let kernels = Variant::ALL.into_iter().flat_map(in_both_types).flatten();
    assert!(kernels.eq(table.iter().map(|entry| entry.name)));
    for_each("variants", Variant::ALL, |variant| {
        let entry = registry::entry(variant.kernel::<f32>().unwrap()).unwrap();
        assert!(is_called(entry, variant));
        assert_eq!(variant.name(), format!("stencil1d_{}", entry.variant));
        assert_eq!(variant.to_string(), variant.name());
        let textbook = Variant::TEXTBOOK.contains(&variant);
        assert_eq!(textbook, entry.role == Role::Textbook);
    });
}

#[test]
fn the_kernel_that_suits_the_stencil_is_picked() {
    for device in kernel_devices() {
        let kernel = |stencil: Stencil1d<f32>| stencil.plan(&device).unwrap().kernel();
        let four = Stencil1d::antisymmetric(100, &[1.0; 4]).unwrap();
        assert_eq!(kernel(four), Some("stencil1d_vector4"));
        let three = Stencil1d::antisymmetric(100, &[1.0; 3]).unwrap();
        assert_eq!(kernel(three), Some("stencil1d_custom_f32"));
        let symmetric = Stencil1d::symmetric(100, 1.0, &[1.0; 4]).unwrap();
        assert_eq!(kernel(symmetric), Some("stencil1d_custom_f32"));
        let of_f64 = Stencil1d::antisymmetric(100, &[1.0_f64; 4]).unwrap();
        let plan = of_f64.plan(&device).unwrap();
        assert_eq!(plan.kernel(), Some("stencil1d_custom_f64"));
        assert_eq!(plan.variant(), Some(Variant::Custom));

        // Kernels that do not compute it.
        for variant in [Variant::Constant, Variant::ReadOnly, Variant::Vector4] {
            for error in [
                three.plan_with(&device, variant).unwrap_err(),
                symmetric.plan_with(&device, variant).unwrap_err(),
                of_f64.plan_with(&device, variant).unwrap_err(),
            ] {
                assert!(
                    matches!(&error, Error::InvalidParameter { parameter: "the variant", given, .. }
                        if given == variant.name()),
                    "{error}"
                );
            }
        }
    }
    let on_cpu = Stencil1d::antisymmetric(100, &[1.0_f32; 4]).unwrap();
    assert_eq!(on_cpu.plan(&Device::cpu()).unwrap().kernel(), None);
}

#[test]
fn a_block_has_a_thread_for_each_of_its_elements_and_a_tile_with_both_halos() {
    for variant in Variant::TEXTBOOK {
        let entry = registry::entry(variant.kernel::<f32>().unwrap()).unwrap();
        for_each(
            entry.name,
            [None, Some(32), Some(96), Some(1024)],
            |block| {
                let line = Problem {
                    block,
                    ..Problem::line(10_000)
                };
                let threads = block.unwrap_or(32);
                let geometry = entry.geometry(&line).unwrap();
                assert_eq!(geometry.grid, [10_000_u32.div_ceil(threads), 1, 1]);
                assert_eq!(geometry.block, [threads, 1, 1]);
                assert_eq!(geometry.dynamic_shared_bytes, 4 * (4 + threads + 4));
            },
        );
    }
}

#[test]
fn the_tuned_kernel_gives_the_bits_of_the_definition_around_its_blocks() {
    let mut rng = rng();
    // A block has 1024 elements, a warp's access 128, a vector 4.
    let lengths = [128, 256, 512, 1024, 2048, 3072]
        .into_iter()
        .flat_map(|end| (end - 9..=end + 9).step_by(if end > 1024 { 3 } else { 1 }));
    let cases: Vec<_> = kernel_devices()
        .into_iter()
        .flat_map(|device| lengths.clone().map(move |n| (device.clone(), n)))
        .collect();
    for_each("lengths", cases, |(device, n)| {
        let coefficients: [f32; RADIUS] = uniform(&mut rng, RADIUS).try_into().unwrap();
        let stencil = Stencil1d::antisymmetric(n, &coefficients).unwrap();
        let input = uniform(&mut rng, n);
        let kernel = Implementation::Kernel(Variant::Vector4);
        let got = kernel.run(&device, &stencil, &input, &poison(n));
        let expected = by_definition(coefficients, &input, &poison(n));
        assert_same_bits(&got, &expected, |i| format!("element {i}"));
    });
}

#[test]
fn every_implementation_gives_the_bits_of_the_definition() {
    let mut rng = rng();
    for_each_implementation("stencil", |device, implementation| {
        for_each("block", [32, 64, 96], |block| {
            for_each("length", lengths(block), |n| {
                let coefficients: [f32; RADIUS] = uniform(&mut rng, RADIUS).try_into().unwrap();
                let stencil = Stencil1d::antisymmetric(n, &coefficients)
                    .unwrap()
                    .with_block(block as u32)
                    .unwrap();
                let input = uniform(&mut rng, n);
                let got = implementation.run(device, &stencil, &input, &poison(n));
                let expected = by_definition(coefficients, &input, &poison(n));
                assert_same_bits(&got, &expected, |i| format!("element {i}"));
            });
        });
    });
}

#[test]
fn any_block_gives_the_same_bits() {
    let mut rng = rng();
    // A prime, some blocks long whatever the block.
    let n = 3001;
    let input = uniform(&mut rng, n);
    let expected = by_definition(TEXTBOOK_COEFFICIENTS, &input, &poison(n));
    for_each_implementation("block", |device, implementation| {
        for block in (32..=1024).step_by(32) {
            if device.kind() == DeviceKind::Emulator && ![128, 416, 992, 1024].contains(&block) {
                continue;
            }
            let stencil = Stencil1d::antisymmetric(n, &TEXTBOOK_COEFFICIENTS)
                .unwrap()
                .with_block(block)
                .unwrap();
            let got = implementation.run(device, &stencil, &input, &poison(n));
            assert_same_bits(&got, &expected, |i| format!("block {block}, element {i}"));
        }
    });
}

#[test]
fn the_textbook_problem_is_solved() {
    assert_eq!(problem::N, 65_536);
    assert_eq!(TEXTBOOK_COEFFICIENTS, [-1.0, -2.0, 2.0, 1.0]);
    let stencil = Stencil1d::antisymmetric(problem::N, &TEXTBOOK_COEFFICIENTS).unwrap();
    assert_eq!(stencil.block(), 32);
    let input = problem::whole_numbers(problem::N).unwrap();
    let before = poison(problem::N);
    for_each_implementation("textbook problem", |device, implementation| {
        let output = implementation.run(device, &stencil, &input, &before);
        let errors = problem::textbook_errors(&output);
        assert!(errors.within(0.0, 0.0), "{errors:?}");
        assert_same_bits(&output[..4], &before[..4], |i| format!("element {i}"));
        let end = problem::N - 4;
        assert_same_bits(&output[end..], &before[end..], |i| {
            format!("element {}", end + i)
        });
    });
}

#[test]
fn the_derivative_is_that_of_analysis() {
    let n = 1000;
    let stencil = problem::derivative(n).unwrap();
    let line = problem::sine(n).unwrap();
    for_each_implementation("derivative", |device, implementation| {
        let output = implementation.run(device, &stencil, &line, &vec![f32::NAN; n]);
        let errors = problem::derivative_errors(&output);
        let bounds = problem::derivative_error_bounds();
        assert!(bounds.max < 2e-4, "{bounds:?} proves little");
        assert!(
            errors.within(bounds.rms, bounds.max),
            "{errors:?} exceeds {bounds:?}"
        );
        assert!(errors.max > 0.0, "f32 cannot be exact here");
    });
}

#[test]
fn the_derivative_is_exact_up_to_the_eighth_power() {
    // Differences of 8th order differentiate polynomials of degree 8 exactly.
    // Over 840 the weights are whole, so times 840 everything is: x⁵ near zero
    // is still small enough.
    let n = 2 * 11 + 1;
    let whole = [672.0, -168.0, 32.0, -3.0];
    let stencil = Stencil1d::antisymmetric(n, &whole).unwrap();
    let at = |i: usize| i as f32 - 11.0;
    for_each_implementation("polynomials", |device, implementation| {
        for power in 1..=5 {
            let input: Vec<f32> = (0..n).map(|i| at(i).powi(power)).collect();
            let output = implementation.run(device, &stencil, &input, &poison(n));
            for (i, &got) in output.iter().enumerate().take(n - 4).skip(4) {
                let expected = 840.0 * power as f32 * at(i).powi(power - 1);
                assert!(
                    got == expected,
                    "x^{power} at {}: {got}, not {expected}",
                    at(i)
                );
            }
        }
    });
    // The weights themselves.
    let derivative = Stencil1d::<f32>::derivative(9, 1.0).unwrap();
    assert_eq!(
        derivative.coefficients(),
        whole.map(|weight| (f64::from(weight) / 840.0) as f32)
    );
}

#[test]
fn an_impulse_gives_back_the_coefficients() {
    let coefficients = [2.0, 3.0, 5.0, 7.0];
    let n = 75;
    let stencil = Stencil1d::antisymmetric(n, &coefficients).unwrap();
    for_each_implementation("impulse", |device, implementation| {
        // At the ends, and on either side of the seam of two blocks of 32.
        for place in [
            0_usize, 3, 4, 27, 28, 31, 32, 35, 36, 63, 64, 67, 70, 71, 74,
        ] {
            let mut input = vec![0.0; n];
            input[place] = 1.0;
            let output = implementation.run(device, &stencil, &input, &poison(n));
            for (i, &got) in output.iter().enumerate().take(n - 4).skip(4) {
                let expected = match (i.abs_diff(place), i < place) {
                    (m @ 1..=4, true) => coefficients[m - 1],
                    (m @ 1..=4, false) => -coefficients[m - 1],
                    _ => 0.0,
                };
                assert!(got == expected, "impulse at {place}: element {i} is {got}");
            }
        }
    });
}

#[test]
fn what_the_twins_on_the_host_give_is_the_inner_elements() {
    let mut rng = rng();
    for_each_implementation("of", |device, _| {
        for n in [9, 10, 100] {
            let input = uniform(&mut rng, n);
            let stencil = Stencil1d::antisymmetric(n, &TEXTBOOK_COEFFICIENTS).unwrap();
            let expected = by_definition(TEXTBOOK_COEFFICIENTS, &input, &poison(n));
            let got = stencil.apply_of(device, &input).unwrap();
            assert_same_bits(&got, &expected[4..n - 4], |i| format!("inner element {i}"));
            let mut inner = vec![f32::NAN; n - 8];
            stencil.apply_of_into(device, &input, &mut inner).unwrap();
            assert_same_bits(&inner, &got, |i| format!("inner element {i}"));
            let error = stencil
                .apply_of_into(device, &input, &mut inner[1..])
                .unwrap_err();
            assert!(matches!(error, Error::LengthMismatch { .. }), "{error}");
        }
    });
}

#[test]
fn two_stencils_do_not_see_each_others_coefficients() {
    // Constant memory is one array for all: plans that take turns, and threads
    // that launch at the same time, must each get their own coefficients.
    let n = 500;
    let input = problem::whole_numbers(n).unwrap();
    let devices = kernel_devices();
    for_each(
        "coefficients",
        devices.iter().map(|device| (device.name(), device)),
        |(_, device)| {
            std::thread::scope(|scope| {
                for thread in 1..=3_u8 {
                    let input = &input;
                    scope.spawn(move || {
                        for variant in Variant::ALL {
                            for factor in [1.0, 10.0, 100.0] {
                                let scale = f32::from(thread) * factor;
                                let coefficients = TEXTBOOK_COEFFICIENTS.map(|c| c * scale);
                                let stencil = Stencil1d::antisymmetric(n, &coefficients).unwrap();
                                let got = Implementation::Kernel(variant).run(
                                    device,
                                    &stencil,
                                    input,
                                    &poison(n),
                                );
                                let expected = by_definition(coefficients, input, &poison(n));
                                assert_same_bits(&got, &expected, |i| format!("element {i}"));
                            }
                        }
                    });
                }
            });
        },
    );
}

#[test]
fn a_prepared_stencil_runs_either_kernel() {
    let mut rng = rng();
    let n = 333;
    let coefficients: [f32; RADIUS] = uniform(&mut rng, RADIUS).try_into().unwrap();
    let stencil = Stencil1d::antisymmetric(n, &coefficients).unwrap();
    let cases = kernel_devices().into_iter().flat_map(|device| {
        Variant::ALL.map(|variant| (device.name().to_owned(), device.clone(), variant))
    });
    for_each("prepared", cases, |(_, device, variant)| {
        let prepared = stencil.plan_with(&device, variant).unwrap();
        for _ in 0..2 {
            let input = uniform(&mut rng, n);
            let line = device.upload(&input).unwrap();
            let mut output = device.upload(&poison(n)).unwrap();
            prepared.apply(&line, &mut output).unwrap();
            let expected = by_definition(coefficients, &input, &poison(n));
            assert_same_bits(&output.to_vec().unwrap(), &expected, |i| {
                format!("element {i}")
            });
        }

        // Buffers of another device than the coefficients'.
        let other = Device::emulator();
        let line = other.alloc_filled(n, 1.0_f32).unwrap();
        let mut output = other.alloc_filled(n, 2.0_f32).unwrap();
        let error = prepared.apply(&line, &mut output).unwrap_err();
        assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
        assert_eq!(output.to_vec().unwrap(), vec![2.0; n]);
    });
}

#[test]
fn the_work_is_counted() {
    let stencil = Stencil1d::antisymmetric(100, &TEXTBOOK_COEFFICIENTS).unwrap();
    assert_eq!((stencil.n(), stencil.inner_len()), (100, 92));
    assert_eq!(stencil.cost().bytes, 4 * (100 + 92));
    assert_eq!(stencil.cost().flops, 11 * 92);
}

#[test]
fn lengths_blocks_and_parameters_without_meaning_are_refused() {
    for_each("length", 0..9, |n| {
        let error = Stencil1d::antisymmetric(n, &TEXTBOOK_COEFFICIENTS).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("stencil1d: n is {n}, but must be at least 9 (4 neighbours on either side)")
        );
    });
    let stencil = Stencil1d::antisymmetric(9, &TEXTBOOK_COEFFICIENTS).unwrap();

    for_each(
        "block",
        [0, 1, 16, 31, 33, 48, 1000, 1025, 1056, u32::MAX],
        |block| {
            let error = stencil.with_block(block).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "stencil1d: block is {block}, but must be a multiple of 32 between 32 and 1024"
                )
            );
        },
    );
    for_each("block", [32, 96, 1024], |block| {
        assert_eq!(stencil.with_block(block).unwrap().block(), block);
    });

    for_each(
        "coefficient",
        [f32::NAN, f32::INFINITY, f32::NEG_INFINITY],
        |bad| {
            for m in 0..RADIUS {
                let mut coefficients = TEXTBOOK_COEFFICIENTS;
                coefficients[m] = bad;
                let error = Stencil1d::antisymmetric(100, &coefficients).unwrap_err();
                let name = format!("coefficient {}", m + 1);
                assert!(
                    matches!(&error, Error::NonFinite { parameter, .. } if *parameter == name),
                    "{error}"
                );
            }
        },
    );

    for_each(
        "spacing",
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
        |h| {
            let error = Stencil1d::<f32>::derivative(100, h).unwrap_err();
            assert!(
                matches!(
                    error,
                    Error::NonFinite {
                        parameter: "the spacing",
                        ..
                    }
                ),
                "{error}"
            );
        },
    );
    for_each("spacing", [0.0, -0.0, -1.0, 1e-39, 1e300], |h| {
        let error = Stencil1d::<f32>::derivative(100, h).unwrap_err();
        assert!(
            matches!(
                error,
                Error::InvalidParameter {
                    parameter: "the spacing",
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn bad_buffers_are_refused_before_anything_runs() {
    let n = 100;
    let stencil = Stencil1d::antisymmetric(n, &TEXTBOOK_COEFFICIENTS).unwrap();
    for_each_implementation("bad buffers", |device, implementation| {
        let all = |buffer: &Buffer<f32>, value: f32| {
            buffer.to_vec().unwrap().iter().all(|&it| it == value)
        };
        let mut fits = device.alloc_filled(n, 1.0_f32).unwrap();
        let mut short = device.alloc_filled(n - 1, 2.0_f32).unwrap();
        for error in [
            implementation
                .apply(&stencil, &fits, &mut short)
                .unwrap_err(),
            implementation
                .apply(&stencil, &short, &mut fits)
                .unwrap_err(),
            stencil.apply_of(device, &[1.0; 99]).unwrap_err(),
        ] {
            assert!(
                matches!(
                    error,
                    Error::LengthMismatch {
                        required: 100,
                        given: 99,
                        ..
                    }
                ),
                "{error}"
            );
        }
        let mut elsewhere = Device::cpu().alloc_filled(n, 3.0_f32).unwrap();
        let error = implementation
            .apply(&stencil, &fits, &mut elsewhere)
            .unwrap_err();
        assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
        assert!(all(&fits, 1.0) && all(&short, 2.0) && all(&elsewhere, 3.0));
    });
}

#[test]
fn the_cpu_launches_no_kernel() {
    let device = Device::cpu();
    let stencil = Stencil1d::antisymmetric(50, &TEXTBOOK_COEFFICIENTS).unwrap();
    for_each("kernels on the cpu", Variant::ALL, |variant| {
        let error = stencil.plan_with(&device, variant).unwrap_err();
        assert!(
            matches!(error, Error::NotLaunchable { kernel }
                if Some(kernel) == variant.kernel::<f32>()),
            "{error}"
        );
    });
}

#[test]
fn more_blocks_than_a_grid_has_are_refused() {
    // The limit of real devices, 2³¹ - 1 blocks, needs 256 GiB; a limit with fewer blocks shows
    // that it is checked.
    let mut limits = Limits::SM_90;
    limits.grid = Dim3::new(3, 1, 1);
    let device = Device::emulator_with(EmulatorOptions {
        limits,
        ..EmulatorOptions::default()
    });
    for_each("variant", Variant::TEXTBOOK, |variant| {
        let run = |n: usize, block: u32| {
            let stencil = Stencil1d::antisymmetric(n, &TEXTBOOK_COEFFICIENTS)
                .and_then(|stencil| stencil.with_block(block))
                .unwrap();
            let input = device.alloc_filled(n, 1.0_f32).unwrap();
            let mut output = input.try_clone().unwrap();
            let plan = stencil.plan_with(&device, variant).unwrap();
            plan.apply(&input, &mut output)
        };
        run(96, 32).unwrap();
        run(97, 64).unwrap();
        let error = run(97, 32).unwrap_err();
        assert!(
            matches!(
                error,
                Error::LaunchLimit { kernel, axis: LaunchAxis::GridX, given: 4, .. }
                    if kernel == variant.name()
            ),
            "{error}"
        );
    });
}

/// More elements than 32 bits can count, in 35 GB.
#[cfg(feature = "gpu")]
#[test]
#[ignore = "needs 35 GB of device memory and 18 GB of the host's"]
fn more_elements_than_32_bits_count_are_computed() {
    let device = halo_tests::cuda();
    let n = (1 << 32) + 77;
    let stencil = Stencil1d::antisymmetric(n, &TEXTBOOK_COEFFICIENTS).unwrap();
    let input = device.alloc_filled(n, 1.0_f32).unwrap();
    for_each("variant", Variant::ALL, |variant| {
        let prepared = stencil.plan_with(&device, variant).unwrap();
        let mut output = device.alloc_filled(n, 5.0_f32).unwrap();
        prepared.apply(&input, &mut output).unwrap();
        let output = output.to_vec().unwrap();
        let wrong = (0..n).find(|&i| output[i] != if i < 4 || i >= n - 4 { 5.0 } else { 0.0 });
        assert_eq!(wrong, None);
    });
}

#[test]
fn ptx_facts_of_the_textbook_kernels() {
    let kernels = ptx::TARGETS
        .into_iter()
        .flat_map(|target| Variant::TEXTBOOK.map(|variant| (target, variant)));
    for_each("ptx", kernels, |(target, variant)| {
        let text = ptx::text(target);
        let body = ptx::entry(text, variant.name());
        let count = |opcode: &str| ptx::count(&body, opcode);

        // Load, barrier, compute: one barrier, reached by every thread.
        assert_eq!(count("bar.sync") + count("barrier.sync"), 1, "barriers");
        // The compiler knows every pointer's address space.
        assert_eq!(count("ld.f32") + count("ld.b32"), 0, "generic loads");
        assert_eq!(count("st.f32") + count("st.b32"), 0, "generic stores");
        assert_eq!(count("ld.local") + count("st.local"), 0, "local memory");
        // The element and two halo cells go into the tile, eight come out.
        let readonly = count("ld.global.nc");
        assert_eq!(count("ld.global") - readonly, 3);
        assert_eq!(count("st.shared"), 3);
        assert_eq!(count("ld.shared"), 8);
        assert_eq!(count("st.global"), 1);
        // Where the coefficients are is what the two kernels differ in.
        match variant {
            Variant::Constant => {
                assert!(count("ld.const") >= 1);
                assert_eq!(readonly, 0);
            }
            Variant::ReadOnly => {
                assert_eq!(count("ld.const"), 0);
                assert_eq!(readonly, 4);
            }
            _ => unreachable!("no textbook kernel"),
        }
        // 4 differences, 1 product, 3 fused multiply-adds.
        assert_eq!(count("sub.rn.f32") + count("sub.f32"), 4);
        assert_eq!(count("mul.rn.f32") + count("mul.f32"), 1);
        assert_eq!(count("fma.rn.f32"), 3);
    });
}

#[test]
fn ptx_facts_of_the_tuned_kernel() {
    for_each("ptx", ptx::TARGETS, |target| {
        let text = ptx::text(target);
        let body = ptx::entry(text, Variant::Vector4.name());
        let count = |opcode: &str| ptx::count(&body, opcode);
        assert_eq!(count("bar.sync") + count("barrier.sync"), 0, "barriers");
        assert_eq!(count("ld.shared") + count("st.shared"), 0, "shared memory");
        assert_eq!(count("ld.f32") + count("ld.b32"), 0, "generic loads");
        assert_eq!(count("st.f32") + count("st.b32"), 0, "generic stores");
        assert_eq!(count("ld.local") + count("st.local"), 0, "local memory");
        assert_eq!(count("ld.global"), count("ld.global.nc"));
        assert_eq!(count("st.global"), count("st.global.cs"));
        // The coefficients come with the launch.
        assert_eq!(count("ld.const"), 0);
        assert!(text.contains(".param .align 4 .b8 stencil1d_vector4_param_3[16]"));
    });
}
