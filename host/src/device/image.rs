//! Device code (PTX or machine code) that is not part of the library.

use std::fmt;

/// Code for a CUDA device, in one of the two forms that the driver loads.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Image<'a> {
    /// PTX, which the driver compiles.
    Ptx(&'a str),
    /// Machine code for one GPU generation (a cubin), from `nvcc -cubin` or `ptxas`.
    Cubin(&'a [u8]),
}

impl fmt::Debug for Image<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ptx(text) => write!(f, "Ptx({} bytes)", text.len()),
            Self::Cubin(bytes) => write!(f, "Cubin({} bytes)", bytes.len()),
        }
    }
}
