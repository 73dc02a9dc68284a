//! A kernel must not take a trait object.

use cuda_std::kernel;

#[kernel]
pub unsafe fn kernel(f: &dyn Fn(f32) -> f32) {
    let _ = f;
}

fn main() {}
