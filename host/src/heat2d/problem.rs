//! The textbook problem: a plate with one hot wall, whose steady state is known.
//!
//! The left wall (i = 0, its corners included) is at 1; the other walls and, at
//! the start, the plate are at 0. The textbook iterates 100 times on 256 × 256 points
//! and prints how far the result is from the CPU's, as a percentage; that is far from the steady state, to which the
//! other functions compare plates after enough iterations.

use crate::scalar::Scalar;
use crate::{Error, Field2, Shape2};
use std::f64::consts::PI;

/// The textbook's plate.
pub const SHAPE: Shape2 = Shape2::new(256, 256);

/// The textbook's number of iterations.
pub const ITERATIONS: usize = 100;

/// The plate at the start: the left wall at 1, everything else at 0.
///
/// # Errors
///
/// [`Error::IndexOverflow`], [`Error::HostOutOfMemory`] for a shape too large.
pub fn hot_left_wall<T: Scalar>(shape: Shape2) -> Result<Field2<T>, Error> {
    Field2::from_fn(shape, |i, _| T::from(if i == 0 { 1.0 } else { 0.0 }))
}

/// A mode of the plate, `sin(kπi/p) sin(lπj/q)`, with `p = nx - 1` and `q = ny - 1` cells
/// along x and y and `modes` = \[k, l\]: 0 on the walls, and an eigenvector of every iteration.
///
/// # Errors
///
/// [`Error::IndexOverflow`], [`Error::HostOutOfMemory`] for a shape too large.
pub fn sine_mode<T: Scalar>(shape: Shape2, modes: [usize; 2]) -> Result<Field2<T>, Error> {
    let sine = |mode: usize, at: usize, extent: usize| {
        let cells = extent.saturating_sub(1).max(1);
        // The angle is reduced while it is a whole number.
        match mode * at % (2 * cells) {
            phase if phase % cells == 0 => 0.0,
            phase => (phase as f64 * PI / cells as f64).sin(),
        }
    };
    Field2::from_fn(shape, |i, j| {
        T::nearest(sine(modes[0], i, shape.nx) * sine(modes[1], j, shape.ny))
    })
}

/// What a step in time multiplies a [`sine_mode`] by, whose α Δt / h² is `ratio`:
/// `1 - 4 r (sin²(kπ/2p) + sin²(lπ/2q))` (LeVeque 2007, sections 9.3 and 3.4).
///
/// ```
/// use halo_gpu::Shape2;
/// use halo_gpu::heat2d::problem::amplification;
///
/// // The slowest mode hardly decays, the fastest is turned over at the limit of stability.
/// let shape = Shape2::new(65, 65);
/// assert!((amplification(shape, [1, 1], 0.25) - 0.9988).abs() < 1e-4);
/// assert!(amplification(shape, [63, 63], 0.25) > -1.0);
/// assert!(amplification(shape, [63, 63], 0.26) < -1.0);
/// ```
#[must_use]
pub fn amplification(shape: Shape2, modes: [usize; 2], ratio: f64) -> f64 {
    let square = |mode: usize, extent: usize| {
        let cells = extent.saturating_sub(1).max(1) as f64;
        (mode as f64 * PI / (2.0 * cells)).sin().powi(2)
    };
    1.0 - 4.0 * ratio * (square(modes[0], shape.nx) + square(modes[1], shape.ny))
}

/// The root mean square of the differences, as a percentage of the root mean
/// square of the reference: `100 √(Σ (value - reference)² / Σ reference²)`.
///
/// NaN if the lengths differ, if there is nothing to compare, and where the reference is zero
/// everywhere: a comparison of nothing must not pass.
///
/// ```
/// use halo_gpu::heat2d::problem::percentage_rms_error;
///
/// assert_eq!(percentage_rms_error(&[3.0_f32, 4.0], &[3.0, 4.0]), 0.0);
/// assert_eq!(percentage_rms_error(&[3.0_f64, 4.5], &[3.0, 4.0]), 10.0);
/// assert!(percentage_rms_error(&[3.0_f32], &[3.0, 4.0]).is_nan());
/// ```
#[cfg(feature = "cases")]
#[doc(hidden)]
#[must_use]
pub fn percentage_rms_error<T: Scalar>(values: &[T], reference: &[T]) -> f64 {
    if values.len() != reference.len() {
        return f64::NAN;
    }
    let (mut errors, mut norm) = (0.0, 0.0);
    for (&value, &reference) in values.iter().zip(reference) {
        let (value, reference): (f64, f64) = (value.into(), reference.into());
        errors += (value - reference) * (value - reference);
        norm += reference * reference;
    }
    100.0 * (errors / norm).sqrt()
}

/// The plate that iterations no longer change: the exact solution of the discrete
/// equations.
///
/// With `p = nx - 1` and `q = ny - 1` cells along x and y,
///
/// ```text
/// u(i, j) = Σ  b_k sin(kπj/q) sinh(α_k (p - i)) / sinh(α_k p)      k = 1, 3, … < q
/// b_k = (2/q) cot(kπ/2q)      sinh(α_k/2) = sin(kπ/2q)
/// ```
///
/// which is found by separating i from j: every term satisfies the five-point
/// equation, and `b_k` is the discrete sine transform of the wall's 1.
///
/// ```
/// use halo_gpu::heat2d::{Heat2d, problem};
/// use halo_gpu::{Device, Shape2};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let shape = Shape2::new(9, 9);
/// let steady = problem::steady_state(shape)?;
/// // Four such plates, turned, add up to 1 in the middle.
/// assert!((steady[(4, 4)] - 0.25).abs() < 1e-12);
///
/// let initial = problem::hot_left_wall::<f32>(shape)?;
/// let plate = Heat2d::dirichlet(shape)?.iterate_of(&Device::cpu(), &initial, 400)?;
/// let bound = problem::steady_state_bound(shape, 400);
/// assert!(bound < 1e-5);
/// for (value, exact) in plate.as_slice().iter().zip(steady.as_slice()) {
///     assert!((f64::from(*value) - exact).abs() <= bound);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::IndexOverflow`], [`Error::HostOutOfMemory`] for a shape too large.
pub fn steady_state(shape: Shape2) -> Result<Field2<f64>, Error> {
    separated(shape, |_, q| {
        (1..q).step_by(2).map(move |k| {
            let half_angle = k as f64 * PI / (2.0 * q as f64);
            Term {
                k,
                amplitude: 2.0 / (q as f64 * half_angle.tan()),
                decay: 2.0 * half_angle.sin().asinh(),
            }
        })
    })
}

/// The continuous plate's steady state at the grid's points: the solution of
/// Laplace's equation on a rectangle of `nx - 1` by `ny - 1` square cells.
///
/// ```text
/// u(i, j) = Σ  4/(kπ) sin(kπj/q) sinh(kπ(p - i)/q) / sinh(kπp/q)      k = 1, 3, …
/// ```
///
/// summed until the terms vanish in `f64`.
///
/// ```
/// use halo_gpu::Shape2;
/// use halo_gpu::heat2d::problem::{continuous_steady_state, steady_state};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // Twice as fine a grid comes four times as close, away from the corners.
/// let error = |n| -> Result<f64, halo_gpu::Error> {
///     let (shape, at) = (Shape2::new(n, n), (n / 4, n / 2));
///     Ok((steady_state(shape)?[at] - continuous_steady_state(shape)?[at]).abs())
/// };
/// let ratio = error(33)? / error(65)?;
/// assert!((3.5..4.5).contains(&ratio), "{ratio}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::IndexOverflow`], [`Error::HostOutOfMemory`] for a shape too large.
pub fn continuous_steady_state(shape: Shape2) -> Result<Field2<f64>, Error> {
    separated(shape, |i, q| {
        // exp(-kπi/q) is below 1e-17 from there on.
        let last = (13 * q).div_ceil(i);
        (1..=last).step_by(2).map(move |k| {
            let angle = k as f64 * PI;
            Term {
                k,
                amplitude: 4.0 / angle,
                decay: angle / q as f64,
            }
        })
    })
}

/// One term of a separated solution: `amplitude · sin(kπj/q)`, falling off with i
/// as `sinh(decay · (p - i)) / sinh(decay · p)`.
struct Term {
    k: usize,
    amplitude: f64,
    decay: f64,
}

/// The sum of `terms(i, q)` at every interior point, and the walls.
fn separated<I: Iterator<Item = Term>>(
    shape: Shape2,
    terms: impl Fn(usize, usize) -> I,
) -> Result<Field2<f64>, Error> {
    let (p, q) = (shape.nx.saturating_sub(1), shape.ny.saturating_sub(1));
    Field2::from_fn(shape, |i, j| {
        if i == 0 {
            1.0
        } else if i >= p || j == 0 || j >= q {
            0.0
        } else {
            terms(i, q)
                .map(
                    |Term {
                         k,
                         amplitude,
                         decay,
                     }| {
                        // The quotient of the sinh, without their overflow.
                        let fall = (-decay * i as f64).exp()
                            * (-2.0 * decay * (p - i) as f64).exp_m1()
                            / (-2.0 * decay * p as f64).exp_m1();
                        // The angle is reduced while it is a whole number.
                        let angle = (k * j % (2 * q)) as f64 * PI / q as f64;
                        amplitude * angle.sin() * fall
                    },
                )
                .sum()
        }
    })
}

/// A bound on the largest difference between [`steady_state`] and the plate that some
/// iterations in `f32`, begun with [`hot_left_wall`], have reached.
///
/// - An iteration multiplies the distance from the steady state by a matrix whose
///   largest eigenvalue is `ρ = (cos(π/p) + cos(π/q)) / 2`. At the start every
///   one of the interior points is off by at most 1, so that after s iterations none
///   is off by more than `ρˢ √points`.
/// - Temperatures are between 0 and 1, so the two inner sums of an iteration are
///   rounded by at most 2⁻²⁴ each and the outer by 2⁻²³; a quarter of that is
///   2⁻²⁴ per iteration. Such an error at every point of every iteration adds up to at
///   most 2⁻²⁴ times the largest value of w with `w - (mean of w's neighbours) =
///   1` and `w = 0` on the walls, and `2j(q - j)` exceeds w everywhere: it
///   satisfies the same equation and is not negative on the walls. Its largest
///   value is `q²/2`; by the other axis `p²/2`.
#[must_use]
pub fn steady_state_bound(shape: Shape2, iterations: usize) -> f64 {
    let cells = |extent: usize| extent.saturating_sub(1) as f64;
    let (p, q) = (cells(shape.nx), cells(shape.ny));
    let rho = ((PI / p).cos() + (PI / q).cos()) / 2.0;
    let points = (p - 1.0) * (q - 1.0);
    let narrow = p.min(q);
    rho.powf(iterations as f64) * points.sqrt() + 2.0_f64.powi(-24) * narrow * narrow / 2.0
}
