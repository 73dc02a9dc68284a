//! Functions: the kernels of a module and their launches.

use crate::context::{CacheConfig, SharedMemoryConfig};
use crate::error::{CudaError, CudaResult, ToResult};
use cuda_loader::sys::{self, CUfunction};
use cust_core::DeviceCopy;
use std::ffi::{c_int, c_uint};
use std::marker::PhantomData;

macro_rules! extents {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name {
            /// Along x.
            pub x: u32,
            /// Along y.
            pub y: u32,
            /// Along z.
            pub z: u32,
        }

        impl $name {
            /// One dimension.
            #[must_use]
            pub const fn x(x: u32) -> Self {
                Self { x, y: 1, z: 1 }
            }

            /// Two dimensions.
            #[must_use]
            pub const fn xy(x: u32, y: u32) -> Self {
                Self { x, y, z: 1 }
            }

            /// Three dimensions.
            #[must_use]
            pub const fn xyz(x: u32, y: u32, z: u32) -> Self {
                Self { x, y, z }
            }

            /// The product of the extents, in the driver's type.
            fn count(&self) -> CudaResult<c_int> {
                let planes = u64::from(self.x) * u64::from(self.y);
                planes
                    .checked_mul(u64::from(self.z))
                    .and_then(|count| c_int::try_from(count).ok())
                    .ok_or(CudaError::InvalidValue)
            }
        }

        impl From<u32> for $name {
            fn from(x: u32) -> Self {
                Self::x(x)
            }
        }

        impl From<(u32, u32)> for $name {
            fn from((x, y): (u32, u32)) -> Self {
                Self::xy(x, y)
            }
        }

        impl From<(u32, u32, u32)> for $name {
            fn from((x, y, z): (u32, u32, u32)) -> Self {
                Self::xyz(x, y, z)
            }
        }

        impl From<&Self> for $name {
            fn from(other: &Self) -> Self {
                *other
            }
        }
    };
}

extents! {
    /// Blocks of a grid.
    GridSize
}

extents! {
    /// Threads of a block.
    BlockSize
}

/// The attributes of [`Function::get_attribute`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum FunctionAttribute {
    /// The most threads of a block, given the kernel's registers.
    MaxThreadsPerBlock = 0,
    /// Static shared memory of a block, in bytes.
    SharedMemorySizeBytes = 1,
    /// Constants of the module, in bytes.
    ConstSizeBytes = 2,
    /// Local memory of a thread, in bytes.
    LocalSizeBytes = 3,
    /// Registers of a thread.
    NumRegisters = 4,
    /// The PTX version of the code, as 10 × major + minor.
    PtxVersion = 5,
    /// The compute capability for which the code was compiled, as 10 × major + minor.
    BinaryVersion = 6,
    /// Whether global loads use the L1 cache.
    CacheModeCa = 7,
    /// The most dynamic shared memory that a launch may request, in bytes.
    MaxDynamicSharedSizeBytes = 8,
}

/// A kernel of a module.
#[derive(Debug)]
pub struct Function<'a> {
    raw: CUfunction,
    /// Borrows the module.
    module: PhantomData<&'a ()>,
}

impl Function<'_> {
    /// The kernel with this handle.
    ///
    /// # Safety
    ///
    /// The handle belongs to a kernel, and its module stays loaded as long as the result lives.
    #[must_use]
    pub unsafe fn from_raw(raw: CUfunction) -> Self {
        Self {
            raw,
            module: PhantomData,
        }
    }

    /// An attribute of the kernel.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_attribute(&self, attr: FunctionAttribute) -> CudaResult<i32> {
        let mut value = 0;
        // SAFETY: the pointer is valid for one number, the module is alive.
        unsafe { sys::cuFuncGetAttribute(&raw mut value, attr as c_int, self.raw) }.to_result()?;
        Ok(value)
    }

    /// Sets how the kernel divides the L1 cache.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_cache_config(&mut self, config: CacheConfig) -> CudaResult<()> {
        // SAFETY: the module is alive.
        unsafe { sys::cuFuncSetCacheConfig(self.raw, config as c_uint) }.to_result()
    }

    /// Sets the bank width of shared memory for the kernel.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn set_shared_memory_config(&mut self, cfg: SharedMemoryConfig) -> CudaResult<()> {
        // SAFETY: the module is alive.
        unsafe { sys::cuFuncSetSharedMemConfig(self.raw, cfg as c_uint) }.to_result()
    }

    /// Allows launches with up to this many bytes of dynamic shared memory.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidValue`] if the device has less.
    pub fn set_max_dynamic_shared_memory(&self, bytes: u32) -> CudaResult<()> {
        let bytes = c_int::try_from(bytes).map_err(|_| CudaError::InvalidValue)?;
        // SAFETY: the module is alive.
        unsafe {
            sys::cuFuncSetAttribute(
                self.raw,
                sys::function_attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES,
                bytes,
            )
        }
        .to_result()
    }

    /// The driver's handle, which stays valid as long as the module lives.
    #[must_use]
    pub fn to_raw(&self) -> CUfunction {
        self.raw
    }

    /// The most dynamic shared memory, in bytes, that a block may have so that this many blocks fit
    /// on a multiprocessor.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn available_dynamic_shared_memory_per_block(
        &self,
        blocks: GridSize,
        block_size: BlockSize,
    ) -> CudaResult<usize> {
        let mut bytes = 0;
        // SAFETY: the pointer is valid for one size, the module is alive.
        unsafe {
            sys::cuOccupancyAvailableDynamicSMemPerBlock(
                &raw mut bytes,
                self.raw,
                blocks.count()?,
                block_size.count()?,
            )
        }
        .to_result()?;
        Ok(bytes)
    }

    /// The number of blocks that a multiprocessor holds at a time.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn max_active_blocks_per_multiprocessor(
        &self,
        block_size: BlockSize,
        dynamic_smem_size: usize,
    ) -> CudaResult<u32> {
        let mut blocks = 0;
        // SAFETY: the pointer is valid for one number, the module is alive.
        unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.raw,
                block_size.count()?,
                dynamic_smem_size,
            )
        }
        .to_result()?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// A launch that fills the device: the least number of blocks, and the threads of a block. A
    /// block has at most `block_size_limit` threads; 0 means no limit.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn suggested_launch_configuration(
        &self,
        dynamic_smem_size: usize,
        block_size_limit: BlockSize,
    ) -> CudaResult<(u32, u32)> {
        let (mut grid, mut block) = (0, 0);
        // SAFETY: the pointers are valid for one number each, the module is alive; null means that
        // the shared memory does not depend on the block size.
        unsafe {
            sys::cuOccupancyMaxPotentialBlockSize(
                &raw mut grid,
                &raw mut block,
                self.raw,
                std::ptr::null(),
                dynamic_smem_size,
                block_size_limit.count()?,
            )
        }
        .to_result()?;
        let number = |it| u32::try_from(it).unwrap_or(0);
        Ok((number(grid), number(block)))
    }
}

/// Launches a kernel: `launch!(kernel<<<grid, block, shared, stream>>>(parameters…))`.
///
/// The kernel is a [`Function`], or `module.name`, which the macro looks up. Grid and block are
/// numbers, tuples, or [`GridSize`] and [`BlockSize`]; `shared` is dynamic shared memory in bytes.
/// Parameters are [`DeviceCopy`](crate::memory::DeviceCopy) and have the kernel's own types: a
/// `usize` for a `usize`, a [`DevicePointer`](crate::memory::DevicePointer) for an address. The
/// macro returns a [`CudaResult`] as soon as the launch is queued.
///
/// # Safety
///
/// The call is unsafe: nothing checks the parameters against the kernel's, nor the kernel's use of
/// them. Memory that the kernel uses must stay allocated until it has ended, and meanwhile nothing
/// else may use memory that it writes.
#[macro_export]
macro_rules! launch {
    ($module:ident . $function:ident <<<$grid:expr, $block:expr, $shared:expr, $stream:ident>>>( $($arg:expr),* $(,)? )) => {
        match $module.get_function(::core::stringify!($function)) {
            ::core::result::Result::Ok(function) => {
                $crate::launch!(function<<<$grid, $block, $shared, $stream>>>($($arg),*))
            }
            ::core::result::Result::Err(error) => ::core::result::Result::Err(error),
        }
    };
    ($function:ident <<<$grid:expr, $block:expr, $shared:expr, $stream:ident>>>( $($arg:expr),* $(,)? )) => {
        $stream.launch(
            &$function,
            $grid,
            $block,
            $shared,
            &$crate::function::parameters([$($crate::function::parameter(&$arg)),*]),
        )
    };
}

/// A pointer to a parameter, for the driver to read. A value of size zero has none: the compiler
/// leaves it out of the entry point's parameters.
#[doc(hidden)]
pub fn parameter<T: DeviceCopy>(value: &T) -> Option<*mut std::ffi::c_void> {
    (size_of::<T>() > 0).then(|| std::ptr::from_ref(value).cast_mut().cast())
}

/// The parameters of the entry point, in order.
#[doc(hidden)]
pub fn parameters<const N: usize>(
    all: [Option<*mut std::ffi::c_void>; N],
) -> Vec<*mut std::ffi::c_void> {
    all.into_iter().flatten().collect()
}
