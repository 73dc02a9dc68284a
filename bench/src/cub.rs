//! CUB's reductions, called in the shared library that nvcc makes from `baselines/cub.cu`.

use std::ffi::{c_int, c_ulonglong, c_void};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use halo_gpu::{Buffer, Device};
use libloading::Library;

pub(super) mod work;

use super::baseline::{Baseline, CUB};
use super::check::Check;
use super::error::Error;
use super::row::Prepared;
use halo_baselines::cuda::{self, Toolchain};
use work::{RESULT_BYTES, Work};

/// The function in `baselines/cub.cu`; its documentation is there.
type Reduce = unsafe extern "C" fn(
    op: c_int,
    element: c_int,
    d_in: *const c_void,
    d_out: *mut c_void,
    n: c_ulonglong,
    d_temp: *mut c_void,
    temp_bytes: *mut usize,
    stream: *mut c_void,
) -> c_int;

/// The name of that function.
const REDUCE: &[u8] = b"halo_cub_reduce\0";

/// The contents of a result before the launch.
const POISON: u8 = 0x5a;

/// The library, loaded.
#[derive(Clone)]
pub(super) struct Cub {
    reduce: Reduce,
    /// The library that contains the function.
    _library: Rc<Library>,
}

/// The compiled library, in a temporary folder that is deleted with this value.
pub(super) struct Compiled {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Compiled {
    /// Compiles the library with nvcc for `arch`.
    pub(super) fn new(toolchain: &Toolchain, arch: &str) -> Result<Self, cuda::Error> {
        let folder = tempfile::tempdir().map_err(|source| cuda::Error::File {
            action: "make a folder below",
            path: std::env::temp_dir(),
            source,
        })?;
        Ok(Self {
            path: toolchain.cub_library(folder.path(), arch)?,
            _folder: folder,
        })
    }
}

impl Cub {
    /// Loads the compiled library; its file is not needed afterwards.
    pub(super) fn load(compiled: &Compiled) -> Result<Self, Error> {
        Self::load_file(&compiled.path)
    }

    fn load_file(path: &Path) -> Result<Self, Error> {
        let failed = |error: libloading::Error| {
            Error::Bench(format!(
                "cannot load CUB's reductions: {}",
                crate::error::chain(&error)
            ))
        };
        // SAFETY: the library is made from this repository's baselines/cub.cu. Loading it runs only
        // the CUDA runtime's registration of kernels.
        let library = unsafe { Library::new(path) }.map_err(failed)?;
        // SAFETY: that source defines the function with this type.
        let reduce = unsafe { library.get::<Reduce>(REDUCE) }.map_err(failed)?;
        Ok(Self {
            reduce: *reduce,
            _library: Rc::new(library),
        })
    }

    /// Calls the function; a `cudaError_t` other than 0 becomes an error.
    ///
    /// # Safety
    ///
    /// The addresses are of device memory large enough for the function's reads and writes, or null
    /// where `baselines/cub.cu` allows it. `stream` belongs to the current context.
    unsafe fn call(
        &self,
        what: &Work,
        output: u64,
        temp: u64,
        temp_bytes: &mut usize,
        stream: *mut c_void,
    ) -> Result<(), c_int> {
        let pointer = |address: u64| std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the caller's promise; `temp_bytes` points to one number.
        let code = unsafe {
            (self.reduce)(
                what.operation as c_int,
                what.element as c_int,
                pointer(what.input),
                pointer(output),
                what.n as c_ulonglong,
                pointer(temp),
                temp_bytes,
                stream,
            )
        };
        if code == 0 { Ok(()) } else { Err(code) }
    }
}

/// CUB's reduction of a row's data on the device.
pub(super) struct Reduction {
    cub: Cub,
    device: Device,
    work: Work,
    output: Buffer<u8>,
    temp: Buffer<u8>,
}

impl Reduction {
    /// Asks CUB for the size of its scratch memory, and allocates it.
    pub(super) fn new(cub: &Cub, device: &Device, work: Work) -> Result<Self, Error> {
        let mut temp_bytes = 0;
        device
            .with_cuda_stream(|stream| {
                // SAFETY: without scratch memory CUB launches nothing and only computes the size.
                unsafe { cub.call(&work, 0, 0, &mut temp_bytes, stream) }
            })?
            .map_err(failed)?;
        Ok(Self {
            cub: cub.clone(),
            device: device.clone(),
            work,
            output: device.alloc_filled(RESULT_BYTES, POISON)?,
            // An empty allocation has no address, and a null address has another meaning.
            temp: device.alloc_filled(temp_bytes.max(1), 0)?,
        })
    }

    fn run(&mut self) -> Result<Result<(), c_int>, halo_gpu::Error> {
        let mut temp_bytes = self.temp.len();
        let (output, temp) = (self.output.device_address(), self.temp.device_address());
        self.device.with_cuda_stream(|stream| {
            // SAFETY: the row, and with it the input, outlives its baselines; output and scratch
            // memory belong to this value and are large enough. All are used in the order of the
            // device's stream.
            unsafe {
                self.cub
                    .call(&self.work, output, temp, &mut temp_bytes, stream)
            }
        })
    }
}

impl Baseline for Reduction {
    fn name(&self) -> &str {
        CUB
    }

    fn check(&mut self, row: &mut dyn Prepared) -> Result<Check, Error> {
        row.restore()?;
        self.output.fill(POISON)?;
        self.run()?.map_err(failed)?;
        let mut result = [0; RESULT_BYTES];
        self.output.copy_to_slice(&mut result)?;
        Ok((self.work.check)(result))
    }

    fn launch(&mut self, _: &mut dyn Prepared) -> Result<(), halo_gpu::Error> {
        self.run()?.map_err(|code| halo_gpu::Error::Driver {
            kernel: None,
            call: "halo_cub_reduce",
            // Equal codes of the runtime and the driver have the same meaning.
            code: code.cast_unsigned(),
            name: "cudaError_t".to_owned(),
            text: "CUB has rejected".to_owned(),
        })
    }
}

fn failed(code: c_int) -> Error {
    Error::Bench(format!("CUB has rejected a reduction: cudaError_t {code}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_an_error_and_not_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libhalo_cub.so");
        std::fs::write(&path, "no library").unwrap();
        let error = Cub::load_file(&path).map(|_| ()).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot load CUB's reductions: "),
            "{error}"
        );
        assert!(error.contains("libhalo_cub.so"), "{error}");
    }
}
