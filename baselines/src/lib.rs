//! The CUDA C++, CUB and C++ with OpenMP that Halo is compared with, and their compilers.
//!
//! The sources stand beside this crate, and are part of it.
#![forbid(unsafe_code)]

pub mod cpp;
pub mod cuda;
