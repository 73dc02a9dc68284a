//! The CUDA driver for Rust programs, with the names of rust-cuda's `cust` 0.3.
//!
//! Programs written for `cust` 0.3 compile with this crate unchanged. The differences:
//!
//! - [`cuda_loader`] loads the driver library when the program runs. Building needs no part of
//!   CUDA, and a program starts on machines without a driver: [`init`] then fails with
//!   [`CudaError::NoDevice`](error::CudaError::NoDevice), and [`cuda_loader::load`] says why.
//! - [`error::CudaError`] can be any number that a driver returns; known ones have names.
//! - Every object in a context keeps the context alive, and is released in it, whichever thread
//!   drops the object. So nothing is freed twice or leaks because another context is current.
//! - A [`DeviceSlice`](memory::DeviceSlice) borrows the memory of which it is a part.
//! - [`graph`], [`texture`] and [`surface`] are public, streams can be captured into graphs, and
//!   modules return the log of the driver's compiler.
//!
//! ```
//! use cust::prelude::*;
//!
//! fn doubled() -> Result<Vec<f32>, cust::error::CudaError> {
//!     let _context = cust::quick_init()?;
//!     let ptx = include_str!("../tests/fixtures/double.ptx");
//!     let module = Module::from_ptx(ptx, &[])?;
//!     let stream = Stream::new(StreamFlags::DEFAULT, None)?;
//!     let values = [1.0_f32, 2.0, 3.0].as_dbuf()?;
//!     // SAFETY: the kernel takes an address and a length, and writes no further.
//!     unsafe {
//!         launch!(module.double<<<1, 32, 0, stream>>>(values.as_device_ptr(), values.len()))?;
//!     }
//!     stream.synchronize()?;
//!     values.as_host_vec()
//! }
//!
//! match doubled() {
//!     Ok(values) => assert_eq!(values, [2.0, 4.0, 6.0]),
//!     Err(error) => println!("no GPU to try it on: {error}"),
//! }
//! ```
//!
//! [`launch!`] launches kernels. It is unsafe, because nothing checks a kernel's use of its
//! parameters. All safe calls are sound, in whatever order objects are dropped.
//!
//! The crate is empty on platforms that [`cuda_loader`] does not support.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

pub mod context;
pub mod device;
pub mod error;
pub mod event;
pub mod function;
pub mod graph;
pub mod link;
pub mod memory;
pub mod module;
pub mod prelude;
mod private;
pub mod stream;
pub mod surface;
pub mod texture;
pub mod util;
mod version;

pub use cuda_loader::sys;
pub use cust_derive::DeviceCopy;
pub use version::CudaApiVersion;

use context::{Context, ContextFlags};
use device::Device;
use error::{CudaError, CudaResult, ToResult};

bitflags::bitflags! {
    /// The flags of [`init`]. There are none yet: use [`CudaFlags::empty`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct CudaFlags: u32 {}
}

/// Loads and initialises the driver. Call it once in a process; more calls do no harm.
///
/// # Errors
///
/// [`CudaError::NoDevice`] without a driver (see [`cuda_loader::load`]) or without a device; other
/// errors of the driver.
pub fn init(flags: CudaFlags) -> CudaResult<()> {
    if cuda_loader::load().is_err() {
        return Err(CudaError::NoDevice);
    }
    // SAFETY: the argument is a number.
    unsafe { sys::cuInit(flags.bits()) }.to_result()
}

/// Initialises the driver and makes the primary context of device 0 current.
///
/// # Errors
///
/// As [`init`] and [`Context::new`].
#[must_use = "the context goes when nothing holds it"]
pub fn quick_init() -> CudaResult<Context> {
    init(CudaFlags::empty())?;
    let context = Context::new(Device::get_device(0)?)?;
    context.set_flags(ContextFlags::SCHED_AUTO)?;
    Ok(context)
}
