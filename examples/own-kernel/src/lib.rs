//! The host's half: memory, geometry, launches.

use halo_gpu::{Buffer, Device, Error, LaunchConfig, blocks_for};
use own_kernel_kernels::{BLOCK, Reaction, gray_scott};

/// The GPU with this crate's own kernels or, where there is none, the emulator.
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
    Ok(Device::emulator())
}

/// Both substances on a periodic grid of `nx` × `ny` points, x fastest.
pub struct Dish {
    nx: u32,
    ny: u32,
    u: Buffer<f32>,
    v: Buffer<f32>,
    // What the next step writes.
    new_u: Buffer<f32>,
    new_v: Buffer<f32>,
}

impl Dish {
    /// A dish of `u.len() / nx` rows.
    pub fn new(device: &Device, nx: u32, u: &[f32], v: &[f32]) -> Result<Self, Error> {
        assert!(nx > 0 && !u.is_empty() && u.len().is_multiple_of(nx as usize));
        assert!(u.len() == v.len() && u.len() <= i32::MAX as usize);
        Ok(Self {
            nx,
            ny: u.len() as u32 / nx,
            u: device.upload(u)?,
            v: device.upload(v)?,
            new_u: device.alloc_filled(u.len(), f32::NAN)?,
            new_v: device.alloc_filled(u.len(), f32::NAN)?,
        })
    }

    /// Takes `steps` steps.
    pub fn run(&mut self, reaction: Reaction, steps: u32) -> Result<(), Error> {
        let blocks = |extent: u32| blocks_for("gray_scott", extent as usize, BLOCK as usize);
        let config = LaunchConfig::new((blocks(self.nx)?, blocks(self.ny)?), (BLOCK, BLOCK));
        for _ in 0..steps {
            let device = self.u.device().clone();
            let (new_u, new_v) = (&mut self.new_u, &mut self.new_v);
            let args = gray_scott::args(&self.u, &self.v, new_u, new_v, self.nx, self.ny, reaction);
            // SAFETY: four distinct buffers of nx * ny elements on one device, and
            // the geometry that the kernel documents.
            unsafe { halo_gpu::launch::<gray_scott>(&device, &config, args)? };
            std::mem::swap(&mut self.u, &mut self.new_u);
            std::mem::swap(&mut self.v, &mut self.new_v);
        }
        Ok(())
    }

    /// Both substances, as they are now.
    pub fn read(&self) -> Result<(Vec<f32>, Vec<f32>), Error> {
        Ok((self.u.to_vec()?, self.v.to_vec()?))
    }
}
