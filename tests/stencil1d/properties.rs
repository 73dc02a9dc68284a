//! What is said of lines, coefficients, blocks and buffers that do not fit.

use halo_gpu::finite_difference::Weights;
use halo_gpu::stencil1d::{Stencil1d, Variant, problem};
use halo_gpu::{Device, DeviceKind, Error};
use halo_tests::property::{self, Faults, device, extent, number, rarely};
use proptest::array::uniform4;
use proptest::prelude::*;

/// What is wrong with the length of a line.
fn faults_of_length(n: usize) -> Faults {
    let words = format!("stencil1d: n is {n}, but must be at least 9");
    Faults::none().and(n < 9, "InvalidSize", words)
}

proptest! {
    #![proptest_config(property::cases(256))]

    /// Also what is counted of lines far longer than any memory.
    #[test]
    fn stencils_get_the_error_they_deserve(
        n in extent(0..40),
        coefficients in uniform4(number(-2.0..2.0)),
        spacing in number(0.1..4.0),
        block in prop_oneof![
            (0..40_u32).prop_map(|warps| 32 * warps),
            any::<u32>().prop_map(|bits| bits >> (bits % 32)),
        ],
    ) {
        let coefficients = coefficients.map(|it| it as f32);
        let faults = (1..).zip(coefficients).fold(faults_of_length(n), |faults, (m, value)| {
            let words = format!("coefficient {m} is {value}, but must be a finite number");
            faults.and(!value.is_finite(), "NonFinite", words)
        });
        let stencil = faults.judge(Stencil1d::antisymmetric(n, &coefficients))?;

        let words = format!("the spacing is {spacing}, but must be");
        let weights = Weights::central(1, 8)?;
        let in_range = weights.values()[5..].iter().all(|weight| ((weight / spacing) as f32).is_normal());
        let faults = faults_of_length(n)
            .and(!spacing.is_finite(), "NonFinite", words.clone())
            .and(spacing.is_finite() && !(spacing > 0.0 && in_range), "InvalidParameter", words);
        faults.judge(Stencil1d::<f32>::derivative(n, spacing))?;

        let Some(stencil) = stencil else { return Ok(()) };
        let counted = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        let inner = n as u128 - 8;
        prop_assert_eq!(stencil.inner_len() as u128, inner);
        prop_assert_eq!(stencil.cost().bytes, counted(4 * (n as u128 + inner)));
        prop_assert_eq!(stencil.cost().flops, counted(11 * inner));
        let any = Stencil1d::<f64>::any(n, &[1.0; 9])?;
        prop_assert_eq!(any.cost().bytes, counted(8 * (n as u128 + inner)));
        prop_assert_eq!(any.cost().flops, counted(17 * inner));

        let right = block.is_multiple_of(32) && (32..=1024).contains(&block);
        let words = format!("stencil1d: block is {block}, but must be");
        let faults = Faults::none().and(!right, "InvalidSize", words);
        if let Some(stencil) = faults.judge(stencil.with_block(block))? {
            prop_assert_eq!((stencil.n(), stencil.block()), (n, block));
        }
    }

    #[test]
    fn lines_get_the_error_they_deserve(
        n in extent(9..80),
        coefficients in uniform4(-2.0..2.0_f32),
        longer in [rarely(4), rarely(4)],
        away in [rarely(4), rarely(4)],
        device in device(),
    ) {
        let stencil = Stencil1d::antisymmetric(n.max(9), &coefficients)?;
        let n = stencil.n();
        // As many elements as the line only where there are not too many.
        let len = if n < 1000 { n } else { 7 };
        let lens = longer.map(|longer| len + usize::from(longer));
        let elsewhere = Device::emulator();
        let place = |away: bool| if away { &elsewhere } else { &device };
        let input = place(away[0]).alloc_filled(lens[0], 1.0)?;
        let mut output = place(away[1]).alloc_filled(lens[1], 2.0)?;
        let of_length = |name: &str, given: usize| {
            let words = format!("stencil1d: {name} has {given} elements, but must have {n}");
            Faults::none().and(given != n, "LengthMismatch", words)
        };
        let faults = of_length("input", lens[0])
            .with(of_length("output", lens[1]))
            .and(away[0], "DeviceMismatch", "stencil1d: input is on")
            .and(away[1], "DeviceMismatch", "stencil1d: output is on");
        faults.judge(stencil.plan(&device)?.apply(&input, &mut output))?;
        let line = vec![1.0; lens[0]];
        of_length("input", lens[0]).judge(stencil.apply_of(&device, &line))?;
        if len == n {
            let mut inner = vec![2.0; n - 8 + usize::from(longer[1])];
            let words = format!("the result has {} elements, but must", inner.len());
            let faults = of_length("input", lens[0]).and(longer[1], "LengthMismatch", words);
            faults.judge(stencil.apply_of_into(&device, &line, &mut inner))?;
            if !faults.is_empty() {
                prop_assert!(inner.iter().all(|&it| it == 2.0));
            }
        }
        for variant in Variant::ALL {
            let none = device.kind() == DeviceKind::Cpu;
            let made = Faults::none().and(none, "NotLaunchable", variant.name());
            if let Some(plan) = made.judge(stencil.plan_with(&device, variant))? {
                faults.judge(plan.apply(&input, &mut output))?;
            }
        }
        if !faults.is_empty() {
            prop_assert!(output.to_vec()?.iter().all(|&it| it == 2.0));
        }
    }

    #[test]
    fn lines_of_any_length_are_made_or_refused(n in extent(0..300)) {
        prop_assume!(!(300..1 << 60).contains(&n));
        for line in [problem::whole_numbers(n), problem::sine(n)] {
            match line {
                Ok(line) => prop_assert_eq!(line.len(), n),
                Err(Error::IndexOverflow { .. } | Error::HostOutOfMemory { .. }) => {
                    prop_assert!(n >= 1 << 60);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let faults = faults_of_length(n);
        faults.judge(problem::derivative(n))?;
    }
}
