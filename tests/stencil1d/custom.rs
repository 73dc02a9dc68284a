//! Stencils of any coefficients: port and kernels against the formula, bit for bit.

use halo_gpu::Scalar;
use halo_gpu::finite_difference::Weights;
use halo_gpu::stencil1d::{MAX_RADIUS, Stencil1d, Variant};
use halo_gpu::{Device, DeviceKind, Error};
use halo_tests::property::{self, device};
use halo_tests::{Bits, assert_same_bits, devices, for_each, ptx, rng};
use proptest::prelude::*;
use rand::{Rng, RngExt};

/// The kernels, by type.
pub const KERNELS: [&str; 2] = ["stencil1d_custom_f32", "stencil1d_custom_f64"];

/// How the coefficients of a stencil belong together.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Antisymmetric,
    Symmetric,
    Any,
}

trait Sample: Scalar + Bits {
    const POISON: Self;
    fn product(self, other: Self) -> Self;
    fn fused(self, factor: Self, sum: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;

    fn random(rng: &mut impl Rng, len: usize) -> Vec<Self> {
        (0..len)
            .map(|_| Self::nearest(rng.random_range(-1.0..1.0)))
            .collect()
    }
}

macro_rules! sample {
    ($($type:ident),*) => {$(
        impl Sample for $type {
            const POISON: Self = 1234.5;


            fn product(self, other: Self) -> Self {
                self * other
            }

            fn fused(self, factor: Self, sum: Self) -> Self {
                self.mul_add(factor, sum)
            }

            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn minus(self, other: Self) -> Self {
                self - other
            }
        }
    )*};
}

sample!(f32, f64);

/// A stencil with these coefficients: `c[R + m]` for the neighbour m.
fn stencil<T: Sample>(form: Form, n: usize, c: &[T]) -> Result<Stencil1d<T>, Error> {
    let radius = c.len() / 2;
    match form {
        Form::Antisymmetric => Stencil1d::antisymmetric(n, &c[radius + 1..]),
        Form::Symmetric => Stencil1d::symmetric(n, c[radius], &c[radius + 1..]),
        Form::Any => Stencil1d::any(n, c),
    }
}

/// One element by the formula, in the order that is promised.
fn by_definition<T: Sample>(form: Form, c: &[T], line: &[T], i: usize) -> T {
    let radius = c.len() / 2;
    let mut sum = None;
    if form != Form::Antisymmetric {
        sum = Some(c[radius].product(line[i]));
    }
    for m in 1..=radius {
        let (ahead, behind) = (line[i + m], line[i - m]);
        let terms = match form {
            Form::Antisymmetric => vec![(ahead.minus(behind), c[radius + m])],
            Form::Symmetric => vec![(ahead.plus(behind), c[radius + m])],
            Form::Any => vec![(ahead, c[radius + m]), (behind, c[radius - m])],
        };
        for (value, factor) in terms {
            sum = Some(match sum {
                None => value.product(factor),
                Some(sum) => Sample::fused(value, factor, sum),
            });
        }
    }
    sum.unwrap()
}

fn check<T: Sample>(device: &Device, form: Form, c: &[T], line: &[T]) {
    let (n, radius) = (line.len(), c.len() / 2);
    let stencil = stencil(form, n, c).unwrap();
    assert_eq!((stencil.n(), stencil.radius()), (n, radius));
    assert_eq!(stencil.inner_len(), n - 2 * radius);
    let given = match form {
        Form::Antisymmetric => &c[radius + 1..],
        Form::Symmetric => &c[radius..],
        Form::Any => c,
    };
    assert_same_bits(stencil.coefficients(), given, |i| {
        format!("coefficient {i}")
    });
    let input = device.upload(line).unwrap();
    // Different everywhere, so that unwritten elements are recognised.
    let before: Vec<T> = (0..n)
        .map(|i| T::POISON.plus(T::nearest(i as f64)))
        .collect();
    let mut output = device.upload(&before).unwrap();
    let mut plans = vec![stencil.plan(device).unwrap()];
    if device.kind() != DeviceKind::Cpu {
        plans.push(stencil.plan_with(device, Variant::Custom).unwrap());
    }
    let expected: Vec<T> = (0..n)
        .map(|i| {
            if i < radius || i + radius >= n {
                before[i]
            } else {
                by_definition(form, c, line, i)
            }
        })
        .collect();
    for plan in plans {
        output.copy_from_slice(&before).unwrap();
        plan.apply(&input, &mut output).unwrap();
        assert_same_bits(&output.to_vec().unwrap(), &expected, |i| {
            format!("{form:?}, radius {radius}, element {i} of {n} {}", T::NAME)
        });
    }
    assert_same_bits(&input.to_vec().unwrap(), line, |i| {
        format!("input {i}, which was written")
    });
    let inner = stencil.apply_of(device, line).unwrap();
    assert_same_bits(&inner, &expected[radius..n - radius], |i| i);
}

const FORMS: [Form; 3] = [Form::Antisymmetric, Form::Symmetric, Form::Any];

#[test]
fn every_radius_and_form_has_the_bits_of_the_formula() {
    fn all<T: Sample>(device: &Device, rng: &mut impl Rng) {
        for radius in 1..=MAX_RADIUS {
            for form in FORMS {
                let c = T::random(rng, 2 * radius + 1);
                // The shortest, and windows that leave the line on either side, on both,
                // or not at all; a ragged vector in the end.
                for n in [2 * radius + 1, 2 * radius + 2, 17, 18, 19, 25, 63, 64, 1027] {
                    if n > 2 * radius {
                        check(device, form, &c, &T::random(rng, n));
                    }
                }
            }
        }
    }
    let mut rng = rng();
    for_each("radii", devices(), |device| {
        all::<f32>(&device, &mut rng);
        all::<f64>(&device, &mut rng);
    });
}

#[test]
fn long_lines_have_the_bits_of_the_formula() {
    let mut rng = rng();
    for_each("long", devices(), |device| {
        for (form, radius, n) in [
            (Form::Antisymmetric, 4, 8192 + 8),
            (Form::Symmetric, 8, 20_011),
            (Form::Any, 5, 16_384 + 11),
        ] {
            let c = f32::random(&mut rng, 2 * radius + 1);
            check(&device, form, &c, &f32::random(&mut rng, n));
            let c = f64::random(&mut rng, 2 * radius + 1);
            check(&device, form, &c, &f64::random(&mut rng, n));
        }
    });
}

#[test]
fn what_is_not_finite_goes_no_farther_than_the_stencil() {
    for_each("devices", devices(), |device| {
        for radius in 1..=MAX_RADIUS {
            for form in FORMS {
                let c = vec![1.0_f32; 2 * radius + 1];
                let (n, place) = (60, 29);
                let mut line = vec![1.0; n];
                line[place] = f32::INFINITY;
                let inner = stencil(form, n, &c).unwrap();
                let inner = inner.apply_of(&device, &line).unwrap();
                for (i, value) in inner.into_iter().enumerate() {
                    let away = (i + radius).abs_diff(place);
                    let reached = away <= radius && (away > 0 || form != Form::Antisymmetric);
                    assert_eq!(!value.is_finite(), reached, "{form:?} {radius} {i}");
                }
            }
        }
    });
}

#[test]
fn a_sum_of_nothing_has_the_sign_of_its_first_product() {
    for_each("devices", devices(), |device| {
        for form in FORMS {
            // -1 × (1 - 1), and -1 × 0 with nothing added but the like, are -0.
            let value = if form == Form::Antisymmetric {
                1.0
            } else {
                0.0
            };
            check(&device, form, &[-1.0_f32; 3], &[value; 40]);
            check(&device, form, &[-1.0_f64; 3], &[f64::from(value); 40]);
        }
    });
}

#[test]
fn derivatives_are_as_accurate_as_their_weights() {
    for_each("devices", devices(), |device| {
        for order in [2_u32, 4, 6, 8] {
            let weights = Weights::central(1, order).unwrap();
            let n = 64;
            // Exact on polynomials up to the order, where numbers stay small.
            let at = |i: usize| (i as f64 - 32.0) / 8.0;
            let line: Vec<f64> = (0..n).map(|i| at(i).powi(order as i32)).collect();
            let stencil = Stencil1d::any(n, weights.values()).unwrap();
            let radius = stencil.radius();
            for (i, value) in stencil
                .apply_of(&device, &line)
                .unwrap()
                .into_iter()
                .enumerate()
            {
                let exact = f64::from(order) * at(i + radius).powi(order as i32 - 1);
                assert!(
                    (8.0 * value - exact).abs() < 1e-7,
                    "{order} at {i}: {value}"
                );
            }
        }
    });
}

#[test]
fn every_custom_kernel_has_its_name() {
    let [of_f32, of_f64] = KERNELS;
    assert_eq!(Variant::Custom.kernel::<f32>(), Some(of_f32));
    assert_eq!(Variant::Custom.kernel::<f64>(), Some(of_f64));
    let stencil = Stencil1d::symmetric(100, 1.0_f64, &[1.0; 3]).unwrap();
    assert_eq!(stencil.cost().bytes, 8 * (100 + 94));
    assert_eq!(stencil.cost().flops, 10 * 94);
    assert_eq!(
        Stencil1d::antisymmetric(9, &[1.0_f32; 4])
            .unwrap()
            .cost()
            .flops,
        11
    );
    assert_eq!(Stencil1d::any(9, &[1.0_f32; 9]).unwrap().cost().flops, 17);
}

#[test]
fn ptx_facts_of_custom_stencils() {
    let kernels = ptx::TARGETS
        .into_iter()
        .flat_map(|target| KERNELS.map(|name| (target, name)));
    for_each("ptx", kernels, |(target, name)| {
        let body = ptx::entry(ptx::text(target), name);
        let count = |opcode: &str| ptx::count(&body, opcode);
        let vectors = if name.ends_with("f32") { 6 } else { 10 };
        let kind = if name.ends_with("f32") { "v4" } else { "v2" };
        assert_eq!(count("ld.global.nc.v4"), vectors, "loads of 16 bytes");
        assert_eq!(count(&format!("st.global.{kind}")), 2, "stores of 16 bytes");
        assert_eq!(count("bar.sync") + count("barrier.sync"), 0, "barriers");
        assert_eq!(count("ld.local") + count("st.local"), 0, "local memory");
    });
}

proptest! {
    #![proptest_config(property::cases(48))]

    #[test]
    fn any_stencil_is_linear_and_does_not_mind_where_it_is(
        (c, line, other) in (1..=MAX_RADIUS).prop_flat_map(|radius| {
            let numbers = |len| proptest::collection::vec(-1.0..1.0_f64, len);
            (2 * radius + 20..400_usize).prop_flat_map(move |n| {
                (numbers(2 * radius + 1), numbers(n), numbers(n))
            })
        }),
        form in prop::sample::select(&FORMS[..]),
        power in -30..30_i32,
        device in device(),
    ) {
        let n = line.len();
        let stencil = stencil(form, n, &c)?;
        let alone = stencil.apply_of(&device, &line)?;
        // A power of two goes through exactly.
        let scale = 2.0_f64.powi(power);
        let scaled: Vec<f64> = line.iter().map(|x| x * scale).collect();
        for (got, x) in stencil.apply_of(&device, &scaled)?.into_iter().zip(&alone) {
            prop_assert_eq!(got, x * scale);
        }
        let sum: Vec<f64> = line.iter().zip(&other).map(|(x, y)| x + y).collect();
        let apart = stencil.apply_of(&device, &other)?;
        for ((got, x), y) in stencil.apply_of(&device, &sum)?.into_iter().zip(&alone).zip(&apart) {
            // 34 roundings of terms below 2, in each of three.
            prop_assert!((got - (x + y)).abs() <= 17.0 * 3.0 * 40.0 * f64::EPSILON);
        }
        // The line without its first element gives the rest of the result.
        let shorter = self::stencil(form, n - 1, &c)?.apply_of(&device, &line[1..])?;
        prop_assert_eq!(&shorter[..], &alone[1..]);
        if form == Form::Antisymmetric {
            let constant = stencil.apply_of(&device, &vec![line[0]; n])?;
            prop_assert!(constant.iter().all(|value| *value == 0.0));
        }
    }

    #[test]
    fn bad_stencils_get_the_error_they_deserve(
        n in 0..40_usize,
        c in proptest::collection::vec(prop_oneof![9 => -1.0..1.0_f32, 1 => proptest::num::f32::ANY], 0..20),
        center in prop_oneof![9 => -1.0..1.0_f32, 1 => proptest::num::f32::ANY],
        form in prop::sample::select(&FORMS[..]),
        wrong in (0..3_usize, 0..3_usize),
        away in any::<bool>(),
    ) {
        let made = match form {
            Form::Antisymmetric => Stencil1d::antisymmetric(n, &c),
            Form::Symmetric => Stencil1d::symmetric(n, center, &c),
            Form::Any => Stencil1d::any(n, &c),
        };
        let (radius, possible) = match form {
            Form::Any => (c.len() / 2, c.len() % 2 == 1 && (3..=2 * MAX_RADIUS + 1).contains(&c.len())),
            _ => (c.len(), (1..=MAX_RADIUS).contains(&c.len())),
        };
        let finite = c.iter().all(|value| value.is_finite())
            && (form != Form::Symmetric || center.is_finite());
        let stencil = match made {
            Ok(stencil) => {
                prop_assert!(possible && n > 2 * radius && finite);
                stencil
            }
            Err(Error::InvalidSize { axis: "the number of coefficients", given, .. }) => {
                prop_assert!(!possible && given == c.len());
                return Ok(());
            }
            Err(Error::InvalidSize { axis: "n", given, .. }) => {
                prop_assert!(possible && n <= 2 * radius && given == n);
                return Ok(());
            }
            Err(Error::NonFinite { .. }) => {
                prop_assert!(possible && n > 2 * radius && !finite);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let device = Device::emulator();
        let plan = stencil.plan(&device)?;
        let input = device.upload(&vec![1.0_f32; n + wrong.0])?;
        let elsewhere = if away { Device::cpu() } else { device };
        let mut output = elsewhere.upload(&vec![7.0_f32; n + wrong.1])?;
        match plan.apply(&input, &mut output) {
            Ok(()) => prop_assert!(wrong == (0, 0) && !away),
            Err(Error::LengthMismatch { .. }) => prop_assert!(wrong != (0, 0)),
            Err(Error::DeviceMismatch { .. }) => prop_assert!(wrong == (0, 0) && away),
            Err(error) => return Err(error.into()),
        }
    }
}
