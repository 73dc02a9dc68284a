//! The host's part: chooses the device and puts the equation on a grid.

use halo_gpu::stencil::{Run, Stencil};
use halo_gpu::{Device, Error, Grid2, Shape2};
use own_kernel_kernels::Reaction;

/// The first GPU, with this crate's kernels loaded; on a machine without one, the emulator.
pub fn device() -> Result<Device, Error> {
    #[cfg(feature = "gpu")]
    {
        let ptx = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));
        // SAFETY: the PTX holds only this crate's kernel, and none of the library's.
        match unsafe { Device::cuda_with_ptx(0, ptx) } {
            Err(Error::NoDevice | Error::DriverMissing { .. }) => {}
            found_or_failed => return found_or_failed,
        }
    }
    Ok(Device::emulator())
}

/// Both substances on a grid, u first.
pub type Dish = Run<Reaction, f32, 2, 2, 2>;

/// A periodic dish with rows of `nx` points, x fastest.
pub fn dish(
    device: &Device,
    reaction: Reaction,
    nx: usize,
    u: &[f32],
    v: &[f32],
) -> Result<Dish, Error> {
    let shape = Shape2::new(nx, u.len() / nx);
    Stencil::new(reaction, Grid2::new(shape, [1.0; 2])?)?.start(device, [u, v])
}
