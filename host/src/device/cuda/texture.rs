//! Rows in device memory, read through the texture units.

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
    /// Always there until this is dropped.
    object: Option<Texture>,
    /// First element, aligned as textures want it.
    address: CUdeviceptr,
    layout: Layout,
    memory: CudaMemory,
}

impl CudaDevice {
    /// A texture of zeros. `alignment` is what the driver wants of its address.
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
        // The memory was allocated in stream order, so for the rest of the
        // driver it exists when the stream has got there.
        self.core.synchronize()?;
        // SAFETY: the rows lie in the memory, which goes after the texture.
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

    /// Overwrites the elements, from rows without gaps.
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

    /// Copies the elements to rows without gaps.
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

    /// Overwrites the elements from rows without gaps in memory of the same device, in the
    /// order of its work.
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
        // SAFETY: the rows lie in this texture, which is borrowed mutably, and in other memory;
        // `part` has checked that both have as many bytes.
        unsafe { self.queue_rows(&copy) }
    }

    /// Copies the elements to rows without gaps in memory of the same device, in the order of
    /// its work.
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
        // SAFETY: the rows lie in this texture and in other memory, which is borrowed mutably;
        // `part` has checked that both have as many bytes.
        unsafe { self.queue_rows(&copy) }
    }

    fn check_length(&self, given: usize) {
        let elements = self.layout.width * self.layout.height;
        assert_eq!(given, elements, "callers check the length");
    }

    /// As [`CudaMemory::note_exchange`], of textures of one layout.
    pub(in crate::device) fn note_exchange(&self, before: &Self) {
        let (core, bytes) = (self.memory.core(), self.layout.bytes());
        recording::note_exchange(core, self.address, before.address, bytes);
    }

    /// The bytes of all rows, without gaps.
    fn dense_bytes(&self) -> Range<usize> {
        0..self.row_bytes() * self.layout.height
    }

    fn row_bytes(&self) -> usize {
        self.layout.width * size_of::<f32>()
    }

    /// A copy of all rows from nowhere to nowhere, to be completed.
    fn all_rows(&self) -> CUDA_MEMCPY2D {
        rows(self.layout.height, self.row_bytes())
    }

    /// Queues a copy within the device.
    ///
    /// # Safety
    ///
    /// Both sides are memory of this device, of all rows at their pitch, and the target is
    /// borrowed mutably. Both live as long as the work that they were given to.
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
        // SAFETY: upload and download describe rows that lie in this texture and
        // in a slice that is borrowed until the copy is over, which is waited for.
        unsafe { copy_rows(copy, core.stream.as_inner()) }?;
        core.synchronize()
    }
}

impl Drop for CudaTexture {
    fn drop(&mut self) {
        // Its memory goes afterwards, by `CudaMemory`.
        if let Some(object) = self.object.take() {
            self.memory.core().give_back(Resource::Texture(object));
        }
    }
}
