//! A field of which every stencil with constant weights makes a multiple.

use crate::scalar::Scalar;
use crate::{Error, Field3, Shape3};
use std::f64::consts::PI;

/// `cos(2π k i / nx) cos(2π l j / ny) cos(2π m p / nz)` for `modes` = \[k, l, m\]: an
/// eigenvector of every stencil with constant symmetric weights on a periodic grid.
///
/// # Errors
///
/// [`Error::IndexOverflow`], [`Error::HostOutOfMemory`] for a shape too large.
pub fn periodic_mode<T: Scalar>(shape: Shape3, modes: [usize; 3]) -> Result<Field3<T>, Error> {
    let cosine = |mode: usize, at: usize, n: usize| {
        // The angle is reduced while it is a whole number.
        (2.0 * PI * (mode * at % n) as f64 / n as f64).cos()
    };
    let [k, l, m] = modes;
    let Shape3 { nx, ny, nz } = shape;
    Field3::from_fn(shape, |i, j, p| {
        T::nearest(cosine(k, i, nx) * cosine(l, j, ny) * cosine(m, p, nz))
    })
}
