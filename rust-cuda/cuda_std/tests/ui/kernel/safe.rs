//! A kernel is `unsafe`.

use cuda_std::kernel;

#[kernel]
pub fn kernel(x: *mut f32) {
    let _ = x;
}

fn main() {}
