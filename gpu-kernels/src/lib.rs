//! Halo's CUDA kernels.
//!
//! One module per family, one file per variant; two variants of a family differ only in the
//! optimisation they show. [`roofline`] is an exception: its kernels measure the device. The crate
//! is compiled twice: for `nvptx64-nvidia-cuda` it gives the PTX that `halo-gpu` launches; for the
//! host it is an ordinary library whose kernels run, thread by thread, in the emulator.
//!
//! In every field x varies fastest: point (i, j, k) of an `nx` × `ny` × `nz` field is
//! element `(k * ny + j) * nx + i`.
//!
//! Kernels take raw pointers to whole buffers and read and write disjoint elements of them; each
//! kernel's Safety section says which. The host library validates each call in its `gpu.rs` files
//! and so meets those conditions.

#![no_std]

// Families, which `cargo xtask tidy --write` lists.
pub mod derivative3d;
pub mod elementwise;
pub mod heat2d;
pub mod heat3d;
pub mod nbody;
pub mod reduction;
pub mod roofline;
pub mod stencil1d;
pub mod wave3d;

#[cfg(not(target_arch = "nvptx64"))]
mod entry;
pub mod loops;
mod register;
#[cfg(not(target_arch = "nvptx64"))]
pub mod registry;
mod vector;
pub mod words;
