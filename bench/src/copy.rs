//! Measures the copy that bandwidths are compared with.

use std::time::{Duration, Instant};

use halo_gpu::{Buffer, Device, DeviceKind};
use halo_report::record::Ceiling;
use halo_report::stats::Times;

use super::error::Error;
use super::flags::Bench;
use super::timing;

/// Bytes of each of the two arrays of the copy: much more than any cache holds, so that the memory
/// is measured.
const COPY_BYTES_GPU: usize = 1 << 30;
const COPY_BYTES_CPU: usize = 1 << 28;

/// Measures the bandwidth of the device's memory by copying an array.
pub(super) fn measure(device: &Device, flags: &Bench) -> Result<Ceiling, Error> {
    let (timings, array_bytes, what) = match device.kind() {
        DeviceKind::Cuda => {
            let (timings, bytes) = copy_on_gpu(device, flags)?;
            (timings, bytes, "device-to-device copy".to_owned())
        }
        DeviceKind::Cpu | DeviceKind::Emulator => {
            let threads = rayon::current_num_threads();
            let timings = copy_on_cpu(device, threads, COPY_BYTES_CPU, flags)?;
            let what = match threads {
                1 => "copy by 1 thread".to_owned(),
                _ => format!("parallel copy by {threads} threads"),
            };
            (timings, COPY_BYTES_CPU, what)
        }
    };
    let Some(time) = Times::of(&timings) else {
        return Err(Error::Bench(
            "the copy was not timed: no launches".to_owned(),
        ));
    };
    let method = format!(
        "{what} of {} MiB in this run, bytes read plus bytes written",
        array_bytes >> 20
    );
    let amount = 2 * array_bytes as u64;
    Ok(Ceiling {
        amount,
        time,
        method,
    })
}

/// Times copies within the GPU's memory. Also returns the array's size, which is smaller on a GPU
/// with little memory.
fn copy_on_gpu(device: &Device, flags: &Bench) -> Result<(Vec<Duration>, usize), Error> {
    // Both arrays together take no more than an eighth of the memory.
    let memory = device.properties().total_memory.unwrap_or(u64::MAX);
    let most = usize::try_from(memory / 16).unwrap_or(usize::MAX);
    let bytes = COPY_BYTES_GPU.min(most) & !0xf_ffff;
    let length = bytes / size_of::<f32>();
    // Not zeros: memory that is all zeros can be faster than real data.
    let pattern: Vec<f32> = (0..length).map(|i| (i % 8191) as f32 * 0.37).collect();
    let source: Buffer<f32> = device.upload(&pattern)?;
    let mut target: Buffer<f32> = device.alloc_filled(length, f32::NAN)?;
    let (warmup, launches) = (flags.warmup as usize, flags.launches() as usize);
    let timings = device.time_each(warmup, launches, || target.copy_from(&source))?;
    Ok((timings, bytes))
}

/// Times copies in the host's memory, in which each thread copies a part.
fn copy_on_cpu(
    device: &Device,
    threads: usize,
    bytes: usize,
    flags: &Bench,
) -> Result<Vec<Duration>, Error> {
    let source: Vec<u64> = (0..bytes as u64 / 8)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let mut target = vec![u64::MAX; source.len()];
    let part = source.len().div_ceil(threads);
    timing::repeat(flags, timing::budget(device, flags), || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (source, target) in source.chunks(part).zip(target.chunks_mut(part)) {
                scope.spawn(move || target.copy_from_slice(source));
            }
        });
        let took = start.elapsed();
        std::hint::black_box(&mut target);
        Ok(took)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::tests::flags;

    #[test]
    fn the_copy_is_timed_once_a_launch_on_any_number_of_threads() {
        for threads in [1, 2, 3] {
            let timings = copy_on_cpu(&Device::cpu(), threads, 1 << 12, &flags()).unwrap();
            assert_eq!(timings.len(), 7);
        }
    }
}
