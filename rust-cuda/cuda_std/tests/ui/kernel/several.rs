//! All mistakes at once.

use cuda_std::kernel;

#[kernel]
pub async fn kernel<T>(x: T) -> T {
    x
}

fn main() {}
