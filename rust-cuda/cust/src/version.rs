//! Versions of CUDA.

use crate::error::{CudaError, CudaResult, ToResult};
use cuda_loader::sys;
use std::ffi::c_int;

/// A version of CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaApiVersion {
    /// 1000 × major + 10 × minor.
    pub(crate) version: i32,
}

impl CudaApiVersion {
    /// The newest version that the installed driver supports.
    ///
    /// # Errors
    ///
    /// [`CudaError::NotInitialized`] before [`init`](crate::init).
    pub fn get() -> CudaResult<Self> {
        let mut version: c_int = 0;
        // SAFETY: the pointer is valid for one integer.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }.to_result()?;
        match version {
            ..0 => Err(CudaError::from_code(sys::CUresult::INVALID_ANSWER.0)),
            version => Ok(Self { version }),
        }
    }

    /// The 12 of 12.4.
    #[must_use]
    pub const fn major(self) -> i32 {
        self.version / 1000
    }

    /// The 4 of 12.4.
    #[must_use]
    pub const fn minor(self) -> i32 {
        self.version % 1000 / 10
    }
}

#[cfg(test)]
mod tests {
    use super::CudaApiVersion;

    #[test]
    fn a_version_has_two_parts() {
        let version = CudaApiVersion { version: 12_040 };
        assert_eq!((version.major(), version.minor()), (12, 4));
    }
}
