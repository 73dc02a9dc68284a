//! A kernel must not return a value.

use cuda_std::kernel;

#[kernel]
pub unsafe fn kernel(x: &[f32]) -> f32 {
    x[0]
}

fn main() {}
