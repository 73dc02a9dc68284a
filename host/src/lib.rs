//! Finite-difference stencils, heat equation, reductions and all-pairs n-body as CUDA kernels in
//! pure Rust.
//!
//! - [Devices and buffers](#devices-and-buffers)
//! - [Operations](#operations)
//! - [Layout](#layout) and [units](#units)
//! - [Errors](#errors)
//! - [Reproducibility](#reproducibility)
//! - [Your own kernels](#your-own-kernels)
//! - [Features](#features)
//!
//! # Devices and buffers
//!
//! Every program starts with a [`Device`]: [`Device::cuda`] runs the kernels on a GPU,
//! [`Device::emulator`] runs the same kernels on the CPU thread by thread and reports faults that a
//! GPU ignores, [`Device::cpu`] runs CPU ports. A [`Buffer`] holds data in the memory of its
//! device.
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
//! Most operations have two forms. The form on host data, called `…_of`, takes a device and slices
//! or [fields](Field3); it copies them to the device and the result back. The form on buffers runs
//! on the device of the buffers and copies nothing; on a CUDA device it enqueues the work and does
//! not wait. A device runs its work in order, on one stream; calls that copy data to or from the
//! host wait for it, so copies do not overlap with kernels. Your own CUDA code joins that order
//! with [`Device::with_cuda_stream`], and uses the buffers' addresses ([`Buffer::device_address`])
//! or its own memory ([`Buffer::from_device_address`]).
//!
//! # Operations
//!
//! **Derivatives of a field on a 3-D grid**, [`derivative3d`]: first and second derivatives,
//! gradient, divergence, curl and Laplacian of orders 2 to 8, in `f32` and `f64`, with a boundary
//! for each axis.
//!
//! ```
//! use halo_gpu::derivative3d::FiniteDifferences3d;
//! use halo_gpu::{Axis, Boundary, Device, Field3, Grid3, Shape3};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // Periodic along x and z, walls at the ends of y.
//! let shape = Shape3::new(16, 12, 16);
//! let grid = Grid3::new(shape, [0.1, 0.5, 0.1])?.with_boundary(Axis::Y, Boundary::OneSided)?;
//! let f = Field3::from_fn(shape, |_, j, _| (0.5 * j as f64).powi(2))?;
//! let [_, y, _] = FiniteDifferences3d::new(&grid)?.gradient_of(&Device::cpu(), &f)?;
//! assert!((y[(3, 4, 5)] - 4.0).abs() < 1e-10); // 2 y at y = 2
//! # Ok(())
//! # }
//! ```
//!
//! **Heat in a plate**, [`heat2d`]: Jacobi iterations, a fixed number or until convergence, or
//! explicit time steps; Dirichlet or Neumann boundaries, with or without sources.
//!
//! ```
//! use halo_gpu::heat2d::{Heat2d, problem};
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let shape = Shape2::new(33, 33);
//! let initial = problem::hot_left_wall::<f64>(shape)?;
//! let mut plate = Heat2d::dirichlet(shape)?.start(&Device::cpu(), &initial)?;
//! assert!(plate.iterate_until(1e-9, 100, 100_000)?.converged);
//! assert!((plate.field()?[(16, 16)] - 0.25).abs() < 1e-6);
//! # Ok(())
//! # }
//! ```
//!
//! **Heat in space**, [`heat3d`]: explicit time steps and Jacobi iterations, with a boundary for
//! each end of each axis.
//!
//! ```
//! use halo_gpu::heat3d::Heat3d;
//! use halo_gpu::{Boundary, Device, Field3, Grid3, Shape3};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let shape = Shape3::new(16, 12, 10);
//! let grid = Grid3::new(shape, [0.1; 3])?.with_boundaries(Boundary::NeumannHalfway)?;
//! let spot = Field3::from_fn(shape, |i, _, _| if i < 8 { 1.0_f32 } else { 0.0 })?;
//! let even = Heat3d::new(grid).steps_of(&Device::cpu(), &spot, 2000)?;
//! assert!((even[(15, 3, 3)] - 0.5).abs() < 1e-3);
//! # Ok(())
//! # }
//! ```
//!
//! **Waves in space**, [`wave3d`]: the acoustic wave equation, of 2nd to 8th order, with a velocity
//! at each point and absorbing layers; [an example](wave3d).
//!
//! **Your own equation** on a grid of two or three dimensions, [`stencil`](mod@stencil): you write
//! the update of a point once, and it runs everywhere.
//!
//! **Stencils along a line**, [`stencil1d`]: up to eight neighbours on either side, with any
//! coefficients; [`finite_difference`] computes the coefficients of derivatives.
//!
//! ```
//! use halo_gpu::Device;
//! use halo_gpu::stencil1d::Stencil1d;
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let smooth = Stencil1d::symmetric(5, 0.5_f32, &[0.25])?;
//! let inner = smooth.apply_of(&Device::cpu(), &[0.0, 0.0, 4.0, 0.0, 0.0])?;
//! assert_eq!(inner, [1.0, 2.0, 1.0]);
//! # Ok(())
//! # }
//! ```
//!
//! **One number from many**, [`reduction`]: sum, minimum, maximum, argmin, argmax, mean, norm and
//! dot product of six types, with the same bits everywhere.
//!
//! ```
//! use halo_gpu::{Device, reduction};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let values: Vec<f32> = (1..=1000).map(|n| 1.0 / n as f32).collect();
//! let sums = [Device::cpu(), Device::emulator()].map(|device| reduction::sum_of(&device, &values));
//! let [on_cpu, emulated] = sums;
//! assert_eq!(on_cpu?.to_bits(), emulated?.to_bits());
//! # Ok(())
//! # }
//! ```
//!
//! **Gravity between bodies**, [`nbody`]: accelerations, potentials and a leapfrog integrator over
//! all pairs, in `f32`, `f64` and mixed precision.
//!
//! ```
//! use halo_gpu::Device;
//! use halo_gpu::nbody::problem::Cluster;
//! use halo_gpu::nbody::Gravity;
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let Cluster { bodies, velocities } = Cluster::<f64>::plummer(200, 1)?;
//! let gravity = Gravity::new(0.05)?; // the softening length
//! let mut stars = gravity.start(&Device::cpu(), &bodies, &velocities, 0.01)?;
//! let before = stars.energy()?.total();
//! stars.advance(20)?;
//! assert!((stars.energy()?.total() / before - 1.0).abs() < 0.01);
//! # Ok(())
//! # }
//! ```
//!
//! In addition, [`roofline`] measures the arithmetic throughput of a device. If a family has
//! several kernels, among them the steps of the textbook, its `Variant` names them; by default the
//! library chooses the kernel for the size.
//!
//! # Layout
//!
//! **x is the fastest axis**, in memory and in the order of names: point (i, j, k) of a field of
//! `nx` × `ny` × `nz` points is element `(k * ny + j) * nx + i`, and an array `[a, b, c]` has the
//! values for x, y, z. [`Field2`] and [`Field3`] carry their shape, and so does the buffer that
//! [`Field3::to_device`] returns; a plan ([`derivative3d::Plan`], [`Heat2d`](heat2d::Heat2d), …)
//! refuses buffers of another shape. A buffer made from a slice is a line until you call
//! [`shaped`](Buffer::shaped): only its length is checked. With the feature `ndarray`, fields can
//! be viewed as arrays whose slowest axis comes first.
//!
//! # Units
//!
//! The library assumes no units: results are in the unit that the formula gives. A derivative has
//! the unit of the field divided by that of the spacing, a second derivative divided by its square.
//! Temperatures are in any scale, and a heat source is h² f in the same scale. N-body sets the
//! gravitational constant to 1 ([how to convert](nbody#units-and-shapes)). Angles are in radians,
//! sizes in bytes, measured times are [`Duration`](std::time::Duration)s.
//!
//! # Errors
//!
//! A call that can fail returns [`Error`], whose message names the given value and the requirement.
//! Sizes, parameters and devices are checked before anything runs, so a refused call has changed no
//! buffer. Data in host memory is checked if bad values would make the result meaningless
//! ([`nbody::Gravity::check`]). Data in buffers is not checked, and NaN spreads according to the
//! formula ([derivatives](derivative3d::FiniteDifferences3d), [lines](stencil1d::Stencil1d), [sums
//! and extrema](reduction#results)).
//!
//! The emulator reports a kernel's fault where it happens, as [`Error::Emulator`]. A CUDA device
//! reports it in a later call that waits, as [`Error::Driver`], and then mostly fails in all calls
//! until the process ends. Indexing a field outside its shape panics, as with slices; `get` returns
//! `None`.
//!
//! # Reproducibility
//!
//! "Everywhere" means: on the CPU with any number of threads, in the emulator and on every GPU, by
//! any kernel, in every run. (The tests compare bits between the CPU, the emulator and, with the
//! feature `gpu`, the GPU of the machine.) Results have NaNs at the same points everywhere. The
//! bits of a NaN depend on the processor, except in reductions, which always return the same NaN.
//!
//! | call | same bits | reason, and limits |
//! |---|---|---|
//! | [`FiniteDifferences3d`](derivative3d::FiniteDifferences3d) and its [`Plan`](derivative3d::Plan): all derivatives and operators | everywhere | the order of operations is part of the definition; [`Variant`](derivative3d::Variant)s differ only in time |
//! | [`Heat2d`](heat2d::Heat2d), its [`Plan`](heat2d::Plan) and [`Plate`](heat2d::Plate): all iterations and time steps | everywhere | as for derivatives; the number of iterations of a launch does not matter |
//! | [`Plate::iterate_until`](heat2d::Plate::iterate_until) | everywhere | the largest change is exact, so the number of iterations is the same too |
//! | [`Heat3d`](heat3d::Heat3d), [`Wave3d`](wave3d::Wave3d), [`Stencil`](stencil::Stencil): all steps | everywhere | the update defines the order of operations |
//! | [`Stencil1d`](stencil1d::Stencil1d) | everywhere | as for derivatives; any kernel, any block |
//! | [`reduction::sum`], [`mean`](reduction::mean), [`norm`](reduction::norm), [`dot`](reduction::dot), their `…_of`, a [`reduction::Plan`] | everywhere | the number of elements and their type determine the order; it is not that of a loop, and may change in a later version |
//! | [`reduction::min`], [`max`](reduction::max), [`argmin`](reduction::argmin), [`argmax`](reduction::argmax) | everywhere | exact; of equal elements the first |
//! | sums by a kernel of the textbook, [`Reduction::plan_with`](reduction::Reduction::plan_with) | on devices that run kernels | the kernel and its block determine the order: another kernel, another block or [`reduction::sum`] give other bits |
//! | accelerations by a [`nbody::Plan`] and by [`Gravity`](nbody::Gravity), also in mixed precision | in every run on one device with the same settings | devices differ within [bounds](nbody::problem::Reference::bounds): their orders differ ([`with_parts`](nbody::Gravity::with_parts)), and GPUs approximate the reciprocal square root |
//! | [`Plan::potentials`](nbody::Plan::potentials), [`potential_energy`](nbody::Plan::potential_energy) | in every run on one device | as for accelerations; the CPU computes all of it in `f64` |
//! | [`nbody::problem::potential_energy`] | in every run, with any number of threads | it runs on the CPU |
//! | [`nbody::kick_drift`] | everywhere | only fused multiply-adds |
//! | [`Leapfrog`](nbody::Leapfrog) | in every run on one device | n steps in one call equal n single steps; trajectories on different devices diverge, as accelerations differ |
//! | [`Cluster`](nbody::problem::Cluster) | on one platform | it uses the platform's `sin`, `cos` and `powf` |
//! | [`finite_difference::Weights`] | everywhere | fractions, rounded once |
//!
//! # Your own kernels
//!
//! Devices, buffers and launches also work with your own kernels. A kernel is an `unsafe fn` with
//! the attribute `#[kernel]` of the crate `cuda_std`, which defines a type of the same name for
//! [`launch`](fn@launch); the emulator runs the function itself.
//!
//! ```
//! use cuda_std::prelude::{kernel, thread};
//! use halo_gpu::{Buffer, Device, EmulatorOptions, Error, LaunchConfig, blocks_for, launch};
//!
//! /// `y ← a x + y`, a thread for each element.
//! ///
//! /// # Safety
//! ///
//! /// `x` and `y` have `n` elements; a one-dimensional grid of one-dimensional blocks.
//! #[kernel]
//! pub unsafe fn axpy(a: f32, x: *const f32, y: *mut f32, n: u32) {
//!     let i = thread::index_1d();
//!     if i < n {
//!         // SAFETY: i is below n, and no other thread has it.
//!         unsafe { *y.add(i as usize) += a * *x.add(i as usize) };
//!     }
//! }
//!
//! /// The safe half: checks what the kernel relies on.
//! fn add_multiple(a: f32, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<(), Error> {
//!     let (device, n) = (y.device().clone(), y.len());
//!     device.require("axpy: x", x)?;
//!     assert_eq!(x.len(), n);
//!     let config = LaunchConfig::new(blocks_for("axpy", n, 128)?, 128);
//!     // SAFETY: both buffers have n elements and are on the device; y is borrowed mutably,
//!     // so they are distinct.
//!     unsafe { launch::<axpy>(&device, &config, axpy::args(a, x, y, n as u32)) }
//! }
//!
//! # fn main() -> Result<(), Error> {
//! // Every launch in several orders of its threads, with their results compared.
//! let device = Device::emulator_with(EmulatorOptions { verify: true, ..Default::default() });
//! let x = device.upload(&[1.0_f32; 300])?;
//! let mut y = device.alloc_filled(300, 0.5)?;
//! add_multiple(2.0, &x, &mut y)?;
//! assert_eq!(y.to_vec()?, [2.5; 300]);
//! # Ok(())
//! # }
//! ```
//!
//! A GPU also needs the kernel as PTX: a build script compiles it from the kernel's crate with
//! `cuda_builder`, and [`Device::cuda_with_ptx`] loads it. The folder `examples/own-kernel` of the
//! repository is such a crate, with a guide in its README. To update grid points you need no kernel
//! of your own: see [`stencil`](mod@stencil). [`launch_with_constants`] sets constant memory,
//! kernels read [`Texture2d`] through textures, and [`Device::with_cuda_stream`] combines the
//! library with CUDA C++.
//!
//! # Features
//!
//! - `gpu`: CUDA devices, on Linux on x86_64 and aarch64. The program loads the CUDA driver when it
//!   first opens a CUDA device, so it also starts on a machine without a driver. Neither building
//!   nor running needs a CUDA toolkit. Without the feature, and on other platforms,
//!   [`Device::cuda`] returns an error that says why.
//! - `ndarray`: fields as views of the `ndarray` crate, and fields from views.

#![warn(clippy::missing_errors_doc)]

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

mod accuracy;
#[doc(hidden)]
pub mod allocation;
mod argument;
mod axis;
mod caches;
#[cfg(feature = "cases")]
pub mod case;
mod constants;
pub mod device;
mod error;
mod extents;
mod field;
#[cfg(feature = "ndarray")]
mod field_ndarray;
pub mod finite_difference;
mod geometry;
mod grid;
mod launch;
mod limits;
mod march;
mod pages;
mod scalar;
mod shape;
mod simd;
mod single_pass;
pub mod stencil;
mod streaming;
#[cfg(feature = "cases")]
mod subject;
#[doc(hidden)]
pub mod test_cases;
#[cfg(test)]
mod test_numbers;
mod threads;
mod trial;
mod variants;
mod versions;

pub use accuracy::Errors;
pub use argument::Argument;
pub use axis::Axis;
pub use constants::Constants;
pub use device::{
    AddressMode, Buffer, Device, DeviceKind, Element, EmulatorOptions, Event, HostBuffer, Image,
    Kernels, Priority, Properties, ReplaceableKernels, Replay, Sealed, Tally, Texture2d, View,
    ViewMut,
};
pub use error::{CubinFault, Error, LaunchAxis};
pub use extents::{Shape, Shape2, Shape3};
pub use field::{Field2, Field3};
pub use geometry::{Dim3, LaunchConfig, blocks_for};
pub use gpu_kernels::registry::Cost;
pub use grid::{Boundary, Grid, Grid2, Grid3};
pub use launch::{blocks_per_multiprocessor, launch, launch_with_constants, resident_blocks};
pub use limits::Limits;
pub use scalar::Scalar;

pub use versions::{ComputeCapability, DriverVersion};

/// The examples of the repository's README, as tests. (The published package contains neither that
/// README nor these tests.)
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
