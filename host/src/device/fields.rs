//! Copies fields between host and device.

use crate::{Buffer, Device, Element, Error, Field2, Field3, Shape, Shape2, Shape3};

impl<T: Element> Field2<T> {
    /// A buffer on `device` with a copy of the elements and their [`Shape`].
    ///
    /// ```
    /// use halo_gpu::{Device, Field2, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let field = Field2::from_fn(Shape2::new(4, 3), |i, j| (10 * j + i) as f64)?;
    /// let buffer = field.to_device(&Device::emulator())?;
    /// assert_eq!(buffer.shape(), field.shape().into());
    /// assert_eq!(Field2::from_device(&buffer)?, field);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Device::upload`].
    pub fn to_device(&self, device: &Device) -> Result<Buffer<T>, Error> {
        device.upload(self.as_slice())?.shaped(self.shape())
    }

    /// A copy of a buffer with a 2-D shape, from [`to_device`](Self::to_device) or set by
    /// [`shaped`](Buffer::shaped).
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if its shape is not 2-D; otherwise as for [`Buffer::to_vec`].
    pub fn from_device(buffer: &Buffer<T>) -> Result<Self, Error> {
        let Shape::Plane(shape) = buffer.shape() else {
            return Err(Error::ShapeMismatch {
                argument: "the buffer".into(),
                required: Shape2::new(0, 0).into(),
                given: buffer.shape(),
            });
        };
        Self::from_vec(shape, buffer.to_vec()?)
    }
}

impl<T: Element> Field3<T> {
    /// A buffer on `device` with a copy of the elements and their [`Shape`].
    ///
    /// ```
    /// use halo_gpu::{Device, Field3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let field = Field3::from_fn(Shape3::new(4, 3, 2), |i, j, k| (10 * j + i + k) as f64)?;
    /// let buffer = field.to_device(&Device::emulator())?;
    /// assert_eq!(buffer.shape(), field.shape().into());
    /// assert_eq!(Field3::from_device(&buffer)?, field);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Device::upload`].
    pub fn to_device(&self, device: &Device) -> Result<Buffer<T>, Error> {
        device.upload(self.as_slice())?.shaped(self.shape())
    }

    /// A copy of a buffer with a 3-D shape, from [`to_device`](Self::to_device) or set by
    /// [`shaped`](Buffer::shaped).
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if its shape is not 3-D; otherwise as for [`Buffer::to_vec`].
    pub fn from_device(buffer: &Buffer<T>) -> Result<Self, Error> {
        let Shape::Volume(shape) = buffer.shape() else {
            return Err(Error::ShapeMismatch {
                argument: "the buffer".into(),
                required: Shape3::new(0, 0, 0).into(),
                given: buffer.shape(),
            });
        };
        Self::from_vec(shape, buffer.to_vec()?)
    }
}
