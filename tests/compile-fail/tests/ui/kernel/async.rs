//! A kernel must not be `async`.

use cuda_std::kernel;

#[kernel]
pub async unsafe fn kernel() {}

fn main() {}
