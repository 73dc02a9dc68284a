//! Kernels from elsewhere, in place of those that the library carries.

use std::fmt;

#[cfg(halo_cuda)]
use super::cuda::StandIns;

/// Code for a CUDA device, in one of the two forms that its driver takes.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Image<'a> {
    /// PTX, which the driver compiles.
    Ptx(&'a str),
    /// Machine code for one generation of device (a cubin), as `nvcc -cubin` and
    /// `ptxas` write it.
    Cubin(&'a [u8]),
}

impl fmt::Debug for Image<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ptx(text) => write!(f, "Ptx({} bytes)", text.len()),
            Self::Cubin(bytes) => write!(f, "Cubin({} bytes)", bytes.len()),
        }
    }
}

/// Kernels that a device has loaded besides its own, by
/// [`Device::load_kernels`](super::Device::load_kernels).
///
/// [`Device::using`](super::Device::using) puts them in the place of kernels of
/// the same names, so that one launch path, with its buffers and its geometry,
/// runs either. They stay loaded as long as this or a clone of it lives.
#[derive(Clone)]
pub struct Kernels {
    #[cfg(halo_cuda)]
    pub(super) inner: StandIns,
    /// Nothing loads any where there are no CUDA devices.
    #[cfg(not(halo_cuda))]
    never: std::convert::Infallible,
}

impl Kernels {
    /// The same kernels, with the entry point `entry` in the place of `kernel`.
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
