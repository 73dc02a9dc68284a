//! Kernels that replace the library's in a launch.

use super::handle::Device;
use super::image::Image;
use crate::Error;
use std::fmt;

#[cfg(halo_cuda)]
use super::cuda::{CudaDevice, StandIns};
#[cfg(halo_cuda)]
use super::handle::Backend;

/// Kernels that a device has loaded in addition to its own, by
/// [`Device::load_kernels`](super::Device::load_kernels).
///
/// [`Stage::using`] substitutes them for kernels of the same names, so that one
/// launch path, with its buffers and its geometry, runs either. They stay loaded as long as this or a clone of it lives.
#[derive(Clone)]
pub struct Kernels {
    #[cfg(halo_cuda)]
    inner: StandIns,
    /// Nothing loads any where there are no CUDA devices.
    #[cfg(not(halo_cuda))]
    never: std::convert::Infallible,
}

impl Kernels {
    /// The same kernels, with the entry point `entry` instead of `kernel`.
    ///
    /// For code whose entry points are called otherwise, or which has several for
    /// one kernel. An entry point that is not there is
    /// [`Error::KernelNotFound`](crate::Error::KernelNotFound) at its launch.
    ///
    /// # Safety
    ///
    /// `entry` takes the parameters of `kernel` and has its effects, as
    /// [`Device::load_kernels`](super::Device::load_kernels) demands of kernels of
    /// the same name.
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
    /// Loads kernels from elsewhere, to replace this device's own
    /// by [`Stage::using`]: CUDA C++ compiled by nvcc, say, to compare with.
    ///
    /// ```
    /// use halo_gpu::{Device, Error, Image};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let mut stage = Device::best().stage()?;
    /// let device = stage.device().clone();
    /// let ptx = ".version 6.4\n.target sm_75\n.address_size 64\n"; // of no kernel at all
    /// // SAFETY: it has none of the library's kernels.
    /// match unsafe { device.load_kernels(Image::Ptx(ptx)) } {
    ///     Ok(kernels) => {
    ///         let values = device.upload(&[1.0_f32, 2.0])?;
    ///         let sum = stage.using(&kernels, || halo_gpu::reduction::sum(&values))?;
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
    /// [`Error::NotCuda`] on other devices. For PTX as for [`Device::cuda_with_ptx`]; for machine
    /// code [`Error::InvalidCubin`] when it is none, is cut off or is refused by the driver, and
    /// [`Error::UnsupportedCubin`] when it is for another generation of device.
    ///
    /// # Safety
    ///
    /// As [`Device::cuda_with_ptx`], of every kernel that is launched while these
    /// are in use.
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

    /// Another handle of this device, as [`Device::beside`] makes one, whose kernels can be
    /// exchanged.
    ///
    /// There is an example with [`Device::load_kernels`].
    ///
    /// # Errors
    ///
    /// As [`Device::beside`].
    pub fn stage(&self) -> Result<Stage, Error> {
        Ok(Stage {
            device: self.beside()?,
        })
    }
}

/// A device whose kernels others stand in for, by [`Device::stage`].
///
/// The kernels of a [`Device`] never change, except by the stage that made it: the owner of the
/// stage chooses the kernels of all launches on its device.
#[derive(Debug)]
pub struct Stage {
    device: Device,
}

impl Stage {
    /// The device, for buffers and launches.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Runs `work`, during which launches on the device of this stage, whichever thread
    /// makes them, take their kernels from `kernels`.
    ///
    /// Everything else stays as it is: buffers, constants by name, geometry, order.
    /// A kernel that is not in `kernels` is [`Error::KernelNotFound`] there, and
    /// never taken from the device's own.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] unless the device of this stage has loaded them;
    /// [`Error::NotCuda`] on other devices.
    pub fn using<R>(&mut self, kernels: &Kernels, work: impl FnOnce() -> R) -> Result<R, Error> {
        #[cfg(halo_cuda)]
        if let Backend::Cuda(cuda) = self.device.backend() {
            /// Takes the kernels out again, also when the work panics.
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
