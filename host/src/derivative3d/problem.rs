//! The textbook problem: a cosine along one axis, whose derivative is known.
//!
//! ```text
//! f(i) = cos(2π i / p)      df(i) = -2π sin(2π i / p)      i = 0 … n-1
//! ```
//!
//! along the axis, and constant across it; the period of `p` spacings has length 1. The field and
//! its argument are computed in f32, as in the textbook, and the exact derivative in f64. With both
//! end points stored ([`Boundary::PeriodicWithEndpoint`](crate::Boundary::PeriodicWithEndpoint))
//! `p` is `n - 1`, and at 64³ the root-mean-square error is near 7.2e-6 and the largest error near
//! 2.9e-5. Almost all of it is the rounding of the argument, magnified by `1/h`: the truncation
//! error is 1e-10.
//!
//! ```
//! use halo_gpu::derivative3d::{FiniteDifferences3d, problem};
//! use halo_gpu::{Axis, Boundary, Device, Grid3, Shape3};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let grid = Grid3::new(Shape3::new(4, 64, 4), [1.0; 3])?
//!     .with_boundaries(Boundary::PeriodicWithEndpoint)?
//!     .of_unit_length()?;
//! let f = problem::cosine(&grid, Axis::Y)?;
//! let df = FiniteDifferences3d::new(&grid)?.derivative_of(&Device::cpu(), Axis::Y, &f)?;
//!
//! let errors = problem::errors(&grid, Axis::Y, df.as_slice());
//! let bounds = problem::error_bounds(&grid, Axis::Y);
//! assert!(errors.within(bounds.rms, bounds.max), "{errors:?}");
//! assert!(errors.rms > 1e-6); // not the truncation error, but rounding
//! # Ok(())
//! # }
//! ```

use crate::allocation::reserve;
use crate::axis::Axis;
use crate::finite_difference::CENTRAL_8;
use crate::grid::Grid3;
use crate::{Error, Errors, Field3};
use std::f64::consts::TAU;

/// The cosine along `axis`, one period of length 1: values from -1 to 1, without a unit.
///
/// # Errors
///
/// [`Error::HostOutOfMemory`] for a grid that is too large.
pub fn cosine(grid: &Grid3, axis: Axis) -> Result<Field3<f32>, Error> {
    let (shape, [boundary, _]) = (grid.shape(), grid.ends(axis));
    let period = (axis.extent(shape) as f64 - boundary.overlap() as f64) as f32;
    // Computed only along the axis: a field has no more different values than the axis has points,
    // and a field without points has none, however long the axis is.
    let len = axis.extent(shape).min(shape.points()?);
    let mut values: Vec<f32> = reserve(len)?;
    values.extend((0..len).map(|point| (std::f32::consts::TAU * point as f32 / period).cos()));
    Field3::from_fn(shape, |i, j, k| values[[i, j, k][axis.index()]])
}

/// The errors of `df` against the exact derivative of [`cosine`] along `axis`.
///
/// `df` has the grid's shape, x fastest; the grid has [unit length](crate::Grid::of_unit_length).
#[must_use]
pub fn errors(grid: &Grid3, axis: Axis, df: &[f32]) -> Errors {
    let (shape, h) = (grid.shape(), grid.spacing(axis));
    let exact: Vec<f64> = (0..axis.extent(shape))
        .map(|point| -TAU * (TAU * h * point as f64).sin())
        .collect();
    Errors::of(df, |index| {
        exact[index / axis.stride(shape) % axis.extent(shape)]
    })
}

/// Bounds on the errors of an f32 derivative of [`cosine`]: root mean square and maximum.
///
/// - Truncation: at most `h⁸/630 · (2π)⁹`.
/// - The field: the argument, at most 2π, is rounded in the constant, the product and the quotient,
///   each time by at most half an ulp of 2π (2⁻²²); the cosine is rounded by at most one ulp of 1
///   (2⁻²⁴).
/// - The stencil multiplies an error of the field by at most the sum of the absolute weights,
///   2.08/h, and its own roundings are at most a few ulps of 2π.
///
/// The errors of the eight neighbours differ in sign, so their root mean square stays below a third
/// of that worst case.
#[must_use]
pub fn error_bounds(grid: &Grid3, axis: Axis) -> Errors {
    let h = grid.spacing(axis);
    let weights = 2.0 * CENTRAL_8.iter().map(|weight| weight.abs()).sum::<f64>() / h;
    let truncation = h.powi(8) / 630.0 * TAU.powi(9);
    let half_ulp_of_tau = 2.0_f64.powi(-22);
    let field = 3.0 * half_ulp_of_tau + 2.0_f64.powi(-24);
    // Four differences, four sums.
    let rounding = weights * field + 8.0 * half_ulp_of_tau;
    Errors {
        rms: truncation + rounding / 3.0,
        max: truncation + rounding,
    }
}
