//! Shortcuts that copy host values and slices to the device.

use crate::error::CudaResult;
use crate::memory::array::{ArrayDescriptor, ArrayObject, ArrayObjectFlags, ArrayPrimitive};
use crate::memory::{DeviceBox, DeviceBuffer, UnifiedBuffer};
use crate::surface::Surface;
use crate::texture::Texture;
use cust_core::DeviceCopy;

/// Copies values to the device.
pub trait DeviceCopyExt: DeviceCopy {
    /// A copy in device memory.
    ///
    /// # Errors
    ///
    /// As [`DeviceBox::new`].
    fn as_dbox(&self) -> CudaResult<DeviceBox<Self>> {
        DeviceBox::new(self)
    }
}

impl<T: DeviceCopy> DeviceCopyExt for T {}

/// Copies slices to the device.
pub trait SliceExt<T: DeviceCopy> {
    /// A copy in device memory.
    ///
    /// # Errors
    ///
    /// As [`DeviceBuffer::from_slice`].
    fn as_dbuf(&self) -> CudaResult<DeviceBuffer<T>>;

    /// A copy in unified memory.
    ///
    /// # Errors
    ///
    /// As [`UnifiedBuffer::from_slice`].
    fn as_unified_buf(&self) -> CudaResult<UnifiedBuffer<T>>;

    /// A copy in an array.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`].
    fn as_1d_array(&self) -> CudaResult<ArrayObject>
    where
        T: ArrayPrimitive;

    /// A copy in an array of two dimensions.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`].
    ///
    /// # Panics
    ///
    /// Unless there are `width × height` numbers.
    fn as_2d_array(&self, width: usize, height: usize) -> CudaResult<ArrayObject>
    where
        T: ArrayPrimitive;

    /// A texture of a copy.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`] and [`Texture::new`].
    fn as_1d_texture(&self) -> CudaResult<Texture>
    where
        T: ArrayPrimitive,
    {
        Texture::from_array(self.as_1d_array()?)
    }

    /// A texture of a copy, of two dimensions.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`] and [`Texture::new`].
    ///
    /// # Panics
    ///
    /// As [`SliceExt::as_2d_array`].
    fn as_2d_texture(&self, width: usize, height: usize) -> CudaResult<Texture>
    where
        T: ArrayPrimitive,
    {
        Texture::from_array(self.as_2d_array(width, height)?)
    }

    /// A surface of a copy.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`] and [`Surface::new`].
    fn as_1d_surface(&self) -> CudaResult<Surface>
    where
        T: ArrayPrimitive,
    {
        Surface::from_array(self.as_1d_array()?)
    }

    /// A surface of a copy, of two dimensions.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`] and [`Surface::new`].
    ///
    /// # Panics
    ///
    /// As [`SliceExt::as_2d_array`].
    fn as_2d_surface(&self, width: usize, height: usize) -> CudaResult<Surface>
    where
        T: ArrayPrimitive,
    {
        Surface::from_array(self.as_2d_array(width, height)?)
    }
}

/// An array that textures and surfaces can use.
fn array<T: ArrayPrimitive>(values: &[T], dims: [usize; 3]) -> CudaResult<ArrayObject> {
    let flags = ArrayObjectFlags::SURFACE_LDST;
    let descriptor = ArrayDescriptor::new(dims, T::array_format(), 1, flags);
    let mut array = ArrayObject::from_descriptor(&descriptor)?;
    array.copy_from(&values)?;
    Ok(array)
}

impl<T: DeviceCopy> SliceExt<T> for &[T] {
    fn as_dbuf(&self) -> CudaResult<DeviceBuffer<T>> {
        DeviceBuffer::from_slice(self)
    }

    fn as_unified_buf(&self) -> CudaResult<UnifiedBuffer<T>> {
        UnifiedBuffer::from_slice(self)
    }

    fn as_1d_array(&self) -> CudaResult<ArrayObject>
    where
        T: ArrayPrimitive,
    {
        array(self, [self.len(), 0, 0])
    }

    fn as_2d_array(&self, width: usize, height: usize) -> CudaResult<ArrayObject>
    where
        T: ArrayPrimitive,
    {
        array(self, [width, height, 0])
    }
}

impl<T: DeviceCopy, const N: usize> SliceExt<T> for [T; N] {
    fn as_dbuf(&self) -> CudaResult<DeviceBuffer<T>> {
        self.as_slice().as_dbuf()
    }

    fn as_unified_buf(&self) -> CudaResult<UnifiedBuffer<T>> {
        self.as_slice().as_unified_buf()
    }

    fn as_1d_array(&self) -> CudaResult<ArrayObject>
    where
        T: ArrayPrimitive,
    {
        self.as_slice().as_1d_array()
    }

    fn as_2d_array(&self, width: usize, height: usize) -> CudaResult<ArrayObject>
    where
        T: ArrayPrimitive,
    {
        self.as_slice().as_2d_array(width, height)
    }
}
