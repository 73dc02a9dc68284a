//! The host's half: where it runs, and on what grid.

use halo_gpu::stencil::Stencil;
use halo_gpu::{Device, Error, Grid2, Shape2};
use own_kernel_kernels::GrayScott;

/// The GPU with this crate's own kernel or, where there is none, the CPU.
pub fn device() -> Result<Device, Error> {
    #[cfg(feature = "gpu")]
    {
        let ptx = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));
        // SAFETY: the PTX holds this crate's kernel alone, none of the library's.
        match unsafe { Device::cuda_with_ptx(0, ptx) } {
            Err(Error::NoDevice | Error::DriverMissing { .. }) => {}
            found_or_failed => return found_or_failed,
        }
    }
    Ok(Device::cpu())
}

/// Steps of a dish of `nx` × `ny` points, periodic along both axes.
pub fn dish(nx: usize, ny: usize, reaction: GrayScott) -> Result<Dish, Error> {
    Stencil::new(reaction, Grid2::new(Shape2::new(nx, ny), [1.0; 2])?)
}

/// Both substances in the plane.
pub type Dish = Stencil<GrayScott, f32, 2, 2, 2>;
