//! A kernel of the crate's own, in the emulator.

use cuda_std::prelude::{kernel, thread};
use halo_gpu::{Device, Error, LaunchConfig, blocks_for, launch};

/// `y ← a x + y`, a thread for each element.
///
/// # Safety
///
/// `x` and `y` have `n` elements; a one-dimensional grid of one-dimensional blocks.
#[kernel]
pub unsafe fn axpy(a: f32, x: *const f32, y: *mut f32, n: u32) {
    let i = thread::index_1d();
    if i < n {
        // SAFETY: i is below n, and no other thread has it.
        unsafe { *y.add(i as usize) += a * *x.add(i as usize) };
    }
}

/// Runs it, and checks the result.
pub fn check() -> Result<(), Error> {
    let device = Device::emulator();
    let x = device.upload(&[1.0_f32; 300])?;
    let mut y = device.alloc_filled(300, 0.5)?;
    let config = LaunchConfig::new(blocks_for("axpy", 300, 128)?, 128);
    // SAFETY: both buffers have 300 elements, and they are distinct.
    unsafe { launch::<axpy>(&device, &config, axpy::args(2.0, &x, &mut y, 300))? };
    assert_eq!(y.to_vec()?, [2.5; 300]);
    Ok(())
}
