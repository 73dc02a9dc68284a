//! Loads the driver and translates its error codes to the library's errors.

use crate::{DriverVersion, Error};
use cuda_loader::sys::CUresult;
use cust::error::{CudaError, CudaResult};

/// The number of CUDA devices.
pub(in crate::device) fn count() -> Result<usize, Error> {
    match initialise() {
        Ok(()) => {}
        Err(Error::NoDevice) => return Ok(0),
        Err(error) => return Err(error),
    }
    let count = said("cuDeviceGetCount", cust::device::Device::num_devices())?;
    Ok(count as usize)
}

/// Loads and initialises the driver.
fn initialise() -> Result<(), Error> {
    cuda_loader::load().map_err(|error| Error::DriverMissing {
        searched: error.searched.join(", "),
        reason: error.reason.clone(),
    })?;
    match cust::init(cust::CudaFlags::empty()) {
        Err(CudaError::NoDevice) => Err(Error::NoDevice),
        result => said("cuInit", result),
    }
}

/// The CUDA version that the driver supports.
pub(super) fn version() -> Result<DriverVersion, Error> {
    let version = cust::CudaApiVersion::get().map_err(|error| {
        // Not `said`, which queries the version to describe a missing function.
        described("cuDriverGetVersion", error)
    })?;
    Ok(DriverVersion {
        major: version.major().unsigned_abs(),
        minor: version.minor().unsigned_abs(),
    })
}

/// Converts the driver's error to the library's; `call` is the name of the driver function.
pub(super) fn said<T>(call: &'static str, result: CudaResult<T>) -> Result<T, Error> {
    result.map_err(|error| match CUresult(error.code()) {
        CUresult::SYMBOL_MISSING => Error::DriverTooOld {
            function: call,
            driver_version: version()
                .map_or_else(|_| "of unknown version".to_owned(), |it| it.to_string()),
        },
        _ => described(call, error),
    })
}

/// Like [`said`], for a status code of the raw driver API.
pub(super) fn checked(call: &'static str, code: CUresult) -> Result<(), Error> {
    let result = code.into_result();
    said(call, result.map_err(|code| CudaError::from_code(code.0)))
}

fn described(call: &'static str, error: CudaError) -> Error {
    let code = CUresult(error.code());
    Error::Driver {
        call,
        kernel: None,
        code: code.0,
        name: code.name(),
        text: code.text(),
    }
}

/// The error for an impossible answer from a driver that reported success.
pub(super) fn cannot_be_right(call: &'static str) -> Error {
    described(call, CudaError::from_code(CUresult::INVALID_ANSWER.0))
}
