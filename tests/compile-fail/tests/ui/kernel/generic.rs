//! A kernel must not be generic.

use cuda_std::kernel;

#[kernel]
pub unsafe fn kernel<T: Copy>(x: &[T]) {
    let _ = x;
}

fn main() {}
