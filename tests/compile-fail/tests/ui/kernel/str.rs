//! A kernel must not take a `str`.

use cuda_std::kernel;

#[kernel]
pub unsafe fn kernel(text: &str) {
    let _ = text;
}

fn main() {}
