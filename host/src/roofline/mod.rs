//! Measures the arithmetic limit of a device.
//!
//! A kernel is limited by memory or by the rate at which instructions are issued. [`MultiplyAdds`]
//! only computes fused multiply-adds, on as many threads as the device holds at a time. Their
//! number divided by the time of a launch is the highest possible rate of arithmetic. To measure
//! the other limit, memory, time [`Buffer::copy_from`].
//!
//! ```
//! use halo_gpu::Device;
//! use halo_gpu::roofline::MultiplyAdds;
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let device = Device::emulator(); // Device::cuda(0)? for numbers that mean something
//! let work = MultiplyAdds::new(&device, 1)?;
//! let mut sums = device.alloc_filled(work.threads(), 0.0_f32)?;
//! let time = device.time(|| work.run(&mut sums))?;
//! println!("{:.3e} multiply-adds/s", work.multiply_adds() as f64 / time.as_secs_f64());
//! assert!(sums.to_vec()?.iter().all(|sum| sum.is_finite()));
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "cases")]
pub(crate) mod cases;
mod gpu;

use crate::{Buffer, Device, Error};
use gpu_kernels::roofline::{BLOCK, FMAS_PER_ROUND};

pub use gpu::Real;

/// The number of blocks: as many as the device holds at a time.
fn blocks(device: &Device) -> u32 {
    let properties = device.properties();
    match properties.threads_per_multiprocessor {
        Some(threads) => properties.multiprocessors * (threads / BLOCK).max(1),
        // Nothing is measured on this kind of device: one block shows that the kernels run.
        None => 1,
    }
}

/// A number of fused multiply-adds that a device computes at its full rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiplyAdds {
    blocks: u32,
    rounds: u32,
}

impl MultiplyAdds {
    /// `rounds` iterations of the kernels' loop, with 256 multiply-adds per thread each.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if `rounds` is zero.
    pub fn new(device: &Device, rounds: u32) -> Result<Self, Error> {
        if rounds == 0 {
            return Err(Error::InvalidParameter {
                operation: "roofline",
                parameter: "the number of rounds",
                given: "0".to_owned(),
                required: "at least 1".to_owned(),
            });
        }
        Ok(Self {
            blocks: blocks(device),
            rounds,
        })
    }

    /// The number of threads of a launch. Each writes one sum.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.blocks as usize * BLOCK as usize
    }

    /// The number of multiply-adds of a launch, by all threads.
    #[must_use]
    pub fn multiply_adds(&self) -> u64 {
        self.threads() as u64 * u64::from(self.rounds) * FMAS_PER_ROUND
    }

    /// Computes the multiply-adds on the device of `sums` and writes each thread's sum.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] unless `sums` has as many elements as there are
    /// [`threads`](Self::threads); [`Error::NotLaunchable`] on [`Device::cpu`], and
    /// the other errors of a launch.
    pub fn run<T: Real>(&self, sums: &mut Buffer<T>) -> Result<(), Error> {
        T::launch(self.blocks, self.rounds, sums)
    }
}
