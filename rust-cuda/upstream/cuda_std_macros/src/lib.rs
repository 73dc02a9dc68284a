//! Everything of `halo-cuda-std-macros`, under the package name that upstream's `cuda_std_macros` has.

#![no_std]

pub use ours::*;
