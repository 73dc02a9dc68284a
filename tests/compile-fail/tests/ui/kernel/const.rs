//! A kernel must not be `const`.

use cuda_std::kernel;

#[kernel]
pub const unsafe fn kernel() {}

fn main() {}
