//! Waits for a device and measures the time of its work.

use super::handle::{Backend, Device};
use crate::Error;
use std::time::{Duration, Instant};

impl Device {
    /// Waits until all work given to this device is complete.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use std::time::Instant;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let mut buffer = device.alloc_filled(1 << 16, 0_u32)?;
    /// let start = Instant::now();
    /// buffer.fill(7)?; // queued
    /// device.synchronize()?; // done
    /// println!("{:?}", start.elapsed());
    /// assert_eq!(buffer.to_vec()?[65_535], 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] if an earlier kernel has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        match self.backend() {
            Backend::Cpu | Backend::Emulator(_) => Ok(()),
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => cuda.synchronize(),
        }
    }

    /// Measures the time of the work that `work` gives to this device.
    ///
    /// On CUDA devices it is the time between two events in the device's stream, one before and one
    /// after the work, so launch overhead on the host counts only if the device waits for it. On
    /// other devices it is wall-clock time.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let mut buffer = device.alloc_filled(1 << 16, 0_u32)?;
    /// let once = device.time(|| buffer.fill(7))?;
    /// let each = device.time_each(2, 10, || buffer.fill(8))?;
    /// println!("{once:?}, then {each:?}");
    /// assert_eq!((each.len(), buffer.to_vec()?[0]), (10, 8));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of `work`, and [`Error::Driver`].
    pub fn time(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
        match self.backend() {
            Backend::Cpu | Backend::Emulator(_) => wall_time(work),
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                let start = cuda.record_event(MEASURING)?;
                work()?;
                let end = cuda.record_event(MEASURING)?;
                cuda.elapsed(&start, &end)
            }
        }
    }

    /// Runs `work` `warmup` times without timing and then `launches` times with timing, and returns
    /// the time of each timed run.
    ///
    /// On CUDA devices, one event is recorded between consecutive runs and nothing waits before the
    /// last of them. So `work` should only launch: the wait of a copy to the host would be part of
    /// the measurement.
    ///
    /// # Errors
    ///
    /// The first error of `work`, and [`Error::Driver`].
    pub fn time_each(
        &self,
        warmup: usize,
        launches: usize,
        mut work: impl FnMut() -> Result<(), Error>,
    ) -> Result<Vec<Duration>, Error> {
        for _ in 0..warmup {
            work()?;
        }
        match self.backend() {
            Backend::Cpu | Backend::Emulator(_) => {
                (0..launches).map(|_| wall_time(&mut work)).collect()
            }
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                let mut marks = vec![cuda.record_event(MEASURING)?];
                for _ in 0..launches {
                    work()?;
                    marks.push(cuda.record_event(MEASURING)?);
                }
                marks
                    .windows(2)
                    .map(|pair| cuda.elapsed(&pair[0], &pair[1]))
                    .collect()
            }
        }
    }
}

/// An operation that a recording cannot contain.
#[cfg(halo_cuda)]
const MEASURING: &str = "measuring time";

fn wall_time(work: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}
