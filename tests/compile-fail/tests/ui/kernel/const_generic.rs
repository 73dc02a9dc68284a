//! A kernel must not be generic over constants.

use cuda_std::kernel;

#[kernel]
pub unsafe fn kernel<const N: usize>(x: &[f32]) {
    let _ = x;
}

fn main() {}
