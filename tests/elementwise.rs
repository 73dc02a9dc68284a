//! elementwise: the ports and the kernels on every device.

use halo_gpu::elementwise::{self, Places};
use halo_gpu::{Buffer, Device, DeviceKind, Error, Scalar};
use halo_tests::property::{self, Faults, device, rarely};
use halo_tests::{Bits, assert_same_bits, devices, for_each, rng};
use proptest::prelude::*;
use rand::{Rng, RngExt};

/// What an element becomes, one rounding at a time.
trait Number: Scalar + Bits {
    fn fma(self, factor: Self, sum: Self) -> Self;
}

impl Number for f32 {
    fn fma(self, factor: Self, sum: Self) -> Self {
        self.mul_add(factor, sum)
    }
}

impl Number for f64 {
    fn fma(self, factor: Self, sum: Self) -> Self {
        self.mul_add(factor, sum)
    }
}

fn random<T: Scalar>(rng: &mut impl Rng, len: usize) -> Vec<T> {
    let numbers = (0..len).map(|_| T::nearest(rng.random_range(-2.0..2.0)));
    numbers.collect()
}

/// Partial vectors, several pieces of a port, and a partial piece.
const LENGTHS: [usize; 9] = [0, 1, 3, 4, 7, 1023, 4098, 70_001, 300_001];

#[test]
fn updates_have_the_bits_of_their_definitions_everywhere() {
    fn check<T: Number>() {
        let mut rng = rng();
        for len in LENGTHS {
            let [x, y] = [(); 2].map(|()| random::<T>(&mut rng, len));
            let (a, b) = (T::nearest(0.3), T::nearest(-1.7));
            let sums: Vec<T> = x.iter().zip(&y).map(|(&x, &y)| a.fma(x, b * y)).collect();
            let (low, high) = (T::nearest(-0.9), T::nearest(1.1));
            let within = |&y: &T| match y {
                y if y < low => low,
                y if y > high => high,
                y => y,
            };
            let bounded: Vec<T> = y.iter().map(within).collect();
            let changes = x.iter().zip(&y).map(|(&x, &y)| {
                let change: f64 = (y - x).into();
                change.abs()
            });
            let largest = changes.fold(0.0, f64::max);
            let few = |device: &Device| len < 10_000 || device.kind() == DeviceKind::Cpu;
            for_each("device", devices().into_iter().filter(few), |device| {
                let (on_device, mut out) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
                let found: f64 = elementwise::largest_difference(&on_device, &out)
                    .unwrap()
                    .into();
                assert_eq!(found, largest);
                // Whatever the result held before.
                let mut result = device.upload(&[T::nearest(1e9)]).unwrap();
                elementwise::largest_difference_into(&on_device, &out, &mut result).unwrap();
                let found: f64 = result.to_vec().unwrap()[0].into();
                assert_eq!(found, largest);
                elementwise::axpby(a, &on_device, b, &mut out).unwrap();
                assert_same_bits(&out.to_vec().unwrap(), &sums, |at| format!("element {at}"));
                assert_same_bits(&on_device.to_vec().unwrap(), &x, |at| format!("x {at}"));
                out.copy_from_slice(&y).unwrap();
                elementwise::clamp(&mut out, low, high).unwrap();
                assert_same_bits(&out.to_vec().unwrap(), &bounded, |at| {
                    format!("element {at}")
                });
            });
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn values_go_to_their_places_and_nowhere_else() {
    fn check<T: Number>() {
        let mut rng = rng();
        for (count, apart) in [(0, 1), (1, 1), (3, 5), (257, 1), (1000, 40), (70_000, 3)] {
            let mut next = 0;
            let mut place = || {
                next += rng.random_range(1..=apart);
                next - 1
            };
            let at: Vec<usize> = (0..count).map(|_| place()).collect();
            let len = at.last().map_or(0, |last| last + 1) + rng.random_range(0..2);
            let (values, before) = (random::<T>(&mut rng, count), random::<T>(&mut rng, len));
            let mut expected = before.clone();
            for (&at, &value) in at.iter().zip(&values) {
                expected[at] = value;
            }
            let few = |device: &Device| count < 10_000 || device.kind() == DeviceKind::Cpu;
            for_each("device", devices().into_iter().filter(few), |device| {
                let places = Places::new(&device, &at).unwrap();
                assert_eq!((places.len(), places.is_empty()), (count, count == 0));
                let (some, mut y) = (
                    device.upload(&values).unwrap(),
                    device.upload(&before).unwrap(),
                );
                elementwise::put(some.view(..).unwrap(), &places, &mut y).unwrap();
                assert_same_bits(&y.to_vec().unwrap(), &expected, |at| {
                    format!("element {at}")
                });
            });
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn nan_stays_and_is_found_and_zeros_keep_their_sign() {
    for_each("device", devices(), |device| {
        let numbers = [1.0, f32::NAN, -0.0, f32::INFINITY, 0.0];
        let mut y = device.upload(&numbers).unwrap();
        elementwise::clamp(&mut y, -0.5, 0.5).unwrap();
        let got = y.to_vec().unwrap();
        assert!(got[1].is_nan());
        let bits = [got[0], got[2], got[3], got[4]].map(f32::to_bits);
        assert_eq!(bits, [0.5_f32, -0.0, 0.5, 0.0].map(f32::to_bits));

        // A zero is within a bound that is the zero of the other sign.
        let mut zeros = device.upload(&[-0.0_f32, 0.0]).unwrap();
        elementwise::clamp(&mut zeros, 0.0, 1.0).unwrap();
        elementwise::clamp(&mut zeros, -1.0, -0.0).unwrap();
        let bits = zeros.to_vec().unwrap().into_iter().map(f32::to_bits);
        assert!(bits.eq([-0.0_f32, 0.0].map(f32::to_bits)));

        let x = device.upload(&[0.0_f32; 5]).unwrap();
        assert!(elementwise::largest_difference(&x, &y).unwrap().is_nan());
        let y = device.upload(&[0.0, f32::INFINITY, 1.0, 0.0, 0.0]).unwrap();
        assert_eq!(
            elementwise::largest_difference(&x, &y).unwrap(),
            f32::INFINITY
        );
    });
}

/// Of arrays that the emulator's blocks go through in several rounds.
#[test]
fn the_largest_difference_is_found_wherever_it_is() {
    /// Threads in a block of the kernel.
    const BLOCK: usize = 256;
    fn check<T: Scalar>(device: &Device) {
        let round = 8 * device.properties().multiprocessors as usize * BLOCK;
        let n = 2 * round + 77;
        let x = device.alloc_filled(n, T::nearest(0.0)).unwrap();
        let ends = [
            BLOCK,
            2 * BLOCK,
            round - BLOCK,
            round,
            round + BLOCK,
            2 * round,
        ];
        let around = ends.into_iter().flat_map(|end| [end - 1, end, end + 1]);
        for at in around.chain([0, n - 1]) {
            let mut values = vec![T::nearest(0.0); n];
            values[at] = T::nearest(-1.5);
            let y = device.upload(&values).unwrap();
            let largest: f64 = elementwise::largest_difference(&x, &y).unwrap().into();
            assert_eq!(largest, 1.5, "at {at}");
        }
    }
    check::<f32>(&Device::emulator());
    check::<f64>(&Device::emulator());
}

/// Updates of buffers with any faults.
fn are_judged_rightly<T: Scalar>(
    lens: [usize; 2],
    away: bool,
    numbers: [f64; 4],
    device: &Device,
) -> Result<(), TestCaseError> {
    let elsewhere = Device::emulator();
    let [a, b, low, high] = numbers.map(T::nearest);
    let x = device.alloc_filled(lens[0], T::nearest(1.0))?;
    let mut y: Buffer<T> =
        (if away { &elsewhere } else { device }).alloc_filled(lens[1], T::nearest(2.0))?;
    let words = format!(
        "elementwise: y has {} elements, but must have {}",
        lens[1], lens[0]
    );
    let fit = Faults::none()
        .and(lens[0] != lens[1], "LengthMismatch", words)
        .and(away, "DeviceMismatch", "elementwise: y is on");
    fit.judge(elementwise::largest_difference(&x, &y))?;
    let mut result = device.zeros(1)?;
    fit.judge(elementwise::largest_difference_into(&x, &y, &mut result))?;

    let mut faults = fit;
    for (name, factor) in [("a", a), ("b", b)] {
        let given: f64 = factor.into();
        let words = format!("elementwise: axpby: {name} is {given}");
        faults = faults.and(!given.is_finite(), "NonFinite", words);
    }
    faults.judge(elementwise::axpby(a, &x, b, &mut y))?;

    let words = format!("the lower bound is {low}, but must be at most the upper, which is {high}");
    let ordered = Faults::none().and(!(low <= high), "InvalidParameter", words);
    ordered.judge(elementwise::clamp(&mut y, low, high))?;
    Ok(())
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![8 => -3.0..3.0_f64, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY)]
}

proptest! {
    #![proptest_config(property::cases(256))]

    #[test]
    fn places_get_the_error_they_deserve(
        at in proptest::collection::vec(0..9_usize, 0..4),
        lens in [0..4_usize, 0..12_usize],
        away in [rarely(4), rarely(4)],
        device in device(),
    ) {
        let ascends = Faults::none().and(
            !at.windows(2).all(|pair| pair[0] < pair[1]),
            "InvalidParameter",
            "the one before".to_owned(),
        );
        let elsewhere = Device::emulator();
        let of = |away: bool| if away { &elsewhere } else { &device };
        let places = Places::new(of(away[0]), &at);
        let (values, mut y) = (of(away[1]).zeros::<f32>(lens[0])?, device.zeros(lens[1])?);
        if let Ok(places) = &places {
            let end = at.last().map_or(0, |last| last + 1);
            let words = |what: &str, given, required| {
                format!("elementwise: {what} has {given} elements, but must have {required}")
            };
            Faults::none()
                .and(lens[0] != at.len(), "LengthMismatch", words("values", lens[0], at.len()))
                .and(lens[1] < end, "LengthMismatch", words("y", lens[1], end))
                .and(away[0], "DeviceMismatch", "elementwise: places is on")
                .and(away[1], "DeviceMismatch", "elementwise: values is on")
                .judge(elementwise::put(values.view(..)?, places, &mut y))?;
        }
        ascends.judge(places.map(drop))?;
    }

    #[test]
    fn updates_get_the_error_they_deserve(
        len in 0..9_usize,
        (longer, away) in (rarely(4), rarely(4)),
        numbers in [number(), number(), number(), number()],
        device in device(),
    ) {
        let lens = [len, len + usize::from(longer)];
        are_judged_rightly::<f32>(lens, away, numbers, &device)?;
        are_judged_rightly::<f64>(lens, away, numbers, &device)?;
    }
}

/// Errors are matched on by their fields.
#[test]
fn errors_name_the_argument_and_what_it_should_be() {
    for_each("device", devices(), |device| {
        let x = device.upload(&[1.0, 2.0, 3.0]).unwrap();
        let y = device.upload(&[1.0, 2.0]).unwrap();
        let argument = |error: Error| match error {
            Error::LengthMismatch {
                argument,
                required,
                given,
            } => (argument.operation, argument.name, required, given),
            error => panic!("{error}"),
        };
        let error = elementwise::largest_difference(&x, &y).unwrap_err();
        assert_eq!(argument(error), ("elementwise", "y", 3, 2));
        let mut two = device.zeros(2).unwrap();
        let error = elementwise::largest_difference_into(&x, &x, &mut two).unwrap_err();
        assert_eq!(argument(error), ("elementwise", "result", 1, 2));
        let mut away = Device::emulator().zeros(1).unwrap();
        match elementwise::largest_difference_into(&x, &x, &mut away) {
            Err(Error::DeviceMismatch { argument, .. }) => assert_eq!(argument.name, "result"),
            other => panic!("{other:?}"),
        }
    });
}
