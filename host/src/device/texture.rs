//! 2-D textures: rows in linear memory that kernels read through the texture units.

use super::buffer::Buffer;
use super::emulator::EmulatorTexture;
use super::handle::{Backend, Device};
use super::layout::{AddressMode, Layout};
use super::storage::{self, Element};
use crate::Error;
use crate::allocation::reserve;
use cuda_std::host::{In, Out};
use std::fmt;

#[cfg(halo_cuda)]
use super::cuda::CudaTexture;

/// `width` × `height` elements of `f32` that kernels read through a texture object, with point
/// filtering, unnormalised coordinates, and an [`AddressMode`] for reads outside.
///
/// The rows are in ordinary device memory, [`pitch`](Self::pitch) elements apart, so a kernel can
/// also write them: `&mut Texture2d` becomes an output argument of `pitch * height` elements, where
/// element (x, y) has the index `y * pitch + x`. A launch must not both write and read a texture.
///
/// ```
/// use halo_gpu::{AddressMode, Device, Texture2d};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let values: Vec<f32> = (0..15).map(|n| n as f32).collect();
/// let texture = Texture2d::from_slice(&device, 5, 3, AddressMode::Clamp, &values)?;
/// assert_eq!((texture.width(), texture.height()), (5, 3));
/// assert!(texture.pitch() >= 5);
/// assert_eq!(texture.address_mode(), AddressMode::Clamp);
/// assert_eq!(texture.to_vec()?, values);
///
/// // What a kernel is given, by value. The CPU device runs none and has no textures.
/// let _object: u64 = texture.handle();
/// assert_eq!(texture.device(), &device);
/// assert!(Texture2d::new(&Device::cpu(), 5, 3, AddressMode::Border).is_err());
/// # Ok(())
/// # }
/// ```
pub struct Texture2d {
    storage: Storage,
    layout: Layout,
    device: Device,
}

enum Storage {
    Emulator(EmulatorTexture),
    #[cfg(halo_cuda)]
    Cuda(CudaTexture),
}

impl Texture2d {
    /// A texture of zeros.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] if an extent is zero or above [`Limits::texture_2d`](crate::Limits),
    /// [`Error::NotLaunchable`] on [`Device::cpu`], [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn new(
        device: &Device,
        width: usize,
        height: usize,
        address_mode: AddressMode,
    ) -> Result<Self, Error> {
        let layout = Layout::new(&device.limits().texture_2d, width, height, address_mode)?;
        let storage = match device.backend() {
            Backend::Cpu => {
                return Err(Error::NotLaunchable {
                    kernel: "Texture2d",
                });
            }
            Backend::Emulator(emulator) => Storage::Emulator(emulator.texture(layout)?),
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                Storage::Cuda(cuda.texture(layout, device.limits().texture_2d.alignment)?)
            }
        };
        Ok(Self {
            storage,
            layout,
            device: device.clone(),
        })
    }

    /// A texture of `width * height` values, row by row, densely packed.
    ///
    /// # Errors
    ///
    /// As for [`Texture2d::new`], and [`Error::LengthMismatch`].
    pub fn from_slice(
        device: &Device,
        width: usize,
        height: usize,
        address_mode: AddressMode,
        values: &[f32],
    ) -> Result<Self, Error> {
        let mut texture = Self::new(device, width, height, address_mode)?;
        texture.copy_from_slice(values)?;
        Ok(texture)
    }

    /// Elements of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// Rows.
    #[must_use]
    pub fn height(&self) -> usize {
        self.layout.height
    }

    /// Elements from the start of a row to the start of the next, at least
    /// [`width`](Self::width).
    #[must_use]
    pub fn pitch(&self) -> usize {
        self.layout.pitch
    }

    /// The value of reads outside the extents.
    #[must_use]
    pub fn address_mode(&self) -> AddressMode {
        self.layout.address_mode
    }

    /// The device that holds the texture.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The texture object, as an argument of kernels.
    ///
    /// The compiler sees only a number. The code that launches a kernel must make sure that the
    /// texture is on the launch's device and alive.
    #[must_use]
    pub fn handle(&self) -> u64 {
        match &self.storage {
            Storage::Emulator(texture) => texture.handle(),
            #[cfg(halo_cuda)]
            Storage::Cuda(texture) => texture.handle(),
        }
    }

    /// Overwrites all elements with `width * height` values, row by row.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::Driver`].
    pub fn copy_from_slice(&mut self, values: &[f32]) -> Result<(), Error> {
        self.require_len("the slice to copy from", values.len())?;
        match &mut self.storage {
            Storage::Emulator(texture) => {
                texture.upload(values);
                Ok(())
            }
            #[cfg(halo_cuda)]
            Storage::Cuda(texture) => texture.upload(values),
        }
    }

    /// A copy of the elements in host memory, row by row, densely packed.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], also if an earlier kernel has failed.
    pub fn to_vec(&self) -> Result<Vec<f32>, Error> {
        let elements = self.layout.width * self.layout.height;
        let mut values = reserve(elements)?;
        values.resize(elements, 0.0);
        match &self.storage {
            Storage::Emulator(texture) => texture.download(&mut values),
            #[cfg(halo_cuda)]
            Storage::Cuda(texture) => texture.download(&mut values)?,
        }
        Ok(values)
    }

    /// Overwrites all elements with the 4-byte elements of a buffer of the same device, row by row,
    /// densely packed. Does not wait.
    pub(crate) fn copy_from<T: Element>(&mut self, values: &Buffer<T>) -> Result<(), Error> {
        self.require_len("the buffer to copy from", values.len())?;
        self.device.require("the buffer to copy from", values)?;
        assert_eq!(size_of::<T>(), size_of::<f32>(), "callers know the type");
        match (&mut self.storage, &values.storage) {
            (Storage::Emulator(texture), storage::Storage::Emulator(memory)) => {
                texture.copy_from(memory);
                Ok(())
            }
            #[cfg(halo_cuda)]
            (Storage::Cuda(texture), storage::Storage::Cuda(memory)) => texture.copy_from(memory),
            _ => unreachable!("the storage of one device is of one kind, and there are elements"),
        }
    }

    /// Overwrites the 4-byte elements of a buffer of the same device with all elements, row by row,
    /// densely packed. Does not wait.
    pub(crate) fn copy_to<T: Element>(&self, values: &mut Buffer<T>) -> Result<(), Error> {
        self.require_len("the buffer to copy to", values.len())?;
        self.device.require("the buffer to copy to", values)?;
        assert_eq!(size_of::<T>(), size_of::<f32>(), "callers know the type");
        match (&self.storage, &mut values.storage) {
            (Storage::Emulator(texture), storage::Storage::Emulator(memory)) => {
                texture.copy_to(memory);
                Ok(())
            }
            #[cfg(halo_cuda)]
            (Storage::Cuda(texture), storage::Storage::Cuda(memory)) => texture.copy_to(memory),
            _ => unreachable!("the storage of one device is of one kind, and there are elements"),
        }
    }

    /// Like [`Buffer::give_way_to`], for textures of the same shape.
    pub(crate) fn give_way_to(&mut self, newer: &mut Self) {
        std::mem::swap(self, newer);
        #[cfg(halo_cuda)]
        if let (Storage::Cuda(now), Storage::Cuda(before)) = (&self.storage, &newer.storage) {
            now.note_exchange(before);
        }
    }

    fn require_len(&self, what: &'static str, given: usize) -> Result<(), Error> {
        let required = self.layout.width * self.layout.height;
        if given == required {
            return Ok(());
        }
        Err(Error::LengthMismatch {
            argument: what.into(),
            required,
            given,
        })
    }

    fn address(&self) -> u64 {
        match &self.storage {
            Storage::Emulator(texture) => texture.address(),
            #[cfg(halo_cuda)]
            Storage::Cuda(texture) => texture.address(),
        }
    }
}

impl<'a> From<&'a Texture2d> for In<'a, f32> {
    fn from(texture: &'a Texture2d) -> Self {
        // SAFETY: the address is that of all rows, including padding, which were set to zero when
        // the texture was made; the borrow keeps them for 'a.
        unsafe { In::from_raw(texture.address(), texture.layout.elements()) }
    }
}

impl<'a> From<&'a mut Texture2d> for Out<'a, f32> {
    fn from(texture: &'a mut Texture2d) -> Self {
        // SAFETY: as above, and the unique borrow prevents all other access.
        unsafe { Out::from_raw(texture.address(), texture.layout.elements()) }
    }
}

impl fmt::Debug for Texture2d {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texture2d")
            .field("layout", &self.layout)
            .field("device", &self.device.name())
            .finish()
    }
}
