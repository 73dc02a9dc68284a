//! A stencil for a device.

use super::Stencil1d;
use super::check::{Checked, OPERATION};
use super::gpu::Variant;
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Error};

/// A [`Stencil1d`] for a device: made by [`Stencil1d::plan`].
///
/// Calls do not wait and allocate nothing. All plans of a stencil give the same bits.
#[derive(Debug)]
pub struct Plan<T: Scalar> {
    stencil: Stencil1d<T>,
    device: Device,
    /// The kernel; `None` where the port runs.
    variant: Option<Variant>,
    /// For the kernel that reads them from memory.
    coefficients: Option<Buffer<T>>,
}

impl<T: Scalar> Plan<T> {
    pub(super) fn new(stencil: Stencil1d<T>, device: &Device) -> Result<Self, Error> {
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

    pub(super) fn with(
        stencil: Stencil1d<T>,
        device: &Device,
        variant: Variant,
    ) -> Result<Self, Error> {
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

    /// What is computed.
    #[must_use]
    pub const fn stencil(&self) -> &Stencil1d<T> {
        &self.stencil
    }

    /// The device that it is for.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The kernel that computes it; `None` on the CPU, where the port does.
    #[must_use]
    pub const fn variant(&self) -> Option<Variant> {
        self.variant
    }

    /// The kernel's entry point, as in the PTX; `None` on the CPU.
    #[must_use]
    pub fn kernel(&self) -> Option<&'static str> {
        self.variant?.kernel::<T>()
    }

    /// The stencil on `input`, into the inner elements of `output`.
    ///
    /// Both hold `n` elements and are on the plan's device. The first and the last R of
    /// `output` are left as they are.
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
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that do not
    /// fit, and what a launch can fail with.
    pub fn apply(&self, input: &Buffer<T>, output: &mut Buffer<T>) -> Result<(), Error> {
        let checked = Checked::new(self, input, output)?;
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

    /// The coefficients on the device, for the kernel that reads them there.
    pub(super) const fn uploaded(&self) -> Option<&Buffer<T>> {
        self.coefficients.as_ref()
    }
}
