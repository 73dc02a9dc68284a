//! [`DeviceVariable`]: one value with a copy on the host and one on the device.

use super::copy::CopyDestination;
use super::device_box::DeviceBox;
use super::pointer::DevicePointer;
use crate::error::CudaResult;
use cust_core::DeviceCopy;
use std::ops::{Deref, DerefMut};

/// One value on the host, and its copy on the device. The program copies from one to the other.
#[derive(Debug)]
pub struct DeviceVariable<T: DeviceCopy> {
    on_device: DeviceBox<T>,
    on_host: T,
}

impl<T: DeviceCopy> DeviceVariable<T> {
    /// This value, on host and device.
    ///
    /// # Errors
    ///
    /// As [`DeviceBox::new`].
    pub fn new(var: T) -> CudaResult<Self> {
        Ok(Self {
            on_device: DeviceBox::new(&var)?,
            on_host: var,
        })
    }

    /// Copies the host's value to the device.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn copy_htod(&mut self) -> CudaResult<()> {
        self.on_device.copy_from(&self.on_host)
    }

    /// Copies the device's value to the host.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn copy_dtoh(&mut self) -> CudaResult<()> {
        self.on_device.copy_to(&mut self.on_host)
    }

    /// The address of the device's value.
    #[must_use]
    pub fn as_device_ptr(&self) -> DevicePointer<T> {
        self.on_device.as_device_ptr()
    }
}

impl<T: DeviceCopy> Deref for DeviceVariable<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.on_host
    }
}

impl<T: DeviceCopy> DerefMut for DeviceVariable<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.on_host
    }
}
