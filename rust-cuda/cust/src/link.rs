//! Linking several pieces of code into one.

use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, ToResult};
use crate::sys::{self, CUlinkState};
use std::ffi::{CString, c_uint};

/// Formats that the driver links, `CU_JIT_INPUT_…`.
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
    /// Links for the device of the current context.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn new() -> CudaResult<Self> {
        let home = Home::current()?;
        let mut raw = CUlinkState::NULL;
        // SAFETY: the pointer is good for one handle; there are no options.
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
    /// [`CudaError::InvalidPtx`], or what else the driver says.
    pub fn add_ptx(&mut self, ptx: impl AsRef<str>) -> CudaResult<()> {
        let text = CString::new(ptx.as_ref()).map_err(|_| CudaError::InvalidPtx)?;
        self.add(PTX, text.as_bytes_with_nul())
    }

    /// Adds machine code.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidImage`], or what else the driver says.
    pub fn add_cubin(&mut self, cubin: impl AsRef<[u8]>) -> CudaResult<()> {
        self.add(CUBIN, cubin.as_ref())
    }

    /// Adds a fat binary.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidImage`], or what else the driver says.
    pub fn add_fatbin(&mut self, fatbin: impl AsRef<[u8]>) -> CudaResult<()> {
        self.add(FATBIN, fatbin.as_ref())
    }

    fn add(&mut self, format: c_uint, code: &[u8]) -> CudaResult<()> {
        let _entered = self.home.enter()?;
        // SAFETY: the driver reads as many bytes as are given with them, and keeps none; the
        // name ends in a zero byte; there are no options.
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

    /// The machine code of all of it, for [`Module::from_cubin`](crate::module::Module::from_cubin).
    ///
    /// # Errors
    ///
    /// What the driver says, such as [`CudaError::NotFound`] for symbols that nothing
    /// defines.
    pub fn complete(self) -> CudaResult<Vec<u8>> {
        let _entered = self.home.enter()?;
        let (mut code, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: the pointers are good for an address and a size.
        unsafe { sys::cuLinkComplete(self.raw, &raw mut code, &raw mut bytes) }.to_result()?;
        if code.is_null() {
            return Err(CudaError::from_code(sys::CUresult::INVALID_ANSWER.0));
        }
        // SAFETY: the driver's memory, of that size, which stays until the state goes below.
        Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), bytes) }.to_vec())
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        let Ok(_entered) = self.home.enter() else {
            return;
        };
        // SAFETY: the state is ours. A failure means that the driver is shutting down.
        let _ = unsafe { sys::cuLinkDestroy(self.raw) };
    }
}
