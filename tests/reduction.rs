//! Tests of `reduction`: the CPU port, the four textbook kernels for both types, and the
//! single-pass kernels, on every device.

#[path = "reduction/properties.rs"]
mod properties;
#[path = "reduction/single_pass.rs"]
mod single_pass;
#[path = "reduction/terms.rs"]
mod terms;

use halo_gpu::case::{Problem, Role, registry};
use halo_gpu::reduction::{Number, Plan, Reduction, Variant, sum, sum_of};
use halo_gpu::{Buffer, Cost, Device, DeviceKind, EmulatorOptions, Error, LaunchAxis};
use halo_tests::{
    Bits, assert_same_bits, devices, for_each, kernel_devices, ptx, rng, test_cases, uniform,
};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt};

/// Every block that a kernel takes.
const BLOCKS: [u32; 6] = [32, 64, 128, 256, 512, 1024];

/// That of the textbook.
const DEFAULT_BLOCK: u32 = 128;

/// Elements that a textbook kernel's block sums.
fn span(variant: Variant, block: u32) -> usize {
    let per_thread = match variant {
        Variant::Global | Variant::Shared => 1,
        Variant::SharedUnroll4 | Variant::SharedUnroll4Dynamic => 4,
        _ => unreachable!("not the textbook's"),
    };
    block as usize * per_thread
}

/// A plan for this kernel in such blocks.
fn plan<T: Number>(device: &Device, variant: Variant, block: u32) -> Result<Plan<T>, Error> {
    Reduction::new()
        .with_block(block)?
        .plan_with(device, variant)
}

/// The sum of a buffer by this kernel in such blocks.
fn sum_with<T: Number>(variant: Variant, block: u32, values: &Buffer<T>) -> Result<T, Error> {
    plan(values.device(), variant, block)?.sum(values)
}

/// A type under test.
trait Sample: Number + Bits {
    /// What an output holds before anything is written to it.
    const POISON: Self;

    /// Values of any kind that suits a sum.
    fn random(rng: &mut impl Rng, len: usize) -> Vec<Self>;

    /// The sum by definition: of floats as good as in f64.
    fn total(values: &[Self]) -> Self;
}

impl Sample for i32 {
    const POISON: Self = 0x5a5a_5a5a;

    fn random(rng: &mut impl Rng, len: usize) -> Vec<Self> {
        // The whole range, its ends more often than chance would have them.
        (0..len)
            .map(|_| match rng.random_range(0..16) {
                0 => Self::MIN,
                1 => Self::MAX,
                _ => rng.random(),
            })
            .collect()
    }

    fn total(values: &[Self]) -> Self {
        let sum: i64 = values.iter().copied().map(i64::from).sum();
        sum as Self
    }
}

impl Sample for f32 {
    const POISON: Self = Self::NAN;

    fn random(rng: &mut impl Rng, len: usize) -> Vec<Self> {
        uniform(rng, len)
    }

    fn total(values: &[Self]) -> Self {
        let mut sum = 0.0_f64;
        for &value in values {
            sum += f64::from(value);
        }
        sum as Self
    }
}

/// What computes a sum.
#[derive(Debug, Clone, Copy)]
enum Implementation {
    /// `sum`: the CPU port or the single-pass kernel.
    Default,
    /// `sum_with`.
    Kernel(Variant, u32),
}

impl Implementation {
    /// All there are on `device`.
    fn all(device: &Device) -> Vec<Self> {
        let mut all = vec![Self::Default];
        if device.kind() != DeviceKind::Cpu {
            for variant in Variant::TEXTBOOK {
                all.extend(BLOCKS.map(|block| Self::Kernel(variant, block)));
            }
        }
        all
    }

    fn run<T: Sample>(self, device: &Device, values: &[T]) -> T {
        let input = device.upload(values).unwrap();
        let result = match self {
            Self::Default => sum(&input).unwrap(),
            Self::Kernel(variant, block) => sum_with(variant, block, &input).unwrap(),
        };
        // Also by the kernel that works in its input.
        assert_same_bits(&input.to_vec().unwrap(), values, |i| {
            format!("input {i}, which was written")
        });
        result
    }

    /// The bound on the error of an f32 sum.
    fn bound(self, values: &[f32]) -> f64 {
        let magnitudes = values.iter().map(|value| f64::from(value.abs())).sum();
        match self {
            Self::Default => plan::<f32>(&Device::cpu(), Variant::SinglePass, DEFAULT_BLOCK),
            // Of a plan for any device that runs kernels.
            Self::Kernel(variant, block) => plan(&Device::emulator(), variant, block),
        }
        .unwrap()
        .error_bound(values.len(), magnitudes)
    }
}

/// Runs `check` for every implementation on every device.
fn for_each_implementation(what: &str, mut check: impl FnMut(&Device, Implementation)) {
    let mut cases = Vec::new();
    for device in devices() {
        for implementation in Implementation::all(&device) {
            cases.push((device.name().to_owned(), device.clone(), implementation));
        }
    }
    assert_eq!(
        cases.len(),
        1 + kernel_devices().len() * (1 + Variant::TEXTBOOK.len() * BLOCKS.len())
    );
    for_each(what, cases, |(_, device, implementation)| {
        check(&device, implementation);
    });
}

/// Runs `check` for every kernel and block on every device that runs kernels.
fn for_each_kernel(what: &str, mut check: impl FnMut(&Device, Variant, u32)) {
    let mut cases = Vec::new();
    for device in kernel_devices() {
        for variant in Variant::TEXTBOOK {
            for block in BLOCKS {
                cases.push((device.name().to_owned(), device.clone(), variant, block));
            }
        }
    }
    for_each(what, cases, |(_, device, variant, block)| {
        check(&device, variant, block);
    });
}

#[test]
fn the_input_stays_where_no_kernel_works_in_it() {
    fn check<T: Sample>(device: &Device, variant: Variant, block: u32, rng: &mut impl Rng) {
        let mut plan = plan(device, variant, block).unwrap();
        assert_eq!(plan.variant(), Some(variant));
        let values = T::random(rng, 3 * span(variant, block) + 5);
        let mut input = device.upload(&values).unwrap();
        let len = plan.sums_len(values.len()).unwrap();
        let mut by_copy = device.alloc_filled(len, T::POISON).unwrap();
        let mut in_place = device.alloc_filled(len, T::POISON).unwrap();

        // Again: what the first has left of the copy is not taken for the input.
        for _ in 0..2 {
            by_copy.fill(T::POISON).unwrap();
            plan.sum_into(&input, &mut by_copy).unwrap();
        }
        assert_same_bits(&input.to_vec().unwrap(), &values, |i| {
            format!("input {i}, which was written")
        });
        plan.sum_in_place_into(&mut input, &mut in_place).unwrap();
        let partials = in_place.to_vec().unwrap();
        assert_same_bits(&by_copy.to_vec().unwrap(), &partials, |b| {
            format!("partial sum {b}, of a copy and in place")
        });
        let left = input.to_vec().unwrap();
        if variant == Variant::Global {
            let firsts: Vec<T> = left.iter().copied().step_by(block as usize).collect();
            assert_same_bits(&firsts, &partials, |b| {
                format!("the first element of block {b}, which holds its sum")
            });
        } else {
            assert_same_bits(&left, &values, |i| format!("input {i}, which was written"));
        }
    }
    let mut rng = rng();
    for_each_kernel("inputs", |device, variant, block| {
        check::<i32>(device, variant, block, &mut rng);
        check::<f32>(device, variant, block, &mut rng);
    });
}

#[test]
fn small_integers_sum_exactly_in_f32() {
    let mut rng = rng();
    for_each_implementation("small integers", |device, implementation| {
        for n in [1, 33, 1000, 4099] {
            // |sum| ≤ 4099 * 4000 < 2²⁴: no addition rounds.
            let integers: Vec<i32> = (0..n).map(|_| rng.random_range(-4000..=4000)).collect();
            let values: Vec<f32> = integers.iter().map(|&value| value as f32).collect();
            let expected = integers.iter().sum::<i32>();
            assert_eq!(implementation.run(device, &values), expected as f32, "{n}");
            assert_eq!(implementation.run(device, &integers), expected, "{n}");
        }
    });
}

/// The sum of floats from 2⁻⁷⁰ to 2²⁰ in size, without rounding before the last step.
fn exact(values: &[f32]) -> f64 {
    // The last bit of a float of 2⁻⁷⁰ is 2⁻⁹³, so every value is a whole number of 2⁻⁹³, below 2¹¹⁴
    // for values below 2²⁰: 2¹³ of them fit.
    assert!(values.len() <= 1 << 13);
    let scale = 93.0_f64.exp2();
    let sum: i128 = values
        .iter()
        .map(|&value| (f64::from(value) * scale) as i128)
        .sum();
    sum as f64 / scale
}

/// Floats whose sum is hard in one of several ways.
fn hard(rng: &mut SmallRng, n: usize) -> [(&'static str, Vec<f32>); 3] {
    let positive = (0..n).map(|_| rng.random_range(0.5..1.0)).collect();
    // All sizes from 2⁻⁶⁹ to 2¹⁹, either sign.
    let spread = (0..n)
        .map(|_| {
            let size = rng.random_range(-69.0_f32..19.0).exp2();
            if rng.random() { size } else { -size }
        })
        .collect();
    // Pairs that cancel, far apart, and a little left over.
    let mut cancelling: Vec<f32> = (0..n / 2).map(|_| rng.random_range(1.0..1e6)).collect();
    let negated: Vec<f32> = cancelling.iter().map(|value| -value).collect();
    cancelling.extend(negated);
    cancelling.resize(n, 1e-3);
    [
        ("positive", positive),
        ("spread", spread),
        ("cancelling", cancelling),
    ]
}

#[test]
fn sums_of_floats_are_within_the_bound() {
    let mut rng = rng();
    for_each_implementation("f32 within the bound", |device, implementation| {
        for n in [1, 2, 100, 2047, 5001] {
            for (kind, values) in hard(&mut rng, n) {
                let got = f64::from(implementation.run(device, &values));
                let (expected, bound) = (exact(&values), implementation.bound(&values));
                let error = (got - expected).abs();
                assert!(
                    error <= bound,
                    "{kind}, {n}: {got}, not {expected} ± {bound}"
                );
                if kind == "positive" {
                    // Every element is at least 0.5: losing one, or counting one
                    // twice, is far out of bounds.
                    assert!(bound < 0.01, "{n}: {bound} bounds nothing");
                }
            }
        }
    });
}

#[test]
fn the_error_bound_is_what_its_derivation_says() {
    let bound = |variant, block, n, magnitudes| {
        let plan = plan::<f32>(&Device::emulator(), variant, block).unwrap();
        plan.error_bound(n, magnitudes)
    };
    // 7 steps of a block of 128 threads, 3 additions before, 1 rounding after.
    let one = bound(Variant::SharedUnroll4, 128, 1, 1.0);
    assert!((one / (11.0 * 2.0_f64.powi(-24)) - 1.0).abs() < 1e-5);
    let largest = bound(Variant::Global, 1024, 1, 1.0);
    assert!((largest / (11.0 * 2.0_f64.powi(-24)) - 1.0).abs() < 1e-5);
    let smallest = bound(Variant::Shared, 32, 1, 2.0);
    assert!((smallest / (12.0 * 2.0_f64.powi(-24)) - 1.0).abs() < 1e-5);
    // The additions in f64 count too, where there are many.
    let many = bound(Variant::SharedUnroll4, 128, 1 << 32, 1.0);
    assert!(many > one + 2.0_f64.powi(-22));
    // Integers are not rounded.
    let plan = plan::<i32>(&Device::emulator(), Variant::Shared, 32).unwrap();
    assert_eq!(plan.error_bound(1 << 20, 1.0), 0.0);
}

#[test]
fn what_is_not_finite_goes_through() {
    for_each_implementation("NaN and infinities", |device, implementation| {
        let n = 1031;
        let with = |places: &[(usize, f32)]| {
            let mut values = vec![1.0; n];
            for &(place, value) in places {
                values[place] = value;
            }
            implementation.run(device, &values)
        };
        let places = [0, 1, 31, 32, 500, 1023, 1024, 1030];
        for place in places {
            assert!(with(&[(place, f32::NAN)]).is_nan(), "NaN at {place}");
            assert_eq!(with(&[(place, f32::INFINITY)]), f32::INFINITY, "{place}");
            assert_eq!(
                with(&[(place, f32::NEG_INFINITY)]),
                f32::NEG_INFINITY,
                "{place}"
            );
        }
        // In one part or in two, the infinities of both signs have no sum.
        for (plus, minus) in [(0, 1), (1030, 0), (31, 1024)] {
            let sum = with(&[(plus, f32::INFINITY), (minus, f32::NEG_INFINITY)]);
            assert!(sum.is_nan(), "{plus}, {minus}");
        }
        // One NaN, not whatever memory beyond the input holds.
        assert_eq!(with(&[]), n as f32);
    });
}

#[test]
fn a_nan_stays_in_its_part() {
    for_each_kernel("NaN", |device, variant, block| {
        let span = span(variant, block);
        let mut values = vec![1.0; 3 * span];
        values[2 * span - 1] = f32::NAN;
        let values = device.upload(&values).unwrap();
        let mut partials = device.alloc_filled(3, 0.0_f32).unwrap();
        let mut plan = plan(device, variant, block).unwrap();
        plan.sum_into(&values, &mut partials).unwrap();
        let partials = partials.to_vec().unwrap();
        assert!(partials[1].is_nan());
        assert_eq!([partials[0], partials[2]], [span as f32; 2]);
    });
}

#[test]
fn partial_sums_beyond_f32_are_infinite_totals_are_not() {
    for_each_kernel("beyond f32", |device, variant, block| {
        let part = span(variant, block);
        let run = |values: &[f32]| Implementation::Kernel(variant, block).run(device, values);
        // Twice the largest float in the first part, its opposite in the second.
        let mut values = vec![0.0; 2 * part];
        values[0] = f32::MAX;
        values[1] = f32::MAX;
        values[part] = f32::MIN;
        assert_eq!(run(&values), f32::INFINITY);
        // Each part in range, both together only in f64, and the third mends it.
        let mut values = vec![0.0; 3 * part];
        values[0] = f32::MAX;
        values[part] = f32::MAX;
        values[2 * part] = f32::MIN;
        assert_eq!(run(&values), f32::MAX);
    });
}

#[test]
fn the_hosts_part_adds_floats_in_f64_and_wraps_integers() {
    // 2²⁴ + 1 is not an f32: adding in f32 would lose both ones.
    let device = Device::emulator();
    let floats = plan(&device, Variant::Shared, 32).unwrap();
    assert_eq!(floats.finish(&[16_777_216.0_f32, 1.0, 1.0]), 16_777_218.0);
    let integers = plan(&device, Variant::Shared, 32).unwrap();
    assert_eq!(integers.finish(&[i32::MAX, 1]), i32::MIN);
    assert_eq!(integers.finish(&[i32::MIN, i32::MIN, -1]), -1);
}

#[test]
fn the_default_problem_is_solved() {
    // 2²⁴ elements, or a sixteenth if only some cases run, in blocks of 128. The emulator is slow
    // with one thread per element, so it runs only a kernel with four elements per thread, and each
    // launch once.
    let n = 1 << test_cases::either(20, 24);
    let mut rng = rng();
    let integers = i32::random(&mut rng, n);
    let floats: Vec<f32> = (0..n).map(|_| rng.random_range(0.5..1.0)).collect();
    let exact: f64 = floats.iter().copied().map(f64::from).sum();

    let mut cases = vec![(Device::cpu(), Implementation::Default)];
    for device in kernel_devices() {
        let (device, variants) = if device.kind() == DeviceKind::Emulator {
            (Device::emulator(), &[Variant::SharedUnroll4Dynamic][..])
        } else {
            (device, &Variant::TEXTBOOK[..])
        };
        if device.kind() == DeviceKind::Cuda {
            cases.push((device.clone(), Implementation::Default));
        }
        for &variant in variants {
            let kernel = Implementation::Kernel(variant, DEFAULT_BLOCK);
            cases.push((device.clone(), kernel));
        }
    }
    for_each("default problem", cases, |(device, implementation)| {
        assert_eq!(
            implementation.run(&device, &integers),
            i32::total(&integers)
        );
        let got = f64::from(implementation.run(&device, &floats));
        let bound = implementation.bound(&floats);
        assert!((got - exact).abs() <= bound, "{got}, not {exact} ± {bound}");
    });
}

#[cfg(feature = "gpu")]
#[test]
#[ignore = "takes 18 GB of memory on the host and 36 GB on the device"]
fn more_elements_than_32_bits_count_are_summed() {
    let device = halo_tests::cuda();
    let n = (1_usize << 32) + 1009;
    let mut values = vec![0_i32; n];
    // At both ends of what 32 bits count, and where an index that lost its upper
    // bits would end up instead: every sum of some of these is another number.
    let places = [0, 1008, 1009, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, n - 1];
    for (bit, place) in places.into_iter().enumerate() {
        values[place] = 1 << bit;
    }
    let values = device.upload(&values).unwrap();
    for_each("2³² elements and more", Variant::TEXTBOOK, |variant| {
        for block in [32, DEFAULT_BLOCK, 1024] {
            assert_eq!(
                sum_with(variant, block, &values).unwrap(),
                (1 << places.len()) - 1,
                "blocks of {block}"
            );
        }
    });
}

#[test]
fn the_port_gives_one_result_whatever_the_number_of_threads() {
    let values = f32::random(&mut rng(), 1_000_003);
    let expected = sum_of(&Device::cpu(), &values).unwrap();
    for_each("threads", [1, 2, 3, 7], |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let got = pool.install(|| sum_of(&Device::cpu(), &values)).unwrap();
        assert_same_bits(&[got], &[expected], |_| "the sum");
    });
}

#[test]
fn nothing_has_no_partial_sums() {
    fn check<T: Sample>(device: &Device) {
        let empty = device.upload::<T>(&[]).unwrap();
        let refused = |result: Result<T, Error>| {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::EmptyInput { .. }), "{error}");
        };
        for variant in Variant::TEXTBOOK {
            let mut plan = plan(device, variant, DEFAULT_BLOCK).unwrap();
            refused(plan.sum(&empty));
            let mut sums = device.upload(&[T::POISON]).unwrap();
            refused(plan.sum_into(&empty, &mut sums).map(|()| T::POISON));
            assert_same_bits(&sums.to_vec().unwrap(), &[T::POISON], |b| b);
            refused(plan.sums_len(0).map(|_| T::POISON));
        }
    }
    let named = kernel_devices()
        .into_iter()
        .map(|device| (device.name().to_owned(), device));
    for_each("empty input", named, |(_, device)| {
        check::<i32>(&device);
        check::<f32>(&device);
    });
    let empty = Device::emulator().upload::<f32>(&[]).unwrap();
    assert_eq!(
        sum_with(Variant::SharedUnroll4, 128, &empty)
            .unwrap_err()
            .to_string(),
        "reduction_shared_unroll4: the input is empty, but at least one element is needed"
    );
}

#[test]
fn blocks_that_no_kernel_takes_are_refused() {
    let blocks = (0..=2049).chain([4096, 1 << 31, u32::MAX]);
    for_each("blocks", blocks, |block| {
        let reduction = Reduction::new().with_block(block);
        if BLOCKS.contains(&block) {
            assert_eq!(reduction.unwrap().block(), block);
            return;
        }
        let error = reduction.unwrap_err();
        assert!(
            matches!(error, Error::InvalidSize { axis: "block", given, .. } if given == block as usize),
            "{error}"
        );
    });
    assert_eq!(
        Reduction::new().with_block(96).unwrap_err().to_string(),
        "reduction: block is 96, but must be a power of two from 32 to 1024"
    );
    assert_eq!(Reduction::default().block(), DEFAULT_BLOCK);
    assert_eq!(
        Reduction::new()
            .with_most_blocks(0)
            .unwrap_err()
            .to_string(),
        "reduction: the number of blocks is 0, but must be at least 1"
    );
}

#[test]
fn as_many_sums_are_asked_for_as_there_are_blocks() {
    // Too few, also on another device, are what every kernel refuses.
    let device = Device::emulator();
    let mut plan = plan(&device, Variant::SharedUnroll4, 32).unwrap();
    let mut values = device.upload(&[1_i32; 257]).unwrap();
    for given in [0, 2, 4] {
        let mut sums = device.alloc_filled(given, i32::POISON).unwrap();
        for error in [
            plan.sum_into(&values, &mut sums).unwrap_err(),
            plan.sum_in_place_into(&mut values, &mut sums).unwrap_err(),
        ] {
            assert_eq!(
                error.to_string(),
                format!(
                    "reduction_shared_unroll4_i32: result has {given} elements, but must have 3"
                )
            );
        }
        assert_eq!(sums.to_vec().unwrap(), vec![i32::POISON; given]);
    }
}

#[test]
fn kernels_that_a_type_does_not_have_are_refused() {
    fn refused<T: Number + std::fmt::Debug>(name: &str) {
        for variant in Variant::TEXTBOOK {
            let error = Reduction::new().plan_with::<T>(&Device::emulator(), variant);
            assert_eq!(
                error.unwrap_err().to_string(),
                format!(
                    "reduction: the kernel is {variant}, which sums i32 and f32, but must be \
                     reduction_single_pass_sum for elements of {name}"
                )
            );
        }
    }
    refused::<u32>("u32");
    refused::<i64>("i64");
    refused::<u64>("u64");
    refused::<f64>("f64");
}

#[test]
fn all_else_is_computed_as_without_a_textbook_kernel() {
    let mut rng = rng();
    for_each_kernel("extrema", |device, variant, block| {
        let values = f32::random(&mut rng, 1500);
        let buffer = device.upload(&values).unwrap();
        let mut ours = Reduction::new().plan(device).unwrap();
        let mut plan = plan(device, variant, block).unwrap();
        assert_same_bits(
            &[plan.min(&buffer).unwrap(), plan.max(&buffer).unwrap()],
            &[ours.min(&buffer).unwrap(), ours.max(&buffer).unwrap()],
            |i| i,
        );
        assert_same_bits(
            &[
                plan.mean(&buffer).unwrap(),
                plan.dot(&buffer, &buffer).unwrap(),
            ],
            &[
                ours.mean(&buffer).unwrap(),
                ours.dot(&buffer, &buffer).unwrap(),
            ],
            |i| i,
        );
    });
}

#[test]
fn a_sum_by_a_kernel_is_refused_where_none_can_be_launched() {
    let mut options = EmulatorOptions::default();
    options.limits.threads_per_block = 256;
    let small = Device::emulator_with(options);
    for_each("kernels", Variant::TEXTBOOK, |variant| {
        let name = variant.kernel::<f32>().unwrap();
        let on = |device: &Device| {
            let values = device.upload(&[1.0_f32; 100]).unwrap();
            sum_with(variant, 512, &values).unwrap_err()
        };
        let error = on(&Device::cpu());
        assert!(
            matches!(error, Error::NotLaunchable { kernel } if kernel == name),
            "{error}"
        );
        let error = on(&small);
        assert!(
            matches!(&error, Error::LaunchLimit { kernel, axis: LaunchAxis::ThreadsPerBlock, given: 512, .. } if *kernel == name),
            "{error}"
        );
    });
}

#[test]
fn every_kernel_has_its_name() {
    for_each("names", Variant::TEXTBOOK, |variant| {
        assert_eq!(variant.kernel::<i32>().unwrap(), format!("{variant}_i32"));
        assert_eq!(variant.kernel::<f32>().unwrap(), format!("{variant}_f32"));
        assert_eq!(variant.kernel::<u64>(), None);
        let plan = plan::<i32>(&Device::emulator(), variant, 64).unwrap();
        assert_eq!(plan.sums_len(span(variant, 64)).unwrap(), 1);
        assert_eq!(plan.sums_len(span(variant, 64) + 1).unwrap(), 2);
    });
    assert_eq!(Variant::SharedUnroll4.name(), "reduction_shared_unroll4");
    assert_eq!(Variant::SinglePass.name(), "reduction_single_pass_sum");
    for_each("variants", Variant::ALL, |variant| {
        let entry = registry::entry(&format!("{variant}_f32")).unwrap();
        let textbook = Variant::TEXTBOOK.contains(&variant);
        assert_eq!(textbook, entry.role == Role::Textbook);
    });
}

#[test]
fn work_is_counted_by_the_element() {
    let reduction = Reduction::new();
    assert_eq!(reduction.cost::<f32>(1 << 24).bytes, 1 << 26);
    assert_eq!(
        reduction.cost::<i32>(3),
        Cost {
            bytes: 12,
            flops: 2
        }
    );
}

#[test]
fn ptx_facts() {
    let kernels = ptx::TARGETS.into_iter().flat_map(|target| {
        Variant::TEXTBOOK.into_iter().flat_map(move |variant| {
            let kernels = [variant.kernel::<i32>(), variant.kernel::<f32>()];
            kernels.map(|name| (target, variant, name.unwrap()))
        })
    });
    for_each("ptx", kernels, |(target, variant, name)| {
        let text = ptx::text(target);
        let body = ptx::entry(text, name);
        let count = |opcode| ptx::count(&body, opcode);
        // One before the steps unless they work in the input, one after each step
        // of more than a warp: 512, 256, 128, 64. Then the lanes of one warp wait
        // for each other before 16, 8, 4, 2, 1.
        let loading = usize::from(variant != Variant::Global);
        assert_eq!(
            count("bar.sync") + count("barrier.sync"),
            loading + 4,
            "barriers"
        );
        assert_eq!(count("bar.warp.sync"), 5, "waits of a warp");
        // The compiler knows which memory each access goes to.
        let generic = |access: &str| {
            ["u32", "b32", "s32", "f32"]
                .iter()
                .map(|ty| ptx::count(&body, &format!("{access}.{ty}")))
                .sum::<usize>()
        };
        assert_eq!(generic("ld") + generic("st"), 0, "generic accesses");
        assert_eq!(count("ld.local") + count("st.local"), 0, "local memory");
        // The partial sum and, in place, each of the ten steps.
        let steps = if variant == Variant::Global { 10 } else { 0 };
        assert_eq!(count("st.global"), 1 + steps, "stores to global memory");
        assert_eq!(
            count("st.shared"),
            if steps == 0 { 1 + 10 } else { 0 },
            "stores to shared memory"
        );
        if span(variant, 1) == 4 {
            assert!(count("ld.global") >= 4, "four loads in flight");
        }
    });
}

#[test]
fn blocks_are_the_textbooks_unless_the_problem_says() {
    let kernels = registry::family("reduction").unwrap().kernels.iter();
    for_each("kernels", kernels.map(|entry| entry.name), |name| {
        let entry = registry::entry(name).unwrap();
        let elements = Problem::line(100_000).with_resident_blocks(64);
        let told = entry.geometry(&elements.with_block(DEFAULT_BLOCK)).unwrap();
        assert_eq!(entry.geometry(&elements).unwrap(), told);
    });
}

#[test]
fn each_chunk_has_a_block_where_that_many_reside() {
    let kernel = registry::entry("reduction_single_pass_sum_f32").unwrap();
    // Nine tiles of 2048; each is a chunk.
    let elements = Problem::line(8 * 2048 + 1);
    for (most, blocks) in [(1, 1), (2, 2), (8, 8), (9, 9), (10, 9)] {
        let launch = kernel
            .geometry(&elements.with_resident_blocks(most))
            .unwrap();
        assert_eq!(launch.grid, [blocks, 1, 1], "at most {most}");
    }
}
