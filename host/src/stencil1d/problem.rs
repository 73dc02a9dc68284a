//! Test lines with known results: exact for the textbook's coefficients, analytic for the
//! derivative's.
//!
//! ```
//! use halo_gpu::Device;
//! use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS, problem};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let device = Device::cpu();
//! let textbook = Stencil1d::antisymmetric(500, &TEXTBOOK_COEFFICIENTS)?.plan(&device)?;
//! let input = device.upload(&problem::whole_numbers(500)?)?;
//! let mut output = device.alloc_filled(500, 0.0)?;
//! textbook.apply(&input, &mut output)?;
//! assert_eq!(problem::textbook_errors(&output.to_vec()?).max, 0.0);
//!
//! let input = device.upload(&problem::sine(500)?)?;
//! problem::derivative(500)?.plan(&device)?.apply(&input, &mut output)?;
//! let (errors, bounds) =
//!     (problem::derivative_errors(&output.to_vec()?), problem::derivative_error_bounds());
//! assert!(errors.within(bounds.rms, bounds.max));
//! # Ok(())
//! # }
//! ```

use super::{Stencil1d, TEXTBOOK_COEFFICIENTS};
use crate::allocation::reserve;
use crate::{Error, Errors};
use gpu_kernels::stencil1d::RADIUS;
use std::f64::consts::TAU;

/// The textbook's number of elements.
pub const N: usize = 1 << 16;

/// Points per period of [`sine`]; a power of two, so that the spacing is exact.
const POINTS_PER_PERIOD: usize = 64;

/// A line of small whole numbers, `in[i] = i² mod 251`, without a pattern that could hide the
/// faults of a block.
///
/// With whole coefficients every product and sum is exact in `f32`, so the result does not depend
/// on the order of the operations.
///
/// # Errors
///
/// [`Error::IndexOverflow`]; [`Error::HostOutOfMemory`] if there is not enough memory.
pub fn whole_numbers(n: usize) -> Result<Vec<f32>, Error> {
    line(n, |i| whole_number(i) as f32)
}

/// `n` elements, each computed from its index.
fn line(n: usize, element: impl Fn(usize) -> f32) -> Result<Vec<f32>, Error> {
    let mut line = reserve(n)?;
    line.extend((0..n).map(element));
    Ok(line)
}

fn whole_number(i: usize) -> i64 {
    let i = (i % 251) as i64;
    i * i % 251
}

/// The errors of the inner elements of `output`, computed from [`whole_numbers`] with
/// [`TEXTBOOK_COEFFICIENTS`]. They must be zero.
///
/// They are NaN if `output` has no inner elements.
#[must_use]
pub fn textbook_errors(output: &[f32]) -> Errors {
    Errors::of(inner(output), |index| {
        let i = index + RADIUS;
        (1..=RADIUS)
            .map(|m| {
                let difference = whole_number(i + m) - whole_number(i - m);
                f64::from(TEXTBOOK_COEFFICIENTS[m - 1]) * difference as f64
            })
            .sum()
    })
}

/// The derivative of [`sine`].
///
/// # Errors
///
/// As for [`Stencil1d::derivative`].
pub fn derivative(n: usize) -> Result<Stencil1d<f32>, Error> {
    Stencil1d::derivative(n, 1.0 / POINTS_PER_PERIOD as f64)
}

/// A sine wave of period 1 with 64 points per period, computed in `f64` and rounded once.
///
/// # Errors
///
/// As for [`whole_numbers`].
pub fn sine(n: usize) -> Result<Vec<f32>, Error> {
    line(n, |i| phase(i).sin() as f32)
}

/// The angle at point `i`, within one period.
fn phase(i: usize) -> f64 {
    TAU * (i % POINTS_PER_PERIOD) as f64 / POINTS_PER_PERIOD as f64
}

/// The errors of the inner elements of `output`, computed from [`sine`] with
/// [`derivative`], against the analytic derivative `2π cos(2πx)`.
///
/// They are NaN if `output` has no inner elements.
#[must_use]
pub fn derivative_errors(output: &[f32]) -> Errors {
    Errors::of(inner(output), |index| TAU * phase(index + RADIUS).cos())
}

/// Bounds on [`derivative_errors`]: root mean square and maximum.
///
/// With spacing h, weights w and half an ulp ε = 2⁻²⁴:
///
/// - Truncation: at most `h⁸/630 · (2π)⁹`.
/// - The line and the weights are rounded, then a difference, a product and up to four sums. Each
///   rounding is at most ε times the sum of all absolute terms, which is at most `S = 2 Σ|w| / h`,
///   because no element exceeds 1. A term has the roundings of its two elements (together at most ε
///   times that bound), of its weight, of the difference, the product and the sums: 8ε S.
///
/// That is the worst case of every rounding, so it bounds the root mean square too.
#[must_use]
pub fn derivative_error_bounds() -> Errors {
    let h = 1.0 / POINTS_PER_PERIOD as f64;
    let weights: f64 = crate::finite_difference::CENTRAL_8
        .iter()
        .map(|w| w.abs())
        .sum();
    let truncation = h.powi(8) / 630.0 * TAU.powi(9);
    let rounding = 8.0 * 2.0_f64.powi(-24) * 2.0 * weights / h;
    Errors {
        rms: truncation + rounding,
        max: truncation + rounding,
    }
}

/// All elements but the first and the last four.
fn inner(output: &[f32]) -> &[f32] {
    output
        .get(RADIUS..output.len().saturating_sub(RADIUS))
        .unwrap_or_default()
}
