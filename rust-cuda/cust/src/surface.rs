//! Surfaces: arrays that kernels read and write by coordinates.

use crate::error::{CudaError, CudaResult, ToResult};
use crate::memory::array::ArrayObject;
use crate::texture::{ResourceDescriptor, ResourceDescriptorFlags, ResourceType};
use cuda_loader::sys;
use std::ffi::c_ulonglong;

/// The handle of a surface, which kernels take.
pub type SurfaceHandle = c_ulonglong;

/// A surface, destroyed when this is dropped, and its array after it.
#[derive(Debug)]
pub struct Surface {
    handle: SurfaceHandle,
    /// `None` after [`Surface::into_array`].
    array: Option<ArrayObject>,
}

impl Surface {
    /// The handle that kernels take.
    #[must_use]
    pub fn handle(&self) -> SurfaceHandle {
        self.handle
    }

    /// A surface of this resource.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidValue`] if the array was not made with
    /// [`SURFACE_LDST`](crate::memory::array::ArrayObjectFlags::SURFACE_LDST); other errors of the
    /// driver.
    pub fn new(resource_desc: ResourceDescriptor) -> CudaResult<Self> {
        let (resource, array) = resource_desc.into_raw();
        let mut handle = 0;
        {
            let _entered = array.home.enter()?;
            // SAFETY: the pointers are valid for what the driver writes and reads through them; the
            // array is alive, and kept below.
            unsafe { sys::cuSurfObjectCreate(&raw mut handle, &raw const resource) }.to_result()?;
        }
        Ok(Self {
            handle,
            array: Some(array),
        })
    }

    /// A surface of an array.
    ///
    /// # Errors
    ///
    /// As [`Surface::new`].
    pub fn from_array(array: ArrayObject) -> CudaResult<Self> {
        Self::new(ResourceDescriptor {
            flags: ResourceDescriptorFlags::empty(),
            ty: ResourceType::Array { array },
        })
    }

    /// Destroys the surface, and returns its array.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn into_array(mut self) -> CudaResult<Option<ArrayObject>> {
        self.destroy()?;
        Ok(self.array.take())
    }

    fn destroy(&mut self) -> CudaResult<()> {
        let Some(array) = self.array.as_ref().filter(|_| self.handle != 0) else {
            return Ok(());
        };
        let _entered = array.home.enter()?;
        // SAFETY: the surface belongs to this value, and nothing uses it afterwards.
        unsafe { sys::cuSurfObjectDestroy(self.handle) }.to_result()?;
        self.handle = 0;
        Ok(())
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has failed.
        let _: Result<(), CudaError> = self.destroy();
    }
}
