//! A kernel must not take `impl Trait`.

use cuda_std::kernel;

#[kernel]
pub unsafe fn kernel(n: usize, x: impl Copy) {
    let _ = (n, x);
}

fn main() {}
