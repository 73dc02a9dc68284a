//! The single-pass reductions: port and kernels, for every type and operation, against
//! the tree as it is described, bit for bit.

use halo_gpu::case::{Entry, Role, registry};
use halo_gpu::device::{Blocks, ThreadOrder};
use halo_gpu::reduction::{
    Extremum, Moment, Number, Operation, Partition, Plan, Reduction, dot_kernel, max, max_of, min,
    min_of, sum, sum_of,
};
use halo_gpu::{Buffer, Device, EmulatorOptions, Error, LaunchAxis};
use halo_tests::{Bits, assert_same_bits, devices, for_each, kernel_devices, ptx, rng, test_cases};
use rand::{Rng, RngExt};
use std::collections::BTreeSet;

/// A type under test.
pub trait Sample: Number + Bits {
    const NAME: &'static str;

    /// What a result holds before anything is written to it.
    const POISON: Self;

    /// Values of any size, among which every order of addition gives another sum.
    fn random(rng: &mut impl Rng, len: usize) -> Vec<Self>;

    /// One of two, by definition.
    fn combine(operation: Operation, a: Self, b: Self) -> Self;
}

macro_rules! integer {
    ($($integer:ident),*) => {$(
        impl Sample for $integer {
            const NAME: &'static str = stringify!($integer);
            const POISON: Self = 0x5a5a_5a5a;

            fn random(rng: &mut impl Rng, len: usize) -> Vec<Self> {
                // All of one half of the range half of the time: else the ends of the
                // range hide what an extremum makes of elements that are not there.
                let middle = Self::MIN.midpoint(Self::MAX);
                let range = match rng.random_range(0..4) {
                    0 => Self::MIN..=middle,
                    1 => middle..=Self::MAX,
                    _ => Self::MIN..=Self::MAX,
                };
                (0..len).map(|_| rng.random_range(range.clone())).collect()
            }

            fn combine(operation: Operation, a: Self, b: Self) -> Self {
                match operation {
                    Operation::Sum => (i128::from(a) + i128::from(b)) as Self,
                    Operation::Min => {
                        if a < b {
                            a
                        } else {
                            b
                        }
                    }
                    Operation::Max => {
                        if a > b {
                            a
                        } else {
                            b
                        }
                    }
                }
            }
        }
    )*};
}

integer!(i32, u32, i64, u64);

macro_rules! float {
    ($float:ident) => {
        impl Sample for $float {
            const NAME: &'static str = stringify!($float);
            const POISON: Self = 1234.5;

            fn random(rng: &mut impl Rng, len: usize) -> Vec<Self> {
                let sign = [-1.0, 1.0, 0.0][rng.random_range(0..3)];
                (0..len)
                    .map(|_| {
                        let size = $float::exp2(rng.random_range(-12.0..12.0));
                        match sign {
                            0.0 => size * rng.random_range(-1.0..1.0),
                            sign => size * sign,
                        }
                    })
                    .collect()
            }

            fn combine(operation: Operation, a: Self, b: Self) -> Self {
                if operation == Operation::Sum {
                    return a + b;
                }
                if a.is_nan() || b.is_nan() {
                    return $float::NAN;
                }
                // The total order of IEEE 754 has -0 before +0.
                let a_first = a.total_cmp(&b).is_le();
                if a_first == (operation == Operation::Min) {
                    a
                } else {
                    b
                }
            }
        }
    };
}

float!(f32);
float!(f64);

/// Elements of a tile: 512 threads with 16 bytes each.
pub fn lanes<T>() -> usize {
    512 * 16 / size_of::<T>()
}

/// The number of tiles in a chunk of `n` elements, by the description: 8 for a single chunk, else
/// 1, and from 64 tiles on twice as many each time the number of tiles is four times as large.
pub fn tiles_of_a_chunk<T>(n: usize) -> usize {
    let tiles = n.div_ceil(lanes::<T>());
    if tiles <= 8 {
        return 8;
    }
    let (mut chunk, mut from) = (1, 64);
    while tiles >= from {
        chunk *= 2;
        from *= 4;
    }
    chunk
}

/// One chunk by definition. `None`: no element.
fn chunk<T: Sample>(operation: Operation, values: &[T]) -> Option<T> {
    fn neighbours<T: Sample>(operation: Operation, lanes: &[Option<T>]) -> Option<T> {
        if let [one] = lanes {
            return *one;
        }
        let (left, right) = lanes.split_at(lanes.len() / 2);
        both(
            operation,
            neighbours(operation, left),
            neighbours(operation, right),
        )
    }
    fn both<T: Sample>(operation: Operation, a: Option<T>, b: Option<T>) -> Option<T> {
        match (a, b) {
            (Some(a), Some(b)) => Some(T::combine(operation, a, b)),
            (a, b) => a.or(b),
        }
    }
    let lanes = lanes::<T>();
    let mut totals = vec![None; lanes];
    for (e, &value) in values.iter().enumerate() {
        totals[e % lanes] = both(operation, totals[e % lanes], Some(value));
    }
    neighbours(operation, &totals)
}

/// The result by definition, with chunks of this many tiles.
fn by_definition<T: Sample>(operation: Operation, values: &[T], tiles: usize) -> T {
    let totals: Vec<T> = values
        .chunks(tiles * lanes::<T>())
        .map(|values| chunk(operation, values).unwrap())
        .collect();
    let total = match *totals {
        [total] => total,
        _ => chunk(operation, &totals).unwrap(),
    };
    // Which NaN an addition gives is the processor's choice, the result's is not: of
    // two the definition of the minimum makes one. Of anything else it changes nothing.
    T::combine(Operation::Min, total, total)
}

fn expected<T: Sample>(operation: Operation, values: &[T]) -> T {
    by_definition(operation, values, tiles_of_a_chunk::<T>(values.len()))
}

/// A plan for this device, with memory for any length when it comes.
pub fn plan<T: Number>(device: &Device) -> Plan<T> {
    new_plan(&Reduction::new(), device)
}

pub fn new_plan<T: Number>(reduction: &Reduction, device: &Device) -> Plan<T> {
    reduction.plan(device).unwrap()
}

/// Launches and returns the result, after checking that no input was written.
fn run<T: Sample>(
    reductions: &mut Plan<T>,
    operation: Operation,
    values: &[T],
) -> Result<T, Error> {
    let input = reductions.device().upload(values)?;
    let mut result = reductions.device().alloc_filled(1, T::POISON)?;
    reductions.elements_into(operation, &input, &mut result)?;
    assert_same_bits(&input.to_vec()?, values, |i| {
        format!("input {i}, which was written")
    });
    Ok(result.to_vec()?[0])
}

fn check<T: Sample>(reductions: &mut Plan<T>, values: &[T], what: &str) {
    for operation in Operation::ALL {
        let got = run(reductions, operation, values)
            .unwrap_or_else(|error| panic!("{operation} of {}: {error}", values.len()));
        assert_same_bits(&[got], &[expected(operation, values)], |_| {
            format!("{operation} of {} {}, {what}", values.len(), T::NAME)
        });
    }
}

/// Lengths about everything that could matter to one block: a vector, a warp, a
/// tile, a batch of 4 tiles, the most that a block takes alone.
fn short<T>() -> Vec<usize> {
    let tile = lanes::<T>();
    let mut lengths = vec![1, 2, 3, 4, 5, 7, 31, 32, 33, 61, 127, 128, 129, 1009];
    for tiles in [1, 2, 3, 4, 5, 6, 7, 8] {
        lengths.extend([tiles * tile - 1, tiles * tile]);
    }
    lengths.extend([
        tile + 1,
        2 * tile + 3,
        5 * tile + 33,
        7 * tile + tile / 2 + 1,
    ]);
    lengths
}

/// Lengths of several chunks: the least, primes, and where a chunk becomes two tiles.
fn long<T>() -> Vec<usize> {
    let tile = lanes::<T>();
    vec![
        8 * tile + 1,
        9 * tile,
        9 * tile + 1,
        11 * tile - 1,
        33_013,
        64 * tile - 5,
        64 * tile,
        65 * tile + 2,
    ]
}

/// Runs `case` with the CPU, the emulator without and with verification, and CUDA.
fn for_each_device(what: &str, mut case: impl FnMut(&Device)) {
    let mut all = vec![Device::emulator()];
    all.extend(devices());
    let named = all
        .into_iter()
        .enumerate()
        .map(|(i, device)| (i, device.name().to_owned(), device));
    for_each(what, named, |(_, _, device)| case(&device));
}

#[test]
fn chunks_of_any_number_of_tiles_are_read_whole() {
    // Only their number of tiles distinguishes huge arrays from these.
    let mut rng = rng();
    for_each("tiles", kernel_devices(), |device| {
        for (tiles, whole) in [1, 3, 4, 5, 6, 11, 16]
            .into_iter()
            .zip([1, 2].into_iter().cycle())
        {
            let n = whole * tiles as usize * lanes::<f32>() + 77;
            let values = f32::random(&mut rng, n);
            let mut reductions = new_plan(&Reduction::new().with_tiles(tiles), &device);
            let got = run(&mut reductions, Operation::Sum, &values).unwrap();
            let expected = by_definition(Operation::Sum, &values, tiles as usize);
            assert_same_bits(&[got], &[expected], |_| {
                format!("{whole} chunks of {tiles} tiles and one of less")
            });
        }
    });
}

#[test]
fn more_chunks_than_lanes_are_collected() {
    fn all<T: Sample>(device: &Device, rng: &mut impl Rng) {
        let lanes = lanes::<T>();
        for &chunks in test_cases::either(&[lanes + 1][..], &[lanes + 1, 2 * lanes + 3]) {
            let values = T::random(rng, (chunks - 1) * lanes + 5);
            // Few blocks: they take fewer threads to emulate.
            let mut reductions = new_plan(
                &Reduction::new().with_tiles(1).with_most_blocks(2).unwrap(),
                device,
            );
            let got = run(&mut reductions, Operation::Sum, &values).unwrap();
            let expected = by_definition(Operation::Sum, &values, 1);
            assert_same_bits(&[got], &[expected], |_| format!("{chunks} chunks"));
        }
    }
    let mut rng = rng();
    let devices = [Device::emulator()].into_iter().chain(cuda());
    for_each("chunks", devices, |device| all::<f64>(&device, &mut rng));
}

/// Emulated devices on which blocks wait for each other in many ways: all blocks of a grid are
/// resident, and their order changes at random.
fn restless() -> impl Iterator<Item = Device> {
    (0..6).map(|seed| {
        Device::emulator_with(EmulatorOptions {
            blocks: Blocks::Resident,
            order: ThreadOrder::Random(seed),
            ..EmulatorOptions::default()
        })
    })
}

#[test]
fn the_last_block_waits_for_the_others() {
    // Again and again, on one workspace and with other values each time: what a
    // launch left behind would be taken for the next one's.
    let mut rng = rng();
    for_each(
        "launches",
        restless().take(test_cases::either(2, 6)),
        |device| {
            let mut floats = plan::<f32>(&device);
            let mut doubles = plan::<f64>(&device);
            for &chunks in test_cases::either(&[9, 12, 9][..], &[9, 20, 9, 12, 9]) {
                let values = f32::random(&mut rng, chunks * lanes::<f32>());
                check(&mut floats, &values, "restless");
                let values = f64::random(&mut rng, chunks * lanes::<f64>());
                check(&mut doubles, &values, "restless");
            }
        },
    );
}

#[test]
fn one_workspace_serves_all_sizes() {
    let mut rng = rng();
    for_each("sizes", kernel_devices(), |device| {
        let mut reductions = plan::<i32>(&device);
        for n in [100_000, 1, 20_000, 300_000, 3, 99_999] {
            check(
                &mut reductions,
                &i32::random(&mut rng, n),
                "one after the other",
            );
        }
    });
}

#[test]
fn a_plan_with_memory_for_the_longest_serves_all_sizes() {
    let mut rng = rng();
    for_each("sizes", kernel_devices(), |device| {
        let mut reductions = new_plan::<f64>(&Reduction::new().with_len(65 * 1024), &device);
        for n in [65 * 1024, 63 * 1024, 100, 200 * 1024] {
            let values = f64::random(&mut rng, n);
            check(&mut reductions, &values, "up to a length");
        }
    });
}

#[test]
fn a_launch_that_was_stopped_does_not_spoil_the_next() {
    // More steps than the limit allows where few blocks have many chunks.
    let device = Device::emulator_with(EmulatorOptions {
        step_limit: 150,
        blocks: Blocks::OneAtATime,
        ..EmulatorOptions::default()
    });
    let mut rng = rng();
    let mut reductions = new_plan::<f32>(&Reduction::new().with_most_blocks(2).unwrap(), &device);
    let long = f32::random(&mut rng, 63 * lanes::<f32>());
    let short = f32::random(&mut rng, 9 * lanes::<f32>());
    for _ in 0..3 {
        let stopped = run(&mut reductions, Operation::Sum, &long).unwrap_err();
        assert!(matches!(stopped, Error::Emulator(_)), "{stopped}");
        check(&mut reductions, &short, "after a stopped launch");
    }
}

#[test]
fn nan_wins_and_is_always_the_same() {
    fn all<T: Sample>(device: &Device, nans: &[T], nan: T, others: &[T]) {
        let mut reductions = plan(device);
        let n = 9 * lanes::<T>() + 3;
        for (i, place) in [0, 1, 2, 3, 63, 5000, n - 2, n - 1].into_iter().enumerate() {
            let mut values: Vec<T> = (0..n).map(|e| others[e % others.len()]).collect();
            values[place] = nans[i % nans.len()];
            for operation in Operation::ALL {
                let got = run(&mut reductions, operation, &values).unwrap();
                assert_same_bits(&[got], &[nan], |_| format!("{operation}, NaN at {place}"));
            }
        }
    }
    for_each(
        "NaN",
        [Device::cpu(), Device::emulator()]
            .into_iter()
            .chain(cuda()),
        |device| {
            // Signs and payloads; a signalling one. Numbers on either side of zero, so
            // that NaN has to win against all of them.
            let nans = [0x7fc0_0000, 0xffc0_0000, 0x7fa0_0001, 0xffff_ffff].map(f32::from_bits);
            all(&device, &nans, f32::NAN, &[1.0, -1.0, f32::INFINITY, 0.0]);
            all(&device, &nans, f32::NAN, &[f32::NEG_INFINITY, -0.0, 2.0]);
            let nans = [
                0x7ff8_0000_0000_0000,
                0xfff8_0000_0000_0000,
                0x7ff0_0000_0000_0001,
                u64::MAX,
            ]
            .map(f64::from_bits);
            all(&device, &nans, f64::NAN, &[1.0, -1.0, f64::INFINITY, 0.0]);
            all(&device, &nans, f64::NAN, &[f64::NEG_INFINITY, -0.0, 2.0]);
        },
    );
}

/// CUDA device 0, with the feature `gpu`.
pub fn cuda() -> Option<Device> {
    #[cfg(feature = "gpu")]
    return Some(halo_tests::cuda());
    #[cfg(not(feature = "gpu"))]
    None
}

#[test]
fn zeros_have_an_order_and_infinities_a_place() {
    for_each_device("zeros", |device| {
        let f = |operation, values: &[f32]| {
            run(&mut plan(device), operation, values).unwrap().to_bits()
        };
        let d = |operation, values: &[f64]| {
            run(&mut plan(device), operation, values).unwrap().to_bits()
        };
        // Every pair of places that neighbours, lanes, warps or tiles could make of
        // them, with the one that must win first and last.
        for n in [2, 3, 4, 5, 33, 100, 700, 5000] {
            for place in [0, n / 2, n - 1] {
                let (mut plus, mut minus) = (vec![0.0_f32; n], vec![-0.0_f32; n]);
                plus[place] = -0.0;
                minus[place] = 0.0;
                assert_eq!(f(Operation::Min, &plus), (-0.0_f32).to_bits());
                assert_eq!(f(Operation::Max, &minus), 0.0_f32.to_bits());
                assert_eq!(f(Operation::Max, &plus), 0.0_f32.to_bits());
                assert_eq!(f(Operation::Min, &minus), (-0.0_f32).to_bits());
                // A sum of zeros is -0 only if all of them are.
                assert_eq!(f(Operation::Sum, &minus), 0.0_f32.to_bits());
                minus[place] = -0.0;
                assert_eq!(f(Operation::Sum, &minus), (-0.0_f32).to_bits());

                let (mut plus, mut minus) = (vec![0.0_f64; n], vec![-0.0_f64; n]);
                plus[place] = -0.0;
                minus[place] = 0.0;
                assert_eq!(d(Operation::Min, &plus), (-0.0_f64).to_bits());
                assert_eq!(d(Operation::Max, &minus), 0.0_f64.to_bits());
                assert_eq!(d(Operation::Sum, &minus), 0.0_f64.to_bits());
                minus[place] = -0.0;
                assert_eq!(d(Operation::Sum, &minus), (-0.0_f64).to_bits());
            }
        }
        // Nothing but infinities: no finite identity may show.
        let (high, low) = (f32::INFINITY, f32::NEG_INFINITY);
        for n in [1, 3, 1000] {
            assert_eq!(f(Operation::Min, &vec![high; n]), high.to_bits());
            assert_eq!(f(Operation::Max, &vec![low; n]), low.to_bits());
            assert_eq!(f(Operation::Sum, &vec![low; n]), low.to_bits());
        }
        assert_eq!(f(Operation::Sum, &[high, low]), f32::NAN.to_bits());
        // The ends of the range of integers.
        let i = |operation, values: &[i32]| run(&mut plan(device), operation, values).unwrap();
        assert_eq!(i(Operation::Min, &[i32::MAX; 5]), i32::MAX);
        assert_eq!(i(Operation::Max, &[i32::MIN; 5]), i32::MIN);
        assert_eq!(i(Operation::Sum, &[i32::MAX, 1]), i32::MIN);
        assert_eq!(i(Operation::Sum, &[i32::MIN, -1]), i32::MAX);
    });
}

#[test]
fn nothing_has_a_sum_but_no_extremum() {
    fn all<T: Sample>(device: &Device) {
        let zero = Buffer::to_vec(&device.alloc_filled(1, T::zeroed()).unwrap()).unwrap();
        let empty = device.upload::<T>(&[]).unwrap();
        assert_same_bits(&[sum(&empty).unwrap()], &zero, |_| "the sum of nothing");
        assert_same_bits(&[sum_of(device, &[]).unwrap()], &zero, |_| "of a slice");
        let mut reductions = plan(device);
        assert_same_bits(
            &[run(&mut reductions, Operation::Sum, &[]).unwrap()],
            &zero,
            |_| "the sum of nothing, launched",
        );
        let refused = |result: Result<T, Error>, name: &str| {
            let error = result.unwrap_err();
            assert!(
                matches!(error, Error::EmptyInput { operation } if operation == name),
                "{error}"
            );
        };
        refused(min(&empty), "reduction: min");
        refused(max(&empty), "reduction: max");
        refused(min_of(device, &[]), "reduction: min");
        refused(max_of(device, &[]), "reduction: max");
        let mut result = device.alloc_filled(1, T::POISON).unwrap();
        for operation in [Operation::Min, Operation::Max] {
            assert!(
                reductions
                    .elements_into(operation, &empty, &mut result)
                    .is_err()
            );
        }
        assert_same_bits(
            &result.to_vec().unwrap(),
            &[T::POISON],
            |_| "a refused result",
        );
    }
    for_each_device("nothing", |device| {
        all::<i32>(device);
        all::<u32>(device);
        all::<i64>(device);
        all::<u64>(device);
        all::<f32>(device);
        all::<f64>(device);
    });
}

#[test]
fn the_functions_do_what_their_names_say() {
    fn all<T: Sample>(device: &Device, rng: &mut impl Rng) {
        let values = T::random(rng, 3001);
        let buffer = device.upload(&values).unwrap();
        let mut reductions = plan(device);
        for (operation, got) in [
            (
                Operation::Sum,
                [
                    sum(&buffer),
                    sum_of(device, &values),
                    reductions.sum(&buffer),
                ],
            ),
            (
                Operation::Min,
                [
                    min(&buffer),
                    min_of(device, &values),
                    reductions.min(&buffer),
                ],
            ),
            (
                Operation::Max,
                [
                    max(&buffer),
                    max_of(device, &values),
                    reductions.max(&buffer),
                ],
            ),
        ] {
            let expected = expected(operation, &values);
            assert_same_bits(&got.map(Result::unwrap), &[expected; 3], |_| operation);
            let mut reduced = device.alloc_filled(1, T::POISON).unwrap();
            match operation {
                Operation::Sum => reductions.sum_into(&buffer, &mut reduced),
                Operation::Min => reductions.min_into(&buffer, &mut reduced),
                Operation::Max => reductions.max_into(&buffer, &mut reduced),
            }
            .unwrap();
            assert_same_bits(&reduced.to_vec().unwrap(), &[expected], |_| operation);
        }
    }
    let mut rng = rng();
    for_each_device("functions", |device| {
        all::<i32>(device, &mut rng);
        all::<u32>(device, &mut rng);
        all::<i64>(device, &mut rng);
        all::<u64>(device, &mut rng);
        all::<f32>(device, &mut rng);
        all::<f64>(device, &mut rng);
    });
}

#[test]
fn a_device_with_smaller_limits_says_so_or_gets_fewer_blocks() {
    let mut options = EmulatorOptions::default();
    options.limits.grid.x = 4;
    let device = Device::emulator_with(options.clone());
    let values: Vec<f32> = f32::random(&mut rng(), 11 * lanes::<f32>());
    check(&mut plan(&device), &values, "grids of 4");

    options.limits.threads_per_block = 256;
    let device = Device::emulator_with(options);
    for operation in Operation::ALL {
        let error = run(&mut plan(&device), operation, &values).unwrap_err();
        assert!(
            matches!(&error, Error::LaunchLimit { kernel, axis: LaunchAxis::ThreadsPerBlock, given: 512, .. } if *kernel == operation.kernel::<f32>()),
            "{error}"
        );
    }
}

#[test]
fn partitions_are_as_described() {
    let tile = 2048;
    for (n, tiles, chunks) in [
        (1, 8, 1),
        (8 * tile, 8, 1),
        (8 * tile + 1, 1, 9),
        (63 * tile, 1, 63),
        (63 * tile + 1, 2, 32),
        (255 * tile, 2, 128),
        (255 * tile + 1, 4, 64),
        (1 << 20, 4, 128),
        (1 << 24, 16, 512),
        (1 << 30, 128, 4096),
        (1 << 40, 4096, 131_072),
    ] {
        let partition = Partition::of(n, 4);
        assert_eq!(
            (partition.tiles(), partition.chunks(), partition.lanes()),
            (tiles, chunks, tile),
            "{n}"
        );
        assert_eq!(partition.span(), tiles as usize * tile);
        assert_eq!(partition.tiles() as usize, tiles_of_a_chunk::<f32>(n));
        // Elements of 8 bytes: half as many in a tile.
        let half = Partition::of(n.div_ceil(2), 8);
        assert_eq!(
            (half.tiles(), half.chunks(), half.lanes()),
            (tiles, chunks, tile / 2)
        );
        assert_eq!(
            half.tiles() as usize,
            tiles_of_a_chunk::<f64>(n.div_ceil(2))
        );
    }
    // Additions: those of a lane, then 11 of neighbours; the same for chunks.
    assert_eq!(Partition::of(1, 4).depth(), 7 + 11);
    assert_eq!(Partition::of(1 << 20, 4).depth(), 3 + 11 + 11);
    assert_eq!(Partition::of(1 << 30, 4).depth(), 127 + 11 + 1 + 11);
    assert_eq!(Partition::of(1 << 30, 8).depth(), 255 + 10 + 3 + 10);
    // No chunk, and no index of one, is out of range for the largest array.
    let largest = Partition::of(isize::MAX as usize / 4, 4);
    assert!(largest.span() * largest.chunks() as usize >= isize::MAX as usize / 4);
}

#[test]
fn the_bound_is_what_its_derivation_says() {
    let depth = 25.0;
    let bound = plan::<f32>(&Device::cpu()).error_bound(1 << 20, 3.0);
    assert!((bound / (3.0 * depth / 2_f64.powi(24)) - 1.0).abs() < 1e-5);
    let bound = plan::<f64>(&Device::cpu()).error_bound(1 << 19, 1.0);
    assert!((bound / ((depth - 2.0) / 2_f64.powi(53)) - 1.0).abs() < 1e-5);
    assert_eq!(plan::<i32>(&Device::cpu()).error_bound(1 << 20, 1.0), 0.0);
}

#[test]
fn the_port_follows_the_tree_at_any_size() {
    // Kernels give the bits of the port, as the suite of all kernels sees; on CUDA devices
    // also at sizes that the emulator would take long for.
    fn all<T: Sample>(device: &Device, rng: &mut impl Rng) {
        let mut reductions = plan(device);
        let large = [262_143, 1_000_003, 4 * 1024 * lanes::<T>() + 17];
        let large = test_cases::either(&large[..1], &large).iter().copied();
        for n in short::<T>().into_iter().chain(long::<T>()).chain(large) {
            check(&mut reductions, &T::random(rng, n), device.name());
        }
    }
    let mut rng = rng();
    for_each(
        "sizes",
        [Device::cpu()].into_iter().chain(cuda()),
        |device| {
            all::<i32>(&device, &mut rng);
            all::<u32>(&device, &mut rng);
            all::<i64>(&device, &mut rng);
            all::<u64>(&device, &mut rng);
            all::<f32>(&device, &mut rng);
            all::<f64>(&device, &mut rng);
        },
    );
}

#[cfg(feature = "gpu")]
#[test]
fn kernels_and_port_agree_at_random_sizes_and_grids() {
    fn all<T: Sample>(device: &Device, rng: &mut impl Rng) {
        for _ in 0..40 {
            let n = rng.random_range(1.0..25.0_f64).exp2() as usize;
            let values = T::random(rng, n);
            for operation in Operation::ALL {
                let expected = match operation {
                    Operation::Sum => sum_of(&Device::cpu(), &values),
                    Operation::Min => min_of(&Device::cpu(), &values),
                    Operation::Max => max_of(&Device::cpu(), &values),
                }
                .unwrap();
                for _ in 0..3 {
                    let blocks = rng.random_range(0.0..13.0_f64).exp2() as u32;
                    let mut reductions =
                        new_plan(&Reduction::new().with_most_blocks(blocks).unwrap(), device);
                    let got = [
                        run(&mut reductions, operation, &values).unwrap(),
                        run(&mut reductions, operation, &values).unwrap(),
                    ];
                    assert_same_bits(&got, &[expected; 2], |_| {
                        format!("{operation} of {n} {}, {blocks} blocks", T::NAME)
                    });
                }
            }
        }
    }
    let mut rng = rng();
    let device = halo_tests::cuda();
    all::<i32>(&device, &mut rng);
    all::<u32>(&device, &mut rng);
    all::<i64>(&device, &mut rng);
    all::<u64>(&device, &mut rng);
    all::<f32>(&device, &mut rng);
    all::<f64>(&device, &mut rng);
}

#[cfg(feature = "gpu")]
#[test]
#[ignore = "takes 18 GB of memory, on the host and on the device"]
fn more_elements_than_31_bits_count_are_reduced() {
    let device = halo_tests::cuda();
    let n = (1_usize << 32) + 1009;
    let mut values = vec![0_i32; n];
    // At both ends of what 32 bits count, and where an index that lost its upper bits
    // would end up instead: every sum of some of these is another number.
    let places = [
        0,
        1008,
        1009,
        (1 << 31) - 1,
        1 << 31,
        (1 << 32) - 1,
        1 << 32,
        n - 1,
    ];
    for (bit, place) in places.into_iter().enumerate() {
        values[place] = 1 << bit;
    }
    values[(1 << 32) + 17] = -1000;
    let buffer = device.upload(&values).unwrap();
    assert_eq!(sum(&buffer).unwrap(), (1 << places.len()) - 1 - 1000);
    assert_eq!(min(&buffer).unwrap(), -1000);
    assert_eq!(max(&buffer).unwrap(), 1 << (places.len() - 1));
    let mut few = new_plan(&Reduction::new().with_most_blocks(1000).unwrap(), &device);
    assert_eq!(few.argmin(&buffer).unwrap(), (1 << 32) + 17);
    assert_eq!(few.argmax(&buffer).unwrap(), n as u64 - 1);
    let sum = f64::from((1 << places.len()) - 1 - 1000);
    assert_eq!(few.mean(&buffer).unwrap(), sum / n as f64);
    assert_eq!(
        few.dot(&buffer, &buffer).unwrap(),
        1_000_000 + (4_i64.pow(8) - 1) / 3
    );
    assert_eq!(
        few.sum(&buffer).unwrap(),
        sum_of(&Device::cpu(), &values).unwrap()
    );
}

/// The kernels that reduce in a single pass.
fn tuned() -> impl Iterator<Item = &'static Entry> {
    registry::entries().filter(|entry| entry.family == "reduction" && entry.role == Role::Tuned)
}

#[test]
fn every_kernel_has_its_name_and_every_type_its_kernel() {
    fn all<T: Sample>(used: &mut BTreeSet<&'static str>) {
        let mut is = |kernel: &'static str, name: String| {
            assert_eq!(kernel, name);
            used.insert(kernel);
        };
        for operation in Operation::ALL {
            let ty = match operation {
                Operation::Sum => T::NAME.replace('u', "i"),
                Operation::Min | Operation::Max => T::NAME.to_owned(),
            };
            let name = format!("reduction_single_pass_{operation}_{ty}");
            is(operation.kernel::<T>(), name);
        }
        for moment in Moment::ALL {
            is(
                moment.kernel::<T>(),
                format!("reduction_moment_{}", T::NAME),
            );
        }
        // The products of u32 are exact, those of u64 have the bits of i64's.
        let ty = T::NAME.replace("u64", "i64");
        is(dot_kernel::<T>(), format!("reduction_dot_{ty}"));
        for extremum in Extremum::ALL {
            let ty = T::NAME.replace('i', "u");
            is(
                extremum.kernel::<T>(),
                format!("reduction_arg_extremum_{ty}"),
            );
        }
    }
    let mut used = BTreeSet::new();
    all::<i32>(&mut used);
    all::<u32>(&mut used);
    all::<i64>(&mut used);
    all::<u64>(&mut used);
    all::<f32>(&mut used);
    all::<f64>(&mut used);
    assert_eq!(used, tuned().map(|entry| entry.name).collect());
    assert_eq!(Reduction::new().cost::<f64>(1 << 20).bytes, 1 << 23);
}

#[test]
fn ptx_facts() {
    let kernels = ptx::TARGETS
        .into_iter()
        .flat_map(|target| tuned().map(move |kernel| (target, kernel.name)));
    for_each("ptx", kernels, |(target, name)| {
        let body = ptx::entry(ptx::text(target), name);
        let count = |opcode| ptx::count(&body, opcode);
        // Batches of 4, 2 and 1 tiles and one for a partial tile; for two arrays 2, 1 and 1.
        assert_eq!(count("ld.global.nc.v4"), 8, "loads of 16 bytes");
        assert_eq!(count("bar.sync") + count("barrier.sync"), 2, "barriers");
        assert_eq!(count("atom"), 1, "atomics");
        // A waiting block recognises a posted result by the result itself.
        assert_eq!(count("membar") + count("fence"), 0, "fences");
        if name.contains("single_pass") {
            assert_eq!(
                count("st.relaxed.gpu"),
                count("ld.relaxed.gpu") + words(name)
            );
        }
        assert_eq!(count("ld.local") + count("st.local"), 0, "local memory");
    });
}

/// 32-bit words of an element.
fn words(kernel: &str) -> usize {
    if kernel.ends_with("64") { 2 } else { 1 }
}
