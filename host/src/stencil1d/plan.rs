//! Plans a line stencil on a device.

use super::check::{self, Checked, KernelStencil, OPERATION};
use super::gpu::Variant;
use super::stencil::Stencil1d;
use crate::allocation::zeroed;
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Error};

/// A [`Stencil1d`] on a device, from [`Stencil1d::plan`].
///
/// Calls do not wait and allocate nothing. All plans of a stencil give the same bits.
#[derive(Debug)]
pub struct Plan<T: Scalar> {
    stencil: Stencil1d<T>,
    device: Device,
    /// The kernel; `None` if the port runs.
    variant: Option<Variant>,
    /// The coefficients, for the kernel that reads them from memory.
    coefficients: Option<Buffer<T>>,
}

/// Makes plans, and applies stencils to slices in host memory.
impl<T: Scalar> Stencil1d<T> {
    /// A plan for `device`: with the kernel that suits the stencil, or on the CPU with the port.
    ///
    /// # Errors
    ///
    /// None at present; the `Result` matches the other families.
    pub fn plan(&self, device: &Device) -> Result<Plan<T>, Error> {
        Plan::new(*self, device)
    }

    /// A plan for `device` with the kernel `variant`.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let stencil = Stencil1d::antisymmetric(100, &TEXTBOOK_COEFFICIENTS)?;
    /// let input = device.upload(&(0..100).map(|i| i as f32).collect::<Vec<_>>())?;
    /// for variant in Variant::ALL {
    ///     let mut output = device.zeros(100)?;
    ///     stencil.plan_with(&device, variant)?.apply(&input, &mut output)?;
    ///     assert_eq!(output.to_vec()?[4..96], [10.0; 92], "{variant}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a kernel that does not compute this stencil in this type:
    /// all but [`Variant::Custom`] need `f32` and antisymmetric stencils of four neighbours.
    /// [`Error::NotLaunchable`] on the CPU, which cannot launch kernels. [`Error::OutOfMemory`] and
    /// [`Error::Driver`] if the kernel reads the coefficients from memory.
    pub fn plan_with(&self, device: &Device, variant: Variant) -> Result<Plan<T>, Error> {
        Plan::with(*self, device, variant)
    }

    /// Applies the stencil on `device` to a line in host memory, and returns the n - 2 R inner
    /// elements; element 0 belongs to `input[R]`.
    ///
    /// # Errors
    ///
    /// As for [`Plan::apply`]; [`Error::OutOfMemory`] and [`Error::HostOutOfMemory`].
    pub fn apply_of(&self, device: &Device, input: &[T]) -> Result<Vec<T>, Error> {
        check::length("input", self.n, input.len())?;
        let mut inner = zeroed(self.inner_len())?;
        self.apply_of_into(device, input, &mut inner)?;
        Ok(inner)
    }

    /// Like [`apply_of`](Self::apply_of), but writes to `inner`, which has n - 2 R elements.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::stencil1d::Stencil1d;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let mean = Stencil1d::symmetric(4, 0.5, &[0.25])?;
    /// let mut inner = [0.0; 2];
    /// mean.apply_of_into(&Device::cpu(), &[0.0, 4.0, 0.0, 8.0], &mut inner)?;
    /// assert_eq!(inner, [2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Plan::apply`], and [`Error::OutOfMemory`].
    pub fn apply_of_into(
        &self,
        device: &Device,
        input: &[T],
        inner: &mut [T],
    ) -> Result<(), Error> {
        check::length("input", self.n, input.len())?;
        check::length("the result", self.inner_len(), inner.len())?;
        if device.kind() == DeviceKind::Cpu {
            self.on_cpu(input, inner);
            return Ok(());
        }
        let input = device.upload(input)?;
        let mut output = device.zeros(self.n)?;
        self.plan(device)?.apply(&input, &mut output)?;
        let written = self.radius..self.n - self.radius;
        output.view(written)?.copy_to_slice(inner)
    }
}

impl<T: Scalar> Plan<T> {
    fn new(stencil: Stencil1d<T>, device: &Device) -> Result<Self, Error> {
        match device.kind() {
            DeviceKind::Cpu => Ok(Self {
                stencil,
                device: device.clone(),
                variant: None,
                coefficients: None,
            }),
            DeviceKind::Emulator | DeviceKind::Cuda => {
                let nine_point =
                    stencil.is_nine_point() && Variant::Vector4.kernel::<T>().is_some();
                let variant = if nine_point {
                    Variant::Vector4
                } else {
                    Variant::Custom
                };
                Self::with(stencil, device, variant)
            }
        }
    }

    fn with(stencil: Stencil1d<T>, device: &Device, variant: Variant) -> Result<Self, Error> {
        let suits = variant == Variant::Custom || stencil.is_nine_point();
        let (Some(kernel), true) = (variant.kernel::<T>(), suits) else {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the variant",
                given: variant.to_string(),
                required: format!(
                    "{}: the others take antisymmetric stencils of four neighbours in f32",
                    Variant::Custom
                ),
            });
        };
        if device.kind() == DeviceKind::Cpu {
            return Err(Error::NotLaunchable { kernel });
        }
        let coefficients = match variant {
            Variant::ReadOnly => Some(device.upload(stencil.coefficients())?),
            _ => None,
        };
        Ok(Self {
            stencil,
            device: device.clone(),
            variant: Some(variant),
            coefficients,
        })
    }

    /// The stencil to compute.
    #[must_use]
    pub const fn stencil(&self) -> &Stencil1d<T> {
        &self.stencil
    }

    /// The device of the plan.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The kernel that computes the stencil; `None` on the CPU, which uses the port.
    #[must_use]
    pub const fn variant(&self) -> Option<Variant> {
        self.variant
    }

    /// The name of the kernel's entry point in the PTX; `None` on the CPU.
    #[must_use]
    pub fn kernel(&self) -> Option<&'static str> {
        self.variant?.kernel::<T>()
    }

    /// Applies the stencil to `input` and writes the inner elements of `output`.
    ///
    /// Both have `n` elements and are on the plan's device. The first and the last R elements of
    /// `output` keep their values.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::stencil1d::Stencil1d;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// // Half a second from element to element, 3 m more at each: 6 m/s.
    /// let line: Vec<f32> = (0..12).map(|i| 3.0 * i as f32).collect();
    /// let speed = Stencil1d::derivative(line.len(), 0.5)?.plan(&device)?;
    /// let input = device.upload(&line)?;
    /// let mut output = device.alloc_filled(12, -1.0)?;
    /// speed.apply(&input, &mut output)?;
    /// let output = output.to_vec()?;
    /// assert!(output[4..8].iter().all(|value| (value - 6.0).abs() < 1e-4));
    /// assert_eq!(output[..4], [-1.0; 4]); // not written
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that do not fit, and the
    /// errors of a launch.
    pub fn apply(&self, input: &Buffer<T>, output: &mut Buffer<T>) -> Result<(), Error> {
        let line = KernelStencil {
            form: self.stencil.form,
            radius: self.stencil.radius as u32,
            coefficients: &self.stencil.coefficients,
            uploaded: self.coefficients.as_ref(),
            problem: self.stencil.problem(),
        };
        let checked = Checked::new(&self.device, line, input, output)?;
        match self.variant {
            Some(variant) => T::launch_line(variant, checked),
            None => {
                let (Some(input), Some(output)) = (
                    input.as_host_slice(),
                    checked.into_output().as_host_mut_slice(),
                ) else {
                    unreachable!("buffers of the CPU device are host memory");
                };
                let inner = self.stencil.radius..self.stencil.n - self.stencil.radius;
                self.stencil.on_cpu(input, &mut output[inner]);
                Ok(())
            }
        }
    }
}
