//! Everything of `halo-cuda-std`, under the package name that upstream's `cuda_std` has.

#![no_std]

pub use ours::*;
