//! Gradient, divergence, curl and Laplacian.

use super::{FIELD, FiniteDifferences3d, gpu};
use crate::axis::Axis;
use crate::derivative3d::operator::Operator;
use crate::derivative3d::transfer;
use crate::scalar::Scalar;
use crate::streaming::Stores;
use crate::{Buffer, Device, DeviceKind, Error, Field3};

impl Operator {
    /// The kernel for fields of `T`, as in the PTX.
    #[must_use]
    pub fn kernel_name<T: Scalar>(self) -> &'static str {
        T::OPERATORS[self as usize].name
    }
}

/// Each is one launch, which reads each field from memory once. All buffers hold
/// `nx * ny * nz` elements, x fastest, and are on one device. All components of a vector
/// are in one unit; with fields in the unit U and spacings in the unit L the results of
/// gradient, divergence and curl are in U / L, that of the Laplacian in U / L².
///
/// ```
/// use halo_gpu::derivative3d::FiniteDifferences3d;
/// use halo_gpu::{Device, Field3, Shape3};
/// use std::f64::consts::TAU;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // sin(2π x) cos(2π y) on the unit cube, periodic.
/// let (device, shape) = (Device::cpu(), Shape3::cube(24));
/// let grid = FiniteDifferences3d::<f64>::new(shape, [1.0 / 24.0; 3])?;
/// let at = |i: usize| TAU * i as f64 / 24.0;
/// let f = Field3::from_fn(shape, |i, j, _| at(i).sin() * at(j).cos())?;
///
/// let [fx, fy, fz] = grid.gradient_of(&device, &f)?;
/// assert!((fx[(0, 0, 5)] - TAU).abs() < 1e-5);
/// assert_eq!(fz[(3, 2, 1)], 0.0);
///
/// // A gradient does not curl, and its divergence is the Laplacian.
/// let [_, _, cz] = grid.curl_of(&device, [&fx, &fy, &fz])?;
/// assert!(cz[(3, 2, 1)].abs() < 1e-10);
/// let divergence = grid.divergence_of(&device, [&fx, &fy, &fz])?;
/// let laplacian = grid.laplacian_of(&device, &f)?;
/// assert!((laplacian[(3, 2, 1)] + 2.0 * TAU * TAU * f[(3, 2, 1)]).abs() < 1e-4);
/// assert!((laplacian[(3, 2, 1)] - divergence[(3, 2, 1)]).abs() < 1e-3);
/// # Ok(())
/// # }
/// ```
impl<T: Scalar> FiniteDifferences3d<T> {
    /// The gradient of `f`, into the three buffers for its components along x, y, z, in
    /// the unit of `f` over that of the spacing. All four hold `nx * ny * nz` elements,
    /// x fastest.
    ///
    /// ```
    /// # use halo_gpu::derivative3d::{Axis, Boundary, FiniteDifferences3d};
    /// # use halo_gpu::{Device, Shape3};
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// // Fields of one plane have no derivative along z.
    /// let grid = FiniteDifferences3d::new(Shape3::new(4, 3, 1), [1.0; 3])?
    ///     .with_accuracy(2)?
    ///     .with_boundary(Axis::X, Boundary::OneSided)?
    ///     .with_boundary(Axis::Y, Boundary::OneSided)?;
    /// let f: Vec<f32> = (0..12).map(|p| (p % 4 + 10 * (p / 4)) as f32).collect();
    /// let f = device.upload(&f)?;
    /// let mut x = device.alloc_filled(12, 0.0)?;
    /// let mut y = device.alloc_filled(12, 0.0)?;
    /// let mut z = device.alloc_filled(12, 0.0)?;
    /// grid.gradient(&f, [&mut x, &mut y, &mut z])?;
    /// assert_eq!(x.to_vec()?, [1.0; 12]);
    /// assert_eq!(y.to_vec()?, [10.0; 12]);
    /// assert_eq!(z.to_vec()?, [0.0; 12]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative), for any of the axes.
    pub fn gradient(&self, f: &Buffer<T>, gradient: [&mut Buffer<T>; 3]) -> Result<(), Error> {
        let [x, y, z] = gradient;
        self.apply(Operator::Gradient, &[f], &mut [x, y, z])
    }

    /// The gradient by the general kernel, also where a tuned one applies.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Device, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let grid = FiniteDifferences3d::<f32>::new(Shape3::new(8, 6, 5), [0.1; 3])?;
    /// let f = device.upload(&(0..240).map(|n| (n * n % 61) as f32).collect::<Vec<_>>())?;
    /// let empty = || device.alloc_filled(240, f32::NAN);
    /// let mut tuned = [empty()?, empty()?, empty()?];
    /// let mut general = [empty()?, empty()?, empty()?];
    /// grid.gradient(&f, tuned.each_mut())?;
    /// grid.gradient_by_general_kernel(&f, general.each_mut())?;
    /// for (general, tuned) in general.iter().zip(&tuned) {
    ///     assert_eq!(general.to_vec()?, tuned.to_vec()?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gradient`](Self::gradient).
    pub fn gradient_by_general_kernel(
        &self,
        f: &Buffer<T>,
        gradient: [&mut Buffer<T>; 3],
    ) -> Result<(), Error> {
        let mut gradient = gradient;
        self.check(Operator::Gradient, &[f], &gradient)?;
        self.launch(Operator::Gradient, &[f], &mut gradient)
    }

    /// The divergence (∂u/∂x + ∂v/∂y) + ∂w/∂z of the vector field whose components along
    /// x, y and z are given, into `divergence`, in the unit of the components over that
    /// of the spacing. All four hold `nx * ny * nz` elements, x fastest.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, Boundary, FiniteDifferences3d};
    /// use halo_gpu::{Device, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let mut grid = FiniteDifferences3d::<f64>::new(Shape3::cube(4), [1.0; 3])?.with_accuracy(2)?;
    /// for axis in Axis::ALL {
    ///     grid = grid.with_boundary(axis, Boundary::OneSided)?;
    /// }
    /// // x, y and z of each point.
    /// let at = |n: i32| [n % 4, n / 4 % 4, n / 16].map(f64::from);
    /// let component = |axis: usize| -> Vec<f64> { (0..64).map(|n| at(n)[axis]).collect() };
    /// // (x, y, z), which flows out everywhere.
    /// let u = device.upload(&component(0))?;
    /// let v = device.upload(&component(1))?;
    /// let w = device.upload(&component(2))?;
    /// let mut divergence = device.alloc_filled(64, 0.0)?;
    /// grid.divergence([&u, &v, &w], &mut divergence)?;
    /// assert_eq!(divergence.to_vec()?, [3.0; 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative), for any of the axes.
    pub fn divergence(
        &self,
        components: [&Buffer<T>; 3],
        divergence: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.apply(Operator::Divergence, &components, &mut [divergence])
    }

    /// The curl (∂w/∂y - ∂v/∂z, ∂u/∂z - ∂w/∂x, ∂v/∂x - ∂u/∂y) of the vector field whose
    /// components (u, v, w) along x, y and z are given, into the three buffers for its
    /// own, in the unit of the components over that of the spacing. All six hold
    /// `nx * ny * nz` elements, x fastest.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, Boundary, FiniteDifferences3d};
    /// use halo_gpu::{Device, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let mut grid = FiniteDifferences3d::<f64>::new(Shape3::cube(4), [1.0; 3])?.with_accuracy(2)?;
    /// for axis in Axis::ALL {
    ///     grid = grid.with_boundary(axis, Boundary::OneSided)?;
    /// }
    /// // x, y and z of each point.
    /// let at = |n: i32| [n % 4, n / 4 % 4, n / 16].map(f64::from);
    /// // (-y, x, 0): a body that turns once around z in a time of 2π.
    /// let u = device.upload(&(0..64).map(|n| -at(n)[1]).collect::<Vec<_>>())?;
    /// let v = device.upload(&(0..64).map(|n| at(n)[0]).collect::<Vec<_>>())?;
    /// let w = device.alloc_filled(64, 0.0)?;
    /// let mut curl = [u.try_clone()?, v.try_clone()?, w.try_clone()?];
    /// grid.curl([&u, &v, &w], curl.each_mut())?;
    /// assert_eq!(curl[0].to_vec()?, [0.0; 64]);
    /// assert_eq!(curl[1].to_vec()?, [0.0; 64]);
    /// assert_eq!(curl[2].to_vec()?, [2.0; 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative), for any of the axes.
    pub fn curl(
        &self,
        components: [&Buffer<T>; 3],
        curl: [&mut Buffer<T>; 3],
    ) -> Result<(), Error> {
        let [x, y, z] = curl;
        self.apply(Operator::Curl, &components, &mut [x, y, z])
    }

    /// The Laplacian (∂²f/∂x² + ∂²f/∂y²) + ∂²f/∂z² of `f`, into `laplacian`, in the unit
    /// of `f` over that of the spacing squared. Both hold `nx * ny * nz` elements, x
    /// fastest.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, Boundary, FiniteDifferences3d};
    /// use halo_gpu::{Device, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let mut grid = FiniteDifferences3d::<f64>::new(Shape3::cube(4), [1.0; 3])?.with_accuracy(2)?;
    /// for axis in Axis::ALL {
    ///     grid = grid.with_boundary(axis, Boundary::OneSided)?;
    /// }
    /// // x, y and z of each point.
    /// let at = |n: i32| [n % 4, n / 4 % 4, n / 16].map(f64::from);
    /// let squares: Vec<f64> = (0..64).map(|n| at(n).map(|x| x * x).iter().sum()).collect();
    /// let f = device.upload(&squares)?;
    /// let mut laplacian = device.alloc_filled(64, 0.0)?;
    /// grid.laplacian(&f, &mut laplacian)?;
    /// assert_eq!(laplacian.to_vec()?, [6.0; 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`second_derivative`](Self::second_derivative), for any of the axes.
    pub fn laplacian(&self, f: &Buffer<T>, laplacian: &mut Buffer<T>) -> Result<(), Error> {
        self.apply(Operator::Laplacian, &[f], &mut [laplacian])
    }

    /// The gradient of a field on the host, computed on `device`.
    ///
    /// # Errors
    ///
    /// As [`gradient`](Self::gradient), and [`Error::OutOfMemory`].
    pub fn gradient_of(&self, device: &Device, f: &Field3<T>) -> Result<[Field3<T>; 3], Error> {
        self.fields_of(device, Operator::Gradient, [f])
    }

    /// The divergence of a vector field on the host, computed on `device`.
    ///
    /// # Errors
    ///
    /// As [`divergence`](Self::divergence), and [`Error::OutOfMemory`].
    pub fn divergence_of(
        &self,
        device: &Device,
        components: [&Field3<T>; 3],
    ) -> Result<Field3<T>, Error> {
        let [divergence] = self.fields_of(device, Operator::Divergence, components)?;
        Ok(divergence)
    }

    /// The curl of a vector field on the host, computed on `device`.
    ///
    /// # Errors
    ///
    /// As [`curl`](Self::curl), and [`Error::OutOfMemory`].
    pub fn curl_of(
        &self,
        device: &Device,
        components: [&Field3<T>; 3],
    ) -> Result<[Field3<T>; 3], Error> {
        self.fields_of(device, Operator::Curl, components)
    }

    /// The Laplacian of a field on the host, computed on `device`.
    ///
    /// # Errors
    ///
    /// As [`laplacian`](Self::laplacian), and [`Error::OutOfMemory`].
    pub fn laplacian_of(&self, device: &Device, f: &Field3<T>) -> Result<Field3<T>, Error> {
        let [laplacian] = self.fields_of(device, Operator::Laplacian, [f])?;
        Ok(laplacian)
    }

    /// `operator` on the device of the buffers, of which there are as many as it wants.
    fn apply(
        &self,
        operator: Operator,
        inputs: &[&Buffer<T>],
        outputs: &mut [&mut Buffer<T>],
    ) -> Result<(), Error> {
        self.check(operator, inputs, outputs)?;
        if inputs[0].device().kind() != DeviceKind::Cpu
            && let (Operator::Gradient, [f], [x, y, z]) = (operator, inputs, &mut *outputs)
            && self.tuned_gradient(f, [x, y, z])?
        {
            return Ok(());
        }
        self.launch(operator, inputs, outputs)
    }

    /// Refuses buffers that do not fit, and axes that are too short.
    fn check(
        &self,
        operator: Operator,
        inputs: &[&Buffer<T>],
        outputs: &[&mut Buffer<T>],
    ) -> Result<(), Error> {
        let device = inputs[0].device();
        let buffers = inputs
            .iter()
            .copied()
            .chain(outputs.iter().map(|buffer| &**buffer));
        for buffer in buffers {
            buffer.require_shape(|| FIELD.to_owned(), self.shape)?;
            device.require(FIELD, buffer)?;
        }
        for axis in Axis::ALL {
            self.check_axis(axis, operator.order())?;
        }
        Ok(())
    }

    /// `operator` by the general kernels, or the port, of what has been checked.
    fn launch(
        &self,
        operator: Operator,
        inputs: &[&Buffer<T>],
        outputs: &mut [&mut Buffer<T>],
    ) -> Result<(), Error> {
        if inputs[0].device().kind() != DeviceKind::Cpu {
            let stencils = self.stencils(operator.order());
            return T::launch_operator(gpu::Fields::new(stencils, operator, inputs, outputs));
        }
        // At most three of either.
        let (reads, writes) = (inputs.len(), outputs.len());
        let (mut from, mut to): ([&[T]; 3], [&mut [T]; 3]) = Default::default();
        let slices = inputs.iter().filter_map(|f| f.as_host_slice());
        from.iter_mut()
            .zip(slices)
            .for_each(|(f, slice)| *f = slice);
        let slices = outputs.iter_mut().filter_map(|out| out.as_host_mut_slice());
        to.iter_mut().zip(slices).for_each(|(f, slice)| *f = slice);
        let (from, to) = (&from[..reads], &mut to[..writes]);
        let stencils = Axis::ALL.map(|axis| self.stencil(axis, operator.order()));
        let stores = Stores::of(to);
        T::operator(&stencils, operator, stores, from, to);
        Ok(())
    }

    /// `operator` of fields on the host.
    fn fields_of<const IN: usize, const OUT: usize>(
        &self,
        device: &Device,
        operator: Operator,
        fields: [&Field3<T>; IN],
    ) -> Result<[Field3<T>; OUT], Error> {
        let inputs = transfer::upload(FIELD, self.shape, device, fields)?;
        let mut outputs = transfer::for_results(inputs[0].as_buffer())?;
        let inputs = inputs.each_ref().map(|input| input.as_buffer());
        self.apply(operator, &inputs, &mut outputs.each_mut())?;
        transfer::download(self.shape, outputs)
    }
}
