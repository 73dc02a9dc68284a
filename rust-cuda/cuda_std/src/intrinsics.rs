//! The functions of NVIDIA's libdevice, under its names without `__nv_`.
//!
//! Upstream declares them as `extern "C"` and links libdevice. That library is
//! LLVM bitcode of NVIDIA's own dialect, comes with the CUDA toolkit, and
//! exists for the device only; here they are Rust, for the device and the host
//! alike:
//!
//! - integer functions and bit casts are a few instructions;
//! - arithmetic with a rounding direction (`fadd_rd`, `ll2float_ru`, …) is the
//!   instruction of that name on the device and is computed exactly on the
//!   host, with the same bits;
//! - mathematical functions are this crate's, with the same bits on both; their
//!   last places differ from libdevice's;
//! - `fast_*` are the hardware's approximations (`sin.approx`, `ex2.approx`, …)
//!   on the device and the accurate functions on the host.
//!
//! [`GpuFloat`] and [`FloatExt`](crate::FloatExt) offer the same mathematics as
//! methods, which read better.
//!
//! # Safety
//!
//! All of them are `unsafe` because upstream's are. Those without a pointer
//! parameter have no conditions; those with one write their second result
//! through it.

use crate::exact;
use crate::float::GpuFloat;
use crate::math::{double, single};
use crate::rounding;

/// Declares functions that are `unsafe` only because upstream's are.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) -> $return:ty = $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// No conditions; `unsafe` because upstream's function is.
        #[must_use]
        #[inline]
        pub unsafe fn $name($($arg: $type),*) -> $return {
            $body
        }
    )*};
}

/// Declares functions that write results through pointers.
macro_rules! pointer_functions {
    ($($(#[$doc:meta])* $name:ident($x:ident: $type:ty $(, $y:ident: $other:ty)*; $($pointer:ident: *mut $target:ty),*) $(-> $return:ty)? =
        |$($result:ident),*| $body:expr $(, $value:ident)?;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// Each pointer is valid for a write.
        #[inline]
        pub unsafe fn $name($x: $type $(, $y: $other)*, $($pointer: *mut $target),*) $(-> $return)? {
            let ($($value,)? $($result,)*) = $body;
            // SAFETY: valid for a write, as the caller promises.
            unsafe {
                $(*$pointer = $result;)*
            }
            $($value)?
        }
    )*};
}

// --- integers --------------------------------------------------------------------

functions! {
    /// The absolute value; that of `i32::MIN` is `i32::MIN`.
    abs(x: i32) -> i32 = x.wrapping_abs();
    /// The absolute value; that of `i64::MIN` is `i64::MIN`.
    llabs(x: i64) -> i64 = x.wrapping_abs();
    /// The bits in reverse order.
    brev(x: i32) -> i32 = x.reverse_bits();
    /// The bits in reverse order.
    brevll(x: i64) -> i64 = x.reverse_bits();
    /// Selects four of the eight bytes of `x` (bytes 0 to 3) and `y` (4 to 7):
    /// the low three bits of each of the four low hexadecimal digits of `z`
    /// give the number of one.
    byte_perm(x: i32, y: i32, z: i32) -> i32 = {
        let bytes = u64::from(y as u32) << 32 | u64::from(x as u32);
        let byte = |digit: u32| {
            let index = (z as u32) >> (4 * digit) & 7;
            (((bytes >> (8 * index)) & 0xff) as u32) << (8 * digit)
        };
        (byte(0) | byte(1) | byte(2) | byte(3)) as i32
    };
    /// The number of leading zero bits.
    clz(x: i32) -> i32 = x.leading_zeros() as i32;
    /// The number of leading zero bits.
    clzll(x: i64) -> i32 = x.leading_zeros() as i32;
    /// The position of the lowest bit set, counted from 1; 0 if there is none.
    ffs(x: i32) -> i32 = if x == 0 { 0 } else { x.trailing_zeros() as i32 + 1 };
    /// The position of the lowest bit set, counted from 1; 0 if there is none.
    ffsll(x: i64) -> i32 = if x == 0 { 0 } else { x.trailing_zeros() as i32 + 1 };
    /// The number of bits set.
    popc(x: i32) -> i32 = x.count_ones() as i32;
    /// The number of bits set.
    popcll(x: i64) -> i32 = x.count_ones() as i32;
    /// The greater of two.
    max(x: i32, y: i32) -> i32 = Ord::max(x, y);
    /// The lesser of two.
    min(x: i32, y: i32) -> i32 = Ord::min(x, y);
    /// The greater of two.
    llmax(x: i64, y: i64) -> i64 = Ord::max(x, y);
    /// The lesser of two.
    llmin(x: i64, y: i64) -> i64 = Ord::min(x, y);
    /// The greater of two, as unsigned numbers.
    umax(x: i32, y: i32) -> i32 = Ord::max(x as u32, y as u32) as i32;
    /// The lesser of two, as unsigned numbers.
    umin(x: i32, y: i32) -> i32 = Ord::min(x as u32, y as u32) as i32;
    /// The greater of two, as unsigned numbers.
    ullmax(x: i64, y: i64) -> i64 = Ord::max(x as u64, y as u64) as i64;
    /// The lesser of two, as unsigned numbers.
    ullmin(x: i64, y: i64) -> i64 = Ord::min(x as u64, y as u64) as i64;
    /// The average, rounded down.
    hadd(x: i32, y: i32) -> i32 = ((i64::from(x) + i64::from(y)) >> 1) as i32;
    /// The average, rounded up.
    rhadd(x: i32, y: i32) -> i32 = ((i64::from(x) + i64::from(y) + 1) >> 1) as i32;
    /// The average, rounded down, as unsigned numbers.
    uhadd(x: i32, y: i32) -> i32 = ((u64::from(x as u32) + u64::from(y as u32)) >> 1) as i32;
    /// The average, rounded up, as unsigned numbers.
    urhadd(x: i32, y: i32) -> i32 = ((u64::from(x as u32) + u64::from(y as u32) + 1) >> 1) as i32;
    /// The low 32 bits of the product of the low 24 bits, as signed numbers.
    mul24(x: i32, y: i32) -> i32 = (x << 8 >> 8).wrapping_mul(y << 8 >> 8);
    /// The low 32 bits of the product of the low 24 bits, as unsigned numbers.
    umul24(x: i32, y: i32) -> i32 = (x & 0xff_ffff).wrapping_mul(y & 0xff_ffff);
    /// The high 32 bits of the product.
    mulhi(x: i32, y: i32) -> i32 = ((i64::from(x) * i64::from(y)) >> 32) as i32;
    /// The high 32 bits of the product, as unsigned numbers.
    umulhi(x: i32, y: i32) -> i32 = ((u64::from(x as u32) * u64::from(y as u32)) >> 32) as i32;
    /// The high 64 bits of the product.
    mul64hi(x: i64, y: i64) -> i64 = ((i128::from(x) * i128::from(y)) >> 64) as i64;
    /// The high 64 bits of the product, as unsigned numbers.
    umul64hi(x: i64, y: i64) -> i64 = ((u128::from(x as u64) * u128::from(y as u64)) >> 64) as i64;
    /// `|x - y| + z`, wrapping around.
    sad(x: i32, y: i32, z: i32) -> i32 = (x.abs_diff(y) as i32).wrapping_add(z);
    /// `|x - y| + z` as unsigned numbers, wrapping around.
    usad(x: i32, y: i32, z: i32) -> i32 = ((x as u32).abs_diff(y as u32) as i32).wrapping_add(z);
}

// --- bits of floats --------------------------------------------------------------

functions! {
    /// The bits as an integer.
    float_as_int(x: f32) -> i32 = x.to_bits() as i32;
    /// The bits as a float.
    int_as_float(x: i32) -> f32 = f32::from_bits(x as u32);
    /// The bits as an integer.
    double_as_longlong(x: f64) -> i64 = x.to_bits() as i64;
    /// The bits as a float.
    longlong_as_double(x: i64) -> f64 = f64::from_bits(x as u64);
    /// The high 32 bits.
    double2hiint(d: f64) -> i32 = (d.to_bits() >> 32) as i32;
    /// The low 32 bits.
    double2loint(d: f64) -> i32 = d.to_bits() as i32;
    /// The float with `x` as its high and `y` as its low 32 bits.
    hiloint2double(x: i32, y: i32) -> f64 =
        f64::from_bits(u64::from(x as u32) << 32 | u64::from(y as u32));
    /// The bits of the nearest half-precision number.
    float2half_rn(f: f32) -> i16 = half::f16::from_f32(f).to_bits() as i16;
    /// The half-precision number with these bits.
    half2float(h: i16) -> f32 = half::f16::from_bits(h as u16).to_f32();
    /// 1 for a number that is neither infinite nor NaN, else 0.
    finitef(x: f32) -> i32 = x.is_finite().into();
    /// 1 for a number that is neither infinite nor NaN, else 0.
    isfinited(x: f64) -> i32 = x.is_finite().into();
    /// 1 for an infinity, else 0.
    isinff(x: f32) -> i32 = x.is_infinite().into();
    /// 1 for an infinity, else 0.
    isinfd(x: f64) -> i32 = x.is_infinite().into();
    /// 1 for NaN, else 0.
    isnanf(x: f32) -> i32 = x.is_nan().into();
    /// 1 for NaN, else 0.
    isnand(x: f64) -> i32 = x.is_nan().into();
    /// 1 if the sign bit is set, else 0.
    signbitf(x: f32) -> i32 = x.is_sign_negative().into();
    /// 1 if the sign bit is set, else 0.
    signbitd(x: f64) -> i32 = x.is_sign_negative().into();
    /// A quiet NaN; the tag is ignored.
    nan(_tagp: *mut i8) -> f64 = f64::NAN;
    /// A quiet NaN; the tag is ignored.
    nanf(_tagp: *mut i8) -> f32 = f32::NAN;
    /// The magnitude of `x` with the sign of `y`.
    copysign(x: f64, y: f64) -> f64 = x.copysign(y);
    /// The magnitude of `x` with the sign of `y`.
    copysignf(x: f32, y: f32) -> f32 = x.copysign(y);
    /// The absolute value.
    fabs(f: f64) -> f64 = f.abs();
    /// The absolute value.
    fabsf(f: f32) -> f32 = f.abs();
    /// The next number from `x` towards `y`.
    nextafter(x: f64, y: f64) -> f64 = double::nextafter(x, y);
    /// The next number from `x` towards `y`.
    nextafterf(x: f32, y: f32) -> f32 = single::nextafterf(x, y);
    /// The exponent as an integer.
    ilogb(x: f64) -> i32 = libm::ilogb(x);
    /// The exponent as an integer.
    ilogbf(x: f32) -> i32 = libm::ilogbf(x);
    /// The exponent as a float: -infinity for zero, infinity for an infinity.
    logb(x: f64) -> f64 = if x == 0.0 {
        f64::NEG_INFINITY
    } else if x.is_finite() {
        libm::ilogb(x).into()
    } else {
        x * x
    };
    /// The exponent as a float: -infinity for zero, infinity for an infinity.
    logbf(x: f32) -> f32 = if x == 0.0 {
        f32::NEG_INFINITY
    } else if x.is_finite() {
        libm::ilogbf(x) as f32
    } else {
        x * x
    };
    /// `x * 2^y`.
    ldexp(x: f64, y: i32) -> f64 = libm::ldexp(x, y);
    /// `x * 2^y`.
    ldexpf(x: f32, y: i32) -> f32 = libm::ldexpf(x, y);
    /// `x * 2^y`.
    scalbn(x: f64, y: i32) -> f64 = libm::scalbn(x, y);
    /// `x * 2^y`.
    scalbnf(x: f32, y: i32) -> f32 = libm::scalbnf(x, y);
    /// `x` limited to 0 to 1; 0 for NaN.
    saturatef(x: f32) -> f32 = crate::FloatExt::saturate(x);
}

pointer_functions! {
    /// Returns the fraction of `x` and writes its exponent to `b`.
    frexp(x: f64; b: *mut i32) -> f64 = |exponent| double::frexp(x), fraction;
    /// Returns the fraction of `x` and writes its exponent to `b`.
    frexpf(x: f32; b: *mut i32) -> f32 = |exponent| single::frexpf(x), fraction;
    /// Returns the fractional part of `x` and writes the integer part to `b`.
    modf(x: f64; b: *mut f64) -> f64 = |whole| libm::modf(x), fraction;
    /// Returns the fractional part of `x` and writes the integer part to `b`.
    modff(x: f32; b: *mut f32) -> f32 = |whole| libm::modff(x), fraction;
    /// Returns the remainder of `x / y` and writes low bits of the quotient to
    /// `c`.
    remquo(x: f64, y: f64; c: *mut i32) -> f64 = |quotient| libm::remquo(x, y), remainder;
    /// Returns the remainder of `x / y` and writes low bits of the quotient to
    /// `quo`.
    remquof(x: f32, y: f32; quo: *mut i32) -> f32 = |quotient| libm::remquof(x, y), remainder;
    /// Writes the sine and the cosine of `x`.
    sincos(x: f64; sptr: *mut f64, cptr: *mut f64) = |sin, cos| double::sincos(x);
    /// Writes the sine and the cosine of `x`.
    sincosf(x: f32; sptr: *mut f32, cptr: *mut f32) = |sin, cos| single::sincosf(x);
    /// Writes the sine and the cosine of `πx`.
    sincospi(x: f64; sptr: *mut f64, cptr: *mut f64) = |sin, cos| crate::FloatExt::sincospi(x);
    /// Writes the sine and the cosine of `πx`.
    sincospif(x: f32; sptr: *mut f32, cptr: *mut f32) = |sin, cos| crate::FloatExt::sincospi(x);
    /// Writes approximations of the sine and the cosine of `x` (`sin.approx`,
    /// `cos.approx`).
    fast_sincosf(x: f32; sptr: *mut f32, cptr: *mut f32) = |sin, cos| (fast::sin(x), fast::cos(x));
}

// --- arithmetic ------------------------------------------------------------------

functions! {
    /// `x + y`, rounded down.
    fadd_rd(x: f32, y: f32) -> f32 = rounding::add_rm_f(x, y);
    /// `x + y`, rounded to nearest.
    fadd_rn(x: f32, y: f32) -> f32 = x + y;
    /// `x + y`, rounded up.
    fadd_ru(x: f32, y: f32) -> f32 = rounding::add_rp_f(x, y);
    /// `x + y`, rounded towards zero.
    fadd_rz(x: f32, y: f32) -> f32 = rounding::add_rz_f(x, y);
    /// `x - y`, rounded down.
    fsub_rd(x: f32, y: f32) -> f32 = rounding::add_rm_f(x, -y);
    /// `x - y`, rounded to nearest.
    fsub_rn(x: f32, y: f32) -> f32 = x - y;
    /// `x - y`, rounded up.
    fsub_ru(x: f32, y: f32) -> f32 = rounding::add_rp_f(x, -y);
    /// `x - y`, rounded towards zero.
    fsub_rz(x: f32, y: f32) -> f32 = rounding::add_rz_f(x, -y);
    /// `x * y`, rounded down.
    fmul_rd(x: f32, y: f32) -> f32 = rounding::mul_rm_f(x, y);
    /// `x * y`, rounded to nearest.
    fmul_rn(x: f32, y: f32) -> f32 = x * y;
    /// `x * y`, rounded up.
    fmul_ru(x: f32, y: f32) -> f32 = rounding::mul_rp_f(x, y);
    /// `x * y`, rounded towards zero.
    fmul_rz(x: f32, y: f32) -> f32 = rounding::mul_rz_f(x, y);
    /// `x / y`, rounded down.
    fdiv_rd(x: f32, y: f32) -> f32 = rounding::div_rm_f(x, y);
    /// `x / y`, rounded to nearest.
    fdiv_rn(x: f32, y: f32) -> f32 = x / y;
    /// `x / y`, rounded up.
    fdiv_ru(x: f32, y: f32) -> f32 = rounding::div_rp_f(x, y);
    /// `x / y`, rounded towards zero.
    fdiv_rz(x: f32, y: f32) -> f32 = rounding::div_rz_f(x, y);
    /// `1 / x`, rounded down.
    frcp_rd(x: f32) -> f32 = rounding::div_rm_f(1.0, x);
    /// `1 / x`, rounded to nearest.
    frcp_rn(x: f32) -> f32 = 1.0 / x;
    /// `1 / x`, rounded up.
    frcp_ru(x: f32) -> f32 = rounding::div_rp_f(1.0, x);
    /// `1 / x`, rounded towards zero.
    frcp_rz(x: f32) -> f32 = rounding::div_rz_f(1.0, x);
    /// The square root, rounded down.
    fsqrt_rd(x: f32) -> f32 = rounding::sqrt_rm_f(x);
    /// The square root, rounded to nearest.
    fsqrt_rn(x: f32) -> f32 = GpuFloat::sqrt(x);
    /// The square root, rounded up.
    fsqrt_ru(x: f32) -> f32 = rounding::sqrt_rp_f(x);
    /// The square root, rounded towards zero.
    fsqrt_rz(x: f32) -> f32 = rounding::sqrt_rz_f(x);
    /// `1 / sqrt(x)`, rounded to nearest except in one case in millions.
    frsqrt_rn(x: f32) -> f32 = single::frsqrtf(x);
    /// `x * y + z`, rounded once, down.
    fmaf_rd(x: f32, y: f32, z: f32) -> f32 = rounding::fma_rm_f(x, y, z);
    /// `x * y + z`, rounded once, to nearest.
    fmaf_rn(x: f32, y: f32, z: f32) -> f32 = GpuFloat::mul_add(x, y, z);
    /// `x * y + z`, rounded once, up.
    fmaf_ru(x: f32, y: f32, z: f32) -> f32 = rounding::fma_rp_f(x, y, z);
    /// `x * y + z`, rounded once, towards zero.
    fmaf_rz(x: f32, y: f32, z: f32) -> f32 = rounding::fma_rz_f(x, y, z);
    /// `x * y + z`, rounded once.
    fmaf(x: f32, y: f32, z: f32) -> f32 = GpuFloat::mul_add(x, y, z);

    /// `x + y`, rounded down.
    dadd_rd(x: f64, y: f64) -> f64 = rounding::add_rm_d(x, y);
    /// `x + y`, rounded to nearest.
    dadd_rn(x: f64, y: f64) -> f64 = x + y;
    /// `x + y`, rounded up.
    dadd_ru(x: f64, y: f64) -> f64 = rounding::add_rp_d(x, y);
    /// `x + y`, rounded towards zero.
    dadd_rz(x: f64, y: f64) -> f64 = rounding::add_rz_d(x, y);
    /// `x * y`, rounded down.
    dmul_rd(x: f64, y: f64) -> f64 = rounding::mul_rm_d(x, y);
    /// `x * y`, rounded to nearest.
    dmul_rn(x: f64, y: f64) -> f64 = x * y;
    /// `x * y`, rounded up.
    dmul_ru(x: f64, y: f64) -> f64 = rounding::mul_rp_d(x, y);
    /// `x * y`, rounded towards zero.
    dmul_rz(x: f64, y: f64) -> f64 = rounding::mul_rz_d(x, y);
    /// `x / y`, rounded down.
    ddiv_rd(x: f64, y: f64) -> f64 = rounding::div_rm_d(x, y);
    /// `x / y`, rounded to nearest.
    ddiv_rn(x: f64, y: f64) -> f64 = x / y;
    /// `x / y`, rounded up.
    ddiv_ru(x: f64, y: f64) -> f64 = rounding::div_rp_d(x, y);
    /// `x / y`, rounded towards zero.
    ddiv_rz(x: f64, y: f64) -> f64 = rounding::div_rz_d(x, y);
    /// `1 / x`, rounded down.
    drcp_rd(x: f64) -> f64 = rounding::div_rm_d(1.0, x);
    /// `1 / x`, rounded to nearest.
    drcp_rn(x: f64) -> f64 = 1.0 / x;
    /// `1 / x`, rounded up.
    drcp_ru(x: f64) -> f64 = rounding::div_rp_d(1.0, x);
    /// `1 / x`, rounded towards zero.
    drcp_rz(x: f64) -> f64 = rounding::div_rz_d(1.0, x);
    /// The square root, rounded down.
    dsqrt_rd(x: f64) -> f64 = rounding::sqrt_rm_d(x);
    /// The square root, rounded to nearest.
    dsqrt_rn(x: f64) -> f64 = GpuFloat::sqrt(x);
    /// The square root, rounded up.
    dsqrt_ru(x: f64) -> f64 = rounding::sqrt_rp_d(x);
    /// The square root, rounded towards zero.
    dsqrt_rz(x: f64) -> f64 = rounding::sqrt_rz_d(x);
    /// `x * y + z`, rounded once, down.
    fma_rd(x: f64, y: f64, z: f64) -> f64 = rounding::fma_rm_d(x, y, z);
    /// `x * y + z`, rounded once, to nearest.
    fma_rn(x: f64, y: f64, z: f64) -> f64 = GpuFloat::mul_add(x, y, z);
    /// `x * y + z`, rounded once, up.
    fma_ru(x: f64, y: f64, z: f64) -> f64 = rounding::fma_rp_d(x, y, z);
    /// `x * y + z`, rounded once, towards zero.
    fma_rz(x: f64, y: f64, z: f64) -> f64 = rounding::fma_rz_d(x, y, z);
    /// `x * y + z`, rounded once.
    fma(x: f64, y: f64, z: f64) -> f64 = GpuFloat::mul_add(x, y, z);

    /// `x - y` if positive, else 0.
    fdim(x: f64, y: f64) -> f64 = libm::fdim(x, y);
    /// `x - y` if positive, else 0.
    fdimf(x: f32, y: f32) -> f32 = libm::fdimf(x, y);
    /// The greater of two; if one is NaN, the other.
    fmax(x: f64, y: f64) -> f64 = x.max(y);
    /// The greater of two; if one is NaN, the other.
    fmaxf(x: f32, y: f32) -> f32 = x.max(y);
    /// The lesser of two; if one is NaN, the other.
    fmin(x: f64, y: f64) -> f64 = x.min(y);
    /// The lesser of two; if one is NaN, the other.
    fminf(x: f32, y: f32) -> f32 = x.min(y);
    /// The remainder of `x / y` rounded towards zero: exact.
    fmod(x: f64, y: f64) -> f64 = double::fmod(x, y);
    /// The remainder of `x / y` rounded towards zero: exact.
    fmodf(x: f32, y: f32) -> f32 = single::fmodf(x, y);
    /// The remainder of `x / y` rounded to the nearest integer: exact.
    remainder(x: f64, y: f64) -> f64 = double::remainder(x, y);
    /// The remainder of `x / y` rounded to the nearest integer: exact.
    remainderf(x: f32, y: f32) -> f32 = single::remainderf(x, y);
}

// --- rounding to integers and conversions ----------------------------------------

/// Float to integer: rounds, then converts; out of range it saturates, and NaN is
/// 0. `(name, from, through, to, round)`.
macro_rules! to_integer {
    ($($name:ident($arg:ident: $from:ident) -> $to:ident as $through:ident by $round:ident, $doc:literal;)*) => {
        functions! {$(
            #[doc = concat!("Converts to ", $doc, "; saturates out of range, and gives 0 for NaN.")]
            $name($arg: $from) -> $to = to_integer!(@ $round, $arg, $from) as $through as $to;
        )*}
    };
    (@ floor, $x:ident, $from:ident) => { GpuFloat::floor($x) };
    (@ ceil, $x:ident, $from:ident) => { GpuFloat::ceil($x) };
    (@ trunc, $x:ident, $from:ident) => { $x };
    (@ rint, $x:ident, f32) => { exact::f32::round_ties_even($x) };
    (@ rint, $x:ident, f64) => { exact::f64::round_ties_even($x) };
    (@ round, $x:ident, $from:ident) => { GpuFloat::round($x) };
}

to_integer! {
    float2int_rd(in_: f32) -> i32 as i32 by floor, "an integer, rounded down";
    float2int_rn(in_: f32) -> i32 as i32 by rint, "an integer, rounded to nearest";
    float2int_ru(in_: f32) -> i32 as i32 by ceil, "an integer, rounded up";
    float2int_rz(in_: f32) -> i32 as i32 by trunc, "an integer, rounded towards zero";
    float2uint_rd(in_: f32) -> i32 as u32 by floor, "the bits of an unsigned integer, rounded down";
    float2uint_rn(in_: f32) -> i32 as u32 by rint, "the bits of an unsigned integer, rounded to nearest";
    float2uint_ru(in_: f32) -> i32 as u32 by ceil, "the bits of an unsigned integer, rounded up";
    float2uint_rz(in_: f32) -> i32 as u32 by trunc, "the bits of an unsigned integer, rounded towards zero";
    float2ll_rd(f: f32) -> i64 as i64 by floor, "an integer, rounded down";
    float2ll_rn(f: f32) -> i64 as i64 by rint, "an integer, rounded to nearest";
    float2ll_ru(f: f32) -> i64 as i64 by ceil, "an integer, rounded up";
    float2ll_rz(f: f32) -> i64 as i64 by trunc, "an integer, rounded towards zero";
    float2ull_rd(f: f32) -> i64 as u64 by floor, "the bits of an unsigned integer, rounded down";
    float2ull_rn(f: f32) -> i64 as u64 by rint, "the bits of an unsigned integer, rounded to nearest";
    float2ull_ru(f: f32) -> i64 as u64 by ceil, "the bits of an unsigned integer, rounded up";
    float2ull_rz(f: f32) -> i64 as u64 by trunc, "the bits of an unsigned integer, rounded towards zero";
    double2int_rd(d: f64) -> i32 as i32 by floor, "an integer, rounded down";
    double2int_rn(d: f64) -> i32 as i32 by rint, "an integer, rounded to nearest";
    double2int_ru(d: f64) -> i32 as i32 by ceil, "an integer, rounded up";
    double2int_rz(d: f64) -> i32 as i32 by trunc, "an integer, rounded towards zero";
    double2uint_rd(d: f64) -> i32 as u32 by floor, "the bits of an unsigned integer, rounded down";
    double2uint_rn(d: f64) -> i32 as u32 by rint, "the bits of an unsigned integer, rounded to nearest";
    double2uint_ru(d: f64) -> i32 as u32 by ceil, "the bits of an unsigned integer, rounded up";
    double2uint_rz(d: f64) -> i32 as u32 by trunc, "the bits of an unsigned integer, rounded towards zero";
    double2ll_rd(f: f64) -> i64 as i64 by floor, "an integer, rounded down";
    double2ll_rn(f: f64) -> i64 as i64 by rint, "an integer, rounded to nearest";
    double2ll_ru(f: f64) -> i64 as i64 by ceil, "an integer, rounded up";
    double2ll_rz(f: f64) -> i64 as i64 by trunc, "an integer, rounded towards zero";
    double2ull_rd(f: f64) -> i64 as u64 by floor, "the bits of an unsigned integer, rounded down";
    double2ull_rn(f: f64) -> i64 as u64 by rint, "the bits of an unsigned integer, rounded to nearest";
    double2ull_ru(f: f64) -> i64 as u64 by ceil, "the bits of an unsigned integer, rounded up";
    double2ull_rz(f: f64) -> i64 as u64 by trunc, "the bits of an unsigned integer, rounded towards zero";
    llrint(x: f64) -> i64 as i64 by rint, "an integer, rounded to nearest";
    llrintf(x: f32) -> i64 as i64 by rint, "an integer, rounded to nearest";
    llround(x: f64) -> i64 as i64 by round, "an integer, rounded to nearest, ties away from zero";
    llroundf(x: f32) -> i64 as i64 by round, "an integer, rounded to nearest, ties away from zero";
}

functions! {
    /// The largest integer not above `f`.
    floor(f: f64) -> f64 = GpuFloat::floor(f);
    /// The largest integer not above `f`.
    floorf(f: f32) -> f32 = GpuFloat::floor(f);
    /// The smallest integer not below `x`.
    ceil(x: f64) -> f64 = GpuFloat::ceil(x);
    /// The smallest integer not below `x`.
    ceilf(x: f32) -> f32 = GpuFloat::ceil(x);
    /// The integer part.
    trunc(x: f64) -> f64 = GpuFloat::trunc(x);
    /// The integer part.
    truncf(x: f32) -> f32 = GpuFloat::trunc(x);
    /// The nearest integer, ties away from zero.
    round(x: f64) -> f64 = GpuFloat::round(x);
    /// The nearest integer, ties away from zero.
    roundf(x: f32) -> f32 = GpuFloat::round(x);
    /// The nearest integer, ties to even.
    rint(x: f64) -> f64 = exact::f64::round_ties_even(x);
    /// The nearest integer, ties to even.
    rintf(x: f32) -> f32 = exact::f32::round_ties_even(x);
    /// The nearest integer, ties to even.
    nearbyint(x: f64) -> f64 = exact::f64::round_ties_even(x);
    /// The nearest integer, ties to even.
    nearbyintf(x: f32) -> f32 = exact::f32::round_ties_even(x);

    /// Converts to `f32`, rounded down.
    double2float_rd(d: f64) -> f32 = rounding::d2f_rm(d);
    /// Converts to `f32`, rounded to nearest.
    double2float_rn(d: f64) -> f32 = d as f32;
    /// Converts to `f32`, rounded up.
    double2float_ru(d: f64) -> f32 = rounding::d2f_rp(d);
    /// Converts to `f32`, rounded towards zero.
    double2float_rz(d: f64) -> f32 = rounding::d2f_rz(d);
    /// Converts to `f64`: exact.
    int2double_rn(i: i32) -> f64 = i.into();
    /// Converts the bits, as an unsigned number, to `f64`: exact.
    uint2double_rn(i: i32) -> f64 = (i as u32).into();
    /// Converts to `f32`, rounded down.
    int2float_rd(in_: i32) -> f32 = rounding::i2f_rm(in_);
    /// Converts to `f32`, rounded to nearest.
    int2float_rn(in_: i32) -> f32 = in_ as f32;
    /// Converts to `f32`, rounded up.
    int2float_ru(in_: i32) -> f32 = rounding::i2f_rp(in_);
    /// Converts to `f32`, rounded towards zero.
    int2float_rz(in_: i32) -> f32 = rounding::i2f_rz(in_);
    /// Converts the bits, as an unsigned number, to `f32`, rounded down.
    uint2float_rd(in_: i32) -> f32 = rounding::ui2f_rm(in_ as u32);
    /// Converts the bits, as an unsigned number, to `f32`, rounded to nearest.
    uint2float_rn(in_: i32) -> f32 = in_ as u32 as f32;
    /// Converts the bits, as an unsigned number, to `f32`, rounded up.
    uint2float_ru(in_: i32) -> f32 = rounding::ui2f_rp(in_ as u32);
    /// Converts the bits, as an unsigned number, to `f32`, rounded towards zero.
    uint2float_rz(in_: i32) -> f32 = rounding::ui2f_rz(in_ as u32);
    /// Converts to `f32`, rounded down.
    ll2float_rd(l: i64) -> f32 = rounding::ll2f_rm(l);
    /// Converts to `f32`, rounded to nearest.
    ll2float_rn(l: i64) -> f32 = l as f32;
    /// Converts to `f32`, rounded up.
    ll2float_ru(l: i64) -> f32 = rounding::ll2f_rp(l);
    /// Converts to `f32`, rounded towards zero.
    ll2float_rz(l: i64) -> f32 = rounding::ll2f_rz(l);
    /// Converts to `f64`, rounded down.
    ll2double_rd(l: i64) -> f64 = rounding::ll2d_rm(l);
    /// Converts to `f64`, rounded to nearest.
    ll2double_rn(l: i64) -> f64 = l as f64;
    /// Converts to `f64`, rounded up.
    ll2double_ru(l: i64) -> f64 = rounding::ll2d_rp(l);
    /// Converts to `f64`, rounded towards zero.
    ll2double_rz(l: i64) -> f64 = rounding::ll2d_rz(l);
    /// Converts the bits, as an unsigned number, to `f32`, rounded down.
    ull2float_rd(l: i64) -> f32 = rounding::ull2f_rm(l as u64);
    /// Converts the bits, as an unsigned number, to `f32`, rounded to nearest.
    ull2float_rn(l: i64) -> f32 = l as u64 as f32;
    /// Converts the bits, as an unsigned number, to `f32`, rounded up.
    ull2float_ru(l: i64) -> f32 = rounding::ull2f_rp(l as u64);
    /// Converts the bits, as an unsigned number, to `f32`, rounded towards zero.
    ull2float_rz(l: i64) -> f32 = rounding::ull2f_rz(l as u64);
    /// Converts the bits, as an unsigned number, to `f64`, rounded down.
    ull2double_rd(l: i64) -> f64 = rounding::ull2d_rm(l as u64);
    /// Converts the bits, as an unsigned number, to `f64`, rounded to nearest.
    ull2double_rn(l: i64) -> f64 = l as u64 as f64;
    /// Converts the bits, as an unsigned number, to `f64`, rounded up.
    ull2double_ru(l: i64) -> f64 = rounding::ull2d_rp(l as u64);
    /// Converts the bits, as an unsigned number, to `f64`, rounded towards zero.
    ull2double_rz(l: i64) -> f64 = rounding::ull2d_rz(l as u64);
}

// --- mathematics -----------------------------------------------------------------

/// Declares a function in both precisions, from [`double`] and [`single`].
macro_rules! mathematics {
    ($($doc:literal $double:ident $single:ident($($arg:ident),*);)*) => {
        functions! {$(
            #[doc = $doc]
            $double($($arg: f64),*) -> f64 = double::$double($($arg),*);
            #[doc = $doc]
            $single($($arg: f32),*) -> f32 = single::$single($($arg),*);
        )*}
    };
}

mathematics! {
    "The arccosine in radians." acos acosf(x);
    "The inverse hyperbolic cosine." acosh acoshf(x);
    "The arcsine in radians." asin asinf(x);
    "The inverse hyperbolic sine." asinh asinhf(x);
    "The arctangent in radians." atan atanf(x);
    "The angle of the point (`y`, `x`): `x` is the ordinate, as in C." atan2 atan2f(x, y);
    "The inverse hyperbolic tangent." atanh atanhf(x);
    "The cube root." cbrt cbrtf(x);
    "The cosine of an angle in radians." cos cosf(x);
    "The hyperbolic cosine." cosh coshf(x);
    "The error function." erf erff(x);
    "The complementary error function." erfc erfcf(x);
    "`e` to the power of `x`." exp expf(x);
    "10 to the power of `x`." exp10 exp10f(x);
    "2 to the power of `x`." exp2 exp2f(x);
    "`e` to the power of `x`, minus 1." expm1 expm1f(x);
    "The length of the hypotenuse." hypot hypotf(x, y);
    "The Bessel function of the first kind of order 0." j0 j0f(x);
    "The Bessel function of the first kind of order 1." j1 j1f(x);
    "The logarithm of the absolute value of the gamma function." lgamma lgammaf(x);
    "The natural logarithm." log logf(x);
    "The logarithm to base 10." log10 log10f(x);
    "The natural logarithm of `1 + x`." log1p log1pf(x);
    "The logarithm to base 2." log2 log2f(x);
    "`x` to the power of `y`." pow powf(x, y);
    "The sine of an angle in radians." sin sinf(x);
    "The hyperbolic sine." sinh sinhf(x);
    "The tangent of an angle in radians." tan tanf(x);
    "The hyperbolic tangent." tanh tanhf(x);
    "The gamma function." tgamma tgammaf(x);
    "The Bessel function of the second kind of order 0." y0 y0f(x);
    "The Bessel function of the second kind of order 1." y1 y1f(x);
}

functions! {
    /// The square root, rounded to nearest.
    sqrt(x: f64) -> f64 = GpuFloat::sqrt(x);
    /// The square root, rounded to nearest.
    sqrtf(x: f32) -> f32 = GpuFloat::sqrt(x);
    /// The reciprocal square root, approximately: see [`GpuFloat::rsqrt`].
    rsqrt(x: f64) -> f64 = GpuFloat::rsqrt(x);
    /// The reciprocal square root, approximately: see [`GpuFloat::rsqrt`].
    rsqrtf(x: f32) -> f32 = GpuFloat::rsqrt(x);
    /// `x` to an integer power.
    powi(x: f64, y: i32) -> f64 = GpuFloat::powi(x, y);
    /// `x` to an integer power.
    powif(x: f32, y: i32) -> f32 = GpuFloat::powi(x, y);
    /// The Bessel function of the first kind of order `n`.
    jn(n: i32, x: f64) -> f64 = double::jn(n, x);
    /// The Bessel function of the first kind of order `n`.
    jnf(n: i32, x: f32) -> f32 = single::jnf(n, x);
    /// The Bessel function of the second kind of order `n`.
    yn(n: i32, x: f64) -> f64 = double::yn(n, x);
    /// The Bessel function of the second kind of order `n`.
    ynf(n: i32, x: f32) -> f32 = single::ynf(n, x);
    /// The cosine of `πx`.
    cospi(x: f64) -> f64 = double::sincospi(x).1;
    /// The cosine of `πx`.
    cospif(x: f32) -> f32 = single::sincospif(x).1;
    /// The sine of `πx`.
    sinpi(x: f64) -> f64 = double::sincospi(x).0;
    /// The sine of `πx`.
    sinpif(x: f32) -> f32 = single::sincospif(x).0;
    /// The inverse of the complementary error function.
    erfcinv(x: f64) -> f64 = double::erfcinv(x);
    /// The inverse of the complementary error function.
    erfcinvf(x: f32) -> f32 = single::erfcinvf(x);
    /// `exp(x²)` times the complementary error function.
    erfcx(x: f64) -> f64 = double::erfcx(x);
    /// `exp(x²)` times the complementary error function.
    erfcxf(x: f32) -> f32 = single::erfcxf(x);
    /// The inverse of the error function.
    erfinv(x: f64) -> f64 = double::erfinv(x);
    /// The inverse of the error function.
    erfinvf(x: f32) -> f32 = single::erfinvf(x);
    /// The cumulative distribution function of the standard normal
    /// distribution.
    normcdf(x: f64) -> f64 = double::normcdf(x);
    /// The cumulative distribution function of the standard normal
    /// distribution.
    normcdff(x: f32) -> f32 = single::normcdff(x);
    /// The inverse of [`normcdf`].
    normcdfinv(x: f64) -> f64 = double::normcdfinv(x);
    /// The inverse of [`normcdff`].
    normcdfinvf(x: f32) -> f32 = single::normcdfinvf(x);
    /// The reciprocal cube root.
    rcbrt(x: f64) -> f64 = double::rcbrt(x);
    /// The reciprocal cube root.
    rcbrtf(x: f32) -> f32 = single::rcbrtf(x);
}

// --- approximations --------------------------------------------------------------

functions! {
    /// The cosine, approximately (`cos.approx`).
    fast_cosf(x: f32) -> f32 = fast::cos(x);
    /// The sine, approximately (`sin.approx`).
    fast_sinf(x: f32) -> f32 = fast::sin(x);
    /// The tangent, approximately: the quotient of sine and cosine.
    fast_tanf(x: f32) -> f32 = fast::div(fast::sin(x), fast::cos(x));
    /// `e` to the power of `x`, approximately (`ex2.approx`).
    fast_expf(x: f32) -> f32 = fast::exp2(x * core::f32::consts::LOG2_E);
    /// 10 to the power of `x`, approximately (`ex2.approx`).
    fast_exp10f(x: f32) -> f32 = fast::exp2(x * core::f32::consts::LOG2_10);
    /// The natural logarithm, approximately (`lg2.approx`).
    fast_logf(x: f32) -> f32 = fast::log2(x) * core::f32::consts::LN_2;
    /// The logarithm to base 10, approximately (`lg2.approx`).
    fast_log10f(x: f32) -> f32 = fast::log2(x) * core::f32::consts::LOG10_2;
    /// The logarithm to base 2, approximately (`lg2.approx`).
    fast_log2f(x: f32) -> f32 = fast::log2(x);
    /// `x` to the power of `y`, approximately: `exp2(y * log2(x))`.
    fast_powf(x: f32, y: f32) -> f32 = fast::exp2(y * fast::log2(x));
    /// `x / y`, approximately (`div.approx`).
    fast_fdividef(x: f32, y: f32) -> f32 = fast::div(x, y);
}

/// The hardware's approximations on the device, the accurate functions on the
/// host.
mod fast {
    #[cfg(not(target_arch = "nvptx64"))]
    use crate::math::single;

    macro_rules! approximations {
        ($($name:ident($($arg:ident),*) = $link:literal or $host:expr;)*) => {$(
            #[inline(always)]
            pub fn $name($($arg: f32),*) -> f32 {
                #[cfg(target_arch = "nvptx64")]
                {
                    unsafe extern "C" {
                        #[link_name = $link]
                        fn instruction($($arg: f32),*) -> f32;
                    }
                    // SAFETY: arithmetic on values.
                    unsafe { instruction($($arg),*) }
                }
                #[cfg(not(target_arch = "nvptx64"))]
                {
                    $host
                }
            }
        )*};
    }

    approximations! {
        sin(x) = "llvm.nvvm.sin.approx.f" or single::sinf(x);
        cos(x) = "llvm.nvvm.cos.approx.f" or single::cosf(x);
        exp2(x) = "llvm.nvvm.ex2.approx.f32" or single::exp2f(x);
        log2(x) = "llvm.nvvm.lg2.approx.f" or single::log2f(x);
        div(x, y) = "llvm.nvvm.div.approx.f" or x / y;
    }
}
