//! An argument passed by value must be `Copy`.

use cuda_std::kernel;

#[kernel]
pub unsafe fn kernel(n: usize, data: Vec<f32>) {
    let _ = (n, data);
}

fn main() {}
