//! Derivatives of fields in host memory: plans, with copies to the device and back.

use super::check::{READ, WRITTEN};
use super::differences::FiniteDifferences3d;
use super::operator::Operator;
use crate::allocation::zeroed;
use crate::axis::Axis;
use crate::scalar::Scalar;
use crate::shape::require_shape;
use crate::{Buffer, Device, DeviceKind, Error, Field3};

/// Calls of a [`Plan`](super::Plan) for fields in host memory. If the device is the CPU, nothing is
/// copied.
///
/// ```
/// use halo_gpu::derivative3d::FiniteDifferences3d;
/// use halo_gpu::{Device, Field3, Grid3, Shape3};
/// use std::f64::consts::TAU;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // sin(2π x) cos(2π y) on the unit cube, periodic.
/// let (device, shape) = (Device::cpu(), Shape3::cube(24));
/// let grid = Grid3::new(shape, [1.0; 3])?.of_unit_length()?;
/// let differences = FiniteDifferences3d::<f64>::new(&grid)?;
/// let at = |i: usize| TAU * i as f64 / 24.0;
/// let f = Field3::from_fn(shape, |i, j, _| at(i).sin() * at(j).cos())?;
///
/// let [fx, fy, fz] = differences.gradient_of(&device, &f)?;
/// assert!((fx[(0, 0, 5)] - TAU).abs() < 1e-5);
/// assert_eq!(fz[(3, 2, 1)], 0.0);
///
/// // A gradient does not curl, and its divergence is the Laplacian.
/// let [_, _, cz] = differences.curl_of(&device, [&fx, &fy, &fz])?;
/// assert!(cz[(3, 2, 1)].abs() < 1e-10);
/// let divergence = differences.divergence_of(&device, [&fx, &fy, &fz])?;
/// let mut laplacian = Field3::filled(shape, 0.0)?;
/// differences.laplacian_of_into(&device, &f, &mut laplacian)?;
/// assert!((laplacian[(3, 2, 1)] + 2.0 * TAU * TAU * f[(3, 2, 1)]).abs() < 1e-4);
/// assert!((laplacian[(3, 2, 1)] - divergence[(3, 2, 1)]).abs() < 1e-3);
/// # Ok(())
/// # }
/// ```
impl<T: Scalar> FiniteDifferences3d<T> {
    /// ∂f/∂axis of a field, computed on `device`; see
    /// [`Plan::derivative`](super::Plan::derivative).
    ///
    /// # Errors
    ///
    /// As for [`Plan::derivative`](super::Plan::derivative); [`Error::OutOfMemory`] and
    /// [`Error::HostOutOfMemory`].
    pub fn derivative_of(
        &self,
        device: &Device,
        axis: Axis,
        f: &Field3<T>,
    ) -> Result<Field3<T>, Error> {
        let [df] = self.fields_of(device, Operator::Derivative(axis), [f])?;
        Ok(df)
    }

    /// Like [`derivative_of`](Self::derivative_of), but writes to a field of the caller.
    ///
    /// # Errors
    ///
    /// As for [`derivative_of`](Self::derivative_of).
    pub fn derivative_of_into(
        &self,
        device: &Device,
        axis: Axis,
        f: &Field3<T>,
        df: &mut Field3<T>,
    ) -> Result<(), Error> {
        self.fields_of_into(device, Operator::Derivative(axis), [f], [df])
    }

    /// ∂²f/∂axis² of a field, computed on `device`; see
    /// [`Plan::second_derivative`](super::Plan::second_derivative).
    ///
    /// # Errors
    ///
    /// As for [`Plan::second_derivative`](super::Plan::second_derivative); [`Error::OutOfMemory`]
    /// and [`Error::HostOutOfMemory`].
    pub fn second_derivative_of(
        &self,
        device: &Device,
        axis: Axis,
        f: &Field3<T>,
    ) -> Result<Field3<T>, Error> {
        let [df] = self.fields_of(device, Operator::SecondDerivative(axis), [f])?;
        Ok(df)
    }

    /// Like [`second_derivative_of`](Self::second_derivative_of), but writes to a field of the
    /// caller.
    ///
    /// # Errors
    ///
    /// As for [`second_derivative_of`](Self::second_derivative_of).
    pub fn second_derivative_of_into(
        &self,
        device: &Device,
        axis: Axis,
        f: &Field3<T>,
        df: &mut Field3<T>,
    ) -> Result<(), Error> {
        self.fields_of_into(device, Operator::SecondDerivative(axis), [f], [df])
    }

    /// The gradient of a field, computed on `device`; see
    /// [`Plan::gradient`](super::Plan::gradient).
    ///
    /// # Errors
    ///
    /// As for [`Plan::gradient`](super::Plan::gradient); [`Error::OutOfMemory`] and
    /// [`Error::HostOutOfMemory`].
    pub fn gradient_of(&self, device: &Device, f: &Field3<T>) -> Result<[Field3<T>; 3], Error> {
        self.fields_of(device, Operator::Gradient, [f])
    }

    /// Like [`gradient_of`](Self::gradient_of), but writes to fields of the caller.
    ///
    /// # Errors
    ///
    /// As for [`gradient_of`](Self::gradient_of).
    pub fn gradient_of_into(
        &self,
        device: &Device,
        f: &Field3<T>,
        gradient: [&mut Field3<T>; 3],
    ) -> Result<(), Error> {
        self.fields_of_into(device, Operator::Gradient, [f], gradient)
    }

    /// The divergence of the vector field with these components, computed on `device`; see
    /// [`Plan::divergence`](super::Plan::divergence).
    ///
    /// # Errors
    ///
    /// As for [`Plan::divergence`](super::Plan::divergence); [`Error::OutOfMemory`] and
    /// [`Error::HostOutOfMemory`].
    pub fn divergence_of(
        &self,
        device: &Device,
        components: [&Field3<T>; 3],
    ) -> Result<Field3<T>, Error> {
        let [divergence] = self.fields_of(device, Operator::Divergence, components)?;
        Ok(divergence)
    }

    /// Like [`divergence_of`](Self::divergence_of), but writes to a field of the caller.
    ///
    /// # Errors
    ///
    /// As for [`divergence_of`](Self::divergence_of).
    pub fn divergence_of_into(
        &self,
        device: &Device,
        components: [&Field3<T>; 3],
        divergence: &mut Field3<T>,
    ) -> Result<(), Error> {
        self.fields_of_into(device, Operator::Divergence, components, [divergence])
    }

    /// The curl of the vector field with these components, computed on `device`; see
    /// [`Plan::curl`](super::Plan::curl).
    ///
    /// # Errors
    ///
    /// As for [`Plan::curl`](super::Plan::curl); [`Error::OutOfMemory`] and
    /// [`Error::HostOutOfMemory`].
    pub fn curl_of(
        &self,
        device: &Device,
        components: [&Field3<T>; 3],
    ) -> Result<[Field3<T>; 3], Error> {
        self.fields_of(device, Operator::Curl, components)
    }

    /// Like [`curl_of`](Self::curl_of), but writes to fields of the caller.
    ///
    /// # Errors
    ///
    /// As for [`curl_of`](Self::curl_of).
    pub fn curl_of_into(
        &self,
        device: &Device,
        components: [&Field3<T>; 3],
        curl: [&mut Field3<T>; 3],
    ) -> Result<(), Error> {
        self.fields_of_into(device, Operator::Curl, components, curl)
    }

    /// The Laplacian of a field, computed on `device`; see
    /// [`Plan::laplacian`](super::Plan::laplacian).
    ///
    /// # Errors
    ///
    /// As for [`Plan::laplacian`](super::Plan::laplacian); [`Error::OutOfMemory`] and
    /// [`Error::HostOutOfMemory`].
    pub fn laplacian_of(&self, device: &Device, f: &Field3<T>) -> Result<Field3<T>, Error> {
        let [laplacian] = self.fields_of(device, Operator::Laplacian, [f])?;
        Ok(laplacian)
    }

    /// Like [`laplacian_of`](Self::laplacian_of), but writes to a field of the caller.
    ///
    /// # Errors
    ///
    /// As for [`laplacian_of`](Self::laplacian_of).
    pub fn laplacian_of_into(
        &self,
        device: &Device,
        f: &Field3<T>,
        laplacian: &mut Field3<T>,
    ) -> Result<(), Error> {
        self.fields_of_into(device, Operator::Laplacian, [f], [laplacian])
    }

    /// Applies `operator` to `IN` fields and returns `OUT` fields.
    fn fields_of<const IN: usize, const OUT: usize>(
        &self,
        device: &Device,
        operator: Operator,
        inputs: [&Field3<T>; IN],
    ) -> Result<[Field3<T>; OUT], Error> {
        self.require_shapes(READ, &inputs)?;
        self.check(operator)?;
        let mut outputs: [Field3<T>; OUT] = each([(); OUT], |()| {
            Field3::from_vec(self.shape(), zeroed(self.shape().points()?)?)
        })?;
        self.fields_of_into(device, operator, inputs, outputs.each_mut())?;
        Ok(outputs)
    }

    /// Like [`fields_of`](Self::fields_of), but writes to the given fields.
    fn fields_of_into<const IN: usize, const OUT: usize>(
        &self,
        device: &Device,
        operator: Operator,
        inputs: [&Field3<T>; IN],
        outputs: [&mut Field3<T>; OUT],
    ) -> Result<(), Error> {
        self.require_shapes(READ, &inputs)?;
        self.require_shapes(WRITTEN, &outputs)?;
        self.check(operator)?;
        let mut outputs = outputs.map(Field3::as_mut_slice);
        if device.kind() == DeviceKind::Cpu {
            let (planes, inputs) = (0..self.shape().nz, inputs.map(Field3::as_slice));
            self.on_cpu(operator, planes, &inputs, &mut outputs);
            return Ok(());
        }
        let inputs: [Buffer<T>; IN] = each(inputs, |field| field.to_device(device))?;
        let mut results: [Buffer<T>; OUT] = each([(); OUT], |()| {
            device.alloc_filled(inputs[0].len(), T::nearest(f64::NAN))
        })?;
        let plan = self.plan(device)?;
        plan.apply(operator, &inputs.each_ref(), &mut results.each_mut())?;
        let mut results = results.iter().zip(&mut outputs);
        results.try_for_each(|(result, output)| result.copy_to_slice(output))
    }

    /// Returns an error if a field has another shape; `what` is the name of a field in errors.
    fn require_shapes(
        &self,
        what: &'static str,
        fields: &[impl std::borrow::Borrow<Field3<T>>],
    ) -> Result<(), Error> {
        let shape = self.shape().into();
        fields.iter().try_for_each(|field| {
            let field = field.borrow();
            require_shape(what, shape, field.shape().into())
        })
    }
}

/// The results of `make` for each element, or the first error.
fn each<A, B, const N: usize>(
    all: [A; N],
    make: impl FnMut(A) -> Result<B, Error>,
) -> Result<[B; N], Error> {
    let made: Vec<B> = all.into_iter().map(make).collect::<Result<_, _>>()?;
    match made.try_into() {
        Ok(made) => Ok(made),
        Err(_) => unreachable!("as many have been made"),
    }
}
