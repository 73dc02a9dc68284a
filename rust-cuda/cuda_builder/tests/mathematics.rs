//! Mathematics on the device: no function uses the stack, and none of `f32` computes in `f64`.
//! The kernels are in `fixtures/math-kernels`.

mod support;

use cuda_builder::NvvmArch;
use support::{body, built, ptxas};

/// Each kernel, and the number of PTX instructions it may have.
const KERNELS: &[(&str, usize)] = &[
    ("exp", 40),
    ("exp10", 40),
    ("exp2", 40),
    ("exp_m1", 45),
    ("ln", 45),
    ("ln_1p", 55),
    ("log10", 50),
    ("log2", 50),
    ("powf", 160),
    ("sin", 110),
    ("cos", 110),
    ("sin_cos", 120),
    ("tan", 150),
    ("tanh", 60),
    ("sinh", 72),
    ("cosh", 54),
    ("asin", 72),
    ("acos", 74),
    ("atan", 60),
    ("atan2", 120),
    ("asinh", 110),
    ("acosh", 114),
    ("atanh", 104),
    ("cbrt", 60),
    ("rcbrt", 60),
    ("sinpi", 70),
    ("cospi", 70),
    ("hypot", 60),
    ("erf", 46),
    ("erfc", 104),
    ("erfinv", 76),
    ("erfcinv", 106),
    ("normcdf", 116),
    ("normcdfinv", 122),
    ("fmod", 182),
    ("remainder", 220),
    ("exp_f64", 42),
    ("exp2_f64", 42),
    ("exp10_f64", 42),
    ("exp_m1_f64", 38),
    ("ln_f64", 58),
    ("log2_f64", 60),
    ("log10_f64", 60),
    ("ln_1p_f64", 68),
    ("powf_f64", 176),
    ("sin_f64", 128),
    ("cos_f64", 128),
    ("tan_f64", 166),
    ("tanh_f64", 64),
    ("sinh_f64", 62),
    ("cosh_f64", 46),
    ("asin_f64", 54),
    ("acos_f64", 64),
    ("atan_f64", 58),
    ("asinh_f64", 116),
    ("acosh_f64", 118),
    ("atanh_f64", 88),
    ("cbrt_f64", 64),
    ("rcbrt_f64", 64),
    ("sinpi_f64", 52),
    ("cospi_f64", 50),
    ("j0", 290),
    ("j1", 290),
    ("jn", 650),
    ("y0", 330),
    ("y1", 360),
    ("yn", 720),
    ("lgamma", 460),
    ("tgamma", 280),
    ("frsqrt_rn", 40),
    ("frexp", 24),
    ("ldexp", 48),
    ("logb", 50),
    ("modf", 42),
    ("nextafter", 26),
    ("powi", 34),
    ("rem_euclid", 60),
    ("remquo", 230),
    ("j0_f64", 320),
    ("j1_f64", 320),
    ("jn_f64", 710),
    ("y0_f64", 410),
    ("y1_f64", 440),
    ("yn_f64", 870),
    ("lgamma_f64", 320),
    ("tgamma_f64", 340),
    ("fmod_f64", 94),
    ("remainder_f64", 118),
    ("atan2_f64", 60),
    ("hypot_f64", 46),
    ("sin_cos_f64", 136),
    ("erf_f64", 130),
    ("erfc_f64", 140),
    ("erfcx_f64", 152),
    ("normcdf_f64", 154),
    ("erfcinv_f64", 240),
    ("erfcx", 152),
    ("erfinv_f64", 236),
    ("normcdfinv_f64", 264),
];

#[test]
fn mathematics_stays_in_registers_and_single_precision_single() {
    let arch = NvvmArch::Compute90;
    let ptx = built("math-kernels", arch);
    let said = ptxas(&ptx.text, arch);
    let mut covered: Vec<_> = KERNELS.iter().map(|&(name, _)| name).collect();
    covered.sort_unstable();
    assert_eq!(ptx.kernels, covered);
    let mut long = Vec::new();
    for &(name, most) in KERNELS {
        let body = body(&ptx.text, name);
        for line in &body {
            for word in [".local", "call"] {
                assert!(!line.contains(word), "{name}: {line}");
            }
            let double = name.ends_with("_f64");
            assert!(double || !line.contains("f64"), "{name}: {line}");
        }
        let instructions = body
            .iter()
            .filter(|line| line.ends_with(';') && !line.starts_with('.'))
            .count();
        if instructions > most {
            long.push((name, instructions, most));
        }
    }
    assert!(long.is_empty(), "(kernel, instructions, at most): {long:?}");
    // ptxas: "N bytes stack frame" for each kernel.
    for line in said.lines().filter(|line| line.contains("stack frame")) {
        assert!(
            line.trim_start().starts_with("0 bytes stack frame"),
            "{line}"
        );
    }
}
