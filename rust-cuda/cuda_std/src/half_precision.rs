//! Half-precision arithmetic (`f16`, `bf16`) by the hardware's instructions: fused multiply-add,
//! and pairs of numbers.
//!
//! The operators and comparisons of [`f16`](struct@f16) and [`bf16`] themselves already compile to
//! instructions on the device (`cuda_builder` arranges that): `a * b + c` of `f16` is a
//! `mul.rn.f16` and an `add.rn.f16`. `from_f32`, `to_f32` and `==` of `bf16` take some ten integer
//! instructions; [`HalfFloat`] does each in one. This module adds what the crate `half` lacks: the
//! fused multiply-add, and pairs of numbers in one register, on which an instruction does two
//! operations.
//!
//! All operations round to nearest, ties to even, and keep subnormal numbers, so device and host
//! give the same bits, except for the bits of a NaN. `bf16` has instructions from compute
//! capability 8.0 on; for older targets the host's software is compiled.
//!
//! ```
//! use cuda_std::f16;
//! use cuda_std::half_precision::{HalfFloat, f16x2};
//!
//! let [a, b, c] = [1.5, 2.0, 0.25].map(f16::from_f32);
//! assert_eq!(a.mul_add(b, c), f16::from_f32(3.25));
//!
//! let x = f16x2::round_from_f32(1.0, -2.0);
//! let sum = x.mul_add(f16x2::splat(a), x);
//! assert_eq!((sum.x(), sum.y()), (f16::from_f32(2.5), f16::from_f32(-5.0)));
//! assert_eq!(x.less_than(sum), [true, false]);
//! ```

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Add, Mul, Neg, Sub};

use half::{bf16, f16};

mod private {
    use half::{bf16, f16};

    /// The operations on the bits of a number or of a pair.
    pub trait Sealed: Copy + 'static {
        fn fma(a: u16, b: u16, c: u16) -> u16;
        fn round(x: f32) -> u16;
        fn widen(bits: u16) -> f32;
        fn eq(a: u16, b: u16) -> bool;
        fn pair_fma(a: u32, b: u32, c: u32) -> u32;
        fn pair_add(a: u32, b: u32) -> u32;
        fn pair_sub(a: u32, b: u32) -> u32;
        fn pair_mul(a: u32, b: u32) -> u32;
        fn pair_min(a: u32, b: u32) -> u32;
        fn pair_max(a: u32, b: u32) -> u32;
        fn pair_round(x: f32, y: f32) -> u32;
        /// `pair_lt`, `pair_le` and `pair_eq` give a mask of 16 bits for each element, all ones
        /// where the comparison holds.
        fn pair_lt(a: u32, b: u32) -> u32;
        fn pair_le(a: u32, b: u32) -> u32;
        fn pair_eq(a: u32, b: u32) -> u32;
    }

    #[cfg(target_arch = "nvptx64")]
    macro_rules! device {
        ($float:ident, $fma:ident, $round:ident, $eq:ident, $($name:ident = $symbol:ident($($arg:ident: $ty:ty),*);)*) => {
            impl Sealed for $float {
                #[inline(always)]
                fn fma(a: u16, b: u16, c: u16) -> u16 {
                    // SAFETY: has no precondition.
                    unsafe { crate::sys::$fma(a, b, c) }
                }
                #[inline(always)]
                fn round(x: f32) -> u16 {
                    // SAFETY: has no precondition.
                    unsafe { crate::sys::$round(x) }
                }
                #[inline(always)]
                fn widen(bits: u16) -> f32 {
                    super::Widen::widen($float::from_bits(bits))
                }
                #[inline(always)]
                fn eq(a: u16, b: u16) -> bool {
                    // SAFETY: has no precondition.
                    unsafe { crate::sys::$eq(a, b) }
                }
                $(
                    #[inline(always)]
                    fn $name($($arg: $ty),*) -> u32 {
                        // SAFETY: has no precondition.
                        unsafe { crate::sys::$symbol($($arg),*) }
                    }
                )*
            }
        };
    }

    #[cfg(target_arch = "nvptx64")]
    device! { f16, half_fma_f16, half_round_f16, half_eq_f16,
        pair_fma = half_fma_f16x2(a: u32, b: u32, c: u32);
        pair_add = half_add_f16x2(a: u32, b: u32);
        pair_sub = half_sub_f16x2(a: u32, b: u32);
        pair_mul = half_mul_f16x2(a: u32, b: u32);
        pair_min = half_min_f16x2(a: u32, b: u32);
        pair_max = half_max_f16x2(a: u32, b: u32);
        pair_round = half_round_f16x2(x: f32, y: f32);
        pair_lt = half_lt_f16x2(a: u32, b: u32);
        pair_le = half_le_f16x2(a: u32, b: u32);
        pair_eq = half_eq_f16x2(a: u32, b: u32);
    }
    #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
    device! { bf16, half_fma_bf16, half_round_bf16, half_eq_bf16,
        pair_fma = half_fma_bf16x2(a: u32, b: u32, c: u32);
        pair_add = half_add_bf16x2(a: u32, b: u32);
        pair_sub = half_sub_bf16x2(a: u32, b: u32);
        pair_mul = half_mul_bf16x2(a: u32, b: u32);
        pair_min = half_min_bf16x2(a: u32, b: u32);
        pair_max = half_max_bf16x2(a: u32, b: u32);
        pair_round = half_round_bf16x2(x: f32, y: f32);
        pair_lt = half_lt_bf16x2(a: u32, b: u32);
        pair_le = half_le_bf16x2(a: u32, b: u32);
        pair_eq = half_eq_bf16x2(a: u32, b: u32);
    }

    #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
    macro_rules! software {
        ($float:ident) => {
            impl Sealed for $float {
                fn fma(a: u16, b: u16, c: u16) -> u16 {
                    let [a, b, c] = [a, b, c].map(|bits| f64::from(Self::widen(bits)));
                    Self::round(super::fused(a, b, c))
                }
                fn round(x: f32) -> u16 {
                    $float::from_f32(x).to_bits()
                }
                fn widen(bits: u16) -> f32 {
                    super::Widen::widen($float::from_bits(bits))
                }
                fn eq(a: u16, b: u16) -> bool {
                    Self::widen(a) == Self::widen(b)
                }
                fn pair_fma(a: u32, b: u32, c: u32) -> u32 {
                    let of = |shift| {
                        Self::fma(
                            (a >> shift) as u16,
                            (b >> shift) as u16,
                            (c >> shift) as u16,
                        )
                    };
                    u32::from(of(0)) | u32::from(of(16)) << 16
                }
                fn pair_add(a: u32, b: u32) -> u32 {
                    super::each::<Self>(a, b, |x, y| x + y)
                }
                fn pair_sub(a: u32, b: u32) -> u32 {
                    super::each::<Self>(a, b, |x, y| x - y)
                }
                fn pair_mul(a: u32, b: u32) -> u32 {
                    super::each::<Self>(a, b, |x, y| x * y)
                }
                fn pair_min(a: u32, b: u32) -> u32 {
                    super::each::<Self>(a, b, super::smaller)
                }
                fn pair_max(a: u32, b: u32) -> u32 {
                    super::each::<Self>(a, b, |x, y| -super::smaller(-x, -y))
                }
                fn pair_round(x: f32, y: f32) -> u32 {
                    u32::from(Self::round(x)) | u32::from(Self::round(y)) << 16
                }
                fn pair_lt(a: u32, b: u32) -> u32 {
                    super::compare::<Self>(a, b, |x, y| x < y)
                }
                fn pair_le(a: u32, b: u32) -> u32 {
                    super::compare::<Self>(a, b, |x, y| x <= y)
                }
                fn pair_eq(a: u32, b: u32) -> u32 {
                    super::compare::<Self>(a, b, |x, y| x == y)
                }
            }
        };
    }

    #[cfg(not(target_arch = "nvptx64"))]
    software!(f16);
    #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
    software!(bf16);
}

/// Conversion to single precision, which is exact.
trait Widen {
    fn widen(self) -> f32;
}

impl Widen for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
}

impl Widen for bf16 {
    /// The number's bits are the upper half of the `f32`'s; `to_f32` also makes a NaN quiet.
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

/// `a b + c`, rounded to odd: rounded towards zero, with the last bit set where something was cut
/// off. Rounding that to half precision gives the same as rounding the exact value.
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
fn fused(a: f64, b: f64, c: f64) -> f32 {
    // Exact: at most 11 bits each, and exponents far from the limits.
    let product = a * b;
    // The sum and its exact error (D. E. Knuth's TwoSum).
    let sum = product + c;
    let part = sum - product;
    let error = (product - (sum - part)) + (c - part);
    if !sum.is_finite() {
        return sum as f32;
    }
    let mut single = sum as f32;
    let back = f64::from(single);
    let exact = back == sum && error == 0.0;
    if exact {
        return single;
    }
    // Whether `single` is larger in magnitude than the exact value.
    let beyond = if back == sum {
        (error < 0.0) == (sum > 0.0)
    } else {
        back.abs() > sum.abs()
    };
    let bits = single.to_bits();
    single = f32::from_bits(if beyond { bits - 1 } else { bits });
    f32::from_bits(single.to_bits() | 1)
}

/// The smaller of two numbers; if one is NaN, the other. -0 is smaller than +0.
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
fn smaller(x: f32, y: f32) -> f32 {
    if x.is_nan() || (y < x) || (x == y && y.is_sign_negative()) {
        y
    } else {
        x
    }
}

/// Applies an operation to each element of two pairs.
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
fn each<T: private::Sealed>(a: u32, b: u32, operation: fn(f32, f32) -> f32) -> u32 {
    let of = |shift| {
        let (x, y) = (T::widen((a >> shift) as u16), T::widen((b >> shift) as u16));
        u32::from(T::round(operation(x, y)))
    };
    of(0) | of(16) << 16
}

/// Compares each element of two pairs; gives a mask of 16 bits for each.
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
fn compare<T: private::Sealed>(a: u32, b: u32, holds: fn(&f32, &f32) -> bool) -> u32 {
    let of = |shift| {
        let (x, y) = (T::widen((a >> shift) as u16), T::widen((b >> shift) as u16));
        if holds(&x, &y) { 0xffff } else { 0 }
    };
    of(0) | of(16) << 16
}

/// Operations that `half`'s types lack, or compile to more than one instruction; implemented for
/// [`f16`](struct@f16) and [`bf16`].
pub trait HalfFloat: Copy + private::Sealed {
    /// `self * a + b`, rounded once (`fma.rn.f16`).
    #[must_use]
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// The number nearest to `x`, ties to even (`cvt.rn.f16.f32`).
    ///
    /// The same value as the type's own `from_f32`.
    #[must_use]
    fn round_from_f32(x: f32) -> Self;
    /// The number in single precision, exactly (`cvt.f32.f16`; for `bf16` a shift).
    ///
    /// The same value as the type's own `to_f32`, which for `bf16` also tests for NaN.
    #[must_use]
    fn widen_to_f32(self) -> f32;
    /// Whether the two numbers are equal, in one instruction (`setp.eq.f16`), unlike `==`.
    #[must_use]
    fn equals(self, other: Self) -> bool;
    /// The number with these bits.
    #[must_use]
    fn of_bits(bits: u16) -> Self;
    /// The number's bits.
    #[must_use]
    fn bits(self) -> u16;
}

macro_rules! half_float {
    ($($float:ident)*) => {$(
        impl HalfFloat for $float {
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                Self::from_bits(<Self as private::Sealed>::fma(self.to_bits(), a.to_bits(), b.to_bits()))
            }
            #[inline(always)]
            fn round_from_f32(x: f32) -> Self {
                Self::from_bits(<Self as private::Sealed>::round(x))
            }
            #[inline(always)]
            fn widen_to_f32(self) -> f32 {
                <Self as private::Sealed>::widen(self.to_bits())
            }
            #[inline(always)]
            fn equals(self, other: Self) -> bool {
                <Self as private::Sealed>::eq(self.to_bits(), other.to_bits())
            }
            #[inline(always)]
            fn of_bits(bits: u16) -> Self {
                Self::from_bits(bits)
            }
            #[inline(always)]
            fn bits(self) -> u16 {
                self.to_bits()
            }
        }
    )*};
}

half_float!(f16 bf16);

/// Two half-precision numbers in 32 bits, the first in the lower half: CUDA C++'s `__half2` or
/// `__nv_bfloat162`. In memory it is a `[T; 2]` aligned to 4 bytes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Pair<T> {
    bits: u32,
    of: PhantomData<T>,
}

/// Two [`f16`](struct@f16)s.
#[allow(non_camel_case_types)]
pub type f16x2 = Pair<f16>;
/// Two [`bf16`]s.
#[allow(non_camel_case_types)]
pub type bf16x2 = Pair<bf16>;

impl<T: HalfFloat> Pair<T> {
    /// The pair of `x` and `y`.
    #[must_use]
    #[inline(always)]
    pub fn new(x: T, y: T) -> Self {
        Self::from_bits(u32::from(x.bits()) | u32::from(y.bits()) << 16)
    }

    /// The pair with `x` as both elements.
    #[must_use]
    #[inline(always)]
    pub fn splat(x: T) -> Self {
        Self::new(x, x)
    }

    /// The pair with these bits; the lower 16 are its first element's.
    #[must_use]
    #[inline(always)]
    pub fn from_bits(bits: u32) -> Self {
        Self {
            bits,
            of: PhantomData,
        }
    }

    /// The pair's bits; the lower 16 are its first element's.
    #[must_use]
    #[inline(always)]
    pub fn to_bits(self) -> u32 {
        self.bits
    }

    /// The numbers nearest to `x` and `y` (`cvt.rn.f16x2.f32` from compute capability 8.0 on).
    #[must_use]
    #[inline(always)]
    pub fn round_from_f32(x: f32, y: f32) -> Self {
        Self::from_bits(T::pair_round(x, y))
    }

    /// The first element.
    #[must_use]
    #[inline(always)]
    pub fn x(self) -> T {
        T::of_bits(self.bits as u16)
    }

    /// The second element.
    #[must_use]
    #[inline(always)]
    pub fn y(self) -> T {
        T::of_bits((self.bits >> 16) as u16)
    }

    /// `self * a + b`, each element rounded once (`fma.rn.f16x2`).
    #[must_use]
    #[inline(always)]
    pub fn mul_add(self, a: Self, b: Self) -> Self {
        Self::from_bits(T::pair_fma(self.bits, a.bits, b.bits))
    }

    /// The smaller of the elements at each position; if one is NaN, the other.
    #[must_use]
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        Self::from_bits(T::pair_min(self.bits, other.bits))
    }

    /// The larger of the elements at each position; if one is NaN, the other.
    #[must_use]
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        Self::from_bits(T::pair_max(self.bits, other.bits))
    }

    /// Whether each element is less than `other`'s.
    #[must_use]
    #[inline(always)]
    pub fn less_than(self, other: Self) -> [bool; 2] {
        halves(T::pair_lt(self.bits, other.bits))
    }

    /// Whether each element is less than or equal to `other`'s.
    #[must_use]
    #[inline(always)]
    pub fn less_or_equal(self, other: Self) -> [bool; 2] {
        halves(T::pair_le(self.bits, other.bits))
    }

    /// Whether each element equals `other`'s.
    #[must_use]
    #[inline(always)]
    pub fn equal(self, other: Self) -> [bool; 2] {
        halves(T::pair_eq(self.bits, other.bits))
    }
}

#[inline(always)]
fn halves(mask: u32) -> [bool; 2] {
    [mask & 0xffff != 0, mask >> 16 != 0]
}

impl<T: HalfFloat> Add for Pair<T> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::from_bits(T::pair_add(self.bits, other.bits))
    }
}

impl<T: HalfFloat> Sub for Pair<T> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::from_bits(T::pair_sub(self.bits, other.bits))
    }
}

impl<T: HalfFloat> Mul for Pair<T> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self::from_bits(T::pair_mul(self.bits, other.bits))
    }
}

impl<T: HalfFloat> Neg for Pair<T> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::from_bits(self.bits ^ 0x8000_8000)
    }
}

/// Two pairs are equal if both elements are.
impl<T: HalfFloat> PartialEq for Pair<T> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.equal(*other) == [true, true]
    }
}

impl<T: HalfFloat> Default for Pair<T> {
    /// Two zeros.
    fn default() -> Self {
        Self::from_bits(0)
    }
}

impl<T: HalfFloat + fmt::Debug> fmt::Debug for Pair<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pair")
            .field(&self.x())
            .field(&self.y())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The half-precision number nearest to an exact value, a whole number of units of `2^scale`;
    /// tries the candidates around `guess`.
    fn nearest<T: HalfFloat>(value: i128, scale: i32, guess: T) -> u16 {
        let exact = |bits: u16| -> i128 {
            let x = f64::from(T::widen(bits));
            // Candidates are multiples of the unit.
            let units = libm::scalbn(x, -scale);
            assert_eq!(units, libm::trunc(units));
            units as i128
        };
        let around = |by: i32| (i32::from(guess.bits()) + by) as u16;
        (-2..=2)
            .map(around)
            .filter(|&bits| T::widen(bits).is_finite() && (bits ^ guess.bits()) < 0x8000)
            .min_by_key(|&bits| ((exact(bits) - value).abs(), bits & 1))
            .unwrap()
    }

    #[test]
    fn a_fused_operation_is_rounded_once() {
        // Few exponents, so that 128 bits hold the exact sum and ties are common.
        let mut state = 1_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as u32
        };
        let mut differ = 0;
        for _ in 0..200_000 {
            let mut number = |exponents: u32| {
                let bits = (next() & 0x83ff) | (5 + next() % exponents) << 10;
                f16::from_bits(bits as u16)
            };
            let (a, b, c) = (number(16), number(16), number(16));
            let units = |x: f16, scale: i32| libm::scalbn(x.to_f64(), scale) as i128;
            // `a b + c` in units of 2^-48.
            let exact = units(a, 24) * units(b, 24) + units(c, 48);
            let fused = HalfFloat::mul_add(a, b, c);
            assert!(fused.is_finite());
            assert_eq!(
                fused.to_bits(),
                if exact == 0 {
                    fused.to_bits()
                } else {
                    nearest(exact, -48, fused)
                },
                "{a} {b} {c}"
            );
            differ += u32::from(fused != a * b + c);
        }
        assert!(differ > 10_000, "{differ}");
    }

    #[test]
    fn a_value_just_off_a_tie_is_not_rounded_to_even() {
        // 1 + 2^-10 ± (2^-11 + 2^-21): just beyond a tie between two `f16`s.
        let c = f16::from_f32(1.0 + 1.0 / 1024.0);
        let (a, b) = (f16::from_f32(1.0 / 2048.0 + 1.0 / 2_097_152.0), f16::ONE);
        assert_eq!(
            HalfFloat::mul_add(a, b, c),
            f16::from_f32(1.0 + 2.0 / 1024.0)
        );
        assert_eq!(HalfFloat::mul_add(-a, b, c), f16::from_f32(1.0));
    }

    #[test]
    fn subnormal_products_are_rounded_once() {
        // All pairs of significands, with products at the lower end of `bf16`'s range: the product
        // through f32 against the fused operation, which rounds once.
        for a in 0x80..=0xff_u16 {
            for b in 0x80..=0xff_u16 {
                for exponent in 0..18 {
                    let x = bf16::from_bits(a & 0x7f | 20 << 7);
                    let y = bf16::from_bits(b & 0x7f | (90 + exponent) << 7);
                    let exact = HalfFloat::mul_add(x, y, bf16::NEG_ZERO);
                    let pair = bf16x2::new(x, y) * bf16x2::new(y, x);
                    assert_eq!(
                        (x * y, pair.x(), pair.y()),
                        (exact, exact, exact),
                        "{x} {y}"
                    );
                }
            }
        }
    }

    #[test]
    fn infinities_zeros_and_nan() {
        let max = bf16::MAX;
        assert_eq!(HalfFloat::mul_add(max, max, max), bf16::INFINITY);
        assert_eq!(HalfFloat::mul_add(f16::MAX, f16::ONE, f16::MIN), f16::ZERO);
        let pair = f16x2::new(f16::NAN, f16::NEG_ZERO);
        let other = f16x2::new(f16::ONE, f16::ZERO);
        assert_eq!(pair.min(other).x(), f16::ONE);
        assert_eq!(pair.max(other).y().to_bits(), 0);
        assert_eq!(pair.min(other).y().to_bits(), 0x8000);
        assert_eq!(pair.equal(other), [false, true]);
        assert_eq!(pair.less_or_equal(other), [false, true]);
        assert_ne!(pair, pair);
        assert_eq!(format!("{:?}", -other), "Pair(-1.0, -0.0)");
        assert_eq!(f16x2::default().to_bits(), 0);
        let numbers = [
            0, 0x8000, 0x3c00, 0x3f80, 0x7c00, 0x7f80, 0xff80, 0x7fc0, 1, 0x8001,
        ];
        for (a, b) in numbers.into_iter().flat_map(|a| numbers.map(|b| (a, b))) {
            let halves = [f16::from_bits(a), f16::from_bits(b)];
            assert_eq!(halves[0].equals(halves[1]), halves[0] == halves[1]);
            let brains = [bf16::from_bits(a), bf16::from_bits(b)];
            assert_eq!(brains[0].equals(brains[1]), brains[0] == brains[1]);
            assert_eq!(
                halves[0].widen_to_f32().to_bits(),
                halves[0].to_f32().to_bits()
            );
            assert_eq!(
                brains[0].widen_to_f32().to_bits(),
                brains[0].to_f32().to_bits()
            );
        }
    }
}
