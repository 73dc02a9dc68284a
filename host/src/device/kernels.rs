//! Replaces the library's kernels in launches with others.

use super::handle::Device;
use super::image::Image;
use crate::Error;
use std::fmt;

#[cfg(halo_cuda)]
use super::cuda::{CudaDevice, StandIns};
#[cfg(halo_cuda)]
use super::handle::Backend;

/// Kernels that a device has loaded in addition to its own, with
/// [`Device::load_kernels`](super::Device::load_kernels).
///
/// [`ReplaceableKernels::using`] substitutes them for kernels of the same names, so the same launch
/// code, with its buffers and its geometry, runs either. They stay loaded as long as this value or
/// a clone of it exists.
#[derive(Clone)]
pub struct Kernels {
    #[cfg(halo_cuda)]
    inner: StandIns,
    /// Without CUDA devices this type has no values.
    #[cfg(not(halo_cuda))]
    never: std::convert::Infallible,
}

impl Kernels {
    /// These kernels, with the entry point `entry` in place of `kernel`.
    ///
    /// Use it for code whose entry points have other names, or which has several for one kernel. If
    /// `entry` does not exist, its launch returns
    /// [`Error::KernelNotFound`](crate::Error::KernelNotFound).
    ///
    /// # Safety
    ///
    /// `entry` takes the parameters of `kernel` and has its effects, as
    /// [`Device::load_kernels`](super::Device::load_kernels) requires of kernels with the same
    /// name.
    #[must_use]
    pub unsafe fn with_entry(self, kernel: &str, entry: &str) -> Self {
        #[cfg(halo_cuda)]
        {
            Self {
                inner: self.inner.with_entry(kernel, entry),
            }
        }
        #[cfg(not(halo_cuda))]
        {
            let _ = (kernel, entry);
            match self.never {}
        }
    }
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernels").finish_non_exhaustive()
    }
}

impl Device {
    /// Loads other kernels, with which [`ReplaceableKernels::using`] can replace this device's own:
    /// for example CUDA C++ compiled by nvcc, for comparison.
    ///
    /// ```
    /// use halo_gpu::{Device, Error, Image};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let mut replaceable = Device::best().with_replaceable_kernels()?;
    /// let device = replaceable.device().clone();
    /// let ptx = ".version 6.4\n.target sm_75\n.address_size 64\n"; // of no kernel at all
    /// // SAFETY: it has none of the library's kernels.
    /// match unsafe { device.load_kernels(Image::Ptx(ptx)) } {
    ///     Ok(kernels) => {
    ///         let values = device.upload(&[1.0_f32, 2.0])?;
    ///         let sum = replaceable.using(&kernels, || halo_gpu::reduction::sum(&values))?;
    ///         assert!(matches!(sum, Err(Error::KernelNotFound { .. })));
    ///         assert_eq!(halo_gpu::reduction::sum(&values)?, 3.0); // by the library's own again
    ///     }
    ///     Err(error) => assert!(matches!(error, Error::NotCuda { .. }), "{error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotCuda`] on other devices. For PTX as for [`Device::cuda_with_ptx`]. For machine
    /// code [`Error::InvalidCubin`] if it is not a cubin, is truncated, or the driver rejects it,
    /// and [`Error::UnsupportedCubin`] if it is for another GPU generation.
    ///
    /// # Safety
    ///
    /// As for [`Device::cuda_with_ptx`], for every kernel that is launched while these are in use.
    pub unsafe fn load_kernels(&self, image: Image<'_>) -> Result<Kernels, Error> {
        #[cfg(halo_cuda)]
        if let Backend::Cuda(cuda) = self.backend() {
            return Ok(Kernels {
                inner: cuda.load_kernels(image)?,
            });
        }
        let _ = image;
        Err(self.not_cuda("loading kernels"))
    }

    /// A new handle of this device, as from [`Device::new_handle`], whose kernels can be replaced.
    ///
    /// For an example see [`Device::load_kernels`].
    ///
    /// # Errors
    ///
    /// As for [`Device::new_handle`].
    pub fn with_replaceable_kernels(&self) -> Result<ReplaceableKernels, Error> {
        Ok(ReplaceableKernels {
            device: self.new_handle()?,
        })
    }
}

/// A device whose kernels can be replaced, from [`Device::with_replaceable_kernels`].
///
/// Only this value can change the kernels of its device, so its owner decides which kernels all
/// launches on that device use. The kernels of any other [`Device`] never change.
#[derive(Debug)]
pub struct ReplaceableKernels {
    device: Device,
}

impl ReplaceableKernels {
    /// The device, for buffers and launches.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Runs `work`. In that time launches on this [`device`](Self::device), from any thread, use
    /// `kernels`.
    ///
    /// Everything else stays the same: buffers, constants by name, geometry, order. A launch of a
    /// kernel that is missing in `kernels` returns [`Error::KernelNotFound`]; it never uses the
    /// device's own kernel.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] if another device loaded `kernels`; [`Error::NotCuda`] on other
    /// kinds of device.
    pub fn using<R>(&mut self, kernels: &Kernels, work: impl FnOnce() -> R) -> Result<R, Error> {
        #[cfg(halo_cuda)]
        if let Backend::Cuda(cuda) = self.device.backend() {
            /// Restores the device's own kernels, also if the work panics.
            struct InUse<'a>(&'a CudaDevice);
            impl Drop for InUse<'_> {
                fn drop(&mut self) {
                    self.0.put(None);
                }
            }

            if !cuda.put(Some(&kernels.inner)) {
                return Err(Error::DeviceMismatch {
                    argument: "the module of the kernels".into(),
                    required: self.device.name().to_owned(),
                    given: "another device".to_owned(),
                });
            }
            let _in_use = InUse(cuda);
            return Ok(work());
        }
        let _ = (kernels, work);
        Err(self.device.not_cuda("using other kernels"))
    }
}
