//! Arrays: device memory in the layout of textures and surfaces.

use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, DropResult, ToResult};
use crate::private::Sealed;
use cuda_loader::sys::{self, CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY3D, CUarray};
use std::ffi::c_uint;
use std::fmt;

/// The number type of an array.
#[allow(missing_docs, reason = "the types of the same names")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayFormat {
    U8,
    U16,
    U32,
    I8,
    I16,
    I32,
    F32,
    /// Textures cannot read it; surfaces read it as pairs of `u32`.
    F64,
}

impl ArrayFormat {
    /// The size of a number in bytes.
    #[must_use]
    pub fn mem_size(&self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The driver's `CU_AD_FORMAT_…`; doubles are pairs of `u32`.
    #[must_use]
    pub fn to_raw(self) -> c_uint {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::F64 => 3,
            Self::I8 => 8,
            Self::I16 => 9,
            Self::I32 => 10,
            Self::F32 => sys::AD_FORMAT_FLOAT,
        }
    }

    /// The number of the driver's channels per channel.
    const fn channels(self) -> c_uint {
        match self {
            Self::F64 => 2,
            _ => 1,
        }
    }
}

/// A number type that arrays can have.
pub trait ArrayPrimitive: Sealed + Copy + Default {
    /// Its format.
    fn array_format() -> ArrayFormat;
}

macro_rules! primitives {
    ($($number:ty = $format:ident),*) => {$(
        impl Sealed for $number {}
        impl ArrayPrimitive for $number {
            fn array_format() -> ArrayFormat {
                ArrayFormat::$format
            }
        }
    )*};
}

primitives!(
    u8 = U8,
    u16 = U16,
    u32 = U32,
    i8 = I8,
    i16 = I16,
    i32 = I32,
    f32 = F32,
    f64 = F64
);

bitflags::bitflags! {
    /// The kind and the uses of an array.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ArrayObjectFlags: c_uint {
        /// Layers, which textures do not interpolate between.
        const LAYERED = 0x1;
        /// Surfaces may write the array.
        const SURFACE_LDST = 0x2;
        /// The six faces of a cube.
        const CUBEMAP = 0x4;
        /// Textures may gather from the array.
        const TEXTURE_GATHER = 0x8;
    }
}

impl ArrayObjectFlags {
    /// No flags.
    #[must_use]
    pub fn new() -> Self {
        Self::empty()
    }
}

/// The extents, format and kind of an array. An extent of 0 means that the dimension is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayDescriptor {
    dims: [usize; 3],
    format: ArrayFormat,
    num_channels: c_uint,
    flags: ArrayObjectFlags,
}

macro_rules! parts {
    ($($get:ident, $set:ident: $type:ty = $($field:tt).+, $words:literal;)*) => {$(
        #[doc = $words]
        #[must_use]
        pub fn $get(&self) -> $type {
            self.$($field).+
        }

        #[doc = concat!("Sets it: ", $words)]
        pub fn $set(&mut self, $get: $type) {
            self.$($field).+ = $get;
        }
    )*};
}

impl ArrayDescriptor {
    /// An array of these extents.
    #[must_use]
    pub fn new(
        dims: [usize; 3],
        format: ArrayFormat,
        num_channels: c_uint,
        flags: ArrayObjectFlags,
    ) -> Self {
        Self {
            dims,
            format,
            num_channels,
            flags,
        }
    }

    /// An array of these extents with one channel.
    #[must_use]
    pub fn from_dims_format(dims: [usize; 3], format: ArrayFormat) -> Self {
        Self::new(dims, format, 1, ArrayObjectFlags::empty())
    }

    parts! {
        dims, set_dims: [usize; 3] = dims, "Width, height, depth.";
        format, set_format: ArrayFormat = format, "The numbers that it is of.";
        num_channels, set_num_channels: c_uint = num_channels, "Numbers of an element: 1, 2 or 4.";
        flags, set_flags: ArrayObjectFlags = flags, "What it is made for.";
    }

    /// Elements of a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.dims[0]
    }

    /// Sets the elements of a row.
    pub fn set_width(&mut self, width: usize) {
        self.dims[0] = width;
    }

    /// Rows, or 0.
    #[must_use]
    pub fn height(&self) -> usize {
        self.dims[1]
    }

    /// Sets the rows.
    pub fn set_height(&mut self, height: usize) {
        self.dims[1] = height;
    }

    /// Planes or layers, or 0.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.dims[2]
    }

    /// Sets the planes or layers.
    pub fn set_depth(&mut self, depth: usize) {
        self.dims[2] = depth;
    }

    fn to_raw(self) -> CUDA_ARRAY3D_DESCRIPTOR {
        CUDA_ARRAY3D_DESCRIPTOR {
            Width: self.dims[0],
            Height: self.dims[1],
            Depth: self.dims[2],
            Format: self.format.to_raw(),
            NumChannels: self.num_channels.saturating_mul(self.format.channels()),
            Flags: self.flags.bits(),
        }
    }

    /// The length of the array in numbers: all channels of all elements.
    fn numbers(&self) -> usize {
        let [width, height, depth] = self.dims;
        width * height.max(1) * depth.max(1) * self.num_channels as usize
    }
}

/// An array, destroyed when this is dropped.
pub struct ArrayObject {
    pub(crate) handle: CUarray,
    descriptor: ArrayDescriptor,
    pub(crate) home: Home,
}

impl fmt::Debug for ArrayObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrayObject")
            .field("descriptor", &self.descriptor)
            .finish_non_exhaustive()
    }
}

impl ArrayObject {
    /// An array with this description. Its elements are unspecified until they are written.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidValue`] for extents that the device does not support,
    /// [`CudaError::OutOfMemory`], or another error of the driver.
    pub fn from_descriptor(descriptor: &ArrayDescriptor) -> CudaResult<Self> {
        let home = Home::current()?;
        let raw = descriptor.to_raw();
        let mut handle = CUarray::NULL;
        // SAFETY: the pointers are valid for the call's reads and writes.
        unsafe { sys::cuArray3DCreate_v2(&raw mut handle, &raw const raw) }.to_result()?;
        Ok(Self {
            handle,
            descriptor: *descriptor,
            home,
        })
    }

    /// An array of three dimensions.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`].
    pub fn new(dims: [usize; 3], format: ArrayFormat, num_channels: c_uint) -> CudaResult<Self> {
        Self::of(dims, format, num_channels, ArrayObjectFlags::empty())
    }

    /// An array of one dimension.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`].
    pub fn new_1d(width: usize, format: ArrayFormat, num_channels: c_uint) -> CudaResult<Self> {
        Self::new([width, 0, 0], format, num_channels)
    }

    /// An array of two dimensions.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`].
    pub fn new_2d(dims: [usize; 2], format: ArrayFormat, num_channels: c_uint) -> CudaResult<Self> {
        Self::new([dims[0], dims[1], 0], format, num_channels)
    }

    /// Layers of two dimensions.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`].
    pub fn new_layered(
        dims: [usize; 2],
        num_layers: usize,
        format: ArrayFormat,
        num_channels: c_uint,
    ) -> CudaResult<Self> {
        let dims = [dims[0], dims[1], num_layers];
        Self::of(dims, format, num_channels, ArrayObjectFlags::LAYERED)
    }

    /// Layers of one dimension.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`].
    pub fn new_layered_1d(
        width: usize,
        num_layers: usize,
        format: ArrayFormat,
        num_channels: c_uint,
    ) -> CudaResult<Self> {
        Self::new_layered([width, 0], num_layers, format, num_channels)
    }

    /// The six faces of a cube.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`].
    pub fn new_cubemap(side: usize, format: ArrayFormat, num_channels: c_uint) -> CudaResult<Self> {
        Self::of(
            [side, side, 6],
            format,
            num_channels,
            ArrayObjectFlags::CUBEMAP,
        )
    }

    /// Layers of the six faces of a cube.
    ///
    /// # Errors
    ///
    /// As [`ArrayObject::from_descriptor`].
    pub fn new_layered_cubemap(
        side: usize,
        num_layers: usize,
        format: ArrayFormat,
        num_channels: c_uint,
    ) -> CudaResult<Self> {
        let sides = num_layers.checked_mul(6).ok_or(CudaError::InvalidValue)?;
        let flags = ArrayObjectFlags::CUBEMAP | ArrayObjectFlags::LAYERED;
        Self::of([side, side, sides], format, num_channels, flags)
    }

    fn of(
        dims: [usize; 3],
        format: ArrayFormat,
        num_channels: c_uint,
        flags: ArrayObjectFlags,
    ) -> CudaResult<Self> {
        Self::from_descriptor(&ArrayDescriptor::new(dims, format, num_channels, flags))
    }

    /// The description of the array.
    ///
    /// # Errors
    ///
    /// None.
    pub fn descriptor(&self) -> CudaResult<ArrayDescriptor> {
        Ok(self.descriptor)
    }

    /// Destroys the array, and returns the driver's error if that fails.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the array.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(mut array: Self) -> DropResult<Self> {
        array.destroy().map_err(|error| (error, array))
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.handle == CUarray::NULL {
            return Ok(());
        }
        let _entered = self.home.enter()?;
        // SAFETY: this value owns the array, so no texture or surface owns it.
        unsafe { sys::cuArrayDestroy(self.handle) }.to_result()?;
        self.handle = CUarray::NULL;
        Ok(())
    }

    /// Copies all numbers from the host.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Panics
    ///
    /// If the number or the size of the elements differs.
    pub fn copy_from<T: ArrayPrimitive, U: AsRef<[T]>>(&mut self, val: &U) -> CudaResult<()> {
        let numbers = val.as_ref();
        self.check::<T>(numbers.len());
        self.copy(CUDA_MEMCPY3D {
            srcMemoryType: sys::MEMORYTYPE_HOST,
            srcHost: numbers.as_ptr().cast(),
            dstMemoryType: sys::MEMORYTYPE_ARRAY,
            dstArray: self.handle,
            ..self.everything()
        })
    }

    /// Copies all numbers to the host.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Panics
    ///
    /// If the number or the size of the elements differs.
    pub fn copy_to<T: ArrayPrimitive, U: AsMut<[T]>>(&self, val: &mut U) -> CudaResult<()> {
        let numbers = val.as_mut();
        self.check::<T>(numbers.len());
        self.copy(CUDA_MEMCPY3D {
            srcMemoryType: sys::MEMORYTYPE_ARRAY,
            srcArray: self.handle,
            dstMemoryType: sys::MEMORYTYPE_HOST,
            dstHost: numbers.as_mut_ptr().cast(),
            ..self.everything()
        })
    }

    /// All numbers, copied to the host.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Panics
    ///
    /// If the size of the elements differs.
    pub fn as_host_vec<T: ArrayPrimitive>(&self) -> CudaResult<Vec<T>> {
        let mut numbers = vec![T::default(); self.descriptor.numbers()];
        self.copy_to(&mut numbers)?;
        Ok(numbers)
    }

    fn check<T: ArrayPrimitive>(&self, given: usize) {
        let (numbers, format) = (self.descriptor.numbers(), self.descriptor.format);
        assert!(
            size_of::<T>() == format.mem_size() && given == numbers,
            "an array of {numbers} numbers ({format:?}) cannot be copied from or to {given} of {} bytes",
            size_of::<T>()
        );
    }

    /// The description of a copy of the whole array, without source and destination.
    fn everything(&self) -> CUDA_MEMCPY3D {
        let [width, height, depth] = self.descriptor.dims;
        let row = width * self.descriptor.num_channels as usize * self.descriptor.format.mem_size();
        CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: 0,
            srcHost: std::ptr::null(),
            srcDevice: 0,
            srcArray: CUarray::NULL,
            reserved0: std::ptr::null_mut(),
            srcPitch: row,
            srcHeight: height.max(1),
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: 0,
            dstHost: std::ptr::null_mut(),
            dstDevice: 0,
            dstArray: CUarray::NULL,
            reserved1: std::ptr::null_mut(),
            dstPitch: row,
            dstHeight: height.max(1),
            WidthInBytes: row,
            Height: height.max(1),
            Depth: depth.max(1),
        }
    }

    fn copy(&self, copy: CUDA_MEMCPY3D) -> CudaResult<()> {
        let _entered = self.home.enter()?;
        // SAFETY: the callers describe this array and host memory of the same length, which is
        // borrowed until the copy has ended.
        unsafe { sys::cuMemcpy3D_v2(&raw const copy) }.to_result()
    }
}

impl Drop for ArrayObject {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has failed.
        let _: Result<(), CudaError> = self.destroy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_pairs_for_the_driver() {
        let mut descriptor = ArrayDescriptor::from_dims_format([5, 3, 0], ArrayFormat::F64);
        let raw = descriptor.to_raw();
        assert_eq!((raw.Format, raw.NumChannels), (3, 2));
        assert_eq!(descriptor.numbers(), 15);
        descriptor.set_height(0);
        descriptor.set_num_channels(2);
        assert_eq!(descriptor.numbers(), 10);
    }
}
