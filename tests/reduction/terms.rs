//! What reductions give beyond sums and extrema: moments, means, norms, dot products and
//! the places of extrema, against their definitions.

use super::single_pass::{Sample, cuda, lanes, new_plan, plan, tiles_of_a_chunk};
use halo_gpu::reduction::{
    Extremum, Moment, Partition, Plan, Reduction, argmax, argmax_of, argmin, argmin_of, dot,
    dot_of, mean, mean_of, norm, norm_of,
};
use halo_gpu::{Buffer, Device, Error};
use halo_tests::{Bits, assert_same_bits, devices, for_each, kernel_devices, rng, test_cases};
use rand::{Rng, RngExt};

/// What these tests ask of a type.
trait Term: Sample<Product: Bits> {
    fn to_f64(self) -> f64;

    /// The product, and the sum that takes one: floats round once.
    fn product(self, other: Self) -> Self::Product;
    fn multiply_add(sum: Self::Product, x: Self, y: Self) -> Self::Product;
    fn add(a: Self::Product, b: Self::Product) -> Self::Product;

    /// Whether it comes before the other in the order of the extremum.
    fn before(self, other: Self, extremum: Extremum) -> bool;

    /// One of few values, so that there are many equal ones.
    fn few(rng: &mut impl Rng) -> Self;
}

macro_rules! integer {
    ($($type:ident to $product:ident;)*) => {$(
        impl Term for $type {
            fn to_f64(self) -> f64 {
                self as f64
            }

            fn product(self, other: Self) -> $product {
                // The lower 64 bits of the exact product, which fits 128.
                (i128::from(self)).wrapping_mul(i128::from(other)) as $product
            }

            fn multiply_add(sum: $product, x: Self, y: Self) -> $product {
                Self::add(sum, x.product(y))
            }

            fn add(a: $product, b: $product) -> $product {
                (i128::from(a) + i128::from(b)) as $product
            }

            fn before(self, other: Self, extremum: Extremum) -> bool {
                match extremum {
                    Extremum::Min => self < other,
                    Extremum::Max => self > other,
                }
            }

            fn few(rng: &mut impl Rng) -> Self {
                [0, 1, Self::MAX, Self::MIN, Self::MAX / 2][rng.random_range(0..5)]
            }
        }
    )*};
}

integer! {
    i32 to i64;
    u32 to u64;
    i64 to i64;
    u64 to u64;
}

macro_rules! float {
    ($($type:ident),*) => {$(
        impl Term for $type {
            fn to_f64(self) -> f64 {
                self.into()
            }

            fn product(self, other: Self) -> f64 {
                self.to_f64() * other.to_f64()
            }

            fn multiply_add(sum: f64, x: Self, y: Self) -> f64 {
                x.to_f64().mul_add(y.to_f64(), sum)
            }

            fn add(a: f64, b: f64) -> f64 {
                a + b
            }

            fn before(self, other: Self, extremum: Extremum) -> bool {
                if self.is_nan() || other.is_nan() {
                    return self.is_nan() && !other.is_nan();
                }
                match extremum {
                    Extremum::Min => self.total_cmp(&other).is_lt(),
                    Extremum::Max => self.total_cmp(&other).is_gt(),
                }
            }

            fn few(rng: &mut impl Rng) -> Self {
                [0.0, -0.0, 1.0, -1.0, Self::INFINITY, Self::NEG_INFINITY, 1e-30]
                    [rng.random_range(0..7)]
            }
        }
    )*};
}

float!(f32, f64);

/// The tree by definition, of `n` elements of `T`: what lanes make of their elements, and
/// the results of chunks, which have 8 bytes, like one more chunk of such elements.
fn tree<T, V: Copy>(
    n: usize,
    tiles: usize,
    first: impl Fn(usize) -> V,
    take: impl Fn(V, usize) -> V,
    combine: impl Fn(V, V) -> V,
) -> V {
    fn neighbours<V: Copy>(lanes: &[Option<V>], combine: &impl Fn(V, V) -> V) -> Option<V> {
        if let [one] = lanes {
            return *one;
        }
        let (left, right) = lanes.split_at(lanes.len() / 2);
        match (neighbours(left, combine), neighbours(right, combine)) {
            (Some(a), Some(b)) => Some(combine(a, b)),
            (a, b) => a.or(b),
        }
    }
    let elements: Vec<usize> = (0..n).collect();
    let totals: Vec<V> = elements
        .chunks(tiles * lanes::<T>())
        .map(|chunk| {
            let mut totals = vec![None; lanes::<T>()];
            for (e, &element) in chunk.iter().enumerate() {
                let lane = &mut totals[e % lanes::<T>()];
                *lane = Some(match *lane {
                    None => first(element),
                    Some(total) => take(total, element),
                });
            }
            neighbours(&totals, &combine).unwrap()
        })
        .collect();
    if let [total] = *totals {
        return total;
    }
    let mut lanes = vec![None; lanes::<u64>()];
    for (chunk, &total) in totals.iter().enumerate() {
        let at = chunk % lanes.len();
        lanes[at] = Some(lanes[at].map_or(total, |before| combine(before, total)));
    }
    neighbours(&lanes, &combine).unwrap()
}

fn moment_by_definition<T: Term>(moment: Moment, scale: f64, values: &[T], tiles: usize) -> f64 {
    let scaled = |e: usize| values[e].to_f64() * scale;
    let total = match moment {
        Moment::First => tree::<T, f64>(
            values.len(),
            tiles,
            scaled,
            |sum, e| sum + scaled(e),
            |a, b| a + b,
        ),
        Moment::Second => tree::<T, f64>(
            values.len(),
            tiles,
            |e| scaled(e) * scaled(e),
            |sum, e| scaled(e).mul_add(scaled(e), sum),
            |a, b| a + b,
        ),
    };
    if total.is_nan() { f64::NAN } else { total }
}

fn dot_by_definition<T: Term>(x: &[T], y: &[T], tiles: usize) -> T::Product {
    tree::<T, T::Product>(
        x.len(),
        tiles,
        |e| x[e].product(y[e]),
        |sum, e| T::multiply_add(sum, x[e], y[e]),
        T::add,
    )
}

fn position_by_definition<T: Term>(extremum: Extremum, values: &[T]) -> u64 {
    let mut best = 0;
    for i in 1..values.len() {
        if values[i].before(values[best], extremum) {
            best = i;
        }
    }
    best as u64
}

/// Launches everything into poisoned results, with chunks of `tiles` tiles.
fn check<T: Term>(reductions: &mut Plan<T>, x: &[T], y: &[T], tiles: usize, what: &str) {
    let device = reductions.device().clone();
    let (on_x, on_y) = (device.upload(x).unwrap(), device.upload(y).unwrap());
    let n = x.len();
    for (moment, scale) in [
        (Moment::First, 1.0),
        (Moment::Second, 1.0),
        (Moment::Second, 0.125),
    ] {
        let mut result = device.alloc_filled(1, 1234.5).unwrap();
        reductions
            .moment_into(moment, scale, &on_x, &mut result)
            .unwrap();
        let expected = moment_by_definition(moment, scale, x, tiles);
        assert_same_bits(&result.to_vec().unwrap(), &[expected], |_| {
            format!("{moment:?} moment of {n} {}, {what}", T::NAME)
        });
    }
    let got = reductions.dot(&on_x, &on_y).unwrap();
    assert_same_bits(&[got], &[dot_by_definition(x, y, tiles)], |_| {
        format!("dot product of {n} {}, {what}", T::NAME)
    });
    for extremum in Extremum::ALL {
        let mut result = device.alloc_filled(1, u64::MAX - 1).unwrap();
        reductions.place_into(extremum, &on_x, &mut result).unwrap();
        let got = result.to_vec().unwrap()[0];
        assert_eq!(
            got,
            position_by_definition(extremum, x),
            "place of the {extremum:?} of {n} {}, {what}",
            T::NAME
        );
    }
    assert_same_bits(&on_x.to_vec().unwrap(), x, |i| {
        format!("x {i}, which was written")
    });
    assert_same_bits(&on_y.to_vec().unwrap(), y, |i| {
        format!("y {i}, which was written")
    });
}

/// With random values, and with few different ones.
fn check_random<T: Term>(device: &Device, rng: &mut impl Rng, n: usize) {
    let mut reductions = plan::<T>(device);
    let tiles = tiles_of_a_chunk::<T>(n);
    let (x, y) = (T::random(rng, n), T::random(rng, n));
    check(&mut reductions, &x, &y, tiles, device.name());
    let few: Vec<T> = (0..n).map(|_| T::few(rng)).collect();
    for extremum in Extremum::ALL {
        let got = match extremum {
            Extremum::Min => argmin_of(device, &few),
            Extremum::Max => argmax_of(device, &few),
        };
        assert_eq!(
            got.unwrap(),
            position_by_definition(extremum, &few),
            "{few:?}"
        );
    }
}

macro_rules! all_types {
    ($function:ident($($argument:expr),*)) => {
        $function::<i32>($($argument),*);
        $function::<u32>($($argument),*);
        $function::<i64>($($argument),*);
        $function::<u64>($($argument),*);
        $function::<f32>($($argument),*);
        $function::<f64>($($argument),*);
    };
}

#[test]
fn the_ports_follow_the_tree_of_terms_at_any_size() {
    fn all<T: Term>(device: &Device, rng: &mut impl Rng) {
        let tile = lanes::<T>();
        let one_block = [1, 2, 3, 5, 33, tile - 1, tile, 2 * tile + 3, 5 * tile + 34];
        let many = [8 * tile + 1, 33_013, 64 * tile + 2];
        let large = [262_143, 1_000_003, 2_500_001];
        let large = test_cases::either(&large[..1], &large).iter().copied();
        for n in one_block.into_iter().chain(many).chain(large) {
            check_random::<T>(device, rng, n);
        }
    }
    let mut rng = rng();
    for_each(
        "sizes",
        [Device::cpu()].into_iter().chain(cuda()),
        |device| {
            all_types!(all(&device, &mut rng));
        },
    );
}

#[test]
fn no_term_depends_on_the_number_of_blocks_and_all_chunks_are_collected() {
    fn all<T: Term>(device: &Device, rng: &mut impl Rng, more_chunks: bool) {
        // More chunks than a thread collects at a time, of one tile each.
        let n = if more_chunks { 514 } else { 10 } * lanes::<T>() + 5;
        let (x, y) = (T::random(rng, n), T::random(rng, n));
        let mut reductions = new_plan(
            &Reduction::new().with_tiles(1).with_most_blocks(2).unwrap(),
            device,
        );
        check(&mut reductions, &x, &y, 1, "chunks of one tile");
        for &blocks in test_cases::either(&[4, u32::MAX][..], &[1, 4, 11, u32::MAX]) {
            let n = 9 * lanes::<T>() + 7;
            let (x, y) = (&x[..n], &y[..n]);
            let mut reductions =
                new_plan(&Reduction::new().with_most_blocks(blocks).unwrap(), device);
            check(&mut reductions, x, y, 1, &format!("{blocks} blocks"));
        }
    }
    let mut rng = rng();
    for_each(
        "blocks",
        [Device::emulator()].into_iter().chain(cuda()),
        |device| {
            all::<f32>(&device, &mut rng, true);
            all::<i64>(&device, &mut rng, test_cases::all());
        },
    );
}

#[test]
fn an_extremum_is_found_wherever_it_is() {
    for_each("places", kernel_devices(), |device| {
        let n = 9 * lanes::<f32>() + 3;
        let mut reductions = plan(&device);
        for place in [0, 1, 2, 3, 4, 127, 2048, 4097, n - 4, n - 1] {
            let mut values = vec![1.0_f32; n];
            values[place] = -2.0;
            // An equal one behind it is not the first.
            if place + 5000 < n {
                values[place + 5000] = -2.0;
            }
            let on_device = device.upload(&values).unwrap();
            assert_eq!(reductions.argmin(&on_device).unwrap(), place as u64);
            values[place] = f32::from_bits(0xffc0_1234);
            let on_device = device.upload(&values).unwrap();
            assert_eq!(reductions.argmin(&on_device).unwrap(), place as u64, "NaN");
            assert_eq!(reductions.argmax(&on_device).unwrap(), place as u64, "NaN");
        }
        // Of nothing but the last of all keys the first.
        assert_eq!(argmin_of(&device, &[u32::MAX; 3000]).unwrap(), 0);
        assert_eq!(argmax_of(&device, &[u64::MIN; 3000]).unwrap(), 0);
        assert_eq!(argmax_of(&device, &[i32::MIN; 3000]).unwrap(), 0);
        assert_eq!(argmin_of(&device, &[f64::INFINITY; 3000]).unwrap(), 0);
        assert_eq!(argmin_of(&device, &[0.0_f64, -0.0, 0.0]).unwrap(), 1);
        assert_eq!(argmax_of(&device, &[-0.0_f32, 0.0, 0.0]).unwrap(), 1);
    });
}

#[test]
fn means_and_norms_stay_in_range() {
    for_each("devices", devices(), |device| {
        let mean = |values: &[f64]| mean_of(&device, values).unwrap();
        let norm = |values: &[f64]| norm_of(&device, values).unwrap();
        assert_eq!(mean(&[f64::MAX; 4]), f64::MAX);
        for n in 3..12 {
            // Not more than rounding away, and never beyond.
            let (high, low) = (mean(&vec![f64::MAX; n]), mean(&vec![f64::MIN; n]));
            assert!(
                high / f64::MAX > 1.0 - 1e-14 && high.is_finite(),
                "{n}: {high}"
            );
            assert_eq!(low, -high);
        }
        assert_eq!(mean(&[f64::MAX, f64::MAX, f64::MIN, f64::MIN]), 0.0);
        assert_eq!(mean(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert_eq!(
            mean(&[f64::NEG_INFINITY, f64::MAX, f64::MAX]),
            f64::NEG_INFINITY
        );
        assert!(mean(&[f64::NEG_INFINITY, f64::INFINITY]).is_nan());
        assert!(mean(&[f64::NAN, 1.0]).is_nan());
        assert_eq!(mean(&[1.0, 2.0]), 1.5);

        let tiny = f64::from_bits(1);
        assert_eq!(norm(&[3.0 * tiny, 4.0 * tiny]), 5.0 * tiny);
        assert_eq!(norm(&[3e-200, 4e-200]), 5e-200);
        assert!((norm(&[3e250, 4e250]) / 5e250 - 1.0).abs() < 1e-15);
        assert_eq!(norm(&[f64::MAX]), f64::MAX);
        assert_eq!(norm(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(norm(&[f64::NEG_INFINITY, 0.0]), f64::INFINITY);
        assert!(norm(&[f64::INFINITY, f64::NAN]).is_nan());
        assert_eq!(norm(&[0.0, -0.0]), 0.0);
        assert_eq!(norm(&[f64::MAX, tiny, 1.0]), f64::MAX);

        let (huge, small) = (f32::MAX, f32::from_bits(1));
        assert_eq!(mean_of(&device, &[huge, huge]).unwrap(), f64::from(huge));
        assert_eq!(norm_of(&device, &[huge]).unwrap(), f64::from(huge));
        assert_eq!(norm_of(&device, &[small]).unwrap(), f64::from(small));
        assert_eq!(
            dot_of(&device, &[huge; 2], &[huge; 2]).unwrap(),
            2.0 * f64::from(huge).powi(2)
        );

        assert_eq!(
            mean_of(&device, &[i32::MIN, i32::MIN]).unwrap(),
            f64::from(i32::MIN)
        );
        assert_eq!(mean_of(&device, &[u64::MAX; 4]).unwrap(), 2.0_f64.powi(64));
        assert_eq!(norm_of(&device, &[i32::MIN; 4]).unwrap(), 2.0_f64.powi(32));
        assert_eq!(
            dot_of(&device, &[u32::MAX], &[u32::MAX]).unwrap(),
            0xffff_fffe_0000_0001
        );
        assert_eq!(dot_of(&device, &[i32::MIN; 3], &[-1; 3]).unwrap(), 3 << 31);
        assert_eq!(dot_of(&device, &[i64::MIN, 7], &[2, 3]).unwrap(), 21);
        assert_eq!(dot_of(&device, &[u64::MAX, 1], &[u64::MAX, 1]).unwrap(), 2);
    });
}

#[test]
fn nothing_has_a_norm_and_a_dot_product_but_no_mean_and_no_place() {
    fn all<T: Term>(device: &Device) {
        let empty = device.upload::<T>(&[]).unwrap();
        assert_eq!(norm(&empty).unwrap().to_bits(), 0);
        assert_eq!(dot(&empty, &empty).unwrap().bits(), 0);
        fn refused<R: std::fmt::Debug>(result: Result<R, Error>, name: &str) {
            let error = result.unwrap_err();
            assert!(
                matches!(error, Error::EmptyInput { operation } if operation == name),
                "{error}"
            );
        }
        refused(mean(&empty), "reduction: mean");
        refused(argmin(&empty), "reduction: argmin");
        refused(argmax(&empty), "reduction: argmax");
        let mut reductions = plan::<T>(device);
        let mut result = device.alloc_filled(1, 7.0).unwrap();
        refused(
            reductions.moment_into(Moment::First, 1.0, &empty, &mut result),
            "reduction: first moment",
        );
        assert_eq!(result.to_vec().unwrap(), [7.0]);
    }
    for_each("devices", devices(), |device| {
        all_types!(all(&device));
    });
}

#[test]
fn terms_that_do_not_fit_are_refused() {
    for_each("devices", devices(), |device| {
        let elsewhere = Device::emulator();
        let mut reductions = plan::<f32>(&device);
        let (x, y) = (
            device.upload(&[1.0_f32; 5]).unwrap(),
            device.upload(&[2.0_f32; 4]).unwrap(),
        );
        let error = reductions.dot(&x, &y).unwrap_err();
        assert!(
            matches!(
                error,
                Error::LengthMismatch {
                    required: 5,
                    given: 4,
                    ..
                }
            ),
            "{error}"
        );
        let away = elsewhere.upload(&[2.0_f32; 5]).unwrap();
        for error in [
            reductions.dot(&x, &away).unwrap_err(),
            reductions.dot(&away, &x).unwrap_err(),
            reductions.mean(&away).unwrap_err(),
            reductions.norm(&away).unwrap_err(),
            reductions.argmin(&away).unwrap_err(),
        ] {
            assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
        }
        for given in [0, 2] {
            let mut result = device.alloc_filled(given, 7_u64).unwrap();
            let error = reductions
                .place_into(Extremum::Max, &x, &mut result)
                .unwrap_err();
            assert!(
                matches!(&error, Error::LengthMismatch { required: 1, given: len, .. } if *len == given),
                "{error}"
            );
            assert_eq!(result.to_vec().unwrap(), vec![7; given]);
        }
        let mut result = device.alloc_filled(1, 7.0).unwrap();
        for scale in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = reductions
                .moment_into(Moment::Second, scale, &x, &mut result)
                .unwrap_err();
            assert!(matches!(error, Error::NonFinite { .. }), "{error}");
        }
        assert_eq!(result.to_vec().unwrap(), [7.0]);
    });
}

#[test]
fn the_functions_for_terms_do_what_their_names_say() {
    let mut rng = rng();
    for_each("devices", devices(), |device| {
        let n = 3001;
        let (x, y) = (f64::random(&mut rng, n), f64::random(&mut rng, n));
        let (on_x, on_y): (Buffer<f64>, Buffer<f64>) =
            (device.upload(&x).unwrap(), device.upload(&y).unwrap());
        let tiles = tiles_of_a_chunk::<f64>(n);
        let sum = moment_by_definition(Moment::First, 1.0, &x, tiles);
        let squares = moment_by_definition(Moment::Second, 1.0, &x, tiles);
        let product = dot_by_definition(&x, &y, tiles);
        for (got, expected) in [
            (mean(&on_x), sum / n as f64),
            (mean_of(&device, &x), sum / n as f64),
            (norm(&on_x), squares.sqrt()),
            (norm_of(&device, &x), squares.sqrt()),
            (dot(&on_x, &on_y), product),
            (dot_of(&device, &x, &y), product),
        ] {
            assert_same_bits(&[got.unwrap()], &[expected], |_| "a function of f64");
        }
        let (least, greatest) = (
            position_by_definition(Extremum::Min, &x),
            position_by_definition(Extremum::Max, &x),
        );
        assert_eq!(argmin(&on_x).unwrap(), least);
        assert_eq!(argmin_of(&device, &x).unwrap(), least);
        assert_eq!(argmax(&on_x).unwrap(), greatest);
        assert_eq!(argmax_of(&device, &x).unwrap(), greatest);
    });
}

#[test]
fn the_bound_of_terms_counts_their_roundings() {
    // Chunks of 4 tiles of 2048: 3 and 11 additions; 128 results in 1024 lanes.
    let bound = Plan::<f32>::f64_error_bound(1 << 20, 1.0);
    let counted = 3.0 + 11.0 + 10.0 + 2.0;
    assert!(bound >= counted * f64::EPSILON / 2.0);
    assert!(bound <= (counted + 3.0) * f64::EPSILON / 2.0);
    assert_eq!(Partition::of(1 << 20, 4).chunks(), 128);
}
