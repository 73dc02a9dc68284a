//! # The standard library of GPU kernels
//!
//! Functions and types that a kernel written in Rust calls: thread and block
//! indices ([`thread`]), operations of a warp ([`warp`]), shared memory
//! ([`shared`]), [`atomic`] operations, floating-point functions
//! ([`GpuFloat`]), textures, caches, asynchronous copies. Names and signatures
//! are those of rust-cuda's `cuda_std` (the released 0.2.2, and the
//! repository's head where the two differ); the implementation is built on the
//! stock compiler's `nvptx64-nvidia-cuda` target.
//!
//! ```
//! use cuda_std::prelude::*;
//!
//! /// `y += a x`, one element per thread.
//! ///
//! /// # Safety
//! ///
//! /// `y` is valid for reads and writes of `x.len()` elements.
//! #[kernel]
//! pub unsafe fn axpy(a: f32, x: &[f32], y: *mut f32) {
//!     let i = thread::index_1d() as usize;
//!     if i < x.len() {
//!         // SAFETY: in bounds, and no other thread has this index.
//!         unsafe { *y.add(i) += a * x[i] };
//!     }
//! }
//! ```
//!
//! # Two targets
//!
//! `cfg(target_arch = "nvptx64")` chooses the implementation.
//!
//! - **On the device** each function compiles to one or a few instructions.
//!   Warp-synchronous operations are LLVM intrinsics, which the optimiser does
//!   not move into a branch; operations without an intrinsic are inline PTX.
//! - **On any other target** the same functions drive the block emulator
//!   (`cuda_emulator`), so that a kernel crate, compiled as an ordinary
//!   library, runs on the CPU thread for thread. Functions that need a calling
//!   thread panic outside an emulated launch. [`host`] has what launchers need.
//!
//! Functions that the hardware rounds correctly (`sqrt`, `mul_add`, `floor`, …)
//! and functions computed in software give the same bits on both targets;
//! functions with other bits are documented as such.
//!
//! # Panic handler and allocator
//!
//! On the device this crate defines the panic handler (it stops the launch) and
//! the global allocator (the device heap), as upstream's does, so a kernel crate
//! must define neither.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(
        abi_unadjusted,
        asm_experimental_arch,
        core_float_math,
        link_llvm_intrinsics
    )
)]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

extern crate alloc;
// The macros expand to paths below `::cuda_std`, which this alias resolves
// inside this crate.
extern crate self as cuda_std;

#[cfg(all(target_arch = "nvptx64", not(target_feature = "sm_70")))]
compile_error!(
    "cuda_std needs compute capability 7.0 or later: its atomics and warp operations are those \
     of Volta. Choose `-C target-cpu=sm_70` or higher."
);

#[doc(hidden)]
pub mod __private;
mod address_space;
pub mod async_copy;
pub mod atomic;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod bulk_copy;
pub mod cache;
pub mod cfg;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod cluster;
mod exact;
mod extremum;
pub mod float;
mod float_ext;
pub mod half_precision;
#[cfg(not(target_arch = "nvptx64"))]
pub mod host;
pub mod intrinsics;
pub mod io;
mod math;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_80"))]
pub mod matrix;
pub mod mem;
pub mod misc;
pub mod ptr;
mod rounding;
#[cfg(target_arch = "nvptx64")]
mod runtime;
pub mod shared;
#[cfg(target_arch = "nvptx64")]
mod sys;
pub mod texture;
pub mod thread;
pub mod warp;

pub use cuda_std_macros::{address_space, externally_visible, gpu_only, kernel, launch_bounds};
pub use float::GpuFloat;
pub use float_ext::FloatExt;
pub use glam;
pub use half::{self, bf16, f16};
#[cfg(feature = "vek")]
#[deprecated(
    note = "vectors are `cuda_std::glam`'s; `vek` stays for kernels written against 0.2.2"
)]
pub use vek;

/// Compiles and runs the examples of the emulator's README, which use no Halo.
#[cfg(all(doctest, not(target_arch = "nvptx64")))]
#[doc = include_str!("../../cuda_emulator/README.md")]
mod emulator_without_halo {}

#[cfg(not(target_arch = "nvptx64"))]
pub use std::{assert_eq, assert_ne, print, println};

/// The items that most kernels need: `use cuda_std::prelude::*;`.
///
/// `assert_eq!` and `assert_ne!` are `core`'s here: they stop the launch and
/// print nothing. A glob import of other macros under these names would be
/// ambiguous. For those that print, write `cuda_std::assert_eq!`.
pub mod prelude {
    pub use crate::f16;
    pub use crate::kernel;
    pub use crate::thread;
    pub use crate::{print, println};
    pub use alloc::borrow::ToOwned;
    pub use alloc::boxed::Box;
    pub use alloc::format;
    pub use alloc::rc::Rc;
    pub use alloc::string::{String, ToString};
    pub use alloc::vec::Vec;
    pub use core::{assert_eq, assert_ne};
}
