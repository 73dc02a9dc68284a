//! A kernel is not `const`.

use cuda_std::kernel;

#[kernel]
pub const unsafe fn kernel() {}

fn main() {}
