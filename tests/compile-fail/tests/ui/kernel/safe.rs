//! A kernel must be `unsafe`.

use cuda_std::kernel;

#[kernel]
pub fn kernel(x: *mut f32) {
    let _ = x;
}

fn main() {}
