//! Finite-difference stencils, heat equation, reductions and all-pairs n-body as CUDA kernels in pure Rust.
//!
//! Everything starts with a [`Device`]: [`Device::cuda`] runs the kernels on a
//! GPU, [`Device::emulator`] runs the same kernels on the CPU thread by thread
//! and diagnoses what a GPU does silently, [`Device::cpu`] runs CPU ports. Data
//! lives in a [`Buffer`] of its device.
//!
//! ```
//! use halo_gpu::Device;
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let device = Device::best(); // the first CUDA device, or the CPU
//! let buffer = device.upload(&[1.0_f32, 2.0, 3.0])?;
//! assert_eq!(buffer.to_vec()?, [1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! - `gpu`: CUDA devices, on Linux on x86_64 and aarch64. The CUDA driver is
//!   looked for when the first CUDA device is asked for; a program built with
//!   this feature also starts where there is none, and running needs no CUDA
//!   toolkit. Neither does building, if `CUDA_LIBRARY_PATH` names a folder with a
//!   `lib64/libcuda.so` that holds the text `INPUT()`, as this repository's
//!   `.cargo/config.toml` does (the build script of cust says "Could not find a
//!   cuda installation" where there is neither). Without the feature, and on other
//!   platforms, [`Device::cuda`] exists and says why it cannot.
//! - `ndarray`: fields as views of the `ndarray` crate, and fields from views.

#![warn(clippy::missing_errors_doc)]

mod accuracy;
pub mod derivative3d;
pub mod device;
pub mod error;
pub mod field;
#[cfg(feature = "ndarray")]
mod field_ndarray;
pub mod finite_difference;
pub mod heat2d;
pub mod launch;
pub mod nbody;
pub mod reduction;
pub mod roofline;
mod simd;
pub mod stencil1d;

pub use accuracy::Errors;
pub use device::{
    AddressMode, Buffer, ComputeCapability, Device, DeviceKind, DriverVersion, Element,
    EmulatorOptions, Image, Kernels, Limits, Properties, Replay, Texture2d,
};
pub use error::{Error, LaunchAxis};
pub use field::{Field2, Field3, Shape2, Shape3};
pub use launch::{
    Constants, Dim3, LaunchConfig, blocks_for, blocks_per_multiprocessor, launch,
    launch_with_constants, resident_blocks,
};
