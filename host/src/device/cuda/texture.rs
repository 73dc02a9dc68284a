//! Textures: rows in device memory that kernels read through the texture units.

use super::core::{Resource, copy_rows, rows};
use super::driver::said;
use super::handle::CudaDevice;
use super::memory::CudaMemory;
use super::recording;
use crate::Error;
use crate::device::layout::{AddressMode, Layout};
use cuda_loader::sys::{self, CUDA_MEMCPY2D, CUdeviceptr};
use cust::memory::array::ArrayFormat;
use cust::texture::{Pitched, Texture, TextureAdressingMode, TextureDescriptor};
use std::ops::Range;

/// Rows in device memory, and the texture object that reads them.
pub(in crate::device) struct CudaTexture {
    /// `Some` until this is dropped.
    object: Option<Texture>,
    /// The first element, aligned for textures.
    address: CUdeviceptr,
    layout: Layout,
    memory: CudaMemory,
}

impl CudaDevice {
    /// A texture of zeros. `alignment` is the driver's requirement on its address.
    pub(in crate::device) fn texture(
        &self,
        layout: Layout,
        alignment: u32,
    ) -> Result<CudaTexture, Error> {
        let slack = alignment as usize - 1;
        let mut memory = self.allocate(layout.bytes() + slack)?;
        memory.fill(0..layout.bytes() + slack, &[0])?;
        let address = memory.address().next_multiple_of(u64::from(alignment));
        let outside = match layout.address_mode {
            AddressMode::Clamp => TextureAdressingMode::Clamp,
            AddressMode::Border => TextureAdressingMode::Border,
        };
        let rows = Pitched {
            address,
            format: ArrayFormat::F32,
            num_channels: 1,
            width: layout.width,
            height: layout.height,
            pitch_in_bytes: layout.pitch * size_of::<f32>(),
        };
        let reading = TextureDescriptor {
            adress_modes: [outside; 3],
            max_anisotropy: 0,
            border_color: [0.0; 4],
            ..TextureDescriptor::default()
        };
        let _current = self.core.enter()?;
        // The memory was allocated in stream order, so the rest of the driver can use it only when
        // the stream has reached the allocation.
        self.core.synchronize()?;
        // SAFETY: the rows lie in the memory, which is freed after the texture is destroyed.
        let object = unsafe { Texture::from_pitched(rows, reading) };
        Ok(CudaTexture {
            object: Some(said("cuTexObjectCreate", object)?),
            address,
            layout,
            memory,
        })
    }
}

impl CudaTexture {
    pub(in crate::device) fn handle(&self) -> u64 {
        self.object.as_ref().map_or(0, Texture::handle)
    }

    pub(in crate::device) fn address(&self) -> u64 {
        self.address
    }

    /// Overwrites the elements with densely packed rows.
    pub(in crate::device) fn upload(&mut self, values: &[f32]) -> Result<(), Error> {
        self.check_length(values.len());
        self.copy_rows(&CUDA_MEMCPY2D {
            srcMemoryType: sys::MEMORYTYPE_HOST,
            srcHost: values.as_ptr().cast(),
            srcPitch: self.row_bytes(),
            dstMemoryType: sys::MEMORYTYPE_DEVICE,
            dstDevice: self.address,
            dstPitch: self.layout.pitch * size_of::<f32>(),
            ..self.all_rows()
        })
    }

    /// Copies the elements to densely packed rows.
    pub(in crate::device) fn download(&self, values: &mut [f32]) -> Result<(), Error> {
        self.check_length(values.len());
        self.copy_rows(&CUDA_MEMCPY2D {
            srcMemoryType: sys::MEMORYTYPE_DEVICE,
            srcDevice: self.address,
            srcPitch: self.layout.pitch * size_of::<f32>(),
            dstMemoryType: sys::MEMORYTYPE_HOST,
            dstHost: values.as_mut_ptr().cast(),
            dstPitch: self.row_bytes(),
            ..self.all_rows()
        })
    }

    /// Overwrites the elements with densely packed rows in memory of the same device, in stream
    /// order.
    pub(in crate::device) fn copy_from(&mut self, values: &CudaMemory) -> Result<(), Error> {
        let copy = CUDA_MEMCPY2D {
            srcMemoryType: sys::MEMORYTYPE_DEVICE,
            srcDevice: values.part(&self.dense_bytes()),
            srcPitch: self.row_bytes(),
            dstMemoryType: sys::MEMORYTYPE_DEVICE,
            dstDevice: self.address,
            dstPitch: self.layout.pitch * size_of::<f32>(),
            ..self.all_rows()
        };
        // SAFETY: the target rows lie in this texture, which is borrowed mutably, and the source is
        // other memory; `part` has checked that both are large enough.
        unsafe { self.queue_rows(&copy) }
    }

    /// Copies the elements to densely packed rows in memory of the same device, in stream order.
    pub(in crate::device) fn copy_to(&self, values: &mut CudaMemory) -> Result<(), Error> {
        let copy = CUDA_MEMCPY2D {
            srcMemoryType: sys::MEMORYTYPE_DEVICE,
            srcDevice: self.address,
            srcPitch: self.layout.pitch * size_of::<f32>(),
            dstMemoryType: sys::MEMORYTYPE_DEVICE,
            dstDevice: values.part(&self.dense_bytes()),
            dstPitch: self.row_bytes(),
            ..self.all_rows()
        };
        // SAFETY: the source rows lie in this texture, and the target is other memory, which is
        // borrowed mutably; `part` has checked that both are large enough.
        unsafe { self.queue_rows(&copy) }
    }

    fn check_length(&self, given: usize) {
        let elements = self.layout.width * self.layout.height;
        assert_eq!(given, elements, "callers check the length");
    }

    /// Like [`CudaMemory::note_exchange`], for textures of the same layout.
    pub(in crate::device) fn note_exchange(&self, before: &Self) {
        let (core, bytes) = (self.memory.core(), self.layout.bytes());
        recording::note_exchange(core, self.address, before.address, bytes);
    }

    /// The bytes of all rows, densely packed.
    fn dense_bytes(&self) -> Range<usize> {
        0..self.row_bytes() * self.layout.height
    }

    fn row_bytes(&self) -> usize {
        self.layout.width * size_of::<f32>()
    }

    /// The description of a copy of all rows, whose source and target the caller fills in.
    fn all_rows(&self) -> CUDA_MEMCPY2D {
        rows(self.layout.height, self.row_bytes())
    }

    /// Enqueues a copy within the device.
    ///
    /// # Safety
    ///
    /// Both sides are memory of this device with all rows at their pitch, and the target is
    /// borrowed mutably. Both live as long as the work of their stream or graph.
    unsafe fn queue_rows(&self, copy: &CUDA_MEMCPY2D) -> Result<(), Error> {
        let core = self.memory.core();
        let _current = core.enter()?;
        // SAFETY: the caller's promise; stream order excludes other work on either side.
        unsafe { copy_rows(copy, core.queue()) }
    }

    fn copy_rows(&self, copy: &CUDA_MEMCPY2D) -> Result<(), Error> {
        let core = self.memory.core();
        core.refuse("copying to or from the host")?;
        let _current = core.enter()?;
        // SAFETY: upload and download describe rows that lie in this texture and in a slice. The
        // slice is borrowed until the copy has ended, because this function waits for it.
        unsafe { copy_rows(copy, core.stream.as_inner()) }?;
        core.synchronize()
    }
}

impl Drop for CudaTexture {
    fn drop(&mut self) {
        // `CudaMemory` frees the memory afterwards.
        if let Some(object) = self.object.take() {
            self.memory.core().give_back(Resource::Texture(object));
        }
    }
}
