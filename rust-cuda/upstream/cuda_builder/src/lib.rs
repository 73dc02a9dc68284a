//! Everything of `halo-cuda-builder`, under the package name that upstream's `cuda_builder` has.

pub use ours::*;
