//! A kernel must be a function.

use cuda_std::kernel;

#[kernel]
pub struct Kernel;

fn main() {}
