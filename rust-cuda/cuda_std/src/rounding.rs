//! Arithmetic with directed rounding.
//!
//! On the device each function is one instruction (`add.rm.f32`, …). The host
//! computes the exact result as an integer times a power of two and rounds it,
//! which gives the same bits.

/// The rounding directions, as PTX abbreviates them.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// To the nearest, ties to even.
    #[cfg_attr(
        not(test),
        allow(
            dead_code,
            reason = "the host has it: for comparison with that in tests"
        )
    )]
    Rn,
    /// Towards zero.
    Rz,
    /// Down, towards negative infinity.
    Rm,
    /// Up, towards positive infinity.
    Rp,
}

/// A number `± mantissa × 2^exponent`; with `sticky` the true magnitude is
/// larger than that by less than one unit of the mantissa.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy)]
pub struct Exact {
    negative: bool,
    mantissa: u128,
    exponent: i32,
    sticky: bool,
}

#[cfg(not(target_arch = "nvptx64"))]
mod soft {
    use super::{Exact, Mode};

    /// A binary floating-point format.
    pub trait Format: Copy + PartialEq {
        /// Digits of the mantissa, with the hidden one.
        const DIGITS: i32;
        /// Exponent of the least subnormal number.
        const MIN_EXPONENT: i32;
        /// Exponent of the last digit of the largest number.
        const MAX_EXPONENT: i32;
        const MAX: Self;
        const INFINITY: Self;
        fn split(self) -> Exact;
        /// `mantissa × 2^exponent`, which is a number of the format.
        fn join(negative: bool, mantissa: u64, exponent: i32) -> Self;
        fn negate(self) -> Self;
    }

    macro_rules! format {
        ($float:ident, $bits:ident, $digits:literal, $min:literal, $max:literal) => {
            impl Format for $float {
                const DIGITS: i32 = $digits;
                const MIN_EXPONENT: i32 = $min;
                const MAX_EXPONENT: i32 = $max;
                const MAX: Self = $float::MAX;
                const INFINITY: Self = $float::INFINITY;

                fn split(self) -> Exact {
                    let bits = self.to_bits();
                    let fraction = bits & ((1 << ($digits - 1)) - 1);
                    let biased = (self.abs().to_bits() >> ($digits - 1)) as i32;
                    let (mantissa, exponent) = if biased == 0 {
                        (fraction, $min)
                    } else {
                        (fraction | 1 << ($digits - 1), $min + biased - 1)
                    };
                    Exact {
                        negative: self.is_sign_negative(),
                        mantissa: mantissa.into(),
                        exponent,
                        sticky: false,
                    }
                }

                fn join(negative: bool, mantissa: u64, exponent: i32) -> Self {
                    let hidden = 1 << ($digits - 1);
                    let bits = if mantissa < hidden {
                        mantissa
                    } else {
                        (mantissa - hidden) | ((exponent - $min + 1) as u64) << ($digits - 1)
                    };
                    // The bits of an `f32` fit in 32; the sign is not set yet.
                    let magnitude = $float::from_bits(bits as $bits);
                    if negative { -magnitude } else { magnitude }
                }

                fn negate(self) -> Self {
                    -self
                }
            }
        };
    }
    format!(f32, u32, 24, -149, 104);
    format!(f64, u64, 53, -1074, 971);

    impl Exact {
        pub fn integer(negative: bool, magnitude: u64) -> Self {
            Self {
                negative,
                mantissa: magnitude.into(),
                exponent: 0,
                sticky: false,
            }
        }

        /// The exact value, rounded to a number of the format.
        pub fn round<F: Format>(self, mode: Mode) -> F {
            let Self {
                negative,
                mantissa,
                exponent,
                sticky,
            } = self;
            if mantissa == 0 && !sticky {
                return F::join(negative, 0, F::MIN_EXPONENT);
            }
            // The exponent of the last digit that is kept.
            let length = 128 - mantissa.leading_zeros() as i32;
            let last = (exponent + length - F::DIGITS).max(F::MIN_EXPONENT);
            let drop = last - exponent;
            let (mut kept, half, rest) = if drop <= 0 {
                // All digits are kept; `sticky` is then below the last one.
                ((mantissa << -drop) as u64, false, sticky)
            } else if drop > 128 {
                (0, false, true)
            } else {
                let kept = if drop == 128 { 0 } else { mantissa >> drop };
                let half = mantissa >> (drop - 1) & 1 == 1;
                let below = mantissa & ((1 << (drop - 1)) - 1) != 0;
                (kept as u64, half, below || sticky)
            };
            let up = match mode {
                Mode::Rn => half && (rest || kept & 1 == 1),
                Mode::Rz => false,
                Mode::Rm => negative && (half || rest),
                Mode::Rp => !negative && (half || rest),
            };
            let mut last = last;
            if up {
                kept += 1;
                if kept == 1 << F::DIGITS {
                    kept >>= 1;
                    last += 1;
                }
            }
            if last > F::MAX_EXPONENT {
                let infinite = match mode {
                    Mode::Rn => true,
                    Mode::Rz => false,
                    Mode::Rm => negative,
                    Mode::Rp => !negative,
                };
                let value = if infinite { F::INFINITY } else { F::MAX };
                return if negative { value.negate() } else { value };
            }
            F::join(negative, kept, last)
        }

        /// The product: exact for two mantissas of up to 64 digits.
        fn times(self, other: Self) -> Self {
            Self {
                negative: self.negative != other.negative,
                mantissa: self.mantissa * other.mantissa,
                exponent: self.exponent + other.exponent,
                sticky: false,
            }
        }

        /// The sum of two exact numbers of up to 106 digits. `mode` decides the
        /// sign of a sum that is zero.
        fn plus(self, other: Self, mode: Mode) -> Self {
            if self.mantissa == 0 && other.mantissa == 0 {
                let negative = if self.negative == other.negative {
                    self.negative
                } else {
                    mode == Mode::Rm
                };
                return Self { negative, ..self };
            }
            if self.mantissa == 0 {
                return other;
            }
            if other.mantissa == 0 {
                return self;
            }
            // Both with the top digit at 126; position 127 takes the carry.
            let (a, b) = (self.normal(), other.normal());
            let (big, small) = if (a.exponent, a.mantissa) >= (b.exponent, b.mantissa) {
                (a, b)
            } else {
                (b, a)
            };
            let shift = (big.exponent - small.exponent) as u32;
            let (aligned, lost) = if shift >= 128 {
                (0, true)
            } else {
                let aligned = small.mantissa >> shift;
                (aligned, aligned << shift != small.mantissa)
            };
            let mantissa = if big.negative == small.negative {
                big.mantissa + aligned
            } else if lost {
                // A little less than the difference of the aligned mantissas.
                big.mantissa - aligned - 1
            } else {
                big.mantissa - aligned
            };
            if mantissa == 0 && !lost {
                return Self {
                    negative: mode == Mode::Rm,
                    mantissa,
                    exponent: 0,
                    sticky: false,
                };
            }
            Self {
                negative: big.negative,
                mantissa,
                exponent: big.exponent,
                sticky: lost,
            }
        }

        /// The same number with the top digit at position 126.
        fn normal(self) -> Self {
            let shift = self.mantissa.leading_zeros() as i32 - 1;
            // Mantissas have 106 digits at most: there is room to shift up.
            Self {
                mantissa: self.mantissa << shift,
                exponent: self.exponent - shift,
                ..self
            }
        }

        /// The quotient of two numbers of up to 53 digits, the divisor not zero.
        fn over(self, divisor: Self) -> Self {
            let negative = self.negative != divisor.negative;
            if self.mantissa == 0 {
                return Self { negative, ..self };
            }
            let shift = self.mantissa.leading_zeros() as i32;
            let numerator = self.mantissa << shift;
            Self {
                negative,
                mantissa: numerator / divisor.mantissa,
                exponent: self.exponent - shift - divisor.exponent,
                sticky: !numerator.is_multiple_of(divisor.mantissa),
            }
        }

        /// The square root of a number that is not negative.
        fn root(self) -> Self {
            if self.mantissa == 0 {
                return self;
            }
            let mut shift = self.mantissa.leading_zeros() as i32;
            if (self.exponent - shift) % 2 != 0 {
                shift -= 1;
            }
            let square = self.mantissa << shift;
            let root = square.isqrt();
            Self {
                negative: false,
                mantissa: root,
                exponent: (self.exponent - shift) / 2,
                sticky: root * root != square,
            }
        }
    }

    macro_rules! operations {
        ($float:ident) => {
            pub mod $float {
                use super::super::Mode;
                use super::{Exact, Format};

                pub fn fma(x: $float, y: $float, z: $float, mode: Mode) -> $float {
                    if !(x.is_finite() && y.is_finite() && z.is_finite()) {
                        // Infinities and NaN do not round.
                        return x.mul_add(y, z);
                    }
                    x.split().times(y.split()).plus(z.split(), mode).round(mode)
                }
                pub fn add(x: $float, y: $float, mode: Mode) -> $float {
                    if !(x.is_finite() && y.is_finite()) {
                        return x + y;
                    }
                    x.split().plus(y.split(), mode).round(mode)
                }
                pub fn mul(x: $float, y: $float, mode: Mode) -> $float {
                    if !(x.is_finite() && y.is_finite()) {
                        return x * y;
                    }
                    x.split().times(y.split()).round(mode)
                }
                pub fn div(x: $float, y: $float, mode: Mode) -> $float {
                    if !(x.is_finite() && y.is_finite()) || y == 0.0 {
                        return x / y;
                    }
                    x.split().over(y.split()).round(mode)
                }
                pub fn sqrt(x: $float, mode: Mode) -> $float {
                    if !x.is_finite() || x <= 0.0 {
                        return x.sqrt();
                    }
                    x.split().root().round(mode)
                }
                pub fn from_integer(negative: bool, magnitude: u64, mode: Mode) -> $float {
                    Exact::integer(negative, magnitude).round(mode)
                }
            }
        };
    }
    operations!(f32);
    operations!(f64);

    pub fn narrow(x: core::primitive::f64, mode: Mode) -> core::primitive::f32 {
        if !x.is_finite() {
            return x as core::primitive::f32;
        }
        x.split().round(mode)
    }
}

/// One function per operation, type and direction: `add_rm_f(x, y)`.
macro_rules! directed {
    ($($name:ident($($arg:ident),*) = $float:ident $operation:ident $mode:ident, $link:literal;)*) => {$(
        pub fn $name($($arg: $float),*) -> $float {
            #[cfg(target_arch = "nvptx64")]
            {
                unsafe extern "C" {
                    #[link_name = $link]
                    fn instruction($($arg: $float),*) -> $float;
                }
                // SAFETY: arithmetic on values.
                unsafe { instruction($($arg),*) }
            }
            #[cfg(not(target_arch = "nvptx64"))]
            {
                soft::$float::$operation($($arg),*, Mode::$mode)
            }
        }
    )*};
}

directed! {
    add_rm_f(x, y) = f32 add Rm, "llvm.nvvm.add.rm.f";
    add_rp_f(x, y) = f32 add Rp, "llvm.nvvm.add.rp.f";
    add_rz_f(x, y) = f32 add Rz, "llvm.nvvm.add.rz.f";
    add_rm_d(x, y) = f64 add Rm, "llvm.nvvm.add.rm.d";
    add_rp_d(x, y) = f64 add Rp, "llvm.nvvm.add.rp.d";
    add_rz_d(x, y) = f64 add Rz, "llvm.nvvm.add.rz.d";
    mul_rm_f(x, y) = f32 mul Rm, "llvm.nvvm.mul.rm.f";
    mul_rp_f(x, y) = f32 mul Rp, "llvm.nvvm.mul.rp.f";
    mul_rz_f(x, y) = f32 mul Rz, "llvm.nvvm.mul.rz.f";
    mul_rm_d(x, y) = f64 mul Rm, "llvm.nvvm.mul.rm.d";
    mul_rp_d(x, y) = f64 mul Rp, "llvm.nvvm.mul.rp.d";
    mul_rz_d(x, y) = f64 mul Rz, "llvm.nvvm.mul.rz.d";
    div_rm_f(x, y) = f32 div Rm, "llvm.nvvm.div.rm.f";
    div_rp_f(x, y) = f32 div Rp, "llvm.nvvm.div.rp.f";
    div_rz_f(x, y) = f32 div Rz, "llvm.nvvm.div.rz.f";
    div_rm_d(x, y) = f64 div Rm, "llvm.nvvm.div.rm.d";
    div_rp_d(x, y) = f64 div Rp, "llvm.nvvm.div.rp.d";
    div_rz_d(x, y) = f64 div Rz, "llvm.nvvm.div.rz.d";
    sqrt_rm_f(x) = f32 sqrt Rm, "llvm.nvvm.sqrt.rm.f";
    sqrt_rp_f(x) = f32 sqrt Rp, "llvm.nvvm.sqrt.rp.f";
    sqrt_rz_f(x) = f32 sqrt Rz, "llvm.nvvm.sqrt.rz.f";
    sqrt_rm_d(x) = f64 sqrt Rm, "llvm.nvvm.sqrt.rm.d";
    sqrt_rp_d(x) = f64 sqrt Rp, "llvm.nvvm.sqrt.rp.d";
    sqrt_rz_d(x) = f64 sqrt Rz, "llvm.nvvm.sqrt.rz.d";
    fma_rm_f(x, y, z) = f32 fma Rm, "llvm.nvvm.fma.rm.f";
    fma_rp_f(x, y, z) = f32 fma Rp, "llvm.nvvm.fma.rp.f";
    fma_rz_f(x, y, z) = f32 fma Rz, "llvm.nvvm.fma.rz.f";
    fma_rm_d(x, y, z) = f64 fma Rm, "llvm.nvvm.fma.rm.d";
    fma_rp_d(x, y, z) = f64 fma Rp, "llvm.nvvm.fma.rp.d";
    fma_rz_d(x, y, z) = f64 fma Rz, "llvm.nvvm.fma.rz.d";
}

/// Conversions: `i2f_rm(x)`.
macro_rules! convert {
    ($($name:ident($from:ident) -> $to:ident = |$x:ident| $host:expr, $link:literal;)*) => {$(
        pub fn $name($x: $from) -> $to {
            #[cfg(target_arch = "nvptx64")]
            {
                unsafe extern "C" {
                    #[link_name = $link]
                    fn instruction($x: $from) -> $to;
                }
                // SAFETY: arithmetic on a value.
                unsafe { instruction($x) }
            }
            #[cfg(not(target_arch = "nvptx64"))]
            {
                $host
            }
        }
    )*};
}

#[cfg(not(target_arch = "nvptx64"))]
use soft::{f32::from_integer as to_f32, f64::from_integer as to_f64, narrow};

convert! {
    d2f_rm(f64) -> f32 = |x| narrow(x, Mode::Rm), "llvm.nvvm.d2f.rm";
    d2f_rp(f64) -> f32 = |x| narrow(x, Mode::Rp), "llvm.nvvm.d2f.rp";
    d2f_rz(f64) -> f32 = |x| narrow(x, Mode::Rz), "llvm.nvvm.d2f.rz";
    i2f_rm(i32) -> f32 = |x| to_f32(x < 0, x.unsigned_abs().into(), Mode::Rm), "llvm.nvvm.i2f.rm";
    i2f_rp(i32) -> f32 = |x| to_f32(x < 0, x.unsigned_abs().into(), Mode::Rp), "llvm.nvvm.i2f.rp";
    i2f_rz(i32) -> f32 = |x| to_f32(x < 0, x.unsigned_abs().into(), Mode::Rz), "llvm.nvvm.i2f.rz";
    ui2f_rm(u32) -> f32 = |x| to_f32(false, x.into(), Mode::Rm), "llvm.nvvm.ui2f.rm";
    ui2f_rp(u32) -> f32 = |x| to_f32(false, x.into(), Mode::Rp), "llvm.nvvm.ui2f.rp";
    ui2f_rz(u32) -> f32 = |x| to_f32(false, x.into(), Mode::Rz), "llvm.nvvm.ui2f.rz";
    ll2f_rm(i64) -> f32 = |x| to_f32(x < 0, x.unsigned_abs(), Mode::Rm), "llvm.nvvm.ll2f.rm";
    ll2f_rp(i64) -> f32 = |x| to_f32(x < 0, x.unsigned_abs(), Mode::Rp), "llvm.nvvm.ll2f.rp";
    ll2f_rz(i64) -> f32 = |x| to_f32(x < 0, x.unsigned_abs(), Mode::Rz), "llvm.nvvm.ll2f.rz";
    ull2f_rm(u64) -> f32 = |x| to_f32(false, x, Mode::Rm), "llvm.nvvm.ull2f.rm";
    ull2f_rp(u64) -> f32 = |x| to_f32(false, x, Mode::Rp), "llvm.nvvm.ull2f.rp";
    ull2f_rz(u64) -> f32 = |x| to_f32(false, x, Mode::Rz), "llvm.nvvm.ull2f.rz";
    ll2d_rm(i64) -> f64 = |x| to_f64(x < 0, x.unsigned_abs(), Mode::Rm), "llvm.nvvm.ll2d.rm";
    ll2d_rp(i64) -> f64 = |x| to_f64(x < 0, x.unsigned_abs(), Mode::Rp), "llvm.nvvm.ll2d.rp";
    ll2d_rz(i64) -> f64 = |x| to_f64(x < 0, x.unsigned_abs(), Mode::Rz), "llvm.nvvm.ll2d.rz";
    ull2d_rm(u64) -> f64 = |x| to_f64(false, x, Mode::Rm), "llvm.nvvm.ull2d.rm";
    ull2d_rp(u64) -> f64 = |x| to_f64(false, x, Mode::Rp), "llvm.nvvm.ull2d.rp";
    ull2d_rz(u64) -> f64 = |x| to_f64(false, x, Mode::Rz), "llvm.nvvm.ull2d.rz";
}

#[cfg(test)]
mod tests {
    use super::soft::{f32 as single, f64 as double};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Rounding to nearest gives the bits of the host's own arithmetic, for
        /// any operands.
        #[test]
        fn nearest_is_native_f32(a: u32, b: u32, c: u32) {
            let [x, y, z] = [a, b, c].map(f32::from_bits);
            same32(single::add(x, y, Mode::Rn), x + y)?;
            same32(single::mul(x, y, Mode::Rn), x * y)?;
            same32(single::div(x, y, Mode::Rn), x / y)?;
            same32(single::sqrt(x, Mode::Rn), x.sqrt())?;
            same32(single::fma(x, y, z, Mode::Rn), x.mul_add(y, z))?;
        }

        #[test]
        fn nearest_is_native_f64(a: u64, b: u64, c: u64) {
            let [x, y, z] = [a, b, c].map(f64::from_bits);
            same64(double::add(x, y, Mode::Rn), x + y)?;
            same64(double::mul(x, y, Mode::Rn), x * y)?;
            same64(double::div(x, y, Mode::Rn), x / y)?;
            same64(double::sqrt(x, Mode::Rn), x.sqrt())?;
            same64(double::fma(x, y, z, Mode::Rn), x.mul_add(y, z))?;
            same32(narrow(x, Mode::Rn), x as f32)?;
        }

        /// Numbers of similar magnitude, whose digits cancel.
        #[test]
        fn nearest_is_native_where_digits_cancel(
            x in -4.0_f64..4.0, y in -4.0_f64..4.0, ulps in -3_i64..3,
        ) {
            let z = f64::from_bits((-(x * y)).to_bits().wrapping_add_signed(ulps));
            same64(double::fma(x, y, z, Mode::Rn), x.mul_add(y, z))?;
            same64(double::add(x, -x, Mode::Rn), 0.0)?;
            let (x, y) = (x as f32, y as f32);
            same32(single::fma(x, y, -(x * y), Mode::Rn), x.mul_add(y, -(x * y)))?;
        }

        /// Sums and products of `f32` are exact in `f64`: the results of
        /// rounding down and up are neighbours that enclose the true value, or
        /// equal it.
        #[test]
        fn directions_enclose_the_true_value(x in -1e9_f32..1e9, y in -1e9_f32..1e9) {
            enclose(|mode| single::mul(x, y, mode), f64::from(x) * f64::from(y))?;
            let sum = f64::from(x) + f64::from(y);
            // The sum is exact when nothing of the smaller one is lost in 53
            // digits.
            if sum - f64::from(x) == f64::from(y) && sum - f64::from(y) == f64::from(x) {
                enclose(|mode| single::add(x, y, mode), sum)?;
            }
        }

        #[test]
        fn integers_convert_on_the_right_side(x: i64, u: u64) {
            let wide = i128::from(x);
            prop_assert!(ll2d_rm(x) as i128 <= wide && ll2d_rp(x) as i128 >= wide);
            prop_assert!(ll2f_rm(x) as i128 <= wide && ll2f_rp(x) as i128 >= wide);
            prop_assert!((ll2f_rz(x) as i128).abs() <= wide.abs());
            prop_assert!(ull2d_rm(u) as u128 <= u.into() && ull2d_rp(u) as u128 >= u.into());
            same64(double::from_integer(x < 0, x.unsigned_abs(), Mode::Rn), x as f64)?;
            same32(single::from_integer(false, u, Mode::Rn), u as f32)?;
        }
    }

    fn same32(value: f32, expected: f32) -> Result<(), TestCaseError> {
        let same = value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan();
        prop_assert!(same, "{value:e} is not {expected:e}");
        Ok(())
    }

    fn same64(value: f64, expected: f64) -> Result<(), TestCaseError> {
        let same = value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan();
        prop_assert!(same, "{value:e} is not {expected:e}");
        Ok(())
    }

    fn enclose(operation: impl Fn(Mode) -> f32, truth: f64) -> Result<(), TestCaseError> {
        let (down, up, zero) = (
            operation(Mode::Rm),
            operation(Mode::Rp),
            operation(Mode::Rz),
        );
        prop_assert!(
            f64::from(down) <= truth && truth <= f64::from(up),
            "{down} {truth} {up}"
        );
        if down == up {
            prop_assert_eq!(f64::from(down), truth);
        } else {
            prop_assert_eq!(down.next_up(), up);
        }
        prop_assert_eq!(zero, if truth < 0.0 { up } else { down });
        Ok(())
    }

    #[test]
    fn overflow_goes_where_the_direction_says() {
        assert_eq!(mul_rm_f(f32::MAX, 2.0), f32::MAX);
        assert_eq!(mul_rp_f(f32::MAX, 2.0), f32::INFINITY);
        assert_eq!(mul_rz_f(-f32::MAX, 2.0), -f32::MAX);
        assert_eq!(mul_rm_f(-f32::MAX, 2.0), f32::NEG_INFINITY);
        assert_eq!(d2f_rz(1e300), f32::MAX);
        assert_eq!(d2f_rp(1e300), f32::INFINITY);
    }

    #[test]
    fn underflow_goes_where_the_direction_says() {
        let tiny = f32::from_bits(1);
        assert_eq!(mul_rm_f(tiny, 0.25).to_bits(), 0);
        assert_eq!(mul_rp_f(tiny, 0.25).to_bits(), 1);
        assert_eq!(mul_rm_f(-tiny, 0.25).to_bits(), (-tiny).to_bits());
        assert_eq!(
            div_rz_d(f64::from_bits(1), -3.0).to_bits(),
            (-0.0_f64).to_bits()
        );
    }

    #[test]
    fn a_zero_sum_is_negative_only_when_rounding_down() {
        assert_eq!(add_rm_f(1.0, -1.0).to_bits(), (-0.0_f32).to_bits());
        assert_eq!(add_rp_f(1.0, -1.0).to_bits(), 0.0_f32.to_bits());
        assert_eq!(add_rz_d(-0.0, -0.0).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(fma_rm_d(1.0, 0.0, -0.0).to_bits(), (-0.0_f64).to_bits());
    }

    #[test]
    fn a_third_and_the_root_of_two_are_enclosed() {
        assert_eq!(div_rm_d(1.0, 3.0).next_up(), div_rp_d(1.0, 3.0));
        assert_eq!(sqrt_rm_d(2.0).next_up(), sqrt_rp_d(2.0));
        assert_eq!(sqrt_rz_f(2.0), sqrt_rm_f(2.0));
        assert_eq!(sqrt_rp_f(4.0), 2.0);
        assert_eq!(sqrt_rm_d(9.0), 3.0);
        // 1 + 2⁻⁶⁰ × 2⁻⁶⁰: a tail far below the last digit.
        let tiny = 2.0_f64.powi(-60);
        assert_eq!(fma_rp_d(tiny, tiny, 1.0), 1.0_f64.next_up());
        assert_eq!(fma_rm_d(tiny, -tiny, 1.0), 1.0_f64.next_down());
        assert_eq!(fma_rz_d(tiny, tiny, 1.0), 1.0);
    }
}
