//! Links several pieces of device code into one.

use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, ToResult};
use cuda_loader::sys::{self, CUlinkState};
use std::ffi::{CString, c_uint};

/// The formats that the driver links, `CU_JIT_INPUT_…`.
const CUBIN: c_uint = 0;
const PTX: c_uint = 1;
const FATBIN: c_uint = 2;

/// Links PTX, machine code and fat binaries into machine code.
#[derive(Debug)]
pub struct Linker {
    raw: CUlinkState,
    home: Home,
}

impl Linker {
    /// A linker for the device of the current context.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn new() -> CudaResult<Self> {
        let home = Home::current()?;
        let mut raw = CUlinkState::NULL;
        // SAFETY: the pointer is valid for one handle, and the call passes no options.
        unsafe {
            sys::cuLinkCreate_v2(0, std::ptr::null_mut(), std::ptr::null_mut(), &raw mut raw)
        }
        .to_result()?;
        Ok(Self { raw, home })
    }

    /// Adds PTX.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidPtx`], or another error of the driver.
    pub fn add_ptx(&mut self, ptx: impl AsRef<str>) -> CudaResult<()> {
        let text = CString::new(ptx.as_ref()).map_err(|_| CudaError::InvalidPtx)?;
        self.add(PTX, text.as_bytes_with_nul())
    }

    /// Adds machine code.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidImage`], or another error of the driver.
    pub fn add_cubin(&mut self, cubin: impl AsRef<[u8]>) -> CudaResult<()> {
        self.add(CUBIN, cubin.as_ref())
    }

    /// Adds a fat binary.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidImage`], or another error of the driver.
    pub fn add_fatbin(&mut self, fatbin: impl AsRef<[u8]>) -> CudaResult<()> {
        self.add(FATBIN, fatbin.as_ref())
    }

    fn add(&mut self, format: c_uint, code: &[u8]) -> CudaResult<()> {
        let _entered = self.home.enter()?;
        // SAFETY: the driver reads the given number of bytes of `code`, and keeps no pointer to
        // them; the name ends in a zero byte; the call passes no options.
        unsafe {
            sys::cuLinkAddData_v2(
                self.raw,
                format,
                code.as_ptr().cast_mut().cast(),
                code.len(),
                c"".as_ptr(),
                0,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        }
        .to_result()
    }

    /// Links everything into machine code for
    /// [`Module::from_cubin`](crate::module::Module::from_cubin).
    ///
    /// # Errors
    ///
    /// The error that the driver reports, such as [`CudaError::NotFound`] for undefined symbols.
    pub fn complete(self) -> CudaResult<Vec<u8>> {
        let _entered = self.home.enter()?;
        let (mut code, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: the pointers are valid for an address and a size.
        unsafe { sys::cuLinkComplete(self.raw, &raw mut code, &raw mut bytes) }.to_result()?;
        if code.is_null() {
            return Err(CudaError::from_code(sys::CUresult::INVALID_ANSWER.0));
        }
        // SAFETY: the driver's memory has that size, and stays until the linker state is destroyed
        // below.
        Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), bytes) }.to_vec())
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        let Ok(_entered) = self.home.enter() else {
            return;
        };
        // SAFETY: this value owns the linker state. A failure means that the driver is shutting
        // down.
        let _ = unsafe { sys::cuLinkDestroy(self.raw) };
    }
}
