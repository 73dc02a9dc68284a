//! Builds kernel crates to PTX, from a build script, with the stock Rust
//! toolchain.
//!
//! The names and the API are those of rust-cuda's `cuda_builder`: a build script written for it
//! stays as it is. That crate uses a compiler backend of its own, which needs a nightly of 2021,
//! LLVM 7 and NVIDIA's libNVVM. This one uses rustc's own `nvptx64-nvidia-cuda` target and LLVM's
//! tools of the same release. README.md lists the differences.
//!
//! ```no_run
//! // build.rs
//! use cuda_builder::{CudaBuilder, NvvmArch};
//!
//! # fn main() -> Result<(), cuda_builder::CudaBuilderError> {
//! CudaBuilder::new("../kernels")
//!     .arch(NvvmArch::Compute75)
//!     .copy_to("resources/kernels.ptx")
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a machine needs
//!
//! Rust 1.95 or later, the source of its standard library, and the LLVM tools of
//! its LLVM release: `rustup component add rust-src llvm-tools`. Neither a CUDA
//! toolkit nor a GPU. When something is missing, the error names it, says where
//! it was looked for, and how to install it.
//!
//! # How it works
//!
//! [`CudaBuilder::build`]
//!
//! 1. compiles the kernel crate as a library, with `core` and `alloc`, to LLVM bitcode that no LLVM
//!    pass has touched;
//! 2. links the bitcode into one module;
//! 3. adds to it what rustc does not know of CUDA (convergence, address spaces, fences: see
//!    `src/ir/`);
//! 4. has LLVM optimise it and write PTX.
//!
//! The PTX depends only on the sources, the options and the releases of rustc and LLVM, not on the
//! machine, the folder or the time.

mod arch;
mod archive;
mod build;
mod builder;
mod cargo;
mod error;
mod hash;
mod header;
mod ir;
mod link;
mod mirror;
mod nvvm_attribute;
#[allow(dead_code, reason = "a program of its own, see the module's text")]
mod rustc_wrapper;
mod tools;
mod wrapper;

pub use arch::{NvvmArch, UnknownArch};
pub use build::Ptx;
pub use builder::{CudaBuilder, DebugInfo, EmitOption};
pub use error::{CudaBuilderError, Function, IrError, MissingTool};
