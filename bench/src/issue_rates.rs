//! Measures the device's issue rates of multiply-adds in f32 and f64, which arithmetic is compared
//! with, by the kernels `roofline_fma_f32` and `roofline_fma_f64`.

use halo_gpu::roofline::{MultiplyAdds, Real};
use halo_gpu::{Device, DeviceKind};
use halo_report::record::Ceiling;
use halo_report::stats::Times;

use crate::error::Error;
use crate::flags::Bench;

/// Iterations of the kernels' loop: about a millisecond on a large GPU.
const ROUNDS: u32 = 256;

/// The fewest launches before the timed ones: some tens of milliseconds of arithmetic, after which
/// a GPU's clock is steady.
const WARMUP: u32 = 30;

/// The rate at which this device issues multiply-adds in `T`; `None` where there
/// is no GPU to measure.
pub(super) fn measure<T: Real>(device: &Device, flags: &Bench) -> Result<Option<Ceiling>, Error> {
    if device.kind() != DeviceKind::Cuda {
        return Ok(None);
    }
    let work = MultiplyAdds::new(device, ROUNDS)?;
    let mut sums = device.alloc_filled(work.threads(), T::FACTOR)?;
    let timings = device.time_each(
        flags.warmup.max(WARMUP) as usize,
        flags.launches() as usize,
        || work.run(&mut sums),
    )?;
    Ok(Times::of(&timings).map(|time| {
        let method = format!(
            "{}: {} fused multiply-adds by each of {} threads, in registers, in this run",
            T::KERNEL,
            work.multiply_adds() / work.threads() as u64,
            work.threads(),
        );
        let amount = work.multiply_adds();
        Ceiling {
            amount,
            time,
            method,
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_are_those_of_either_precision() {
        assert_eq!(<f32 as Real>::KERNEL, "roofline_fma_f32");
        assert_eq!(<f64 as Real>::KERNEL, "roofline_fma_f64");
    }
}
