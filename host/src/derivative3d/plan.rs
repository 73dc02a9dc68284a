//! Plans the computation of derivatives on a device.

use super::check::{Checked, OPERATION};
use super::differences::FiniteDifferences3d;
use super::operator::Operator;
use super::variant::{TUNED, Variant, problem, require_variant};
use crate::axis::Axis;
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Error};
use std::ops::Range;

/// [`FiniteDifferences3d`] on a device; [`FiniteDifferences3d::plan`] makes it.
///
/// Each call is one launch, which reads each field from memory once. Calls do not wait and do not
/// allocate. All plans of the same derivatives give the same bits.
///
/// All buffers hold `nx * ny * nz` elements, x fastest. A plan by
/// [`plan_of_planes`](FiniteDifferences3d::plan_of_planes) writes only the elements of its planes.
/// All components of a vector have the same unit. With fields in the unit U and spacings in the
/// unit L, derivative, gradient, divergence and curl are in U / L, second derivative and Laplacian
/// in U / L².
///
/// ```
/// use halo_gpu::derivative3d::FiniteDifferences3d;
/// use halo_gpu::{Axis, Device, Grid3, Shape3};
/// use std::f64::consts::TAU;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::cpu();
/// let grid = Grid3::new(Shape3::new(1, 40, 1), [1.0 / 40.0; 3])?;
/// let plan = FiniteDifferences3d::new(&grid)?.plan(&device)?;
/// let sine: Vec<f64> = (0..40).map(|j| (TAU * j as f64 / 40.0).sin()).collect();
/// let f = device.upload(&sine)?;
/// let mut df = device.zeros(f.len())?;
/// plan.derivative(Axis::Y, &f, &mut df)?;
/// assert!((df.to_vec()?[0] - TAU).abs() < 1e-7);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Plan<T: Scalar> {
    differences: FiniteDifferences3d<T>,
    device: Device,
    /// The planes to compute.
    planes: Range<usize>,
    /// The variants for the derivatives along x, y and z and for the gradient.
    variants: [Variant; 4],
}

/// The operators for which a plan chooses a variant, in the order of its `variants`.
const CHOSEN: [Operator; 4] = [
    Operator::Derivative(Axis::X),
    Operator::Derivative(Axis::Y),
    Operator::Derivative(Axis::Z),
    Operator::Gradient,
];

/// Makes plans.
impl<T: Scalar> FiniteDifferences3d<T> {
    /// A plan for `device`: with the kernels that suit the grid, or on the CPU with the port.
    ///
    /// # Errors
    ///
    /// None at present; the `Result` matches the other families.
    pub fn plan(&self, device: &Device) -> Result<Plan<T>, Error> {
        self.plan_of_planes(device, 0..self.shape().nz)
    }

    /// A plan for `device` that computes the derivatives only at the points whose index k along z
    /// is in `planes`, with the same bits as [`plan`](Self::plan). It leaves the other planes of
    /// the results as they are.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let grid = Grid3::new(Shape3::cube(10), [0.1; 3])?;
    /// let differences = FiniteDifferences3d::<f32>::new(&grid)?;
    /// let f: Vec<f32> = (0..1000).map(|n| (n * n % 61) as f32).collect();
    /// let f = device.upload(&f)?;
    /// let (mut whole, mut in_turn) = (device.zeros(1000)?, device.zeros(1000)?);
    /// differences.plan(&device)?.laplacian(&f, &mut whole)?;
    /// // First the inner planes, then those near the ends.
    /// for planes in [4..6, 0..4, 6..10] {
    ///     differences.plan_of_planes(&device, planes)?.laplacian(&f, &mut in_turn)?;
    /// }
    /// assert_eq!(in_turn.to_vec()?, whole.to_vec()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for an empty range, or planes outside the grid.
    pub fn plan_of_planes(&self, device: &Device, planes: Range<usize>) -> Result<Plan<T>, Error> {
        let shape = self.shape();
        if planes.is_empty() || planes.end > shape.nz {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the range of planes",
                given: format!("{planes:?}"),
                required: format!("not empty, and in 0..{}", shape.nz),
            });
        }
        let all = planes == (0..shape.nz);
        let suits = |variant: Variant, operator: Operator| {
            require_variant::<T>(variant, self.accuracy()).is_ok()
                && (all || variant.takes_planes::<T>(operator, shape, planes.start))
                && !variant.is_slow::<T>(operator, shape)
                && variant.entry::<T>(operator).is_some_and(|entry| {
                    variant == Variant::General || entry.geometry(&problem(shape)).is_ok()
                })
                && variant
                    .check::<T>(operator, shape, self.boundaries())
                    .is_ok()
        };
        let variants = CHOSEN.map(|operator| {
            let mut all = TUNED.into_iter();
            let found = all.find(|variant| suits(*variant, operator));
            found.unwrap_or(Variant::General)
        });
        Ok(self.plan_of(device, planes, variants))
    }

    /// A plan for `device` that computes first derivatives and gradients with the kernels of
    /// `variant`, where it has one. Each of the other operators has only one kernel.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, Variant};
    /// use halo_gpu::{Axis, Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let grid = Grid3::new(Shape3::new(32, 32, 8), [0.1; 3])?;
    /// let differences = FiniteDifferences3d::new(&grid)?;
    /// let f: Vec<f32> = (0..8192).map(|n| (n * n % 61) as f32).collect();
    /// let f = device.upload(&f)?;
    /// let mut picked = device.zeros(8192)?;
    /// differences.plan(&device)?.derivative(Axis::X, &f, &mut picked)?;
    /// assert_ne!(picked.to_vec()?, [0.0; 8192]);
    /// for variant in Variant::ALL {
    ///     let mut df = device.zeros(8192)?;
    ///     differences.plan_with(&device, variant)?.derivative(Axis::X, &f, &mut df)?;
    ///     assert_eq!(df.to_vec()?, picked.to_vec()?, "{variant}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for kernels that do not compute these derivatives in this type:
    /// all but [`Variant::General`] need the 8th order, and all but that and
    /// [`Variant::AnyBoundary`] need `f32`. [`Error::NotLaunchable`] on the CPU, which cannot
    /// launch kernels. Whether a kernel suits the grid depends on the axis: [`Plan::check`] and the
    /// calls report that.
    pub fn plan_with(&self, device: &Device, variant: Variant) -> Result<Plan<T>, Error> {
        require_variant::<T>(variant, self.accuracy())?;
        if let (DeviceKind::Cpu, Some(entry)) = (device.kind(), variant.entry::<T>(CHOSEN[0])) {
            return Err(Error::NotLaunchable { kernel: entry.name });
        }
        let variants = CHOSEN.map(|operator| match variant.entry::<T>(operator) {
            Some(_) => variant,
            None => Variant::General,
        });
        Ok(self.plan_of(device, 0..self.shape().nz, variants))
    }

    fn plan_of(&self, device: &Device, planes: Range<usize>, variants: [Variant; 4]) -> Plan<T> {
        Plan {
            differences: self.clone(),
            device: device.clone(),
            planes,
            variants,
        }
    }
}

impl<T: Scalar> Plan<T> {
    /// The description of the computation.
    #[must_use]
    pub const fn differences(&self) -> &FiniteDifferences3d<T> {
        &self.differences
    }

    /// The planes that the plan computes, as indices along z.
    #[must_use]
    pub fn planes(&self) -> Range<usize> {
        self.planes.clone()
    }

    /// The device of the plan.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The variant that computes an operator; `None` on the CPU, which uses the port.
    #[must_use]
    pub fn variant(&self, operator: Operator) -> Option<Variant> {
        match self.device.kind() {
            DeviceKind::Cpu => None,
            DeviceKind::Emulator | DeviceKind::Cuda => Some(self.chosen(operator)),
        }
    }

    /// The name of the kernel's entry point in the PTX; `None` on the CPU.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{FiniteDifferences3d, Operator};
    /// use halo_gpu::{Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let plan = |nx| {
    ///     let grid = Grid3::new(Shape3::new(nx, 9, 9), [1.0; 3])?;
    ///     FiniteDifferences3d::<f32>::new(&grid)?.plan(&Device::emulator())
    /// };
    /// let kernel = |nx| Ok::<_, halo_gpu::Error>(plan(nx)?.kernel(Operator::Gradient));
    /// assert_eq!(kernel(12)?, Some("derivative3d_gradient4"));
    /// assert_eq!(kernel(13)?, Some("derivative3d_general_gradient_f32"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn kernel(&self, operator: Operator) -> Option<&'static str> {
        self.variant(operator)?.kernel::<T>(operator)
    }

    /// Checks whether an operator can be computed: returns the error that its call would return.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] if an axis has more than one point, but too few for the stencil and
    /// its boundary; [`Error::InvalidParameter`] if a weight, divided by the spacing to the power
    /// of the derivative's order, is outside the range of `T`. For kernels chosen by name also
    /// [`Error::InvalidSize`], [`Error::InvalidParameter`] and [`Error::IndexOverflow`] for an
    /// extent or a boundary that they do not support.
    pub fn check(&self, operator: Operator) -> Result<(), Error> {
        self.differences.check(operator)?;
        let (shape, boundaries) = (self.differences.shape(), self.differences.boundaries());
        match self.variant(operator) {
            None => Ok(()),
            Some(variant) => variant.check::<T>(operator, shape, boundaries),
        }
    }

    /// Writes ∂f/∂axis to `df`.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Axis, Boundary, Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // Half a metre from point to point, walls at both ends, and 3 K more at each point.
    /// let device = Device::cpu();
    /// let rod = Grid3::new(Shape3::new(12, 1, 1), [0.5; 3])?
    ///     .with_boundary(Axis::X, Boundary::OneSided)?;
    /// let plan = FiniteDifferences3d::<f64>::new(&rod)?.plan(&device)?;
    /// let temperature = device.upload(&(0..12).map(|i| 3.0 * f64::from(i)).collect::<Vec<_>>())?;
    /// let mut slope = device.zeros(12)?;
    /// plan.derivative(Axis::X, &temperature, &mut slope)?;
    /// assert!(slope.to_vec()?.iter().all(|k_per_m| (k_per_m - 6.0).abs() < 1e-12));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`], [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for
    /// buffers that do not fit; the errors of [`check`](Self::check) and of a launch.
    pub fn derivative(&self, axis: Axis, f: &Buffer<T>, df: &mut Buffer<T>) -> Result<(), Error> {
        self.apply(Operator::Derivative(axis), &[f], &mut [df])
    }

    /// Writes ∂²f/∂axis² to `df`.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Axis, Boundary, Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let grid = Grid3::new(Shape3::new(1, 1, 5), [2.0; 3])?
    ///     .with_boundary(Axis::Z, Boundary::OneSided)?;
    /// let plan = FiniteDifferences3d::new(&grid)?.with_accuracy(2)?.plan(&device)?;
    /// let squares = device.upload(&[0.0, 4.0, 16.0, 36.0, 64.0])?;
    /// let mut second = device.zeros(5)?;
    /// plan.second_derivative(Axis::Z, &squares, &mut second)?;
    /// assert_eq!(second.to_vec()?, [2.0_f64; 5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`derivative`](Self::derivative).
    pub fn second_derivative(
        &self,
        axis: Axis,
        f: &Buffer<T>,
        df: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.apply(Operator::SecondDerivative(axis), &[f], &mut [df])
    }

    /// Writes the gradient of `f` to three buffers, for its components along x, y and z.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Boundary, Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// // Fields of one plane have no derivative along z.
    /// let grid = Grid3::new(Shape3::new(4, 3, 1), [1.0; 3])?
    ///     .with_boundaries(Boundary::OneSided)?;
    /// let plan = FiniteDifferences3d::new(&grid)?.with_accuracy(2)?.plan(&device)?;
    /// let f: Vec<f32> = (0..12).map(|p| (p % 4 + 10 * (p / 4)) as f32).collect();
    /// let f = device.upload(&f)?;
    /// let mut gradient = [device.zeros(12)?, device.zeros(12)?, device.zeros(12)?];
    /// plan.gradient(&f, gradient.each_mut())?;
    /// let [x, y, z] = gradient;
    /// assert_eq!(x.to_vec()?, [1.0; 12]);
    /// assert_eq!(y.to_vec()?, [10.0; 12]);
    /// assert_eq!(z.to_vec()?, [0.0; 12]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`derivative`](Self::derivative), for each axis.
    pub fn gradient(&self, f: &Buffer<T>, gradient: [&mut Buffer<T>; 3]) -> Result<(), Error> {
        let mut gradient = gradient;
        self.apply(Operator::Gradient, &[f], &mut gradient)
    }

    /// Writes to `divergence` the divergence (∂u/∂x + ∂v/∂y) + ∂w/∂z of the vector field with these
    /// components along x, y and z.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Boundary, Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let grid = Grid3::new(Shape3::cube(4), [1.0; 3])?.with_boundaries(Boundary::OneSided)?;
    /// let plan = FiniteDifferences3d::<f64>::new(&grid)?.with_accuracy(2)?.plan(&device)?;
    /// // x, y and z of each point.
    /// let at = |n: i32| [n % 4, n / 4 % 4, n / 16].map(f64::from);
    /// let component = |axis: usize| -> Vec<f64> { (0..64).map(|n| at(n)[axis]).collect() };
    /// // (x, y, z), which flows out everywhere.
    /// let u = device.upload(&component(0))?;
    /// let v = device.upload(&component(1))?;
    /// let w = device.upload(&component(2))?;
    /// let mut divergence = device.zeros(64)?;
    /// plan.divergence([&u, &v, &w], &mut divergence)?;
    /// assert_eq!(divergence.to_vec()?, [3.0; 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`derivative`](Self::derivative), for each axis.
    pub fn divergence(
        &self,
        components: [&Buffer<T>; 3],
        divergence: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.apply(Operator::Divergence, &components, &mut [divergence])
    }

    /// Writes the curl (∂w/∂y - ∂v/∂z, ∂u/∂z - ∂w/∂x, ∂v/∂x - ∂u/∂y) of the vector field with the
    /// components (u, v, w) along x, y and z to three buffers, one for each of its components.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Boundary, Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let grid = Grid3::new(Shape3::cube(4), [1.0; 3])?.with_boundaries(Boundary::OneSided)?;
    /// let plan = FiniteDifferences3d::<f64>::new(&grid)?.with_accuracy(2)?.plan(&device)?;
    /// // x, y and z of each point.
    /// let at = |n: i32| [n % 4, n / 4 % 4, n / 16].map(f64::from);
    /// // (-y, x, 0): a body that turns once around z in a time of 2π.
    /// let u = device.upload(&(0..64).map(|n| -at(n)[1]).collect::<Vec<_>>())?;
    /// let v = device.upload(&(0..64).map(|n| at(n)[0]).collect::<Vec<_>>())?;
    /// let w = device.zeros(64)?;
    /// let mut curl = [u.try_clone()?, v.try_clone()?, w.try_clone()?];
    /// plan.curl([&u, &v, &w], curl.each_mut())?;
    /// assert_eq!(curl[0].to_vec()?, [0.0; 64]);
    /// assert_eq!(curl[1].to_vec()?, [0.0; 64]);
    /// assert_eq!(curl[2].to_vec()?, [2.0; 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`derivative`](Self::derivative), for each axis.
    pub fn curl(
        &self,
        components: [&Buffer<T>; 3],
        curl: [&mut Buffer<T>; 3],
    ) -> Result<(), Error> {
        let mut curl = curl;
        self.apply(Operator::Curl, &components, &mut curl)
    }

    /// Writes the Laplacian (∂²f/∂x² + ∂²f/∂y²) + ∂²f/∂z² of `f` to `laplacian`.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Boundary, Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let grid = Grid3::new(Shape3::cube(4), [1.0; 3])?.with_boundaries(Boundary::OneSided)?;
    /// let plan = FiniteDifferences3d::new(&grid)?.with_accuracy(2)?.plan(&device)?;
    /// // x, y and z of each point.
    /// let at = |n: i32| [n % 4, n / 4 % 4, n / 16].map(f64::from);
    /// let squares: Vec<f64> = (0..64).map(|n| at(n).map(|x| x * x).iter().sum()).collect();
    /// let f = device.upload(&squares)?;
    /// let mut laplacian = device.zeros(64)?;
    /// plan.laplacian(&f, &mut laplacian)?;
    /// assert_eq!(laplacian.to_vec()?, [6.0; 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`derivative`](Self::derivative), for each axis.
    pub fn laplacian(&self, f: &Buffer<T>, laplacian: &mut Buffer<T>) -> Result<(), Error> {
        self.apply(Operator::Laplacian, &[f], &mut [laplacian])
    }

    /// Applies `operator` to as many buffers as it reads and writes.
    pub(super) fn apply(
        &self,
        operator: Operator,
        inputs: &[&Buffer<T>],
        outputs: &mut [&mut Buffer<T>],
    ) -> Result<(), Error> {
        self.check(operator)?;
        let stencils = self.differences.stencils(operator.order(), &self.planes);
        let checked = Checked::new(&self.device, stencils, operator, inputs, outputs)?;
        let Some(variant) = self.variant(operator) else {
            self.on_cpu(checked);
            return Ok(());
        };
        if self.differences.is_zero(operator) {
            let (_, outputs) = checked.into_fields();
            return outputs.iter_mut().try_for_each(|out| {
                let mut planes = out.view_mut(stencils.elements())?;
                planes.fill(T::zeroed())
            });
        }
        T::launch_derivatives(variant, checked)
    }

    /// The variant for an operator, on a device that runs kernels.
    fn chosen(&self, operator: Operator) -> Variant {
        let mut chosen = CHOSEN.into_iter().zip(self.variants);
        let found = chosen.find(|(it, _)| *it == operator);
        found.map_or(Variant::General, |(_, variant)| variant)
    }

    /// Runs the port.
    fn on_cpu(&self, checked: Checked<'_, '_, T>) {
        let (operator, elements) = (checked.operator(), checked.stencils().elements());
        let (inputs, outputs) = checked.into_fields();
        // At most three inputs and three outputs.
        let (reads, writes) = (inputs.len(), outputs.len());
        let (mut from, mut to): ([&[T]; 3], [&mut [T]; 3]) = Default::default();
        let slices = inputs.iter().filter_map(|f| f.as_host_slice());
        from.iter_mut().zip(slices).for_each(|(f, it)| *f = it);
        let slices = outputs.iter_mut().filter_map(|out| out.as_host_mut_slice());
        for (f, it) in to.iter_mut().zip(slices) {
            *f = &mut it[elements.clone()];
        }
        let (differences, planes) = (&self.differences, self.planes());
        differences.on_cpu(operator, planes, &from[..reads], &mut to[..writes]);
    }
}
