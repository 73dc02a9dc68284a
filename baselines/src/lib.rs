//! Compiles the code against which Halo is compared: CUDA C++, CUB, and C++ with OpenMP.
//!
//! The sources lie next to this crate, and are part of it.
#![forbid(unsafe_code)]

pub mod cpp;
pub mod cuda;
