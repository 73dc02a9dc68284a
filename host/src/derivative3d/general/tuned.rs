//! The kernels of the 8th order in f32, where they do what is asked for.

use super::FiniteDifferences3d;
use crate::axis::Axis;
use crate::derivative3d::first::Derivative3d;
use crate::derivative3d::variant::Variant;
use crate::scalar::Scalar;
use crate::{Buffer, Element, Error};
use std::any::Any;

/// The buffer, if it is one of f32.
fn of_f32<T: Element>(buffer: &Buffer<T>) -> Option<&Buffer<f32>> {
    (buffer as &dyn Any).downcast_ref()
}

/// The buffer to be written, if it is one of f32.
fn of_f32_mut<T: Element>(buffer: &mut Buffer<T>) -> Option<&mut Buffer<f32>> {
    (buffer as &mut dyn Any).downcast_mut()
}

impl<T: Scalar> FiniteDifferences3d<T> {
    /// ∂f/∂axis by a kernel that is tuned for just this, if there is one.
    pub(super) fn tuned(
        &self,
        axis: Axis,
        f: &Buffer<T>,
        df: &mut Buffer<T>,
    ) -> Result<bool, Error> {
        let boundary = Some(self.boundaries[axis.index()]).filter(|it| it.is_periodic());
        let (Some(f), Some(df), Some(boundary)) = (of_f32(f), of_f32_mut(df), boundary) else {
            return Ok(false);
        };
        let variant = Variant::tuned(axis, self.shape);
        if self.accuracy != 8 || variant.check(self.shape, boundary).is_err() {
            return Ok(false);
        }
        // Its spacings along the other axes are none of this derivative's business.
        let spacing = [self.spacing[axis.index()]; 3];
        Derivative3d::new(self.shape, boundary, spacing)?.apply(axis, f, df)?;
        Ok(true)
    }

    /// The gradient, likewise.
    pub(super) fn tuned_gradient(
        &self,
        f: &Buffer<T>,
        gradient: [&mut Buffer<T>; 3],
    ) -> Result<bool, Error> {
        let [Some(dx), Some(dy), Some(dz)] = gradient.map(of_f32_mut) else {
            return Ok(false);
        };
        let [x, y, z] = self
            .boundaries
            .map(|it| Some(it).filter(|it| it.is_periodic()));
        let boundary = x.filter(|_| x == y && y == z);
        let (Some(f), Some(boundary), 8) = (of_f32(f), boundary, self.accuracy) else {
            return Ok(false);
        };
        let Ok(tuned) = Derivative3d::new(self.shape, boundary, self.spacing) else {
            return Ok(false);
        };
        if !tuned.has_vector_gradient() {
            return Ok(false);
        }
        tuned.gradient(f, [dx, dy, dz])?;
        Ok(true)
    }
}
