//! Textures: arrays that kernels read through the texture units.

use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, ToResult};
use crate::memory::array::{ArrayDescriptor, ArrayFormat, ArrayObject};
use cuda_loader::sys::{self, CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC};
use std::ffi::{c_uint, c_ulonglong};

/// The value that a texture reads outside its extents. Spelled as in cust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum TextureAdressingMode {
    /// As if the array were repeated; for normalised coordinates only.
    Wrap = 0,
    /// The nearest element.
    Clamp = 1,
    /// As if the array were mirrored; for normalised coordinates only.
    Mirror = 2,
    /// The border colour.
    Border = 3,
}

/// The value that a texture reads between elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum TextureFilterMode {
    /// The nearest element.
    Point = 0,
    /// Linear interpolation in each coordinate.
    Linear = 1,
}

bitflags::bitflags! {
    /// How a texture reads.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct TextureDescriptorFlags: c_uint {
        /// Integers stay integers; otherwise reads return numbers from 0 or -1 to 1.
        const READ_AS_INTEGER = 0x01;
        /// Coordinates go from 0 to 1; otherwise they count elements.
        const NORMALIZED_COORDINATES = 0x02;
        /// Disables optimised interpolation between mipmap levels.
        const DISABLE_TRILINEAR_OPTIMIZATION = 0x20;
    }
}

/// How a texture reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TextureDescriptor {
    /// The address mode along each axis. Spelled as in cust.
    pub adress_modes: [TextureAdressingMode; 3],
    /// The filter mode between elements.
    pub filter_mode: TextureFilterMode,
    /// The form of coordinates and of the values it returns.
    pub flags: TextureDescriptorFlags,
    /// The maximum anisotropy, from 1 to 16.
    pub max_anisotropy: c_uint,
    /// The filter mode between mipmap levels.
    pub mipmap_filter_mode: TextureFilterMode,
    /// The bias that is added to the mipmap level.
    pub mipmap_level_bias: f32,
    /// The lowest mipmap level.
    pub min_mipmap_level_clamp: f32,
    /// The highest mipmap level.
    pub max_mipmap_level_clamp: f32,
    /// The value outside, with [`TextureAdressingMode::Border`].
    pub border_color: [f32; 4],
}

impl Default for TextureDescriptor {
    fn default() -> Self {
        Self {
            adress_modes: [TextureAdressingMode::Clamp; 3],
            filter_mode: TextureFilterMode::Point,
            flags: TextureDescriptorFlags::empty(),
            max_anisotropy: 1,
            mipmap_filter_mode: TextureFilterMode::Point,
            mipmap_level_bias: 0.0,
            min_mipmap_level_clamp: 0.0,
            max_mipmap_level_clamp: 0.0,
            border_color: [0.0, 0.0, 0.0, 1.0],
        }
    }
}

impl TextureDescriptor {
    /// Its value in the driver's interface.
    #[must_use]
    pub fn to_raw(self) -> CUDA_TEXTURE_DESC {
        CUDA_TEXTURE_DESC {
            addressMode: self.adress_modes.map(|mode| mode as c_uint),
            filterMode: self.filter_mode as c_uint,
            flags: self.flags.bits(),
            maxAnisotropy: self.max_anisotropy,
            mipmapFilterMode: self.mipmap_filter_mode as c_uint,
            mipmapLevelBias: self.mipmap_level_bias,
            minMipmapLevelClamp: self.min_mipmap_level_clamp,
            maxMipmapLevelClamp: self.max_mipmap_level_clamp,
            borderColor: self.border_color,
            reserved: [0; 12],
        }
    }
}

/// The format in which a texture reads an array: type and channels, or blocks of a compressed
/// format.
#[allow(missing_docs, reason = "the formats of the same names")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ResourceViewFormat {
    None = 0,
    U8x1 = 1,
    U8x2 = 2,
    U8x4 = 3,
    I8x1 = 4,
    I8x2 = 5,
    I8x4 = 6,
    U16x1 = 7,
    U16x2 = 8,
    U16x4 = 9,
    I16x1 = 10,
    I16x2 = 11,
    I16x4 = 12,
    U32x1 = 13,
    U32x2 = 14,
    U32x4 = 15,
    I32x1 = 16,
    I32x2 = 17,
    I32x4 = 18,
    F16x1 = 19,
    F16x2 = 20,
    F16x4 = 21,
    F32x1 = 22,
    F32x2 = 23,
    F32x4 = 24,
    BC1 = 25,
    BC2 = 26,
    BC3 = 27,
    BC4U = 28,
    BC4S = 29,
    BC5U = 30,
    BC5S = 31,
    BC6HU = 32,
    BC6HS = 33,
    BC7 = 34,
}

impl ResourceViewFormat {
    /// The format of an array itself.
    ///
    /// # Panics
    ///
    /// For doubles, which textures cannot read, and unless there are 1, 2 or 4 channels.
    #[must_use]
    pub fn from_array_format(format: ArrayFormat, num_channels: c_uint) -> Self {
        let [one, two, four] = match format {
            ArrayFormat::U8 => [Self::U8x1, Self::U8x2, Self::U8x4],
            ArrayFormat::U16 => [Self::U16x1, Self::U16x2, Self::U16x4],
            ArrayFormat::U32 => [Self::U32x1, Self::U32x2, Self::U32x4],
            ArrayFormat::I8 => [Self::I8x1, Self::I8x2, Self::I8x4],
            ArrayFormat::I16 => [Self::I16x1, Self::I16x2, Self::I16x4],
            ArrayFormat::I32 => [Self::I32x1, Self::I32x2, Self::I32x4],
            ArrayFormat::F32 => [Self::F32x1, Self::F32x2, Self::F32x4],
            ArrayFormat::F64 => panic!(
                "textures cannot hold f64; read pairs of u32, and combine them in the kernel"
            ),
        };
        match num_channels {
            1 => one,
            2 => two,
            4 => four,
            other => panic!("textures have 1, 2 or 4 channels, not {other}"),
        }
    }
}

/// A view of an array: the format and the part that a texture reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceViewDescriptor {
    /// The format of the elements.
    pub format: ResourceViewFormat,
    /// Elements of a row.
    pub width: usize,
    /// Rows, or 0.
    pub height: usize,
    /// Planes, or 0.
    pub depth: usize,
    /// 0 without mipmaps.
    pub first_mipmap_level: c_uint,
    /// 0 without mipmaps.
    pub last_mipmap_level: c_uint,
    /// 0 without layers.
    pub first_layer: c_uint,
    /// 0 without layers.
    pub last_layer: c_uint,
}

impl ResourceViewDescriptor {
    /// The view of a whole array in its own format.
    ///
    /// # Panics
    ///
    /// As [`ResourceViewFormat::from_array_format`].
    #[must_use]
    pub fn from_array_desc(desc: &ArrayDescriptor) -> Self {
        Self {
            format: ResourceViewFormat::from_array_format(desc.format(), desc.num_channels()),
            width: desc.width(),
            height: desc.height(),
            depth: desc.depth(),
            first_mipmap_level: 0,
            last_mipmap_level: 0,
            first_layer: 0,
            last_layer: 0,
        }
    }

    /// Its value in the driver's interface.
    #[must_use]
    pub fn to_raw(self) -> CUDA_RESOURCE_VIEW_DESC {
        CUDA_RESOURCE_VIEW_DESC {
            format: self.format as c_uint,
            width: self.width,
            height: self.height,
            depth: self.depth,
            firstMipmapLevel: self.first_mipmap_level,
            lastMipmapLevel: self.last_mipmap_level,
            firstLayer: self.first_layer,
            lastLayer: self.last_layer,
            reserved: [0; 16],
        }
    }
}

bitflags::bitflags! {
    /// There are no flags yet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ResourceDescriptorFlags: c_uint {}
}

/// The memory of a texture or a surface.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResourceType {
    /// An array.
    Array {
        /// The array, which the texture or surface will own.
        array: ArrayObject,
    },
}

/// The memory of a texture or a surface.
#[derive(Debug)]
pub struct ResourceDescriptor {
    /// No flags.
    pub flags: ResourceDescriptorFlags,
    /// The array.
    pub ty: ResourceType,
}

impl ResourceDescriptor {
    /// Its value in the driver's interface, and the array, which must outlive all objects made with
    /// it.
    pub(crate) fn into_raw(self) -> (CUDA_RESOURCE_DESC, ArrayObject) {
        let ResourceType::Array { array } = self.ty;
        let raw = CUDA_RESOURCE_DESC {
            resType: sys::RESOURCE_TYPE_ARRAY,
            res: sys::CUDA_RESOURCE_DESC_res {
                // Initialises the whole union first, because the driver may read all of it.
                pitch2D: sys::CUDA_RESOURCE_DESC_pitch2D::ZERO,
            },
            flags: self.flags.bits(),
        };
        let mut raw = raw;
        raw.res.array = array.handle;
        (raw, array)
    }
}

/// Rows of elements in device memory, for a texture without an array.
#[derive(Debug, Clone, Copy)]
pub struct Pitched {
    /// The address of the first element, aligned to
    /// [`TextureAlignment`](crate::device::DeviceAttribute::TextureAlignment).
    pub address: sys::CUdeviceptr,
    /// The number type of the elements.
    pub format: ArrayFormat,
    /// The numbers per element: 1, 2 or 4.
    pub num_channels: c_uint,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// The bytes from the start of a row to the next, a multiple of
    /// [`TexturePitchAlignment`](crate::device::DeviceAttribute::TexturePitchAlignment).
    pub pitch_in_bytes: usize,
}

/// The handle of a texture, which kernels take.
pub type TextureHandle = c_ulonglong;

/// A texture, destroyed when this is dropped, and its array after it.
#[derive(Debug)]
pub struct Texture {
    handle: TextureHandle,
    home: Home,
    /// `None` for [`Texture::from_pitched`], and after [`Texture::into_array`].
    array: Option<ArrayObject>,
}

impl Texture {
    /// The handle that kernels take.
    #[must_use]
    pub fn handle(&self) -> TextureHandle {
        self.handle
    }

    /// A texture with these descriptions.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn new(
        resource_desc: ResourceDescriptor,
        texture_desc: TextureDescriptor,
        resource_view_desc: Option<ResourceViewDescriptor>,
    ) -> CudaResult<Self> {
        let (resource, array) = resource_desc.into_raw();
        let view = resource_view_desc.map(ResourceViewDescriptor::to_raw);
        let home = array.home.clone();
        let handle = {
            let _entered = home.enter()?;
            // SAFETY: the array is alive, and kept below.
            unsafe { create(&resource, texture_desc, view.as_ref()) }?
        };
        Ok(Self {
            handle,
            home,
            array: Some(array),
        })
    }

    /// A texture of a whole array, whose coordinates count elements, and which reads the nearest
    /// element.
    ///
    /// # Errors
    ///
    /// As [`Texture::new`].
    pub fn from_array(array: ArrayObject) -> CudaResult<Self> {
        let resource = ResourceDescriptor {
            flags: ResourceDescriptorFlags::empty(),
            ty: ResourceType::Array { array },
        };
        Self::new(resource, TextureDescriptor::default(), None)
    }

    /// A texture of rows in device memory.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Safety
    ///
    /// The rows are valid memory, which stays allocated until the texture is destroyed.
    pub unsafe fn from_pitched(rows: Pitched, texture_desc: TextureDescriptor) -> CudaResult<Self> {
        let home = Home::current()?;
        let resource = CUDA_RESOURCE_DESC {
            resType: sys::RESOURCE_TYPE_PITCH2D,
            res: sys::CUDA_RESOURCE_DESC_res {
                pitch2D: sys::CUDA_RESOURCE_DESC_pitch2D {
                    devPtr: rows.address,
                    format: rows.format.to_raw(),
                    numChannels: rows.num_channels,
                    width: rows.width,
                    height: rows.height,
                    pitchInBytes: rows.pitch_in_bytes,
                    ..sys::CUDA_RESOURCE_DESC_pitch2D::ZERO
                },
            },
            flags: 0,
        };
        Ok(Self {
            // SAFETY: the caller's promise.
            handle: unsafe { create(&resource, texture_desc, None) }?,
            home,
            array: None,
        })
    }

    /// Destroys the texture, and returns its array.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn into_array(mut self) -> CudaResult<Option<ArrayObject>> {
        self.destroy()?;
        Ok(self.array.take())
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.handle == 0 {
            return Ok(());
        }
        let _entered = self.home.enter()?;
        // SAFETY: the texture belongs to this value, and nothing uses it afterwards.
        unsafe { sys::cuTexObjectDestroy(self.handle) }.to_result()?;
        self.handle = 0;
        Ok(())
    }
}

/// Makes a texture in the current context.
///
/// # Safety
///
/// The memory that the resource names is valid, and stays allocated until the texture is destroyed.
unsafe fn create(
    resource: &CUDA_RESOURCE_DESC,
    reading: TextureDescriptor,
    view: Option<&CUDA_RESOURCE_VIEW_DESC>,
) -> CudaResult<TextureHandle> {
    let reading = reading.to_raw();
    let mut handle = 0;
    // SAFETY: the pointers are valid for what the driver writes and reads through them; without a
    // view the texture reads the whole resource in its own format.
    unsafe {
        sys::cuTexObjectCreate(
            &raw mut handle,
            resource,
            &raw const reading,
            view.map_or(std::ptr::null(), std::ptr::from_ref),
        )
    }
    .to_result()?;
    Ok(handle)
}

impl Drop for Texture {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has failed.
        let _: Result<(), CudaError> = self.destroy();
    }
}
