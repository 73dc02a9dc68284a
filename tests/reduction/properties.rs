//! Properties of reductions for any input, and the errors for any invalid one.

use super::single_pass::{Sample, plan};
use halo_gpu::reduction::{
    self, Extremum, Moment, Operation, Plan, Reduction, Variant, argmax_of, argmin_of, dot_of,
    max_of, mean_of, min_of, norm_of, sum_of,
};
use halo_gpu::{Buffer, Device, DeviceKind, Error};
use halo_tests::Bits;
use halo_tests::property::{self, Faults, device, rarely};
use proptest::collection::vec;
use proptest::num;
use proptest::prelude::*;
use proptest::sample::select;

/// Any float that is a number and whose square is one too.
const MODERATE: num::f64::Any = num::f64::NORMAL;

fn moderate() -> impl Strategy<Value = f64> {
    (-1.0..1.0_f64, -80..80_i32).prop_map(|(mantissa, exponent)| mantissa * 2.0_f64.powi(exponent))
}

fn magnitudes(values: &[f64]) -> f64 {
    values.iter().map(|value| value.abs()).sum()
}

/// The same elements in another order.
fn shuffled<T: Clone + std::fmt::Debug + 'static>(
    element: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = (Vec<T>, Vec<T>)> {
    vec(element, 1..3000)
        .prop_flat_map(|values| (Just(values.clone()), Just(values).prop_shuffle()))
}

proptest! {
    #![proptest_config(property::cases(48))]

    #[test]
    fn integers_do_not_mind_their_order((a, b) in shuffled(any::<i64>()), device in device()) {
        prop_assert_eq!(sum_of(&device, &a)?, sum_of(&device, &b)?);
        prop_assert_eq!(min_of(&device, &a)?, min_of(&device, &b)?);
        prop_assert_eq!(max_of(&device, &a)?, max_of(&device, &b)?);
        prop_assert_eq!(a[argmin_of(&device, &a)? as usize], b[argmin_of(&device, &b)? as usize]);
        prop_assert_eq!(dot_of(&device, &a, &a)?, dot_of(&device, &b, &b)?);
        let unsigned: Vec<u64> = a.iter().map(|&x| x as u64).collect();
        prop_assert_eq!(sum_of(&device, &unsigned)?, sum_of(&device, &a)? as u64);
    }

    #[test]
    fn floats_mind_their_order_within_the_bound((a, b) in shuffled(moderate()), device in device()) {
        let bound = 2.0 * plan::<f64>(&Device::cpu()).error_bound(a.len(), magnitudes(&a));
        let off = (sum_of(&device, &a)? - sum_of(&device, &b)?).abs();
        prop_assert!(off <= bound, "{} > {}", off, bound);
        let squares: f64 = a.iter().map(|x| x * x).sum();
        let bound = 2.0 * Plan::<f64>::f64_error_bound(a.len(), squares);
        let off = (dot_of(&device, &a, &a)? - dot_of(&device, &b, &b)?).abs();
        prop_assert!(off <= bound, "{} > {}", off, bound);
        prop_assert_eq!(min_of(&device, &a)?.to_bits(), min_of(&device, &b)?.to_bits());
        prop_assert_eq!(max_of(&device, &a)?.to_bits(), max_of(&device, &b)?.to_bits());
    }

    #[test]
    fn powers_of_two_go_through(x in vec(moderate(), 1..2000), power in -60..60_i32, device in device()) {
        // Exactly: no rounding changes where nothing leaves the range.
        let scale = 2.0_f64.powi(power);
        let scaled: Vec<f64> = x.iter().map(|x| x * scale).collect();
        prop_assert_eq!(sum_of(&device, &scaled)?, sum_of(&device, &x)? * scale);
        prop_assert_eq!(mean_of(&device, &scaled)?, mean_of(&device, &x)? * scale);
        prop_assert_eq!(norm_of(&device, &scaled)?, norm_of(&device, &x)? * scale);
        prop_assert_eq!(dot_of(&device, &scaled, &x)?, dot_of(&device, &x, &x)? * scale);
        let turned: Vec<f64> = x.iter().map(|x| -x).collect();
        prop_assert_eq!(sum_of(&device, &turned)?, -sum_of(&device, &x)?);
        prop_assert_eq!(min_of(&device, &turned)?, -max_of(&device, &x)?);
        prop_assert_eq!(argmin_of(&device, &turned)?, argmax_of(&device, &x)?);
    }

    #[test]
    fn dot_products_are_linear_within_the_bound(
        pairs in vec((moderate(), moderate(), moderate()), 1..2000),
        device in device(),
    ) {
        let x: Vec<f64> = pairs.iter().map(|p| p.0).collect();
        let y: Vec<f64> = pairs.iter().map(|p| p.1).collect();
        let z: Vec<f64> = pairs.iter().map(|p| p.2).collect();
        let together: Vec<f64> = y.iter().zip(&z).map(|(y, z)| y + z).collect();
        let terms: f64 = pairs.iter().map(|p| p.0.abs() * (p.1.abs() + p.2.abs())).sum();
        // Each of the three, and one rounding of each y + z and of the last sum.
        let bound = 3.0 * Plan::<f64>::f64_error_bound(x.len(), terms)
            + 4.0 * f64::EPSILON * terms;
        let apart = dot_of(&device, &x, &y)? + dot_of(&device, &x, &z)?;
        let off = (dot_of(&device, &x, &together)? - apart).abs();
        prop_assert!(off <= bound, "{} > {}", off, bound);
        // Cauchy and Schwarz.
        let limit = norm_of(&device, &x)? * norm_of(&device, &y)?;
        prop_assert!(dot_of(&device, &x, &y)?.abs() <= limit * (1.0 + 1e-12));
    }

    #[test]
    fn any_float_has_its_place(values in vec(num::f32::ANY, 1..2000), device in device()) {
        let nan = values.iter().position(|value| value.is_nan());
        let (least, greatest) = (min_of(&device, &values)?, max_of(&device, &values)?);
        let (first, last) = (argmin_of(&device, &values)? as usize, argmax_of(&device, &values)? as usize);
        if let Some(nan) = nan {
            prop_assert_eq!(least.to_bits(), f32::NAN.to_bits());
            prop_assert_eq!(greatest.to_bits(), f32::NAN.to_bits());
            prop_assert_eq!((first, last), (nan, nan));
            prop_assert_eq!(sum_of(&device, &values)?.to_bits(), f32::NAN.to_bits());
            for result in [mean_of(&device, &values)?, norm_of(&device, &values)?, dot_of(&device, &values, &values)?] {
                prop_assert_eq!(result.to_bits(), f64::NAN.to_bits());
            }
        } else {
            prop_assert_eq!(values[first].to_bits(), least.to_bits());
            prop_assert_eq!(values[last].to_bits(), greatest.to_bits());
            prop_assert!(values[..first].iter().all(|value| value.to_bits() != least.to_bits()));
            prop_assert!(values.iter().all(|value| least <= *value && *value <= greatest));
            let infinite = values.iter().any(|value| value.is_infinite());
            prop_assert_eq!(norm_of(&device, &values)?.is_finite(), !infinite);
        }
    }

    #[test]
    fn a_norm_is_one_of_any_numbers(values in vec(MODERATE | num::f64::SUBNORMAL | num::f64::ZERO, 1..500), device in device()) {
        let norm = norm_of(&device, &values)?;
        let greatest = values.iter().fold(0.0, |greatest: f64, value| greatest.max(value.abs()));
        // At least the largest element and, if that is a number, at most √n times it.
        prop_assert!(norm >= greatest * (1.0 - 1e-14), "{} < {}", norm, greatest);
        prop_assert!(norm <= greatest * (values.len() as f64).sqrt() * (1.0 + 1e-14));
        let mean = mean_of(&device, &values)?;
        prop_assert!(mean.abs() <= greatest * (1.0 + 1e-14), "{} of {}", mean, greatest);
    }

    #[test]
    fn bad_input_gets_the_error_it_deserves(
        lengths in (0..4_usize, 0..4_usize),
        results in 0..3_usize,
        away in any::<[bool; 3]>(),
        scale in num::f64::ANY,
        operation in 0..11_usize,
        device in device(),
    ) {
        check_bad::<f32>(&device, lengths, results, away, scale, operation)?;
        check_bad::<u64>(&device, lengths, results, away, scale, operation)?;
    }

    /// For integers every order gives the same result.
    #[test]
    fn buffers_give_what_slices_give_or_get_the_error_they_deserve(
        (x, y) in (vec(any::<i32>(), 0..40), vec(any::<i32>(), 0..40)),
        same_length in any::<bool>(),
        away in rarely(4),
        device in device(),
    ) {
        let y = if same_length { x.clone() } else { y };
        let elsewhere = Device::emulator();
        let a = device.upload(&x)?;
        let b = if away { &elsewhere } else { &device }.upload(&y)?;
        let none = Faults::none().and(x.is_empty(), "EmptyInput", "the input is empty");
        let mut plan = plan::<i32>(&device);
        let both = [reduction::argmin(&a), plan.argmin(&a), argmin_of(&device, &x)];
        for position in both {
            let least = none.judge(position)?.map(|position| x[position as usize]);
            prop_assert_eq!(least, x.iter().copied().min());
        }
        for position in [reduction::argmax(&a), plan.argmax(&a)] {
            let greatest = none.judge(position)?.map(|position| x[position as usize]);
            prop_assert_eq!(greatest, x.iter().copied().max());
        }
        let mean = none.judge(mean_of(&device, &x))?.map(f64::to_bits);
        for value in [reduction::mean(&a), plan.mean(&a)] {
            prop_assert_eq!(none.judge(value)?.map(f64::to_bits), mean);
        }
        let norm = norm_of(&device, &x)?;
        prop_assert_eq!([reduction::norm(&a)?, plan.norm(&a)?], [norm; 2]);
        let [sum, least, greatest] = [plan.sum(&a), plan.min(&a), plan.max(&a)];
        let expected = x.iter().fold(0, |sum: i32, x| sum.wrapping_add(*x));
        prop_assert_eq!(sum?, expected);
        prop_assert_eq!(none.judge(least)?, x.iter().copied().min());
        prop_assert_eq!(none.judge(greatest)?, x.iter().copied().max());

        let words = format!("has {} elements, but must have {}", y.len(), x.len());
        let pair = Faults::none()
            .and(x.len() != y.len(), "LengthMismatch", words)
            .and(away, "DeviceMismatch", "is on");
        let expected = x.iter().zip(&y).fold(0, |sum: i64, (x, y)| {
            sum.wrapping_add(i64::from(*x) * i64::from(*y))
        });
        for product in [reduction::dot(&a, &b), plan.dot(&a, &b)] {
            prop_assert!(pair.judge(product)?.is_none_or(|product| product == expected));
        }
    }

    #[test]
    fn chunks_have_the_sums_of_their_elements(
        x in vec(any::<i32>(), 0..20_000),
        tiles in 0..5_u32,
        away in rarely(4),
        device in device(),
    ) {
        let elsewhere = Device::emulator();
        let values = if away { &elsewhere } else { &device }.upload(&x)?;
        let faults = Faults::none()
            .and(away, "DeviceMismatch", "is on")
            .and(tiles == 0, "InvalidSize", "tiles is 0, but must be at least 1");
        let mut plan = plan::<i32>(&device);
        // Again, as nothing may be left of the first time; nor of a sum in between.
        for _ in 0..2 {
            let Some(sums) = faults.judge(plan.sums_of_chunks(tiles, &values))? else {
                break;
            };
            let add = |sum: i32, x: &i32| sum.wrapping_add(*x);
            let chunks = x.chunks(2048 * tiles as usize);
            let right: Vec<_> = chunks.map(|chunk| chunk.iter().fold(0, add)).collect();
            match sums {
                None => prop_assert_eq!(device.kind(), DeviceKind::Cpu),
                Some(sums) => prop_assert_eq!(sums, right),
            }
            prop_assert_eq!(plan.sum(&values)?, x.iter().fold(0, add));
            let chunks = || x.chunks(2048 * tiles as usize);
            let dot = |chunk: &[i32]| {
                let products = chunk.iter().map(|&x| i64::from(x).wrapping_mul(x.into()));
                products.fold(0_i64, i64::wrapping_add)
            };
            let right: Vec<_> = chunks().map(dot).collect();
            if let Some(dots) = plan.dots_of_chunks(tiles, &values, &values)? {
                prop_assert_eq!(dots, right);
            }
            for scale in [1.0, 0.5] {
                // Of one chunk the moment of the whole: in the same order.
                let whole = chunks().len() == 1;
                let mut moment = device.zeros(1)?;
                let first = plan.sums_f64_of_chunks(scale, tiles, &values)?;
                if let (Some(first), true) = (first, whole && x.len() <= 8 * 2048) {
                    plan.sum_f64_into(scale, &values, &mut moment)?;
                    prop_assert_eq!(first, moment.to_vec()?);
                }
                let second = plan.sums_squares_of_chunks(scale, tiles, &values)?;
                if let (Some(second), true) = (second, whole && x.len() <= 8 * 2048) {
                    plan.sum_squares_into(scale, &values, &mut moment)?;
                    prop_assert_eq!(second, moment.to_vec()?);
                }
            }
        }
    }

    #[test]
    fn partial_sums_get_the_error_they_deserve(
        n in 0..300_usize,
        variant in select(Variant::TEXTBOOK.to_vec()),
        longer in [rarely(4), rarely(4)],
        away in [rarely(4), rarely(4)],
        device in device(),
    ) {
        let how = Reduction::new().with_block(32)?;
        let none = device.kind() == DeviceKind::Cpu;
        let refused = Faults::none().and(none, "NotLaunchable", variant.name());
        let Some(mut plan) = refused.judge(how.plan_with(&device, variant))? else {
            return Ok(());
        };
        let empty = Faults::none().and(n == 0, "EmptyInput", "the input is empty");
        let len = empty.judge(plan.sums_len(n))?;
        let required = len.unwrap_or(0);
        let given = (required + usize::from(longer[0])).saturating_sub(usize::from(longer[1]));
        let elsewhere = Device::emulator();
        let mut values = if away[0] { &elsewhere } else { &device }.upload(&vec![1_i32; n])?;
        let mut sums = if away[1] { &elsewhere } else { &device }.alloc_filled(given, -1_i32)?;
        let words = format!("has {given} elements, but must have {required}");
        let faults = empty
            .and(n > 0 && given != required, "LengthMismatch", words)
            .and(away[0] || away[1], "DeviceMismatch", "is on");
        let all = |sums: &Buffer<i32>| sums.to_vec().map(|all| all.iter().sum::<i32>());
        let left = |accepted: bool| if accepted { n as i32 } else { -(given as i32) };
        let accepted = faults.judge(plan.sum_into(&values, &mut sums))?.is_some();
        prop_assert_eq!(all(&sums)?, left(accepted));
        sums.fill(-1)?;
        let accepted = faults.judge(plan.sum_in_place_into(&mut values, &mut sums))?.is_some();
        prop_assert_eq!(all(&sums)?, left(accepted));
        let faults = Faults::none()
            .and(n == 0, "EmptyInput", "the input is empty")
            .and(away[0], "DeviceMismatch", "is on");
        let values = if away[0] { &elsewhere } else { &device }.upload(&vec![1_i32; n])?;
        if let Some(sum) = faults.judge(plan.sum(&values))? {
            prop_assert_eq!(sum, n as i32);
        }
    }

    #[test]
    fn any_number_of_blocks_but_none_gives_the_same(
        most in prop_oneof![3 => 0..20_u32, 1 => any::<u32>()],
        values in vec(any::<f32>(), 0..30_000),
        len in proptest::option::of(0..40_000_usize),
    ) {
        let none = Faults::none().and(most == 0, "InvalidSize", "blocks is 0, but must be at least 1");
        let Some(mut reduction) = none.judge(Reduction::new().with_most_blocks(most))? else {
            return Ok(());
        };
        if let Some(len) = len {
            reduction = reduction.with_len(len);
        }
        let device = Device::emulator();
        let sum = reduction.plan(&device)?.sum(&device.upload(&values)?)?;
        prop_assert_eq!(sum.to_bits(), sum_of(&Device::cpu(), &values)?.to_bits());
    }

    #[test]
    fn blocks_of_the_textbook_kernels_are_taken_or_refused(
        block in any::<u32>().prop_map(|bits| bits >> (bits % 32)),
        values in vec(any::<i32>(), 0..600),
    ) {
        let valid = block.is_power_of_two() && (32..=1024).contains(&block);
        let values = Device::emulator().upload(&values)?;
        for variant in Variant::TEXTBOOK {
            let plan = Reduction::new()
                .with_block(block)
                .and_then(|reduction| reduction.plan_with(values.device(), variant));
            match plan.and_then(|mut plan| plan.sum(&values)) {
                Ok(sum) => {
                    prop_assert!(valid && !values.is_empty());
                    prop_assert_eq!(sum, reduction::sum(&values)?);
                }
                Err(Error::InvalidSize { axis: "block", .. }) => prop_assert!(!valid),
                Err(Error::EmptyInput { .. }) => prop_assert!(valid && values.is_empty()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Calls one operation with possible faults of several kinds, and compares the error with them.
fn check_bad<T: Sample<Product: Bits>>(
    device: &Device,
    (len_x, len_y): (usize, usize),
    results: usize,
    away: [bool; 3],
    scale: f64,
    operation: usize,
) -> Result<(), TestCaseError> {
    let elsewhere = Device::emulator();
    let place = |away: bool| if away { &elsewhere } else { device };
    let x = place(away[0]).upload(&vec![T::POISON; len_x])?;
    let y = place(away[1]).upload(&vec![T::POISON; len_y])?;
    let to = place(away[2]);
    let mut reductions = plan::<T>(device);
    let empty_is_wrong = ![0, 3].contains(&operation);
    let outcome = match operation {
        0 => reductions.sum_into(&x, &mut to.alloc_filled(results, T::POISON)?),
        1 => reductions.min_into(&x, &mut to.alloc_filled(results, T::POISON)?),
        2 => reductions.max_into(&x, &mut to.alloc_filled(results, T::POISON)?),
        3 => reductions.dot_into(
            &x,
            &y,
            &mut to.alloc_filled(results, bytemuck::Zeroable::zeroed())?,
        ),
        4 => reductions.sum_squares_into(scale, &x, &mut to.alloc_filled(results, 0.0)?),
        5 => reductions.argmin_into(&x, &mut to.alloc_filled(results, 0)?),
        6 => reductions.argmax_into(&x, &mut to.alloc_filled(results, 0)?),
        7 => reductions.place_into(Extremum::Max, &x, &mut to.alloc_filled(results, 0)?),
        8 => {
            let result = &mut to.alloc_filled(results, T::POISON)?;
            reductions.elements_into(Operation::Max, &x, result)
        }
        9 => reductions.sum_f64_into(scale, &x, &mut to.alloc_filled(results, 0.0)?),
        _ => {
            let result = &mut to.alloc_filled(results, 0.0)?;
            reductions.moment_into(Moment::First, scale, &x, result)
        }
    };
    let two = operation == 3;
    let on_one_device = !(away[0] || (two && away[1]) || away[2]);
    let fitting = results == 1 && !(two && len_x != len_y);
    let finite = ![4, 9, 10].contains(&operation) || scale.is_finite();
    let enough = len_x > 0 || !empty_is_wrong;
    let right = match &outcome {
        Ok(()) => on_one_device && fitting && finite && enough,
        Err(Error::DeviceMismatch { .. }) => !on_one_device,
        Err(Error::LengthMismatch { .. }) => on_one_device && !fitting,
        Err(Error::NonFinite { .. }) => on_one_device && fitting && !finite,
        Err(Error::EmptyInput { .. }) => on_one_device && fitting && finite && !enough,
        Err(_) => false,
    };
    prop_assert!(right, "operation {}: {:?}", operation, outcome);
    Ok(())
}
