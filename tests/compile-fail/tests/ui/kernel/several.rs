//! A kernel with several mistakes.

use cuda_std::kernel;

#[kernel]
pub async fn kernel<T>(x: T) -> T {
    x
}

fn main() {}
