//! Mathematical functions in single precision, by FP32 and integer operations
//! only, and in [double] precision.
//!
//! The functions have `libm`'s names. `libm` computes most of them in double
//! precision, which a consumer's GPU has at 1/64 of the rate of single
//! precision. These use no `f64`, no stack, and only operations that IEEE 754
//! defines to the last bit (`+ - * /`, square root, fused multiply-add,
//! comparisons, and integers), so device and host get the same bits. Subnormal
//! numbers are kept everywhere.
//!
//! The polynomials' coefficients are minimax ones (Lawson's iteration at 40
//! digits), rounded to `f32` one after another from the lowest order; after
//! each, the rest are fitted anew. `docs/mathematics.md` gives each function's
//! largest error and how it was found.

mod alike;
mod bessel;
pub mod bits;
pub mod double;
mod error_function;
mod exponential;
mod gamma;
mod hyperbolic;
mod inverse_trigonometric;
mod logarithm;
mod remainder;
mod root;
mod trigonometric;

/// All single-precision functions under their names in `libm`: those of this
/// module, and `libm`'s others.
pub mod single {
    pub use super::bessel::{j0f, j1f, jnf, y0f, y1f, ynf};
    pub use super::bits::{frexpf, nextafterf};
    pub use super::error_function::{
        erfcf, erfcinvf, erfcxf, erff, erfinvf, normcdff, normcdfinvf,
    };
    pub use super::exponential::{exp2f, exp10f, expf, expm1f, tanhf};
    pub use super::gamma::{lgammaf, tgammaf};
    pub use super::hyperbolic::{acoshf, asinhf, atanhf, coshf, sinhf};
    pub use super::inverse_trigonometric::{acosf, asinf, atan2f, atanf};
    pub use super::logarithm::{log1pf, log2f, log10f, logf, powf};
    pub use super::remainder::{fmodf, remainderf};
    pub use super::root::{cbrtf, frsqrtf, hypotf, rcbrtf};
    pub use super::trigonometric::{cosf, sincosf, sincospif, sinf, tanf};
    pub use libm::{ilogbf, ldexpf, scalbnf};
}

/// `log10 2` as the sum of two floats.
const LOG10_2: [f32; 2] = [f32::from_bits(0x3e9a_209b), f32::from_bits(0xb276_0860)];

/// `π/2` minus the float `FRAC_PI_2`.
const FRAC_PI_2_LOW: f32 = f32::from_bits(0xb33b_bd2e);

/// `1.5 × 2^23`: adding it to a number of moderate size rounds that to an
/// integer, which is then in the low bits.
const SHIFTER: f32 = 12_582_912.0;

alike::multiply_add!(f32);

/// `c₀ + c₁ x + c₂ x² + …` from `x; c₀, c₁, c₂, …`, by Horner's rule. A
/// function of an array would be a loop on the device.
macro_rules! polynomial {
    ($x:ident; $last:expr) => { $last };
    ($x:ident; $first:expr, $($rest:expr),+) => {
        fma(polynomial!($x; $($rest),+), $x, $first)
    };
}
use polynomial;

/// The nearest integer to `x * scale`, as a float and as an integer, for
/// products below 2^22.
#[inline(always)]
fn nearest(x: f32, scale: f32) -> (f32, i32) {
    let shifted = fma(x, scale, SHIFTER);
    let bits = shifted.to_bits().wrapping_sub(SHIFTER.to_bits());
    (shifted - SHIFTER, bits as i32)
}

/// `2^n`, for `n` from -126 to 127; meaningless for any other `n`.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `x * 2^n` for `x` about 1 and `n` from -252 to 254, rounded once.
#[inline(always)]
fn scale(x: f32, n: i32) -> f32 {
    let half = n >> 1;
    x * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `a / b`, rounded correctly, where `b` and the quotient are far from overflow and
/// underflow: magnitudes from 2^-60 to 2^60, and `a` may also be 0.
///
/// `/` has the same instructions, behind a test that sends other operands to a
/// hundred instructions more.
#[inline(always)]
fn divide(a: f32, b: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        // Markstein's sequence: the last step rounds correctly if the reciprocal
        // and the quotient before it are within a unit in the last place.
        // SAFETY: arithmetic on a value.
        let guess = unsafe { crate::sys::rcp_ftz_f(b) };
        let inverse = fma(fma(-b, guess, 1.0), guess, guess);
        let quotient = a * inverse;
        let quotient = fma(fma(-b, quotient, a), inverse, quotient);
        fma(fma(-b, quotient, a), inverse, quotient)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        a / b
    }
}

/// The square root, rounded correctly, of 0 or a number from 2^-100 to 2^126.
///
/// `sqrt` has the same instructions, behind a test that sends other operands to
/// a slow path.
#[inline(always)]
fn root(x: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        // SAFETY: arithmetic on a value.
        let guess = unsafe { crate::sys::rsqrt_ftz_f(x) };
        let value = x * guess;
        let value = fma(fma(-value, value, x), 0.5 * guess, value);
        if x == 0.0 { 0.0 } else { value }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        crate::exact::f32::sqrt(x)
    }
}
