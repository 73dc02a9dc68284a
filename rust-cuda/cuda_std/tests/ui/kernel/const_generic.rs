//! A kernel is not generic over constants either.

use cuda_std::kernel;

#[kernel]
pub unsafe fn kernel<const N: usize>(x: &[f32]) {
    let _ = x;
}

fn main() {}
