//! The number of dimensions must be 1, 2 or 3.

use cuda_std::kernel;

#[kernel(grid_dim = 4d)]
pub unsafe fn kernel() {}

fn main() {}
