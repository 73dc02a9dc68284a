//! Modules: code that the driver has loaded, with its kernels and globals.

use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, DropResult, ToResult};
use crate::function::Function;
use crate::memory::CopyDestination;
use crate::private::Sealed;
use cuda_loader::sys::{self, CUdeviceptr, CUmodule, jit_option};
use cust_core::DeviceCopy;
use std::ffi::{CStr, CString, c_uint, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

/// The optimisation level of the driver's compiler.
#[allow(missing_docs, reason = "as compilers call them")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum OptLevel {
    O0 = 0,
    O1 = 1,
    O2 = 2,
    O3 = 3,
    O4 = 4,
}

/// The compute capability for which the driver compiles.
#[allow(missing_docs, reason = "compute capabilities, by their numbers")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum JitTarget {
    Compute20 = 20,
    Compute21 = 21,
    Compute30 = 30,
    Compute32 = 32,
    Compute35 = 35,
    Compute37 = 37,
    Compute50 = 50,
    Compute52 = 52,
    Compute53 = 53,
    Compute60 = 60,
    Compute61 = 61,
    Compute62 = 62,
    Compute70 = 70,
    Compute72 = 72,
    Compute75 = 75,
    Compute80 = 80,
    Compute86 = 86,
    Compute87 = 87,
    Compute89 = 89,
    Compute90 = 90,
    Compute100 = 100,
    Compute120 = 120,
}

/// What the driver uses if a fat binary has no code for exactly this device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum JitFallback {
    /// Compiles PTX.
    PreferPtx = 0,
    /// Uses machine code for an older device of the same generation.
    PreferCompatibleBinary = 1,
}

/// Options for the driver's compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModuleJitOption {
    /// The most registers of a thread.
    MaxRegisters(u32),
    /// The optimisation level.
    OptLevel(OptLevel),
    /// Compiles for the device of the current context, which is the default.
    DetermineTargetFromContext,
    /// Compiles for this compute capability.
    Target(JitTarget),
    /// The preferred part of a fat binary.
    Fallback(JitFallback),
    /// Whether to generate debug information. Spelled as in cust.
    GenenerateDebugInfo(bool),
    /// Whether to generate line information for profilers.
    GenerateLineInfo(bool),
}

impl ModuleJitOption {
    /// The driver's options, and their values, each in a pointer.
    #[must_use]
    pub fn into_raw(opts: &[Self]) -> (Vec<c_uint>, Vec<*mut c_void>) {
        let value = |number: u32| std::ptr::without_provenance_mut(number as usize);
        opts.iter()
            .map(|option| match *option {
                Self::MaxRegisters(registers) => (jit_option::MAX_REGISTERS, value(registers)),
                Self::OptLevel(level) => (jit_option::OPTIMIZATION_LEVEL, value(level as u32)),
                Self::DetermineTargetFromContext => (jit_option::TARGET_FROM_CUCONTEXT, value(1)),
                Self::Target(target) => (jit_option::TARGET, value(target as u32)),
                Self::Fallback(fallback) => (jit_option::FALLBACK_STRATEGY, value(fallback as u32)),
                Self::GenenerateDebugInfo(wanted) => {
                    (jit_option::GENERATE_DEBUG_INFO, value(u32::from(wanted)))
                }
                Self::GenerateLineInfo(wanted) => {
                    (jit_option::GENERATE_LINE_INFO, value(u32::from(wanted)))
                }
            })
            .unzip()
    }
}

/// The reason why code was not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadFailure {
    /// The driver's error.
    pub error: CudaError,
    /// The log of the driver's compiler, often empty.
    pub log: String,
}

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        if !self.log.is_empty() {
            write!(f, ": {}", self.log)?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadFailure {}

/// Code that the driver has loaded.
///
/// Its kernels and globals borrow it:
///
/// ```compile_fail,E0505
/// use cust::module::Module;
///
/// # fn of(module: Module) -> cust::error::CudaResult<()> {
/// let kernel = module.get_function("kernel")?;
/// drop(module);
/// kernel.to_raw();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Module {
    raw: CUmodule,
    home: Home,
}

impl Module {
    /// Loads PTX, machine code or a fat binary from a file.
    ///
    /// # Errors
    ///
    /// [`CudaError::FileNotFound`], [`CudaError::InvalidImage`], [`CudaError::InvalidPtx`], or
    /// another error of the driver.
    pub fn from_file<P: AsRef<Path>>(path: P) -> CudaResult<Self> {
        let path = path.as_ref().as_os_str().as_encoded_bytes();
        let path = CString::new(path).map_err(|_| CudaError::FileNotFound)?;
        let home = Home::current()?;
        let mut raw = CUmodule::NULL;
        // SAFETY: the pointer is valid for one handle, the path ends in a zero byte.
        unsafe { sys::cuModuleLoad(&raw mut raw, path.as_ptr()) }.to_result()?;
        Ok(Self { raw, home })
    }

    /// Loads a fat binary, as `nvcc -fatbin` and [`Linker`](crate::link::Linker) write it.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidImage`] for bytes that are not a module, or are cut off; other errors of
    /// the driver.
    pub fn from_fatbin<T: AsRef<[u8]>>(bytes: T, options: &[ModuleJitOption]) -> CudaResult<Self> {
        Self::from_cubin(bytes, options)
    }

    /// Loads machine code, as `nvcc -cubin` and `ptxas` write it.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidImage`] for bytes that are not a module, or are cut off; other errors of
    /// the driver.
    pub fn from_cubin<T: AsRef<[u8]>>(bytes: T, options: &[ModuleJitOption]) -> CudaResult<Self> {
        let bytes = bytes.as_ref();
        if !is_whole(bytes) {
            return Err(CudaError::InvalidImage);
        }
        let home = Home::current()?;
        let (options, values) = ModuleJitOption::into_raw(options);
        // SAFETY: according to its own headers the image ends within the bytes; `into_raw` has made
        // the options.
        let raw = unsafe { load(bytes.as_ptr().cast(), options, values) }?;
        Ok(Self { raw, home })
    }

    /// Compiles PTX with the driver's compiler.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidPtx`], [`CudaError::NoBinaryForGpu`] for PTX for a newer device, or
    /// another error of the driver.
    pub fn from_ptx_cstr(cstr: &CStr, options: &[ModuleJitOption]) -> CudaResult<Self> {
        Self::compile(cstr, options).map_err(|failure| failure.error)
    }

    /// As [`Module::from_ptx_cstr`].
    ///
    /// # Errors
    ///
    /// As [`Module::from_ptx_cstr`], and [`CudaError::InvalidPtx`] for text with a zero byte.
    pub fn from_ptx<T: AsRef<str>>(string: T, options: &[ModuleJitOption]) -> CudaResult<Self> {
        let text = CString::new(string.as_ref()).map_err(|_| CudaError::InvalidPtx)?;
        Self::from_ptx_cstr(&text, options)
    }

    /// Compiles PTX with the driver's compiler, and returns its log on failure.
    ///
    /// # Errors
    ///
    /// As [`Module::from_ptx_cstr`], with the compiler's log.
    pub fn compile(ptx: &CStr, options: &[ModuleJitOption]) -> Result<Self, LoadFailure> {
        const LOG_BYTES: usize = 16 * 1024;
        let without_log = |error| LoadFailure {
            error,
            log: String::new(),
        };
        let home = Home::current().map_err(without_log)?;
        let mut log = vec![0_u8; LOG_BYTES];
        let (mut options, mut values) = ModuleJitOption::into_raw(options);
        options.extend([
            jit_option::ERROR_LOG_BUFFER,
            jit_option::ERROR_LOG_BUFFER_SIZE_BYTES,
        ]);
        values.extend([
            log.as_mut_ptr().cast::<c_void>(),
            std::ptr::without_provenance_mut(LOG_BYTES),
        ]);
        // SAFETY: the text ends in a zero byte, as PTX must. `into_raw` has made the options; the
        // log buffer has the size given with it and outlives the call.
        let loaded = unsafe { load(ptx.as_ptr().cast(), options, values) };
        let raw = loaded.map_err(|error| {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(LOG_BYTES);
            let log = String::from_utf8_lossy(&log[..end]).trim_end().to_owned();
            LoadFailure { error, log }
        })?;
        Ok(Self { raw, home })
    }

    /// As [`Module::from_ptx`] without options.
    ///
    /// # Errors
    ///
    /// As [`Module::from_ptx`].
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn from_str<T: AsRef<str>>(string: T) -> CudaResult<Self> {
        Self::from_ptx(string, &[])
    }

    /// As [`Module::from_ptx_cstr`] without options.
    ///
    /// # Errors
    ///
    /// As [`Module::from_ptx_cstr`].
    pub fn load_from_string(image: &CStr) -> CudaResult<Self> {
        Self::from_ptx_cstr(image, &[])
    }

    /// A global variable or constant.
    ///
    /// # Errors
    ///
    /// [`CudaError::NotFound`] if there is none of that name; [`CudaError::InvalidValue`] if its
    /// size is not that of a `T`.
    pub fn get_global<T: DeviceCopy>(&self, name: &CStr) -> CudaResult<Symbol<'_, T>> {
        let (address, bytes) = self.find_global(name)?;
        if bytes != size_of::<T>() {
            return Err(CudaError::InvalidValue);
        }
        Ok(Symbol {
            address,
            module: self,
            element: PhantomData,
        })
    }

    /// The address of a global variable or constant, and its size in bytes.
    ///
    /// # Errors
    ///
    /// [`CudaError::NotFound`] if there is none of that name.
    pub fn find_global(&self, name: &CStr) -> CudaResult<(CUdeviceptr, usize)> {
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the pointers are valid for an address and a size, the module is alive, the name
        // ends in a zero byte.
        unsafe {
            sys::cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, self.raw, name.as_ptr())
        }
        .to_result()?;
        Ok((address, bytes))
    }

    /// A kernel.
    ///
    /// # Errors
    ///
    /// [`CudaError::NotFound`] if there is none of that name.
    pub fn get_function<T: AsRef<str>>(&self, name: T) -> CudaResult<Function<'_>> {
        let name = CString::new(name.as_ref()).map_err(|_| CudaError::NotFound)?;
        let mut raw = sys::CUfunction::NULL;
        // SAFETY: the pointer is valid for one handle, the module is alive, the name ends in a zero
        // byte.
        unsafe { sys::cuModuleGetFunction(&raw mut raw, self.raw, name.as_ptr()) }.to_result()?;
        // SAFETY: the handle is a kernel of this module, which the result borrows.
        Ok(unsafe { Function::from_raw(raw) })
    }

    /// Unloads the module, and returns the driver's error if that fails.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the module.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(mut module: Self) -> DropResult<Self> {
        module.unload().map_err(|error| (error, module))
    }

    fn unload(&mut self) -> CudaResult<()> {
        if self.raw == CUmodule::NULL {
            return Ok(());
        }
        let _entered = self.home.enter()?;
        // SAFETY: this value owns the module. Its functions and symbols borrow it, and whoever
        // launches a kernel promises that the module stays loaded until the kernel has ended.
        unsafe { sys::cuModuleUnload(self.raw) }.to_result()?;
        self.raw = CUmodule::NULL;
        Ok(())
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has failed.
        let _: Result<(), CudaError> = self.unload();
    }
}

/// Loads an image in one of the driver's formats into the current context.
///
/// # Safety
///
/// `image` points to a complete image: text that ends in a zero byte, or an image that according to
/// its own headers ends within readable memory. There are as many values as options, each of its
/// option's type.
unsafe fn load(
    image: *const c_void,
    mut options: Vec<c_uint>,
    mut values: Vec<*mut c_void>,
) -> CudaResult<CUmodule> {
    let mut raw = CUmodule::NULL;
    // SAFETY: the pointer is valid for one handle; the rest is the caller's promise.
    unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut raw,
            image,
            options.len() as c_uint,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    }
    .to_result()?;
    Ok(raw)
}

/// Whether an image ends within these bytes, according to its own headers: the tables and sections
/// of an ELF file, or the length in the header of a fat binary.
fn is_whole(image: &[u8]) -> bool {
    const FATBIN: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();
    let end = if image.starts_with(b"\x7fELF") {
        elf_end(image)
    } else if image.starts_with(&FATBIN) {
        let header = number(image, 6, 2);
        let payload = number(image, 8, 8);
        header
            .zip(payload)
            .and_then(|(header, payload)| header.checked_add(payload))
    } else {
        None
    };
    end.is_some_and(|end| end <= image.len() as u64)
}

/// The little-endian number of `bytes` bytes, at most 8, at an offset.
fn number(image: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let field = image.get(at..at.checked_add(bytes)?)?;
    let mut whole = [0; 8];
    whole[..bytes].copy_from_slice(field);
    Some(u64::from_le_bytes(whole))
}

/// The end of the last section or table in a 64-bit ELF file.
fn elf_end(image: &[u8]) -> Option<u64> {
    const NO_BITS: u64 = 8;
    let table = |offset, size, count| {
        let (start, size) = (number(image, offset, 8)?, number(image, size, 2)?);
        let count = number(image, count, 2)?;
        Some((start, size, start.checked_add(size * count)?))
    };
    // 64-bit, little-endian.
    if image.get(4..6)? != [2, 1] {
        return None;
    }
    let (_, _, mut end) = table(32, 54, 56)?;
    let (start, size, sections) = table(40, 58, 60)?;
    end = end.max(sections);
    if end > image.len() as u64 {
        return None;
    }
    for at in (start..sections).step_by(usize::try_from(size).ok().filter(|it| *it > 0)?) {
        let at = usize::try_from(at).ok()?;
        if number(image, at + 4, 4)? != NO_BITS {
            let (offset, bytes) = (number(image, at + 24, 8)?, number(image, at + 32, 8)?);
            end = end.max(offset.checked_add(bytes)?);
        }
    }
    Some(end)
}

/// A global variable or constant of a module.
pub struct Symbol<'a, T: DeviceCopy> {
    address: CUdeviceptr,
    module: &'a Module,
    element: PhantomData<T>,
}

impl<T: DeviceCopy> fmt::Debug for Symbol<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbol({:#x})", self.address)
    }
}

impl<T: DeviceCopy> fmt::Pointer for Symbol<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}

impl<T: DeviceCopy> Sealed for Symbol<'_, T> {}
impl<T: DeviceCopy> CopyDestination<T> for Symbol<'_, T> {
    fn copy_from(&mut self, source: &T) -> CudaResult<()> {
        let _entered = self.module.home.enter()?;
        // SAFETY: the symbol has the size of a `T`, and exists as long as its module.
        unsafe {
            sys::cuMemcpyHtoD_v2(
                self.address,
                std::ptr::from_ref(source).cast(),
                size_of::<T>(),
            )
        }
        .to_result()
    }

    fn copy_to(&self, dest: &mut T) -> CudaResult<()> {
        let _entered = self.module.home.enter()?;
        // SAFETY: the symbol has the size of a `T`, and exists as long as its module.
        unsafe {
            sys::cuMemcpyDtoH_v2(
                std::ptr::from_mut(dest).cast(),
                self.address,
                size_of::<T>(),
            )
        }
        .to_result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with a header, a table, and one section of `bytes` bytes after it.
    fn elf(bytes: usize) -> Vec<u8> {
        let mut image = vec![0; 64 + 64 + bytes];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        image[40..48].copy_from_slice(&64_u64.to_le_bytes());
        image[58..60].copy_from_slice(&64_u16.to_le_bytes());
        image[60..62].copy_from_slice(&1_u16.to_le_bytes());
        image[64 + 24..64 + 32].copy_from_slice(&128_u64.to_le_bytes());
        image[64 + 32..64 + 40].copy_from_slice(&(bytes as u64).to_le_bytes());
        image
    }

    #[test]
    fn images_that_are_cut_off_anywhere_are_noticed() {
        let whole = elf(10);
        assert!(is_whole(&whole));
        for length in 0..whole.len() {
            assert!(
                !is_whole(&whole[..length]),
                "{length} bytes of {}",
                whole.len()
            );
        }

        let mut fatbin = 0xBA55_ED50_u32.to_le_bytes().to_vec();
        fatbin.extend([1, 0, 16, 0]);
        fatbin.extend(5_u64.to_le_bytes());
        fatbin.extend([0; 5]);
        assert!(is_whole(&fatbin));
        for length in 0..fatbin.len() {
            assert!(
                !is_whole(&fatbin[..length]),
                "{length} bytes of {}",
                fatbin.len()
            );
        }
        assert!(!is_whole(b"neither"));
    }

    #[test]
    fn sizes_beyond_all_numbers_are_no_images() {
        let mut image = elf(10);
        image[64 + 32..64 + 40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(!is_whole(&image));
        image[58..60].copy_from_slice(&0_u16.to_le_bytes());
        assert!(!is_whole(&image));
    }

    #[test]
    fn options_become_pairs() {
        let (options, values) = ModuleJitOption::into_raw(&[
            ModuleJitOption::MaxRegisters(40),
            ModuleJitOption::OptLevel(OptLevel::O3),
        ]);
        assert_eq!(
            options,
            [jit_option::MAX_REGISTERS, jit_option::OPTIMIZATION_LEVEL]
        );
        assert_eq!(
            values.iter().map(|it| it.addr()).collect::<Vec<_>>(),
            [40, 3]
        );
    }
}
