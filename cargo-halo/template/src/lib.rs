//! Smooths a row of numbers, on a GPU.

#[cfg(feature = "gpu")]
use cust::prelude::*;
#[cfg(feature = "gpu")]
use template_name_kernels::BLOCK;

/// The mean of each number and its two neighbours, by the formula, on the CPU.
#[must_use]
pub fn smooth_on_cpu(x: &[f32]) -> Vec<f32> {
    let last = x.len().saturating_sub(1);
    (0..x.len())
        .map(|i| (x[i.saturating_sub(1)] + x[i] + x[(i + 1).min(last)]) * (1.0 / 3.0))
        .collect()
}

/// The same on the first GPU.
///
/// # Errors
///
/// Those of the driver: no device, no memory.
#[cfg(feature = "gpu")]
pub fn smooth(x: &[f32]) -> Result<Vec<f32>, cust::error::CudaError> {
    const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));
    if x.is_empty() {
        return Ok(Vec::new());
    }
    let _context = cust::quick_init()?;
    let module = Module::from_ptx(PTX, &[])?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let on_device = x.as_dbuf()?;
    let out = DeviceBuffer::<f32>::zeroed(x.len())?;
    let blocks = x.len().div_ceil(BLOCK) as u32;
    let threads = BLOCK as u32;
    // SAFETY: the parameters, a slice as its address and length, both buffers as long, and
    // the geometry are what `smooth` asks for.
    unsafe {
        launch!(module.smooth<<<blocks, threads, 0, stream>>>(
            on_device.as_device_ptr(),
            on_device.len(),
            out.as_device_ptr()
        ))?;
    }
    stream.synchronize()?;
    out.as_host_vec()
}
